/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LOCK, LOCKT, LOCKU as nfsd has them: a stateid for each owner and open, one
 * set of ranges for each owner and file, which ends with any open that the
 * owner locked through.
 */
#include "nfsd_sim_int.h"

#define TO_END UINT64_MAX

/* ---- ranges ---- */

static bool is_owner(const struct lock_range *r, const struct client *cl, const uint8_t *owner,
	uint32_t owner_len)
{
	return r->client == cl && r->owner_len == owner_len && !memcmp(r->owner, owner, owner_len);
}

static struct lock_range *range_new(struct nfsd_sim *sim, const struct lock_range *like,
	uint64_t first, uint64_t last, bool write)
{
	struct lock_range *r = malloc(sizeof(*r));

	*r = *like;
	r->first = first;
	r->last = last;
	r->write = write;
	list_push_back(&sim->lock_ranges, &r->link);
	return r;
}

static void range_free(struct lock_range *r)
{
	list_del(&r->link);
	free(r);
}

struct lock_range *ranges_conflict(struct nfsd_sim *sim, const struct lock_range *want)
{
	list_for_each (node, &sim->lock_ranges) {
		struct lock_range *r = container_of(node, struct lock_range, link);

		if (r->node == want->node &&
			!is_owner(r, want->client, want->owner, want->owner_len) &&
			r->first <= want->last && r->last >= want->first &&
			(r->write || want->write))
			return r;
	}
	return NULL;
}

void ranges_clear(struct nfsd_sim *sim, const struct lock_range *what)
{
	list_for_each_safe (node, next, &sim->lock_ranges) {
		struct lock_range *r = container_of(node, struct lock_range, link);

		if (r->node != what->node ||
			!is_owner(r, what->client, what->owner, what->owner_len) ||
			r->first > what->last || r->last < what->first)
			continue;
		if (r->first < what->first)
			range_new(sim, r, r->first, what->first - 1, r->write);
		if (r->last > what->last)
			range_new(sim, r, what->last + 1, r->last, r->write);
		range_free(r);
	}
}

void ranges_set(struct nfsd_sim *sim, const struct lock_range *what)
{
	struct lock_range *mine;

	ranges_clear(sim, what);
	mine = range_new(sim, what, what->first, what->last, what->write);
	list_for_each_safe (node, next, &sim->lock_ranges) {
		struct lock_range *r = container_of(node, struct lock_range, link);

		if (r == mine || r->node != mine->node || r->write != mine->write ||
			!is_owner(r, mine->client, mine->owner, mine->owner_len))
			continue;
		if (r->last != TO_END && r->last + 1 == mine->first)
			mine->first = r->first;
		else if (mine->last != TO_END && r->first == mine->last + 1)
			mine->last = r->last;
		else
			continue;
		range_free(r);
	}
}

static bool owner_holds(struct nfsd_sim *sim, const struct lock_state *ls)
{
	list_for_each (node, &sim->lock_ranges) {
		const struct lock_range *r = container_of(node, struct lock_range, link);

		if (r->node == ls->open->node &&
			is_owner(r, ls->open->client, ls->owner, ls->owner_len))
			return true;
	}
	return false;
}

/* ---- stateids ---- */

struct lock_state *lock_find(struct nfsd_sim *sim, const uint8_t *other)
{
	list_for_each (node, &sim->lock_states) {
		struct lock_state *ls = container_of(node, struct lock_state, link);

		if (!memcmp(ls->other, other, 12))
			return ls;
	}
	return NULL;
}

uint32_t lock_io_check(
	struct cmp *c, const struct stateid *sid, uint64_t off, uint64_t len, bool write)
{
	const struct lock_state *ls = lock_find(c->sim, sid->other);
	struct lock_range want = {
		.client = c->sess->client, .node = c->cur, .first = off, .write = write};

	if (!c->sim->conf.mandatory_locks || len == 0)
		return ST_OK;
	want.last = len > UINT64_MAX - off ? UINT64_MAX : off + len - 1;
	if (ls) {
		want.owner_len = ls->owner_len;
		memcpy(want.owner, ls->owner, ls->owner_len);
	}
	return ranges_conflict(c->sim, &want) ? ST_LOCKED : ST_OK;
}

static struct lock_state *lock_get(
	struct cmp *c, struct open_state *o, const uint8_t *owner, uint32_t owner_len)
{
	struct lock_state *ls;

	list_for_each (node, &c->sim->lock_states) {
		ls = container_of(node, struct lock_state, link);
		if (ls->open == o && ls->owner_len == owner_len &&
			!memcmp(ls->owner, owner, owner_len))
			return ls;
	}
	ls = calloc(1, sizeof(*ls));
	ls->open = o;
	put_u32(ls->other, c->sim->boot);
	put_u32(ls->other + 4, 0x10c4);
	put_u32(ls->other + 8, (uint32_t)++c->sim->next_id);
	memcpy(ls->owner, owner, owner_len);
	ls->owner_len = owner_len;
	list_push_back(&c->sim->lock_states, &ls->link);
	return ls;
}

