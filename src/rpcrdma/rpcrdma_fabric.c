/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric that carries the messages: a device, or the one that needs none. Where the user leaves
 * it to us, an attempt that cannot be made with the one is made with the other:
 *
 *   device -> none   no device leads to the server, and none ever did
 *   none -> device   the port is taken: by an adapter that is there by now, or by the kernel's
 *                    RoCE, which came while we had no socket
 */
#include "rpcrdma_int.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "log.h"

int rpcrdma_fabric_use(struct rpcrdma *x, enum fab_kind kind, const struct fab_ep_ops *ops)
{
	const struct fab_conf conf = {.kind = kind,
		.resolve_timeout_ns = x->conf.resolve_timeout_ns,
		.connect_timeout_ns = x->conf.connect_timeout_ns,
		.ack_timeout = x->conf.ack_timeout,
		.retry_count = x->conf.retry_count,
		.tos = x->conf.tos,
		.stats = x->stats,
		.capture = x->conf.capture};
	struct fab_ep *ep;

	errno = 0;
	ep = fab_ep_new(x->reactor, &conf, ops, x);
	if (!ep)
		return errno ? -errno : -ENOMEM;
	fab_ep_free(x->ep);
	rpcrdma_mem_forget(x);
	x->ep = ep;
	x->fab.kind = kind;
	return 0;
}

static int resolve(struct rpcrdma *x)
{
	int err = fab_ep_resolve(x->ep, rpcrdma_addr_src(x), (const struct sockaddr *)&x->dst);

	if (err)
		snprintf(x->detail, sizeof(x->detail), "%s", fab_ep_why(x->ep));
	return err;
}

static bool wants_other(const struct rpcrdma *x, enum fab_step step, int err)
{
	if (x->conf.fabric != RPCRDMA_FABRIC_AUTO || x->fab.both)
		return false;
	if (x->fab.kind == FAB_SOFT)
		return err == -EADDRINUSE && step == FAB_STEP_ADDR;
	return (err == -ENODEV || err == -ELIBACC) && !x->fab.device;
}

bool rpcrdma_fabric_other(
	struct rpcrdma *x, enum fab_step step, int *err, const struct fab_ep_ops *ops)
{
	static _Atomic bool told; /* the lanes of a mount are alike */
	bool is_soft = x->fab.kind == FAB_SOFT;

	if (!wants_other(x, step, *err))
		return false;
	snprintf(x->detail, sizeof(x->detail), "%s", fab_ep_why(x->ep));
	if (rpcrdma_fabric_use(x, is_soft ? FAB_VERBS : FAB_SOFT, ops) != 0)
		return false;
	x->fab.both = true;
	if (is_soft)
		log_warn_limited("%s: %s: an RDMA device is looked for, in place of RoCEv2 in this "
				 "process",
			x->peer, x->detail[0] ? x->detail : "UDP port 4791 is taken");
	else
		log_msg(atomic_exchange(&told, true) ? LOG_LVL_DEBUG : LOG_LVL_INFO,
			"%s: %s: RoCEv2 is spoken by this process", x->peer,
			x->detail[0] ? x->detail : "no RDMA device leads to the server");
	x->detail[0] = '\0';
	*err = resolve(x);
	return *err == 0;
}

int rpcrdma_fabric_resolve(struct rpcrdma *x, const struct fab_ep_ops *ops)
{
	int err;

	x->fab.both = false;
	err = resolve(x);
	return err && !rpcrdma_fabric_other(x, FAB_STEP_ADDR, &err, ops) ? err : 0;
}

void rpcrdma_fabric_up(struct rpcrdma *x)
{
	x->fab.device |= x->fab.kind == FAB_VERBS;
}
