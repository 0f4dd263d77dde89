/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_inode_record.h"

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

static uint32_t flags_of(const struct fs_inode *in, bool opened)
{
	return (in->unhashed ? FLAG_UNHASHED : 0) | (in->removed ? FLAG_REMOVED : 0) |
	       (opened ? FLAG_OPENED : 0);
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

void fs_inode_record_put(struct tables_out *t, const struct fs_inode *in, bool opened)
{
	tables_record(t, FS_TABLES_INODE);
	tables_put(t, FS_TABLES_SLOT, in->slot);
	tables_put(t, INODE_GENERATION, in->generation);
	tables_put_bytes(t, INODE_FH, in->fh, in->fh_len);
	put_attr(t, &in->attr);
	tables_put(t, INODE_FLAGS, flags_of(in, opened));
	tables_put(t, INODE_NFS_NAMES, in->nfs_names);
}

bool fs_inode_record_differs(const struct nfs4_attr *a, const struct nfs4_attr *b)
{
	uint32_t valid = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		valid |= known[i].valid;
	return (b->valid & valid & ~a->valid) ||
	       ((b->valid & NFS4_ATTR_TYPE) && a->type != b->type) ||
	       ((b->valid & NFS4_ATTR_FILEID) && a->fileid != b->fileid) ||
	       ((b->valid & NFS4_ATTR_FSID) &&
		       (a->fsid_major != b->fsid_major || a->fsid_minor != b->fsid_minor)) ||
	       ((b->valid & NFS4_ATTR_MODE) && a->mode != b->mode) ||
	       ((b->valid & NFS4_ATTR_OWNER) && a->uid != b->uid) ||
	       ((b->valid & NFS4_ATTR_GROUP) && a->gid != b->gid);
}

void fs_inode_record_note(struct nfs4_attr *to, const struct nfs4_attr *a)
{
	const uint32_t v = a->valid;

	if (v & NFS4_ATTR_TYPE)
		to->type = a->type;
	if (v & NFS4_ATTR_FILEID)
		to->fileid = a->fileid;
	if (v & NFS4_ATTR_FSID) {
		to->fsid_major = a->fsid_major;
		to->fsid_minor = a->fsid_minor;
	}
	if (v & NFS4_ATTR_MODE)
		to->mode = a->mode;
	if (v & NFS4_ATTR_OWNER)
		to->uid = a->uid;
	if (v & NFS4_ATTR_GROUP)
		to->gid = a->gid;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		to->valid |= v & known[i].valid;
}

void fs_inode_record_attr(const struct tables_record *r, struct nfs4_attr *a)
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
