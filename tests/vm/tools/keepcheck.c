/* SPDX-License-Identifier: BSD-3-Clause */
/* keepopen: looks whether what was acknowledged is there, and what is locked is still locked. */
#include "keepopen.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The checker's own opens of the threads' files, and of the files on the server. */
static int mine[THREADS][FILES], servers[THREADS][2], unlocked;

/* ---- data ---- */

/* Whether a block is what was written there, numbers first to last: torn between these. */
static bool is_block(const uint8_t *p, const struct thread *t, unsigned int at, uint64_t first,
	const _Atomic uint64_t *last)
{
	uint64_t newest = *last;

	for (size_t i = 0; i + 8 <= BLOCK; i += 8) {
		uint64_t v, seq;

		memcpy(&v, p + i, 8);
		v -= t->nr * 31 + i;
		seq = v / 1000003;
		if (v % 1000003 || seq < first || seq > newest || seq * 7 % BLOCKS != at)
			return false;
	}
	return true;
}

/* It is read while it is written: what is amiss for a moment only is a torn word. */
static void look_at_block(struct thread *t, unsigned int which, unsigned int at)
{
	uint64_t durable = t->durable[which][at];
	uint8_t is[BLOCK];

	for (int tries = 0; durable && tries < 10; tries++) {
		if (pread(servers[t->nr][which], is, BLOCK, (off_t)at * BLOCK) == BLOCK &&
			is_block(is, t, at, durable, &t->written[which][at]))
			return;
		usleep(20000);
	}
	if (durable)
		fail(DATA, "thread %u: block %u of %s, acknowledged as number %llu, is lost", t->nr,
			at, file_names[which], (unsigned long long)durable);
}

static void look_at_data(struct thread *t)
{
	uint64_t rounds = t->rounds;

	for (unsigned int which = 0; which < 2; which++)
		for (unsigned int at = 0; at < BLOCKS; at++)
			look_at_block(t, which, at);
	t->checked = rounds;
}

/* ---- locks, as another program sees them ---- */

static void is_held(const struct thread *t, int fd, short type, enum trouble otherwise)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = HELD_OFF + 5, .l_len = 1};
	double t0 = now();

	if (!well(t, "F_GETLK", fcntl(fd, F_GETLK, &l) == 0, t0))
		return;
	if (l.l_type != type || l.l_start != HELD_OFF || l.l_len != HELD_LEN)
		fail(otherwise, "thread %u: F_GETLK: type %d, %lld +%lld", t->nr, l.l_type,
			(long long)l.l_start, (long long)l.l_len);
}

/* What is asked for, and what must come of it. */
static void try_range(const struct thread *t, int fd, short type, off_t off, int want)
{
	double t0 = now();
	int err = set_range(fd, type, off, 10, false);

	if (err != want && (!err || err == EAGAIN))
		fail(LOCK, "thread %u: a lock of type %d at %lld: %s", t->nr, type, (long long)off,
			strerror(err));
	else if (err != want)
		fail(ERROR, "thread %u: F_SETLK: %s", t->nr, strerror(err));
	well(t, "F_SETLK", true, t0);
	if (!err) {
		t0 = now();
		errno = set_range(fd, F_UNLCK, off, 10, false);
		well(t, "F_UNLCK", !errno, t0);
	}
}

static void try_flock(const struct thread *t, int fd, int how, int want)
{
	double t0 = now();
	int err = flock(fd, how | LOCK_NB) == 0 ? 0 : errno;

	if (err != want && (!err || err == EWOULDBLOCK))
		fail(LOCK, "thread %u: flock: %s", t->nr,
			err ? strerror(err) : "another one has it, too");
	else if (err != want)
		fail(ERROR, "thread %u: flock: %s", t->nr, strerror(err));
	well(t, "flock", true, t0);
	if (!err) {
		t0 = now();
		well(t, "LOCK_UN", flock(fd, LOCK_UN) == 0, t0);
	}
}

static void look_at_locks(struct thread *t, uint64_t pass)
{
	const int *fd = mine[t->nr];
	off_t at = HELD_OFF + (off_t)(pass % (HELD_LEN / 10)) * 10;

	is_held(t, fd[DATA_FILE], F_WRLCK, LOCK);
	is_held(t, fd[SYNC_FILE], F_RDLCK, LOCK);
	try_range(t, fd[DATA_FILE], pass % 2 ? F_WRLCK : F_RDLCK, at, EAGAIN);
	try_range(t, fd[SYNC_FILE], F_WRLCK, at, EAGAIN);
	/* Every second one is shared. */
	try_flock(t, fd[LOCK_FILE], LOCK_EX, EWOULDBLOCK);
	if ((pass + t->nr) % 3)
		return;
	/* What can be had is had. */
	try_range(t, fd[SYNC_FILE], F_RDLCK, at, 0);
	try_range(t, fd[DATA_FILE], F_WRLCK, HELD_OFF + HELD_LEN, 0);
	try_range(t, unlocked, F_WRLCK, at, 0);
	if (t->nr % 2)
		try_flock(t, fd[LOCK_FILE], LOCK_SH, 0);
	turn_begins(t, fd[DATA_FILE]);
	turn_ends(t, fd[DATA_FILE]);
}

