/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy_file_range between two files of the mount: the server copies (COPY, RFC
 * 7862 section 4), no data comes here. Whatever the server or we cannot do is
 * EOPNOTSUPP: the kernel then reads and writes, and whoever is to hear of an
 * error hears it from those. With NFSv4.1 it is ENOSYS, which it remembers.
 *
 * Before, what is retained of both files is committed: the server may have
 * lost it, or would be given it again on top of the copy. The gate (fs_retain.h)
 * is entered for as long as the server may change the destination.
 *
 *   little, or no back channel   COPY, waits for the answer; parts, as the server likes
 *   else                         COPY, answered at once; the operation waits without a call
 *     CB_OFFLOAD                 what it says is done
 *     OFFLOAD_STATUS             asked from time to time; the server knows nothing of it any more,
 *                                or it is another one: nobody knows what it did
 *     program killed, unmounted  OFFLOAD_CANCEL
 *   and whatever an asynchronous one did not do for certain is copied again, synchronously.
 *
 * What is not FILE_SYNC is committed at the end, or now and then; another
 * verifier than the COPY's: once more from where it was durable.
 *
 * Context: the lane of the operation.
 */
#include "fs_ops.h"
#include "fs_retain.h"
#include "fs_share.h"
#include "nfs4_offload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In one request: its answer has 32 bits, and what a restart takes is copied again. */
#define COPY_MAX (1u << 30)
/* Not durable yet, at most, before it is committed. */
#define PENDING_MAX (64u << 20)
/* Verifiers that changed. */
#define TRIES 3u
/* How often a waiting operation looks around, and after how many of these it asks. */
#define TICK_NS  NSEC_PER_SEC
#define POLL_MAX 15u
/* After a CB_OFFLOAD that did not come others are not waited for. */
#define NO_WAIT_NS (60 * NSEC_PER_SEC)

/* op->mem; op->inode, file and off are the destination's, inode2 and file2 the source's. */
struct copy {
	struct nfs4_offload off;
	struct reactor_timer tick;
	struct fs_op *op;
	off_t src_off;
	size_t done, durable;  /* of op->size */
	struct nfs4_verf verf; /* of what is between them */
	unsigned int tries;
	int err;         /* after so much the server refused */
	bool sent;       /* some of it may be done ... */
	bool torn;       /* ... which is not told */
	bool by_hand;    /* synchronously from now on */
	bool attr_stale; /* the destination's attributes must be asked for */
	/* an asynchronous COPY of `asked` bytes */
	uint64_t asked;
	bool busy; /* a call about it is in flight or waited for */
	bool told; /* off.res is there */
	bool gone; /* the server did not know it; CB_OFFLOAD may be on its way */
	unsigned int ticks, due;
};

static struct copy *copy_of(const struct fs_op *op)
{
	return op->mem;
}

static void copy_start(struct fs_op *op);
static void go_on(struct fs_op *op);

/* ---- the end ---- */

static void finish(struct fs_op *op, int err)
{
	struct copy *c = copy_of(op);
	struct fs *fs = op->lane->fs;

	fs_retain_leave(op);
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
	op->failed = finish;
	fs_op_call(op, start);
}

static void copy_ended(struct fs_op *op)
{
	reactor_timer_cancel(op->lane->reactor, &copy_of(op)->tick);
}

/* ---- COMMIT ---- */

static void again(struct fs_op *op)
{
	struct copy *c = copy_of(op);

	c->done = c->durable;
	c->torn = true;
	if (++c->tries > TRIES)
		finish(op, EOPNOTSUPP);
	else
		call_for(op, copy_start);
}

static void commit_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_commit *o = &call->u.commit;
	struct copy *c = copy_of(op);

	if (call->err) {
		finish(op, -call->err);
		return;
	}
	fs_attr_update_own(op->lane->fs, op->inode, &o->attr, op->attr_seq, fs_op_now(op));
	c->attr_stale = false;
	if (c->done > c->durable && memcmp(&c->verf, &o->verf, sizeof(c->verf)) != 0) {
		again(op);
		return;
	}
	c->durable = c->done;
	go_on(op);
}

static void commit_start(struct fs_op *op)
{
	memset(&op->call.u.commit, 0, sizeof(op->call.u.commit)); /* offset 0, count 0: all */
	op->call.u.commit.fh = &op->fh;
	op->call.done = commit_done;
	nfs4_commit(&op->call);
}

/* ---- what is copied ---- */

/* The next thing to do after a part. */
static void go_on(struct fs_op *op)
{
	struct copy *c = copy_of(op);
	size_t pending = c->done - c->durable;
	bool end;

	if (op->lane->state != FS_LANE_RUNS && c->done < op->size && !c->err)
		c->err = EINTR;
	end = c->err || c->done == op->size;
	if (op->unheard)
		finish(op, EINTR);
	else if (pending >= PENDING_MAX || (end && (pending > 0 || c->attr_stale)))
		call_for(op, commit_start);
	else if (end)
		finish(op, c->err);
	else
		call_for(op, copy_start);
}

