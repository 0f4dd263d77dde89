/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One measurement of file I/O, as one line of results.
 *
 *   iobench MODE FILE [--bs BYTES] [--size BYTES] [--ops N] [--qd THREADS] [--buffered]
 *
 *   MODE: seqwrite, seqread, randread, randwrite; with FILE a folder, and
 *   files in it numbered from 0: create, stat, unlink
 *
 * Each of THREADS synchronous threads has one request in flight, so that
 * THREADS is the queue depth. Prints: mode bs qd ops seconds MiB/s us/op.
 * O_DIRECT unless --buffered; buffered writes end with fsync, which counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct {
	const char *mode, *file;
	size_t bs;
	off_t size;
	long ops;
	int qd;
	bool buffered, write, random, meta;
} opt = {.bs = 1 << 20, .size = 64 << 20, .qd = 1};

static atomic_long next_op;

static void die(const char *what)
{
	fprintf(stderr, "iobench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A fixed sequence of offsets: both clients of a comparison get the same. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static off_t offset_of(long op)
{
	uint64_t blocks = (uint64_t)opt.size / opt.bs;
	uint64_t block = opt.random ? mix((uint64_t)op) % blocks : (uint64_t)op % blocks;

	return (off_t)(block * opt.bs);
}

/* create, stat or unlink of one file in the folder `fd`. */
static void meta_op(int fd, long op)
{
	struct stat st;
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "f%ld", op);
	if (!strcmp(opt.mode, "create")) {
		rc = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (rc >= 0)
			rc = close(rc);
	} else if (!strcmp(opt.mode, "stat")) {
		rc = fstatat(fd, name, &st, 0);
	} else {
		rc = unlinkat(fd, name, 0);
	}
	if (rc)
		die(opt.mode);
}

static void *meta_worker(void *arg)
{
	long op;

	while ((op = atomic_fetch_add(&next_op, 1)) < opt.ops)
		meta_op(*(int *)arg, op);
	return NULL;
}

static void *io_worker(void *arg)
{
	int fd = *(int *)arg;
	char *buf;
	long op;

	if (posix_memalign((void **)&buf, 4096, opt.bs))
		die("memory");
	memset(buf, 'x', opt.bs);
	while ((op = atomic_fetch_add(&next_op, 1)) < opt.ops) {
		ssize_t n = opt.write ? pwrite(fd, buf, opt.bs, offset_of(op))
				      : pread(fd, buf, opt.bs, offset_of(op));

		if (n != (ssize_t)opt.bs) {
			if (n >= 0)
				errno = EIO;
			die(opt.write ? "write" : "read");
		}
	}
	free(buf);
	return NULL;
}

static long number(const char *s)
{
	char *end;
	long n = strtol(s, &end, 0);

	if (n <= 0 || *end) {
		fprintf(stderr, "iobench: not a positive number: %s\n", s);
		exit(2);
	}
	return n;
}

static void usage(void)
{
	fprintf(stderr, "usage: iobench seqwrite|seqread|randread|randwrite|create|stat|unlink "
			"FILE [--bs BYTES]"
			" [--size BYTES] [--ops N] [--qd THREADS] [--buffered]\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	if (argc < 3)
		usage();
	opt.mode = argv[1];
	opt.file = argv[2];
	opt.random = !strncmp(opt.mode, "rand", 4);
	opt.write = strstr(opt.mode, "write") != NULL;
	opt.meta = !opt.write && !strstr(opt.mode, "read");
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "--buffered")) {
			opt.buffered = true;
			continue;
		}
		if (i + 1 == argc)
			usage();
		if (!strcmp(argv[i], "--bs"))
			opt.bs = (size_t)number(argv[++i]);
		else if (!strcmp(argv[i], "--size"))
			opt.size = number(argv[++i]);
		else if (!strcmp(argv[i], "--ops"))
			opt.ops = number(argv[++i]);
		else if (!strcmp(argv[i], "--qd"))
			opt.qd = (int)number(argv[++i]);
		else
			usage();
	}
	if (opt.meta)
		opt.bs = 0;
	else if (!opt.ops)
		opt.ops = (long)((size_t)opt.size / opt.bs);
	if (opt.qd > 64)
		opt.qd = 64;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	uint64_t start;
	double s;
	int fd, flags;

	parse(argc, argv);
	flags = opt.write ? O_RDWR | O_CREAT : O_RDONLY;
	if (!opt.buffered && !opt.meta)
		flags |= O_DIRECT;
	fd = open(opt.file, flags, 0644);
	if (fd < 0)
		die(opt.file);
	start = now_ns();
	for (int i = 0; i < opt.qd; i++)
		if (pthread_create(&threads[i], NULL, opt.meta ? meta_worker : io_worker, &fd))
			die("thread");
	for (int i = 0; i < opt.qd; i++)
		pthread_join(threads[i], NULL);
	if (opt.write && fsync(fd))
		die("fsync");
	if (close(fd))
		die("close");
	s = (double)(now_ns() - start) / 1e9;
	printf("%s %zu %d %ld %.6f %.2f %.2f\n", opt.mode, opt.bs, opt.qd, opt.ops, s,
		(double)opt.ops * (double)opt.bs / s / 1048576.0, s * 1e6 / (double)opt.ops);
	return 0;
}