/* ---- the checker ---- */

static bool begin(void)
{
	char path[PATH_MAX];

	for (unsigned int i = 0; i < THREADS; i++) {
		for (unsigned int which = 0; which < FILES; which++) {
			path_of(path, dir, &keep->threads[i], file_names[which]);
			mine[i][which] = open(path, O_RDWR);
			if (mine[i][which] < 0)
				return false;
			if (which == LOCK_FILE)
				continue;
			path_of(path, server_dir, &keep->threads[i], file_names[which]);
			servers[i][which] = open(path, O_RDONLY);
			if (servers[i][which] < 0)
				return false;
		}
	}
	path_of(path, dir, &keep->threads[0], "unlocked");
	unlocked = open(path, O_RDWR | O_CREAT, 0666);
	return unlocked >= 0;
}

void check_until_told(void)
{
	if (!begin())
		fail(ERROR, "the checker cannot begin: %s", strerror(errno));
	for (bool last = false; !last && !keep->trouble;) {
		last = keep->checker_stop;
		for (unsigned int i = 0; i < THREADS && !keep->trouble; i++) {
			look_at_data(&keep->threads[i]);
			look_at_locks(&keep->threads[i], keep->passes);
		}
		keep->passes++;
	}
}

/* ---- on the server itself ---- */

/* nfsd's locks are locks of its file system, flock's too. */
void check_server_locks(void)
{
	for (unsigned int i = 0; i < THREADS; i++) {
		const struct thread *t = &keep->threads[i];
		struct flock l = {.l_type = F_WRLCK};
		char path[PATH_MAX];

		for (unsigned int which = 0; which < FILES; which++) {
			int fd;

			path_of(path, server_dir, t, file_names[which]);
			fd = open(path, O_RDWR);
			if (fd < 0)
				fail(ERROR, "%s: %s", path, strerror(errno));
			else if (which != LOCK_FILE)
				is_held(t, fd, which == SYNC_FILE ? F_RDLCK : F_WRLCK, SERVER_LOCK);
			else if (fcntl(fd, F_GETLK, &l) != 0)
				fail(ERROR, "%s: F_GETLK: %s", path, strerror(errno));
			else if (l.l_type != (i % 2 ? F_RDLCK : F_WRLCK) || l.l_start || l.l_len)
				fail(SERVER_LOCK, "%s: flock: type %d, %lld +%lld", path, l.l_type,
					(long long)l.l_start, (long long)l.l_len);
			close(fd);
		}
	}
}

static bool has_state(const glob_t *states, const char *name)
{
	char line[4096], quoted[PATH_MAX];
	bool found = false;

	snprintf(quoted, sizeof(quoted), "%s\"", strrchr(name, '/') + 1);
	for (size_t i = 0; i < states->gl_pathc && !found; i++) {
		FILE *f = fopen(states->gl_pathv[i], "r");

		while (f && !found && fgets(line, sizeof(line), f))
			found = strstr(line, "type: lock") && strstr(line, quoted);
		if (f)
			fclose(f);
	}
	return found;
}

/* What nfsd says of its clients. more: one that there is not. */
void check_server_states(const char *more)
{
	const char *names[] = {file_names[0], file_names[1], file_names[2], more};
	char path[PATH_MAX];
	glob_t states;

	if (glob("/proc/fs/nfsd/clients/*/states", 0, NULL, &states) != 0) {
		fail(SERVER_STATE, "nfsd has no clients");
		return;
	}
	for (unsigned int i = 0; i < THREADS; i++)
		for (unsigned int k = 0; k < FILES + 1 && names[k]; k++) {
			path_of(path, server_dir, &keep->threads[i], names[k]);
			if (!has_state(&states, path))
				fail(SERVER_STATE, "%s: nfsd knows of no lock", path);
		}
	globfree(&states);
}

/* When nothing is written any more. */
void check_server_data(struct thread *t, unsigned int which)
{
	char path[PATH_MAX];
	uint8_t want[BLOCK], is[BLOCK];
	int fd;

	path_of(path, server_dir, t, file_names[which]);
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		fail(DATA, "%s: %s", path, strerror(errno));
		return;
	}
	for (unsigned int at = 0; at < BLOCKS; at++) {
		if (!t->durable[which][at])
			continue;
		fill(want, t->nr, t->durable[which][at]);
		if (pread(fd, is, BLOCK, (off_t)at * BLOCK) != BLOCK)
			fail(DATA, "%s: block %u is not there", path, at);
		else if (memcmp(is, want, BLOCK) != 0)
			fail(DATA, "%s: block %u is not what was acknowledged", path, at);
	}
	close(fd);
}
