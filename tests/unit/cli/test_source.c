/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <string.h>

#include "options.h"

static struct options o;
static char fault[400];

static void setup(void)
{
	options_default(&o);
}

static void teardown(void)
{
	options_fini(&o);
}

TestSuite(source, .init = setup, .fini = teardown);

static void expect(const char *source, const char *host, const char *path, unsigned int port)
{
	cr_assert_eq(source_parse(&o, source, fault, sizeof(fault)), 0, "%s: %s", source, fault);
	cr_assert_str_eq(o.host, host);
	cr_assert_str_eq(o.path, path);
	cr_assert_eq(o.port, port);
	cr_assert_str_eq(o.source, source);
}

Test(source, server_and_path)
{
	expect("server:/export/a", "server", "/export/a", OPTIONS_PORT);
}

Test(source, a_path_with_a_colon_in_it)
{
	expect("10.0.0.1:/a:/b", "10.0.0.1", "/a:/b", OPTIONS_PORT);
}

Test(source, an_ipv6_address_in_brackets)
{
	expect("[fe80::1]:/x", "fe80::1", "/x", OPTIONS_PORT);
}

Test(source, a_url)
{
	expect("nfs://server/export/a", "server", "/export/a", OPTIONS_PORT);
}

Test(source, a_url_with_a_port)
{
	expect("nfs://server:2050/export", "server", "/export", 2050);
}

Test(source, what_is_no_source_is_refused_and_named)
{
	static const char *const bad[] = {"", "server", "/path", ":/path", "server:path", "[::1:/x",
		"[]:/x", "nfs://", "nfs:///x", "nfs://server:0/x", "nfs://server:99999/x"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		options_fini(&o);
		options_default(&o);
		fault[0] = '\0';
		cr_assert_eq(source_parse(&o, bad[i], fault, sizeof(fault)), -EINVAL,
			"\"%s\" was taken", bad[i]);
		cr_assert(strstr(fault, "expected server:/path") != NULL, "%s", fault);
		cr_assert_eq(strncmp(fault, bad[i], strlen(bad[i])), 0, "%s", fault);
	}
}

static void expect_server(const char *server, const char *host, unsigned int port)
{
	options_fini(&o);
	options_default(&o);
	cr_assert_eq(
		source_parse_server(&o, server, fault, sizeof(fault)), 0, "%s: %s", server, fault);
	cr_assert_str_eq(o.host, host);
	cr_assert_eq(o.port, port);
	cr_assert_str_eq(o.source, server);
}

Test(source, a_server_alone_may_have_a_port)
{
	expect_server("server", "server", OPTIONS_PORT);
	expect_server("server:2050", "server", 2050);
	expect_server("10.0.0.1", "10.0.0.1", OPTIONS_PORT);
	expect_server("10.0.0.1:1", "10.0.0.1", 1);
}

Test(source, an_ipv6_server_alone_has_a_port_in_brackets_only)
{
	expect_server("fd00::1", "fd00::1", OPTIONS_PORT);
	expect_server("fe80::1%eth0", "fe80::1%eth0", OPTIONS_PORT);
	expect_server("[fd00::1]", "fd00::1", OPTIONS_PORT);
	expect_server("[fd00::1]:2050", "fd00::1", 2050);
}

Test(source, a_source_has_a_server)
{
	expect_server("server:/export/a", "server", OPTIONS_PORT);
	expect_server("[fd00::1]:/x", "fd00::1", OPTIONS_PORT);
	expect_server("nfs://server:2050/export", "server", 2050);
}

Test(source, what_is_no_server_is_refused_and_named)
{
	static const char *const bad[] = {"", ":", ":2050", "server:", "server:0", "server:65536",
		"server:x", "[fd00::1", "[fd00::1]x", "[fd00::1]:", "[]:2050", "/path"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		options_fini(&o);
		options_default(&o);
		fault[0] = '\0';
		cr_assert_eq(source_parse_server(&o, bad[i], fault, sizeof(fault)), -EINVAL,
			"\"%s\" was taken", bad[i]);
		cr_assert_eq(strncmp(fault, bad[i], strlen(bad[i])), 0, "%s", fault);
		cr_assert(strstr(fault, "expected"), "%s", fault);
	}
}
