/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "options.h"

static struct options o;
static char fault[400];

static void setup(void)
{
	options_default(&o);
	fault[0] = '\0';
}

static void teardown(void)
{
	options_fini(&o);
}

TestSuite(cmdline, .init = setup, .fini = teardown);

static void warn(void *ctx, const char *line)
{
}

static int parse(int argc, const char *const *argv)
{
	char *copy[16];

	for (int i = 0; i < argc; i++)
		copy[i] = (char *)argv[i];
	copy[argc] = NULL;
	return cmdline_parse(&o, argc, copy, warn, NULL, fault, sizeof(fault));
}

#define PARSE(...)                                                                                 \
	({                                                                                         \
		const char *const argv_[] = {"rpcrdmafs", __VA_ARGS__};                            \
		parse((int)(sizeof(argv_) / sizeof(argv_[0])), argv_);                             \
	})

Test(cmdline, source_and_mountpoint)
{
	cr_assert_eq(PARSE("server:/a", "/mnt"), 0, "%s", fault);
	cr_assert_str_eq(o.host, "server");
	cr_assert_str_eq(o.path, "/a");
	cr_assert_str_eq(o.mountpoint, "/mnt");
	cr_assert_not(o.foreground);
}

Test(cmdline, options_may_stand_before_and_after)
{
	cr_assert_eq(PARSE("-f", "server:/a", "/mnt", "-o", "ro", "-o", "soft"), 0, "%s", fault);
	cr_assert(o.foreground);
	cr_assert(o.fs.read_only);
	cr_assert_not(o.nfs.hard);
}

Test(cmdline, debug_stays_in_the_foreground)
{
	cr_assert_eq(PARSE("-d", "server:/a", "/mnt"), 0);
	cr_assert(o.debug);
	cr_assert(o.foreground);
}

Test(cmdline, version_and_help_need_nothing_else)
{
	cr_assert_eq(PARSE("-V"), 0);
	cr_assert(o.version);
	teardown();
	setup();
	cr_assert_eq(PARSE("--help"), 0);
	cr_assert(o.help);
}

Test(cmdline, an_option_names_the_port_even_when_the_url_has_one)
{
	cr_assert_eq(PARSE("-o", "port=7", "nfs://server:8/a", "/mnt"), 0, "%s", fault);
	cr_assert_eq(o.port, 7);
}

Test(cmdline, what_is_missing_is_named)
{
	cr_assert_eq(PARSE("-f"), -EINVAL);
	cr_assert(strstr(fault, "what to mount") != NULL, "%s", fault);
	cr_assert_eq(PARSE("server:/a"), -EINVAL);
	cr_assert(strstr(fault, "mountpoint is missing") != NULL, "%s", fault);
	cr_assert_eq(PARSE("-o"), -EINVAL);
	cr_assert(strstr(fault, "-o needs a value") != NULL, "%s", fault);
}

Test(cmdline, what_is_too_much_or_unknown_is_named)
{
	cr_assert_eq(PARSE("server:/a", "/mnt", "more"), -EINVAL);
	cr_assert(strstr(fault, "more") != NULL, "%s", fault);
	cr_assert_eq(PARSE("-x", "server:/a", "/mnt"), -EINVAL);
	cr_assert(strstr(fault, "-x") != NULL, "%s", fault);
	cr_assert_eq(PARSE("-o", "frobnicate", "server:/a", "/mnt"), -EINVAL);
	cr_assert(strstr(fault, "frobnicate") != NULL, "%s", fault);
}
