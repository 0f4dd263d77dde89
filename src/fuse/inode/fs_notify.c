/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads that call fuse_lowlevel_notify_*, which no others do: such a
 * call waits for locks that requests hold which lanes must answer; a lane that
 * made it could wait for itself.
 *
 *   pages    pages of inodes, and their attributes: waits for page locks, so for READs. Several
 *            threads, up to PAGES_MAX: made when none is left that is idle, and never two at one
 *            inode, so that what hangs is that file. Operations wait for them
 *   attrs    attributes alone, which waits for nothing. Operations wait for it
 *   dentries names in directories (fs_dentry.h): waits for the directory's lock, which a CREATE
 *            holds whose answer may wait for `pages` or `attrs`. Nothing ever waits for it
 *
 * With keep= pages and dentries do not write to /dev/fuse themselves: a daemon that is killed while
 * a thread waits so is not dead before that ends (fs_notify_through()).
 *
 * They hold no lock during the call. What is queued is bounded by what waits for
 * it: operations (embedded), and UNASKED_MAX entries that nobody waits for; names
 * are taken as a whole from where they were kept.
 *
 * A name's time is ended where the kernel can do that. Linux before 6.3 can only drop it: that
 * unmounts what is mounted below, so there nothing is done as long as anything is. (Nor is the
 * directory itself dropped from its parent: getcwd(2) in it would fail.)
 *
 * The end: quiesce() lets what is queued go without a call to the kernel; a
 * call in progress ends as long as lanes read, or when the kernel's session
 * is over. Only then lanes may stop reading (fs_lane.c), and only then stop().
 */
#include "fs_current.h"
#include "fs_notify.h"
#include "fs_inode.h"
#include "fs_dentry.h"
#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNASKED_MAX 1024u
#define PAGES_MAX   8u

/* A thread. */
struct worker {
	struct fs_notify *nt;
	pthread_t thread;
	const void *subject; /* of the entry in work; NULL: none */
	int line;            /* its thread's, to who writes for it; -1: nobody does */
	_Atomic int next;    /* the one from now on; -1: the same */
};

static _Thread_local struct worker *self;

/* A queue and who works on it. */
struct fs_notify {
	struct fs *fs;
	const char *name;
	bool of_dentries;             /* entries are fs_dentries; else fs_notices */
	_Atomic unsigned int unasked; /* queued that nobody waits for */
	_Atomic bool quiet;           /* no calls to the kernel any more */
	struct mutex lock;
	/* lock */
	pthread_cond_t wake;
	struct list queue;
	bool stop;
	struct worker workers[PAGES_MAX];
	unsigned int cnt, max, idle; /* of those */
};

/* ---- another process that writes ---- */

