/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_client.h"

#include <dirent.h>
#include <errno.h>
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
#define USERS_DIR  "/run/user"
/* Of the time for all strangers one user has this part: others are found, too. */
#define USER_SHARE 4

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

int64_t ctl_client_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool in_time(int64_t until_ms)
{
	return until_ms == 0 || ctl_client_now_ms() < until_ms;
}

static bool wait_until(int fd, short events, int64_t end)
{
	struct pollfd pfd = {.fd = fd, .events = events};
	int64_t left = end - ctl_client_now_ms();
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

static int connect_to(const struct ctl_daemon *d, int64_t end)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int dir = ctl_dir_open(d->dir, d->owner), fd;
	char name[32];

	if (dir < 0)
		return dir;
	snprintf(name, sizeof(name), "%d.sock", (int)d->pid);
	while ((fd = ctl_dir_connect(dir, name)) == -EAGAIN && ctl_client_now_ms() < end)
		nanosleep(&pause, NULL);
	close(dir);
	return fd;
}

/*
 * *ret_uid: of the process that listens, as the kernel says; may be NULL. NULL: errno is that of
 * ctl_dir_connect(), or EIO.
 */
static char *ask(const struct ctl_daemon *d, const char *request, int fd, uid_t *ret_uid,
	char *fault, size_t len)
{
	int64_t most = ctl_client_now_ms() + CTL_CLIENT_MS;
	int64_t end = d->until_ms != 0 && d->until_ms < most ? d->until_ms : most;
	int sock = in_time(d->until_ms) ? connect_to(d, end) : -ETIMEDOUT, err;
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t peer_len = sizeof(peer);
	char *text = NULL;

	if (sock < 0) {
		fail(fault, len, 0, "%s/%d.sock: %s", d->dir, (int)d->pid,
			sock == -EPERM ? "it is not of the process or the user that it says"
				       : strerror(-sock));
		errno = -sock;
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
	if (text != NULL)
		text = take_answer(text, fault, len);
	errno = EIO;
	return text;
}

char *ctl_client_ask(
	const struct ctl_daemon *d, const char *request, int fd, char *fault, size_t len)
{
	return ask(d, request, fd, NULL, fault, len);
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
			/* It is kept; the longest one, escaped, is no longer. */
			if (strlen(value) > 4ul * PATH_MAX)
				return false;
			d->mountpoint = strdup(value);
			if (d->mountpoint == NULL || !ctl_proto_unescape(d->mountpoint))
				return false;
		}
	}
	return d->mountpoint != NULL && d->dev[strspn(d->dev, "0123456789:")] == '\0';
}

/* A folder of sockets, and its user. */
struct folder {
	char dir[CTL_PATH_MAX];
	uid_t uid;
};

/* Daemons that were found. */
struct found {
	struct ctl_daemon *daemons;
	size_t cnt;
};

/*
 * until_ms: as in struct ctl_daemon. False: nobody there answers as a daemon does; fault says why,
 * and errno as of ask().
 */
static bool meet(struct ctl_daemon *d, const struct folder *f, pid_t pid, int64_t until_ms,
	char *fault, size_t len)
{
	char *text;
	bool ok;

	*d = (struct ctl_daemon){.owner = f->uid, .pid = pid, .until_ms = until_ms};
	memcpy(d->dir, f->dir, sizeof(d->dir));
	text = ask(d, "hello", -1, &d->uid, fault, len);
	ok = text != NULL && hello_is_valid(d, text);
	if (text != NULL && !ok)
		fail(fault, len, 0, "%s/%d.sock: its answer makes no sense", d->dir, (int)pid);
	free(text);
	d->until_ms = 0;
	if (!ok)
		free(d->mountpoint);
	return ok;
}

static bool add(struct found *all, const struct ctl_daemon *one)
{
	struct ctl_daemon *more = realloc(all->daemons, (all->cnt + 1) * sizeof(*one));

	if (more == NULL)
		return false;
	all->daemons = more;
	more[all->cnt++] = *one;
	return true;
}

static void add_folder(struct found *all, const struct folder *f, int64_t until_ms)
{
	int fd = ctl_dir_open(f->dir, f->uid);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	char fault[200];

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (in_time(until_ms) && (e = readdir(d)) != NULL) {
		pid_t pid = ctl_dir_name_pid(e->d_name);
		struct ctl_daemon one;

		if (pid == 0 || !meet(&one, f, pid, until_ms, fault, sizeof(fault)))
			continue;
		if (!add(all, &one)) {
			free(one.mountpoint);
			break;
		}
	}
	closedir(d);
}

/* This user's own. False: there is none. */
static bool own_folder(struct folder *ret)
{
	ret->uid = geteuid();
	return ctl_dir(ret->dir);
}

static void user_folder(struct folder *ret, uid_t uid)
{
	ret->uid = uid;
	snprintf(ret->dir, sizeof(ret->dir), USERS_DIR "/%u/rpcrdmafs", (unsigned int)uid);
}

