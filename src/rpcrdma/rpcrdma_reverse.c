/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backchannel (RFC 8167): calls of the server on our connection. XIDs
 * and credits of this direction are its own; replies have Send buffers of
 * their own, so that forward traffic cannot starve them. Everything is short
 * and inline; a call with chunks is refused with ERR_CHUNK.
 *
 * More calls than credits do no harm: each receive is posted again as soon as
 * the user has looked at the call.
 */
#include "rpcrdma_tap.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static uint32_t be32_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Posts a header (and what is behind it) from a free Send buffer. */
static int post(struct rpcrdma *x, const struct rpcrdma_hdr *h, const void *msg, size_t len)
{
	struct xdr_enc enc;
	struct fab_sge sge;
	uint8_t *mem;
	uint32_t i = 0;
	int err;

	while (i < RPCRDMA_REVERSE_SENDS && (x->rsend_busy & (1u << i)))
		i++;
	if (i == RPCRDMA_REVERSE_SENDS)
		return -EAGAIN;
	mem = slab_at(&x->rsend_slab, i);
	xdr_enc_init(&enc, mem, x->rsend_slab.size);
	rpcrdma_hdr_encode(&enc, h);
	if (len > 0)
		xdr_put_fixed(&enc, msg, len);
	assert(!enc.failed);
	sge = (struct fab_sge){mem, (uint32_t)xdr_enc_len(&enc), x->rsend_mr};
	err = fab_post_send(x->ep, &sge, 1, NULL, 0, rpcrdma_rsend_cookie(x, i));
	if (err == -ENOMEM && x->sends_out > 0)
		return -EAGAIN;
	if (err) {
		rpcrdma_conn_drop(x, err, "a backchannel reply could not be posted");
		return -ENOTCONN;
	}
	if (rpcrdma_tap_is_on(x))
		rpcrdma_tap_sent(x, &sge, 1, NULL);
	x->rsend_busy |= 1u << i;
	rpcrdma_probe_send_posted(x);
	return 0;
}

static void refuse(struct rpcrdma *x, uint32_t xid)
{
	struct rpcrdma_hdr h;

	h.xid = xid;
	h.vers = RPCRDMA_VERSION;
	h.credits = RPCRDMA_REVERSE_CREDITS;
	h.proc = RDMA_ERROR;
	h.err = RDMA_ERR_CHUNK;
	stats_count(&x->stats->reverse_dropped, 1);
	(void)post(x, &h, NULL, 0); /* without a buffer it is dropped: the server asks again */
}

static uint32_t *find(struct rpcrdma *x, uint32_t xid)
{
	for (uint32_t i = 0; i < x->rcall_cnt; i++)
		if (x->rcalls[i] == xid)
			return &x->rcalls[i];
	return NULL;
}

/* Remembers who may be answered on this connection; the oldest is forgotten when full. */
static void remember(struct rpcrdma *x, uint32_t xid)
{
	if (find(x, xid))
		return;
	if (x->rcall_cnt == RPCRDMA_REVERSE_RECVS)
		memmove(x->rcalls, x->rcalls + 1, --x->rcall_cnt * sizeof(x->rcalls[0]));
	x->rcalls[x->rcall_cnt++] = xid;
}

bool rpcrdma_reverse_receive(
	struct rpcrdma *x, const struct rpcrdma_hdr *h, const uint8_t *msg, size_t len)
{
	struct rpcrdma_rcall call = {.xid = h->xid, .msg = msg, .len = len};

	/* RFC 8167 section 5.3: a long call, which we do not advertise */
	if (h->proc == RDMA_NOMSG && h->read_cnt > 0) {
		stats_count(&x->stats->reverse_calls, 1);
		refuse(x, h->xid);
		return true;
	}
	if (h->proc != RDMA_MSG && h->proc != RDMA_MSGP)
		return false;
	if (len < 8 || be32_at(msg) != h->xid || be32_at(msg + 4) != RPC_MSG_CALL)
		return false;
	stats_count(&x->stats->reverse_calls, 1);
	if (h->read_cnt > 0 || h->write_cnt > 0 || h->has_reply) {
		refuse(x, h->xid);
		return true;
	}
	if (!x->ops->reverse_call || x->stopping) {
		stats_count(&x->stats->reverse_dropped, 1);
		return true;
	}
	remember(x, h->xid);
	x->ops->reverse_call(x->ctx, &call);
	return true;
}

int rpcrdma_reverse_reply(struct rpcrdma *x, const void *msg, size_t len)
{
	struct rpcrdma_hdr h;
	uint32_t *slot;
	int err;

	if (len < 8 || (len & 3) != 0 || RPCRDMA_HDR_MIN + len > x->limits.send_max)
		return -EMSGSIZE;
	slot = find(x, be32_at(msg));
	if (x->state != RPCRDMA_C_UP || !slot)
		return -ENOTCONN;
	h.xid = *slot;
	h.vers = RPCRDMA_VERSION;
	h.credits = RPCRDMA_REVERSE_CREDITS;
	h.proc = RDMA_MSG;
	h.read_cnt = h.write_cnt = 0;
	h.has_reply = false;
	err = post(x, &h, msg, len);
	if (err)
		stats_count(&x->stats->reverse_dropped, 1);
	if (err != -ENOTCONN) /* the drain will forget them all */
		memmove(slot, slot + 1,
			(size_t)(x->rcalls + --x->rcall_cnt - slot) * sizeof(*slot));
	return err;
}

void rpcrdma_reverse_sent(struct rpcrdma *x, uint32_t i)
{
	assert(i < RPCRDMA_REVERSE_SENDS && (x->rsend_busy & (1u << i)));
	x->rsend_busy &= ~(1u << i);
}

void rpcrdma_reverse_reset(struct rpcrdma *x)
{
	x->rcall_cnt = 0;
	x->rsend_busy = 0;
}
