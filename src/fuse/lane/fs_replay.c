/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_replay.h"

#include <stdlib.h>
#include <string.h>

struct replay {
	struct list link; /* fs->replays, lanes_lock */
	size_t len;
	uint8_t bytes[];
};

bool fs_replay_add(struct fs *fs, const void *req, size_t len)
{
	struct replay *p = malloc(sizeof(*p) + len);

	if (!p)
		return false;
	p->len = len;
	memcpy(p->bytes, req, len);
	mutex_lock(&fs->lanes_lock);
	list_push_back(&fs->replays, &p->link);
	atomic_fetch_add(&fs->replays_cnt, 1);
	mutex_unlock(&fs->lanes_lock);
	return true;
}

bool fs_replay_any(const struct fs *fs)
{
	return atomic_load_explicit(&fs->replays_cnt, memory_order_relaxed) > 0;
}

size_t fs_replay_take(struct fs *fs, void *ret, size_t size)
{
	struct list *node = NULL;
	struct replay *p;
	size_t len;

	if (!fs_replay_any(fs))
		return 0;
	mutex_lock(&fs->lanes_lock);
	node = list_pop_front(&fs->replays);
	if (node)
		atomic_fetch_sub(&fs->replays_cnt, 1);
	mutex_unlock(&fs->lanes_lock);
	if (!node)
		return 0;
	p = container_of(node, struct replay, link);
	len = p->len <= size ? p->len : 0;
	memcpy(ret, p->bytes, len);
	free(p);
	return len;
}

void fs_replay_fini(struct fs *fs)
{
	struct list *node;

	while ((node = list_pop_front(&fs->replays)))
		free(container_of(node, struct replay, link));
}
