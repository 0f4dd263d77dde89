/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel and we agree on in FUSE_INIT.
 *
 * libfuse 3.14 never sends PARALLEL_DIROPS and does not know HANDLE_KILLPRIV_V2
 * and max_pages of its own: its reply to INIT passes through init_writev(),
 * which adds them (fuse_session_custom_io). Everything else goes the usual way.
 */
#include "fs_session.h"
#include "fs_asked.h"
#include "fs_background.h"
#include "fs_current.h"
#include "fs_ops.h"
#include "fs_notify.h"
#include "log.h"

#include <errno.h>
#include <limits.h>
#include <linux/fuse.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_TRANSFER   (1024u * 1024u) /* libfuse 3.14: 256 pages */
#define PAGE           4096u
#define MAX_BACKGROUND 256u
/* All of one that has no data in it. */
#define SHORT_ANSWER 256u

static uint32_t clamp_transfer(const struct fs *fs, uint32_t size)
{
	uint32_t max = size < MAX_TRANSFER ? size : MAX_TRANSFER;

	if (max > fs->data_size)
		max = (uint32_t)fs->data_size;
	max -= max % PAGE;
	/* Smaller is not allowed; fs_read.c and fs_write.c take several calls then. */
	return max < PAGE ? PAGE : max;
}

static unsigned int wanted(const struct fs *fs)
{
	unsigned int want = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC |
			    FUSE_CAP_DONT_MASK | FUSE_CAP_PARALLEL_DIROPS;

	/*
	 * Who drops stale pages? With AUTO_INVAL_DATA the kernel does when mtime moves, but each
	 * WRITE of our own moves it too: a file would be read again after every write. We compare
	 * the change attribute instead and tell the kernel (EXPLICIT): at open by not giving
	 * KEEP_CACHE, otherwise through the notify thread before the kernel learns the new
	 * attributes (fs_reply.c); with a new size first the last page would show zeros.
	 * What is lost: the kernel no longer revalidates before a cached read of an open file.
	 * `noac` asks for just that, so there the kernel does it.
	 */
	want |= fs->conf.noac ? FUSE_CAP_AUTO_INVAL_DATA : FUSE_CAP_EXPLICIT_INVAL_DATA;
	if (fs->conf.rdirplus)
		want |= FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO;
	if (!(fs->conf.local_lock & FS_LOCAL_POSIX))
		want |= FUSE_CAP_POSIX_LOCKS;
	if (!(fs->conf.local_lock & FS_LOCAL_FLOCK))
		want |= FUSE_CAP_FLOCK_LOCKS;
	return want;
}

/* The kernel goes on with those that were agreed on, whatever the server takes now. */
static void sizes_again(struct fs *fs)
{
	struct fuse_init_out was;

	memcpy(&was, fs->init->reply, sizeof(was));
	fs->max_write = was.max_write;
	fs->max_read = was.max_pages * PAGE;
}

void fs_do_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fs *fs = userdata;
	const struct nfs4_fsinfo *info = nfs4_client_fsinfo(fs->client);

	/* Chosen one by one: libfuse's defaults change from version to version. */
	conn->want = wanted(fs) & conn->capable;
	if (!(conn->want & FUSE_CAP_EXPLICIT_INVAL_DATA))
		conn->want |= FUSE_CAP_AUTO_INVAL_DATA & conn->capable;
	fs->max_write = clamp_transfer(fs, info->fs.wsize);
	fs->max_read = clamp_transfer(fs, info->fs.rsize);
	if (fs->init->again)
		sizes_again(fs);
	conn->max_write = fs->max_write;
	conn->max_background = fs->conf.max_background ? fs->conf.max_background : MAX_BACKGROUND;
	fs->max_background = conn->max_background;
	conn->congestion_threshold = conn->max_background / 4 * 3;
	conn->time_gran = 1;
	fs->expire_dentries = conn->capable & FUSE_CAP_EXPIRE_ONLY;
	log_debug("FUSE %u.%u capable %08x want %08x max_write %u", conn->proto_major,
		conn->proto_minor, conn->capable, conn->want, conn->max_write);
}

/* fuseblk only, or when the session object goes: the lanes have drained by other means. */
void fs_do_destroy(void *userdata)
{
}

static void patch_init(struct fs *fs, struct fuse_init_out *out)
{
	const uint32_t ours = FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2;

	out->flags |= ours & fs->init_flags;
	/* Reads are bounded by max_pages alone, and rsize may exceed wsize. */
	if ((out->flags & FUSE_MAX_PAGES) && fs->max_read / PAGE > out->max_pages)
		out->max_pages = (uint16_t)(fs->max_read / PAGE);
}

/* The kernel looks for the page of each piece: a short answer is one piece, in one page. */
static ssize_t write_answer(int fd, const struct iovec *iov, int count)
{
	alignas(SHORT_ANSWER) uint8_t whole[SHORT_ANSWER];
	size_t len = 0;

	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > sizeof(whole) - len)
			return writev(fd, iov, count);
		memcpy(whole + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	return write(fd, whole, len);
}

