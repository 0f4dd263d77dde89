/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and stateids, data. */
#include "nfsd_sim_int.h"

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

static void wr_stateid(struct wr *w, const struct open_state *o)
{
	wr_u32(w, o->seqid);
	wr_raw(w, o->other, 12);
}

static struct open_state *find_open(struct nfsd_sim *sim, const uint8_t *other)
{
	list_for_each (node, &sim->opens) {
		struct open_state *o = container_of(node, struct open_state, link);

		if (!memcmp(o->other, other, 12))
			return o;
	}
	return NULL;
}

uint32_t bad_stateid(struct cmp *c, const struct stateid *sid)
{
	struct rd r = {sid->other, sid->other + 4, false};

	if (!c->sim->conf.tolerant_state)
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
	struct open_state *o;

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
	o = find_open(c->sim, id.other);
	if (!o || o->client != c->sess->client)
		return bad_stateid(c, &id);
	if (o->node != c->cur)
		return bad_stateid(c, &id);
	if (o->revoked)
		return o->revoked;
	if (id.seqid && id.seqid < o->seqid)
		return ST_OLD_STATEID;
	if (id.seqid > o->seqid)
		return bad_stateid(c, &id);
	if ((o->access & need) != need) {
		fab_sim_fail("xid %#x: stateid with access %u, %u is needed", c->job->xid,
			o->access, need);
		return ST_OPENMODE;
	}
	if (need && !ret_open)
		lock_held_io(c, o);
	if (ret_open)
		*ret_open = o;
	return ST_OK;
}

/* ---- OPEN ---- */

struct open_args {
	uint32_t access, deny, type, mode, claim;
	const uint8_t *owner;
	uint32_t owner_len;
	const uint8_t *verf;
	struct rd attrs; /* where the fattr4 starts */
	const char *name;
	uint32_t name_len;
};

static uint32_t rd_open(struct cmp *c, struct open_args *a)
{
	uint32_t mask[3], len;

	rd_u32(&c->in);
	a->access = rd_u32(&c->in);
	a->deny = rd_u32(&c->in);
	rd_u64(&c->in);
	a->owner = rd_opaque(&c->in, &a->owner_len);
	a->type = rd_u32(&c->in);
	if (a->type > 1)
		c->in.bad = true;
	if (a->type == 1) {
		a->mode = rd_u32(&c->in);
		if (a->mode > 3)
			c->in.bad = true;
		if (a->mode >= 2)
			a->verf = rd_bytes(&c->in, 8);
		a->attrs = c->in;
		if (a->mode != 2) {
			rd_bitmap(&c->in, mask);
			rd_opaque(&c->in, &len);
		}
	}
	a->claim = rd_u32(&c->in);
	if (c->in.bad || a->owner_len > 1024)
		return ST_BADXDR;
	if (a->claim == 0)
		return rd_name(&c->in, &a->name, &a->name_len);
	if (a->claim == 1)
		rd_u32(&c->in); /* CLAIM_PREVIOUS: delegation type */
	else if (a->claim != 4)
		return ST_NOTSUPP;
	return ST_OK;
}

/* Applies the fattr4 of the arguments; leaves c->in where it is. */
static uint32_t open_attrs(
	struct cmp *c, const struct open_args *a, struct node *n, uint32_t set[3])
{
	struct rd in = c->in;
	uint32_t st;

	c->in = a->attrs;
	st = attr_apply(c, n, set);
	c->in = in;
	return st;
}

static uint32_t open_existing(
	struct cmp *c, const struct open_args *a, struct node *n, uint32_t set[3])
{
	struct rd r = a->attrs;
	uint32_t mask[3], len, rwx = 0;
	const uint8_t *vals;

