/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair: what the client posts, and the server's end of the connection. */
#include "fab_sim_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static int queue_check(struct fab_ep *ep, unsigned int slots)
{
	if (ep->state != SIM_UP)
		return -ENOTCONN;
	return ep->sq_used + slots > ep->qp.send_wr ? -ENOMEM : 0;
}

/* When this work request's completion comes; in order; never while the peer is a black hole. */
static uint64_t completion_ns(struct fab_ep *ep, uint64_t at_ns)
{
	ep->last_sent_ns =
		fab_sim_conf()->blackhole ? REACTOR_NEVER : max_u64(ep->last_sent_ns, at_ns);
	return ep->last_sent_ns;
}

static struct sim_wr *wr_new(struct fab_ep *ep, uint64_t cookie, unsigned int slots)
{
	struct sim_wr *wr = calloc(1, sizeof(*wr));

	wr->cookie = cookie;
	wr->slots = slots;
	ep->sq_used += slots;
	list_push_back(&ep->sq, &wr->link);
	return wr;
}

int fab_post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	const struct fab_sim_conf *conf = fab_sim_conf();
	uint64_t now = reactor_now(ep->reactor), done_ns;
	int err = sim_call(ep);
	uint32_t len = 0, off = 0;
	struct sim_wr *wr;

	if (!err)
		err = queue_check(ep, 1 + bind_cnt);
	if (err)
		return err;
	if (!sge_cnt || sge_cnt > ep->qp.max_send_sge || sge_cnt > 8) {
		fab_sim_fail("fab_post_send() with %u buffers", sge_cnt);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < sge_cnt; i++) {
		if (!sim_mr_check(ep, sges[i].mr, sges[i].addr, sges[i].len, "fab_post_send()"))
			return -EINVAL;
		len += sges[i].len;
	}
	for (unsigned int i = 0; i < bind_cnt; i++) {
		err = sim_bind_check(ep, &binds[i]);
		if (err)
			return err;
	}
	for (unsigned int i = 0; i < bind_cnt; i++) {
		sim_bind(&binds[i]);
		SIM_COUNT(binds);
	}
	wr = wr_new(ep, cookie, 1 + bind_cnt);
	memcpy(wr->sges, sges, sge_cnt * sizeof(*sges));
	wr->sge_cnt = sge_cnt;
	wr->copy = malloc(len + 1);
	for (unsigned int i = 0; i < sge_cnt; i++) {
		memcpy(wr->copy + off, sges[i].addr, sges[i].len);
		off += sges[i].len;
	}
	SIM_COUNT(sends);
	if (ep->conn->ops->posted)
		ep->conn->ops->posted(ep->conn->ctx, wr->copy, len);
	if (!conf->blackhole) {
		struct sim_ev *ev;

		ep->last_to_server_ns = max_u64(ep->last_to_server_ns, now + conf->wire_ns);
		ev = sim_ev_add(ep, SIM_EV_TO_SERVER, ep->last_to_server_ns);
		ev->wr = wr;
		ev->len = len;
		ev->data = malloc(len + 1);
		memcpy(ev->data, wr->copy, len);
	}
	done_ns = completion_ns(ep, now + 2 * conf->wire_ns + conf->sent_late_ns);
	if (done_ns != REACTOR_NEVER)
		sim_ev_add(ep, SIM_EV_SENT, done_ns)->wr = wr;
	return 0;
}

int fab_mw_bind(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie)
{
	uint64_t now = reactor_now(ep->reactor), done_ns;
	int err = sim_call(ep);
	struct sim_wr *wr;

	if (!err)
		err = queue_check(ep, 1);
	if (!err)
		err = sim_bind_check(ep, bind);
	if (err)
		return err;
	sim_bind(bind);
	bind->mw->trial = true;
	wr = wr_new(ep, cookie, 1);
	done_ns = completion_ns(ep, now + NSEC_PER_USEC / 2);
	if (done_ns != REACTOR_NEVER)
		sim_ev_add(ep, SIM_EV_SENT, done_ns)->wr = wr;
	return 0;
}

/* Acknowledgements are the device's. */
void fab_answered(struct fab_ep *ep, uint64_t cookie)
{
}

