/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unanswered requests that may be background ones to the kernel, which does not say which are:
 * fs->background of them; fs->full_ns is when there were max_background last.
 *
 * Context: the lane of the op.
 */
#ifndef RPCRDMAFS_FS_BACKGROUND_H
#define RPCRDMAFS_FS_BACKGROUND_H

#include "fs_op.h"

/* Its request was read. */
void fs_background_begin(struct fs_op *op);
/* Right before its answer. */
void fs_background_end(struct fs_op *op);

#endif
