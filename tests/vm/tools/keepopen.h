/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keepopen: what its load (keepopen.c) and its checker (keepcheck.c), a process of its own, both
 * see: memory that they share.
 */
#ifndef KEEPOPEN_H
#define KEEPOPEN_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define THREADS    6
#define BLOCK      20000
#define BLOCKS     64
#define MAX_CALL_S 60
/* Rounds that a thread may be ahead of the checker: less than until a block is written anew. */
#define MAX_AHEAD 32

/* Parts of a file. Held by its thread from begin to end: */
#define HELD_OFF (3 * BLOCK)
#define HELD_LEN (7 * BLOCK)
/* Had in turn, by its thread and by the checker: */
#define TURN_OFF ((off_t)1 << 40)
#define TURN_LEN 10

enum trouble {
	NONE,
	ERROR,
	SLOW,
	STUCK,
	DATA,
	NAME,
	LOCK,
	SERVER_LOCK,
	SERVER_STATE,
};

/* A thread's files: [0] is read-locked, [1] write-locked, [2] flocked. */
enum {
	SYNC_FILE,
	DATA_FILE,
	LOCK_FILE,
	FILES,
};

struct thread {
	pthread_t id;
	unsigned int nr;
	int fd[FILES];
	/* number of the last block that was made durable at each place; 0: none */
	_Atomic uint64_t durable[2][BLOCKS];
	_Atomic uint64_t written[2][BLOCKS]; /* that may be there as well */
	_Atomic uint64_t rounds;
	_Atomic uint64_t checked; /* rounds when the last pass of the checker began */
	uint64_t renames;
	atomic_bool in_turn; /* somebody has TURN_OFF */
};

struct keep {
	atomic_int trouble; /* the first */
	atomic_bool stop, checker_stop;
	_Atomic uint64_t passes;
	struct thread threads[THREADS];
};

extern const char *dir, *server_dir;
extern const char *const file_names[FILES];
extern struct keep *keep;

__attribute__((format(printf, 2, 3))) void fail(enum trouble what, const char *fmt, ...);
double now(void);
void path_of(char path[PATH_MAX], const char *in, const struct thread *t, const char *what);
/* Whether a call went well, in time. */
bool well(const struct thread *t, const char *what, bool ok, double since);
/* 0 or errno. wait: until it is to be had. */
int set_range(int fd, short type, off_t off, off_t len, bool wait);
void turn_begins(struct thread *t, int fd);
void turn_ends(struct thread *t, int fd);

void fill(uint8_t *p, unsigned int nr, uint64_t seq);

/* The checker: looks until keep->checker_stop, and once more. */
void check_until_told(void);
/* The same, on the server itself. */
void check_server_locks(void);
void check_server_states(const char *more);
void check_server_data(struct thread *t, unsigned int which);

#endif
