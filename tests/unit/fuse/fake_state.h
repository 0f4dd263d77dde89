/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server of fake_nfs4.c holds: opens and delegations. */
#ifndef RPCRDMAFS_FAKE_STATE_H
#define RPCRDMAFS_FAKE_STATE_H

#include "fs_rig.h"

/* For fake_nfs4.c. */
void fake_state_check(const struct nfs4_call *call);
void fake_state_opened(const struct nfs4_op_open *o);
int fake_close(struct nfs4_op_close *c);
int fake_downgrade(struct nfs4_op_downgrade *d);
int fake_claim(struct nfs4_op_open *o);
int fake_delegreturn(struct nfs4_op_delegreturn *r);
void fake_grant(struct nfs4_op_open *o, struct fake_file *f);
/* What is done to it would break a delegation: there is none. NULL is accepted. */
void fake_check_clear(const struct fake_file *f);

/* CB_RECALL, CB_RECALL_ANY, the loss of the client ID. */
void fake_recall(struct fake_file *f);
void fake_recall_any(uint32_t keep);
/* CB_GETATTR. */
bool fake_cb_getattr(struct fake_file *f, uint64_t *ret_change, uint64_t *ret_size);
void fake_lose(struct fake_file *f);

#endif
