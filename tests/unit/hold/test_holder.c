/* SPDX-License-Identifier: BSD-3-Clause */
/* A holder, whose reactor is turned here, and programs, which are children. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "held.h"
#include "hold.h"
#include "holder.h"

#define TURN_NS (10 * NSEC_PER_MSEC)

static int closes = -1; /* who listens there closes connections before anything is said */

ssize_t __real_send(int fd, const void *p, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t len, int flags);

ssize_t __wrap_send(int fd, const void *p, size_t len, int flags)
{
	if (closes >= 0)
		close(accept(closes, NULL, NULL));
	return __real_send(fd, p, len, flags);
}

static struct reactor *reactor;
static struct holder *holder;
static char dir[] = "/tmp/rpcrdmafs-hold-XXXXXX";

static char notifier[60]; /* a program */
static struct holder_conf conf = {.dir = dir, .program = notifier, .name_max = 5};

static void set_up(void)
{
	reactor = reactor_new();
	cr_assert_neq(mkdtemp(dir), NULL);
	cr_assert_eq(chmod(dir, 0755), 0);
	snprintf(notifier, sizeof(notifier), "%s/notifier", dir);
	holder = holder_new(reactor, &conf);
	cr_assert_neq(holder, NULL);
}

static void tear_down(void)
{
	while (reactor_turn(reactor, 0)) /* programs that have ended */
		;
	if (holder != NULL)
		holder_free(holder);
	reactor_free(reactor);
	unlink(notifier);
	cr_assert_eq(rmdir(dir), 0, "something is left in %s", dir);
}

static void anew(uint64_t wait_ns)
{
	conf.wait_ns = wait_ns;
	holder_free(holder);
	holder = holder_new(reactor, &conf);
	cr_assert_neq(holder, NULL);
}

/* ---- programs ---- */

static struct {
	pid_t pid;
	int out; /* what it prints */
} programs[4];
static unsigned int program_cnt;

static void prints_waits(void)
{
	(void)!write(STDOUT_FILENO, "waits\n", 6);
}

/* A shell that runs a script. Returns its number. */
static unsigned int run(const char *name, const char *script)
{
	unsigned int nr = program_cnt++;
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL}, fault[200];
	int p[2];

	cr_assert_lt(nr, sizeof(programs) / sizeof(programs[0]));
	cr_assert_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	programs[nr].out = p[0];
	programs[nr].pid = fork();
	cr_assert_geq(programs[nr].pid, 0);
	if (programs[nr].pid == 0) {
		dup2(p[1], STDOUT_FILENO);
		close_range(STDERR_FILENO + 1, ~0u, 0);
		(void)held_exec(dir, name, argv, prints_waits, fault, sizeof(fault));
		dprintf(STDOUT_FILENO, "%s\n", fault);
		_exit(1);
	}
	close(p[1]);
	return nr;
}

/* Until it has printed that, and no more. */
static void prints(unsigned int nr, const char *want)
{
	char text[400] = "";
	size_t len = 0;

	while (strcmp(text, want) != 0) {
		ssize_t n = read(programs[nr].out, text + len, sizeof(text) - 1 - len);

		cr_assert_neq(n, 0, "it ended, and printed \"%s\"", text);
		len += n > 0 ? (size_t)n : 0;
		cr_assert_eq(strncmp(text, want, len), 0, "it prints \"%s\"", text);
		reactor_turn(reactor, TURN_NS);
	}
}

static void end(unsigned int nr)
{
	int status;

	kill(programs[nr].pid, SIGKILL);
	while (waitpid(programs[nr].pid, &status, 0) < 0 && errno == EINTR)
		;
	close(programs[nr].out);
}

/* In which it says that it runs, and stays. */
#define STAYS "echo runs; exec sleep 1000"
static int file(const char *text)
{
	int fd = memfd_create("x", MFD_CLOEXEC);

	cr_assert_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return fd;
}

/* As the program would, whose variables the shell has. */
static void notify(const char *name, const char *text, int fd)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/%s" HOLD_NOTIFY, dir, name);
	setenv("NOTIFY_SOCKET", path, 1);
	cr_assert_gt(sd_pid_notify_with_fds(0, 0, text, &fd, fd >= 0), 0);
}

static void put(const char *name, const char *fdname, int fd)
{
	char text[100];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", fdname);
	notify(name, text, fd);
	close(fd);
}

