/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a directory that is open is, is known through all renames by this
 * mount. One that was renamed before it was opened, and not looked up since,
 * may be anywhere: fs->moves has counted on since its place was noted.
 */
#include "fs_place.h"
#include "fs_attr.h"
#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_live.h"

/* FNV-1a. */
static uint32_t place_of(const struct fs_inode *dir, const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull ^ (uintptr_t)dir;

	h *= 0x100000001b3ull;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	return (uint32_t)(h ^ (h >> 32));
}

void fs_place_note(struct fs *fs, struct fs_inode *dir, struct fs_inode *in, const char *name)
{
	uint32_t moves = atomic_load(&fs->moves), place = place_of(dir, name);

	mutex_lock(&in->lock);
	in->place = place;
	in->place_moves = moves;
	mutex_unlock(&in->lock);
}

/* Other spellings of a name may stand for it as well. */
static bool may_be_at(const struct fs *fs, const struct fs_inode *in, uint32_t place)
{
	return in->place == place || in->place_moves != fs->moves ||
	       fs_facts(fs, in)->case_insensitive;
}

/* Table lock held. */
static void removed(struct fs *fs, const struct fs_inode *dir, uint32_t place)
{
	list_for_each (node, &fs->dirs) {
		struct fs_inode *in = container_of(node, struct fs_open_dir, link)->inode;
		bool gone = false;

		if (in == dir || in == fs->root)
			continue;
		mutex_lock(&in->lock);
		if (may_be_at(fs, in, place))
			gone = in->removed = true;
		mutex_unlock(&in->lock);
		if (!gone)
			continue;
		fs_attr_changed(in); /* what is cached has links */
		fs_live_inode_locked(fs, in);
	}
}

void fs_place_removed(struct fs *fs, struct fs_inode *dir, const char *name)
{
	fs_inode_table_lock(fs);
	removed(fs, dir, place_of(dir, name));
	fs_inode_table_unlock(fs);
}

void fs_place_moved(struct fs *fs, struct fs_inode *from, const char *name, struct fs_inode *to,
	const char *name2)
{
	uint32_t old = place_of(from, name), new = place_of(to, name2), moves;

	fs_inode_table_lock(fs);
	removed(fs, to, new);
	moves = atomic_load(&fs->moves);
	atomic_store(&fs->moves, moves + 1);
	list_for_each (node, &fs->dirs) {
		struct fs_inode *in = container_of(node, struct fs_open_dir, link)->inode;

		mutex_lock(&in->lock);
		if (in->place_moves == moves) {
			in->place = in->place == old ? new : in->place;
			in->place_moves = moves + 1;
		}
		mutex_unlock(&in->lock);
	}
	fs_inode_table_unlock(fs);
}

bool fs_place_last(struct fs_inode *in, struct nfs4_attr *ret)
{
	bool known;

	mutex_lock(&in->lock);
	known = in->removed && in->attr_known;
	if (known) {
		in->attr.nlink = 0;
		*ret = in->attr;
	}
	mutex_unlock(&in->lock);
	return known;
}
