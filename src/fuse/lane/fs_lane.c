/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane's reader of /dev/fuse. All lanes share the session's descriptor
 * (non-blocking, EPOLLEXCLUSIVE). A request is received straight into a
 * registered buffer; a WRITE keeps that buffer (its payload lies at +80, page
 * aligned), everything else leaves it for the next request.
 *
 * Back-pressure: the lane reads only with an operation and a buffer free and
 * nothing parked. Otherwise it takes the descriptor out of its epoll set
 * (stalled), wakes the other lanes, since a wake-up that it got is lost for
 * them, and comes back in fs_lane_turn(). With a lane for metadata it reads on
 * to find what that one shall do (fs_metalane.h).
 *
 * The end (fs_lane_stop):
 *   RUNS -> QUIET   the notify threads take no more; what they have in the kernel may wait for a
 *                   page whose READ is not read yet, or a directory whose CREATE is not, so the
 *                   lane reads on until they are idle
 *        -> DRAINS  reads no more; operations end; delegations are returned; the last lane closes
 *                   the files that the kernel did not (unmounted by force, or lazily and still in
 *                   use)
 *        -> IDLE    FS_LANE_ENDED
 */
#include "fs_asked_buf.h"
#include "fs_current.h"
#include "fs_file.h"
#include "fs_lane.h"
#include "fs_metalane.h"
#include "fs_inode.h"
#include "fs_interrupt.h"
#include "fs_notify.h"
#include "fs_op.h"
#include "fs_part.h"
#include "fs_replay.h"
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define QUIET_POLL_NS (5 * NSEC_PER_MSEC)

/*
 * "Try to read", or "look what there is to do": from one lane to another. Outlives its lane if it
 * must.
 */
struct fs_kick {
	struct reactor_msg msg;
	_Atomic bool posted;
	struct fs_lane *lane; /* NULL: gone */
};

/* From each state to which. */
static const unsigned int legal[] = {
	[FS_LANE_NEW] = 1u << FS_LANE_RUNS | 1u << FS_LANE_QUIET,
	[FS_LANE_RUNS] = 1u << FS_LANE_QUIET | 1u << FS_LANE_PAUSED,
	[FS_LANE_PAUSED] = 1u << FS_LANE_QUIET | 1u << FS_LANE_RUNS,
	[FS_LANE_QUIET] = 1u << FS_LANE_DRAINS,
	[FS_LANE_DRAINS] = 1u << FS_LANE_IDLE,
	[FS_LANE_IDLE] = 0,
};

void fs_lane_set_state(struct fs_lane *l, enum fs_lane_state to)
{
	assert(legal[l->state] & 1u << to);
	l->state = to;
}

static void lane_ready(struct reactor_fd *src, uint32_t events);

static bool may_read(struct fs_lane *l)
{
	if (l->fs->replaying && !fs_replay_is_next(l))
		return false;
	if (l->state != FS_LANE_RUNS && l->state != FS_LANE_QUIET)
		return false;
	if (l->fs->exited || l == l->fs->metalane)
		return false;
	if (!list_empty(&l->parked) && !fs_metalane_reads_on(l))
		return false;
	if (l->ops_free == 0 && !fs_interrupt_spare(l))
		return false;
	if (!l->rxbuf)
		l->rxbuf = rpcrdma_buf_get_above(l->xprt, fs_metalane_last_bufs(l));
	if (!l->rxbuf)
		return false;
	l->rxbuf->owner = l;
	return true;
}

/* ---- other lanes ---- */

static void kick_run(struct reactor_msg *msg)
{
	struct fs_kick *k = container_of(msg, struct fs_kick, msg);

	if (!k->lane) {
		free(k);
		return;
	}
	k->posted = false;
	if (k->lane->interrupted)
		fs_metalane_interrupt(k->lane, atomic_exchange(&k->lane->interrupted, 0));
	fs_part_lane_kicked(k->lane->fs, k->lane);
	if (k->lane->src.reactor)
		lane_ready(&k->lane->src, EPOLLIN);
	else
		fs_lane_turn(k->lane);
}

