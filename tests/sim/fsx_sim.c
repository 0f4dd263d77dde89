/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random operations on one file, each compared with a model in memory: read
 * and write (cached and O_DIRECT), truncate, mmap, fsync, close and open.
 *
 *   fsx_sim [-n OPERATIONS] [-s SEED] [-t SECONDS] [-l LENGTH] [-q] FILE
 *
 * Ends after OPERATIONS or SECONDS, whichever comes first. The seed is printed:
 * the same seed makes the same operations. -q: prints nothing when all is well.
 * A difference prints the last operations and the first byte that is wrong,
 * and the file stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HISTORY   40
#define IO_MAX    (192u * 1024)
#define FILE_MAX  (384u * 1024)
#define CHECK_ALL 500 /* operations from one look at the whole file to the next */

static struct {
	const char *path;
	int fd, direct;
	uint8_t model[FILE_MAX];
	size_t size, limit;
	uint8_t *io; /* page aligned, IO_MAX and a page */
	uint64_t rng, seed;
	unsigned long op;
	char history[HISTORY][120];
} x;

static uint32_t rnd(uint32_t below)
{
	x.rng ^= x.rng << 13;
	x.rng ^= x.rng >> 7;
	x.rng ^= x.rng << 17;
	return below ? (uint32_t)(x.rng >> 20) % below : 0;
}

static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(x.history[x.op % HISTORY], sizeof(x.history[0]), fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 1, 2), noreturn)) wrong(const char *fmt, ...)
{
	unsigned long first = x.op + 1 > HISTORY ? x.op + 1 - HISTORY : 0;
	va_list ap;

	printf("seed %llu, the last operations:\n", (unsigned long long)x.seed);
	for (unsigned long i = first; i <= x.op; i++)
		printf("  %lu %s\n", i, x.history[i % HISTORY]);
	printf("%s: ", x.path);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	exit(1);
}

/* A page of a mapping that cannot be read: only memory of ours is looked at then. */
static void on_bus(int sig)
{
	wrong("SIGBUS");
}

static void compare(const uint8_t *got, size_t off, size_t len, const char *how)
{
	for (size_t i = 0; i < len; i++) {
		size_t bad = i;

		if (got[i] == x.model[off + i])
			continue;
		while (bad < len && got[bad] != x.model[off + bad])
			bad++;
		wrong("%s: byte %zu is %02x, not %02x (right again at %zu; size %zu)", how, off + i,
			got[i], x.model[off + i], off + bad, x.size);
	}
}

/* ---- operations ---- */

static size_t some_offset(size_t below, bool aligned)
{
	size_t off = rnd((uint32_t)below);

	/* Page boundaries and their neighbours are where bugs live. */
	if (aligned || rnd(4) == 0)
		return off & ~(size_t)4095;
	return off;
}

static size_t some_length(size_t max)
{
	size_t len = rnd(3) == 0 ? rnd(IO_MAX) : rnd(2) ? rnd(5000) : rnd(20000);

	len++;
	return len < max ? len : max;
}

/* O_DIRECT as often as not with the alignment a disk would want. */
static uint8_t *some_memory(bool direct)
{
	return x.io + (direct && rnd(2) ? rnd(4096) : 0);
}

static void do_read(bool direct)
{
	size_t off = some_offset(x.size + 1, direct && rnd(2)), len = some_length(IO_MAX), want;
	uint8_t *mem = some_memory(direct);
	ssize_t n;

	note("read%s %zu at %zu", direct ? " direct" : "", len, off);
	want = off >= x.size ? 0 : len < x.size - off ? len : x.size - off;
	n = pread(direct ? x.direct : x.fd, mem, len, (off_t)off);
	if (n != (ssize_t)want)
		wrong("read %zd, not %zu: %s", n, want, n < 0 ? strerror(errno) : "");
	compare(mem, off, want, direct ? "read direct" : "read");
}

static void grow_model(size_t size)
{
	if (size > x.size) {
		memset(x.model + x.size, 0, size - x.size);
		x.size = size;
	}
}

static void do_write(bool direct)
{
	size_t off = some_offset(x.limit, direct && rnd(2)), len = some_length(x.limit - off), done;
	uint8_t *mem = some_memory(direct);
	uint8_t base = (uint8_t)rnd(256);

	note("write%s %zu at %zu (size %zu)", direct ? " direct" : "", len, off, x.size);
	for (size_t i = 0; i < len; i++)
		mem[i] = (uint8_t)(base + i * 7 + (i >> 8));
	for (done = 0; done < len;) {
		ssize_t n = pwrite(
			direct ? x.direct : x.fd, mem + done, len - done, (off_t)(off + done));

		if (n <= 0)
			wrong("write %zd: %s", n, strerror(errno));
		done += (size_t)n;
	}
	grow_model(off + len);
	memcpy(x.model + off, mem, len);
}

