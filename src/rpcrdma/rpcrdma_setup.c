/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each connection needs before it connects: memory strategy, queue pair,
 * windows, receives (before the peer can send, and so before any call is sent
 * again).
 */
#include "rpcrdma_int.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "log.h"

/* Once for all lanes; again only after windows were in use. */
static _Atomic bool told_static;

/* `auto` became what a user who knew would perhaps not have chosen. */
static void tell_static(const struct rpcrdma *x, const char *why, const char *detail)
{
	if (atomic_exchange(&told_static, true))
		return;
	log_warn("%s: memreg=auto: %s on %s%s%s: static: the server can read and write all data "
		 "buffers at any time while it is connected",
		x->peer, why, fab_ep_caps(x->ep)->dev_name, *detail ? ": " : "", detail);
}

static int refuse_mw(const struct rpcrdma *x, const char *why)
{
	log_err("%s: memreg=mw: device %s %s; use memreg=static", x->peer,
		fab_ep_caps(x->ep)->dev_name, why);
	return -EOPNOTSUPP;
}

void rpcrdma_setup_no_windows(struct rpcrdma *x)
{
	if (x->conf.memreg == RPCRDMA_MEMREG_MW) {
		(void)refuse_mw(x, "does not bind and invalidate windows as it promises");
		x->reached = false;
		return;
	}
	x->memreg = RPCRDMA_MEMREG_AUTO; /* to be decided again, now */
	x->retry_now = true;
}

static int choose_memreg(struct rpcrdma *x, bool new_device)
{
	bool mw2b = fab_ep_caps(x->ep)->mw2b && x->trial != RPCRDMA_T_FAILED;

	if (x->conf.memreg == RPCRDMA_MEMREG_MW && !mw2b)
		return refuse_mw(x, "has no type 2B memory windows that work");
	/* Decided, perhaps by falling back; a shortage may be over. */
	if (x->memreg != RPCRDMA_MEMREG_AUTO && !new_device && !x->windows_short)
		return 0;
	rpcrdma_mem_dereg_data(x); /* of an attempt that failed, for the other strategy */
	x->windows_short = false;
	if (x->conf.memreg != RPCRDMA_MEMREG_STATIC && mw2b) {
		x->memreg = RPCRDMA_MEMREG_MW;
		return 0;
	}
	x->memreg = RPCRDMA_MEMREG_STATIC;
	if (x->conf.memreg == RPCRDMA_MEMREG_AUTO)
		tell_static(x,
			fab_ep_caps(x->ep)->mw2b ? "memory windows that do not work"
						 : "no type 2B memory windows",
			"");
	return 0;
}

static int make_qp(struct rpcrdma *x)
{
	const struct fab_caps *caps = fab_ep_caps(x->ep);
	uint32_t calls = x->conf.credits + 1;
	struct fab_qp_conf qp = {.send_wr = calls + RPCRDMA_REVERSE_SENDS,
		.recv_wr = x->rep_cnt,
		.max_send_sge = RPCRDMA_MAX_SGE};
	int err;

	if (x->memreg == RPCRDMA_MEMREG_MW)
		qp.send_wr += 2 * rpcrdma_win_most(x); /* a bind and an invalidation each */
	if (qp.send_wr > caps->max_wr)
		qp.send_wr = caps->max_wr; /* Sends wait for a full queue */
	if (qp.recv_wr > caps->max_wr) {
		log_err("%s: device %s has receive queues of %u, %u credits need %u: ask for fewer",
			x->peer, caps->dev_name, caps->max_wr, x->conf.credits, qp.recv_wr);
		return -ENOSPC;
	}
	if (qp.max_send_sge > caps->max_sge)
		qp.max_send_sge = caps->max_sge;
	if (qp.max_send_sge != x->limits.max_sge)
		x->limits_seq++; /* calls that were planned for more are planned again */
	x->limits.max_sge = qp.max_send_sge;
	err = fab_ep_setup(x->ep, &qp);
	if (err)
		log_err("%s: cannot make a queue pair on %s: %s", x->peer, caps->dev_name,
			rpcrdma_mem_strerror(-err));
	return err;
}

static int make_windows(struct rpcrdma *x)
{
	int err;

	if (x->memreg != RPCRDMA_MEMREG_MW)
		return 0;
	err = rpcrdma_win_alloc(x);
	if (!err)
		return 0;
	rpcrdma_win_forget(x); /* those that were made go with the queue pair */
	if (x->conf.memreg != RPCRDMA_MEMREG_AUTO) {
		log_err("%s: memreg=mw: cannot allocate memory windows on %s: %s", x->peer,
			fab_ep_caps(x->ep)->dev_name, rpcrdma_mem_strerror(-err));
		return err;
	}
	tell_static(x, "no memory windows to be had", rpcrdma_mem_strerror(-err));
	rpcrdma_mem_dereg_data(x);
	x->memreg = RPCRDMA_MEMREG_STATIC;
	/* Anything but that the device has none passes: a limit of memory or of a cgroup. */
	x->windows_short = err != -EOPNOTSUPP && err != -ENOSYS;
	return rpcrdma_mem_reg(x);
}

int rpcrdma_setup(struct rpcrdma *x, bool new_device)
{
	int err;

	if (new_device) {
		rpcrdma_mem_forget(x);
		rpcrdma_trial_new_device(x);
	}
	err = choose_memreg(x, new_device);
	if (!err)
		err = rpcrdma_mem_reg(x);
	if (!err)
		err = make_qp(x);
	if (!err)
		err = make_windows(x);
	for (unsigned int i = 0; i < x->rep_cnt && !err; i++) {
		err = rpcrdma_mem_post_rep(x, &x->reps[i]);
		if (err)
			log_err("%s: cannot post receives: %s", x->peer,
				rpcrdma_mem_strerror(-err));
	}
	return err;
}

void rpcrdma_setup_works(const struct rpcrdma *x)
{
	if (x->memreg == RPCRDMA_MEMREG_MW)
		told_static = false;
}
