/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge itself: what a client must not do is noticed, what the contract promises is kept. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "fab_sim.h"
#include "nfsd_sim.h"
#include "sim_log.h"

/* A client that does what a test wants, right or wrong. */
static struct {
	struct reactor *r;
	struct nfsd_sim *srv;
	struct fab_ep *ep;
	unsigned int resolved, up, failed, down, drained, sent, flushed, errors, received,
		invalidated, batches;
	int err;
	uint32_t inv_rkey, last_len;
	struct fab_mr *mr, *bind_mr, *read_mr;
	struct fab_mw *mw;
} t;

static uint8_t mem[65536], shared_mem[65536];

static void on_event(void *ctx, const struct fab_event *ev)
{
	t.err = ev->err;
	switch (ev->type) {
	case FAB_EV_RESOLVED:
		t.resolved++;
		break;
	case FAB_EV_ESTABLISHED:
		t.up++;
		break;
	case FAB_EV_FAILED:
		t.failed++;
		break;
	case FAB_EV_DOWN:
		t.down++;
		break;
	case FAB_EV_DRAINED:
		t.drained++;
		break;
	}
}

static void count(enum fab_status status, unsigned int *ok)
{
	if (status == FAB_OK)
		++*ok;
	else if (status == FAB_FLUSHED)
		t.flushed++;
	else
		t.errors++;
}

static void on_sent(void *ctx, uint64_t cookie, enum fab_status status)
{
	count(status, &t.sent);
}

static void on_received(
	void *ctx, uint64_t cookie, uint32_t len, uint32_t inv_rkey, enum fab_status status)
{
	count(status, &t.received);
	if (status == FAB_OK) {
		t.inv_rkey = inv_rkey;
		t.last_len = len;
	}
}

static void on_invalidated(void *ctx, uint64_t cookie, enum fab_status status)
{
	count(status, &t.invalidated);
}

static void on_batch_done(void *ctx)
{
	t.batches++;
}

static const struct fab_ep_ops ops = {
	on_event, on_sent, on_received, on_invalidated, on_batch_done};

static void run(uint64_t ns)
{
	uint64_t end = reactor_now(t.r) + ns;

	while (reactor_now(t.r) < end)
		reactor_turn(t.r, end - reactor_now(t.r));
}

static void connect_up(unsigned int recvs)
{
	static const uint8_t priv[8] = {0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};
	struct fab_qp_conf qp = {.send_wr = 16, .recv_wr = 16, .max_send_sge = 2};

	cr_assert_eq(fab_ep_resolve(t.ep, NULL, (struct sockaddr *)&in), 0);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.resolved, 1);
	cr_assert_eq(fab_ep_setup(t.ep, &qp), 0);
	t.mr = fab_mr_reg(t.ep, mem, sizeof(mem), FAB_LOCAL, false);
	t.bind_mr = fab_mr_reg(t.ep, shared_mem, sizeof(shared_mem), FAB_LOCAL, true);
	t.mw = fab_mw_alloc(t.ep);
	cr_assert(t.mr && t.bind_mr && t.mw);
	for (unsigned int i = 0; i < recvs; i++)
		cr_assert_eq(fab_post_recv(t.ep, mem + 8192 * (i + 1), 8192, t.mr, i), 0);
	cr_assert_eq(fab_ep_connect(t.ep, priv, 8), 0);
	run(10 * NSEC_PER_MSEC);
	cr_assert_eq(t.up, 1);
}

static void start(unsigned int recvs)
{
	static const struct fab_conf conf = {
		.resolve_timeout_ns = NSEC_PER_SEC, .connect_timeout_ns = NSEC_PER_SEC};

	sim_log_quiet();
	memset(&t, 0, sizeof(t));
	memset(mem, 0, sizeof(mem));
	fab_sim_reset();
	t.r = reactor_new_virtual();
	t.srv = nfsd_sim_new(NULL, NULL);
	t.ep = fab_ep_new(t.r, &conf, &ops, NULL);
	connect_up(recvs);
}

/* want: failures recorded, at least. */
static void finish(bool want)
{
	fab_ep_disconnect(t.ep);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.drained, 1);
	fab_ep_free(t.ep);
	cr_assert_eq(fab_sim_live_keys(), 0);
	cr_assert_eq(fab_sim_live_objects(), 0);
	nfsd_sim_free(t.srv);
	reactor_free(t.r);
	cr_assert_eq(fab_sim_failures() > 0, want, "%s", fab_sim_failure());
}

