/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_int.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addrs.h"
#include "log.h"
#include "roce_addr.h"

/* After so many full reads whatever a socket has room for was read: packets need 768 bytes each. */
#define PARTED_READS 32u

#define TO(name) (1u << ROCE_##name)

/* From each state to which. */
static const unsigned int legal[] = {
	[ROCE_IDLE] = TO(RESOLVING),
	[ROCE_RESOLVING] = TO(RESOLVED) | TO(DRAINING),
	[ROCE_RESOLVED] = TO(CONNECTING) | TO(DRAINING),
	[ROCE_CONNECTING] = TO(UP) | TO(DRAINING),
	[ROCE_UP] = TO(DRAINING),
	[ROCE_DRAINING] = TO(IDLE),
};

static void set_state(struct roce_ep *ep, enum roce_state to)
{
	assert(legal[ep->state] & 1u << to);
	ep->state = to;
}

static void emit(struct roce_ep *ep, const struct fab_event *ev)
{
	ep->ops->event(ep->ctx, ev);
}

/* ---- callbacks of completions ---- */

void roce_ep_deliver_begin(struct roce_ep *ep)
{
	ep->delivering = true;
}

void roce_ep_deliver_end(struct roce_ep *ep)
{
	if (ep->ops->batch_done)
		ep->ops->batch_done(ep->ctx);
	ep->delivering = false;
	if (ep->sock)
		roce_tx_go(ep);
}

/* Calls that ended at once. */
static void tell_done(struct roce_ep *ep, enum fab_status status)
{
	for (unsigned int i = 0; i < ep->done_cnt; i++) {
		const struct roce_done *d = &ep->done[i];

		if (d->is_inv)
			ep->ops->invalidated(ep->ctx, d->cookie, status);
		else
			ep->ops->sent(ep->ctx, d->cookie, status);
	}
	ep->done_cnt = 0;
}

static void on_done_timer(struct reactor_timer *t)
{
	struct roce_ep *ep = container_of(t, struct roce_ep, done_timer);

	if (ep->state != ROCE_UP)
		return;
	roce_ep_deliver_begin(ep);
	tell_done(ep, FAB_OK);
	roce_ep_deliver_end(ep);
}

/* ---- the end of a connection or of an attempt ---- */

/* Never from here: the caller may be deep in a callback. */
static void drain(struct roce_ep *ep, const struct fab_event *final, bool tell)
{
	bool connected = ep->peer_qpn != 0;

	/* Before memory changes that it is from. */
	if (ep->sock)
		(void)roce_tx_flush(ep);
	set_state(ep, ROCE_DRAINING);
	ep->final = *final;
	roce_conn_stop(ep);
	if (connected)
		roce_conn_part(ep, tell);
	reactor_timer_in(ep->r, &ep->timer, 0);
}

static void finish(struct roce_ep *ep)
{
	struct fab_event final;

	roce_ep_deliver_begin(ep);
	tell_done(ep, FAB_FLUSHED);
	if (ep->req.ring)
		roce_send_flush(ep);
	if (ep->resp.ring)
		roce_serve_flush(ep);
	roce_ep_deliver_end(ep);
	roce_key_free_mws(ep);
	assert(ep->req.una == ep->req.end && ep->resp.first == ep->resp.end); /* I13 */
	roce_tx_end(ep);
	roce_send_free(ep);
	roce_serve_free(ep);
	free(ep->done);
	ep->done = NULL;
	ep->qpn = ep->peer_qpn = 0;
	if (ep->sock)
		roce_sock_part(ep);
	reactor_timer_cancel(ep->r, &ep->done_timer);
	set_state(ep, ROCE_IDLE);
	/* Only now: whoever was told that something is flushed may have parted. */
	final = ep->final;
	emit(ep, &final); /* may free the endpoint */
}

void roce_ep_fail(struct roce_ep *ep, enum fab_step step, int err)
{
	struct fab_event final = {.type = FAB_EV_FAILED, .err = err, .step = step};

	if (ep->state == ROCE_RESOLVING || ep->state == ROCE_CONNECTING)
		drain(ep, &final, false);
}

void roce_ep_lost(struct roce_ep *ep, int err)
{
	struct fab_event down = {.type = FAB_EV_DOWN, .err = err};
	struct fab_event final = {.type = FAB_EV_DRAINED};

	if (ep->state != ROCE_UP)
		return;
	log_debug("%s: lost: %s", ep->name, strerror(-err));
	drain(ep, &final, err != 0);
	emit(ep, &down);
}

