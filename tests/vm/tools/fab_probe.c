/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries src/verbs on a real device against a real server, one scenario a run:
 *
 *   fab_probe SCENARIO ADDRESS PORT [ARG [LANES]]
 *
 * It speaks as much RPC-over-RDMA as an NFS NULL call needs. Exit status 0:
 * all as expected; 1: a line on standard error says what was not. t_fab.sh and
 * t_fab_gone.sh run it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fab.h"
#include "log.h"
#include "xdr.h"

#define RECVS     16u
#define RECV_LEN  16384u
#define CHUNK_LEN 65536u
#define MEM_LEN   (RECVS * RECV_LEN + RECV_LEN + CHUNK_LEN)
#define PATIENCE  (20 * NSEC_PER_SEC)

struct probe {
	struct reactor *r;
	struct fab_ep *ep;
	uint8_t *mem;         /* receive buffers, send buffer, chunk */
	struct fab_mr *mr;    /* of all of it, local, for windows */
	struct fab_mr *mr_rw; /* of the chunk, remote */
	unsigned int seen[FAB_EV_DRAINED + 1];
	struct fab_event last[FAB_EV_DRAINED + 1];
	unsigned int sent[FAB_ERROR + 1], received[FAB_ERROR + 1], invalidated[FAB_ERROR + 1];
	uint64_t last_recv;
	uint32_t last_len, last_inv;
	bool inv_ok; /* announce that we take Send with Invalidate */
	unsigned int posted;
	uint32_t xid;
};

static _Thread_local struct probe P;
static struct sockaddr_in peer = {.sin_family = AF_INET};

#define CHECK(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s: ", __func__, __LINE__, #cond);                 \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint8_t *send_buf(void)
{
	return P.mem + RECVS * RECV_LEN;
}

static uint8_t *chunk_buf(void)
{
	return send_buf() + RECV_LEN;
}

/* ---- callbacks ---- */

static void on_event(void *ctx, const struct fab_event *ev)
{
	P.seen[ev->type]++;
	P.last[ev->type] = *ev;
	log_info("event %d err %d step %d new_device %d priv_len %zu", ev->type, ev->err, ev->step,
		ev->new_device, ev->priv_len);
}

static void on_sent(void *ctx, uint64_t cookie, enum fab_status status)
{
	P.sent[status]++;
}

static void on_received(
	void *ctx, uint64_t cookie, uint32_t len, uint32_t inv_rkey, enum fab_status status)
{
	P.received[status]++;
	P.posted--;
	if (status != FAB_OK)
		return;
	P.last_recv = cookie;
	P.last_len = len;
	P.last_inv = inv_rkey;
}

static void on_invalidated(void *ctx, uint64_t cookie, enum fab_status status)
{
	P.invalidated[status]++;
}

static const struct fab_ep_ops ops = {
	.event = on_event,
	.sent = on_sent,
	.received = on_received,
	.invalidated = on_invalidated,
};

/* ---- steps ---- */

static bool wait_count(const unsigned int *counter, unsigned int cnt)
{
	uint64_t end = reactor_now(P.r) + PATIENCE;

	while (*counter < cnt && reactor_now(P.r) < end)
		(void)reactor_turn(P.r, NSEC_PER_SEC / 10);
	return *counter >= cnt;
}

static void start(void)
{
	/*
	 * The device's ACK timeout: with one of milliseconds rxe sends again whenever an emulated
	 * machine stands still, and executes binds again with it (docs/quirks.md).
	 */
	struct fab_conf conf = {
		.resolve_timeout_ns = 5 * NSEC_PER_SEC,
		.connect_timeout_ns = 8 * NSEC_PER_SEC,
		.retry_count = 6,
	};

	P.r = reactor_new();
	reactor_set_spin_ns(P.r, 30 * NSEC_PER_USEC);
	P.ep = fab_ep_new(P.r, &conf, &ops, NULL);
	P.mem = aligned_alloc(4096, MEM_LEN);
	CHECK(P.ep && P.mem, "memory");
	memset(P.mem, 0, MEM_LEN);
}

