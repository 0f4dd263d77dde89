/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three lanes, each with a thread, a connection and a session of its own under
 * one client ID, work while the server is restarted, loses its sessions and
 * drops its connections; then all stop at once. What they share is the client
 * and its token.
 *
 * RACE_NAMES (race_owners): each owner is a name that was never heard before, so that every reply
 * waits for the idmap's thread.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fab_sim.h"
#include "idmap.h"
#include "nfs4_held.h"
#include "nfsd_sim.h"

#define LANES      3
#define CALLS      4 /* in flight on each lane */
#define ROUNDS     12
#define ROUND_US   60000
#define MUST(cond) ((cond) ? (void)0 : die(#cond, __LINE__))

static _Noreturn void die(const char *what, int line)
{
	fprintf(stderr, "race_nfs4: %s, line %d; sim: %s\n", what, line, fab_sim_failure());
	exit(1);
}

struct lane {
	pthread_t thread;
	struct reactor *r;
	struct nfs4_session *sess;
	struct stats st;
	struct nfs4_call calls[CALLS];
	struct reactor_msg start, work, stop;
	unsigned int in_flight;
	bool stopping;
};

static struct nfs4_client *cl;
static struct lane lanes[LANES];
static const struct rpc_cred cred = {.flavor = RPC_AUTH_SYS};
static sem_t event; /* up, mounted or stopped */
static _Atomic unsigned int done;

static void on_up(void *ctx)
{
	sem_post(&event);
}

static void on_failed(void *ctx, const struct nfs4_failure *f)
{
	die(f->text, __LINE__);
}

static void on_stopped(void *ctx)
{
	struct lane *l = ctx;

	MUST(l->in_flight == 0);
	reactor_stop(l->r);
}

static void on_unblocked(void *ctx)
{
}

static const struct nfs4_session_ops ops = {
	.up = on_up,
	.failed = on_failed,
	.stopped = on_stopped,
	.unblocked = on_unblocked,
};

#ifdef RACE_NAMES
static struct idmap *idmap;

/* x7@sim is 7. */
static int to_id(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id)
{
	*ret_id = (uint32_t)atoi(name + 1);
	if (*ret_id % 8 == 0)
		usleep(300);
	return 0;
}

static const struct idmap_resolver res = {.to_id = to_id};

static void check_owner(const struct lane *l, const struct nfs4_attr *a)
{
	MUST(!a->valid || l->stopping || a->owner_late || (!a->owner_alien && a->uid && a->gid));
}
#endif

static void getattr(struct lane *l, struct nfs4_call *call)
{
	call->u.getattr.fh = &nfs4_client_fsinfo(cl)->root;
	l->in_flight++;
	nfs4_getattr(call);
}

static void call_done(struct nfs4_call *call)
{
	struct lane *l = &lanes[0];

	while (l->sess != call->sess)
		l++;
	l->in_flight--;
	MUST(call->err == 0 || l->stopping);
#ifdef RACE_NAMES
	check_owner(l, &call->u.getattr.attr);
#endif
	done++;
	if (l->stopping)
		nfs4_call_put(call);
	else
		getattr(l, call);
}

static void run_start(struct reactor_msg *msg)
{
	struct lane *l = container_of(msg, struct lane, start);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};

	in.sin_addr.s_addr = htonl(0x0a000001);
	MUST(nfs4_session_start(l->sess, NULL, (struct sockaddr *)&in) == 0);
}

static void mounted(void *ctx, const struct nfs4_failure *f)
{
	MUST(!f);
	sem_post(&event);
}

static void run_mount(struct reactor_msg *msg)
{
	nfs4_mount_path(lanes[0].sess, "/", &cred, mounted, NULL);
}

