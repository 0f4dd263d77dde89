/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes into a capture: each message as it was posted or received, and what
 * moved by RDMA on its account. No RDMA Read or Write can be seen from here. They
 * are told from the chunks: Reads right after the call that offers them, Writes
 * right before the reply that says how much was written. Messages that travel
 * in chunks (long calls, Reply chunks) are always there, contents of files only
 * if they were asked for.
 *
 * A fabric may put what it sends and receives there itself (fab_caps.captures). Then nothing is
 * told here, but which memory is a message's.
 *
 * A connection begins with the datagrams that made it, told anew with its first
 * message in each capture.
 */
#include "rpcrdma_tap.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "roce_cm.h"

static_assert(ROCE_FRAME_MAX <= CAPTURE_FRAME_MAX, "a frame fits what the capture takes");

/* ---- a connection ---- */

static uint16_t set_ip(struct roce_end *end, const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;

	if (ss->ss_family == AF_INET6)
		memcpy(end->udp.ip, &in6->sin6_addr, 16);
	else
		memcpy(end->udp.ip, &in->sin_addr, 4);
	udp_frame_mac(&end->udp, ss->ss_family == AF_INET6);
	return ntohs(ss->ss_family == AF_INET6 ? in6->sin6_port : in->sin_port);
}

static void make_flows(struct rpcrdma_tap *tap, const struct fab_path *path, uint16_t ports[2])
{
	struct roce_end local = {.qpn = path->local_qpn}, remote = {.qpn = path->remote_qpn};
	uint32_t mtu = path->mtu;

	ports[0] = set_ip(&local, &path->local);
	ports[1] = set_ip(&remote, &path->remote);
	if (mtu == 0 || mtu > ROCE_MTU_MAX || mtu % 4 != 0)
		mtu = ROCE_MTU_MAX;
	tap->out = (struct roce_flow){.is_v6 = path->remote.ss_family == AF_INET6,
		/* where RoCE has entropy of a connection */
		.udp_port = (uint16_t)(0xc000u | (local.qpn ^ remote.qpn << 7)),
		.src = local,
		.dst = remote,
		.psn = path->local_psn,
		.mtu = mtu};
	tap->in = tap->out;
	tap->in.src = remote;
	tap->in.dst = local;
	tap->in.psn = path->remote_psn;
}

static void tell_mad(
	struct rpcrdma *x, const struct roce_flow *f, uint32_t psn, const uint8_t mad[ROCE_CM_LEN])
{
	struct capture_batch *b = x->tap.batch;
	size_t len = roce_frame_mad(f, psn, mad, capture_batch_frame(x->conf.capture, b));

	capture_batch_add(b, len, len);
}

static void tell_connection(struct rpcrdma *x, const uint16_t ports[2])
{
	struct rpcrdma_tap *tap = &x->tap;
	uint8_t priv[RPCRDMA_PRIV_LEN], mad[ROCE_CM_LEN];
	uint32_t reads = fab_ep_caps(x->ep)->max_rd;
	struct roce_cm cm = {.out = &tap->out,
		.in = &tap->in,
		.id = capture_id(x->conf.capture),
		.src_port = ports[0],
		.dst_port = ports[1],
		.reads = (uint8_t)(reads > 255 ? 255 : reads),
		.priv = priv,
		.priv_len = rpcrdma_priv_encode(x, priv),
		.peer_priv = tap->peer_priv,
		.peer_priv_len = tap->peer_priv_len};

	roce_cm_request(&cm, mad);
	tell_mad(x, &tap->out, 0, mad);
	roce_cm_reply(&cm, mad);
	tell_mad(x, &tap->in, 0, mad);
	roce_cm_ready(&cm, mad);
	tell_mad(x, &tap->out, 1, mad);
}

/* Before each message. Returns: false: it cannot be told. */
static bool begin(struct rpcrdma *x)
{
	struct rpcrdma_tap *tap = &x->tap;
	uint32_t run = capture_run(x->conf.capture);
	struct fab_path path;
	uint16_t ports[2];

	if (tap->batch == NULL)
		tap->batch = malloc(sizeof(*tap->batch));
	if (tap->batch == NULL)
		return false;
	if (tap->run == run && tap->generation == x->generation) {
		capture_batch_begin(tap->batch);
		return true;
	}
	if (!fab_ep_path(x->ep, &path))
		return false;
	capture_batch_begin(tap->batch);
	make_flows(tap, &path, ports);
	tell_connection(x, ports);
	tap->run = run;
	tap->generation = x->generation;
	return true;
}

void rpcrdma_tap_established(struct rpcrdma *x, const uint8_t *priv, size_t len)
{
	struct rpcrdma_tap *tap = &x->tap;

	/* WIRE: the CM pads it; what is behind RFC 8797's part is nobody's */
	tap->peer_priv_len = (uint8_t)(priv == NULL             ? 0
				       : len < RPCRDMA_PRIV_LEN ? len
								: RPCRDMA_PRIV_LEN);
	if (tap->peer_priv_len > 0)
		memcpy(tap->peer_priv, priv, tap->peer_priv_len);
}

/* ---- messages ---- */

static void tell(struct rpcrdma *x, struct roce_flow *f, struct roce_msg *m)
{
	struct capture_batch *b = x->tap.batch;

	for (;;) {
		size_t len = roce_frame_next(f, m, capture_batch_frame(x->conf.capture, b));

		if (len == 0)
			return;
		capture_batch_add(b, len, len);
	}
}

