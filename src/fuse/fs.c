/* SPDX-License-Identifier: BSD-3-Clause */
/* The file system object: made before the lanes, freed after them. */
#include "fs_ahead.h"
#include "fs_append.h"
#include "fs_asked.h"
#include "fs_attr.h"
#include "fs_copy.h"
#include "fs_deleg.h"
#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_lock.h"
#include "fs_notify.h"
#include "fs_ops.h"
#include "fs_part.h"
#include "fs_replay.h"
#include "fs_session.h"
#include "fs_share.h"
#include "fs_silly.h"
#include "fs_sync.h"
#include "fs_unstable.h"
#include "fs_validate.h"
#include "fs_writeback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LOCK_POLL_NS (200 * NSEC_PER_MSEC)

/* In the order of their making: those that share out what an earlier one counted come later. */
static const struct fs_part *const parts[] = {
	&fs_lockwait_part,
	&fs_deleg_lane_part,
	&fs_share_part,
	&fs_validate_part,
	&fs_unstable_mem_part,
	&fs_rewrite_part,
	&fs_commit_part,
	&fs_append_part,
	&fs_writeback_part,
	&fs_ahead_part,
	&fs_sync_part,
	&fs_copywait_part,
	&fs_release_part,
	NULL,
};

static void conf_free(struct fs_conf *c)
{
	free((char *)c->source);
	free((char *)c->mountpoint);
	free((char *)c->mount_opts);
}

static bool conf_copy(struct fs_conf *to, const struct fs_conf *c)
{
	*to = *c;
	to->source = strdup(c->source ? c->source : "rpcrdmafs");
	to->mountpoint = strdup(c->mountpoint ? c->mountpoint : "");
	to->mount_opts = c->mount_opts ? strdup(c->mount_opts) : NULL;
	return to->source && to->mountpoint && (to->mount_opts || !c->mount_opts);
}

/* A mount, and what the rooms have of it. */
struct whole {
	struct fs fs; /* first */
	struct fs_sync sync;
	struct fs_locks locks;
	struct fs_delegs delegs;
	struct fs_clones clones;
};

struct fs *fs_new(const struct fs_conf *conf, struct nfs4_client *client)
{
	struct whole *w = calloc(1, sizeof(*w));
	struct fs *fs = w ? &w->fs : NULL;
	uint32_t start = 0;

	if (!fs)
		return NULL;
	fs->sync = &w->sync;
	fs->locks = &w->locks;
	fs->delegs = &w->delegs;
	fs->clones = &w->clones;
	fs_part_init(fs, parts);
	fs->client = client;
	fs->fd = -1;
	fs->mount_fd = fs_mountfd_of(conf->mountpoint ? conf->mountpoint : "");
	list_init(&fs->files);
	list_init(&fs->dirs);
	list_init(&fs->lanes);
	list_init(&fs->replays.list);
	list_init(&fs->replays.sillies);
	fs->replays.device = -1;
	list_init(&fs->locks->waits);
	fs->locks->poll_ns = LOCK_POLL_NS;
	mutex_init(&fs->locks->lock, MUTEX_FS_LOCKS);
	mutex_init(&fs->lanes_lock, MUTEX_FS_LANES);
	mutex_init(&fs->clones->lock, MUTEX_FS_CLONE);
	mutex_init(&fs->unmount_lock, MUTEX_FS_UNMOUNT);
	fs_covers_init(&fs->covers);
	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) == (ssize_t)sizeof(start))
		fs->silly_cnt = start;
	if (!conf_copy(&fs->conf, conf) || fs_inode_table_new(fs) != 0) {
		conf_free(&fs->conf);
		free(fs);
		errno = ENOMEM;
		return NULL;
	}
	nfs4_client_on_lock_free(client, fs_lockwait_freed, fs);
	fs_deleg_init(fs);
	return fs;
}

int fs_set_root(struct fs *fs)
{
	const struct nfs4_fsinfo *info = nfs4_client_fsinfo(fs->client);
	struct fs_inode *root = fs_inode_lookup(fs, &info->root, &info->root_attr, 0);

	fs_facts_init(fs);
	if (!root)
		return info->root.len ? -ENOMEM : -EIO;
	fs->root = root; /* the reference is the mount's */
	fs->fsid_major = info->root_attr.fsid_major;
	fs->fsid_minor = info->root_attr.fsid_minor;
	/* Known, but from before the mount: the first stat asks. */
	fs_attr_update(fs, root, &info->root_attr, fs_attr_seq(root), 0);
	return 0;
}

struct fs_gauges fs_gauges(struct fs *fs)
{
	struct fs_gauges g = {.inodes = fs_inode_count(fs), .files = fs->files_open};

	mutex_lock(&fs->lanes_lock);
	list_for_each (node, &fs->lanes) {
		const struct fs_lane *l = container_of(node, struct fs_lane, link);

		g.dirty += l->writeback->bytes;
		g.uncommitted += l->unstable->uncommitted;
	}
	mutex_unlock(&fs->lanes_lock);
	return g;
}

struct fs_losses fs_losses(const struct fs *fs)
{
	return (struct fs_losses){.bytes = fs->lost_bytes, .files = fs->lost_files};
}

void fs_set_ops_log(struct fs *fs, bool on)
{
	fs->ops_log = on;
}

bool fs_has_ops_log(const struct fs *fs)
{
	return fs->ops_log;
}

void fs_limits(const struct fs *fs, uint32_t *ret_max_read, uint32_t *ret_max_write)
{
	*ret_max_read = fs->max_read;
	*ret_max_write = fs->max_write;
}

dev_t fs_dev(const struct fs *fs)
{
	/* The number of a mount that is gone is the next one's. */
	return fs->exited ? 0 : fs->dev;
}

void fs_stop(struct fs *fs)
{
	if (fs)
		fs_notify_stop(fs);
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	fs_unmount_end(fs);
	fs_session_free(fs);
	fs_file_put_all(fs);
	fs_dir_put_all(fs);
	fs_deleg_fini(fs);
	fs_silly_fini(fs);
	fs_inode_table_free(fs);
	fs_replay_fini(fs);
	fs_asked_free(fs);
	fs_handle_fini(&fs->file_handles);
	fs_handle_fini(&fs->dir_handles);
	mutex_destroy(&fs->lanes_lock);
	mutex_destroy(&fs->locks->lock);
	mutex_destroy(&fs->clones->lock);
	mutex_destroy(&fs->unmount_lock);
	fs_covers_fini(&fs->covers);
	conf_free(&fs->conf);
	free(fs);
}