void roce_ep_path_changed(struct roce_ep *ep)
{
	if (ep->state == ROCE_UP) /* maybe within a call of the owner's */
		reactor_timer_in(ep->r, &ep->timer, 0);
}

void roce_ep_parted(struct roce_ep *ep)
{
	if (ep->parted == 0)
		ep->parted = PARTED_READS;
	reactor_timer_in(ep->r, &ep->timer, 0);
}

void roce_ep_disconnect(struct fab_ep *fep)
{
	struct roce_ep *ep = roce_of(fep);
	struct fab_event final = {.type = FAB_EV_DRAINED};

	if (ep->state == ROCE_IDLE)
		return;
	if (ep->state == ROCE_DRAINING)
		ep->final = final;
	else
		drain(ep, &final, true);
}

/* ---- resolving ---- */

static void set_name(struct roce_ep *ep, const struct sockaddr *dst)
{
	char addr[80];

	addrs_print(addr, sizeof(addr), dst);
	snprintf(ep->name, sizeof(ep->name), "soft %s", addr);
}

/* Another address of ours needs another socket. */
static int use_socket(struct roce_ep *ep, const struct sockaddr_storage *local)
{
	if (ep->sock && roce_addr_is_same((const struct sockaddr *)&ep->local,
				(const struct sockaddr *)local))
		return 0;
	roce_sock_close(ep);
	roce_mtu_forget(&ep->passes); /* it is another path */
	ep->local = *local;
	roce_addr_put(ep->out.src, (const struct sockaddr *)local);
	return roce_sock_open(ep);
}

/* Another peer knows nothing of the connection before. */
static void use_remote(struct roce_ep *ep, const struct sockaddr_storage *remote)
{
	if (!roce_addr_is_same(
		    (const struct sockaddr *)&ep->remote, (const struct sockaddr *)remote)) {
		ep->conn.dreq_tries = 0;
		roce_mtu_forget(&ep->passes);
	}
	ep->remote = ep->to = *remote;
	if (remote->ss_family == AF_INET6)
		((struct sockaddr_in6 *)&ep->to)->sin6_port = htons(ROCE_PORT);
	else
		((struct sockaddr_in *)&ep->to)->sin_port = htons(ROCE_PORT);
}

/*
 * The kernel counts the memory that a packet lies in: for one of 1 KiB or 4 KiB twice as much as it
 * has in it. Packets without room are lost, and come again after a while.
 */
static void set_room(struct roce_ep *ep)
{
	static _Atomic bool told;
	unsigned int room = roce_sock_room(ep);

	ep->caps.max_inbound = ep->inbound_most = room * 2ull / 5;
	if (room < ROCE_ROOM && !atomic_exchange(&told, true))
		log_info("%s: the kernel keeps %u KiB of packets for a socket at most, so the "
			 "server sends %u KiB at a time: net.core.rmem_max=%u (sysctl) makes it "
			 "faster",
			ep->name, room / 2 / 1024, (unsigned int)(ep->caps.max_inbound / 1024),
			ROCE_ROOM / 2);
}

