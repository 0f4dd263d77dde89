/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open files. A file is on its inode's list (who must hear of a lost write)
 * and on the mount's (what must be closed at the end) from its OPEN to its
 * CLOSE. References: the kernel's handle holds one, each operation another,
 * and so does data that it wrote until that is durable.
 */
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_facts.h"
#include "fs_live.h"
#include "fs_part.h"

#include <stdlib.h>

static void count_writer(const struct fs_file *f, int by)
{
	if (!(f->share_access & OPEN4_SHARE_ACCESS_WRITE))
		return;
	mutex_lock(&f->inode->lock);
	f->inode->writers += (uint32_t)by;
	mutex_unlock(&f->inode->lock);
}

/* handle: of another process; FS_HANDLE_NONE: a new one. */
static struct fs_file *file_new(struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred,
	uint32_t share_access, int flags, uint64_t handle)
{
	struct fs_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	fs_inode_table_lock(fs);
	if (handle == FS_HANDLE_NONE)
		f->handle = fs_handle_take(&fs->file_handles, f);
	else if (fs_handle_put(&fs->file_handles, handle, f))
		f->handle = handle;
	if (f->handle != FS_HANDLE_NONE)
		f->inode = fs_inode_ref_locked(in);
	fs_inode_table_unlock(fs);
	if (!f->inode) {
		free(f);
		return NULL;
	}
	f->live = fs->live;
	f->data_goes = fs->data_goes;
	f->cred = *cred;
	f->share_access = share_access;
	f->flags = flags;
	f->refs = 1;
	count_writer(f, 1);
	list_init(&f->link);
	list_init(&f->all_link);
	list_init(&f->watch.link);
	return f;
}

struct fs_file *fs_file_new(struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred,
	uint32_t share_access, int flags)
{
	return file_new(fs, in, cred, share_access, flags, FS_HANDLE_NONE);
}

struct fs_file *fs_file_put_back(struct fs *fs, struct fs_inode *in, const struct rpc_cred *cred,
	uint32_t share_access, int flags, uint64_t handle)
{
	return file_new(fs, in, cred, share_access, flags, handle);
}

void fs_file_opening(struct fs *fs, struct fs_file *f)
{
	mutex_lock(&f->inode->lock);
	f->opening = true;
	f->inode->opening++;
	mutex_unlock(&f->inode->lock);
	atomic_fetch_add(&fs->files_opening, 1);
}

/* Inode lock held. */
static void open_over(struct fs *fs, struct fs_file *f)
{
	if (!f->opening)
		return;
	f->opening = false;
	f->inode->opening--;
	atomic_fetch_sub(&fs->files_opening, 1);
}

void fs_file_not_opened(struct fs *fs, struct fs_file *f)
{
	mutex_lock(&f->inode->lock);
	open_over(fs, f);
	mutex_unlock(&f->inode->lock);
}

void fs_file_opened(struct fs *fs, struct fs_file *f)
{
	struct fs_inode *in = f->inode;

	mutex_assert_held(&in->lock);
	list_push_back(&fs->files, &f->all_link);
	list_push_back(&in->open_files, &f->link);
	in->opens++;
	in->opened = true;
	atomic_fetch_add(&fs->files_open, 1);
	open_over(fs, f);
}

bool fs_file_of_request(struct fs *fs, uint64_t unique, uint64_t *ret_handle)
{
	bool is = false;

	if (atomic_load_explicit(&fs->replays.files_in_doubt, memory_order_relaxed) == 0)
		return false;
	fs_inode_table_lock(fs);
	list_for_each (node, &fs->files) {
		struct fs_file *f = container_of(node, struct fs_file, all_link);

		if (is || !f->in_doubt || f->unique != unique)
			continue;
		is = true;
		f->in_doubt = false;
		*ret_handle = f->handle;
		atomic_fetch_sub(&fs->replays.files_in_doubt, 1);
	}
	fs_inode_table_unlock(fs);
	return is;
}

