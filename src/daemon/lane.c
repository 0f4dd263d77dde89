/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "latency.h"
#include "log.h"
#include "nfs4_keep.h"
#include "reactor.h"
#include "rpcrdma.h"
#include "stats.h"

/* Of a lane for metadata: so many READDIRs, symbolic links and values of attributes at once. */
#define METADATA_BUFS 8u

/* What main tells a lane to do; runs on the lane's thread. */
struct lane_msg {
	struct reactor_msg msg;
	struct lane *lane;
	void (*run)(struct lane_msg *m);
	struct sockaddr_storage src, dst;
	bool has_src;
	const char *path;
	const struct rpc_cred *cred;
	int err;
	sem_t *done; /* the sender waits */
	struct fs *fs;
	unsigned int ops;
};

/* What a lane tells main; runs on main's thread. */
struct lane_report_msg {
	struct reactor_msg msg;
	struct lane_report report;
};

struct lane {
	unsigned int id;
	bool metadata;
	pthread_t thread;
	struct reactor *reactor;
	struct nfs4_client *client;
	struct nfs4_session *sess;
	struct fs_lane *fsl;
	struct reactor *main_reactor;
	lane_report_fn report;
	void *report_ctx;
	struct stats stats;
	struct reactor_msg ping;
	bool pinged; /* atomic: ping is under way */
	sem_t release;
	struct latency latency;
};

static void report_run(struct reactor_msg *msg)
{
	struct lane_report_msg *m = container_of(msg, struct lane_report_msg, msg);

	m->report.lane->report(m->report.lane->report_ctx, &m->report);
	free(m);
}

/* A report that cannot be allocated would hang the mount for ever: retry is all there is. */
static void lane_report(struct lane *l, enum lane_report_type type, const struct nfs4_failure *f)
{
	struct lane_report_msg *m;

	while ((m = calloc(1, sizeof(*m))) == NULL) {
		struct timespec ms = {.tv_nsec = 1000000};

		nanosleep(&ms, NULL);
	}
	m->msg.run = report_run;
	m->report.lane = l;
	m->report.type = type;
	if (f != NULL)
		m->report.failure = *f;
	reactor_post(l->main_reactor, &m->msg);
}

static void sess_up(void *ctx)
{
	lane_report(ctx, LANE_UP, NULL);
}

static void sess_failed(void *ctx, const struct nfs4_failure *f)
{
	lane_report(ctx, LANE_FAILED, f);
}

static void sess_stopped(void *ctx)
{
	lane_report(ctx, LANE_STOPPED, NULL);
}

static void sess_unblocked(void *ctx)
{
	struct lane *l = ctx;

	if (l->fsl != NULL)
		fs_lane_unblocked(l->fsl);
}

static const struct nfs4_session_ops sess_ops = {
	.up = sess_up,
	.failed = sess_failed,
	.stopped = sess_stopped,
	.unblocked = sess_unblocked,
};

static void fsl_report(void *ctx, enum fs_lane_event event)
{
	static const enum lane_report_type types[] = {
		[FS_LANE_EXITED] = LANE_EXITED,
		[FS_LANE_CAUGHT_UP] = LANE_CAUGHT_UP,
		[FS_LANE_ENDED] = LANE_IDLE,
	};

	lane_report(ctx, types[event], NULL);
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	char name[16];

	if (l->metadata)
		snprintf(name, sizeof(name), "metalane");
	else
		snprintf(name, sizeof(name), "lane%u", l->id);
	pthread_setname_np(pthread_self(), name);
	reactor_run(l->reactor);
	return NULL;
}

struct lane *lane_new(unsigned int id, struct nfs4_client *client, bool metadata,
	struct reactor *main_reactor, lane_report_fn report, void *ctx)
{
	struct lane *l = calloc(1, sizeof(*l));
	int err;

