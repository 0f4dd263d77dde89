/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FORGET: the kernel gives lookup counts back. No op: nothing is answered, and nothing sent but the
 * return of a delegation, which nobody will make use of.
 */
#include "fs_current.h"
#include "fs_deleg.h"
#include "fs_inode.h"
#include "fs_ops.h"

static void forget(struct fs *fs, fuse_ino_t ino, uint64_t nlookup)
{
	struct fs_inode *in;

	if (fs->delegs->cnt == 0) {
		fs_inode_forget(fs, ino, nlookup);
		return;
	}
	in = fs_inode_get(fs, ino);
	if (!in)
		return;
	fs_inode_forget(fs, ino, nlookup);
	if (fs_inode_is_forgotten(fs, in))
		fs_deleg_evict(fs, in);
	fs_inode_put(fs, in);
}

void fs_do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	forget(fs_current()->fs, ino, nlookup);
	fuse_reply_none(req);
}

void fs_do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct fs *fs = fs_current()->fs;

	for (size_t i = 0; i < count; i++)
		forget(fs, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}
