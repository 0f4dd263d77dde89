/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_file_range on the mount: the server lets files share blocks (CLONE, RFC
 * 7862 section 15.13) or copies (COPY, section 4), no data comes here. Whatever
 * the server or we cannot do is EOPNOTSUPP: the kernel then reads and writes,
 * and whoever is to hear of an error hears it from those. With NFSv4.1 it is
 * ENOSYS, which it remembers.
 *
 * Before, what is unstable of both files is committed: the server may have
 * lost it, or would be given it again on top of the copy. The gate (fs_unstable.h)
 * is entered for as long as the server may change the destination.
 *
 *   whole blocks, to the end     CLONE; refused: COPY, and for good where there is no CLONE
 *   little, or no back channel   COPY, waits for the answer; parts, as the server likes
 *   else                         COPY, answered at once: fs_copywait.c
 *
 * Within one file only CLONE copies.
 *
 * What is not FILE_SYNC is committed at the end, or now and then; another
 * verifier than the COPY's: once more from where it was durable.
 *
 * Context: the lane of the operation.
 */
#include "fs_current.h"
#include "fs_copy.h"
#include "fs_attr.h"
#include "fs_facts.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_op.h"
#include "fs_ops.h"
#include "fs_reply.h"
#include "fs_unstable.h"
#include "fs_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In one request: its answer has 32 bits, and what a restart takes is copied again. */
#define COPY_MAX (1u << 30)
/* The same, if the server moves it: what comes after a crash of ours waits for so much of it. */
#define COPY_PART (64u << 20)
/* Not durable yet, at most, before it is committed. */
#define PENDING_MAX (64u << 20)
/* Verifiers that changed. */
#define TRIES 3u
/* Of servers that do not tell their clone_blksize: smaller blocks are rare, larger ones refuse. */
#define CLONE_BLKSIZE 4096u

static void copy_start(struct fs_op *op);

/* ---- the end ---- */

void fs_copy_finish(struct fs_op *op, int err)
{
	struct fs_copy *c = fs_copy_of(op);
	struct fs *fs = op->lane->fs;

	fs_rewrite_leave(op);
	/* The kernel drops the pages, and takes the size, that it hears of. */
	if (((c->torn || c->done > c->durable) && c->durable < op->size) || (c->sent && !op->req)) {
		fs_attr_changed(op->inode);
		fs_notify_inval_inode(fs, op->inode, op->off, (off_t)op->size);
	}
	if (c->durable > 0)
		fs_reply_write(op, c->durable);
	else
		fs_reply_err(op, err ? err : EOPNOTSUPP);
}

/* Also when the session is dead it ends here. */
static void call_for(struct fs_op *op, void (*start)(struct fs_op *op))
{
	op->failed = fs_copy_finish;
	fs_op_call(op, start);
}

/* ---- COMMIT ---- */

static void again(struct fs_op *op)
{
	struct fs_copy *c = fs_copy_of(op);

	c->done = c->durable;
	c->torn = true;
	if (++c->tries > TRIES)
		fs_copy_finish(op, EOPNOTSUPP);
	else
		call_for(op, copy_start);
}

static void commit_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_commit *o = &call->u.commit;
	struct fs_copy *c = fs_copy_of(op);

	if (call->err) {
		fs_copy_finish(op, -call->err);
		return;
	}
	fs_attr_update_own(op->lane->fs, op->inode, &o->attr, op->attr_seq, fs_op_now(op));
	c->attr_stale = false;
	if (c->done > c->durable && memcmp(&c->verf, &o->verf, sizeof(c->verf)) != 0) {
		again(op);
		return;
	}
	c->durable = c->done;
	fs_copy_next(op);
}

static void commit_start(struct fs_op *op)
{
	memset(&op->call->u.commit, 0, sizeof(op->call->u.commit)); /* offset 0, count 0: all */
	op->call->u.commit.fh = &op->fh;
	op->call->done = commit_done;
	nfs4_commit(op->call);
}

/* ---- what is copied ---- */

/* The next thing to do after a part. */
void fs_copy_next(struct fs_op *op)
{
	struct fs_copy *c = fs_copy_of(op);
	size_t pending = c->done - c->durable;
	bool end;

	if (fs_lane_is_ending(op->lane) && c->done < op->size && !c->err)
		c->err = EINTR;
	if (op->lane->state == FS_LANE_PAUSED && c->done > 0)
		op->size = c->done; /* the program goes on with the rest */
	end = c->err || c->done == op->size;
	if (op->abandoned)
		fs_copy_finish(op, EINTR);
	else if (pending >= PENDING_MAX || (end && (pending > 0 || c->attr_stale)))
		call_for(op, commit_start);
	else if (end)
		fs_copy_finish(op, c->err);
	else
		call_for(op, copy_start);
}

