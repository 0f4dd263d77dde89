/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mounting. The user of a mount that fails sees one line, ours: what libfuse
 * would print goes to the log at debug level, what fusermount3 prints is
 * caught, and the last of it becomes the detail of that line.
 */
#include "fs_notify.h"
#include "fs_ops.h"
#include "fs_session.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define INIT_TIMEOUT_MS 10000
#define DETAIL_MAX      200

/* The last message of libfuse while this thread mounts. */
static __thread char detail[DETAIL_MAX];

static void keep_line(const char *line)
{
	size_t len = strcspn(line, "\n");

	if (len > 0)
		snprintf(detail, sizeof(detail), "%.*s", (int)len, line);
}

static void __attribute__((format(printf, 2, 0)))
fuse_says(enum fuse_log_level level, const char *fmt, va_list ap)
{
	char line[512];

	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_debug("libfuse: %s", line);
	if (level <= FUSE_LOG_WARNING)
		keep_line(line);
}

/* ---- what stands at the mountpoint ---- */

int fs_mount_dev(const char *mountpoint, dev_t *ret_dev)
{
	struct statx stx;

	/* DONT_SYNC: no request goes to the file system; it may be us, or nobody. */
	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &stx) < 0)
		return -errno;
	*ret_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	return 0;
}

static int __attribute__((format(printf, 4, 5)))
fail(char *text, size_t len, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, len, fmt, ap);
	va_end(ap);
	return -err;
}

static int check_device(char *text, size_t len)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		return fail(text, len, ENODEV,
			"mount: /dev/fuse is missing: is the fuse module loaded (modprobe fuse)?");
	return fail(text, len, errno, "mount: cannot open /dev/fuse: %s", strerror(errno));
}

int fs_mount_check(const struct fs *fs, char *text, size_t len)
{
	int err = fs_mountpoint_check(fs->conf.mountpoint, fs->conf.source, text, len);

	if (err || fs_mountfd_of(fs->conf.mountpoint) >= 0)
		return err;
	return check_device(text, len);
}

/* ---- mounting ---- */

static bool add_options(const struct fs *fs, char **opts)
{
	const struct fs_conf *c = &fs->conf;
	char *name;
	bool ok = fuse_opt_add_opt(opts, "subtype=rpcrdmafs") == 0;

	if (asprintf(&name, "fsname=%s", c->source) < 0)
		return false;
	ok = ok && fuse_opt_add_opt_escaped(opts, name) == 0;
	free(name);
	if (c->allow_other)
		ok = ok && fuse_opt_add_opt(opts, "allow_other") == 0;
	if (c->default_permissions)
		ok = ok && fuse_opt_add_opt(opts, "default_permissions") == 0;
	if (c->read_only)
		ok = ok && fuse_opt_add_opt(opts, "ro") == 0;
	if (c->debug)
		ok = ok && fuse_opt_add_opt(opts, "debug") == 0;
	if (c->mount_opts && *c->mount_opts)
		ok = ok && fuse_opt_add_opt(opts, c->mount_opts) == 0;
	return ok;
}

static struct fuse_session *session_new(struct fs *fs)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se = NULL;
	char *opts = NULL;

	if (add_options(fs, &opts) && fuse_opt_add_arg(&args, "rpcrdmafs") == 0 &&
		fuse_opt_add_arg(&args, "-o") == 0 && fuse_opt_add_arg(&args, opts) == 0)
		se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), fs);
	fuse_opt_free_args(&args);
	free(opts);
	return se;
}

/* fusermount3 writes to our standard error: it goes to `detail` instead. */
static int mount_quietly(struct fs *fs)
{
	char out[2048];
	int p[2], saved, err;
	ssize_t n;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return fuse_session_mount(fs->se, fs->conf.mountpoint);
	saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	dup2(p[1], STDERR_FILENO);
	err = fuse_session_mount(fs->se, fs->conf.mountpoint);
	if (saved >= 0) {
		dup2(saved, STDERR_FILENO);
		close(saved);
	} else {
		close(STDERR_FILENO);
	}
	n = read(p[0], out, sizeof(out) - 1);
	if (err && n > 0) {
		out[n] = '\0';
		log_debug("fusermount3: %s", out);
		keep_line(out);
	}
	close(p[0]);
	close(p[1]);
	return err;
}

