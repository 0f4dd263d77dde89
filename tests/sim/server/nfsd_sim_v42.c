/* SPDX-License-Identifier: BSD-3-Clause */
/* NFSv4.2: SEEK, ALLOCATE, DEALLOCATE. A block of zeros is a hole. */
#include "nfsd_sim_int.h"

#define BLOCK 4096u

static uint32_t check(struct cmp *c, const struct stateid *sid, uint32_t need)
{
	if (c->minor < 2) {
		fab_sim_fail("xid %#x: an operation of v4.2 in v4.%u", c->job->xid, c->minor);
		return ST_OP_ILLEGAL;
	}
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (c->cur->type != NFSD_SIM_REG)
		return ST_WRONG_TYPE;
	return state_check(c, sid, need, NULL);
}

static bool is_hole(const struct node *n, uint64_t block)
{
	for (uint64_t i = block * BLOCK; i < (block + 1) * BLOCK && i < n->size; i++) {
		if (n->data[i])
			return false;
	}
	return true;
}

uint32_t op_seek(struct cmp *c)
{
	struct stateid sid;
	uint64_t off, at;
	uint32_t what, st;

	rd_stateid(&c->in, &sid);
	off = rd_u64(&c->in);
	what = rd_u32(&c->in);
	st = check(c, &sid, 1);
	if (st)
		return st;
	if (what > 1)
		return 10090; /* UNION_NOTSUPP */
	if (off >= c->cur->size)
		return 6; /* NXIO */
	at = off;
	while (at < c->cur->size && is_hole(c->cur, at / BLOCK) != (what == 1))
		at = (at / BLOCK + 1) * BLOCK;
	if (at >= c->cur->size && what == 0)
		return 6;
	if (at > c->cur->size)
		at = c->cur->size;
	wr_u32(c->out, at >= c->cur->size);
	wr_u64(c->out, at);
	return ST_OK;
}

uint32_t op_allocate(struct cmp *c)
{
	struct stateid sid;
	uint64_t off, len;
	uint32_t st;

	rd_stateid(&c->in, &sid);
	off = rd_u64(&c->in);
	len = rd_u64(&c->in);
	st = check(c, &sid, 2);
	if (!st)
		st = lock_io_check(c, &sid, off, len, true);
	if (st)
		return st;
	if (!len)
		return ST_INVAL;
	if (off + len < off || off + len > 1ull << 32)
		return ST_FBIG;
	if (off + len > c->cur->size)
		tree_truncate(&c->sim->tree, c->cur, off + len);
	return ST_OK;
}

uint32_t op_deallocate(struct cmp *c)
{
	static const uint8_t zeros[BLOCK];
	struct stateid sid;
	uint64_t off, len;
	uint32_t st;

	rd_stateid(&c->in, &sid);
	off = rd_u64(&c->in);
	len = rd_u64(&c->in);
	st = check(c, &sid, 2);
	if (st)
		return st;
	while (len && off < c->cur->size) {
		uint64_t n = len < BLOCK ? len : BLOCK;

		if (n > c->cur->size - off)
			n = c->cur->size - off;
		tree_write(&c->sim->tree, c->cur, off, zeros, n, true);
		off += n;
		len -= n;
	}
	return ST_OK;
}
