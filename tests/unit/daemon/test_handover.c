/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handover.h"
#include "live.h"

static int tables = -1;

static void put(const char *set, const char *set_before)
{
	const struct handover_facts f = {
		.set = set,
		.set_before = set_before,
		.mountpoint = "/mnt with a space",
		.owner = "rpcrdmafs host 0123",
		.source = "server:/export",
		.stored = 9,
		.mounted_ns = 5,
		.paused_ns = 6,
		.count = 7,
		.longest_ns = 8,
		.upgraded_ns = 10,
		.upgraded_crashes = 11,
	};
	struct tables_out t;

	tables = memfd_create("tables", 0);
	tables_begin(&t, tables);
	handover_put(&t, &f);
	cr_assert_eq(tables_end(&t), 0);
}

static void set_up(void)
{
	put(NULL, NULL);
}

TestSuite(handover, .init = set_up);

static void leave(int before)
{
	char value[32];

	snprintf(value, sizeof(value), "%d %d", tables, before);
	setenv("RPCRDMAFS_HANDOVER", value, 1);
}

Test(handover, what_was_left_is_taken_once)
{
	struct handover *h;

	leave(-1);
	h = handover_take();
	cr_assert_not_null(h);
	cr_assert_str_eq(h->mountpoint, "/mnt with a space");
	cr_assert_str_eq(h->owner, "rpcrdmafs host 0123");
	cr_assert_str_eq(h->version, RPCRDMAFS_VERSION);
	cr_assert_eq(h->mounted_ns, 5);
	cr_assert_eq(h->paused_ns, 6);
	cr_assert_eq(h->count, 7);
	cr_assert_eq(h->longest_ns, 8);
	cr_assert_str_eq(h->source, "server:/export");
	cr_assert_null(h->set);
	cr_assert_eq(h->stored, 9);
	cr_assert_eq(h->upgraded_ns, 10);
	cr_assert_eq(h->upgraded_crashes, 11);
	cr_assert_eq(h->before, -1);
	cr_assert(fcntl(tables, F_GETFD) & FD_CLOEXEC, "no other program gets it");
	handover_free(h);
	cr_assert_null(handover_take());
	cr_assert_eq(errno, 0, "an ordinary start");
}

/* Whoever waited for the one that died waits on. */
static uint64_t paused_after_a_death(uint64_t since_ns, uint64_t died_ns)
{
	const struct handover_facts f = {.mountpoint = "/mnt",
		.owner = "rpcrdmafs host 0123",
		.source = "server:/export",
		.paused_ns = since_ns};
	struct live *live = live_new();
	live_ref ref = LIVE_NONE;
	struct handover *h;
	char value[100];
	uint64_t ns;
	int sv[2];

	cr_assert_not_null(live);
	handover_live(live, &ref, &f);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	snprintf(value, sizeof(value), "%d %d %d 1 %" PRIu64 " 77", dup(live_fd(live)),
		open("/dev/null", O_RDWR), sv[0], died_ns);
	setenv("RPCRDMAFS_CRASHED", value, 1);
	h = handover_take();
	cr_assert_not_null(h);
	cr_assert(h->crashed);
	ns = h->paused_ns;
	handover_free(h);
	close(sv[1]);
	live_free(live);
	return ns;
}

Test(handover, one_that_died_before_all_was_done_is_the_same_pause)
{
	cr_assert_eq(paused_after_a_death(0, 100), 100, "nobody waited before");
	cr_assert_eq(paused_after_a_death(60, 100), 60);
	cr_assert_eq(paused_after_a_death(200, 100), 100, "nothing that can be");
}

Test(handover, why_it_was_given_back_is_told)
{
	struct handover *h;

	setenv("RPCRDMAFS_GIVEN_BACK", "connect: no route", 1);
	leave(-1);
	h = handover_take();
	cr_assert(handover_is_given_back(h));
	cr_assert_str_eq(h->why, "connect: no route");
	cr_assert_null(getenv("RPCRDMAFS_GIVEN_BACK"), "it is of this time only");
	handover_free(h);
}

static void has_set(int before, const char *want)
{
	struct handover *h;

	leave(before);
	h = handover_take();
	cr_assert_not_null(h);
	if (want != NULL)
		cr_assert_str_eq(h->set, want);
	else
		cr_assert_null(h->set);
	handover_free(h);
}

Test(handover, the_program_before_goes_on_with_the_options_before)
{
	close(tables);
	put("soft,timeo=5", "soft");
	has_set(open("/bin/true", O_RDONLY), "soft,timeo=5");
	put("soft,timeo=5", "soft");
	has_set(-1, "soft");
	put("soft,timeo=5", NULL);
	has_set(-1, NULL);
}

Test(handover, what_is_damaged_is_of_no_use)
{
	static const char *const wrong[] = {"", "x", "1", "1 2 3", "-7 -1", "999 -1"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("RPCRDMAFS_HANDOVER", wrong[i], 1);
		cr_assert_null(handover_take());
		cr_assert_neq(errno, 0, "%s", wrong[i]);
	}
	leave(-1);
	cr_assert_eq(pwrite(tables, "x", 1, 20), 1);
	cr_assert_null(handover_take());
	cr_assert_eq(errno, EBADMSG);
}

/* In a child; `out` gets what the other program prints. */
static void child_gives_back(int out, const char *program)
{
	struct handover *h;

	dup2(out, STDOUT_FILENO);
	leave(open(program, O_RDONLY));
	h = handover_take();
	if (h)
		handover_give_back(h);
	_exit(h && h->before < 0 ? 77 : 78);
}

static int give_back(const char *program, char *said, size_t size)
{
	int p[2], status;
	ssize_t n;
	pid_t pid;

	cr_assert_eq(pipe(p), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		child_gives_back(p[1], program);
	close(p[1]);
	n = read(p[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	close(p[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(handover, who_cannot_go_on_is_the_program_before)
{
	char said[4096];

	cr_assert_eq(give_back("/bin/echo", said, sizeof(said)), 0);
	cr_assert_not_null(strchr(said, '\n'), "it has printed the arguments");
}

Test(handover, or_stays_if_that_cannot_be_executed)
{
	char said[4096];

	cr_assert_eq(give_back("/etc/passwd", said, sizeof(said)), 77);
}

Test(handover, a_program_is_asked_for_its_tables)
{
	int status = -1;

	cr_assert_not(handover_is_asked("server:/path", &status));
	cr_assert_not(handover_is_asked("--can-resume", &status));
	cr_assert_eq(status, -1);
	cr_assert(handover_is_asked("--can-resume=1", &status));
	cr_assert_eq(status, 0);
	cr_assert(handover_is_asked("--can-resume=2", &status));
	cr_assert_eq(status, 1);
	cr_assert(handover_is_asked("--can-resume=", &status));
	cr_assert_eq(status, 1);
	cr_assert(handover_is_asked("--can-resume=1x", &status));
	cr_assert_eq(status, 1);
}
