/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mount is handed over to another process: written down (fs_tables.h) while every lane stands
 * still, and taken up from that. Nothing is in work then, and nothing that programs wrote is less
 * than durable; so what has to be carried is what the kernel knows by number (inodes, open files,
 * directories), what the server knows (opens, locks), and requests that sleep for a lock.
 */
#include "fs_asked_buf.h"
#include "fs_deleg.h"
#include "fs_facts.h"
#include "fs_inode.h"
#include "fs_kept.h"
#include "fs_live.h"
#include "fs_lock.h"
#include "fs_mountpoint.h"
#include "fs_notify.h"
#include "fs_op.h"
#include "fs_ops.h"
#include "fs_replay.h"
#include "fs_session.h"
#include "fs_shadow.h"
#include "fs_share_tables.h"
#include "fs_silly.h"
#include "nfs4_keep.h"
#include "nfs4_tables.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* Linux 4.20: a kernel before that cannot be asked for a request (fs_replay.c). */
#define ASKED_MINOR 28u

/* Fields of FS_TABLES_MOUNT. */
enum {
	MOUNT_INIT_REQUEST = 10,
	MOUNT_INIT_REPLY = 11,
	MOUNT_DEVICE = 12, /* 1 + descriptor of /dev/fuse */
	MOUNT_SILLY_CNT = 13,
	MOUNT_INODE_GENERATION = 14,
	MOUNT_FILE_GENERATION = 15,
	MOUNT_DIR_GENERATION = 16,
	MOUNT_LOST_BYTES = 17,
	MOUNT_LOST_FILES = 18,
	MOUNT_SHADOWED = 19, /* several: number of a name */
	MOUNT_ST_DEV = 20,   /* 1 + its st_dev; 1: nobody knows */
};

/* Files that one process opens, at most: so far on begin the next one's generations. */
#define GENERATIONS_ON (1u << 24)

void fs_handover_prepare(struct fs *fs)
{
	fs_deleg_return_all(fs);
}

static bool any_signalled(struct fs *fs)
{
	list_for_each (node, &fs->locks->waits) {
		const struct fs_lockwait *w = container_of(node, struct fs_lockwait, link);

		if (w->op || w->signalled || w->lane->lockwait->signal)
			return true;
	}
	return false;
}

const char *fs_handover_obstacle(struct fs *fs)
{
	struct fs_gauges g = fs_gauges(fs);

	if (fs->exited)
		return "it is unmounted";
	if (g.dirty > 0 || g.uncommitted > 0)
		return "data is written";
	if (fs->delegs->cnt > 0)
		return "delegations are returned";
	if (fs->files_opening > 0 || fs->releasing > 0)
		return "files are opened and closed";
	if (fs->forwarded > 0 || fs->replays.cnt > 0)
		return "requests are on their way between lanes";
	if (fs_notify_busy(fs))
		return "the kernel is told of changes";
	if (any_signalled(fs))
		return "a request for a lock is interrupted";
	return nfs4_keep_obstacle(fs->client);
}

bool fs_handover_wants_air(struct fs *fs)
{
	return fs_notify_busy(fs);
}

/* ---- put ---- */

static void put_shadowed(void *ctx, uint64_t number)
{
	uint64_t le = htole64(number);

	tables_put_bytes(ctx, MOUNT_SHADOWED, &le, sizeof(le));
}

static void put_init(struct tables_out *t, const struct fs *fs)
{
	tables_record(t, FS_TABLES_MOUNT);
	tables_put_bytes(t, MOUNT_INIT_REQUEST, fs->init->request, fs->init->request_len);
	tables_put_bytes(t, MOUNT_INIT_REPLY, fs->init->reply, fs->init->reply_len);
	tables_put(t, MOUNT_DEVICE, (uint64_t)fs->fd + 1);
	tables_put(t, MOUNT_ST_DEV, (uint64_t)fs->dev + 1);
}

static void put_mount(struct tables_out *t, struct fs *fs)
{
	put_init(t, fs);
	tables_put(t, MOUNT_SILLY_CNT, fs->silly_cnt);
	tables_put(t, MOUNT_INODE_GENERATION, fs_inode_generation(fs));
	tables_put(t, MOUNT_FILE_GENERATION, fs->file_handles.generation);
	tables_put(t, MOUNT_DIR_GENERATION, fs->dir_handles.generation);
	tables_put(t, MOUNT_LOST_BYTES, fs->lost_bytes);
	tables_put(t, MOUNT_LOST_FILES, fs->lost_files);
	fs_shadow_each(fs, put_shadowed, t);
}

void fs_handover_put(struct fs *fs, struct tables_out *t)
{
	put_mount(t, fs);
	fs_inode_tables_put(t, fs);
	fs_share_tables_put(t, fs);
	fs_silly_tables_put(t, fs);
	fs_dir_tables_put(t, fs);
	fs_share_tables_put_waits(t, fs);
	nfs4_keep_put_client(t, fs->client);
}

