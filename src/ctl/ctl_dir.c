/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ROOT_DIR "/run/rpcrdmafs"
#define SUFFIX   ".sock"

bool ctl_dir(char path[CTL_PATH_MAX])
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	int len;

	if (geteuid() == 0)
		len = snprintf(path, CTL_PATH_MAX, "%s", ROOT_DIR);
	else if (run == NULL || *run != '/')
		return false;
	else
		len = snprintf(path, CTL_PATH_MAX, "%s/rpcrdmafs", run);
	/* A name in it needs room too. */
	return len < CTL_PATH_MAX - 20;
}

int ctl_dir_make(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return -errno;
	if (lstat(dir, &st) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	/* A umask, or whoever made it before. */
	if ((st.st_mode & 07777) != 0700 && chmod(dir, 0700) != 0)
		return -errno;
	return 0;
}

int ctl_dir_open(const char *path, uid_t owner)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0)
		err = -errno;
	else if (st.st_uid != owner)
		err = -EPERM;
	if (err == 0)
		return fd;
	close(fd);
	return err;
}

/* ---- connecting ---- */

/* By what a process goes in its own namespace of PIDs, if that is below ours; 0: it is not told. */
static pid_t inner_pid(pid_t pid)
{
	char path[64], line[512];
	const char *last;
	FILE *status;
	pid_t inner = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	if (status == NULL)
		return 0;
	while (fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "NSpid:", 6) == 0 && (last = strrchr(line, '\t')) != NULL)
			inner = (pid_t)strtol(last, NULL, 10);
	fclose(status);
	return inner;
}

/* Does the process listen there that the name says, in the name of the folder's owner? */
static bool is_honest(int sock, uid_t owner, pid_t named)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return false;
	if (peer.uid != owner && peer.uid != 0)
		return false;
	/* 0: it is in no namespace that is seen from here. */
	return peer.pid == 0 || peer.pid == named || inner_pid(peer.pid) == named;
}

/* node: the socket's O_PATH descriptor. Neither a name nor a link is followed once more. */
static int connect_node(int node)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d", node);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int ctl_dir_connect(int dir, const char *name)
{
	int node = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd;
	struct stat folder, st;

	if (node < 0)
		return -errno;
	if (fstat(dir, &folder) != 0 || fstat(node, &st) != 0)
		fd = -errno;
	else if (!S_ISSOCK(st.st_mode))
		fd = -ENOTSOCK;
	else
		fd = connect_node(node);
	close(node);
	if (fd >= 0 && !is_honest(fd, folder.st_uid, ctl_dir_name_pid(name))) {
		close(fd);
		fd = -EPERM;
	}
	/* It got its name when it was listened on (ctl.c): so nobody does any more. */
	if (fd == -ECONNREFUSED && folder.st_uid == geteuid())
		unlinkat(dir, name, 0);
	return fd;
}

pid_t ctl_dir_name_pid(const char *name)
{
	char *end;
	long pid;

	if (*name < '1' || *name > '9')
		return 0;
	errno = 0;
	pid = strtol(name, &end, 10);
	if (errno != 0 || pid > INT_MAX || strcmp(end, SUFFIX) != 0)
		return 0;
	return (pid_t)pid;
}

void ctl_dir_sweep(const char *path)
{
	int dir = ctl_dir_open(path, geteuid());
	DIR *d = dir >= 0 ? fdopendir(dir) : NULL;
	const struct dirent *e;

	if (d == NULL) {
		if (dir >= 0)
			close(dir);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		int fd = ctl_dir_name_pid(e->d_name) != 0 ? ctl_dir_connect(dir, e->d_name) : -1;

		if (fd >= 0)
			close(fd);
	}
	closedir(d);
}
