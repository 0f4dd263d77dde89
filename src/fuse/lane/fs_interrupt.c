/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that die while they wait for the server. The kernel keeps a killed
 * program until the request it waits for is answered; so the request of a
 * program that is dying is answered EINTR, whatever it is. The operation goes
 * on without it: the RPC, its slot and its memory live until the reply, and
 * what the reply brings (an open file, a lookup count) is given back.
 *
 * A signal that does not kill interrupts nothing, as with the kernel's NFS
 * client: programs do not expect EINTR from a file. FUSE_INTERRUPT does not say
 * which signal it was, is sent at the first one only, and never for what the
 * kernel asks for in the background (O_DIRECT among it). So /proc says who is
 * dying: when a FUSE_INTERRUPT arrives, and once a second of all requests that
 * are a second old (soon, where somebody died just before: on its way out a
 * program closes its files one by one, and each may have to commit). Dying is
 * who has a signal pending that it does not block, ignore or handle: it will
 * not run any more once it is answered. A traced program's signals are the
 * tracer's to pass on, but for SIGKILL.
 *
 * A program that is past its last signal, closing its files, is dying if a
 * signal killed it; one that exits by itself waits for its data. What nobody
 * can be named for (write-back of mappings: fsync waits for it) waits too, and
 * so do callers in other pid namespaces.
 *
 * On its way out a program closes its files, and the kernel waits for that
 * FLUSH without listening to anything. So a lane that has answered somebody
 * goes on reading, whatever is parked, with spare operations.
 */
#include "fs_cred.h"
#include "fs_interrupt.h"
#include "fs_background.h"
#include "fs_lane.h"
#include "fs_metalane.h"
#include "fs_op.h"
#include "fs_part.h"
#include "fs_reply.h"

#include <errno.h>
#include <linux/fuse.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_NS   NSEC_PER_SEC
#define BRISK_NS  (50 * NSEC_PER_MSEC) /* for BRISK_FOR after somebody died, in any lane */
#define BRISK_FOR (5 * NSEC_PER_SEC)
#define PROC_MAX  8192u
#define SPARE_MAX 1024u
#define EXITING   0x4u /* PF_EXITING, proc(5) */
#define FLAGS_AT  7    /* fields of /proc/PID/stat behind the name */
#define STATUS_AT 50

/* When a program was last found dying, by any lane. */
static _Atomic uint64_t died_ns;

static uint64_t poll_ns(const struct fs_lane *l)
{
	uint64_t died = atomic_load_explicit(&died_ns, memory_order_relaxed);

	/* Another lane's clock may be ahead of this one's turn. */
	return reactor_now(l->reactor) < died + BRISK_FOR ? BRISK_NS : POLL_NS;
}

/* What a program survives by default. */
static bool is_mild(unsigned int sig)
{
	static const uint8_t mild[] = {
		SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};

	return memchr(mild, (int)sig, sizeof(mild)) != NULL;
}

/* A number of the status, which are masks but for TracerPid: 0 if it is not there. */
static uint64_t mask_of(const char *status, const char *key)
{
	const char *p = strstr(status, key);

	return p ? strtoull(p + strlen(key), NULL, 16) : 0;
}

bool fs_interrupt_is_killed(const char *status)
{
	uint64_t pending = mask_of(status, "\nSigPnd:") | mask_of(status, "\nShdPnd:");

	pending &= ~(mask_of(status, "\nSigBlk:") | mask_of(status, "\nSigIgn:") |
		     mask_of(status, "\nSigCgt:"));
	if (mask_of(status, "\nTracerPid:") != 0)
		pending &= 1ull << (SIGKILL - 1);
	for (unsigned int sig = 1; pending; sig++, pending >>= 1)
		if ((pending & 1) && !is_mild(sig))
			return true;
	return false;
}

/* The n-th field behind the name, which may contain anything; 0: there is none. */
static unsigned long field_of(const char *stat, unsigned int n)
{
	const char *p = strrchr(stat, ')');

	while (p && n-- > 0)
		p = strchr(p + 1, ' ');
	return p ? strtoul(p, NULL, 10) : 0;
}

bool fs_interrupt_is_exiting(const char *stat)
{
	return (field_of(stat, FLAGS_AT) & EXITING) != 0;
}

bool fs_interrupt_dies_of_signal(const char *stat)
{
	return fs_interrupt_is_exiting(stat) && (field_of(stat, STATUS_AT) & 0x7f) != 0;
}

static bool read_proc(pid_t tid, const char *what, char text[PROC_MAX])
{
	char path[64];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)tid, (int)tid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while ((n = read(fd, text + len, PROC_MAX - 1 - len)) > 0) {
		len += (size_t)n;
		if (len < PROC_MAX - 1)
			continue;
		len /= 2; /* the end matters: before it there may be thousands of groups */
		memmove(text, text + PROC_MAX - 1 - len, len);
	}
	close(fd);
	text[len] = '\0';
	return len > 0;
}

bool fs_interrupt_is_dying(const struct fuse_ctx *ctx)
{
	char text[PROC_MAX];
	bool dying;

	if (ctx->pid <= 0)
		return false;
	dying = (read_proc(ctx->pid, "status", text) && fs_interrupt_is_killed(text)) ||
		(read_proc(ctx->pid, "stat", text) && fs_interrupt_dies_of_signal(text));
	return dying && fs_cred_is_caller(ctx);
}

