/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "list.h"

struct item {
	int value;
	struct list link;
};

static int value_of(struct list *node)
{
	return container_of(node, struct item, link)->value;
}

static void fill(struct list *l, struct item *items, int cnt, int first)
{
	list_init(l);
	for (int i = 0; i < cnt; i++) {
		items[i].value = first + i;
		list_push_back(l, &items[i].link);
	}
}

static void expect(const struct list *l, const int *values, int cnt)
{
	int i = 0;

	list_for_each (node, l) {
		cr_assert_lt(i, cnt);
		cr_assert_eq(value_of(node), values[i]);
		cr_assert_eq(node->next->prev, node);
		i++;
	}
	cr_assert_eq(i, cnt);
}

Test(list, pops_in_the_order_of_pushing_back)
{
	struct item items[3];
	struct list l;

	fill(&l, items, 3, 1);
	for (int i = 1; i <= 3; i++)
		cr_assert_eq(value_of(list_pop_front(&l)), i);
	cr_assert_null(list_pop_front(&l));
	cr_assert(list_empty(&l));
}

Test(list, push_front_comes_first)
{
	struct item items[2], head = {.value = 9};
	struct list l;

	fill(&l, items, 2, 1);
	list_push_front(&l, &head.link);
	expect(&l, (const int[]){9, 1, 2}, 3);
	cr_assert_eq(list_first(&l, struct item, link), &head);
}

Test(list, deleting_twice_is_harmless)
{
	struct item items[3];
	struct list l;

	fill(&l, items, 3, 1);
	cr_assert(list_is_linked(&items[1].link));
	list_del(&items[1].link);
	cr_assert_not(list_is_linked(&items[1].link));
	list_del(&items[1].link);
	expect(&l, (const int[]){1, 3}, 2);
}

Test(list, safe_loop_allows_deleting_each_node)
{
	struct item items[4];
	struct list l;
	int seen = 0;

	fill(&l, items, 4, 1);
	list_for_each_safe (node, tmp, &l) {
		list_del(node);
		seen++;
	}
	cr_assert_eq(seen, 4);
	cr_assert(list_empty(&l));
}

Test(list, splice_appends_and_empties_the_source)
{
	struct item a[2], b[2];
	struct list to, from;

	fill(&to, a, 2, 1);
	fill(&from, b, 2, 3);
	list_splice_back(&to, &from);
	expect(&to, (const int[]){1, 2, 3, 4}, 4);
	cr_assert(list_empty(&from));

	list_splice_back(&to, &from);
	expect(&to, (const int[]){1, 2, 3, 4}, 4);
}

Test(list, splice_into_an_empty_list)
{
	struct item b[2];
	struct list to = LIST_INIT(to), from;

	fill(&from, b, 2, 3);
	list_splice_back(&to, &from);
	expect(&to, (const int[]){3, 4}, 2);
}
