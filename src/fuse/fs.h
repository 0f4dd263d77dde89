/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file system as mount.c sees it: one struct fs for the mount, one
 * fs_lane for each lane, the libfuse session inside.
 *
 * Order: fs_new, lanes' sessions up, fs_set_root, fs_lane_new for each lane, fs_mount,
 * lanes run; then (unmounted or told to stop) lanes stopped, fs_stop, lanes freed, fs_free.
 *
 * Context: fs_* by the main thread unless stated; fs_lane_* by the lane.
 */
#ifndef RPCRDMAFS_FS_H
#define RPCRDMAFS_FS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nfs4.h"

struct fs;
struct fs_lane;

enum fs_lookupcache {
	FS_LOOKUPCACHE_ALL,
	FS_LOOKUPCACHE_POSITIVE,
	FS_LOOKUPCACHE_NONE,
};

/* Which locks stay on this machine (nfs(5) local_lock=). */
#define FS_LOCAL_FLOCK (1u << 0)
#define FS_LOCAL_POSIX (1u << 1)

/* When a WRITE is answered (nfs(5) write=). */
enum fs_write {
	FS_WRITE_WAIT,  /* when the server has it */
	FS_WRITE_EAGER, /* at once; it is sent at once, too */
	FS_WRITE_LAZY,  /* at once; small ones are gathered first */
};

struct fs_conf {
	const char *source;     /* "server:/export", shown in /proc/mounts */
	const char *mountpoint; /* absolute, or /dev/fd/N */
	uint32_t acregmin_s, acregmax_s, acdirmin_s, acdirmax_s; /* attribute cache, seconds */
	bool noac;          /* no attribute cache, writes synchronous */
	bool cto;           /* close-to-open */
	bool delegation;    /* ask for delegations, and rely on them */
	uint64_t readahead; /* bytes of a handle's stream; 0: none */
	bool sync;          /* every WRITE FILE_SYNC */
	enum fs_write write;
	uint64_t dirty; /* bytes of a lane that were answered and the server has not got yet */
	bool rdirplus;
	enum fs_lookupcache lookupcache;
	unsigned int local_lock; /* FS_LOCAL_* */
	bool metalane;           /* one of the lanes is for metadata: fs_metalane_make() */
	bool read_only, allow_other, default_permissions;
	const char *
		mount_opts; /* further options for the kernel: "nosuid,nodev,noatime..."; or NULL */
	uint32_t read_ahead_kb; /* bdi limit to set when root; 0: leave */
	unsigned int max_background;
	bool debug;
};

/* NULL with errno. Strings are copied. */
struct fs *fs_new(const struct fs_conf *conf, struct nfs4_client *client);
/*
 * Ends the threads that tell the kernel. After every lane is idle or was never started, and before
 * a lane's reactor is freed: they post to it. fs may be NULL.
 */
void fs_stop(struct fs *fs);
void fs_free(struct fs *fs);
/* Once the mount path is known and before fs_mount(). */
int fs_set_root(struct fs *fs);
/* What lies between the programs and the server's disk now. Any thread. */
struct fs_gauges {
	uint64_t inodes;
	uint64_t files;       /* open */
	uint64_t dirty;       /* bytes that programs wrote and the server has not got yet */
	uint64_t uncommitted; /* bytes that it has and may lose */
};
struct fs_gauges fs_gauges(struct fs *fs);
/*
 * fs_sync_wish - whatever was written until now is made durable
 *
 * Any thread that outlives no lane. Returns a ticket for fs_sync_is_done(), which is true when all
 * is tried; *ret_failed: so many files could not be committed in the last round.
 */
uint64_t fs_sync_wish(struct fs *fs);
bool fs_sync_is_done(const struct fs *fs, uint64_t ticket, unsigned int *ret_failed);
/*
 * Data that was answered, and neither did the server take it nor can it be written again. Counted
 * since the mount; files: that were closed with such an error which no program heard. Any thread.
 */
