/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairload - programs at work while their server is killed or cannot be reached, and what they were
 * told, for another machine to compare with what is there
 *
 *   pairload run DIR LOG [KILLS]  work in DIR, which has nothing of an earlier run
 *   pairload check LOG DIR    whether DIR, seen on the server, has what LOG says was acknowledged
 *   pairload write FILE TEXT  writes a line over what is there; prints the seconds until it is
 * closed
 *
 * Several processes work in DIR, each call of theirs needs the server: writes that are durable one
 * by one, or some at a time by fsync; reads of known data past the page cache; new files, renamed
 * and removed again, each of which is done once or is an error; locks taken and given back, under
 * one that is held all the time. What is about to be done, and what was acknowledged, goes to LOG.
 * No call may fail; but KILLS times the server is killed, and forgets what it did: the removal of a
 * name that it had done may fail for that, once each time. Prints "going" when all of them are at
 * work. Then
 *
 *   SIGUSR1   prints "stuck N of M", the processes that wait in a call for a second or longer.
 *             Nothing more is done before
 *   SIGUSR2   the server can be reached: prints "recovered in S s, longest call L s" as soon as
 * each of them had a call answered since SIGTERM   ends the work; exit status 0: no call failed, no
 * read was wrong
 *
 * A line of LOG is a letter, a file or kind, a place and a number:
 *
 *   try FILE AT SEQ       block SEQ is about to be written there   durable ...   is durable there
 *   new NAME 0 SEQ        a file with the number SEQ is there
 *   remove NAME 0 SEQ     it may be removed from now on            gone ...      it is removed
 */
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK    32768
#define BLOCKS   64
#define BATCH    8 /* blocks of one fsync */
#define KEPT     4 /* files that `names` leaves */
#define PAUSE_US 40000
#define STUCK    1.0
#define HELD     100 /* bytes locked all the time */

struct worker {
	const char *kind;
	int flags; /* of its file; 0: it has none */
	bool (*round)(struct worker *, uint64_t seq);
	pid_t pid;
	int fd;
	_Atomic uint64_t calls; /* answered */
	_Atomic double since;   /* when the call began that is under way; 0: none */
	_Atomic double longest;
};

static const char *dir;
static int log_fd;
static unsigned int kills; /* each worker's own: that it has not noticed yet */
static uint8_t *block;     /* aligned for O_DIRECT */
static volatile sig_atomic_t asked, is_back, ended;

static struct shared {
	atomic_bool stop, failed;
	atomic_uint failures;
	struct worker workers[6];
} * all;

#define WORKERS (sizeof(all->workers) / sizeof(all->workers[0]))

