/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What arrives: replies, errors, calls of the server, garbage. A message is
 * believed only as far as it was checked; one that belongs to a call and
 * breaks the protocol ends that call and the connection (RFC 8166 section
 * 4.5: it must not be sent again), any other is counted and dropped.
 */
#include "rpcrdma_tap.h"

#include <assert.h>
#include <errno.h>

#include "log.h"
#include "rpc.h"

/* Of a reply in the wrong place: without data it is short, and goes into a receive buffer. */
#define MISPLACED_MAX 4096
static_assert(MISPLACED_MAX <= RPCRDMA_RECV_ARMOUR, "a receive buffer is longer");

/* A received message while it is looked at. */
struct msg {
	struct rpcrdma_rep *rep;
	struct rpcrdma_hdr hdr;
	const uint8_t *body; /* inline part behind the header */
	size_t body_len;
	uint32_t inv_rkey;
};

static uint32_t be32_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Reply in the receive buffer: RPC header's first two words are what they must be. */
static int take_inline(struct rpcrdma_req *req, const struct msg *m)
{
	if (m->hdr.has_reply && rpcrdma_hdr_chunk_bytes(&m->hdr.reply) > 0)
		return -EBADMSG;
	if (m->body_len < 8 || be32_at(m->body) != m->hdr.xid ||
		be32_at(m->body + 4) != RPC_MSG_REPLY)
		return -EBADMSG;
	req->reply = m->body;
	req->reply_len = m->body_len;
	return 0;
}

/* Reply in the Reply chunk: looked at only after the fence, by the RPC layer. */
static int take_reply_chunk(struct rpcrdma_reqpriv *priv, const struct msg *m)
{
	struct rpcrdma_req *req = priv->req;
	int64_t got;

	if (priv->plan.reply != RPCRDMA_REPLY_CHUNK || !m->hdr.has_reply)
		return -EBADMSG;
	got = rpcrdma_chunk_got(&m->hdr.reply, req->reply_sink.len, priv->x->limits.max_seg);
	if (got < 8)
		return -EBADMSG;
	req->reply = req->reply_sink.p;
	req->reply_len = (size_t)got;
	stats_count(&priv->x->stats->reply_chunks, 1);
	return 0;
}

/* RFC 8267 section 6.4.1: Write chunks belong to the results in order. */
static int take_writes(struct rpcrdma_reqpriv *priv, const struct msg *m)
{
	struct stats *st = priv->x->stats;
	uint32_t offered = priv->plan.write_cnt;

	if (m->hdr.write_cnt > offered)
		return -EBADMSG;
	for (uint32_t i = 0; i < m->hdr.write_cnt; i++) {
		struct rpcrdma_result *r = &priv->req->results[i];
		int64_t got = rpcrdma_chunk_got(
			&m->hdr.writes[i], rpcrdma_chunk_result_room(r), priv->x->limits.max_seg);

		if (got < 0)
			return -EBADMSG;
		r->got = (uint32_t)got;
		r->used = got > 0;
		if (r->used)
			stats_count(&st->write_chunks, 1);
	}
	for (uint32_t i = 0; i < offered; i++)
		if (rpcrdma_chunk_result_room(&priv->req->results[i]) > 0 &&
			!priv->req->results[i].used)
			stats_count(&st->write_chunks_unused, 1);
	return 0;
}

/*
 * NFS-Ganesha writes a reply without data, so an error, into the Write chunk that was meant for the
 * data, and sends RDMA_MSG with nothing behind the header. No message of RFC 8166 looks like that,
 * and what it means is plain: without it ENOENT would be a lost connection. It is looked at only
 * after the fence; deliver() copies it to where replies lie.
 */
static int take_misplaced(struct rpcrdma_reqpriv *priv, struct msg *m)
{
	struct rpcrdma_result *r = &priv->req->results[0];
	int64_t got;

	if (m->hdr.write_cnt == 0 || m->hdr.write_cnt > priv->plan.write_cnt)
		return -EBADMSG;
	for (uint32_t i = 1; i < m->hdr.write_cnt; i++)
		if (rpcrdma_hdr_chunk_bytes(&m->hdr.writes[i]) > 0)
			return -EBADMSG;
	got = rpcrdma_chunk_got(
		&m->hdr.writes[0], rpcrdma_chunk_result_room(r), priv->x->limits.max_seg);
	if (got < RPC_REPLY_HDR || got > MISPLACED_MAX || (got & 3))
		return -EBADMSG;
	priv->misplaced = true;
	priv->req->reply = r->sink.p;
	priv->req->reply_len = (size_t)got;
	return 0;
}

