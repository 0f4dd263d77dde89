/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One line for each mount option: its name, whether it is accepted or refused,
 * and how it can be given. What man pages, completions and the daemon must
 * agree on (check-words).
 */
#include <stdio.h>

#include "opttable.h"

static void print_sample(const struct opt *o)
{
	switch (o->kind) {
	case OPT_UINT:
		printf("%s=%llu\n", o->name, (unsigned long long)o->num);
		break;
	case OPT_WORD:
		printf("%s=%s\n", o->name, o->words[0]);
		break;
	case OPT_VERS:
		printf("%s=4.1\n", o->name);
		break;
	case OPT_STRING:
		printf("%s=value\n", o->name);
		break;
	case OPT_FLAG:
	case OPT_VFS:
	case OPT_IGNORE:
	case OPT_QUIET:
	case OPT_KERNEL:
	case OPT_REFUSE:
		printf("%s\n", o->name);
		break;
	}
}

int main(void)
{
	const struct opt *o;

	for (size_t i = 0; (o = opttable_at(i)) != NULL; i++) {
		printf("%s %s ", o->name, o->kind == OPT_REFUSE ? "refused" : "accepted");
		print_sample(o);
	}
	return 0;
}
