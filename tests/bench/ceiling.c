/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A FUSE file system that does nothing, with the mount settings of rpcrdmafs:
 * as fast as any can be that is not in the kernel. Reads are answered from a
 * buffer that never changes, writes are dropped; both buffers are of huge pages,
 * and payloads lie at the begin of one. The files are those of null_srv.h.
 *
 *   ceiling MOUNTPOINT      in the foreground; ends when it is unmounted
 *
 * One thread, which reads a request and answers it: two system calls each.
 */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIZE       (1ull << 30)
#define MAX_WRITE  (1u << 20)
#define BACKGROUND 256
#define FOLDER_BIT (1ull << 62)
#define TIMEOUT    3.0 /* acregmin */

#define ROOM       (2ul << 20) /* a buffer: a huge page */
#define REQUEST_AT (4096 - 80) /* fuse_in_header, fuse_write_in: the payload begins at a page */

static char *payload;

/* ---- what the kernel and we agree on: as src/fuse/mount/fs_session.c ---- */

static uint32_t init_flags;
static int init_done;

/* libfuse 3.14 sends neither of these by itself. */
static ssize_t init_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	if (!init_done && count == 2 && iov[1].iov_len == sizeof(struct fuse_init_out)) {
		struct fuse_init_out *out = iov[1].iov_base;

		out->flags |= (FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2) & init_flags;
		init_done = 1;
	}
	return writev(fd, iov, count);
}

static ssize_t init_read(int fd, void *buf, size_t len, void *userdata)
{
	const struct fuse_in_header *h = buf;
	ssize_t n = read(fd, buf, len);

	if (!init_done && n >= (ssize_t)(sizeof(*h) + sizeof(struct fuse_init_in)) &&
		h->opcode == FUSE_INIT)
		init_flags = ((const struct fuse_init_in *)(h + 1))->flags;
	return n;
}

static void do_init(void *userdata, struct fuse_conn_info *conn)
{
	conn->want =
		(FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC |
			FUSE_CAP_DONT_MASK | FUSE_CAP_PARALLEL_DIROPS |
			FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_READDIRPLUS |
			FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS) &
		conn->capable;
	conn->max_write = MAX_WRITE;
	conn->max_background = BACKGROUND;
	conn->congestion_threshold = BACKGROUND / 4 * 3;
	conn->time_gran = 1;
}

/* ---- files ---- */

static uint64_t id_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (const char *p = name; *p; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3u;
	h = h >> 8 | 0x100;
	return name[0] == 'd' && strncmp(name, "data", 4) != 0 ? h | FOLDER_BIT : h;
}

static struct stat stat_of(fuse_ino_t ino)
{
	bool folder = ino == FUSE_ROOT_ID || (ino & FOLDER_BIT);

	return (struct stat){
		.st_ino = ino,
		.st_mode = folder ? S_IFDIR | 0755 : S_IFREG | 0644,
		.st_nlink = 1,
		.st_size = folder ? 4096 : SIZE,
		.st_blksize = 4096,
		.st_blocks = SIZE / 512,
		.st_mtim = {1700000000, 5},
		.st_ctim = {1700000000, 5},
		.st_atim = {1700000000, 5},
	};
}

static struct fuse_entry_param entry_of(const char *name)
{
	uint64_t id = id_of(name);

	return (struct fuse_entry_param){
		.ino = id,
		.attr = stat_of(id),
		.attr_timeout = TIMEOUT,
		.entry_timeout = TIMEOUT,
	};
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = entry_of(name);

	if (name[0] == 'd')
		fuse_reply_entry(req, &e);
	else
		fuse_reply_err(req, ENOENT);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = stat_of(ino);

	fuse_reply_attr(req, &st, TIMEOUT);
}

static void do_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	do_getattr(req, ino, fi);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fuse_reply_open(req, fi);
}

static void do_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct fuse_entry_param e = entry_of(name);

	fuse_reply_create(req, &e, fi);
}

static void do_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	fuse_reply_buf(req, payload, size < MAX_WRITE ? size : MAX_WRITE);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	fuse_reply_write(req, size);
}

/* flush, release */
static void do_nothing(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fuse_reply_err(req, 0);
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	fuse_reply_err(req, 0);
}

static void do_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops ops = {
	.init = do_init,
	.lookup = do_lookup,
	.getattr = do_getattr,
	.setattr = do_setattr,
	.open = do_open,
	.create = do_create,
	.read = do_read,
	.write = do_write,
	.flush = do_nothing,
	.release = do_nothing,
	.fsync = do_fsync,
	.access = do_access,
};

static const struct fuse_custom_io custom_io = {.writev = init_writev, .read = init_read};

static char *buffer(void)
{
	void *p;

	if (posix_memalign(&p, ROOM, ROOM) != 0)
		exit(1);
	madvise(p, ROOM, MADV_HUGEPAGE);
	memset(p, 'x', ROOM);
	return p;
}

static int loop(struct fuse_session *se)
{
	char *room = buffer();
	int len = 0;

	while (!fuse_session_exited(se)) {
		struct fuse_buf buf = {.mem = room + REQUEST_AT};

		len = fuse_session_receive_buf(se, &buf);
		if (len > 0)
			fuse_session_process_buf(se, &buf);
		else if (len != -EINTR)
			break;
	}
	free(room);
	return len < 0 && len != -ENODEV && len != -EINTR;
}

int main(int argc, char **argv)
{
	char *args_v[] = {argv[0], (char *)"-o", (char *)"fsname=ceiling,subtype=ceiling", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, args_v);
	struct fuse_session *se;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: ceiling MOUNTPOINT\n");
		return 2;
	}
	se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (!se || fuse_set_signal_handlers(se) || fuse_session_mount(se, argv[1]) ||
		fuse_session_custom_io(se, &custom_io, fuse_session_fd(se)))
		return 1;
	payload = buffer();
	rc = loop(se);
	free(payload);
	fuse_session_unmount(se);
	fuse_remove_signal_handlers(se);
	fuse_session_destroy(se);
	fuse_opt_free_args(&args);
	return rc;
}
