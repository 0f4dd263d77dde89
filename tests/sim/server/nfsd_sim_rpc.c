/* SPDX-License-Identifier: BSD-3-Clause */
/* RPC: calls of the client, and the test program. */
#include "nfsd_sim_int.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NFS_PROG 100003u

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

/* It comes again after so many bytes. Copied and compared at once: byte by byte takes half of the
 * time of a sweep.
 */
#define PERIOD (1u << 16)
static uint8_t period[PERIOD];
static pthread_once_t period_once = PTHREAD_ONCE_INIT;

static void make_period(void)
{
	for (uint32_t i = 0; i < PERIOD; i++)
		period[i] = nfsd_sim_pattern(i);
}

/* As much of `len` bytes from *off on as lies in one piece; *off goes on. */
static const uint8_t *piece(uint32_t *off, size_t len, size_t *ret_cnt)
{
	uint32_t at = *off % PERIOD;

	pthread_once(&period_once, make_period);
	*ret_cnt = len < PERIOD - at ? len : PERIOD - at;
	*off += (uint32_t)*ret_cnt;
	return period + at;
}

void nfsd_sim_fill(uint8_t *p, uint32_t off, size_t len)
{
	for (size_t cnt; len > 0; p += cnt, len -= cnt) {
		const uint8_t *from = piece(&off, len, &cnt);

		memcpy(p, from, cnt);
	}
}

bool nfsd_sim_is_pattern(const uint8_t *p, uint32_t off, size_t len)
{
	for (size_t cnt; len > 0; p += cnt, len -= cnt) {
		const uint8_t *as = piece(&off, len, &cnt);

		if (memcmp(p, as, cnt) != 0)
			return false;
	}
	return true;
}

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

	nfsd_sim_fill(p, 0, len);
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
