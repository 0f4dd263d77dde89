/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a connection ends, and single posts, on queues of the test's own: no device.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs_int.h"
#include "log.h"

static struct verbs_ep ep;
static struct ibv_context verbs;
static struct ibv_cq cq;
static struct verbs_wr wrs[128];
static struct ibv_wc todo[128];
static unsigned int todo_cnt, polls;
static bool endless, broken;
/* what the endpoint's user saw, in order: a letter for each */
static char seen[512];
static int down_err;

static void note(char what)
{
	size_t len = strlen(seen);

	if (len + 1 < sizeof(seen))
		seen[len] = what;
}

static void on_event(void *ctx, const struct fab_event *ev)
{
	note(ev->type == FAB_EV_DOWN         ? 'D'
		: ev->type == FAB_EV_DRAINED ? '.'
		: ev->type == FAB_EV_FAILED  ? 'F'
					     : '?');
	if (ev->type == FAB_EV_DOWN)
		down_err = ev->err;
}

static void on_sent(void *ctx, uint64_t cookie, enum fab_status status)
{
	note(status == FAB_OK ? 's' : 'x');
}

static bool hang_up; /* the user gives the connection up when it receives something */

static void on_received(
	void *ctx, uint64_t cookie, uint32_t len, uint32_t inv_rkey, enum fab_status status)
{
	note(status == FAB_OK ? 'r' : 'f');
	if (hang_up)
		verbs_ep_disconnect(&ep);
}

static const struct fab_ep_ops ops = {.event = on_event, .sent = on_sent, .received = on_received};

static void received(enum ibv_wc_status status)
{
	uint32_t idx = verbs_qp_wr_get(&ep, WR_RECV, 0, 0);

	todo[todo_cnt++] = (struct ibv_wc){.wr_id = WR_ID(WR_RECV, idx), .status = status};
}

static int poll_cq(struct ibv_cq *q, int max, struct ibv_wc *wcs)
{
	int cnt = 0;

	if (broken)
		return -1;
	polls++;
	if (endless)
		received(IBV_WC_SUCCESS);
	while (cnt < max && todo_cnt > 0) {
		wcs[cnt++] = todo[0];
		memmove(todo, todo + 1, --todo_cnt * sizeof(*todo));
	}
	return cnt;
}

static struct ibv_qp qp;
static struct ibv_send_wr posted; /* the last one of the last post */
static unsigned int posts;
static int post_err;

static int post_send(struct ibv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (post_err) {
		*bad = wr;
		return post_err;
	}
	for (; wr; wr = wr->next) {
		posts++;
		posted = *wr;
	}
	return 0;
}

/* ---- in place of the libraries ---- */

/* The last change of the queue pair. */
static struct ibv_qp_attr changed;
static bool iwarp;
static uint8_t rnr_timer = 0xff; /* of the receive side */

static int modify_qp(struct ibv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	changed = *attr;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		rnr_timer = attr->min_rnr_timer;
	return 0;
}

/* As the CM fills it in. */
static int init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE;
	if (attr->qp_state == IBV_QPS_RTR && !iwarp)
		*mask |= IBV_QP_MIN_RNR_TIMER;
	attr->min_rnr_timer = 0;
	return 0;
}

/* In which order they are used first. */
static char first_use[8];

static int fork_init(void)
{
	strncat(first_use, "f", sizeof(first_use) - strlen(first_use) - 1);
	return 0;
}

static struct rdma_event_channel *create_event_channel(void)
{
	strncat(first_use, "c", sizeof(first_use) - strlen(first_use) - 1);
	errno = ENODEV;
	return NULL;
}

static int destroy_cq(struct ibv_cq *q)
{
	return 0;
}

static void ack_cq_events(struct ibv_cq *q, unsigned int cnt)
{
}

static const char *wc_status_str(enum ibv_wc_status status)
{
	return "failed";
}

struct verbs_lib_ibv ibv = {.ack_cq_events = ack_cq_events,
	.wc_status_str = wc_status_str,
	.modify_qp = modify_qp,
	.fork_init = fork_init,
	.destroy_cq = destroy_cq};
struct verbs_lib_rdma rdma = {
	.init_qp_attr = init_qp_attr, .create_event_channel = create_event_channel};
