/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LOOKUP of a special file that has two nodeids (fs_shadow.h): which one this user gets.
 *
 * Context: the lane of the op.
 */
#ifndef RPCRDMAFS_FS_SPECIAL_H
#define RPCRDMAFS_FS_SPECIAL_H

#include "fs_op.h"

/*
 * fs_special_entry - the end of a LOOKUP of such a file: asks what the user may, replies the entry
 *
 * As fs_nameop_entry(); fh and a may be the call's. Ends the op.
 */
void fs_special_entry(struct fs_op *op, const struct nfs4_fh *fh, const struct nfs4_attr *a);

#endif
