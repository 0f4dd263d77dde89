/* SPDX-License-Identifier: BSD-3-Clause */
#include "timerq.h"

#include <assert.h>

static bool is_before(const struct timerq_node *a, const struct timerq_node *b)
{
	return a->key_ns != b->key_ns ? a->key_ns < b->key_ns : a->seq < b->seq;
}

/* Both are roots of their own (no siblings); either may be NULL. The later becomes a child. */
static struct timerq_node *meld(struct timerq_node *a, struct timerq_node *b)
{
	struct timerq_node *later;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	later = is_before(a, b) ? b : a;
	a = later == b ? a : b;
	later->prev = a;
	later->next = a->child;
	if (a->child != NULL)
		a->child->prev = later;
	a->child = later;
	return a;
}

/*
 * Siblings become one heap: first pairs from the left, then the pairs from the
 * right. That is what makes removal logarithmic on average.
 */
static struct timerq_node *meld_siblings(struct timerq_node *first)
{
	struct timerq_node *pairs = NULL, *all = NULL;

	while (first != NULL) {
		struct timerq_node *a = first, *b = a->next;

		first = b != NULL ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b != NULL)
			b->next = b->prev = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs != NULL) {
		struct timerq_node *a = pairs;

		pairs = a->next;
		a->next = NULL;
		all = meld(all, a);
	}
	return all;
}

void timerq_insert(struct timerq *q, struct timerq_node *n, uint64_t key_ns)
{
	assert(!timerq_is_queued(n));
	*n = (struct timerq_node){.key_ns = key_ns, .seq = ++q->seq};
	q->root = meld(q->root, n);
}

void timerq_remove(struct timerq *q, struct timerq_node *n)
{
	assert(timerq_is_queued(n));
	if (n == q->root) {
		q->root = meld_siblings(n->child);
	} else {
		if (n->prev->child == n)
			n->prev->child = n->next;
		else
			n->prev->next = n->next;
		if (n->next != NULL)
			n->next->prev = n->prev;
		q->root = meld(q->root, meld_siblings(n->child));
	}
	*n = (struct timerq_node){0};
}
