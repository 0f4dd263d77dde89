/* SPDX-License-Identifier: BSD-3-Clause */
/* Stateids: which are good for what; data. */
#include "nfsd_sim_held.h"

#include <stdlib.h>

void rd_stateid(struct rd *r, struct stateid *sid)
{
	const uint8_t *p;

	sid->seqid = rd_u32(r);
	p = rd_bytes(r, 12);
	if (p)
		memcpy(sid->other, p, 12);
	else
		memset(sid->other, 0, 12);
}

struct open_state *find_open(struct nfsd_sim *sim, const uint8_t *other)
{
	list_for_each (node, &sim->opens) {
		struct open_state *o = container_of(node, struct open_state, link);

		if (!memcmp(o->other, other, 12))
			return o;
	}
	return NULL;
}

uint32_t tell_revoked(struct cmp *c, struct open_state *o)
{
	if (o->revoked && !o->told_ns)
		o->told_ns = now_of(c->conn->reactor);
	return o->revoked;
}

uint64_t sim_now(const struct nfsd_sim *sim)
{
	const struct sconn *conn;

	if (list_empty(&sim->conns))
		return 0;
	conn = container_of(sim->conns.next, struct sconn, link);
	return now_of(conn->reactor);
}

void stateid_gone(struct nfsd_sim *sim, const uint8_t *other)
{
	struct gone *g = &sim->gone[sim->gone_pos++ % GONE_MAX];

	memcpy(g->other, other, 12);
	g->when_ns = sim_now(sim);
}

/*
 * Calls that were made before the stateid ended, as far as anybody can tell: resent as they were,
 * made again for a new session, waiting for this connection, or beside the return of a delegation,
 * which waits for none of them: they come again with the stateid of an open.
 */
static bool is_excused(const struct cmp *c, const struct stateid *sid)
{
	const struct nfsd_sim *sim = c->sim;

	if (c->job->resent)
		return true;
	for (unsigned int i = 0; i < GONE_MAX; i++) {
		const struct gone *g = &sim->gone[i];

		if (!g->when_ns || memcmp(g->other, sid->other, 12) != 0)
			continue;
		if (g->other[6] == 0xde && g->other[7] == 0x1e &&
			sim_now(sim) - g->when_ns < NSEC_PER_SEC)
			return true;
		return (g->when_ns <= sim->amnesia_ns &&
			       sim->amnesia_ns - g->when_ns < NSEC_PER_SEC) ||
		       g->when_ns < c->conn->since_ns;
	}
	return false;
}

uint32_t bad_stateid(struct cmp *c, const struct stateid *sid)
{
	struct rd r = {sid->other, sid->other + 4, false};

	if (!c->sim->conf.tolerant_state && !is_excused(c, sid))
		fab_sim_fail("xid %#x: stateid that is not (or no longer) valid", c->job->xid);
	/* of an earlier life of the server? */
	return rd_u32(&r) != c->sim->boot ? ST_STALE_STATEID : ST_BAD_STATEID;
}

uint32_t state_check(
	struct cmp *c, const struct stateid *sid, uint32_t need, struct open_state **ret_open)
{
	static const uint8_t zeros[12],
		ones[12] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
	struct stateid id = *sid;
	struct lock_state *ls;
	struct open_state *o;
	struct deleg *d;

	if (ret_open)
		*ret_open = NULL;
	if (!memcmp(id.other, zeros, 12) && id.seqid == 1) {
		if (!c->have_sid)
			return ST_BAD_STATEID;
		id = c->cur_sid;
	}
	if ((!memcmp(id.other, zeros, 12) && id.seqid == 0) ||
		(!memcmp(id.other, ones, 12) && id.seqid == UINT32_MAX)) {
		if (in_grace(c))
			return ST_GRACE;
		return ret_open ? ST_BAD_STATEID : ST_OK;
	}
	d = deleg_find(c->sim, id.other);
	if (d && ret_open) {
		fab_sim_fail(
			"xid %#x: a delegation's stateid where an open's is needed", c->job->xid);
		return ST_BAD_STATEID;
	}
	if (d)
		return deleg_check(c, d, &id, need);
	ls = ret_open ? NULL : lock_find(c->sim, id.other);
	if (ls && id.seqid > ls->seqid)
		return bad_stateid(c, &id);
	if (ls)
		id.seqid = 0;
	o = ls ? ls->open : find_open(c->sim, id.other);
	if (!o || o->client != c->sess->client)
		return bad_stateid(c, &id);
	if (o->node != c->cur)
		return bad_stateid(c, &id);
	if (o->revoked)
		return tell_revoked(c, o);
	if (id.seqid && id.seqid < o->seqid) {
		c->sim->stats.old_stateids++;
		return ST_OLD_STATEID;
	}
	if (id.seqid > o->seqid)
		return bad_stateid(c, &id);
	if ((o->access & need) != need) {
		BLAME_STATE(c, "xid %#x: stateid with access %u, %u is needed", c->job->xid,
			o->access, need);
		return ST_OPENMODE;
	}
	if (need && !ret_open)
		lock_held_io(c, o);
	if (ret_open)
		*ret_open = o;
	return ST_OK;
}