int fab_post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	int err = sim_call(ep);
	struct sim_recv *rq;
	struct list *node;

	if (err)
		return err;
	if (!ep->setup || ep->state == SIM_DRAINING || ep->state == SIM_IDLE)
		return -ENOTCONN;
	if (ep->rq_used >= ep->qp.recv_wr)
		return -ENOMEM;
	if (!sim_mr_check(ep, mr, addr, len, "fab_post_recv()"))
		return -EINVAL;
	rq = calloc(1, sizeof(*rq));
	*rq = (struct sim_recv){.addr = addr, .len = len, .mr = mr, .cookie = cookie};
	list_push_back(&ep->rq, &rq->link);
	ep->rq_used++;
	/* One Send that waited for it arrives now. */
	node = ep->conn ? list_pop_front(&ep->conn->waiting) : NULL;
	if (node) {
		struct sim_ev *ev = container_of(node, struct sim_ev, link);

		ev->at_ns = reactor_now(ep->reactor);
		ev->seq = ep->ev_seq++;
		sim_ev_insert(ep, ev);
	}
	return 0;
}

int fab_mw_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	uint64_t now = reactor_now(ep->reactor), done_ns;
	int err = sim_call(ep);
	struct sim_wr *wr;

	if (!err)
		err = cnt > 0 && cnt <= FAB_MAX_WINS ? queue_check(ep, cnt) : -EINVAL;
	if (err)
		return err;
	for (unsigned int i = 0; i < cnt; i++) {
		if (mws[i]->ep == ep && mws[i]->bound && !mws[i]->invalidating)
			continue;
		fab_sim_fail("fab_mw_invalidate() of a window that is not bound: crashes rxe");
		return -EINVAL;
	}
	wr = wr_new(ep, cookie, cnt);
	wr->inv_cnt = cnt;
	for (unsigned int i = 0; i < cnt; i++) {
		wr->inv[i] = mws[i];
		mws[i]->invalidating = true;
		if (!mws[i]->trial)
			SIM_COUNT(local_invals);
		mws[i]->trial = false;
	}
	done_ns = completion_ns(ep, now + NSEC_PER_USEC / 2);
	if (done_ns != REACTOR_NEVER)
		sim_ev_add(ep, SIM_EV_INVALIDATED, done_ns)->wr = wr;
	return 0;
}

/* ---- the server's side ---- */

void fab_sim_conn_init(struct fab_sim_conn *conn, void *conn_ctx, const void *priv, size_t priv_len,
	uint32_t recv_size, unsigned int recvs)
{
	conn->ctx = conn_ctx;
	conn->priv_len = priv_len;
	memcpy(conn->priv, priv, priv_len);
	conn->recv_size = recv_size;
	conn->recvs = recvs;
}

struct reactor *fab_sim_conn_reactor(struct fab_sim_conn *conn)
{
	return conn->ep->reactor;
}

void fab_sim_conn_post_recvs(struct fab_sim_conn *conn, unsigned int cnt)
{
	conn->recvs += cnt;
}

unsigned int fab_sim_conn_recvs(const struct fab_sim_conn *conn)
{
	return conn->recvs;
}

void fab_sim_conn_send(struct fab_sim_conn *conn, const void *msg, uint32_t len, uint32_t inv_rkey)
{
	struct fab_ep *ep = conn->ep;
	const struct fab_sim_conf *conf = fab_sim_conf();
	struct sim_ev *ev;

	if (ep->state != SIM_UP || conf->blackhole)
		return;
	ep->last_to_client_ns =
		max_u64(ep->last_to_client_ns, reactor_now(ep->reactor) + conf->wire_ns);
	ev = sim_ev_add(ep, SIM_EV_TO_CLIENT, ep->last_to_client_ns);
	ev->inv_rkey = inv_rkey;
	ev->len = len;
	ev->data = malloc(len + 1);
	memcpy(ev->data, msg, len);
}

void fab_sim_conn_set_hostile(struct fab_sim_conn *conn, bool hostile)
{
	conn->hostile = hostile;
}

void fab_sim_conn_close(struct fab_sim_conn *conn, int err)
{
	sim_ep_break(conn->ep, err);
}

void fab_sim_conn_close_later(struct fab_sim_conn *conn, int err)
{
	struct fab_ep *ep = conn->ep;
	uint64_t at_ns = max_u64(ep->last_to_client_ns, reactor_now(ep->reactor));

	sim_ev_add(ep, SIM_EV_CUT, at_ns)->err = err;
}
