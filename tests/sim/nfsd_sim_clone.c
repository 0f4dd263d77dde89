/* SPDX-License-Identifier: BSD-3-Clause */
/* CLONE as Linux' nfsd does it on a file system that shares blocks: all or nothing, not durable. */
#include "nfsd_sim_int.h"

#include <stdlib.h>

static uint32_t check(struct cmp *c, const struct stateid *src, const struct stateid *dst)
{
	struct node *cur = c->cur;
	uint32_t st;

	if (c->minor < 2) {
		fab_sim_fail("xid %#x: CLONE in v4.%u", c->job->xid, c->minor);
		return ST_OP_ILLEGAL;
	}
	if (!c->cur || !c->saved)
		return ST_NOFILEHANDLE;
	c->cur = c->saved;
	st = state_check(c, src, 1, NULL);
	c->cur = cur;
	if (!st)
		st = state_check(c, dst, 2, NULL);
	if (!st && (c->cur->type != NFSD_SIM_REG || c->saved->type != NFSD_SIM_REG))
		st = ST_WRONG_TYPE;
	return st;
}

/* As vfs_clone_file_range() has it. */
static bool fits(const struct cmp *c, uint64_t src_off, uint64_t off, uint64_t count)
{
	uint64_t block = c->sim->conf.clone_block;
	bool to_end = src_off + count == c->saved->size && off + count >= c->cur->size;

	if (src_off + count < src_off || src_off + count > c->saved->size || off + count < off)
		return false;
	if (src_off % block || off % block || (count % block && !to_end))
		return false;
	return c->cur != c->saved || src_off + count <= off || off + count <= src_off;
}

uint32_t op_clone(struct cmp *c)
{
	uint64_t src_off, off, count;
	struct stateid src, dst;
	uint8_t *data;
	uint32_t st;

	rd_stateid(&c->in, &src);
	rd_stateid(&c->in, &dst);
	src_off = rd_u64(&c->in);
	off = rd_u64(&c->in);
	count = rd_u64(&c->in);
	if (!count)
		fab_sim_fail("xid %#x: CLONE to the end", c->job->xid);
	st = check(c, &src, &dst);
	if (st)
		return st;
	if (!c->sim->conf.clone_block)
		return ST_NOTSUPP;
	if (!fits(c, src_off, off, count))
		return ST_INVAL;
	if (off + count > 1ull << 32)
		return ST_FBIG;
	data = malloc(count);
	memcpy(data, c->saved->data + src_off, count);
	tree_write(&c->sim->tree, c->cur, off, data, count, false);
	free(data);
	return ST_OK;
}
