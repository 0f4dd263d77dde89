/* SPDX-License-Identifier: BSD-3-Clause */
#include "optset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(name) (1ull << ID_##name)

/*
 * Not who the client is and what server it talks to, and not what was agreed on with the kernel:
 * ac, rdirplus, local_lock, lock, max_background, allow_other, default_permissions.
 */
#define CAN                                                                                        \
	(BIT(HARD) | BIT(CTO) | BIT(DELEGATION) | BIT(SYNC) | BIT(LOOKUPCACHE) | BIT(WRITE) |      \
		BIT(TIMEO) | BIT(RETRANS) | BIT(RSIZE) | BIT(WSIZE) | TIMES | BIT(NCONNECT) |      \
		BIT(METALANE) | BIT(MEMREG) | BIT(CREDITS) | BIT(INLINE) | BIT(ACKTIMEOUT) |       \
		BIT(BUFFERS) | BIT(DIRTY) | BIT(STREAM) | BIT(READAHEAD) | BIT(MAX_SEG) |          \
		BIT(PROBE) | BIT(KEEP) | BIT(STATS))
/* actimeo= is all of them. */
#define TIMES (BIT(ACREGMIN) | BIT(ACREGMAX) | BIT(ACDIRMIN) | BIT(ACDIRMAX) | BIT(ACTIMEO))

int optset_needs_mount(const char *word, char *fault, size_t len)
{
	snprintf(fault, len,
		"option %s cannot be changed while it is mounted: unmount it and mount it again",
		word);
	return -EINVAL;
}

bool optset_can(enum opt_id id)
{
	return (CAN & 1ull << id) != 0;
}

static const struct opt *find(const char *word)
{
	char *name = strndup(word, strcspn(word, "="));
	const struct opt *opt = name != NULL ? opttable_find(name) : NULL;

	free(name);
	return opt;
}

static uint64_t ids_of(const char *word)
{
	const struct opt *opt = find(word);

	if (opt == NULL || opt->id == ID_NONE)
		return 0;
	return opt->id == ID_ACTIMEO ? TIMES : 1ull << opt->id;
}

uint64_t optset_ids(const char *list)
{
	char *copy = strdup(list), *rest = copy, *word;
	uint64_t ids = 0;

	while ((word = strsep(&rest, ",")) != NULL)
		ids |= ids_of(word);
	free(copy);
	return ids;
}

char *optset_join(const char *before, const char *list)
{
	size_t len = (before != NULL ? strlen(before) : 0) + strlen(list) + 3;
	char *copy = strdup(before != NULL ? before : ""), *joined = malloc(len);
	char *rest = copy, *to = joined, *word;
	uint64_t later = optset_ids(list);

	if (copy == NULL || joined == NULL) {
		free(copy);
		free(joined);
		return NULL;
	}
	while ((word = strsep(&rest, ",")) != NULL)
		if (*word != '\0' && (ids_of(word) & later) == 0)
			to += sprintf(to, "%s,", word);
	strcpy(to, list);
	free(copy);
	return joined;
}

static void pass_over(void *ctx, const char *line)
{
}

static int check_word(const char *word, char *fault, size_t len)
{
	const struct opt *opt = find(word);

	if (opt == NULL)
		snprintf(fault, len, "unknown option %s", word);
	else if (opt->kind == OPT_VFS || opt->id == ID_RW)
		snprintf(fault, len, "option %s is the kernel's: mount -o remount,%s changes it",
			word, word);
	else if (opt->kind == OPT_REFUSE)
		snprintf(fault, len, "option %s: %s", word, opt->why);
	else if (opt->id == ID_NONE)
		snprintf(fault, len, "option %s has no meaning while it is mounted", word);
	else if (!optset_can(opt->id))
		return optset_needs_mount(word, fault, len);
	else
		return 0;
	return -EINVAL;
}

int optset_check(const struct options *now, const char *list, char *fault, size_t len)
{
	struct options_seen *seen = options_seen_new();
	char *copy = strdup(list), *rest = copy, *word;
	struct options then = *now; /* none that can be changed is a string */
	int err = *list == '\0' ? -EINVAL : 0;

	snprintf(fault, len, err == 0 ? "out of memory" : "which option?");
	then.asked = NULL;
	if (seen == NULL || copy == NULL)
		err = -ENOMEM;
	while (err == 0 && (word = strsep(&rest, ",")) != NULL)
		err = *word != '\0' ? check_word(word, fault, len) : 0;
	if (err == 0)
		err = options_apply(&then, seen, list, pass_over, NULL, fault, len);
	if (err == 0)
		err = options_finish(&then, fault, len);
	options_seen_free(seen);
	free(then.asked);
	free(copy);
	return err;
}

int optset_take(struct options *o, const char *list)
{
	o->set = strdup(list);
	o->set_ids = optset_ids(list);
	return o->set != NULL ? 0 : -ENOMEM;
}

int optset_apply(struct options *o, struct options_seen *seen, options_say_fn warn, void *ctx,
	char *fault, size_t len)
{
	o->set_ids = 0;
	return o->set != NULL ? options_apply(o, seen, o->set, warn, ctx, fault, len) : 0;
}
