/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of the server's addresses (addrs.h) the connection is to: transports of one mount share
 * them, and are never connected to two.
 */
#include "rpcrdma_int.h"

#include <netinet/in.h>
#include <string.h>

#include "addrs.h"
#include "log.h"

static socklen_t addr_len(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void rpcrdma_addr_set(struct rpcrdma *x, const struct sockaddr *src, const struct sockaddr *dst)
{
	if (!src)
		x->src.ss_family = AF_UNSPEC;
	else if (src != (const struct sockaddr *)&x->src)
		memcpy(&x->src, src, addr_len(src));
	memcpy(&x->dst, dst, addr_len(dst));
	addrs_print(x->peer, sizeof(x->peer), dst);
}

const struct sockaddr *rpcrdma_addr_src(const struct rpcrdma *x)
{
	return x->src.ss_family != AF_UNSPEC ? (const struct sockaddr *)&x->src : NULL;
}

void rpcrdma_addr_failed(struct rpcrdma *x)
{
	if (x->conf.addrs)
		addrs_failed(x->conf.addrs, x->turn);
}

bool rpcrdma_addr_up(struct rpcrdma *x)
{
	if (!x->conf.addrs)
		return true;
	x->addr_used = addrs_up(x->conf.addrs, x->turn);
	return x->addr_used;
}

void rpcrdma_addr_down(struct rpcrdma *x)
{
	if (!x->addr_used)
		return;
	x->addr_used = false;
	addrs_down(x->conf.addrs, x->good);
	if (!x->good) /* it was of no use */
		rpcrdma_addr_failed(x);
}

void rpcrdma_addr_next(struct rpcrdma *x)
{
	char from[sizeof(x->peer)];
	struct sockaddr_storage addr;
	uint64_t turn;

	if (!x->conf.addrs)
		return;
	turn = addrs_now(x->conf.addrs, &addr);
	if (turn == x->turn)
		return;
	memcpy(from, x->peer, sizeof(from));
	x->turn = turn;
	rpcrdma_addr_set(x, rpcrdma_addr_src(x), (const struct sockaddr *)&addr);
	log_info("%s: no connection: trying %s", from, x->peer);
}