void fs_lane_kick(struct fs_lane *l)
{
	if (!atomic_exchange(&l->kick->posted, true))
		reactor_post(l->reactor, &l->kick->msg);
}

static void kick_others(struct fs_lane *l, uint64_t interrupted)
{
	mutex_lock(&l->fs->lanes_lock);
	list_for_each (node, &l->fs->lanes) {
		struct fs_lane *other = container_of(node, struct fs_lane, link);

		if (other == l)
			continue;
		if (interrupted)
			other->interrupted = interrupted;
		fs_lane_kick(other);
	}
	mutex_unlock(&l->fs->lanes_lock);
}

/* ---- reading ---- */

void fs_lane_stop_reading(struct fs_lane *l)
{
	reactor_fd_del(&l->src);
	l->src.reactor = NULL;
}

int fs_lane_start_reading(struct fs_lane *l)
{
	return reactor_fd_add(l->reactor, &l->src, l->fs->fd, EPOLLIN | EPOLLEXCLUSIVE, lane_ready);
}

static void stall(struct fs_lane *l)
{
	if (l->stalled)
		return;
	l->stalled = true;
	stats_count(&l->stats->buf_waits, 1);
	fs_lane_stop_reading(l);
	kick_others(l, 0);
}

static void tell(const struct fs_lane *l, enum fs_lane_event event)
{
	if (l->report)
		l->report(l->report_ctx, event);
}

/* The kernel ended the session: unmounted, or the connection was aborted. */
static void session_ended(struct fs_lane *l)
{
	fs_lane_stop_reading(l);
	l->stalled = false;
	if (!atomic_exchange(&l->fs->exited, true))
		tell(l, FS_LANE_EXITED);
}

static void go_on_replaying(struct fs_lane *l)
{
	enum fs_replay_turn turn = fs_replay_turn(l);

	if (turn != FS_REPLAY_NONE)
		fs_lane_kick(l);
	if (turn >= FS_REPLAY_OTHERS)
		kick_others(l, 0);
	if (turn == FS_REPLAY_OVER)
		tell(l, FS_LANE_CAUGHT_UP);
}

/* One request. False: none there, or none will come any more. */
static bool receive(struct fs_lane *l)
{
	struct rpcrdma_buf *buf = l->rxbuf;
	struct fuse_buf fbuf = {.mem = buf->mem};
	const struct fuse_in_header *h = (const void *)buf->mem;
	uint64_t interrupted;
	int len;

	l->reading = true;
	l->redone = l->fs->replaying;
	len = l->redone ? fs_replay_receive(l, &fbuf) : fs_asked_buf_receive(l, &fbuf);
	if (len == 0 || len == -ENODEV) {
		session_ended(l);
		return false;
	}
	if (len < 0) {
		if (len != -EAGAIN && len != -EINTR)
			log_warn_limited("reading /dev/fuse: %s", strerror(-len));
		return len == -EINTR;
	}
	stats_count(&l->stats->fuse_requests, 1);
	l->read_ns = reactor_clock(l->reactor);
	if (fs_metalane_forward(l, buf->mem, (size_t)len))
		return true;
	l->unique = h->unique;
	l->opcode = h->opcode;
	interrupted = fs_interrupt_of(h);
	fs_current_set(l, l->stats);
	l->receiving = true;
	fuse_session_process_buf(l->fs->se, &fbuf);
	fs_asked_buf_list(l);
	l->receiving = false;
	if (interrupted) {
		fs_interrupt_now(l, interrupted);
		kick_others(l, interrupted); /* it may be a request of theirs */
	}
	return true;
}

/* expected: epoll does not say that there are any. */
static void receive_batch(struct fs_lane *l, bool expected)
{
	uint64_t lulls = reactor_lulls(l->reactor);
	unsigned int most = fs_pace_begin(&l->pace, lulls == l->read_lulls), n = 0;

	l->read_lulls = lulls;
	while (n < most && may_read(l) && receive(l))
		n++;
	l->reading = false;
	if (fs_pace_end(&l->pace, n, expected) && l->src.reactor)
		reactor_fd_expect(&l->src);
	go_on_replaying(l);
}

