/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of FUSE requests, one for each operation of fuse_lowlevel_ops.
 * fs_ops.c puts them into the table; each lives in the file named beside it.
 *
 * How a handler looks: fs_op_begin(req) first (which fails for a nodeid that is
 * none: then it has replied), references and arguments copied into the
 * op, then fs_op_call(op, start) where `start` fills op->call->u, sets
 * op->call->cred and op->call->done and starts the NFS operation; ->done ends
 * with exactly one fs_reply_*() or starts the next call with the same op.
 *
 * Names and other pointers a handler gets lie in the receive buffer: they are
 * good until the handler returns, no longer. fi likewise: copy it (op->fi).
 *
 * Context: the lane that read the request.
 */
#ifndef RPCRDMAFS_FS_OPS_H
#define RPCRDMAFS_FS_OPS_H

#include "fs_op.h"

extern const struct fuse_lowlevel_ops fs_ops; /* fs_ops.c */

/* fs_session.c */
void fs_do_init(void *userdata, struct fuse_conn_info *conn);
void fs_do_destroy(void *userdata);

/* ---- data path ---- */

/* fs_open.c */
void fs_do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* fs_create.c */
void fs_do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *fi);
/* fs_read.c */
void fs_do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
/* fs_write.c */
void fs_do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi);
/* fs_space.c */
void fs_do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
	struct fuse_file_info *fi);
void fs_do_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
/* fs_copy.c */
void fs_do_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
	struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t off_out,
	struct fuse_file_info *fi_out, size_t len, int flags);
/* fs_flush.c */
void fs_do_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_do_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
/* fs_release.c */
/*
 * COMMIT if dirty, CLOSE, remove the .nfs file after the last; ends the op. op->file's reference
 * of the handle is given back with it.
 */
void fs_release(struct fs_op *op);
extern const struct fs_part fs_release_part;
void fs_do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* ---- names and attributes ---- */

/* fs_lookup.c */
void fs_do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
/* fs_forget.c: no op, no reply but fuse_reply_none() */
void fs_do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup);
void fs_do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
/* fs_getattr.c, fs_setattr.c, fs_access.c, fs_statfs.c, fs_readlink.c */
void fs_do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_do_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void fs_do_access(fuse_req_t req, fuse_ino_t ino, int mask);
void fs_do_statfs(fuse_req_t req, fuse_ino_t ino);
void fs_do_readlink(fuse_req_t req, fuse_ino_t ino);
/* making and removing names */
void fs_do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void fs_do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void fs_do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void fs_do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *newname);
void fs_do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
	const char *newname, unsigned int flags);
/* fs_xattr.c */
void fs_do_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
	size_t size, int flags);
void fs_do_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void fs_do_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void fs_do_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
/* fs_dir.c */
void fs_do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_do_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void fs_do_readdirplus(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void fs_do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_do_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
/* fs_lock.c */
void fs_do_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock);
void fs_do_setlk(
	fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock, int sleep);
void fs_do_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int how);

struct tables_out;
struct tables_record;

/* fs_dir.c. All FS_TABLES_DIR; one of them: 0; -EBADMSG; -ENOMEM. */
void fs_dir_tables_put(struct tables_out *t, struct fs *fs);
int fs_dir_tables_get(const struct tables_record *r, struct fs *fs);
/* fs_dir.c. At the end: directories that the kernel never closed. */
void fs_dir_put_all(struct fs *fs);

#endif
