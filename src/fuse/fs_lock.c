/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks that are not local (local_lock=, nolock: the kernel then keeps them and
 * never asks) belong on the server. Until LOCK is spoken there they are refused
 * loudly: a lock that only this machine knows of would corrupt data. ENOLCK is
 * what the kernel's client says of a server without locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "fs_ops.h"

void fs_do_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{
	fs_reply_err(fs_op_begin(req, ino), ENOLCK);
}

/* Giving back what nobody can hold is fine: programs unlock without asking whether they may. */
void fs_do_setlk(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock, int sleep)
{
	fs_reply_err(fs_op_begin(req, ino), lock->l_type == F_UNLCK ? 0 : ENOLCK);
}

void fs_do_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	fs_reply_err(fs_op_begin(req, ino), op & LOCK_UN ? 0 : ENOLCK);
}
