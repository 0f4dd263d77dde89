/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lane's pool of operations, and what an operation does when no call or
 * buffer is free: it is parked, the lane reads no further request, and
 * fs_lane_turn() resumes it.
 *
 * Why this cannot deadlock: an operation that waits for a buffer holds no
 * call, one that waits for a call may hold a buffer, and one that waits for
 * the notify thread, at an inode's gate (fs_unstable.h), for what is written back
 * (fs_writeback.h: which needs a call and no buffer; so does what fs_mapped.h waits for) or
 * read ahead (fs_ahead.h: which began while there were buffers), for its turn with a lock
 * owner (fs_lock.h), to enter a share (fs_share.h) or for the end of a
 * delegation (fs_deleg.h: by an operation beside the pool) holds no call. A request that waits for
 * a lock that somebody holds has no operation even; of those that the server copies for
 * only some wait (fs_copywait.c), without a call. So calls are held only by what is on its way to
 * the server, which ends by itself; then buffers come back too, but for the half that may be
 * unstable. A chain of calls (OPEN, SETATTR; COMMIT, CLOSE, REMOVE) keeps the one call it has. The
 * receive buffer is the reserve: a lane that does not read gives it to a parked operation
 * (fs_buf_take), so even a single buffer is enough. An operation that waits for the
 * notify thread keeps its operation, and that thread may wait for a request not read
 * yet: meanwhile the lane reads on, and operations are added (fs_interrupt_spare). With
 * a lane for metadata it reads on, and the reserve is another one (fs_metalane.h).
 */
#include "fs_attr.h"
#include "fs_cred.h"
#include "fs_current.h"
#include "fs_facts.h"
#include "fs_file.h"
#include "fs_lane.h"
#include "fs_metalane.h"
#include "fs_inode.h"
#include "fs_interrupt.h"
#include "fs_op.h"
#include "fs_asked_buf.h"
#include "fs_notify.h"
#include "fs_part.h"
#include "fs_reply.h"
#include "nfs4_keep.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* An operation and what belongs to it, in one piece of memory. */
struct whole {
	struct fs_op op; /* first */
	struct fs_op_call call;
	char name[FS_NAME_MAX + 1], name2[FS_NAME_MAX + 1];
	_Alignas(max_align_t) unsigned char work[FS_OP_WORK];
	max_align_t parts[]; /* what fs_part.op_made is given */
};

_Static_assert(sizeof(struct fs_op) <= 1024, "what few requests need belongs into their work");

struct fs_op *fs_op_alloc(const struct fs *fs)
{
	struct whole *w = calloc(1, sizeof(*w) + fs_part_op_size(fs));

	if (!w)
		return NULL;
	w->op.call = &w->call.call;
	w->call.op = &w->op;
	w->op.name = w->name;
	w->op.name2 = w->name2;
	w->op.work = w->work;
	list_init(&w->op.link);
	fs_part_op_made(fs, &w->op, w->parts);
	return &w->op;
}

void fs_op_free(struct fs_op *op)
{
	free(op);
}

bool fs_op_pool_add(struct fs_lane *l, unsigned int cnt)
{
	for (; cnt > 0; cnt--) {
		struct fs_op *op = fs_op_alloc(l->fs);

		if (!op)
			return false;
		list_push_back(&l->ops, &op->pool_link);
		list_push_back(&l->free_ops, &op->link);
		l->ops_cnt++;
		l->ops_free++;
	}
	return true;
}

void fs_op_pool_fini(struct fs_lane *l)
{
	struct list *node;

	while ((node = list_pop_front(&l->ops)) != NULL)
		fs_op_free(container_of(node, struct fs_op, pool_link));
}

void fs_op_init(struct fs_op *op, struct fs_lane *l)
{
	/* The call is the session's to initialise; names and filehandles are set before use. */
	op->lane = l;
	op->req = NULL;
	op->on_file = op->file_holds = op->abandoned = op->background = false;
	op->buf = NULL;
	op->mem = NULL;
	op->inode = op->inode2 = NULL;
	op->shadow = false;
	op->file = op->file2 = NULL;
	op->has_call = op->want_buf = op->last_buf = op->own = false;
	op->fh.len = op->fh2.len = 0;
	op->name[0] = op->name2[0] = '\0';
	op->off = 0;
	op->size = 0;
	op->attr_seq = 0;
	op->resume = NULL;
	op->failed = NULL;
	op->ended = NULL;
	op->silly = NULL;
	op->once = (struct nfs4_once){.request = 0};
	op->reply_dir = op->reply_inode = NULL;
	op->began = op->gated = op->gated_abandoned = false;
	memset(&op->fi, 0, sizeof(op->fi));
	op->bars = 0;
	op->deleg = NULL;
	op->claims = NULL;
	memset(op->work, 0, FS_OP_WORK);
}