	if (a->type == 1 && a->mode == 1)
		return ST_EXIST;
	if (a->type == 1 && a->mode >= 2)
		return n->is_excl && !memcmp(n->excl, a->verf, 8) ? ST_OK : ST_EXIST;
	if (n->type == NFSD_SIM_DIR)
		return ST_ISDIR;
	if (n->type != NFSD_SIM_REG)
		return n->type == NFSD_SIM_LNK ? 10029 : ST_WRONG_TYPE; /* SYMLINK */
	rwx |= a->access & 1 ? 4 : 0;
	rwx |= a->access & 2 ? 2 : 0;
	if (!may(c, n, rwx) && c->uid != n->uid)
		return ST_ACCESS;
	if (a->type != 1)
		return ST_OK;
	rd_bitmap(&r, mask);
	vals = rd_opaque(&r, &len);
	if (mask[0] & 0x10 && len >= 8) { /* of the attributes, only size 0 matters here */
		struct rd v = {vals, vals + 8, false};

		if (!may(c, n, 2) && c->uid != n->uid)
			return ST_ACCESS;
		tree_truncate(&c->sim->tree, n, rd_u64(&v));
		set[0] |= 0x10;
	}
	return ST_OK;
}

static uint32_t open_new(
	struct cmp *c, const struct open_args *a, struct node **ret, uint32_t set[3])
{
	struct node *dir = c->cur, *n;
	uint32_t st = ST_OK;

	if (!may(c, dir, 3))
		return ST_ACCESS;
	n = tree_new(&c->sim->tree, NFSD_SIM_REG, 0644);
	n->uid = c->uid;
	n->gid = c->gid;
	if (a->mode >= 2) {
		n->is_excl = true;
		memcpy(n->excl, a->verf, 8);
	}
	if (a->mode != 2)
		st = open_attrs(c, a, n, set);
	tree_link(&c->sim->tree, dir, a->name, a->name_len, n);
	if (st) {
		tree_unlink(&c->sim->tree, dir, tree_find(dir, a->name, a->name_len));
		return st;
	}
	*ret = n;
	return ST_OK;
}

static struct open_state *open_get(struct cmp *c, const struct open_args *a, struct node *n)
{
	struct open_state *o;

	list_for_each (node, &c->sim->opens) {
		o = container_of(node, struct open_state, link);
		if (o->client == c->sess->client && o->node == n && o->owner_len == a->owner_len &&
			!memcmp(o->owner, a->owner, a->owner_len)) {
			if (o->revoked) {
				fab_sim_fail("xid %#x: OPEN before what was revoked is freed",
					c->job->xid);
				continue;
			}
			o->seqid++;
			o->access |= a->access & 3;
			return o;
		}
	}
	o = calloc(1, sizeof(*o));
	o->client = c->sess->client;
	o->node = n;
	n->opens++;
	put_u32(o->other, c->sim->boot);
	put_u32(o->other + 4, 0x0be4);
	put_u32(o->other + 8, (uint32_t)++c->sim->next_id);
	o->seqid = 1;
	o->access = a->access & 3;
	o->owner_len = a->owner_len;
	memcpy(o->owner, a->owner, a->owner_len);
	list_push_back(&c->sim->opens, &o->link);
	return o;
}

static uint32_t open_find(
	struct cmp *c, const struct open_args *a, struct node **ret, uint32_t set[3])
{
	struct dirent_sim *de;

	if (a->claim != 0) {
		*ret = c->cur;
		return open_existing(c, a, c->cur, set);
	}
	if (c->cur->type != NFSD_SIM_DIR)
		return ST_NOTDIR;
	de = tree_find(c->cur, a->name, a->name_len);
	if (!de)
		return a->type == 1 ? open_new(c, a, ret, set) : ST_NOENT;
	*ret = de->node;
	return open_existing(c, a, de->node, set);
}