/* Returns its answer, or 0: it is gone. */
static int32_t ask(int line, const struct iovec *iov, int count)
{
	struct msghdr mh = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
	int32_t said;
	ssize_t n;

	do
		n = sendmsg(line, &mh, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0;
	do
		n = recv(line, &said, sizeof(said), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(said) ? said : 0;
}

static int close_line(int line)
{
	if (line >= 0)
		close(line);
	return -1;
}

static void take_next(struct worker *w)
{
	int next = atomic_exchange(&w->next, -1);

	if (next < 0)
		return;
	close_line(w->line);
	w->line = next;
}

ssize_t fs_notify_write(struct fs *fs, int fd, const struct iovec *iov, int count)
{
	struct worker *w = self;
	int32_t said = 0;

	if (w)
		take_next(w);
	if (w && w->line >= 0) {
		said = ask(w->line, iov, count);
		if (said == 0)
			w->line = close_line(w->line);
	}
	if (said == 0)
		return writev(fd, iov, count);
	errno = said < 0 ? -said : 0;
	return said < 0 ? -1 : said;
}

/* The worker closes the one that it has. */
static void give_line(struct worker *w, int line)
{
	close_line(atomic_exchange(&w->next, line));
}

void fs_notify_through(struct fs *fs, const int *lines)
{
	for (unsigned int i = 0; i < PAGES_MAX; i++)
		give_line(&fs->pages->workers[i], lines[i]);
	give_line(&fs->dentries->workers[0], lines[PAGES_MAX]);
}

_Static_assert(FS_NOTIFY_LINES == PAGES_MAX + 1, "attrs waits for nothing");

/* ---- inodes ---- */

static void log_failure(int err)
{
	/* ENOENT: the kernel has forgotten it; the others: the session is over. */
	if (err && err != -ENOENT && err != -ENODEV && err != -ENOTCONN)
		log_debug("kernel invalidation: %s", strerror(-err));
}

static void tell_kernel(struct fs *fs, const struct fs_notice *n)
{
	fuse_ino_t ino = fs_inode_ino(fs, n->inode);
	int err;

	if (fs->exited)
		return;
	err = fuse_lowlevel_notify_inval_inode(fs->se, ino, n->off, n->len);
	log_failure(err);
}

/* The kernel holds nothing old any more of what this notice was about. */
static void note_told(const struct fs_notice *n)
{
	struct fs_inode *in = n->inode;

	mutex_lock(&in->lock);
	in->told_change = 0;
	/* A count, not a flag: changes seen since the notice was made still want their own. */
	if (n->off == 0 && n->len == 0 && (int32_t)(n->inval - in->inval_done) > 0)
		in->inval_done = n->inval;
	mutex_unlock(&in->lock);
}

static void notice_free(struct fs *fs, struct fs_notice *n)
{
	fs_inode_put(fs, n->inode);
	free(n);
}

static void notice_done(struct fs *fs, struct fs_notice *n)
{
	if (n->told)
		reactor_post(n->reactor, n->told);
	else
		notice_free(fs, n);
}

static void run_notice(struct fs_notify *nt, struct list *entry)
{
	struct fs_notice *n = container_of(entry, struct fs_notice, link);

	if (!n->told)
		nt->unasked--;
	if (!nt->quiet)
		tell_kernel(nt->fs, n);
	note_told(n);
	notice_done(nt->fs, n);
}

/* ---- dentries ---- */

struct recall {
	struct fs_notify *nt;
	fuse_ino_t dir;
};

static bool inval_name(void *ctx, const char *name, size_t len)
{
	const struct recall *r = ctx;
	struct fs *fs = r->nt->fs;

	if (r->nt->quiet || fs->exited)
		return false;
	if (fs->expire_dentries)
		log_failure(fuse_lowlevel_notify_expire_entry(
			fs->se, r->dir, name, len, FUSE_LL_EXPIRE_ONLY));
	else
		log_failure(fuse_lowlevel_notify_inval_entry(fs->se, r->dir, name, len));
	return true;
}

static void run_dentries(struct fs_notify *nt, struct list *entry)
{
	struct fs_dentries *n = container_of(entry, struct fs_dentries, link);
	struct recall r = {nt, fs_inode_ino(nt->fs, n->dir)};

	if (!fs_inode_is_forgotten(nt->fs, n->dir) || n->dir == nt->fs->root) {
		if (nt->fs->expire_dentries || !fs_covers_any(&nt->fs->covers, nt->fs->dev))
			fs_dentry_store_each(n, inval_name, &r);
	}
	fs_inode_put(nt->fs, n->dir);
	fs_dentry_store_free(n);
}

/* ---- the threads ---- */

/* Does what an entry of the queue asks for; not under the lock. */
static void run(struct fs_notify *nt, struct list *entry)
{
	if (nt->of_dentries)
		run_dentries(nt, entry);
	else
		run_notice(nt, entry);
}

/* Two with the same one are never in work at once. */
static const void *subject(const struct fs_notify *nt, const struct list *entry)
{
	if (nt->of_dentries)
		return container_of(entry, struct fs_dentries, link)->dir;
	return container_of(entry, struct fs_notice, link)->inode;
}

static bool is_in_work(const struct fs_notify *nt, const void *subject)
{
	for (unsigned int i = 0; i < nt->cnt; i++)
		if (nt->workers[i].subject == subject)
			return true;
	return false;
}

/* The first that may be done now; NULL: none. */
static struct list *take(struct fs_notify *nt)
{
	list_for_each (node, &nt->queue) {
		if (is_in_work(nt, subject(nt, node)))
			continue; /* who is at it takes the next one too */
		list_del(node);
		return node;
	}
	return NULL;
}

static int add_worker(struct fs_notify *nt);

static void *notify_main(void *arg)
{
	struct worker *w = arg;
	struct fs_notify *nt = w->nt;
	struct list *entry;

	pthread_setname_np(pthread_self(), nt->name);
	self = w;
	mutex_lock(&nt->lock);
	for (;;) {
		while (!(entry = take(nt)) && !nt->stop) {
			nt->idle++;
			mutex_wait(&nt->lock, &nt->wake);
			nt->idle--;
		}
		if (!entry)
			break;
		w->subject = subject(nt, entry);
		if (nt->idle == 0 && !nt->stop)
			add_worker(nt); /* this one may wait for long */
		mutex_unlock(&nt->lock);
		mutex_assert_none();
		run(nt, entry);
		mutex_lock(&nt->lock);
		w->subject = NULL;
	}
	mutex_unlock(&nt->lock);
	return NULL;
}

/* Lock held. Without memory for one more those that are there do all. */
static int add_worker(struct fs_notify *nt)
{
	struct worker *w = &nt->workers[nt->cnt];
	int err;

	if (nt->cnt == nt->max)
		return 0;
	w->nt = nt;
	err = pthread_create(&w->thread, NULL, notify_main, w);
	if (!err)
		nt->cnt++;
	return -err;
}

static int start(struct fs_notify **ret, const struct fs_notify *what)
{
	struct fs_notify *nt = malloc(sizeof(*nt));
	int err;

	if (!nt)
		return -ENOMEM;
	*nt = *what;
	mutex_init(&nt->lock, MUTEX_FS_NOTIFY);
	pthread_cond_init(&nt->wake, NULL);
	list_init(&nt->queue);
	for (unsigned int i = 0; i < PAGES_MAX; i++) {
		nt->workers[i].line = -1;
		nt->workers[i].next = -1;
	}
	mutex_lock(&nt->lock);
	err = add_worker(nt);
	mutex_unlock(&nt->lock);
	if (err)
		free(nt);
	else
		*ret = nt;
	return err;
}

static bool is_busy(struct fs_notify *nt)
{
	bool busy;

	if (!nt)
		return false;
	mutex_lock(&nt->lock);
	busy = !list_empty(&nt->queue);
	for (unsigned int i = 0; i < nt->cnt; i++)
		busy |= nt->workers[i].subject != NULL;
	mutex_unlock(&nt->lock);
	return busy;
}

static void stop(struct fs_notify **ntp)
{
	struct fs_notify *nt = *ntp;

	if (!nt)
		return;
	mutex_lock(&nt->lock);
	nt->quiet = nt->stop = true;
	pthread_cond_broadcast(&nt->wake);
	mutex_unlock(&nt->lock);
	/* There will be no more of them. */
	for (unsigned int i = 0; i < nt->cnt; i++)
		pthread_join(nt->workers[i].thread, NULL);
	for (unsigned int i = 0; i < PAGES_MAX; i++) {
		close_line(nt->workers[i].line);
		close_line(nt->workers[i].next);
	}
	pthread_cond_destroy(&nt->wake);
	mutex_destroy(&nt->lock);
	free(nt);
	*ntp = NULL;
}

/* False: too many that nobody waits for. */
static bool enqueue(struct fs_notify *nt, struct list *entry, bool unasked)
{
	bool room;

	mutex_lock(&nt->lock);
	room = !unasked || nt->unasked < UNASKED_MAX;
	if (room) {
		nt->unasked += unasked ? 1 : 0;
		list_push_back(&nt->queue, entry);
		pthread_cond_signal(&nt->wake);
	}
	mutex_unlock(&nt->lock);
	return room;
}

int fs_notify_start(struct fs *fs)
{
	const struct fs_notify pages = {.fs = fs, .name = "pages", .max = PAGES_MAX};
	const struct fs_notify attrs = {.fs = fs, .name = "attrs", .max = 1};
	const struct fs_notify dentries = {
		.fs = fs, .name = "dentries", .of_dentries = true, .max = 1};
	int err = start(&fs->pages, &pages);

	if (!err)
		err = start(&fs->attrs, &attrs);
	return err ? err : start(&fs->dentries, &dentries);
}

static void quiesce(struct fs_notify *nt)
{
	if (nt)
		nt->quiet = true;
}

void fs_notify_quiesce(struct fs *fs)
{
	quiesce(fs->pages);
	quiesce(fs->attrs);
	quiesce(fs->dentries);
}

bool fs_notify_busy(struct fs *fs)
{
	return is_busy(fs->pages) || is_busy(fs->attrs) || is_busy(fs->dentries);
}

void fs_notify_stop(struct fs *fs)
{
	stop(&fs->dentries);
	stop(&fs->attrs);
	stop(&fs->pages);
}

/* Attributes alone, or pages too. */
static struct fs_notify *queue_of(struct fs *fs, const struct fs_notice *n)
{
	return n->off < 0 ? fs->attrs : fs->pages;
}

static bool queue_notice(struct fs *fs, struct fs_notice *n)
{
	mutex_lock(&n->inode->lock);
	n->inval = n->inode->inval_want;
	mutex_unlock(&n->inode->lock);
	return enqueue(queue_of(fs, n), &n->link, !n->told);
}

/* ---- for lanes ---- */

/* What nobody waits for; without memory or room the kernel's own timeouts must do. */
bool fs_notify_inval_inode(struct fs *fs, struct fs_inode *in, off_t off, off_t len)
{
	struct stats *stats = fs_current_stats();
	struct fs_notice *n = fs->pages ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return false;
	n->inode = fs_inode_ref(fs, in);
	n->off = off;
	n->len = len;
	if (stats)
		stats_count(&stats->invals, 1);
	if (queue_notice(fs, n))
		return true;
	notice_free(fs, n);
	return false;
}

void fs_notify_then(struct fs *fs, struct fs_notice *n)
{
	queue_notice(fs, n);
}

void fs_notify_dentries(struct fs *fs, struct fs_dentries *n)
{
	if (fs->dentries) {
		enqueue(fs->dentries, &n->link, false);
		return;
	}
	fs_inode_put(fs, n->dir);
	fs_dentry_store_free(n);
}
