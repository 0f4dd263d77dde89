/* SPDX-License-Identifier: BSD-3-Clause */
#include "reactor_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "mutex.h"

#define SPIN_POLLS       16   /* polls of the spinners for each look at epoll */
#define LULL_NS          1500 /* a wait that is shorter found what was ready before it */
#define VIRTUAL_START_NS NSEC_PER_SEC

enum turn_result {
	TURN_RAN,   /* a callback ran */
	TURN_AGAIN, /* none ran, but there is a reason to look again */
	TURN_IDLE,  /* waited for nothing */
};

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t reactor_clock(const struct reactor *r)
{
	struct timespec ts;

	if (r->is_virtual)
		return r->now_ns;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void read_clock(struct reactor *r)
{
	r->now_ns = reactor_clock(r);
}

/* Its own descriptors: dispatch() knows them by these addresses. */
static int watch(struct reactor *r, int *fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = fd};

	return *fd < 0 ? -1 : epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, *fd, &ev);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void free_reactor(struct reactor *r)
{
	close_fd(r->alarm_fd);
	close_fd(r->wake_fd);
	close_fd(r->epoll_fd);
	free(r);
}

static struct reactor *new_common(bool is_virtual)
{
	struct reactor *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->is_virtual = is_virtual;
	r->now_ns = VIRTUAL_START_NS;
	read_clock(r);
	spin_init(&r->spin);
	r->alarm_ns = REACTOR_NEVER;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	/* Edge-triggered: that it went off is news once, and nobody need read it. */
	if (r->epoll_fd < 0 || watch(r, &r->wake_fd, EPOLLIN) ||
		watch(r, &r->alarm_fd, EPOLLIN | EPOLLET)) {
		free_reactor(r);
		return NULL;
	}
	return r;
}

struct reactor *reactor_new(void)
{
	return new_common(false);
}

struct reactor *reactor_new_virtual(void)
{
	return new_common(true);
}

uint64_t reactor_now(const struct reactor *r)
{
	return r->now_ns;
}

uint64_t reactor_lulls(const struct reactor *r)
{
	return r->lulls;
}

bool reactor_is_virtual(const struct reactor *r)
{
	return r->is_virtual;
}

void reactor_set_spin_ns(struct reactor *r, uint64_t ns)
{
	/* In virtual time spinning would never use up its budget. */
	spin_set_budget(&r->spin, r->is_virtual ? 0 : ns);
}

/* ---- timers ---- */

void reactor_timer_init(struct reactor_timer *t, void (*fire)(struct reactor_timer *))
{
	*t = (struct reactor_timer){.fire = fire};
}

void reactor_timer_set(struct reactor *r, struct reactor_timer *t, uint64_t deadline_ns)
{
	if (timerq_is_queued(&t->node))
		timerq_remove(&r->timers, &t->node);
	t->deadline_ns = deadline_ns;
	/*
	 * The key is never in the past: what a callback arms for "at once" sorts
	 * behind all that is due in this turn, and fires in the next.
	 */
	timerq_insert(&r->timers, &t->node, deadline_ns > r->now_ns ? deadline_ns : r->now_ns);
}

void reactor_timer_cancel(struct reactor *r, struct reactor_timer *t)
{
	if (timerq_is_queued(&t->node))
		timerq_remove(&r->timers, &t->node);
}

bool reactor_timer_armed(const struct reactor_timer *t)
{
	return timerq_is_queued(&t->node);
}

static uint64_t next_timer_ns(const struct reactor *r)
{
	const struct timerq_node *n = timerq_first(&r->timers);

	return n ? n->key_ns : REACTOR_NEVER;
}

static bool fire_timers(struct reactor *r)
{
	uint64_t newest = r->timers.seq;
	struct timerq_node *n;
	bool ran = false;

	while ((n = timerq_first(&r->timers)) && n->key_ns <= r->now_ns && n->seq <= newest) {
		struct reactor_timer *t = container_of(n, struct reactor_timer, node);

		timerq_remove(&r->timers, n);
		t->fire(t);
		ran = true;
	}
	return ran;
}

/* ---- spinners ---- */

void reactor_spin_add(struct reactor *r, struct reactor_spin *s)
{
	list_push_back(&r->spin.spinners, &s->link);
}

void reactor_spin_del(struct reactor_spin *s)
{
	if (s->link.next) /* NULL: never added */
		list_del(&s->link);
}

/* ---- mailbox ---- */

/*
 * ORDER: the sender publishes (message or stop flag) and then looks at
 * `asleep`; the reactor publishes `asleep` and then looks for messages and
 * the flag. All sequentially consistent, so one of the two sees the other.
 */
static void wake(struct reactor *r)
{
	uint64_t one = 1;
	ssize_t n;

	if (!atomic_load(&r->asleep) || !atomic_exchange(&r->asleep, false))
		return;
	/* Fails only when the counter is full, which wakes as well. */
	n = write(r->wake_fd, &one, sizeof(one));
	(void)n;
}

void reactor_post(struct reactor *r, struct reactor_msg *msg)
{
	if (mailbox_push(&r->mailbox, msg))
		wake(r);
}

void reactor_stop(struct reactor *r)
{
	int saved_errno = errno; /* may be in a signal handler */

	atomic_store(&r->stop, true);
	wake(r);
	errno = saved_errno;
}

static bool has_news(struct reactor *r)
{
	return mailbox_has_some(&r->mailbox) || atomic_load(&r->stop);
}

/* ---- turns ---- */

/*
 * Sees to it that epoll returns when this is due. An alarm that is set for an earlier time stays:
 * as deadlines mostly move away, it is set a few times a second, and not for each wait.
 */
