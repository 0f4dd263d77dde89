/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WRITE. The request was received into a registered buffer: the operation
 * keeps it, and the server reads the payload where it lies. It is answered
 * before that, as a rule (fs_writeback.h), else when the server has it.
 *
 * UNSTABLE as a rule: the data is held (fs_unstable.h) until a COMMIT at
 * fsync, close or in the background says that it is durable (fs_commit.c).
 * FILE_SYNC for O_SYNC, O_DSYNC, `sync` and `noac`, and when nothing more can
 * be held.
 *
 * O_APPEND: the offset is the kernel's, which holds the inode's lock and knows
 * every append through this mount; where others changed the file meanwhile it is
 * not the end: fs_append.h.
 */
#include "fs_append.h"
#include "fs_asked_buf.h"
#include "fs_asked.h"
#include "fs_attr.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_live.h"
#include "fs_mapped.h"
#include "fs_notify.h"
#include "fs_ops.h"
#include "fs_reply.h"
#include "fs_share.h"
#include "fs_batch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static void write_start(struct fs_op *op);
static void write_failed(struct fs_op *op, int err);

/* Also when the session is dead it ends here. */
static void call_for(struct fs_op *op, void (*start)(struct fs_op *op))
{
	op->failed = write_failed;
	fs_op_call(op, start);
}

/* What is written so far is held until COMMIT, or not: the request is over for the server. */
static void settle(struct fs_op *op)
{
	fs_commit_wrote(op, fs_rw(op)->unstable, fs_rw(op)->torn);
}

/*
 * A part is written: the kernel may take that for the answer, except for its own page writes, and
 * with O_DIRECT: there it makes EIO of a short answer, and cuts off what the file grew by.
 */
static void write_failed(struct fs_op *op, int err)
{
	struct fs_inode *in = op->inode;

	fs_batch_fail(op, err);
	settle(op);
	fs_append_over(op);
	if (op->writeback->active) {
		fs_writeback_done(op, err);
		return;
	}
	if (fs_rw(op)->answered)
		fs_writeback_take_back(op, err);
	if (fs_rw(op)->answered || fs_rw(op)->done == 0 || op->fi.writepage ||
		(op->fi.flags & O_DIRECT)) {
		fs_reply_err(op, err);
		return;
	}
	/* The program sees a short write; if it never writes again, close must tell. */
	mutex_lock(&in->lock);
	op->file->next_err = err;
	fs_live_data(op->file);
	mutex_unlock(&in->lock);
	fs_append_answer(op, fs_rw(op)->done);
	fs_reply_write(op, fs_rw(op)->done);
}

static uint64_t written_to(const struct fs_op *op)
{
	return op->call->u.write.offset + op->call->u.write.count;
}

/* The attributes are changed; a suid bit that the server may have cleared is asked for again. */
static void note_attr(struct fs_op *op, const struct nfs4_attr *a)
{
	struct fs *fs = op->lane->fs;
	struct fs_inode *in = op->inode;

	if (fs_attr_wrote(fs, in, a, op->attr_seq, fs_op_now(op), written_to(op)))
		fs_notify_inval_inode(fs, in, -1, 0);
}

/* Notes how durable the part just written is. */
static void note_stability(struct fs_op *op, const struct nfs4_op_write *w)
{
	if (w->committed == FILE_SYNC4)
		return;
	/* Another server than the part before: that one is lost. */
	if (fs_rw(op)->unstable && memcmp(&fs_rw(op)->verf, &w->verf, sizeof(w->verf)) != 0)
		fs_rw(op)->torn = true;
	fs_rw(op)->unstable = true;
	fs_rw(op)->verf = w->verf;
}

/* It may have been executed in part: what is cached is not to be trusted. */
static void write_refused(struct fs_op *op, int err, bool answered)
{
	fs_attr_changed(op->inode);
	if (!answered)
		fs_append_doom(op, err);
	if (op->writeback->part_cnt == 0 || !answered) {
		write_failed(op, err);
		return;
	}
	/* Whom of the batch that concerns, each finds out by itself. */
	fs_batch_wrote(op, &op->call->u.write, 0);
	call_for(op, write_start);
}

static size_t data_len(const struct nfs4_op_write *w)
{
	size_t len = 0;

	for (unsigned int i = 0; i < w->data_cnt; i++)
		len += w->data[i].len;
	return len;
}

static void write_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_write *w = &call->u.write;
	size_t own;

	if (call->err && fs_append_missed(op, write_start, write_failed))
		return;
	if (call->err) {
		write_refused(op, -call->err, call->status != NFS4_OK);
		return;
	}
	if (w->count == 0 || w->count > data_len(w)) { /* WIRE: no progress, or more than sent */
		write_refused(op, EIO, true);
		return;
	}
	note_attr(op, &w->attr);
	stats_count(&op->lane->stats->bytes_written, w->count);
	note_stability(op, w);
	own = w->count < w->data[0].len ? w->count : w->data[0].len;
	fs_rw(op)->done += own;
	fs_batch_wrote(op, w, w->count - own);
	if (fs_rw(op)->done < op->size) {
		call_for(op, write_start);
		return;
	}
	settle(op);
	fs_append_over(op);
	if (op->writeback->active) {
		fs_writeback_done(op, 0);
		return;
	}
	fs_append_answer(op, fs_rw(op)->done);
	fs_reply_write(op, fs_rw(op)->done);
}