static int take_reply(struct rpcrdma_reqpriv *priv, struct msg *m)
{
	int err;

	if (m->hdr.read_cnt > 0) /* RFC 8166 section 4.3.1: never in a reply */
		return -EBADMSG;
	if (m->hdr.proc != RDMA_NOMSG && m->body_len == 0)
		return take_misplaced(priv, m);
	err = m->hdr.proc == RDMA_NOMSG ? take_reply_chunk(priv, m) : take_inline(priv->req, m);
	if (!err)
		err = take_writes(priv, m);
	if (err)
		return err;
	if (m->hdr.proc != RDMA_NOMSG && priv->plan.reply == RPCRDMA_REPLY_INLINE)
		stats_count(&priv->x->stats->inline_replies, 1);
	return 0;
}

/* The call ends now, the connection with it; its memory is free when that is drained. */
static void reject(struct rpcrdma_reqpriv *priv, const struct msg *m, const char *why)
{
	struct rpcrdma *x = priv->x;

	stats_count(&x->stats->bad_messages, 1);
	log_warn_limited(
		"%s: reply %08x: %s; connection replaced, call failed", x->peer, m->hdr.xid, why);
	rpcrdma_req_decide(priv, RPCRDMA_BADREPLY);
	rpcrdma_conn_drop(x, -EBADMSG, why);
}

/* The server is done with the call: fence, then finish when all bits are clear. */
static void conclude(struct rpcrdma_reqpriv *priv, struct msg *m, enum rpcrdma_end end)
{
	struct rpcrdma *x = priv->x;
	int err;

	assert(x->state == RPCRDMA_C_UP); /* I7 */
	if (priv->win_cnt > 0 || m->inv_rkey != 0) {
		err = rpcrdma_win_fence(priv, m->inv_rkey);
		if (err == -EBADMSG) {
			reject(priv, m, "it invalidated a key that is not the call's");
			return;
		}
		if (err)
			rpcrdma_conn_drop(x, err, "a window could not be invalidated");
	}
	x->good = true;
	stats_count(priv->is_probe ? &x->stats->probe_replies : &x->stats->replies, 1);
	rpcrdma_req_decide(priv, end);
	if (end == RPCRDMA_REPLY && m->hdr.proc != RDMA_NOMSG) {
		assert(!priv->rep); /* I6 */
		priv->rep = m->rep;
		m->rep = NULL; /* deliver() posts it again */
	}
	rpcrdma_req_cleared(priv, RPCRDMA_PENDING_REPLY);
}

static void take_error(struct rpcrdma_reqpriv *priv, struct msg *m)
{
	struct rpcrdma *x = priv->x;

	stats_count(&x->stats->rdma_errors, 1);
	switch (m->hdr.err) {
	case RDMA_ERR_VERS:
		log_warn_limited(
			"%s: the server speaks RPC-over-RDMA versions %u to %u, we speak 1",
			x->peer, m->hdr.vers_low, m->hdr.vers_high);
		conclude(priv, m, RPCRDMA_REFUSED);
		break;
	case RDMA_ERR_CHUNK:
		log_debug("%s: call %08x: ERR_CHUNK", x->peer, m->hdr.xid);
		conclude(priv, m, RPCRDMA_TOOSMALL);
		break;
	default:
		reject(priv, m, "RDMA_ERROR with an unknown code");
		break;
	}
}

/* A key that was invalidated by something that is not the reply of its call. */
static void check_stray_key(struct rpcrdma *x, const struct msg *m)
{
	if (m->inv_rkey == 0 || !rpcrdma_win_by_rkey(x, m->inv_rkey))
		return;
	stats_count(&x->stats->bad_messages, 1);
	rpcrdma_conn_drop(x, -EBADMSG, "a message invalidated another call's window");
}

static struct rpcrdma_reqpriv *find_call(struct rpcrdma *x, uint32_t xid)
{
	struct rpcrdma_reqpriv *priv = rpcrdma_req_find(x, xid);