static void set_alarm(struct reactor *r, uint64_t due_ns)
{
	struct itimerspec its = {.it_value = {
					 .tv_sec = (time_t)(due_ns / NSEC_PER_SEC),
					 .tv_nsec = (long)(due_ns % NSEC_PER_SEC),
				 }};

	if (due_ns >= r->alarm_ns)
		return;
	r->alarm_ns = due_ns;
	/* Fails for bad arguments only. */
	(void)timerfd_settime(r->alarm_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

/*
 * All that needs no system call. Spinners first: a reply that is here beats
 * its own timeout.
 */
static bool run_ready(struct reactor *r)
{
	bool ran = spin_poll(&r->spin);

	ran |= mailbox_run(&r->mailbox);
	ran |= fire_timers(r);
	return ran;
}

/*
 * How long nothing is due, at most until `until_ns`. Asked again after each
 * callback: even one that found no work may have armed a timer.
 */
static uint64_t time_left(const struct reactor *r, uint64_t until_ns)
{
	uint64_t due_ns = earlier(next_timer_ns(r), until_ns);

	if (due_ns == REACTOR_NEVER)
		return REACTOR_NEVER;
	return due_ns > r->now_ns ? due_ns - r->now_ns : 0;
}

/*
 * Polls while that is worth it, until `until_ns`. Returns the number of events
 * found; *ret_ran is set if a spinner found work.
 */
static int spin(struct reactor *r, uint64_t until_ns, bool *ret_ran)
{
	while (spin_is_worth_it(&r->spin, r->now_ns - r->last_work_ns) && time_left(r, until_ns)) {
		int n;

		for (int i = 0; i < SPIN_POLLS; i++) {
			if (spin_poll(&r->spin)) {
				*ret_ran = true;
				return 0;
			}
			if (has_news(r))
				return 0;
			spin_relax();
		}
		n = reactor_fd_poll(r, false);
		if (n)
			return n;
		read_clock(r);
	}
	return 0;
}

static int sleep_until(struct reactor *r, uint64_t until_ns)
{
	bool wait;
	int n;

	atomic_store(&r->asleep, true); /* ORDER: see wake() */
	wait = !has_news(r) && spin_arm(&r->spin) && time_left(r, until_ns);
	if (wait)
		set_alarm(r, earlier(next_timer_ns(r), until_ns));
	n = reactor_fd_poll(r, wait);
	atomic_store(&r->asleep, false);
	return n;
}

static enum turn_result turn_real(struct reactor *r, uint64_t max_wait_ns)
{
	uint64_t until_ns, before_ns;
	bool ran, was_expected, sleeps;
	int n;

	read_clock(r);
	ran = run_ready(r);
	was_expected = reactor_fd_run_expected(r);
	if (ran || was_expected) {
		r->last_work_ns = r->now_ns;
		if (!was_expected)
			reactor_fd_dispatch(r, reactor_fd_poll(r, false));
		return TURN_RAN;
	}

	until_ns = add_saturated(r->now_ns, max_wait_ns);
	before_ns = r->now_ns;
	n = spin(r, until_ns, &ran);
	sleeps = !n && !ran && time_left(r, until_ns);
	if (sleeps)
		n = sleep_until(r, until_ns);
	else if (!n && !ran)
		n = reactor_fd_poll(r, false);
	read_clock(r);
	if (sleeps && n > 0 && r->now_ns - before_ns > LULL_NS)
		r->lulls++;
	ran |= reactor_fd_dispatch(r, n);
	ran |= run_ready(r);
	if (ran)
		r->last_work_ns = r->now_ns;
	return ran ? TURN_RAN : TURN_IDLE;
}

static enum turn_result turn_virtual(struct reactor *r, uint64_t max_wait_ns)
{
	bool ran = run_ready(r);
	uint64_t to_ns;

	ran |= reactor_fd_run_expected(r) || reactor_fd_dispatch(r, reactor_fd_poll(r, false));
	if (ran)
		return TURN_RAN;
	if (has_news(r))
		return TURN_AGAIN;
	if (!spin_arm(&r->spin))
		return run_ready(r) ? TURN_RAN : TURN_AGAIN;

	to_ns = add_saturated(r->now_ns, max_wait_ns);
	to_ns = earlier(to_ns, next_timer_ns(r));
	if (to_ns == REACTOR_NEVER)
		return TURN_IDLE;
	r->now_ns = to_ns;
	return run_ready(r) ? TURN_RAN : TURN_IDLE;
}

static enum turn_result turn(struct reactor *r, uint64_t max_wait_ns)
{
	enum turn_result res;

	assert(!r->in_turn);
	r->in_turn = true;
	res = r->is_virtual ? turn_virtual(r, max_wait_ns) : turn_real(r, max_wait_ns);
	r->in_turn = false;
	return res;
}

bool reactor_turn(struct reactor *r, uint64_t max_wait_ns)
{
	return turn(r, max_wait_ns) == TURN_RAN;
}

void reactor_run(struct reactor *r)
{
	while (!atomic_exchange(&r->stop, false)) {
		/* With virtual time nobody but this thread can make something happen. */
		if (turn(r, REACTOR_NEVER) == TURN_IDLE && r->is_virtual)
			return;
	}
}

void reactor_free(struct reactor *r)
{
	if (!r)
		return;
	while (mailbox_run(&r->mailbox))
		;
	assert(!r->fd_cnt && !timerq_first(&r->timers) && list_empty(&r->spin.spinners));
	free_reactor(r);
}
