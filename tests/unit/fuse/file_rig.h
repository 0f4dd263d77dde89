/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of one file: it is on the server, and the kernel knows its node. */
#ifndef RPCRDMAFS_FILE_RIG_H
#define RPCRDMAFS_FILE_RIG_H

/* First: its functions have parameters of the names below. */
#include "lock_rig.h"

extern struct fake_file *file;
extern fuse_ino_t ino;
extern struct fuse_open_out fh; /* of file_set_up_open() */
extern struct rig_reply re;     /* for the test's own requests */

/* The rig with the default configuration, and a file of `size` bytes in it. */
void file_set_up(size_t size);
/* And it is open. */
void file_set_up_open(size_t size, int flags);

#endif