static void resolve(void)
{
	unsigned int resolved = P.seen[FAB_EV_RESOLVED] + 1;
	int rc = fab_ep_resolve(P.ep, NULL, (struct sockaddr *)&peer);

	CHECK(!rc, "%s", strerror(-rc));
	CHECK(wait_count(&P.seen[FAB_EV_RESOLVED], resolved), "not resolved");
	if (!P.last[FAB_EV_RESOLVED].new_device)
		return;
	P.mr = fab_mr_reg(P.ep, P.mem, MEM_LEN, FAB_LOCAL, true);
	CHECK(P.mr, "%s", strerror(errno));
	P.mr_rw =
		fab_mr_reg(P.ep, chunk_buf(), CHUNK_LEN, FAB_REMOTE_READ | FAB_REMOTE_WRITE, false);
	CHECK(P.mr_rw, "%s", strerror(errno));
}

static void post_recv(uint64_t i)
{
	int rc = fab_post_recv(P.ep, P.mem + i * RECV_LEN, RECV_LEN, P.mr, i);

	CHECK(!rc, "%s", strerror(-rc));
	P.posted++;
}

static void setup(void)
{
	struct fab_qp_conf qp = {.send_wr = 32, .recv_wr = RECVS, .max_send_sge = 4};
	int rc = fab_ep_setup(P.ep, &qp);

	CHECK(!rc, "%s", strerror(-rc));
	for (unsigned int i = 0; i < RECVS; i++)
		post_recv(i);
}

static void try_connect(void)
{
	/* RFC 8797: magic, version, flags, sizes (16 KiB in our receives, 4 KiB sent). */
	uint8_t priv[8] = {0xf6, 0xab, 0x0e, 0x18, 1, P.inv_ok, 3, 15};
	int rc = fab_ep_connect(P.ep, priv, sizeof(priv));

	CHECK(!rc, "%s", strerror(-rc));
}

static void connect_up(void)
{
	unsigned int up = P.seen[FAB_EV_ESTABLISHED] + 1;

	resolve();
	setup();
	try_connect();
	CHECK(wait_count(&P.seen[FAB_EV_ESTABLISHED], up), "not connected, error %d",
		P.last[FAB_EV_FAILED].err);
	CHECK(P.last[FAB_EV_ESTABLISHED].priv_len >= 8, "no private data");
}

static void disconnect(void)
{
	unsigned int drained = P.seen[FAB_EV_DRAINED] + 1;

	fab_ep_disconnect(P.ep);
	CHECK(P.seen[FAB_EV_DRAINED] == drained - 1, "event from inside a call");
	CHECK(wait_count(&P.seen[FAB_EV_DRAINED], drained), "not drained");
	CHECK(!P.posted, "%u receives did not come back", P.posted);
}

static void stop(void)
{
	fab_ep_free(P.ep);
	free(P.mem);
	reactor_free(P.r);
}

/* ---- a NULL call ---- */

static size_t encode_call(uint32_t rkey)
{
	static const uint32_t rpc[] = {0, 2, 100003, 4, 0, 0, 0, 0, 0};
	struct xdr_enc x;

	xdr_enc_init(&x, send_buf(), RECV_LEN);
	xdr_put_u32(&x, ++P.xid);
	xdr_put_u32(&x, 1); /* version */
	xdr_put_u32(&x, 1); /* credits */
	xdr_put_u32(&x, 0); /* RDMA_MSG */
	xdr_put_u32(&x, 0); /* no Read list */
	xdr_put_u32(&x, 0); /* no Write list */
	xdr_put_u32(&x, rkey != 0);
	if (rkey) { /* a Reply chunk, which the server then uses */
		xdr_put_u32(&x, 1);
		xdr_put_u32(&x, rkey);
		xdr_put_u32(&x, CHUNK_LEN);
		xdr_put_u64(&x, (uintptr_t)chunk_buf());
	}
	xdr_put_u32(&x, P.xid);
	for (size_t i = 0; i < sizeof(rpc) / sizeof(rpc[0]); i++)
		xdr_put_u32(&x, rpc[i]);
	return xdr_enc_len(&x);
}

static void send_call(size_t len, const struct fab_bind *bind)
{
	/* In two pieces, to have a gather list. */
	struct fab_sge sges[] = {
		{send_buf(), 28, P.mr}, {send_buf() + 28, (uint32_t)len - 28, P.mr}};
	int rc = fab_post_send(P.ep, sges, 2, bind, bind ? 1 : 0, 7);

	CHECK(!rc, "%s", strerror(-rc));
	fab_ep_set_busy(P.ep, 1);
}

