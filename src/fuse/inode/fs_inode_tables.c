/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_dentry.h"
#include "fs_tables.h"
#include "nfs4_tables.h"

#include <errno.h>
#include <string.h>

enum {
	INODE_GENERATION = 10,
	INODE_NLOOKUP = 11,
	INODE_FH = 12,
	INODE_TYPE = 13,
	INODE_FILEID = 14,
	INODE_FSID_MAJOR = 15,
	INODE_FSID_MINOR = 16,
	INODE_KNOWN = 17, /* KNOWN_*: which attributes follow */
	INODE_MODE = 18,
	INODE_UID = 19,
	INODE_GID = 20,
	INODE_TOLD_CHANGE = 21,
	INODE_DATA_CHANGE = 22,
	INODE_FLAGS = 23, /* FLAG_* */
	INODE_NFS_NAMES = 24,
};

enum {
	NAMES_NAME = 10, /* several */
};

/*
 * Attributes that say which file it is, and who may search it (fs_dentry.h). Their bits in the file
 * are these for ever, whatever nfs4.h has.
 */
static const struct {
	uint32_t valid, bit;
} known[] = {
	{NFS4_ATTR_TYPE, 1u << 0},
	{NFS4_ATTR_FILEID, 1u << 1},
	{NFS4_ATTR_FSID, 1u << 2},
	{NFS4_ATTR_MODE, 1u << 3},
	{NFS4_ATTR_OWNER, 1u << 4},
	{NFS4_ATTR_GROUP, 1u << 5},
};

#define FLAG_UNHASHED (1u << 0)
#define FLAG_REMOVED  (1u << 1)
#define FLAG_OPENED   (1u << 2)

static uint32_t flags_of(const struct fs_inode *in)
{
	return (in->unhashed ? FLAG_UNHASHED : 0) | (in->removed ? FLAG_REMOVED : 0) |
	       (in->opened ? FLAG_OPENED : 0);
}

static void put_attr(struct tables_out *t, const struct nfs4_attr *a)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		bits |= a->valid & known[i].valid ? known[i].bit : 0;
	tables_put(t, INODE_KNOWN, bits);
	tables_put(t, INODE_TYPE, (uint64_t)a->type);
	tables_put(t, INODE_FILEID, a->fileid);
	tables_put(t, INODE_FSID_MAJOR, a->fsid_major);
	tables_put(t, INODE_FSID_MINOR, a->fsid_minor);
	tables_put(t, INODE_MODE, a->mode);
	tables_put(t, INODE_UID, a->uid);
	tables_put(t, INODE_GID, a->gid);
}

static bool put_name(void *ctx, const char *name, size_t len)
{
	tables_put_bytes(ctx, NAMES_NAME, name, len);
	return true;
}

static void put_inode(void *ctx, struct fs_inode *in)
{
	struct tables_out *t = ctx;

	mutex_lock(&in->lock);
	tables_record(t, FS_TABLES_INODE);
	tables_put(t, FS_TABLES_SLOT, in->slot);
	tables_put(t, INODE_GENERATION, in->generation);
	tables_put(t, INODE_NLOOKUP, in->nlookup);
	tables_put_bytes(t, INODE_FH, in->fh, in->fh_len);
	put_attr(t, &in->attr);
	tables_put(t, INODE_TOLD_CHANGE, in->told_change);
	/* Pages of which the kernel was not told that they are stale are no version's. */
	if (in->inval_want == in->inval_done)
		tables_put(t, INODE_DATA_CHANGE, in->data_change);
	tables_put(t, INODE_FLAGS, flags_of(in));
	tables_put(t, INODE_NFS_NAMES, in->nfs_names);
	if (in->dentries) {
		tables_record(t, FS_TABLES_NAMES);
		tables_put(t, FS_TABLES_SLOT, in->slot);
		fs_dentry_store_each(in->dentries, put_name, t);
	}
	mutex_unlock(&in->lock);
}

void fs_inode_tables_put(struct tables_out *t, struct fs *fs)
{
	fs_inode_each(fs, put_inode, t);
}

static void get_attr(const struct tables_record *r, struct nfs4_attr *a)
{
	uint64_t bits = tables_get(r, INODE_KNOWN);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		a->valid |= bits & known[i].bit ? known[i].valid : 0;
	a->type = (enum nfs4_ftype)tables_get(r, INODE_TYPE);
	a->fileid = tables_get(r, INODE_FILEID);
	a->fsid_major = tables_get(r, INODE_FSID_MAJOR);
	a->fsid_minor = tables_get(r, INODE_FSID_MINOR);
	a->mode = (uint32_t)tables_get(r, INODE_MODE);
	a->uid = (uint32_t)tables_get(r, INODE_UID);
	a->gid = (uint32_t)tables_get(r, INODE_GID);
}

static int get_inode(const struct tables_record *r, struct fs *fs)
{
	uint64_t flags = tables_get(r, INODE_FLAGS);
	struct fs_inode *in;
	struct nfs4_fh fh;

	if (!nfs4_tables_get_fh(r, INODE_FH, &fh) || tables_get(r, INODE_TYPE) > NF4NAMEDATTR)
		return -EBADMSG;
	in = fs_inode_put_back(fs, tables_get(r, FS_TABLES_SLOT),
		(uint32_t)tables_get(r, INODE_GENERATION), &fh, tables_get(r, INODE_NLOOKUP));
	if (!in)
		return -ENOMEM;
	get_attr(r, &in->attr);
	in->told_change = tables_get(r, INODE_TOLD_CHANGE);
	in->data_change = tables_get(r, INODE_DATA_CHANGE);
	in->removed = flags & FLAG_REMOVED;
	in->opened = flags & FLAG_OPENED;
	in->nfs_names = (uint8_t)tables_get(r, INODE_NFS_NAMES);
	if (flags & FLAG_UNHASHED)
		fs_inode_unhash(fs, in);
	return 0;
}

static int get_names(const struct tables_record *r, struct fs *fs, uint64_t now_ns)
{
	struct fs_inode *dir = fs_inode_tables_of(r, FS_TABLES_SLOT, fs);
	char name[FS_NAME_MAX + 1];
	const void *p = NULL;
	size_t len;

	if (!dir)
		return -EBADMSG;
	while ((p = tables_get_next(r, NAMES_NAME, p, &len))) {
		if (len > FS_NAME_MAX || memchr(p, '\0', len))
			return -EBADMSG;
		memcpy(name, p, len);
		name[len] = '\0';
		if (!fs_dentry_told(fs, dir, name, now_ns))
			return -ENOMEM;
	}
	return 0;
}

int fs_inode_tables_get(const struct tables_record *r, struct fs *fs, uint64_t now_ns)
{
	return r->type == FS_TABLES_INODE ? get_inode(r, fs) : get_names(r, fs, now_ns);
}

struct fs_inode *fs_inode_tables_of(const struct tables_record *r, uint16_t field, struct fs *fs)
{
	struct fs_inode *in = fs_inode_get(fs, tables_get(r, field));

	/* The slot keeps it: nothing is put while tables are read. */
	if (in) {
		fs_inode_table_lock(fs);
		in->refs--;
		fs_inode_table_unlock(fs);
	}
	return in;
}
