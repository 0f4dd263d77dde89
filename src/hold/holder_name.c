/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holder_int.h"
#include "log.h"

/* ---- descriptors ---- */

static void drop_at(struct name *n, unsigned int i)
{
	close(n->fds[i].fd);
	n->fds[i] = n->fds[--n->cnt];
}

static void drop_all(struct name *n)
{
	while (n->cnt > 0)
		drop_at(n, n->cnt - 1);
}

static void drop_called(struct name *n, const char *fdname)
{
	for (unsigned int i = n->cnt; i-- > 0;)
		if (strcmp(n->fds[i].name, fdname) == 0)
			drop_at(n, i);
}

/* fd becomes ours. */
static void put(struct name *n, const char *fdname, int fd)
{
	if (n->cnt == HOLD_FDS) {
		log_err("%s: it has %u descriptors here, and gets no more", n->name, n->cnt);
		close(fd);
		return;
	}
	snprintf(n->fds[n->cnt].name, HOLD_NAME, "%s", fdname);
	n->fds[n->cnt++].fd = fd;
}

/* A mount that was unmounted says so, and nobody needs the rest either. */
static bool is_of_use(const struct name *n)
{
	for (unsigned int i = 0; i < n->cnt; i++) {
		struct pollfd p = {.fd = n->fds[i].fd};

		if (poll(&p, 1, 0) < 0 || (p.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
			return false;
	}
	return true;
}

/* ---- what a program says by sd_notify() ---- */

/* The value of a line NAME=VALUE; "" if there is none. */
static void get_value(const char *text, const char *name, char *to, size_t size)
{
	size_t len = strlen(name);

	to[0] = '\0';
	for (const char *p = text; p != NULL; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, name, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		len = strcspn(p, "\n");
		if (len < size) {
			memcpy(to, p, len);
			to[len] = '\0';
		}
		return;
	}
}

static void take_notice(struct name *n, struct holder_heard *m)
{
	char fdname[HOLD_NAME], said[4];

	get_value(m->text, "FDNAME", fdname, sizeof(fdname));
	get_value(m->text, "FDSTORE", said, sizeof(said));
	if (strcmp(said, "1") == 0 && m->rights.cnt == 1 && hold_is_name(fdname)) {
		put(n, fdname, m->rights.fds[0]);
		return;
	}
	get_value(m->text, "FDSTOREREMOVE", said, sizeof(said));
	if (strcmp(said, "1") == 0 && fdname[0] != '\0')
		drop_called(n, fdname);
	/* That one with BARRIER=1 is closed is the answer. */
	rights_close(&m->rights);
}

ssize_t holder_name_hear(int fd, struct holder_heard *ret)
{
	ssize_t len =
		rights_receive(fd, ret->text, sizeof(ret->text) - 1, &ret->rights, MSG_DONTWAIT);

	if (len < 0)
		return len;
	ret->text[len] = '\0';
	if ((ret->rights.uid != 0 && ret->rights.uid != geteuid()) ||
		strlen(ret->text) != (size_t)len)
		ret->text[0] = '\0';
	return len;
}

/* Returns: it was there. */
static bool read_notice(struct name *n)
{
	struct holder_heard m;
	ssize_t len = holder_name_hear(n->notify.fd, &m);

	if (len < 0)
		return len == -EINTR;
	if (m.rights.cut)
		log_err("%s: there is no room for a descriptor: it is not held", n->name);
	take_notice(n, &m);
	return true;
}

static void read_notices(struct name *n)
{
	while (read_notice(n))
		;
}

static void on_notice(struct reactor_fd *src, uint32_t events)
{
	read_notices(container_of(src, struct name, notify));
}

/* ---- names ---- */

bool holder_name_path(
	const struct holder *h, struct sockaddr_un *sa, const char *name, const char *suffix)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (size_t)snprintf(sa->sun_path, sizeof(sa->sun_path), "%s/%s%s", h->dir, name,
		       suffix) < sizeof(sa->sun_path);
}

int holder_name_bind(const struct holder *h, const char *name, const char *suffix, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1, err;
	struct sockaddr_un sa;

	if (fd < 0)
		return -errno;
	errno = ENAMETOOLONG;
	if (holder_name_path(h, &sa, name, suffix) &&
		(unlink(sa.sun_path) == 0 || errno == ENOENT) &&
		bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 &&
		chmod(sa.sun_path, 0600) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

bool holder_name_sweep(const struct holder *h)
{
	bool any = false;
	struct sockaddr_un sa;
	struct dirent *e;
	DIR *d = opendir(h->dir);

	while (d != NULL && (e = readdir(d)) != NULL) {
		const char *end = strrchr(e->d_name, '.');

		if (end != NULL && strcmp(end, HOLD_NOTIFY) == 0 &&
			holder_name_path(h, &sa, e->d_name, ""))
			any |= unlink(sa.sun_path) == 0;
	}
	if (d != NULL)
		closedir(d);
	return any;
}

void holder_name_free(struct name *n)
{
	struct sockaddr_un sa;

	drop_all(n);
	reactor_timer_cancel(n->holder->reactor, &n->timer);
	reactor_fd_del(&n->notify);
	close(n->notify.fd);
	/* A program that goes on is one of the next holder's: it is to know that there is one. */
	if (n->has == NULL && holder_name_path(n->holder, &sa, n->name, HOLD_NOTIFY))
		unlink(sa.sun_path);
	list_del(&n->link);
	n->holder->name_cnt--;
	free(n);
}

static void time_over(struct reactor_timer *t)
{
	struct name *n = container_of(t, struct name, timer);

	log_err("%s: nobody has taken it over: the mount is given up, and all use of it fails",
		n->name);
	holder_name_free(n);
}

/* NULL with errno. */
struct name *holder_name_new(struct holder *h, const char *called)
{
	struct name *n = h->name_cnt < h->conf.name_max ? calloc(1, sizeof(*n)) : NULL;
	int fd, err;

	errno = h->name_cnt < h->conf.name_max ? ENOMEM : EMFILE;
	if (n == NULL)
		return NULL;
	n->holder = h;
	snprintf(n->name, sizeof(n->name), "%s", called);
	list_init(&n->waiting);
	reactor_timer_init(&n->timer, time_over);
	fd = holder_name_bind(h, called, HOLD_NOTIFY, SOCK_DGRAM);
	err = fd < 0 ? fd : reactor_fd_add(h->reactor, &n->notify, fd, EPOLLIN, on_notice);
	if (err != 0) {
		if (fd >= 0)
			close(fd);
		free(n);
		errno = -err;
		return NULL;
	}
	list_push_back(&h->names, &n->link);
	h->name_cnt++;
	return n;
}

struct name *holder_name_find(struct holder *h, const char *called)
{
	list_for_each (node, &h->names) {
		struct name *n = container_of(node, struct name, link);

		if (strcmp(n->name, called) == 0)
			return n;
	}
	return NULL;
}

void holder_name_settle(struct name *n)
{
	read_notices(n);
	if (!is_of_use(n))
		drop_all(n);
}

void holder_name_alone(struct name *n)
{
	if (n->cnt == 0) {
		holder_name_free(n);
		return;
	}
	log_warn("%s: its program has gone: what it left is held for the next one", n->name);
	if (n->holder->conf.wait_ns > 0)
		reactor_timer_in(n->holder->reactor, &n->timer, n->holder->conf.wait_ns);
}
