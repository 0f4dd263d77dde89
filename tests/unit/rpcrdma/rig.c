/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "rpc.h"

struct rig rig;
static unsigned int order;

void put_be32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
}

uint32_t get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return ntohl(v);
}

/* ---- server ---- */

void rig_send_hdr(struct rpcrdma_hdr *h, const void *body, size_t len, uint32_t inv_rkey)
{
	uint8_t buf[16384];
	struct xdr_enc enc;

	xdr_enc_init(&enc, buf, sizeof(buf));
	rpcrdma_hdr_encode(&enc, h);
	if (len > 0)
		xdr_put_fixed(&enc, body, len);
	assert(!enc.failed);
	fake_message(buf, xdr_enc_len(&enc), inv_rkey);
}

void rig_error(uint32_t xid, uint32_t err)
{
	struct rpcrdma_hdr h = {.xid = xid,
		.vers = 1,
		.credits = rig.grant,
		.proc = RDMA_ERROR,
		.err = err,
		.vers_low = 2,
		.vers_high = 3};

	rig_send_hdr(&h, NULL, 0, 0);
}

/* As nfsd: only if the call's chunks have one key. */
uint32_t rig_key(void)
{
	const struct rpcrdma_hdr *h = &rig.hdr;
	uint32_t key = 0, keys[64], cnt = 0;

	for (uint32_t i = 0; i < h->read_cnt; i++)
		keys[cnt++] = h->reads[i].seg.handle;
	for (uint32_t i = 0; i < h->write_cnt; i++)
		for (uint32_t j = 0; j < h->writes[i].cnt && cnt < 48; j++)
			keys[cnt++] = h->writes[i].segs[j].handle;
	for (uint32_t j = 0; h->has_reply && j < h->reply.cnt; j++)
		keys[cnt++] = h->reply.segs[j].handle;
	for (uint32_t i = 0; i < cnt; i++) {
		if (key != 0 && keys[i] != key)
			return 0;
		key = keys[i];
	}
	return key;
}

static bool may_inval(void)
{
	return !rig.no_inval && fake.priv_len == 8 && (fake.priv[5] & RPCRDMA_PRIV_F_INV);
}

/* RDMA Write of `len` bytes into a chunk; its lengths become what was written. */
static void fill(struct rpcrdma_chunk *c, const uint8_t *data, size_t len)
{
	for (uint32_t i = 0; i < c->cnt; i++) {
		struct rpcrdma_seg *s = &c->segs[i];
		uint32_t part = len < s->len ? (uint32_t)len : s->len;
		uint8_t *p = fake_mem(s->handle, s->off, s->len, FAB_REMOTE_WRITE);

		assert(p);
		memcpy(p, data, part);
		s->len = part;
		data += part;
		len -= part;
	}
	assert(len == 0);
}

void rig_reply(uint32_t xid)
{
	struct rpcrdma_hdr h = rig.hdr;
	uint8_t msg[24 + sizeof(rig.body)];
	struct xdr_enc enc;
	uint32_t key = may_inval() ? rig_key() : 0;

	h.xid = xid;
	h.credits = rig.grant;
	h.proc = RDMA_MSG;
	h.read_cnt = 0;
	xdr_enc_init(&enc, msg, sizeof(msg));
	rpc_encode_accepted(&enc, xid, RPC_ACCEPT_SUCCESS, 0, 0);
	if (rig.body_len > 0)
		xdr_put_fixed(&enc, rig.body, rig.body_len);
	for (uint32_t i = 0; i < h.write_cnt; i++)
		fill(&h.writes[i], rig.data + i * rig.data_len,
			i == 1 && rig.data_len2 ? rig.data_len2 : rig.data_len);
	if (h.has_reply) {
		h.proc = RDMA_NOMSG;
		fill(&h.reply, msg, xdr_enc_len(&enc));
		rig_send_hdr(&h, NULL, 0, key);
	} else {
		rig_send_hdr(&h, msg, xdr_enc_len(&enc), key);
	}
}

