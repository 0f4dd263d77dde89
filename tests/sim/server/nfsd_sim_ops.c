/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on names and filehandles. */
#include "nfsd_sim_int.h"

#include <stdlib.h>

uint32_t rd_name(struct rd *r, const char **ret_name, uint32_t *ret_len)
{
	*ret_name = (const char *)rd_opaque(r, ret_len);
	if (r->bad)
		return ST_BADXDR;
	if (!*ret_len)
		return ST_INVAL;
	if (*ret_len > 255)
		return ST_NAMETOOLONG;
	if (memchr(*ret_name, '/', *ret_len) || memchr(*ret_name, 0, *ret_len) ||
		(*ret_len == 1 && **ret_name == '.') ||
		(*ret_len == 2 && !memcmp(*ret_name, "..", 2))) {
		fab_sim_fail("component name that is none");
		return ST_BADNAME;
	}
	return ST_OK;
}

void wr_cinfo(struct cmp *c, uint64_t before, const struct node *dir)
{
	wr_u32(c->out, 1);
	wr_u64(c->out, before);
	wr_u64(c->out, dir->change);
}

static uint32_t need_dir(const struct cmp *c, const struct node *n)
{
	if (!n)
		return ST_NOFILEHANDLE;
	return n->type == NFSD_SIM_DIR ? ST_OK : ST_NOTDIR;
}

uint32_t op_putfh(struct cmp *c)
{
	uint32_t len;
	const uint8_t *fh = rd_opaque(&c->in, &len);
	struct rd r;

	if (c->in.bad)
		return ST_BADXDR;
	if (len != (c->sim->conf.longest ? 128 : 16) || memcmp(fh, "simf", 4) != 0) {
		fab_sim_fail(
			"xid %#x: a filehandle of %u bytes that is not ours", c->job->xid, len);
		return ST_BADHANDLE;
	}
	r = (struct rd){fh + 8, fh + 16, false};
	c->cur = tree_node(&c->sim->tree, rd_u64(&r));
	c->have_sid = false;
	return c->cur ? ST_OK : ST_STALE;
}

uint32_t op_putrootfh(struct cmp *c)
{
	c->cur = c->sim->tree.root;
	c->have_sid = false;
	return ST_OK;
}

uint32_t op_getfh(struct cmp *c)
{
	if (!c->cur)
		return ST_NOFILEHANDLE;
	wr_fh(c, c->cur);
	return ST_OK;
}

uint32_t op_savefh(struct cmp *c)
{
	c->saved = c->cur;
	return c->cur ? ST_OK : ST_NOFILEHANDLE;
}

uint32_t op_restorefh(struct cmp *c)
{
	c->cur = c->saved;
	return c->cur ? ST_OK : ST_RESTOREFH;
}

#define SUPP_MOVED_REFER 1u

/* It lies on another server; for a client that cannot go there this one serves it. */
static bool is_referral(const struct cmp *c, const char *name, uint32_t len)
{
	const char *refers = c->sim->conf.refers;

	return refers && c->sess && c->sess->client->flags & SUPP_MOVED_REFER &&
	       strlen(refers) == len && !memcmp(name, refers, len);
}

uint32_t op_lookup(struct cmp *c)
{
	const char *name;
	uint32_t len, st = rd_name(&c->in, &name, &len);
	struct node *n;

	if (!st)
		st = need_dir(c, c->cur);
	if (st)
		return st;
	if (!may(c, c->cur, 1))
		return ST_ACCESS;
	if (is_referral(c, name, len))
		return ST_MOVED;
	n = tree_lookup(&c->sim->tree, c->cur, name, len);
	if (!n)
		return ST_NOENT;
	c->cur = n;
	c->have_sid = false;
	return ST_OK;
}

uint32_t op_lookupp(struct cmp *c)
{
	uint32_t st = need_dir(c, c->cur);

	if (st)
		return st;
	if (c->cur == c->sim->tree.root)
		return ST_NOENT;
	c->cur = c->cur->parent;
	return ST_OK;
}

