/* SPDX-License-Identifier: BSD-3-Clause */
#include "fab_sim_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the queue of things to come ---- */

static void arm(struct fab_ep *ep)
{
	if (list_empty(&ep->events))
		reactor_timer_cancel(ep->reactor, &ep->timer);
	else
		reactor_timer_set(ep->reactor, &ep->timer,
			list_first(&ep->events, struct sim_ev, link)->at_ns);
}

void sim_ev_insert(struct fab_ep *ep, struct sim_ev *ev)
{
	struct list *pos = ep->events.prev;

	while (pos != &ep->events && container_of(pos, struct sim_ev, link)->at_ns > ev->at_ns)
		pos = pos->prev;
	list_add_between(&ev->link, pos, pos->next);
	if (!ep->in_callback)
		arm(ep);
}

static _Atomic unsigned int undelivered;

unsigned int fab_sim_undelivered(void)
{
	return undelivered;
}

struct sim_ev *sim_ev_add(struct fab_ep *ep, enum sim_ev_kind kind, uint64_t at_ns)
{
	struct sim_ev *ev = calloc(1, sizeof(*ev));

	if (kind == SIM_EV_TO_CLIENT)
		undelivered++;
	ev->kind = kind;
	ev->at_ns = at_ns;
	ev->seq = ep->ev_seq++;
	sim_ev_insert(ep, ev);
	return ev;
}

static void ev_free(struct sim_ev *ev)
{
	if (ev->kind == SIM_EV_TO_CLIENT)
		undelivered--;
	free(ev->data);
	free(ev);
}

static struct fab_event *event_add(struct fab_ep *ep, enum fab_event_type type, uint64_t delay_ns)
{
	struct sim_ev *ev = sim_ev_add(ep, SIM_EV_EVENT, reactor_now(ep->reactor) + delay_ns);

	ev->event.type = type;
	return &ev->event;
}

/* Everything queued is off: what must follow is queued anew by the caller. */
static void drop_events(struct fab_ep *ep)
{
	struct list *node;

	while ((node = list_pop_front(&ep->events))) {
		struct sim_ev *ev = container_of(node, struct sim_ev, link);

		ev_free(ev);
	}
}

/* ---- work requests ---- */

/* The buffers of a Send are the device's until its completion. */
static void check_unchanged(const struct sim_wr *wr)
{
	const uint8_t *p = wr->copy;

	for (unsigned int i = 0; i < wr->sge_cnt; i++) {
		if (memcmp(wr->sges[i].addr, p, wr->sges[i].len) != 0) {
			fab_sim_fail("the buffer of a Send changed before it completed");
			return;
		}
		p += wr->sges[i].len;
	}
}

static void wr_complete(struct fab_ep *ep, struct sim_wr *wr, enum fab_status status)
{
	uint64_t cookie = wr->cookie;
	bool inv = wr->inv_cnt > 0;

	if (!inv)
		check_unchanged(wr);
	list_del(&wr->link);
	ep->sq_used -= wr->slots;
	free(wr->copy);
	free(wr);
	if (inv)
		ep->ops->invalidated(ep->ctx, cookie, status);
	else
		ep->ops->sent(ep->ctx, cookie, status);
}

static void queue_flushes(struct fab_ep *ep)
{
	uint64_t now = reactor_now(ep->reactor);
	struct list *node;

	list_for_each (pos, &ep->sq) {
		struct sim_wr *wr = container_of(pos, struct sim_wr, link);
		struct sim_ev *ev = sim_ev_add(
			ep, wr->inv_cnt ? SIM_EV_INVALIDATED : SIM_EV_SENT, now + NSEC_PER_USEC);

		ev->wr = wr;
		ev->status = FAB_FLUSHED;
	}
	while ((node = list_pop_front(&ep->rq))) {
		struct sim_recv *rq = container_of(node, struct sim_recv, link);
		struct sim_ev *ev = sim_ev_add(ep, SIM_EV_RECV_FLUSHED, now + NSEC_PER_USEC);

		ev->cookie = rq->cookie;
		ev->status = FAB_FLUSHED;
		free(rq);
	}
}