struct fs_losses {
	uint64_t bytes;
	uint32_t files;
};
struct fs_losses fs_losses(const struct fs *fs);
/* One log line for each request that is answered, whatever the log level. Any thread. */
void fs_set_ops_log(struct fs *fs, bool on);
bool fs_has_ops_log(const struct fs *fs);
/* What FUSE_INIT agreed on, once it is mounted: the longest READ and WRITE requests. */
void fs_limits(const struct fs *fs, uint32_t *ret_max_read, uint32_t *ret_max_write);
/* The device number of the mount, for who must not ask it; 0: not mounted, or not known. */
dev_t fs_dev(const struct fs *fs);
/* Inodes there are: those that the kernel holds, and those of operations. Any thread. */
size_t fs_inode_count(const struct fs *fs);
/* N if it is of the form /dev/fd/N: a /dev/fuse that is open and mounted already. Else -1. */
int fs_mountfd_of(const char *mountpoint);
/*
 * fs_mountpoint_check - can anything be mounted on this absolute path, or /dev/fd/N be served?
 *
 * Asks no file system that is mounted there. A mount of ours whose daemon died is taken away, with
 * a line in the log.
 * Returns: 0; -errno with one line in text: EBUSY: one that lives is there.
 */
int fs_mountpoint_check(const char *path, const char *source, char *text, size_t text_len);
/*
 * fs_mount_check - could it be mounted there?
 *
 * Before anything is asked of the server; fs_mount() checks again.
 * Returns: 0; -errno with one line in text.
 */
int fs_mount_check(const struct fs *fs, char *text, size_t text_len);
/*
 * fs_mount - mount and answer FUSE_INIT
 *
 * From here on the kernel sends requests: lanes must be running or about to.
 * Returns: 0; -errno with one line in text (mountpoint missing, not a directory, busy, no
 * permission, no /dev/fuse, fusermount3 missing...).
 */
int fs_mount(struct fs *fs, char *text, size_t text_len);
/*
 * Detaches the mount if it is still there; what programs have open goes on until they close it,
 * then the session ends (FS_LANE_EXITED). Waits for the kernel: any thread but a lane, joined
 * before fs_free().
 */
void fs_unmount(struct fs *fs);

/* ---- another process takes the mount over ---- */

/*
 * A lane stands still for a while (fs_lane_pause.c): what the kernel asks waits there, none of it
 * is refused. Operations that are in work go on and end, written data is committed, delegations
 * are returned. Requests that sleep for a lock sleep on. By the lane.
 */
void fs_lane_pause(struct fs_lane *l);
/* Nothing is in work; timers, and other lanes, may begin something in the next moment. */
bool fs_lane_pause_is_quiet(const struct fs_lane *l);
/* Reads again, also if it never paused. */
void fs_lane_pause_end(struct fs_lane *l);

struct tables_in;
struct tables_out;

/*
 * Begins what has to be over before: delegations are returned. Data that was written is
 * made durable by fs_sync_wish().
 */
void fs_handover_prepare(struct fs *fs);
/*
 * fs_handover_obstacle - every lane stands still: what keeps the mount from being written down
 *
 * Returns: NULL: nothing. Else a few words: what soon is over, once the lanes go on.
 */
const char *fs_handover_obstacle(struct fs *fs);
/* Every lane stands still: the kernel is told of something, and may wait for a request meanwhile.
 */
bool fs_handover_wants_air(struct fs *fs);
/*
 * fs_handover_put - what a successor needs: all that the kernel knows, and our state on the server
 *
 * Every lane stands still and nothing is in the way. Sessions are the caller's to put afterwards
 * (nfs4_keep_put_session()).
 */
void fs_handover_put(struct fs *fs, struct tables_out *t);
struct live;

/*
 * fs_handover_live - from now on all that fs_handover_put() would write is in this memory too
 *
 * As it is at any moment (live.h), with the sessions and what the kernel asked and is not answered.
 * data: what programs wrote as well, until it is durable; else they get EIO if the process dies.
 * After fs_new(), before fs_handover_get(); the memory outlives fs. Returns: 0; -ENOMEM.
 */
int fs_handover_live(struct fs *fs, struct live *live, bool data);
/*
 * Of the process that died: nfs4_keep_before(), and device, its descriptor of /dev/fuse, which
 * stays the caller's. Before fs_handover_get(), and until that returns.
 */
