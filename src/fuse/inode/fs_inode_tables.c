/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_dentry.h"
#include "fs_inode_record.h"
#include "fs_live.h"
#include "fs_tables.h"
#include "nfs4_tables.h"

#include <errno.h>
#include <string.h>

enum {
	NAMES_NAME = 10, /* several */
};

static bool put_name(void *ctx, const char *name, size_t len)
{
	tables_put_bytes(ctx, NAMES_NAME, name, len);
	return true;
}

static void put_inode(void *ctx, struct fs_inode *in)
{
	struct tables_out *t = ctx;

	mutex_lock(&in->lock);
	fs_inode_record_put(t, in, in->opened);
	tables_put(t, FS_TABLES_NLOOKUP, in->nlookup);
	tables_put(t, INODE_TOLD_CHANGE, in->told_change);
	/* Pages of which the kernel was not told that they are stale are no version's. */
	if (in->inval_want == in->inval_done)
		tables_put(t, INODE_DATA_CHANGE, in->data_change);
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

static int get_inode(const struct tables_record *r, struct fs *fs)
{
	uint64_t flags = tables_get(r, INODE_FLAGS);
	struct fs_inode *in;
	struct nfs4_fh fh;

	if (!nfs4_tables_get_fh(r, INODE_FH, &fh) || tables_get(r, INODE_TYPE) > NF4NAMEDATTR)
		return -EBADMSG;
	in = fs_inode_put_back(fs, tables_get(r, FS_TABLES_SLOT),
		(uint32_t)tables_get(r, INODE_GENERATION), &fh, tables_get(r, FS_TABLES_NLOOKUP));
	if (!in)
		return -ENOMEM;
	fs_inode_record_attr(r, &in->attr);
	in->told_change = tables_get(r, INODE_TOLD_CHANGE);
	in->data_change = tables_get(r, INODE_DATA_CHANGE);
	in->removed = flags & FLAG_REMOVED;
	in->opened = flags & FLAG_OPENED;
	in->nfs_names = (uint8_t)tables_get(r, INODE_NFS_NAMES);
	if (flags & FLAG_UNHASHED)
		fs_inode_unhash(fs, in);
	fs_live_inode(fs, in);
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
