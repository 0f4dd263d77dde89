/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * src/nfs4 on src/rpcrdma on the simulated fabric against the simulated
 * server: a client with a few sessions on one reactor in virtual time.
 */
#ifndef RPCRDMAFS_SIM_NFS_H
#define RPCRDMAFS_SIM_NFS_H

#include "fab_sim.h"
#include "nfs4_held.h"
#include "nfsd_sim.h"

#define SIM_SEC       NSEC_PER_SEC
#define SIM_MSEC      NSEC_PER_MSEC
#define SIM_NFS_LANES 4

struct sim_lane {
	struct sim_nfs *w;
	struct nfs4_session *sess;
	struct stats st;
	unsigned int up, failed, stopped, unblocked;
	struct nfs4_failure failure;
	uint64_t stop_ns, stopped_ns;
};

struct sim_nfs {
	struct reactor *r;
	struct nfsd_sim *srv;
	struct nfs4_conf conf;
	struct nfs4_client *cl;
	struct sim_lane lane[SIM_NFS_LANES];
	unsigned int lanes;
	struct rpc_cred cred;
	/* the mount */
	unsigned int mounted;
	bool mount_ok;
	struct nfs4_failure mount_failure;
};

/* A call with what a test wants to know about it. */
struct sim_nfs_call {
	struct nfs4_call call; /* first */
	unsigned int done_cnt;
	int err;
	struct nfs4_fh fh; /* copies of what the operation read or returned */
	char name[64];
	bool opens; /* sim_nfs_creat() */
	struct nfs4_state state;
	void (*then)(struct sim_nfs_call *c);
};

/* A row of a test's table: the answer that a rule of the server gives to a call. */
struct sim_fault {
	enum nfsd_sim_act act;
	uint32_t status;
};

/* Small, quick settings; change w->conf afterwards, before sim_nfs_client(). */
void sim_nfs_open(struct sim_nfs *w, const struct nfsd_sim_conf *sconf);
/* Before sim_nfs_client(): a soft mount that asks again `retrans` times, every 2 s. */
void sim_nfs_soft(struct sim_nfs *w, unsigned int retrans);
/* The client and `lanes` sessions, not started. */
void sim_nfs_client(struct sim_nfs *w, unsigned int lanes);
/* As nfs4_session_start(). */
int sim_nfs_start(struct sim_nfs *w, unsigned int lane);
/* Starts lanes 0 to n-1, the first one first; true: all are up. */
bool sim_nfs_up(struct sim_nfs *w);
/* All of it with the default settings: lanes up and "/" mounted. */
void sim_nfs_mounted(struct sim_nfs *w, unsigned int lanes);
/* Runs nfs4_mount_path(); true: it worked, else w->mount_failure. */
bool sim_nfs_mount(struct sim_nfs *w, const char *path);

/* nfsd_sim_rule() of these; count 0: all after `skip`. */
void sim_rule(struct sim_nfs *w, enum nfsd_sim_act act, uint32_t op, uint32_t skip, uint32_t count,
	uint64_t arg);
/* How many of this operation the server saw. */
uint64_t sim_ops(const struct sim_nfs *w, unsigned int op);

void sim_nfs_run(struct sim_nfs *w, uint64_t ns);
/* Turns until *cnt is at least `want`, at most `ns`. */
bool sim_nfs_until(struct sim_nfs *w, const unsigned int *cnt, unsigned int want, uint64_t ns);

/* Where clients that are made from now on keep what they have on the server; NULL: nowhere. */
extern struct live *sim_nfs_live;
/* Of calls that are started from now on (nfs4_ops.h); NULL: none. */
extern struct nfs4_once *sim_nfs_once;

/* Starts operations on names in the root directory; ->done counts c->done_cnt. */
int sim_nfs_lookup(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name);
int sim_nfs_getattr(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c);
int sim_nfs_mkdir(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name);
int sim_nfs_remove(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name);
int sim_nfs_creat(struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, const char *name);
int sim_nfs_close_file(
	struct sim_nfs *w, unsigned int lane, struct sim_nfs_call *c, struct sim_nfs_call *opened);
/* Waits for it, up to 10 minutes of virtual time; its errno, -ETIME if it did not end. */
int sim_nfs_wait(struct sim_nfs *w, struct sim_nfs_call *c);

/* Stops all lanes and waits for them. */
void sim_nfs_stop(struct sim_nfs *w);
/* Stops what runs, frees and checks. left: client IDs that may remain on the server. NULL: all is
 * well. */
const char *sim_nfs_close(struct sim_nfs *w, unsigned int left);

#define SIM_NFS_CLOSE(w, left)                                                                     \
	do {                                                                                       \
		const char *wrong_ = sim_nfs_close(w, left);                                       \
		cr_assert(wrong_ == NULL, "%s", wrong_);                                           \
	} while (0)

#endif
