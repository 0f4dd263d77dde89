/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_proto.h"

#include <stdlib.h>
#include <string.h>

static enum ctl_kind bad(struct ctl_request *r, const char *fault)
{
	r->fault = fault;
	return CTL_BAD;
}

/* ---- HTTP ---- */

/* "GET /metrics HTTP/1.x", without its line end. 0: it is not HTTP. */
static int http_status(const char *line, size_t len)
{
	char copy[CTL_LINE_MAX], *rest = copy;
	const char *method, *path, *version;

	if (len >= sizeof(copy))
		return 0;
	memcpy(copy, line, len);
	copy[len] = '\0';
	method = strsep(&rest, " ");
	path = strsep(&rest, " ");
	version = rest;
	if (version == NULL || strncmp(version, "HTTP/", 5) != 0)
		return 0;
	if (strncmp(version, "HTTP/1.", 7) != 0)
		return 505;
	if (strcmp(method, "GET") != 0)
		return 405;
	return strcmp(path, "/metrics") == 0 ? 200 : 404;
}

static bool headers_end(const char *buf, size_t len)
{
	return memmem(buf, len, "\n\r\n", 3) != NULL || memmem(buf, len, "\n\n", 2) != NULL;
}

/* ---- commands ---- */

static enum ctl_kind words(char *line, size_t len, struct ctl_request *r)
{
	char *rest = line, *word;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			return bad(r, "a request has no control characters");
	line[len] = '\0';
	r->argc = 0;
	while ((word = strsep(&rest, " ")) != NULL) {
		if (*word == '\0')
			continue;
		if (r->argc == CTL_ARGS_MAX)
			return bad(r, "too many words");
		r->argv[r->argc++] = word;
	}
	r->argv[r->argc] = NULL;
	return r->argc > 0 ? CTL_COMMAND : bad(r, "no command");
}

enum ctl_kind ctl_proto_parse(char *buf, size_t len, struct ctl_request *r)
{
	size_t most = len < CTL_LINE_MAX ? len : CTL_LINE_MAX;
	char *end = memchr(buf, '\n', most);
	size_t line;

	if (end == NULL)
		return len < CTL_LINE_MAX ? CTL_MORE : bad(r, "the request is too long");
	line = (size_t)(end - buf);
	if (line > 0 && end[-1] == '\r')
		line--;
	r->http_status = memchr(buf, '\0', line) != NULL ? 0 : http_status(buf, line);
	if (r->http_status != 0) {
		if (headers_end(buf, len))
			return CTL_HTTP;
		return len < CTL_HTTP_MAX ? CTL_MORE : bad(r, "the request is too long");
	}
	return words(buf, line, r);
}

/* ---- text on one line ---- */

char *ctl_proto_escape(const char *text)
{
	static const char hex[] = "0123456789abcdef";
	char *out = malloc(4 * strlen(text) + 1), *to = out;

	if (out == NULL)
		return NULL;
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c > ' ' && c < 0x7f && c != '\\') {
			*to++ = (char)c;
			continue;
		}
		*to++ = '\\';
		*to++ = 'x';
		*to++ = hex[c >> 4];
		*to++ = hex[c & 15];
	}
	*to = '\0';
	return out;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ctl_proto_unescape(char *text)
{
	char *to = text;

	while (*text != '\0') {
		int hi, lo;

		if (*text != '\\') {
			*to++ = *text++;
			continue;
		}
		hi = text[1] == 'x' ? hex_value(text[2]) : -1;
		lo = hi >= 0 ? hex_value(text[3]) : -1;
		if (lo < 0 || hi * 16 + lo == 0)
			return false;
		*to++ = (char)(hi * 16 + lo);
		text += 4;
	}
	*to = '\0';
	return true;
}
