/* SPDX-License-Identifier: BSD-3-Clause */
/* A control socket and its clients in one thread: the reactor turns when a test says so. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl.h"
#include "ctl_dir.h"
#include "log.h"

#define LONG_ANSWER (4u << 20)

static struct reactor *r;
static struct ctl *ctl;
static char dir[CTL_PATH_MAX], path[2 * CTL_PATH_MAX];
static int runs;

static int run_echo(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	char text[32] = "";

	runs++;
	cr_assert_eq(ctx, &runs);
	for (int i = 1; i < argc; i++)
		fprintf(out, "%s ", argv[i]);
	if (fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0)
		fprintf(out, "with %s", text);
	return 0;
}

static int run_fail(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	fputs("not today", out);
	return -EIO;
}

static int run_long(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	for (unsigned int i = 0; i < LONG_ANSWER; i++)
		fputc('a' + (int)(i % 26), out);
	return 0;
}

static const struct ctl_command commands[] = {
	{"echo", run_echo}, {"fail", run_fail}, {"long", run_long}, {"metrics", run_echo}, {0}};

static void start(void)
{
	static char run[] = "/tmp/ctl-test.XXXXXX";

	if (geteuid() != 0)
		setenv("XDG_RUNTIME_DIR", mkdtemp(run), 1);
	r = reactor_new();
	ctl = ctl_start(r, commands, &runs);
	cr_assert_not_null(ctl);
	cr_assert(ctl_dir(dir));
	snprintf(path, sizeof(path), "%s/%d.sock", dir, (int)getpid());
}

static void stop(void)
{
	ctl_end(ctl);
	reactor_free(r);
}

static void turns(void)
{
	while (reactor_turn(r, 0))
		;
}

static int dial(void)
{
	int at = ctl_dir_open(dir, geteuid()), fd = ctl_dir_connect(at, strrchr(path, '/') + 1);

	close(at);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	return fd;
}

/* All that comes, until the end; the reactor turns meanwhile. */
static char *hear(int fd)
{
	size_t len = 0, cap = LONG_ANSWER + 4096;
	char *text = calloc(1, cap);

	for (int idle = 0; idle < 1000;) {
		ssize_t n = read(fd, text + len, cap - len - 1);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		if (n > 0) {
			len += (size_t)n;
			idle = 0;
			continue;
		}
		idle += !reactor_turn(r, 0);
	}
	close(fd);
	return text;
}

static char *asked(const char *request)
{
	int fd = dial();

	cr_assert_eq(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	return hear(fd);
}

#define ANSWERS(request, expected)                                                                 \
	do {                                                                                       \
		char *answer_ = asked(request);                                                    \
		cr_assert_str_eq(answer_, expected);                                               \
		free(answer_);                                                                     \
	} while (0)

TestSuite(ctl, .init = start, .fini = stop);

Test(ctl, runs_commands)
{
	ANSWERS("echo a b\n", "ok\na b ");
	ANSWERS("fail\n", "error: not today");
	ANSWERS("what\n", "error: there is no command what");
	cr_assert_eq(runs, 1);
}

Test(ctl, a_request_may_come_in_pieces)
{
	int fd = dial();
	char *text;

	for (const char *p = "echo x\n"; *p != '\0'; p++) {
		cr_assert_eq(write(fd, p, 1), 1);
		turns();
	}
	text = hear(fd);
	cr_assert_str_eq(text, "ok\nx ");
	free(text);
}

Test(ctl, the_folder_and_the_socket_are_their_owners_alone)
{
	struct stat st;

	cr_assert_eq(stat(dir, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0700);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert(S_ISSOCK(st.st_mode));
	cr_assert_eq(st.st_mode & 07777, 0600);
}

Test(ctl, long_answers_wait_for_a_slow_reader)
{
	char *text = asked("long\n");

	cr_assert_eq(strlen(text), LONG_ANSWER + 3);
	cr_assert_eq(text[LONG_ANSWER + 2], 'a' + (int)((LONG_ANSWER - 1) % 26));
	free(text);
}

Test(ctl, who_hangs_up_early_is_forgotten)
{
	for (int i = 0; i < 50; i++) {
		int fd = dial();

		cr_assert_eq(write(fd, "long\n", 5), 5);
		turns();
		close(fd);
		turns();
	}
	ANSWERS("echo\n", "ok\n");
}

Test(ctl, a_hundred_silent_clients_do_not_keep_others_out)
{
	int fds[100];

	for (int i = 0; i < 100; i++) {
		fds[i] = dial();
		turns();
	}
	ANSWERS("echo still\n", "ok\nstill ");
	for (int i = 0; i < 100; i++)
		close(fds[i]);
}

Test(ctl, a_megabyte_of_anything_is_refused)
{
	static char much[1 << 20];
	int fd = dial();
	char *text;

	memset(much, 'x', sizeof(much));
	while (write(fd, much, sizeof(much)) < 0 && errno == EINTR)
		;
	text = hear(fd);
	cr_assert_str_eq(text, "error: the request is too long");
	free(text);
	ANSWERS("echo\n", "ok\n");
}

Test(ctl, metrics_can_be_scraped)
{
	char *text = asked("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");

	cr_assert_eq(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
	cr_assert_not_null(strstr(text, "Content-Length: 0\r\n"));
	free(text);
	text = asked("GET /other HTTP/1.1\r\n\r\n");
	cr_assert_eq(strncmp(text, "HTTP/1.1 404 ", 13), 0);
	free(text);
}

/* Sends a request with `cnt` descriptors of a file that says "hello". */
static char *asked_with_fds(int cnt)
{
	char name[] = "/tmp/ctl-fd.XXXXXX", request[] = "echo\n";
	int file = mkstemp(name), fd = dial();
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = request, .iov_len = 5};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	struct cmsghdr *cm;

	unlink(name);
	cr_assert_eq(write(file, "hello", 5), 5);
	msg.msg_controllen = CMSG_SPACE((size_t)cnt * sizeof(int));
	cm = CMSG_FIRSTHDR(&msg);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN((size_t)cnt * sizeof(int));
	for (int i = 0; i < cnt; i++)
		memcpy(CMSG_DATA(cm) + (size_t)i * sizeof(int), &file, sizeof(int));
	cr_assert_eq(sendmsg(fd, &msg, 0), 5);
	close(file);
	return hear(fd);
}

/* The lowest one that is free: it stays the same if none is lost. */
static int lowest_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

Test(ctl, a_file_may_come_with_a_request)
{
	int before = lowest_fd();
	char *text = asked_with_fds(1);

	cr_assert_str_eq(text, "ok\nwith hello");
	free(text);
	turns();
	cr_assert_eq(lowest_fd(), before, "the descriptor was not closed");
}

Test(ctl, more_files_than_one_are_refused_and_closed)
{
	int before = lowest_fd();

	for (int cnt = 2; cnt <= 4; cnt++) {
		char *text = asked_with_fds(cnt);

		cr_assert_str_eq(text, "error: more than one file came with the request\n");
		free(text);
	}
	turns();
	cr_assert_eq(lowest_fd(), before);
	cr_assert_eq(runs, 0);
}

Test(ctl, the_socket_is_gone_at_the_end)
{
	ctl_end(ctl);
	ctl = NULL;
	cr_assert_eq(access(path, F_OK), -1);
}
