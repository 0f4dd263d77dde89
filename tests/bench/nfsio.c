/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What iobench measures, as far as it applies to libnfs (NFSv4.0 over TCP, in
 * user space, its synchronous calls), told in the same line: OPS BYTES SECONDS
 *
 *   nfsio read SERVER PATH --bs BYTES --size BYTES
 *   nfsio stat SERVER PATH --ops N      of f0, f1 ... in the folder PATH
 *
 * No writes: a call of libnfs 4.0 for NFSv4 has room for less than 4 KiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw-nfs4.h>

static struct nfs_context *nfs;

static void die(const char *what)
{
	fprintf(stderr, "nfsio: %s: %s\n", what, nfs ? nfs_get_error(nfs) : "no memory");
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void data(const char *path, uint64_t bs, uint64_t size)
{
	struct nfsfh *fh;
	char *buf = malloc(bs);
	uint64_t off = 0;

	if (!buf || nfs_open(nfs, path, O_RDONLY, &fh) < 0)
		die(path);
	while (off < size) {
		/* A call may do less than was asked for. */
		int n = nfs_pread(nfs, fh, off, size - off < bs ? size - off : bs, buf);

		if (n <= 0)
			die("read");
		off += (uint64_t)n;
	}
	if (nfs_close(nfs, fh) < 0)
		die("close");
	free(buf);
}

static void stats(const char *path, uint64_t ops)
{
	struct nfs_stat_64 st;
	char name[4096];

	for (uint64_t op = 0; op < ops; op++) {
		snprintf(name, sizeof(name), "%s/f%llu", path, (unsigned long long)op);
		if (nfs_stat64(nfs, name, &st) < 0)
			die(name);
	}
}

int main(int argc, char **argv)
{
	uint64_t bs = 1 << 20, size = 0, ops = 0;
	double start;
	int is_stat = argc > 1 && !strcmp(argv[1], "stat");

	for (int i = 4; i + 1 < argc; i += 2) {
		uint64_t n = strtoull(argv[i + 1], NULL, 0);

		if (!strcmp(argv[i], "--bs"))
			bs = n;
		else if (!strcmp(argv[i], "--size"))
			size = n;
		else if (!strcmp(argv[i], "--ops"))
			ops = n;
	}
	if (argc < 6 || (is_stat ? ops == 0 : bs == 0 || size < bs)) {
		fprintf(stderr, "usage: nfsio read|stat SERVER PATH --bs BYTES --size BYTES"
				" --ops N\n");
		return 2;
	}
	nfs = nfs_init_context();
	if (!nfs)
		die("nfs_init_context");
	nfs_set_version(nfs, NFS_V4);
	if (nfs_mount(nfs, argv[2], "/") < 0)
		die("mount");
	if (!is_stat)
		ops = size / bs;
	start = now();
	if (is_stat)
		stats(argv[3], ops);
	else
		data(argv[3], bs, size);
	printf("%llu %llu %.6f\n", (unsigned long long)ops,
		(unsigned long long)(is_stat ? 0 : ops * bs), now() - start);
	nfs_destroy_context(nfs);
	return 0;
}