/* The user that a name in USERS_DIR says: root alone puts names there. False: it says none. */
static bool is_user(const char *name, uid_t *ret)
{
	char *end;
	unsigned long uid = strtoul(name, &end, 10);

	*ret = (uid_t)uid;
	return *name >= '1' && *name <= '9' && *end == '\0' && uid < (uid_t)-1;
}

/* This user's own folder, and behind it, for root, those of others. Returns how many; free *ret. */
static size_t folders(struct folder **ret)
{
	DIR *users = geteuid() == 0 ? opendir(USERS_DIR) : NULL;
	struct folder *all = malloc(sizeof(*all)), *more;
	const struct dirent *e;
	size_t cnt = all != NULL && own_folder(all);
	uid_t uid;

	while (all != NULL && users != NULL && (e = readdir(users)) != NULL) {
		if (!is_user(e->d_name, &uid))
			continue;
		more = realloc(all, (cnt + 1) * sizeof(*all));
		if (more == NULL)
			break;
		all = more;
		user_folder(&all[cnt++], uid);
	}
	if (users != NULL)
		closedir(users);
	*ret = all;
	return cnt;
}

/* Root's come first. */
static int by_user(const void *a, const void *b)
{
	const struct ctl_daemon *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

size_t ctl_client_find_all(unsigned int strangers_ms, struct ctl_daemon **ret)
{
	int64_t end = ctl_client_now_ms() + strangers_ms;
	struct found all = {0};
	struct folder *f;
	size_t cnt = folders(&f);

	for (size_t i = 0; i < cnt; i++) {
		int64_t share = ctl_client_now_ms() + strangers_ms / USER_SHARE;

		if (f[i].uid == geteuid())
			add_folder(&all, &f[i], 0);
		else
			add_folder(&all, &f[i], share < end ? share : end);
	}
	free(f);
	if (all.cnt > 1)
		qsort(all.daemons, all.cnt, sizeof(*all.daemons), by_user);
	*ret = all.daemons;
	return all.cnt;
}

static void daemons_free(struct ctl_daemon *d, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		free(d[i].mountpoint);
	free(d);
}

/* ---- which one it is ---- */

bool ctl_client_find_dev(const char *dev, uid_t uid, struct ctl_daemon *ret)
{
	struct found all = {0};
	struct folder f;
	bool found = false;

	if (own_folder(&f))
		add_folder(&all, &f, 0);
	if (geteuid() == 0 && uid != 0) {
		user_folder(&f, uid);
		add_folder(&all, &f, ctl_client_now_ms() + CTL_CLIENT_MS);
	}
	for (size_t i = 0; i < all.cnt; i++) {
		/* Another one that claims that device lies. */
		if (found || strcmp(all.daemons[i].dev, dev) != 0 || all.daemons[i].uid != uid)
			continue;
		*ret = all.daemons[i];
		all.daemons[i].mountpoint = NULL;
		found = true;
	}
	daemons_free(all.daemons, all.cnt);
	return found;
}

/* Only sockets of that name are asked. A stranger's that lies is a reason to be told. */
static int find_by_pid(const char *mount, struct ctl_daemon *ret, char *fault, size_t len)
{
	int64_t end = ctl_client_now_ms() + CTL_CLIENT_MS;
	unsigned long pid = strtoul(mount, NULL, 10);
	struct folder *f;
	size_t cnt = folders(&f);
	int err = -ESRCH;

	fail(fault, len, 0, "pid:%s: no rpcrdmafs of yours with that PID has a control socket",
		mount);
	for (size_t i = 0; err != 0 && pid > 0 && pid <= INT_MAX && i < cnt; i++) {
		int64_t until_ms = f[i].uid == geteuid() ? 0 : end;
		char why[400];

		if (!in_time(until_ms))
			break;
		if (meet(ret, &f[i], (pid_t)pid, until_ms, why, sizeof(why)))
			err = 0;
		else if (errno != ENOENT && errno != ECONNREFUSED)
			fail(fault, len, 0, "pid:%s: %s", mount, why);
	}
	free(f);
	return err;
}

int ctl_client_find(const char *mount, struct ctl_daemon *ret, char *fault, size_t len)
{
	char cwd[PATH_MAX], path[PATH_MAX];
	struct mountinfo mi;

	if (strncmp(mount, "pid:", 4) == 0)
		return find_by_pid(mount + 4, ret, fault, len);
	if (getcwd(cwd, sizeof(cwd)) == NULL || !mountinfo_path(cwd, mount, path))
		return fail(fault, len, EINVAL, "%s: not a usable path", mount);
	if (!mountinfo_mounted(path, &mi))
		return fail(fault, len, ENOENT,
			"%s: no rpcrdmafs is mounted there (a mount in another namespace is named "
			"pid:N)",
			mount);
	if (ctl_client_find_dev(mi.dev, mi.uid, ret))
		return 0;
	return fail(fault, len, ESRCH,
		"%s: its daemon has no control socket here: was it started by another user, or has "
		"it "
		"died?",
		mount);
}
