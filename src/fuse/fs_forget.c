/* SPDX-License-Identifier: BSD-3-Clause */
/* FORGET: the kernel gives lookup counts back. No op: nothing is sent, nothing is answered. */
#include "fs_ops.h"

void fs_do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	fs_inode_forget(fs_lane_current()->fs, ino, nlookup);
	fuse_reply_none(req);
}

void fs_do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct fs *fs = fs_lane_current()->fs;

	for (size_t i = 0; i < count; i++)
		fs_inode_forget(fs, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}