/*
 * Somebody with data to write again waits until nobody changes the file, and may hold the last
 * call. The next part waits for him; what goes on need not: what is written again is newer than
 * the copy. Not if that must be stopped: what comes after it must not be overtaken by it.
 */
void fs_copy_yield(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	bool wanted;

	mutex_lock(&in->lock);
	wanted = in->unstable && in->unstable->rewriter;
	mutex_unlock(&in->lock);
	if (wanted && !op->abandoned)
		fs_rewrite_leave(op);
}

void fs_copy_did(
	struct fs_op *op, uint64_t len, enum nfs4_stable committed, const struct nfs4_verf *verf)
{
	struct fs_copy *c = fs_copy_of(op);
	bool pending = c->done > c->durable;

	if (len == 0) { /* the source is shorter than the kernel believes: it will see */
		c->err = EOPNOTSUPP;
		fs_copy_next(op);
		return;
	}
	if (committed != FILE_SYNC4) {
		/* Another server than the parts before: those are lost. */
		if (pending && memcmp(&c->verf, verf, sizeof(*verf)) != 0) {
			again(op);
			return;
		}
		c->verf = *verf;
		pending = true;
	}
	c->done += len;
	if (!pending)
		c->durable = c->done;
	fs_copy_yield(op);
	fs_copy_next(op);
}

/* ---- CLONE ---- */

static void attr_of(struct fs_inode *in, struct nfs4_attr *ret)
{
	mutex_lock(&in->lock);
	*ret = in->attr;
	mutex_unlock(&in->lock);
}

/* Has the file system no CLONE? clone_lock held. */
static bool is_without_clone(const struct fs *fs, const struct nfs4_attr *a)
{
	for (unsigned int i = 0; i < FS_NO_CLONE && i < fs->clones->cnt; i++)
		if (fs->clones->none[i].major == a->fsid_major &&
			fs->clones->none[i].minor == a->fsid_minor)
			return true;
	return false;
}

static bool may_clone(struct fs *fs, const struct nfs4_attr *src, const struct nfs4_attr *dst)
{
	bool may = src->fsid_major == dst->fsid_major && src->fsid_minor == dst->fsid_minor;

	mutex_lock(&fs->clones->lock);
	may = may && !is_without_clone(fs, dst);
	mutex_unlock(&fs->clones->lock);
	return may;
}

static void note_no_clone(struct fs *fs, struct fs_inode *in)
{
	struct nfs4_attr a;

	attr_of(in, &a);
	mutex_lock(&fs->clones->lock);
	if (!is_without_clone(fs, &a))
		fs->clones->none[fs->clones->cnt++ % FS_NO_CLONE] =
			(struct fs_fsid){a.fsid_major, a.fsid_minor};
	mutex_unlock(&fs->clones->lock);
}

/* How much of the rest can be had by CLONE: whole blocks, or all to the source's end. */
static uint64_t clone_len(const struct fs_op *op)
{
	const struct fs_copy *c = fs_copy_of(op);
	struct fs *fs = op->lane->fs;
	uint64_t blksize = fs_facts(fs, op->inode)->clone_blksize;
	uint64_t src_off = (uint64_t)c->src_off + c->done, off = (uint64_t)op->off + c->done;
	uint64_t count = op->size - c->done;
	struct nfs4_attr src, dst;

	if (!blksize)
		blksize = CLONE_BLKSIZE;
	if (c->no_clone || src_off % blksize || off % blksize)
		return 0;
	attr_of(op->inode2, &src);
	attr_of(op->inode, &dst);
	if (!may_clone(fs, &src, &dst))
		return 0;
	/* The last block of a longer destination is not replaced in part. */
	if (src_off + count == src.size && off + count >= dst.size)
		return count;
	return count - count % blksize;
}

/*
 * Why the server did not: true: nothing was done, and another way may do it (COPY, and the kernel
 * after that). Else the error is the program's, and nobody knows how much was done.
 */
static bool is_refused(struct fs_copy *c, int err)
{
	switch (err) {
	case EOPNOTSUPP:
	case EINVAL: /* not its blocks; the source has another end by now; no regular files */
	case EXDEV:
	case EBADF:
	case EACCES: /* one user's credential goes for both */
	case EPERM:
		return true;
	default:
		c->err = err;
		c->torn = true;
		return false;
	}
}

