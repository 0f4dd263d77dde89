/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cmd.h"
#include "text.h"

void cmd_print(FILE *out, char *answer)
{
	char *rest = answer, *line;

	while ((line = strsep(&rest, "\n")) != NULL) {
		text_plain(out, line);
		if (rest != NULL)
			fputc('\n', out);
	}
}
