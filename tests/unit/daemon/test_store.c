/* SPDX-License-Identifier: BSD-3-Clause */
/* The service manager is a datagram socket, and what it passes on are descriptors from 3 on. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store.h"
#include "store_before.h"

#define PLACES 12

static uint64_t now_ns = 1000 * NSEC_PER_SEC;

uint64_t __wrap_keeper_run_wait(uint64_t ns);

uint64_t __wrap_keeper_run_wait(uint64_t ns)
{
	return now_ns;
}

/* As the manager has it. */
static struct {
	char name[48];
	int fd;
} stored[PLACES];
static unsigned int stored_cnt;
static int manager;
static pthread_t thread;

static void add(const char *name, int fd)
{
	cr_assert_lt(stored_cnt, PLACES);
	snprintf(stored[stored_cnt].name, sizeof(stored[0].name), "%s", name);
	stored[stored_cnt++].fd = fd;
}

static void remove_all(const char *name)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < stored_cnt; i++) {
		if (strcmp(stored[i].name, name) == 0)
			close(stored[i].fd);
		else
			stored[kept++] = stored[i];
	}
	stored_cnt = kept;
}

static int of(const char *name)
{
	for (unsigned int i = 0; i < stored_cnt; i++)
		if (strcmp(stored[i].name, name) == 0)
			return stored[i].fd;
	return -1;
}