/*
 * What is written back is followed by a COMMIT, which brings them; a program that goes past the
 * cache rarely asks, and then the server is asked.
 */
static bool wants_attr(const struct fs_op *op)
{
	return !(op->fi.flags & O_DIRECT) && (!op->writeback->active || fs_rw(op)->sync);
}

static void write_start(struct fs_op *op)
{
	struct nfs4_op_write *w = &op->call->u.write;

	memset(w, 0, sizeof(*w));
	w->fh = &op->fh;
	w->state = op->file->state;
	w->offset = (uint64_t)op->off + fs_rw(op)->done;
	fs_batch_data(op, w);
	w->stable = fs_rw(op)->sync ? FILE_SYNC4 : UNSTABLE4;
	w->no_attr = !wants_attr(op);
	w->at_end = op->gated && fs_append_at_end(op); /* else there is nothing to hold it */
	op->call->done = write_done;
	nfs4_write(op->call);
}

static void write_begin(struct fs_op *op);

static void gate_is_open(struct fs_op *op)
{
	call_for(op, write_begin);
}

/* UNSTABLE only what can be held; what the server loses of the rest would be lost. */
static void write_begin(struct fs_op *op)
{
	if (op->abandoned) { /* it waited: what comes now would overwrite what others wrote since */
		fs_reply_err(op, EINTR);
		return;
	}
	if (!fs_rewrite_enter(op, gate_is_open))
		return;
	if (!fs_rw(op)->sync && !fs_batch_reserve(op))
		fs_rw(op)->sync = true;
	write_start(op);
}

/* A writeback; one that appends when all before it is over. */
static void send_writeback(struct fs_op *op)
{
	int err;

	if (fs_rw(op)->append && !fs_writeback_turn(op, send_writeback))
		return;
	err = fs_append_doomed(op);
	if (err)
		write_failed(op, err);
	else
		gate_is_open(op);
}

static void ask(struct fs_op *op)
{
	if (op->abandoned) {
		fs_reply_err(op, EINTR);
		return;
	}
	fs_append_note(op);
	call_for(op, write_begin);
}

/* Nothing that is written back lies where this one writes, or did when it came. */
static void write_in_order(struct fs_op *op)
{
	if (op->abandoned) {
		fs_reply_err(op, EINTR);
		return;
	}
	if (fs_writeback_begin(op, send_writeback))
		return;
	if (!fs_rw(op)->append ||
		!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, false, ask))
		ask(op);
}

/* Takes the buffer that the request was received into: the lane gets another for the next one. */
static bool steal(struct fs_op *op, const char *data, size_t size)
{
	struct fs_lane *l = op->lane;
	const uint8_t *p = (const uint8_t *)data;
	struct rpcrdma_buf *buf = l->rxbuf;

	if (!buf || p < buf->mem || p + size > buf->data + l->fs->data_size)
		return false;
	op->buf = buf;
	fs_rw(op)->data = p;
	buf->owner = op;
	l->rxbuf = NULL;
	return true;
}

/* Of what this handle wrote before. */
static void reply_error(struct fs_op *op, int err)
{
	bool heard = fs_reply_early(op, err);

	fs_file_told(op->file, 0, heard ? 0 : err);
	fs_op_end(op);
}

void fs_do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	struct fs_op *op = fs_op_begin_file(req, fi);
	const struct fs_conf *conf;
	int err = 0;

	if (!op)
		return;
	conf = &op->lane->fs->conf;
	fs_rw(op)->answered =
		op->lane->fs->replaying && fs_asked_is_rewrite(op->lane->fs, op->unique);
	if (!fs_rw(op)->answered)
		err = fs_file_next_error(op->file);
	op->off = off;
	op->size = size;
	fs_rw(op)->sync = conf->sync || conf->noac || (fi->flags & O_DSYNC);
	if (!fs_rw(op)->sync)
		fs_asked_buf_expect(op->lane, size);
	fs_append_begin(op);
	if (fi->writepage)
		fs_mapped_begin(op);
	if (err)
		reply_error(op, err);
	else if (size == 0)
		fs_reply_write(op, 0);
	else if (fs_writeback_join(op, buf))
		return;
	else if (!steal(op, buf, size))
		fs_reply_err(op, EIO); /* cannot be: the loop receives into its buffer */
	else if (!fs_writeback_wait_to_write(op, write_in_order))
		write_in_order(op);
}