static void detach_conn(struct fab_ep *ep)
{
	struct fab_sim_conn *conn = ep->conn;
	struct list *node;

	if (!conn)
		return;
	while ((node = list_pop_front(&conn->waiting)))
		ev_free(container_of(node, struct sim_ev, link));
	sim_ev_add(ep, SIM_EV_CLOSED, reactor_now(ep->reactor));
}

/*
 * The queue pair is in the error state from here on. broken: the work request
 * that was the cause, NULL if none.
 */
static void start_drain(struct fab_ep *ep, bool tell_down, int err, struct sim_wr *broken)
{
	bool first = fab_sim_conf()->flush_first;

	drop_events(ep);
	ep->state = SIM_DRAINING;
	list_for_each (node, &ep->mws)
		sim_unbind(container_of(node, struct fab_mw, link));
	detach_conn(ep);
	if (tell_down && !first)
		event_add(ep, FAB_EV_DOWN, 0)->err = err;
	queue_flushes(ep);
	if (broken) {
		list_for_each (node, &ep->events) {
			struct sim_ev *ev = container_of(node, struct sim_ev, link);

			if (ev->wr == broken)
				ev->status = FAB_ERROR;
		}
	}
	if (tell_down && first)
		event_add(ep, FAB_EV_DOWN, NSEC_PER_USEC)->err = err;
	event_add(ep, FAB_EV_DRAINED, 2 * NSEC_PER_USEC);
	if (tell_down)
		SIM_COUNT(downs);
}

/* A failure before UP: the receives come back, then FAILED. */
static void start_fail(struct fab_ep *ep, enum fab_step step, int err, uint64_t delay_ns)
{
	struct sim_ev *ev;

	drop_events(ep);
	detach_conn(ep);
	ev = sim_ev_add(ep, SIM_EV_EVENT, reactor_now(ep->reactor) + delay_ns);
	ev->event.type = FAB_EV_FAILED;
	ev->event.err = err;
	ev->event.step = step;
}

void sim_ep_break(struct fab_ep *ep, int err)
{
	switch (ep->state) {
	case SIM_IDLE:
	case SIM_DRAINING:
		break;
	case SIM_RESOLVING:
		start_fail(ep, FAB_STEP_ADDR, err, 0);
		break;
	case SIM_RESOLVED:
		ep->doomed = true;
		break;
	case SIM_CONNECTING:
		start_fail(ep, FAB_STEP_CONNECT, err, 0);
		break;
	case SIM_UP:
		start_drain(ep, true, err, NULL);
		break;
	}
}

/* ---- what happens ---- */

static void to_client(struct fab_ep *ep, struct sim_ev *ev)
{
	struct fab_sim_conn *conn = ep->conn;
	struct sim_recv *rq;
	uint64_t cookie;

	if (list_empty(&ep->rq)) {
		if (fab_sim_conf()->rnr_waits) {
			list_push_back(&conn->waiting, &ev->link);
			return;
		}
		if (!conn->hostile)
			fab_sim_fail("the client has no receive posted");
		ev_free(ev);
		start_drain(ep, true, -ECONNRESET, NULL);
		return;
	}
	rq = list_first(&ep->rq, struct sim_recv, link);
	if (ev->len > rq->len) {
		if (!conn->hostile)
			fab_sim_fail("message of %u bytes for a receive of %u", ev->len, rq->len);
		ev_free(ev);
		start_drain(ep, true, -EMSGSIZE, NULL);
		return;
	}
	if (ev->inv_rkey) {
		struct fab_mw *mw = sim_find_window(ep, ev->inv_rkey);

		if (!mw) {
			if (!conn->hostile)
				fab_sim_fail("Send with Invalidate of key %#x: no bound window",
					ev->inv_rkey);
			ev_free(ev);
			start_drain(ep, true, -EACCES, NULL);
			return;
		}
		sim_unbind(mw);
		SIM_COUNT(remote_invals);
	}
	memcpy(rq->addr, ev->data, ev->len);
	if (conn->ops->delivered)
		conn->ops->delivered(conn->ctx, ev->data, ev->len);
	cookie = rq->cookie;
	list_del(&rq->link);
	free(rq);
	ep->rq_used--;
	SIM_COUNT(recvs);
	ep->ops->received(ep->ctx, cookie, ev->len, ev->inv_rkey, FAB_OK);
	ev_free(ev);
}