/* A notice to the kernel has no number. */
static ssize_t answer(struct fs *fs, int fd, const struct iovec *iov, int count)
{
	const struct fuse_out_header *h = iov[0].iov_base;
	struct fs_lane *l = fs_current();
	ssize_t n;
	int err;

	if (h->unique == 0)
		return fs_notify_write(fs, fd, iov, count);
	n = write_answer(fd, iov, count);
	err = n < 0 ? errno : 0;
	if (l)
		fs_background_answered(l);
	fs_asked_answered(fs, h->unique);
	if (err)
		errno = err;
	return n;
}

/* 0: it cannot be read. */
static unsigned int number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	char text[32] = "";
	unsigned long n = 0;

	if (!f)
		return 0;
	if (fgets(text, sizeof(text), f))
		n = strtoul(text, NULL, 10);
	fclose(f);
	return n <= UINT_MAX ? (unsigned int)n : 0;
}

/*
 * To a process without CAP_SYS_ADMIN the kernel may send fewer background requests at once than
 * was agreed on, and an administrator may have it send fewer to any. The file system fusectl tells
 * that; else there is the limit of users, as it is now. Both are set by the time the kernel has our
 * reply.
 */
static void heed_limits(struct fs *fs)
{
	char path[64];
	unsigned int limit = 0;

	snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/max_background", minor(fs->dev));
	if (fs->dev != 0)
		limit = number_in(path);
	if (limit == 0)
		limit = number_in("/sys/module/fuse/parameters/max_user_bgreq");
	if (limit > 0 && limit < fs->max_background)
		fs->max_background = limit;
}

static ssize_t init_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct fs *fs = userdata;

	struct fs_init *init = fs->init;
	bool first = !fs->init_done;
	ssize_t n;

	if (first) {
		const struct fuse_out_header *h = iov[0].iov_base;

		fs->init_done = true; /* the first reply of all; only one thread runs yet */
		init->reply_len = 0;
		if (h->error) {
			fs->init_err = h->error;
		} else if (count == 2 && iov[1].iov_len == sizeof(struct fuse_init_out)) {
			patch_init(fs, iov[1].iov_base);
			init->reply_len = iov[1].iov_len;
			memcpy(init->reply, iov[1].iov_base, init->reply_len);
		}
	}
	if (first && init->again)
		n = (ssize_t)((const struct fuse_out_header *)iov[0].iov_base)->len;
	else
		n = answer(fs, fd, iov, count);
	if (first && n >= 0)
		heed_limits(fs);
	return n;
}

uint32_t fs_session_minor(const struct fs_init *init)
{
	struct fuse_init_in in;

	if (!init || init->request_len <
			     sizeof(struct fuse_in_header) + offsetof(struct fuse_init_in, flags))
		return 0;
	memcpy(&in, init->request + sizeof(struct fuse_in_header),
		offsetof(struct fuse_init_in, flags));
	return in.major == FUSE_KERNEL_VERSION ? in.minor : 0;
}

static void keep_request(struct fs_init *init, const void *req, size_t len)
{
	init->request_len = len <= sizeof(init->request) ? len : 0;
	memcpy(init->request, req, init->request_len);
}

static ssize_t init_read(int fd, void *buf, size_t len, void *userdata)
{
	struct fs *fs = userdata;
	ssize_t n = read(fd, buf, len);

	if (!fs->init_done &&
		n >= (ssize_t)(sizeof(struct fuse_in_header) +
			       offsetof(struct fuse_init_in, flags) + sizeof(uint32_t))) {
		const struct fuse_in_header *h = buf;
		const struct fuse_init_in *in = (const void *)(h + 1);

		if (h->opcode == FUSE_INIT) {
			fs->init_flags = in->flags;
			keep_request(fs->init, buf, (size_t)n);
		}
	}
	return n;
}

const struct fuse_custom_io fs_custom_io = {
	.writev = init_writev,
	.read = init_read,
};

int fs_session_init_new(struct fs *fs)
{
	fs->init = calloc(1, sizeof(*fs->init));
	return fs->init ? 0 : -ENOMEM;
}

int fs_session_init_again(struct fs *fs, const struct fs_init *was)
{
	struct fuse_buf buf = {.mem = fs->init->request, .size = was->request_len};
	const struct fuse_init_in *in =
		(const void *)(fs->init->request + sizeof(struct fuse_in_header));
	struct fuse_init_out out;

	if (was->request_len < sizeof(struct fuse_in_header) +
				       offsetof(struct fuse_init_in, flags) + sizeof(uint32_t) ||
		was->reply_len != sizeof(out))
		return -EPROTO;
	memcpy(&out, was->reply, sizeof(out));
	/* The kernel goes on with requests of that length: buffers must hold them. */
	if (out.max_write > fs->data_size || (size_t)out.max_pages * PAGE > fs->data_size)
		return -EPROTO;
	*fs->init = *was;
	fs->init->again = true;
	fs->init_flags = in->flags;
	fuse_session_process_buf(fs->se, &buf);
	fs->init->again = false;
	if (!fs->init_done || fs->init_err || fs->init->reply_len != was->reply_len ||
		memcmp(fs->init->reply, was->reply, was->reply_len) != 0)
		return -EPROTO;
	return 0;
}

void fs_session_free(struct fs *fs)
{
	if (fs->se)
		fuse_session_destroy(fs->se);
	fs->se = NULL;
	free(fs->init);
	free(fs->was);
	fs->init = fs->was = NULL;
}
