/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads post to a reactor that sleeps, wakes and spins; each message must
 * run once, in the order of its poster, and none may be left to sleep over.
 * For ThreadSanitizer; a lost wake-up shows as a hang.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "reactor.h"

#define POSTERS  4
#define MESSAGES 20000
#define PAUSE    64 /* every so many messages a poster lets the reactor fall asleep */

struct poster;

struct message {
	struct reactor_msg msg;
	struct poster *poster;
	unsigned int number;
};

struct poster {
	struct reactor *r;
	pthread_t thread;
	struct message *messages;
	unsigned int run_cnt; /* reactor's thread */
};

static unsigned int total; /* reactor's thread */

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "race_reactor: %s\n", what);
	abort();
}

static void run_message(struct reactor_msg *msg)
{
	struct message *m = container_of(msg, struct message, msg);

	check(m->number == m->poster->run_cnt, "out of order");
	m->poster->run_cnt++;
	total++;
}

static void *post_all(void *arg)
{
	struct poster *p = arg;
	struct timespec pause = {.tv_nsec = 20000};

	for (unsigned int i = 0; i < MESSAGES; i++) {
		p->messages[i].number = i;
		p->messages[i].poster = p;
		p->messages[i].msg.run = run_message;
		reactor_post(p->r, &p->messages[i].msg);
		if (i % PAUSE == 0)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

static bool poll_nothing(struct reactor_spin *s)
{
	return false;
}

static bool always(struct reactor_spin *s)
{
	return true;
}

static void post_from_all(uint64_t spin_ns)
{
	struct reactor_spin spinner = {.poll = poll_nothing, .wants_spin = always};
	struct poster posters[POSTERS] = {0};
	struct reactor *r = reactor_new();

	check(r, "reactor_new");
	total = 0;
	reactor_set_spin_ns(r, spin_ns);
	reactor_spin_add(r, &spinner);
	for (unsigned int i = 0; i < POSTERS; i++) {
		posters[i].r = r;
		posters[i].messages = calloc(MESSAGES, sizeof(*posters[i].messages));
		check(posters[i].messages, "calloc");
		check(!pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), "thread");
	}
	while (total < POSTERS * MESSAGES)
		reactor_turn(r, REACTOR_NEVER);
	for (unsigned int i = 0; i < POSTERS; i++) {
		pthread_join(posters[i].thread, NULL);
		check(posters[i].run_cnt == MESSAGES, "lost");
		free(posters[i].messages);
	}
	reactor_spin_del(&spinner);
	reactor_free(r);
}

static void *run_reactor(void *arg)
{
	reactor_run(arg);
	return NULL;
}

/* A stop must get through wherever the other thread is: before, in, or between turns. */
static void stop_from_outside(void)
{
	for (int i = 0; i < 2000; i++) {
		struct reactor *r = reactor_new();
		pthread_t thread;

		check(r, "reactor_new");
		check(!pthread_create(&thread, NULL, run_reactor, r), "thread");
		if (i % 2)
			sched_yield();
		reactor_stop(r);
		pthread_join(thread, NULL);
		reactor_free(r);
	}
}

int main(void)
{
	post_from_all(0);
	post_from_all(30 * NSEC_PER_USEC);
	stop_from_outside();
	return 0;
}
