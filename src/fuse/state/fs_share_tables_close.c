/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_replay.h"
#include "fs_share.h"
#include "fs_share_tables.h"

#include <errno.h>
#include <linux/fuse.h>

/* As the kernel would close it, which has done that, or does not know of it. */
static bool close_left(struct fs *fs, const struct fs_file *f)
{
	const struct {
		struct fuse_in_header h;
		struct fuse_release_in release;
	} req = {
		.h =
			{
				.len = sizeof(req),
				.opcode = FUSE_RELEASE,
				.unique = fs_replay_unique(fs),
				.nodeid = f->inode->slot,
			},
		.release = {.fh = f->handle},
	};

	/* To the server an open that is done again by the same owner is this one. */
	return fs_replay_add_after(
		fs, &req, sizeof(req), f->share ? fs_replay_of_owner(fs, f->share->owner) : 0);
}

int fs_share_tables_close(struct fs *fs)
{
	list_for_each (node, &fs->files) {
		const struct fs_file *f = container_of(node, struct fs_file, all_link);

		if (f->left && !fs_replay_has_release(fs, f->handle) && !close_left(fs, f))
			return -ENOMEM;
	}
	return 0;
}
