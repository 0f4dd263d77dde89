/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CPU per call of the client's stack (nfs4, rpcrdma) without a fabric: fab.h
 * is implemented here by almost nothing, the replies are canned, and what is
 * left of the fabric is measured alone and taken off.
 *
 *   percall [CALLS]
 *
 * CALLS (default 1000000) of each kind, 32 in flight: all are started, then
 * all are answered. Time is read once a batch, a turn is the median of its
 * batches (being preempted spoils a batch, not a turn), the result the median
 * of ten turns with the lowest and the highest of them. What the parts cost
 * comes from turns of their own, which read the time at each border; --wrap of
 * the linker puts these there.
 *
 *   encode   nfs4_call_get(), slot, RPC header, COMPOUND
 *   send     rpc_send(): chunk plan, credit, window, transport header
 *   receive  completions, transport header, XID, credits, window, receive posted again
 *   decode   RPC reply header, SEQUENCE, slot, results, ->done, nfs4_call_put()
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fab.h"
#include "log.h"
#include "nfs4_held.h"
#include "rpcrdma_prot.h"

#define BATCH     32u
#define TURNS     10u
#define PAYLOAD   4096u
#define RECVS_MAX 4096u
#define NOINLINE  __attribute__((noinline))

static void die(const char *what)
{
	fprintf(stderr, "percall: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- the fabric that does nothing ---- */

struct fab_mr {
	uint32_t rkey;
};

struct fab_mw {
	uint32_t rkey;
};

struct post {
	const uint8_t *hdr;
	uint64_t cookie;
	uint32_t rkey;
};

struct recv {
	uint8_t *mem;
	uint64_t cookie;
};

struct fab_ep {
	const struct fab_ep_ops *ops;
	void *ctx;
	struct fab_caps caps;
	bool resolved, connected; /* events that are due */
	uint8_t priv[RPCRDMA_PRIV_LEN];
	uint32_t next_key;
	unsigned int busy;
	struct post posts[2 * BATCH];
	unsigned int post_cnt;
	struct recv recvs[RECVS_MAX];
	unsigned int recv_head, recv_tail;
};

static struct fab_ep *fabric; /* the one that was made last */
static bool has_mw = true;

struct fab_ep *fab_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	struct fab_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->ops = ops;
	ep->ctx = ctx;
	ep->next_key = 0x100;
	ep->caps = (struct fab_caps){.dev_name = "null0",
		.mw2b = has_mw,
		.max_sge = 8,
		.max_wr = 16384,
		.max_mw = 65536,
		.max_rd = 16,
		.max_mr_size = UINT64_MAX};
	fabric = ep;
	return ep;
}

void fab_ep_free(struct fab_ep *ep)
{
	free(ep);
}

int fab_ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	ep->resolved = true;
	return 0;
}

const struct fab_caps *fab_ep_caps(const struct fab_ep *ep)
{
	return &ep->caps;
}

int fab_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf)
{
	return conf->recv_wr < RECVS_MAX ? 0 : -ENOMEM;
}

int fab_ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len)
{
	memcpy(ep->priv, priv, sizeof(ep->priv)); /* the server offers the same */
	ep->connected = true;
	return 0;
}

void fab_ep_disconnect(struct fab_ep *ep)
{
	die("the client gives the connection up");
}

NOINLINE void fab_ep_set_busy(struct fab_ep *ep, unsigned int in_flight)
{
	ep->busy = in_flight;
}

struct fab_mr *fab_mr_reg(struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	struct fab_mr *mr = calloc(1, sizeof(*mr));

	if (mr)
		mr->rkey = ep->next_key += 0x100;
	return mr;
}

void fab_mr_dereg(struct fab_mr *mr)
{
	free(mr);
}

NOINLINE uint32_t fab_mr_rkey(const struct fab_mr *mr)
{
	return mr->rkey;
}

struct fab_mw *fab_mw_alloc(struct fab_ep *ep)
{
	struct fab_mw *mw = calloc(1, sizeof(*mw));

	if (mw)
		mw->rkey = ep->next_key += 0x100;
	return mw;
}

uint32_t fab_mw_rkey(const struct fab_mw *mw)
{
	return mw->rkey;
}