static void clone_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_copy *o = &call->u.copy;
	struct fs_copy *c = fs_copy_of(op);

	if (!call->err) {
		fs_attr_update_own(op->lane->fs, op->inode, &o->attr, op->attr_seq, fs_op_now(op));
		fs_copy_did(op, o->copied, o->committed, &o->verf);
		return;
	}
	if (is_refused(c, -call->err))
		c->no_clone = true; /* COPY tells it better, or does it */
	if (call->status == NFS4ERR_NOTSUPP || call->status == NFS4ERR_OP_ILLEGAL)
		note_no_clone(op->lane->fs, op->inode);
	fs_copy_next(op);
}

/* ---- COPY ---- */

static void copy_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_copy *o = &call->u.copy;
	struct fs_copy *c = fs_copy_of(op);

	if (call->err) {
		if (is_refused(c, -call->err))
			c->err = call->err == -EXDEV ? EXDEV : EOPNOTSUPP;
		fs_copy_next(op);
		return;
	}
	fs_attr_update_own(op->lane->fs, op->inode, &o->attr, op->attr_seq, fs_op_now(op));
	if (o->async)
		fs_copywait_begin(op);
	else
		fs_copy_did(op, o->copied, o->committed, &o->verf);
}

static void gate_is_open(struct fs_op *op)
{
	call_for(op, copy_start);
}

static void copy_start(struct fs_op *op)
{
	struct fs_copy *c = fs_copy_of(op);
	uint64_t clone = clone_len(op), count = clone ? clone : op->size - c->done;

	if (op->abandoned) { /* it waited: others may have written since */
		fs_copy_finish(op, EINTR);
		return;
	}
	if (!clone && op->inode == op->inode2) {
		fs_copy_finish(op, EOPNOTSUPP);
		return;
	}
	if (!clone && count > COPY_PART) {
		count = COPY_PART;
		op->size = c->done + count; /* the program goes on with the rest */
	}
	if (!op->gated && !fs_rewrite_enter(op, gate_is_open))
		return;
	c->sent = true;
	op->call->u.copy = (struct nfs4_op_copy){
		.src = &op->fh2,
		.fh = &op->fh,
		.src_state = op->file2->state,
		.state = op->file->state,
		.src_offset = (uint64_t)c->src_off + c->done,
		.offset = (uint64_t)op->off + c->done,
		.count = count,
		.synchronous = !fs_copywait_may(op, count),
	};
	op->call->done = clone ? clone_done : copy_done;
	if (clone)
		nfs4_clone(op->call);
	else
		nfs4_copy(op->call);
}

/* ---- before ---- */

static void swap_inodes(struct fs_op *op)
{
	struct fs_inode *in = op->inode;

	op->inode = op->inode2;
	op->inode2 = in;
}

static void committed(struct fs_op *op, int err)
{
	if (err)
		fs_reply_err(op, err);
	else
		call_for(op, copy_start);
}

static void source_committed(struct fs_op *op, int err)
{
	swap_inodes(op);
	if (err) /* maybe only because another user wrote it */
		fs_reply_err(op, EOPNOTSUPP);
	else
		fs_commit(op, committed);
}

static bool begin(struct fs_op *op, off_t src_off, struct fs_file *src)
{
	struct fs_copy *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	c->op = op;
	c->src_off = src_off;
	op->mem = c;
	fs_copywait_init(op);
	op->ended = fs_copywait_fini;
	op->file2 = fs_file_get(src);
	op->inode2 = fs_inode_ref(op->lane->fs, op->file2->inode);
	return true;
}

void fs_do_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
	struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t off_out,
	struct fuse_file_info *fi_out, size_t len, int flags)
{
	struct fs_file *src = fs_file_of(fs_current()->fs, fi_in);
	struct fs_op *op = fs_op_begin_file(req, fi_out);

	if (!op)
		return;
	op->off = off_out;
	op->size = len < COPY_MAX ? len : COPY_MAX;
	if (!src)
		fs_reply_err(op, EBADF);
	else if (flags != 0 || off_in < 0 || off_out < 0)
		fs_reply_err(op, EINVAL);
	else if (nfs4_client_fsinfo(op->lane->fs->client)->minor < 2)
		fs_reply_err(op, ENOSYS);
	else if (len == 0)
		fs_reply_write(op, 0);
	else if (!begin(op, off_in, src) || (ino_in == ino_out && !clone_len(op))) {
		fs_reply_err(op, EOPNOTSUPP); /* COPY: NFS4ERR_INVAL, where the kernel can */
	} else {
		swap_inodes(op);
		fs_commit(op, source_committed);
	}
}
