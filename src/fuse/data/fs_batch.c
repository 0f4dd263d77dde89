/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_batch.h"
#include "fs_append.h"
#include "fs_writeback.h"
#include "fs_facts.h"

#include <assert.h>

static uint64_t end_of(const struct fs_op *op)
{
	return (uint64_t)op->off + op->size;
}

static uint32_t wsize_of(const struct fs_op *op)
{
	return fs_facts(op->lane->fs, op->inode)->wsize;
}

void fs_batch_lane_init(struct fs_lane *l)
{
	l->writeback->batch_max = l->writeback->max / FS_BATCH_SHARE;
	if (l->writeback->batch_max > NFS4_WRITE_PIECES)
		l->writeback->batch_max = NFS4_WRITE_PIECES;
}

/* ---- while it is open ---- */

struct fs_op *fs_batch_last(struct fs_op *head)
{
	if (list_empty(&head->writeback->parts))
		return head;
	return container_of(head->writeback->parts.prev, struct fs_writeback, part_link)->op;
}

bool fs_batch_takes(struct fs_op *head, const struct fs_op *op)
{
	const struct fs_op *last = fs_batch_last(head);

	/* Small ones are copied into the last, which is cheaper for the server. */
	return op->lane == head->lane && op->file == head->file && op->size >= FS_UNSTABLE_LARGE &&
	       end_of(last) == (uint64_t)op->off && fs_append_joins(last, op) &&
	       head->writeback->part_cnt + 1 < head->lane->writeback->batch_max &&
	       end_of(op) - (uint64_t)head->off <= wsize_of(head);
}

void fs_batch_add(struct fs_op *head, struct fs_op *op)
{
	list_push_back(&head->writeback->parts, &op->writeback->part_link);
	head->writeback->part_cnt++;
}

bool fs_batch_is_full(struct fs_op *head)
{
	const struct fs_op *last = fs_batch_last(head);

	return head->writeback->part_cnt + 1 >= head->lane->writeback->batch_max ||
	       end_of(last) + last->size - (uint64_t)head->off > wsize_of(head);
}

/* ---- its WRITE ---- */

bool fs_batch_reserve(struct fs_op *head)
{
	if (!fs_unstable_reserve(head))
		return false;
	list_for_each (node, &head->writeback->parts)
		if (!fs_unstable_reserve(container_of(node, struct fs_writeback, part_link)->op))
			return false;
	return true;
}

static struct rpcrdma_span span_of(const struct fs_op *op)
{
	return (struct rpcrdma_span){
		.buf = op->buf,
		.p = (uint8_t *)(uintptr_t)fs_rw(op)->data + fs_rw(op)->done,
		.len = (uint32_t)(op->size - fs_rw(op)->done),
	};
}

void fs_batch_data(const struct fs_op *head, struct nfs4_op_write *w)
{
	uint32_t room =
		wsize_of(head); /* less than when it was made up, if the server is another */

	w->data[0] = span_of(head);
	if (w->data[0].len > room)
		w->data[0].len = room;
	room -= w->data[0].len;
	w->data_cnt = 1;
	list_for_each (node, &head->writeback->parts) {
		const struct fs_op *part = container_of(node, struct fs_writeback, part_link)->op;

		if (part->size > room)
			break;
		assert(w->data_cnt < NFS4_WRITE_PIECES);
		w->data[w->data_cnt++] = span_of(part);
		room -= (uint32_t)part->size;
	}
}

/* Each step may end in handlers of other requests: nothing hangs on the head meanwhile. */
static struct fs_op *next_part(struct list *parts)
{
	struct list *node = list_pop_front(parts);

	return node ? container_of(node, struct fs_writeback, part_link)->op : NULL;
}

static void take_parts(struct fs_op *head, struct list *ret)
{
	list_init(ret);
	list_splice_back(ret, &head->writeback->parts);
	head->writeback->part_cnt = 0;
}

/* The head's WRITE brought all of it. Only the head is in the gate, until it is over itself. */
static void part_wrote(struct fs_op *part, const struct nfs4_op_write *w)
{
	fs_rw(part)->done = part->size;
	fs_rw(part)->unstable = w->committed != FILE_SYNC4;
	fs_rw(part)->verf = w->verf;
	fs_commit_wrote(part, fs_rw(part)->unstable, false);
	fs_append_over(part);
	fs_writeback_done(part, 0);
}

void fs_batch_wrote(struct fs_op *head, const struct nfs4_op_write *w, size_t covered)
{
	struct fs_op *part;
	struct list parts;

	take_parts(head, &parts);
	while ((part = next_part(&parts))) {
		if (covered >= part->size) {
			covered -= part->size;
			part_wrote(part, w);
			continue;
		}
		/* A part of it is there, or may be all: at its own place, no end is looked for. */
		if (covered > 0 || fs_rw(head)->plain)
			fs_rw(part)->plain = true;
		covered = 0;
		fs_unstable_wrote(part, false, false); /* it will have its turn, and room, again */
		part->writeback->send(part);
	}
}

void fs_batch_fail(struct fs_op *head, int err)
{
	struct fs_op *part;
	struct list parts;

	take_parts(head, &parts);
	while ((part = next_part(&parts))) {
		fs_unstable_wrote(part, false, false);
		fs_append_over(part);
		fs_writeback_done(part, err);
	}
}
