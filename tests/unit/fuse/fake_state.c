/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and delegations of the server of fake_nfs4.c, and nfs4_state_*(), nfs4_deleg_*(). */
#include <criterion/criterion.h>

#include "fake_state.h"
#include "fs_deleg.h"
#include "fs_share.h"

static struct fake_open *held(uint64_t owner)
{
	for (unsigned int i = 0; i < FAKE_OPENS; i++)
		if (rig.fake.held[i].owner == owner)
			return &rig.fake.held[i];
	return NULL;
}

/* ---- what may be on its way beside what ---- */

static uint64_t owner_of(const struct nfs4_call *call)
{
	if (call->state == FAKE_OPEN)
		return call->u.open.owner;
	if (call->state == FAKE_CLAIM)
		return call->u.open.claim->owner;
	if (call->state == FAKE_CLOSE)
		return call->u.close.state->owner;
	if (call->state == FAKE_DOWNGRADE)
		return call->u.downgrade.state->owner;
	return call->state == FAKE_LOCK ? call->u.lock.state->owner : 0;
}

static bool is_alone(const struct nfs4_call *call)
{
	return call->state == FAKE_CLOSE || call->state == FAKE_DOWNGRADE;
}

void fake_state_check(const struct nfs4_call *call)
{
	list_for_each (node, &rig.fake.pending) {
		const struct nfs4_call *other = container_of(node, struct nfs4_call, link);

		cr_assert(owner_of(call) == 0 || owner_of(call) != owner_of(other) ||
				  (!is_alone(call) && !is_alone(other)),
			"a CLOSE beside another call of its owner");
	}
}

/* ---- the server ---- */

static void hold_open(uint64_t owner, uint8_t file, uint32_t access)
{
	struct fake_open *h = held(owner);

	if (!h) {
		h = held(0);
		*h = (struct fake_open){.owner = owner, .file = file};
		rig.fake.opens++;
	}
	cr_assert_eq(h->file, file, "an owner of another file");
	h->access |= access;
}

void fake_state_opened(const struct nfs4_op_open *o)
{
	const struct fake_file *f = &rig.fake.files[o->fh.data[0]];

	if ((o->share_access & OPEN4_SHARE_ACCESS_WRITE) &&
		(!f->deleg || f->deleg->type == OPEN_DELEGATE_READ))
		fake_check_clear(f);
	hold_open(o->owner, o->fh.data[0], o->share_access);
}

int fake_close(struct nfs4_op_close *c)
{
	struct fake_open *h = c->state->cl ? held(c->state->owner) : NULL;

	c->attr.valid = 0;
	if (h) {
		h->owner = 0;
		rig.fake.opens--;
	}
	c->state->cl = NULL;
	fake_keep_state(c->state);
	return 0;
}

int fake_downgrade(struct nfs4_op_downgrade *d)
{
	struct fake_open *h = held(d->state->owner);

	cr_assert(h && d->share_access != 0 && (d->share_access & ~h->access) == 0);
	h->access = d->state->share_access = d->share_access;
	return 0;
}

/* ---- delegations ---- */

static const struct nfs4_deleg_ops *ops;
static void *ops_ctx;

void fake_grant(struct nfs4_op_open *o, struct fake_file *f)
{
	o->deleg_type = OPEN_DELEGATE_NONE;
	if ((!o->want_deleg && !rig.fake.grant_any) || f->granted)
		return;
	if (rig.fake.grant == OPEN_DELEGATE_WRITE && !(o->share_access & OPEN4_SHARE_ACCESS_WRITE))
		return;
	o->deleg_type = rig.fake.grant;
	f->granted = o->deleg_type != OPEN_DELEGATE_NONE;
}

void fake_check_clear(const struct fake_file *f)
{
	cr_assert(!f || !f->granted, "%s is delegated", f->name);
}

int fake_claim(struct nfs4_op_open *o)
{
	struct nfs4_state *st = o->claim;

	if (!st->deleg)
		return 0;
	cr_assert(rig.fake.files[st->fh.data[0]].granted);
	hold_open(st->owner, st->fh.data[0], st->share_access);
	st->deleg->status--;
	st->deleg = NULL;
	return 0;
}

int fake_delegreturn(struct nfs4_op_delegreturn *r)
{
	struct nfs4_deleg *d = r->deleg;

	r->attr.valid = 0;
	if (!d->cl)
		return 0;
	cr_assert_eq(d->status, 0, "something is served still");
	rig.fake.files[d->fh.data[0]].granted = false;
	nfs4_deleg_forget(d);
	return 0;
}

