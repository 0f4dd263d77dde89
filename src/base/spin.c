/* SPDX-License-Identifier: BSD-3-Clause */
#include "spin.h"

#include <sched.h>
#include <unistd.h>

void spin_init(struct spin *s)
{
	list_init(&s->spinners);
	s->budget_ns = 0;
}

/* CPUs this thread may use. */
static int cpu_cnt(void)
{
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		return CPU_COUNT(&set);
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void spin_set_budget(struct spin *s, uint64_t ns)
{
	s->budget_ns = cpu_cnt() > 1 ? ns : 0;
}

/*
 * The spinners go over to a list of those to come and back one by one, so that
 * a callback may remove any of them, itself and the next included.
 */
bool spin_poll(struct spin *s)
{
	struct list todo = LIST_INIT(todo);
	struct list *node;
	bool ran = false;

	list_splice_back(&todo, &s->spinners);
	while ((node = list_pop_front(&todo))) {
		struct reactor_spin *one = container_of(node, struct reactor_spin, link);

		list_push_back(&s->spinners, node);
		if (one->poll(one))
			ran = true;
	}
	return ran;
}

bool spin_arm(struct spin *s)
{
	struct list todo = LIST_INIT(todo);
	struct list *node;
	bool armed = true;

	list_splice_back(&todo, &s->spinners);
	while ((node = list_pop_front(&todo))) {
		struct reactor_spin *one = container_of(node, struct reactor_spin, link);

		list_push_back(&s->spinners, node);
		if (armed && one->arm)
			armed = one->arm(one);
	}
	return armed;
}

bool spin_is_worth_it(const struct spin *s, uint64_t idle_ns)
{
	if (idle_ns >= s->budget_ns)
		return false;
	list_for_each (node, &s->spinners) {
		struct reactor_spin *one = container_of(node, struct reactor_spin, link);

		if (one->wants_spin && one->wants_spin(one))
			return true;
	}
	return false;
}

void spin_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
