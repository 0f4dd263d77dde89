/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte-range locks (RFC 8881 section 9): what is held, and how LOCK and LOCKU
 * are sent and booked.
 *
 *   nfs4_lockrange.c     what one owner holds
 *   nfs4_lock_hang.c     owners: on which open they hang
 *   nfs4_lockowner.c     owners: LOCK and LOCKU of the user
 *   nfs4_lock_io.c       I/O where one is held
 *   nfs4_lock_reclaim.c  locks reclaimed after their open
 *   nfs4_lock_free.c     stateids let go
 *
 * An owner hangs on one open, and comes and goes with it (nfs4_state.c): what
 * is known of it is under the client's states.lock, as the open's lists are.
 *
 * Context: ranges are pure; calls: the session's lane.
 */
#ifndef RPCRDMAFS_NFS4_LOCK_H
#define RPCRDMAFS_NFS4_LOCK_H

#include "nfs4_lock_xdr.h"
#include "nfs4_state.h"

/* ---- ranges (nfs4_lockrange.c), pure ---- */

struct nfs4_lockrange {
	struct list link;
	uint64_t first, last; /* last: UINT64_MAX is the end of the file, wherever it is */
	bool write;
	bool reclaimed; /* means something while the open is BUSY only */
};

static inline uint64_t nfs4_lock_last(uint64_t offset, uint64_t length)
{
	return length == NFS4_LOCK_TO_END ? UINT64_MAX : offset + length - 1;
}

static inline uint64_t nfs4_lock_length(uint64_t first, uint64_t last)
{
	return last == UINT64_MAX ? NFS4_LOCK_TO_END : last - first + 1;
}

/*
 * [first, last] is held as `write` says, whatever was held there before; neighbours of one kind
 * become one. spare: two, taken from as needed.
 */
void nfs4_lockrange_set(struct list *ranges, uint64_t first, uint64_t last, bool write,
	struct nfs4_lockrange *spare[2]);
/* Nothing of [first, last] is held any more. spare: one of the two is enough. */
void nfs4_lockrange_clear(
	struct list *ranges, uint64_t first, uint64_t last, struct nfs4_lockrange *spare[2]);
bool nfs4_lockrange_overlap(const struct list *ranges, uint64_t first, uint64_t last);
void nfs4_lockrange_drop(struct list *ranges);
/* There are so many already (0: any), and one more if this is locked, or no longer. */
bool nfs4_lockrange_exceeds(
	const struct list *ranges, size_t max, uint64_t first, uint64_t last, bool unlock);

/* ---- owners on their opens (nfs4_lock_hang.c); states.lock held ---- */

/* It hangs on st from now on; NULL: on none. */
void nfs4_lock_hang(struct nfs4_lockowner *lo, struct nfs4_state *st);
/* It holds nothing any more. off: and hangs on none. */
void nfs4_lock_hang_drop(struct nfs4_lockowner *lo);
void nfs4_lock_hang_off(struct nfs4_lockowner *lo);
/* The open is forgotten: its owners are off it, and hold nothing. */
void nfs4_lock_hang_detach(struct nfs4_state *st);
/* It is lost: they stay on it, and hold nothing. */
void nfs4_lock_hang_drop_all(struct nfs4_state *st);

/* ---- reclaimed (nfs4_lock_reclaim.c); states.lock held ---- */

extern const struct nfs4_opdesc nfs4_lock_reclaim_desc;
/* The open is open again, its locks are not yet. same_id: its client ID is the one before. */
void nfs4_lock_reclaim_begin(struct nfs4_state *st, bool same_id);
/* Fills `call` with the next LOCK for the open in hand. False: all are reclaimed. */
bool nfs4_lock_reclaim_next(struct nfs4_reclaim *rg, struct nfs4_call *call, bool reclaim);
/* Its answer is NFS4_OK. */
void nfs4_lock_reclaim_granted(struct nfs4_reclaim *rg, const struct nfs4_call *call);
/* The server does not give the lock back because it is somebody else's. */
bool nfs4_lock_reclaim_is_conflict(enum nfs4_status status);

/* ---- let go (nfs4_lock_free.c); states.lock held ---- */

/* The owner leaves its open: its stateid is to be freed. Without memory the server keeps it. */
void nfs4_lock_free_push(struct nfs4_states *all, const struct nfs4_lockowner *lo);
/* CLOSE frees them too. */
void nfs4_lock_free_forget(struct nfs4_states *all, const struct nfs4_state *st);
void nfs4_lock_free_fini(struct nfs4_states *all);
/* The next FREE_STATEID, into the hands of s->reopener. False: none. */
bool nfs4_lock_free_next(struct nfs4_session *s);

extern const struct nfs4_opdesc nfs4_lock_free_desc;

#endif
