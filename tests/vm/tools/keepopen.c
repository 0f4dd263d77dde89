/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keepopen DIR SERVER_DIR [SABOTAGE] - a load that goes on while the server is restarted
 *
 * DIR has nothing of an earlier run. Each thread keeps files of its own in it open, and locks on
 * them, through the whole run: one with O_SYNC and a read lock, one with a write lock, one with
 * flock. It writes numbered blocks, makes them durable, reads them back, renames another file to
 * and fro, opens and closes a third, and takes a lock in turn with the checker. No call may fail or
 * take longer than MAX_CALL_S.
 *
 * What was acknowledged is noted. The checker, another process and another owner of locks, looks
 * all the time whether it is in SERVER_DIR, the same folder seen on the server; whether all locks
 * are held; and whether what nobody holds can be had. At the end, by SIGTERM, the same is asked of
 * the server: its file system's locks, and nfsd's list of states.
 *
 * A line "lap" is printed whenever each thread has made LAP_ROUNDS rounds more and the checker has
 * seen all of it once more. The last line says what went wrong first, as does the exit status.
 *
 * SABOTAGE, after a lap, must be noticed, within three more or at the end:
 *   data    acknowledged data is spoilt on the server     late    the same, at the end
 *   lock    a lock is given back                          flock   the same
 *   server  the same, when the checker has ended          state   one that was never there is
 * missed error   a folder stands in the way    name    what was renamed is taken away
 */
#include "keepopen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAP_ROUNDS 3
#define STUCK_S    150

const char *dir, *server_dir;
const char *const file_names[FILES] = {"sync", "data", "lock"};
struct keep *keep;

static const char *sabotage = "";
static volatile sig_atomic_t told_to_end;

void fail(enum trouble what, const char *fmt, ...)
{
	int none = NONE;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%s\n", text);
	atomic_compare_exchange_strong(&keep->trouble, &none, (int)what);
}

