/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl_dir.h"
#include "ctl_proto.h"
#include "log.h"
#include "rights.h"

#define CONNS_MAX  16u
#define BACKLOG    64
#define ACCEPTS    16u /* at once: the mount's signals and timers wait for no more */
#define PAUSE_NS   NSEC_PER_SEC
#define REQUEST_NS (5 * NSEC_PER_SEC)
#define ANSWER_NS  (10 * NSEC_PER_SEC) /* to take all of it */

struct conn {
	struct reactor_fd src; /* first */
	struct list link;      /* ctl->conns, oldest first */
	struct ctl *ctl;
	struct reactor_timer timer;
	char buf[CTL_HTTP_MAX + 1];
	size_t len;
	int fd; /* what came with the request; -1: nothing */
	bool too_many_fds;
	char *answer; /* NULL: the request is not complete */
	size_t answer_len, sent;
};

struct ctl {
	struct reactor *reactor;
	const struct ctl_command *commands;
	void *ctx;
	struct reactor_fd listener;
	struct reactor_timer pause; /* out of descriptors: not accepting for a moment */
	struct list conns;
	unsigned int conn_cnt;
	char path[CTL_PATH_MAX];
};

static void conn_free(struct conn *c)
{
	struct ctl *ctl = c->ctl;

	reactor_timer_cancel(ctl->reactor, &c->timer);
	reactor_fd_del(&c->src);
	close(c->src.fd);
	if (c->fd >= 0)
		close(c->fd);
	list_del(&c->link);
	ctl->conn_cnt--;
	free(c->answer);
	free(c);
}

static void conn_timer(struct reactor_timer *t)
{
	conn_free(container_of(t, struct conn, timer));
}

/* ---- answers ---- */

