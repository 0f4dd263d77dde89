/* SPDX-License-Identifier: BSD-3-Clause */
#include "holder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ctl_dir.h"
#include "holder_int.h"
#include "log.h"
#include "process.h"

#define BACKLOG   64
#define PEERS_MAX 2048u

/* ---- programs ---- */

static bool say(const struct peer *p, const char *text, const int *fds, unsigned int cnt)
{
	return rights_send(p->src.fd, text, strlen(text), fds, cnt, MSG_DONTWAIT) == 0;
}

static bool give(struct name *n, const struct peer *p)
{
	char text[HOLD_TEXT] = HOLD_HELD;
	size_t len = strlen(text);
	int fds[HOLD_FDS];

	for (unsigned int i = 0; i < n->cnt; i++) {
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%c%s", i == 0 ? ' ' : ':', n->fds[i].name);
		fds[i] = n->fds[i].fd;
	}
	return say(p, text, fds, n->cnt);
}

static void peer_free(struct peer *p)
{
	list_del(&p->link);
	reactor_fd_del(&p->src);
	close(p->src.fd);
	p->holder->peer_cnt--;
	free(p);
}

/* It is the turn of the next one, or of nobody. */
static void next_has(struct name *n)
{
	holder_name_settle(n);
	while (n->has == NULL && !list_empty(&n->waiting)) {
		struct peer *p = container_of(n->waiting.next, struct peer, link);

		if (!give(n, p)) {
			peer_free(p);
			continue;
		}
		list_del(&p->link);
		n->has = p;
		reactor_timer_cancel(n->holder->reactor, &n->timer);
	}
	if (n->has == NULL)
		holder_name_alone(n);
}

static void peer_gone(struct peer *p)
{
	struct name *n = p->name;
	bool had = n != NULL && n->has == p;

	if (had)
		n->has = NULL;
	peer_free(p);
	if (had)
		next_has(n);
}

static void refuse(struct peer *p, const char *why)
{
	char text[HOLD_TEXT];

	snprintf(text, sizeof(text), HOLD_ERROR "%s", why);
	(void)say(p, text, NULL, 0);
	peer_gone(p);
}

static void is_called(struct peer *p, const char *said)
{
	bool again = strncmp(said, HOLD_AGAIN, strlen(HOLD_AGAIN)) == 0;
	const char *called = said + (again ? strlen(HOLD_AGAIN) : 0);
	struct name *n;

	if (!hold_is_name(called)) {
		refuse(p, "that is no name");
		return;
	}
	n = holder_name_find(p->holder, called);
	if (n == NULL)
		n = holder_name_new(p->holder, called);
	if (n == NULL) {
		refuse(p, strerror(errno));
		return;
	}
	p->name = n;
	list_del(&p->link);
	if (again)
		list_push_front(&n->waiting, &p->link);
	else
		list_push_back(&n->waiting, &p->link);
	if (n->has != NULL || (!again && reactor_timer_armed(&p->holder->quiet)))
		(void)say(p, HOLD_WAIT, NULL, 0);
	else
		next_has(n);
}

/* All who might have a name have said so: whoever waits for one that nobody has gets it. */
static void quiet_over(struct reactor_timer *t)
{
	struct holder *h = container_of(t, struct holder, quiet);
	struct list *next;

	for (struct list *node = h->names.next; node != &h->names; node = next) {
		struct name *n = container_of(node, struct name, link);

		next = node->next;
		if (n->has == NULL)
			next_has(n);
	}
}

/* It ends with the program that asked for it, or when the kernel lets it go. */
static void run_notifier(const struct peer *p, const struct holder_heard *m)
{
	char called[] = "rpcrdmafs: notifier", variable[] = HOLD_RUN_VARIABLE "=1";
	char *argv[] = {called, p->name->name, NULL};
	pid_t pid = process_spawn(
		p->holder->conf.program, argv, variable, m->rights.fds, m->rights.cnt);

	if (pid < 0)
		log_err("%s: its notifier cannot be started: %s", p->name->name, strerror(-pid));
}

