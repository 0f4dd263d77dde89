/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that was written is made durable, because an administrator asks: FUSE tells us
 * nothing of syncfs(2) and sync(1). The files that are open now are committed one after the other,
 * by the first lane; what is closed meanwhile is committed by its close.
 *
 * So is, without a wish, what was written again after a crash: before other clients may write, who
 * wait for delegations that the process before had (nfs4_keep.h).
 *
 * A wish that comes while files are being committed is for a round of its own: what was committed
 * before it may have been written again.
 */
#include "fs_lane.h"
#include "fs_op.h"
#include "fs_writeback.h"
#include "fs_file.h"
#include "fs_inode.h"
#include "fs_sync.h"
#include "fs_part.h"
#include "log.h"
#include "nfs4_keep.h"

#include <stdlib.h>
#include <string.h>

/* It looks again after so long when no operation is free. */
#define RETRY_NS  (100 * NSEC_PER_MSEC)
#define OPS_SPARE 2u

static struct fs_lane *lane_of(struct fs *fs)
{
	struct fs_lane *l;

	mutex_lock(&fs->lanes_lock);
	l = list_empty(&fs->lanes) ? NULL : list_first(&fs->lanes, struct fs_lane, link);
	mutex_unlock(&fs->lanes_lock);
	return l;
}

uint64_t fs_sync_wish(struct fs *fs)
{
	uint64_t ticket = atomic_fetch_add(&fs->sync->wished, 1) + 1;
	struct fs_lane *l = lane_of(fs);

	if (l)
		fs_lane_kick(l);
	return ticket;
}

bool fs_sync_is_done(const struct fs *fs, uint64_t ticket, unsigned int *ret_failed)
{
	bool done = fs->sync->done >= ticket;

	*ret_failed = fs->sync->failed;
	return done;
}

/* All that are open, each with a reference. False: out of memory. */
static bool take_files(struct fs *fs)
{
	struct fs_sync *s = fs->sync;
	size_t max;

	fs_inode_table_lock(fs);
	max = fs->files_open;
	s->files = calloc(max + 1, sizeof(struct fs_file *));
	if (s->files)
		list_for_each (node, &fs->files)
			if (s->cnt < max)
				s->files[s->cnt++] =
					fs_file_get(container_of(node, struct fs_file, all_link));
	fs_inode_table_unlock(fs);
	return s->files != NULL;
}

static void round_over(struct fs *fs)
{
	struct fs_sync *s = fs->sync;

	while (s->next < s->cnt)
		fs_file_put(fs, s->files[s->next++]);
	free(s->files);
	s->files = NULL;
	s->cnt = s->next = 0;
	s->failed = s->failing;
	s->done = s->covers;
	/* At the end the session returns delegations itself. */
	if (s->replayed == 0 || s->done < s->replayed || !s->lane)
		return;
	s->replayed = 0;
	nfs4_keep_replayed(s->lane->sess);
}

static void look_again(struct reactor_timer *t)
{
	fs_sync_turn(container_of(t, struct fs_sync, timer)->lane);
}

static void round_begin(struct fs_lane *l)
{
	struct fs_sync *s = l->fs->sync;

	if (!s->lane) /* else the timer may be armed: a kick may come before it fires */
		reactor_timer_init(&s->timer, look_again);
	s->lane = l;
	s->covers = s->wished;
	s->failing = 0;
	if (!take_files(l->fs)) {
		s->failing = 1;
		round_over(l->fs);
	}
}

static void committed(struct fs_op *op, int err)
{
	struct fs_lane *l = op->lane;
	struct fs_sync *s = l->fs->sync;

	if (err) {
		log_warn_limited("sync: COMMIT of file %llu: %s",
			(unsigned long long)fs_inode_fileid(op->inode), strerror(err));
		s->failing++;
	}
	s->busy = false;
	/* Without a session each fails at once: not one inside the other. */
	reactor_timer_in(l->reactor, &s->timer, 0);
	fs_op_end(op);
}

static void commit(struct fs_lane *l, struct fs_file *f)
{
	struct fs_op *op = fs_op_new(l);

	op->file = fs_file_get(f);
	op->inode = fs_inode_ref(l->fs, f->inode);
	op->cred = f->cred;
	l->fs->sync->busy = true;
	fs_commit(op, committed);
}

static void go_on(struct fs_lane *l)
{
	struct fs_sync *s = l->fs->sync;

	while (s->next < s->cnt && !s->busy) {
		struct fs_file *f = s->files[s->next];
		bool dirty = fs_writeback_is_dirty(f->inode);

		if (dirty && l->ops_free <= OPS_SPARE) {
			reactor_timer_in(l->reactor, &s->timer, RETRY_NS);
			return;
		}
		s->next++;
		if (dirty)
			commit(l, f);
		fs_file_put(l->fs, f);
	}
	if (!s->busy)
		round_over(l->fs);
}

void fs_sync_turn(struct fs_lane *l)
{
	struct fs_sync *s = l->fs->sync;

	if (l != lane_of(l->fs))
		return;
	if (atomic_exchange(&l->fs->replays.over, false))
		s->replayed = atomic_fetch_add(&s->wished, 1) + 1;
	if (s->done == s->wished || s->busy)
		return;
	/* At the end each file is committed by its close. */
	if (!fs_lane_may_commit(l))
		return;
	if (!s->files)
		round_begin(l);
	if (s->files)
		go_on(l);
	if (!s->files && s->done != s->wished) /* one that came meanwhile */
		reactor_timer_in(l->reactor, &s->timer, 0);
}

static void lane_fini(struct fs_lane *l)
{
	struct fs_sync *s = l->fs->sync;

	if (s->lane != l)
		return;
	reactor_timer_cancel(l->reactor, &s->timer);
	s->lane = NULL;
	if (s->files)
		round_over(l->fs);
}

const struct fs_part fs_sync_part = {
	.lane_fini = lane_fini,
	.lane_kicked = fs_sync_turn,
};
