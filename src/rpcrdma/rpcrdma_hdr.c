/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists on the wire, P = present (1), N = count, HLOO = Handle32 Length32 Offset64:
 *
 *   Read list:   (1 Position HLOO)* 0
 *   Write list:  (1 N HLOO*N)* 0
 *   Reply chunk: 1 N HLOO*N  or  0
 */
#include "rpcrdma_hdr.h"

#include <errno.h>

static void put_seg(struct xdr_enc *x, const struct rpcrdma_seg *s)
{
	xdr_put_u32(x, s->handle);
	xdr_put_u32(x, s->len);
	xdr_put_u64(x, s->off);
}

static void put_chunk(struct xdr_enc *x, const struct rpcrdma_chunk *c)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, c->cnt);
	for (uint32_t i = 0; i < c->cnt; i++)
		put_seg(x, &c->segs[i]);
}

void rpcrdma_hdr_encode(struct xdr_enc *x, const struct rpcrdma_hdr *h)
{
	xdr_put_u32(x, h->xid);
	xdr_put_u32(x, h->vers);
	xdr_put_u32(x, h->credits);
	xdr_put_u32(x, h->proc);
	if (h->proc == RDMA_DONE)
		return;
	if (h->proc == RDMA_ERROR) {
		xdr_put_u32(x, h->err);
		if (h->err == RDMA_ERR_VERS) {
			xdr_put_u32(x, h->vers_low);
			xdr_put_u32(x, h->vers_high);
		}
		return;
	}
	for (uint32_t i = 0; i < h->read_cnt; i++) {
		xdr_put_u32(x, 1);
		xdr_put_u32(x, h->reads[i].pos);
		put_seg(x, &h->reads[i].seg);
	}
	xdr_put_u32(x, 0);
	for (uint32_t i = 0; i < h->write_cnt; i++)
		put_chunk(x, &h->writes[i]);
	xdr_put_u32(x, 0);
	if (h->has_reply)
		put_chunk(x, &h->reply);
	else
		xdr_put_u32(x, 0);
}

static void get_seg(struct xdr_dec *x, struct rpcrdma_seg *s)
{
	s->handle = xdr_get_u32(x);
	s->len = xdr_get_u32(x);
	s->off = xdr_get_u64(x);
}

static void get_chunk(struct xdr_dec *x, struct rpcrdma_chunk *c)
{
	/* WIRE: bounded by our array and by what is left */
	uint32_t cnt = xdr_get_count(x, RPCRDMA_MAX_SEGS, RPCRDMA_HDR_SEG);

	c->cnt = 0;
	for (uint32_t i = 0; i < cnt && !x->failed; i++) {
		get_seg(x, &c->segs[i]);
		c->cnt++;
	}
}

static int get_lists(struct xdr_dec *x, struct rpcrdma_hdr *h)
{
	while (xdr_get_bool(x)) {
		if (h->read_cnt == RPCRDMA_MAX_READ_SEGS)
			return -EBADMSG;
		h->reads[h->read_cnt].pos = xdr_get_u32(x);
		get_seg(x, &h->reads[h->read_cnt].seg);
		h->read_cnt++;
	}
	while (xdr_get_bool(x)) {
		if (h->write_cnt == RPCRDMA_MAX_RESULTS)
			return -EBADMSG;
		get_chunk(x, &h->writes[h->write_cnt++]);
	}
	h->has_reply = xdr_get_bool(x);
	if (h->has_reply)
		get_chunk(x, &h->reply);
	return x->failed ? -EBADMSG : 0;
}

static int get_error(struct xdr_dec *x, struct rpcrdma_hdr *h)
{
	h->err = xdr_get_u32(x);
	if (h->err == RDMA_ERR_VERS) {
		h->vers_low = xdr_get_u32(x);
		h->vers_high = xdr_get_u32(x);
	}
	return x->failed ? -EBADMSG : 0;
}

int rpcrdma_hdr_decode(struct xdr_dec *x, struct rpcrdma_hdr *h)
{
	h->read_cnt = h->write_cnt = 0;
	h->has_reply = false;
	h->reply.cnt = 0;
	h->err = h->vers_low = h->vers_high = 0;
	h->xid = xdr_get_u32(x);
	h->vers = xdr_get_u32(x);
	h->credits = xdr_get_u32(x);
	h->proc = xdr_get_u32(x);
	if (x->failed)
		return -EBADMSG;
	/*
	 * RFC 8166 section 4.2.2: the first four words and RDMA_ERROR are the same in every
	 * version; ERR_VERS may carry the responder's version (nfsd echoes the caller's).
	 */
	if (h->proc == RDMA_ERROR)
		return get_error(x, h);
	if (h->vers != RPCRDMA_VERSION)
		return -EPROTONOSUPPORT;
	switch (h->proc) {
	case RDMA_MSGP:
		xdr_get_u32(x); /* rdma_align, rdma_thresh: hints */
		xdr_get_u32(x);
		return get_lists(x, h);
	case RDMA_MSG:
	case RDMA_NOMSG:
		return get_lists(x, h);
	case RDMA_DONE:
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

uint64_t rpcrdma_hdr_chunk_bytes(const struct rpcrdma_chunk *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->cnt; i++)
		sum += c->segs[i].len;
	return sum;
}
