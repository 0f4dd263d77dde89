/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended attributes (RFC 8276): long calls and large replies. */
#include "nfsd_sim_int.h"

#include <stdlib.h>

#define VALUE_MAX 65536u

static struct xattr *find(struct node *n, const char *name, uint32_t len)
{
	list_for_each (node, &n->xattrs) {
		struct xattr *x = container_of(node, struct xattr, link);

		if (strlen(x->name) == len && !memcmp(x->name, name, len))
			return x;
	}
	return NULL;
}

uint32_t op_getxattr(struct cmp *c)
{
	const char *name;
	uint32_t len, st = rd_name(&c->in, &name, &len);
	struct xattr *x;

	if (st)
		return st;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	x = find(c->cur, name, len);
	if (!x)
		return ST_NOXATTR;
	c->job->unbounded = true;
	wr_opaque(c->out, x->value, x->len);
	return ST_OK;
}

uint32_t op_setxattr(struct cmp *c)
{
	uint32_t option = rd_u32(&c->in), len, value_len, st;
	const uint8_t *value;
	const char *name;
	struct xattr *x;
	uint64_t before;

	st = rd_name(&c->in, &name, &len);
	value = rd_opaque(&c->in, &value_len);
	if (c->in.bad)
		return ST_BADXDR;
	if (st)
		return st;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (value_len > VALUE_MAX)
		return ST_XATTR2BIG;
	x = find(c->cur, name, len);
	if (option == 1 && x) /* SETXATTR4_CREATE */
		return ST_EXIST;
	if (option == 2 && !x) /* SETXATTR4_REPLACE */
		return ST_NOXATTR;
	if (!x) {
		x = calloc(1, sizeof(*x));
		memcpy(x->name, name, len);
		list_push_back(&c->cur->xattrs, &x->link);
	}
	free(x->value);
	x->value = malloc(value_len + 1);
	memcpy(x->value, value, value_len);
	x->len = value_len;
	before = c->cur->change;
	tree_touch(&c->sim->tree, c->cur, false);
	wr_cinfo(c, before, c->cur);
	return ST_OK;
}

uint32_t op_listxattrs(struct cmp *c)
{
	uint64_t cookie = rd_u64(&c->in);
	uint32_t maxcount = rd_u32(&c->in), bytes = 12, cnt = 0;
	uint64_t i = 0;
	size_t cnt_off;
	bool eof = true;

	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (maxcount < 8)
		return ST_INVAL;
	c->job->unbounded = true;
	cnt_off = c->out->len + 8;
	wr_u64(c->out, 0);
	wr_u32(c->out, 0);
	list_for_each (node, &c->cur->xattrs) {
		const struct xattr *x = container_of(node, struct xattr, link);

		if (i++ < cookie)
			continue;
		bytes += 4 + (((uint32_t)strlen(x->name) + 3) & ~3u);
		if (bytes + 4 > maxcount) {
			eof = false;
			i--;
			break;
		}
		wr_opaque(c->out, x->name, strlen(x->name));
		cnt++;
	}
	if (!cnt && !eof)
		return ST_TOOSMALL;
	put_u32(c->out->base + cnt_off - 8, (uint32_t)(i >> 32));
	put_u32(c->out->base + cnt_off - 4, (uint32_t)i);
	put_u32(c->out->base + cnt_off, cnt);
	wr_u32(c->out, eof);
	return ST_OK;
}

uint32_t op_removexattr(struct cmp *c)
{
	const char *name;
	uint32_t len, st = rd_name(&c->in, &name, &len);
	struct xattr *x;
	uint64_t before;

	if (st)
		return st;
	if (!c->cur)
		return ST_NOFILEHANDLE;
	x = find(c->cur, name, len);
	if (!x)
		return ST_NOXATTR;
	list_del(&x->link);
	free(x->value);
	free(x);
	before = c->cur->change;
	tree_touch(&c->sim->tree, c->cur, false);
	wr_cinfo(c, before, c->cur);
	return ST_OK;
}
