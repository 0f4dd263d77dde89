/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "timerq.h"

static struct timerq_node *take(struct timerq *q)
{
	struct timerq_node *n = timerq_first(q);

	if (n != NULL)
		timerq_remove(q, n);
	return n;
}

Test(timerq, an_empty_queue_has_no_first)
{
	struct timerq q = {0};

	cr_assert_null(timerq_first(&q));
}

Test(timerq, equal_keys_leave_in_the_order_they_came)
{
	struct timerq q = {0};
	struct timerq_node n[9] = {0};

	for (int i = 0; i < 9; i++)
		timerq_insert(&q, &n[i], 5);
	for (int i = 0; i < 9; i++)
		cr_assert_eq(take(&q), &n[i]);
	cr_assert_null(take(&q));
}

Test(timerq, the_first_of_several_children_can_be_removed)
{
	struct timerq q = {0};
	struct timerq_node n[4] = {0};

	for (uint64_t i = 0; i < 4; i++)
		timerq_insert(&q, &n[i], i);
	timerq_remove(&q, &n[3]);
	timerq_remove(&q, &n[1]);
	cr_assert_not(timerq_is_queued(&n[1]));
	cr_assert_eq(take(&q), &n[0]);
	cr_assert_eq(take(&q), &n[2]);
	cr_assert_null(take(&q));
}

/* Against a sorted scan: any mix of inserts and removals leaves keys in order. */
Test(timerq, a_long_random_mix_keeps_the_order)
{
	enum {
		CNT = 400
	};
	struct timerq q = {0};
	static struct timerq_node n[CNT];
	unsigned int seed = 7;

	for (int step = 0; step < 40000; step++) {
		struct timerq_node *x = &n[rand_r(&seed) % CNT];
		const struct timerq_node *min = NULL;

		if (timerq_is_queued(x))
			timerq_remove(&q, x);
		else
			timerq_insert(&q, x, (uint64_t)rand_r(&seed) % 50);
		if (step % 50 != 0)
			continue;
		for (int i = 0; i < CNT; i++)
			if (timerq_is_queued(&n[i]) &&
				(min == NULL || n[i].key_ns < min->key_ns ||
					(n[i].key_ns == min->key_ns && n[i].seq < min->seq)))
				min = &n[i];
		cr_assert_eq(timerq_first(&q), min);
	}
}
