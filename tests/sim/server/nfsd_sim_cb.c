/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to the client, on the one slot that nfsd uses. A recall that is
 * answered with NFS4ERR_DELAY, or once with something else, is sent again
 * after 2 s; one without an answer when the backchannel is there again.
 */
#include "nfsd_sim_held.h"

#include <stdlib.h>

#define AGAIN_NS (2 * NSEC_PER_SEC)
#define SLOT_NS  (100 * NSEC_PER_USEC)

/* One that was sent. */
struct cb_out {
	struct list link;
	struct reactor_timer timer; /* to send it again */
	struct sconn *conn;
	uint32_t xid;
	bool answered;
	enum nfsd_sim_cb what;
	uint8_t other[12]; /* CB_RECALL: the delegation; it may be gone */
	uint8_t session[16];
	uint32_t seq;
};

/* ---- on its way ---- */

struct cb_msg {
	struct reactor_msg msg; /* first */
	struct nfsd_sim *sim;
	uint64_t conn_id;
	uint32_t len;
	uint8_t bytes[512];
};

static void send_cb(struct reactor_msg *msg)
{
	struct cb_msg *m = (struct cb_msg *)msg;

	pthread_mutex_lock(&m->sim->lock);
	list_for_each (node, &m->sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);

		if (conn->id == m->conn_id)
			fab_sim_conn_send(conn->fab, m->bytes, m->len, 0);
	}
	pthread_mutex_unlock(&m->sim->lock);
	free(m);
}

static void cb_free(struct cb_out *cb)
{
	reactor_timer_cancel(cb->conn->reactor, &cb->timer);
	list_del(&cb->link);
	free(cb);
}

void cbs_drop(struct sconn *conn)
{
	while (!list_empty(&conn->cbs))
		cb_free(list_first(&conn->cbs, struct cb_out, link));
}

static struct cb_out *cb_new(struct sconn *conn, uint32_t xid, const struct cb_args *a)
{
	struct cb_out *cb = calloc(1, sizeof(*cb));

	cb->conn = conn;
	cb->xid = xid;
	cb->what = a->what;
	if (a->deleg)
		memcpy(cb->other, a->deleg->other, 12);
	list_push_back(&conn->cbs, &cb->link);
	return cb;
}

static void post_cb(
	struct nfsd_sim *sim, struct sconn *conn, struct session *s, const struct cb_args *a)
{
	struct cb_msg *m = calloc(1, sizeof(*m));
	struct wr w = {m->bytes, 0, sizeof(m->bytes), false, false};
	uint32_t xid = sim->next_cb_xid++;
	struct cb_out *cb;

	m->msg.run = send_cb;
	m->sim = sim;
	m->conn_id = conn->id;
	cb_build(sim, &w, s, xid, a);
	m->len = (uint32_t)w.len;
	cb = cb_new(conn, xid, a);
	if (s) {
		memcpy(cb->session, s->id, 16);
		cb->seq = s->cb_seq;
	}
	sim->stats.recalls += a->what == NFSD_SIM_CB_RECALL;
	reactor_post(conn->reactor, &m->msg);
}

/* nfsd has one call at a time on the slot. */
static bool slot_is_busy(struct nfsd_sim *sim, const struct session *s, const struct deleg *but)
{
	list_for_each (node, &sim->delegs) {
		const struct deleg *d = container_of(node, struct deleg, link);

		if (d != but && d->cb_seq && !memcmp(d->cb_session, s->id, 16))
			return true;
	}
	return false;
}

static void again(struct reactor_timer *t);

static void cb_later(struct cb_out *cb, uint64_t ns)
{
	cb->answered = true;
	reactor_timer_init(&cb->timer, again);
	reactor_timer_in(cb->conn->reactor, &cb->timer, ns);
}

/* ---- to whom ---- */

/* A recall that waits for the slot; timers are set on the connection's thread. */
struct cb_wait {
	struct reactor_msg msg; /* first */
	struct nfsd_sim *sim;
	uint64_t conn_id;
	uint8_t other[12];
};

