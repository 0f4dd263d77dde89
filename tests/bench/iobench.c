/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One measurement of file I/O, told as one line: OPS BYTES SECONDS
 *
 *   iobench MODE FILE [--bs BYTES] [--size BYTES] [--ops N] [--qd N] [--jobs N] [--buffered]
 *           [--cpu]
 *
 *   write, read            sequential, bs after bs, --size bytes
 *   randwrite, randread    --ops blocks of a file of --size bytes; --qd N in flight at once
 *                          (Linux' asynchronous I/O, so O_DIRECT only)
 *   append                 --ops times --bs bytes, O_APPEND
 *   getattr                --ops times; asks the file system even if the kernel knows
 *   create, stat, open, list, unlink
 *                          FILE is a folder, with files in it that are numbered from 0 (f0, f1
 *                          ...); list is readdir, and a stat of each name
 *
 * O_DIRECT unless --buffered. What is written ends with fsync and close, which count.
 * --jobs N: so many processes at once, each with a file of its own (FILE.0, FILE.1 ...) or
 * files of its own, and its part of the size or the operations; the time is that of all of them.
 * --cpu: a fourth number, the nanoseconds of CPU that all of that took here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum kind {
	SEQUENTIAL,
	RANDOM,
	APPEND,
	GETATTR,
	FOLDER,
};

struct mode {
	const char *name;
	enum kind kind;
	bool writes;
	/* FOLDER: one operation on a name; -1: errno */
	int (*op)(int dir, const char *name);
};

static struct {
	const struct mode *mode;
	const char *file;
	size_t bs;
	off_t size;
	long ops, qd, jobs;
	bool buffered, cpu;
} opt = {.bs = 1 << 20, .size = 64 << 20, .qd = 1, .jobs = 1};

static void die(const char *what)
{
	fprintf(stderr, "iobench: %s %s: %s: %s\n", opt.mode->name, opt.file, what,
		strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double used_by(int who)
{
	struct rusage ru;

	getrusage(who, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e9 +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1e3;
}

/* Of this process and of those that it has waited for. */
static double cpu_ns(void)
{
	return used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
}

/* ---- data ---- */

/* A fixed sequence of offsets: both sides of a comparison get the same. */
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

	return (off_t)((opt.mode->kind == RANDOM ? mix((uint64_t)op) : (uint64_t)op) % blocks *
		       opt.bs);
}

static char *new_buffer(void)
{
	char *buf;

	if (posix_memalign((void **)&buf, 4096, opt.bs))
		die("memory");
	memset(buf, 'x', opt.bs);
	return buf;
}

static void check_size(ssize_t n)
{
	if (n == (ssize_t)opt.bs)
		return;
	errno = n < 0 ? errno : EIO;
	die("short or failed");
}

static void one_by_one(int fd)
{
	char *buf = new_buffer();

	for (long op = 0; op < opt.ops; op++) {
		if (opt.mode->kind == APPEND)
			check_size(write(fd, buf, opt.bs));
		else if (opt.mode->writes)
			check_size(pwrite(fd, buf, opt.bs, offset_of(op)));
		else
			check_size(pread(fd, buf, opt.bs, offset_of(op)));
	}
	free(buf);
}

static void submit(aio_context_t ctx, struct iocb *cb, int fd, long op)
{
	cb->aio_fildes = (uint32_t)fd;
	cb->aio_lio_opcode = opt.mode->writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
	cb->aio_nbytes = opt.bs;
	cb->aio_offset = offset_of(op);
	if (syscall(SYS_io_submit, ctx, 1, &cb) != 1)
		die("io_submit");
}

/* So many in flight, always: the next one begins when any has ended. */
static void in_flight(int fd)
{
	struct iocb *cbs = calloc((size_t)opt.qd, sizeof(*cbs));
	struct io_event evs[64];
	aio_context_t ctx = 0;
	long op = 0, done = 0;

	if (!cbs || syscall(SYS_io_setup, opt.qd, &ctx) < 0)
		die("io_setup");
	for (; op < opt.qd && op < opt.ops; op++) {
		cbs[op].aio_buf = (uint64_t)(uintptr_t)new_buffer();
		submit(ctx, &cbs[op], fd, op);
	}
	while (done < opt.ops) {
		long n = syscall(SYS_io_getevents, ctx, 1, 64, evs, NULL);

		if (n < 0 && errno != EINTR)
			die("io_getevents");
		for (long i = 0; i < n; i++, done++) {
			if (evs[i].res < 0)
				errno = (int)-evs[i].res;
			check_size(evs[i].res < 0 ? -1 : (ssize_t)evs[i].res);
			if (op < opt.ops)
				submit(ctx, (struct iocb *)(uintptr_t)evs[i].obj, fd, op++);
		}
	}
	syscall(SYS_io_destroy, ctx);
	for (long i = 0; i < opt.qd; i++)
		free((void *)(uintptr_t)cbs[i].aio_buf);
	free(cbs);
}

static void on_file(const char *file)
{
	int flags = opt.mode->writes ? O_RDWR | O_CREAT : O_RDONLY, fd;

	if (opt.mode->kind == APPEND)
		flags |= O_APPEND;
	if (!opt.buffered)
		flags |= O_DIRECT;
	fd = open(file, flags, 0644);
	if (fd < 0)
		die("open");
	if (opt.qd > 1)
		in_flight(fd);
	else
		one_by_one(fd);
	if (opt.mode->writes && fsync(fd))
		die("fsync");
	if (close(fd))
		die("close");
}

/* ---- folders ---- */

static int op_create(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

	return fd < 0 ? fd : close(fd);
}

static int op_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY);

	return fd < 0 ? fd : close(fd);
}

static int op_stat(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, 0);
}

