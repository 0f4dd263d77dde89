/* SPDX-License-Identifier: BSD-3-Clause */
#include "file_rig.h"

struct fake_file *file;
fuse_ino_t ino;
struct fuse_open_out fh;
struct rig_reply re;

void file_set_up(size_t size)
{
	rig_up(NULL);
	file = fake_add("f", size);
	ino = rig_ino(file);
}

void file_set_up_open(size_t size, int flags)
{
	file_set_up(size);
	cr_assert_eq(rig_open(ino, flags, &fh), 0);
}