__attribute__((format(printf, 2, 3))) static bool fail(const char *kind, const char *fmt, ...)
{
	char line[PATH_MAX + 200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (all->failures++ < 20)
		printf("%s: %s\n", kind, line);
	all->failed = true;
	return false;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* One write: lines of several processes do not mix. */
static void note(const char *what, const char *name, unsigned int at, uint64_t seq)
{
	char line[NAME_MAX + 80];
	int len = snprintf(
		line, sizeof(line), "%s %s %u %llu\n", what, name, at, (unsigned long long)seq);

	if (write(log_fd, line, (size_t)len) != len)
		fail(name, "cannot log: %s", strerror(errno));
}

static void begin(struct worker *w)
{
	w->since = now();
}

/* Whether the call that began went well. */
static bool well(struct worker *w, const char *what, bool ok)
{
	int err = errno;
	double took = now() - w->since;

	if (!ok)
		fail(w->kind, "%s after %.1f s: %s", what, took, strerror(err));
	if (took > w->longest)
		w->longest = took;
	w->since = 0;
	w->calls++;
	return ok;
}

/*
 * A name that is gone may have gone before the server was killed, which does not know that it did
 * it. A new file has a verifier: the same call gets it again.
 */
static bool well_once(struct worker *w, const char *what, bool ok)
{
	if (!ok && errno == ENOENT && kills > 0) {
		kills--;
		printf("done before the kill: %s\n", what);
		ok = true;
	}
	return well(w, what, ok);
}

static uint64_t word_of(uint64_t seq, size_t i)
{
	return seq * 1000003 + i;
}

static void fill(uint8_t *p, uint64_t seq)
{
	for (size_t i = 0; i < BLOCK; i += 8) {
		uint64_t v = word_of(seq, i);

		memcpy(p + i, &v, 8);
	}
}

static unsigned int place_of(uint64_t seq)
{
	return (unsigned int)(seq * 7 % BLOCKS);
}

/* ---- kinds of work ---- */

static bool sync_round(struct worker *w, uint64_t seq)
{
	fill(block, seq);
	note("try", w->kind, place_of(seq), seq);
	begin(w);
	if (!well(w, "a synchronous write",
		    pwrite(w->fd, block, BLOCK, (off_t)place_of(seq) * BLOCK) == BLOCK))
		return false;
	note("durable", w->kind, place_of(seq), seq);
	return true;
}

static bool fsync_round(struct worker *w, uint64_t round)
{
	uint64_t first = (round - 1) * BATCH + 1;

	for (uint64_t seq = first; seq < first + BATCH; seq++) {
		fill(block, seq);
		note("try", w->kind, place_of(seq), seq);
		begin(w);
		if (!well(w, "a write",
			    pwrite(w->fd, block, BLOCK, (off_t)place_of(seq) * BLOCK) == BLOCK))
			return false;
	}
	begin(w);
	if (!well(w, "fsync", fsync(w->fd) == 0))
		return false;
	for (uint64_t seq = first; seq < first + BATCH; seq++)
		note("durable", w->kind, place_of(seq), seq);
	return true;
}

static bool read_round(struct worker *w, uint64_t seq)
{
	uint64_t at = place_of(seq), v;

	memset(block, 0, BLOCK);
	begin(w);
	if (!well(w, "a read", pread(w->fd, block, BLOCK, (off_t)at * BLOCK) == BLOCK))
		return false;
	for (size_t i = 0; i < BLOCK; i += 8) {
		memcpy(&v, block + i, 8);
		if (v != word_of(at, i))
			return fail(w->kind, "block %u reads wrong at %zu", (unsigned int)at, i);
	}
	return true;
}

static const char *path_of(char path[PATH_MAX], const char *in, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", in, name);
	return path;
}

static bool remove_one(struct worker *w, uint64_t seq)
{
	char name[NAME_MAX], path[PATH_MAX];

	snprintf(name, sizeof(name), "kept-%llu", (unsigned long long)seq);
	note("remove", name, 0, seq);
	begin(w);
	if (!well_once(w, "removing a file", unlink(path_of(path, dir, name)) == 0))
		return false;
	note("gone", name, 0, seq);
	return true;
}

/* Each is done exactly once, or the second time is an error. */
static bool names_round(struct worker *w, uint64_t seq)
{
	char name[NAME_MAX], a[PATH_MAX], b[PATH_MAX];
	int fd;

	begin(w);
	fd = open(path_of(a, dir, "new"), O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (!well(w, "a new file", fd >= 0))
		return false;
	begin(w);
	if (!well(w, "a write to it", write(fd, &seq, sizeof(seq)) == sizeof(seq)))
		return false;
	begin(w);
	if (!well(w, "closing it", close(fd) == 0))
		return false;
	snprintf(name, sizeof(name), "kept-%llu", (unsigned long long)seq);
	begin(w);
	if (!well_once(w, "renaming it", rename(a, path_of(b, dir, name)) == 0))
		return false;
	note("new", name, 0, seq);
	return seq <= KEPT || remove_one(w, seq - KEPT);
}

static bool set_lock(struct worker *w, short type, off_t off, off_t len)
{
	struct flock l = {.l_type = type, .l_start = off, .l_len = len};

	begin(w);
	return well(w, type == F_UNLCK ? "unlocking" : "locking", fcntl(w->fd, F_SETLK, &l) == 0);
}

static bool lock_round(struct worker *w, uint64_t seq)
{
	off_t off = 1000 + (off_t)(seq % 100) * 10;

	if (seq == 1 && !set_lock(w, F_WRLCK, 0, HELD))
		return false;
	return set_lock(w, F_WRLCK, off, 10) && set_lock(w, F_UNLCK, off, 10);
}

/* ---- the processes ---- */

static bool prepare(struct worker *w)
{
	char path[PATH_MAX];

	w->fd = -1;
	if (!w->flags)
		return true;
	w->fd = open(path_of(path, dir, w->kind), O_RDWR | O_CREAT | O_EXCL, 0666);
	if (w->fd < 0)
		return false;
	for (unsigned int at = 0; w->round == read_round && at < BLOCKS; at++) {
		fill(block, at);
		if (pwrite(w->fd, block, BLOCK, (off_t)at * BLOCK) != BLOCK)
			return false;
	}
	if (close(w->fd))
		return false;
	w->fd = open(path, w->flags);
	return w->fd >= 0;
}

static void work(struct worker *w)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_IGN); /* shells send it to the group */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	for (uint64_t seq = 1; !all->stop && !all->failed; seq++) {
		if (!w->round(w, seq))
			break;
		usleep(PAUSE_US);
	}
	if (w->fd >= 0 && close(w->fd) != 0)
		fail(w->kind, "close: %s", strerror(errno));
	fflush(stdout);
	_exit(0);
}

static bool all_past(const uint64_t then[])
{
	for (unsigned int i = 0; i < WORKERS; i++)
		if (all->workers[i].calls <= then[i])
			return false;
	return true;
}

static void wait_past(const uint64_t then[])
{
	while (!all_past(then) && !ended && !asked && !all->failed)
		usleep(10000);
}

/* As nothing can be answered: `then` is what no call passes before the server is back. */
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
	double back = now(), longest = 0;

	wait_past(then);
	if (!all_past(then))
		return;
	for (unsigned int i = 0; i < WORKERS; i++) {
		if (all->workers[i].longest > longest)
			longest = all->workers[i].longest;
		all->workers[i].longest = 0;
	}
	printf("recovered in %.1f s, longest call %.1f s\n", now() - back, longest);
}

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		asked = 1;
	else if (sig == SIGUSR2)
		is_back = 1;
	else
		ended = 1;
}