NOINLINE uint32_t fab_mw_next_rkey(const struct fab_mw *mw)
{
	return (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
}

NOINLINE int fab_post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	struct post *p = &ep->posts[ep->post_cnt++];

	p->hdr = sges[0].addr;
	p->cookie = cookie;
	p->rkey = 0;
	for (unsigned int i = 0; i < bind_cnt; i++)
		p->rkey = binds[i].mw->rkey = fab_mw_next_rkey(binds[i].mw);
	return 0;
}

NOINLINE int fab_post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	ep->recvs[ep->recv_tail++ % RECVS_MAX] = (struct recv){addr, cookie};
	return 0;
}

int fab_mw_invalidate(struct fab_ep *ep, struct fab_mw *mw, uint64_t cookie)
{
	die("the reply did not invalidate the call's window");
	return -EIO;
}

const char *fab_ep_name(const struct fab_ep *ep)
{
	return "null";
}

/* ---- the server: canned replies, made outside the measured time ---- */

static uint32_t word(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static const uint8_t sessionid[NFS4_SESSIONID_SIZE] = {1, 2, 3};

/* A request as far as its answer depends on it. */
struct request {
	uint32_t xid, seqid, slot;
	uint32_t op, last_op; /* the first, and the one it is about */
	const uint8_t *write; /* first segment of a Write chunk */
};

static void parse(const uint8_t *p, struct request *q)
{
	q->xid = word(p);
	p += RPCRDMA_HDR_FIXED;
	while (word(p)) /* Read list */
		p += RPCRDMA_HDR_READ_SEG;
	p += 4;
	q->write = NULL;
	while (word(p)) { /* Write list */
		q->write = p + 8;
		p += RPCRDMA_HDR_CHUNK + (size_t)word(p + 4) * RPCRDMA_HDR_SEG;
	}
	p += 4;
	if (word(p))
		die("a call with a Reply chunk");
	p += 4;
	p += 32 + word(p + 28) + 8 + 12; /* RPC call header, tag, minor version, count */
	q->op = q->last_op = word(p);
	if (q->op != OP_SEQUENCE)
		return;
	q->seqid = word(p + 20);
	q->slot = word(p + 24);
	p += 36;
	q->last_op = word(p);
	if (q->last_op == OP_PUTFH)
		q->last_op = word(p + 8 + XDR_ROUND(word(p + 4)));
}

static void put_result(struct xdr_enc *x, uint32_t op)
{
	xdr_put_u32(x, op);
	xdr_put_u32(x, NFS4_OK);
}

static void put_chan(struct xdr_enc *x)
{
	static const uint32_t words[] = {0, 1 << 20, 1 << 20, 4096, 50, 64, 0};

	for (unsigned int i = 0; i < 7; i++)
		xdr_put_u32(x, words[i]);
}

static void put_time(struct xdr_enc *x)
{
	xdr_put_u64(x, 1700000000);
	xdr_put_u32(x, 5);
}

/* Everything a struct stat needs, as nfsd answers it. */
static void put_stat(struct xdr_enc *x)
{
	struct xdr_enc v;
	uint8_t vals[256];

	xdr_enc_init(&v, vals, sizeof(vals));
	xdr_put_u32(&v, NF4REG);
	xdr_put_u64(&v, 77); /* change */
	xdr_put_u64(&v, PAYLOAD);
	xdr_put_u64(&v, 1); /* fsid */
	xdr_put_u64(&v, 2);
	xdr_put_u64(&v, 4711); /* fileid */
	xdr_put_u32(&v, 0644);
	xdr_put_u32(&v, 1);
	xdr_put_opaque(&v, "1000", 4);
	xdr_put_opaque(&v, "1000", 4);
	xdr_put_u64(&v, 0); /* rawdev */
	xdr_put_u64(&v, PAYLOAD);
	put_time(&v);
	put_time(&v);
	put_time(&v);
	xdr_put_u32(x, 2);
	xdr_put_u32(x, 1u << 1 | 1u << 3 | 1u << 4 | 1u << 8 | 1u << 20);
	xdr_put_u32(x, 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 9 | 1u << 13 | 1u << 15 |
			       1u << 20 | 1u << 21);
	xdr_put_opaque(x, vals, xdr_enc_len(&v));
}

/* What follows a WRITE: change, size, times. */
static void put_written(struct xdr_enc *x)
{
	xdr_put_u32(x, 2);
	xdr_put_u32(x, 1u << 3 | 1u << 4);
	xdr_put_u32(x, 1u << 20 | 1u << 21);
	xdr_put_u32(x, 40);
	xdr_put_u64(x, 77);
	xdr_put_u64(x, PAYLOAD);
	put_time(x);
	put_time(x);
}

static void put_op(struct xdr_enc *x, const struct request *q)
{
	static uint8_t payload[PAYLOAD];

	switch (q->last_op) {
	case OP_EXCHANGE_ID:
		put_result(x, OP_EXCHANGE_ID);
		xdr_put_u64(x, 1); /* client ID */
		xdr_put_u32(x, 1);
		xdr_put_u32(x, EXCHGID4_FLAG_USE_NON_PNFS);
		xdr_put_u32(x, SP4_NONE);
		xdr_put_u64(x, 0);
		xdr_put_opaque(x, "null", 4);
		xdr_put_opaque(x, "null", 4);
		xdr_put_u32(x, 0);
		return;
	case OP_CREATE_SESSION:
		put_result(x, OP_CREATE_SESSION);
		xdr_put_fixed(x, sessionid, sizeof(sessionid));
		xdr_put_u32(x, 1);
		xdr_put_u32(x, 0);
		put_chan(x);
		put_chan(x);
		return;
	case OP_RECLAIM_COMPLETE:
		put_result(x, OP_RECLAIM_COMPLETE);
		return;
	case OP_GETATTR:
		put_result(x, OP_PUTFH);
		put_result(x, OP_GETATTR);
		put_stat(x);
		return;
	case OP_READ:
		put_result(x, OP_PUTFH);
		put_result(x, OP_READ);
		xdr_put_bool(x, false);
		if (q->write)
			xdr_put_u32(x, PAYLOAD);
		else
			xdr_put_opaque(x, payload, PAYLOAD);
		return;
	case OP_WRITE:
		put_result(x, OP_PUTFH);
		put_result(x, OP_WRITE);
		xdr_put_u32(x, PAYLOAD);
		xdr_put_u32(x, UNSTABLE4);
		xdr_put_u64(x, 0x1122334455667788);
		put_result(x, OP_GETATTR);
		put_written(x);
		return;
	default:
		die("a call that has no canned reply");
	}
}

static uint32_t result_count(const struct request *q)
{
	if (q->op != OP_SEQUENCE)
		return 1;
	switch (q->last_op) {
	case OP_RECLAIM_COMPLETE:
		return 2;
	case OP_WRITE:
		return 4;
	default:
		return 3;
	}
}

static uint32_t answer(const uint8_t *hdr, uint8_t *mem)
{
	struct request q;
	struct xdr_enc x;

	parse(hdr, &q);
	xdr_enc_init(&x, mem, 16384);
	xdr_put_u32(&x, q.xid);
	xdr_put_u32(&x, RPCRDMA_VERSION);
	xdr_put_u32(&x, 128); /* credits */
	xdr_put_u32(&x, RDMA_MSG);
	xdr_put_u32(&x, 0);
	if (q.write) {
		xdr_put_u32(&x, 1);
		xdr_put_u32(&x, 1);
		xdr_put_fixed(&x, q.write, RPCRDMA_HDR_SEG);
	}
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 0);
	rpc_encode_accepted(&x, q.xid, RPC_ACCEPT_SUCCESS, 0, 0);
	xdr_put_u32(&x, NFS4_OK);
	xdr_put_u32(&x, 0); /* tag */
	xdr_put_u32(&x, result_count(&q));
	if (q.op == OP_SEQUENCE) {
		put_result(&x, OP_SEQUENCE);
		xdr_put_fixed(&x, sessionid, sizeof(sessionid));
		xdr_put_u32(&x, q.seqid);
		xdr_put_u32(&x, q.slot);
		xdr_put_u32(&x, 63);
		xdr_put_u32(&x, 63);
		xdr_put_u32(&x, 0);
	}
	put_op(&x, &q);
	if (x.failed)
		die("a reply is too long");
	return (uint32_t)xdr_enc_len(&x);
}

