/* SPDX-License-Identifier: BSD-3-Clause */
/* CLONE as Linux' nfsd does it on a file system that shares blocks: all or nothing, not durable. */
#include "nfsd_sim_held.h"

#include <stdlib.h>

/* As vfs_clone_file_range() has it. */
static bool fits(const struct cmp *c, const struct copy_args *a)
{
	uint64_t block = c->sim->conf.clone_block;
	uint64_t src_end = a->src_off + a->count, end = a->off + a->count;
	bool to_end = src_end == c->saved->size && end >= c->cur->size;

	if (src_end < a->src_off || src_end > c->saved->size || end < a->off)
		return false;
	if (a->src_off % block || a->off % block || (a->count % block && !to_end))
		return false;
	return c->cur != c->saved || src_end <= a->off || end <= a->src_off;
}

uint32_t op_clone(struct cmp *c)
{
	struct copy_args a;
	uint8_t *data;
	uint32_t st;

	rd_copy_args(&c->in, &a);
	if (!a.count)
		fab_sim_fail("xid %#x: CLONE to the end", c->job->xid);
	st = copy_check(c, "CLONE", &a);
	if (st)
		return st;
	if (!c->sim->conf.clone_block)
		return ST_NOTSUPP;
	if (!fits(c, &a))
		return ST_INVAL;
	if (a.off + a.count > 1ull << 32)
		return ST_FBIG;
	data = malloc(a.count);
	memcpy(data, c->saved->data + a.src_off, a.count);
	tree_write(&c->sim->tree, c->cur, a.off, data, a.count, false);
	free(data);
	return ST_OK;
}
