/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the handlers of names and attributes share: noting the attributes that
 * a reply brought, and when a cached attribute may not be believed.
 *
 * Context: the lane of the op.
 */
#ifndef RPCRDMAFS_FS_NAMEOP_H
#define RPCRDMAFS_FS_NAMEOP_H

#include <string.h>

#include "fs_deleg.h"
#include "fs_ops.h"

/* Copies a name into dst; false: replied ENAMETOOLONG, the op is gone. */
bool fs_nameop_name(struct fs_op *op, char dst[FS_NAME_MAX + 1], const char *name);
static inline struct nfs4_str fs_nameop_str(const char *name)
{
	return (struct nfs4_str){name, (uint32_t)strlen(name)};
}

/* May some file have to be dealt with before its name goes: open here, or delegated? */
static inline bool fs_nameop_any_in_use(struct fs *fs)
{
	return atomic_load(&fs->files_open) > 0 || atomic_load(&fs->files_opening) > 0 ||
	       atomic_load(&fs->delegs->cnt) > 0;
}

/* The attributes of op->inode that a call read (dir_attr of a LOOKUP); valid may be 0. */
void fs_nameop_read(struct fs_op *op, const struct nfs4_attr *a);
/* The attributes of op->inode that a call changed (dir_attr of a CREATE). */
void fs_nameop_changed(struct fs_op *op, const struct nfs4_attr *a);
/*
 * fs_nameop_entry - the last step of whatever ends with a name: note the inode, reply the entry
 *
 * Ends the op. op->inode2 is the inode afterwards (one that was there is given back).
 */
void fs_nameop_entry(struct fs_op *op, const struct nfs4_fh *fh, const struct nfs4_attr *a);
/* Replies call->err; the inode the error speaks of is forgotten if it is stale. Ends the op. */
void fs_nameop_error(struct fs_op *op);

/*
 * fs_nameop_lookup - calls LOOKUP of `name` in `dir`, inside fs_op_call()
 *
 * dir, name: both outlive the call, as what is in the op does. done: finds u.lookup; where `dir`
 * is op->inode's, dir_attr is for fs_nameop_read().
 */
void fs_nameop_lookup(struct fs_op *op, const struct nfs4_fh *dir, const char *name,
	void (*done)(struct nfs4_call *call));
/* Calls REMOVE of op->name in op->inode, inside fs_op_call(); done ends in fs_nameop_remove_over().
 */
void fs_nameop_remove(struct fs_op *op, void (*done)(struct nfs4_call *call));
/* Notes what that REMOVE did, and replies. Ends the op. */
void fs_nameop_remove_over(struct fs_op *op);

/*
 * fs_access_check - asks the server whether op's user may do with `in` what mask says (R_OK...)
 *
 * in: op->inode or op->inode2. `then` runs with op->call: err is 0, -EACCES, or why the server
 * could not be asked; u.access.attr are the attributes that came with it, valid may be 0.
 */
void fs_access_check(
	struct fs_op *op, struct fs_inode *in, unsigned int mask, void (*then)(struct fs_op *op));

/*
 * A REMOVE or RENAME changes an inode we do not know: nlink and ctime of what lost or changed its
 * name. The kernel knows which, and asks for its attributes: ours, if cached, are too old then.
 */
void fs_nameop_renamed(uint64_t now_ns);
/* Like fs_attr_cached(), but not attributes from before such a change. */
bool fs_nameop_cached(struct fs_op *op, struct nfs4_attr *ret);

#endif