static void lock_drop(struct lock_state *ls)
{
	list_del(&ls->link);
	free(ls);
}

static struct lock_range all_of(const struct lock_state *ls)
{
	struct lock_range r = {
		.client = ls->open->client,
		.node = ls->open->node,
		.last = TO_END,
		.owner_len = ls->owner_len,
	};

	memcpy(r.owner, ls->owner, ls->owner_len);
	return r;
}

void locks_drop(struct nfsd_sim *sim, const struct open_state *o)
{
	list_for_each_safe (node, next, &sim->lock_states) {
		struct lock_state *ls = container_of(node, struct lock_state, link);
		struct lock_range all;

		if (ls->open != o)
			continue;
		all = all_of(ls);
		ranges_clear(sim, &all);
		lock_drop(ls);
	}
}

bool locks_held(struct nfsd_sim *sim, const struct open_state *o)
{
	list_for_each (node, &sim->lock_states) {
		const struct lock_state *ls = container_of(node, struct lock_state, link);

		if (ls->open == o && owner_holds(sim, ls))
			return true;
	}
	return false;
}

uint32_t lock_free_stateid(struct nfsd_sim *sim, struct lock_state *ls)
{
	if (!ls->open->revoked && owner_holds(sim, ls))
		return ST_LOCKS_HELD;
	lock_drop(ls);
	return ST_OK;
}

/* The stateid of an owner's locks on the current file. */
static uint32_t lock_check(struct cmp *c, const struct stateid *sid, struct lock_state **ret)
{
	static const uint8_t zeros[12];
	struct stateid id = *sid;
	struct lock_state *ls;

	if (id.seqid == 1 && !memcmp(id.other, zeros, 12)) {
		if (!c->have_sid)
			return ST_BAD_STATEID;
		id = c->cur_sid;
	}
	ls = lock_find(c->sim, id.other);
	if (!ls || ls->open->client != c->sess->client || ls->open->node != c->cur)
		return bad_stateid(c, &id);
	if (ls->open->revoked)
		return tell_revoked(c, ls->open);
	if (id.seqid && id.seqid < ls->seqid)
		return ST_OLD_STATEID;
	if (id.seqid > ls->seqid)
		return bad_stateid(c, &id);
	*ret = ls;
	return ST_OK;
}

static void wr_lock_stateid(struct cmp *c, struct lock_state *ls)
{
	ls->seqid++;
	wr_u32(c->out, ls->seqid);
	wr_raw(c->out, ls->other, 12);
	c->cur_sid.seqid = ls->seqid;
	memcpy(c->cur_sid.other, ls->other, 12);
	c->have_sid = true;
}

/* ---- arguments and results ---- */

static uint32_t range_from(struct cmp *c, uint64_t off, uint64_t len, struct lock_range *r)
{
	if (!len || (len != TO_END && len > ~off)) {
		fab_sim_fail("xid %#x: a lock of %llu bytes at %llu", c->job->xid,
			(unsigned long long)len, (unsigned long long)off);
		return ST_INVAL;
	}
	r->first = off;
	r->last = len == TO_END ? TO_END : off + len - 1;
	r->node = c->cur;
	r->client = c->sess->client;
	return ST_OK;
}

static void rd_owner(struct cmp *c, struct lock_range *r)
{
	const uint8_t *p;

	rd_u64(&c->in);
	p = rd_opaque(&c->in, &r->owner_len);
	if (!p || !r->owner_len || r->owner_len > sizeof(r->owner)) {
		c->in.bad = true;
		return;
	}
	memcpy(r->owner, p, r->owner_len);
}

static void rd_zero(struct cmp *c, const char *what)
{
	if (rd_u32(&c->in))
		fab_sim_fail("xid %#x: %s is not 0", c->job->xid, what);
}

void wr_denied(struct cmp *c, const struct lock_range *r)
{
	static const struct lock_range somebody = {.last = TO_END, .write = true};

	if (!r)
		r = &somebody;
	wr_u64(c->out, r->first);
	if (r->last == TO_END)
		wr_u64(c->out, c->sim->conf.denied_len0 ? 0 : TO_END);
	else
		wr_u64(c->out, r->last - r->first + 1);
	wr_u32(c->out, r->write ? 2 : 1);
	wr_u64(c->out, r->client ? r->client->id : 0);
	wr_opaque(c->out, r->owner, r->owner_len);
}

static uint32_t denied(struct cmp *c, const struct lock_range *r)
{
	wr_denied(c, r);
	c->keep_body = true;
	return ST_DENIED;
}