void fs_file_closed(struct fs *fs, struct fs_file *f)
{
	struct fs_inode *in = f->inode;

	fs_inode_table_lock(fs);
	list_del(&f->all_link);
	mutex_lock(&in->lock);
	list_del(&f->link);
	in->opens--;
	mutex_unlock(&in->lock);
	fs_inode_table_unlock(fs);
	atomic_fetch_sub(&fs->files_open, 1);
}

struct fs_file *fs_file_take_any(struct fs *fs)
{
	struct fs_file *f = NULL;

	fs_inode_table_lock(fs);
	if (!list_empty(&fs->files)) {
		f = list_first(&fs->files, struct fs_file, all_link);
		list_del(&f->all_link);
	}
	fs_inode_table_unlock(fs);
	return f;
}

void fs_file_put_all(struct fs *fs)
{
	struct fs_file *f;

	while ((f = fs_file_take_any(fs)) != NULL) {
		fs_file_closed(fs, f);
		fs_file_put(fs, f);
	}
}

struct fs_file *fs_file_get(struct fs_file *f)
{
	atomic_fetch_add(&f->refs, 1);
	return f;
}

void fs_file_put(struct fs *fs, struct fs_file *f)
{
	if (atomic_fetch_sub(&f->refs, 1) != 1)
		return;
	live_drop(f->live, &f->live_ref);
	count_writer(f, -1);
	if (f->opening)
		fs_file_not_opened(fs, f);
	fs_part_file_gone(fs, f);
	fs_inode_table_lock(fs);
	fs_handle_give(&fs->file_handles, f->handle);
	fs_inode_put_unlock(fs, f->inode);
	free(f);
}

void fs_file_unstable(struct fs_file *f, int more)
{
	mutex_assert_held(&f->inode->lock);
	f->unstable += (uint32_t)more;
	if (f->data_goes)
		fs_live_data(f);
}

void fs_file_writebacks(struct fs_file *f, int more)
{
	mutex_assert_held(&f->inode->lock);
	f->writebacks += (uint32_t)more;
	if (f->data_goes)
		fs_live_data(f);
}

bool fs_file_is_dirty(struct fs_file *f)
{
	bool dirty;

	mutex_lock(&f->inode->lock);
	dirty = f->unstable > 0 || f->writebacks > 0;
	mutex_unlock(&f->inode->lock);
	return dirty;
}

void fs_file_tell_error(struct fs_inode *in, int err)
{
	mutex_assert_held(&in->lock);
	list_for_each (node, &in->open_files) {
		struct fs_file *f = container_of(node, struct fs_file, link);

		f->write_err = err;
		f->next_err = err;
		fs_live_data(f);
	}
}

bool fs_file_has_error(struct fs_file *f)
{
	bool has;

	mutex_lock(&f->inode->lock);
	has = f->write_err || f->next_err;
	mutex_unlock(&f->inode->lock);
	return has;
}

int fs_file_take_error(struct fs_file *f)
{
	int err;

	mutex_lock(&f->inode->lock);
	err = f->write_err ? f->write_err : f->next_err;
	f->write_err = 0;
	f->next_err = 0;
	mutex_unlock(&f->inode->lock);
	return err;
}

int fs_file_next_error(struct fs_file *f)
{
	int err;

	if (f->next_err == 0) /* what comes from now on is for the write after this one */
		return 0;
	mutex_lock(&f->inode->lock);
	err = f->next_err;
	f->next_err = 0;
	mutex_unlock(&f->inode->lock);
	return err;
}

void fs_file_told(struct fs_file *f, int write_err, int next_err)
{
	mutex_lock(&f->inode->lock);
	if (!f->write_err)
		f->write_err = write_err;
	if (!f->next_err)
		f->next_err = next_err;
	fs_live_data(f);
	mutex_unlock(&f->inode->lock);
}
