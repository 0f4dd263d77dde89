/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several lanes with threads and real time on one simulated server, while the
 * main thread disturbs them. For -Db_sanitize=thread; a plain program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "fab_sim.h"
#include "nfsd_sim.h"
#include "rpcrdma.h"
#include "sim_log.h"
#include "xdr.h"

#define LANES 4
#define WIDTH 8
#define CALLS 1500
#define TURNS 20 /* of the main thread */

struct call {
	struct rpcrdma_req req; /* first */
	struct lane *lane;
	struct rpcrdma_buf *buf;
};

struct lane {
	pthread_t thread;
	struct reactor *r;
	struct rpcrdma *x;
	struct stats st;
	struct call calls[WIDTH];
	unsigned int started, bad;
	_Atomic unsigned int done, failed;
};

static struct capture *capture;
static uint64_t captured; /* frames, at least */

static void start(struct call *c);

static void call_done(struct rpcrdma_req *req)
{
	struct call *c = (struct call *)req;
	struct lane *l = c->lane;

	if (req->end != RPCRDMA_REPLY || req->reply_len < 24 ||
		c->buf->data[4999] != nfsd_sim_pattern(4999))
		l->bad++;
	rpcrdma_buf_put(l->x, c->buf);
	rpcrdma_req_put(l->x, req);
	l->done++;
	if (l->started < CALLS)
		start(c);
	else if (l->done == CALLS)
		rpcrdma_stop(l->x);
}

static void start(struct call *c)
{
	struct lane *l = c->lane;
	struct xdr_enc e;

	c->req.done = call_done;
	if (rpcrdma_req_get(l->x, &c->req))
		abort();
	c->buf = rpcrdma_buf_get(l->x);
	if (!c->buf)
		abort();
	xdr_enc_init(&e, c->req.head, c->req.head_room);
	xdr_put_u32(&e, rpcrdma_next_xid(l->x));
	xdr_put_u32(&e, 0);
	xdr_put_u32(&e, 2);
	xdr_put_u32(&e, NFSD_SIM_ECHO_PROG);
	xdr_put_u32(&e, NFSD_SIM_ECHO_VERS);
	xdr_put_u32(&e, NFSD_SIM_SOURCE);
	for (int i = 0; i < 4; i++)
		xdr_put_u32(&e, 0);
	xdr_put_u32(&e, 1);
	xdr_put_u32(&e, 5000);
	c->req.head_len = xdr_enc_len(&e);
	c->req.results[0].sink = (struct rpcrdma_span){c->buf, c->buf->data, 5000};
	c->req.result_cnt = 1;
	c->req.reply_max = 32;
	l->started++;
	if (rpcrdma_send(l->x, &c->req))
		abort();
}

static void on_up(void *ctx, bool first)
{
	struct lane *l = ctx;

	for (int i = 0; first && i < WIDTH; i++) {
		l->calls[i].lane = l;
		start(&l->calls[i]);
	}
}

static void on_failed(void *ctx, int err, const char *step)
{
	struct lane *l = ctx;

	l->failed++;
	reactor_stop(l->r);
}

static void on_stopped(void *ctx)
{
	reactor_stop(((struct lane *)ctx)->r);
}

static const struct rpcrdma_ops ops = {.up = on_up, .failed = on_failed, .stopped = on_stopped};

static void *lane_main(void *arg)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};
	struct rpcrdma_conf conf;
	struct lane *l = arg;

	rpcrdma_conf_default(&conf);
	conf.data_size = 16384;
	conf.data_cnt = WIDTH;
	conf.credits = WIDTH + 1;
	conf.capture = capture;
	conf.backoff_min_ns = NSEC_PER_MSEC;
	conf.backoff_max_ns = 20 * NSEC_PER_MSEC;
	l->r = reactor_new();
	l->x = rpcrdma_new(l->r, &conf, &ops, l, &l->st);
	if (!l->x || rpcrdma_connect(l->x, NULL, (struct sockaddr *)&in))
		abort();
	reactor_run(l->r);
	rpcrdma_free(l->x);
	reactor_free(l->r);
	return NULL;
}

/* A capture starts and ends while lanes send; with and without data, full or not. */
static bool toggle_capture(int i)
{
	struct capture_limits lim = {
		.max_bytes = i % 4 == 1 ? 1 << 16 : 1 << 24, .data = i % 3 == 0};
	struct capture_state st;
	int fd;

	capture_state(capture, &st);
	captured += st.frames;
	if (st.end == CAPTURE_RUNNING)
		return capture_stop(capture) == 0;
	fd = open("/dev/null", O_WRONLY);
	return capture_start(capture, fd, &lim) == 0;
}

/*
 * For the i-th part of all calls: however fast the lanes are, each turn finds them at work, and
 * what one began to capture the next one finds captured.
 */
static void wait_for(struct lane lanes[LANES], int i)
{
	unsigned int done = 0, wanted = (unsigned int)i * (LANES * CALLS / (TURNS + 1));

	while (done < wanted) {
		usleep(200);
		done = 0;
		for (int k = 0; k < LANES; k++)
			done += lanes[k].failed ? CALLS : lanes[k].done;
	}
}

int main(void)
{
	static struct lane lanes[LANES];
	unsigned int bad = 0, done = 0;
	struct nfsd_sim *srv;

	sim_log_quiet();
	fab_sim_reset();
	fab_sim_conf()->rnr_waits = true;
	srv = nfsd_sim_new(NULL, NULL);
	capture = capture_new();
	if (capture == NULL)
		abort();
	for (int i = 0; i < LANES; i++)
		pthread_create(&lanes[i].thread, NULL, lane_main, &lanes[i]);
	for (int i = 0; i < TURNS; i++) {
		wait_for(lanes, i);
		bad += !toggle_capture(i);
		nfsd_sim_callback(srv, NFSD_SIM_CB_NULL, true);
		if (i > 5 && i % 5 == 0)
			fab_sim_break_all(-ECONNRESET);
	}
	for (int i = 0; i < LANES; i++) {
		pthread_join(lanes[i].thread, NULL);
		bad += lanes[i].bad + lanes[i].failed;
		done += lanes[i].done;
	}
	capture_free(capture);
	nfsd_sim_free(srv);
	printf("%u calls, %u bad, %u failures%s%s\n", done, bad, fab_sim_failures(),
		fab_sim_failures() ? ": " : "", fab_sim_failure());
	return bad || captured == 0 || done != LANES * CALLS || fab_sim_failures() ||
	       fab_sim_live_keys() || fab_sim_live_objects();
}
