/* SPDX-License-Identifier: BSD-3-Clause */
#include "hold.h"

#include <string.h>

bool hold_is_name(const char *name)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t len = strlen(name);

	return len > 0 && len < HOLD_NAME && name[0] != '.' && strspn(name, good) == len;
}
