/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_client.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "ctl_proto.h"
#include "mountinfo.h"
#include "rights.h"

#define ANSWER_MAX (16u << 20)

static int fail(char *fault, size_t len, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int fail(char *fault, size_t len, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault, len, fmt, ap);
	va_end(ap);
	return -err;
}

/* ---- one request ---- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool wait_until(int fd, short events, int64_t end)
{
	struct pollfd pfd = {.fd = fd, .events = events};
	int64_t left = end - now_ms();
	int n;

	do
		n = left > 0 ? poll(&pfd, 1, (int)left) : 0;
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/* A new socket's buffer is larger than any request: it goes in one piece. */
static int send_line(int sock, const char *request, int fd)
{
	char *line;
	int len = asprintf(&line, "%s\n", request), err;

	if (len < 0)
		return -ENOMEM;
	err = rights_send(sock, line, (size_t)len, &fd, fd >= 0, 0);
	free(line);
	return err;
}

/* All until the end, malloced, with a NUL behind it. NULL with errno. */
static char *read_all(int sock, int64_t end)
{
	size_t len = 0, cap = 65536;
	char *text = malloc(cap), *more;
	ssize_t n;

	while (text != NULL) {
		if (len + 1 == cap) {
			more = cap < ANSWER_MAX ? realloc(text, cap *= 2) : NULL;
			if (more == NULL) {
				errno = EMSGSIZE;
				break;
			}
			text = more;
		}
		if (!wait_until(sock, POLLIN, end)) {
			errno = ETIMEDOUT;
			break;
		}
		n = read(sock, text + len, cap - len - 1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			break;
		len += (size_t)n;
		if (n == 0) {
			text[len] = '\0';
			return text;
		}
	}
	free(text);
	return NULL;
}

static char *take_answer(char *text, char *fault, size_t len)
{
	if (strncmp(text, "ok\n", 3) == 0) {
		memmove(text, text + 3, strlen(text + 3) + 1);
		return text;
	}
	if (strncmp(text, "error: ", 7) == 0)
		fail(fault, len, 0, "%.*s", (int)strcspn(text + 7, "\n"), text + 7);
	else
		fail(fault, len, 0, "the daemon closed the connection: it ends, or many ask it");
	free(text);
	return NULL;
}

static int connect_to(const char *path, int64_t end)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int fd;

	while ((fd = ctl_dir_connect(path)) == -EAGAIN && now_ms() < end)
		nanosleep(&pause, NULL);
	return fd;
}

/* uid: of who listens, as the kernel says; may be NULL. */
static char *ask(
	const char *path, const char *request, int fd, uid_t *ret_uid, char *fault, size_t len)
{
	int64_t end = now_ms() + CTL_CLIENT_MS;
	int sock = connect_to(path, end), err;
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t peer_len = sizeof(peer);
	char *text = NULL;

	if (sock < 0) {
		fail(fault, len, 0, "%s: %s", path, strerror(-sock));
		return NULL;
	}
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len);
	if (ret_uid != NULL)
		*ret_uid = peer.uid;
	err = send_line(sock, request, fd);
	/* Refused before it was read: the answer says why. */
	if (err == 0 || err == -EPIPE)
		text = read_all(sock, end);
	if (text == NULL)
		fail(fault, len, 0, "the daemon does not answer: %s",
			strerror(err != 0 ? -err : errno));
	close(sock);
	return text != NULL ? take_answer(text, fault, len) : NULL;
}

char *ctl_client_ask(
	const struct ctl_daemon *d, const char *request, int fd, char *fault, size_t len)
{
	return ask(d->path, request, fd, NULL, fault, len);
}

/* ---- who is there ---- */

/* WIRE: "name=value" lines, of a daemon that may be another user's. */
static bool hello_is_valid(struct ctl_daemon *d, char *text)
{
	char *rest = text, *line;

	d->dev[0] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL) {
		char *value = strchr(line, '=');

		if (value == NULL)
			continue;
		*value++ = '\0';
		if (strcmp(line, "dev") == 0) {
			snprintf(d->dev, sizeof(d->dev), "%s", value);
		} else if (strcmp(line, "mountpoint") == 0 && d->mountpoint == NULL) {
			d->mountpoint = strdup(value);
			if (d->mountpoint == NULL || !ctl_proto_unescape(d->mountpoint))
				return false;
		}
	}
	return d->mountpoint != NULL && d->dev[strspn(d->dev, "0123456789:")] == '\0';
}