/* ---- marks at the borders of the parts ---- */

static bool marking;
static uint64_t in_send, in_decode, clock_cost;

int __real_rpc_send(struct rpc_call *call, const struct xdr_enc *enc);
int __wrap_rpc_send(struct rpc_call *call, const struct xdr_enc *enc);
void __real_nfs4_reply_done(struct rpc_call *rpc);
void __wrap_nfs4_reply_done(struct rpc_call *rpc);

int __wrap_rpc_send(struct rpc_call *call, const struct xdr_enc *enc)
{
	uint64_t t;
	int err;

	if (!marking)
		return __real_rpc_send(call, enc);
	t = now_ns();
	err = __real_rpc_send(call, enc);
	in_send += now_ns() - t;
	return err;
}

void __wrap_nfs4_reply_done(struct rpc_call *rpc)
{
	uint64_t t;

	if (!marking) {
		__real_nfs4_reply_done(rpc);
		return;
	}
	t = now_ns();
	__real_nfs4_reply_done(rpc);
	in_decode += now_ns() - t;
}

/* ---- one client ---- */

enum kind {
	KIND_GETATTR,
	KIND_READ,
	KIND_WRITE,
};

struct bench {
	const char *name;
	enum kind kind;
	uint32_t inline_size;
	bool mw;
	unsigned int chunks; /* that each call must have: 0 or 1 */
};

