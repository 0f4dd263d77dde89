/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rights.h"

static int pair[2];

static void set_up(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

TestSuite(rights, .init = set_up);

static int file(void)
{
	int fd = memfd_create("x", 0);

	cr_assert_geq(fd, 0);
	return fd;
}

/* Sends so many copies of one. */
static int send_some(unsigned int cnt)
{
	int fds[RIGHTS_MAX], fd = file(), err;

	for (unsigned int i = 0; i < cnt; i++)
		fds[i] = fd;
	err = rights_send(pair[0], "hello", 5, fds, cnt, MSG_DONTWAIT);
	close(fd);
	return err;
}

Test(rights, a_message_brings_its_descriptors)
{
	static const unsigned int cnts[] = {0, 1, 3, RIGHTS_MAX};
	char text[10];
	struct rights r;

	for (size_t i = 0; i < sizeof(cnts) / sizeof(cnts[0]); i++) {
		cr_assert_eq(send_some(cnts[i]), 0);
		cr_assert_eq(rights_receive(pair[1], text, sizeof(text), &r, 0), 5);
		cr_assert_eq(memcmp(text, "hello", 5), 0);
		cr_assert_eq(r.cnt, cnts[i]);
		cr_assert_not(r.cut);
		for (unsigned int j = 0; j < r.cnt; j++) {
			int flags = fcntl(r.fds[j], F_GETFD);

			cr_assert(flags >= 0 && (flags & FD_CLOEXEC) != 0);
		}
		if (r.cnt > 0) {
			int last = r.fds[r.cnt - 1];

			rights_close(&r);
			cr_assert_eq(r.cnt, 0);
			cr_assert_eq(fcntl(last, F_GETFD), -1);
		}
	}
}

Test(rights, those_that_there_is_no_room_for_are_missed)
{
	struct rlimit few;
	char text[10];
	struct rights r;
	int fd, last = -1;

	cr_assert_eq(send_some(3), 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
	few.rlim_cur = 50;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = dup(pair[0])) >= 0)
		last = fd;
	close(last); /* one more */
	cr_assert_eq(rights_receive(pair[1], text, sizeof(text), &r, 0), 5);
	cr_assert_eq(r.cnt, 1);
	cr_assert(r.cut);
	rights_close(&r);
}

Test(rights, who_sent_it_is_known_if_that_was_asked_for)
{
	int yes = 1;
	char text[10];
	struct rights r;

	cr_assert_eq(send_some(1), 0);
	cr_assert_eq(rights_receive(pair[1], text, sizeof(text), &r, 0), 5);
	cr_assert_eq(r.uid, (uid_t)-1);
	rights_close(&r);
	cr_assert_eq(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)), 0);
	cr_assert_eq(send_some(RIGHTS_MAX), 0);
	cr_assert_eq(rights_receive(pair[1], text, sizeof(text), &r, 0), 5);
	cr_assert_eq(r.uid, getuid());
	cr_assert_eq(r.cnt, RIGHTS_MAX);
	rights_close(&r);
}

Test(rights, without_a_message_there_is_nothing)
{
	char text[10];
	struct rights r;

	cr_assert_eq(rights_receive(pair[1], text, sizeof(text), &r, MSG_DONTWAIT), -EAGAIN);
	cr_assert_eq(r.cnt, 0);
	close(pair[0]);
	cr_assert_eq(rights_receive(pair[1], text, sizeof(text), &r, 0), 0);
	cr_assert_eq(r.cnt, 0);
	cr_assert_eq(rights_send(pair[1], "x", 1, NULL, 0, 0), -EPIPE, "and no signal");
}
