/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * linkload DIR SERVER_DIR - programs at work while the link to the server is cut
 *
 * Several processes work in DIR, each call of theirs needs the server: writes that are made durable
 * one by one, reads of known data, new files, renames, folders. SERVER_DIR is the same folder seen
 * on the server. Prints "going" when all of them are at work. Then
 *
 *   SIGUSR1   the link will be back soon: prints "stuck N of M", the processes that wait in a call
 *             for a second or longer
 *   SIGUSR2   it is back: prints "recovered in S s" as soon as each of them had a call answered
 *   SIGTERM   ends the work: what was acknowledged must be in SERVER_DIR
 *
 * No call may fail. Exit status 0: all is there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK  16384
#define BLOCKS 64
#define KEPT   16 /* files that `names` leaves */
#define STUCK  1.0

struct worker {
	const char *kind;
	void (*round)(struct worker *, uint64_t seq);
	void (*verify)(struct worker *);
	pid_t pid;
	int fd;
	_Atomic uint64_t calls; /* answered */
	_Atomic double since;   /* when the call began that is under way; 0: none */
	/* number of the last block that was made durable at each place; 0: none */
	uint64_t durable[BLOCKS];
	uint64_t done; /* rounds that ended well */
};

static const char *dir, *server_dir;
static uint8_t *block; /* aligned for O_DIRECT */
static volatile sig_atomic_t back_soon, is_back, ended;

static struct shared {
	atomic_bool stop, failed;
	struct worker workers[6];
} * all;

#define WORKERS (sizeof(all->workers) / sizeof(all->workers[0]))