static bool not_installed;

int verbs_lib_load(char *why, size_t why_len)
{
	if (!not_installed)
		return 0;
	snprintf(why, why_len, "librdmacm.so.1 is not installed");
	return -ELIBACC;
}

static void no_log(void *ctx, enum log_level level, const char *line)
{
}

static void start(void)
{
	memset(&ep, 0, sizeof(ep));
	memset(seen, 0, sizeof(seen));
	todo_cnt = polls = 0;
	endless = broken = hang_up = false;
	verbs.ops.poll_cq = poll_cq;
	cq.context = &verbs;
	verbs.ops.post_send = post_send;
	qp.context = &verbs;
	posts = 0;
	post_err = 0;
	ep.r = reactor_new_virtual();
	ep.ops = &ops;
	ep.state = EP_UP;
	ep.cq = &cq;
	ep.qp = &qp;
	ep.qp_conf.send_wr = 4;
	ep.wrs = wrs;
	ep.wr_cnt = 128;
	for (uint32_t i = 0; i < ep.wr_cnt; i++)
		wrs[i] = (struct verbs_wr){.next_free = i + 1 < ep.wr_cnt ? i + 1 : WR_NONE};
	log_set_sink(no_log, NULL);
}

static void stop(void)
{
	reactor_timer_cancel(ep.r, &ep.timer);
	reactor_free(ep.r);
}

TestSuite(verbs_ep, .init = start, .fini = stop);

/* Else a call that the server carried out is sent again, perhaps to one that forgot it. */
Test(verbs_ep, what_arrived_is_delivered_before_the_end_of_the_connection)
{
	for (int i = 0; i < 70; i++) /* more than one batch */
		received(IBV_WC_SUCCESS);
	verbs_ep_lost(&ep, -ECONNRESET);
	cr_assert_eq(strlen(seen), 71);
	cr_assert_eq(strspn(seen, "r"), 70);
	cr_assert_eq(seen[70], 'D');
	cr_assert_eq(down_err, -ECONNRESET);
	cr_assert_eq(ep.state, EP_DRAINING);
}

Test(verbs_ep, a_completion_that_failed_tells_the_reason_and_once)
{
	received(IBV_WC_SUCCESS);
	received(IBV_WC_LOC_LEN_ERR);
	received(IBV_WC_WR_FLUSH_ERR);
	verbs_ep_lost(&ep, 0);
	cr_assert_str_eq(seen, "rfDf");
	cr_assert_eq(down_err, -EMSGSIZE);
}

Test(verbs_ep, a_peer_that_goes_on_sending_does_not_keep_us)
{
	endless = true;
	verbs_ep_lost(&ep, 0);
	cr_assert_leq(polls, ep.wr_cnt / VERBS_POLL_BATCH + 1);
	cr_assert_eq(seen[strlen(seen) - 1], 'D');
}

Test(verbs_ep, a_user_that_gives_it_up_meanwhile_hears_of_no_second_end)
{
	hang_up = true;
	received(IBV_WC_SUCCESS);
	verbs_ep_lost(&ep, 0);
	cr_assert_str_eq(seen, "r");
	cr_assert_eq(ep.state, EP_DRAINING);
}

Test(verbs_ep, a_queue_that_cannot_be_polled_ends_the_connection_too)
{
	broken = true;
	cr_assert_not(verbs_cq_poll(&ep));
	cr_assert_str_eq(seen, "D");
	cr_assert_eq(down_err, -EIO);
}

/* ---- what does not come back ---- */

static void run(uint64_t ns)
{
	uint64_t end = reactor_now(ep.r) + ns;

	while (reactor_now(ep.r) < end)
		reactor_turn(ep.r, end - reactor_now(ep.r));
}

/* The end of the endpoint, too, can be had: its timer, and what is freed with the queue. */
static void can_end(void)
{
	struct verbs_ep *other = verbs_ep_new(ep.r, &ep.conf, &ops, NULL);

	ep.timer = other->timer; /* which knows what to do */
	verbs_ep_free(other);
	ep.wrs = calloc(ep.wr_cnt, sizeof(*ep.wrs));
	memcpy(ep.wrs, wrs, sizeof(wrs));
	list_init(&ep.mws);
	ep.qp = NULL;
}

