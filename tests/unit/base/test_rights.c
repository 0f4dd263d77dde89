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

/* As another program may, which knows nothing of RIGHTS_MAX. */
static void send_many(unsigned int cnt)
{
	char control[CMSG_SPACE(4 * RIGHTS_MAX * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (char[]){"hello"}, .iov_len = 5};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(cnt * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	int fd = file();

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
	for (unsigned int i = 0; i < cnt; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(fd), &fd, sizeof(fd));
	cr_assert_eq(sendmsg(pair[0], &mh, 0), 5);
	close(fd);
}

static unsigned int open_cnt(void)
{
	unsigned int cnt = 0;

	for (int fd = 0; fd < 200; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
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

Test(rights, of_too_many_only_the_first_are_taken)
{
	unsigned int before = open_cnt();
	struct {
		struct rights r;
		unsigned char behind[64];
	} m;
	char text[10];

	for (unsigned int cnt = RIGHTS_MAX + 1; cnt < 3 * RIGHTS_MAX; cnt++) {
		memset(&m, 0x5a, sizeof(m));
		send_many(cnt);
		cr_assert_eq(rights_receive(pair[1], text, sizeof(text), &m.r, 0), 5);
		cr_assert_eq(m.r.cnt, RIGHTS_MAX, "%u of %u", m.r.cnt, cnt);
		cr_assert(m.r.cut);
		for (size_t i = 0; i < sizeof(m.behind); i++)
			cr_assert_eq(m.behind[i], 0x5a);
		rights_close(&m.r);
		cr_assert_eq(open_cnt(), before, "all others are closed");
	}
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