__attribute__((format(printf, 2, 3))) static void fail(const struct worker *w, const char *fmt, ...)
{
	char line[PATH_MAX + 200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	printf("%s: %s\n", w->kind, line);
	all->failed = true;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void begin(struct worker *w)
{
	w->since = now();
}

/* Whether the call that began went well. */
static bool well(struct worker *w, const char *what, bool ok)
{
	int err = errno;

	if (!ok)
		fail(w, "%s after %.1f s: %s", what, now() - w->since, strerror(err));
	w->since = 0;
	w->calls++;
	return ok;
}

static const char *path_of(
	char path[PATH_MAX], const char *in, const struct worker *w, const char *what, uint64_t nr)
{
	snprintf(path, PATH_MAX, "%s/%s-%s-%llu", in, w->kind, what, (unsigned long long)nr);
	return path;
}

static void fill(uint8_t *p, uint64_t seq)
{
	for (size_t i = 0; i < BLOCK; i += 8) {
		uint64_t v = seq * 1000003 + i;

		memcpy(p + i, &v, 8);
	}
}

static bool is_filled(const uint8_t *p, uint64_t seq)
{
	for (size_t i = 0; i < BLOCK; i += 8) {
		uint64_t v = seq * 1000003 + i;

		if (memcmp(p + i, &v, 8) != 0)
			return false;
	}
	return true;
}

/* ---- kinds of work ---- */

static void write_round(struct worker *w, uint64_t seq)
{
	unsigned int at = (unsigned int)(seq * 7 % BLOCKS);
	bool ok;

	fill(block, seq);
	begin(w);
	ok = pwrite(w->fd, block, BLOCK, (off_t)at * BLOCK) == BLOCK;
	if (w->kind[0] == 'f' && ok)
		ok = fsync(w->fd) == 0;
	if (well(w, "a durable write", ok))
		w->durable[at] = seq;
}

static void write_verify(struct worker *w)
{
	char path[PATH_MAX];
	int fd = open(path_of(path, server_dir, w, "data", 0), O_RDONLY);

	if (fd < 0) {
		fail(w, "%s: %s", path, strerror(errno));
		return;
	}
	for (unsigned int at = 0; at < BLOCKS; at++) {
		if (!w->durable[at])
			continue;
		if (pread(fd, block, BLOCK, (off_t)at * BLOCK) != BLOCK)
			fail(w, "block %u is not there", at);
		else if (!is_filled(block, w->durable[at]))
			fail(w, "block %u is not what was acknowledged", at);
	}
	close(fd);
}

static void read_round(struct worker *w, uint64_t seq)
{
	unsigned int at = (unsigned int)(seq * 13 % BLOCKS);

	memset(block, 0, BLOCK);
	begin(w);
	if (well(w, "a read", pread(w->fd, block, BLOCK, (off_t)at * BLOCK) == BLOCK) &&
		!is_filled(block, at))
		fail(w, "block %u reads wrong", at);
}

static void no_verify(struct worker *w)
{
	(void)w;
}

/* Each is done exactly once, or the second time is an error. */
static void names_round(struct worker *w, uint64_t seq)
{
	char a[PATH_MAX], b[PATH_MAX];
	int fd;

	begin(w);
	fd = open(path_of(a, dir, w, "new", seq), O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (!well(w, "a new file", fd >= 0))
		return;
	begin(w);
	if (!well(w, "a write to it", write(fd, &seq, sizeof(seq)) == sizeof(seq)))
		return;
	begin(w);
	if (!well(w, "closing it", close(fd) == 0))
		return;
	begin(w);
	if (!well(w, "renaming it", rename(a, path_of(b, dir, w, "kept", seq)) == 0))
		return;
	w->done = seq;
	if (seq <= KEPT)
		return;
	begin(w);
	well(w, "removing one", unlink(path_of(b, dir, w, "kept", seq - KEPT)) == 0);
}

static void names_verify(struct worker *w)
{
	unsigned int cnt = 0, should = (unsigned int)(w->done < KEPT ? w->done : KEPT);
	DIR *d = opendir(server_dir);
	char path[PATH_MAX];
	uint64_t is;

	for (struct dirent *e; d && (e = readdir(d));)
		cnt += strncmp(e->d_name, "names-", 6) == 0;
	if (!d || cnt != should)
		fail(w, "%u files are there instead of %u", cnt, should);
	if (d)
		closedir(d);
	for (uint64_t seq = w->done; seq > 0 && seq + KEPT > w->done; seq--) {
		int fd = open(path_of(path, server_dir, w, "kept", seq), O_RDONLY);

		if (fd < 0 || read(fd, &is, sizeof(is)) != sizeof(is) || is != seq)
			fail(w, "%s is not what it was", path);
		if (fd >= 0)
			close(fd);
	}
}

static void dirs_round(struct worker *w, uint64_t seq)
{
	char path[PATH_MAX];
	struct stat st;

	path_of(path, dir, w, "dir", seq);
	begin(w);
	if (!well(w, "mkdir", mkdir(path, 0777) == 0))
		return;
	begin(w);
	if (!well(w, "rmdir", rmdir(path) == 0))
		return;
	begin(w);
	well(w, "stat", stat(path, &st) != 0 && errno == ENOENT);
}

static void dirs_verify(struct worker *w)
{
	DIR *d = opendir(server_dir);

	for (struct dirent *e; d && (e = readdir(d));)
		if (strncmp(e->d_name, "dirs-", 5) == 0)
			fail(w, "%s is still there", e->d_name);
	if (d)
		closedir(d);
}

/* ---- the processes ---- */

static bool prepare(struct worker *w)
{
	int flags = O_RDWR | O_CREAT;
	char path[PATH_MAX];

	if (w->round == names_round || w->round == dirs_round)
		return true;
	w->fd = open(path_of(path, dir, w, "data", 0), O_RDWR | O_CREAT | O_TRUNC, 0666);
	if (w->fd < 0)
		return false;
	for (unsigned int at = 0; w->round == read_round && at < BLOCKS; at++) {
		fill(block, at);
		if (pwrite(w->fd, block, BLOCK, (off_t)at * BLOCK) != BLOCK)
			return false;
	}
	if (fsync(w->fd) || close(w->fd))
		return false;
	if (w->kind[0] == 's')
		flags |= O_SYNC;
	if (w->kind[0] == 'd')
		flags |= O_DIRECT | O_SYNC;
	if (w->round == read_round)
		flags = O_RDONLY | O_DIRECT; /* no call is answered by the page cache */
	w->fd = open(path, flags, 0666);
	return w->fd >= 0;
}

static void work(struct worker *w)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_IGN); /* `timeout` and shells send it to the group */
	for (uint64_t seq = 1; !all->stop && !all->failed; seq++) {
		w->round(w, seq);
		usleep(5000);
	}
	if (w->fd >= 0 && close(w->fd) != 0)
		fail(w, "close: %s", strerror(errno));
	fflush(stdout);
	_exit(0);
}

/* Whether each process had a call answered after its count was `then`. */
static bool all_past(const uint64_t then[])
{
	for (unsigned int i = 0; i < WORKERS; i++)
		if (all->workers[i].calls <= then[i])
			return false;
	return true;
}

static void wait_past(const uint64_t then[])
{
	while (!all_past(then) && !ended && !back_soon && !all->failed)
		usleep(10000);
}

/* As the link is still cut: `then` is what no call can pass before it is back. */
static void count_stuck(uint64_t then[])
{
	unsigned int stuck = 0;
	double t = now();

	for (unsigned int i = 0; i < WORKERS; i++) {
		double since = all->workers[i].since;

		then[i] = all->workers[i].calls;
		stuck += since > 0 && t - since >= STUCK;
	}
	printf("stuck %u of %u\n", stuck, (unsigned int)WORKERS);
}

static void see_recovery(const uint64_t then[])
{
	double back = now();

	wait_past(then);
	if (all_past(then))
		printf("recovered in %.1f s\n", now() - back);
}

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		back_soon = 1;
	else if (sig == SIGUSR2)
		is_back = 1;
	else
		ended = 1;
}

