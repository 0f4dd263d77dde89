/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a mount: delegations, locks, read-ahead, write-back and the like. The rooms lane and
 * inode name none of them. Each part has one struct fs_part in its own file; the table of all is in
 * fs.c, and fs->parts is that table. The rooms below call the parts by these hooks; each hook may
 * be NULL.
 *
 * Context: the thread of the lane, no lock held.
 */
#ifndef RPCRDMAFS_FS_PART_H
#define RPCRDMAFS_FS_PART_H

#include "fs_inode.h"

struct fs_lane;
struct fs_op;
struct fs_file;

struct fs_part {
	/* Bytes that each operation has for this part, for ever ... */
	size_t op_size;
	/* ... zeroed, when the operation is made: sets its pointer at them. */
	void (*op_made)(struct fs_op *op, void *mem);
	/* The same for each lane, when it is made, and before any part's lane_init. */
	size_t lane_size;
	void (*lane_made)(struct fs_lane *l, void *mem);
	/* In the table's order. False: out of memory, and nothing of this part is left. */
	bool (*lane_init)(struct fs_lane *l);
	/* In the opposite order; no operation is in work and no file is open. */
	void (*lane_fini)(struct fs_lane *l);
	/* The lane reads requests from now on; files may be open that another process opened. */
	void (*lane_started)(struct fs_lane *l);
	/* The lane is about to end: this part begins nothing more, and ends what waits. */
	void (*lane_stop)(struct fs_lane *l);
	/* Within fs_lane_turn(): something was given back. */
	void (*lane_turn)(struct fs_lane *l);
	/* After fs_lane_kick(). */
	void (*lane_kicked)(struct fs_lane *l);
	/* Calls of the session are free after a time without any. */
	void (*lane_unblocked)(struct fs_lane *l);
	/*
	 * The lane reads no more and has no operation in work. True: this part has nothing either;
	 * else it calls fs_lane_turn() when it has not.
	 */
	bool (*lane_drained)(struct fs_lane *l);
	/*
	 * A file that the kernel never released, at the end: op->file, which is this operation's
	 * to close; op->inode and op->cred are the file's. The operation ends itself. One part has
	 * this hook.
	 */
	void (*file_left)(struct fs_op *op);
	/* The program that asked for it died; a lane is about to answer it before it has ended. */
	void (*op_abandoned)(struct fs_op *op);
	/*
	 * It ends, and a part has something of it (op->bars, op->deleg). True: it is this part's
	 * own operation, not one of the lane's pool.
	 */
	bool (*op_ended)(struct fs_op *op);
	/* It goes: what this part has of it. No lock held; nobody else knows it. */
	void (*inode_gone)(struct fs_inode *in);
	/*
	 * Of an inode that was written to (in->unstable), inode lock held; one part has each. Where
	 * the last byte ends that the server has not got yet, or may lose.
	 */
	uint64_t (*inode_end)(const struct fs_inode *in);
	/* Is data on its way, or yet to be sent? */
	bool (*inode_is_dirty)(const struct fs_inode *in);
	/* Somebody else changed it. True: what is uncommitted is to be committed soon. */
	bool (*inode_changed)(struct fs_inode *in);
	/* Of one with a delegation (in->deleg): does that say that nobody else changes it? */
	bool (*inode_is_vouched)(const struct fs_inode *in);
	/* The kernel is told this size. */
	void (*inode_told)(struct fs_inode *in, uint64_t size);
	/* The last reference is put. Any thread; f->inode is still there. */
	void (*file_gone)(struct fs_file *f);
};

/* From fs_new(): `parts` ends with NULL, and lives as long as fs does. */
void fs_part_init(struct fs *fs, const struct fs_part *const *parts);
/* Each calls that hook of all parts; fs_part_lane_init() takes back what it did before a failure.
 */
size_t fs_part_op_size(const struct fs *fs);
size_t fs_part_lane_size(const struct fs *fs);
void fs_part_lane_made(const struct fs *fs, struct fs_lane *l, void *mem);
void fs_part_op_made(const struct fs *fs, struct fs_op *op, void *mem);
bool fs_part_lane_init(const struct fs *fs, struct fs_lane *l);
void fs_part_lane_fini(const struct fs *fs, struct fs_lane *l);
void fs_part_lane_started(const struct fs *fs, struct fs_lane *l);
void fs_part_lane_stop(const struct fs *fs, struct fs_lane *l);
void fs_part_lane_turn(const struct fs *fs, struct fs_lane *l);
void fs_part_lane_kicked(const struct fs *fs, struct fs_lane *l);
void fs_part_lane_unblocked(const struct fs *fs, struct fs_lane *l);
bool fs_part_lane_drained(const struct fs *fs, struct fs_lane *l);
void fs_part_op_abandoned(const struct fs *fs, struct fs_op *op);
bool fs_part_op_ended(const struct fs *fs, struct fs_op *op);
void fs_part_inode_gone(const struct fs *fs, struct fs_inode *in);
bool fs_part_inode_is_vouched(const struct fs *fs, const struct fs_inode *in);
uint64_t fs_part_inode_end(const struct fs *fs, const struct fs_inode *in);
bool fs_part_inode_is_dirty(const struct fs *fs, const struct fs_inode *in);
bool fs_part_inode_changed(const struct fs *fs, struct fs_inode *in);
void fs_part_inode_told(const struct fs *fs, struct fs_inode *in, uint64_t size);
void fs_part_file_left(const struct fs *fs, struct fs_op *op);
void fs_part_file_gone(struct fs *fs, struct fs_file *f);

#endif