int fs_handover_before(struct fs *fs, int fd, int device);
/* It is mounted: what was agreed on with the kernel is there as well. */
void fs_handover_live_mounted(struct fs *fs);
/* The descriptor of /dev/fuse: fs', while it is mounted. */
int fs_handover_device(const struct fs *fs);
/*
 * fs_notify_through - notices to the kernel that may wait there are written by somebody else
 *
 * lines: SOCK_SEQPACKET sockets, the file system's from now on, in place of earlier ones. Over each
 * goes one notice (FS_NOTIFY_MAX bytes at most) at a time, to be written to /dev/fuse as it is; the
 * answer is an int32_t: what write(2) returned, or -errno. Over one that ends go no more: the file
 * system writes itself.
 */
#define FS_NOTIFY_LINES 9
#define FS_NOTIFY_MAX   2048
void fs_notify_through(struct fs *fs, const int *lines);
/* /dev/fuse stays open when another program is executed; false: it does not. */
void fs_handover_keep_device(const struct fs *fs, bool keep);
/*
 * fs_handover_get - what fs_handover_put() wrote
 *
 * After fs_new(), before lanes start: what was open and locked is reclaimed if it must be.
 * sequence_known: no other process has tried with these tables (nfs4_keep_get_client()).
 * Returns: 0; -EBADMSG: it is damaged, or of another client; -ENOMEM. Then only fs_free() may
 * follow.
 */
int fs_handover_get(struct fs *fs, struct tables_in *in, bool sequence_known, uint64_t now_ns);
/*
 * fs_handover_mount - in place of fs_mount(): the kernel's connection goes on
 *
 * device: its descriptor in this process; -1: as the tables say, of the process that it was before.
 * Returns: 0; -errno with one line in text; the kernel's connection is as it was.
 */
int fs_handover_mount(struct fs *fs, int device, char *text, size_t text_len);
/* After fs_handover_get(): there is something that it left undone. FS_LANE_CAUGHT_UP follows. */
bool fs_handover_is_behind(const struct fs *fs);
/*
 * fs_handover_drop - nobody takes the mount over that these tables are of, which is of that source
 *
 * It is taken away, and what programs have open fails; unless it is not at this path any more, or
 * something is over it. device: as in fs_handover_mount().
 */
void fs_handover_drop(struct tables_in *in, int device, const char *mountpoint, const char *source);
/*
 * fs_handover_abort - all use of the mount at this path fails from now on
 *
 * Also if a process that waits in the kernel has the device open (fs_notify.h). Programs do not get
 * to what lies below it. Root's; of others this does nothing.
 */
void fs_handover_abort(const char *mountpoint);

enum fs_lane_event {
	/* The kernel closed the session (umount): once, from the lane that saw it. */
	FS_LANE_EXITED,
	/*
	 * All that a process before this one left undone is done (fs_handover_is_behind()), and
	 * lanes read what the kernel asks now: once, from any lane.
	 */
	FS_LANE_CAUGHT_UP,
	/* After fs_lane_stop(): every operation ended and every file of this lane is closed. */
	FS_LANE_ENDED,
};
typedef void fs_lane_report(void *ctx, enum fs_lane_event event);

/*
 * fs_lane_new - a lane's part: its pool of operations and its reader of /dev/fuse
 *
 * Starts to read when the reactor runs and the mount is there (fs_lane_start()). `report` runs on
 * the lane's thread; NULL: none. NULL: out of memory (errno).
 */
struct fs_lane *fs_lane_new(struct fs *fs, struct reactor *r, struct nfs4_session *sess,
	unsigned int ops, fs_lane_report *report, void *ctx, struct stats *stats);
/*
 * Makes it the one lane for metadata (fs_metalane.h), which reads nothing itself: with
 * conf.metalane, after fs_lane_new() and before fs_mount().
 */
void fs_metalane_make(struct fs_lane *l);
/* After fs_mount(), once, and not after fs_lane_stop(). Returns 0; -errno: it is not started. */
int fs_lane_start(struct fs_lane *l);
/* From nfs4_session_ops.unblocked. */
void fs_lane_unblocked(struct fs_lane *l);
/* Stops reading, started or not; FS_LANE_ENDED follows when every operation ended, never from in
 * here. */
void fs_lane_stop(struct fs_lane *l);
void fs_lane_free(struct fs_lane *l);

#endif
