/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of a session and their sequence numbers (RFC 8881 section 2.10.6).
 *
 * Context: pure; the session's lane.
 */
#ifndef RPCRDMAFS_NFS4_SLOT_H
#define RPCRDMAFS_NFS4_SLOT_H

#include "nfs4_codec.h"

#define NFS4_SLOT_NONE UINT32_MAX

enum nfs4_slot_state {
	NFS4_SLOT_FREE,
	NFS4_SLOT_BUSY,   /* a call owns it: it has been sent, or will be with this very seqid */
	NFS4_SLOT_ORPHAN, /* its call ended without a reply: not used again in this session */
};

struct nfs4_slots {
	uint32_t cnt;   /* slots the session has, as far as the server told */
	uint32_t max;   /* and may come to have: what we asked for */
	uint32_t limit; /* of these, usable now: at least 1, the server moves it */
	uint32_t busy_cnt, orphan_cnt;
	uint64_t used[NFS4_SLOT_MAX / 64]; /* bit set: BUSY or ORPHAN */
	uint32_t seqid[NFS4_SLOT_MAX];     /* of the next call on it, or of the one that owns it */
	uint8_t state[NFS4_SLOT_MAX];
	bool unsure[NFS4_SLOT_MAX]; /* the server may not have seen the number before seqid */
};

/*
 * A new session: `cnt` slots were granted of the `max` that were asked for. All FREE, all expecting
 * sequence number 1 (RFC 8881 section 18.36.4).
 */
void nfs4_slot_init(struct nfs4_slots *t, uint32_t cnt, uint32_t max);
/* The lowest FREE slot below the limit, now BUSY; NFS4_SLOT_NONE: all are taken. */
uint32_t nfs4_slot_get(struct nfs4_slots *t, uint32_t *ret_seqid);
/* The server executed the call and we have its reply: FREE, next sequence number. */
void nfs4_slot_done(struct nfs4_slots *t, uint32_t slot);
/* The server did not take the call (SEQUENCE failed, or it was never sent): FREE, same number. */
void nfs4_slot_cancel(struct nfs4_slots *t, uint32_t slot);
/*
 * The server is done with the call and did not say whether it got as far as SEQUENCE (ERR_CHUNK):
 * FREE, next number. Had it not, it answers the next call on the slot with SEQ_MISORDERED, and only
 * then: the number of that call is stepped back by one, which nothing was ever executed under.
 */
void nfs4_slot_unsure(struct nfs4_slots *t, uint32_t slot);
/* SEQ_MISORDERED for a call on `slot`. True: it goes again with *seqid, changed. */
bool nfs4_slot_step_back(struct nfs4_slots *t, uint32_t slot, uint32_t *seqid);
/* Nobody knows whether the server will yet execute the call: ORPHAN. */
void nfs4_slot_orphan(struct nfs4_slots *t, uint32_t slot);
/* Does a call own it with this number? Any slot number will do. */
bool nfs4_slot_is_busy(const struct nfs4_slots *t, uint32_t slot, uint32_t seqid);
/* For sa_highest_slotid: the highest slot in use; 0 if none is. */
uint32_t nfs4_slot_highest(const struct nfs4_slots *t);
/*
 * sr_highest_slotid and sr_target_highest_slotid: what the server takes and what it would like. The
 * table grows to them, up to `max` (section 2.10.6.1).
 */
void nfs4_slot_set_highest(struct nfs4_slots *t, uint32_t highest, uint32_t target);
/* The server does not have `slot` (BADSLOT). False: nothing would be left. */
bool nfs4_slot_cut(struct nfs4_slots *t, uint32_t slot);
/* So many slots are ORPHAN that the session should be replaced. */
bool nfs4_slot_worn(const struct nfs4_slots *t);

#endif
