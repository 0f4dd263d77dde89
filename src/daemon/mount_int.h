/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of a mount's life share: mount_retry.c tries until it works, mount.c starts it,
 * mount_stop.c ends it.
 */
#ifndef RPCRDMAFS_MOUNT_INT_H
#define RPCRDMAFS_MOUNT_INT_H

#include <pthread.h>

#include "ctl.h"
#include "handover.h"
#include "identity.h"
#include "keeper.h"
#include "lane.h"
#include "mount.h"
#include "notifier.h"
#include "options.h"
#include "progress.h"
#include "reactor.h"
#include "retry.h"
#include "rpc.h"
#include "service.h"
#include "upgrade.h"

#define LANES_MAX (OPTIONS_NCONNECT_MAX + 1)

enum mount_state {
	MOUNT_STARTING, /* lanes connect, the path is looked up */
	MOUNT_SERVING,
	MOUNT_DRAINING, /* unmounted: lanes finish their operations */
	MOUNT_STOPPING, /* sessions end */
};

/* Which of the server's addresses is tried; outlives an attempt. */
struct mount_where {
	struct addrs_list list;
	struct sockaddr_storage src; /* AF_UNSPEC: any of ours */
	unsigned int at;
};

/* A hand-over to this process; since_ns 0: requests do not wait for it any more. */
struct mount_pause {
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	bool crashed, given_back;
	char version[64]; /* of the program before */
};

struct mount {
	struct options *opt;
	enum mount_state state;
	struct reactor *reactor;
	struct reactor_fd signals;
	struct ctl *ctl; /* from serving on; or NULL */
	uint64_t mounted_ns;
	int code_lock; /* protect.h: 0 or -errno */
	struct idmap *idmap;
	struct capture *capture; /* of all lanes; started by `capture=`, or later */
	struct identity identity;
	struct addrs *addrs;
	struct nfs4_client *client;
	struct fs *fs;
	struct lane *lanes[LANES_MAX]; /* the one for metadata, if wanted, is the last */
	unsigned int lane_cnt;         /* started */
	bool failed[LANES_MAX];
	unsigned int up, idle, stopped;
	struct sockaddr_storage dst, src; /* src: AF_UNSPEC: any of ours */
	bool unmounting;                  /* a signal asked for it; unmount_thread runs or ran */
	pthread_t unmount_thread;
	struct reactor_timer linger;
	struct reactor_timer silence;
	struct progress progress; /* of draining */
	struct fs_losses lost;    /* before it: programs heard of that */
	uint64_t heard, heard_ns; /* answers counted at that time */
	bool drains;              /* every lane reports LANE_IDLE */
	struct watchdog watchdog; /* while it serves */
	struct upgrade upgrade;
	struct handover
		*handover; /* of the program before; NULL: it is mounted anew, or was taken over */
	struct live *live; /* keep=: what outlives this process; or NULL */
	live_ref live_ref; /* the mount's own record there */
	uint64_t stored; /* keep=systemd: the number of our records in the store; 0: it has none */
	struct reactor_fd held;          /* the connection to the holder */
	struct reactor_timer held_again; /* another one is tried */
	bool held_lost;                  /* ... and until then nobody has it */
	struct keeper keeper;            /* from serving on */
	struct notifier notifier;        /* the same */
	uint64_t crashes;                /* daemons of this mount that died */
	struct mount_pause pause;
	uint64_t upgraded_ns, upgraded_crashes;        /* as in handover.h */
	uint64_t upgrades, pause_ns, longest_pause_ns; /* hand-overs to this mount's programs */
	struct rpc_cred cred;
	struct retry *retry;
	struct mount_where *where;
	bool elsewhere; /* it failed, and another address is tried at once */
	int status;
	bool again;    /* it failed and is tried again, after wait_ns */
	bool ours;     /* of a hand-over: it failed on this side, and may not in another program */
	bool hopeless; /* ... and another attempt would not help */
	bool tried;    /* another attempt was made with the same hand-over */
	uint64_t wait_ns;
};

/* One attempt, and, if it works, all that follows. */
void mount_attempt(struct mount *m);

/* ---- mount_keep.c ---- */

/* Can it be kept as the options say? Returns: 0; -EINVAL with a text. */
int mount_keep_check(const struct options *o, char *text, size_t len);
/* All that is to outlive this process is in m->live too, from now on. Returns: 0; -errno. */
int mount_keep_begin(struct mount *m);
/*
 * mount_keep - from now on a successor finds all that it has to know, and somebody starts it
 *
 * When it is mounted, and before a request is answered. Logs if there is nobody. m->handover is
 * freed: nobody goes back to it.
 */
void mount_keep(struct mount *m);
/* Would a successor find all, and somebody start it? NULL, or why not. */
const char *mount_keep_fault(const struct mount *m);
/* All that a successor has to know of the mount itself, as it is now; strings stay the mount's. */
struct handover_facts mount_keep_facts(const struct mount *m);
/* keep=: another process tells the kernel what it must forget (notifier.h). Logs if there is none.
 */
void mount_keep_notifier(struct mount *m);
/* mount_keep_facts() says something else now. */
void mount_keep_note(struct mount *m);
/* The mount ends in order: nobody is to go on with it. */
void mount_keep_end(struct mount *m);

/* ---- mount_held.c ---- */

/*
 * A holder (held.h) that ends is followed by another one, if there is one again. is_put: it has
 * what is to be kept; else it is as one that has ended. Harmless if no holder started this program.
 */
void mount_held_start(struct mount *m, bool is_put);
/* Harmless if it was not started. */
void mount_held_stop(struct mount *m);

/* ---- mount_retry.c ---- */

/*
 * mount_retry_fail - the one line a failed mount prints; what it had on the server is given back
 *
 * err: positive or negative. Only the first fault counts, and it ends the mount.
 */
void mount_retry_fail(struct mount *m, int err, const char *text);
/* The same for a fault that came from outside: one that may pass is tried again (retry=). */
void mount_retry_fail_err(struct mount *m, int err, const char *text);

/*
 * mount_retry_detach - what is said from here on is for the system's log, and holds up nothing
 *
 * With -f it goes on to standard error.
 */
void mount_retry_detach(void);

/* ---- mount_stop.c ---- */

/* The one setter of m->state. */
void mount_stop_set_state(struct mount *m, enum mount_state to);
/* The kernel has unmounted, or programs lingered too long: lanes finish their operations. */
void mount_stop_drain(struct mount *m);
/* Sessions end; what is still waiting is given up. */
void mount_stop_begin(struct mount *m);
/* Stops the reactor when sessions, and operations if there were lanes with some, are gone. */
void mount_stop_end_if_over(struct mount *m);
/* SIGTERM, SIGINT or SIGHUP: each one is less patient than the one before. */
void mount_stop_signal(struct mount *m, int signo);
/* Joins the thread that unmounts; timers are gone afterwards. */
void mount_stop_fini(struct mount *m);

#endif
