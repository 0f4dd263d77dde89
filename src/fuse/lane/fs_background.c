/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_background.h"
#include "fs_op.h"

#include <linux/fuse.h>

void fs_background_begin(struct fs_op *op)
{
	op->background = op->opcode == FUSE_READ || op->opcode == FUSE_WRITE ||
			 op->opcode == FUSE_RELEASE || op->opcode == FUSE_RELEASEDIR;
	if (op->background)
		atomic_fetch_add(&op->lane->fs->background, 1);
}

/* Right before the answer: what it lets out comes a little later. */
void fs_background_end(struct fs_op *op)
{
	struct fs *fs = op->lane->fs;

	if (!op->background)
		return;
	op->background = false;
	if (atomic_load(&fs->background) >= fs->max_background)
		atomic_store(&fs->full_ns, fs_op_now(op));
	atomic_fetch_sub(&fs->background, 1);
}
