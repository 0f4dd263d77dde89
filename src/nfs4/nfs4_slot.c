/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slot table of a session (RFC 8881 section 2.10.6.1).
 *
 *   FREE --get--> BUSY --done----> FREE, next sequence number
 *                  |---cancel---> FREE, same number: the server never took it
 *                  `---orphan---> ORPHAN until there is a new session
 *
 * A slot whose reply was lost must not carry another call: the server could
 * not tell it from a retry of the lost one (false retry, section
 * 2.10.6.1.3.1), and would answer with the old call's result.
 *
 * I9 (slot): BUSY, it is one call's, and its number with it. The number is used up only when the
 *    server said that it is; a call that ends without an answer leaves the slot ORPHAN. No call
 *    ends with a slot.
 *    Asserted: slot_set(), nfs4_slot_step_back(), nfs4_call_finish()
 *    Test: nfs4_recovery::timed_out_call_keeps_its_slot_from_others
 */
#include "nfs4_session_int.h"

#include <assert.h>
#include <string.h>

/* The only place that changes a slot's state. */
static void slot_set(struct nfs4_slots *t, uint32_t slot, enum nfs4_slot_state to)
{
	uint64_t bit = 1ull << (slot % 64);

	assert(slot < t->cnt);
	assert(t->state[slot] == (to == NFS4_SLOT_BUSY ? NFS4_SLOT_FREE : NFS4_SLOT_BUSY)); /* I9 */
	t->busy_cnt -= t->state[slot] == NFS4_SLOT_BUSY;
	t->orphan_cnt -= t->state[slot] == NFS4_SLOT_ORPHAN;
	t->state[slot] = (uint8_t)to;
	t->busy_cnt += to == NFS4_SLOT_BUSY;
	t->orphan_cnt += to == NFS4_SLOT_ORPHAN;
	if (to == NFS4_SLOT_FREE)
		t->used[slot / 64] &= ~bit;
	else
		t->used[slot / 64] |= bit;
}

void nfs4_slot_init(struct nfs4_slots *t, uint32_t cnt, uint32_t max)
{
	assert(cnt >= 1 && max >= cnt);
	memset(t, 0, sizeof(*t));
	t->cnt = cnt < NFS4_SLOT_MAX ? cnt : NFS4_SLOT_MAX;
	t->max = max < NFS4_SLOT_MAX ? max : NFS4_SLOT_MAX;
	t->limit = t->cnt;
	for (uint32_t i = 0; i < t->max; i++)
		t->seqid[i] = 1;
}

uint32_t nfs4_slot_get(struct nfs4_slots *t, uint32_t *ret_seqid)
{
	for (uint32_t w = 0; w * 64 < t->limit; w++) {
		uint32_t slot;

		if (t->used[w] == UINT64_MAX)
			continue;
		slot = w * 64 + (uint32_t)__builtin_ctzll(~t->used[w]);
		if (slot >= t->limit)
			break;
		slot_set(t, slot, NFS4_SLOT_BUSY);
		*ret_seqid = t->seqid[slot];
		return slot;
	}
	return NFS4_SLOT_NONE;
}

void nfs4_slot_done(struct nfs4_slots *t, uint32_t slot)
{
	assert(t->state[slot] == NFS4_SLOT_BUSY);
	t->seqid[slot]++; /* wraps to 0: section 2.10.6.1 wants that */
	t->unsure[slot] = false;
	slot_set(t, slot, NFS4_SLOT_FREE);
}

void nfs4_slot_cancel(struct nfs4_slots *t, uint32_t slot)
{
	assert(t->state[slot] == NFS4_SLOT_BUSY);
	slot_set(t, slot, NFS4_SLOT_FREE);
}

void nfs4_slot_unsure(struct nfs4_slots *t, uint32_t slot)
{
	nfs4_slot_done(t, slot);
	t->unsure[slot] = true;
}

bool nfs4_slot_step_back(struct nfs4_slots *t, uint32_t slot, uint32_t *seqid)
{
	assert(t->state[slot] == NFS4_SLOT_BUSY && t->seqid[slot] == *seqid); /* I9 */
	if (!t->unsure[slot])
		return false;
	t->unsure[slot] = false;
	*seqid = --t->seqid[slot];
	return true;
}

void nfs4_slot_orphan(struct nfs4_slots *t, uint32_t slot)
{
	assert(t->state[slot] == NFS4_SLOT_BUSY);
	slot_set(t, slot, NFS4_SLOT_ORPHAN);
}

bool nfs4_slot_is_busy(const struct nfs4_slots *t, uint32_t slot, uint32_t seqid)
{
	return slot < t->cnt && t->state[slot] == NFS4_SLOT_BUSY && t->seqid[slot] == seqid;
}

uint32_t nfs4_slot_highest(const struct nfs4_slots *t)
{
	for (uint32_t w = (t->cnt + 63) / 64; w-- > 0;)
		if (t->used[w])
			return w * 64 + 63 - (uint32_t)__builtin_clzll(t->used[w]);
	return 0;
}

/*
 * Replies may overtake each other, so that an old one can lower the limit for
 * a moment; the next one mends it. Sequence numbers above a lowered limit are
 * kept: starting them anew because of a reply that was overtaken could make a
 * false retry, keeping them at worst a SEQ_MISORDERED. nfsd grants few slots from Linux 6.14 on,
 * and more once they are in use.
 */
void nfs4_slot_set_highest(struct nfs4_slots *t, uint32_t highest, uint32_t target)
{
	uint32_t top = highest < target ? highest : target;

	if (top >= t->cnt && t->cnt < t->max)
		t->cnt = top < t->max ? top + 1 : t->max;
	t->limit = top < t->cnt - 1 ? top + 1 : t->cnt;
}

bool nfs4_slot_cut(struct nfs4_slots *t, uint32_t slot)
{
	if (slot == 0)
		return false;
	if (t->limit > slot)
		t->limit = slot;
	return true;
}

bool nfs4_slot_worn(const struct nfs4_slots *t)
{
	return t->orphan_cnt > 0 && t->orphan_cnt * 2 >= t->limit;
}
