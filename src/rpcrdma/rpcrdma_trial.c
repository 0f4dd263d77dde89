/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device may promise type 2B windows in its capabilities and not have them: a
 * driver without binds, firmware. Each call that binds one would then cost a
 * connection, for ever. So the first connection of a device binds a window to a
 * few bytes that no call uses, and takes it back, before it counts as up. A
 * device on which that fails is used without windows.
 *
 * Two posts, each outside a batch of completions: only so an error of the post
 * itself is heard, and the second must not overtake the first.
 */
#include "rpcrdma_int.h"

#include <assert.h>
#include <errno.h>

#define TRIAL_LEN    8u
#define TRIAL_LOSSES 3u /* connections in a row that end with the trial on its way */

#define TO(name) (1u << RPCRDMA_T_##name)

/* From each state to which; another device is another trial, from any state. */
static const unsigned int legal[] = {
	[RPCRDMA_T_DUE] = TO(DUE) | TO(BINDING) | TO(FAILED),
	[RPCRDMA_T_BINDING] = TO(DUE) | TO(BOUND) | TO(FAILED),
	[RPCRDMA_T_BOUND] = TO(DUE) | TO(INVALIDATING) | TO(FAILED),
	[RPCRDMA_T_INVALIDATING] = TO(DUE) | TO(PASSED) | TO(FAILED),
	[RPCRDMA_T_PASSED] = TO(DUE),
	[RPCRDMA_T_FAILED] = TO(DUE),
};

/* The only place that changes x->trial. */
static void set_state(struct rpcrdma *x, enum rpcrdma_trial to)
{
	assert(legal[x->trial] & 1u << to);
	x->trial = to;
}

static bool is_on_its_way(const struct rpcrdma *x)
{
	return x->trial == RPCRDMA_T_BINDING || x->trial == RPCRDMA_T_BOUND ||
	       x->trial == RPCRDMA_T_INVALIDATING;
}

/* err: of the post or the completion; -ENOTCONN says nothing about windows. */
static void fail(struct rpcrdma *x, int err)
{
	if (err != -ENOTCONN) {
		set_state(x, RPCRDMA_T_FAILED);
		rpcrdma_setup_no_windows(x);
	}
	rpcrdma_conn_drop(x, err, "memory windows do not work");
}

static void trial_fire(struct reactor_timer *t)
{
	struct rpcrdma *x = container_of(t, struct rpcrdma, trial_timer);
	int err;

	if (x->state != RPCRDMA_C_CONNECTING)
		return;
	if (x->trial != RPCRDMA_T_BOUND) {
		fail(x, -ETIMEDOUT);
		return;
	}
	set_state(x, RPCRDMA_T_INVALIDATING);
	reactor_timer_in(x->reactor, t, x->conf.connect_timeout_ns);
	err = fab_mw_invalidate(x->ep, &x->trial_win->mw, 1, RPCRDMA_TRIAL_COOKIE);
	if (err)
		fail(x, err);
}

void rpcrdma_trial_init(struct rpcrdma *x)
{
	reactor_timer_init(&x->trial_timer, trial_fire);
}

bool rpcrdma_trial_start(struct rpcrdma *x)
{
	const struct rpcrdma_buf *buf = &x->bufs[0];
	struct fab_bind bind = {.mr = buf->priv->src,
		.addr = buf->data + x->conf.data_size, /* the page of slack */
		.len = TRIAL_LEN,
		.access = FAB_REMOTE_READ};
	int err;

	if (x->memreg != RPCRDMA_MEMREG_MW || x->trial == RPCRDMA_T_PASSED)
		return false;
	x->trial_win = rpcrdma_win_get(x, NULL);
	bind.mw = x->trial_win->mw;
	set_state(x, RPCRDMA_T_BINDING);
	reactor_timer_in(x->reactor, &x->trial_timer, x->conf.connect_timeout_ns);
	err = fab_mw_bind(x->ep, &bind, RPCRDMA_TRIAL_COOKIE);
	if (err)
		fail(x, err);
	return true;
}

void rpcrdma_trial_step(struct rpcrdma *x, enum fab_status status)
{
	/* what was flushed was not tried: the loss of the connection follows */
	if (x->state != RPCRDMA_C_CONNECTING || status == FAB_FLUSHED)
		return;
	if (status != FAB_OK) {
		fail(x, -EIO);
		return;
	}
	if (x->trial == RPCRDMA_T_BINDING) {
		set_state(x, RPCRDMA_T_BOUND);
		reactor_timer_in(x->reactor, &x->trial_timer, 0);
		return;
	}
	set_state(x, RPCRDMA_T_PASSED);
	reactor_timer_cancel(x->reactor, &x->trial_timer);
	rpcrdma_win_put(x, x->trial_win);
	rpcrdma_conn_up(x);
}

void rpcrdma_trial_drained(struct rpcrdma *x)
{
	reactor_timer_cancel(x->reactor, &x->trial_timer);
	if (!is_on_its_way(x))
		return;
	/* An adapter that dies of it tells no more than that the connection is gone. */
	set_state(x, RPCRDMA_T_DUE);
	if (x->stopping || ++x->trial_losses < TRIAL_LOSSES)
		return;
	set_state(x, RPCRDMA_T_FAILED);
	rpcrdma_setup_no_windows(x);
}

void rpcrdma_trial_new_device(struct rpcrdma *x)
{
	set_state(x, RPCRDMA_T_DUE);
	x->trial_losses = 0;
}
