/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "reactor.h"

#define START NSEC_PER_SEC

/* What ran, in order. */
static char trace[256];

static void note(char c)
{
	size_t len = strlen(trace);

	cr_assert_lt(len, sizeof(trace) - 1);
	trace[len] = c;
	trace[len + 1] = '\0';
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- timers ---- */

struct named_timer {
	struct reactor_timer t;
	struct reactor *r;
	char name;
	int rearm; /* times to arm again for "at once" */
	struct named_timer *cancels, *arms;
	uint64_t fired_ns;
};

static void named_fire(struct reactor_timer *t)
{
	struct named_timer *n = container_of(t, struct named_timer, t);

	cr_assert_not(reactor_timer_armed(t));
	note(n->name);
	n->fired_ns = reactor_now(n->r);
	if (n->rearm-- > 0)
		reactor_timer_set(n->r, t, 0);
	if (n->cancels)
		reactor_timer_cancel(n->r, &n->cancels->t);
	if (n->arms)
		reactor_timer_in(n->r, &n->arms->t, 0);
}

static struct named_timer named(struct reactor *r, char name)
{
	struct named_timer n = {.r = r, .name = name};

	reactor_timer_init(&n.t, named_fire);
	return n;
}

Test(reactor, timers_fire_in_order_of_deadline_then_of_arming)
{
	struct reactor *r = reactor_new_virtual();
	struct named_timer a = named(r, 'a'), b = named(r, 'b'), c = named(r, 'c'),
			   d = named(r, 'd');

	cr_assert(reactor_is_virtual(r));
	cr_assert_eq(reactor_now(r), START);
	reactor_timer_in(r, &d.t, 30);
	reactor_timer_in(r, &b.t, 20);
	reactor_timer_in(r, &c.t, 20);
	reactor_timer_in(r, &a.t, 10);
	reactor_run(r);
	cr_assert_str_eq(trace, "abcd");
	cr_assert_eq(a.fired_ns, START + 10);
	cr_assert_eq(c.fired_ns, START + 20);
	cr_assert_eq(reactor_now(r), START + 30);
	reactor_free(r);
}

Test(reactor, timer_that_cancels_another_in_the_same_turn)
{
	struct reactor *r = reactor_new_virtual();
	struct named_timer a = named(r, 'a'), b = named(r, 'b'), c = named(r, 'c');

	a.cancels = &b;
	reactor_timer_in(r, &a.t, 10);
	reactor_timer_in(r, &b.t, 10);
	reactor_timer_in(r, &c.t, 10);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_str_eq(trace, "ac");
	cr_assert_not(reactor_timer_armed(&b.t));
	reactor_free(r);
}

Test(reactor, timer_armed_for_now_by_a_timer_fires_in_the_next_turn)
{
	struct reactor *r = reactor_new_virtual();
	struct named_timer a = named(r, 'a'), b = named(r, 'b'), c = named(r, 'c');

	a.rearm = 2;
	b.arms = &c;
	reactor_timer_in(r, &a.t, 10);
	reactor_timer_in(r, &b.t, 10);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_str_eq(trace, "ab");
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "abac");
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "abaca");
	cr_assert_not(reactor_turn(r, REACTOR_NEVER));
	cr_assert_eq(reactor_now(r), START + 10);
	reactor_free(r);
}

Test(reactor, timer_set_again_moves_both_ways)
{
	struct reactor *r = reactor_new_virtual();
	struct named_timer a = named(r, 'a'), b = named(r, 'b');

	reactor_timer_in(r, &a.t, 10);
	reactor_timer_in(r, &b.t, 20);
	reactor_timer_in(r, &a.t, 30);
	reactor_run(r);
	cr_assert_str_eq(trace, "ba");
	reactor_timer_in(r, &a.t, 50);
	reactor_timer_in(r, &b.t, 20);
	reactor_timer_in(r, &a.t, 5);
	reactor_run(r);
	cr_assert_str_eq(trace, "baab");
	reactor_free(r);
}