static void pull(const struct rpcrdma_seg *s, size_t at)
{
	uint8_t *p = fake_mem(s->handle, s->off, s->len, FAB_REMOTE_READ);

	assert(p);
	memmove(rig.msg + at + s->len, rig.msg + at, rig.msg_len - at);
	memcpy(rig.msg + at, p, s->len);
	rig.msg_len += s->len;
}

static void server(const uint8_t *msg, size_t len)
{
	struct xdr_dec dec;
	uint32_t zero = 0, other = 0, xid;

	xdr_dec_init(&dec, msg, len);
	if (rpcrdma_hdr_decode(&dec, &rig.hdr) || rig.hdr.proc == RDMA_ERROR)
		return;
	rig.inline_len = rig.msg_len = xdr_dec_left(&dec);
	memcpy(rig.msg, dec.p, rig.msg_len);
	for (uint32_t i = 0; i < rig.hdr.read_cnt; i++) {
		const struct rpcrdma_read_seg *r = &rig.hdr.reads[i];

		if (r->pos == 0) {
			pull(&r->seg, zero);
			zero += r->seg.len;
		} else {
			pull(&r->seg, r->pos + other);
			other += r->seg.len;
		}
	}
	if (rig.msg_len >= 8 && get_be32(rig.msg + 4) == RPC_MSG_REPLY)
		return;
	xid = rig.hdr.xid;
	assert(get_be32(rig.msg) == xid);
	rig.xids[rig.calls++ % 512] = xid;
	if (!rig.silent)
		rig_reply(xid);
}

void rig_reverse_call(uint32_t xid)
{
	struct rpc_callhdr call = {.xid = xid, .prog = 0x40000000, .vers = 1, .proc = 1};
	struct rpcrdma_hdr h = {.xid = xid, .vers = 1, .credits = 2, .proc = RDMA_MSG};
	uint8_t msg[128];
	struct xdr_enc enc;

	xdr_enc_init(&enc, msg, sizeof(msg));
	rpc_encode_call(&enc, &call, "");
	rig_send_hdr(&h, msg, xdr_enc_len(&enc), 0);
}

/* ---- client ---- */

static void on_up(void *ctx, bool first)
{
	rig.up++;
}

static void on_down(void *ctx, int err)
{
	rig.down++;
	rig.err = err;
}

static void on_failed(void *ctx, int err, const char *step)
{
	rig.failed++;
	rig.err = err;
	snprintf(rig.step, sizeof(rig.step), "%s", step);
}

static void on_stopped(void *ctx)
{
	rig.stopped++;
}

static void on_unblocked(void *ctx)
{
	rig.unblocked++;
}

static void on_reverse_call(void *ctx, const struct rpcrdma_rcall *call)
{
	uint8_t msg[64];
	struct xdr_enc enc;

	rig.rcalls++;
	rig.rcall_xid = call->xid;
	if (!rig.answer_rcalls)
		return;
	xdr_enc_init(&enc, msg, sizeof(msg));
	rpc_encode_accepted(&enc, call->xid, RPC_ACCEPT_SUCCESS, 0, 0);
	(void)rpcrdma_reverse_reply(rig.x, msg, xdr_enc_len(&enc));
}

static const struct rpcrdma_ops ops = {
	.up = on_up,
	.down = on_down,
	.failed = on_failed,
	.stopped = on_stopped,
	.unblocked = on_unblocked,
	.reverse_call = on_reverse_call,
};

const struct rpcrdma_ops *rpcrdma_test_ops(void)
{
	return &ops;
}

void rig_init(void)
{
	memset(&rig, 0, sizeof(rig));
	fake_reset();
	fake.server = server;
	/* 4096 each way, as nfsd */
	memcpy(fake.peer_priv, "\xf6\xab\x0e\x18\x01\x00\x03\x03", 8);
	fake.peer_priv_len = 56; /* as padded by the CM */
	rpcrdma_conf_default(&rig.conf);
	rig.conf.credits = 8;
	rig.conf.data_cnt = 12;
	rig.conf.data_size = 65536;
	rig.conf.idle_probe_ns = 0; /* the probe has its own test */
	rig.grant = 64;
	order = 0;
	log_set_level(LOG_LVL_ERR);
}