	if (l == NULL)
		return NULL;
	l->id = id;
	l->metadata = metadata;
	l->client = client;
	l->main_reactor = main_reactor;
	l->report = report;
	l->report_ctx = ctx;
	l->stats.latency = &l->latency;
	sem_init(&l->release, 0, 0);
	l->reactor = reactor_new();
	if (l->reactor == NULL)
		goto out_lane;
	/* Spinning for our own completion answers sooner than a sleep and a wake-up (design 2). */
	reactor_set_spin_ns(l->reactor, 30 * NSEC_PER_USEC);
	l->sess = metadata ? nfs4_session_new_small(
				     client, l->reactor, &sess_ops, l, &l->stats, METADATA_BUFS)
			   : nfs4_session_new(client, l->reactor, &sess_ops, l, &l->stats);
	if (l->sess == NULL)
		goto out_reactor;
	/* Signals are main's: its signalfd must be the only one to get them. */
	err = pthread_create(&l->thread, NULL, lane_main, l);
	if (err != 0) {
		errno = err;
		goto out_sess;
	}
	return l;
out_sess:
	err = errno;
	nfs4_session_free(l->sess);
	errno = err;
out_reactor:
	err = errno;
	reactor_free(l->reactor);
	errno = err;
out_lane:
	err = errno;
	free(l);
	errno = err;
	return NULL;
}

void lane_join(struct lane *l)
{
	reactor_stop(l->reactor);
	pthread_join(l->thread, NULL);
}

void lane_free(struct lane *l)
{
	fs_lane_free(l->fsl);
	nfs4_session_free(l->sess);
	reactor_free(l->reactor);
	sem_destroy(&l->release);
	free(l);
}

static void msg_run(struct reactor_msg *msg)
{
	struct lane_msg *m = container_of(msg, struct lane_msg, msg);
	sem_t *done = m->done;

	m->run(m);
	/* With a waiter the message is on the waiter's stack: it is gone after the post. */
	if (done != NULL)
		sem_post(done);
	else
		free(m);
}

/* A message without a waiter; out of memory is fatal to the mount attempt alone, so it is loud. */
static struct lane_msg *msg_new(struct lane *l, void (*run)(struct lane_msg *))
{
	struct lane_msg *m;

	while ((m = calloc(1, sizeof(*m))) == NULL) {
		struct timespec ms = {.tv_nsec = 1000000};

		nanosleep(&ms, NULL);
	}
	m->msg.run = msg_run;
	m->lane = l;
	m->run = run;
	return m;
}

static void run_connect(struct lane_msg *m)
{
	struct nfs4_failure f;
	int err = nfs4_session_start(m->lane->sess,
		m->has_src ? (const struct sockaddr *)&m->src : NULL,
		(const struct sockaddr *)&m->dst);
	const char *detail = rpcrdma_failure_detail(nfs4_session_xprt(m->lane->sess));

	if (err == 0)
		return;
	nfs4_failure_start(&f, err, detail);
	lane_report(m->lane, LANE_FAILED, &f);
}