uint32_t op_create(struct cmp *c)
{
	uint32_t type = rd_u32(&c->in), len, link_len = 0, rdev[2] = {0}, st, set[3];
	const uint8_t *link = NULL;
	struct node *n, *dir = c->cur;
	const char *name;
	uint64_t before;

	if (type == 5)
		link = rd_opaque(&c->in, &link_len);
	if (type == 3 || type == 4) {
		rdev[0] = rd_u32(&c->in);
		rdev[1] = rd_u32(&c->in);
	}
	st = rd_name(&c->in, &name, &len);
	if (!st)
		st = need_dir(c, dir);
	if (st)
		return st;
	if (type < 2 || type > 7)
		return ST_BADTYPE;
	if (type == 5 && (!link_len || link_len > 4096))
		return link_len ? ST_NAMETOOLONG : ST_INVAL;
	if (tree_find(dir, name, len))
		return ST_EXIST;
	if (!may(c, dir, 3))
		return ST_ACCESS;
	before = dir->change;
	n = tree_new(&c->sim->tree, type, type == 2 ? 0755 : 0644);
	n->uid = c->uid;
	n->gid = c->gid;
	n->rdev[0] = rdev[0];
	n->rdev[1] = rdev[1];
	if (type == 5)
		tree_write(&c->sim->tree, n, 0, link, link_len, true);
	st = attr_apply(c, n, set);
	tree_link(&c->sim->tree, dir, name, len, n);
	if (st) {
		tree_unlink(&c->sim->tree, dir, tree_find(dir, name, len));
		return st;
	}
	c->cur = n;
	wr_cinfo(c, before, dir);
	wr_bitmap(c->out, set);
	return ST_OK;
}

static uint32_t check_removable(const struct node *n)
{
	return n->type == NFSD_SIM_DIR && !list_empty(&n->entries) ? ST_NOTEMPTY : ST_OK;
}

uint32_t op_remove(struct cmp *c)
{
	const char *name;
	uint32_t len, st = rd_name(&c->in, &name, &len);
	struct dirent_sim *de;
	uint64_t before;

	if (!st)
		st = need_dir(c, c->cur);
	if (st)
		return st;
	if (!may(c, c->cur, 3))
		return ST_ACCESS;
	de = tree_find(c->cur, name, len);
	if (!de)
		return ST_NOENT;
	st = check_removable(de->node);
	if (st)
		return st;
	before = c->cur->change;
	tree_unlink(&c->sim->tree, c->cur, de);
	wr_cinfo(c, before, c->cur);
	return ST_OK;
}

static bool is_below(const struct node *n, const struct node *top)
{
	while (n != top && n->parent != n)
		n = n->parent;
	return n == top;
}

uint32_t op_rename(struct cmp *c)
{
	struct node *from = c->saved, *to = c->cur, *n;
	struct dirent_sim *src, *dst;
	uint32_t old_len, new_len, st;
	const char *old, *name;
	uint64_t from_before, to_before;

	st = rd_name(&c->in, &old, &old_len);
	if (!st)
		st = rd_name(&c->in, &name, &new_len);
	if (!st)
		st = need_dir(c, from);
	if (!st)
		st = need_dir(c, to);
	if (st)
		return st;
	src = tree_find(from, old, old_len);
	if (!src)
		return ST_NOENT;
	n = src->node;
	from_before = from->change;
	to_before = to->change;
	dst = tree_find(to, name, new_len);
	if (n->type == NFSD_SIM_DIR && is_below(to, n))
		return ST_INVAL;
	if (dst && dst->node != n) {
		if ((dst->node->type == NFSD_SIM_DIR) != (n->type == NFSD_SIM_DIR))
			return ST_EXIST;
		if (check_removable(dst->node))
			return ST_EXIST;
		tree_unlink(&c->sim->tree, to, dst);
		dst = NULL;
	}
	if (!dst) {
		tree_link(&c->sim->tree, to, name, new_len, n);
		if (n->type == NFSD_SIM_DIR) {
			/* Not tree_unlink(), which would free the directory. */
			list_del(&src->link);
			free(src);
			from->nlink--;
			tree_touch(&c->sim->tree, from, true);
		} else {
			tree_unlink(&c->sim->tree, from, src);
		}
	}
	wr_cinfo(c, from_before, from);
	wr_cinfo(c, to_before, to);
	return ST_OK;
}