	if (!priv || priv->state != RPCRDMA_R_FLIGHT || priv->ended ||
		!(priv->req->pending & RPCRDMA_PENDING_REPLY))
		return NULL;
	return priv;
}

/*
 * A message without a body that has a Read list: a long call of the server, whose message is yet to
 * be read, or a reply of a server that breaks the protocol. With the XID of a call that waits for
 * its reply it is taken for that: the call ends now and not when its time is over, and the answer
 * to a long call would have been no more than that we take none.
 */
static bool is_broken_reply(struct rpcrdma *x, const struct rpcrdma_hdr *h)
{
	return h->proc == RDMA_NOMSG && h->read_cnt > 0 && find_call(x, h->xid);
}

static void dispatch(struct rpcrdma *x, struct msg *m, int decoded)
{
	struct rpcrdma_reqpriv *priv;

	if (decoded == 0 && m->hdr.proc == RDMA_DONE) {
		check_stray_key(x, m);
		return;
	}
	if (decoded == 0 && !is_broken_reply(x, &m->hdr) &&
		rpcrdma_reverse_receive(x, &m->hdr, m->body, m->body_len)) {
		rpcrdma_conn_alive(x);
		check_stray_key(x, m);
		return;
	}
	priv = find_call(x, m->hdr.xid);
	if (!priv || decoded == -EPROTONOSUPPORT || decoded == -EOPNOTSUPP) {
		/* a call that waits for this will run into its time limit */
		if (decoded)
			stats_count(&x->stats->bad_messages, 1);
		else
			stats_count(&x->stats->stray_replies, 1);
		check_stray_key(x, m);
		return;
	}
	if (decoded) {
		reject(priv, m, "the transport header is malformed");
		return;
	}
	fab_answered(x->ep, priv->idx);
	if (x->state != RPCRDMA_C_UP) /* by a call that this ended */
		return;
	rpcrdma_credit_grant(&x->credit, m->hdr.credits);
	if (m->hdr.proc == RDMA_ERROR) {
		rpcrdma_conn_alive(x);
		take_error(priv, m);
	} else if (take_reply(priv, m)) {
		reject(priv, m, "its lists or lengths are not what the call offered");
	} else {
		rpcrdma_conn_alive(x);
		conclude(priv, m, RPCRDMA_REPLY);
	}
}

static bool is_alive(const struct rpcrdma *x)
{
	return x->state == RPCRDMA_C_UP || x->state == RPCRDMA_C_CONNECTING;
}

void rpcrdma_reply_receive(
	struct rpcrdma *x, uint64_t cookie, uint32_t len, uint32_t inv_rkey, enum fab_status status)
{
	struct msg m; /* not cleared: two kilobytes of lists on the I/O path */
	struct xdr_dec dec;
	int err;

	assert(cookie < x->rep_cnt && x->reps[cookie].posted); /* I6 */
	m.rep = &x->reps[cookie];
	m.inv_rkey = inv_rkey;
	m.rep->posted = false;
	if (status != FAB_OK || !is_alive(x))
		return; /* posted again with the next connection */
	if (len > x->recv_size)
		len = x->recv_size;
	xdr_dec_init(&dec, m.rep->mem, len);
	err = rpcrdma_hdr_decode(&dec, &m.hdr);
	if (rpcrdma_tap_is_on(x))
		rpcrdma_tap_received(x, m.rep->mem, len, inv_rkey, err ? NULL : &m.hdr,
			err ? NULL : find_call(x, m.hdr.xid));
	if ((err == -EBADMSG && len < RPCRDMA_HDR_MIN) || x->state != RPCRDMA_C_UP) {
		/*
		 * RFC 8166 section 4.5: shorter than a header, its XID cannot be trusted (whole
		 * RDMA_ERRORs may be shorter); or faster than the event that we are connected.
		 */
		stats_count(&x->stats->bad_messages, 1);
		check_stray_key(x, &m);
	} else {
		m.body = dec.p;
		m.body_len = xdr_dec_left(&dec);
		dispatch(x, &m, err);
	}
	if (!m.rep || !is_alive(x))
		return;
	err = rpcrdma_mem_post_rep(x, m.rep);
	if (err)
		rpcrdma_conn_drop(x, err, "a receive could not be posted");
}
