/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole program (src/main.c, lanes, threads, /dev/fuse) on the fabric and
 * the server of null_fab.h, which answers on the lane's own thread.
 *
 *   NULL_SPENT=FILE null_daemon [rpcrdmafs' own arguments] 127.0.0.1:/ MOUNTPOINT
 *
 * FILE, if it is given, holds two numbers of 8 bytes of this machine, which are
 * always right: the nanoseconds that the server took, and its calls.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "null_fab.h"

int rpcrdmafs_main(int argc, char **argv);

static struct null_fab_spent *shared(const char *path)
{
	struct null_fab_spent *p = MAP_FAILED;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && ftruncate(fd, sizeof(*p)) == 0)
		p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return p;
}

int main(int argc, char **argv)
{
	const char *path = getenv("NULL_SPENT");

	if (path)
		null_fab_spent = shared(path);
	return rpcrdmafs_main(argc, argv);
}