static void do_truncate(void)
{
	size_t size = some_offset(x.limit, false);

	note("truncate to %zu (size %zu)", size, x.size);
	if (rnd(2) ? ftruncate(x.fd, (off_t)size) : truncate(x.path, (off_t)size))
		wrong("truncate: %s", strerror(errno));
	grow_model(size);
	x.size = size;
}

static void do_map(bool write)
{
	size_t off, start, len;
	uint8_t *map;

	if (x.size == 0)
		return;
	off = some_offset(x.size, false);
	len = some_length(x.size - off);
	start = off & ~(size_t)4095;
	note("map %s %zu at %zu (size %zu)", write ? "write" : "read", len, off, x.size);
	map = mmap(NULL, len + off - start, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		x.fd, (off_t)start);
	if (map == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	if (write) {
		for (size_t i = 0; i < len; i++)
			x.model[off + i] = map[off - start + i] = (uint8_t)(x.op + i * 3);
		if (rnd(2) && msync(map, len + off - start, MS_SYNC))
			wrong("msync: %s", strerror(errno));
	} else {
		compare(map + off - start, off, len, "map");
	}
	munmap(map, len + off - start);
}

static void do_open(void)
{
	note("open");
	x.fd = open(x.path, O_RDWR | O_CREAT, 0644);
	x.direct = x.fd < 0 ? -1 : open(x.path, O_RDWR | O_DIRECT);
	if (x.fd < 0 || x.direct < 0)
		wrong("open: %s", strerror(errno));
}

static void do_reopen(void)
{
	note("close and open");
	if (close(x.fd) || close(x.direct))
		wrong("close: %s", strerror(errno));
	do_open();
}

static void do_sync(void)
{
	note("fsync");
	if (fsync(x.fd))
		wrong("fsync: %s", strerror(errno));
}

static void check_all(void)
{
	size_t off = 0;
	struct stat st;

	note("check of everything");
	if (fstat(x.fd, &st) || (size_t)st.st_size != x.size)
		wrong("size %lld, not %zu", (long long)st.st_size, x.size);
	while (off < x.size) {
		ssize_t n = pread(x.fd, x.io, IO_MAX, (off_t)off);

		if (n <= 0 || (size_t)n > x.size - off)
			wrong("read %zd at %zu: %s", n, off, n < 0 ? strerror(errno) : "");
		compare(x.io, off, (size_t)n, "check");
		off += (size_t)n;
	}
}

static void one_operation(void)
{
	uint32_t what = rnd(100);

	if (what < 25)
		do_read(false);
	else if (what < 40)
		do_read(true);
	else if (what < 60)
		do_write(false);
	else if (what < 72)
		do_write(true);
	else if (what < 79)
		do_truncate();
	else if (what < 86)
		do_map(false);
	else if (what < 92)
		do_map(true);
	else if (what < 96)
		do_sync();
	else
		do_reopen();
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	unsigned long ops = 20000;
	double seconds = 1e9, start = now();
	bool quiet = false;
	int c;

	x.limit = 256 * 1024;
	x.seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
	while ((c = getopt(argc, argv, "n:s:t:l:q")) != -1) {
		switch (c) {
		case 'n':
			ops = strtoul(optarg, NULL, 10);
			break;
		case 's':
			x.seed = strtoull(optarg, NULL, 10);
			break;
		case 't':
			seconds = strtod(optarg, NULL);
			break;
		case 'l':
			x.limit = strtoul(optarg, NULL, 10);
			break;
		case 'q':
			quiet = true;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc || x.limit < 1 || x.limit > FILE_MAX)
		return 2;
	x.path = argv[optind];
	x.io = aligned_alloc(4096, IO_MAX + 8192);
	x.rng = x.seed * 0x9e3779b97f4a7c15ull | 1;
	if (!quiet)
		printf("%s: seed %llu\n", x.path, (unsigned long long)x.seed);
	fflush(stdout);
	signal(SIGBUS, on_bus);
	do_open();
	for (x.op = 0; x.op < ops && now() - start < seconds; x.op++) {
		one_operation();
		if (x.op % CHECK_ALL == CHECK_ALL - 1)
			check_all();
	}
	check_all();
	do_reopen();
	check_all();
	close(x.fd);
	close(x.direct);
	if (unlink(x.path))
		wrong("unlink: %s", strerror(errno));
	if (!quiet)
		printf("%s: %lu operations in %.1f s\n", x.path, x.op, now() - start);
	free(x.io);
	return 0;
}
