/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

struct capture {
	unsigned int cnt;
	enum log_level level;
	char line[8192];
};

static struct capture cap;

static void capture_line(void *ctx, enum log_level level, const char *line)
{
	struct capture *c = ctx;

	c->cnt++;
	c->level = level;
	snprintf(c->line, sizeof(c->line), "%s", line);
	errno = EBADF; /* a sink may spoil errno; log_msg() must not pass that on */
}

static void setup(void)
{
	memset(&cap, 0, sizeof(cap));
	log_set_sink(capture_line, &cap);
}

TestSuite(log, .init = setup);

Test(log, formats_and_passes_the_level)
{
	log_err("mount %s: %d", "x", 7);
	cr_assert_eq(cap.cnt, 1);
	cr_assert_eq(cap.level, LOG_LVL_ERR);
	cr_assert_str_eq(cap.line, "mount x: 7");
	log_warn("w");
	cr_assert_eq(cap.level, LOG_LVL_WARN);
	log_info("i");
	cr_assert_eq(cap.level, LOG_LVL_INFO);
}

Test(log, debug_is_off_until_asked_for_and_marked)
{
	log_debug("quiet");
	cr_assert_eq(cap.cnt, 0);
	log_set_level(LOG_LVL_DEBUG);
	log_debug("loud");
	cr_assert_eq(cap.cnt, 1);
	cr_assert_str_eq(cap.line, "debug: loud");
}

Test(log, lines_above_the_level_are_dropped)
{
	log_set_level(LOG_LVL_ERR);
	cr_assert_eq(log_get_level(), LOG_LVL_ERR);
	log_warn("no");
	log_info("no");
	cr_assert_eq(cap.cnt, 0);
	log_err("yes");
	cr_assert_eq(cap.cnt, 1);
}

Test(log, names_from_the_server_cannot_forge_a_line_or_drive_a_terminal)
{
	log_warn("file %s", "a\nrpcrdmafs: forged\r\t\033[2J\x7f\xc2\x9b");
	cr_assert_str_eq(cap.line, "file a\\x0arpcrdmafs: forged\\x0d\\x09\\x1b[2J\\x7f\\xc2\\x9b");
}

Test(log, one_newline_at_the_end_is_dropped)
{
	log_info("from libfuse\n");
	cr_assert_str_eq(cap.line, "from libfuse");
	log_info("\n");
	cr_assert_str_eq(cap.line, "");
	log_info("%s", "");
	cr_assert_str_eq(cap.line, "");
}

Test(log, a_long_line_is_cut_and_says_so)
{
	char *big = malloc(100000);

	cr_assert_not_null(big);
	memset(big, '\n', 99999); /* the worst for escaping */
	big[99999] = '\0';
	log_set_level(LOG_LVL_DEBUG);
	log_debug("%s", big);
	cr_assert_eq(strlen(cap.line), 7 + 4 * 1024 + 3);
	cr_assert_str_eq(cap.line + strlen(cap.line) - 7, "\\x0a...");

	big[1024] = '\0'; /* just fits; its last byte is a newline */
	log_debug("%s", big);
	cr_assert_eq(strlen(cap.line), 7 + 4 * 1023);
	free(big);
}

Test(log, errno_is_readable_by_the_format_and_kept)
{
	errno = ENOENT;
	log_err("open: %m");
	cr_assert_str_eq(cap.line, "open: No such file or directory");
	cr_assert_eq(errno, ENOENT);
}

Test(log, default_sink_is_standard_error)
{
	char buf[128] = "";
	int saved = dup(STDERR_FILENO);
	int fds[2];
	ssize_t n;

	cr_assert_eq(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_set_sink(NULL, NULL);
	log_err("no such host\nrpcrdmafs: x");
	dup2(saved, STDERR_FILENO);
	n = read(fds[0], buf, sizeof(buf) - 1);
	cr_assert_gt(n, 0);
	cr_assert_str_eq(buf, "rpcrdmafs: no such host\\x0arpcrdmafs: x\n");
	cr_assert_eq(cap.cnt, 0);
	close(saved);
	close(fds[0]);
	close(fds[1]);
}

Test(log, a_place_logs_once_in_five_seconds)
{
	_Atomic uint64_t last = 0;

	cr_assert(log_ratelimit(&last));
	cr_assert_not(log_ratelimit(&last));
	last -= 4900000000u;
	cr_assert_not(log_ratelimit(&last));
	last -= 200000000u;
	cr_assert(log_ratelimit(&last));
	cr_assert_not(log_ratelimit(&last));
}

Test(log, limited_places_do_not_share_their_limit)
{
	for (int i = 0; i < 3; i++) {
		log_warn_limited("first");
		log_warn_limited("second");
	}
	cr_assert_eq(cap.cnt, 2);
}