static void check_rpc(struct xdr_dec *x)
{
	CHECK(xdr_get_u32(x) == P.xid, "xid of the RPC reply");
	CHECK(xdr_get_u32(x) == 1, "not a reply");
	for (int i = 0; i < 4; i++)
		CHECK(xdr_get_u32(x) == 0, "not accepted");
	CHECK(!x->failed, "short reply");
}

static void wait_reply(bool in_chunk)
{
	unsigned int received = P.received[FAB_OK] + 1, sent = P.sent[FAB_OK] + 1;
	struct xdr_dec x;

	CHECK(wait_count(&P.received[FAB_OK], received), "no reply");
	CHECK(P.sent[FAB_OK] >= sent || wait_count(&P.sent[FAB_OK], sent), "Send not completed");
	xdr_dec_init(&x, P.mem + P.last_recv * RECV_LEN, P.last_len);
	CHECK(xdr_get_u32(&x) == P.xid, "xid");
	CHECK(xdr_get_u32(&x) == 1, "version");
	CHECK(xdr_get_u32(&x) >= 1, "no credit");
	CHECK(xdr_get_u32(&x) == in_chunk, "message type");
	if (in_chunk) {
		xdr_dec_init(&x, chunk_buf(), CHUNK_LEN);
	} else {
		for (int i = 0; i < 3; i++)
			CHECK(xdr_get_u32(&x) == 0, "chunks");
	}
	check_rpc(&x);
	memset(chunk_buf(), 0, CHUNK_LEN);
	post_recv(P.last_recv);
}

/* Both may complete before they are waited for. */
static void null_call(void)
{
	unsigned int sent = P.sent[FAB_OK];

	send_call(encode_call(0), NULL);
	wait_reply(false);
	CHECK(P.sent[FAB_OK] == sent + 1, "sent %u times", P.sent[FAB_OK] - sent);
	CHECK(!P.last_inv, "invalidation out of nowhere");
}

/* ---- scenarios ---- */

static void do_null(const char *arg)
{
	const struct fab_caps *caps;

	connect_up();
	caps = fab_ep_caps(P.ep);
	printf("# %s: mw2b %d max_sge %u max_wr %u max_mw %u max_rd %u\n", fab_ep_name(P.ep),
		caps->mw2b, caps->max_sge, caps->max_wr, caps->max_mw, caps->max_rd);
	for (int i = 0; i < 100; i++)
		null_call();
	disconnect();
	CHECK(P.received[FAB_FLUSHED] == RECVS, "%u flushed", P.received[FAB_FLUSHED]);
	CHECK(!P.seen[FAB_EV_DOWN] && !P.seen[FAB_EV_FAILED], "unexpected event");
}

static void expect_failed(int err, enum fab_step step)
{
	CHECK(wait_count(&P.seen[FAB_EV_FAILED], 1), "did not fail");
	CHECK(P.last[FAB_EV_FAILED].err == err, "%s", strerror(-P.last[FAB_EV_FAILED].err));
	CHECK(P.last[FAB_EV_FAILED].step == step, "step %d", P.last[FAB_EV_FAILED].step);
	CHECK(!P.posted, "%u receives did not come back", P.posted);
}

static void do_refused(const char *arg)
{
	resolve();
	setup();
	try_connect();
	expect_failed(-ECONNREFUSED, FAB_STEP_CONNECT);
	fab_ep_disconnect(P.ep); /* IDLE: nothing happens */
	(void)reactor_turn(P.r, NSEC_PER_SEC / 10);
	CHECK(!P.seen[FAB_EV_DRAINED], "DRAINED after FAILED");
}

/* ARG: the errno that is expected. */
static void do_unroutable(const char *arg)
{
	int rc = fab_ep_resolve(P.ep, NULL, (struct sockaddr *)&peer);

	if (rc) {
		printf("# refused at once: %s\n", strerror(-rc));
		return;
	}
	CHECK(wait_count(&P.seen[FAB_EV_FAILED], 1), "did not fail");
	printf("# %s\n", strerror(-P.last[FAB_EV_FAILED].err));
	CHECK(P.last[FAB_EV_FAILED].err < 0, "no error");
	CHECK(P.last[FAB_EV_FAILED].step == FAB_STEP_ADDR, "step %d", P.last[FAB_EV_FAILED].step);
}

