/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_nfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_keep.h"

struct live *sim_nfs_live;
struct nfs4_once *sim_nfs_once;

/* ---- callbacks ---- */

static void on_up(void *ctx)
{
	struct sim_lane *l = ctx;

	if (l->up++ || l->failed || l->stopped)
		fab_sim_fail("->up twice or after the end");
}

static void on_failed(void *ctx, const struct nfs4_failure *f)
{
	struct sim_lane *l = ctx;

	if (l->failed++ || l->up || l->stopped)
		fab_sim_fail("->failed twice, after ->up or after the end");
	l->failure = *f;
}

static void on_stopped(void *ctx)
{
	struct sim_lane *l = ctx;

	if (l->stopped++)
		fab_sim_fail("->stopped twice");
	l->stopped_ns = reactor_now(l->w->r);
}

static void on_unblocked(void *ctx)
{
	struct sim_lane *l = ctx;

	l->unblocked++;
}

static const struct nfs4_session_ops ops = {
	.up = on_up,
	.failed = on_failed,
	.stopped = on_stopped,
	.unblocked = on_unblocked,
};

/* ---- life ---- */

void sim_nfs_open(struct sim_nfs *w, const struct nfsd_sim_conf *sconf)
{
	memset(w, 0, sizeof(*w));
	fab_sim_reset();
	w->r = reactor_new_virtual();
	w->srv = nfsd_sim_new(sconf, NULL);
	w->conf.minor_max = 2;
	w->conf.minor_min = 1;
	w->conf.owner = "rpcrdmafs sim";
	w->conf.hard = true;
	w->conf.timeout_errno = EIO;
	w->conf.flavor = RPC_AUTH_SYS;
	rpcrdma_conf_default(&w->conf.rdma);
	w->conf.rdma.credits = 16;
	w->conf.rdma.data_size = 64 * 1024;
	w->conf.rdma.data_cnt = 8;
	w->cred.flavor = RPC_AUTH_SYS;
	w->cred.uid = w->cred.gid = 1000;
}

void sim_nfs_soft(struct sim_nfs *w, unsigned int retrans)
{
	w->conf.hard = false;
	w->conf.timeout_errno = ETIMEDOUT;
	w->conf.rdma.timeo_ns = 2 * SIM_SEC;
	w->conf.rdma.retrans = retrans;
}

void sim_nfs_client(struct sim_nfs *w, unsigned int lanes)
{
	w->cl = nfs4_client_new(&w->conf);
	if (!w->cl)
		fab_sim_fail("nfs4_client_new(): %s", strerror(errno));
	nfs4_keep_live(w->cl, sim_nfs_live, &(const struct slab_memory){.get = NULL});
	w->lanes = lanes;
	for (unsigned int i = 0; i < lanes; i++) {
		struct sim_lane *l = &w->lane[i];

		l->w = w;
		l->sess = nfs4_session_new(w->cl, w->r, &ops, l, &l->st);
		if (!l->sess)
			fab_sim_fail("nfs4_session_new(): %s", strerror(errno));
	}
}

int sim_nfs_start(struct sim_nfs *w, unsigned int lane)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};

	in.sin_addr.s_addr = htonl(0x0a000001);
	return nfs4_session_start(w->lane[lane].sess, NULL, (struct sockaddr *)&in);
}

bool sim_nfs_up(struct sim_nfs *w)
{
	for (unsigned int i = 0; i < w->lanes; i++) {
		uint64_t end = reactor_now(w->r) + 120 * SIM_SEC;

		if (sim_nfs_start(w, i))
			return false;
		while (!w->lane[i].up && !w->lane[i].failed && reactor_now(w->r) < end)
			reactor_turn(w->r, end - reactor_now(w->r));
		if (!w->lane[i].up)
			return false;
	}
	return true;
}

static void mount_done(void *ctx, const struct nfs4_failure *f)
{
	struct sim_nfs *w = ctx;

	w->mounted++;
	w->mount_ok = !f;
	if (f)
		w->mount_failure = *f;
}

