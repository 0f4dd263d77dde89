/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMDIR: REMOVE. close(2) does not wait for what it leaves to us: a program that
 * closes a file, removes it, and then its directory may come before the file is
 * closed here, and find a .nfs file there (fs_silly.c). Which lane closes it, and
 * whether it has begun to, is not known, nor whether others have it open:
 *
 *   REMOVE   ENOTEMPTY, and there is a .nfs file of ours somewhere
 *   LOOKUP   which directory it is
 *   wait     until none is left in it, or one that nobody closes
 *   REMOVE   what this says is the answer
 *
 * ENOTEMPTY may also be older than the removal of a .nfs file, and be heard after
 * it: then the directory is removed again.
 *
 * A directory that another file system is mounted on is NFS4ERR_FILE_OPEN, and
 * NFS4ERR_ACCESS from a newer Linux server: a LOOKUP tells whether that is why.
 */
#include <errno.h>
#include <stdatomic.h>

#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_place.h"
#include "fs_reply.h"
#include "fs_silly.h"

#define LOOK_NS (2 * NSEC_PER_MSEC)
/* Times that REMOVE is sent again because .nfs files went meanwhile, from wherever. */
#define STALE_ASKS 50u
/* For a close that no lane has read yet, and for those in work anywhere. */
#define WAIT_NS       (500 * NSEC_PER_MSEC)
#define WAIT_CLOSE_NS (3 * NSEC_PER_SEC)

/* A RMDIR while it waits for the end of .nfs files. */
struct rmdir {
	struct fs_op *op;
	struct reactor_timer tick;
	uint64_t since;
	uint32_t gone;     /* fs->sillies_gone when the server was asked */
	unsigned int asks; /* whose answer a .nfs file may have outlived */
};

static struct rmdir *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct rmdir);
	return op->work;
}

static void remove_start(struct fs_op *op);

static bool is_over(const struct fs_op *op)
{
	uint64_t waited = fs_op_now(op) - work(op)->since;

	if (op->abandoned || !fs_silly_left(op->inode2))
		return true;
	return waited >= (atomic_load(&op->lane->fs->releasing) > 0 ? WAIT_CLOSE_NS : WAIT_NS);
}

static void look(struct fs_op *op)
{
	if (is_over(op))
		fs_op_call(op, remove_start);
	else
		reactor_timer_in(op->lane->reactor, &work(op)->tick, LOOK_NS);
}

static void ticked(struct reactor_timer *t)
{
	look(container_of(t, struct rmdir, tick)->op);
}

static void victim_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	fs_nameop_read(op, &call->u.lookup.dir_attr);
	if (call->err != 0) {
		fs_nameop_error(op);
		return;
	}
	op->inode2 = fs_inode_find(op->lane->fs, &call->u.lookup.fh);
	fs_op_put_call(op);
	if (op->inode2 == NULL) { /* nor do we know of a file in it */
		fs_reply_err(op, ENOTEMPTY);
		return;
	}
	work(op)->since = fs_op_now(op);
	work(op)->op = op;
	reactor_timer_init(&work(op)->tick, ticked);
	look(op);
}

static void victim_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, victim_done);
}

static void refused_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	fs_nameop_read(op, &call->u.lookup.dir_attr);
	fs_reply_err(op,
		call->err == 0 && fs_facts_below(op->inode, &call->u.lookup.attr) ? EBUSY : EACCES);
}

static void refused_start(struct fs_op *op)
{
	fs_nameop_lookup(op, &op->fh, op->name, refused_done);
}

static bool is_stale(struct fs_op *op)
{
	return atomic_load(&op->lane->fs->sillies_gone) != work(op)->gone &&
	       work(op)->asks++ < STALE_ASKS;
}

static void over(struct fs_op *op)
{
	if (op->call->err == 0)
		fs_place_removed(op->lane->fs, op->inode, op->name);
	fs_nameop_remove_over(op);
}

static void remove_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err == -EACCES && !op->abandoned)
		fs_op_call(op, refused_start);
	else if (call->err != -ENOTEMPTY || op->inode2 != NULL || op->abandoned)
		over(op);
	else if (atomic_load(&op->lane->fs->sillies) > 0)
		fs_op_call(op, victim_start);
	else if (is_stale(op))
		fs_op_call(op, remove_start);
	else
		over(op);
}

static void remove_start(struct fs_op *op)
{
	work(op)->gone = atomic_load(&op->lane->fs->sillies_gone);
	fs_nameop_remove(op, remove_done);
}

void fs_do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs_op *op = fs_op_begin(req, parent);

	if (op != NULL && fs_nameop_name(op, op->name, name))
		fs_op_call(op, remove_start);
}
