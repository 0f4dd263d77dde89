/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lockagent.h"

struct command {
	enum what what;
	short type;
	off_t start, len;
};

enum kind kind;

void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	kill(0, SIGKILL); /* agents too; run in a process group of our own */
	_exit(1);
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- the agent ---- */

int set_lock(int fd, short type, off_t start, off_t len, bool wait)
{
	struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
	int how = type == F_RDLCK ? LOCK_SH : type == F_WRLCK ? LOCK_EX : LOCK_UN;
	int rc;

	if (kind == FLOCK)
		rc = flock(fd, how | (wait ? 0 : LOCK_NB));
	else if (kind == OFD)
		rc = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &fl);
	else
		rc = fcntl(fd, wait ? F_SETLKW : F_SETLK, &fl);
	return rc == 0 ? 0 : errno == EACCES || errno == EWOULDBLOCK ? EAGAIN : errno;
}

static void on_alarm(int sig)
{
}

/* What is done under a lock: a number in the file, one more. */
static int count_up(int fd, off_t times)
{
	for (off_t i = 0; i < times; i++) {
		char text[32] = "";
		int err = set_lock(fd, F_WRLCK, 0, 0, true);

		if (err)
			return err;
		if (pread(fd, text, 8, 0) < 0)
			return errno;
		snprintf(text, sizeof(text), "%08ld", strtol(text, NULL, 10) + 1);
		if (pwrite(fd, text, 8, 0) != 8)
			return errno ? errno : EIO;
		err = set_lock(fd, F_UNLCK, 0, 0, true);
		if (err)
			return err;
	}
	return 0;
}

static struct result obey(int *fd, const char *path, const struct command *c)
{
	struct sigaction sa = {.sa_handler = on_alarm}; /* no SA_RESTART */
	struct result r = {0};

	switch (c->what) {
	case TRY:
	case WAIT:
		r.err = set_lock(*fd, c->type, c->start, c->len, c->what == WAIT);
		break;
	case TEST:
		r.lock = (struct flock){.l_type = c->type, .l_start = c->start, .l_len = c->len};
		if (fcntl(*fd, kind == OFD ? F_OFD_GETLK : F_GETLK, &r.lock) < 0)
			r.err = errno;
		break;
	case INTR:
		sigaction(SIGALRM, &sa, NULL);
		/* One may come before it waits. */
		setitimer(ITIMER_REAL, &(struct itimerval){{1, 0}, {1, 0}}, NULL);
		r.err = set_lock(*fd, c->type, c->start, c->len, true);
		setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
		break;
	case CLOSE_OTHER:
		r.err = close(open(path, O_RDONLY)) < 0 ? errno : 0;
		break;
	case CLOSE:
		r.err = close(*fd) < 0 ? errno : 0;
		*fd = -1;
		break;
	case COUNT:
		r.err = count_up(*fd, c->len);
		break;
	}
	return r;
}

static void agent_main(int in, int out, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	struct result r = {.err = fd < 0 ? errno : 0};
	struct command c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(out, &r, sizeof(r)) != (ssize_t)sizeof(r))
		_exit(1);
	while (read(in, &c, sizeof(c)) == (ssize_t)sizeof(c)) {
		r = obey(&fd, path, &c);
		if (write(out, &r, sizeof(r)) != (ssize_t)sizeof(r))
			_exit(1);
	}
	_exit(0);
}

/* ---- the one who tells them ---- */

bool answered(struct agent *a, struct result *r, int ms)
{
	struct pollfd p = {.fd = a->from, .events = POLLIN};

	if (poll(&p, 1, ms) == 0)
		return false;
	if (read(a->from, r, sizeof(*r)) != (ssize_t)sizeof(*r))
		fail("an agent is gone");
	return true;
}

struct result result_of(struct agent *a)
{
	struct result r;

	if (!answered(a, &r, SOON_S * 1000))
		fail("no answer within %d s", SOON_S);
	return r;
}

struct agent agent_start(const char *path)
{
	struct agent a;
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		fail("pipe: %s", strerror(errno));
	a.pid = fork();
	if (a.pid == 0) {
		close(to[1]);
		close(from[0]);
		agent_main(to[0], from[1], path);
	}
	close(to[0]);
	close(from[1]);
	a.to = to[1];
	a.from = from[0];
	if (result_of(&a).err)
		fail("cannot open %s", path);
	return a;
}

void tell(struct agent *a, enum what what, short type, off_t start, off_t len)
{
	struct command c = {what, type, start, len};

	if (write(a->to, &c, sizeof(c)) != (ssize_t)sizeof(c))
		fail("an agent does not listen");
}

void expect(struct agent *a, int err, const char *what)
{
	struct result r = result_of(a);

	if (r.err != err)
		fail("%s: %s instead of %s", what, strerror(r.err),
			err ? strerror(err) : "success");
}

void does(struct agent *a, enum what what, short type, off_t start, off_t len, int err)
{
	char text[80];

	snprintf(text, sizeof(text), "agent %d does %d, %s [%ld, +%ld)", a->pid, what,
		type == F_RDLCK   ? "read"
		: type == F_WRLCK ? "write"
				  : "unlock",
		(long)start, (long)len);
	tell(a, what, type, start, len);
	expect(a, err, text);
}

void gets_soon(struct agent *a, short type, off_t start, off_t len)
{
	double end = now() + SOON_S;
	struct result r;

	do {
		tell(a, TRY, type, start, len);
		r = result_of(a);
		if (r.err == 0)
			return;
		usleep(50000);
	} while (r.err == EAGAIN && now() < end);
	fail("a lock that nobody has is not to be had: %s", strerror(r.err));
}

void gone_soon(struct agent *a)
{
	double end = now() + SOON_S;

	while (waitpid(a->pid, NULL, WNOHANG) == 0) {
		if (now() > end)
			fail("a killed agent does not end");
		usleep(20000);
	}
}

void agents_end(void)
{
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (wait(NULL) > 0 || errno == EINTR)
		;
}