static uint64_t finish(void)
{
	uint64_t calls = 0;
	int status;

	for (unsigned int i = 0; i < WORKERS; i++) {
		struct worker *w = &all->workers[i];

		if (waitpid(w->pid, &status, 0) != w->pid || status != 0)
			fail(w, "ended with status %x", (unsigned int)status);
		calls += w->calls;
		w->verify(w);
	}
	return calls;
}

int main(int argc, char **argv)
{
	static const struct worker kinds[WORKERS] = {
		{.kind = "sync", .round = write_round, .verify = write_verify},
		{.kind = "fsync", .round = write_round, .verify = write_verify},
		{.kind = "direct", .round = write_round, .verify = write_verify},
		{.kind = "read", .round = read_round, .verify = no_verify},
		{.kind = "names", .round = names_round, .verify = names_verify},
		{.kind = "dirs", .round = dirs_round, .verify = dirs_verify},
	};
	uint64_t then[WORKERS] = {0}, calls;

	if (argc < 3)
		return 2;
	dir = argv[1];
	server_dir = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	signal(SIGTERM, on_signal);
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	block = aligned_alloc(4096, BLOCK);
	if (all == MAP_FAILED || !block)
		return 2;
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct worker *w = &all->workers[i];

		*w = kinds[i];
		w->fd = -1;
		if (!prepare(w)) {
			fail(w, "cannot begin: %s", strerror(errno));
			return 1;
		}
	}
	for (unsigned int i = 0; i < WORKERS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (pid == 0)
			work(&all->workers[i]);
		all->workers[i].pid = pid;
	}
	/* Held open here, too, they would be closed only by us. */
	for (unsigned int i = 0; i < WORKERS; i++)
		if (all->workers[i].fd >= 0)
			close(all->workers[i].fd);
	wait_past(then);
	printf("going\n");
	while (!ended && !all->failed) {
		if (back_soon) {
			back_soon = 0;
			count_stuck(then);
		}
		if (is_back) {
			is_back = 0;
			see_recovery(then);
		}
		usleep(10000);
	}
	all->stop = true;
	calls = finish();
	printf("calls %llu\n", (unsigned long long)calls);
	return all->failed ? 1 : 0;
}
