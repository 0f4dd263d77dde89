/* SPDX-License-Identifier: BSD-3-Clause */
/* A holder that ends has lost all. The next one is told of it. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fs.h"
#include "held.h"
#include "log.h"
#include "mount_int.h"
#include "store.h"

#define AGAIN_NS NSEC_PER_SEC

static void forget_connection(struct mount *m)
{
	if (m->held.reactor != NULL) {
		reactor_fd_del(&m->held);
		close(m->held.fd);
	}
	held_forget();
	m->held_lost = true;
	reactor_timer_in(m->reactor, &m->held_again, AGAIN_NS);
}

static void on_known(struct reactor_fd *src, uint32_t events)
{
	/* It says nothing: that is its end. */
	struct mount *m = container_of(src, struct mount, held);

	log_warn("%s: the holder has gone: until there is one again the mount does not outlive "
		 "this daemon",
		m->opt->mountpoint);
	forget_connection(m);
}

static int listen_to(struct mount *m, int fd, void (*ready)(struct reactor_fd *, uint32_t))
{
	return reactor_fd_add(m->reactor, &m->held, fd, EPOLLIN, ready);
}

static void on_answer(struct reactor_fd *src, uint32_t events)
{
	struct mount *m = container_of(src, struct mount, held);
	int fd = src->fd, known = held_answer(fd);

	if (known == 0)
		return;
	if (known > 0)
		known = store_put(fs_handover_device(m->fs), live_fd(m->live), m->stored, true);
	if (known == 0) {
		reactor_fd_del(src);
		known = listen_to(m, fd, on_known);
	}
	if (known != 0) {
		forget_connection(m);
		return;
	}
	m->held_lost = false;
	log_info("%s: there is a holder again, which keeps the mount", m->opt->mountpoint);
}

static void try_again(struct reactor_timer *t)
{
	struct mount *m = container_of(t, struct mount, held_again);
	int fd = held_again();

	if (fd >= 0 && listen_to(m, fd, on_answer) == 0)
		return;
	if (fd >= 0)
		close(fd);
	held_forget();
	reactor_timer_in(m->reactor, t, AGAIN_NS);
}

void mount_held_start(struct mount *m, bool is_put)
{
	int fd = held_connection();

	if (!held_is())
		return;
	reactor_timer_init(&m->held_again, try_again);
	if (is_put && fd >= 0 && listen_to(m, fd, on_known) == 0)
		return;
	if (fd >= 0)
		close(fd);
	forget_connection(m);
}

void mount_held_stop(struct mount *m)
{
	if (m->held.reactor != NULL)
		reactor_fd_del(&m->held); /* it is open as long as this process is there */
	if (m->held_again.fire != NULL)
		reactor_timer_cancel(m->reactor, &m->held_again);
}