Test(reactor, cancel_of_what_is_not_armed_is_harmless)
{
	struct reactor *r = reactor_new_virtual();
	struct reactor_timer zero = {0};

	cr_assert_not(reactor_timer_armed(&zero));
	reactor_timer_cancel(r, &zero);
	cr_assert_not(reactor_turn(r, 0));
	reactor_free(r);
}

static uint64_t last_fired_ns;
static unsigned int fired_cnt;

static void many_fire(struct reactor_timer *t)
{
	cr_assert_geq(t->deadline_ns, last_fired_ns);
	last_fired_ns = t->deadline_ns;
	fired_cnt++;
}

Test(reactor, thousands_of_timers_keep_their_order_through_cancels_and_moves)
{
	enum {
		CNT = 3000,
	};
	static struct reactor_timer timers[CNT];
	struct reactor *r = reactor_new_virtual();
	unsigned int armed = 0;

	srand(1);
	for (int i = 0; i < CNT; i++) {
		reactor_timer_init(&timers[i], many_fire);
		reactor_timer_in(r, &timers[i], (uint64_t)(rand() % 5000));
	}
	for (int i = 0; i < 2 * CNT; i++) {
		struct reactor_timer *t = &timers[rand() % CNT];

		if (rand() % 2)
			reactor_timer_cancel(r, t);
		else
			reactor_timer_in(r, t, (uint64_t)(rand() % 5000));
	}
	for (int i = 0; i < CNT; i++)
		armed += reactor_timer_armed(&timers[i]);
	reactor_run(r);
	cr_assert_eq(fired_cnt, armed);
	cr_assert_not(reactor_turn(r, REACTOR_NEVER));
	reactor_free(r);
}

/* ---- virtual time ---- */

Test(reactor, virtual_turn_jumps_no_further_than_asked)
{
	struct reactor *r = reactor_new_virtual();
	struct named_timer a = named(r, 'a');

	reactor_timer_in(r, &a.t, NSEC_PER_SEC);
	cr_assert_not(reactor_turn(r, NSEC_PER_SEC - 1));
	cr_assert_eq(reactor_now(r), START + NSEC_PER_SEC - 1);
	cr_assert_not(reactor_turn(r, 0));
	cr_assert(reactor_turn(r, REACTOR_NEVER - 1));
	cr_assert_eq(reactor_now(r), START + NSEC_PER_SEC);
	reactor_free(r);
}

Test(reactor, virtual_run_returns_when_nothing_can_happen)
{
	struct reactor *r = reactor_new_virtual();

	reactor_run(r);
	cr_assert_eq(reactor_now(r), START);
	reactor_free(r);
}

/* ---- messages and stop ---- */

struct named_msg {
	struct reactor_msg m;
	struct reactor *r;
	char name;
	bool stops, posts_itself;
};

static void named_run(struct reactor_msg *m)
{
	struct named_msg *n = container_of(m, struct named_msg, m);

	note(n->name);
	if (n->stops)
		reactor_stop(n->r);
	if (n->posts_itself) {
		n->posts_itself = false;
		reactor_post(n->r, m);
	}
}

Test(reactor, messages_run_in_the_order_of_posting)
{
	struct reactor *r = reactor_new_virtual();
	struct named_msg a = {.m.run = named_run, .r = r, .name = 'a'};
	struct named_msg b = {.m.run = named_run, .r = r, .name = 'b', .posts_itself = true};
	struct named_msg c = {.m.run = named_run, .r = r, .name = 'c'};

	reactor_post(r, &a.m);
	reactor_post(r, &b.m);
	reactor_post(r, &c.m);
	cr_assert_str_eq(trace, "");
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "abc");
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "abcb");
	reactor_free(r);
}

Test(reactor, pending_messages_run_when_it_is_freed)
{
	struct reactor *r = reactor_new();
	struct named_msg a = {.m.run = named_run, .r = r, .name = 'a', .posts_itself = true};

	reactor_post(r, &a.m);
	reactor_free(r);
	cr_assert_str_eq(trace, "aa");
	reactor_free(NULL);
}

Test(reactor, stop_before_run_makes_it_return_once)
{
	struct reactor *r = reactor_new();
	struct named_msg a = {.m.run = named_run, .r = r, .name = 'a', .stops = true};

	reactor_post(r, &a.m);
	reactor_stop(r);
	reactor_run(r);
	cr_assert_str_eq(trace, "");
	reactor_run(r);
	cr_assert_str_eq(trace, "a");
	reactor_free(r);
}