static void to_server(struct fab_ep *ep, struct sim_ev *ev)
{
	struct fab_sim_conn *conn = ep->conn;

	if (!conn->recvs) {
		fab_sim_fail("RNR: the server has no receive left for a Send (credit overrun)");
		start_drain(ep, true, -ECONNRESET, ev->wr);
		return;
	}
	if (ev->len > conn->recv_size) {
		fab_sim_fail("Send of %u bytes, the server receives %u", ev->len, conn->recv_size);
		start_drain(ep, true, -ECONNRESET, ev->wr);
		return;
	}
	conn->recvs--;
	conn->ops->received(conn->ctx, ev->data, ev->len);
}

static void accept_conn(struct fab_ep *ep)
{
	struct fab_sim_conn *conn;
	const struct fab_sim_srv_ops *ops;
	struct sim_ev *ev;
	void *ctx;
	int err = sim_take_refusal();

	if (!err && !sim_find_listener((struct sockaddr *)&ep->dst, &ops, &ctx))
		err = -ECONNREFUSED;
	if (err) {
		start_fail(ep, FAB_STEP_CONNECT, err, 0);
		return;
	}
	conn = calloc(1, sizeof(*conn));
	conn->ep = ep;
	conn->ops = ops;
	list_init(&conn->waiting);
	err = ops->accept(ctx, conn, ep->priv, ep->priv_len);
	if (err) {
		free(conn);
		start_fail(ep, FAB_STEP_CONNECT, err, 0);
		return;
	}
	ep->conn = conn;
	ev = sim_ev_add(
		ep, SIM_EV_EVENT, reactor_now(ep->reactor) + fab_sim_conf()->connect_ns / 2);
	ev->event.type = FAB_EV_ESTABLISHED;
	ev->len = (uint32_t)(conn->priv_len + fab_sim_conf()->pad_priv);
	ev->data = calloc(1, ev->len + 1);
	memcpy(ev->data, conn->priv, conn->priv_len);
}

static void run_event(struct fab_ep *ep, struct sim_ev *ev)
{
	struct fab_event event = ev->event;
	struct list *node;

	switch (event.type) {
	case FAB_EV_RESOLVED:
		ep->state = SIM_RESOLVED;
		event.new_device = ep->new_device;
		if (ep->new_device)
			sim_kill_mrs(ep);
		ep->new_device = false;
		ep->caps = fab_sim_conf()->caps;
		ep->have_caps = true;
		break;
	case FAB_EV_ESTABLISHED:
		ep->state = SIM_UP;
		event.priv = ev->data;
		event.priv_len = ev->len;
		SIM_COUNT(connects);
		break;
	case FAB_EV_FAILED:
	case FAB_EV_DRAINED:
		/* What was posted before a failed connect comes back first. */
		while ((node = list_pop_front(&ep->rq))) {
			struct sim_recv *rq = container_of(node, struct sim_recv, link);
			uint64_t cookie = rq->cookie;

			free(rq);
			ep->rq_used--;
			ep->ops->received(ep->ctx, cookie, 0, 0, FAB_FLUSHED);
		}
		sim_free_windows(ep);
		ep->setup = ep->doomed = false;
		ep->last_to_server_ns = ep->last_sent_ns = ep->last_to_client_ns = 0;
		if (ep->sq_used || ep->rq_used)
			fab_sim_fail("sim: %u sends, %u receives left", ep->sq_used, ep->rq_used);
		ep->state = SIM_IDLE;
		break;
	case FAB_EV_DOWN:
		break;
	}
	ep->ops->event(ep->ctx, &event);
}

