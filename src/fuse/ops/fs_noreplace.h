/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPCRDMAFS_FS_NOREPLACE_H
#define RPCRDMAFS_FS_NOREPLACE_H

#include "fs_op.h"

/*
 * fs_noreplace - RENAME that fails with EEXIST if the new name is there
 *
 * op->inode and name are renamed to op->inode2 and name2; op->mem is not used yet. Ends the op.
 */
void fs_noreplace(struct fs_op *op);

#endif
