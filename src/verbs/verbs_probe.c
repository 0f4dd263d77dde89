/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is there a device at all, and may it be used?
 *
 * librdmacm knows, but may take 5 s to say no: it asks the kernel for the number of its device
 * node, and when it cannot open the node, it waits for udev to make one (rdma-core,
 * util/open_cdev.c: open_cdev_robust()). That is for a module that is being loaded. A container
 * that was not given the node, or a user who may not open it, would wait for nothing.
 */
#include "verbs_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NODE "/dev/infiniband/rdma_cm"

const char *verbs_probe_root = "";

/* Returns: a descriptor or -errno. */
static int probe_open(const char *path, int flags)
{
	char full[PATH_MAX];
	int fd;

	snprintf(full, sizeof(full), "%s%s", verbs_probe_root, path);
	fd = open(full, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_there(const char *path)
{
	int fd = probe_open(path, O_PATH);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Without sysfs it is not known: librdmacm is asked. */
static bool has_no_device(void)
{
	int fd = probe_open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY);
	const struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return fd == -ENOENT && is_there("/sys/class");
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return false;
	}
	do
		entry = readdir(dir);
	while (entry && entry->d_name[0] == '.');
	closedir(dir);
	return !entry;
}

int verbs_probe(char *why, size_t why_len)
{
	int fd;

	if (has_no_device())
		return -ENODEV;
	/* Until the module is loaded, which asking for it does, there need not be a node. */
	if (!is_there("/sys/class/misc/rdma_cm"))
		return 0;
	fd = probe_open(NODE, O_RDWR);
	if (fd >= 0)
		close(fd);
	if (fd != -ENOENT && fd != -EACCES && fd != -EPERM && fd != -ENXIO)
		return 0;
	snprintf(why, why_len, "%s: %s", NODE, strerror(-fd));
	return -ENODEV;
}
