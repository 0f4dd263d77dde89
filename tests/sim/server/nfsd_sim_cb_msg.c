/* SPDX-License-Identifier: BSD-3-Clause */
/* A call to the client, from its transport header on. */
#include "nfsd_sim_held.h"

#define CB_PROC_COMPOUND 1u

static void wr_handle(struct wr *out, struct nfsd_sim *sim, struct node *n)
{
	struct cmp c = {.sim = sim, .out = out};

	if (n)
		wr_fh(&c, n);
	else
		wr_opaque(out, "filehandle", 10);
}

static void wr_offload(struct wr *w, struct nfsd_sim *sim, const struct copying *copy)
{
	static uint32_t other;

	wr_u32(w, 15);
	wr_handle(w, sim, copy ? copy->dst : NULL);
	wr_u32(w, 1);
	if (copy) {
		wr_raw(w, copy->other, 12);
	} else {
		wr_u64(w, 0);
		wr_u32(w, ++other);
	}
	wr_u32(w, copy ? copy->status : 0);
	if (copy && copy->status) {
		wr_u64(w, copy->bytes);
		return;
	}
	wr_u32(w, 0);
	wr_u64(w, copy ? copy->bytes : 0);
	wr_u32(w, copy && copy->stable ? 2 : 0);
	wr_raw(w, sim->verf, 8);
}

static void wr_op(struct wr *w, struct nfsd_sim *sim, const struct cb_args *a)
{
	const struct lock_range *l = a->lock;
	const struct deleg *d = a->deleg;

	switch (a->what) {
	case NFSD_SIM_CB_RECALL_ANY:
		wr_u32(w, 8);
		wr_u32(w, a->keep);
		wr_u32(w, 1);
		wr_u32(w, a->mask);
		break;
	case NFSD_SIM_CB_RECALL_SLOT:
		wr_u32(w, 10);
		wr_u32(w, 3);
		break;
	case NFSD_SIM_CB_RECALL:
		wr_u32(w, 4);
		if (d) {
			wr_u32(w, 1);
			wr_raw(w, d->other, 12);
		} else {
			wr_raw(w, "stateid-stateid-", 16);
		}
		wr_u32(w, 0);
		wr_handle(w, sim, d ? d->node : NULL);
		break;
	case NFSD_SIM_CB_GETATTR:
		wr_u32(w, OP_CB_GETATTR);
		wr_handle(w, sim, d ? d->node : NULL);
		wr_u32(w, 1);
		wr_u32(w, 0x18); /* change, size */
		break;
	case NFSD_SIM_CB_NOTIFY_LOCK:
		wr_u32(w, 13);
		wr_handle(w, sim, l ? l->node : NULL);
		wr_u64(w, l ? l->client->id : 77);
		wr_opaque(w, l ? (const char *)l->owner : "somebody", l ? l->owner_len : 8);
		break;
	case NFSD_SIM_CB_OFFLOAD:
		wr_offload(w, sim, a->copy);
		break;
	case NFSD_SIM_CB_BAD_OP:
		wr_u32(w, 9999);
		break;
	case NFSD_SIM_CB_NULL:
	case NFSD_SIM_CB_SEQUENCE:
	case NFSD_SIM_CB_AGAIN:
	case NFSD_SIM_CB_AHEAD:
	case NFSD_SIM_CB_UNKNOWN_PROG:
	case NFSD_SIM_CB_UNKNOWN_VERS:
	case NFSD_SIM_CB_UNKNOWN_PROC:
	case NFSD_SIM_CB_GARBAGE:
		break; /* nothing behind CB_SEQUENCE */
	}
}

static bool has_op(enum nfsd_sim_cb what)
{
	return what == NFSD_SIM_CB_RECALL_ANY || what == NFSD_SIM_CB_RECALL ||
	       what == NFSD_SIM_CB_RECALL_SLOT || what == NFSD_SIM_CB_GETATTR ||
	       what == NFSD_SIM_CB_BAD_OP || what == NFSD_SIM_CB_NOTIFY_LOCK ||
	       what == NFSD_SIM_CB_OFFLOAD;
}

/* referring_call_lists<> */
static void wr_referring(struct wr *w, const struct cmp *refers)
{
	if (!refers) {
		wr_u32(w, 0);
		return;
	}
	wr_u32(w, 1);
	wr_raw(w, refers->sess->id, 16);
	wr_u32(w, 1);
	wr_u32(w, refers->slot->seqid);
	wr_u32(w, (uint32_t)(refers->slot - refers->sess->slots));
}

static uint32_t next_number(struct session *s, const struct cb_args *a)
{
	struct deleg *d = a->deleg;

	if (!s)
		return 1;
	if (a->what == NFSD_SIM_CB_AGAIN)
		s->cb_seq--;
	else if (a->what == NFSD_SIM_CB_AHEAD)
		s->cb_seq += 5;
	/* Not answered: it may have been seen, so it is the same call. */
	if (a->what == NFSD_SIM_CB_RECALL && d && d->cb_seq && !memcmp(d->cb_session, s->id, 16))
		return d->cb_seq;
	++s->cb_seq;
	if (a->what == NFSD_SIM_CB_RECALL && d) {
		d->cb_seq = s->cb_seq;
		memcpy(d->cb_session, s->id, 16);
	}
	return s->cb_seq;
}

void cb_build(struct nfsd_sim *sim, struct wr *w, struct session *s, uint32_t xid,
	const struct cb_args *a)
{
	enum nfsd_sim_cb what = a->what;
	uint32_t prog = s ? s->cb_prog : 0x40000000;

	wr_u32(w, xid);
	wr_u32(w, 1);
	wr_u32(w, 2); /* credits asked for, as nfsd */
	wr_u32(w, SIM_RDMA_MSG);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, xid);
	wr_u32(w, 0);
	wr_u32(w, 2);
	wr_u32(w, what == NFSD_SIM_CB_UNKNOWN_PROG ? prog + 77 : prog);
	wr_u32(w, what == NFSD_SIM_CB_UNKNOWN_VERS ? 9 : 1);
	wr_u32(w, what == NFSD_SIM_CB_NULL           ? 0
		  : what == NFSD_SIM_CB_UNKNOWN_PROC ? 7
						     : CB_PROC_COMPOUND);
	for (int i = 0; i < 4; i++) /* AUTH_NONE twice */
		wr_u32(w, 0);
	if (what == NFSD_SIM_CB_NULL || what == NFSD_SIM_CB_UNKNOWN_PROG ||
		what == NFSD_SIM_CB_UNKNOWN_VERS || what == NFSD_SIM_CB_UNKNOWN_PROC)
		return;
	wr_u32(w, 0);                                   /* tag */
	wr_u32(w, what == NFSD_SIM_CB_OFFLOAD ? 2 : 1); /* minor version */
	wr_u32(w, 0);                                   /* callback_ident */
	if (what == NFSD_SIM_CB_GARBAGE) {
		wr_u32(w, 0x7fffffff);
		return;
	}
	wr_u32(w, has_op(what) ? 2 : 1);
	wr_u32(w, OP_CB_SEQUENCE);
	wr_raw(w, s ? s->id : (const uint8_t *)"0123456789abcdef", 16);
	wr_u32(w, next_number(s, a));
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_referring(w, a->refers);
	wr_op(w, sim, a);
}
