/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_batch.h"
#include "fs_append.h"
#include "fs_dirty.h"
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

void fs_train_lane_init(struct fs_lane *l)
{
	l->train_max = l->dirty_max / FS_TRAIN_SHARE;
	if (l->train_max > NFS4_WRITE_PIECES)
		l->train_max = NFS4_WRITE_PIECES;
}

/* ---- while it is open ---- */

struct fs_op *fs_train_last(struct fs_op *head)
{
	if (list_empty(&head->dirty.cars))
		return head;
	return container_of(head->dirty.cars.prev, struct fs_op, dirty.car_link);
}

bool fs_train_takes(struct fs_op *head, const struct fs_op *op)
{
	const struct fs_op *last = fs_train_last(head);

	/* Small ones are copied into the last, which is cheaper for the server. */
	return op->lane == head->lane && op->file == head->file && op->size >= FS_RETAIN_LARGE &&
	       end_of(last) == (uint64_t)op->off && fs_append_joins(last, op) &&
	       head->dirty.car_cnt + 1 < head->lane->train_max &&
	       end_of(op) - (uint64_t)head->off <= wsize_of(head);
}

void fs_train_couple(struct fs_op *head, struct fs_op *op)
{
	list_push_back(&head->dirty.cars, &op->dirty.car_link);
	head->dirty.car_cnt++;
}

bool fs_train_is_full(struct fs_op *head)
{
	const struct fs_op *last = fs_train_last(head);

	return head->dirty.car_cnt + 1 >= head->lane->train_max ||
	       end_of(last) + last->size - (uint64_t)head->off > wsize_of(head);
}

/* ---- its WRITE ---- */

bool fs_train_reserve(struct fs_op *head)
{
	if (!fs_retain_reserve(head))
		return false;
	list_for_each (node, &head->dirty.cars)
		if (!fs_retain_reserve(container_of(node, struct fs_op, dirty.car_link)))
			return false;
	return true;
}

static struct rpcrdma_span span_of(const struct fs_op *op)
{
	return (struct rpcrdma_span){
		.buf = op->buf,
		.p = (uint8_t *)(uintptr_t)op->u.rw.data + op->u.rw.done,
		.len = (uint32_t)(op->size - op->u.rw.done),
	};
}

void fs_train_data(const struct fs_op *head, struct nfs4_op_write *w)
{
	uint32_t room =
		wsize_of(head); /* less than when it was made up, if the server is another */

	w->data[0] = span_of(head);
	if (w->data[0].len > room)
		w->data[0].len = room;
	room -= w->data[0].len;
	w->data_cnt = 1;
	list_for_each (node, &head->dirty.cars) {
		const struct fs_op *car = container_of(node, struct fs_op, dirty.car_link);

		if (car->size > room)
			break;
		assert(w->data_cnt < NFS4_WRITE_PIECES);
		w->data[w->data_cnt++] = span_of(car);
		room -= (uint32_t)car->size;
	}
}

/* Each step may end in handlers of other requests: nothing hangs on the head meanwhile. */
static struct fs_op *next_car(struct list *cars)
{
	struct list *node = list_pop_front(cars);

	return node ? container_of(node, struct fs_op, dirty.car_link) : NULL;
}

static void take_cars(struct fs_op *head, struct list *ret)
{
	list_init(ret);
	list_splice_back(ret, &head->dirty.cars);
	head->dirty.car_cnt = 0;
}

/* The head's WRITE brought all of it. Only the head is in the gate, until it is over itself. */
static void car_wrote(struct fs_op *car, const struct nfs4_op_write *w)
{
	car->u.rw.done = car->size;
	car->u.rw.unstable = w->committed != FILE_SYNC4;
	car->u.rw.verf = w->verf;
	fs_retain_wrote(car, car->u.rw.unstable, false);
	fs_append_over(car);
	fs_dirty_done(car, 0);
}

void fs_train_wrote(struct fs_op *head, const struct nfs4_op_write *w, size_t behind)
{
	struct fs_op *car;
	struct list cars;

	take_cars(head, &cars);
	while ((car = next_car(&cars))) {
		if (behind >= car->size) {
			behind -= car->size;
			car_wrote(car, w);
			continue;
		}
		/* A part of it is there, or may be all: at its own place, no end is looked for. */
		if (behind > 0 || head->u.rw.plain)
			car->u.rw.plain = true;
		behind = 0;
		fs_retain_wrote(car, false, false); /* it will have its turn, and room, again */
		car->dirty.send(car);
	}
}

void fs_train_fail(struct fs_op *head, int err)
{
	struct fs_op *car;
	struct list cars;

	take_cars(head, &cars);
	while ((car = next_car(&cars))) {
		fs_retain_wrote(car, false, false);
		fs_append_over(car);
		fs_dirty_done(car, err);
	}
}
