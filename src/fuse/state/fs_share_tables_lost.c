/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_attr.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_share_tables.h"
#include "log.h"

#include <errno.h>

void fs_share_tables_lost(struct fs *fs)
{
	unsigned int cnt = 0;

	list_for_each (node, &fs->files) {
		struct fs_file *f = container_of(node, struct fs_file, all_link);

		if (!f->lost)
			continue;
		f->lost = false;
		cnt++;
		mutex_lock(&f->inode->lock);
		fs_file_tell_error(f->inode, EIO);
		mutex_unlock(&f->inode->lock);
		fs_attr_by_others(fs, f->inode); /* what the kernel has of it, nobody else has */
	}
	if (cnt > 0)
		log_warn("data of %u files that was not durable went with the daemon "
			 "(keep=tables): their programs get EIO",
			cnt);
}