uint32_t op_open(struct cmp *c)
{
	struct open_args a = {0};
	uint32_t st = rd_open(c, &a), set[3] = {0};
	struct open_state *o;
	struct node *n = NULL, *dir = c->cur;
	uint64_t before;

	if (st)
		return st;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (!(a.access & 3) || a.deny > 3)
		return ST_INVAL;
	if (in_grace(c) != (a.claim == 1))
		return a.claim == 1 ? ST_NO_GRACE : ST_GRACE;
	if (!c->sess->client->reclaimed && a.claim != 1) {
		fab_sim_fail("xid %#x: OPEN before RECLAIM_COMPLETE", c->job->xid);
		return ST_GRACE;
	}
	if (a.claim == 1)
		st = held_reclaim(c, a.owner, a.owner_len, a.access);
	if (st)
		return st;
	before = dir->change;
	st = open_find(c, &a, &n, set);
	if (st)
		return st;
	o = open_get(c, &a, n);
	c->cur = n;
	c->cur_sid.seqid = o->seqid;
	memcpy(c->cur_sid.other, o->other, 12);
	c->have_sid = true;
	wr_stateid(c->out, o);
	wr_cinfo(c, before, dir);
	wr_u32(c->out, 0x24); /* OPEN4_RESULT_LOCKTYPE_POSIX, MAY_NOTIFY_LOCK */
	wr_bitmap(c->out, set);
	if ((a.access & 0xff00) == 0x0400) {
		wr_u32(c->out, 3); /* OPEN_DELEGATE_NONE_EXT, not wanted */
		wr_u32(c->out, 0);
	} else {
		wr_u32(c->out, 0);
	}
	return ST_OK;
}

uint32_t op_open_downgrade(struct cmp *c)
{
	struct stateid sid;
	struct open_state *o;
	uint32_t access, st;

	rd_stateid(&c->in, &sid);
	rd_u32(&c->in);
	access = rd_u32(&c->in);
	rd_u32(&c->in);
	st = state_check(c, &sid, access & 3, &o);
	if (st)
		return st;
	o->access = access & 3;
	o->seqid++;
	wr_stateid(c->out, o);
	return ST_OK;
}

uint32_t op_close(struct cmp *c)
{
	struct stateid sid;
	struct open_state *o;
	uint32_t st;

	rd_u32(&c->in);
	rd_stateid(&c->in, &sid);
	if (!c->cur)
		return ST_NOFILEHANDLE;
	st = state_check(c, &sid, 0, &o);
	if (st)
		return st;
	if (c->sim->conf.close_wants_unlock && locks_held(c->sim, o))
		return ST_LOCKS_HELD;
	lock_held_close(c->sim, o);
	open_drop(c->sim, o);
	c->cur = NULL; /* may be gone with its last open */
	c->have_sid = false;
	wr_u32(c->out, UINT32_MAX);
	for (int i = 0; i < 3; i++)
		wr_u32(c->out, 0);
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
	if (st)
		return st;
	if (count > c->sim->conf.maxread)
		count = c->sim->conf.maxread;
	if (off < c->cur->size)
		len = count < c->cur->size - off ? count : c->cur->size - off;
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
	if (st)
		return st;
	if (len > c->sim->conf.maxwrite)
		len = c->sim->conf.maxwrite;
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
		const struct open_state *o;
		struct stateid sid;

		rd_stateid(&c->in, &sid);
		ls = lock_find(c->sim, sid.other);
		o = ls ? ls->open : find_open(c->sim, sid.other);
		wr_u32(c->out, o ? o->revoked : ST_BAD_STATEID);
	}
	return ST_OK;
}

uint32_t op_free_stateid(struct cmp *c)
{
	struct lock_state *ls;
	struct open_state *o;
	struct stateid sid;

	rd_stateid(&c->in, &sid);
	ls = lock_find(c->sim, sid.other);
	if (ls)
		return lock_free_stateid(c->sim, ls);
	o = find_open(c->sim, sid.other);
	if (!o)
		return ST_BAD_STATEID;
	if (!o->revoked)
		return ST_LOCKS_HELD;
	open_drop(c->sim, o);
	return ST_OK;
}
