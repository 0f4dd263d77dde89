/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one owner holds of a file, as POSIX and nfsd see it: ascending, disjoint
 * ranges, each READ or WRITE; neighbours of one kind are one range.
 */
#include <assert.h>
#include <stdlib.h>

#include "nfs4_lock.h"

static struct nfs4_lockrange *range_of(struct list *node)
{
	return container_of(node, struct nfs4_lockrange, link);
}

static struct nfs4_lockrange *take(struct nfs4_lockrange *spare[2])
{
	unsigned int i = spare[0] ? 0 : 1;
	struct nfs4_lockrange *rg = spare[i];

	assert(rg); /* reserved before the call was sent */
	spare[i] = NULL;
	rg->reclaimed = false;
	return rg;
}

static void put_between(
	struct nfs4_lockrange *rg, struct list *before, uint64_t first, uint64_t last, bool write)
{
	rg->first = first;
	rg->last = last;
	rg->write = write;
	list_add_between(&rg->link, before->prev, before);
}

void nfs4_lockrange_clear(
	struct list *ranges, uint64_t first, uint64_t last, struct nfs4_lockrange *spare[2])
{
	list_for_each_safe (node, next, ranges) {
		struct nfs4_lockrange *rg = range_of(node);

		if (rg->last < first)
			continue;
		if (rg->first > last)
			return;
		if (rg->first < first && rg->last > last) {
			put_between(take(spare), next, last + 1, rg->last, rg->write);
			rg->last = first - 1;
		} else if (rg->first < first) {
			rg->last = first - 1;
		} else if (rg->last > last) {
			rg->first = last + 1;
		} else {
			list_del(node);
			free(rg);
		}
	}
}

/* Takes the range before it in, if they are one. */
static void merge(struct list *ranges, struct list *node)
{
	struct nfs4_lockrange *rg, *before;

	if (node == ranges || node->prev == ranges)
		return;
	rg = range_of(node);
	before = range_of(node->prev);
	if (before->write != rg->write || before->last + 1 != rg->first)
		return;
	rg->first = before->first;
	list_del(&before->link);
	free(before);
}

void nfs4_lockrange_set(struct list *ranges, uint64_t first, uint64_t last, bool write,
	struct nfs4_lockrange *spare[2])
{
	struct nfs4_lockrange *rg;
	struct list *before;

	nfs4_lockrange_clear(ranges, first, last, spare);
	for (before = ranges->next; before != ranges; before = before->next)
		if (range_of(before)->first > last)
			break;
	rg = take(spare);
	put_between(rg, before, first, last, write);
	merge(ranges, &rg->link);
	merge(ranges, before); /* takes rg in */
}

bool nfs4_lockrange_overlap(const struct list *ranges, uint64_t first, uint64_t last)
{
	list_for_each (node, ranges) {
		const struct nfs4_lockrange *rg = range_of(node);

		if (rg->first <= last && rg->last >= first)
			return true;
	}
	return false;
}

static bool is_amid_one(const struct list *ranges, uint64_t first, uint64_t last)
{
	list_for_each (node, ranges) {
		const struct nfs4_lockrange *rg = range_of(node);

		if (rg->first < first && rg->last > last)
			return true;
	}
	return false;
}

bool nfs4_lockrange_exceeds(
	const struct list *ranges, size_t max, uint64_t first, uint64_t last, bool unlock)
{
	size_t cnt = 0;

	if (max == 0)
		return false;
	list_for_each (node, ranges)
		if (++cnt >= max)
			return !unlock || is_amid_one(ranges, first, last);
	return false;
}

void nfs4_lockrange_drop(struct list *ranges)
{
	struct list *node;

	while ((node = list_pop_front(ranges)))
		free(range_of(node));
}
