/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * locker WHAT KIND PATH1 PATH2 - locks of two programs on one file
 *
 * PATH1 and PATH2 are the same file, seen through two mounts, or one of them on the server itself.
 * KIND: posix (fcntl), ofd, flock. WHAT: one of the functions below, whose comment says what must
 * hold. Each program is a child, the agent, that is told over a pipe what to do.
 *
 * locker hold KIND PATH COMMANDS: an agent that reads lines from COMMANDS (a FIFO), for scripts:
 * try TYPE START LEN, wait TYPE START LEN, where TYPE is r, w or u; it prints "ok" or the error.
 *
 * Exit status: 0: it is so.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lockagent.h"

static const char *path1, *path2;

/* ---- what must hold ---- */

/* Who holds it keeps others out, who shares it does not. */
static void conflict(void)
{
	struct agent a = agent_start(path1), b = agent_start(path2);
	struct result r;

	does(&a, TRY, F_WRLCK, 100, 50, 0);
	does(&b, TRY, F_WRLCK, 100, 50, EAGAIN);
	does(&b, TRY, F_RDLCK, 149, 10, EAGAIN);
	if (kind != FLOCK) {
		does(&b, TRY, F_WRLCK, 150, 0, 0);
		does(&b, TRY, F_WRLCK, 0, 100, 0);
		tell(&b, TEST, F_RDLCK, 0, 0);
		r = result_of(&b);
		if (r.err || r.lock.l_type != F_WRLCK || r.lock.l_start != 100 ||
			r.lock.l_len != 50)
			fail("F_GETLK: %s, type %d, %ld +%ld", strerror(r.err), r.lock.l_type,
				(long)r.lock.l_start, (long)r.lock.l_len);
		does(&b, TRY, F_UNLCK, 0, 0, 0);
	}
	does(&a, TRY, F_RDLCK, 100, 50, 0);
	does(&b, TRY, F_RDLCK, 100, 50, 0);
	does(&a, TRY, F_WRLCK, 100, 50, EAGAIN);
	does(&b, TRY, F_UNLCK, 0, 0, 0);
	does(&a, TRY, F_WRLCK, 100, 50, 0);
	does(&a, TRY, F_UNLCK, 0, 0, 0);
	does(&b, TRY, F_WRLCK, 0, 0, 0);
	does(&b, TRY, F_UNLCK, 0, 0, 0);
}

/* Who waits gets it when it is free, not before. */
static void block(void)
{
	struct agent a = agent_start(path1), b = agent_start(path2);
	struct result r;

	for (int turn = 0; turn < 2; turn++) {
		struct agent *x = turn ? &b : &a, *y = turn ? &a : &b;
		double t0;

		does(x, WAIT, F_WRLCK, 0, 10, 0);
		tell(y, WAIT, F_WRLCK, 5, 10);
		if (answered(y, &r, NOT_MS))
			fail("it did not wait: %s", strerror(r.err));
		does(x, TRY, F_UNLCK, 0, 10, 0);
		t0 = now();
		expect(y, 0, "who waits");
		printf("granted after %.2f s\n", now() - t0);
		does(x, TRY, F_RDLCK, 0, 10, EAGAIN);
		does(y, TRY, F_UNLCK, 5, 10, 0);
	}
}

/* A signal ends the wait, and leaves nothing. The second agent waits. */
static void interrupt(void)
{
	struct agent a = agent_start(path1), b = agent_start(path2), c = agent_start(path2);
	double t0 = now();

	does(&a, TRY, F_WRLCK, 0, 10, 0);
	does(&b, INTR, F_WRLCK, 0, 10, EINTR);
	printf("interrupted after %.2f s\n", now() - t0);
	does(&a, TRY, F_UNLCK, 0, 10, 0);
	does(&a, TRY, F_WRLCK, 0, 10, 0);
	does(&a, TRY, F_UNLCK, 0, 10, 0);
	gets_soon(&c, F_WRLCK, 0, 10);
}

/* Who is killed while it waits is gone, and gets nothing. */
static void killwait(void)
{
	struct agent a = agent_start(path1), b = agent_start(path2), c = agent_start(path2);
	struct result r;

	does(&a, TRY, F_WRLCK, 0, 10, 0);
	tell(&b, WAIT, F_WRLCK, 0, 10);
	if (answered(&b, &r, NOT_MS))
		fail("it did not wait");
	kill(b.pid, SIGKILL);
	gone_soon(&b);
	does(&a, TRY, F_UNLCK, 0, 10, 0);
	gets_soon(&c, F_WRLCK, 0, 10);
	does(&c, TRY, F_UNLCK, 0, 10, 0);
	gets_soon(&a, F_WRLCK, 0, 10);
}

/* A close gives it back; a POSIX lock goes with any descriptor of the file. */
static void closed(void)
{
	struct agent a = agent_start(path1), b = agent_start(path2);

	does(&a, TRY, F_WRLCK, 0, 10, 0);
	does(&a, CLOSE_OTHER, F_UNLCK, 0, 0, 0);
	if (kind == POSIX) {
		does(&b, TRY, F_WRLCK, 0, 10, 0);
		does(&b, TRY, F_UNLCK, 0, 10, 0);
		does(&a, TRY, F_WRLCK, 0, 10, 0);
	}
	does(&b, TRY, F_WRLCK, 0, 10, EAGAIN);
	does(&a, CLOSE, F_UNLCK, 0, 0, 0);
	gets_soon(&b, F_WRLCK, 0, 10);
}

