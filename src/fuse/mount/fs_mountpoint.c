/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_mountpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs_session.h"
#include "log.h"
#include "mount_field.h"

#define TYPE        "fuse.rpcrdmafs"
#define PROBE_MS    2000
#define STACKED_MAX 16 /* mounts over each other that are taken away */

/* The number up to `end`; -1: there is none. */
static int64_t number_before(const char *text, char end, const char **ret_behind)
{
	char *behind;
	unsigned long n = strtoul(text, &behind, 10);

	if (behind == text || *behind != end || n > UINT32_MAX)
		return -1;
	*ret_behind = behind + 1;
	return (int64_t)n;
}

/* "98:0" */
static bool parse_dev(const char *text, dev_t *ret)
{
	int64_t major = number_before(text, ':', &text);
	int64_t minor = major < 0 ? -1 : number_before(text, '\0', &text);

	if (minor < 0)
		return false;
	*ret = makedev((unsigned int)major, (unsigned int)minor);
	return true;
}

/* "36 35 98:0 /root /mnt rw,noatime shared:1 - type source options" */
static bool parse_line(char *line, const char *path, struct fs_mounted *ret)
{
	char dev[32], at[4096], options[1024], *sep = strstr(line, " - "), *id;

	if (!sep || sscanf(line, "%*s %*s %31s %*s %4095s", dev, at) != 2 ||
		!parse_dev(dev, &ret->dev))
		return false;
	mount_field_str(at);
	if (strcmp(at, path) != 0 ||
		sscanf(sep + 3, "%63s %1023s %1023s", ret->type, ret->source, options) != 3)
		return false;
	mount_field_str(ret->source);
	id = strstr(options, "user_id=");
	ret->uid = id ? (uid_t)strtoul(id + strlen("user_id="), NULL, 10) : (uid_t)-1;
	id = strstr(options, "group_id=");
	ret->gid = id ? (gid_t)strtoul(id + strlen("group_id="), NULL, 10) : (gid_t)-1;
	return true;
}

bool fs_mountpoint_find(FILE *table, const char *path, struct fs_mounted *ret)
{
	struct fs_mounted m;
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	/* Later ones lie over earlier ones. */
	while (getline(&line, &cap, table) > 0)
		if (parse_line(line, path, &m)) {
			*ret = m;
			found = true;
		}
	free(line);
	return found;
}

dev_t fs_mountpoint_dev(FILE *table, const char *path, const char *source)
{
	struct fs_mounted m;

	return fs_mountpoint_find(table, path, &m) && strcmp(m.type, TYPE) == 0 &&
			       strcmp(m.source, source) == 0
		       ? m.dev
		       : 0;
}

static bool mounted_now(const char *path, struct fs_mounted *ret)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	bool found = f && fs_mountpoint_find(f, path, ret);

	if (f)
		fclose(f);
	return found;
}

/* In a child of ours: only what is safe after a fork beside threads. The exit status: ENOTCONN? */
static void __attribute__((noreturn)) probe(const char *path, const struct fs_mounted *m)
{
	close_range(3, ~0u, 0);
	/* The kernel lets nobody else ask a mount without allow_other. */
	if (geteuid() == 0 && m->uid != (uid_t)-1 &&
		(setresgid(m->gid, m->gid, m->gid) != 0 || setresuid(m->uid, m->uid, m->uid) != 0))
		_exit(0);
	_exit(access(path, F_OK) < 0 && errno == ENOTCONN);
}

/*
 * Has the daemon of this mount died? Nothing but a request tells, and one to a living daemon may
 * wait for a dead server: a child makes it, for a while.
 */
static bool is_dead(const char *path, const struct fs_mounted *m)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return false;
	if (pid == 0)
		probe(path, m);
	for (unsigned int i = 0; i < PROBE_MS; i++) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 1;
		if (got < 0 && errno != EINTR)
			return false;
		nanosleep(&ms, NULL);
	}
	kill(pid, SIGKILL); /* it may take its time: nobody waits for it */
	return false;
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

/* What a daemon that died left behind needs no hand to be repaired. */
static int detach_dead(const char *path, char *text, size_t len)
{
	if (fs_unmount_detach(path) != 0)
		return fail(text, len, ENOTCONN,
			"mountpoint: a dead rpcrdmafs is still mounted there: umount -l %s as root",
			path);
	log_warn("%s: the mount of an rpcrdmafs that had died was taken away", path);
	return 0;
}

static int check_mounts(const char *path, const char *source, char *text, size_t len)
{
	struct fs_mounted m;
	int err;

	for (unsigned int i = 0; i < STACKED_MAX; i++) {
		if (!mounted_now(path, &m) || strcmp(m.type, TYPE) != 0)
			return 0;
		if (!is_dead(path, &m)) {
			if (strcmp(m.source, source) == 0)
				return fail(text, len, EBUSY,
					"mountpoint: %s is already mounted on %s", source, path);
			return fail(text, len, EBUSY,
				"mountpoint: busy: rpcrdmafs has %s mounted there already: umount "
				"%s first",
				m.source, path);
		}
		err = detach_dead(path, text, len);
		if (err)
			return err;
	}
	return fail(text, len, EBUSY, "mountpoint: dead mounts lie over each other: umount -l %s",
		path);
}

int fs_mountpoint_check(const char *path, const char *source, char *text, size_t len)
{
	int fd = fs_mountfd_of(path), err;
	struct stat st;

	if (fd >= 0)
		return fs_mountfd_check(fd, text, len);
	err = check_mounts(path, source, text, len);
	if (err)
		return err;
	if (stat(path, &st) < 0)
		return fail(text, len, errno, "mountpoint: %s",
			errno == ENOENT     ? "does not exist: make the directory first"
			: errno == ENOTCONN ? "a dead FUSE file system is still mounted there: "
					      "fusermount3 -u it"
					    : strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail(text, len, ENOTDIR, "mountpoint: not a directory");
	return 0;
}