uint32_t op_link(struct cmp *c)
{
	const char *name;
	uint32_t len, st = rd_name(&c->in, &name, &len);
	uint64_t before;

	if (!st)
		st = need_dir(c, c->cur);
	if (st)
		return st;
	if (!c->saved)
		return ST_NOFILEHANDLE;
	if (c->saved->type == NFSD_SIM_DIR)
		return ST_ISDIR;
	if (tree_find(c->cur, name, len))
		return ST_EXIST;
	before = c->cur->change;
	tree_link(&c->sim->tree, c->cur, name, len, c->saved);
	wr_cinfo(c, before, c->cur);
	return ST_OK;
}

uint32_t op_readlink(struct cmp *c)
{
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (c->cur->type != NFSD_SIM_LNK)
		return c->cur->type == NFSD_SIM_DIR ? ST_ISDIR : ST_INVAL;
	wr_opaque(c->out, c->cur->data, c->cur->size);
	return ST_OK;
}

struct listing {
	uint64_t cookie; /* what follows it is listed */
	uint32_t dircount, maxcount, mask[3];
	uint32_t names, cnt;
	size_t start;
};

/* False: there is no room for it. */
static bool list_entry(struct cmp *c, struct listing *l, uint64_t cookie, const char *name,
	uint32_t len, struct node *n)
{
	size_t before = c->out->len;

	wr_u32(c->out, 1);
	wr_u64(c->out, cookie);
	wr_opaque(c->out, name, len);
	attr_encode(c, n, l->mask, 0);
	l->names += 12 + len;
	if (c->out->len - l->start + 8 > l->maxcount ||
		(l->dircount && l->names > l->dircount && l->cnt)) {
		c->out->len = before;
		return false;
	}
	l->cnt++;
	return true;
}

static bool list_dir(struct cmp *c, struct listing *l)
{
	list_for_each (node, &c->cur->entries) {
		struct dirent_sim *de = container_of(node, struct dirent_sim, link);

		if (de->cookie > l->cookie &&
			!list_entry(c, l, de->cookie, de->name, de->len, de->node))
			return false;
	}
	return true;
}

/* A directory has these, or entries of its own. */
static bool list_crowd(struct cmp *c, struct listing *l)
{
	struct tree *t = &c->sim->tree;
	uint64_t i = l->cookie < TREE_CROWD_COOKIE ? 0 : l->cookie - TREE_CROWD_COOKIE + 1;
	char name[256];

	for (; i < t->crowd_cnt; i++) {
		uint32_t len = tree_crowd_name(i, name);

		if (!list_entry(c, l, i + TREE_CROWD_COOKIE, name, len,
			    tree_node(t, TREE_CROWD_ID + i)))
			return false;
	}
	return true;
}

uint32_t op_readdir(struct cmp *c)
{
	static const uint8_t zero[8];
	struct listing l = {.cookie = rd_u64(&c->in)};
	const uint8_t *verf = rd_bytes(&c->in, 8);
	uint32_t st;
	bool eof;

	l.dircount = rd_u32(&c->in);
	l.maxcount = rd_u32(&c->in);
	rd_bitmap(&c->in, l.mask);
	if (c->in.bad)
		return ST_BADXDR;
	st = need_dir(c, c->cur);
	if (st)
		return st;
	if (!may(c, c->cur, 4))
		return ST_ACCESS;
	if (l.cookie == 1 || l.cookie == 2)
		return ST_BAD_COOKIE;
	if (!l.cookie && memcmp(verf, zero, 8) != 0) {
		fab_sim_fail("READDIR with cookie 0 and a verifier");
		return ST_BAD_COOKIE;
	}
	l.start = c->out->len;
	wr_raw(c->out, zero, 8);
	eof = c->cur == c->sim->tree.crowd ? list_crowd(c, &l) : list_dir(c, &l);
	if (!l.cnt && !eof)
		return ST_TOOSMALL;
	wr_u32(c->out, 0);
	wr_u32(c->out, eof);
	return ST_OK;
}

uint32_t op_secinfo_no_name(struct cmp *c)
{
	rd_u32(&c->in);
	if (!c->cur)
		return ST_NOFILEHANDLE;
	c->cur = NULL; /* consumed: RFC 8881 section 2.6.3.1.1.8 */
	wr_u32(c->out, 2);
	wr_u32(c->out, 1);
	wr_u32(c->out, 0);
	return ST_OK;
}
