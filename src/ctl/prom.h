/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters in Prometheus' text format, version 0.0.4. Pure. */
#ifndef RPCRDMAFS_PROM_H
#define RPCRDMAFS_PROM_H

#include "snapshot.h"

/* Of several mounts: each has its labels `source` and `mountpoint`. */
void prom_print(FILE *out, struct snapshot *const *s, size_t cnt);

#endif
