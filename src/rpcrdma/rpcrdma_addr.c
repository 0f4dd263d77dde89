/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of the server's addresses (addrs.h) the connection is to: transports of one mount share
 * them, and are never connected to two.
 */
#include "rpcrdma_int.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

static void print_addr(char *out, size_t size, const struct sockaddr *sa, socklen_t len)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo(sa, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, size, "(address family %d)", sa->sa_family);
	else
		snprintf(out, size, sa->sa_family == AF_INET6 ? "[%.50s]:%.8s" : "%.50s:%.8s", host,
			port);
}

static socklen_t addr_len(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void rpcrdma_addr_set(struct rpcrdma *x, const struct sockaddr *src, const struct sockaddr *dst)
{
	x->has_src = src != NULL;
	if (src && src != (const struct sockaddr *)&x->src)
		memcpy(&x->src, src, addr_len(src));
	memcpy(&x->dst, dst, addr_len(dst));
	print_addr(x->peer, sizeof(x->peer), dst, addr_len(dst));
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
	const struct sockaddr *src = x->has_src ? (const struct sockaddr *)&x->src : NULL;
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
	rpcrdma_addr_set(x, src, (const struct sockaddr *)&addr);
	log_info("%s: no connection: trying %s", from, x->peer);
}
