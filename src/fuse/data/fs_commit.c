/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * COMMIT and the write verifier (RFC 8881 section 18.3), for requests and in the
 * background.
 *
 * A COMMIT covers the whole file. What was answered before it was sent, under
 * the verifier that it returns, is durable and no longer held. Under
 * another one the server lost it in between: it is written again (fs_rewrite.c)
 * and committed again, until a COMMIT finds nothing lost since it was sent.
 * From the third time on it is written FILE_SYNC, so that a server whose
 * verifiers mean nothing is not written to for ever.
 *
 * An error of the COMMIT leaves the data where it is, to be tried again by the
 * next one; data that cannot be written again is given up, and so is that of a
 * handle whose last COMMIT failed (fs_release.c). Every handle of the file hears
 * of that, once: by fsync, and if it may write by close; and the next write does
 * before that.
 */
#include "fs_attr.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_unstable.h"
#include "fs_part.h"
#include "log.h"

#include <errno.h>
#include <string.h>

#define UNSTABLE_TRIES 2u
/* A COMMIT that failed in the background is tried again after so long, twice that ... */
#define BACKGROUND_RETRY_NS NSEC_PER_SEC
#define RETRY_DOUBLES       3u
/*
 * Nothing stays uncommitted for much longer: if the server is restarted it is written again, and
 * others may have written there since.
 */
#define AGE_NS (5 * NSEC_PER_SEC)
/* Operations that background COMMITs leave to requests. */
#define OPS_SPARE 2u

static void commit_next(struct fs_op *op);

static void commit_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_commit *c = &call->u.commit;
	bool durable;

	if (call->err) {
		op->commit->done(op, -call->err);
		return;
	}
	/* First: as long as data is unstable the file is not believed to be shorter. */
	durable = fs_unstable_committed(op, &c->verf);
	fs_attr_update(op->lane->fs, op->inode, &c->attr, op->attr_seq, fs_op_now(op));
	if (durable)
		op->commit->done(op, 0);
	else
		commit_next(op);
}

void fs_commit_call(struct fs_op *op, void (*done)(struct nfs4_call *call))
{
	fs_unstable_commit_sent(op);
	memset(&op->call->u.commit, 0, sizeof(op->call->u.commit)); /* offset 0, count 0: all */
	op->call->u.commit.fh = &op->fh;
	op->call->done = done;
	nfs4_commit(op->call);
}

static void commit_start(struct fs_op *op)
{
	fs_commit_call(op, commit_done);
}

static void commit_failed(struct fs_op *op, int err)
{
	op->commit->done(op, err);
}

static void commit_next(struct fs_op *op)
{
	if (fs_rewrite_wait(op, commit_next))
		return;
	if (fs_unstable_is_empty(op->inode)) {
		op->commit->done(op, 0);
		return;
	}
	op->failed = commit_failed;
	if (fs_rewrite_is_due(op->inode))
		fs_rewrite(op, op->commit->tries++ >= UNSTABLE_TRIES, commit_next);
	else
		fs_op_call(op, commit_start);
}

void fs_commit(struct fs_op *op, void (*done)(struct fs_op *op, int err))
{
	op->commit->done = done;
	op->commit->tries = 0;
	if (!fs_writeback_wait(op, op->inode, 0, FS_WRITEBACK_ALL, true, commit_next))
		commit_next(op);
}

/* ---- in the background ---- */

/*
 * The server was restarted: whatever is from before is asked for at once, if it need not wait.
 * fs_unstable_lane.lock held.
 */
static struct fs_unstable_mem *from_before(struct fs_lane *l, uint32_t gen, uint64_t now_ns)
{
	bool some = false;

	if (l->unstable->gen == gen)
		return NULL;
	list_for_each (node, &l->unstable->mems) {
		struct fs_unstable_mem *k = container_of(node, struct fs_unstable_mem, link);

		if (k->gen == gen)
			continue;
		if (k->not_before <= now_ns)
			return k;
		some = true;
	}
	if (!some)
		l->unstable->gen = gen;
	return NULL;
}

static bool is_old(const struct fs_unstable_mem *k, uint64_t now_ns)
{
	return k->since_ns == 0 || k->since_ns + AGE_NS <= now_ns;
}

/* The next file to commit, referenced; NULL: there is no need. */
static struct fs_file *pick(struct fs_lane *l, uint32_t gen)
{
	uint64_t now_ns = reactor_now(l->reactor);
	struct fs_unstable_mem *oldest, *found;
	struct fs_file *f = NULL;

