/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unmounting, two ways. While lanes run (a signal): the mount is detached and
 * the connection stays, so that what programs still have open goes on and
 * dirty pages reach the server; the kernel ends the session with the last use.
 * At the very end, when nobody answers requests any more: the connection is
 * closed first, because an unmount would wait for answers.
 */
#include "fs_fs.h"
#include "fs_notify.h"
#include "fs_session.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static int fusermount(const char *mountpoint)
{
	char *argv[] = {(char *)"fusermount3", (char *)"-u", (char *)"-z", (char *)"-q",
		(char *)"--", (char *)mountpoint, NULL};
	int status;
	pid_t pid;
	int err = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

bool fs_unmount_is_there(const char *mountpoint, dev_t dev)
{
	dev_t now;

	return dev != 0 && fs_mount_dev(mountpoint, &now) == 0 && now == dev;
}

int fs_unmount_detach(const char *mountpoint)
{
	if (geteuid() != 0)
		return fusermount(mountpoint);
	return umount2(mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

/* Only what is ours: somebody may have mounted over it, or unmounted it already. */
static void detach(struct fs *fs)
{
	int err;

	if (fs_mountfd_of(fs->conf.mountpoint) >= 0 ||
		!fs_unmount_is_there(fs->conf.mountpoint, fs->dev))
		return;
	err = fs_unmount_detach(fs->conf.mountpoint);
	if (err && err != -EINVAL && err != -ENOENT)
		log_warn("unmounting %s: %s", fs->conf.mountpoint, strerror(-err));
}

void fs_unmount(struct fs *fs)
{
	mutex_lock(&fs->unmount_lock);
	if (fs->mounted && !fs->exited)
		detach(fs);
	fs->mounted = false;
	mutex_unlock(&fs->unmount_lock);
}

/*
 * Puts the write end of a pipe that nobody reads in the place of /dev/fuse. That closes the
 * connection (the kernel ends every request), and fuse_session_unmount(), which must be called to
 * free the session's memory, finds POLLERR there and does not unmount a path that may not be ours.
 */
static void close_connection(struct fs *fs)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0) {
		log_err("pipe: %s", strerror(errno));
		return;
	}
	dup3(p[1], fs->fd, O_CLOEXEC);
	close(p[0]);
	close(p[1]);
}

void fs_unmount_end(struct fs *fs)
{
	bool mounted;

	fs_notify_quiesce(fs);
	if (fs->fd >= 0)
		close_connection(fs);
	mutex_lock(&fs->unmount_lock); /* fs_unmount() may be at it */
	mounted = fs->mounted && !fs->exited;
	fs->mounted = false;
	mutex_unlock(&fs->unmount_lock);
	if (mounted)
		detach(fs);
	fs->exited = true;
	fs_notify_stop(fs);
	if (fs->fd >= 0)
		fuse_session_unmount(fs->se);
	fs->fd = -1;
}