static const char *text_of(enum trouble what)
{
	static const char *const texts[] = {
		[NONE] = "all is there",
		[ERROR] = "a program saw an error",
		[SLOW] = "a call took too long",
		[STUCK] = "no progress",
		[DATA] = "data was lost",
		[NAME] = "a rename was lost",
		[LOCK] = "a lock was lost",
		[SERVER_LOCK] = "the server's file system lacks a lock",
		[SERVER_STATE] = "nfsd lacks the state of a lock",
	};

	return texts[what];
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void path_of(char path[PATH_MAX], const char *in, const struct thread *t, const char *what)
{
	snprintf(path, PATH_MAX, "%s/keep-%u-%s", in, t->nr, what);
}

void fill(uint8_t *p, unsigned int nr, uint64_t seq)
{
	for (size_t i = 0; i + 8 <= BLOCK; i += 8) {
		uint64_t v = seq * 1000003 + nr * 31 + i;

		memcpy(p + i, &v, 8);
	}
}

bool well(const struct thread *t, const char *what, bool ok, double since)
{
	double took = now() - since;

	if (!ok)
		fail(ERROR, "thread %u: %s after %.1f s: %s", t->nr, what, took, strerror(errno));
	else if (took > MAX_CALL_S)
		fail(SLOW, "thread %u: %s took %.1f s", t->nr, what, took);
	return ok;
}

/* ---- locks ---- */

int set_range(int fd, short type, off_t off, off_t len, bool wait)
{
	struct flock l = {.l_type = type, .l_start = off, .l_len = len};

	if (fcntl(fd, wait ? F_SETLKW : F_SETLK, &l) == 0)
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

void turn_begins(struct thread *t, int fd)
{
	double t0 = now();

	errno = set_range(fd, F_WRLCK, TURN_OFF, TURN_LEN, true);
	if (well(t, "F_SETLKW", !errno, t0) && atomic_exchange(&t->in_turn, true))
		fail(LOCK, "thread %u: two have the same lock", t->nr);
}

void turn_ends(struct thread *t, int fd)
{
	double t0;

	t->in_turn = false;
	t0 = now();
	errno = set_range(fd, F_UNLCK, TURN_OFF, TURN_LEN, true);
	well(t, "F_UNLCK", !errno, t0);
}

static bool lock_all(const struct thread *t)
{
	return set_range(t->fd[SYNC_FILE], F_RDLCK, HELD_OFF, HELD_LEN, false) == 0 &&
	       set_range(t->fd[DATA_FILE], F_WRLCK, HELD_OFF, HELD_LEN, false) == 0 &&
	       flock(t->fd[LOCK_FILE], (t->nr % 2 ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0;
}

/* ---- the load ---- */

static void all_durable(struct thread *t)
{
	for (unsigned int at = 0; at < BLOCKS; at++)
		t->durable[DATA_FILE][at] = t->written[DATA_FILE][at];
}

/* In what the two differ, and which block was read in place of it. */
static void read_back_wrong(struct thread *t, unsigned int which, unsigned int at,
	const uint8_t *in, const uint8_t *out)
{
	size_t first = 0, last = BLOCK - 1;
	uint64_t v;

	while (in[first] == out[first])
		first++;
	while (in[last] == out[last])
		last--;
	memcpy(&v, in + first / 8 * 8, 8);
	v -= t->nr * 31 + first / 8 * 8;
	fail(DATA,
		"thread %u: block %u of %s reads back wrong: bytes %zu to %zu are of %.2f, not of "
		"%llu",
		t->nr, at, file_names[which], first, last, (double)v / 1000003,
		(unsigned long long)t->written[which][at]);
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
	if (which == DATA_FILE && seq % 3 == 0) {
		if (!well(t, "fsync", fsync(t->fd[which]) == 0, t0))
			return;
		all_durable(t);
	} else if (which == SYNC_FILE) {
		t->durable[which][at] = seq;
	}
	t0 = now();
	if (seq % 2 == 0)
		posix_fadvise(t->fd[which], 0, 0, POSIX_FADV_DONTNEED);
	if (well(t, "read", pread(t->fd[which], in, BLOCK, off) == BLOCK, t0) &&
		memcmp(in, out, BLOCK) != 0)
		read_back_wrong(t, which, at, in, out);
}

static void check_name(const struct thread *t)
{
	char path[PATH_MAX];

	path_of(path, server_dir, t, t->renames % 2 ? "b" : "a");
	if (access(path, F_OK) != 0)
		fail(NAME, "%s is not where it was renamed to", path);
	path_of(path, server_dir, t, t->renames % 2 ? "a" : "b");
	if (access(path, F_OK) == 0)
		fail(NAME, "%s is still there", path);
}

static void names(struct thread *t)
{
	char a[PATH_MAX], b[PATH_MAX], c[PATH_MAX];
	double t0;
	int fd;

	check_name(t); /* of the last round */
	path_of(a, dir, t, t->renames % 2 ? "b" : "a");
	path_of(b, dir, t, t->renames % 2 ? "a" : "b");
	path_of(c, dir, t, "c");
	t0 = now();
	if (well(t, "rename", rename(a, b) == 0, t0))
		t->renames++;
	check_name(t);
	t0 = now();
	fd = open(c, O_RDWR | O_CREAT, 0666);
	if (!well(t, "open", fd >= 0, t0))
		return;
	t0 = now();
	well(t, "write to a new file", write(fd, "hello", 5) == 5, t0);
	t0 = now();
	well(t, "close", close(fd) == 0, t0);
}

static void *run(void *arg)
{
	struct thread *t = arg;

	for (uint64_t seq = 1; !keep->stop && !keep->trouble; seq++) {
		bool turn = seq % 4 == 0;

		one_block(t, SYNC_FILE, seq);
		if (turn)
			turn_begins(t, t->fd[DATA_FILE]);
		one_block(t, DATA_FILE, seq);
		names(t);
		if (turn)
			turn_ends(t, t->fd[DATA_FILE]);
		t->rounds++;
		do
			usleep(2000);
		while (t->rounds > t->checked + MAX_AHEAD && !keep->stop && !keep->trouble);
	}
	return NULL;
}

static bool begin(struct thread *t)
{
	char path[PATH_MAX];

	for (unsigned int i = 0; i < FILES; i++) {
		path_of(path, dir, t, file_names[i]);
		t->fd[i] = open(
			path, O_RDWR | O_CREAT | O_TRUNC | (i == SYNC_FILE ? O_SYNC : 0), 0666);
		if (t->fd[i] < 0)
			return false;
	}
	path_of(path, dir, t, "a");
	return close(open(path, O_WRONLY | O_CREAT, 0666)) == 0 && lock_all(t);
}

static void end(struct thread *t)
{
	double t0 = now();

	/* Unstable until here, some of it. */
	if (well(t, "last fsync", fsync(t->fd[DATA_FILE]) == 0, t0))
		all_durable(t);
	for (unsigned int i = 0; i < FILES; i++) {
		t0 = now();
		well(t, "last close", close(t->fd[i]) == 0, t0);
	}
}

/* ---- SABOTAGE ---- */

static void take_away(struct thread *t)
{
	char path[PATH_MAX];

	path_of(path, server_dir, t, t->renames % 2 ? "b" : "a");
	unlink(path);
}

static bool sabotage_is(const char *what)
{
	return strcmp(sabotage, what) == 0;
}

/* One byte of what is noted as durable; the block that was written last, for that is written anew
 * latest. */
static void spoil(struct thread *t)
{
	unsigned int newest = 0;
	char path[PATH_MAX];
	int fd;

	for (unsigned int at = 1; at < BLOCKS; at++)
		if (t->durable[DATA_FILE][at] > t->durable[DATA_FILE][newest])
			newest = at;
	path_of(path, server_dir, t, "data");
	fd = open(path, O_WRONLY);
	if (fd < 0 || pwrite(fd, "\377", 1, (off_t)newest * BLOCK + 77) != 1)
		fail(ERROR, "%s: cannot be spoilt", path);
	close(fd);
}

/* On the server, a folder instead of a file. */
static void obstruct(struct thread *t)
{
	char path[PATH_MAX];

	path_of(path, server_dir, t, "c");
	do
		unlink(path);
	while (mkdir(path, 0777) != 0 && errno == EEXIST);
}

/* False: it is for later, when the load has ended. */
static bool sabotage_load(void)
{
	struct thread *t = &keep->threads[THREADS - 1];

	if (sabotage_is("data"))
		spoil(t);
	else if (sabotage_is("lock"))
		set_range(t->fd[DATA_FILE], F_UNLCK, HELD_OFF, HELD_LEN, false);
	else if (sabotage_is("flock"))
		flock(t->fd[LOCK_FILE], LOCK_UN);
	else if (sabotage_is("error"))
		obstruct(t);
	else
		return !*sabotage;
	return true;
}

/* ---- all of it ---- */

static void on_term(int sig)
{
	told_to_end = 1;
}

_Noreturn static void leave(void)
{
	printf("keepopen: %s\n", text_of((enum trouble)keep->trouble));
	fflush(stdout);
	_exit(keep->trouble);
}

static pid_t checker_start(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_IGN);
	check_until_told();
	_exit(0);
}

static uint64_t least_rounds(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < THREADS; i++)
		if (keep->threads[i].rounds < least)
			least = keep->threads[i].rounds;
	return least;
}

/* Until each thread made LAP_ROUNDS rounds, and a pass of the checker began and ended. */
static void one_lap(void)
{
	uint64_t from[THREADS], passes = keep->passes;
	double t0 = now();

	for (unsigned int i = 0; i < THREADS; i++)
		from[i] = keep->threads[i].rounds;
	for (unsigned int i = 0; i < THREADS; usleep(20000)) {
		while (i < THREADS && keep->threads[i].rounds >= from[i] + LAP_ROUNDS &&
			keep->passes >= passes + 2)
			i++;
		if (keep->trouble || told_to_end)
			return;
		if (now() - t0 > STUCK_S)
			fail(STUCK, "thread %u, pass %llu", i, (unsigned long long)keep->passes);
	}
	printf("lap rounds=%llu passes=%llu after %.1f s\n", (unsigned long long)least_rounds(),
		(unsigned long long)keep->passes, now() - t0);
}

static void load(void)
{
	for (unsigned int lap = 1; !told_to_end; lap++) {
		one_lap();
		if (keep->trouble)
			leave();
		if (lap == 1 && !sabotage_load())
			return;
		if (lap == 4 && *sabotage)
			return;
	}
}

/* The checker's last pass sees all locks held, and so does the server after it. */
static void stop_all(pid_t checker)
{
	int status;

	alarm(STUCK_S);
	keep->stop = true;
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(keep->threads[i].id, NULL);
	keep->checker_stop = true;
	if (waitpid(checker, &status, 0) != checker || status != 0)
		fail(ERROR, "the checker ended with status %x", (unsigned int)status);
	alarm(0);
}

static void check_server(void)
{
	struct thread *last = &keep->threads[THREADS - 1];

	if (sabotage_is("server"))
		set_range(last->fd[SYNC_FILE], F_UNLCK, HELD_OFF, HELD_LEN, false);
	check_server_locks();
	check_server_states(sabotage_is("state") ? "unlocked" : NULL);
	for (unsigned int i = 0; i < THREADS; i++)
		end(&keep->threads[i]);
	if (sabotage_is("late"))
		spoil(last);
	else if (sabotage_is("name"))
		take_away(last);
	for (unsigned int i = 0; i < THREADS; i++) {
		check_name(&keep->threads[i]);
		check_server_data(&keep->threads[i], SYNC_FILE);
		check_server_data(&keep->threads[i], DATA_FILE);
	}
}

int main(int argc, char **argv)
{
	pid_t checker;

	if (argc < 3)
		return 99;
	dir = argv[1];
	server_dir = argv[2];
	if (argc > 3)
		sabotage = argv[3];
	keep = mmap(NULL, sizeof(*keep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (keep == MAP_FAILED)
		return 99;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGTERM, on_term);
	for (unsigned int i = 0; i < THREADS; i++) {
		keep->threads[i].nr = i;
		if (!begin(&keep->threads[i])) {
			fail(ERROR, "cannot begin: %s", strerror(errno));
			leave();
		}
	}
	checker = checker_start();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_create(&keep->threads[i].id, NULL, run, &keep->threads[i]);
	load();
	stop_all(checker);
	if (!keep->trouble)
		check_server();
	leave();
}