static bool meet(struct ctl_daemon *d, const char *dir, const char *name, char *fault, size_t len)
{
	char *text;
	bool ok;

	*d = (struct ctl_daemon){.pid = ctl_dir_name_pid(name)};
	if (d->pid == 0 ||
		snprintf(d->path, sizeof(d->path), "%s/%s", dir, name) >= (int)sizeof(d->path))
		return false;
	text = ask(d->path, "hello", -1, &d->uid, fault, len);
	ok = text != NULL && hello_is_valid(d, text);
	free(text);
	if (!ok)
		free(d->mountpoint);
	return ok;
}

static void add_dir(struct ctl_daemon **all, size_t *cnt, const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	char fault[200];

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		struct ctl_daemon one, *more;

		if (!meet(&one, dir, e->d_name, fault, sizeof(fault)))
			continue;
		more = realloc(*all, (*cnt + 1) * sizeof(one));
		if (more == NULL) {
			free(one.mountpoint);
			break;
		}
		*all = more;
		more[(*cnt)++] = one;
	}
	closedir(d);
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct ctl_daemon *)a)->pid, y = ((const struct ctl_daemon *)b)->pid;

	return (x > y) - (x < y);
}

size_t ctl_client_find_all(struct ctl_daemon **ret)
{
	char dir[CTL_PATH_MAX];
	size_t cnt = 0;
	glob_t g;

	*ret = NULL;
	if (ctl_dir(dir))
		add_dir(ret, &cnt, dir);
	if (geteuid() == 0 && glob("/run/user/*/rpcrdmafs", GLOB_NOSORT, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_dir(ret, &cnt, g.gl_pathv[i]);
		globfree(&g);
	}
	if (cnt > 1)
		qsort(*ret, cnt, sizeof(**ret), by_pid);
	return cnt;
}

static void daemons_free(struct ctl_daemon *d, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		free(d[i].mountpoint);
	free(d);
}

/* ---- which one it is ---- */

static int find_by_pid(const char *mount, struct ctl_daemon *ret, char *fault, size_t len)
{
	struct ctl_daemon *all;
	size_t cnt = ctl_client_find_all(&all);
	int err = -ESRCH;

	for (size_t i = 0; i < cnt; i++) {
		if (err == 0 || (unsigned long)all[i].pid != strtoul(mount, NULL, 10))
			continue;
		*ret = all[i];
		all[i].mountpoint = NULL;
		err = 0;
	}
	daemons_free(all, cnt);
	if (err == 0)
		return 0;
	return fail(fault, len, ESRCH,
		"pid:%s: no rpcrdmafs of yours with that PID has a control socket", mount);
}

int ctl_client_find(const char *mount, struct ctl_daemon *ret, char *fault, size_t len)
{
	char cwd[PATH_MAX], path[PATH_MAX];
	struct ctl_daemon *all;
	struct mountinfo mi;
	int err = -ESRCH;
	size_t cnt;

	if (strncmp(mount, "pid:", 4) == 0)
		return find_by_pid(mount + 4, ret, fault, len);
	if (getcwd(cwd, sizeof(cwd)) == NULL || !mountinfo_path(cwd, mount, path))
		return fail(fault, len, EINVAL, "%s: not a usable path", mount);
	if (!mountinfo_mounted(path, &mi))
		return fail(fault, len, ENOENT,
			"%s: no rpcrdmafs is mounted there (a mount in another namespace is named "
			"pid:N)",
			mount);
	cnt = ctl_client_find_all(&all);
	for (size_t i = 0; i < cnt; i++) {
		/* Whoever else claims that device lies. */
		if (err == 0 || strcmp(all[i].dev, mi.dev) != 0 || all[i].uid != mi.uid)
			continue;
		*ret = all[i];
		all[i].mountpoint = NULL;
		err = 0;
	}
	daemons_free(all, cnt);
	if (err == 0)
		return 0;
	return fail(fault, len, ESRCH,
		"%s: its daemon has no control socket here: was it started by another user, or has "
		"it "
		"died?",
		mount);
}
