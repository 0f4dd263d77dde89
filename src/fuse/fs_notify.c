/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The notify thread: the only one that calls fuse_lowlevel_notify_*. Such a
 * call waits for page locks that requests hold which lanes must answer; a lane
 * that made it could wait for itself. (An entry is never invalidated: that
 * waits for the directory's lock, which a CREATE holds whose answer waits for
 * this thread.)
 *
 * It holds no lock during the call. Its queue is bounded by what waits for it:
 * operations (embedded), and UNASKED_MAX entries that nobody waits for.
 *
 * The end: quiesce() lets what is queued go without a call to the kernel; a
 * call in progress ends as long as lanes read, or when the kernel's session
 * is over. Only then lanes may stop reading (fs_loop.c), and only then stop().
 */
#include "fs_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNASKED_MAX 1024u

struct fs_notify {
	struct fs *fs;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct list queue;
	unsigned int unasked; /* queued that nobody waits for */
	bool busy;            /* a notice is in work */
	bool quiet;           /* no calls to the kernel any more */
	bool stop;
};

/* On the lane: the op goes on. */
static void notified(struct reactor_msg *msg)
{
	struct fs_op *op = container_of(msg, struct fs_op, notified);
	void (*then)(struct fs_op * op) = op->then;

	fs_inode_put(op->lane->fs, op->notice.inode);
	op->notice.inode = NULL;
	then(op);
}

static void tell_kernel(struct fs *fs, const struct fs_notice *n)
{
	fuse_ino_t ino = fs_inode_ino(fs, n->inode);
	int err;

	if (fs->exited)
		return;
	err = fuse_lowlevel_notify_inval_inode(fs->se, ino, n->off, n->len);
	/* ENOENT: the kernel has forgotten it; the others: the session is over. */
	if (err && err != -ENOENT && err != -ENODEV && err != -ENOTCONN)
		log_debug("kernel invalidation: %s", strerror(-err));
}

/* The kernel holds nothing old any more of what this notice was about. */
static void note_told(const struct fs_notice *n)
{
	struct fs_inode *in = n->inode;

	pthread_mutex_lock(&in->lock);
	in->told_change = 0;
	/* A count, not a flag: changes seen since the notice was made still want their own. */
	if (n->off == 0 && n->len == 0 && (int32_t)(n->inval - in->inval_done) > 0)
		in->inval_done = n->inval;
	pthread_mutex_unlock(&in->lock);
}

static void notice_free(struct fs *fs, struct fs_notice *n)
{
	fs_inode_put(fs, n->inode);
	free(n);
}

static void notice_done(struct fs *fs, struct fs_notice *n)
{
	if (n->op) {
		reactor_post(n->op->lane->reactor, &n->op->notified);
		return;
	}
	notice_free(fs, n);
}

static void *notify_main(void *arg)
{
	struct fs_notify *nt = arg;
	struct list *node;

	pthread_setname_np(pthread_self(), "notify");
	pthread_mutex_lock(&nt->lock);
	for (;;) {
		struct fs_notice *n;
		bool quiet;

		while (!(node = list_pop_front(&nt->queue)) && !nt->stop)
			pthread_cond_wait(&nt->wake, &nt->lock);
		if (!node)
			break;
		n = container_of(node, struct fs_notice, link);
		if (!n->op)
			nt->unasked--;
		nt->busy = true;
		quiet = nt->quiet;
		pthread_mutex_unlock(&nt->lock);
		if (!quiet)
			tell_kernel(nt->fs, n);
		note_told(n);
		notice_done(nt->fs, n);
		pthread_mutex_lock(&nt->lock);
		nt->busy = false;
	}
	pthread_mutex_unlock(&nt->lock);
	return NULL;
}

int fs_notify_start(struct fs *fs)
{
	struct fs_notify *nt = calloc(1, sizeof(*nt));
	int err;

	if (!nt)
		return -ENOMEM;
	nt->fs = fs;
	pthread_mutex_init(&nt->lock, NULL);
	pthread_cond_init(&nt->wake, NULL);
	list_init(&nt->queue);
	err = pthread_create(&nt->thread, NULL, notify_main, nt);
	if (err) {
		free(nt);
		return -err;
	}
	fs->notify = nt;
	return 0;
}

void fs_notify_quiesce(struct fs *fs)
{
	if (!fs->notify)
		return;
	pthread_mutex_lock(&fs->notify->lock);
	fs->notify->quiet = true;
	pthread_mutex_unlock(&fs->notify->lock);
}

bool fs_notify_busy(struct fs *fs)
{
	bool busy;

	if (!fs->notify)
		return false;
	pthread_mutex_lock(&fs->notify->lock);
	busy = fs->notify->busy || !list_empty(&fs->notify->queue);
	pthread_mutex_unlock(&fs->notify->lock);
	return busy;
}

void fs_notify_stop(struct fs *fs)
{
	struct fs_notify *nt = fs->notify;

	if (!nt)
		return;
	pthread_mutex_lock(&nt->lock);
	nt->quiet = nt->stop = true;
	pthread_cond_signal(&nt->wake);
	pthread_mutex_unlock(&nt->lock);
	pthread_join(nt->thread, NULL);
	pthread_cond_destroy(&nt->wake);
	pthread_mutex_destroy(&nt->lock);
	free(nt);
	fs->notify = NULL;
}

/* False: too many that nobody waits for. */
static bool enqueue(struct fs *fs, struct fs_notice *n)
{
	struct fs_notify *nt = fs->notify;
	bool room;

	pthread_mutex_lock(&nt->lock);
	room = n->op || nt->unasked < UNASKED_MAX;
	if (room) {
		nt->unasked += n->op ? 0 : 1;
		list_push_back(&nt->queue, &n->link);
		pthread_cond_signal(&nt->wake);
	}
	pthread_mutex_unlock(&nt->lock);
	return room;
}

/* What nobody waits for; without memory or room the kernel's own timeouts must do. */
void fs_notify_inval_inode(struct fs *fs, struct fs_inode *in, off_t off, off_t len)
{
	struct fs_lane *l = fs_lane_current();
	struct fs_notice *n;

	if (!fs->notify)
		return;
	n = calloc(1, sizeof(*n));
	if (!n)
		return;
	n->inode = fs_inode_ref(fs, in);
	n->off = off;
	n->len = len;
	pthread_mutex_lock(&in->lock);
	n->inval = in->inval_want;
	pthread_mutex_unlock(&in->lock);
	if (l)
		stats_count(&l->stats->invals, 1);
	if (!enqueue(fs, n))
		notice_free(fs, n);
}

void fs_notify_then(
	struct fs_op *op, struct fs_inode *in, bool pages, void (*then)(struct fs_op *op))
{
	fs_notify_range_then(op, in, pages ? 0 : -1, 0, then);
}

void fs_notify_range_then(
	struct fs_op *op, struct fs_inode *in, off_t off, off_t len, void (*then)(struct fs_op *op))
{
	struct fs *fs = op->lane->fs;
	struct fs_notice *n = &op->notice;

	fs_op_put_call(op);
	memset(n, 0, sizeof(*n));
	n->inode = fs_inode_ref(fs, in);
	n->off = off;
	n->len = len;
	n->op = op;
	pthread_mutex_lock(&in->lock);
	n->inval = in->inval_want;
	pthread_mutex_unlock(&in->lock);
	op->then = then;
	op->notified.run = notified;
	stats_count(&op->lane->stats->invals, 1);
	enqueue(fs, n);
}
