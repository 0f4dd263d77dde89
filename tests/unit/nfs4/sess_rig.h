/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client and a session without a connection, for tests of what is booked:
 * nothing is sent. A call that is started waits for a slot, of which there is
 * none (or for the session, if that is not up), until the test answers it.
 */
#ifndef RPCRDMAFS_SESS_RIG_H
#define RPCRDMAFS_SESS_RIG_H

#include <criterion/criterion.h>

#include "nfs4_deleg.h"
#include "nfs4_session_int.h"

struct sess_rig {
	struct nfs4_client cl;
	struct nfs4_session s;
	struct stats stats;
	struct rpc_cred cred;
	struct nfs4_fh fh;
	unsigned int recalled, lost; /* of the user's delegations */
};

extern struct sess_rig sr;

/* Client ID 1, and a session of it that is not up; time is virtual. */
void sess_rig_up(void);
void sess_rig_down(void);
/* The client ID is replaced by the next one, and the session with it. */
void sess_rig_new_client(void);
void sess_rig_call(struct nfs4_call *call);
/* It is answered so, under the client ID that the session has. */
void sess_rig_answer(struct nfs4_call *call, enum nfs4_status status);
struct nfs4_stateid sess_rig_stateid(uint8_t other, uint32_t seqid);
/* An OPEN of the rig's file was answered with this stateid. */
void sess_rig_open(struct nfs4_state *st, uint32_t access, struct nfs4_stateid sid);
/* The server does not take its stateid: NFS4ERR_EXPIRED. */
void sess_rig_bad(struct nfs4_state *st);
bool sess_rig_is_on(const struct list *list, const struct nfs4_state *st);

#endif
