/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * COPY, OFFLOAD_STATUS, OFFLOAD_CANCEL as Linux' nfsd does them: a synchronous
 * one does a part, not durable; any other is answered at once, goes on, and is
 * forgotten when it ends.
 */
#include "nfsd_sim_held.h"

#include <stdlib.h>

static void drop(struct nfsd_sim *sim, struct copying *cp)
{
	list_del(&cp->link);
	cp->src->opens--;
	cp->dst->opens--;
	tree_put(&sim->tree, cp->src);
	tree_put(&sim->tree, cp->dst);
	free(cp);
}

void copies_drop(struct nfsd_sim *sim, const struct client *cl)
{
	list_for_each_safe (pos, next, &sim->copies) {
		struct copying *cp = container_of(pos, struct copying, link);

		if (cp->client == cl)
			drop(sim, cp);
	}
}

/* Returns how much: what the source has. */
static uint64_t copy(struct nfsd_sim *sim, const struct copying *cp, uint64_t most, bool stable)
{
	uint64_t left = cp->src_off < cp->src->size ? cp->src->size - cp->src_off : 0;
	uint64_t n = cp->count < left ? cp->count : left;
	uint8_t *data;

	if (n > most)
		n = most;
	data = malloc(n ? n : 1);
	if (n) {
		memcpy(data, cp->src->data + cp->src_off, n);
		tree_write(&sim->tree, cp->dst, cp->off, data, n, stable);
	}
	free(data);
	return n;
}

static struct copying *find(struct cmp *c, const struct stateid *sid)
{
	list_for_each (pos, &c->sim->copies) {
		struct copying *cp = container_of(pos, struct copying, link);

		if (cp->client == c->sess->client && !memcmp(cp->other, sid->other, 12))
			return cp;
	}
	return NULL;
}

/* It goes on. */
static struct copying *begin(struct cmp *c, const struct copying *what)
{
	struct copying *cp = malloc(sizeof(*cp));
	struct wr w = {cp->other, 0, 12, false, false};

	*cp = *what;
	wr_u32(&w, c->sim->boot);
	wr_u64(&w, ++c->sim->next_id);
	list_init(&cp->link);
	list_push_back(&c->sim->copies, &cp->link);
	cp->src->opens++;
	cp->dst->opens++;
	return cp;
}

static void end(
	struct nfsd_sim *sim, struct copying *cp, uint32_t status, uint64_t bytes, bool stable)
{
	cp->status = status;
	cp->bytes = copy(sim, cp, bytes, stable);
	cp->stable = stable;
}

static void wr_response(struct cmp *c, const struct copying *id, uint64_t bytes)
{
	wr_u32(c->out, id ? 1 : 0);
	if (id) {
		wr_u32(c->out, 1);
		wr_raw(c->out, id->other, 12);
	}
	wr_u64(c->out, bytes);
	wr_u32(c->out, 0); /* UNSTABLE */
	wr_raw(c->out, c->sim->verf, 8);
	wr_u32(c->out, 1);
	wr_u32(c->out, id ? 0 : 1);
}

static void by_itself(struct cmp *c, const struct copying *what)
{
	const struct nfsd_sim_conf *conf = &c->sim->conf;
	struct copying *cp = begin(c, what);

	wr_response(c, cp, 0);
	if (conf->copy_early == NFSD_SIM_EARLY_NONE)
		return;
	c->job->late_ns += conf->copy_early_ns;
	end(c->sim, cp, 0, UINT64_MAX, true);
	callback_to(c->sim, cp->client, NULL,
		&(struct cb_args){.what = NFSD_SIM_CB_OFFLOAD,
			.copy = cp,
			.refers = conf->copy_early == NFSD_SIM_EARLY_REFERS ? c : NULL});
	drop(c->sim, cp);
}

void rd_copy_args(struct rd *r, struct copy_args *args)
{
	rd_stateid(r, &args->src);
	rd_stateid(r, &args->dst);
	args->src_off = rd_u64(r);
	args->off = rd_u64(r);
	args->count = rd_u64(r);
}

uint32_t copy_check(struct cmp *c, const char *name, const struct copy_args *args)
{
	struct node *cur = c->cur;
	uint32_t st;

	if (c->minor < 2) {
		fab_sim_fail("xid %#x: %s in v4.%u", c->job->xid, name, c->minor);
		return ST_OP_ILLEGAL;
	}
	if (!c->cur || !c->saved)
		return ST_NOFILEHANDLE;
	c->cur = c->saved;
	st = state_check(c, &args->src, 1, NULL);
	c->cur = cur;
	if (!st)
		st = state_check(c, &args->dst, 2, NULL);
	if (!st && (c->cur->type != NFSD_SIM_REG || c->saved->type != NFSD_SIM_REG))
		st = ST_WRONG_TYPE;
	return st;
}

uint32_t op_copy(struct cmp *c)
{
	struct copying what = {.client = c->sess->client, .src = c->saved, .dst = c->cur};
	bool consecutive, synchronous;
	struct copy_args a;
	uint32_t st;

	rd_copy_args(&c->in, &a);
	consecutive = rd_u32(&c->in);
	synchronous = rd_u32(&c->in);
	if (rd_u32(&c->in) || !consecutive)
		fab_sim_fail("xid %#x: COPY between servers, or in any order", c->job->xid);
	st = copy_check(c, "COPY", &a);
	if (st)
		return st;
	if (c->cur == c->saved)
		return ST_INVAL;
	if (a.off + a.count < a.off || a.off + a.count > 1ull << 32)
		return ST_FBIG;
	what.src_off = a.src_off;
	what.off = a.off;
	what.count = a.count;
	if (c->sim->conf.copy_by_itself && !synchronous)
		by_itself(c, &what);
	else
		wr_response(c, NULL, copy(c->sim, &what, c->sim->conf.copy_max, false));
	return ST_OK;
}

uint32_t op_offload_status(struct cmp *c)
{
	struct stateid sid;

	rd_stateid(&c->in, &sid);
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (!find(c, &sid))
		return ST_BAD_STATEID;
	wr_u64(c->out, 1);
	wr_u32(c->out, 0);
	return ST_OK;
}

uint32_t op_offload_cancel(struct cmp *c)
{
	struct copying *cp;
	struct stateid sid;

	rd_stateid(&c->in, &sid);
	if (!c->cur)
		return ST_NOFILEHANDLE;
	cp = find(c, &sid);
	if (!cp)
		return ST_BAD_STATEID;
	drop(c->sim, cp);
	return ST_OK;
}

/* ---- what tests do ---- */

unsigned int nfsd_sim_copies_end(
	struct nfsd_sim *sim, uint32_t status, uint64_t bytes, bool stable, int session)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	while (!list_empty(&sim->copies)) {
		struct copying *cp = list_first(&sim->copies, struct copying, link);

		end(sim, cp, status, bytes, stable);
		if (session >= 0)
			callback_to(sim, cp->client,
				nth_session(sim, cp->client, (unsigned int)session),
				&(struct cb_args){.what = NFSD_SIM_CB_OFFLOAD, .copy = cp});
		drop(sim, cp);
		cnt++;
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

unsigned int nfsd_sim_live_copies(struct nfsd_sim *sim)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (pos, &sim->copies)
		cnt++;
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}