static void wait_begin(struct reactor_msg *msg)
{
	struct cb_wait *m = (struct cb_wait *)msg;

	pthread_mutex_lock(&m->sim->lock);
	list_for_each (node, &m->sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);
		struct cb_args a = {.what = NFSD_SIM_CB_RECALL};

		if (conn->id != m->conn_id)
			continue;
		a.deleg = deleg_find(m->sim, m->other);
		if (a.deleg)
			cb_later(cb_new(conn, 0, &a), SLOT_NS);
	}
	pthread_mutex_unlock(&m->sim->lock);
	free(m);
}

static void post_wait(struct nfsd_sim *sim, struct sconn *conn, const struct cb_args *a)
{
	struct cb_wait *m = calloc(1, sizeof(*m));

	m->msg.run = wait_begin;
	m->sim = sim;
	m->conn_id = conn->id;
	memcpy(m->other, a->deleg->other, 12);
	reactor_post(conn->reactor, &m->msg);
}

static struct session *back_session(struct nfsd_sim *sim, const struct sconn *conn)
{
	list_for_each (node, &sim->sessions) {
		struct session *s = container_of(node, struct session, link);

		if (conn->has_back && !memcmp(s->id, conn->back_session, 16))
			return s;
	}
	return NULL;
}

bool back_is_up(struct nfsd_sim *sim, const struct session *s)
{
	list_for_each (node, &sim->conns) {
		const struct sconn *conn = container_of(node, struct sconn, link);

		if (conn->has_back && !memcmp(conn->back_session, s->id, 16))
			return true;
	}
	return false;
}

unsigned int callback_to(
	struct nfsd_sim *sim, const struct client *cl, struct session *s, const struct cb_args *a)
{
	list_for_each (node, &sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);
		struct session *its = back_session(sim, conn);

		if (!its || its->client != cl || (s && its != s))
			continue;
		if (a->what == NFSD_SIM_CB_RECALL && slot_is_busy(sim, its, a->deleg))
			post_wait(sim, conn, a);
		else
			post_cb(sim, conn, its, a);
		return 1;
	}
	return 0;
}

unsigned int callback_lock(struct nfsd_sim *sim, const struct lock_range *w)
{
	return callback_to(sim, w->client, NULL,
		&(struct cb_args){.what = NFSD_SIM_CB_NOTIFY_LOCK, .lock = w});
}

unsigned int nfsd_sim_callback(struct nfsd_sim *sim, enum nfsd_sim_cb what, bool any)
{
	struct cb_args a = {.what = what, .keep = 16, .mask = 1};
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);
		struct session *s = back_session(sim, conn);

		if (!s && !any)
			continue;
		post_cb(sim, conn, s, &a);
		cnt++;
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

void recalls_again(struct nfsd_sim *sim, struct session *s)
{
	list_for_each (node, &sim->delegs) {
		struct deleg *d = container_of(node, struct deleg, link);

		if (d->client == s->client && d->recalled && !d->agreed_ns && !d->revoked)
			callback_to(sim, d->client, s,
				&(struct cb_args){.what = NFSD_SIM_CB_RECALL, .deleg = d});
	}
}

/* ---- answers ---- */

static void again(struct reactor_timer *t)
{
	struct cb_out *cb = container_of(t, struct cb_out, timer);
	struct nfsd_sim *sim = cb->conn->sim;
	struct deleg *d;

	pthread_mutex_lock(&sim->lock);
	d = deleg_find(sim, cb->other);
	if (d && !d->revoked && !d->agreed_ns)
		callback_to(sim, d->client, NULL,
			&(struct cb_args){.what = NFSD_SIM_CB_RECALL, .deleg = d});
	cb_free(cb);
	pthread_mutex_unlock(&sim->lock);
}

/* Returns whether it is to be sent again. */
static bool recall_answered(
	struct nfsd_sim *sim, struct deleg *d, const struct nfsd_sim_cb_answer *ans)
{
	if (ans->accept_stat)
		return false;
	d->cb_seq = 0;
	if (!ans->status)
		return false;
	if (ans->status == ST_DELAY) {
		sim->stats.recalls_delayed++;
		return true;
	}
	sim->stats.recalls_refused++;
	return d->refusals++ == 0;
}