/* So does the death of who holds it, to who waits for it. */
static void killhold(void)
{
	struct agent a = agent_start(path1), b = agent_start(path2);
	struct result r;

	does(&a, TRY, F_WRLCK, 0, 10, 0);
	tell(&b, WAIT, F_WRLCK, 0, 10);
	if (answered(&b, &r, NOT_MS))
		fail("it did not wait");
	kill(a.pid, SIGKILL);
	gone_soon(&a);
	expect(&b, 0, "who waits");
}

/* Many ranges of one owner, given back piece by piece. */
static void ranges(void)
{
	struct agent a = agent_start(path1), b = agent_start(path2);
	const int cnt = 200;

	for (int i = 0; i < cnt; i++)
		does(&a, TRY, i % 2 ? F_RDLCK : F_WRLCK, i * 10, 5, 0);
	for (int i = 0; i < cnt; i += 7) {
		does(&b, TRY, F_RDLCK, i * 10 + 4, 1, i % 2 ? 0 : EAGAIN);
		does(&b, TRY, F_WRLCK, i * 10 + 5, 5, 0);
	}
	does(&b, TRY, F_UNLCK, 0, 0, 0);
	does(&a, TRY, F_UNLCK, 502, 1000, 0);
	does(&b, TRY, F_WRLCK, 502, 1000, 0);
	does(&b, TRY, F_WRLCK, 501, 1, EAGAIN);
	does(&b, TRY, F_WRLCK, 1504, 1, EAGAIN);
	does(&a, TRY, F_UNLCK, 0, 0, 0);
	does(&b, TRY, F_WRLCK, 0, 0, 0);
}

/* Programs on both sides that count in the file under the lock: none is lost, all get on. */
static void crowd(void)
{
	enum {
		AGENTS = 12,
		TIMES = 8
	};
	struct agent a[AGENTS];
	char text[16] = "";
	int fd;

	for (int i = 0; i < AGENTS; i++)
		a[i] = agent_start(i % 2 ? path2 : path1);
	for (int i = 0; i < AGENTS; i++)
		tell(&a[i], COUNT, F_WRLCK, 0, TIMES);
	for (int i = 0; i < AGENTS; i++) {
		struct result r;

		if (!answered(&a[i], &r, 4 * SOON_S * 1000))
			fail("agent %d of %d does not get on", i, AGENTS);
		if (r.err)
			fail("agent %d: %s", i, strerror(r.err));
	}
	fd = open(path1, O_RDONLY);
	if (fd < 0 || read(fd, text, 8) < 0 || atoi(text) != AGENTS * TIMES)
		fail("counted to %s, not %d", text, AGENTS * TIMES);
}

/* More programs of one mount wait than it has operations, and it still works. */
static void many(void)
{
	enum {
		AGENTS = 120
	};
	struct agent a[AGENTS], holder = agent_start(path1);

	does(&holder, TRY, F_WRLCK, 0, 0, 0);
	for (int i = 0; i < AGENTS; i++) {
		a[i] = agent_start(path1);
		tell(&a[i], WAIT, F_WRLCK, 0, 0);
	}
	does(&holder, CLOSE_OTHER, F_UNLCK, 0, 0, 0); /* OPEN, READ and CLOSE go */
	if (kind != POSIX)
		does(&holder, TRY, F_UNLCK, 0, 0, 0);
	/* Each gives it back by its close. */
	for (int left = AGENTS; left > 0; left--) {
		struct pollfd p[AGENTS];
		struct result r;

		for (int i = 0; i < AGENTS; i++)
			p[i] = (struct pollfd){.fd = a[i].from, .events = POLLIN};
		if (poll(p, AGENTS, SOON_S * 1000) <= 0)
			fail("nobody gets it, and %d wait", left);
		for (int i = 0; i < AGENTS; i++) {
			if (!p[i].revents)
				continue;
			if (!answered(&a[i], &r, 0) || r.err)
				fail("%s", strerror(r.err));
			does(&a[i], CLOSE, F_UNLCK, 0, 0, 0);
			a[i].from = -1;
			break;
		}
	}
}

/* ---- for scripts ---- */

static int hold(const char *path, const char *commands)
{
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	FILE *f = fopen(commands, "r");
	char line[128], verb[16], type;
	long from, len;

	if (fd < 0 || !f)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("open\n");
	while (fgets(line, sizeof(line), f)) {
		int err;

		if (sscanf(line, "%15s %c %ld %ld", verb, &type, &from, &len) != 4)
			return 2;
		err = set_lock(fd,
			type == 'r'   ? F_RDLCK
			: type == 'w' ? F_WRLCK
				      : F_UNLCK,
			from, len, strcmp(verb, "wait") == 0);
		printf("%s: %s\n", strtok(line, "\n"), err ? strerror(err) : "ok");
	}
	return 0;
}

static bool kind_of(const char *name)
{
	static const char *const names[] = {"posix", "ofd", "flock"};

	for (int i = 0; i < 3; i++)
		if (strcmp(name, names[i]) == 0) {
			kind = (enum kind)i;
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{"conflict", conflict},
		{"block", block},
		{"interrupt", interrupt},
		{"killwait", killwait},
		{"closed", closed},
		{"killhold", killhold},
		{"ranges", ranges},
		{"crowd", crowd},
		{"many", many},
	};

	if (argc != 5 || !kind_of(argv[2]))
		return 2;
	if (strcmp(argv[1], "hold") == 0)
		return hold(argv[3], argv[4]);
	path1 = argv[3];
	path2 = argv[4];
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* what ends the script does not see our group */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(argv[1], all[i].name) == 0) {
			all[i].run();
			agents_end();
			return 0;
		}
	return 2;
}
