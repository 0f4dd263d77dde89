/* SPDX-License-Identifier: BSD-3-Clause */
#include "optval.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool optval_uint(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	/* strtoull takes blanks and signs; an option's value has neither. */
	if (s == NULL || !isdigit((unsigned char)*s))
		return false;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno != 0 || *end != '\0' || v < min || v > max)
		return false;
	*out = v;
	return true;
}

int optval_word(const char *s, const char *const *words)
{
	for (int i = 0; s != NULL && words[i] != NULL; i++)
		if (strcmp(s, words[i]) == 0)
			return i;
	return -1;
}