static void no_log(void *ctx, enum log_level level, const char *line)
{
}

void rig_quiet(void)
{
	log_set_sink(no_log, NULL);
}

static struct rig_log logged;

static void count_log(void *ctx, enum log_level level, const char *line)
{
	if (level > LOG_LVL_WARN)
		return;
	logged.lines++;
	snprintf(logged.last, sizeof(logged.last), "%s", line);
}

struct rig_log *rig_log(void)
{
	logged = (struct rig_log){0};
	log_set_level(LOG_LVL_WARN);
	log_set_sink(count_log, NULL);
	return &logged;
}

void rig_run(uint64_t ns)
{
	uint64_t end = reactor_now(rig.r) + ns;

	while (reactor_now(rig.r) < end)
		reactor_turn(rig.r, end - reactor_now(rig.r));
	for (int i = 0; i < 8; i++)
		reactor_turn(rig.r, 0);
}

bool rig_connect(void)
{
	struct sockaddr_in dst = {.sin_family = AF_INET, .sin_port = htons(20049)};
	struct sockaddr_in src = {.sin_family = AF_INET};

	dst.sin_addr.s_addr = htonl(0x0a000001);
	src.sin_addr.s_addr = htonl(rig.src);
	rig.r = reactor_new_virtual();
	rig.x = rpcrdma_new(rig.r, &rig.conf, &ops, NULL, &rig.stats);
	assert(rig.x);
	if (rpcrdma_connect(rig.x, rig.src ? (const struct sockaddr *)&src : NULL,
		    (const struct sockaddr *)&dst))
		return false;
	rig_run(NSEC_PER_MSEC);
	return rig.up > 0;
}

void rig_fini(void)
{
	if (rig.failed == 0) {
		rpcrdma_stop(rig.x);
		rig_run(NSEC_PER_SEC);
		assert(rig.stopped == 1);
	}
	assert(rpcrdma_buf_free_count(rig.x) == rig.conf.data_cnt);
	for (unsigned int i = 0; i < rig.conf.credits; i++)
		assert(rig.x->reqs[i].state == RPCRDMA_R_FREE);
	for (unsigned int i = 0; i < RPCRDMA_COPIES; i++)
		assert(list_is_linked(&rig.x->copies[i].link));
	assert(fake_open_windows() == 0);
	rpcrdma_free(rig.x);
	reactor_free(rig.r);
}

static void call_done(struct rpcrdma_req *req)
{
	struct call *c = container_of(req, struct call, req);

	c->done++;
	c->order = ++order;
	c->open_windows = fake_open_windows();
	c->end = req->end;
	c->reply_len = req->reply_len;
	if (req->end == RPCRDMA_REPLY) {
		assert(req->reply_len <= sizeof(c->reply));
		memcpy(c->reply, req->reply, req->reply_len);
	}
	if (!c->keep)
		rpcrdma_req_put(rig.x, req);
}

void call_init(struct call *c, unsigned int words)
{
	int err;

	memset(c, 0, sizeof(*c));
	c->req.done = call_done;
	err = rpcrdma_req_get(rig.x, &c->req);
	assert(err == 0);
	put_be32(c->req.head, rpcrdma_next_xid(rig.x));
	put_be32(c->req.head + 4, RPC_MSG_CALL);
	for (unsigned int i = 2; i < words; i++)
		put_be32(c->req.head + 4 * i, 0xc0000000u + i);
	c->req.head_len = 4 * (size_t)words;
	c->req.reply_max = 256;
}

int call_send(struct call *c)
{
	return rpcrdma_send(rig.x, &c->req);
}

void call_start(struct call *c, bool soft)
{
	int err;

	call_init(c, 10);
	c->req.soft = soft;
	err = call_send(c);
	assert(err == 0);
}