static bool start_all(void)
{
	static const struct worker kinds[WORKERS] = {
		{.kind = "sync", .flags = O_RDWR | O_SYNC, .round = sync_round},
		{.kind = "direct", .flags = O_RDWR | O_SYNC | O_DIRECT, .round = sync_round},
		{.kind = "fsync", .flags = O_RDWR, .round = fsync_round},
		{.kind = "read", .flags = O_RDONLY | O_DIRECT, .round = read_round},
		{.kind = "names", .round = names_round},
		{.kind = "lock", .flags = O_RDWR, .round = lock_round},
	};

	for (unsigned int i = 0; i < WORKERS; i++) {
		all->workers[i] = kinds[i];
		if (!prepare(&all->workers[i]))
			return fail(kinds[i].kind, "cannot begin: %s", strerror(errno));
	}
	for (unsigned int i = 0; i < WORKERS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			work(&all->workers[i]);
		if (pid < 0)
			return fail(kinds[i].kind, "fork: %s", strerror(errno));
		all->workers[i].pid = pid;
	}
	/* Held open here, too, they would be closed only by us. */
	for (unsigned int i = 0; i < WORKERS; i++)
		if (all->workers[i].fd >= 0)
			close(all->workers[i].fd);
	return true;
}

static void end_all(void)
{
	uint64_t calls = 0;
	int status;

	all->stop = true;
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct worker *w = &all->workers[i];

		if (w->pid && (waitpid(w->pid, &status, 0) != w->pid || status != 0))
			fail(w->kind, "ended with status %x", (unsigned int)status);
		calls += w->calls;
	}
	printf("calls %llu\n", (unsigned long long)calls);
}

static int run(const char *log)
{
	uint64_t then[WORKERS] = {0};

	log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
	if (log_fd < 0) {
		fail("log", "%s: %s", log, strerror(errno));
		return 1;
	}
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	signal(SIGTERM, on_signal);
	if (start_all()) {
		wait_past(then);
		if (all_past(then))
			printf("going\n");
	}
	while (!ended && !all->failed) {
		if (asked) {
			asked = 0;
			count_stuck(then);
		}
		if (is_back) {
			is_back = 0;
			see_recovery(then);
		}
		usleep(10000);
	}
	end_all();
	return all->failed ? 1 : 0;
}

/* ---- the check ---- */

/* What the log says last of each block and each name. */
struct place {
	uint64_t tried, durable;
};
enum {
	NEVER,
	THERE,
	MAYBE,
	GONE
};
static struct place sync_file[BLOCKS], direct_file[BLOCKS], fsync_file[BLOCKS];
static uint8_t *names; /* by number, one of the above */
static size_t names_cnt;

static struct place *places_of(const char *kind)
{
	if (strcmp(kind, "sync") == 0)
		return sync_file;
	if (strcmp(kind, "direct") == 0)
		return direct_file;
	return strcmp(kind, "fsync") == 0 ? fsync_file : NULL;
}

static void set_name(uint64_t seq, uint8_t what)
{
	if (seq >= names_cnt) {
		size_t cnt = (size_t)seq + 1024;

		names = realloc(names, cnt);
		if (!names)
			abort();
		memset(names + names_cnt, NEVER, cnt - names_cnt);
		names_cnt = cnt;
	}
	names[seq] = what;
}

