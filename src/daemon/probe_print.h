/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of `rpcrdmafs probe` about a server, in the form of `rpcrdmafs info`. */
#ifndef RPCRDMAFS_PROBE_PRINT_H
#define RPCRDMAFS_PROBE_PRINT_H

#include <stdio.h>

#include "probe_conn.h"

/* server: as the user named it. Without a connection there is nothing to say. */
void probe_print(FILE *out, const char *server, const struct probe_found *f, bool json);

#endif
