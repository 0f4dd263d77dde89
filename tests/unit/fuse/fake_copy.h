/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of fake_nfs4.c copies: at once, in parts, or by itself; and clones. */
#ifndef RPCRDMAFS_FAKE_COPY_H
#define RPCRDMAFS_FAKE_COPY_H

#include "fs_rig.h"
#include "nfs4_offload.h"

struct fake_copy {
	/* what tests set */
	uint64_t part;   /* copied at once, at most; 0: all */
	uint64_t block;  /* CLONE is there, for whole ones of these */
	bool unstable;   /* a COMMIT is needed */
	bool async;      /* COPYs that may be are answered before they are done ... */
	bool early;      /* ... and their CB_OFFLOADs come before */
	bool no_back;    /* nfs4_offload_has_back() */
	bool new_client; /* nfs4_offload_is_over() */
	bool complete;   /* OFFLOAD_STATUS says so */
	int poll_err;    /* of OFFLOAD_STATUS ... */
	enum nfs4_status poll_status;
	unsigned int restarts; /* the verifier changes after so many COPYs */
	/* what they see */
	struct nfs4_op_copy last, last_clone;
	struct nfs4_offload *off; /* is waited for */
	bool running;             /* the server is at it */
};
extern struct fake_copy fake_copy;

/* The copy that goes on ends; bytes of it are done. Told to who waits for it. */
void fake_copy_end(enum nfs4_status status, uint64_t bytes, enum nfs4_stable committed);

/* For fake_nfs4.c. */
void fake_copy_init(void);
int fake_copy_execute(struct nfs4_call *call, enum fake_op op);

#endif