Test(reactor, stop_ends_a_virtual_run_although_a_timer_is_left)
{
	struct reactor *r = reactor_new_virtual();
	struct named_timer t = named(r, 't');
	struct named_msg a = {.m.run = named_run, .r = r, .name = 'a', .stops = true};

	reactor_timer_in(r, &t.t, 1);
	reactor_post(r, &a.m);
	reactor_run(r);
	cr_assert_str_eq(trace, "a");
	reactor_timer_cancel(r, &t.t);
	reactor_free(r);
}

static void *post_later(void *arg)
{
	struct named_msg *n = arg;

	usleep(30000);
	reactor_post(n->r, &n->m);
	return NULL;
}

Test(reactor, message_of_another_thread_wakes_a_sleeping_reactor, .timeout = 60)
{
	struct reactor *r = reactor_new();
	struct named_msg a = {.m.run = named_run, .r = r, .name = 'a', .stops = true};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, post_later, &a), 0);
	reactor_run(r);
	cr_assert_str_eq(trace, "a");
	pthread_join(thread, NULL);
	reactor_free(r);
}

static struct reactor *signalled;

static void on_alarm(int sig)
{
	reactor_stop(signalled);
}

Test(reactor, signal_handler_may_stop_it, .timeout = 60)
{
	struct itimerval in_20ms = {.it_value.tv_usec = 20000};

	signalled = reactor_new();
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &in_20ms, NULL);
	reactor_run(signalled);
	reactor_free(signalled);
}

/* ---- real time ---- */

Test(reactor, real_timer_wakes_a_sleeping_turn_and_fires_in_it)
{
	struct reactor *r = reactor_new();
	struct named_timer a = named(r, 'a');
	uint64_t deadline_ns;

	cr_assert_not(reactor_is_virtual(r));
	cr_assert_not(reactor_turn(r, 0));
	deadline_ns = reactor_now(r) + 20 * NSEC_PER_MSEC;
	reactor_timer_set(r, &a.t, deadline_ns);
	/* It is woken for the timer: there is nothing else. */
	while (!reactor_turn(r, REACTOR_NEVER))
		;
	cr_assert_geq(a.fired_ns, deadline_ns);
	reactor_free(r);
}

Test(reactor, turn_waits_at_most_what_it_was_told)
{
	struct reactor *r = reactor_new();
	uint64_t before_ns = clock_ns();

	cr_assert_not(reactor_turn(r, 15 * NSEC_PER_MSEC));
	cr_assert_geq(clock_ns() - before_ns, 14 * NSEC_PER_MSEC);
	cr_assert_geq(reactor_now(r), before_ns + 14 * NSEC_PER_MSEC);
	reactor_free(r);
}

/* ---- file descriptors ---- */

struct named_fd {
	struct reactor_fd src;
	char name;
	struct named_fd **frees; /* NULL-terminated: removed and freed by the callback */
};

static void named_ready(struct reactor_fd *src, uint32_t events)
{
	struct named_fd *n = container_of(src, struct named_fd, src);
	uint64_t value;

	cr_assert(events & EPOLLIN);
	note(n->name);
	cr_assert_eq(read(src->fd, &value, sizeof(value)), sizeof(value));
	for (struct named_fd **f = n->frees; f && *f; f++) {
		reactor_fd_del(&(*f)->src);
		close((*f)->src.fd);
		free(*f);
	}
}

static struct named_fd *named_eventfd(struct reactor *r, char name)
{
	struct named_fd *n = calloc(1, sizeof(*n));
	int fd = eventfd(0, EFD_NONBLOCK);

	cr_assert(n && fd >= 0);
	n->name = name;
	cr_assert_eq(reactor_fd_add(r, &n->src, fd, EPOLLIN, named_ready), 0);
	return n;
}

static void raise_fd(struct named_fd *n)
{
	cr_assert_eq(eventfd_write(n->src.fd, 1), 0);
}

