/* SPDX-License-Identifier: BSD-3-Clause */
#include "reactor_int.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>

#include "mutex.h"

#define EXPECTED_MAX 7 /* turns in a row without a look at epoll */

int reactor_fd_add(struct reactor *r, struct reactor_fd *src, int fd, uint32_t events,
	void (*ready)(struct reactor_fd *, uint32_t))
{
	struct epoll_event ev = {.events = events, .data.ptr = src};

	assert(!src->reactor);
	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	src->fd = fd;
	src->ready = ready;
	src->reactor = r;
	r->fd_cnt++;
	return 0;
}

void reactor_fd_del(struct reactor_fd *src)
{
	struct reactor *r = src->reactor;

	if (!r)
		return;
	/* Fails when the owner closed it first, which removed it as well. */
	(void)epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
	for (int i = r->event_pos; i < r->event_cnt; i++) {
		if (r->events[i].data.ptr == src)
			r->events[i].data.ptr = NULL;
	}
	if (r->expected == src)
		r->expected = NULL;
	src->reactor = NULL;
	r->fd_cnt--;
}

void reactor_fd_expect(struct reactor_fd *src)
{
	src->reactor->expected = src;
}

bool reactor_fd_run_expected(struct reactor *r)
{
	struct reactor_fd *src = r->expected;

	r->expected = NULL;
	if (!src || r->expected_cnt == EXPECTED_MAX) {
		r->expected_cnt = 0;
		return false;
	}
	r->expected_cnt++;
	src->ready(src, 0);
	return r->expected != NULL;
}

bool reactor_fd_dispatch(struct reactor *r, int cnt)
{
	bool ran = false;

	r->event_cnt = cnt;
	r->event_pos = 0;
	while (r->event_pos < r->event_cnt) {
		const struct epoll_event *ev = &r->events[r->event_pos++];
		struct reactor_fd *src = ev->data.ptr;
		eventfd_t value;

		if (!ev->data.ptr) /* removed by an earlier one of this batch */
			continue;
		if (ev->data.ptr == &r->alarm_fd) {
			r->alarm_ns = REACTOR_NEVER;
			continue;
		}
		if (ev->data.ptr == &r->wake_fd) {
			(void)eventfd_read(r->wake_fd, &value);
			continue;
		}
		src->ready(src, ev->events);
		ran = true;
	}
	r->event_cnt = r->event_pos = 0;
	return ran;
}

int reactor_fd_poll(struct reactor *r, bool wait)
{
	int n;

	mutex_assert_none();
	n = epoll_wait(r->epoll_fd, r->events, REACTOR_EVENTS, wait ? -1 : 0);
	if (n <= 0)
		r->lulls++;
	return n > 0 ? n : 0;
}