/* Nobody has it any more. */
static void turn_until_closed(int other_end)
{
	char byte;

	while (recv(other_end, &byte, 1, MSG_DONTWAIT) < 0)
		reactor_turn(reactor, TURN_NS);
}

/* A descriptor, of which the other end says when it is closed. */
static int watched(int *other_end)
{
	int sv[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	*other_end = sv[1];
	return sv[0];
}

TestSuite(holder, .init = set_up, .fini = tear_down, .timeout = 60);

Test(holder, the_next_program_has_what_the_one_before_put)
{
	unsigned int one = run("a", STAYS), two;

	prints(one, "runs\n");
	put("a", "fuse", file("device\n"));
	put("a", "live", file("records\n"));
	end(one);
	two = run("a", "echo \"$LISTEN_FDS $LISTEN_FDNAMES $FDSTORE\"; [ $LISTEN_PID = $$ ] && "
		       "head -n 1 /dev/fd/3 && head -n 1 /dev/fd/4; exec sleep 1000");
	prints(two, "2 fuse:live 4\ndevice\nrecords\n");
	end(two);
}

Test(holder, a_program_waits_until_the_one_before_has_gone)
{
	unsigned int one = run("a", STAYS), two, three;
	char text[10];

	prints(one, "runs\n");
	two = run("a", "echo $LISTEN_FDNAMES; exec sleep 1000");
	prints(two, "waits\n");
	three = run("a", "echo $LISTEN_FDNAMES; exec sleep 1000");
	prints(three, "waits\n");
	end(one);
	put("a", "late", file("x")); /* it is heard of after the end, and counts */
	prints(two, "late\n");
	for (unsigned int turn = 0; turn < 5; turn++)
		reactor_turn(reactor, TURN_NS);
	cr_assert_lt(read(programs[three].out, text, sizeof(text)), 0, "one at a time");
	end(two);
	prints(three, "late\n");
	end(three);
}

Test(holder, one_that_waits_may_go)
{
	unsigned int one = run("a", STAYS), two, three;

	prints(one, "runs\n");
	two = run("a", STAYS);
	prints(two, "waits\n");
	end(two);
	three = run("a", STAYS);
	prints(three, "waits\n");
	end(one);
	prints(three, "runs\n");
	end(three);
}

Test(holder, names_have_nothing_to_do_with_each_other)
{
	unsigned int one = run("a", STAYS), two = run("b.2", STAYS), three;

	prints(one, "runs\n");
	prints(two, "runs\n");
	put("a", "mine", file("x"));
	end(two);
	three = run("b.2", "echo \"[$LISTEN_FDS]\"; exec sleep 1000");
	prints(three, "[]\n");
	end(one);
	end(three);
}

Test(holder, what_is_removed_is_closed)
{
	unsigned int one = run("a", STAYS), two;
	int other_end;

	prints(one, "runs\n");
	put("a", "fuse", watched(&other_end));
	put("a", "fuse", file("x")); /* all of that name */
	put("a", "live", file("x"));
	notify("a", "FDSTOREREMOVE=1\nFDNAME=fuse", -1);
	turn_until_closed(other_end);
	end(one);
	two = run("a", "echo $LISTEN_FDNAMES; exec sleep 1000");
	prints(two, "live\n");
	end(two);
}

/* /dev/fuse says POLLERR then, as a pipe does which nobody reads. */
Test(holder, of_a_mount_that_was_unmounted_nothing_is_left)
{
	unsigned int one = run("a", STAYS), two;
	int p[2], other_end;

	prints(one, "runs\n");
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	put("a", "fuse", p[1]);
	put("a", "live", watched(&other_end));
	close(p[0]);
	end(one);
	two = run("a", "echo \"[$LISTEN_FDS]\"; exec sleep 1000");
	prints(two, "[]\n");
	turn_until_closed(other_end);
	end(two);
}

Test(holder, what_nobody_takes_is_given_up)
{
	unsigned int one, two;
	int other_end;

	anew(1);
	one = run("a", STAYS);
	prints(one, "runs\n");
	put("a", "fuse", watched(&other_end));
	end(one);
	turn_until_closed(other_end);
	two = run("a", "echo \"[$LISTEN_FDS]\"; exec sleep 1000");
	prints(two, "[]\n");
	end(two);
}

Test(holder, what_is_no_name_is_refused)
{
	static const char *const names[] = {"a/b", "..", "a b"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char want[100];
		unsigned int nr = run(names[i], STAYS);

		snprintf(want, sizeof(want), "%s: that is no name\n", names[i]);
		prints(nr, want);
		end(nr);
	}
}

Test(holder, no_program_gets_more_places_than_there_are)
{
	unsigned int one = run("a", STAYS), two;
	int other_end;

	prints(one, "runs\n");
	for (unsigned int i = 0; i < HOLD_FDS; i++)
		put("a", "x", file("x"));
	put("a", "x", watched(&other_end));
	turn_until_closed(other_end);
	end(one);
	two = run("a", "echo $LISTEN_FDS; exec sleep 1000");
	prints(two, "8\n");
	end(two);
}

/* Odd messages: descriptors that come with them are closed, and nothing is kept. */
Test(holder, only_what_is_asked_for_is_kept)
{
	static const char *const texts[] = {"FDSTORE=1",
		"FDSTORE=1\nFDNAME=", "FDSTORE=0\nFDNAME=x", "FDSTORE=1\nFDNAME=a:b",
		"XFDSTORE=1\nFDNAME=x", "STATUS=FDSTORE=1", "BARRIER=1",
		"FDSTORE=1\nFDNAME=0123456789012345678901234567890123456789012345678"};
	unsigned int one = run("a", STAYS), two;
	int other_end;

	prints(one, "runs\n");
	notify("a", "FDSTORE=1\nFDNAME=x", -1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = watched(&other_end);

		notify("a", texts[i], fd);
		close(fd);
		turn_until_closed(other_end);
	}
	end(one);
	two = run("a", "echo \"[$LISTEN_FDS]\"; exec sleep 1000");
	prints(two, "[]\n");
	end(two);
}

Test(holder, there_is_one_in_a_folder)
{
	cr_assert_eq(holder_new(reactor, &conf), NULL);
	cr_assert_eq(errno, EADDRINUSE);
}

Test(holder, the_folder_is_its_users_alone)
{
	struct stat st;
	char path[100];

	cr_assert_eq(stat(dir, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0700);
	snprintf(path, sizeof(path), "%s/" HOLD_SOCKET, dir);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
}

Test(holder, what_a_dead_one_left_is_in_nobodys_way)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char path[100];

	holder_free(holder);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" HOLD_SOCKET, dir);
	cr_assert_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/b" HOLD_NOTIFY, dir);
	cr_assert_eq(mkfifo(path, 0600), 0);
	holder = holder_new(reactor, &conf);
	cr_assert_eq(access(path, F_OK), -1);
	cr_assert_neq(holder, NULL);
}

/* ---- a holder that is started anew ---- */

static void is_held(int connection, const char *name)
{
	char text[100];

	snprintf(text, sizeof(text), "%d %s/%s", connection, dir, name);
	setenv(HELD_VARIABLE, text, 1);
}

static int answer(int connection)
{
	int known = 0;

	for (unsigned int turn = 0; known == 0 && turn < 10; turn++) {
		reactor_turn(reactor, TURN_NS);
		known = held_answer(connection);
	}
	return known;
}

Test(holder, a_program_is_known_again)
{
	unsigned int two;
	int connection;

	is_held(7, "a");
	cr_assert_eq(held_connection(), 7);
	connection = held_again();
	cr_assert_gt(connection, 7);
	cr_assert_eq(held_connection(), connection, "the next program of an upgrade has it");
	cr_assert_eq(fcntl(connection, F_GETFD) & FD_CLOEXEC, 0);
	cr_assert_eq(answer(connection), 1);
	put("a", "fuse", file("x"));
	two = run("a", "echo $LISTEN_FDNAMES; exec sleep 1000");
	prints(two, "waits\n");
	close(connection);
	prints(two, "fuse\n");
	end(two);
}

Test(holder, a_program_is_not_known_while_another_has_its_name)
{
	unsigned int one = run("a", STAYS);
	int connection;

	prints(one, "runs\n");
	is_held(7, "a");
	connection = held_again();
	cr_assert_eq(answer(connection), 0);
	end(one);
	cr_assert_eq(answer(connection), 1);
	close(connection);
	connection = held_again();
	anew(0);
	cr_assert_lt(answer(connection), 0);
	close(connection);
	holder_free(holder);
	holder = NULL;
	cr_assert_eq(held_again(), -ENOENT);
	held_forget();
	cr_assert(held_is());
	cr_assert_eq(held_connection(), -1);
}

/* A program that serves asks again; one that is new must not be quicker. */
Test(holder, of_the_next_holder_programs_that_serve_come_first)
{
	unsigned int one = run("a", STAYS), two;
	int connection;

	prints(one, "runs\n");
	conf.quiet_ns = 1000 * NSEC_PER_SEC;
	anew(0);
	two = run("a", "echo $LISTEN_FDNAMES; exec sleep 1000");
	prints(two, "waits\n");
	is_held(-1, "a");
	connection = held_again();
	cr_assert_eq(answer(connection), 1);
	put("a", "fuse", file("x"));
	close(connection);
	prints(two, "fuse\n");
	end(two);
	end(one);
}

Test(holder, but_not_for_ever)
{
	unsigned int one = run("a", STAYS), two;

	prints(one, "runs\n");
	conf.quiet_ns = 1;
	anew(0);
	two = run("a", "echo \"[$LISTEN_FDS]\"; exec sleep 1000");
	prints(two, "[]\n");
	end(two);
	end(one);
}

Test(holder, there_may_be_no_room_for_another_name)
{
	unsigned int one, two;

	conf.name_max = 1;
	anew(0);
	one = run("a", STAYS);
	prints(one, "runs\n");
	two = run("b", STAYS);
	prints(two, "b: Too many open files\n");
	end(two);
	end(one);
}

/* Whether it closes the connection before the name is said, or after. */
Test(holder, one_that_does_not_listen_is_told_in_one_way)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), connection;

	holder_free(holder);
	holder = NULL;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" HOLD_SOCKET, dir);
	cr_assert_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	is_held(-1, "a");
	closes = fd;
	connection = held_again();
	cr_assert_eq(connection, -ECONNRESET);
	close(fd);
	unlink(sa.sun_path);
}

