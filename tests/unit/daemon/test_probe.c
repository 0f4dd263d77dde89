/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe.h"

static struct probe_args a;
static char fault[400], warned[200];

static void warn(void *ctx, const char *line)
{
	snprintf(warned, sizeof(warned), "%s", line);
}

static int parse(int argc, const char *const *argv)
{
	char *copy[16];

	for (int i = 0; i < argc; i++)
		copy[i] = (char *)argv[i];
	copy[argc] = NULL;
	return probe_parse(&a, argc, copy, warn, NULL, fault, sizeof(fault));
}

#define PARSE(...)                                                                                 \
	({                                                                                         \
		const char *const argv_[] = {"probe", __VA_ARGS__};                                \
		parse((int)(sizeof(argv_) / sizeof(argv_[0])), argv_);                             \
	})

static void teardown(void)
{
	options_fini(&a.opt);
}

TestSuite(probe, .fini = teardown);

Test(probe, a_server_is_enough)
{
	cr_assert_eq(PARSE("server"), 0, "%s", fault);
	cr_assert_str_eq(a.opt.host, "server");
	cr_assert_eq(a.opt.port, OPTIONS_PORT);
	cr_assert_eq(a.opt.nfs.rdma.fabric, RPCRDMA_FABRIC_AUTO);
	cr_assert_eq(a.seconds, PROBE_SECONDS);
	cr_assert_not(a.json);
	cr_assert_not(a.help);
}

Test(probe, options_of_a_mount_are_taken_before_and_behind_the_server)
{
	cr_assert_eq(PARSE("-o", "fabric=soft,inline=8192", "-t", "7", "server:2050", "--json",
			     "-o", "srcaddr=10.0.0.2,memreg=static,ro,nconnect=4"),
		0, "%s", fault);
	cr_assert_eq(a.opt.port, 2050);
	cr_assert_eq(a.opt.nfs.rdma.fabric, RPCRDMA_FABRIC_SOFT);
	cr_assert_eq(a.opt.nfs.rdma.inline_size, 8192);
	cr_assert_eq(a.opt.nfs.rdma.memreg, RPCRDMA_MEMREG_STATIC);
	cr_assert_str_eq(a.opt.clientaddr, "10.0.0.2");
	cr_assert_eq(a.seconds, 7);
	cr_assert(a.json);
}

Test(probe, the_port_of_an_option_counts)
{
	cr_assert_eq(PARSE("server:2050", "-o", "port=20049"), 0, "%s", fault);
	cr_assert_eq(a.opt.port, 20049);
}

Test(probe, a_source_to_mount_has_a_server)
{
	cr_assert_eq(PARSE("[fd00::1]:/export"), 0, "%s", fault);
	cr_assert_str_eq(a.opt.host, "fd00::1");
}

Test(probe, an_option_without_meaning_is_warned_of)
{
	cr_assert_eq(PARSE("-o", "resvport", "server"), 0, "%s", fault);
	cr_assert(strstr(warned, "resvport"), "%s", warned);
}

Test(probe, help_wants_no_server)
{
	cr_assert_eq(PARSE("-h"), 0);
	cr_assert(a.help);
	options_fini(&a.opt);
	cr_assert_eq(PARSE("--help"), 0);
	cr_assert(a.help);
}

/* The help says how: there is no other word. */
static void used_wrongly(int ret)
{
	cr_assert_eq(ret, -EINVAL);
	cr_assert_str_eq(fault, "");
	options_fini(&a.opt);
}

Test(probe, without_a_server_or_with_two_it_is_used_wrongly)
{
	cr_redirect_stderr();
	used_wrongly(parse(1, (const char *const[]){"probe"}));
	used_wrongly(PARSE("server", "another"));
	used_wrongly(PARSE("-x", "server"));
	used_wrongly(PARSE("server", "-o"));
	cr_assert_eq(PARSE("server"), 0);
}

Test(probe, seconds_have_bounds)
{
	used_wrongly(PARSE("-t", "0", "server"));
	used_wrongly(PARSE("-t", "3601", "server"));
	used_wrongly(PARSE("-t", "1s", "server"));
	cr_assert_eq(PARSE("-t", "3600", "server"), 0);
	cr_assert_eq(a.seconds, PROBE_SECONDS_MAX);
}

Test(probe, a_wrong_option_or_server_is_named)
{
	cr_assert_eq(PARSE("-o", "frob", "server"), -EINVAL);
	cr_assert_str_eq(fault, "unknown option frob");
	options_fini(&a.opt);
	cr_assert_eq(PARSE("-o", "fabric=tcp", "server"), -EINVAL);
	cr_assert(strstr(fault, "fabric=tcp"), "%s", fault);
	options_fini(&a.opt);
	cr_assert_eq(PARSE("server:99999"), -EINVAL);
	cr_assert(strstr(fault, "server:99999: "), "%s", fault);
}

Test(probe, it_is_asked_by_its_name)
{
	char name[] = "rpcrdmafs", probe[] = "probe", help[] = "-h", bad[] = "--bad",
	     info[] = "info";
	int status = 99;

	cr_redirect_stdout();
	cr_redirect_stderr();
	cr_assert_not(probe_is_asked(1, (char *[]){name, NULL}, &status));
	cr_assert_not(probe_is_asked(2, (char *[]){name, info, NULL}, &status));
	cr_assert_eq(status, 99);
	cr_assert(probe_is_asked(3, (char *[]){name, probe, help, NULL}, &status));
	cr_assert_eq(status, 0);
	cr_assert(probe_is_asked(3, (char *[]){name, probe, bad, NULL}, &status));
	cr_assert_eq(status, 2);
	cr_assert_eq(PARSE("server"), 0);
}