/* Until it hears "END". */
static void *manage(void *arg)
{
	char text[200], name[48];

	for (;;) {
		char control[CMSG_SPACE(sizeof(int))];
		struct iovec iov = {text, sizeof(text) - 1};
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(manager, &msg, MSG_CMSG_CLOEXEC);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		int fd = -1;

		if (n < 0)
			return NULL;
		text[n] = '\0';
		if (c != NULL && c->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		if (strcmp(text, "END") == 0)
			return NULL;
		if (sscanf(text, "FDSTORE=1\nFDNAME=%47s", name) == 1)
			add(name, fd);
		else if (sscanf(text, "FDSTOREREMOVE=1\nFDNAME=%47s", name) == 1)
			remove_all(name);
		else if (fd >= 0)
			close(fd); /* BARRIER=1: that is the answer */
	}
}

static void set_up(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char name[64];

	snprintf(name, sizeof(name), "@rpcrdmafs-store-%d", (int)getpid());
	memcpy(sa.sun_path, name, strlen(name));
	sa.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_geq(manager, 0);
	cr_assert_eq(bind(manager, (struct sockaddr *)&sa,
			     (socklen_t)(sizeof(sa.sun_family) + strlen(name))),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	setenv("FDSTORE", "4", 1);
	cr_assert_eq(pthread_create(&thread, NULL, manage, NULL), 0);
}

/* All that was said before was heard. */
static void heard(void)
{
	struct sockaddr_un sa;
	socklen_t len = sizeof(sa);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(getsockname(manager, (struct sockaddr *)&sa, &len), 0);
	cr_assert_eq(sendto(fd, "END", 3, 0, (struct sockaddr *)&sa, len), 3);
	close(fd);
	pthread_join(thread, NULL);
}

static int file(const char *text)
{
	int fd = memfd_create(text, MFD_CLOEXEC);

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static bool says(int fd, const char *text)
{
	char buf[40] = "";

	return fd >= 0 && pread(fd, buf, sizeof(buf) - 1, 0) >= 0 && strcmp(buf, text) == 0;
}

static const char *claimed; /* how many it is told of, if not so many */

/*
 * Another process is started with what is stored. It is a child, whose first descriptors are ours
 * to give. Returns: what `look` says of it, which is its exit status.
 */
static int start(int (*look)(int err, const struct store_kept *s))
{
	char names[PLACES * 48] = "", text[16];
	int status;
	pid_t pid;

	for (unsigned int i = 0; i < stored_cnt; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			i > 0 ? ":" : "", stored[i].name);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		struct store_kept s;
		int high[PLACES];

		for (unsigned int i = 0; i < stored_cnt; i++)
			high[i] = fcntl(stored[i].fd, F_DUPFD, 100);
		for (unsigned int i = 0; i < stored_cnt; i++)
			dup2(high[i], 3 + (int)i);
		if (stored_cnt > 0) { /* without any there are no variables */
			snprintf(text, sizeof(text), "%d", (int)getpid());
			setenv("LISTEN_PID", text, 1);
			snprintf(text, sizeof(text), "%u", stored_cnt);
			setenv("LISTEN_FDS", claimed != NULL ? claimed : text, 1);
			setenv("LISTEN_FDNAMES", names, 1);
		}
		status = store_take(&s);
		_exit(getenv("LISTEN_FDS") != NULL ? 99 : look(status, &s));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int fuse_and_second(int err, const struct store_kept *s)
{
	if (err != 1)
		return 1;
	if (!says(s->crash.fuse_fd, "fuse") || !says(s->crash.live_fd, "second"))
		return 2;
	if (s->number != 2 || s->crash.sock != -1)
		return 3;
	return (fcntl(s->crash.live_fd, F_GETFD) & FD_CLOEXEC) == 0 ? 4 : 0;
}

static int nothing(int err, const struct store_kept *s)
{
	return err == 0 && s->crash.live_fd == -1 ? 0 : 1;
}

static int of_no_use(int err, const struct store_kept *s)
{
	return err == -EBADMSG && s->crash.fuse_fd == -1 && s->crash.live_fd == -1 ? 0 : 1;
}

static int unknown(int err, const struct store_kept *s)
{
	return err < 0 && err != -EBADMSG && err != -ELOOP && s->crash.live_fd == -1 ? 0 : 1;
}

static int too_often(int err, const struct store_kept *s)
{
	return err == -ELOOP && s->number == 1 ? 0 : 1;
}

static int deaths(int err, const struct store_kept *s)
{
	return err == 1 ? (int)s->crash.crashes : 99;
}

TestSuite(store, .init = set_up, .timeout = 60);

Test(store, the_next_program_has_the_records_of_the_last_one)
{
	int fuse = file("fuse");

	cr_assert_eq(store_put(fuse, file("first"), 1, true), 0);
	cr_assert_eq(store_put(fuse, file("second"), 2, false), 0);
	heard();
	cr_assert_eq(stored_cnt, 3, "%u are stored", stored_cnt);
	cr_assert_eq(of("rpcrdmafs-live-1"), -1);
	cr_assert_eq(start(fuse_and_second), 0);
}

/* It died between the two. */
Test(store, of_two_records_the_later_one_counts)
{
	cr_assert_eq(store_put(file("fuse"), file("first"), 1, true), 0);
	heard();
	add("rpcrdmafs-live-2", file("second"));
	cr_assert_eq(start(fuse_and_second), 0);
	stored[stored_cnt] = stored[0]; /* and in any order */
	memmove(stored, stored + 1, sizeof(stored[0]) * stored_cnt);
	cr_assert_eq(start(fuse_and_second), 0);
}

Test(store, what_is_left_of_them_goes_with_the_next)
{
	add("rpcrdmafs-live-1", file("first"));
	add("rpcrdmafs-live-2", file("second"));
	cr_assert_eq(store_put(file("fuse"), file("third"), 3, false), 0);
	heard();
	cr_assert_eq(of("rpcrdmafs-live-1"), -1);
	cr_assert_eq(of("rpcrdmafs-live-2"), -1);
	cr_assert(says(of("rpcrdmafs-live-3"), "third"));
}

Test(store, nothing_is_left_at_the_end)
{
	cr_assert_eq(store_put(file("fuse"), file("first"), 1, true), 0);
	cr_assert_eq(store_put(file("fuse"), file("second"), 2, false), 0);
	store_drop(2);
	heard();
	cr_assert_eq(stored_cnt, 0);
	cr_assert_eq(start(nothing), 0);
}

Test(store, descriptors_of_others_are_none_of_ours)
{
	heard();
	add("socket", file("x"));
	add("rpcrdmafs-live-", file("x"));
	add("rpcrdmafs-live-0", file("x"));
	add("rpcrdmafs-live-1x", file("x"));
	cr_assert_eq(start(nothing), 0);
}

Test(store, what_is_not_complete_is_of_no_use)
{
	static const char *const names[] = {
		"rpcrdmafs-fuse", "rpcrdmafs-live-1", "rpcrdmafs-deaths"};

	for (size_t i = 0; i < 3; i++) {
		if (i == 0)
			heard();
		stored_cnt = 0;
		for (size_t j = 0; j < 3; j++)
			if (j != i)
				add(names[j], file("0123456789abcdef"));
		cr_assert_eq(start(of_no_use), 0, "without %s", names[i]);
	}
	remove_all("rpcrdmafs-deaths");
	stored_cnt = 0;
	for (size_t j = 0; j < 3; j++)
		add(names[j], file("short"));
	cr_assert_eq(start(of_no_use), 0);
}

/* It must not begin anew: what it puts would be taken for later, or earlier, than what is there. */
Test(store, what_cannot_be_counted_is_not_taken_for_nothing)
{
	cr_assert_eq(store_put(file("fuse"), file("first"), 1, true), 0);
	heard();
	claimed = "many";
	cr_assert_eq(start(unknown), 0);
}

Test(store, deaths_that_are_soon_after_another_count)
{
	cr_assert_eq(store_put(file("fuse"), file("first"), 1, true), 0);
	heard();
	for (unsigned int i = 1; i <= KEEPER_DEATHS; i++) {
		now_ns += KEEPER_SOON_NS;
		cr_assert_eq(start(deaths), (int)i);
	}
	now_ns += KEEPER_SOON_NS;
	cr_assert_eq(start(too_often), 0);
	now_ns += KEEPER_SOON_NS + 1;
	cr_assert_eq(start(deaths), 1);
}

Test(store, an_end_that_was_wanted_is_no_death)
{
	struct keeper_deaths many = {.cnt = KEEPER_DEATHS};

	cr_assert_eq(store_put(file("fuse"), file("first"), 1, true), 0);
	many.since_ns = now_ns;
	cr_assert_eq(pwrite(of("rpcrdmafs-deaths"), &many, sizeof(many), 0), (ssize_t)sizeof(many));
	store_forgive();
	heard();
	cr_assert_eq(stored_cnt, 3);
	now_ns += KEEPER_SOON_NS;
	cr_assert_eq(start(deaths), 1);
}

Test(store, a_manager_must_offer_it)
{
	heard();
	cr_assert(store_is_offered());
	setenv("FDSTORE", "3", 1);
	cr_assert_not(store_is_offered());
	setenv("FDSTORE", "x", 1);
	cr_assert_not(store_is_offered());
	unsetenv("FDSTORE");
	cr_assert_not(store_is_offered());
	setenv("FDSTORE", "9", 1);
	unsetenv("NOTIFY_SOCKET");
	cr_assert_not(store_is_offered());
	cr_assert_eq(store_put(0, 0, 1, true), -ENOTCONN);
}

/* ---- the program before (store_before.h) ---- */

static int program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	return fd;
}

/* Descriptors that are stored when the manager has heard all; it goes on. */
static unsigned int heard_so_far(void)
{
	heard();
	cr_assert_eq(pthread_create(&thread, NULL, manage, NULL), 0);
	return stored_cnt;
}

Test(store, the_program_before_is_there_if_there_is_a_place)
{
	int sh = program("/bin/sh");

	cr_assert_eq(store_put(file("fuse"), file("first"), 1, true), 0);
	store_before_put(sh);
	cr_assert_eq(heard_so_far(), 3, "there are four");
	setenv("FDSTORE", "5", 1);
	store_before_put(program("/proc/self/exe"));
	cr_assert_eq(heard_so_far(), 3, "it is this one");
	store_before_put(sh);
	store_before_put(sh);
	cr_assert_eq(heard_so_far(), 4);
	cr_assert_neq(of("rpcrdmafs-before"), -1);
	store_before_put(-1);
	cr_assert_eq(heard_so_far(), 3, "an upgrade to a program that is no other one");
	heard();
}

static int has_program_before(int err, const struct store_kept *s)
{
	return err == 1 && s->before >= 0 ? 0 : 1;
}

static int has_none_before(int err, const struct store_kept *s)
{
	return err == 1 && s->before == -1 ? 0 : 1;
}

Test(store, the_next_program_has_the_one_before)
{
	setenv("FDSTORE", "5", 1);
	cr_assert_eq(store_put(file("fuse"), file("first"), 1, true), 0);
	store_before_put(program("/bin/sh"));
	heard();
	cr_assert_eq(start(has_program_before), 0);
	cr_assert_eq(pthread_create(&thread, NULL, manage, NULL), 0);
	store_drop(1);
	cr_assert_eq(heard_so_far(), 0);
	heard();
}

Test(store, a_program_that_dies_early_is_followed_by_the_one_before)
{
	struct store_before b = {.program = 0, .since_ns = 1000, .deaths = KEEPER_EARLY_DEATHS};

	cr_assert(store_before_is_better(&b, 1000 + KEEPER_EARLY_NS));
	b.deaths--;
	cr_assert_not(store_before_is_better(&b, 1000 + KEEPER_EARLY_NS));
	b.deaths++;
	b.since_ns = 0;
	cr_assert_not(store_before_is_better(&b, 1000), "it followed none");
	b.since_ns = 1000;
	b.program = -1;
	cr_assert_not(store_before_is_better(&b, 1000), "there is none");
	b.program = 0;
	add("rpcrdmafs-before", program("/bin/sh"));
	cr_assert_not(store_before_is_better(&b, 1001 + KEEPER_EARLY_NS), "that is not early");
	heard();
	cr_assert_eq(stored_cnt, 0);
}

/* It has the variables and descriptors that the manager gave to this one. */
Test(store, it_goes_on_in_place_of_the_others)
{
	static const char script[] =
		"#!/bin/sh\n"
		"[ \"$LISTEN_PID\" = $$ ] && [ \"$LISTEN_FDS\" = 4 ] &&\n"
		"[ \"$(head -c 5 /proc/self/fd/4)\" = first ] || exit 1\n"
		"case $LISTEN_FDNAMES in *:rpcrdmafs-instead*) exit 42;; esac\n";
	int written = memfd_create("script", MFD_CLOEXEC), fd;
	char path[40];

	cr_assert_eq(write(written, script, sizeof(script) - 1), (ssize_t)sizeof(script) - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", written);
	fd = program(path);
	close(written); /* what is open for writing is not executed */
	setenv("FDSTORE", "5", 1);
	add("rpcrdmafs-fuse", file("fuse"));
	add("rpcrdmafs-live-1", file("first"));
	store_before_put(program("/bin/sh"));
	cr_assert_eq(store_before_instead(fd), 0);
	heard();
	cr_assert_eq(of("rpcrdmafs-before"), -1);
	cr_assert_eq(stored_cnt, 4, "and deaths begin anew");
	cr_assert_eq(start(has_none_before), 42);
	close(of("rpcrdmafs-instead"));
	for (unsigned int i = 0; i < stored_cnt; i++)
		if (strcmp(stored[i].name, "rpcrdmafs-instead") == 0)
			stored[i].fd = program("/proc/self/exe");
	cr_assert_eq(start(has_none_before), 0, "this is that one");
	for (unsigned int i = 0; i < stored_cnt; i++)
		if (strcmp(stored[i].name, "rpcrdmafs-instead") == 0)
			stored[i].fd = file("no program");
	cr_assert_eq(start(has_none_before), 0, "it cannot: this one does");
}
