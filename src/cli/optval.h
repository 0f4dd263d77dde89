/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options: numbers with bounds, sizes, words. Pure. */
#ifndef RPCRDMAFS_OPTVAL_H
#define RPCRDMAFS_OPTVAL_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal, nothing else around it, min..max. False: out untouched. */
bool optval_uint(const char *s, uint64_t min, uint64_t max, uint64_t *out);
/* Index of `s` in words (NULL-terminated), -1 if it is none of them. */
int optval_word(const char *s, const char *const *words);

#endif
