/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes that ask an idmap for the same and for other names, wait for the
 * answers and give up waiting, while its thread answers; the end in the middle.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "idmap.h"

#define LANES      4
#define ROUNDS     20
#define ROUND_US   20000
#define MUST(cond) ((cond) ? (void)0 : die(#cond, __LINE__))

static _Noreturn void die(const char *what, int line)
{
	fprintf(stderr, "race_idmap: %s, line %d\n", what, line);
	exit(1);
}

struct lane {
	pthread_t thread;
	unsigned int num;
	struct reactor *r;
	struct idmap *m;
	struct idmap_waiter w;
	struct reactor_timer tick;
	struct reactor_msg start, stop;
	uint64_t awaited; /* a ticket; 0: none */
	unsigned int seed, told;
	bool stopping;
};

static _Atomic bool in_resolver;

/* Names are "<number>@x". */
static int to_id(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id)
{
	MUST(!atomic_exchange(&in_resolver, true)); /* one thread, one question */
	*ret_id = (uint32_t)atoi(name);
	if (*ret_id % 16 == 0)
		usleep(200);
	in_resolver = false;
	return *ret_id % 7 ? 0 : -2;
}

static int to_name(void *ctx, enum idmap_kind kind, uint32_t id, char name[IDMAP_OUT_MAX + 1])
{
	MUST(!atomic_exchange(&in_resolver, true));
	snprintf(name, IDMAP_OUT_MAX + 1, "%u@x", id);
	in_resolver = false;
	return 0;
}

static const struct idmap_resolver res = {.to_id = to_id, .to_name = to_name};

/* Asks for a few; waits for one that is not there. */
static void ask(struct lane *l)
{
	char name[IDMAP_OUT_MAX + 1];

	for (int i = 0; i < 20; i++) {
		uint32_t n = (uint32_t)rand_r(&l->seed) % 2000, id = 0;
		uint64_t ticket = 0;
		enum idmap_answer ans;

		if (n % 2) {
			snprintf(name, sizeof(name), "%u@x", n);
			ans = idmap_to_id(l->m, IDMAP_USER, name, strlen(name), reactor_now(l->r),
				&id, &ticket);
			MUST(ans == IDMAP_ASKED || ans == IDMAP_REFUSED || id == n);
		} else {
			ans = idmap_to_name(l->m, IDMAP_GROUP, n, reactor_now(l->r), name, &ticket);
			MUST(ans == IDMAP_ASKED || ans == IDMAP_REFUSED ||
				(uint32_t)atoi(name) == n);
		}
		if (ans == IDMAP_ASKED) {
			l->awaited = ticket;
			idmap_wait(l->m, &l->w, ticket);
		}
	}
}

static void told(struct reactor_msg *msg)
{
	struct lane *l = container_of(container_of(msg, struct idmap_waiter, msg), struct lane, w);

	idmap_told(l->m, &l->w);
	l->told++;
	if (l->stopping)
		reactor_stop(l->r);
	else if (idmap_answered(l->m) < l->awaited)
		idmap_wait(l->m, &l->w, l->awaited);
	else
		ask(l);
}

static void tick(struct reactor_timer *t)
{
	struct lane *l = container_of(t, struct lane, tick);

	if (rand_r(&l->seed) % 4 == 0)
		idmap_cancel(l->m, &l->w);
	ask(l);
	reactor_timer_in(l->r, t, NSEC_PER_MSEC);
}

static void run_start(struct reactor_msg *msg)
{
	tick(&container_of(msg, struct lane, start)->tick);
}

static void run_stop(struct reactor_msg *msg)
{
	struct lane *l = container_of(msg, struct lane, stop);

	reactor_timer_cancel(l->r, &l->tick);
	l->stopping = true;
	if (idmap_cancel(l->m, &l->w))
		reactor_stop(l->r);
}

static void *lane_main(void *arg)
{
	reactor_run(((struct lane *)arg)->r);
	return NULL;
}

int main(void)
{
	static struct lane lanes[LANES];
	unsigned int told_cnt = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct idmap *m = idmap_new(&res, NULL, true);

		MUST(m);
		for (unsigned int i = 0; i < LANES; i++) {
			struct lane *l = &lanes[i];

			*l = (struct lane){.num = i, .m = m, .seed = round * LANES + i};
			l->r = reactor_new();
			MUST(l->r);
			l->start.run = run_start;
			l->stop.run = run_stop;
			reactor_timer_init(&l->tick, tick);
			idmap_waiter_init(&l->w, l->r, told);
			MUST(pthread_create(&l->thread, NULL, lane_main, l) == 0);
			reactor_post(l->r, &l->start);
		}
		usleep(ROUND_US);
		for (unsigned int i = 0; i < LANES; i++)
			reactor_post(lanes[i].r, &lanes[i].stop);
		for (unsigned int i = 0; i < LANES; i++) {
			pthread_join(lanes[i].thread, NULL);
			told_cnt += lanes[i].told;
			reactor_free(lanes[i].r);
		}
		idmap_free(m);
	}
	MUST(told_cnt >= ROUNDS);
	printf("%u answers told in %u rounds\n", told_cnt, ROUNDS);
	return 0;
}