struct fs_op *fs_op_new(struct fs_lane *l)
{
	struct list *node = list_pop_front(&l->free_ops);
	struct fs_op *op;

	if (!node)
		return NULL;
	l->ops_free--;
	op = container_of(node, struct fs_op, link);
	fs_op_init(op, l);
	return op;
}

struct fs_op *fs_op_begin(fuse_req_t req, fuse_ino_t ino)
{
	struct fs_lane *l = fs_current();
	struct fs_op *op = fs_op_new(l);

	assert(op); /* the loop saw one free, and a request takes one */
	op->req = req;
	fs_interrupt_watch(op);
	fs_cred_of(req, op->read_ns, &op->cred);
	op->shadow = (ino & FS_INO_SHADOW) != 0;
	op->inode = fs_inode_get(l->fs, ino);
	if (op->inode)
		return op;
	fs_reply_err(op, ESTALE);
	return NULL;
}

struct fs_op *fs_op_begin_file(fuse_req_t req, const struct fuse_file_info *fi)
{
	struct fs_lane *l = fs_current();
	struct fs_file *f = fs_file_of(l->fs, fi);
	struct fs_op *op = fs_op_new(l);

	assert(op);
	op->req = req;
	fs_interrupt_watch(op);
	if (!f) {
		fs_reply_err(op, EBADF);
		return NULL;
	}
	op->fi = *fi;
	op->file = fs_file_get(f);
	op->on_file = true;
	op->inode = op->file->inode; /* without the lock that all lanes share */
	op->file_holds = true;
	op->cred = op->file->cred;
	return op;
}

bool fs_op_is_too_big(const struct fs_op *op)
{
	return (uint64_t)op->off + op->size > fs_facts(op->lane->fs, op->inode)->maxfilesize;
}

bool fs_op_name(char dst[FS_NAME_MAX + 1], const char *name)
{
	size_t len = strlen(name);

	if (len > FS_NAME_MAX)
		return false;
	memcpy(dst, name, len + 1);
	return true;
}

void fs_op_put_call(struct fs_op *op)
{
	if (!op->has_call)
		return;
	op->has_call = false;
	nfs4_call_put(op->call);
}

void fs_op_notify(struct fs_op *op, struct fs_inode *in, bool pages, void (*then)(struct fs_op *op))
{
	fs_op_notify_range(op, in, pages ? 0 : -1, 0, then);
}

static void notified(struct reactor_msg *msg)
{
	struct fs_op *op = container_of(msg, struct fs_op, notified);

	fs_inode_put(op->lane->fs, op->notice.inode);
	op->notice.inode = NULL;
	op->lane->notify_waits--;
	op->then(op);
}

void fs_op_notify_range(
	struct fs_op *op, struct fs_inode *in, off_t off, off_t len, void (*then)(struct fs_op *op))
{
	struct fs_lane *l = op->lane;

	fs_op_put_call(op);
	if (l->fs->replaying)
		fs_asked_await_no_more(l->fs, op->unique);
	op->then = then;
	op->notified.run = notified;
	op->notice = (struct fs_notice){
		.inode = fs_inode_ref(l->fs, in),
		.off = off,
		.len = len,
		.reactor = l->reactor,
		.told = &op->notified,
	};
	stats_count(&l->stats->invals, 1);
	l->notify_waits++;
	fs_notify_then(l->fs, &op->notice);
}

static void woken(struct reactor_msg *msg)
{
	struct fs_op *op = container_of(msg, struct fs_op, notified);

	op->then(op);
}

void fs_op_wake(struct fs_op *op)
{
	op->notified.run = woken;
	reactor_post(op->lane->reactor, &op->notified);
}

void fs_op_wake_all(struct list *ops)
{
	struct list *node;

	while ((node = list_pop_front(ops)))
		fs_op_wake(container_of(node, struct fs_op, link));
}

/* A data buffer; from outside a handler also the one that would receive the next request. */
static struct rpcrdma_buf *fs_buf_take(struct fs_op *op)
{
	struct fs_lane *l = op->lane;
	struct rpcrdma_buf *buf = rpcrdma_buf_get_above(l->xprt, fs_metalane_spare_bufs(op));

	/*
	 * Not while the lane must go on reading: what is abandoned will end (fs_interrupt.c), and
	 * with a metadata lane one buffer was left (fs_metalane.h). But while it reads on because
	 * of the notify thread: that may wait for this very operation.
	 */
	if (!buf && !l->receiving && !l->abandoned && !l->fs->metalane) {
		buf = l->rxbuf;
		l->rxbuf = NULL;
		if (buf)
			fs_asked_buf_leave(l, buf);
	}
	if (buf)
		buf->owner = NULL;
	return buf;
}