/* ---- operations ---- */

/* The lock state that a LOCK is for. */
static uint32_t rd_locker(struct cmp *c, struct lock_range *r, struct lock_state **ret)
{
	uint32_t need = r->write ? 2 : 1, is_new = rd_u32(&c->in), st;
	struct open_state *o = NULL;
	struct stateid sid;

	*ret = NULL;
	if (is_new > 1)
		c->in.bad = true;
	if (is_new)
		rd_zero(c, "open_seqid");
	rd_stateid(&c->in, &sid);
	rd_zero(c, "lock_seqid");
	if (is_new)
		rd_owner(c, r);
	if (c->in.bad)
		return ST_BADXDR;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (!is_new) {
		st = lock_check(c, &sid, ret);
		if (st)
			return st;
		r->owner_len = (*ret)->owner_len;
		memcpy(r->owner, (*ret)->owner, r->owner_len);
		if (!((*ret)->open->access & need))
			fab_sim_fail("xid %#x: a lock that the open does not allow", c->job->xid);
		return (*ret)->open->access & need ? ST_OK : ST_OPENMODE;
	}
	st = state_check(c, &sid, need, &o);
	if (!st)
		*ret = lock_get(c, o, r->owner, r->owner_len);
	return st;
}

static uint32_t check_time(struct cmp *c, const struct lock_range *r, bool reclaim)
{
	if (in_grace(c) != reclaim)
		return reclaim ? ST_NO_GRACE : ST_GRACE;
	if (c->sess->client->reclaimed == reclaim) {
		fab_sim_fail("xid %#x: LOCK with reclaim %d %s RECLAIM_COMPLETE", c->job->xid,
			reclaim, reclaim ? "after" : "before");
		return reclaim ? ST_NO_GRACE : ST_GRACE;
	}
	return reclaim ? lock_held_reclaim(c, r) : ST_OK;
}

uint32_t op_lock(struct cmp *c)
{
	struct lock_range r = {0}, *other;
	uint32_t type = rd_u32(&c->in), reclaim = rd_u32(&c->in), st, st2;
	uint64_t off = rd_u64(&c->in), len = rd_u64(&c->in);
	struct lock_state *ls;
	bool fresh;

	if (type < 1 || type > 4 || reclaim > 1)
		c->in.bad = true;
	r.write = type == 2 || type == 4;
	st = range_from(c, off, len, &r);
	st2 = rd_locker(c, &r, &ls);
	if (st || st2)
		return st ? st : st2;
	fresh = ls->seqid == 0;
	st = check_time(c, &r, reclaim);
	other = st ? NULL : ranges_conflict(c->sim, &r);
	if (other) {
		lock_held_done(c->sim, &r); /* it knows now that it has it no more */
		if (type > 2)
			waiter_note(c->sim, &r);
		st = reclaim ? ST_RECLAIM_CONFLICT : denied(c, other);
	}
	if (st) {
		if (fresh)
			lock_drop(ls);
		return st;
	}
	ranges_set(c->sim, &r);
	lock_held_done(c->sim, &r);
	c->sim->stats.locks++;
	c->sim->stats.lock_reclaims += reclaim;
	wr_lock_stateid(c, ls);
	return ST_OK;
}

uint32_t op_lockt(struct cmp *c)
{
	struct lock_range r = {0}, *other;
	uint32_t type = rd_u32(&c->in), st;
	uint64_t off = rd_u64(&c->in), len = rd_u64(&c->in);

	if (type < 1 || type > 4)
		c->in.bad = true;
	r.write = type == 2 || type == 4;
	rd_owner(c, &r);
	if (c->in.bad)
		return ST_BADXDR;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	st = range_from(c, off, len, &r);
	if (!st && in_grace(c))
		st = ST_GRACE;
	if (st)
		return st;
	other = ranges_conflict(c->sim, &r);
	return other ? denied(c, other) : ST_OK;
}

uint32_t op_locku(struct cmp *c)
{
	struct lock_range r = {0};
	struct lock_state *ls;
	uint32_t type = rd_u32(&c->in), st;
	struct stateid sid;
	uint64_t off, len;

	if (type < 1 || type > 4)
		c->in.bad = true;
	rd_zero(c, "seqid");
	rd_stateid(&c->in, &sid);
	off = rd_u64(&c->in);
	len = rd_u64(&c->in);
	if (c->in.bad)
		return ST_BADXDR;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	st = range_from(c, off, len, &r);
	if (!st)
		st = lock_check(c, &sid, &ls);
	if (st)
		return st;
	r.owner_len = ls->owner_len;
	memcpy(r.owner, ls->owner, ls->owner_len);
	ranges_clear(c->sim, &r);
	lock_held_done(c->sim, &r);
	wr_lock_stateid(c, ls);
	return ST_OK;
}
