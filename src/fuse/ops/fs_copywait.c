/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A COPY that the server goes on with by itself: the operation waits without a
 * call.
 *
 *   CB_OFFLOAD                 what it says is done
 *   OFFLOAD_STATUS             asked from time to time; the server knows nothing of it any more,
 *                              or it is another one: nobody knows what it did
 *   program killed, unmounted  OFFLOAD_CANCEL
 *
 * What it did not do for certain is copied again, synchronously.
 */
#include "fs_copy.h"
#include "fs_facts.h"
#include "fs_op.h"
#include "fs_part.h"
#include "fs_unstable.h"

#include <errno.h>

/* How often a waiting operation looks around, and after how many of these it asks. */
#define TICK_NS  NSEC_PER_SEC
#define POLL_MAX 15u
/* After a CB_OFFLOAD that did not come others are not waited for. */
#define NO_WAIT_NS (60 * NSEC_PER_SEC)

static void look_again(struct fs_copy *c)
{
	reactor_timer_in(c->op->lane->reactor, &c->tick, TICK_NS);
}

/* It does not any more. */
static void wait_over(struct fs_op *op)
{
	reactor_timer_cancel(op->lane->reactor, &fs_copy_of(op)->tick);
	op->lane->copywait->cnt--;
	/* Before a call is waited for: who has the last one may wait at the gate. */
	fs_rewrite_leave(op);
}

/* What it did is not known for certain. */
static void by_hand(struct fs_op *op)
{
	wait_over(op);
	fs_copy_of(op)->by_hand = true;
	fs_copy_next(op);
}

static void result_known(struct fs_op *op)
{
	struct fs_copy *c = fs_copy_of(op);
	const struct nfs4_offload_result *res = &c->off.res;

	/* WIRE: more than asked. An error comes once more, with what came before it. */
	if (res->status != NFS4_OK || res->copied == 0 || res->copied > c->asked) {
		by_hand(op);
		return;
	}
	wait_over(op);
	fs_copy_did(op, res->copied, res->committed, &res->verf);
}

static void offload_done(struct nfs4_offload *off)
{
	struct fs_copy *c = container_of(off, struct fs_copy, off);

	c->told = true;
	if (!c->busy)
		result_known(c->op);
}

static void result_lost(struct fs_op *op)
{
	struct fs_copy *c = fs_copy_of(op);
	bool over = nfs4_offload_is_over(&c->off);

	if (!nfs4_offload_end(&c->off)) /* it came just now: offload_done() */
		return;
	if (!over && !op->abandoned)
		op->lane->copywait->no_wait_until = fs_op_now(op) + NO_WAIT_NS;
	by_hand(op);
}

/* The call about it is over; true: it was told meanwhile. */
static bool call_over(struct fs_op *op)
{
	struct fs_copy *c = fs_copy_of(op);

	fs_op_put_call(op);
	c->busy = false;
	if (c->told)
		result_known(op);
	return c->told;
}

/* The session is dead. */
static void ask_failed(struct fs_op *op, int err)
{
	struct fs_copy *c = fs_copy_of(op);

	c->err = err;
	if (!call_over(op) && nfs4_offload_end(&c->off)) {
		wait_over(op);
		fs_copy_finish(op, err);
	}
}

static void ask(struct fs_op *op, void (*start)(struct fs_op *op))
{
	fs_copy_of(op)->busy = true;
	op->failed = ask_failed;
	fs_op_call(op, start);
}

static void cancel_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	/* However it was answered: it is stopped, or was not there any more. */
	if (!call_over(op))
		result_lost(op);
}

static void cancel_start(struct fs_op *op)
{
	op->call->u.offload = (struct nfs4_op_offload){.fh = &op->fh, .id = fs_copy_of(op)->off.id};
	op->call->done = cancel_done;
	nfs4_copy_cancel(op->call);
}

static bool is_unknown(enum nfs4_status status)
{
	return status == NFS4ERR_BAD_STATEID || status == NFS4ERR_STALE_STATEID ||
	       status == NFS4ERR_OLD_STATEID || status == NFS4ERR_EXPIRED;
}

static void poll_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	bool gone = call->err ? is_unknown(call->status) : call->u.offload.complete;
	bool failed = call->err && !gone;
	struct fs_copy *c = fs_copy_of(op);

	if (call_over(op))
		return;
	if (failed) {
		/* It cannot be asked, and may go on. */
		ask(op, cancel_start);
	} else if (gone && c->gone) {
		result_lost(op);
	} else {
		c->due = gone ? 1 : c->due * 2 < POLL_MAX ? c->due * 2 : POLL_MAX;
		c->gone = gone;
		c->ticks = 0;
		look_again(c);
	}
}

static void poll_start(struct fs_op *op)
{
	if (fs_copy_of(op)->told) {
		call_over(op);
		return;
	}
	op->call->u.offload = (struct nfs4_op_offload){.fh = &op->fh, .id = fs_copy_of(op)->off.id};
	op->call->done = poll_done;
	nfs4_copy_status(op->call);
}

static void tick(struct reactor_timer *t)
{
	struct fs_copy *c = container_of(t, struct fs_copy, tick);
	struct fs_op *op = c->op;

	if (c->told || c->busy)
		return;
	if (nfs4_offload_is_over(&c->off)) {
		result_lost(op);
		return;
	}
	fs_copy_yield(op);
	if (op->abandoned || fs_lane_is_ending(op->lane))
		ask(op, cancel_start);
	else if (++c->ticks >= c->due)
		ask(op, poll_start);
	else
		look_again(c);
}

void fs_copywait_begin(struct fs_op *op)
{
	struct fs_copy *c = fs_copy_of(op);

	c->asked = op->call->u.copy.count;
	c->torn = c->attr_stale = true;
	c->busy = c->told = c->gone = false;
	c->ticks = 0;
	c->due = 1;
	op->lane->copywait->cnt++;
	nfs4_offload_begin(&c->off, op->call, offload_done);
	fs_op_put_call(op);
	look_again(c);
}

bool fs_copywait_may(const struct fs_op *op, uint64_t count)
{
	const struct fs_lane *l = op->lane;

	return !fs_copy_of(op)->by_hand && fs_op_now(op) >= l->copywait->no_wait_until &&
	       count > 2ull * fs_facts(l->fs, op->inode)->rsize &&
	       l->copywait->cnt < l->ops_cnt / 4 && nfs4_offload_has_back(l->sess);
}

void fs_copywait_init(struct fs_op *op)
{
	reactor_timer_init(&fs_copy_of(op)->tick, tick);
}

void fs_copywait_fini(struct fs_op *op)
{
	reactor_timer_cancel(op->lane->reactor, &fs_copy_of(op)->tick);
}

static void lane_made(struct fs_lane *l, void *mem)
{
	l->copywait = mem;
}

const struct fs_part fs_copywait_part = {
	.lane_size = sizeof(struct fs_copywait_lane),
	.lane_made = lane_made,
};