/*
 * Somebody with data to write again waits until nobody changes the file, and may hold the last
 * call. The next part waits for him; what goes on need not: what is written again is newer than
 * the copy. Not if that must be stopped: what comes after it must not be overtaken by it.
 */
static void yield(struct fs_op *op)
{
	struct fs_inode *in = op->inode;
	bool wanted;

	pthread_mutex_lock(&in->lock);
	wanted = in->retain && in->retain->rewriter;
	pthread_mutex_unlock(&in->lock);
	if (wanted && !op->unheard)
		fs_retain_leave(op);
}

static void copied(
	struct fs_op *op, uint64_t len, enum nfs4_stable committed, const struct nfs4_verf *verf)
{
	struct copy *c = copy_of(op);
	bool pending = c->done > c->durable;

	if (len == 0) { /* the source is shorter than the kernel believes: it will see */
		c->err = EOPNOTSUPP;
		go_on(op);
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
	yield(op);
	go_on(op);
}

/* ---- the server goes on by itself ---- */

static void look_again(struct copy *c)
{
	reactor_timer_in(c->op->lane->reactor, &c->tick, TICK_NS);
}

/* It does not any more. */
static void wait_over(struct fs_op *op)
{
	reactor_timer_cancel(op->lane->reactor, &copy_of(op)->tick);
	op->lane->copies--;
	/* Before a call is waited for: who has the last one may wait at the gate. */
	fs_retain_leave(op);
}

/* What it did is not known for certain. */
static void by_hand(struct fs_op *op)
{
	wait_over(op);
	copy_of(op)->by_hand = true;
	go_on(op);
}

static void result_known(struct fs_op *op)
{
	struct copy *c = copy_of(op);
	const struct nfs4_offload_result *res = &c->off.res;

	/* WIRE: more than asked. An error is had again, with what came before it. */
	if (res->status != NFS4_OK || res->copied == 0 || res->copied > c->asked) {
		by_hand(op);
		return;
	}
	wait_over(op);
	copied(op, res->copied, res->committed, &res->verf);
}

static void offload_done(struct nfs4_offload *off)
{
	struct copy *c = container_of(off, struct copy, off);

	c->told = true;
	if (!c->busy)
		result_known(c->op);
}

static void result_lost(struct fs_op *op)
{
	struct copy *c = copy_of(op);
	bool over = nfs4_offload_is_over(&c->off);

	if (!nfs4_offload_end(&c->off)) /* it came just now: offload_done() */
		return;
	if (!over && !op->unheard)
		op->lane->copy_no_wait_until = fs_op_now(op) + NO_WAIT_NS;
	by_hand(op);
}

/* The call about it is over; true: it was told meanwhile. */
static bool call_over(struct fs_op *op)
{
	struct copy *c = copy_of(op);

	fs_op_put_call(op);
	c->busy = false;
	if (c->told)
		result_known(op);
	return c->told;
}

/* The session is dead. */
static void ask_failed(struct fs_op *op, int err)
{
	struct copy *c = copy_of(op);

	c->err = err;
	if (!call_over(op) && nfs4_offload_end(&c->off)) {
		wait_over(op);
		finish(op, err);
	}
}

static void ask(struct fs_op *op, void (*start)(struct fs_op *op))
{
	copy_of(op)->busy = true;
	op->failed = ask_failed;
	fs_op_call(op, start);
}

static void cancel_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	/* However it was answered: it is stopped, or was not there any more. */
	if (!call_over(op))
		result_lost(op);
}

static void cancel_start(struct fs_op *op)
{
	op->call.u.offload = (struct nfs4_op_offload){.fh = &op->fh, .id = copy_of(op)->off.id};
	op->call.done = cancel_done;
	nfs4_offload_cancel(&op->call);
}

static bool is_unknown(enum nfs4_status status)
{
	return status == NFS4ERR_BAD_STATEID || status == NFS4ERR_STALE_STATEID ||
	       status == NFS4ERR_OLD_STATEID || status == NFS4ERR_EXPIRED;
}

static void poll_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	bool gone = call->err ? is_unknown(call->status) : call->u.offload.complete;
	bool failed = call->err && !gone;
	struct copy *c = copy_of(op);

	if (call_over(op))
		return;
	if (failed) {
		/* It cannot be asked, and may go on. */
		ask(op, cancel_start);
	} else if (gone && c->gone) {
		result_lost(op);
	} else {
		c->due = gone ? 1 : c->due * 2 < POLL_MAX ? c->due * 2 : POLL_MAX;
		c->gone = gone;
		c->ticks = 0;
		look_again(c);
	}
}

