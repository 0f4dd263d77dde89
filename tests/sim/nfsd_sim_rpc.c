/* SPDX-License-Identifier: BSD-3-Clause */
/* RPC: calls of the client, the test program, and calls to the client. */
#include "nfsd_sim_int.h"

#include <stdio.h>
#include <stdlib.h>

#define NFS_PROG         100003u
#define CB_PROC_COMPOUND 1u

struct rpc_in {
	uint32_t xid, prog, vers, proc, uid, gid;
};

static bool get_call(struct rd *r, struct rpc_in *in)
{
	uint32_t len, flavor;
	const uint8_t *cred;

	in->xid = rd_u32(r);
	if (rd_u32(r) != 0 || rd_u32(r) != 2)
		return false;
	in->prog = rd_u32(r);
	in->vers = rd_u32(r);
	in->proc = rd_u32(r);
	flavor = rd_u32(r);
	cred = rd_opaque(r, &len);
	in->uid = in->gid = 65534;
	if (r->bad || len > 400)
		return false;
	if (flavor == 1) {
		struct rd c = {cred, cred + len, false};
		uint32_t name_len, gids;

		rd_u32(&c);
		rd_opaque(&c, &name_len);
		in->uid = rd_u32(&c);
		in->gid = rd_u32(&c);
		gids = rd_u32(&c);
		if (c.bad || name_len > 255 || gids > 16)
			return false;
		for (uint32_t i = 0; i < gids; i++)
			rd_u32(&c);
		if (c.bad || c.p != c.end)
			return false;
	}
	rd_u32(r); /* verifier */
	rd_opaque(r, &len);
	return !r->bad && !len;
}

/* What the rules need to know before the call is executed. */
void rpc_scan(struct job *job)
{
	struct rd r = {job->call, job->call + job->call_len, false};
	struct rpc_in in = {0};

	if (!get_call(&r, &in)) {
		fab_sim_fail("xid %#x: RPC call header cannot be decoded", job->xid);
		return;
	}
	job->is_null = in.proc == 0;
	if (in.prog == NFS_PROG && in.proc == 1)
		compound_scan(&r, job->op_seen);
}

static void wr_accepted(struct wr *w, uint32_t xid, uint32_t stat)
{
	wr_u32(w, xid);
	wr_u32(w, 1); /* REPLY */
	wr_u32(w, 0); /* MSG_ACCEPTED */
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, stat);
	if (stat == 2) { /* PROG_MISMATCH */
		wr_u32(w, 4);
		wr_u32(w, 4);
	}
}

/* ---- the test program ---- */

uint32_t nfsd_sim_sum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + p[i];
	return sum;
}

static void wr_pattern(struct wr *w, uint32_t len)
{
	uint8_t *p = malloc(len + 1);

	for (uint32_t i = 0; i < len; i++)
		p[i] = nfsd_sim_pattern(i);
	wr_opaque(w, p, len);
	free(p);
}

static void echo_program(struct job *job, const struct rpc_in *in, struct rd *r)
{
	struct wr *w = &job->rep;
	const uint8_t *p;
	uint32_t n, len;

	switch (in->proc) {
	case NFSD_SIM_NULL:
		break;
	case NFSD_SIM_ECHO:
		p = rd_opaque(r, &len);
		if (!r->bad)
			wr_opaque(w, p, len);
		break;
	case NFSD_SIM_SINK:
		rd_u32(r);
		p = rd_opaque(r, &len);
		if (r->bad)
			break;
		wr_u32(w, len);
		wr_u32(w, nfsd_sim_sum(p, len));
		wr_u32(w, (uint32_t)(r->end - r->p));
		r->p = r->end;
		break;
	case NFSD_SIM_SOURCE:
		n = rd_u32(r);
		for (uint32_t i = 0; i < n && !r->bad && i < DDP_MAX; i++) {
			len = rd_u32(r);
			wr_u32(w, i);
			job->ddp[i].off = w->len + 4;
			job->ddp[i].len = len;
			job->ddp_cnt = i + 1;
			wr_pattern(w, len);
		}
		break;
	case NFSD_SIM_BIG:
		len = rd_u32(r);
		if (!r->bad)
			wr_pattern(w, len);
		break;
	default:
		w->len = 0;
		wr_accepted(w, in->xid, 3);
		return;
	}
	if (r->bad || r->p != r->end)
		fab_sim_fail(
			"xid %#x: arguments of procedure %u cannot be decoded", job->xid, in->proc);
}

