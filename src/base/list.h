/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive doubly linked lists. A node that is on no list points at itself,
 * so that list_del() twice and list_is_linked() are safe.
 *
 * Context: pure; the owner of the list serialises.
 */
#ifndef RPCRDMAFS_LIST_H
#define RPCRDMAFS_LIST_H

#include <stdbool.h>
#include <stddef.h>

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(l)                                                                               \
	{                                                                                          \
		&(l), &(l)                                                                         \
	}

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline bool list_is_linked(const struct list *node)
{
	return node->next != node;
}

static inline void list_add_between(struct list *node, struct list *prev, struct list *next)
{
	node->prev = prev;
	node->next = next;
	prev->next = node;
	next->prev = node;
}

static inline void list_push_front(struct list *l, struct list *node)
{
	list_add_between(node, l, l->next);
}

static inline void list_push_back(struct list *l, struct list *node)
{
	list_add_between(node, l->prev, l);
}

static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* The first node, taken off the list; NULL if it is empty. */
static inline struct list *list_pop_front(struct list *l)
{
	struct list *node = l->next;

	if (node == l)
		return NULL;
	list_del(node);
	return node;
}

/* All nodes of `from` to the end of `to`; `from` is empty afterwards. */
static inline void list_splice_back(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_first(l, type, member) (container_of((l)->next, type, member))

/* `pos` is a struct list *; list_for_each_safe allows list_del(pos). */
#define list_for_each(pos, l) for (struct list *pos = (l)->next; pos != (l); pos = pos->next)
#define list_for_each_safe(pos, tmp, l)                                                            \
	for (struct list *pos = (l)->next, *tmp = pos->next; pos != (l); pos = tmp, tmp = pos->next)

#endif
