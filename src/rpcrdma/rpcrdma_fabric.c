/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric that carries the messages: a device, or the one that needs none. */
#include "rpcrdma_int.h"

#include <errno.h>
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
		.stats = x->stats};
	struct fab_ep *ep;

	errno = 0;
	ep = fab_ep_new(x->reactor, &conf, ops, x);
	if (!ep)
		return errno ? -errno : -ENOMEM;
	fab_ep_free(x->ep);
	x->ep = ep;
	x->conf.fabric = kind == FAB_SOFT ? RPCRDMA_FABRIC_SOFT : x->conf.fabric;
	return 0;
}

bool rpcrdma_fabric_other(struct rpcrdma *x, int err, const struct fab_ep_ops *ops)
{
	if ((err != -ENODEV && err != -ELIBACC) || x->conf.fabric != RPCRDMA_FABRIC_AUTO ||
		x->ever_up || rpcrdma_fabric_use(x, FAB_SOFT, ops) != 0)
		return false;
	log_info("%s: %s: RoCEv2 is spoken by this process", x->peer,
		x->detail[0] ? x->detail : "no RDMA device leads to the server");
	x->detail[0] = '\0';
	return true;
}

int rpcrdma_fabric_resolve(struct rpcrdma *x, const struct fab_ep_ops *ops)
{
	const struct sockaddr *src = x->has_src ? (const struct sockaddr *)&x->src : NULL;
	int err = fab_ep_resolve(x->ep, src, (const struct sockaddr *)&x->dst);

	if (err)
		snprintf(x->detail, sizeof(x->detail), "%s", fab_ep_why(x->ep));
	return rpcrdma_fabric_other(x, err, ops) ? rpcrdma_fabric_resolve(x, ops) : err;
}
