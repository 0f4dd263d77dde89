/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options that are changed while the mount is there (rpcrdmafs set): which can be, and how they go
 * with those that the mount was made with. A list is of words, with commas between them.
 *
 * Context: the main thread. Pure.
 */
#ifndef RPCRDMAFS_OPTSET_H
#define RPCRDMAFS_OPTSET_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "opttable.h"

/* Returns -EINVAL; fault: `word` needs another mount. */
int optset_needs_mount(const char *word, char *fault, size_t len);
/* Can an option of that kind be changed? */
bool optset_can(enum opt_id id);
/*
 * optset_check - could the mount go on with `now`, and these in place of some of it?
 *
 * Returns: 0; -EINVAL: no, and fault says why in one line.
 */
int optset_check(const struct options *now, const char *list, char *fault, size_t len);
/* One list: of each kind the later word. before: or NULL. malloced; NULL: out of memory. */
char *optset_join(const char *before, const char *list);
/* The kinds that they stand in place of: bits by enum opt_id. */
uint64_t optset_ids(const char *list);
/*
 * optset_take - a list that counts in place of what is said of the same kinds
 *
 * Before anything is applied. Returns: 0; -ENOMEM.
 */
int optset_take(struct options *o, const char *list);
/* That list, when all else was applied: as options_apply(). */
int optset_apply(struct options *o, struct options_seen *seen, options_say_fn warn, void *ctx,
	char *fault, size_t len);

#endif
