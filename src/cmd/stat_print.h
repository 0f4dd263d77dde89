/* SPDX-License-Identifier: BSD-3-Clause */
/* What `rpcrdmafs stat` shows of an interval (snapshot_subtract()). Pure. */
#ifndef RPCRDMAFS_STAT_PRINT_H
#define RPCRDMAFS_STAT_PRINT_H

#include "snapshot.h"

/* For people: at most 80 columns wide, but for names. */
void stat_print(FILE *out, const struct snapshot *s);
/* One JSON document on one line, of all mounts. */
void stat_print_json(FILE *out, struct snapshot *const *s, size_t cnt);
/* Five characters at most, for a time: "812n", "3.1u", "12m", "140s". */
void stat_print_ns(char text[8], uint64_t ns);
/* "0 B", "812 B", "1.2 MB". */
void stat_print_bytes(char text[16], double bytes);

#endif