static void conn_send(struct conn *c)
{
	while (c->sent < c->answer_len) {
		ssize_t n = send(c->src.fd, c->answer + c->sent, c->answer_len - c->sent,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			break;
		c->sent += (size_t)n;
	}
	conn_free(c);
}

static void conn_writable(struct reactor_fd *src, uint32_t events)
{
	conn_send(container_of(src, struct conn, src));
}

/* The answer is there: what does not fit into the socket now follows when it is taken. */
static void conn_answer(struct conn *c, char *answer, size_t len)
{
	int fd = c->src.fd;

	c->answer = answer;
	c->answer_len = len;
	reactor_fd_del(&c->src);
	if (answer == NULL ||
		reactor_fd_add(c->ctl->reactor, &c->src, fd, EPOLLOUT, conn_writable) != 0) {
		conn_free(c);
		return;
	}
	reactor_timer_in(c->ctl->reactor, &c->timer, ANSWER_NS);
	conn_send(c);
}

static const struct ctl_command *command_of(const struct ctl *ctl, const char *name)
{
	const struct ctl_command *cmd = ctl->commands;

	while (cmd->name != NULL && strcmp(cmd->name, name) != 0)
		cmd++;
	return cmd->name != NULL ? cmd : NULL;
}

/* What the command says, malloced. *ret_err: what it returned; -ENOSYS: there is no such one. */
static char *command_run(struct conn *c, int argc, char **argv, size_t *ret_len, int *ret_err)
{
	const struct ctl_command *cmd = command_of(c->ctl, argv[0]);
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	if (out == NULL)
		return NULL;
	if (cmd == NULL) {
		fprintf(out, "there is no command %s", argv[0]);
		*ret_err = -ENOSYS;
	} else {
		*ret_err = cmd->run(c->ctl->ctx, argc, argv, c->fd, out);
	}
	if (ferror(out) || fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void answer_with(struct conn *c, const char *head, const char *body, size_t body_len)
{
	size_t head_len = strlen(head);
	char *all = malloc(head_len + body_len + 1);

	if (all != NULL) {
		memcpy(all, head, head_len);
		memcpy(all + head_len, body, body_len);
	}
	conn_answer(c, all, head_len + body_len);
}

static void answer_command(struct conn *c, int argc, char **argv)
{
	size_t len = 0;
	int err = 0;
	char *text = command_run(c, argc, argv, &len, &err);

	if (text == NULL)
		answer_with(c, "error: out of memory\n", "", 0);
	else
		answer_with(c, err == 0 ? "ok\n" : "error: ", text, len);
	free(text);
}

static void answer_http(struct conn *c, int status)
{
	static char metrics[] = "metrics";
	char *argv[] = {metrics, NULL}, head[200], *text = NULL;
	const char *why = status == 404   ? "404 Not Found"
			  : status == 405 ? "405 Method Not Allowed"
					  : "505 HTTP Version Not Supported";
	size_t len = 0;
	int err = 0;

	if (status == 200) {
		text = command_run(c, 1, argv, &len, &err);
		why = text != NULL && err == 0 ? "200 OK" : "503 Service Unavailable";
	}
	snprintf(head, sizeof(head),
		"HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		"Content-Length: %zu\r\nConnection: close\r\n\r\n",
		why, len);
	answer_with(c, head, text != NULL ? text : "", len);
	free(text);
}

/* ---- requests ---- */

static void conn_parse(struct conn *c)
{
	struct ctl_request req = {0};

	switch (ctl_proto_parse(c->buf, c->len, &req)) {
	case CTL_MORE:
		return;
	case CTL_COMMAND:
		if (c->too_many_fds)
			answer_with(c, "error: more than one file came with the request\n", "", 0);
		else
			answer_command(c, req.argc, req.argv);
		return;
	case CTL_HTTP:
		answer_http(c, req.http_status);
		return;
	case CTL_BAD:
		answer_with(c, "error: ", req.fault, strlen(req.fault));
		return;
	}
}

/* WIRE: any number of descriptors; one is kept. */
static void take_fds(struct conn *c, struct rights *r)
{
	if (r->cnt > 0 && c->fd < 0)
		c->fd = r->fds[--r->cnt];
	c->too_many_fds |= r->cnt > 0 || r->cut;
	rights_close(r);
}

static void conn_readable(struct reactor_fd *src, uint32_t events)
{
	struct conn *c = container_of(src, struct conn, src);
	struct rights r;
	ssize_t n =
		rights_receive(src->fd, c->buf + c->len, CTL_HTTP_MAX - c->len, &r, MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		conn_free(c);
		return;
	}
	take_fds(c, &r);
	c->len += (size_t)n;
	conn_parse(c);
}

/* ---- connections ---- */

static bool is_allowed(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return false;
	return peer.uid == 0 || peer.uid == geteuid();
}

/* Room for one more: the oldest that has not asked anything yet goes, or else the oldest. */
static void make_room(struct ctl *ctl)
{
	struct conn *victim = NULL;

	if (ctl->conn_cnt < CONNS_MAX)
		return;
	list_for_each (node, &ctl->conns) {
		struct conn *c = container_of(node, struct conn, link);

		if (victim == NULL || (victim->answer != NULL && c->answer == NULL))
			victim = c;
	}
	conn_free(victim);
}

static void conn_new(struct ctl *ctl, int fd)
{
	struct conn *c;

	make_room(ctl);
	c = calloc(1, sizeof(*c));
	if (c == NULL || reactor_fd_add(ctl->reactor, &c->src, fd, EPOLLIN, conn_readable) != 0) {
		free(c);
		close(fd);
		return;
	}
	c->ctl = ctl;
	c->fd = -1;
	list_push_back(&ctl->conns, &c->link);
	ctl->conn_cnt++;
	reactor_timer_init(&c->timer, conn_timer);
	reactor_timer_in(ctl->reactor, &c->timer, REQUEST_NS);
}

static void listener_ready(struct reactor_fd *src, uint32_t events);

static void pause_over(struct reactor_timer *t)
{
	struct ctl *ctl = container_of(t, struct ctl, pause);

	if (reactor_fd_add(
		    ctl->reactor, &ctl->listener, ctl->listener.fd, EPOLLIN, listener_ready) != 0)
		reactor_timer_in(ctl->reactor, t, PAUSE_NS);
}

static void listener_ready(struct reactor_fd *src, uint32_t events)
{
	static const char refused[] = "error: only root and the mount's owner may ask\n";
	struct ctl *ctl = container_of(src, struct ctl, listener);

	for (unsigned int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(src->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
			/* The connection stays there: to be told of it at once again is a loop. */
			reactor_fd_del(src);
			reactor_timer_in(ctl->reactor, &ctl->pause, PAUSE_NS);
		}
		if (fd < 0)
			return;
		if (is_allowed(fd)) {
			conn_new(ctl, fd);
			continue;
		}
		/* Whether it is heard or not. */
		(void)!send(fd, refused, sizeof(refused) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	}
}

/* ---- begin and end ---- */

/*
 * The name comes when it is listened on: one that refuses connections is of a daemon that died
 * (ctl_dir_connect()).
 */
static int listen_at(const char *dir, const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/.%d", dir, (int)getpid());
	unlink(sa.sun_path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && chmod(sa.sun_path, 0600) == 0 &&
		listen(fd, BACKLOG) == 0 && rename(sa.sun_path, path) == 0)
		return fd;
	err = -errno;
	unlink(sa.sun_path);
	close(fd);
	return err;
}

static int ctl_listen(struct ctl *ctl)
{
	char dir[CTL_PATH_MAX];
	int fd, err;

	if (!ctl_dir(dir))
		return -ENOENT;
	err = ctl_dir_make(dir);
	if (err != 0)
		return err;
	ctl_dir_sweep(dir);
	if (snprintf(ctl->path, sizeof(ctl->path), "%s/%d.sock", dir, (int)getpid()) >=
		(int)sizeof(ctl->path))
		return -ENAMETOOLONG;
	fd = listen_at(dir, ctl->path);
	if (fd < 0)
		return fd;
	err = reactor_fd_add(ctl->reactor, &ctl->listener, fd, EPOLLIN, listener_ready);
	if (err != 0) {
		unlink(ctl->path);
		close(fd);
	}
	return err;
}

struct ctl *ctl_start(struct reactor *r, const struct ctl_command *commands, void *ctx)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));
	int err = -ENOMEM;

	if (ctl != NULL) {
		ctl->reactor = r;
		ctl->commands = commands;
		ctl->ctx = ctx;
		list_init(&ctl->conns);
		reactor_timer_init(&ctl->pause, pause_over);
		err = ctl_listen(ctl);
	}
	if (err == 0)
		return ctl;
	log_debug("no control socket, stat, info and log cannot ask this mount: %s",
		err == -ENOENT ? "XDG_RUNTIME_DIR is not set" : strerror(-err));
	free(ctl);
	return NULL;
}

void ctl_end(struct ctl *ctl)
{
	if (ctl == NULL)
		return;
	unlink(ctl->path);
	while (!list_empty(&ctl->conns))
		conn_free(list_first(&ctl->conns, struct conn, link));
	reactor_timer_cancel(ctl->reactor, &ctl->pause);
	reactor_fd_del(&ctl->listener);
	close(ctl->listener.fd);
	free(ctl);
}
