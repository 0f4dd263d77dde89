/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The resolver of a mount's idmap (idmap.h): libnfsidmap, as /etc/idmapd.conf
 * says. It is not touched before the first name comes, and is used by one
 * thread.
 */
#ifndef RPCRDMAFS_IDMAP_LIB_H
#define RPCRDMAFS_IDMAP_LIB_H

#include "idmap.h"

/* NULL with errno. */
struct idmap *idmap_lib_new(void);

#endif