static void do_nodevice(const char *arg)
{
	int rc = fab_ep_resolve(P.ep, NULL, (struct sockaddr *)&peer);

	CHECK(rc == -ENODEV, "%s", strerror(-rc));
}

/* The attempt is given up in each of its states. */
static void do_cancel(const char *arg)
{
	CHECK(!fab_ep_resolve(P.ep, NULL, (struct sockaddr *)&peer), "resolve");
	disconnect();
	resolve();
	disconnect();
	resolve();
	setup();
	disconnect();
	resolve();
	setup();
	try_connect();
	disconnect();
	connect_up();
	null_call();
	disconnect();
	CHECK(!P.seen[FAB_EV_FAILED], "FAILED");
}

static unsigned int own_cnt(const char *what)
{
	char cmd[128], line[64] = "";
	FILE *f;

	snprintf(cmd, sizeof(cmd), "rdma resource show %s | grep -c ' pid %d '", what, getpid());
	f = popen(cmd, "r");
	CHECK(f && fgets(line, sizeof(line), f), "%s", cmd);
	pclose(f);
	return (unsigned int)atoi(line);
}

struct resources {
	unsigned int qp, cq, mr, pd, cm_id, ctx;
};

static struct resources own_resources(void)
{
	struct resources n = {own_cnt("qp"), own_cnt("cq"), own_cnt("mr"), own_cnt("pd"),
		own_cnt("cm_id"), own_cnt("ctx")};

	printf("# qp %u cq %u mr %u pd %u cm_id %u ctx %u\n", n.qp, n.cq, n.mr, n.pd, n.cm_id,
		n.ctx);
	return n;
}

/* ARG: how often. */
static void do_cycle(const char *arg)
{
	struct resources up, first, last;

	connect_up();
	up = own_resources();
	CHECK(up.qp == 1 && up.cq == 1 && up.cm_id == 2, "what an endpoint has");
	disconnect();
	first = own_resources();
	CHECK(!first.qp && !first.cq && first.cm_id == 1, "left over");
	for (int i = 1; i < atoi(arg); i++) {
		connect_up();
		CHECK(!P.last[FAB_EV_RESOLVED].new_device, "device opened again");
		CHECK(fab_mw_alloc(P.ep), "window");
		null_call();
		disconnect();
	}
	last = own_resources();
	CHECK(!memcmp(&first, &last, sizeof(first)), "leak");
}

static struct fab_bind make_bind(struct fab_mw *mw)
{
	return (struct fab_bind){
		.mw = mw,
		.mr = P.mr,
		.addr = chunk_buf(),
		.len = CHUNK_LEN,
		.access = FAB_REMOTE_WRITE,
	};
}

/* Bound with the Send, invalidated by the server's reply, many times over. */
static void do_remote_inval(const char *arg)
{
	struct fab_bind bind;
	struct fab_mw *mw;

	P.inv_ok = true;
	connect_up();
	CHECK(fab_ep_caps(P.ep)->mw2b, "no windows");
	mw = fab_mw_alloc(P.ep);
	CHECK(mw, "%s", strerror(errno));
	bind = make_bind(mw);
	for (int i = 0; i < 200; i++) {
		uint32_t rkey = fab_mw_next_rkey(mw);

		send_call(encode_call(rkey), &bind);
		CHECK(fab_mw_rkey(mw) == rkey, "rkey");
		wait_reply(true);
		CHECK(P.last_inv == rkey, "invalidated 0x%x, bound 0x%x", P.last_inv, rkey);
		null_call(); /* nothing is invalidated by a reply without chunks */
	}
	disconnect();
}

/* The server is not asked to: we take the window back. */
static void do_local_inval(const char *arg)
{
	struct fab_bind bind;
	struct fab_mw *mw;

	connect_up();
	mw = fab_mw_alloc(P.ep);
	CHECK(mw, "%s", strerror(errno));
	bind = make_bind(mw);
	for (unsigned int i = 0; i < 200; i++) {
		int rc;

		send_call(encode_call(fab_mw_next_rkey(mw)), &bind);
		wait_reply(true);
		CHECK(!P.last_inv, "invalidated unasked");
		rc = fab_mw_invalidate(P.ep, &mw, 1, 1);
		CHECK(!rc, "%s", strerror(-rc));
		CHECK(wait_count(&P.invalidated[FAB_OK], i + 1), "not invalidated");
	}
	/* One stays bound over the end of the connection. */
	send_call(encode_call(fab_mw_next_rkey(mw)), &bind);
	wait_reply(true);
	disconnect();
	connect_up();
	null_call();
	disconnect();
}

