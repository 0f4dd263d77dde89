/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_ahead.h"
#include "fs_block.h"
#include "fs_op.h"
#include "fs_openread.h"

#include <assert.h>

#define AGE_MAX_S 3u

void fs_block_made(struct fs_op *op, void *mem)
{
	struct fs_block *k = mem;

	k->op = op;
	list_init(&k->link);
	list_init(&k->lane_link);
	list_init(&k->waiters);
	op->block = k;
}

void fs_block_begin(struct fs_op *b, struct list *blocks)
{
	struct fs_block *k = b->block;

	assert(k->readers == 0 && list_empty(&k->waiters));
	k->flying = true;
	k->eof = k->dropped = k->at_open = k->used = false;
	k->len = 0;
	list_push_back(blocks, &k->link);
	list_push_back(&b->lane->ahead->blocks, &k->lane_link);
	b->lane->ahead->cnt++;
}

uint64_t fs_block_end(const struct fs_op *b)
{
	return (uint64_t)b->off + b->size;
}

/* From its lane. No lock held. */
static void over(struct fs_op *b)
{
	struct fs_lane *l = b->lane;

	list_del(&b->block->lane_link);
	l->ahead->cnt--;
	if (b->block->at_open && b->block->used)
		l->ahead->open_vain = 0;
	else if (b->block->at_open && l->ahead->open_vain < FS_OPENREAD_VAIN)
		l->ahead->open_vain++;
	fs_op_end(b);
}

void fs_block_detach(struct fs_op *b, struct list *gone)
{
	list_del(&b->block->link);
	b->block->dropped = true;
	if (!b->block->flying && b->block->readers == 0)
		list_push_back(gone, &b->block->link);
}

void fs_block_send_home(struct fs_lane *l, struct list *gone)
{
	struct list *node;

	while ((node = list_pop_front(gone))) {
		struct fs_op *b = container_of(node, struct fs_block, link)->op;

		if (b->lane == l) {
			over(b);
			continue;
		}
		b->then = over;
		fs_op_wake(b);
	}
}

void fs_block_detach_before(struct list *blocks, uint64_t off, struct list *gone)
{
	list_for_each_safe (node, next, blocks) {
		struct fs_op *b = container_of(node, struct fs_block, link)->op;

		if (fs_block_end(b) <= off)
			fs_block_detach(b, gone);
	}
}

bool fs_block_is_stale(const struct fs_op *b, uint64_t now_ns)
{
	const struct fs_inode *in = b->inode;
	const struct fs_conf *conf = &b->lane->fs->conf;
	uint64_t age_s = conf->acregmin_s < AGE_MAX_S ? conf->acregmin_s : AGE_MAX_S;

	return b->block->seq != in->attr_seq || b->block->inval != in->inval_want ||
	       now_ns > b->block->since + age_s * NSEC_PER_SEC;
}

struct fs_op *fs_block_find(const struct list *blocks, const struct fs_op *op)
{
	uint64_t off = (uint64_t)op->off;

	list_for_each (node, blocks) {
		struct fs_op *b = container_of(node, struct fs_block, link)->op;
		bool flying = b->block->flying;
		uint64_t have = (uint64_t)b->off + (flying ? b->size : b->block->len);
		bool last = flying ? have >= op->inode->attr.size : b->block->eof;

		if (off >= (uint64_t)b->off && off < have && (off + op->size <= have || last))
			return b;
	}
	return NULL;
}

void fs_block_read_over(struct fs_op *b, uint64_t read_to, struct list *gone)
{
	b->block->readers--;
	b->block->used = true;
	if (!b->block->dropped && read_to >= (uint64_t)b->off + b->block->len)
		fs_block_detach(b, gone);
	else if (b->block->dropped && b->block->readers == 0)
		list_push_back(gone, &b->block->link);
}
