/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_live.h"
#include "fs_file.h"
#include "fs_inode_record.h"
#include "fs_slot.h"

#include <errno.h>

void fs_live_put(
	const struct fs *fs, live_ref *ref, const struct live_key *key, struct tables_out *t)
{
	live_put(fs->live, ref, key, t);
	tables_end_in(t);
}

/* Table and inode lock held. */
static void put_inode(struct fs *fs, struct fs_inode *in)
{
	const struct live_key key = {
		.rank = FS_LIVE_RANK_INODE, .group = in->slot, .count_field = FS_TABLES_NLOOKUP};
	struct tables_out t;

	tables_begin_in(&t);
	/* When a file is opened first is not noted: one record less. */
	fs_inode_record_put(&t, in, in->attr.type != NF4DIR);
	in->live_old = false;
	fs_live_put(fs, &in->live_ref, &key, &t);
}

void fs_live_inode_locked(struct fs *fs, struct fs_inode *in)
{
	if (!fs->live)
		return;
	mutex_lock(&in->lock);
	put_inode(fs, in);
	mutex_unlock(&in->lock);
	live_count(fs->live, fs->live_ref, fs_inode_generation(fs));
}

void fs_live_inode(struct fs *fs, struct fs_inode *in)
{
	if (!fs->live)
		return;
	fs_inode_table_lock(fs);
	fs_live_inode_locked(fs, in);
	fs_live_lookups(fs, in);
	fs_inode_table_unlock(fs);
}

void fs_live_lookups(struct fs *fs, struct fs_inode *in)
{
	live_count(fs->live, in->live_ref, in->nlookup);
}

void fs_live_inode_gone(struct fs *fs, struct fs_inode *in)
{
	live_drop(fs->live, &in->live_ref);
}

/* Of fs_live_data(): bits, and two errors. */
#define RELEASED  (1ull << 0)
#define GOES      (1ull << 1)
#define WRITE_ERR 16u
#define NEXT_ERR  32u
#define ERR_MASK  0xffffu

void fs_live_data(const struct fs_file *f)
{
	uint64_t data = f->released ? RELEASED : 0;

	if (!f->live)
		return;
	if (f->data_goes && (f->unstable > 0 || f->writebacks > 0))
		data |= GOES;
	data |= ((uint64_t)f->write_err & ERR_MASK) << WRITE_ERR;
	data |= ((uint64_t)f->next_err & ERR_MASK) << NEXT_ERR;
	live_count(f->live, f->live_ref, data);
}

void fs_live_data_get(struct fs_file *f, uint64_t data)
{
	f->left = data & RELEASED;
	f->lost = data & GOES;
	if (f->lost) {
		f->write_err = EIO;
		f->next_err = EIO;
	}
	if (data >> WRITE_ERR & ERR_MASK)
		f->write_err = (int)(data >> WRITE_ERR & ERR_MASK);
	if (data >> NEXT_ERR & ERR_MASK)
		f->next_err = (int)(data >> NEXT_ERR & ERR_MASK);
}
