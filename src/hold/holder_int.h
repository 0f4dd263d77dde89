/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two parts of a holder: holder_name.c has what is held, holder.c those whom it is held for.
 */
#ifndef RPCRDMAFS_HOLDER_INT_H
#define RPCRDMAFS_HOLDER_INT_H

#include <sys/socket.h>
#include <sys/un.h>

#include "hold.h"
#include "holder.h"
#include "rights.h"

struct holder {
	struct reactor *reactor;
	struct reactor_fd src; /* HOLD_SOCKET */
	struct reactor_timer listen_again;
	struct reactor_timer quiet; /* armed: newcomers wait */
	struct holder_conf conf;
	char dir[HOLD_FOLDER];
	struct list names;
	struct list strangers; /* peers that have not said a name */
	unsigned int name_cnt, peer_cnt;
};

/* A name, and what is held for it. It is there as long as there is something, or somebody. */
struct name {
	struct list link;
	struct holder *holder;
	char name[HOLD_NAME];
	struct reactor_fd notify;
	struct peer *has;    /* the program that is called so; NULL: it has gone */
	struct list waiting; /* those that will be */
	struct reactor_timer timer;
	unsigned int cnt;
	struct {
		char name[HOLD_NAME];
		int fd;
	} fds[HOLD_FDS];
};

struct peer {
	struct list link;
	struct holder *holder;
	struct name *name; /* NULL: it has not said one */
	struct reactor_fd src;
};

/* A message with what came with it. */
struct holder_heard {
	char text[HOLD_TEXT]; /* "": it is no text, or of somebody who may not say anything */
	struct rights rights;
};

/* ---- holder_name.c ---- */

/* A socket in the folder, which is its user's alone, instead of one of a holder that died. */
int holder_name_bind(const struct holder *h, const char *name, const char *suffix, int type);
/* False: the path would be too long. */
bool holder_name_path(
	const struct holder *h, struct sockaddr_un *sa, const char *name, const char *suffix);
/*
 * The next message on a socket with SO_PASSCRED. Descriptors are the caller's. Returns: its length;
 * 0: the end; -errno.
 */
ssize_t holder_name_hear(int fd, struct holder_heard *ret);
/* Sockets of names that a holder left when it ended are removed. Returns: there were some. */
bool holder_name_sweep(const struct holder *h);
/* NULL: nothing is called so. */
struct name *holder_name_find(struct holder *h, const char *called);
/* NULL with errno: EMFILE: there are too many. */
struct name *holder_name_new(struct holder *h, const char *called);
/* All that is held for it is closed. The program that has it, if any, is not told. */
void holder_name_free(struct name *n);
/* All that the program that had it said is done, and nothing of an unmounted mount is left. */
void holder_name_settle(struct name *n);
/* The program that had it has gone, and there is no other: n is freed, if not now. */
void holder_name_alone(struct name *n);

#endif
