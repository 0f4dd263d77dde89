/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_ops.h"

/*
 * write, never write_buf: with write_buf libfuse turns splice on, and the payload would land in a
 * pipe instead of a registered buffer. What is not here is answered ENOSYS by libfuse, which the
 * kernel remembers: it then does without.
 */
const struct fuse_lowlevel_ops fs_ops = {
	.init = fs_do_init,
	.destroy = fs_do_destroy,
	.lookup = fs_do_lookup,
	.forget = fs_do_forget,
	.forget_multi = fs_do_forget_multi,
	.getattr = fs_do_getattr,
	.setattr = fs_do_setattr,
	.readlink = fs_do_readlink,
	.mknod = fs_do_mknod,
	.mkdir = fs_do_mkdir,
	.unlink = fs_do_unlink,
	.rmdir = fs_do_rmdir,
	.symlink = fs_do_symlink,
	.rename = fs_do_rename,
	.link = fs_do_link,
	.open = fs_do_open,
	.create = fs_do_create,
	.read = fs_do_read,
	.write = fs_do_write,
	.flush = fs_do_flush,
	.release = fs_do_release,
	.fsync = fs_do_fsync,
	.opendir = fs_do_opendir,
	.readdir = fs_do_readdir,
	.readdirplus = fs_do_readdirplus,
	.releasedir = fs_do_releasedir,
	.fsyncdir = fs_do_fsyncdir,
	.statfs = fs_do_statfs,
	.setxattr = fs_do_setxattr,
	.getxattr = fs_do_getxattr,
	.listxattr = fs_do_listxattr,
	.removexattr = fs_do_removexattr,
	.access = fs_do_access,
	.getlk = fs_do_getlk,
	.setlk = fs_do_setlk,
	.flock = fs_do_flock,
	.fallocate = fs_do_fallocate,
	.lseek = fs_do_lseek,
	.copy_file_range = fs_do_copy_file_range,
};