/* ---- a notifier ---- */

static void write_program(const char *text)
{
	int fd = open(notifier, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

Test(holder, a_program_has_its_notifier_run)
{
	char said[100] = "";
	int fds[2], connection, status;

	write_program("#!/bin/sh\nread -r word <&3; echo \"$word $RPCRDMAFS_NOTIFIER $1\" >&4\n");
	is_held(-1, "a");
	cr_assert_eq(held_notifier(fds, 2), -ENOTCONN);
	connection = held_again();
	cr_assert_eq(answer(connection), 1);
	fds[0] = file("hello\n");
	fds[1] = file("");
	cr_assert_eq(lseek(fds[0], 0, SEEK_SET), 0);
	cr_assert_eq(held_notifier(fds, 2), 0);
	while (waitpid(-1, &status, WNOHANG) <= 0) /* the holder's child is ours */
		reactor_turn(reactor, TURN_NS);
	cr_assert_eq(status, 0);
	cr_assert_gt(pread(fds[1], said, sizeof(said) - 1, 0), 0);
	cr_assert_str_eq(said, "hello 1 a\n");
	close(connection);
}

/* One that waits, and one that has not said who it is. */
Test(holder, nobody_else_has_one_run)
{
	unsigned int one = run("a", STAYS);
	int other_end, fd = watched(&other_end), connection;

	prints(one, "runs\n");
	write_program("#!/bin/sh\nexec sleep 1000\n");
	is_held(-1, "a");
	connection = held_again();
	cr_assert_eq(answer(connection), 0);
	cr_assert_eq(held_notifier(&fd, 1), 0);
	close(fd);
	turn_until_closed(other_end);
	close(connection);
	end(one);
}

Test(holder, a_variable_of_no_use_names_none)
{
	static const char *const values[] = {"", "x", "7", "7 a", "7 /x/", "7 /x/.a",
		"99999999999 /x/a", "-2 /x/a", " /x/a",
		"7 /xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/a"};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		setenv(HELD_VARIABLE, values[i], 1);
		cr_assert_not(held_is(), "%s", values[i]);
		cr_assert_eq(held_connection(), -1);
		cr_assert_eq(held_again(), -ENOENT);
	}
	unsetenv(HELD_VARIABLE);
	cr_assert_eq(held_connection(), -1);
}