static void do_static(const char *arg)
{
	connect_up();
	for (int i = 0; i < 200; i++) {
		send_call(encode_call(fab_mr_rkey(P.mr_rw)), NULL);
		wait_reply(true);
		CHECK(!P.last_inv, "invalidated unasked");
	}
	disconnect();
}

static void expect_down(int err)
{
	CHECK(wait_count(&P.seen[FAB_EV_DOWN], 1), "not down");
	CHECK(wait_count(&P.seen[FAB_EV_DRAINED], 1), "not drained");
	CHECK(P.seen[FAB_EV_DOWN] == 1 && P.seen[FAB_EV_DRAINED] == 1, "more than once");
	CHECK(P.last[FAB_EV_DOWN].err == err, "%d", P.last[FAB_EV_DOWN].err);
	CHECK(!P.posted, "%u receives did not come back", P.posted);
	P.seen[FAB_EV_DOWN] = P.seen[FAB_EV_DRAINED] = 0;
}

/* A Send that the server cannot take, then a bind that cannot be. */
static void do_break(const char *arg)
{
	struct fab_bind bind;
	struct fab_mw *mw;

	connect_up();
	(void)encode_call(0);
	send_call(8192, NULL);
	expect_down(-EREMOTEIO);
	CHECK(P.sent[FAB_ERROR] == 1, "Send: %u errors", P.sent[FAB_ERROR]);
	P.sent[FAB_ERROR] = 0;
	connect_up();
	mw = fab_mw_alloc(P.ep);
	CHECK(mw, "%s", strerror(errno));
	bind = make_bind(mw);
	bind.len = CHUNK_LEN + 65536; /* beyond its registration */
	send_call(encode_call(fab_mw_next_rkey(mw)), &bind);
	expect_down(-EIO);
	CHECK(P.sent[FAB_ERROR] == 1, "Send: %u errors", P.sent[FAB_ERROR]);
	connect_up();
	null_call();
	disconnect();
}

/* Many Sends at once until the queue is full; the server has 64 receives. */
static void do_full(const char *arg)
{
	struct fab_sge sge;
	unsigned int posted = 0;
	int rc;

	connect_up();
	sge = (struct fab_sge){send_buf(), (uint32_t)encode_call(0), P.mr};
	while (!(rc = fab_post_send(P.ep, &sge, 1, NULL, 0, posted)))
		posted++;
	CHECK(rc == -ENOMEM && posted == 32, "%s after %u", strerror(-rc), posted);
	disconnect();
	CHECK(P.sent[FAB_OK] + P.sent[FAB_FLUSHED] == posted, "%u and %u", P.sent[FAB_OK],
		P.sent[FAB_FLUSHED]);
	CHECK(fab_post_send(P.ep, &sge, 1, NULL, 0, 0) == -ENOTCONN, "posted when down");
}

static void do_memlock(const char *arg)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	struct rlimit lim = {65536, 65536};

	CHECK(!syscall(SYS_capget, &hdr, data), "capget");
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	CHECK(!syscall(SYS_capset, &hdr, data), "capset");
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &lim), "setrlimit");
	CHECK(!fab_ep_resolve(P.ep, NULL, (struct sockaddr *)&peer), "resolve");
	CHECK(wait_count(&P.seen[FAB_EV_RESOLVED], 1), "not resolved");
	errno = 0;
	CHECK(!fab_mr_reg(P.ep, P.mem, MEM_LEN, FAB_LOCAL, true) && errno == ENOMEM, "%s",
		strerror(errno));
	disconnect();
}

static void touch(const char *path)
{
	FILE *f = fopen(path, "w");

	CHECK(f, "%s", path);
	fclose(f);
}

/* Connects, says so in file ARG, waits until the server (or the device) goes. */
static void wait_down(const char *arg, int err)
{
	struct fab_bind bind;
	struct fab_mw *mw;

	connect_up();
	mw = fab_mw_alloc(P.ep);
	CHECK(mw, "%s", strerror(errno));
	bind = make_bind(mw);
	send_call(encode_call(fab_mw_next_rkey(mw)), &bind);
	wait_reply(true); /* the window stays bound */
	touch(arg);
	expect_down(err);
}