static struct {
	struct reactor *r;
	struct nfs4_client *cl;
	struct nfs4_sess *sess;
	struct stats st;
	bool up;
	unsigned int done;
	struct nfs4_call calls[BATCH];
	struct rpcrdma_buf *bufs[BATCH];
} c;

static const struct rpc_cred cred = {.flavor = RPC_AUTH_SYS, .uid = 1000, .gid = 1000};
static const struct nfs4_fh fh = {.len = 28, .data = {9}};

static void on_up(void *ctx)
{
	c.up = true;
}

static void on_failed(void *ctx, const struct nfs4_failure *f)
{
	die(f->text);
}

static void on_other(void *ctx)
{
}

static const struct nfs4_sess_ops sess_ops = {
	.up = on_up, .failed = on_failed, .stopped = on_other, .unblocked = on_other};

static uint32_t lens[2 * BATCH];

static void make_replies(void)
{
	for (unsigned int i = 0; i < fabric->post_cnt; i++)
		lens[i] = answer(fabric->posts[i].hdr,
			fabric->recvs[(fabric->recv_head + i) % RECVS_MAX].mem);
}

static void deliver(void)
{
	const struct fab_ep_ops *ops = fabric->ops;
	void *ctx = fabric->ctx;
	struct post posts[2 * BATCH];
	unsigned int cnt = fabric->post_cnt;

	memcpy(posts, fabric->posts, cnt * sizeof(posts[0]));
	fabric->post_cnt = 0;
	for (unsigned int i = 0; i < cnt; i++) {
		struct recv *r = &fabric->recvs[fabric->recv_head++ % RECVS_MAX];

		ops->sent(ctx, posts[i].cookie, FAB_OK);
		ops->received(ctx, r->cookie, lens[i], posts[i].rkey, FAB_OK);
	}
	ops->batch_done(ctx);
}

static void set_up(const struct bench *b)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};
	struct nfs4_conf conf = {.minor_max = 2,
		.minor_min = 1,
		.owner = "percall",
		.hard = true,
		.timeout_errno = EIO,
		.flavor = RPC_AUTH_SYS};

	memset(&c, 0, sizeof(c));
	has_mw = b->mw;
	rpcrdma_conf_default(&conf.rdma);
	conf.rdma.data_size = 64 << 10;
	conf.rdma.inline_size = b->inline_size;
	c.r = reactor_new_virtual();
	c.cl = nfs4_client_new(&conf);
	c.sess = nfs4_sess_new(c.cl, c.r, &sess_ops, NULL, &c.st);
	in.sin_addr.s_addr = htonl(0x0a000001);
	if (!c.sess || nfs4_sess_start(c.sess, NULL, (struct sockaddr *)&in))
		die("no session");
	while (!c.up) {
		struct fab_event ev = {
			.new_device = true, .priv = fabric->priv, .priv_len = sizeof(fabric->priv)};

		if (fabric->resolved || fabric->connected) {
			ev.type = fabric->resolved ? FAB_EV_RESOLVED : FAB_EV_ESTABLISHED;
			fabric->resolved = fabric->connected = false;
			fabric->ops->event(fabric->ctx, &ev);
		} else {
			make_replies();
			deliver();
		}
		reactor_turn(c.r, 0);
	}
	for (unsigned int i = 0; i < BATCH; i++)
		c.bufs[i] = rpcrdma_buf_get(nfs4_sess_xprt(c.sess));
}