static void lane_ready(struct reactor_fd *src, uint32_t events)
{
	struct fs_lane *l = container_of(src, struct fs_lane, src);

	if (l->fs->exited)
		session_ended(l); /* another lane saw it: the descriptor stays readable */
	l->turning = true;        /* handlers may end ops: that is looked at below */
	receive_batch(l, events == 0);
	l->turning = false;
	fs_lane_turn(l);
}

/* ---- parked operations ---- */

static void run_parked(struct fs_lane *l)
{
	bool no_buf = false;

	list_for_each_safe (node, next, &l->parked) {
		struct fs_op *op = container_of(node, struct fs_op, link);

		/* What is void needs none, and must not keep the lane's own from the others. */
		if (no_buf && op->want_buf && !op->buf && !fs_op_is_void(op))
			continue;
		switch (fs_op_try(op)) {
		case FS_OP_WENT:
			break;
		case FS_OP_NO_BUF:
			no_buf = true;
			break;
		case FS_OP_NO_CALL:
			return;
		}
	}
}

/* ---- the end ---- */

static void lane_idle(struct fs_lane *l)
{
	fs_lane_set_state(l, FS_LANE_IDLE);
	if (l->rxbuf)
		fs_asked_buf_put(l, l->rxbuf);
	l->rxbuf = NULL;
	tell(l, FS_LANE_ENDED);
}

/* The first file that is still open, as if the kernel had released it. False: none. */
static bool close_one(struct fs_lane *l)
{
	struct fs_op *op;
	struct fs_file *f = fs_file_take_any(l->fs);

	if (!f)
		return false;
	op = fs_op_new(l);
	assert(op); /* all are free */
	op->file = fs_file_get(f);
	op->inode = fs_inode_ref(l->fs, f->inode);
	op->cred = f->cred;
	fs_part_file_left(op->lane->fs, op);
	return true;
}

/* This lane has nothing in work any more; when that is true of all, left-over files are closed. */
static void drained(struct fs_lane *l)
{
	struct fs *fs = l->fs;

	if (!l->drained) {
		l->drained = true;
		mutex_lock(&fs->lanes_lock);
		l->last = ++fs->lanes_drained == fs->lanes_cnt;
		mutex_unlock(&fs->lanes_lock);
	}
	if (l->last && close_one(l))
		return;
	lane_idle(l);
}

static void quiet_poll(struct reactor_timer *t)
{
	fs_lane_turn(container_of(t, struct fs_lane, idle_timer));
}

static void go_on_stopping(struct fs_lane *l)
{
	if (l->state == FS_LANE_QUIET) {
		if (!fs_metalane_is_over(l))
			return; /* who reads last kicks it */
		if (!l->fs->exited && fs_notify_busy(l->fs)) {
			reactor_timer_in(l->reactor, &l->idle_timer, QUIET_POLL_NS);
			return;
		}
		fs_lane_set_state(l, FS_LANE_DRAINS);
		fs_lane_stop_reading(l);
		l->stalled = false;
		fs_metalane_no_more(l);
	}
	if (l->state == FS_LANE_DRAINS && l->ops_free == l->ops_cnt &&
		fs_part_lane_drained(l->fs, l))
		drained(l);
}

void fs_lane_turn(struct fs_lane *l)
{
	/* Operations that end in here come back to this function: once is enough. */
	if (l->turning) {
		l->again = true;
		return;
	}
	l->turning = true;
	do {
		l->again = false;
		run_parked(l);
		fs_metalane_turn(l);
		fs_part_lane_turn(l->fs, l);
		go_on_stopping(l);
	} while (l->again);
	l->turning = false;
	go_on_replaying(l);
	if ((l->state != FS_LANE_RUNS && l->state != FS_LANE_QUIET) || l == l->fs->metalane)
		return;
	if (!may_read(l)) {
		if (!l->fs->exited)
			stall(l);
	} else if (l->stalled) {
		l->stalled = false;
		if (fs_lane_start_reading(l) != 0)
			log_err("lane cannot read /dev/fuse again");
	}
}

