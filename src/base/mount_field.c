/* SPDX-License-Identifier: BSD-3-Clause */
#include "mount_field.h"

#include <stdbool.h>
#include <string.h>

#define ESCAPE 4u /* bytes: a backslash, three digits; the kernel escapes nothing above \377 */

static bool is_escape(const char *p)
{
	return p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
	       p[3] >= '0' && p[3] <= '7';
}

size_t mount_field(char *to, const char *from, size_t len)
{
	size_t n = 0, i = 0;

	while (i < len) {
		if (len - i >= ESCAPE && is_escape(from + i)) {
			to[n++] = (char)((from[i + 1] - '0') << 6 | (from[i + 2] - '0') << 3 |
					 (from[i + 3] - '0'));
			i += ESCAPE;
		} else {
			to[n++] = from[i++];
		}
	}
	return n;
}

void mount_field_str(char *s)
{
	s[mount_field(s, s, strlen(s))] = '\0';
}