static void get_answer(struct rd *r, struct nfsd_sim_cb_answer *ans)
{
	uint32_t n, op, mask[3];

	ans->status = rd_u32(r);
	rd_opaque(r, &n);
	ans->ops = rd_u32(r);
	if (!ans->ops)
		return;
	op = rd_u32(r);
	if (rd_u32(r) || op != OP_CB_SEQUENCE)
		return;
	rd_bytes(r, 16 + 4 * 4);
	if (ans->ops < 2)
		return;
	op = rd_u32(r);
	if (rd_u32(r) || op != OP_CB_GETATTR)
		return;
	rd_bitmap(r, mask);
	rd_opaque(r, &n);
	r->p -= (n + 3) & ~3u;
	ans->has_change = mask[0] & 0x8;
	ans->has_size = mask[0] & 0x10;
	if (ans->has_change)
		ans->change = rd_u64(r);
	if (ans->has_size)
		ans->size = rd_u64(r);
}

static struct cb_out *find_cb(struct sconn *conn, uint32_t xid)
{
	list_for_each (node, &conn->cbs) {
		struct cb_out *cb = container_of(node, struct cb_out, link);

		if (cb->xid == xid && !cb->answered)
			return cb;
	}
	return NULL;
}

static void give_back_number(struct nfsd_sim *sim, const struct cb_out *cb)
{
	list_for_each (node, &sim->sessions) {
		struct session *s = container_of(node, struct session, link);

		if (!memcmp(s->id, cb->session, 16) && s->cb_seq == cb->seq)
			s->cb_seq--;
	}
}

static void answered(struct cb_out *cb, const struct nfsd_sim_cb_answer *ans)
{
	struct nfsd_sim *sim = cb->conn->sim;
	struct deleg *d = cb->what == NFSD_SIM_CB_RECALL ? deleg_find(sim, cb->other) : NULL;

	/* CB_SEQUENCE failed: the number is still to be had. */
	if (cb->what == NFSD_SIM_CB_RECALL && !ans->accept_stat && ans->ops < 2)
		give_back_number(sim, cb);
	if (!d) {
		cb_free(cb);
		return;
	}
	if (!ans->accept_stat && !ans->status && !d->agreed_ns)
		d->agreed_ns = now_of(cb->conn->reactor);
	if (recall_answered(sim, d, ans))
		cb_later(cb, AGAIN_NS);
	else
		cb_free(cb);
}

void cb_reply(struct sconn *conn, const uint8_t *msg, size_t len)
{
	struct nfsd_sim_stats *st = &conn->sim->stats;
	struct nfsd_sim_cb_answer ans = {0};
	struct rd r = {msg, msg + len, false};
	uint32_t xid = rd_u32(&r), n;
	struct cb_out *cb = find_cb(conn, xid);

	if (!cb) {
		fab_sim_fail("xid %#x: a reply to no call of ours", xid);
		return;
	}
	if (rd_u32(&r) != 1)
		fab_sim_fail("xid %#x: not an RPC reply", xid);
	st->cb_replies++;
	if (rd_u32(&r)) { /* MSG_DENIED */
		ans.accept_stat = 100;
	} else {
		rd_u32(&r);
		rd_opaque(&r, &n);
		ans.accept_stat = rd_u32(&r);
		if (!ans.accept_stat && r.p != r.end)
			get_answer(&r, &ans);
	}
	st->cb_accept_stat = ans.accept_stat;
	st->cb_status = ans.status;
	conn->sim->cb_last = ans;
	if (r.bad)
		fab_sim_fail("xid %#x: callback reply cannot be decoded", xid);
	/* A server that asks for attributes has room for them. */
	if (len > (cb->what == NFSD_SIM_CB_GETATTR ? 136 : 104))
		fab_sim_fail("xid %#x: callback reply of %zu bytes: nfsd drops it", xid, len);
	answered(cb, &ans);
}

struct nfsd_sim_cb_answer nfsd_sim_cb_last(struct nfsd_sim *sim)
{
	struct nfsd_sim_cb_answer ans;

	pthread_mutex_lock(&sim->lock);
	ans = sim->cb_last;
	pthread_mutex_unlock(&sim->lock);
	return ans;
}
