/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files as a user of nfs4_held.h has them: one open owner, so one state, and
 * at most one delegation for each. Operations on any lane, one after the other
 * or started and waited for.
 */
#ifndef RPCRDMAFS_SIM_HELD_H
#define RPCRDMAFS_SIM_HELD_H

#include "sim_ops.h"

/* The share accesses of an open. */
#define READ  OPEN4_SHARE_ACCESS_READ
#define WRITE OPEN4_SHARE_ACCESS_WRITE
#define BOTH  OPEN4_SHARE_ACCESS_BOTH

struct sim_held {
	struct sim_file f; /* first */
	struct sim_nfs *w;
	uint64_t owner;
	struct nfs4_deleg deleg;
	unsigned int returns; /* DELEGRETURNs of it on their way: its place is not free before */
	uint32_t with_open;   /* OPENs read so many bytes at once; 0: they do not */
	/* what the last one brought of them */
	uint32_t came;
	bool came_eof, came_right;
	/* what became of delegations of this file */
	unsigned int taken, refused;  /* nfs4_deleg_take(), nfs4_return_refuse() */
	enum nfs4_deleg_taken how;    /* the last one */
	unsigned int recalls, losses; /* callbacks */
	bool answers;                 /* CB_GETATTR: the two below are known */
	uint64_t change, size;
};

/* A call on one. */
struct sim_held_op {
	struct sim_op op; /* first */
	struct sim_held *h;
	bool refuses; /* a delegation is refused */
	struct nfs4_op_read read;
};

/* What nfs4_deleg_ops.recall_any said. */
struct sim_recall_any {
	unsigned int cnt;
	uint32_t keep;
	bool read, write;
};
extern struct sim_recall_any sim_recall_any;

/* After sim_nfs_client(): files hear of their delegations. */
void sim_held_hear(struct sim_nfs *w);
/* As sim_nfs_mounted(), with delegations of the kinds that the server gives. */
void sim_held_mounted(struct sim_nfs *w, unsigned int lanes, uint32_t delegs);
/* Makes the file on the server, from outside, and its owner; `h` is as new. */
void sim_held_file(struct sim_nfs *w, struct sim_held *h, const char *path);

/* Starts; sim_held_wait() tells. False: the session is dead. */
bool sim_open_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane, uint32_t access,
	bool want_deleg);
bool sim_claim_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane);
bool sim_return_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane);
bool sim_downgrade_start(
	struct sim_held_op *ho, struct sim_held *h, unsigned int lane, uint32_t access);
bool sim_close_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane);
bool sim_read_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane);
bool sim_write_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane);
/* Its errno, -ETIME if it did not end in 10 minutes. */
int sim_held_wait(struct sim_held_op *ho);

/* Start and wait. */
int sim_hopen(struct sim_held *h, unsigned int lane, uint32_t access, bool want_deleg);
int sim_hclaim(struct sim_held *h, unsigned int lane);
int sim_hreturn(struct sim_held *h, unsigned int lane);
int sim_hdowngrade(struct sim_held *h, unsigned int lane, uint32_t access);
/* Without a call if a delegation serves it. */
int sim_hclose(struct sim_held *h, unsigned int lane);
int sim_hread(struct sim_held *h, unsigned int lane);
int sim_hwrite(struct sim_held *h, unsigned int lane);
/* nfs4_deleg_open() by the file's delegation. */
bool sim_hserve(struct sim_held *h, uint32_t access);

#endif