bool fs_interrupt_is_awaited(const struct fs_op *op)
{
	const struct fuse_ctx *ctx;
	char text[PROC_MAX];

	if (!op->req)
		return false;
	ctx = fuse_req_ctx(op->req);
	return ctx->pid <= 0 || !read_proc(ctx->pid, "stat", text) ||
	       !fs_interrupt_is_exiting(text) || !fs_cred_is_caller(ctx);
}

static void count_abandoned(struct fs_file *f)
{
	if (!f)
		return;
	mutex_lock(&f->inode->lock);
	f->abandoned++;
	mutex_unlock(&f->inode->lock);
}

void fs_interrupt_abandon(struct fs_op *op)
{
	op->abandoned = true;
	op->lane->abandoned++;
	fs_part_op_abandoned(op->lane->fs, op);
	if (!op->on_file)
		return;
	count_abandoned(op->file);
	count_abandoned(op->file2);
}

/* True: it still waits. */
static bool answer_if_dying(struct fs_op *op)
{
	struct fs_lane *l = op->lane;

	if (!fs_interrupt_is_dying(fuse_req_ctx(op->req)))
		return true;
	stats_count(&l->stats->interrupts, 1);
	fs_interrupt_abandon(op);
	atomic_store_explicit(&died_ns, reactor_now(l->reactor), memory_order_relaxed);
	fs_reply_early(op, EINTR); /* another lane may read its RELEASE at once */
	return false;
}

static void uncount_abandoned(struct fs_file *f)
{
	struct fs_op *next = NULL;

	if (!f)
		return;
	mutex_lock(&f->inode->lock);
	if (--f->abandoned == 0) {
		next = f->releasing;
		f->releasing = NULL;
	}
	mutex_unlock(&f->inode->lock);
	if (next)
		fs_op_wake(next);
}

void fs_interrupt_ended(struct fs_op *op)
{
	op->lane->abandoned--;
	if (!op->on_file)
		return;
	uncount_abandoned(op->file);
	uncount_abandoned(op->file2);
}

bool fs_interrupt_release_waits(struct fs_op *op, void (*then)(struct fs_op *op))
{
	bool wait;

	mutex_lock(&op->inode->lock);
	wait = op->file->abandoned > 0;
	if (wait) {
		op->then = then;
		op->file->releasing = op;
	}
	mutex_unlock(&op->inode->lock);
	return wait;
}

/* True: it still waits. */
static bool check_old(struct fs_op *op, uint64_t now)
{
	return now - op->begin_ns < poll_ns(op->lane) || answer_if_dying(op);
}

static bool check_one(struct fs_op *op, uint64_t unique)
{
	if (op->unique == unique)
		answer_if_dying(op);
	return op->unique == unique;
}

/* All requests of the lane. True: `check` was of any. */
static bool check_all(
	struct fs_lane *l, bool (*check)(struct fs_op *op, uint64_t arg), uint64_t arg)
{
	unsigned int before = l->abandoned;
	bool wait = false;

	list_for_each (node, &l->ops) {
		struct fs_op *op = container_of(node, struct fs_op, pool_link);

		if (op->req)
			wait |= check(op, arg);
	}
	if (l->abandoned == before)
		return wait;
	reactor_timer_in(l->reactor, &l->interrupt_timer, BRISK_NS);
	fs_lane_turn(l); /* it may have stalled with a request of the same program */
	return wait;
}

bool fs_interrupt_spare(struct fs_lane *l)
{
	if (!fs_metalane_reads_on(l) || l->spare_cnt == SPARE_MAX || !fs_op_pool_add(l, 1))
		return false;
	l->spare_cnt++;
	return true;
}

static void poll_fire(struct reactor_timer *t)
{
	struct fs_lane *l = container_of(t, struct fs_lane, interrupt_timer);

	if (check_all(l, check_old, reactor_now(l->reactor)))
		reactor_timer_in(l->reactor, t, poll_ns(l));
}

void fs_interrupt_init(struct fs_lane *l)
{
	reactor_timer_init(&l->interrupt_timer, poll_fire);
}

void fs_interrupt_fini(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->interrupt_timer);
}

void fs_interrupt_watch(struct fs_op *op)
{
	struct fs_lane *l = op->lane;

	op->unique = l->unique;
	op->begin_ns = reactor_now(l->reactor);
	op->opcode = l->opcode;
	fs_background_begin(op);
	op->read_ns = l->read_ns;
	op->times = (struct nfs4_times){.mark_ns = l->read_ns};
	if (!reactor_timer_armed(&l->interrupt_timer))
		reactor_timer_in(l->reactor, &l->interrupt_timer, poll_ns(l));
}

uint64_t fs_interrupt_of(const struct fuse_in_header *h)
{
	const struct fuse_interrupt_in *in = (const void *)(h + 1);

	return h->opcode == FUSE_INTERRUPT && h->len >= sizeof(*h) + sizeof(*in) ? in->unique : 0;
}

bool fs_interrupt_now(struct fs_lane *l, uint64_t unique)
{
	return check_all(l, check_one, unique);
}
