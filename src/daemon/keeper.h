/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's side of its keeper: a small process of its own that holds /dev/fuse and the live
 * records, and starts a successor when the daemon is gone without a word (keeper_run.h).
 *
 *   daemon      keeper_start()   the mount is served: from now on it outlives this process
 *               keeper_end()     it ends in order: so does the keeper
 *   successor   keeper_take()    at its start; the keeper still has the earlier records
 *               keeper_start()   when it serves: the keeper has its records from now on
 *   upgrade     keeper_keep()    before the exec; the keeper watches the same process
 *               keeper_kept()    when the new program serves; then keeper_start()
 *
 * A daemon that goes on without its keeper says keeper_bye() or keeper_dismiss().
 *
 * Context: the main thread. Nothing here calls fork() without exec.
 */
#ifndef RPCRDMAFS_KEEPER_H
#define RPCRDMAFS_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reactor.h"

/*
 * So many deaths, each so soon after the start or the death before, are answered by another start:
 * whatever the daemon died of, the next one does as well. At the next one the mount is given up,
 * and all use of it fails.
 */
#define KEEPER_DEATHS  5u
#define KEEPER_SOON_NS (2 * NSEC_PER_SEC)

/* A program that has taken over is given up after so many deaths in so long. */
#define KEEPER_EARLY_DEATHS 3u
#define KEEPER_EARLY_NS     (60 * NSEC_PER_SEC)

/* Deaths that count. Zero-initialised. */
struct keeper_deaths {
	unsigned int cnt;
	uint64_t since_ns; /* the last one, or when `cnt` was taken over */
};

struct keeper_conf {
	const char *mountpoint; /* lives as long as the keeper */
	int fuse_fd, live_fd;   /* stay the caller's */
	unsigned int crashes;   /* keeper_crash.crashes; 0 if this is no successor */
	bool syslog;            /* false: it logs to standard error */
};

/* Zero-initialised: there is none. */
struct keeper {
	struct reactor_fd src; /* the socket */
	struct reactor *reactor;
	struct keeper_conf conf;
	struct keeper_deaths deaths; /* of keepers */
	pid_t pid;                   /* 0: there is none */
};

/*
 * keeper_is_asked - is this process to be a keeper?
 *
 * First of all in main(). If so it was one, and *ret_status is the exit status.
 */
bool keeper_is_asked(int argc, char **argv, int *ret_status);

/* ---- the daemon ---- */

/*
 * keeper_start - a keeper from now on: that of the program before, or of the daemon that died, or
 * anew
 *
 * sock, pid: as keeper_kept() or keeper_take() had them; the socket becomes the keeper's. One
 * message tells it of conf->live_fd, this program and its arguments. Whenever this process dies,
 * exactly one successor is started, with the records before or with these; so those before must be
 * good until this returns. If it cannot be told (it was killed, say), or sock is -1, another one is
 * started. That inherits standard streams and the folder: after background_leave(). One that is
 * killed is followed by another, unless that happens too often: then the log says so, and there is
 * none.
 * Returns: 0; -errno: there is none, and nothing was logged.
 */
int keeper_start(
	struct keeper *k, struct reactor *r, const struct keeper_conf *conf, int sock, pid_t pid);
/* The mount ends: the keeper is told, and has ended afterwards. Harmless if there is none. */
void keeper_end(struct keeper *k);
static inline bool keeper_is_there(const struct keeper *k)
{
	return k->pid > 0;
}

/* ---- a successor ---- */

/* The keeper of a daemon that died gives this to the next one. */
struct keeper_crash {
	int live_fd, fuse_fd; /* the caller's */
	int sock;             /* for keeper_start() or keeper_bye() */
	pid_t keeper;
	unsigned int crashes; /* that count, with this one */
	uint64_t died_ns;     /* CLOCK_MONOTONIC: when it was seen */
	pid_t pid;            /* of the daemon that died */
};

/*
 * keeper_take - does this process follow a daemon that died?
 *
 * At the start, before other threads begin: the variable is gone afterwards. It is in the
 * background already, and in a session of its own. Returns: 1: yes; 0: an ordinary start; -errno:
 * the variable is of no use, and *ret undefined.
 */
int keeper_take(struct keeper_crash *ret);
/*
 * keeper_bye - the keeper at the other end ends in order; sock is closed
 *
 * A successor says it when the mount shall end. One that ends without it is followed by another, as
 * long as the mount is there. sock -1: harmless.
 */
void keeper_bye(int sock);

/* ---- an upgrade: exec in the same process ---- */

/* The next program of this process gets the keeper, by the environment; false: it does not. */
void keeper_keep(struct keeper *k, bool keep);
/*
 * keeper_kept - the keeper of the program before
 *
 * When this program serves: until then what keeper_keep() left stays as it is, also for a program
 * that the mount is given back to. Returns: its socket, for keeper_start() or keeper_dismiss(); -1:
 * there is none.
 */
int keeper_kept(pid_t *ret_pid);
/*
 * Bye, and this process has no such child afterwards: one that does not end in 2 s is killed. sock
 * -1: harmless.
 */
void keeper_dismiss(int sock, pid_t pid);

#endif