/* ---- data ---- */

static uint32_t need_file(const struct cmp *c)
{
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (c->cur->type == NFSD_SIM_DIR)
		return ST_ISDIR;
	return c->cur->type == NFSD_SIM_REG ? ST_OK : ST_INVAL;
}

uint32_t op_read(struct cmp *c)
{
	struct stateid sid;
	uint64_t off;
	uint32_t count, st;
	size_t len = 0;

	rd_stateid(&c->in, &sid);
	off = rd_u64(&c->in);
	count = rd_u32(&c->in);
	if (c->cachethis)
		fab_sim_fail("xid %#x: READ with cachethis", c->job->xid);
	st = need_file(c);
	if (!st)
		st = state_check(c, &sid, 1, NULL);
	if (!st)
		st = lock_io_check(c, &sid, off, count, false);
	if (st)
		return st;
	if (count > fs_of(c, c->cur).maxread)
		count = fs_of(c, c->cur).maxread;
	if (off < c->cur->size)
		len = count < c->cur->size - off ? count : c->cur->size - off;
	/* As illumos, which looks at what was asked for. */
	if (c->sim->conf.write_pad && c->job->ddp_cnt < c->job->write_cnt &&
		c->job->writes[c->job->ddp_cnt].total < ((count + 3) & ~3u))
		return ST_INVAL;
	wr_u32(c->out, off + len >= c->cur->size);
	if (c->job->ddp_cnt < DDP_MAX) {
		c->job->ddp[c->job->ddp_cnt].off = c->out->len + 4;
		c->job->ddp[c->job->ddp_cnt++].len = len;
	}
	wr_opaque(c->out, len ? c->cur->data + off : NULL, len);
	return ST_OK;
}

uint32_t op_write(struct cmp *c)
{
	struct stateid sid;
	const uint8_t *p;
	uint64_t off;
	uint32_t len, stable, st;

	rd_stateid(&c->in, &sid);
	off = rd_u64(&c->in);
	stable = rd_u32(&c->in);
	p = rd_opaque(&c->in, &len);
	if (c->in.bad)
		return ST_BADXDR;
	st = need_file(c);
	if (!st)
		st = state_check(c, &sid, 2, NULL);
	if (!st)
		st = lock_io_check(c, &sid, off, len, true);
	if (st)
		return st;
	if (len > fs_of(c, c->cur).maxwrite)
		len = fs_of(c, c->cur).maxwrite;
	if (off + len > 1ull << 32)
		return ST_FBIG;
	tree_write(&c->sim->tree, c->cur, off, p, len, stable != 0);
	wr_u32(c->out, len);
	wr_u32(c->out, stable ? 2 : 0);
	wr_raw(c->out, c->sim->verf, 8);
	return ST_OK;
}

uint32_t op_commit(struct cmp *c)
{
	uint32_t st;

	rd_u64(&c->in);
	rd_u32(&c->in);
	st = need_file(c);
	if (st)
		return st;
	tree_commit(c->cur);
	wr_raw(c->out, c->sim->verf, 8);
	return ST_OK;
}

uint32_t op_test_stateid(struct cmp *c)
{
	uint32_t cnt = rd_u32(&c->in);

	wr_u32(c->out, cnt);
	for (uint32_t i = 0; i < cnt && !c->in.bad; i++) {
		const struct lock_state *ls;
		struct open_state *o;
		const struct deleg *d;
		struct stateid sid;

		rd_stateid(&c->in, &sid);
		ls = lock_find(c->sim, sid.other);
		o = ls ? ls->open : find_open(c->sim, sid.other);
		d = deleg_find(c->sim, sid.other);
		wr_u32(c->out, o ? tell_revoked(c, o) : d ? d->revoked : ST_BAD_STATEID);
	}
	return ST_OK;
}

uint32_t op_free_stateid(struct cmp *c)
{
	struct lock_state *ls;
	struct open_state *o;
	struct deleg *d;
	struct stateid sid;

	rd_stateid(&c->in, &sid);
	ls = lock_find(c->sim, sid.other);
	if (ls)
		return lock_free_stateid(c->sim, ls);
	d = deleg_find(c->sim, sid.other);
	if (d)
		return deleg_free_stateid(c->sim, d);
	o = find_open(c->sim, sid.other);
	if (!o)
		return ST_BAD_STATEID;
	if (!o->revoked)
		return ST_LOCKS_HELD;
	open_drop(c->sim, o);
	return ST_OK;
}
