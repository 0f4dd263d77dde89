/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of a control socket: the input is what a client sent so far, and
 * what a daemon of another user answers to `stat`. Words stay in the buffer
 * without control characters; a snapshot that is taken says the same when it
 * is printed and read again.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/ctl/ctl_proto.h"
#include "../../src/ctl/snapshot.h"

static void check_request(const uint8_t *data, size_t size)
{
	size_t len = size < CTL_HTTP_MAX ? size : CTL_HTTP_MAX;
	char *buf = malloc(len + 1);
	struct ctl_request req = {0};

	FUZZ_CHECK(buf);
	memcpy(buf, data, len);
	switch (ctl_proto_parse(buf, len, &req)) {
	case CTL_MORE:
		FUZZ_CHECK(len < CTL_HTTP_MAX && memcmp(buf, data, len) == 0);
		break;
	case CTL_COMMAND:
		FUZZ_CHECK(req.argc > 0 && req.argc <= CTL_ARGS_MAX && !req.argv[req.argc]);
		for (int i = 0; i < req.argc; i++) {
			FUZZ_CHECK(req.argv[i] >= buf && req.argv[i][0] != '\0');
			FUZZ_CHECK(req.argv[i] + strlen(req.argv[i]) <= buf + len);
			for (const char *p = req.argv[i]; *p; p++)
				FUZZ_CHECK((unsigned char)*p > ' ' && *p != 0x7f);
		}
		break;
	case CTL_HTTP:
		FUZZ_CHECK(req.http_status >= 200 && req.http_status < 600);
		break;
	case CTL_BAD:
		FUZZ_CHECK(req.fault);
		break;
	}
	free(buf);
}

static char *print(const struct snapshot *s)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	FUZZ_CHECK(out);
	snapshot_print(out, s);
	fclose(out);
	return text;
}

static void check_snapshot(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *first, *second;
	struct snapshot *s;

	FUZZ_CHECK(text);
	memcpy(text, data, size);
	text[size] = '\0';
	s = snapshot_parse(text);
	free(text);
	if (!s)
		return;
	first = print(s);
	snapshot_free(s);
	text = strdup(first);
	FUZZ_CHECK(text);
	s = snapshot_parse(text);
	free(text);
	FUZZ_CHECK(s);
	second = print(s);
	snapshot_free(s);
	FUZZ_CHECK(strcmp(first, second) == 0);
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_request(data, size);
	check_snapshot(data, size);
	return 0;
}