static void put32(uint8_t **p, uint32_t v)
{
	*(*p)++ = (uint8_t)(v >> 24);
	*(*p)++ = (uint8_t)(v >> 16);
	*(*p)++ = (uint8_t)(v >> 8);
	*(*p)++ = (uint8_t)v;
}

/* A call of the test program, with a Write chunk of key, len at shared_mem if len. */
static uint32_t build(uint8_t *at, uint32_t xid, uint32_t key, uint32_t len)
{
	uint8_t *p = at;
	uint64_t addr = (uintptr_t)shared_mem;

	put32(&p, xid);
	put32(&p, 1);
	put32(&p, 16);
	put32(&p, 0);
	put32(&p, 0);
	if (len) {
		put32(&p, 1);
		put32(&p, 1);
		put32(&p, key);
		put32(&p, len);
		put32(&p, (uint32_t)(addr >> 32));
		put32(&p, (uint32_t)addr);
	}
	put32(&p, 0);
	put32(&p, 0);
	put32(&p, xid);
	put32(&p, 0);
	put32(&p, 2);
	put32(&p, NFSD_SIM_ECHO_PROG);
	put32(&p, 1);
	put32(&p, len ? NFSD_SIM_SOURCE : NFSD_SIM_NULL);
	for (int i = 0; i < 4; i++)
		put32(&p, 0);
	if (len) {
		put32(&p, 1);
		put32(&p, 6000);
	}
	return (uint32_t)(p - at);
}

static int post(uint32_t len, const struct fab_bind *bind)
{
	struct fab_sge sge = {mem, len, t.mr};

	return fab_post_send(t.ep, &sge, 1, bind, bind ? 1 : 0, 7);
}

static struct fab_bind a_bind(uint64_t len, unsigned int access)
{
	return (struct fab_bind){
		.mw = t.mw, .mr = t.bind_mr, .addr = shared_mem, .len = len, .access = access};
}

Test(fab_sim, a_call_with_a_window_is_answered_and_the_window_invalidated)
{
	struct fab_bind b;
	uint32_t key;

	start(4);
	b = a_bind(8000, FAB_REMOTE_WRITE);
	key = fab_mw_next_rkey(t.mw);
	cr_assert_eq(post(build(mem, 1, key, 8000), &b), 0);
	cr_assert_eq(fab_mw_rkey(t.mw), key);
	cr_assert_eq(fab_sim_live_windows(), 1);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.sent, 1);
	cr_assert_eq(t.received, 1);
	cr_assert_eq(t.inv_rkey, key);
	cr_assert_eq(shared_mem[5999], nfsd_sim_pattern(5999));
	cr_assert_eq(fab_sim_live_keys(), 0);
	finish(false);
}

Test(fab_sim, a_stale_key_is_a_failure)
{
	start(4);
	cr_assert_eq(post(build(mem, 1, 0x4711, 8000), NULL), 0);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.down, 1);
	finish(true);
}

Test(fab_sim, a_write_out_of_bounds_is_a_failure)
{
	struct fab_bind b;

	start(4);
	b = a_bind(5000, FAB_REMOTE_WRITE);
	cr_assert_eq(post(build(mem, 1, fab_mw_next_rkey(t.mw), 8000), &b), 0);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.down, 1);
	finish(true);
}

Test(fab_sim, a_write_to_what_is_for_reading_is_a_failure)
{
	struct fab_bind b;

	start(4);
	b = a_bind(8000, FAB_REMOTE_READ);
	cr_assert_eq(post(build(mem, 1, fab_mw_next_rkey(t.mw), 8000), &b), 0);
	run(NSEC_PER_MSEC);
	finish(true);
}

Test(fab_sim, invalidating_an_unbound_window_is_a_failure)
{
	start(4);
	cr_assert_neq(fab_mw_invalidate(t.ep, &t.mw, 1, 1), 0);
	finish(true);
}

