/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open files: fs_file.c, fs_open.c, fs_create.c, fs_commit.c, fs_release.c.
 *
 * Context: the lane of the op; what is of a file alone, any lane.
 */
#ifndef RPCRDMAFS_FS_FILE_H
#define RPCRDMAFS_FS_FILE_H

#include "fs_inode.h"

/* An open file in the lane that looks at it again (fs_validate.h). */
struct fs_watch {
	/* under the lane's lock of that */
	struct list link;
	struct fs_lane *lane; /* NULL: nobody does */
	uint64_t due_s;       /* by the lane's clock */
	/* the lane's */
	uint32_t period_s;
	uint32_t seen; /* inode->inval_want when it was looked at last ... */
	uint32_t told; /* ... and when the kernel was told */
};

/* An open file. */
struct fs_file {
	struct fs_inode *inode;
	uint64_t handle;          /* fuse_file_info.fh (fs_handle.h) */
	struct list link;         /* inode->open_files, inode->lock */
	struct list all_link;     /* fs->files, table lock */
	struct fs_share *share;   /* whose state it is open by, from its OPEN on; referenced */
	struct nfs4_state *state; /* the share's; NULL: it has none */
	struct rpc_cred cred;     /* of the opener: READ, WRITE and CLOSE go out under it */
	uint32_t share_access;
	int flags;              /* O_* of the open */
	_Atomic uint32_t refs;  /* the handle itself and operations in flight */
				/* under inode->lock */
	bool opening;           /* counted in the inode's */
	_Atomic bool released;  /* its RELEASE has come: nothing more is read ahead */
	struct fs_ahead *ahead; /* fs_ahead.h; NULL: never read */
	uint32_t unstable;      /* fs_unstable_mems of it: data not committed yet */
	uint32_t writebacks;  /* its writebacks (fs_writeback.h): the server has not got them yet */
	int write_err;        /* data was lost: the next fsync or close tells it */
	_Atomic int next_err; /* that, or of the rest of a short write: the next write tells it */
	uint32_t abandoned;   /* operations of programs that died (fs_interrupt.c) ... */
	struct fs_op *releasing; /* ... which this RELEASE waits for */
	struct fs_watch watch;
	struct live *live; /* fs->live */
	bool data_goes;    /* fs->data_goes */
	live_ref live_ref; /* fs_share_tables.h */
	/* Of the process before (fs_share_tables.c): the request that opened it; 0: not known */
	uint64_t unique;
	bool in_doubt; /* ... was answered or not: fs_file_of_request() */
	bool left;     /* the kernel does not know of it, or has released it */
	bool lost;     /* data of it went with that process, which the server may not have */
};

/* ---- fs_file.c: open files ---- */

/* Takes a reference on the inode; not yet among its open files. NULL: out of memory. */
struct fs_file *fs_file_new(struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred,
	uint32_t share_access, int flags);
/* The same for one that another process had under this handle. NULL also: it is in use. */
struct fs_file *fs_file_put_back(struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred,
	uint32_t share_access, int flags, uint64_t handle);
/* Its OPEN is about to be sent: from here on the server's name of the inode is not removed. */
void fs_file_opening(struct fs *fs, struct fs_file *f);
/* It failed: fs_silly_finish() is to look whether the name is to go. */
void fs_file_not_opened(struct fs *fs, struct fs_file *f);
/*
 * It is open: among the inode's open files until fs_file_closed(). See fs_share_opened(). Table and
 * inode lock held.
 */
void fs_file_opened(struct fs *fs, struct fs_file *f);
void fs_file_closed(struct fs *fs, struct fs_file *f);
/* At the end: any file that is still open, with its handle's reference. NULL: none. */
struct fs_file *fs_file_take_any(struct fs *fs);
/* The server still has them open: for another process, after one could not take the mount over. */
void fs_file_put_all(struct fs *fs);
/*
 * fs_file_of_request - the handle that a process before this one gave, or was about to give
 *
 * unique: an OPEN or CREATE that is done again, since nobody knows whether it was answered. If true
 * the answer is with that handle, which stands, whether the kernel takes this answer or had one;
 * the file that this process opened for it is the caller's to close. Once. Any lane.
 */
bool fs_file_of_request(struct fs *fs, uint64_t unique, uint64_t *ret_handle);
struct fs_file *fs_file_get(struct fs_file *f);
void fs_file_put(struct fs *fs, struct fs_file *f);
/* The one of a request. NULL: the kernel has no such handle. */
static inline struct fs_file *fs_file_of(const struct fs *fs, const struct fuse_file_info *fi)
{
	return fs_handle_of(&fs->file_handles, fi->fh);
}
/* It wrote what the server has not got, or not durable. */
bool fs_file_is_dirty(struct fs_file *f);
/*
 * So many more of these (f->unstable, f->writebacks). Inode lock held. fs_unstable_count() and
 * fs_unstable_listed() call them, which also tell the inode whether it has any.
 */
void fs_file_unstable(struct fs_file *f, int more);
void fs_file_writebacks(struct fs_file *f, int more);
/*
 * Data of the file is lost: every open handle hears of it, once. One that cannot write, too: fsync
 * on it is about the file. Inode lock held.
 */
void fs_file_tell_error(struct fs_inode *in, int err);
bool fs_file_has_error(struct fs_file *f);
/*
 * An error for fsync or close to report on this handle, once; 0: none. Whoever takes the mount over
 * reports it as well, until fs_file_told().
 */
int fs_file_take_error(struct fs_file *f);
/*
 * One for the next write, once, as above. Data that was lost stays fsync's and close's to report: a
 * program that repeats the write that failed does not know of the one before it.
 */
int fs_file_next_error(struct fs_file *f);
/* The answer with the error was written. Errors that nobody has heard are the next one's; 0: none.
 */
void fs_file_told(struct fs_file *f, int write_err, int next_err);

#endif
