/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All locks of the program in their order: a thread takes one only if each lock that it holds
 * stands before it. There is no other list; docs/ARCHITECTURE.md says what each is for, and
 * tests/lint/check-locks keeps the two equal. The line's number is the lock's level.
 *
 * Two of one class are never held together: no code needs two inodes, states or lanes at once.
 *
 * A new lock goes before all that are taken inside it, and after all that it is taken inside. One
 * that is never held with another stands with the locks of its room.
 *
 * X(class, "struct.member")
 */
#ifndef RPCRDMAFS_MUTEX_ORDER_H
#define RPCRDMAFS_MUTEX_ORDER_H

/* clang-format off */
#define MUTEX_ORDER(X) \
	X(MUTEX_FS_UNMOUNT,    "fs.unmount_lock") \
	X(MUTEX_FS_LANES,      "fs.lanes_lock") \
	X(MUTEX_FS_CLONE,      "fs_clones.lock") \
	X(MUTEX_FS_COVERS,     "fs_covers.lock") \
	X(MUTEX_FS_NOTIFY,     "fs_notify.lock") \
	X(MUTEX_FS_DIR,        "fs_dir.lock") \
	X(MUTEX_FS_LOCKS,      "fs_locks.lock") \
	X(MUTEX_FS_VALIDATE,   "fs_validate.lock") \
	X(MUTEX_NFS4_CLIENT,   "nfs4_client.lock") \
	X(MUTEX_NFS4_FS,       "nfs4_fs_table.lock") \
	X(MUTEX_NFS4_OFFLOADS, "nfs4_offloads.lock") \
	X(MUTEX_NFS4_VIEW,     "nfs4_session.view_lock") \
	X(MUTEX_NFS4_STATES,   "nfs4_states.lock") \
	X(MUTEX_NFS4_STATE,    "nfs4_state.lock") \
	X(MUTEX_FS_DELEG,      "fs_delegs.lock") \
	X(MUTEX_FS_TABLE,      "fs_table.lock") \
	X(MUTEX_FS_INODE,      "fs_inode.lock") \
	X(MUTEX_FS_UNSTABLE,   "fs_unstable_lane.lock") \
	X(MUTEX_FS_ASKED,      "fs_asked.lock") \
	X(MUTEX_IDMAP,         "idmap.lock") \
	X(MUTEX_ADDRS,         "addrs.lock") \
	X(MUTEX_CAPTURE,       "capture.lock") \
	X(MUTEX_LIVE,          "live.lock") \
	X(MUTEX_LOG_RING,      "log_thread.ring.lock") \
	X(MUTEX_LOG_SINK,      "log.sink_lock")
/* clang-format on */

enum mutex_class {
	MUTEX_NONE, /* it was not initialised, or destroyed */
#define MUTEX_AS_ENUM(class, name) class,
	MUTEX_ORDER(MUTEX_AS_ENUM)
#undef MUTEX_AS_ENUM
	MUTEX_CLASS_CNT,
};

#endif