/* True: a completion was delivered. */
static bool run_one(struct fab_ep *ep, struct sim_ev *ev)
{
	struct fab_sim_conn *conn;

	switch (ev->kind) {
	case SIM_EV_EVENT:
		run_event(ep, ev);
		break;
	case SIM_EV_ACCEPT:
		accept_conn(ep);
		break;
	case SIM_EV_TO_SERVER:
		to_server(ep, ev);
		break;
	case SIM_EV_SENT:
		wr_complete(ep, ev->wr, ev->status);
		ev_free(ev);
		return true;
	case SIM_EV_TO_CLIENT:
		to_client(ep, ev); /* keeps or frees ev */
		return true;
	case SIM_EV_RECV_FLUSHED:
		ep->rq_used--;
		ep->ops->received(ep->ctx, ev->cookie, 0, 0, FAB_FLUSHED);
		ev_free(ev);
		return true;
	case SIM_EV_INVALIDATED:
		for (unsigned int i = 0; ev->status == FAB_OK && i < ev->wr->inv_cnt; i++) {
			/* A hostile peer may have been faster. */
			sim_unbind(ev->wr->inv[i]);
			ev->wr->inv[i]->invalidating = false;
		}
		wr_complete(ep, ev->wr, ev->status);
		ev_free(ev);
		return true;
	case SIM_EV_CUT:
		sim_ep_break(ep, ev->err);
		break;
	case SIM_EV_CLOSED:
		conn = ep->conn;
		ep->conn = NULL;
		conn->ops->closed(conn->ctx);
		free(conn);
		break;
	}
	ev_free(ev);
	return false;
}

static void timer_fired(struct reactor_timer *t)
{
	struct fab_ep *ep = container_of(t, struct fab_ep, timer);
	uint64_t now = reactor_now(ep->reactor);
	uint64_t limit = ep->ev_seq;
	bool completed = false;

	ep->in_callback++;
	while (!list_empty(&ep->events)) {
		struct sim_ev *ev = list_first(&ep->events, struct sim_ev, link);

		if (ev->at_ns > now || ev->seq >= limit)
			break;
		list_del(&ev->link);
		completed |= run_one(ep, ev);
	}
	if (completed && !ep->freed && ep->ops->batch_done)
		ep->ops->batch_done(ep->ctx);
	ep->in_callback--;
	if (ep->freed)
		free(ep);
	else
		arm(ep);
}

/* ---- the contract's calls ---- */

struct fab_ep *fab_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	int err = sim_call(NULL);
	struct fab_ep *ep;

	if (err) {
		errno = -err;
		return NULL;
	}
	ep = calloc(1, sizeof(*ep));
	ep->reactor = r;
	ep->conf = *conf;
	ep->ops = ops;
	ep->ctx = ctx;
	list_init(&ep->events);
	list_init(&ep->sq);
	list_init(&ep->rq);
	list_init(&ep->mrs);
	list_init(&ep->mws);
	reactor_timer_init(&ep->timer, timer_fired);
	snprintf(ep->name, sizeof(ep->name), "sim0");
	sim_world_add(ep);
	sim_objects_add(1);
	return ep;
}

void fab_ep_free(struct fab_ep *ep)
{
	if (!ep)
		return;
	if (ep->state != SIM_IDLE)
		fab_sim_fail("fab_ep_free() in state %d", ep->state);
	drop_events(ep);
	reactor_timer_cancel(ep->reactor, &ep->timer);
	sim_world_del(ep);
	sim_free_windows(ep);
	sim_free_mrs(ep);
	sim_objects_add(-1);
	if (ep->in_callback)
		ep->freed = true;
	else
		free(ep);
}

static void name_ep(struct fab_ep *ep)
{
	char host[INET6_ADDRSTRLEN] = "?";
	unsigned int port = 0;

	if (ep->dst.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&ep->dst;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		port = ntohs(in->sin_port);
	} else if (ep->dst.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&ep->dst;

		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host));
		port = ntohs(in->sin6_port);
	}
	snprintf(ep->name, sizeof(ep->name), "sim0 %s:%u", host, port);
}