/* Reads FUSE_INIT, which the kernel sends first of all, and lets libfuse answer it. */
static int answer_init(struct fs *fs)
{
	struct pollfd pfd = {.fd = fs->fd, .events = POLLIN};
	struct fuse_buf buf = {0};
	int len;

	if (poll(&pfd, 1, INIT_TIMEOUT_MS) <= 0)
		return -ETIMEDOUT;
	len = fuse_session_receive_buf(fs->se, &buf);
	if (len > 0)
		fuse_session_process_buf(fs->se, &buf);
	free(buf.mem);
	if (len <= 0)
		return len ? len : -ENODEV;
	if (fs->init_err)
		return fs->init_err;
	return fs->init_done && !fuse_session_exited(fs->se) ? 0 : -EPROTO;
}

/* Root only: the kernel's own limit is 128 KiB, and FUSE_INIT can only lower it. */
static void set_read_ahead(const struct fs *fs)
{
	char path[96], value[16];
	int fd, len;

	if (fs->conf.read_ahead_kb == 0 || geteuid() != 0 || fs->dev == 0)
		return;
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(fs->dev),
		minor(fs->dev));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	len = snprintf(value, sizeof(value), "%u", fs->conf.read_ahead_kb);
	if (fd < 0 || write(fd, value, (size_t)len) != len)
		log_debug("read-ahead stays as it is: %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static int session_up(struct fs *fs)
{
	int err = 0;

	fs->fd = fuse_session_fd(fs->se);
	/* First, as nothing is unmounted that has not this device. */
	if (fs_mountfd_of(fs->conf.mountpoint) < 0)
		err = fs_mount_dev(fs->conf.mountpoint, &fs->dev);
	if (!err)
		err = fuse_session_custom_io(fs->se, &fs_custom_io, fs->fd);
	if (!err)
		err = answer_init(fs);
	if (!err &&
		(fcntl(fs->fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fs->fd, F_SETFD, FD_CLOEXEC) < 0))
		err = -errno;
	if (!err)
		err = fs_notify_start(fs);
	return err;
}

static int begin_session(struct fs *fs, char *text, size_t len)
{
	detail[0] = '\0';
	fuse_set_log_func(fuse_says);
	if (fs_session_init_new(fs) != 0)
		return fail(text, len, ENOMEM, "mount: out of memory");
	fs->se = session_new(fs);
	return fs->se ? 0 : fail(text, len, EINVAL, "mount: options refused: %s", detail);
}

/* The session of a connection that another process had, on a descriptor of its own. */
static int begin_again(struct fs *fs, int fd, const struct fs_init *was, char *text, size_t len)
{
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	if (fuse_session_mount(fs->se, path) != 0) {
		close(fd);
		return fail(text, len, EBADF, "mount: %s is no connection: %s", path, detail);
	}
	err = fuse_session_custom_io(fs->se, &fs_custom_io, fd);
	if (!err)
		err = fs_session_init_again(fs, was);
	if (err)
		return fail(text, len, EPROTO,
			"mount: it would agree on something else with the kernel: an option or a "
			"version that needs a new mount");
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return fail(text, len, errno, "mount: %s: %s", path, strerror(errno));
	err = fs_notify_start(fs);
	return err ? fail(text, len, -err, "mount: %s", strerror(-err)) : 0;
}

int fs_mount_again(struct fs *fs, int fd, const struct fs_init *was, char *text, size_t len)
{
	int err = begin_session(fs, text, len), own;

	if (err)
		return err;
	/* If it fails libfuse closes its descriptor: the connection must not end with it. */
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return fail(text, len, errno, "mount: descriptor %d: %s", fd, strerror(errno));
	err = begin_again(fs, own, was, text, len);
	if (err)
		return err;
	close(fd);
	fs->fd = own;
	fs->mounted = true;
	return 0;
}

int fs_mount(struct fs *fs, char *text, size_t len)
{
	int err = fs_mount_check(fs, text, len);

	if (err)
		return err;
	err = begin_session(fs, text, len);
	if (err)
		return err;
	if (mount_quietly(fs) != 0) {
		if (geteuid() != 0 && access("/usr/bin/fusermount3", X_OK) < 0 &&
			access("/bin/fusermount3", X_OK) < 0)
			return fail(text, len, ENOENT,
				"mount: fusermount3 is missing: install the package fuse3");
		return fail(text, len, EPERM, "mount: %s", detail[0] ? detail : "refused");
	}
	fs->mounted = true;
	err = session_up(fs);
	if (err) {
		fail(text, len, -err, "mount: FUSE_INIT: %s", detail[0] ? detail : strerror(-err));
		fs_unmount_end(fs);
		return err;
	}
	set_read_ahead(fs);
	return 0;
}