static void poll_start(struct fs_op *op)
{
	if (copy_of(op)->told) {
		call_over(op);
		return;
	}
	op->call.u.offload = (struct nfs4_op_offload){.fh = &op->fh, .id = copy_of(op)->off.id};
	op->call.done = poll_done;
	nfs4_offload_status(&op->call);
}

static void tick(struct reactor_timer *t)
{
	struct copy *c = container_of(t, struct copy, tick);
	struct fs_op *op = c->op;

	if (c->told || c->busy)
		return;
	if (nfs4_offload_is_over(&c->off)) {
		result_lost(op);
		return;
	}
	yield(op);
	if (op->unheard || op->lane->state != FS_LANE_RUNS)
		ask(op, cancel_start);
	else if (++c->ticks >= c->due)
		ask(op, poll_start);
	else
		look_again(c);
}

static void wait_begin(struct fs_op *op)
{
	struct copy *c = copy_of(op);

	c->asked = op->call.u.copy.count;
	c->torn = c->attr_stale = true;
	c->busy = c->told = c->gone = false;
	c->ticks = 0;
	c->due = 1;
	op->lane->copies++;
	nfs4_offload_begin(&c->off, &op->call, offload_done);
	fs_op_put_call(op);
	look_again(c);
}

/* ---- COPY ---- */

/* May this one be answered before it is done? */
static bool may_wait(const struct fs_op *op, uint64_t count)
{
	const struct fs_lane *l = op->lane;

	return !copy_of(op)->by_hand && fs_op_now(op) >= l->copy_no_wait_until &&
	       count > 2ull * nfs4_client_fsinfo(l->fs->client)->rsize &&
	       l->copies < l->ops_cnt / 4 && nfs4_sess_has_back(l->sess);
}

static void copy_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_copy *o = &call->u.copy;
	struct copy *c = copy_of(op);

	if (call->err) {
		switch (-call->err) {
		case EOPNOTSUPP:
		case EXDEV:
			c->err = -call->err;
			break;
		case EINVAL: /* beyond the source's end as it is by now; not regular files */
		case EBADF:
		case EACCES: /* one user's credential goes for both */
		case EPERM:
			c->err = EOPNOTSUPP;
			break;
		default:
			c->err = -call->err;
			c->torn = true;
			break;
		}
		go_on(op);
		return;
	}
	fs_attr_update_own(op->lane->fs, op->inode, &o->attr, op->attr_seq, fs_op_now(op));
	if (o->async)
		wait_begin(op);
	else
		copied(op, o->copied, o->committed, &o->verf);
}

static void gate_is_open(struct fs_op *op)
{
	call_for(op, copy_start);
}

static void copy_start(struct fs_op *op)
{
	struct copy *c = copy_of(op);
	uint64_t count = op->size - c->done;

	if (op->unheard) { /* it waited: others may have written since */
		finish(op, EINTR);
		return;
	}
	if (!op->gated && !fs_retain_enter(op, gate_is_open))
		return;
	c->sent = true;
	op->call.u.copy = (struct nfs4_op_copy){
		.src = &op->fh2,
		.fh = &op->fh,
		.src_state = &op->file2->share->state,
		.state = &op->file->share->state,
		.src_offset = (uint64_t)c->src_off + c->done,
		.offset = (uint64_t)op->off + c->done,
		.count = count,
		.synchronous = !may_wait(op, count),
	};
	op->call.done = copy_done;
	nfs4_copy(&op->call);
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

static bool begin(struct fs_op *op, off_t src_off, const struct fuse_file_info *fi_in)
{
	struct copy *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	c->op = op;
	c->src_off = src_off;
	reactor_timer_init(&c->tick, tick);
	op->mem = c;
	op->ended = copy_ended;
	op->file2 = fs_file_get(fs_file_of(fi_in));
	op->inode2 = fs_inode_ref(op->lane->fs, op->file2->inode);
	return true;
}

void fs_do_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
	struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t off_out,
	struct fuse_file_info *fi_out, size_t len, int flags)
{
	struct fs_op *op = fs_op_begin_file(req, fi_out);

	op->off = off_out;
	op->size = len < COPY_MAX ? len : COPY_MAX;
	if (flags != 0 || off_in < 0 || off_out < 0)
		fs_reply_err(op, EINVAL);
	else if (nfs4_client_fsinfo(op->lane->fs->client)->minor < 2)
		fs_reply_err(op, ENOSYS);
	else if (ino_in == ino_out)
		fs_reply_err(op, EOPNOTSUPP); /* NFS4ERR_INVAL, where the kernel can */
	else if (len == 0)
		fs_reply_write(op, 0);
	else if (!begin(op, off_in, fi_in)) {
		fs_reply_err(op, EOPNOTSUPP);
	} else {
		swap_inodes(op);
		fs_commit(op, source_committed);
	}
}
