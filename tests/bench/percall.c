/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CPU per call of the client's stack (nfs4, rpcrdma) without a fabric: fab.h
 * is null_fab.c, the replies are made while no time is measured, and what is
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

#include "log.h"
#include "nfs4_held.h"
#include "null_fab.h"

#define BATCH   32u
#define TURNS   10u
#define PAYLOAD 4096u

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
	struct nfs4_session *sess;
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

static const struct nfs4_session_ops sess_ops = {
	.up = on_up, .failed = on_failed, .stopped = on_other, .unblocked = on_other};

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
	null_fab_mw = b->mw;
	rpcrdma_conf_default(&conf.rdma);
	conf.rdma.data_size = 64 << 10;
	conf.rdma.inline_size = b->inline_size;
	c.r = reactor_new_virtual();
	c.cl = nfs4_client_new(&conf);
	c.sess = nfs4_session_new(c.cl, c.r, &sess_ops, NULL, &c.st);
	in.sin_addr.s_addr = htonl(0x0a000001);
	if (!c.sess || nfs4_session_start(c.sess, NULL, (struct sockaddr *)&in))
		die("no session");
	while (!c.up)
		reactor_turn(c.r, 0);
	for (unsigned int i = 0; i < BATCH; i++)
		c.bufs[i] = rpcrdma_buf_get(nfs4_session_xprt(c.sess));
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
		call->u.write.data[0] = (struct rpcrdma_span){c.bufs[i], c.bufs[i]->data, PAYLOAD};
		call->u.write.data_cnt = 1;
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
	if (null_fab_sends(null_fab_last) != BATCH)
		die("calls wait");
	null_fab_answer(null_fab_last);
	c.done = 0;
	t2 = now_ns();
	null_fab_deliver(null_fab_last);
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
	struct fab_mw mw[BATCH] = {{.rkey = 0}};
	struct fab_mr mr = {.rkey = 0};
	double snd[1001], rcv[1001];
	uint8_t mem[16];

	if (!ep)
		die("memory");
	for (unsigned int n = 0; n < 1001; n++) {
		uint64_t t0, t1, t2;

		ep->send_head = ep->send_tail;
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
