/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_proto.h"

static struct ctl_request req;
static char buf[CTL_HTTP_MAX + 1];

static enum ctl_kind parse(const char *text, size_t len)
{
	memset(&req, 0, sizeof(req));
	memcpy(buf, text, len);
	return ctl_proto_parse(buf, len, &req);
}

#define PARSE(text) parse(text, sizeof(text) - 1)

Test(ctl_proto, a_line_is_a_command_and_its_arguments)
{
	cr_assert_eq(PARSE("log debug  ops=on\n"), CTL_COMMAND);
	cr_assert_eq(req.argc, 3);
	cr_assert_str_eq(req.argv[0], "log");
	cr_assert_str_eq(req.argv[1], "debug");
	cr_assert_str_eq(req.argv[2], "ops=on");
	cr_assert_null(req.argv[3]);
	cr_assert_eq(PARSE("info\r\n"), CTL_COMMAND);
	cr_assert_str_eq(req.argv[0], "info");
}

Test(ctl_proto, part_of_a_line_waits_for_the_rest)
{
	cr_assert_eq(PARSE(""), CTL_MORE);
	cr_assert_eq(PARSE("sta"), CTL_MORE);
	cr_assert_eq(PARSE("GET /metrics HTTP/1.1\r\n"), CTL_MORE);
	cr_assert_eq(PARSE("GET /metrics HTTP/1.1\r\nHost: x\r\n"), CTL_MORE);
}

Test(ctl_proto, what_is_behind_the_line_is_not_looked_at)
{
	cr_assert_eq(PARSE("stat\nanything\x01"), CTL_COMMAND);
	cr_assert_eq(req.argc, 1);
}

Test(ctl_proto, refuses_what_is_no_request)
{
	cr_assert_eq(PARSE("\n"), CTL_BAD);
	cr_assert_eq(PARSE("   \n"), CTL_BAD);
	cr_assert_eq(PARSE("st\0at\n"), CTL_BAD);
	cr_assert_eq(PARSE("st\x1b[2Jat\n"), CTL_BAD);
	cr_assert_eq(PARSE("a b c d e f g h i j k l m n o p q\n"), CTL_BAD);
	cr_assert_eq(PARSE("a b c d e f g h i j k l m n o p\n"), CTL_COMMAND);
}

Test(ctl_proto, a_line_is_at_most_1_kib_long)
{
	char text[CTL_LINE_MAX + 1];

	memset(text, 'a', sizeof(text));
	cr_assert_eq(parse(text, CTL_LINE_MAX - 1), CTL_MORE);
	cr_assert_eq(parse(text, CTL_LINE_MAX), CTL_BAD);
	text[CTL_LINE_MAX - 1] = '\n';
	cr_assert_eq(parse(text, CTL_LINE_MAX), CTL_COMMAND);
	text[CTL_LINE_MAX - 1] = 'a';
	text[CTL_LINE_MAX] = '\n';
	cr_assert_eq(parse(text, CTL_LINE_MAX + 1), CTL_BAD);
}

Test(ctl_proto, speaks_http_for_one_path)
{
	cr_assert_eq(PARSE("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), CTL_HTTP);
	cr_assert_eq(req.http_status, 200);
	cr_assert_eq(PARSE("GET /metrics HTTP/1.0\n\n"), CTL_HTTP);
	cr_assert_eq(req.http_status, 200);
	cr_assert_eq(PARSE("GET / HTTP/1.1\r\n\r\n"), CTL_HTTP);
	cr_assert_eq(req.http_status, 404);
	cr_assert_eq(PARSE("POST /metrics HTTP/1.1\r\n\r\n"), CTL_HTTP);
	cr_assert_eq(req.http_status, 405);
	cr_assert_eq(PARSE("GET /metrics HTTP/2\r\n\r\n"), CTL_HTTP);
	cr_assert_eq(req.http_status, 505);
	cr_assert_eq(PARSE("GET /metrics\n"), CTL_COMMAND);
}

Test(ctl_proto, headers_end_somewhere)
{
	char text[CTL_HTTP_MAX];
	static const char line[] = "GET /metrics HTTP/1.1\r\n";

	memset(text, 'a', sizeof(text));
	memcpy(text, line, sizeof(line) - 1);
	cr_assert_eq(parse(text, CTL_HTTP_MAX - 1), CTL_MORE);
	cr_assert_eq(parse(text, CTL_HTTP_MAX), CTL_BAD);
}

Test(ctl_proto, text_survives_as_one_printable_line)
{
	static const char hard[] = "/a b\\x41\n\x1b[0m\xc3\xa4";
	char *text = ctl_proto_escape(hard);

	cr_assert_str_eq(text, "/a\\x20b\\x5cx41\\x0a\\x1b[0m\\xc3\\xa4");
	cr_assert(ctl_proto_unescape(text));
	cr_assert_str_eq(text, hard);
	free(text);
}

Test(ctl_proto, refuses_text_that_was_not_escaped_so)
{
	static const char *const bad[] = {"\\", "\\x", "\\x4", "\\y41", "\\x4g", "\\x00", "\\X41"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *text = strdup(bad[i]);

		cr_assert(!ctl_proto_unescape(text), "%s", bad[i]);
		free(text);
	}
}
