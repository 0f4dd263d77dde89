/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_facts.h"

const struct nfs4_fs *fs_facts(const struct fs *fs, const struct fs_inode *in)
{
	uint16_t facts = atomic_load_explicit(&in->facts, memory_order_acquire);

	return facts ? nfs4_fs_at(fs->client, facts - 1) : &fs->unknown;
}

void fs_facts_note(struct fs *fs, struct fs_inode *in, const struct nfs4_attr *a)
{
	const struct nfs4_fs *facts = fs_facts(fs, in);

	if (!(a->valid & NFS4_ATTR_FSID) ||
		(facts != &fs->unknown && facts->fsid_major == a->fsid_major &&
			facts->fsid_minor == a->fsid_minor))
		return;
	facts = nfs4_fs_find(fs->client, a->fsid_major, a->fsid_minor);
	atomic_store_explicit(
		&in->facts, facts ? (uint16_t)(facts->nr + 1) : 0, memory_order_release);
}

void fs_facts_init(struct fs *fs)
{
	const struct nfs4_fs *root = &nfs4_client_fsinfo(fs->client)->fs;

	fs->unknown = (struct nfs4_fs){
		.rsize = root->rsize,
		.wsize = root->wsize,
		.maxname = FS_NAME_MAX,
		.maxfilesize = INT64_MAX,
		.supported = {UINT32_MAX, ~FATTR4_BIT(FATTR4_MOUNTED_ON_FILEID),
			~FATTR4_BIT(FATTR4_MODE_UMASK)},
		.case_insensitive = true,
	};
}

bool fs_facts_below(struct fs_inode *dir, const struct nfs4_attr *a)
{
	bool same;

	if (!(a->valid & NFS4_ATTR_FSID))
		return false;
	mutex_lock(&dir->lock);
	same = dir->attr.fsid_major == a->fsid_major && dir->attr.fsid_minor == a->fsid_minor;
	mutex_unlock(&dir->lock);
	return !same;
}

bool fs_facts_missing(struct fs *fs, struct fs_inode *dir, const struct nfs4_attr *a)
{
	return fs_facts_below(dir, a) && !nfs4_fs_find(fs->client, a->fsid_major, a->fsid_minor);
}
