/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_asked_buf.h"
#include "fs_asked_int.h"
#include "fs_current.h"
#include "fs_live.h"
#include "fs_tables.h"

#include <assert.h>
#include <linux/fuse.h>

void *fs_asked_buf_memory(void *ctx, size_t size, unsigned int cnt)
{
	const struct live_key key = {.rank = FS_LIVE_RANK_REQUEST, .count_field = FS_ASKED_STATE};

	static_assert(LIVE_RAW_LEAD == RPCRDMA_DATA_LEAD, "a request begins where a record may");
	return live_raw_pieces(ctx, &key, FS_TABLES_REQUEST, FS_ASKED_BYTES, size, cnt);
}

/* ref: of the buffer where h begins. */
static void leave(struct fs *fs, live_ref ref, const struct fuse_in_header *h)
{
	struct fs_asked *a = fs->asked;
	struct fs_asked_entry *e;

	if (ref == LIVE_NONE || live_raw_placed(fs->live, ref) == LIVE_RAW_NONE)
		return;
	mutex_lock(&a->lock);
	e = fs_asked_find(a, h->unique);
	if (e->unique != 0 && e->ref == ref)
		fs_asked_put_in_place(fs, e, h, h->len, live_counted(fs->live, ref));
	live_raw_place(fs->live, ref, LIVE_RAW_NONE);
	mutex_unlock(&a->lock);
}

void fs_asked_buf_leave(const struct fs_lane *l, const struct rpcrdma_buf *buf)
{
	leave(l->fs, live_raw_ref(l->fs->live, buf->mem), (const void *)buf->mem);
}

void fs_asked_buf_put(struct fs_lane *l, struct rpcrdma_buf *buf)
{
	fs_asked_buf_leave(l, buf);
	rpcrdma_buf_put(l->xprt, buf);
}

void fs_asked_buf_expect(const struct fs_lane *l, size_t size)
{
	size_t len = RPCRDMA_DATA_LEAD + size;

	if (l->fs->live && !l->fs->data_goes && len > FS_ASKED_PLACE_SIZE && len <= TABLES_PIECE)
		live_expect(l->fs->live, tables_pieces_len(len));
}

uint8_t *fs_asked_buf_lend(const struct fs_lane *l, const struct rpcrdma_buf *buf,
	const uint8_t *data, size_t size, live_ref *ret_ref)
{
	struct fs *fs = l->fs;
	const struct fuse_in_header *h = (const void *)buf->mem;
	live_ref ref = fs->data_goes ? LIVE_NONE : live_raw_ref(fs->live, buf->mem);
	size_t at = (size_t)(data - buf->mem);
	struct fs_asked *a = fs->asked;
	struct fs_asked_entry *e;

	*ret_ref = LIVE_NONE;
	if (ref == LIVE_NONE || live_raw_placed(fs->live, ref) == LIVE_RAW_NONE)
		return NULL;
	mutex_lock(&a->lock);
	e = fs_asked_find(a, h->unique);
	if (e->unique != 0 && e->ref == ref && h->len == at + size && h->len <= TABLES_PIECE) {
		fs_asked_put_in_place(fs, e, h, h->len, live_counted(fs->live, ref));
		live_raw_place(fs->live, ref, LIVE_RAW_NONE);
		e->lent = e->in == FS_ASKED_IN_RECORD && e->ref != LIVE_NONE;
		*ret_ref = e->lent ? e->ref : LIVE_NONE;
	}
	mutex_unlock(&a->lock);
	return *ret_ref != LIVE_NONE ? live_pieces(fs->live, *ret_ref) + at : NULL;
}

void fs_asked_buf_move(
	const struct fs_lane *l, const struct rpcrdma_buf *buf, uint64_t unique, uint64_t off)
{
	struct fs_asked *a = l->fs->asked;
	const struct fs_asked_entry *e;
	struct fuse_in_header *h = NULL;

	if (!a)
		return;
	mutex_lock(&a->lock);
	e = fs_asked_find(a, unique);
	if (e->unique != 0 && e->ref != LIVE_NONE)
		h = e->in == FS_ASKED_IN_BUF     ? (void *)buf->mem
		    : e->in == FS_ASKED_IN_PLACE ? fs_asked_place(a, e->ref)
						 : (void *)live_pieces(l->fs->live, e->ref);
	if (h)
		__atomic_store_n(&((struct fuse_write_in *)(h + 1))->offset, off, __ATOMIC_RELEASE);
	mutex_unlock(&a->lock);
}

void fs_asked_buf_give_back(struct fs *fs, live_ref ref, uint64_t unique)
{
	struct fs_asked *a = fs->asked;
	bool is_over;
	struct fs_asked_entry *e;

	if (ref == LIVE_NONE)
		return;
	is_over = live_is_retired(fs->live, ref); /* mostly the request is over by then */
	if (!is_over) {
		mutex_lock(&a->lock);
		e = fs_asked_find(a, unique);
		is_over = e->unique == 0 || e->ref != ref;
		if (!is_over)
			e->lent = false;
		mutex_unlock(&a->lock);
	}
	if (is_over)
		live_give_back(fs->live, ref);
}

/* Bytes that the kernel writes there next are a record at once. */
static void expect(struct live *live, live_ref ref, struct fuse_in_header *h)
{
	if (!live_raw_reserve(live, ref))
		live_spoil(live);
	__atomic_store_n(&h->len, 0, __ATOMIC_RELEASE);
	live_count(live, ref, FS_ASKED_NEW);
	live_raw_place(live, ref, LIVE_RAW_LAST);
}

int fs_asked_buf_receive(struct fs_lane *l, struct fuse_buf *to)
{
	struct fuse_in_header *h = to->mem;
	struct live *live = l->fs->live;
	live_ref ref = live_raw_ref(live, h);
	int len;

	assert(l->in_rxbuf == 0);
	leave(l->fs, ref, h);
	if (ref != LIVE_NONE)
		expect(live, ref, h);
	len = fuse_session_receive_buf(l->fs->se, to);
	if (len > 0 && (ref == LIVE_NONE || h->opcode == FUSE_WRITE)) {
		fs_asked_note(l->fs, h, (size_t)len, ref);
	} else if (len > 0 && fs_asked_note_first(l->fs, h, (size_t)len)) {
		l->in_rxbuf = h->unique;
		live_raw_place(live, ref, fs_asked_next_order(l->fs));
	}
	if (ref != LIVE_NONE && live_raw_placed(live, ref) == LIVE_RAW_LAST)
		live_raw_place(live, ref, LIVE_RAW_NONE);
	return len;
}

bool fs_asked_buf_answered(struct fs *fs, uint64_t unique)
{
	struct fs_lane *l = fs_current();

	if (!l || l->fs != fs || l->in_rxbuf != unique)
		return false;
	l->in_rxbuf = 0;
	live_raw_place(fs->live, live_raw_ref(fs->live, l->rxbuf->mem), LIVE_RAW_NONE);
	return true;
}

void fs_asked_buf_list(struct fs_lane *l)
{
	struct live *live = l->fs->live;
	live_ref ref;

	if (l->in_rxbuf == 0)
		return;
	l->in_rxbuf = 0;
	ref = live_raw_ref(live, l->rxbuf->mem);
	fs_asked_note_late(l->fs, (const void *)l->rxbuf->mem, live_raw_placed(live, ref));
	live_raw_place(live, ref, LIVE_RAW_NONE);
}