/* I1: the owner of a post waits for it, and must not be told of the end before. */
Test(verbs_ep, what_is_never_flushed_is_told_before_the_end)
{
	can_end();
	cr_assert_eq(verbs_qp_wr_get(&ep, WR_SEND, 1, 1), 0);
	cr_assert_eq(verbs_qp_wr_get(&ep, WR_RECV, 0, 2), 1);
	verbs_ep_lost(&ep, -EIO);
	run(VERBS_DRAIN_NS / 2);
	cr_assert_str_eq(seen, "D", "it may be slow");
	run(VERBS_DRAIN_NS);
	cr_assert_str_eq(seen, "Dxf.");
	cr_assert_eq(ep.wr_used, 0);
	cr_assert_eq(ep.state, EP_IDLE);
}

/* A disconnection is answered by DRAINED, also one from where the last receives come back. */
Test(verbs_ep, a_user_that_gives_a_failed_attempt_up_is_told_of_that_end)
{
	can_end();
	hang_up = true;
	ep.state = EP_CONNECTING;
	cr_assert_eq(verbs_qp_wr_get(&ep, WR_RECV, 0, 1), 0);
	verbs_ep_fail(&ep, FAB_STEP_CONNECT, -ECONNREFUSED);
	run(2 * VERBS_DRAIN_NS);
	cr_assert_str_eq(seen, "f.");
	cr_assert_eq(ep.state, EP_IDLE);
}

/* ---- a window that is tried ---- */

static struct ibv_mw verbs_mw;
static struct verbs_mw mw = {.mw = &verbs_mw, .stride = 1};
static struct ibv_mr verbs_mr;
static struct verbs_mr mr = {.mr = &verbs_mr};

Test(verbs_ep, a_bind_alone_completes_as_what_was_sent)
{
	struct fab_bind bind = {
		.mw = &mw.base, .mr = &mr.base, .len = 8, .access = FAB_REMOTE_READ};
	uint32_t key;

	verbs_mw.rkey = 0x1234;
	key = verbs_mem_mw_next_rkey(&mw);
	cr_assert_eq(verbs_post_bind(&ep, &bind, 7), 0);
	cr_assert_eq(posts, 1);
	cr_assert_eq(posted.opcode, IBV_WR_BIND_MW);
	cr_assert(posted.send_flags & IBV_SEND_SIGNALED);
	cr_assert_eq(posted.bind_mw.rkey, key);
	cr_assert_eq(verbs_mw.rkey, key);
	cr_assert_eq(ep.sq_used, 1);
	todo[todo_cnt++] = (struct ibv_wc){.wr_id = posted.wr_id, .status = IBV_WC_SUCCESS};
	cr_assert(verbs_cq_poll(&ep));
	cr_assert_str_eq(seen, "s");
	cr_assert_eq(ep.sq_used, 0);
}

Test(verbs_ep, a_bind_that_is_refused_leaves_nothing_behind)
{
	struct fab_bind bind = {
		.mw = &mw.base, .mr = &mr.base, .len = 8, .access = FAB_REMOTE_READ};

	verbs_mw.rkey = 0x1234;
	post_err = EOPNOTSUPP;
	cr_assert_eq(verbs_post_bind(&ep, &bind, 7), -EOPNOTSUPP);
	cr_assert_eq(verbs_mw.rkey, 0x1234);
	cr_assert_eq(ep.wr_used, 0);
	cr_assert_eq(ep.sq_used, 0);
	cr_assert_eq(ep.chain.send_cnt, 0);
	cr_assert_eq(ep.state, EP_UP);
	ep.sq_used = 4;
	cr_assert_eq(verbs_post_bind(&ep, &bind, 7), -ENOMEM);
	ep.state = EP_DRAINING;
	cr_assert_eq(verbs_post_bind(&ep, &bind, 7), -ENOTCONN);
}

/* ---- the first use of the libraries ---- */

static int resolve(void)
{
	struct sockaddr_in dst = {.sin_family = AF_INET};

	ep.state = EP_IDLE;
	return verbs_cm_resolve(&ep, NULL, (const struct sockaddr *)&dst);
}

