/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inode table: nodeid <-> filehandle, lookup counts.
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_INODE_H
#define RPCRDMAFS_FS_INODE_H

#include "fs_int.h"

/*
 * A nodeid has two forms, with this and without (fs_special.h): to the kernel two inodes, here the
 * same one. Its lookups are counted together.
 */
#define FS_INO_SHADOW (1ull << 32)

struct MUTEX_CAPABILITY fs_table;

int fs_inode_table_new(struct fs *fs);
void fs_inode_table_free(struct fs *fs); /* forgets everything */
/* Short: for fs->files and the table itself. */
void fs_inode_table_lock(struct fs *fs) MUTEX_ACQUIRES(fs->table);
void fs_inode_table_unlock(struct fs *fs) MUTEX_RELEASES(fs->table);
/*
 * fs_inode_lookup - the inode of a filehandle, made if new
 *
 * The same filehandle is the same inode; another fileid, fsid or type under it makes it stale.
 * attr is compared only (may be NULL): fs_attr_update() notes it. nlookup: references for the
 * kernel to add (0 or 1). The returned inode has one `refs` more: fs_inode_put(), or hand it to
 * the op (op->inode2). NULL: out of memory or no filehandle.
 */
struct fs_inode *fs_inode_lookup(struct fs *fs, const struct nfs4_fh *fh,
	const struct nfs4_attr *attr, unsigned int nlookup);
/* Only if it exists (unlink and rename: is the victim open?); takes a reference. */
struct fs_inode *fs_inode_find(struct fs *fs, const struct nfs4_fh *fh);
/* By nodeid; takes a reference. WIRE: NULL: it is none, or forgotten: ESTALE. */
struct fs_inode *fs_inode_get(struct fs *fs, fuse_ino_t ino);
struct fs_inode *fs_inode_ref(struct fs *fs, struct fs_inode *in);
/* NULL is accepted. */
void fs_inode_put(struct fs *fs, struct fs_inode *in);
void fs_inode_forget(struct fs *fs, fuse_ino_t ino, uint64_t nlookup);
/* Does the kernel hold it no more? */
bool fs_inode_is_forgotten(struct fs *fs, struct fs_inode *in);
/* The nodeid, without FS_INO_SHADOW. Of the inode that was made first, the root, it is
 * FUSE_ROOT_ID. */
fuse_ino_t fs_inode_ino(const struct fs *fs, const struct fs_inode *in);
void fs_inode_fh(const struct fs_inode *in, struct nfs4_fh *ret_fh);
uint64_t fs_inode_fileid(struct fs_inode *in);
/* No lookup by filehandle finds it any more; the kernel's references stay. */
void fs_inode_unhash(struct fs *fs, struct fs_inode *in);

#endif