static void drop_fd(struct named_fd *n)
{
	reactor_fd_del(&n->src);
	close(n->src.fd);
	free(n);
}

Test(reactor, ready_descriptor_is_called_and_removed_one_is_not)
{
	struct reactor *r = reactor_new();
	struct named_fd *a = named_eventfd(r, 'a');

	cr_assert_not(reactor_turn(r, 0));
	raise_fd(a);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_str_eq(trace, "a");
	raise_fd(a);
	reactor_fd_del(&a->src);
	reactor_fd_del(&a->src);
	cr_assert_not(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "a");
	close(a->src.fd);
	free(a);
	reactor_free(r);
}

/* Leaves the wait for the timer as it was, before it is due. */
static void end_wait(struct reactor *r, struct named_fd *n)
{
	raise_fd(n);
	while (!reactor_turn(r, REACTOR_NEVER))
		;
}

Test(reactor, timer_before_the_one_it_waited_for_wakes_it, .timeout = 60)
{
	struct reactor *r = reactor_new();
	struct named_timer a = named(r, 'a'), b = named(r, 'b');
	struct named_fd *f = named_eventfd(r, 'f');

	reactor_timer_in(r, &a.t, 3600 * NSEC_PER_SEC);
	end_wait(r, f);
	reactor_timer_in(r, &b.t, NSEC_PER_MSEC);
	while (!reactor_turn(r, REACTOR_NEVER))
		;
	cr_assert_str_eq(trace, "fb");
	reactor_timer_cancel(r, &a.t);
	drop_fd(f);
	reactor_free(r);
}

Test(reactor, timer_behind_the_one_it_waited_for_is_not_early, .timeout = 60)
{
	struct reactor *r = reactor_new();
	struct named_timer a = named(r, 'a'), b = named(r, 'b');
	struct named_fd *f = named_eventfd(r, 'f');
	uint64_t deadline_ns;

	reactor_timer_in(r, &a.t, 3600 * NSEC_PER_SEC);
	end_wait(r, f);
	reactor_timer_in(r, &a.t, 10 * NSEC_PER_MSEC);
	end_wait(r, f);
	reactor_timer_cancel(r, &a.t);
	deadline_ns = reactor_now(r) + 30 * NSEC_PER_MSEC;
	reactor_timer_set(r, &b.t, deadline_ns);
	while (reactor_timer_armed(&b.t))
		reactor_turn(r, REACTOR_NEVER);
	cr_assert_geq(b.fired_ns, deadline_ns);
	drop_fd(f);
	reactor_free(r);
}

struct counted {
	struct reactor_fd fd;
	struct reactor *r;
	uint64_t lulls[4];
	unsigned int cnt;
};

/* Takes what is there the second time and the last. */
static void counted_ready(struct reactor_fd *src, uint32_t events)
{
	struct counted *c = container_of(src, struct counted, fd);
	uint64_t value;

	c->lulls[c->cnt++] = reactor_lulls(c->r);
	if (c->cnt >= 2)
		cr_assert_eq(read(src->fd, &value, sizeof(value)), sizeof(value));
}

Test(reactor, lulls_tell_what_was_left_from_what_came_later)
{
	struct counted c = {.r = reactor_new()};
	int fd = eventfd(1, EFD_NONBLOCK);
	uint64_t one = 1;

	cr_assert_eq(reactor_fd_add(c.r, &c.fd, fd, EPOLLIN, counted_ready), 0);
	while (c.cnt < 2)
		reactor_turn(c.r, 0);
	reactor_turn(c.r, 0);
	cr_assert_eq(c.cnt, 2);
	cr_assert_eq(write(fd, &one, sizeof(one)), sizeof(one));
	while (c.cnt < 3)
		reactor_turn(c.r, NSEC_PER_SEC);
	cr_assert_eq(c.lulls[0], c.lulls[1], "it was ready all the time");
	cr_assert_neq(c.lulls[1], c.lulls[2], "it was not");
	reactor_fd_del(&c.fd);
	reactor_free(c.r);
	close(fd);
}

/* ---- a descriptor that is expected ---- */

struct expected {
	struct reactor_fd fd;
	int there; /* so many more callbacks find something */
	unsigned int by_epoll, by_guess;
};

