/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that are kept open: nobody asks for the attributes of one whose pages
 * the kernel has, as long as it is only read. So its lane looks at it when they
 * are too old (nfs(5): acregmin..acregmax, twice as long each time that nothing
 * changed), and asks the server for what a change moves, up to NFS4_GETATTRS_MAX
 * files in one COMPOUND. If somebody else changed it the kernel is told.
 *
 * Not looked at are files open for writing only or with O_DIRECT, nor any with
 * `noac`, where the kernel asks before each read. Of one that is delegated, whose
 * attributes came by another way meanwhile, or that we are writing to right now,
 * the server is not asked: it is looked at again later.
 *
 * One COMPOUND of a lane is on its way at a time, so a dead server is not waited
 * for more than once; what becomes due meanwhile waits behind it.
 *
 * Context: the lane that opened the file, unless stated.
 */
#ifndef RPCRDMAFS_FS_VALIDATE_H
#define RPCRDMAFS_FS_VALIDATE_H

#include "fs_op.h"

extern const struct fs_part fs_validate_part;

/* It is open: looked at from now on, if it is one of those. */
void fs_validate_watch(struct fs_lane *l, struct fs_file *f);
/* It is closed. Any lane. */
void fs_validate_unwatch(struct fs_file *f);

#endif