static void op_go(struct fs_op *op, void (*start)(struct fs_op *op))
{
	op->began = true;
	op->attr_seq = fs_attr_seq(op->inode);
	if (op->inode)
		fs_inode_fh(op->inode, &op->fh);
	if (op->inode2)
		fs_inode_fh(op->inode2, &op->fh2);
	op->call->cred = &op->cred;
	op->call->times = op->req ? &op->times : NULL;
	op->call->once = NULL;
	op->call->fs = op->inode ? fs_facts(op->lane->fs, op->inode) : NULL;
	start(op);
}

static void once(struct fs_op *op, uint64_t number)
{
	op->once.request = number;
	op->call->once = op->req ? &op->once : NULL;
}

void fs_op_once(struct fs_op *op)
{
	once(op, op->unique);
}

/* The kernel's numbers are even. */
#define PART 1ull

uint64_t fs_op_request_of(uint64_t number)
{
	return number & ~PART;
}

void fs_op_once_part(struct fs_op *op)
{
	once(op, op->unique | PART);
}

static int get_call(struct fs_op *op, enum fs_op_tried *ret_missing)
{
	int err = op->has_call ? 0 : nfs4_call_get(op->lane->sess, op->call);

	*ret_missing = FS_OP_NO_CALL;
	op->has_call = err == 0;
	return err;
}

/* Gets the buffer and the call. 0: they are there; -EAGAIN: *ret_missing is not, yet. */
static int get_ready(struct fs_op *op, enum fs_op_tried *ret_missing)
{
	struct rpcrdma *x = op->lane->xprt;
	int err;

	if (!op->want_buf || op->buf)
		return get_call(op, ret_missing);
	/* What waits for a call leaves the buffer to requests that come (fs_metalane.h). */
	if (op->lane->fs->metalane && rpcrdma_buf_free_count(x) > fs_metalane_spare_bufs(op)) {
		err = get_call(op, ret_missing);
		if (err)
			return err;
	}
	op->buf = fs_buf_take(op);
	if (!op->buf) {
		fs_op_put_call(op);
		*ret_missing = FS_OP_NO_BUF;
		return -EAGAIN;
	}
	return get_call(op, ret_missing);
}

enum fs_op_tried fs_op_try(struct fs_op *op)
{
	void (*start)(struct fs_op * op) = op->resume;
	void (*failed)(struct fs_op * op, int err) = op->failed;
	enum fs_op_tried missing;
	int err = 0;

	/* Its program died: done now it would come after what others did since. */
	if (fs_op_is_void(op))
		err = -EINTR;
	else
		err = get_ready(op, &missing);
	if (err == -EAGAIN)
		return missing;
	list_del(&op->link);
	op->resume = NULL;
	op->failed = NULL;
	if (!err)
		op_go(op, start);
	else if (failed)
		failed(op, -err);
	else
		fs_reply_err(op, -err);
	return FS_OP_WENT;
}

static void call_or_park(struct fs_op *op, void (*start)(struct fs_op *op), bool want_buf)
{
	op->resume = start;
	op->want_buf = want_buf;
	if (fs_op_try(op) != FS_OP_WENT)
		list_push_back(&op->lane->parked, &op->link);
}

void fs_op_call(struct fs_op *op, void (*start)(struct fs_op *op))
{
	call_or_park(op, start, false);
}

void fs_op_call_buf(struct fs_op *op, void (*start)(struct fs_op *op))
{
	call_or_park(op, start, true);
}

void fs_op_end(struct fs_op *op)
{
	struct fs_lane *l = op->lane;
	bool own;

	assert(!op->req);
	assert(!list_is_linked(&op->link));
	if (op->ended)
		op->ended(op);
	if (op->abandoned)
		fs_interrupt_ended(op);
	fs_op_put_call(op);
	if (op->buf)
		fs_asked_buf_put(l, op->buf);
	op->buf = NULL;
	free(op->mem);
	op->mem = NULL;
	nfs4_redo_over(l->fs->client, &op->once);
	own = (op->bars > 0 || op->deleg) && fs_part_op_ended(op->lane->fs, op);
	if (!op->file_holds)
		fs_inode_put(l->fs, op->inode);
	fs_inode_put(l->fs, op->inode2);
	op->inode = op->inode2 = NULL;
	if (op->file)
		fs_file_put(l->fs, op->file);
	if (op->file2)
		fs_file_put(l->fs, op->file2);
	op->file = op->file2 = NULL;
	if (!own) {
		list_push_front(&l->free_ops, &op->link); /* the warmest is taken next */
		l->ops_free++;
	}
	fs_lane_turn(l);
}
