/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of src/nfs4 one after the other, as a test wants to write them:
 * each returns when it is done. And a script of all of them, for sweeps.
 */
#ifndef RPCRDMAFS_SIM_OPS_H
#define RPCRDMAFS_SIM_OPS_H

#include "sim_nfs.h"

struct sim_op {
	struct nfs4_call call; /* first */
	struct sim_nfs *w;
	struct rpcrdma_buf *buf; /* lent for the operation, NULL: none */
	unsigned int done_cnt;
	int err;
	/* what came back, copied in ->done */
	uint8_t data[70000];
	uint32_t len;
	unsigned int entries;
	void (*then)(struct sim_op *op);
};

/* An open file. */
struct sim_file {
	struct nfs4_fh fh;
	struct nfs4_state state;
};

/*
 * Gets call and data buffer, waiting for them if need be; then the caller fills op->call.u and
 * runs it. False: the session is dead.
 */
bool sim_op_get(struct sim_nfs *w, unsigned int lane, struct sim_op *op);
/* Starts only: ->then tells the end. */
void sim_op_start(struct sim_op *op, void (*start)(struct nfs4_call *));
/* Returns the call's err. */
int sim_op_run(struct sim_op *op, void (*start)(struct nfs4_call *));

int sim_mkdir(struct sim_nfs *w, const struct nfs4_fh *dir, const char *name, struct nfs4_fh *ret);
int sim_create(struct sim_nfs *w, const struct nfs4_fh *dir, const char *name, struct sim_file *f);
int sim_close(struct sim_nfs *w, struct sim_file *f);
/* data: the pattern of nfsd_sim_pattern(), from `off` on. */
int sim_write(struct sim_nfs *w, struct sim_file *f, uint64_t off, uint32_t len,
	enum nfs4_stable stable, struct nfs4_verf *verf);
int sim_commit(struct sim_nfs *w, struct sim_file *f, struct nfs4_verf *verf);
/* op->data, op->len: what was read. */
int sim_read(struct sim_nfs *w, struct sim_op *op, struct sim_file *f, uint64_t off, uint32_t len);
/* Byte-range locks: the owner's own conflict never. lockt: 1: somebody else holds it. */
int sim_brlock(struct sim_nfs *w, unsigned int lane, struct sim_file *f, struct nfs4_lockowner *lo,
	uint64_t off, uint64_t len, bool write);
int sim_brunlock(struct sim_nfs *w, unsigned int lane, struct sim_file *f,
	struct nfs4_lockowner *lo, uint64_t off, uint64_t len);
int sim_brtest(struct sim_nfs *w, struct sim_file *f, const struct nfs4_lockowner *lo, uint64_t off,
	uint64_t len, bool write, struct nfs4_denied *denied);
/* As sim_brlock() and sim_brunlock(), of a call that the caller got and waits for. */
void sim_lock_start(struct sim_op *op, struct sim_file *f, struct nfs4_lockowner *lo, uint64_t off,
	uint64_t len, bool write, bool wait);
void sim_unlock_start(struct sim_op *op, struct sim_file *f, struct nfs4_lockowner *lo,
	uint64_t off, uint64_t len);
bool sim_is_pattern(const uint8_t *p, uint64_t off, uint32_t len);

/*
 * All operations with all kinds of messages; what goes wrong is recorded. v42: the operations of
 * v4.2 too. False: it stopped early.
 */
bool sim_script(struct sim_nfs *w, bool v42);

#endif