/* The server reads what a segment of a call offers: memory of ours, by address. */
static void tell_read(struct rpcrdma *x, const struct rpcrdma_seg *seg)
{
	struct rpcrdma_tap *tap = &x->tap;
	struct roce_msg request = {
		.kind = ROCE_READ, .addr = seg->off, .rkey = seg->handle, .len = seg->len};
	struct roce_msg answer = {.kind = ROCE_READ_RESP,
		.pieces = {{(const void *)(uintptr_t)seg->off, seg->len}},
		.piece_cnt = 1,
		.len = seg->len,
		.resp_psn = tap->in.psn};

	tell(x, &tap->in, &request);
	tell(x, &tap->out, &answer);
}

/* The server wrote `got` bytes, which are at p now, to the segments it returned. */
static void tell_writes(
	struct rpcrdma *x, const struct rpcrdma_chunk *c, const uint8_t *p, int64_t got)
{
	for (uint32_t i = 0; i < c->cnt && got > 0; i++) {
		const struct rpcrdma_seg *seg = &c->segs[i];
		struct roce_msg m = {.kind = ROCE_WRITE,
			.pieces = {{p, seg->len}},
			.piece_cnt = 1,
			.addr = seg->off,
			.rkey = seg->handle,
			.len = seg->len};

		if (seg->len > got) /* rpcrdma_chunk_got() is their sum */
			return;
		if (seg->len > 0)
			tell(x, &x->tap.in, &m);
		p += seg->len;
		got -= seg->len;
	}
}

void rpcrdma_tap_sent(struct rpcrdma *x, const struct fab_sge *sges, unsigned int cnt,
	const struct rpcrdma_hdr *hdr)
{
	struct roce_msg m = {.kind = ROCE_SEND};
	bool data = capture_wants_data(x->conf.capture);

	static_assert(RPCRDMA_MAX_SGE <= ROCE_MAX_PIECES, "a Send's buffers are its pieces");
	if (!begin(x))
		return;
	for (unsigned int i = 0; i < cnt; i++) {
		m.pieces[m.piece_cnt++] = (struct roce_piece){sges[i].addr, sges[i].len};
		m.len += sges[i].len;
	}
	tell(x, &x->tap.out, &m);
	/* position zero: the call itself */
	for (uint32_t i = 0; hdr != NULL && i < hdr->read_cnt; i++)
		if (data || hdr->reads[i].pos == 0)
			tell_read(x, &hdr->reads[i].seg);
	capture_batch_end(x->conf.capture, x->tap.batch);
}

static void tell_reply_chunks(
	struct rpcrdma *x, const struct rpcrdma_hdr *hdr, const struct rpcrdma_reqpriv *call)
{
	const struct rpcrdma_req *req = call->req;
	uint32_t max_seg = x->limits.max_seg;
	uint32_t cnt = hdr->write_cnt;

	/* WIRE: what it says was written is bounded by what was offered, as for the reply itself */
	if (cnt > call->plan.write_cnt || !capture_wants_data(x->conf.capture))
		cnt = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		const struct rpcrdma_result *r = &req->results[i];

		tell_writes(x, &hdr->writes[i], r->sink.p,
			rpcrdma_chunk_got(&hdr->writes[i], rpcrdma_chunk_result_room(r), max_seg));
	}
	if (hdr->proc == RDMA_NOMSG && hdr->has_reply && call->plan.reply == RPCRDMA_REPLY_CHUNK)
		tell_writes(x, &hdr->reply, req->reply_sink.p,
			rpcrdma_chunk_got(&hdr->reply, req->reply_sink.len, max_seg));
}

void rpcrdma_tap_received(struct rpcrdma *x, const uint8_t *msg, uint32_t len, uint32_t inv_rkey,
	const struct rpcrdma_hdr *hdr, const struct rpcrdma_reqpriv *call)
{
	struct roce_msg m = {.kind = inv_rkey != 0 ? ROCE_SEND_INV : ROCE_SEND,
		.pieces = {{msg, len}},
		.piece_cnt = 1,
		.rkey = inv_rkey,
		.len = len};

	if (!begin(x))
		return;
	if (call != NULL && (hdr->proc == RDMA_MSG || hdr->proc == RDMA_NOMSG))
		tell_reply_chunks(x, hdr, call);
	tell(x, &x->tap.in, &m);
	capture_batch_end(x->conf.capture, x->tap.batch);
}

/* ---- a fabric that captures ---- */

static bool is_within(const struct rpcrdma_span *span, uint64_t addr, uint64_t len)
{
	uint64_t off = addr - (uintptr_t)span->p;

	return off <= span->len && len <= span->len - off;
}

bool rpcrdma_tap_is_message(void *ctx, uint64_t addr, uint64_t len)
{
	const struct rpcrdma *x = ctx;

	list_for_each (node, &x->flight) {
		const struct rpcrdma_req *req = container_of(node, struct rpcrdma_req, link);
		const struct rpcrdma_plan *plan = &req->priv->plan;

		if (plan->proc == RDMA_NOMSG &&
			is_within(rpcrdma_chunk_long_span(req, plan), addr, len))
			return true;
		if (plan->reply == RPCRDMA_REPLY_CHUNK && is_within(&req->reply_sink, addr, len))
			return true;
	}
	return false;
}