Test(fab_sim, binding_a_bound_window_is_a_failure)
{
	struct fab_bind b;

	start(4);
	nfsd_sim_conf(t.srv)->latency_ns = NSEC_PER_SEC;
	b = a_bind(8000, FAB_REMOTE_WRITE);
	cr_assert_eq(post(build(mem, 1, fab_mw_next_rkey(t.mw), 8000), &b), 0);
	cr_assert_neq(post(build(mem, 2, fab_mw_next_rkey(t.mw), 8000), &b), 0);
	finish(true);
}

Test(fab_sim, memory_outside_its_registration_is_a_failure)
{
	struct fab_sge sge;

	start(4);
	sge = (struct fab_sge){mem + sizeof(mem) - 10, 20, t.mr};
	cr_assert_neq(fab_post_send(t.ep, &sge, 1, NULL, 0, 1), 0);
	finish(true);
}

Test(fab_sim, a_buffer_that_changes_before_its_send_completed_is_a_failure)
{
	start(4);
	cr_assert_eq(post(build(mem, 1, 0, 0), NULL), 0);
	mem[40] ^= 1;
	run(NSEC_PER_MSEC);
	finish(true);
}

Test(fab_sim, a_second_call_on_the_first_credit_is_a_failure)
{
	start(4);
	cr_assert_eq(post(build(mem, 1, 0, 0), NULL), 0);
	{
		struct fab_sge sge = {mem + 4096, build(mem + 4096, 2, 0, 0), t.mr};

		cr_assert_eq(fab_post_send(t.ep, &sge, 1, NULL, 0, 2), 0);
	}
	run(NSEC_PER_MSEC);
	finish(true);
}

Test(fab_sim, no_receive_for_the_reply_is_a_failure)
{
	start(0);
	cr_assert_eq(post(build(mem, 1, 0, 0), NULL), 0);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.down, 1);
	finish(true);
}

Test(fab_sim, a_message_larger_than_the_servers_receive_is_a_failure)
{
	start(4);
	build(mem, 1, 0, 0);
	cr_assert_eq(post(4100, NULL), 0);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.errors, 1);
	cr_assert_eq(t.down, 1);
	finish(true);
}

Test(fab_sim, deregistering_under_a_bound_window_is_a_failure)
{
	struct fab_bind b;

	start(4);
	nfsd_sim_conf(t.srv)->latency_ns = NSEC_PER_SEC;
	b = a_bind(8000, FAB_REMOTE_WRITE);
	cr_assert_eq(post(build(mem, 1, fab_mw_next_rkey(t.mw), 8000), &b), 0);
	fab_mr_dereg(t.bind_mr);
	finish(true);
}

Test(fab_sim, a_full_queue_says_enomem_and_no_more)
{
	start(4);
	fab_sim_conf()->blackhole = true;
	build(mem, 1, 0, 0);
	nfsd_sim_conf(t.srv)->tolerant_credits = true;
	for (int i = 0; i < 16; i++)
		cr_assert_eq(post(100, NULL), 0);
	cr_assert_eq(post(100, NULL), -ENOMEM);
	fab_ep_disconnect(t.ep);
	cr_assert_eq(t.flushed, 0, "never from inside a call");
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.flushed, 16 + 4);
	cr_assert_eq(t.drained, 1);
	fab_ep_free(t.ep);
	t.ep = NULL;
	nfsd_sim_free(t.srv);
	reactor_free(t.r);
}

Test(fab_sim, completions_come_in_batches_and_never_from_inside)
{
	start(4);
	cr_assert_eq(post(build(mem, 1, 0, 0), NULL), 0);
	cr_assert_eq(t.sent, 0);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.sent, 1);
	cr_assert_geq(t.batches, 1);
	finish(false);
}

Test(fab_sim, the_nth_call_fails_and_the_connection_can_be_cut)
{
	start(4);
	fab_sim_fail_call(2, EIO);
	cr_assert_eq(post(build(mem, 1, 0, 0), NULL), 0);
	cr_assert_eq(post(build(mem + 4096, 1, 0, 0), NULL), -EIO);
	fab_sim_cut_after(1);
	cr_assert_neq(fab_post_recv(t.ep, mem + 50000, 100, t.mr, 9), -EIO);
	cr_assert_eq(t.down, 0);
	run(NSEC_PER_MSEC);
	cr_assert_eq(t.down, 1);
	cr_assert_eq(t.drained, 1);
	cr_assert_eq(t.flushed, 1 + 5);
	cr_assert_eq(post(100, NULL), -ENOTCONN);
	finish(false);
}