static void expected_ready(struct reactor_fd *src, uint32_t events)
{
	struct expected *e = container_of(src, struct expected, fd);

	*(events ? &e->by_epoll : &e->by_guess) += 1;
	if (e->there-- > 0)
		reactor_fd_expect(src);
}

static void expect_on(struct reactor *r)
{
	struct expected e = {.there = 100}, other = {.there = 0};
	int fd = eventfd(1, EFD_NONBLOCK), other_fd = eventfd(1, EFD_NONBLOCK);

	cr_assert_eq(reactor_fd_add(r, &e.fd, fd, EPOLLIN, expected_ready), 0);
	cr_assert_eq(reactor_fd_add(r, &other.fd, other_fd, EPOLLIN, expected_ready), 0);
	cr_assert(reactor_turn(r, 0));
	cr_assert(e.by_epoll == 1 && e.by_guess == 0);
	for (int i = 0; i < 7; i++)
		cr_assert(reactor_turn(r, 0));
	cr_assert(e.by_epoll == 1 && e.by_guess == 7);
	cr_assert_eq(other.by_epoll, 1, "it waits");
	cr_assert(reactor_turn(r, 0));
	cr_assert(e.by_epoll == 2 && e.by_guess == 7);
	cr_assert_eq(other.by_epoll, 2, "but no longer");
	e.there = 0;
	cr_assert(reactor_turn(r, 0));
	cr_assert(e.by_epoll == 3 && e.by_guess == 8, "it found nothing: epoll is asked");
	cr_assert_eq(other.by_epoll, 3);
	cr_assert(reactor_turn(r, 0));
	cr_assert(e.by_epoll == 4 && e.by_guess == 8, "it did not expect any more");
	e.there = 1;
	cr_assert(reactor_turn(r, 0));
	reactor_fd_del(&e.fd);
	cr_assert(reactor_turn(r, 0));
	cr_assert(e.by_epoll == 5 && e.by_guess == 8, "it is gone");
	reactor_fd_del(&other.fd);
	reactor_free(r);
	close(fd);
	close(other_fd);
}

Test(reactor, what_is_expected_is_called_in_place_of_epoll)
{
	expect_on(reactor_new());
}

Test(reactor, and_in_virtual_time)
{
	expect_on(reactor_new_virtual());
}

Test(reactor, add_tells_why_it_failed)
{
	struct reactor *r = reactor_new();
	struct reactor_fd src = {0};

	cr_assert_eq(reactor_fd_add(r, &src, -1, EPOLLIN, NULL), -EBADF);
	cr_assert_null(src.reactor);
	reactor_fd_del(&src);
	reactor_free(r);
}

Test(reactor, callback_may_free_itself_and_others_of_the_same_batch)
{
	struct reactor *r = reactor_new_virtual();
	struct named_fd *fds[4] = {0};

	/* Whichever of the three is called first frees all three; ASan sees a second call. */
	for (int i = 0; i < 3; i++) {
		fds[i] = named_eventfd(r, 'x');
		fds[i]->frees = fds;
		raise_fd(fds[i]);
	}
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "x");
	cr_assert_not(reactor_turn(r, REACTOR_NEVER));
	reactor_free(r);
}

static struct reactor_fd *again;
static struct reactor *again_reactor;

static void remove_and_add_other(struct reactor_fd *src, uint32_t events)
{
	struct reactor_fd *other = src == again ? again + 1 : again;

	note('1');
	reactor_fd_del(other);
	other->ready = NULL;
	cr_assert_eq(reactor_fd_add(again_reactor, other, other->fd, EPOLLIN | EPOLLET,
			     remove_and_add_other),
		0);
	reactor_fd_del(src);
}

Test(reactor, source_added_again_gets_no_event_of_its_former_life)
{
	struct reactor *r = reactor_new_virtual();
	struct reactor_fd pair[2] = {0};

	again = pair;
	again_reactor = r;
	for (int i = 0; i < 2; i++)
		cr_assert_eq(reactor_fd_add(r, &pair[i], eventfd(1, 0), EPOLLIN | EPOLLET,
				     remove_and_add_other),
			0);
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "1");
	cr_assert(reactor_turn(r, 0)); /* the event of its new life; adds the first again */
	cr_assert_str_eq(trace, "11");
	for (int i = 0; i < 2; i++) {
		reactor_fd_del(&pair[i]);
		close(pair[i].fd);
	}
	reactor_free(r);
}