/* The number of lines that say that something was acknowledged; -1: it is not a log. */
static long read_log(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long long seq;
	char what[20], name[60], line[200];
	unsigned int at;
	long cnt = 0;

	while (f && fgets(line, sizeof(line), f)) {
		struct place *p;

		if (sscanf(line, "%19s %59s %u %llu", what, name, &at, &seq) != 4 || at >= BLOCKS)
			return -1;
		p = places_of(name);
		cnt += strcmp(what, "try") != 0 && strcmp(what, "remove") != 0;
		if (strcmp(what, "try") == 0 && p)
			p[at].tried = seq;
		else if (strcmp(what, "durable") == 0 && p)
			p[at].durable = seq;
		else if (strcmp(what, "new") == 0)
			set_name(seq, THERE);
		else if (strcmp(what, "remove") == 0)
			set_name(seq, MAYBE);
		else if (strcmp(what, "gone") == 0)
			set_name(seq, GONE);
		else
			return -1;
	}
	if (!f)
		return -1;
	fclose(f);
	return cnt;
}

/* Whether a block is what was written there, numbers first to last: torn between these. */
static bool is_block(const uint8_t *p, unsigned int at, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < BLOCK; i += 8) {
		uint64_t v, seq;

		memcpy(&v, p + i, 8);
		seq = (v - i) / 1000003;
		if ((v - i) % 1000003 || seq < first || seq > last || place_of(seq) != at)
			return false;
	}
	return true;
}

static void check_blocks(const char *kind)
{
	const struct place *p = places_of(kind);
	char path[PATH_MAX];
	int fd = open(path_of(path, dir, kind), O_RDONLY);

	if (fd < 0)
		fail(kind, "%s: %s", path, strerror(errno));
	for (unsigned int at = 0; fd >= 0 && at < BLOCKS; at++) {
		if (!p[at].durable)
			continue;
		if (pread(fd, block, BLOCK, (off_t)at * BLOCK) != BLOCK)
			fail(kind, "block %u is not there", at);
		else if (!is_block(block, at, p[at].durable, p[at].tried))
			fail(kind, "block %u, acknowledged as number %llu, is lost", at,
				(unsigned long long)p[at].durable);
	}
	if (fd >= 0)
		close(fd);
}

static void check_name(uint64_t seq)
{
	char name[NAME_MAX], path[PATH_MAX];
	uint64_t is;
	int fd;

	snprintf(name, sizeof(name), "kept-%llu", (unsigned long long)seq);
	fd = open(path_of(path, dir, name), O_RDONLY);
	if (names[seq] == GONE && (fd >= 0 || errno != ENOENT))
		fail(name, "is there, and its removal was acknowledged");
	if (names[seq] == THERE && fd < 0)
		fail(name, "acknowledged, is not there: %s", strerror(errno));
	if (fd < 0)
		return;
	if (names[seq] == THERE && (read(fd, &is, sizeof(is)) != sizeof(is) || is != seq))
		fail(name, "is not what was acknowledged");
	close(fd);
}

static int check(const char *log)
{
	long cnt = read_log(log);

	if (cnt <= 0) {
		fail("log", "%s says nothing", log);
		return 1;
	}
	check_blocks("sync");
	check_blocks("direct");
	check_blocks("fsync");
	for (uint64_t seq = 0; seq < names_cnt; seq++)
		if (names[seq] != NEVER)
			check_name(seq);
	printf("acknowledged %ld\n", cnt);
	return all->failed ? 1 : 0;
}

static int write_line(const char *path, const char *text)
{
	double t0 = now();
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || dprintf(fd, "%s\n", text) < 0 || close(fd) != 0) {
		perror(path);
		return 1;
	}
	printf("%.1f\n", now() - t0);
	return 0;
}

int main(int argc, char **argv)
{
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	block = aligned_alloc(4096, BLOCK);
	if (argc < 4 || argc > 5 || all == MAP_FAILED || !block)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(argv[1], "write") == 0)
		return write_line(argv[2], argv[3]);
	if (strcmp(argv[1], "run") == 0) {
		dir = argv[2];
		kills = argc > 4 ? (unsigned int)strtoul(argv[4], NULL, 10) : 0;
		return run(argv[3]);
	}
	dir = argv[3];
	return strcmp(argv[1], "check") == 0 ? check(argv[2]) : 2;
}