/* ---- execution ---- */

void rpc_execute(struct job *job)
{
	struct nfsd_sim *sim = job->conn->sim;
	struct rd r = {job->call, job->call + job->call_len, false};
	struct rpc_in in = {0};
	struct wr *w = &job->rep;

	w->cap = 4096;
	w->base = malloc(w->cap);
	w->grow = true;
	if (!get_call(&r, &in)) {
		wr_accepted(w, job->xid, 4);
		return;
	}
	if (job->deny_stat >= 0) {
		wr_u32(w, in.xid);
		wr_u32(w, 1);
		wr_u32(w, 1); /* MSG_DENIED */
		wr_u32(w, job->deny_stat ? 1 : 0);
		wr_u32(w, job->deny_stat ? (uint32_t)job->deny_stat : 2);
		if (!job->deny_stat)
			wr_u32(w, 2);
		return;
	}
	if (job->accept_stat > 0) {
		wr_accepted(w, in.xid, (uint32_t)job->accept_stat);
		sim->unsure++;
		return;
	}
	if (in.prog == NFS_PROG && in.vers != 4) {
		wr_accepted(w, in.xid, 2);
	} else if (in.prog == NFS_PROG && in.proc > 1) {
		wr_accepted(w, in.xid, 3);
	} else if (in.prog == NFS_PROG) {
		struct cmp c = {.sim = sim,
			.conn = job->conn,
			.job = job,
			.in = r,
			.out = w,
			.uid = in.uid,
			.gid = in.gid};

		wr_accepted(w, in.xid, 0);
		if (in.proc == 1)
			compound_execute(&c);
	} else if (in.prog == NFSD_SIM_ECHO_PROG) {
		wr_accepted(w, in.xid, 0);
		echo_program(job, &in, &r);
	} else {
		wr_accepted(w, in.xid, 1);
	}
}

/* ---- the backchannel ---- */

struct cb_msg {
	struct reactor_msg msg; /* first */
	struct nfsd_sim *sim;
	uint64_t conn_id;
	uint32_t len;
	uint8_t bytes[512];
};

static void send_cb(struct reactor_msg *msg)
{
	struct cb_msg *m = (struct cb_msg *)msg;

	pthread_mutex_lock(&m->sim->lock);
	list_for_each (node, &m->sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);

		if (conn->id != m->conn_id)
			continue;
		conn->cb_out++;
		fab_sim_conn_send(conn->fab, m->bytes, m->len, 0);
	}
	pthread_mutex_unlock(&m->sim->lock);
	free(m);
}

static struct session *back_session(struct nfsd_sim *sim, const struct sconn *conn)
{
	list_for_each (node, &sim->sessions) {
		struct session *s = container_of(node, struct session, link);

		if (conn->has_back && !memcmp(s->id, conn->back_session, 16))
			return s;
	}
	return NULL;
}

/* w NULL: nobody's. */
static void wr_notify_lock(struct wr *out, const struct nfsd_sim *sim, const struct lock_range *w)
{
	struct cmp c = {.sim = (struct nfsd_sim *)sim, .out = out};

	wr_u32(out, 13);
	if (w)
		wr_fh(&c, w->node);
	else
		wr_opaque(out, "filehandle", 10);
	wr_u64(out, w ? w->client->id : 77);
	wr_opaque(out, w ? (const char *)w->owner : "somebody", w ? w->owner_len : 8);
}

