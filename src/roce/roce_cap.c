/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_cap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "roce_rx.h"

static_assert(UDP_FRAME_HEAD_MAX + ROCE_PACKET_MAX <= CAPTURE_FRAME_MAX,
	"a frame fits what the capture takes");

/* From the BTH to the ICRC. */
struct datagram {
	const struct roce_flow_addrs *addrs;
	uint16_t port, id;
	uint8_t tos;
	const struct iovec *iov;
	unsigned int iov_cnt;
	size_t len;
};

/* Its frame, with so many bytes of the datagram. Returns: the frame's length. */
static size_t put(const struct datagram *d, size_t bytes, uint8_t *out)
{
	struct udp_frame u = {.is_v6 = d->addrs->is_v6, .tos = d->tos, .id = d->id};
	uint8_t *p = out;

	memcpy(u.src.ip, d->addrs->src, sizeof(u.src.ip));
	memcpy(u.dst.ip, d->addrs->dst, sizeof(u.dst.ip));
	udp_frame_mac(&u.src, u.is_v6);
	udp_frame_mac(&u.dst, u.is_v6);
	u.src.port = d->port;
	u.dst.port = ROCE_PORT;
	p += udp_frame_head(&u, d->len, p);
	for (unsigned int i = 0; i < d->iov_cnt && bytes > 0; i++) {
		size_t n = d->iov[i].iov_len < bytes ? d->iov[i].iov_len : bytes;

		if (n > 0)
			memcpy(p, d->iov[i].iov_base, n);
		p += n;
		bytes -= n;
	}
	return (size_t)(p - out);
}

static void add(struct roce_ep *ep, const struct datagram *d, size_t bytes)
{
	struct capture_batch *b = ep->cap.batch;
	size_t len = put(d, bytes, capture_batch_frame(ep->conf.capture, b));

	capture_batch_add(b, len, len + d->len - bytes);
}

static void add_kept(struct roce_ep *ep, const struct roce_cap_kept *k)
{
	struct capture_batch *b = ep->cap.batch;

	if (k->len == 0)
		return;
	memcpy(capture_batch_frame(ep->conf.capture, b), k->frame, k->len);
	capture_batch_add(b, k->len, k->len);
}

/* Returns: false: nothing can be told. */
static bool begin(struct roce_ep *ep)
{
	struct roce_cap *cap = &ep->cap;
	uint32_t run = capture_run(ep->conf.capture);

	if (!cap->batch)
		cap->batch = malloc(sizeof(*cap->batch));
	if (!cap->batch)
		return false;
	capture_batch_begin(cap->batch);
	if (cap->run == run)
		return true;
	cap->run = run;
	add_kept(ep, &cap->req);
	add_kept(ep, &cap->rep);
	add_kept(ep, &cap->rtu);
	return true;
}

/* Bytes of a packet that get in. va: of its payload, if that goes by RDMA; 0: not known. */
static size_t wanted(const struct roce_ep *ep, unsigned int kind, const struct datagram *d,
	size_t head_len, uint64_t va, uint32_t payload_len)
{
	if (payload_len == 0 || (kind & ROCE_IS_SEND) || capture_wants_data(ep->conf.capture))
		return d->len;
	if (va != 0 && ep->ops->is_message && ep->ops->is_message(ep->ctx, va, payload_len))
		return d->len;
	return head_len;
}

/* ---- how the connection was made ---- */

static unsigned int attr_of(const uint8_t mad[ROCE_MAD_LEN])
{
	return roce_wire_get16(mad + 16);
}

static void keep(struct roce_cap_kept *k, const struct datagram *d)
{
	if (UDP_FRAME_HEAD_MAX + d->len <= sizeof(k->frame))
		k->len = put(d, d->len, k->frame);
}

/* The last REQ before the REP is the one that counts. */
static void keep_sent(struct roce_cap *cap, unsigned int attr, const struct datagram *d)
{
	if (attr == ROCE_MAD_REQ) {
		keep(&cap->req, d);
		cap->rep.len = cap->rtu.len = 0;
	} else if (attr == ROCE_MAD_RTU) {
		keep(&cap->rtu, d);
	}
}

/* Not one of an attempt that was given up, nor a stranger's (on_rep()). */
static void keep_received(struct roce_ep *ep, const uint8_t *mad, const struct datagram *d)
{
	if (attr_of(mad) == ROCE_MAD_REP && ep->state == ROCE_CONNECTING &&
		roce_wire_get32(mad + 24 + 4) == ep->conn.local_id &&
		roce_wire_get64(mad + 8) == ep->conn.tid)
		keep(&ep->cap.rep, d);
}

/* ---- packets ---- */

/* Where an RDMA Write puts it, by what came before; 0: it is not its turn. */
static uint64_t va_of(const struct roce_ep *ep, const struct roce_packet *p)
{
	const struct roce_responder *q = &ep->resp;

	if (p->kind & ROCE_HAS_RETH)
		return p->va;
	return (p->kind & ROCE_IS_WRITE) && q->kind == ROCE_IS_WRITE && p->psn == q->psn
		       ? q->va + q->got
		       : 0;
}

void roce_cap_received(
	struct roce_ep *ep, const struct roce_packet *p, const struct roce_cap_in *in)
{
	const uint8_t *apart = in->about->apart;
	size_t tail = apart ? ROCE_BTH_LEN + in->about->apart_len : 0;
	size_t head_len = apart ? ROCE_BTH_LEN : (size_t)(p->payload - in->bytes);
	const struct iovec iov[] = {{(void *)(uintptr_t)in->bytes, apart ? ROCE_BTH_LEN : 0},
		{(void *)(uintptr_t)apart, apart ? in->about->apart_len : 0},
		{(void *)(uintptr_t)(in->bytes + tail), in->len - tail}};
	const struct datagram d = {.addrs = &ep->in,
		.port = in->port,
		.id = in->id,
		.tos = in->about->tos,
		.iov = iov,
		.iov_cnt = 3,
		.len = in->len};

	if (capture_is_on(ep->conf.capture) && begin(ep)) {
		add(ep, &d, wanted(ep, p->kind, &d, head_len, va_of(ep, p), p->payload_len));
		capture_batch_end(ep->conf.capture, ep->cap.batch);
	}
	if (p->qpn == ROCE_QP_GSI)
		keep_received(ep, p->payload, &d);
}

void roce_cap_sent(struct roce_ep *ep, uint16_t port, unsigned int first, unsigned int cnt)
{
	bool on = capture_is_on(ep->conf.capture) && begin(ep);

	for (unsigned int i = first; i < first + cnt; i++) {
		const struct roce_tx_packet *k = &ep->tx.packets[i];
		const struct iovec *iov = &ep->tx.iov[k->iov_at];
		const struct datagram d = {.addrs = &ep->out,
			.port = port,
			.id = k->id,
			.tos = ep->conf.tos | ROCE_ECT0,
			.iov = iov,
			.iov_cnt = k->iov_cnt,
			.len = k->len};
		unsigned int kind = roce_wire_kind(k->head[0]);

		/* The payload of an answer is one piece, where the peer reads it. */
		if (on)
			add(ep, &d,
				wanted(ep, kind, &d, iov[0].iov_len, (uintptr_t)iov[1].iov_base,
					k->payload_len));
		if (kind & ROCE_HAS_DETH)
			keep_sent(&ep->cap, attr_of(iov[1].iov_base), &d);
	}
	if (on)
		capture_batch_end(ep->conf.capture, ep->cap.batch);
}

void roce_cap_free(struct roce_ep *ep)
{
	free(ep->cap.batch);
}