static void do_peer(const char *arg)
{
	wait_down(arg, 0);
}

/* Waits for file ARG.back: there is a device again. */
static void go_on(const char *arg)
{
	char back[256];
	uint64_t end;

	snprintf(back, sizeof(back), "%s.back", arg);
	for (end = reactor_now(P.r) + 2 * PATIENCE; access(back, F_OK);) {
		CHECK(reactor_now(P.r) < end, "the device did not come back");
		(void)reactor_turn(P.r, NSEC_PER_SEC / 10);
	}
	connect_up();
	CHECK(P.last[FAB_EV_RESOLVED].new_device, "an old device");
	null_call();
	disconnect();
}

/* The device goes under a connection. */
static void do_gone(const char *arg)
{
	int rc;

	wait_down(arg, -ENODEV);
	CHECK(!fab_mr_reg(P.ep, P.mem, 4096, FAB_LOCAL, false), "registered with nothing");
	rc = fab_ep_resolve(P.ep, NULL, (struct sockaddr *)&peer);
	CHECK(rc || wait_count(&P.seen[FAB_EV_FAILED], 1), "no failure without a device");
	printf("# without the device: %s\n", strerror(rc ? -rc : -P.last[FAB_EV_FAILED].err));
	go_on(arg);
}

/* The device goes while there is no connection. */
static void do_idle_gone(const char *arg)
{
	connect_up();
	disconnect();
	touch(arg);
	go_on(arg);
	CHECK(!P.seen[FAB_EV_DOWN] && !P.seen[FAB_EV_FAILED], "an event in IDLE");
}

/* A host that does not answer: our own timer ends it, and so does giving up. */
static void do_silent(const char *arg)
{
	uint64_t start;

	resolve();
	setup();
	start = reactor_now(P.r);
	try_connect();
	expect_failed(-ETIMEDOUT, FAB_STEP_CONNECT);
	CHECK(reactor_now(P.r) - start < 10 * NSEC_PER_SEC, "late");
	resolve();
	setup();
	try_connect();
	(void)reactor_turn(P.r, NSEC_PER_SEC);
	(void)reactor_turn(P.r, NSEC_PER_SEC);
	disconnect();
}

static const struct {
	const char *name;
	void (*run)(const char *arg);
} scenarios[] = {
	{"null", do_null},
	{"refused", do_refused},
	{"unroutable", do_unroutable},
	{"nodevice", do_nodevice},
	{"cancel", do_cancel},
	{"cycle", do_cycle},
	{"remote-inval", do_remote_inval},
	{"local-inval", do_local_inval},
	{"static", do_static},
	{"break", do_break},
	{"full", do_full},
	{"memlock", do_memlock},
	{"peer", do_peer},
	{"gone", do_gone},
	{"idle-gone", do_idle_gone},
	{"silent", do_silent},
};

struct lane {
	pthread_t thread;
	void (*run)(const char *arg);
	char arg[128];
};

static void *run_lane(void *ctx)
{
	struct lane *lane = ctx;

	start();
	lane->run(lane->arg);
	stop();
	return NULL;
}

/* Each lane a thread with an endpoint of its own; ARG is made ARG.0, ARG.1 ... */
static void run_lanes(void (*run)(const char *arg), const char *arg, int cnt)
{
	struct lane lanes[8];

	CHECK(cnt > 0 && cnt <= 8, "lanes");
	for (int i = 0; i < cnt; i++) {
		lanes[i].run = run;
		snprintf(lanes[i].arg, sizeof(lanes[i].arg), "%s.%d", arg, i);
		CHECK(!pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]), "thread");
	}
	for (int i = 0; i < cnt; i++)
		pthread_join(lanes[i].thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: fab_probe SCENARIO ADDRESS PORT [ARG]\n");
		return 2;
	}
	CHECK(inet_pton(AF_INET, argv[2], &peer.sin_addr) == 1, "address");
	peer.sin_port = htons((uint16_t)atoi(argv[3]));
	log_set_level(LOG_LVL_DEBUG);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(argv[1], scenarios[i].name))
			continue;
		if (argc > 5) {
			run_lanes(scenarios[i].run, argv[4], atoi(argv[5]));
			return 0;
		}
		start();
		scenarios[i].run(argc > 4 ? argv[4] : "");
		stop();
		return 0;
	}
	fprintf(stderr, "no scenario %s\n", argv[1]);
	return 2;
}