int fs_handover_live(struct fs *fs, struct live *live, bool data)
{
	const struct slab_memory bufs = {.get = fs_asked_buf_memory, .ctx = live};
	int err;

	fs->live = live;
	err = fs_asked_new(fs);
	if (err) {
		fs->live = NULL;
		return err;
	}
	fs->data_goes = !data;
	nfs4_keep_live(fs->client, live, &bufs);
	return 0;
}

int fs_handover_before(struct fs *fs, int fd, int device)
{
	fs->replays.device = device;
	return nfs4_keep_before(fs->client, fd);
}

void fs_handover_live_mounted(struct fs *fs)
{
	const struct live_key key = {
		.rank = FS_LIVE_RANK_MOUNT, .count_field = MOUNT_INODE_GENERATION};
	struct tables_out t;

	if (!fs->live)
		return;
	tables_begin_in(&t);
	put_init(&t, fs);
	/* Which are used up nobody counts there. */
	tables_put(&t, MOUNT_FILE_GENERATION, fs->file_handles.generation + GENERATIONS_ON);
	tables_put(&t, MOUNT_DIR_GENERATION, fs->dir_handles.generation + GENERATIONS_ON);
	fs_inode_table_lock(fs);
	fs_live_put(fs, &fs->live_ref, &key, &t);
	live_count(fs->live, fs->live_ref, fs_inode_generation(fs));
	fs_inode_table_unlock(fs);
}

int fs_handover_device(const struct fs *fs)
{
	return fs->fd;
}

