/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks of struct nfs4_opdesc (nfs4_int.h), a group for each kind of call that
 * works on what the server holds for us. A descriptor takes all of its group.
 *
 *   I/O on an open, or without one    nfs4_lock_io
 *   SETATTR                           nfs4_idmap: the same, and names of owners before it goes
 *   OPEN                              nfs4_recall, nfs4_return_unasked
 *   nfs4_claim()                      nfs4_share_claim
 *   OPEN_DOWNGRADE                    nfs4_share_downgrade
 *   CLOSE                             nfs4_state_close, nfs4_lockowner_close
 *   DELEGRETURN of the user           nfs4_return
 *   LOCK, LOCKU; LOCKT                nfs4_lockowner
 *   COPY, CLONE                       nfs4_offload
 *   what a session reclaims           nfs4_lock_reclaim
 *
 * Context: the session's lane.
 */
#ifndef RPCRDMAFS_NFS4_HOOKS_H
#define RPCRDMAFS_NFS4_HOOKS_H

#include "nfs4_int.h"

/*
 * With the stateid of whoever holds a lock where the call works, else its open's, else the
 * anonymous one. A lock's that is refused: again with the open's, which tells whether that is good;
 * of the lock the answer says little, as it may be given back since.
 */
enum nfs4_state_verdict nfs4_lock_io_take(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_lock_io_refused(struct nfs4_call *call);

/* The names that it sends are waited for. again: BADOWNER to numbers; names are worth a try. */
enum nfs4_state_verdict nfs4_idmap_take(struct nfs4_call *call);
bool nfs4_idmap_again(struct nfs4_call *call);

/*
 * A call that may bring a delegation is counted from before its start, by nfs4_recall_await(),
 * until after ->done. A delegation that nobody asked for is returned.
 */
void nfs4_recall_await(struct nfs4_call *call);
bool nfs4_return_unasked(struct nfs4_call *call);
void nfs4_recall_ended(struct nfs4_call *call);

/* A call that claims what a delegation served is counted as an OPEN is. */
enum nfs4_state_verdict nfs4_share_claim_take(struct nfs4_call *call);
bool nfs4_share_claim_granted(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_share_claim_refused(struct nfs4_call *call);
void nfs4_share_claim_ended(struct nfs4_call *call);

enum nfs4_state_verdict nfs4_share_downgrade_take(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_share_downgrade_refused(struct nfs4_call *call);
void nfs4_share_downgrade_ended(struct nfs4_call *call);

/* A state that is not open any more is closed. Without success it is as before. */
enum nfs4_state_verdict nfs4_state_close_take(struct nfs4_call *call);
bool nfs4_state_close_granted(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_state_close_refused(struct nfs4_call *call);
void nfs4_state_close_ended(struct nfs4_call *call);
/*
 * again: NFS4ERR_LOCKS_HELD; it goes again with what u.close.unlocks says. False: another status,
 * or there is nothing left to try.
 */
bool nfs4_lockowner_close(struct nfs4_call *call);

/* From before its start, by nfs4_return_begin(), the delegation serves nothing. */
void nfs4_return_begin(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_return_take(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_return_refused(struct nfs4_call *call);
void nfs4_return_ended(struct nfs4_call *call);

/*
 * take finds the open that it goes through and reserves what the books need. A lock that was
 * granted under a stateid that is not the open's any more is asked for again.
 */
enum nfs4_state_verdict nfs4_lockowner_take(struct nfs4_call *call);
bool nfs4_lockowner_granted(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_lockowner_refused(struct nfs4_call *call);
void nfs4_lockowner_ended(struct nfs4_call *call);
/* LOCKT has no state; it waits for locks that are being reclaimed. */
enum nfs4_state_verdict nfs4_lockowner_take_test(struct nfs4_call *call);

/* Both stateids; -EOPNOTSUPP without good ones. Counted from before its start until after ->done.
 */
void nfs4_offload_await(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_offload_take(struct nfs4_call *call);
enum nfs4_state_verdict nfs4_offload_refused(struct nfs4_call *call);
void nfs4_offload_ended(struct nfs4_call *call);

/* By sess->ctl or ->reopener: for the client ID that it was made for, or not at all. */
enum nfs4_state_verdict nfs4_lock_reclaim_take(struct nfs4_call *call);

#endif