	mutex_lock(&l->unstable->lock);
	found = oldest = fs_unstable_mem_oldest(l, now_ns);
	/* One that waited is due. */
	if (oldest && !oldest->not_before && !fs_unstable_mem_half(l)) {
		found = from_before(l, gen, now_ns);
		if (!found && is_old(oldest, now_ns)) {
			found = oldest;
			stats_count(&l->stats->commits_by_age, 1);
		}
	}
	if (found)
		f = fs_file_get(found->file);
	mutex_unlock(&l->unstable->lock);
	return f;
}

static void background_failed(struct fs_op *op, int err)
{
	struct fs_inode *in = op->inode;
	unsigned int doubles;

	log_warn_limited("COMMIT of file %llu in the background: %s",
		(unsigned long long)fs_inode_fileid(in), strerror(err));
	mutex_lock(&in->lock);
	doubles = in->unstable->failures++;
	mutex_unlock(&in->lock);
	if (doubles > RETRY_DOUBLES)
		doubles = RETRY_DOUBLES;
	fs_unstable_mem_late(op->lane, in, fs_op_now(op) + (BACKGROUND_RETRY_NS << doubles));
}

/* When the lane's oldest is due; it looks again in a while if it could not go on now. */
static void arm(struct fs_lane *l)
{
	uint64_t now_ns = reactor_now(l->reactor), due_ns = 0;

	mutex_lock(&l->unstable->lock);
	if (!list_empty(&l->unstable->mems)) {
		const struct fs_unstable_mem *k =
			list_first(&l->unstable->mems, struct fs_unstable_mem, link);

		due_ns = k->not_before ? k->not_before : k->since_ns + AGE_NS;
	}
	mutex_unlock(&l->unstable->lock);
	if (due_ns == 0 || !fs_lane_may_commit(l))
		return;
	if (due_ns <= now_ns)
		due_ns = now_ns + BACKGROUND_RETRY_NS;
	reactor_timer_set(l->reactor, &l->commit->timer, due_ns);
}

static void watch(struct fs_lane *l)
{
	if (!l->commit->busy && !reactor_timer_armed(&l->commit->timer))
		arm(l);
}

static void look_again(struct reactor_timer *t)
{
	struct fs_lane *l = container_of(t, struct fs_commit_lane, timer)->lane;

	fs_commit_background(l, NULL);
	watch(l);
}

static void lane_made(struct fs_lane *l, void *mem)
{
	l->commit = mem;
	l->commit->lane = l;
}

static bool lane_init(struct fs_lane *l)
{
	reactor_timer_init(&l->commit->timer, look_again);
	return true;
}

static void lane_fini(struct fs_lane *l)
{
	reactor_timer_cancel(l->reactor, &l->commit->timer);
}

static void background_done(struct fs_op *op, int err)
{
	struct fs_lane *l = op->lane;

	if (err)
		background_failed(op, err);
	l->commit->busy = false;
	fs_op_end(op);
	/* Without a session each fails at once: not one inside the other. */
	if (err)
		reactor_timer_in(l->reactor, &l->commit->timer, 0);
	else
		look_again(&l->commit->timer);
}

void fs_commit_background(struct fs_lane *l, struct fs_file *f)
{
	struct fs_op *op;

	if (!fs_lane_may_commit(l) || l->commit->busy || l->ops_free <= OPS_SPARE)
		return;
	f = f ? fs_file_get(f) : pick(l, nfs4_client_generation(l->fs->client));
	if (!f)
		return;
	op = fs_op_new(l);
	op->file = f;
	op->inode = fs_inode_ref(l->fs, f->inode);
	op->cred = f->cred;
	l->commit->busy = true;
	fs_commit(op, background_done);
}

void fs_commit_wrote(struct fs_op *op, bool unstable, bool lost)
{
	bool some_lost = fs_unstable_wrote(op, unstable, lost);

	if (!unstable)
		return;
	watch(op->lane);
	fs_commit_background(op->lane, some_lost ? op->file : NULL);
}

static void lane_kicked(struct fs_lane *l)
{
	if (atomic_exchange(&l->commit->due, false))
		fs_commit_background(l, NULL);
}

static void lane_unblocked(struct fs_lane *l)
{
	fs_commit_background(l, NULL);
}

static void op_made(struct fs_op *op, void *mem)
{
	op->commit = mem;
}

const struct fs_part fs_commit_part = {
	.op_size = sizeof(struct fs_commit),
	.op_made = op_made,
	.lane_size = sizeof(struct fs_commit_lane),
	.lane_made = lane_made,
	.lane_init = lane_init,
	.lane_fini = lane_fini,
	.lane_kicked = lane_kicked,
	.lane_unblocked = lane_unblocked,
};