void fs_handover_keep_device(const struct fs *fs, bool keep)
{
	fcntl(fs->fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

/* ---- get ---- */

static int get_bytes(
	const struct tables_record *r, uint16_t field, uint8_t *to, size_t size, size_t *ret_len)
{
	const void *p = tables_get_bytes(r, field, ret_len);

	if (!p || *ret_len > size)
		return -EBADMSG;
	memcpy(to, p, *ret_len);
	return 0;
}

static void get_shadowed(const struct tables_record *r, struct fs *fs)
{
	const void *p = NULL;
	uint64_t le;
	size_t len;

	while ((p = tables_get_next(r, MOUNT_SHADOWED, p, &len))) {
		if (len != sizeof(le))
			continue;
		memcpy(&le, p, sizeof(le));
		fs_shadow_put_back(fs, le64toh(le));
	}
}

/*
 * Not that of whatever is mounted there by now. A program that does not say it has left no other
 * trace of it than the path: there it must look like ours.
 */
static dev_t get_dev(const struct tables_record *r, const char *mountpoint, const char *source)
{
	uint64_t dev = tables_get(r, MOUNT_ST_DEV);
	FILE *table = dev ? NULL : fopen("/proc/self/mountinfo", "re");

	if (table) {
		dev = 1 + fs_mountpoint_dev(table, mountpoint, source);
		fclose(table);
	}
	return dev ? dev - 1 : 0;
}

/* Its descriptor, or -1. */
static int get_device(const struct tables_record *r)
{
	uint64_t device = tables_get(r, MOUNT_DEVICE);

	return device <= INT32_MAX ? (int)device - 1 : -1;
}

static int get_mount(const struct tables_record *r, struct fs *fs)
{
	int device = get_device(r);
	struct fs_init *was;

	if (fs->was || device < 0)
		return -EBADMSG;
	was = fs->was = calloc(1, sizeof(*was));
	if (!was)
		return -ENOMEM;
	was->device = device;
	if (get_bytes(r, MOUNT_INIT_REQUEST, was->request, sizeof(was->request),
		    &was->request_len) != 0 ||
		get_bytes(r, MOUNT_INIT_REPLY, was->reply, sizeof(was->reply), &was->reply_len) !=
			0)
		return -EBADMSG;
	if (tables_get(r, MOUNT_SILLY_CNT))
		fs->silly_cnt = (uint32_t)tables_get(r, MOUNT_SILLY_CNT);
	fs->dev = get_dev(r, fs->conf.mountpoint, fs->conf.source);
	fs->lost_bytes = tables_get(r, MOUNT_LOST_BYTES);
	fs->lost_files = (uint32_t)tables_get(r, MOUNT_LOST_FILES);
	get_shadowed(r, fs);
	if (fs_session_minor(fs->was) < ASKED_MINOR)
		fs->replays.device = -1;
	return 0;
}

static int get_request(struct fs *fs, const struct tables_record *r)
{
	uint64_t unique;
	int err = fs_replay_get(fs, r, &unique);

	if (!err)
		fs_share_tables_unanswered(fs, unique);
	return err;
}

static int get_record(struct fs_share_tables *at, const struct tables_record *r, uint64_t now_ns)
{
	switch (r->type) {
	case FS_TABLES_MOUNT:
		return get_mount(r, at->fs);
	case FS_TABLES_INODE:
	case FS_TABLES_NAMES:
		return fs_inode_tables_get(r, at->fs, now_ns);
	case FS_TABLES_SHARE:
	case FS_TABLES_FILE:
	case FS_TABLES_LOCKOWNER:
	case FS_TABLES_LOCKWAIT:
	case NFS4_KEEP_STATE:
	case NFS4_KEEP_LOCKS:
		return fs_share_tables_get(at, r);
	case FS_TABLES_SILLY:
		return fs_silly_tables_get(r, at->fs);
	case FS_TABLES_DIR:
		return fs_dir_tables_get(r, at->fs);
	case FS_TABLES_REQUEST:
		return get_request(at->fs, r);
	case FS_TABLES_DATA:
		return fs_kept_get(at->fs, r);
	case NFS4_KEEP_DELEG:
		return nfs4_keep_get_deleg(r, at->fs->client);
	case NFS4_KEEP_ONCE: /* answered already: nobody asks */
		return fs_asked_is(at->fs, fs_op_request_of(nfs4_redo_request_of(r)))
			       ? nfs4_redo_get(r, at->fs->client)
			       : 0;
	default:
		return 0; /* of others, or of a later version */
	}
}

/* Before opens, which belong to it, and inodes, for which there is room then. */
static int get_client(struct fs *fs, struct tables_in *in, bool sequence_known)
{
	struct tables_record r;
	size_t inodes = 0;
	int err = -EBADMSG;

	tables_rewind(in);
	while (tables_next(in, &r)) {
		if (r.type == NFS4_KEEP_CLIENT)
			err = nfs4_keep_get_client(&r, fs->client, sequence_known);
		else if (r.type == NFS4_KEEP_SESSION)
			nfs4_keep_get_session(&r, fs->client);
		else if (r.type == FS_TABLES_INODE)
			inodes++;
	}
	fs_inode_put_back_room(fs, inodes);
	return err;
}

/* No number of before is given out again. */
static int begin_anew(struct fs *fs, struct tables_in *in)
{
	struct tables_record r;

	tables_rewind(in);
	while (tables_next(in, &r)) {
		if (r.type != FS_TABLES_MOUNT)
			continue;
		fs_inode_put_back_all(fs, (uint32_t)tables_get(&r, MOUNT_INODE_GENERATION));
		fs_handle_put_all(
			&fs->file_handles, (uint32_t)tables_get(&r, MOUNT_FILE_GENERATION));
		fs_handle_put_all(&fs->dir_handles, (uint32_t)tables_get(&r, MOUNT_DIR_GENERATION));
		return 0;
	}
	return -EBADMSG;
}

int fs_handover_get(struct fs *fs, struct tables_in *in, bool sequence_known, uint64_t now_ns)
{
	struct fs_share_tables at = {.fs = fs};
	struct tables_record r;
	int err = get_client(fs, in, sequence_known);

	/* Where an open directory was before nobody knows (fs_place.h). */
	atomic_store(&fs->moves, 1);
	tables_rewind(in);
	while (!err && tables_next(in, &r))
		err = get_record(&at, &r, now_ns);
	if (fs_share_tables_end(&at) != 0 && !err)
		err = -ENOMEM;
	if (!err)
		err = begin_anew(fs, in);
	if (!err)
		fs_share_tables_lost(fs);
	if (!err)
		err = fs_share_tables_close(fs);
	if (!err && fs->replaying)
		nfs4_keep_replaying(fs->client);
	fs->replays.device = -1;
	return err;
}

static void note_facts(void *ctx, struct fs_inode *in)
{
	fs_facts_note(ctx, in, &in->attr);
}

int fs_handover_mount(struct fs *fs, int device, char *text, size_t len)
{
	if (device >= 0)
		fs->was->device = device;
	if (!fs->root || fs_inode_ino(fs, fs->root) != FUSE_ROOT_ID) {
		snprintf(text, len, "the export's root is another directory than it was");
		return -ESTALE;
	}
	fs_inode_each(fs, note_facts, fs);
	if (!fs_silly_settle(fs)) {
		snprintf(text, len, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	return fs_mount_again(fs, fs->was->device, fs->was, text, len);
}

bool fs_handover_is_behind(const struct fs *fs)
{
	return fs->replaying;
}

void fs_handover_abort(const char *mountpoint)
{
	/* A mount that is in use is not taken away, but it is aborted. */
	int in_use = open(mountpoint, O_PATH | O_CLOEXEC);

	if (in_use < 0)
		return;
	(void)umount2(mountpoint, MNT_FORCE | UMOUNT_NOFOLLOW);
	close(in_use);
}

/* One that is gone leaves its number to the next file system that is mounted. */
static bool is_connected(int device)
{
	struct pollfd p = {.fd = device};

	return poll(&p, 1, 0) >= 0 && !(p.revents & (POLLERR | POLLNVAL));
}

void fs_handover_drop(struct tables_in *in, int device, const char *mountpoint, const char *source)
{
	struct tables_record r;
	dev_t dev = 0;

	tables_rewind(in);
	while (tables_next(in, &r))
		if (r.type == FS_TABLES_MOUNT) {
			dev = get_dev(&r, mountpoint, source);
			if (device < 0)
				device = get_device(&r);
		}
	if (fs_mountfd_of(mountpoint) >= 0 || !is_connected(device) ||
		!fs_unmount_is_there(mountpoint, dev))
		return;
	fs_handover_abort(mountpoint);
	(void)fs_unmount_detach(mountpoint);
}