void fs_lane_unblocked(struct fs_lane *l)
{
	fs_lane_turn(l);
	fs_part_lane_unblocked(l->fs, l);
}

int fs_lane_start(struct fs_lane *l)
{
	int err = l == l->fs->metalane ? 0 : fs_lane_start_reading(l);

	if (err)
		return err;
	fs_lane_set_state(l, FS_LANE_RUNS);
	fs_part_lane_started(l->fs, l);
	fs_lane_kick(l);
	return 0;
}

void fs_lane_stop(struct fs_lane *l)
{
	if (l->state != FS_LANE_NEW && l->state != FS_LANE_RUNS && l->state != FS_LANE_PAUSED)
		return;
	fs_notify_quiesce(l->fs);
	fs_part_lane_stop(l->fs, l);
	fs_lane_set_state(l, FS_LANE_QUIET);
	reactor_timer_in(l->reactor, &l->idle_timer, 0); /* no report from in here */
}

/* ---- made and taken apart ---- */

/* A lane and what its parts have of it, in one piece of memory. */
struct whole {
	struct fs_lane lane; /* first */
	max_align_t parts[]; /* what fs_part.lane_made is given */
};

static void lane_join(struct fs *fs, struct fs_lane *l)
{
	size_t data_size = rpcrdma_data_size(l->xprt);

	mutex_lock(&fs->lanes_lock);
	list_push_back(&fs->lanes, &l->link);
	fs->lanes_cnt++;
	if (fs->data_size == 0 || data_size < fs->data_size)
		fs->data_size = data_size;
	mutex_unlock(&fs->lanes_lock);
}

struct fs_lane *fs_lane_new(struct fs *fs, struct reactor *r, struct nfs4_session *sess,
	unsigned int ops, fs_lane_report *report, void *ctx, struct stats *stats)
{
	struct whole *w = calloc(1, sizeof(*w) + fs_part_lane_size(fs));
	struct fs_lane *l = w ? &w->lane : NULL;

	if (!l)
		return NULL;
	fs_part_lane_made(fs, l, w->parts);
	l->fs = fs;
	l->reactor = r;
	l->sess = sess;
	l->xprt = nfs4_session_xprt(sess);
	l->stats = stats;
	l->half_bufs = rpcrdma_buf_free_count(l->xprt) / 2;
	l->report = report;
	l->report_ctx = ctx;
	list_init(&l->ops);
	list_init(&l->free_ops);
	list_init(&l->parked);
	list_init(&l->link);
	reactor_timer_init(&l->idle_timer, quiet_poll);
	fs_interrupt_init(l);
	l->kick = calloc(1, sizeof(*l->kick));
	if (!l->kick || !fs_metalane_lane_init(l) || !fs_op_pool_add(l, ops > 0 ? ops : 1) ||
		!fs_part_lane_init(l->fs, l)) {
		fs_metalane_lane_fini(l);
		fs_op_pool_fini(l);
		free(l->kick);
		free(l);
		errno = ENOMEM;
		return NULL;
	}
	l->kick->lane = l;
	l->kick->msg.run = kick_run;
	lane_join(fs, l);
	return l;
}

void fs_lane_free(struct fs_lane *l)
{
	if (!l)
		return;
	mutex_lock(&l->fs->lanes_lock);
	list_del(&l->link);
	mutex_unlock(&l->fs->lanes_lock);
	fs_lane_stop_reading(l);
	reactor_timer_cancel(l->reactor, &l->idle_timer);
	fs_interrupt_fini(l);
	fs_metalane_lane_fini(l);
	if (l->rxbuf)
		fs_asked_buf_put(l, l->rxbuf);
	fs_part_lane_fini(l->fs, l);
	/* A kick on its way frees itself: the reactor runs what is in its mailbox before it goes.
	 */
	l->kick->lane = NULL;
	if (!l->kick->posted)
		free(l->kick);
	if (fs_current() == l)
		fs_current_set(NULL, NULL);
	fs_op_pool_fini(l);
	free(l);
}
