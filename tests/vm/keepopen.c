/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keepopen DIR SERVER_DIR SECONDS [SABOTAGE] - files that stay open while the server is restarted
 *
 * Each thread keeps two files of its own in DIR open, one of them with O_SYNC, and writes numbered
 * blocks, makes them durable, reads them back, renames another file to and fro and opens and closes
 * a third. What was acknowledged is noted; at the end it must be in SERVER_DIR, which is the same
 * folder seen on the server. No call may fail, and none may take longer than MAX_CALL_S.
 * SABOTAGE: a byte of an acknowledged block is changed there first, which must be noticed.
 * Exit status: 0: all is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS    6
#define BLOCK      20000
#define BLOCKS     64
#define MAX_CALL_S 60

struct thread {
	pthread_t id;
	unsigned int nr;
	int fd[2]; /* with O_SYNC, without */
	/* number of the last block that was made durable at each place; 0: none */
	uint64_t durable[2][BLOCKS];
	uint64_t written[2][BLOCKS]; /* that may be there as well */
	uint64_t rounds, renames, opens;
};

static const char *dir, *server_dir;
static atomic_bool stop, failed;
static struct thread threads[THREADS];

__attribute__((format(printf, 1, 2))) static void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	flockfile(stdout);
	vprintf(fmt, ap);
	printf("\n");
	funlockfile(stdout);
	va_end(ap);
	failed = true;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void path_of(char path[PATH_MAX], const char *in, const struct thread *t, const char *what)
{
	snprintf(path, PATH_MAX, "%s/keep-%u-%s", in, t->nr, what);
}

static void fill(uint8_t *p, unsigned int nr, uint64_t seq)
{
	for (size_t i = 0; i + 8 <= BLOCK; i += 8) {
		uint64_t v = seq * 1000003 + nr * 31 + i;

		memcpy(p + i, &v, 8);
	}
}

/* Whether a call went well, in time. */
static bool well(const struct thread *t, const char *what, bool ok, double since)
{
	double took = now() - since;

	if (!ok)
		fail("thread %u: %s after %.1f s: %s", t->nr, what, took, strerror(errno));
	else if (took > MAX_CALL_S)
		fail("thread %u: %s took %.1f s", t->nr, what, took);
	return ok;
}

static void one_block(struct thread *t, unsigned int which, uint64_t seq)
{
	unsigned int at = (unsigned int)(seq * 7 % BLOCKS);
	uint8_t out[BLOCK], in[BLOCK];
	off_t off = (off_t)at * BLOCK;
	double t0 = now();

	fill(out, t->nr, seq);
	t->written[which][at] = seq;
	if (!well(t, "write", pwrite(t->fd[which], out, BLOCK, off) == BLOCK, t0))
		return;
	t0 = now();
	if (which == 1 && seq % 3 == 0) {
		if (!well(t, "fsync", fsync(t->fd[1]) == 0, t0))
			return;
		memcpy(t->durable[1], t->written[1], sizeof(t->durable[1]));
	} else if (which == 0) {
		t->durable[0][at] = seq;
	}
	t0 = now();
	if (seq % 2 == 0)
		posix_fadvise(t->fd[which], 0, 0, POSIX_FADV_DONTNEED);
	if (well(t, "read", pread(t->fd[which], in, BLOCK, off) == BLOCK, t0) &&
		memcmp(in, out, BLOCK) != 0)
		fail("thread %u: block %u of file %u reads back wrong", t->nr, at, which);
}

static void names(struct thread *t)
{
	char a[PATH_MAX], b[PATH_MAX], c[PATH_MAX];
	double t0 = now();
	int fd;

	path_of(a, dir, t, t->renames % 2 ? "b" : "a");
	path_of(b, dir, t, t->renames % 2 ? "a" : "b");
	path_of(c, dir, t, "c");
	if (well(t, "rename", rename(a, b) == 0, t0))
		t->renames++;
	t0 = now();
	fd = open(c, O_RDWR | O_CREAT, 0666);
	if (!well(t, "open", fd >= 0, t0))
		return;
	t->opens++;
	t0 = now();
	well(t, "write to a new file", write(fd, "hello", 5) == 5, t0);
	t0 = now();
	well(t, "close", close(fd) == 0, t0);
}

