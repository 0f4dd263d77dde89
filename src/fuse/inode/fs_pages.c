/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_pages.h"

bool fs_pages_good(struct fs_inode *in, const struct nfs4_attr *a, bool compare)
{
	bool known = (a->valid & NFS4_ATTR_CHANGE) != 0;
	bool good;

	mutex_lock(&in->lock);
	good = known && in->data_change != 0 && in->inval_want == in->inval_done &&
	       (in->data_change == a->change || !compare);
	if (!good)
		in->data_change = 0;
	mutex_unlock(&in->lock);
	return good;
}

void fs_pages_dropped(struct fs_inode *in, const struct nfs4_attr *a, uint64_t seq)
{
	mutex_lock(&in->lock);
	/* A write of ours since then: what the answer describes is over. */
	if ((a->valid & NFS4_ATTR_CHANGE) && in->attr_seq <= seq)
		in->data_change = a->change;
	mutex_unlock(&in->lock);
}

bool fs_pages_told_other(struct fs_inode *in, const struct nfs4_attr *a)
{
	bool other;

	mutex_lock(&in->lock);
	other = in->told_change != 0 && in->told_change != a->change;
	mutex_unlock(&in->lock);
	return other;
}