void fake_recall(struct fake_file *f)
{
	ops->recall(ops_ctx, f->deleg);
}

bool fake_cb_getattr(struct fake_file *f, uint64_t *ret_change, uint64_t *ret_size)
{
	return ops->getattr(ops_ctx, f->deleg, ret_change, ret_size);
}

void fake_recall_any(uint32_t keep)
{
	ops->recall_any(ops_ctx, keep, true, false);
}

void fake_lose(struct fake_file *f)
{
	struct nfs4_deleg *d = f->deleg;

	f->granted = false;
	f->deleg = NULL;
	d->cl = NULL;
	for (struct fs_share *sh = container_of(d, struct fs_deleg, nd)->inode->shares; sh;
		sh = sh->next) {
		if (!sh->state.deleg)
			continue;
		sh->state.deleg = NULL; /* and it is opened anew */
		hold_open(sh->state.owner, sh->state.fh.data[0], sh->state.share_access);
	}
	ops->lost(ops_ctx, d);
}

/* ---- nfs4_held.h: delegations ---- */

void nfs4_deleg_set_ops(struct nfs4_client *cl, const struct nfs4_deleg_ops *deleg_ops, void *ctx)
{
	ops = deleg_ops;
	ops_ctx = ctx;
}

enum nfs4_deleg_taken nfs4_deleg_take(struct nfs4_deleg *d, const struct nfs4_call *call)
{
	const struct nfs4_op_open *o = &call->u.open;
	struct fake_file *f = &rig.fake.files[o->fh.data[0]];

	cr_assert_null(d->cl);
	cr_assert(f->granted && !f->deleg);
	d->type = o->deleg_type;
	d->fh = o->fh;
	d->cred = *call->cred;
	d->status = 0;
	if (rig.fake.taken == NFS4_DELEG_GONE) {
		f->granted = false;
		return NFS4_DELEG_GONE;
	}
	d->cl = (struct nfs4_client *)&rig;
	f->deleg = d;
	return rig.fake.taken;
}

void nfs4_return_refuse(const struct nfs4_call *call)
{
	struct fake_file *f = &rig.fake.files[call->u.open.fh.data[0]];

	cr_assert(f->granted && !f->deleg);
	f->granted = false;
	rig.fake.refused_delegs++;
}

bool nfs4_deleg_open(struct nfs4_deleg *d, struct nfs4_state *st, const struct rpc_cred *cred,
	uint32_t share_access, uint64_t owner, uint64_t fileid)
{
	cr_assert(!st->cl || st->deleg == d);
	if (!d->cl || (d->type == OPEN_DELEGATE_READ && share_access != OPEN4_SHARE_ACCESS_READ))
		return false;
	d->status += !st->cl;
	st->cl = d->cl;
	st->deleg = d;
	st->fh = d->fh;
	st->owner = owner;
	st->cred = *cred;
	st->share_access |= share_access;
	return true;
}

bool nfs4_deleg_holds(struct nfs4_deleg *d)
{
	return d->cl != NULL;
}

bool nfs4_deleg_serves(struct nfs4_state *st)
{
	return st->deleg != NULL;
}

bool nfs4_deleg_close(struct nfs4_state *st)
{
	if (!st->deleg)
		return false;
	st->deleg->status--;
	st->deleg = NULL;
	st->cl = NULL;
	return true;
}

void nfs4_deleg_forget(struct nfs4_deleg *d)
{
	if (!d->cl)
		return;
	cr_assert_eq(d->status, 0);
	rig.fake.files[d->fh.data[0]].deleg = NULL;
	d->cl = NULL;
}

/* ---- nfs4_held.h: opens ---- */

void nfs4_share_open(struct nfs4_state *st, const struct nfs4_call *call)
{
	cr_assert(!st->cl || st->owner == call->u.open.owner);
	st->cl = (struct nfs4_client *)&rig;
	st->owner = call->u.open.owner;
	st->stateid = call->u.open.stateid;
	st->fh = call->u.open.fh;
	if (st->deleg)
		st->deleg->status--;
	st->deleg = NULL;
	st->share_access |= call->u.open.share_access;
	fake_keep_state(st);
}

/* Tests say so by is_there, which nothing else uses here. */
bool nfs4_state_is_lost(struct nfs4_state *st)
{
	return st->is_there;
}

void nfs4_state_forget(struct nfs4_state *st)
{
	st->cl = NULL;
	fake_keep_state(st);
}