static void *run(void *arg)
{
	struct thread *t = arg;

	for (uint64_t seq = 1; !stop && !failed; seq++) {
		one_block(t, 0, seq);
		one_block(t, 1, seq);
		names(t);
		t->rounds++;
		usleep(2000);
	}
	return NULL;
}

static bool begin(struct thread *t)
{
	static const char *const what[] = {"sync", "data"};
	char path[PATH_MAX];

	for (unsigned int i = 0; i < 2; i++) {
		path_of(path, dir, t, what[i]);
		t->fd[i] = open(path, O_RDWR | O_CREAT | O_TRUNC | (i ? 0 : O_SYNC), 0666);
		if (t->fd[i] < 0)
			return false;
	}
	path_of(path, dir, t, "a");
	close(open(path, O_WRONLY | O_CREAT, 0666));
	return true;
}

static void verify(struct thread *t, unsigned int which)
{
	char path[PATH_MAX];
	uint8_t want[BLOCK], is[BLOCK];
	int fd;

	path_of(path, server_dir, t, which ? "data" : "sync");
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		fail("%s: %s", path, strerror(errno));
		return;
	}
	for (unsigned int at = 0; at < BLOCKS; at++) {
		if (!t->durable[which][at])
			continue;
		fill(want, t->nr, t->durable[which][at]);
		if (pread(fd, is, BLOCK, (off_t)at * BLOCK) != BLOCK)
			fail("%s: block %u is not there", path, at);
		else if (memcmp(is, want, BLOCK) != 0)
			fail("%s: block %u is not what was acknowledged", path, at);
	}
	close(fd);
}

static void end(struct thread *t)
{
	char path[PATH_MAX];
	double t0 = now();

	/* Unstable until here, some of it. */
	if (well(t, "last fsync", fsync(t->fd[1]) == 0, t0))
		memcpy(t->durable[1], t->written[1], sizeof(t->durable[1]));
	for (unsigned int i = 0; i < 2; i++) {
		t0 = now();
		well(t, "last close", close(t->fd[i]) == 0, t0);
	}
	path_of(path, server_dir, t, t->renames % 2 ? "b" : "a");
	if (access(path, F_OK) != 0)
		fail("%s is not where it was renamed to", path);
	path_of(path, server_dir, t, t->renames % 2 ? "a" : "b");
	if (access(path, F_OK) == 0)
		fail("%s is still there", path);
}

static void sabotage(void)
{
	char path[PATH_MAX];
	int fd;

	path_of(path, server_dir, &threads[THREADS - 1], "data");
	fd = open(path, O_WRONLY);
	if (fd < 0 || pwrite(fd, "\377", 1, 7 * BLOCK + 77) != 1)
		fail("%s: cannot be spoilt", path);
	close(fd);
}

int main(int argc, char **argv)
{
	uint64_t rounds = 0, least = UINT64_MAX;

	if (argc < 4)
		return 2;
	dir = argv[1];
	server_dir = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i].nr = i;
		if (!begin(&threads[i])) {
			fail("cannot begin: %s", strerror(errno));
			return 1;
		}
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_create(&threads[i].id, NULL, run, &threads[i]);
	for (double last = now() + atof(argv[3]); now() < last && !failed;)
		usleep(100000);
	stop = true;
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].id, NULL);
		end(&threads[i]);
		rounds += threads[i].rounds;
		if (threads[i].rounds < least)
			least = threads[i].rounds;
	}
	if (argc > 4)
		sabotage();
	for (unsigned int i = 0; i < THREADS; i++) {
		verify(&threads[i], 0);
		verify(&threads[i], 1);
	}
	printf("rounds=%llu least=%llu\n", (unsigned long long)rounds, (unsigned long long)least);
	return failed ? 1 : 0;
}
