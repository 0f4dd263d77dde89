/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reactor: the event loop of one thread (a lane, or a helper): file
 * descriptors (epoll), timers, a mailbox other threads may post to, and
 * spinners (completion queues polled for a bounded time before sleeping).
 *
 * Time is CLOCK_MONOTONIC in nanoseconds, read once a turn. A reactor with
 * virtual time (tests) never sleeps: when nothing is ready it jumps to the
 * next timer.
 *
 * Context: every call is made by the thread that runs the reactor, except
 * reactor_post() and reactor_stop(), which any thread may call. Callbacks run
 * from reactor_run()/reactor_turn() only, never from a call that arms them,
 * and must not call these two. They may remove, cancel or arm any source.
 */
#ifndef RPCRDMAFS_REACTOR_H
#define RPCRDMAFS_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "timerq.h"

#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull
#define REACTOR_NEVER UINT64_MAX

struct reactor;

/* A file descriptor; embedded by its owner; zero-initialised. */
struct reactor_fd {
	int fd;
	/* events: EPOLL* bits. May remove itself and free its container. */
	void (*ready)(struct reactor_fd *src, uint32_t events);
	struct reactor *reactor; /* NULL: not added */
};

/* A timer; embedded by its owner; zero-initialised or reactor_timer_init(). */
struct reactor_timer {
	void (*fire)(struct reactor_timer *t);
	uint64_t deadline_ns;
	struct timerq_node node; /* the reactor's */
};

/* A message to a reactor; owned by the mailbox from post to ->run. */
struct reactor_msg {
	struct reactor_msg *next;
	void (*run)(struct reactor_msg *msg);
};

/*
 * A source that has no descriptor to wait on while it is busy, or is cheaper
 * to poll than to wait for: a completion queue.
 */
struct reactor_spin {
	struct list link;
	/* Polls once; true if it found work. Runs in each turn. */
	bool (*poll)(struct reactor_spin *s);
	/* Called before the reactor sleeps; false: work arrived meanwhile, do not sleep. NULL:
	 * none. */
	bool (*arm)(struct reactor_spin *s);
	/* True while spinning for a completion is worth it (few requests in flight). NULL: never.
	 */
	bool (*wants_spin)(struct reactor_spin *s);
};

struct reactor *reactor_new(void);
/* Time starts at 1 s and moves only when the reactor has nothing else to do. */
struct reactor *reactor_new_virtual(void);
/* All sources must have been removed; pending messages are run first. NULL is accepted. */
void reactor_free(struct reactor *r);

uint64_t reactor_now(const struct reactor *r);
/*
 * The same clock, read now, for durations shorter than a turn: ~25 ns. What was armed by
 * reactor_now() does not change. In virtual time it is reactor_now().
 */
uint64_t reactor_clock(const struct reactor *r);
/*
 * Counts the looks for ready descriptors that found none at once. A descriptor whose callback runs
 * again with the same count had more than that callback took, or was ready again soon after.
 */
uint64_t reactor_lulls(const struct reactor *r);
/* True for a reactor of reactor_new_virtual(). */
bool reactor_is_virtual(const struct reactor *r);
/*
 * How long after the last work spinners may keep the thread from sleeping; 0
 * (default): no spinning. Without effect in virtual time and where the calling
 * thread may use one CPU only.
 */
void reactor_set_spin_ns(struct reactor *r, uint64_t ns);

/* events: EPOLLIN, EPOLLOUT, EPOLLEXCLUSIVE ... Returns 0 or -errno of epoll_ctl. */
int reactor_fd_add(struct reactor *r, struct reactor_fd *src, int fd, uint32_t events,
	void (*ready)(struct reactor_fd *, uint32_t));
/* Removes it; no callback for it runs afterwards. Harmless when not added. */
void reactor_fd_del(struct reactor_fd *src);
/*
 * reactor_fd_expect - it is likely to be ready in the next turn
 *
 * Its callback runs then, with 0 for events, when spinners, messages and timers have, and epoll is
 * not asked, which costs more than a read(2) that finds nothing. The callback calls this again if
 * it found something; else epoll is asked after all, as it is in each eighth turn. src was added;
 * the last one of a reactor for which this was called is expected.
 */
void reactor_fd_expect(struct reactor_fd *src);

void reactor_timer_init(struct reactor_timer *t, void (*fire)(struct reactor_timer *));
/*
 * Arms or moves it; deadline in reactor_now() time. One that has passed fires
 * in the next turn; equal ones fire in the order of arming.
 */
void reactor_timer_set(struct reactor *r, struct reactor_timer *t, uint64_t deadline_ns);
static inline void reactor_timer_in(struct reactor *r, struct reactor_timer *t, uint64_t delay_ns)
{
	reactor_timer_set(r, t, reactor_now(r) + delay_ns);
}
void reactor_timer_cancel(struct reactor *r, struct reactor_timer *t);
bool reactor_timer_armed(const struct reactor_timer *t);

void reactor_spin_add(struct reactor *r, struct reactor_spin *s);
void reactor_spin_del(struct reactor_spin *s);

/*
 * Any thread. msg->run() runs on the reactor's thread, in the order of posting,
 * and may free or post `msg`. The reactor must outlive the call itself, not
 * only the message (the same holds for reactor_stop()).
 */
void reactor_post(struct reactor *r, struct reactor_msg *msg);
/*
 * Runs until reactor_stop(); a stop before it makes it return at once. In
 * virtual time it also returns when nothing can happen any more: no timer, no
 * ready descriptor, no message, no work for a spinner.
 */
void reactor_run(struct reactor *r);
/* Any thread, also a signal-safe context: reactor_run() returns after its current turn. */
void reactor_stop(struct reactor *r);
/*
 * One turn: polls spinners, runs what is ready, waits at most max_wait_ns for
 * something to be ready (virtual time: jumps to the next timer, at most that
 * far). A pending reactor_stop() keeps it from waiting.
 * Returns: true if any callback ran.
 */
bool reactor_turn(struct reactor *r, uint64_t max_wait_ns);

#endif
