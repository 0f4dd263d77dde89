/* SPDX-License-Identifier: BSD-3-Clause */
/* Between reactor.c, which has the turns, and reactor_fd.c, which has the descriptors. */
#ifndef RPCRDMAFS_REACTOR_INT_H
#define RPCRDMAFS_REACTOR_INT_H

#include "reactor.h"

#include <stdatomic.h>
#include <sys/epoll.h>

#include "mailbox.h"
#include "spin.h"

#define REACTOR_EVENTS 64 /* taken from epoll at once */

/* One per thread. Owner: that thread, but for the fields under "any thread". */
struct reactor {
	int epoll_fd;
	int wake_fd;
	int alarm_fd;      /* timerfd: wakes when a timer is due, not later */
	uint64_t alarm_ns; /* when it does; REACTOR_NEVER: it is not set */
	bool is_virtual;
	bool in_turn;
	uint64_t now_ns;
	uint64_t last_work_ns;
	uint64_t lulls;
	struct timerq timers;
	struct spin spin;
	unsigned int fd_cnt;
	struct reactor_fd *expected; /* NULL: none */
	unsigned int expected_cnt;   /* times in a row that it was there */

	/* The batch being dispatched; reactor_fd_del() blanks what is still to come. */
	struct epoll_event events[REACTOR_EVENTS];
	int event_pos, event_cnt;

	/* Any thread. */
	struct mailbox mailbox;
	atomic_bool asleep; /* somebody must write to wake_fd */
	atomic_bool stop;
};

/* Asks epoll; wait: until something is ready. Returns the number of events. */
int reactor_fd_poll(struct reactor *r, bool wait);
/* Calls those whose events these are. True: a callback ran. */
bool reactor_fd_dispatch(struct reactor *r, int cnt);
/* Calls what is expected. False: it found nothing, or it is not its turn; epoll is to be asked. */
bool reactor_fd_run_expected(struct reactor *r);

#endif