Test(reactor, more_descriptors_than_one_batch_all_get_their_turn)
{
	enum {
		CNT = 150,
	};
	struct reactor *r = reactor_new_virtual();
	struct named_fd *fds[CNT];

	for (int i = 0; i < CNT; i++) {
		fds[i] = named_eventfd(r, 'x');
		raise_fd(fds[i]);
	}
	while (reactor_turn(r, 0))
		;
	cr_assert_eq(strlen(trace), CNT);
	for (int i = 0; i < CNT; i++)
		drop_fd(fds[i]);
	reactor_free(r);
}

Test(reactor, virtual_time_stands_while_a_descriptor_is_ready)
{
	struct reactor *r = reactor_new_virtual();
	struct named_timer t = named(r, 't');
	struct named_fd *a = named_eventfd(r, 'a');

	reactor_timer_in(r, &t.t, 1);
	raise_fd(a);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_str_eq(trace, "a");
	cr_assert_eq(reactor_now(r), START);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_str_eq(trace, "at");
	drop_fd(a);
	reactor_free(r);
}

Test(reactor, freeing_it_with_a_source_left_trips, .signal = SIGABRT)
{
	struct reactor *r = reactor_new();

	named_eventfd(r, 'a');
	reactor_free(r);
}

/* ---- spinners ---- */

struct fake_cq {
	struct reactor_spin s;
	char name;
	unsigned int polls, arms;
	int work;             /* completions there are */
	int work_at_arm;      /* arrive while arming */
	unsigned int work_at; /* the poll that finds one: 0 none */
	bool wants;
	struct fake_cq *deletes;
};

static bool cq_poll(struct reactor_spin *s)
{
	struct fake_cq *cq = container_of(s, struct fake_cq, s);

	cq->polls++;
	if (cq->polls == cq->work_at)
		cq->work++;
	if (!cq->work)
		return false;
	cq->work--;
	note(cq->name);
	if (cq->deletes)
		reactor_spin_del(&cq->deletes->s);
	return true;
}

static bool cq_arm(struct reactor_spin *s)
{
	struct fake_cq *cq = container_of(s, struct fake_cq, s);

	cq->arms++;
	cq->work += cq->work_at_arm;
	cq->work_at_arm = 0;
	return !cq->work;
}

static bool cq_wants_spin(struct reactor_spin *s)
{
	return container_of(s, struct fake_cq, s)->wants;
}

static struct fake_cq fake_cq(char name)
{
	return (struct fake_cq){
		.s = {.poll = cq_poll, .arm = cq_arm, .wants_spin = cq_wants_spin},
		.name = name,
	};
}

Test(reactor, spinners_are_polled_each_turn_and_armed_before_sleep_only)
{
	struct reactor *r = reactor_new_virtual();
	struct fake_cq a = fake_cq('a'), b = fake_cq('b');

	reactor_spin_add(r, &a.s);
	reactor_spin_add(r, &b.s);
	a.work = b.work = 1;
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "ab");
	cr_assert_eq(a.arms + b.arms, 0);
	cr_assert_not(reactor_turn(r, 0));
	cr_assert(a.arms == 1 && b.arms == 1);
	reactor_spin_del(&a.s);
	reactor_spin_del(&b.s);
	reactor_free(r);
}

Test(reactor, spinner_may_remove_itself_or_the_next)
{
	struct reactor *r = reactor_new_virtual();
	struct fake_cq a = fake_cq('a'), b = fake_cq('b'), c = fake_cq('c');
	struct fake_cq never_added = fake_cq('n');

	reactor_spin_del(&never_added.s);
	reactor_spin_add(r, &a.s);
	reactor_spin_add(r, &b.s);
	reactor_spin_add(r, &c.s);
	a.work = b.work = c.work = 1;
	a.deletes = &b;
	c.deletes = &c;
	cr_assert(reactor_turn(r, 0));
	cr_assert_str_eq(trace, "ac");
	cr_assert_not(reactor_turn(r, 0));
	cr_assert_eq(a.polls, 3); /* an idle turn polls before and after it waits */
	cr_assert_eq(c.polls, 1);
	reactor_spin_del(&a.s);
	reactor_free(r);
}

