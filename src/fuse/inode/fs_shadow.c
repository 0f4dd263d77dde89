/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_shadow.h"
#include "fs_inode.h"

bool fs_shadow_is_guarded(const struct fs *fs, const struct nfs4_attr *a)
{
	if (a->type != NF4FIFO && a->type != NF4SOCK && a->type != NF4CHR && a->type != NF4BLK)
		return false;
	if (fs->conf.default_permissions)
		return false;
	/* Of a mount that was handed over it is not known here for whom it is. */
	return fs->conf.allow_other || fs->mount_fd >= 0;
}

/* ---- which names are known by their shadows ---- */

/* FNV-1a; 0 stands for none. */
static uint64_t number_of(const struct fs_inode *dir, const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull ^ dir->slot ^ (uint64_t)dir->generation << 32;

	h *= 0x100000001b3ull;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	return h ? h : 1;
}

/* Those told last, which are the ones that something may have been mounted on since. */
static _Atomic uint64_t *place_of(struct fs *fs, uint64_t number)
{
	return &fs->shadowed[(number ^ number >> 32) % FS_SHADOWED];
}

void fs_shadow_tell(struct fs *fs, const struct fs_inode *dir, const char *name, bool shadow,
	struct fuse_entry_param *e)
{
	uint64_t number = number_of(dir, name);

	e->entry_timeout = e->attr_timeout = 0;
	if (shadow) {
		e->ino |= FS_INO_SHADOW;
		e->attr.st_rdev = 0;
		atomic_store(place_of(fs, number), number);
	} else {
		atomic_compare_exchange_strong(place_of(fs, number), &number, 0);
	}
}

void fs_shadow_each(struct fs *fs, void (*fn)(void *ctx, uint64_t number), void *ctx)
{
	for (size_t i = 0; i < FS_SHADOWED; i++)
		if (fs->shadowed[i])
			fn(ctx, fs->shadowed[i]);
}

void fs_shadow_put_back(struct fs *fs, uint64_t number)
{
	if (number)
		atomic_store(place_of(fs, number), number);
}

bool fs_shadow_was_told(struct fs *fs, const struct fs_inode *dir, const char *name)
{
	uint64_t number = number_of(dir, name);

	return atomic_load(place_of(fs, number)) == number;
}
