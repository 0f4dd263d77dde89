/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_int.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addrs.h"
#include "log.h"

#define TO(name) (1u << EP_##name)

/* From each state to which. */
static const unsigned int legal[] = {
	[EP_IDLE] = TO(RESOLVING),
	[EP_RESOLVING] = TO(RESOLVED) | TO(DRAINING),
	[EP_RESOLVED] = TO(CONNECTING) | TO(DRAINING),
	[EP_CONNECTING] = TO(UP) | TO(DRAINING),
	[EP_UP] = TO(DRAINING),
	[EP_DRAINING] = TO(IDLE),
};

void verbs_ep_set_state(struct verbs_ep *ep, enum ep_state to)
{
	assert(legal[ep->state] & 1u << to);
	ep->state = to;
}

static void finish(struct verbs_ep *ep);

static void on_timer(struct reactor_timer *t)
{
	struct verbs_ep *ep = container_of(t, struct verbs_ep, timer);

	if (ep->state == EP_DRAINING)
		finish(ep);
	else if (ep->state == EP_CONNECTING)
		verbs_ep_fail(ep, ep->step, -ETIMEDOUT);
	else if (ep->state == EP_IDLE && ep->dev.gone)
		verbs_dev_close(ep);
}

struct verbs_ep *verbs_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	struct verbs_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->r = r;
	ep->conf = *conf;
	ep->ops = ops;
	ep->ctx = ctx;
	reactor_timer_init(&ep->timer, on_timer);
	list_init(&ep->dev.mrs);
	list_init(&ep->mws);
	return ep;
}

void verbs_ep_free(struct verbs_ep *ep)
{
	assert(ep->state == EP_IDLE);
	reactor_timer_cancel(ep->r, &ep->timer);
	verbs_dev_close(ep);
	verbs_mem_free_mrs(ep);
	verbs_cm_close(ep);
	free(ep);
}

static void copy_addr(struct sockaddr_storage *out, const struct sockaddr *sa)
{
	memset(out, 0, sizeof(*out));
	memcpy(out, sa,
		sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
}

bool verbs_ep_path(const struct verbs_ep *ep, struct fab_path *ret)
{
	if (ep->state != EP_UP)
		return false;
	*ret = ep->path;
	copy_addr(&ret->local, rdma_get_local_addr(ep->id));
	copy_addr(&ret->remote, rdma_get_peer_addr(ep->id));
	return true;
}

void verbs_ep_set_name(struct verbs_ep *ep, const struct sockaddr *dst)
{
	const char *dev = ep->dev.verbs ? ep->dev.caps.dev_name : "";
	char addr[80];

	addrs_print(addr, sizeof(addr), dst);
	snprintf(ep->name, sizeof(ep->name), "%.45s%s%s", dev, *dev ? " " : "", addr);
}

void verbs_ep_emit(struct verbs_ep *ep, const struct fab_event *ev)
{
	ep->ops->event(ep->ctx, ev);
}

/* ---- the end of a connection or of an attempt ---- */

/*
 * Everything that was posted is made to come back. on_timer() finishes: as
 * soon as the last one came (verbs_ep_drain_check), or when that takes too long.
 * Never from here: the caller may be deep in a callback.
 */
static void drain(struct verbs_ep *ep, const struct fab_event *final)
{
	verbs_ep_set_state(ep, EP_DRAINING);
	ep->final = *final;
	reactor_timer_in(ep->r, &ep->timer, VERBS_DRAIN_NS);
	verbs_qp_to_err(ep);
	verbs_cm_disconnect(ep);
	verbs_ep_drain_check(ep);
}

void verbs_ep_drain_check(struct verbs_ep *ep)
{
	if (ep->state == EP_DRAINING && !ep->wr_used)
		reactor_timer_in(ep->r, &ep->timer, 0);
}

static void finish(struct verbs_ep *ep)
{
	struct fab_event final;

	while (ep->wr_used && verbs_cq_poll(ep))
		;
	if (ep->wr_used)
		log_warn("%s: %u work requests were not flushed", ep->name, ep->wr_used);
	/* ORDER: rxe waits 50 s for the windows of a queue pair that is destroyed. */
	verbs_mem_free_mws(ep);
	verbs_qp_destroy(ep);
	verbs_cq_flush_rest(ep);
	verbs_cq_destroy(ep);
	verbs_cm_destroy_id(ep);
	if (ep->dev.gone)
		verbs_dev_close(ep);
	reactor_timer_cancel(ep->r, &ep->timer);
	assert(!ep->wr_used && !ep->qp && list_empty(&ep->mws)); /* I1 */
	verbs_ep_set_state(ep, EP_IDLE);
	final = ep->final;
	verbs_ep_emit(ep, &final); /* may free the endpoint */
}

void verbs_ep_fail(struct verbs_ep *ep, enum fab_step step, int err)
{
	struct fab_event final = {.type = FAB_EV_FAILED, .err = err, .step = step};

	if (ep->state != EP_RESOLVING && ep->state != EP_CONNECTING)
		return;
	/* The address leads to no device any more: let go of the one it led to. */
	if (err == -ENODEV)
		ep->dev.gone = true;
	drain(ep, &final);
}

/*
 * The CM and the completion queue do not wait for each other: a reply that came before the end
 * may not have been looked at. It is believed only before DOWN. No more than can be complete by
 * now, so that a peer that goes on sending does not keep us.
 */
static void deliver_arrived(struct verbs_ep *ep)
{
	unsigned int batches = ep->wr_cnt / VERBS_POLL_BATCH + 1;

	if (ep->delivering) /* from there the rest of the batch follows */
		return;
	ep->delivering = true;
	while (ep->state == EP_UP && batches-- > 0 && verbs_cq_poll(ep))
		;
	ep->delivering = false;
}

void verbs_ep_lost(struct verbs_ep *ep, int err)
{
	struct fab_event down = {.type = FAB_EV_DOWN, .err = err};
	struct fab_event final = {.type = FAB_EV_DRAINED};

	deliver_arrived(ep);
	if (ep->state == EP_UP) {
		drain(ep, &final);
		verbs_ep_emit(ep, &down);
	} else {
		verbs_ep_fail(ep, ep->step, err ? err : -ECONNRESET);
	}
}

void verbs_ep_disconnect(struct verbs_ep *ep)
{
	struct fab_event final = {.type = FAB_EV_DRAINED};

	if (ep->state == EP_IDLE)
		return;
	if (ep->state == EP_DRAINING)
		ep->final = final;
	else
		drain(ep, &final);
}
