/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane: a thread, its reactor, its NFS session and its reader of /dev/fuse
 * (design section 2). The main thread steers it by messages; what the lane
 * reports arrives as messages on the main thread's reactor.
 *
 * Context: lane_* by the main thread; reports on the main reactor.
 */
#ifndef RPCRDMAFS_LANE_H
#define RPCRDMAFS_LANE_H

#include <pthread.h>
#include <semaphore.h>

#include "fs.h"

struct lane;

enum lane_report_type {
	LANE_UP,        /* its session exists */
	LANE_FAILED,    /* it could not be made: failure says why */
	LANE_PATH_DONE, /* lane_mount_path(): failure.err is 0 on success */
	LANE_EXITED,    /* the kernel ended the FUSE session */
	LANE_CAUGHT_UP, /* nothing of a process before is left undone (FS_LANE_CAUGHT_UP) */
	LANE_IDLE,      /* after lane_drain(): no operation is left */
	LANE_STOPPED,   /* after lane_stop(): the session is gone */
	LANE_HELD,      /* after lane_hold(): its thread stands still until lane_release() */
	LANE_BUSY,      /* after lane_hold(): it has something in work, and goes on */
};

struct lane_report {
	struct lane *lane;
	enum lane_report_type type;
	struct nfs4_failure failure;
};

typedef void (*lane_report_fn)(void *ctx, const struct lane_report *report);

/*
 * Starts the thread; nothing happens on the network yet. metadata: the lane for that, with few
 * buffers (fs_metalane_make()). NULL with errno.
 */
struct lane *lane_new(unsigned int id, struct nfs4_client *client, bool metadata,
	struct reactor *main_reactor, lane_report_fn report, void *ctx);
/* Ends the thread; after LANE_STOPPED or LANE_FAILED, or before lane_connect. */
void lane_join(struct lane *lane);
/* Frees everything; after lane_join() of every lane, since they post to each other. */
void lane_free(struct lane *lane);

/* Connects and makes the session: LANE_UP or LANE_FAILED follows. Addresses are copied. */
void lane_connect(struct lane *lane, const struct sockaddr *src, const struct sockaddr *dst);
/* LANE_PATH_DONE follows. path and cred live until then. */
void lane_mount_path(struct lane *lane, const char *path, const struct rpc_cred *cred);
/* Makes the lane's FUSE part (before fs_mount()); `ops` requests at once. 0 or -errno. */
int lane_fs_new(struct lane *lane, struct fs *fs, unsigned int ops);
/* Reads /dev/fuse from now on (after fs_mount()). */
void lane_fs_start(struct lane *lane);
/* Stops reading: LANE_IDLE follows when every operation ended. */
void lane_drain(struct lane *lane);
/* Ends the session: LANE_STOPPED follows. */
void lane_stop(struct lane *lane);

/* Reads no more until lane_go_on(); what is in work goes on (fs_lane_pause()). */
void lane_pause(struct lane *lane);
void lane_go_on(struct lane *lane);
/* LANE_HELD or LANE_BUSY follows. While all lanes are held what they have is the main thread's. */
void lane_hold(struct lane *lane);
void lane_release(struct lane *lane);
/* While it is held: its session, for a successor (nfs4_keep_put_session()). */
void lane_put_session(const struct lane *lane, struct tables_out *t);

/*
 * A sign of life: lane_ping() asks the lane's thread for one, unless it still owes the last;
 * lane_answered() says whether it owes none.
 */
void lane_ping(struct lane *lane);
bool lane_answered(const struct lane *lane);

/* Any thread; counters are read while the lane runs. */
const struct stats *lane_stats(const struct lane *lane);
/* Any thread: what its session agreed on. */
void lane_view(const struct lane *lane, struct nfs4_session_view *ret);

#endif
