/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mount, for all rooms of src/fuse.
 *
 * Threads: inodes are the only thing lanes share: the table has one lock, each inode a short lock
 * of its own, and neither is held across a call to another layer.
 */
#ifndef RPCRDMAFS_FS_FS_H
#define RPCRDMAFS_FS_FS_H

#define FUSE_USE_VERSION 314

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "fs.h"
#include "fs_covers.h"
#include "fs_handle.h"
#include "live.h"
#include "mutex.h"

#define FS_NAME_MAX 255

/* As many parts may have fs_part.lane_turn. */
#define FS_TURNERS 4u

/* Names that were told as shadows last, by number (fs_shadow.c). */
#define FS_SHADOWED 256u

/* Requests of a process before this one (fs_replay.h). */
struct fs_replays {
	struct list list;    /* lanes_lock */
	struct list sillies; /* fs_silly_settle() */
	_Atomic unsigned int cnt;
	_Atomic bool looked_for; /* by the first lane, which may have to look again */
	_Atomic bool over;       /* all are done; what they wrote is made durable (fs_sync.c) */
	uint64_t unique;         /* fs_replay_unique(): the last one */
	int device;              /* of the process that died, until lanes run; -1: there is none */
	_Atomic uint32_t files_in_doubt; /* fs_file_of_request() finds those */
};

struct fs {
	struct fs_conf conf;
	const struct fs_part *const *parts;            /* fs_part.h; ends with NULL */
	const struct fs_part *turners[FS_TURNERS + 1]; /* those with lane_turn: asked often */
	struct nfs4_client *client;
	struct fuse_session *se;
	int fd, mount_fd; /* the latter of a mountpoint /dev/fd/N; else -1 */
	bool mounted;
	struct fs_init *init; /* fs_session.h */
	struct fs_init *was;  /* of the process that handed the mount over; NULL: none did */
	bool init_done;       /* the INIT reply went out */
	int init_err;
	uint32_t init_flags; /* what the kernel offered */
	uint32_t max_write, max_read;
	size_t data_size; /* smallest of the lanes */
	_Atomic bool exited;
	struct fs_inode *root;
	uint64_t fsid_major, fsid_minor;            /* of the root */
	struct nfs4_fs unknown;                     /* facts of a file system that are not known */
	struct fs_table *table;                     /* fs_inode.c */
	struct fs_notify *pages, *attrs, *dentries; /* fs_notify.c: the threads */
	bool expire_dentries;        /* the kernel can end a name's time and no more */
	_Atomic uint64_t dentry_seq; /* names found before: their time may not begin */
	struct list files;           /* of fs_file by all_link; table lock */
	struct list dirs;            /* of fs_open_dir (fs_place.h); table lock */
	struct fs_handles file_handles, dir_handles;
	_Atomic uint32_t moves; /* counts renames; changed with the table lock */
	_Atomic uint32_t files_open, files_opening;
	_Atomic uint32_t silly_cnt;    /* last counter of a .nfs name */
	_Atomic uint32_t sillies;      /* .nfs files that are there, or on their way */
	_Atomic uint32_t sillies_gone; /* counts those that were */
	_Atomic uint32_t releasing;  /* files that are being closed, and removed if they are .nfs */
	_Atomic uint32_t closes;     /* counts those that were */
	unsigned int max_background; /* unanswered ones, as long as the kernel keeps none back */
	_Atomic uint64_t
		background;       /* unanswered requests that may be of those (fs_background.h) */
	_Atomic uint64_t full_ns; /* when there were so many last (reactor_now); 0: never */
	_Atomic uint64_t lost_bytes; /* fs_losses() */
	_Atomic uint32_t lost_files;
	struct mutex lanes_lock;
	struct list lanes;
	unsigned int lanes_cnt, lanes_drained; /* lanes_lock */
	struct fs_lane *metalane;              /* the lane for metadata, or NULL (fs_metalane.h) */
	struct live *live;                     /* fs_live.h; NULL: nothing outlives this process */
	bool data_goes;                        /* ... but what programs wrote does not */
	live_ref live_ref;                     /* of the mount itself; table lock */
	struct fs_asked *asked;                /* fs_asked.h; NULL: as above */
	struct fs_replays replays;             /* fs_replay.h */
	_Atomic bool
		replaying; /* nothing is read from /dev/fuse before they are done (fs_lane.c) */
	_Atomic unsigned int readers;   /* lanes that read, or will */
	_Atomic unsigned int forwarded; /* requests on their way to it */
	_Atomic bool metalane_full;     /* it has no operation left */
	dev_t dev;
	struct mutex unmount_lock; /* mounted */
	_Atomic bool ops_log;      /* fs_set_ops_log() */
	struct fs_covers covers;   /* what is mounted on our files */
	_Atomic uint64_t shadowed[FS_SHADOWED];
	/* Of the rooms above (fs.c) */
	struct fs_sync *sync;
	struct fs_locks *locks;
	struct fs_delegs *delegs;
	struct fs_clones *clones;
};

#endif