bool sim_nfs_mount(struct sim_nfs *w, const char *path)
{
	unsigned int before = w->mounted;

	nfs4_mount_path(w->lane[0].sess, path, &w->cred, mount_done, w);
	if (w->mounted != before)
		fab_sim_fail("nfs4_mount_path() calls done from inside");
	if (!sim_nfs_until(w, &w->mounted, before + 1, 600 * SIM_SEC))
		fab_sim_fail("nfs4_mount_path() does not end");
	return w->mount_ok;
}

void sim_nfs_mounted(struct sim_nfs *w, unsigned int lanes)
{
	sim_nfs_client(w, lanes);
	if (!sim_nfs_up(w))
		fab_sim_fail("not up: %s", w->lane[0].failure.text);
	else if (!sim_nfs_mount(w, "/"))
		fab_sim_fail("not mounted: %s", w->mount_failure.text);
}

void sim_rule(struct sim_nfs *w, enum nfsd_sim_act act, uint32_t op, uint32_t skip, uint32_t count,
	uint64_t arg)
{
	struct nfsd_sim_rule rule = {
		.act = act, .op = op, .skip = skip, .count = count, .arg = arg};

	nfsd_sim_rule(w->srv, &rule);
}

uint64_t sim_ops(const struct sim_nfs *w, unsigned int op)
{
	return nfsd_sim_stats(w->srv).ops[op];
}

void sim_nfs_run(struct sim_nfs *w, uint64_t ns)
{
	uint64_t end = reactor_now(w->r) + ns;

	while (reactor_now(w->r) < end)
		reactor_turn(w->r, end - reactor_now(w->r));
}

bool sim_nfs_until(struct sim_nfs *w, const unsigned int *cnt, unsigned int want, uint64_t ns)
{
	uint64_t end = reactor_now(w->r) + ns;

	while (*cnt < want && reactor_now(w->r) < end)
		reactor_turn(w->r, end - reactor_now(w->r));
	return *cnt >= want;
}

void sim_nfs_stop(struct sim_nfs *w)
{
	for (unsigned int i = 0; i < w->lanes; i++) {
		struct sim_lane *l = &w->lane[i];

		if (l->failed || l->stopped)
			continue;
		l->stop_ns = reactor_now(w->r);
		nfs4_stop_session(l->sess);
	}
	for (unsigned int i = 0; i < w->lanes; i++) {
		struct sim_lane *l = &w->lane[i];

		if (!l->failed && !sim_nfs_until(w, &l->stopped, 1, 60 * SIM_SEC))
			fab_sim_fail("lane %u: ->stopped did not come", i);
		else if (!l->failed && l->stopped_ns - l->stop_ns > 5 * SIM_SEC)
			fab_sim_fail("lane %u: took %u ms to stop", i,
				(unsigned int)((l->stopped_ns - l->stop_ns) / SIM_MSEC));
	}
}

/* All requests can be had, so none is missing. */
static void check_requests(struct sim_nfs *w, unsigned int lane)
{
	struct rpcrdma *x = nfs4_session_xprt(w->lane[lane].sess);
	struct rpcrdma_req *reqs = calloc(w->conf.rdma.credits, sizeof(*reqs));
	unsigned int n = 0;

	while (n < w->conf.rdma.credits && !rpcrdma_req_get(x, &reqs[n]))
		n++;
	if (n != w->conf.rdma.credits)
		fab_sim_fail("lane %u: %u of %u requests came back", lane, n, w->conf.rdma.credits);
	while (n)
		rpcrdma_req_put(x, &reqs[--n]);
	free(reqs);
	if (rpcrdma_buf_free_count(x) != w->conf.rdma.data_cnt)
		fab_sim_fail("lane %u: %u of %u buffers came back", lane, rpcrdma_buf_free_count(x),
			w->conf.rdma.data_cnt);
}

const char *sim_nfs_close(struct sim_nfs *w, unsigned int left)
{
	static char text[700];
	unsigned int sessions, clients;

	sim_nfs_stop(w);
	for (unsigned int i = 0; i < w->lanes; i++)
		check_requests(w, i);
	for (unsigned int i = 0; i < w->lanes; i++)
		nfs4_session_free(w->lane[i].sess);
	nfs4_client_free(w->cl);
	reactor_turn(w->r, 0);
	sessions = nfsd_sim_live_sessions(w->srv);
	clients = nfsd_sim_live_clients(w->srv);
	if (!left && sessions)
		fab_sim_fail("%u sessions are left on the server", sessions);
	if (clients > left)
		fab_sim_fail("%u clients are left on the server", clients);
	if (fab_sim_live_keys() || fab_sim_live_objects())
		fab_sim_fail("%u keys, %u fabric objects are left", fab_sim_live_keys(),
			fab_sim_live_objects());
	nfsd_sim_free(w->srv);
	reactor_free(w->r);
	if (!fab_sim_failures())
		return NULL;
	snprintf(text, sizeof(text), "%u failures, first: %s", fab_sim_failures(),
		fab_sim_failure());
	return text;
}