int fab_ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	const struct fab_sim_conf *conf = fab_sim_conf();
	int err;

	if (ep->state != SIM_IDLE) {
		fab_sim_fail("fab_ep_resolve() in state %d", ep->state);
		return -EINVAL;
	}
	err = sim_call(ep);
	if (err)
		return err;
	memset(&ep->dst, 0, sizeof(ep->dst));
	memcpy(&ep->dst, dst,
		dst->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	name_ep(ep);
	ep->state = SIM_RESOLVING;
	if (conf->resolve_err && conf->resolve_step == FAB_STEP_ADDR)
		start_fail(ep, FAB_STEP_ADDR, conf->resolve_err, conf->resolve_ns);
	else if (ep->conf.resolve_timeout_ns && conf->resolve_ns > ep->conf.resolve_timeout_ns)
		start_fail(ep, FAB_STEP_ADDR, -ETIMEDOUT, ep->conf.resolve_timeout_ns);
	else
		event_add(ep, FAB_EV_RESOLVED, conf->resolve_ns);
	return 0;
}

const struct fab_caps *fab_ep_caps(const struct fab_ep *ep)
{
	return &ep->caps;
}

int fab_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf)
{
	int err = sim_call(ep);

	if (err)
		return err;
	if (ep->state != SIM_RESOLVED || ep->setup) {
		fab_sim_fail("fab_ep_setup() in state %d", ep->state);
		return -EINVAL;
	}
	if (conf->send_wr > ep->caps.max_wr || conf->recv_wr > ep->caps.max_wr ||
		conf->max_send_sge > ep->caps.max_sge || !conf->send_wr || !conf->recv_wr) {
		fab_sim_fail("fab_ep_setup(): send_wr %u, recv_wr %u, sge %u", conf->send_wr,
			conf->recv_wr, conf->max_send_sge);
		return -EINVAL;
	}
	ep->qp = *conf;
	ep->setup = true;
	return 0;
}

int fab_ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len)
{
	const struct fab_sim_conf *conf = fab_sim_conf();
	int err = sim_call(ep);

	if (err)
		return err;
	if (ep->state != SIM_RESOLVED || !ep->setup) {
		fab_sim_fail("fab_ep_connect() in state %d", ep->state);
		return -EINVAL;
	}
	if (priv_len > 56) { /* what a CM REQ has left */
		fab_sim_fail("%zu bytes of private data", priv_len);
		return -EINVAL;
	}
	memcpy(ep->priv, priv, priv_len);
	ep->priv_len = priv_len;
	ep->state = SIM_CONNECTING;
	if (ep->doomed)
		start_fail(ep, FAB_STEP_CONNECT, -ECONNRESET, conf->connect_ns);
	else if (conf->resolve_err && conf->resolve_step != FAB_STEP_ADDR)
		start_fail(ep, conf->resolve_step, conf->resolve_err, conf->connect_ns);
	else if (conf->connect_silent ||
		 (ep->conf.connect_timeout_ns && conf->connect_ns > ep->conf.connect_timeout_ns))
		start_fail(ep, FAB_STEP_CONNECT, -ETIMEDOUT, ep->conf.connect_timeout_ns);
	else
		sim_ev_add(ep, SIM_EV_ACCEPT, reactor_now(ep->reactor) + conf->connect_ns / 2);
	return 0;
}

void fab_ep_disconnect(struct fab_ep *ep)
{
	switch (ep->state) {
	case SIM_IDLE:
	case SIM_DRAINING:
		return;
	case SIM_RESOLVING:
	case SIM_RESOLVED:
	case SIM_CONNECTING:
	case SIM_UP:
		start_drain(ep, false, 0, NULL);
		return;
	}
}

void fab_ep_set_busy(struct fab_ep *ep, unsigned int in_flight)
{
}

bool fab_ep_path(const struct fab_ep *ep, struct fab_path *ret)
{
	struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(40000)};

	if (ep->state != SIM_UP)
		return false;
	*ret = (struct fab_path){.remote = ep->dst,
		.local_qpn = 0x11,
		.remote_qpn = 0x12,
		.local_psn = 0x1000,
		.remote_psn = 0x2000,
		.mtu = 1024};
	local.sin_addr.s_addr = htonl(0x0a000002);
	memcpy(&ret->local, &local, sizeof(local));
	return true;
}

const char *fab_ep_name(const struct fab_ep *ep)
{
	return ep->name;
}

const char *fab_ep_why(const struct fab_ep *ep)
{
	return "";
}