static socklen_t addr_len(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void lane_connect(struct lane *l, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct lane_msg *m = msg_new(l, run_connect);

	memcpy(&m->dst, dst, addr_len(dst));
	if (src != NULL) {
		memcpy(&m->src, src, addr_len(src));
		m->has_src = true;
	}
	reactor_post(l->reactor, &m->msg);
}

static void path_done(void *ctx, const struct nfs4_failure *f)
{
	lane_report(ctx, LANE_PATH_DONE, f);
}

static void run_mount_path(struct lane_msg *m)
{
	nfs4_mount_path(m->lane->sess, m->path, m->cred, path_done, m->lane);
}

void lane_mount_path(struct lane *l, const char *path, const struct rpc_cred *cred)
{
	struct lane_msg *m = msg_new(l, run_mount_path);

	m->path = path;
	m->cred = cred;
	reactor_post(l->reactor, &m->msg);
}

static void run_fs_new(struct lane_msg *m)
{
	struct lane *l = m->lane;

	l->fsl = fs_lane_new(m->fs, l->reactor, l->sess, m->ops, fsl_report, l, &l->stats);
	m->err = l->fsl == NULL ? -errno : 0;
	if (l->fsl != NULL && l->metadata)
		fs_metalane_make(l->fsl);
}

int lane_fs_new(struct lane *l, struct fs *fs, unsigned int ops)
{
	sem_t done;
	struct lane_msg m = {
		.msg.run = msg_run,
		.lane = l,
		.run = run_fs_new,
		.fs = fs,
		.ops = ops,
		.done = &done,
	};

	sem_init(&done, 0, 0);
	reactor_post(l->reactor, &m.msg);
	while (sem_wait(&done) != 0)
		;
	sem_destroy(&done);
	return m.err;
}

static void run_fs_start(struct lane_msg *m)
{
	int err = fs_lane_start(m->lane->fsl);

	if (err == 0)
		return;
	log_err("lane %u cannot read /dev/fuse: %s", m->lane->id, strerror(-err));
	lane_report(m->lane, LANE_EXITED, NULL);
}

void lane_fs_start(struct lane *l)
{
	reactor_post(l->reactor, &msg_new(l, run_fs_start)->msg);
}

static void run_drain(struct lane_msg *m)
{
	if (m->lane->fsl != NULL)
		fs_lane_stop(m->lane->fsl);
	else
		lane_report(m->lane, LANE_IDLE, NULL);
}

void lane_drain(struct lane *l)
{
	reactor_post(l->reactor, &msg_new(l, run_drain)->msg);
}

static void run_stop(struct lane_msg *m)
{
	nfs4_stop_session(m->lane->sess);
}

void lane_stop(struct lane *l)
{
	reactor_post(l->reactor, &msg_new(l, run_stop)->msg);
}

static void run_pause(struct lane_msg *m)
{
	fs_lane_pause(m->lane->fsl);
}

void lane_pause(struct lane *l)
{
	reactor_post(l->reactor, &msg_new(l, run_pause)->msg);
}

static void run_go_on(struct lane_msg *m)
{
	fs_lane_pause_end(m->lane->fsl);
}

void lane_go_on(struct lane *l)
{
	reactor_post(l->reactor, &msg_new(l, run_go_on)->msg);
}

static void run_hold(struct lane_msg *m)
{
	struct lane *l = m->lane;

	if (!fs_lane_pause_is_quiet(l->fsl)) {
		lane_report(l, LANE_BUSY, NULL);
		return;
	}
	lane_report(l, LANE_HELD, NULL);
	while (sem_wait(&l->release) != 0)
		;
}

void lane_hold(struct lane *l)
{
	reactor_post(l->reactor, &msg_new(l, run_hold)->msg);
}

void lane_release(struct lane *l)
{
	sem_post(&l->release);
}

void lane_put_session(const struct lane *l, struct tables_out *t)
{
	nfs4_keep_put_session(t, l->sess);
}

static void run_ping(struct reactor_msg *msg)
{
	struct lane *l = container_of(msg, struct lane, ping);

	__atomic_store_n(&l->pinged, false, __ATOMIC_RELEASE);
}

void lane_ping(struct lane *l)
{
	if (!lane_answered(l))
		return;
	__atomic_store_n(&l->pinged, true, __ATOMIC_RELAXED);
	l->ping.run = run_ping;
	reactor_post(l->reactor, &l->ping);
}

bool lane_answered(const struct lane *l)
{
	return !__atomic_load_n(&l->pinged, __ATOMIC_ACQUIRE);
}

const struct stats *lane_stats(const struct lane *l)
{
	return &l->stats;
}

void lane_view(const struct lane *l, struct nfs4_session_view *ret)
{
	nfs4_session_view(l->sess, ret);
}