/* ---- calls ---- */

static void call_done(struct nfs4_call *call)
{
	struct sim_nfs_call *c = container_of(call, struct sim_nfs_call, call);

	c->done_cnt++;
	c->err = call->err;
	if (c->opens && !call->err)
		nfs4_share_open(&c->state, call);
	nfs4_call_put(call);
	if (c->then)
		c->then(c);
}

static int get(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name)
{
	int err;

	c->done_cnt = 0;
	c->opens = false;
	c->err = -EINPROGRESS;
	snprintf(c->name, sizeof(c->name), "%s", name ? name : "");
	err = nfs4_call_get(w->lane[lane].sess, &c->call);
	if (err)
		return err;
	c->call.cred = &w->cred;
	c->call.done = call_done;
	c->call.once = sim_nfs_once;
	return 0;
}

static struct nfs4_str str(const char *s)
{
	return (struct nfs4_str){s, (uint32_t)strlen(s)};
}

static int check_start(struct sim_nfs_call *c)
{
	if (c->done_cnt)
		fab_sim_fail("->done from inside the start of a call");
	return 0;
}

int sim_nfs_lookup(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name)
{
	int err = get(w, lane, c, name);

	if (err)
		return err;
	c->call.u.lookup.dir = &nfs4_client_fsinfo(w->cl)->root;
	c->call.u.lookup.name = str(c->name);
	nfs4_lookup(&c->call);
	return check_start(c);
}

int sim_nfs_getattr(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c)
{
	int err = get(w, lane, c, NULL);

	if (err)
		return err;
	c->call.u.getattr.fh = &nfs4_client_fsinfo(w->cl)->root;
	nfs4_getattr(&c->call);
	return check_start(c);
}

int sim_nfs_mkdir(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name)
{
	int err = get(w, lane, c, name);

	if (err)
		return err;
	c->call.u.create.dir = &nfs4_client_fsinfo(w->cl)->root;
	c->call.u.create.name = str(c->name);
	c->call.u.create.type = NF4DIR;
	c->call.u.create.sattr.set = NFS4_ATTR_MODE;
	c->call.u.create.sattr.mode = 0755;
	nfs4_create(&c->call);
	return check_start(c);
}

int sim_nfs_remove(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name)
{
	int err = get(w, lane, c, name);

	if (err)
		return err;
	c->call.u.remove.dir = &nfs4_client_fsinfo(w->cl)->root;
	c->call.u.remove.name = str(c->name);
	nfs4_remove(&c->call);
	return check_start(c);
}

int sim_nfs_creat(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name)
{
	int err = get(w, lane, c, name);
	struct nfs4_op_open *o = &c->call.u.open;

	if (err)
		return err;
	o->dir = &nfs4_client_fsinfo(w->cl)->root;
	o->name = str(c->name);
	o->share_access = OPEN4_SHARE_ACCESS_BOTH;
	o->owner = nfs4_new_owner(w->cl);
	o->create = true;
	o->sattr.set = NFS4_ATTR_MODE;
	o->sattr.mode = 0644;
	c->opens = true;
	nfs4_open(&c->call);
	return check_start(c);
}

int sim_nfs_close_file(
	struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, struct sim_nfs_call *opened)
{
	int err = get(w, lane, c, NULL);

	if (err)
		return err;
	c->fh = opened->state.fh;
	c->call.u.close.fh = &c->fh;
	c->call.u.close.state = &opened->state;
	nfs4_close(&c->call);
	return check_start(c);
}

int sim_nfs_wait(struct sim_nfs *w, struct sim_nfs_call *c)
{
	if (!sim_nfs_until(w, &c->done_cnt, 1, 600 * SIM_SEC))
		return -ETIME;
	return c->err;
}
