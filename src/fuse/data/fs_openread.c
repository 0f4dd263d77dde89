/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_openread.h"
#include "fs_ahead.h"
#include "fs_asked_buf.h"
#include "fs_block.h"
#include "fs_writeback.h"
#include "fs_facts.h"
#include "fs_inode.h"

#include <fcntl.h>
#include <string.h>

/* Will the kernel drop what it holds of the file, or has it nothing? Inode lock held. */
static bool pages_go(const struct fs_inode *in)
{
	return !in->opened || in->data_change == 0 || in->inval_want != in->inval_done;
}

/* How much of it is wanted; 0: nothing. */
static uint32_t wanted(const struct fs_op *op)
{
	const struct fs_lane *l = op->lane;
	const struct fs_conf *conf = &l->fs->conf;
	uint32_t rsize = fs_facts(l->fs, op->inode)->rsize;
	struct fs_inode *in = op->inode;
	uint64_t size = 0;

	if ((op->fi.flags & (O_ACCMODE | O_DIRECT | O_TRUNC)) != O_RDONLY || conf->noac ||
		conf->acregmin_s == 0 || l->state != FS_LANE_RUNS)
		return 0;
	mutex_lock(&in->lock);
	if (in->attr_known && in->attr.type == NF4REG && in->writers == 0 &&
		!fs_writeback_any(in) && pages_go(in))
		size = in->attr.size;
	mutex_unlock(&in->lock);
	if (size > FS_OPENREAD_MAX || size > rsize || size > l->fs->data_size)
		return 0;
	return (uint32_t)size;
}

/* Is it likely to be read? */
static bool is_worth_it(struct fs_lane *l)
{
	return l->ahead->open_vain < FS_OPENREAD_VAIN ||
	       ++l->ahead->open_plain % FS_OPENREAD_TRY == 0;
}

/* NULL: there is no room. */
static struct fs_op *new_block(struct fs_lane *l, struct fs_file *f, uint32_t size)
{
	struct rpcrdma_buf *buf = rpcrdma_buf_get(l->xprt);
	struct fs_op *b;

	if (!buf)
		return NULL;
	buf->owner = NULL;
	mutex_lock(&f->inode->lock);
	b = fs_ahead_first(l, f, size);
	mutex_unlock(&f->inode->lock);
	if (!b) {
		fs_asked_buf_put(l, buf);
		return NULL;
	}
	fs_inode_ref(l->fs, b->inode);
	b->buf = buf;
	b->block->at_open = true;
	fs_ahead_arm(l);
	return b;
}

void fs_openread_begin(struct fs_op *op)
{
	struct fs_lane *l = op->lane;
	uint32_t size = wanted(op);
	struct fs_op *b;

	if (!size || !is_worth_it(l))
		return;
	b = new_block(l, op->file, size);
	if (!b)
		return;
	/* The block's own call is none: it lends the place for what READ says. */
	b->call->u.read = (struct nfs4_op_read){
		.count = size,
		.sink = {.buf = b->buf, .p = b->buf->data, .len = size},
	};
	fs_openread(op)->block = b;
	op->call->u.open.read = &b->call->u.read;
	stats_count(&l->stats->reads_at_open, 1);
}

void fs_openread_end(struct fs_op *op, bool opened)
{
	struct fs_op *b = fs_openread(op)->block;
	const struct nfs4_op_read *r;

	if (!b)
		return;
	fs_openread(op)->block = NULL;
	r = &b->call->u.read;
	/* An end of 0 bytes: it was truncated meanwhile, who reads asks. */
	if (!opened || !r->data || r->len == 0) {
		fs_ahead_landed(b, true, 0, false);
		return;
	}
	stats_count(&op->lane->stats->bytes_read, r->len);
	if (r->data != b->buf->data) {
		memcpy(b->buf->data, r->data, r->len);
		stats_count(&op->lane->stats->copied_bytes, r->len);
	}
	fs_ahead_landed(b, false, r->len, r->eof);
}
