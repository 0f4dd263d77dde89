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
#include "rights.h"

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
	/* A holder that does not listen to us has closed it before that, or closes it then. */
	err = errno == EPIPE ? -ECONNRESET : -errno;
	close(fd);
	return err;
}

struct answer {
	char text[HOLD_TEXT];
	struct rights rights;
};

/* Returns: 0; -errno: there is none. */
static int get_answer(int connection, struct answer *ret)
{
	ssize_t n;

	do
		n = rights_receive(connection, ret->text, sizeof(ret->text) - 1, &ret->rights, 0);
	while (n == -EINTR);
	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	ret->text[n] = '\0';
	return 0;
}

/* The names that came with HOLD_HELD; NULL: it is not that, or does not fit the descriptors. */
static const char *names_of(const struct answer *a)
{
	const char *names = a->text + strlen(HOLD_HELD);
	unsigned int cnt = 0;

	if (strncmp(a->text, HOLD_HELD, strlen(HOLD_HELD)) != 0)
		return NULL;
	if (*names == '\0')
		return a->rights.cnt == 0 ? names : NULL;
	if (*names++ != ' ')
		return NULL;
	for (const char *p = names; p != NULL; p = strchr(p, ':'))
		p += *p == ':', cnt++;
	return cnt == a->rights.cnt ? names : NULL;
}

/* ---- the program starts ---- */

/* Where sd_listen_fds(3) looks for them. None of ours may be there meanwhile. */
static int put_in_place(struct answer *a)
{
	const int end = SD_LISTEN_FDS_START + (int)HOLD_FDS;

	for (unsigned int i = 0; i < a->rights.cnt; i++) {
		int above = fcntl(a->rights.fds[i], F_DUPFD_CLOEXEC, end);

		if (above < 0)
			return -errno;
		close(a->rights.fds[i]);
		a->rights.fds[i] = above;
	}
	for (unsigned int i = 0; i < a->rights.cnt; i++) {
		if (dup2(a->rights.fds[i], SD_LISTEN_FDS_START + (int)i) < 0)
			return -errno;
		close(a->rights.fds[i]);
		a->rights.fds[i] = SD_LISTEN_FDS_START + (int)i;
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
		rights_close(&a.rights);
		return fail(fault, len, name,
			strncmp(a.text, HOLD_ERROR, strlen(HOLD_ERROR)) == 0
				? a.text + strlen(HOLD_ERROR)
				: "the holder says something else");
	}
	err = put_in_place(&a);
	if (err == 0)
		err = set_variables(absolute, name, connection, names, a.rights.cnt);
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
	int connection = held_connection();

	return connection < 0 ? -ENOTCONN
			      : rights_send(connection, HOLD_RUN, strlen(HOLD_RUN), fds, cnt,
					MSG_DONTWAIT);
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
	rights_close(&a.rights); /* a holder that is new has none */
	return err != 0 ? err : !waits;
}