static int op_unlink(int dir, const char *name)
{
	return unlinkat(dir, name, 0);
}

static void list_all(void)
{
	DIR *dir = opendir(opt.file);
	struct dirent *de;
	long cnt = 0;

	if (!dir)
		die("opendir");
	while ((de = readdir(dir)))
		if (de->d_name[0] != '.' && !op_stat(dirfd(dir), de->d_name))
			cnt++;
	closedir(dir);
	errno = ENOENT;
	if (cnt < opt.ops)
		die("too few names");
}

static void in_folder(long job)
{
	int dir = open(opt.file, O_RDONLY | O_DIRECTORY);
	char name[48];

	if (dir < 0)
		die("open");
	for (long op = 0; op < opt.ops; op++) {
		snprintf(name, sizeof(name), "f%ld", job * opt.ops + op);
		if (opt.mode->op(dir, name))
			die(name);
	}
	close(dir);
}

static void ask(const char *file)
{
	struct statx stx;

	for (long op = 0; op < opt.ops; op++)
		if (statx(AT_FDCWD, file, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stx))
			die("statx");
}

/* ---- jobs ---- */

static void one_job(long job)
{
	char *file;

	if (opt.mode->kind == FOLDER) {
		if (opt.mode->op)
			in_folder(job);
		else
			list_all();
		return;
	}
	if (asprintf(&file, opt.jobs > 1 ? "%s.%ld" : "%s", opt.file, job) < 0)
		die("memory");
	if (opt.mode->kind == GETATTR)
		ask(file);
	else
		on_file(file);
	free(file);
}

/* They begin when all are there. */
static double side_by_side(void)
{
	int go[2], status;
	double start;
	char c;

	if (pipe(go))
		die("pipe");
	for (long job = 0; job < opt.jobs; job++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			close(go[1]);
			if (read(go[0], &c, 1) != 0)
				die("start");
			one_job(job);
			_exit(0);
		}
	}
	start = now();
	close(go[1]);
	for (long job = 0; job < opt.jobs; job++)
		if (wait(&status) < 0 || status != 0)
			exit(1);
	return now() - start;
}

/* ---- the command ---- */

static const struct mode modes[] = {
	{"write", SEQUENTIAL, true, NULL},
	{"read", SEQUENTIAL, false, NULL},
	{"randwrite", RANDOM, true, NULL},
	{"randread", RANDOM, false, NULL},
	{"append", APPEND, true, NULL},
	{"getattr", GETATTR, false, NULL},
	{"create", FOLDER, false, op_create},
	{"stat", FOLDER, false, op_stat},
	{"open", FOLDER, false, op_open},
	{"list", FOLDER, false, NULL},
	{"unlink", FOLDER, false, op_unlink},
};

static void usage(void)
{
	fprintf(stderr, "usage: iobench MODE FILE [--bs BYTES] [--size BYTES] [--ops N] [--qd N]"
			" [--jobs N] [--buffered] [--cpu]\nmodes:");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		fprintf(stderr, " %s", modes[i].name);
	fprintf(stderr, "\n");
	exit(2);
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

static void parse(int argc, char **argv)
{
	if (argc < 3)
		usage();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			opt.mode = &modes[i];
	if (!opt.mode)
		usage();
	opt.file = argv[2];
	for (int i = 3; i < argc; i++) {
		bool more = i + 1 < argc;

		if (!strcmp(argv[i], "--buffered"))
			opt.buffered = true;
		else if (!strcmp(argv[i], "--cpu"))
			opt.cpu = true;
		else if (!strcmp(argv[i], "--bs") && more)
			opt.bs = (size_t)number(argv[++i]);
		else if (!strcmp(argv[i], "--size") && more)
			opt.size = number(argv[++i]);
		else if (!strcmp(argv[i], "--ops") && more)
			opt.ops = number(argv[++i]);
		else if (!strcmp(argv[i], "--qd") && more)
			opt.qd = number(argv[++i]);
		else if (!strcmp(argv[i], "--jobs") && more)
			opt.jobs = number(argv[++i]);
		else
			usage();
	}
	if (opt.qd > 1 && (opt.buffered || opt.mode->kind != RANDOM))
		usage();
	opt.size /= opt.jobs;
	opt.ops = opt.mode->kind == SEQUENTIAL ? opt.size / (off_t)opt.bs : opt.ops / opt.jobs;
	if (opt.ops < 1 || (off_t)opt.bs > opt.size)
		usage();
}

int main(int argc, char **argv)
{
	double seconds, bytes, cpu;

	parse(argc, argv);
	cpu = cpu_ns();
	if (opt.jobs > 1) {
		seconds = side_by_side();
	} else {
		double start = now();

		one_job(0);
		seconds = now() - start;
	}
	cpu = cpu_ns() - cpu;
	opt.ops *= opt.jobs;
	bytes = opt.mode->kind >= GETATTR ? 0 : (double)opt.ops * (double)opt.bs;
	printf("%ld %.0f %.6f", opt.ops, bytes, seconds);
	if (opt.cpu)
		printf(" %.0f", cpu);
	printf("\n");
	return 0;
}
