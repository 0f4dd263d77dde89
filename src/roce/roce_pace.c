/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast the answers of Reads go out. Nobody acknowledges them, so there is no window: they go as
 * fast as the socket takes them, until the peer says that packets met congestion (CNP), or asks for
 * some again, which is where no switch marks packets. Then there
 * is a rate, as in adapters (DCQCN: Zhu and others, "Congestion Control for Large-Scale RDMA
 * Deployments", SIGCOMM 2015): a CNP halves it, it is soon nearly what it was, then grows slowly,
 * then faster, until it is no bound any more. It is of packets in a tick.
 */
#include "roce_int.h"

#define TICK_NS NSEC_PER_MSEC /* more CNPs in one are of the same congestion */
#define LEAST   8u            /* a peer that waits for an answer has a part of it in time */
#define LOSSY   64u           /* the least for losses, which may be no congestion */
#define STEPS   5u            /* of each kind: back to what it was; slowly; the rest is fast */
#define SLOWLY  4u
#define MOST    65536u

static uint32_t max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void grow(struct roce_pace *p)
{
	if (++p->grown > STEPS)
		p->aim += p->grown > 2 * STEPS ? max(p->aim / 8, SLOWLY) : SLOWLY;
	p->limit = (p->limit + p->aim + 1) / 2;
	if (p->limit >= MOST)
		p->limit = 0;
}

static void pass(struct roce_pace *p, uint64_t now_ns)
{
	uint64_t tick = now_ns / TICK_NS, passed = tick - p->tick;

	if (passed == 0)
		return;
	/* A CNP may come a little later than what it is about. */
	p->before = passed <= 32 ? max(p->sent, p->before / 2) >> (passed - 1) : 0;
	p->sent = 0;
	p->tick = tick;
	for (; p->limit != 0 && passed > 0; passed--)
		grow(p);
}

static void halve(struct roce_pace *p, uint64_t now_ns, uint32_t least)
{
	pass(p, now_ns);
	if (p->limit != 0 && (p->grown == 0 || p->limit < least))
		return;
	p->aim = max(p->limit != 0 ? p->limit : max(p->sent, p->before), least);
	p->limit = max(p->aim / 2, least);
	p->grown = 0;
}

void roce_pace_slower(struct roce_pace *p, uint64_t now_ns)
{
	halve(p, now_ns, LEAST);
}

void roce_pace_lost(struct roce_pace *p, uint64_t now_ns)
{
	halve(p, now_ns, LOSSY);
}

uint32_t roce_pace_room(struct roce_pace *p, uint64_t now_ns)
{
	pass(p, now_ns);
	if (p->limit == 0)
		return UINT32_MAX;
	return p->limit > p->sent ? p->limit - p->sent : 0;
}

void roce_pace_sent(struct roce_pace *p, uint32_t packets)
{
	p->sent += packets;
}

void roce_pace_back(struct roce_pace *p, uint32_t packets)
{
	p->sent -= packets < p->sent ? packets : p->sent;
}

uint64_t roce_pace_wait_ns(const struct roce_pace *p, uint64_t now_ns)
{
	return (p->tick + 1) * TICK_NS - now_ns;
}
