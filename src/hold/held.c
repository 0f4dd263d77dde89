/* SPDX-License-Identifier: BSD-3-Clause */
#include "held.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "hold.h"

/* A shell that starts the program may want the lower ones. */
#define CONNECTION_FD 100
/* As many as our own daemon wants (store.h). */
#define PLACES "4"

/* before: HOLD_AGAIN, or nothing. */
static int say_name(const char *dir, const char *before, const char *name, int flags)
{
	char text[HOLD_TEXT];
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0), err;

	if (fd < 0)
		return -errno;
	snprintf(text, sizeof(text), "%s%s", before, name);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" HOLD_SOCKET, dir);
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0 &&
		send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

struct answer {
	char text[HOLD_TEXT];
	int fds[HOLD_FDS];
	unsigned int cnt;
};

/* Returns: 0; -errno: there is none. */
static int get_answer(int connection, struct answer *ret)
{
	struct iovec iov = {.iov_base = ret->text, .iov_len = sizeof(ret->text) - 1};
	union {
		char room[CMSG_SPACE(HOLD_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(HOLD_FDS * sizeof(int))};
	ssize_t n;

	do
		n = recvmsg(connection, &mh, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	ret->cnt = 0;
	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	ret->text[n] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c != NULL; c = CMSG_NXTHDR(&mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		ret->cnt = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(ret->fds, CMSG_DATA(c), ret->cnt * sizeof(int));
	}
	return 0;
}

static void close_all(struct answer *a)
{
	while (a->cnt > 0)
		close(a->fds[--a->cnt]);
}

/* The names that came with HOLD_HELD; NULL: it is not that, or does not fit the descriptors. */
static const char *names_of(const struct answer *a)
{
	const char *names = a->text + strlen(HOLD_HELD);
	unsigned int cnt = 0;

	if (strncmp(a->text, HOLD_HELD, strlen(HOLD_HELD)) != 0)
		return NULL;
	if (*names == '\0')
		return a->cnt == 0 ? names : NULL;
	if (*names++ != ' ')
		return NULL;
	for (const char *p = names; p != NULL; p = strchr(p, ':'))
		p += *p == ':', cnt++;
	return cnt == a->cnt ? names : NULL;
}

/* ---- the program starts ---- */

/* Where sd_listen_fds(3) looks for them. None of ours may be there meanwhile. */
static int put_in_place(struct answer *a)
{
	const int end = SD_LISTEN_FDS_START + (int)HOLD_FDS;

	for (unsigned int i = 0; i < a->cnt; i++) {
		int above = fcntl(a->fds[i], F_DUPFD_CLOEXEC, end);

		if (above < 0)
			return -errno;
		close(a->fds[i]);
		a->fds[i] = above;
	}
	for (unsigned int i = 0; i < a->cnt; i++) {
		if (dup2(a->fds[i], SD_LISTEN_FDS_START + (int)i) < 0)
			return -errno;
		close(a->fds[i]);
		a->fds[i] = SD_LISTEN_FDS_START + (int)i;
	}
	return 0;
}

static int set_number(const char *variable, long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", value);
	return setenv(variable, text, 1);
}

/* The program that this one is executed as (handover.h) has the variable too. */
static int is_now(int connection, const char *dir, const char *name)
{
	char held[160];

	snprintf(held, sizeof(held), "%d %s/%s", connection, dir, name);
	return setenv(HELD_VARIABLE, held, 1) == 0 ? 0 : -errno;
}

static int set_variables(
	const char *dir, const char *name, int connection, const char *names, unsigned int cnt)
{
	char notify[sizeof(((struct sockaddr_un *)0)->sun_path)];

	snprintf(notify, sizeof(notify), "%s/%s" HOLD_NOTIFY, dir, name);
	if (setenv("NOTIFY_SOCKET", notify, 1) != 0 || setenv("FDSTORE", PLACES, 1) != 0 ||
		is_now(connection, dir, name) != 0)
		return -ENOMEM;
	unsetenv("WATCHDOG_USEC");
	if (cnt == 0)
		return 0;
	if (set_number("LISTEN_PID", getpid()) != 0 || set_number("LISTEN_FDS", cnt) != 0 ||
		setenv("LISTEN_FDNAMES", names, 1) != 0)
		return -errno;
	return 0;
}

/* Not where the others are to be, and it stays with the program. */
static int move_connection(int fd)
{
	int to = fcntl(fd, F_DUPFD, CONNECTION_FD);
	int err = to < 0 ? -errno : to;

	close(fd);
	return err;
}

static int fail(char *fault, size_t len, const char *what, const char *why)
{
	snprintf(fault, len, "%s: %s", what, why);
	return -1;
}

int held_exec(
	const char *dir, const char *name, char **argv, void (*wait)(void), char *fault, size_t len)
{
	char absolute[PATH_MAX];
	struct answer a;
	const char *names;
	int connection, err;

	if (realpath(dir, absolute) == NULL)
		return fail(fault, len, dir, strerror(errno));
	if (strlen(absolute) >= HOLD_FOLDER)
		return fail(fault, len, dir, strerror(ENAMETOOLONG));
	connection = say_name(absolute, "", name, 0);
	if (connection >= 0)
		connection = move_connection(connection);
	if (connection < 0)
		return fail(fault, len, dir, strerror(-connection));
	err = get_answer(connection, &a);
	if (err == 0 && strcmp(a.text, HOLD_WAIT) == 0) {
		wait();
		err = get_answer(connection, &a);
	}
	if (err != 0)
		return fail(fault, len, dir, strerror(-err));
	names = names_of(&a);
	if (names == NULL) {
		close_all(&a);
		return fail(fault, len, name,
			strncmp(a.text, HOLD_ERROR, strlen(HOLD_ERROR)) == 0
				? a.text + strlen(HOLD_ERROR)
				: "the holder says something else");
	}
	err = put_in_place(&a);
	if (err == 0)
		err = set_variables(absolute, name, connection, names, a.cnt);
	if (err != 0)
		return fail(fault, len, name, strerror(-err));
	execvp(argv[0], argv);
	return fail(fault, len, argv[0], strerror(errno));
}

/* ---- the program runs ---- */

/* Returns: it has such a variable. *ret_connection: -1: there is none now. */
static bool where(int *ret_connection, char *dir, char *name)
{
	const char *text = getenv(HELD_VARIABLE), *slash;
	char *end;
	long fd;

	if (text == NULL)
		return false;
	fd = strtol(text, &end, 10);
	slash = strrchr(text, '/');
	if (fd < -1 || fd > INT_MAX || end == text || *end != ' ' || slash == NULL || slash < end ||
		slash - end > (long)HOLD_FOLDER || !hold_is_name(slash + 1))
		return false;
	*ret_connection = (int)fd;
	snprintf(dir, HOLD_FOLDER, "%.*s", (int)(slash - end - 1), end + 1);
	snprintf(name, HOLD_NAME, "%s", slash + 1);
	return true;
}

bool held_is(void)
{
	char dir[HOLD_FOLDER], name[HOLD_NAME];
	int connection;

	return where(&connection, dir, name);
}

int held_connection(void)
{
	char dir[HOLD_FOLDER], name[HOLD_NAME];
	int connection;

	return where(&connection, dir, name) ? connection : -1;
}

void held_forget(void)
{
	char dir[HOLD_FOLDER], name[HOLD_NAME];
	int connection;

	if (where(&connection, dir, name))
		(void)is_now(-1, dir, name);
}

int held_again(void)
{
	char dir[HOLD_FOLDER], name[HOLD_NAME];
	int fd, err;

	if (!where(&fd, dir, name))
		return -ENOENT;
	fd = say_name(dir, HOLD_AGAIN, name, SOCK_NONBLOCK);
	if (fd >= 0)
		fd = move_connection(fd);
	if (fd < 0)
		return fd;
	err = is_now(fd, dir, name);
	if (err == 0)
		return fd;
	close(fd);
	return err;
}

int held_notifier(const int *fds, unsigned int cnt)
{
	struct iovec iov = {.iov_base = (char[]){HOLD_RUN}, .iov_len = strlen(HOLD_RUN)};
	union {
		char room[CMSG_SPACE(HOLD_PASSED * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(cnt * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	int connection = held_connection();

	if (connection < 0)
		return -ENOTCONN;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
	memcpy(CMSG_DATA(c), fds, cnt * sizeof(int));
	return sendmsg(connection, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int held_answer(int connection)
{
	struct answer a;
	int err = get_answer(connection, &a);
	bool waits = err == 0 && strcmp(a.text, HOLD_WAIT) == 0;

	if (err != 0)
		return err == -EAGAIN ? 0 : err;
	if (!waits && names_of(&a) == NULL)
		err = -EBADMSG;
	close_all(&a); /* a holder that is new has none */
	return err != 0 ? err : !waits;
}
