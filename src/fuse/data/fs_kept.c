/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_kept.h"
#include "fs_asked.h"
#include "fs_file.h"
#include "fs_live.h"
#include "fs_replay.h"
#include "fs_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

/* Fields of FS_TABLES_DATA; its bytes are as of FS_TABLES_REQUEST. */
enum {
	DATA_OFF = 20,
	DATA_APPENDS = 21,
};

#define DATA_CRC_MAX 64u /* where it belongs */

void fs_kept_request(struct fs *fs, struct fs_kept *k, uint64_t unique)
{
	uint64_t *v, order;

	if (!fs->live || fs->data_goes || unique == 0)
		return;
	if (k->cnt > 0) {
		v = realloc(k->more, k->cnt * sizeof(*v));
		if (!v) {
			live_spoil(fs->live);
			return;
		}
		k->more = v;
	}
	if (!fs_asked_keep(fs, unique, &order))
		return;
	if (k->cnt == 0 && k->data == LIVE_NONE)
		k->order = order;
	if (k->cnt == 0)
		k->unique = unique;
	else
		k->more[k->cnt - 1] = unique;
	k->cnt++;
}

static void drop_requests(struct fs *fs, struct fs_kept *k)
{
	for (uint32_t i = 0; i < k->cnt; i++)
		fs_asked_release(fs, i == 0 ? k->unique : k->more[i - 1]);
	free(k->more);
	k->more = NULL;
	k->cnt = 0;
}

void fs_kept_data(struct fs *fs, struct fs_kept *k, const struct fs_file *f, uint64_t off,
	const void *p, uint32_t len)
{
	const struct live_key key = {
		.rank = FS_LIVE_RANK_REQUEST, .group = k->order, .crc_max = DATA_CRC_MAX};
	struct tables_out t;

	if (!fs->live || (k->cnt == 0 && k->data == LIVE_NONE && k->order == 0))
		return;
	tables_begin_in(&t);
	tables_record(&t, FS_TABLES_DATA);
	tables_put(&t, FS_TABLES_HANDLE, f->handle);
	tables_put(&t, DATA_OFF, off);
	if (k->appends)
		tables_put(&t, DATA_APPENDS, true);
	tables_put_pieces(&t, FS_ASKED_BYTES, p, len);
	fs_live_put(fs, &k->data, &key, &t);
	drop_requests(fs, k);
}

void fs_kept_drop(struct fs *fs, struct fs_kept *k)
{
	drop_requests(fs, k);
	live_drop(fs->live, &k->data);
	k->order = 0;
}

void fs_kept_move(struct fs_kept *to, struct fs_kept *from)
{
	*to = *from;
	*from = (struct fs_kept){.order = 0};
}

int fs_kept_get(struct fs *fs, const struct tables_record *r)
{
	struct fuse_write_in w = {.fh = tables_get(r, FS_TABLES_HANDLE),
		.offset = tables_get(r, DATA_OFF),
		.flags = tables_get(r, DATA_APPENDS) ? O_APPEND : 0};
	const struct fs_file *f = fs_handle_of(&fs->file_handles, w.fh);
	struct fuse_in_header h = {.opcode = FUSE_WRITE, .unique = fs_replay_unique(fs)};
	uint8_t *req = malloc(sizeof(h) + sizeof(w) + r->len);
	size_t len;
	int err = 0;

	if (!req)
		return -ENOMEM;
	len = fs_asked_get_bytes(r, req + sizeof(h) + sizeof(w));
	if (!f || len == 0 || len > UINT32_MAX - sizeof(h) - sizeof(w)) {
		free(req);
		return -EBADMSG;
	}
	h.nodeid = f->inode->slot;
	h.len = (uint32_t)(sizeof(h) + sizeof(w) + len);
	w.size = (uint32_t)len;
	memcpy(req, &h, sizeof(h));
	memcpy(req + sizeof(h), &w, sizeof(w));
	if (fs_replay_add_data(fs, req, h.len))
		fs_asked_await(fs, h.unique);
	else
		err = -ENOMEM;
	free(req);
	return err;
}