static void run_work(struct reactor_msg *msg)
{
	struct lane *l = container_of(msg, struct lane, work);

	for (int i = 0; i < CALLS; i++) {
		MUST(nfs4_call_get(l->sess, &l->calls[i]) == 0);
		l->calls[i].cred = &cred;
		l->calls[i].done = call_done;
		getattr(l, &l->calls[i]);
	}
}

static void run_stop(struct reactor_msg *msg)
{
	struct lane *l = container_of(msg, struct lane, stop);

	l->stopping = true;
	nfs4_stop_session(l->sess);
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;

	reactor_run(l->r);
	return NULL;
}

static void make_client(void)
{
	struct nfs4_conf conf = {
		.minor_max = 2,
		.minor_min = 1,
		.owner = "race",
		.hard = true,
		.timeout_errno = 5,
		.flavor = RPC_AUTH_SYS,
	};

	rpcrdma_conf_default(&conf.rdma);
	conf.rdma.credits = 8;
	conf.rdma.data_size = 65536;
	conf.rdma.data_cnt = 4;
	conf.rdma.backoff_min_ns = NSEC_PER_MSEC;
	conf.rdma.backoff_max_ns = 20 * NSEC_PER_MSEC;
#ifdef RACE_NAMES
	idmap = conf.idmap = idmap_new(&res, NULL, true);
	MUST(idmap);
#endif
	cl = nfs4_client_new(&conf);
	MUST(cl);
	for (int i = 0; i < LANES; i++) {
		lanes[i].r = reactor_new();
		lanes[i].start.run = run_start;
		lanes[i].work.run = run_work;
		lanes[i].stop.run = run_stop;
		lanes[i].sess = nfs4_session_new(cl, lanes[i].r, &ops, &lanes[i], &lanes[i].st);
		MUST(lanes[i].sess);
		MUST(pthread_create(&lanes[i].thread, NULL, lane_main, &lanes[i]) == 0);
	}
}

static void start_all(void)
{
	static struct reactor_msg mount = {.run = run_mount};

	reactor_post(lanes[0].r, &lanes[0].start);
	sem_wait(&event);
	reactor_post(lanes[0].r, &mount);
	sem_wait(&event);
	for (int i = 1; i < LANES; i++)
		reactor_post(lanes[i].r, &lanes[i].start);
	for (int i = 1; i < LANES; i++)
		sem_wait(&event);
	for (int i = 0; i < LANES; i++)
		reactor_post(lanes[i].r, &lanes[i].work);
}

int main(void)
{
	struct nfsd_sim_conf sconf;
	struct nfsd_sim *srv;
	unsigned int before;

	fab_sim_reset();
	nfsd_sim_conf_default(&sconf);
#ifdef RACE_NAMES
	sconf.fresh_names = true;
#endif
	srv = nfsd_sim_new(&sconf, NULL);
	sem_init(&event, 0, 0);
	make_client();
	start_all();
	for (int i = 0; i < ROUNDS; i++) {
		before = done;
		usleep(ROUND_US);
		if (i % 3 == 0)
			nfsd_sim_restart(srv, 0, false);
		else if (i % 3 == 1)
			nfsd_sim_drop_sessions(srv);
		else
			nfsd_sim_disconnect(srv);
		for (int j = 0; j < 200 && done == before; j++)
			usleep(10000);
		MUST(done != before);
	}
	usleep(ROUND_US);
	for (int i = 0; i < LANES; i++)
		reactor_post(lanes[i].r, &lanes[i].stop);
	for (int i = 0; i < LANES; i++)
		pthread_join(lanes[i].thread, NULL);
	for (int i = 0; i < LANES; i++) {
		nfs4_session_free(lanes[i].sess);
		reactor_free(lanes[i].r);
	}
	nfs4_client_free(cl);
#ifdef RACE_NAMES
	idmap_free(idmap);
#endif
	MUST(nfsd_sim_live_clients(srv) == 0);
	nfsd_sim_free(srv);
	MUST(fab_sim_failures() == 0);
	printf("%u calls\n", done);
	return 0;
}