/* Kernels before 5.9 give a child the pages that the adapter knows. */
Test(verbs_ep, libibverbs_hears_of_forks_before_it_is_used_and_once)
{
	verbs_probe_root = "/dev/null"; /* no sysfs: librdmacm is asked */
	cr_assert_eq(resolve(), -ENODEV);
	cr_assert_str_eq(first_use, "fc");
	cr_assert_eq(resolve(), -ENODEV);
	cr_assert_str_eq(first_use, "fcc");
	cr_assert_str_eq(ep.why, "");
}

Test(verbs_ep, a_library_that_cannot_be_loaded_is_told_and_not_called)
{
	verbs_probe_root = "/dev/null";
	not_installed = true;
	cr_assert_eq(resolve(), -ELIBACC);
	cr_assert_str_eq(ep.why, "librdmacm.so.1 is not installed");
	cr_assert_str_eq(first_use, "");
	cr_assert_eq(ep.state, EP_IDLE);
	not_installed = false;
	cr_assert_eq(resolve(), -ENODEV);
	cr_assert_str_eq(ep.why, "", "that was the last time");
}

/* It would look for 5 s. */
Test(verbs_ep, librdmacm_is_not_asked_where_there_is_no_device)
{
	static char root[] = "/tmp/verbs_ep.XXXXXX";
	char path[64];

	cr_assert_not_null(mkdtemp(root));
	verbs_probe_root = root;
	snprintf(path, sizeof(path), "%s/sys", root);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/sys/class", root);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(resolve(), -ENODEV);
	cr_assert_str_eq(first_use, "");
	cr_assert_eq(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/sys", root);
	cr_assert_eq(rmdir(path), 0);
	cr_assert_eq(rmdir(root), 0);
}

/* ---- queue pair ---- */

/* With the 0 that the CM asks for it is 655 ms. */
Test(verbs_ep, the_server_waits_a_moment_for_a_receive)
{
	cr_assert_eq(verbs_qp_to_rts(&ep), 0);
	cr_assert_eq(changed.qp_state, IBV_QPS_RTS);
	cr_assert_eq(rnr_timer, 12);
	rnr_timer = 0xff;
	iwarp = true;
	cr_assert_eq(verbs_qp_to_rts(&ep), 0);
	cr_assert_eq(rnr_timer, 0xff, "iWARP has no such thing");
}

/* ---- keys ---- */

static struct ibv_mw all_mws[64];
static unsigned int mw_cnt;

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *m = &all_mws[mw_cnt++];

	*m = (struct ibv_mw){.context = &verbs, .rkey = mw_cnt << 8 | 0x7f};
	return m;
}

static int dealloc_mw(struct ibv_mw *m)
{
	return 0;
}

/* RFC 8166 section 8.1.2: old ones stay wrong for long, the next one is not plain to see. */
Test(verbs_ep, keys_of_a_window_go_round_in_strides)
{
	struct ibv_pd pd = {.context = &verbs};
	bool strides[256] = {false};
	unsigned int kinds = 0;

	verbs.ops.alloc_mw = alloc_mw;
	verbs.ops.dealloc_mw = dealloc_mw;
	ep.dev.pd = &pd;
	list_init(&ep.mws);
	for (unsigned int i = 0; i < 64; i++) {
		struct verbs_mw *m = verbs_mem_mw_alloc(&ep);
		bool keys[256] = {false};

		for (unsigned int j = 0; j < 256; j++) {
			uint32_t key = verbs_mem_mw_next_rkey(m);

			cr_assert_eq(verbs_mem_mw_next_rkey(m), key, "until it is bound");
			cr_assert_eq(key >> 8, i + 1);
			cr_assert_not(keys[key & 0xff], "key %x so soon again", key);
			keys[key & 0xff] = true;
			if (j == 0) {
				kinds += !strides[(key - 0x7f) & 0xff];
				strides[(key - 0x7f) & 0xff] = true;
			}
			m->mw->rkey = key;
		}
	}
	cr_assert_geq(kinds, 16, "%u strides of 64 windows", kinds);
	verbs_mem_free_mws(&ep);
}