static void call_done(struct nfs4_call *call)
{
	if (call->err)
		die("a call failed");
	c.done++;
	nfs4_call_put(call);
}

static void start(const struct bench *b, unsigned int i)
{
	struct nfs4_call *call = &c.calls[i];

	if (nfs4_call_get(c.sess, call))
		die("no call");
	call->cred = &cred;
	call->done = call_done;
	switch (b->kind) {
	case KIND_GETATTR:
		call->u.getattr.fh = &fh;
		nfs4_getattr(call);
		return;
	case KIND_READ:
		call->u.read.fh = &fh;
		call->u.read.count = PAYLOAD;
		call->u.read.sink = (struct rpcrdma_span){c.bufs[i], c.bufs[i]->data, PAYLOAD};
		nfs4_read(call);
		return;
	case KIND_WRITE:
		call->u.write.fh = &fh;
		call->u.write.data = (struct rpcrdma_span){c.bufs[i], c.bufs[i]->data, PAYLOAD};
		nfs4_write(call);
		return;
	}
}

/* ---- measuring ---- */

enum part {
	ENCODE, /* unmarked: with SEND */
	SEND,
	RECEIVE, /* unmarked: with DECODE */
	DECODE,
	PARTS,
};

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t cnt)
{
	qsort(v, cnt, sizeof(*v), cmp);
	return v[cnt / 2];
}

static void batch(const struct bench *b, double ns[PARTS])
{
	uint64_t t0, t1, t2, t3;

	in_send = in_decode = 0;
	t0 = now_ns();
	for (unsigned int i = 0; i < BATCH; i++)
		start(b, i);
	t1 = now_ns();
	if (fabric->post_cnt != BATCH)
		die("calls wait");
	make_replies();
	c.done = 0;
	t2 = now_ns();
	deliver();
	t3 = now_ns();
	if (c.done != BATCH)
		die("calls without an end");
	ns[ENCODE] = (double)(t1 - t0) / BATCH;
	ns[RECEIVE] = (double)(t3 - t2) / BATCH;
	if (!marking)
		return;
	/* one reading of the clock lies inside the marks, one outside */
	ns[SEND] = (double)in_send / BATCH - (double)clock_cost / 1000;
	ns[DECODE] = (double)in_decode / BATCH - (double)clock_cost / 1000;
	ns[ENCODE] -= ns[SEND] + 2 * (double)clock_cost / 1000;
	ns[RECEIVE] -= ns[DECODE] + 2 * (double)clock_cost / 1000;
}

/* Medians of the batches of one turn; out[PARTS]: of their sum. */
static void turn(const struct bench *b, unsigned long batches, double out[PARTS + 1])
{
	double *v[PARTS + 1];

	for (unsigned int p = 0; p <= PARTS; p++)
		if (!(v[p] = calloc(batches, sizeof(double))))
			die("memory");
	for (unsigned long i = 0; i < batches; i++) {
		double ns[PARTS] = {0};

		batch(b, ns);
		for (unsigned int p = 0; p < PARTS; p++)
			v[PARTS][i] += v[p][i] = ns[p];
	}
	for (unsigned int p = 0; p <= PARTS; p++) {
		out[p] = median(v[p], batches);
		free(v[p]);
	}
}

/* In picoseconds. */
static uint64_t measure_clock(void)
{
	double v[101];

	for (unsigned int i = 0; i < 101; i++) {
		uint64_t t = now_ns();

		for (unsigned int k = 0; k < 1000; k++)
			now_ns();
		v[i] = (double)(now_ns() - t);
	}
	return (uint64_t)median(v, 101);
}

