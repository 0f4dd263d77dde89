/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flight DIR SERVER_DIR THREADS ROUNDS - as many calls at once as there are threads
 *
 * Each thread has a file of its own, opened with O_DIRECT and O_SYNC: each write and each read is a
 * call to the server, none can be answered or put off by the kernel's cache. All files are
 * prepared, then "ready" is printed and a byte read from standard input; after it all threads write
 * at once. In each round a thread writes a block and reads one that it wrote before. At the end
 * SERVER_DIR, the same folder seen on the server, must have all that was written.
 * Exit status 0: no call failed and all data is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sizes are not the same, so that data in a wrong place is seen. */
#define SLOT        32768
#define MAX_THREADS 256

struct thread {
	pthread_t id;
	unsigned int nr;
	int fd;
	uint8_t *out, *in;
};

static const char *dir, *server_dir;
static unsigned int rounds;
static atomic_bool failed;
static pthread_barrier_t start;
static struct thread threads[MAX_THREADS];

static void fail(const struct thread *t, const char *what, unsigned int round)
{
	printf("thread %u, round %u: %s: %s\n", t->nr, round, what, strerror(errno));
	failed = true;
}

static size_t size_of(const struct thread *t, unsigned int round)
{
	return 4096 * (1 + (t->nr + round) % (SLOT / 4096));
}

static void fill(uint8_t *p, size_t len, unsigned int nr, unsigned int round)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = ((uint64_t)nr << 40) + ((uint64_t)round << 24) + i;

		memcpy(p + i, &v, 8);
	}
}

static bool is_right(struct thread *t, int fd, unsigned int round)
{
	size_t len = size_of(t, round);

	fill(t->out, len, t->nr, round);
	memset(t->in, 0xff, len);
	if (pread(fd, t->in, len, (off_t)round * SLOT) != (ssize_t)len) {
		fail(t, "read", round);
		return false;
	}
	if (memcmp(t->in, t->out, len) != 0) {
		errno = EILSEQ;
		fail(t, "wrong data", round);
		return false;
	}
	return true;
}

static void *run(void *arg)
{
	struct thread *t = arg;

	pthread_barrier_wait(&start);
	for (unsigned int round = 0; round < rounds && !failed; round++) {
		size_t len = size_of(t, round);

		fill(t->out, len, t->nr, round);
		if (pwrite(t->fd, t->out, len, (off_t)round * SLOT) != (ssize_t)len)
			fail(t, "write", round);
		else
			is_right(t, t->fd, round / 2);
	}
	return NULL;
}

static int open_in(const char *in, const struct thread *t, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/flight-%u", in, t->nr);
	return open(path, flags, 0666);
}

static bool prepare(struct thread *t)
{
	t->out = aligned_alloc(4096, SLOT);
	t->in = aligned_alloc(4096, SLOT);
	t->fd = open_in(dir, t, O_RDWR | O_CREAT | O_DIRECT | O_SYNC);
	return t->out && t->in && t->fd >= 0;
}

static void verify(struct thread *t)
{
	int fd = open_in(server_dir, t, O_RDONLY);

	if (fd < 0) {
		fail(t, "open on the server", 0);
		return;
	}
	for (unsigned int round = 0; round < rounds; round++)
		if (!is_right(t, fd, round))
			break;
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned int cnt;
	char go;

	if (argc < 5)
		return 2;
	dir = argv[1];
	server_dir = argv[2];
	cnt = (unsigned int)atoi(argv[3]);
	rounds = (unsigned int)atoi(argv[4]);
	if (cnt < 1 || cnt > MAX_THREADS)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_barrier_init(&start, NULL, cnt + 1);
	for (unsigned int i = 0; i < cnt; i++) {
		threads[i].nr = i;
		if (!prepare(&threads[i])) {
			fail(&threads[i], "cannot begin", 0);
			return 1;
		}
	}
	for (unsigned int i = 0; i < cnt; i++)
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]))
			return 2;
	printf("ready\n");
	if (read(0, &go, 1) != 1)
		return 2;
	pthread_barrier_wait(&start);
	for (unsigned int i = 0; i < cnt; i++) {
		pthread_join(threads[i].id, NULL);
		if (close(threads[i].fd))
			fail(&threads[i], "close", rounds);
	}
	for (unsigned int i = 0; i < cnt && !failed; i++)
		verify(&threads[i]);
	return failed ? 1 : 0;
}
