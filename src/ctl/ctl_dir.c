/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl_dir.h"

#include <dirent.h>
#include <errno.h>
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

int ctl_dir_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	err = -errno;
	close(fd);
	/* It got its name when it was listened on (ctl.c): so nobody does any more. */
	if (err == -ECONNREFUSED)
		unlink(path);
	return err;
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

void ctl_dir_sweep(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	char path[CTL_PATH_MAX + sizeof(e->d_name)];

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		int fd;

		if (ctl_dir_name_pid(e->d_name) == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		fd = ctl_dir_connect(path);
		if (fd >= 0)
			close(fd);
	}
	closedir(d);
}
