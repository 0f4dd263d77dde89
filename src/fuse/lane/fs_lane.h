/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane, for its operations and parts; fs.h has how it is made and stopped. */
#ifndef RPCRDMAFS_FS_LANE_H
#define RPCRDMAFS_FS_LANE_H

#include "fs_fs.h"
#include "fs_pace.h"

/* How a stopping lane ends: each step follows when the one before is complete. */
enum fs_lane_state {
	FS_LANE_NEW,
	FS_LANE_RUNS,
	FS_LANE_PAUSED, /* reads no more for a while; operations end (fs_lane_pause.c) */
	FS_LANE_QUIET,  /* stopping; reads on until the notify threads are idle (fs_lane.c) */
	FS_LANE_DRAINS, /* reads no more; operations end, left-over files are closed */
	FS_LANE_IDLE,
};

struct fs_kick; /* fs_lane.c */
struct fs_part;
struct fs_forward;

struct fs_lane {
	struct fs *fs;
	struct list link; /* fs->lanes, fs->lanes_lock */
	struct reactor *reactor;
	struct nfs4_session *sess;
	struct rpcrdma *xprt;
	struct stats *stats;
	fs_lane_report *report;
	void *report_ctx;
	struct reactor_fd src;     /* /dev/fuse */
	struct rpcrdma_buf *rxbuf; /* where the next request is received; NULL: taken by a WRITE */
	struct list ops;           /* of fs_op.pool_link: all that are its own */
	struct list free_ops;      /* of fs_op.link */
	unsigned int ops_cnt, ops_free;
	unsigned int spare_cnt; /* of ops_cnt: added later (fs_interrupt.c) */
	unsigned int abandoned;
	unsigned int notify_waits; /* operations that wait for the notify thread */
	struct list parked;        /* ops waiting for a request or a buffer */
	struct reactor_timer idle_timer;
	struct reactor_timer interrupt_timer;
	/* of the request that was read last */
	uint64_t unique, read_ns;
	uint32_t opcode;
	bool redone;       /* it is of the process before (fs_replay.h) */
	uint64_t in_rxbuf; /* fs_asked_buf.c: the request that has no other record; 0: none */
	_Atomic uint64_t interrupted; /* another lane read a FUSE_INTERRUPT of this one; 0: none */
	struct fs_kick *kick;
	struct fs_forward *forward; /* fs_metalane.h; NULL: without option metalane */
	enum fs_lane_state state;
	unsigned int half_bufs; /* half of its data buffers: as many may stay unstable */
	/* Of its parts, made with it (fs_part.lane_made). */
	struct fs_unstable_lane *unstable;
	struct fs_commit_lane *commit;
	struct fs_writeback_lane *writeback;
	struct fs_ahead_lane *ahead;
	struct fs_deleg_lane *deleg;
	struct fs_lockwait_lane *lockwait;
	struct fs_copywait_lane *copywait;
	struct fs_validate *validate;
	struct fs_pace pace;
	uint64_t read_lulls;  /* reactor_lulls(), when it read last */
	_Atomic bool reading; /* a request may be read, and nobody know of it */
	bool receiving;       /* a handler runs: rxbuf is in use */
	bool answering;       /* what is counted in fs->background */
	bool stalled;         /* stopped reading for want of an op, buffer or call */
	bool again;           /* fs_lane_turn() was called while it ran */
	bool drained;         /* counted in fs->lanes_drained */
	bool turning;         /* guards against recursion in fs_lane_turn() */
	bool last;            /* the last lane to drain: it closes what is left open */
};

/* The one setter of l->state. */
void fs_lane_set_state(struct fs_lane *l, enum fs_lane_state to);
/* It waits for /dev/fuse, or not. 0 or -errno. */
int fs_lane_start_reading(struct fs_lane *l);
void fs_lane_stop_reading(struct fs_lane *l);
/* It is told to end. */
static inline bool fs_lane_is_ending(const struct fs_lane *l)
{
	return l->state == FS_LANE_QUIET || l->state == FS_LANE_DRAINS || l->state == FS_LANE_IDLE;
}
/*
 * Written data is made durable, and delegations are returned, as always. At the end each file is
 * committed by its close.
 */
static inline bool fs_lane_may_commit(const struct fs_lane *l)
{
	return l->state == FS_LANE_RUNS || l->state == FS_LANE_PAUSED || l->state == FS_LANE_QUIET;
}
/* Something was given back: resumes parked ops, then reading, then a stop in progress. */
void fs_lane_turn(struct fs_lane *l);
/* It takes a turn, and looks for requests. Any thread, while the lane has something in work. */
void fs_lane_kick(struct fs_lane *l);

#endif