int roce_ep_resolve(struct fab_ep *fep, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct roce_ep *ep = roce_of(fep);
	bool is_v6 = dst->sa_family == AF_INET6;
	struct sockaddr_storage local, remote = {0};
	unsigned int ip_mtu;
	int err;

	if (ep->state != ROCE_IDLE)
		return -EBUSY;
	ep->why[0] = '\0';
	set_name(ep, dst);
	err = roce_sock_route(src, dst, &local, &ip_mtu);
	if (err)
		return err;
	memcpy(&remote, dst, is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	use_remote(ep, &remote); /* first: sockets have a filter for it */
	err = use_socket(ep, &local);
	if (err == -EADDRINUSE)
		log_warn_limited(
			"%s: UDP port 4791 is taken, by the kernel's own RoCE (rdma_rxe) for "
			"instance",
			ep->name);
	if (err)
		return err;
	set_room(ep);
	ep->out.is_v6 = ep->in.is_v6 = is_v6;
	roce_addr_put(ep->out.dst, dst);
	memcpy(ep->in.src, ep->out.dst, 16);
	memcpy(ep->in.dst, ep->out.src, 16);
	ep->mtu = roce_mtu_of(&ep->passes, ip_mtu);
	ep->tx.trains = (struct roce_trains){.psn_cnt = 0}; /* it may be another path */
	ep->step = FAB_STEP_ADDR;
	set_state(ep, ROCE_RESOLVING);
	reactor_timer_in(ep->r, &ep->timer, 0);
	return 0;
}

static void resolved(struct roce_ep *ep)
{
	struct fab_event ev = {.type = FAB_EV_RESOLVED, .new_device = !ep->resolved_before};
	char adapter[64];

	if (roce_sys_adapter("/sys", (const struct sockaddr *)&ep->local,
		    (const struct sockaddr *)&ep->remote, adapter)) {
		snprintf(ep->why, sizeof(ep->why),
			"the adapter takes RoCE's packets (UDP port 4791) for its RDMA device %s: "
			"that is needed, fabric=verbs and access to /dev/infiniband; or its RoCE "
			"is to be turned off",
			adapter);
		roce_ep_fail(ep, FAB_STEP_ADDR, -EADDRINUSE);
		return;
	}

	ep->resolved_before = true;
	set_state(ep, ROCE_RESOLVED);
	emit(ep, &ev);
}

/* ---- connecting ---- */

int roce_ep_setup(struct fab_ep *fep, const struct fab_qp_conf *conf)
{
	struct roce_ep *ep = roce_of(fep);
	int err;

	if (ep->state != ROCE_RESOLVED || ep->qpn != 0 || conf->send_wr == 0 ||
		conf->recv_wr == 0 || conf->send_wr > ep->caps.max_wr ||
		conf->recv_wr > ep->caps.max_wr)
		return -EINVAL;
	ep->qp_conf = *conf;
	err = roce_sock_number(ep, &ep->qpn);
	if (err) {
		ep->qpn = 0;
		return err;
	}
	ep->done = calloc(conf->send_wr, sizeof(*ep->done));
	err = ep->done ? roce_send_setup(ep) : -ENOMEM;
	return err ? err : roce_serve_setup(ep);
}

int roce_ep_connect(struct fab_ep *fep, const void *priv, size_t priv_len)
{
	struct roce_ep *ep = roce_of(fep);

	if (ep->state != ROCE_RESOLVED || !ep->resp.ring || priv_len > sizeof(ep->priv))
		return -EINVAL;
	if (priv_len > 0)
		memcpy(ep->priv, priv, priv_len);
	ep->priv_len = priv_len;
	ep->step = FAB_STEP_CONNECT;
	set_state(ep, ROCE_CONNECTING);
	reactor_timer_in(ep->r, &ep->timer, ep->conf.connect_timeout_ns);
	roce_conn_start(ep);
	return 0;
}

void roce_ep_up(struct roce_ep *ep, const struct roce_mad *rep)
{
	uint8_t ack_timeout = ep->conf.ack_timeout ? ep->conf.ack_timeout : ROCE_ACK_TIMEOUT;
	struct fab_event ev = {
		.type = FAB_EV_ESTABLISHED, .priv = rep->priv, .priv_len = rep->priv_len};

	reactor_timer_cancel(ep->r, &ep->timer);
	ep->peer_qpn = rep->qpn;
	ep->path.local_qpn = ep->qpn;
	ep->path.remote_qpn = rep->qpn;
	ep->path.local_psn = rep->psn;
	ep->path.mtu = ep->mtu;
	ep->path.ack_ns = fab_ack_ns(ack_timeout);
	ep->path.ack_tries = ep->conf.retry_count;
	ep->parted = 0;
	roce_mtu_begin(&ep->passes);
	roce_send_begin(ep, rep->psn);
	roce_tx_begin(ep);
	set_state(ep, ROCE_UP);
	emit(ep, &ev);
}

/* Others of the lane have their turn in between, and a flood is no reason to stay. */
static void on_parted(struct roce_ep *ep)
{
	if (roce_sock_read(ep) && --ep->parted > 0)
		reactor_timer_in(ep->r, &ep->timer, 0);
	else
		roce_ep_lost(ep, 0);
}

static void on_timer(struct reactor_timer *t)
{
	struct roce_ep *ep = container_of(t, struct roce_ep, timer);

	if (ep->state == ROCE_RESOLVING)
		resolved(ep);
	else if (ep->state == ROCE_CONNECTING)
		roce_conn_timed_out(ep);
	else if (ep->state == ROCE_UP && ep->parted > 0)
		on_parted(ep);
	else if (ep->state == ROCE_UP)
		roce_ep_lost(ep, -EMSGSIZE);
	else if (ep->state == ROCE_DRAINING)
		finish(ep);
}

/* ---- posts ---- */

int roce_ep_send(struct fab_ep *fep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	struct roce_ep *ep = roce_of(fep);
	const struct roce_requester *q = &ep->req;
	int err = 0;

	if (ep->state != ROCE_UP)
		return -ENOTCONN;
	if (sge_cnt == 0 || sge_cnt > ep->qp_conf.max_send_sge || sge_cnt > ROCE_SGES)
		return -EINVAL;
	if (q->end - q->una == q->room)
		return -ENOMEM;
	for (unsigned int i = 0; i < bind_cnt && !err; i++) {
		err = roce_key_bind(ep, &binds[i]);
		for (unsigned int k = i; err && k > 0; k--)
			roce_key_unbind(ep, binds[k - 1].mw);
	}
	return err ? -EIO : roce_send_post(ep, sges, sge_cnt, cookie);
}

static int done(struct roce_ep *ep, uint64_t cookie, bool is_inv)
{
	if (ep->done_cnt == 0)
		reactor_timer_in(ep->r, &ep->done_timer, 0);
	ep->done[ep->done_cnt++] = (struct roce_done){.cookie = cookie, .is_inv = is_inv};
	return 0;
}

int roce_ep_bind(struct fab_ep *fep, const struct fab_bind *bind, uint64_t cookie)
{
	struct roce_ep *ep = roce_of(fep);

	if (ep->state != ROCE_UP)
		return -ENOTCONN;
	if (ep->done_cnt == ep->qp_conf.send_wr)
		return -ENOMEM;
	return roce_key_bind(ep, bind) ? -EIO : done(ep, cookie, false);
}

int roce_ep_invalidate(
	struct fab_ep *fep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	struct roce_ep *ep = roce_of(fep);

	if (ep->state != ROCE_UP)
		return -ENOTCONN;
	if (ep->done_cnt == ep->qp_conf.send_wr)
		return -ENOMEM;
	for (unsigned int i = 0; i < cnt; i++)
		roce_key_unbind(ep, mws[i]);
	return done(ep, cookie, true);
}

int roce_ep_recv(
	struct fab_ep *fep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	struct roce_ep *ep = roce_of(fep);

	if (!ep->resp.ring || ep->state == ROCE_DRAINING)
		return -ENOTCONN;
	return roce_serve_post(ep, addr, len, cookie);
}

/* ---- life ---- */

struct fab_ep *roce_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	struct roce_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->r = r;
	ep->conf = *conf;
	ep->stats = conf->stats;
	ep->ops = ops;
	ep->ctx = ctx;
	ep->caps = (struct fab_caps){.dev_name = "soft",
		.captures = true,
		.mw2b = true,
		.max_sge = ROCE_SGES,
		.max_wr = ROCE_MAX_WR,
		.max_mw = ROCE_MAX_MW,
		.max_rd = ROCE_READS,
		.max_mr_size = UINT64_MAX};
	list_init(&ep->mrs);
	list_init(&ep->mws);
	reactor_timer_init(&ep->timer, on_timer);
	reactor_timer_init(&ep->done_timer, on_done_timer);
	roce_conn_init(ep);
	return &ep->base;
}

void roce_ep_free(struct fab_ep *fep)
{
	struct roce_ep *ep = roce_of(fep);

	assert(ep->state == ROCE_IDLE);
	reactor_timer_cancel(ep->r, &ep->timer);
	roce_conn_free(ep);
	roce_sock_close(ep);
	roce_key_free(ep);
	roce_cap_free(ep);
	free(ep);
}

bool roce_ep_path(const struct fab_ep *fep, struct fab_path *ret)
{
	const struct roce_ep *ep = container_of(fep, const struct roce_ep, base);

	if (ep->state != ROCE_UP)
		return false;
	*ret = ep->path;
	ret->local = ep->local;
	ret->remote = ep->remote;
	return true;
}