/* The calls into the fabric that one call makes, alone. */
static void fabric_share(const struct bench *b, double *ret_send, double *ret_recv)
{
	struct fab_ep *ep = calloc(1, sizeof(*ep));
	struct fab_mw mw[BATCH] = {{0}};
	struct fab_mr mr = {0};
	double snd[1001], rcv[1001];
	uint8_t mem[16];

	if (!ep)
		die("memory");
	for (unsigned int n = 0; n < 1001; n++) {
		uint64_t t0, t1, t2;

		ep->post_cnt = 0;
		t0 = now_ns();
		for (unsigned int i = 0; i < BATCH; i++) {
			struct fab_sge sge = {mem, sizeof(mem), NULL};
			struct fab_bind bind = {.mw = &mw[i]};

			if (b->chunks && b->mw)
				fab_mw_next_rkey(&mw[i]);
			else if (b->chunks)
				fab_mr_rkey(&mr);
			fab_post_send(ep, &sge, 1, &bind, b->chunks && b->mw, i);
			fab_ep_set_busy(ep, i);
		}
		t1 = now_ns();
		for (unsigned int i = 0; i < BATCH; i++) {
			fab_ep_set_busy(ep, i);
			fab_post_recv(ep, mem, sizeof(mem), &mr, i);
		}
		t2 = now_ns();
		snd[n] = (double)(t1 - t0) / BATCH;
		rcv[n] = (double)(t2 - t1) / BATCH;
	}
	*ret_send = median(snd, 1001);
	*ret_recv = median(rcv, 1001);
	free(ep);
}

static void check_form(const struct bench *b)
{
	uint64_t chunks = b->kind == KIND_READ ? c.st.write_chunks : c.st.read_chunks;

	if (chunks != c.st.ops[b->kind == KIND_READ ? OP_READ : OP_WRITE] * b->chunks)
		die("not the message form that was meant");
}

static void run(const struct bench *b, unsigned long calls)
{
	unsigned long batches = calls / BATCH / TURNS + 1;
	double all[TURNS], part[PARTS][TURNS], out[PARTS + 1], fab_send, fab_recv;

	set_up(b);
	turn(b, batches / 4 + 1, out); /* warm */
	fabric_share(b, &fab_send, &fab_recv);
	for (unsigned int i = 0; i < TURNS; i++) {
		turn(b, batches, out);
		all[i] = out[PARTS] - fab_send - fab_recv;
	}
	marking = true;
	for (unsigned int i = 0; i < TURNS; i++) {
		turn(b, batches, out);
		for (unsigned int p = 0; p < PARTS; p++)
			part[p][i] = out[p];
	}
	marking = false;
	check_form(b);
	printf("%-34s %6.0f %6.0f %6.0f %6.0f   %6.0f", b->name, median(part[ENCODE], TURNS),
		median(part[SEND], TURNS) - fab_send, median(part[RECEIVE], TURNS) - fab_recv,
		median(part[DECODE], TURNS), median(all, TURNS));
	printf("  %5.0f..%-5.0f %6.0f\n", all[0], all[TURNS - 1], fab_send + fab_recv);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct bench benches[] = {
		{"GETATTR", KIND_GETATTR, 4096, true, 0},
		{"READ 4 KiB, inline", KIND_READ, 8192, true, 0},
		{"READ 4 KiB, Write chunk, window", KIND_READ, 4096, true, 1},
		{"READ 4 KiB, Write chunk, static", KIND_READ, 4096, false, 1},
		{"WRITE 4 KiB, inline", KIND_WRITE, 8192, true, 0},
		{"WRITE 4 KiB, Read chunk, window", KIND_WRITE, 4096, true, 1},
		{"WRITE 4 KiB, Read chunk, static", KIND_WRITE, 4096, false, 1},
	};
	unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;

	if (argc > 2 || calls == 0) {
		fprintf(stderr, "usage: percall [CALLS]\n");
		return 2;
	}
	log_set_level(LOG_LVL_WARN);
	clock_cost = measure_clock();
	printf("ns of CPU per call; the null fabric's share is taken off and shown last\n");
	printf("%-34s %6s %6s %6s %6s   %6s  %-12s %6s\n", "", "encode", "send", "receiv", "decode",
		"all", "turns", "fabric");
	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
		run(&benches[i], calls);
	return 0;
}
