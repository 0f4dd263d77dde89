/* SPDX-License-Identifier: BSD-3-Clause */
/* Children of locker.c that lock, and how they are told what to do. */
#ifndef RPCRDMAFS_LOCKAGENT_H
#define RPCRDMAFS_LOCKAGENT_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

/* What must happen happens within this time: a machine without KVM, and others on it. */
#define SOON_S 60
/* What must not happen has not after this one. */
#define NOT_MS 1500

enum kind {
	POSIX,
	OFD,
	FLOCK,
};
extern enum kind kind; /* of locks */

enum what {
	TRY,
	WAIT,
	TEST,
	INTR,        /* WAIT until SIGALRM comes, which is handled */
	CLOSE_OTHER, /* opens the file once more, and closes that */
	CLOSE,
	COUNT, /* so many times as `len` says: what count_up() does */
};

struct result {
	int err;
	struct flock lock; /* TEST */
};

struct agent {
	pid_t pid;
	int to, from;
};

/* Ends the program, and all agents. */
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *fmt, ...);
double now(void);
/* 0 or an errno, EAGAIN if somebody else has it. */
int set_lock(int fd, short type, off_t start, off_t len, bool wait);

struct agent agent_start(const char *path);
void tell(struct agent *a, enum what what, short type, off_t start, off_t len);
/* False: no answer within the time. */
bool answered(struct agent *a, struct result *r, int ms);
struct result result_of(struct agent *a);
void expect(struct agent *a, int err, const char *what);
/* Tells, and expects. */
void does(struct agent *a, enum what what, short type, off_t start, off_t len, int err);
/* What goes in the background (RELEASE) may take a moment. */
void gets_soon(struct agent *a, short type, off_t start, off_t len);
void gone_soon(struct agent *a);
void agents_end(void);

#endif
