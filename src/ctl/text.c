/* SPDX-License-Identifier: BSD-3-Clause */
#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Length of the UTF-8 sequence that begins here (RFC 3629); 0: none does. */
static size_t utf8_len(const unsigned char *p)
{
	size_t len = p[0] < 0x80   ? 1
		     : p[0] < 0xc2 ? 0
		     : p[0] < 0xe0 ? 2
		     : p[0] < 0xf0 ? 3
		     : p[0] < 0xf5 ? 4
				   : 0;

	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than needed, surrogates, beyond U+10FFFF. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return len;
}

/* Of a sequence of one byte, or of two. */
static int character(const unsigned char *p, size_t len)
{
	return len == 1 ? p[0] : (p[0] & 0x1f) << 6 | (p[1] & 0x3f);
}

/* With those beyond ASCII (C1), which terminals obey too. */
static bool is_control(int c)
{
	return c < ' ' || (c >= 0x7f && c < 0xa0);
}

/* special: writes a character that is not written as it is. */
static void put(FILE *out, const char *text, const char *backslash, int (*special)(FILE *, int))
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p != '\0') {
		size_t len = utf8_len(p);

		if (len == 0)
			fprintf(out, "%sx%02x", backslash, *p++);
		else {
			if (len > 2 || !special(out, character(p, len)))
				fwrite(p, 1, len, out);
			p += len;
		}
	}
}

static int json_special(FILE *out, int c)
{
	if (c == '"' || c == '\\')
		return fprintf(out, "\\%c", c);
	return is_control(c) ? fprintf(out, "\\u%04x", (unsigned int)c) : 0;
}

static int label_special(FILE *out, int c)
{
	if (c == '"' || c == '\\')
		return fprintf(out, "\\%c", c);
	if (c == '\n')
		return fprintf(out, "\\n");
	/* The format knows no other way to write one. */
	return is_control(c) ? fprintf(out, "\\\\x%02x", (unsigned int)c) : 0;
}

static int plain_special(FILE *out, int c)
{
	return is_control(c) ? fprintf(out, "\\x%02x", (unsigned int)c) : 0;
}

void text_json(FILE *out, const char *text)
{
	fputc('"', out);
	put(out, text, "\\\\", json_special);
	fputc('"', out);
}

void text_label(FILE *out, const char *text)
{
	fputc('"', out);
	put(out, text, "\\\\", label_special);
	fputc('"', out);
}

void text_plain(FILE *out, const char *text)
{
	put(out, text, "\\", plain_special);
}
