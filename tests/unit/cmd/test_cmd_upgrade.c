/* SPDX-License-Identifier: BSD-3-Clause */
/* Daemons that never come to an end, and what they say. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "fake_daemon.h"

/* Taken for the count of upgrades, and then for a daemon that is still at it. */
#define AT_IT "ok\n7\n"

static struct ctl_daemon at_it_until(int64_t until_ms)
{
	struct fake_daemon f = {.dir = fake_daemon_dir(), .uid = geteuid(), .answer = AT_IT};
	struct ctl_daemon d = {.owner = geteuid(), .uid = geteuid(), .until_ms = until_ms};

	fake_daemon_start(&f);
	snprintf(d.dir, sizeof(d.dir), "%s", f.dir);
	d.pid = f.pid;
	return d;
}

Test(cmd_upgrade, a_daemon_that_is_always_at_it_has_an_end)
{
	struct ctl_daemon d = at_it_until(ctl_client_now_ms() + 1000);
	uint64_t pause_ns = 0;
	char fault[400] = "";

	cr_assert_eq(cmd_upgrade_ask(&d, "upgrade start", -1, &pause_ns, fault, sizeof(fault)), -1);
	cr_assert_str_neq(fault, "");
	cr_assert_eq(pause_ns, 0);
}

Test(cmd_upgrade, nothing_is_begun_when_no_time_is_left)
{
	struct ctl_daemon d = at_it_until(1);
	uint64_t pause_ns = 0;
	char fault[400] = "", *answer;

	cr_assert_eq(cmd_upgrade_ask(&d, "upgrade start", -1, &pause_ns, fault, sizeof(fault)), -1);
	cr_assert_not_null(strstr(fault, "timed out"), "%s", fault);
	/* Connections are taken one by one: this is the first. */
	d.until_ms = 0;
	answer = ctl_client_ask(&d, "upgrade state", -1, fault, sizeof(fault));
	cr_assert_not_null(answer);
	free(answer);
	cr_assert_eq(fake_daemon_asked(), 1);
}

Test(cmd_upgrade, daemons_of_another_user_have_one_end)
{
	struct ctl_daemon own = {.owner = geteuid()}, a = {.owner = geteuid() + 1}, b = a,
			  c = {.owner = geteuid() + 2};

	cmd_upgrade_limit(&own, NULL, 1000);
	cr_assert_eq(own.until_ms, 0);
	cmd_upgrade_limit(&a, &own, 1000);
	cr_assert_gt(a.until_ms, 1000);
	cmd_upgrade_limit(&b, &a, 2000);
	cr_assert_eq(b.until_ms, a.until_ms);
	cmd_upgrade_limit(&c, &b, 2000);
	cr_assert_eq(c.until_ms, a.until_ms + 1000);
	cmd_upgrade_limit(&a, NULL, 5000);
	cr_assert_eq(a.until_ms, c.until_ms + 3000);
}

/* All that a function wrote to standard error; static. */
static const char *said(void (*say)(void))
{
	static char text[400];
	FILE *file = tmpfile();
	int err = dup(STDERR_FILENO);

	cr_assert_not_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	say();
	fflush(stderr);
	dup2(err, STDERR_FILENO);
	close(err);
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void say_fault(void)
{
	cmd_fail("set", "no\x1b[2J");
}

static void say_where(void)
{
	char where[] = "/m\x1b[2J";
	struct ctl_daemon d = {.mountpoint = where};

	cmd_fail_at("upgrade", &d, "no\x1b[2J");
}

static void say_lines(void)
{
	char answer[] = "one\x1b[2J\ntwo\n";

	cmd_print(stderr, answer);
}

Test(cmd_upgrade, a_daemon_does_not_drive_the_terminal)
{
	cr_assert_str_eq(said(say_fault), "rpcrdmafs: set: no\\x1b[2J\n");
	cr_assert_str_eq(said(say_where), "rpcrdmafs: upgrade: /m\\x1b[2J: no\\x1b[2J\n");
	cr_assert_str_eq(said(say_lines), "one\\x1b[2J\ntwo\n");
}