static void build_cb(struct nfsd_sim *sim, struct wr *w, enum nfsd_sim_cb what, struct session *s,
	const struct lock_range *lock)
{
	uint32_t xid = sim->next_cb_xid++;
	uint32_t prog = s ? s->cb_prog : 0x40000000;

	wr_u32(w, xid);
	wr_u32(w, 1);
	wr_u32(w, 2); /* credits asked for, as nfsd */
	wr_u32(w, SIM_RDMA_MSG);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, xid);
	wr_u32(w, 0);
	wr_u32(w, 2);
	wr_u32(w, what == NFSD_SIM_CB_UNKNOWN_PROG ? prog + 77 : prog);
	wr_u32(w, what == NFSD_SIM_CB_UNKNOWN_VERS ? 9 : 1);
	wr_u32(w, what == NFSD_SIM_CB_NULL           ? 0
		  : what == NFSD_SIM_CB_UNKNOWN_PROC ? 7
						     : CB_PROC_COMPOUND);
	for (int i = 0; i < 4; i++) /* AUTH_NONE twice */
		wr_u32(w, 0);
	if (what == NFSD_SIM_CB_NULL || what == NFSD_SIM_CB_UNKNOWN_PROG ||
		what == NFSD_SIM_CB_UNKNOWN_VERS || what == NFSD_SIM_CB_UNKNOWN_PROC)
		return;
	wr_u32(w, 0); /* tag */
	wr_u32(w, 1); /* minor version */
	wr_u32(w, 0); /* callback_ident */
	if (what == NFSD_SIM_CB_GARBAGE) {
		wr_u32(w, 0x7fffffff);
		return;
	}
	if (s && what == NFSD_SIM_CB_AGAIN)
		s->cb_seq--;
	else if (s && what == NFSD_SIM_CB_AHEAD)
		s->cb_seq += 5;
	wr_u32(w, what == NFSD_SIM_CB_RECALL_ANY || what == NFSD_SIM_CB_RECALL ||
				  what == NFSD_SIM_CB_BAD_OP || what == NFSD_SIM_CB_NOTIFY_LOCK
			  ? 2
			  : 1);
	wr_u32(w, 11); /* CB_SEQUENCE */
	wr_raw(w, s ? s->id : (const uint8_t *)"0123456789abcdef", 16);
	wr_u32(w, s ? ++s->cb_seq : 1);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, 0);
	if (what == NFSD_SIM_CB_RECALL_ANY) {
		wr_u32(w, 8);
		wr_u32(w, 16);
		wr_u32(w, 1);
		wr_u32(w, 1);
	} else if (what == NFSD_SIM_CB_RECALL) {
		wr_u32(w, 4);
		wr_raw(w, "stateid-stateid-", 16);
		wr_u32(w, 0);
		wr_opaque(w, "filehandle", 10);
	} else if (what == NFSD_SIM_CB_BAD_OP) {
		wr_u32(w, 9999);
	} else if (what == NFSD_SIM_CB_NOTIFY_LOCK) {
		wr_notify_lock(w, sim, lock);
	}
}

static void post_cb(struct nfsd_sim *sim, struct sconn *conn, enum nfsd_sim_cb what,
	struct session *s, const struct lock_range *lock)
{
	struct cb_msg *m = calloc(1, sizeof(*m));
	struct wr w = {m->bytes, 0, sizeof(m->bytes), false};

	m->msg.run = send_cb;
	m->sim = sim;
	m->conn_id = conn->id;
	build_cb(sim, &w, what, s, lock);
	m->len = (uint32_t)w.len;
	reactor_post(conn->reactor, &m->msg);
}

unsigned int callback_lock(struct nfsd_sim *sim, const struct lock_range *w)
{
	list_for_each (node, &sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);
		struct session *s = back_session(sim, conn);

		if (!s || s->client != w->client)
			continue;
		post_cb(sim, conn, NFSD_SIM_CB_NOTIFY_LOCK, s, w);
		return 1;
	}
	return 0;
}

unsigned int nfsd_sim_callback(struct nfsd_sim *sim, enum nfsd_sim_cb what, bool any)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);
		struct session *s = back_session(sim, conn);

		if (!s && !any)
			continue;
		post_cb(sim, conn, what, s, NULL);
		cnt++;
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

void cb_reply(struct sconn *conn, const uint8_t *msg, size_t len)
{
	struct nfsd_sim_stats *st = &conn->sim->stats;
	struct rd r = {msg, msg + len, false};
	uint32_t xid = rd_u32(&r), stat, n;

	if (!conn->cb_out) {
		fab_sim_fail("xid %#x: a reply to no call of ours", xid);
		return;
	}
	conn->cb_out--;
	if (rd_u32(&r) != 1)
		fab_sim_fail("xid %#x: not an RPC reply", xid);
	st->cb_replies++;
	if (rd_u32(&r)) { /* MSG_DENIED */
		st->cb_accept_stat = 100;
		return;
	}
	rd_u32(&r);
	rd_opaque(&r, &n);
	stat = rd_u32(&r);
	st->cb_accept_stat = stat;
	st->cb_status = 0;
	if (!stat && r.p != r.end)
		st->cb_status = rd_u32(&r);
	if (r.bad)
		fab_sim_fail("xid %#x: callback reply cannot be decoded", xid);
	if (len > 104)
		fab_sim_fail("xid %#x: callback reply of %zu bytes: nfsd drops it", xid, len);
}
