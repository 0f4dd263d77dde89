/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_part.h"

#include <assert.h>
#include <stddef.h>

void fs_part_init(struct fs *fs, const struct fs_part *const *parts)
{
	unsigned int cnt = 0;

	fs->parts = parts;
	for (; *parts; parts++) {
		if (!(*parts)->lane_turn)
			continue;
		assert(cnt < FS_TURNERS);
		fs->turners[cnt++] = *parts;
	}
}

/* The next part's memory is aligned for any structure. */
static size_t aligned(size_t size)
{
	return (size + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
}

size_t fs_part_op_size(const struct fs *fs)
{
	size_t size = 0;

	for (const struct fs_part *const *p = fs->parts; *p; p++)
		size += aligned((*p)->op_size);
	return size;
}

size_t fs_part_lane_size(const struct fs *fs)
{
	size_t size = 0;

	for (const struct fs_part *const *p = fs->parts; *p; p++)
		size += aligned((*p)->lane_size);
	return size;
}

void fs_part_op_made(const struct fs *fs, struct fs_op *op, void *mem)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++) {
		if ((*p)->op_made)
			(*p)->op_made(op, mem);
		mem = (char *)mem + aligned((*p)->op_size);
	}
}

void fs_part_lane_made(const struct fs *fs, struct fs_lane *l, void *mem)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++) {
		if ((*p)->lane_made)
			(*p)->lane_made(l, mem);
		mem = (char *)mem + aligned((*p)->lane_size);
	}
}

/* Of those before `end`, the last one first. */
static void fini_before(const struct fs *fs, struct fs_lane *l, const struct fs_part *const *end)
{
	while (end != fs->parts) {
		end--;
		if ((*end)->lane_fini)
			(*end)->lane_fini(l);
	}
}

bool fs_part_lane_init(const struct fs *fs, struct fs_lane *l)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++) {
		if (!(*p)->lane_init || (*p)->lane_init(l))
			continue;
		fini_before(fs, l, p);
		return false;
	}
	return true;
}

void fs_part_lane_fini(const struct fs *fs, struct fs_lane *l)
{
	const struct fs_part *const *end = fs->parts;

	while (*end)
		end++;
	fini_before(fs, l, end);
}

void fs_part_lane_stop(const struct fs *fs, struct fs_lane *l)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->lane_stop)
			(*p)->lane_stop(l);
}

void fs_part_lane_turn(const struct fs *fs, struct fs_lane *l)
{
	for (const struct fs_part *const *p = fs->turners; *p; p++)
		(*p)->lane_turn(l);
}

void fs_part_lane_started(const struct fs *fs, struct fs_lane *l)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->lane_started)
			(*p)->lane_started(l);
}

void fs_part_lane_kicked(const struct fs *fs, struct fs_lane *l)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->lane_kicked)
			(*p)->lane_kicked(l);
}

void fs_part_lane_unblocked(const struct fs *fs, struct fs_lane *l)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->lane_unblocked)
			(*p)->lane_unblocked(l);
}

bool fs_part_lane_drained(const struct fs *fs, struct fs_lane *l)
{
	bool all = true; /* each is asked: it may have to begin its end */

	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->lane_drained && !(*p)->lane_drained(l))
			all = false;
	return all;
}

void fs_part_file_left(const struct fs *fs, struct fs_op *op)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->file_left)
			(*p)->file_left(op);
}

void fs_part_file_gone(struct fs *fs, struct fs_file *f)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->file_gone)
			(*p)->file_gone(f);
}

void fs_part_op_abandoned(const struct fs *fs, struct fs_op *op)
{
	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->op_abandoned)
			(*p)->op_abandoned(op);
}

bool fs_part_op_ended(const struct fs *fs, struct fs_op *op)
{
	bool own = false;

	for (const struct fs_part *const *p = fs->parts; *p; p++)
		if ((*p)->op_ended && (*p)->op_ended(op))
			own = true;
	return own;
}

uint64_t fs_part_inode_end(const struct fs *fs, const struct fs_inode *in)
{
	for (const struct fs_part *const *p = fs->parts; in->unstable && *p; p++)
		if ((*p)->inode_end)
			return (*p)->inode_end(in);
	return 0;
}

bool fs_part_inode_is_dirty(const struct fs *fs, const struct fs_inode *in)
{
	for (const struct fs_part *const *p = fs->parts; in->unstable && *p; p++)
		if ((*p)->inode_is_dirty)
			return (*p)->inode_is_dirty(in);
	return false;
}

bool fs_part_inode_changed(const struct fs *fs, struct fs_inode *in)
{
	for (const struct fs_part *const *p = fs->parts; in->unstable && *p; p++)
		if ((*p)->inode_changed)
			return (*p)->inode_changed(in);
	return false;
}

void fs_part_inode_told(const struct fs *fs, struct fs_inode *in, uint64_t size)
{
	for (const struct fs_part *const *p = fs->parts; in->unstable && *p; p++)
		if ((*p)->inode_told)
			(*p)->inode_told(in, size);
}

bool fs_part_inode_is_vouched(const struct fs *fs, const struct fs_inode *in)
{
	for (const struct fs_part *const *p = fs->parts; in->deleg && *p; p++)
		if ((*p)->inode_is_vouched)
			return (*p)->inode_is_vouched(in);
	return false;
}

void fs_part_inode_gone(const struct fs *fs, struct fs_inode *in)
{
	bool any = in->unstable || atomic_load(&in->lockowners);

	for (const struct fs_part *const *p = fs->parts; any && *p; p++)
		if ((*p)->inode_gone)
			(*p)->inode_gone(in);
}