Test(reactor, work_that_arrives_while_arming_prevents_sleep, .timeout = 60)
{
	for (int is_virtual = 0; is_virtual < 2; is_virtual++) {
		struct reactor *r = is_virtual ? reactor_new_virtual() : reactor_new();
		struct fake_cq a = fake_cq('a');

		trace[0] = '\0';
		a.work_at_arm = 1;
		reactor_spin_add(r, &a.s);
		cr_assert(reactor_turn(r, REACTOR_NEVER));
		cr_assert_str_eq(trace, "a");
		reactor_spin_del(&a.s);
		reactor_free(r);
	}
}

Test(reactor, spinning_finds_work_without_arming)
{
	struct reactor *r = reactor_new();
	struct fake_cq a = fake_cq('a');

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		cr_skip_test("one CPU");
	reactor_set_spin_ns(r, 60 * NSEC_PER_SEC);
	reactor_spin_add(r, &a.s);
	a.wants = true;
	a.work = 1;
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	a.work_at = 5000;
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_str_eq(trace, "aa");
	cr_assert_eq(a.arms, 0);
	reactor_spin_del(&a.s);
	reactor_free(r);
}

Test(reactor, spinning_ends_when_its_time_since_the_last_work_is_used_up)
{
	struct reactor *r = reactor_new();
	struct fake_cq a = fake_cq('a');
	unsigned int polls;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		cr_skip_test("one CPU");
	reactor_set_spin_ns(r, 20 * NSEC_PER_MSEC);
	reactor_spin_add(r, &a.s);
	a.wants = true;
	a.work = 1;
	cr_assert(reactor_turn(r, 0));
	/* Work that comes when it arms ends the turn: until then it had to stop spinning. */
	a.work_at_arm = 1;
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_eq(a.arms, 1);
	usleep(30000); /* at least as long as it may spin */
	polls = a.polls;
	a.work_at_arm = 1;
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_leq(a.polls, polls + 2);
	cr_assert_eq(a.arms, 2);
	reactor_spin_del(&a.s);
	reactor_free(r);
}

Test(reactor, spinning_still_sees_descriptors_timers_and_messages, .timeout = 60)
{
	struct reactor *r = reactor_new();
	struct fake_cq a = fake_cq('a');
	struct named_timer t = named(r, 't');
	struct named_fd *f = named_eventfd(r, 'f');
	struct named_msg m = {.m.run = named_run, .r = r, .name = 'm'};
	pthread_t thread;

	reactor_set_spin_ns(r, 60 * NSEC_PER_SEC);
	reactor_spin_add(r, &a.s);
	a.wants = true;
	a.work = 1;
	cr_assert(reactor_turn(r, 0));
	raise_fd(f);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	reactor_timer_in(r, &t.t, NSEC_PER_MSEC);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_eq(pthread_create(&thread, NULL, post_later, &m), 0);
	cr_assert(reactor_turn(r, REACTOR_NEVER));
	cr_assert_str_eq(trace, "aftm");
	pthread_join(thread, NULL);
	drop_fd(f);
	reactor_spin_del(&a.s);
	reactor_free(r);
}

Test(reactor, no_spinning_where_one_cpu_may_be_used)
{
	struct reactor *r = reactor_new();
	struct fake_cq a = fake_cq('a');
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	reactor_set_spin_ns(r, 60 * NSEC_PER_SEC);
	reactor_spin_add(r, &a.s);
	a.wants = true;
	a.work = 1;
	cr_assert(reactor_turn(r, 0));
	cr_assert_not(reactor_turn(r, NSEC_PER_SEC));
	cr_assert_leq(a.polls, 3);
	cr_assert_eq(a.arms, 1);
	reactor_spin_del(&a.s);
	reactor_free(r);
}