static void on_peer(struct reactor_fd *src, uint32_t events)
{
	struct peer *p = container_of(src, struct peer, src);
	struct holder_heard m;
	ssize_t len = holder_name_hear(src->fd, &m);

	if (len == -EAGAIN || len == -EINTR)
		return;
	if (len <= 0) {
		peer_gone(p);
		return;
	}
	if (p->name == NULL)
		is_called(p, m.text);
	else if (p->name->has == p && strcmp(m.text, HOLD_RUN) == 0 && m.rights.cnt > 0 &&
		 !m.rights.cut)
		run_notifier(p, &m);
	rights_close(&m.rights);
}

static bool may_talk(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void on_connect(struct reactor_fd *src, uint32_t events)
{
	struct holder *h = container_of(src, struct holder, src);
	/* It has SO_PASSCRED of the one that listens. */
	int fd = accept4(src->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct peer *p;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		/* It would be ready for ever. */
		reactor_fd_del(src);
		reactor_timer_in(h->reactor, &h->listen_again, NSEC_PER_SEC);
	}
	if (fd < 0)
		return;
	p = may_talk(fd) && h->peer_cnt < PEERS_MAX ? calloc(1, sizeof(*p)) : NULL;
	if (p == NULL) {
		close(fd);
		return;
	}
	p->holder = h;
	if (reactor_fd_add(h->reactor, &p->src, fd, EPOLLIN, on_peer) != 0) {
		close(fd);
		free(p);
		return;
	}
	list_push_back(&h->strangers, &p->link);
	h->peer_cnt++;
}

static void listen_again(struct reactor_timer *t)
{
	struct holder *h = container_of(t, struct holder, listen_again);

	if (reactor_fd_add(h->reactor, &h->src, h->src.fd, EPOLLIN, on_connect) != 0)
		reactor_timer_in(h->reactor, t, NSEC_PER_SEC);
}

/* ---- its life ---- */

static bool is_there(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool there = fd >= 0 && (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 ||
					errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return there;
}

static int listen_at(struct holder *h)
{
	struct sockaddr_un sa;
	int fd, err = ctl_dir_make(h->dir);

	if (err != 0)
		return err;
	(void)holder_name_path(h, &sa, HOLD_SOCKET, "");
	if (is_there(&sa))
		return -EADDRINUSE;
	if (holder_name_sweep(h))
		reactor_timer_in(h->reactor, &h->quiet, h->conf.quiet_ns);
	fd = holder_name_bind(h, HOLD_SOCKET, "", SOCK_SEQPACKET);
	if (fd < 0)
		return fd;
	err = listen(fd, BACKLOG) != 0
		      ? -errno
		      : reactor_fd_add(h->reactor, &h->src, fd, EPOLLIN, on_connect);
	if (err != 0)
		close(fd);
	return err;
}

struct holder *holder_new(struct reactor *r, const struct holder_conf *conf)
{
	struct holder *h = strlen(conf->dir) < HOLD_FOLDER ? calloc(1, sizeof(*h)) : NULL;
	int err;

	errno = strlen(conf->dir) < HOLD_FOLDER ? ENOMEM : ENAMETOOLONG;
	if (h == NULL)
		return NULL;
	h->reactor = r;
	h->conf = *conf;
	snprintf(h->dir, sizeof(h->dir), "%s", conf->dir);
	list_init(&h->names);
	list_init(&h->strangers);
	reactor_timer_init(&h->quiet, quiet_over);
	reactor_timer_init(&h->listen_again, listen_again);
	err = listen_at(h);
	if (err == 0)
		return h;
	reactor_timer_cancel(r, &h->quiet);
	free(h);
	errno = -err;
	return NULL;
}

static void peers_free(struct list *l)
{
	while (!list_empty(l))
		peer_free(container_of(l->next, struct peer, link));
}

void holder_free(struct holder *h)
{
	struct sockaddr_un sa;

	while (!list_empty(&h->names)) {
		struct name *n = container_of(h->names.next, struct name, link);
		struct peer *has = n->has;

		peers_free(&n->waiting);
		if (has == NULL && n->cnt > 0)
			log_err("%s: the holder ends: the mount is given up, and all use of it "
				"fails",
				n->name);
		holder_name_free(n);
		if (has != NULL)
			peer_free(has);
	}
	peers_free(&h->strangers);
	reactor_timer_cancel(h->reactor, &h->quiet);
	reactor_timer_cancel(h->reactor, &h->listen_again);
	reactor_fd_del(&h->src);
	close(h->src.fd);
	if (holder_name_path(h, &sa, HOLD_SOCKET, ""))
		unlink(sa.sun_path);
	free(h);
}
