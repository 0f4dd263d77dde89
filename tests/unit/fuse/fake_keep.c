/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of nfs4_keep.h: the server is still there, and so is what it holds. */
#include "fake_state.h"
#include "fs_rig.h"
#include "nfs4_held.h"
#include "nfs4_keep.h"

enum {
	STATE_OWNER = NFS4_KEEP_FIELDS,
	STATE_ACCESS,
	LOCK_NUMBER,
};

static struct live *live;
static live_ref client;

void nfs4_keep_live(struct nfs4_client *cl, struct live *to, const struct slab_memory *bufs)
{
	const struct live_key key = {.rank = NFS4_KEEP_RANK};
	struct tables_out t;

	fake_buf_memory(bufs);
	live = to;
	client = LIVE_NONE;
	tables_begin_in(&t);
	nfs4_keep_put_client(&t, cl);
	live_put(live, &client, &key, &t);
	tables_end_in(&t);
}

int nfs4_keep_before(struct nfs4_client *cl, int fd)
{
	return 0;
}

uint64_t nfs4_redo_request_of(const struct tables_record *r)
{
	return 0;
}

int nfs4_redo_get(const struct tables_record *r, struct nfs4_client *cl)
{
	return 0;
}

bool nfs4_redo_was_done(struct nfs4_client *cl, uint64_t request)
{
	return request != 0 &&
	       (request == rig.was_done || (request < RIG_ASKED && rig.did[request]));
}

void nfs4_redo_over(struct nfs4_client *cl, struct nfs4_once *once)
{
}

void nfs4_keep_get_session(const struct tables_record *r, struct nfs4_client *cl)
{
}

uint64_t nfs4_keep_number_of(const struct tables_record *r)
{
	return tables_get(r, LOCK_NUMBER);
}

void nfs4_keep_put_number(struct tables_out *t, const struct nfs4_lockowner *lo)
{
	tables_put(t, LOCK_NUMBER, lo->number);
}

uint64_t nfs4_keep_owner_of(const struct tables_record *r)
{
	return tables_get(r, STATE_OWNER);
}

void fake_keep_state(struct nfs4_state *st)
{
	const struct live_key key = {
		.rank = NFS4_KEEP_RANK_OPENS, .group = st->owner, .minor = NFS4_KEEP_MINOR_STATE};
	struct tables_out t;

	if (!st->cl) {
		live_drop(live, &st->live_ref);
		return;
	}
	tables_begin_in(&t);
	tables_record(&t, NFS4_KEEP_STATE);
	nfs4_keep_put_state(&t, st);
	live_put(live, &st->live_ref, &key, &t);
	tables_end_in(&t);
}

void fake_keep_locks(struct nfs4_lockowner *lo)
{
	struct live_key key = {.rank = NFS4_KEEP_RANK_OPENS, .minor = NFS4_KEEP_MINOR_LOCKS};
	struct tables_out t;

	if (!lo->state) {
		live_drop(live, &lo->live_ref);
		return;
	}
	key.group = lo->state->owner;
	tables_begin_in(&t);
	tables_record(&t, NFS4_KEEP_LOCKS);
	nfs4_keep_put_lockowner(&t, lo);
	live_put(live, &lo->live_ref, &key, &t);
	tables_end_in(&t);
}

const char *nfs4_keep_obstacle(struct nfs4_client *cl)
{
	return rig.fake.calls > 0 ? "a call is in work" : NULL;
}

void nfs4_keep_put_client(struct tables_out *t, struct nfs4_client *cl)
{
	tables_record(t, NFS4_KEEP_CLIENT);
}

int nfs4_keep_get_client(const struct tables_record *r, struct nfs4_client *cl, bool sequence_known)
{
	return 0;
}

void nfs4_keep_put_state(struct tables_out *t, struct nfs4_state *st)
{
	tables_put(t, STATE_OWNER, st->owner);
	tables_put(t, STATE_ACCESS, st->share_access);
}

int nfs4_keep_get_state(const struct tables_record *r, struct nfs4_client *cl,
	struct nfs4_state *st, const struct nfs4_fh *fh)
{
	st->cl = (struct nfs4_client *)&rig;
	st->fh = *fh;
	st->owner = tables_get(r, STATE_OWNER);
	st->share_access = (uint32_t)tables_get(r, STATE_ACCESS);
	fake_keep_state(st);
	return 0;
}

/* By the same owner, as the real one would with its next call. */
void nfs4_keep_get_served(struct nfs4_client *cl, struct nfs4_state *st, const struct nfs4_fh *fh,
	const struct rpc_cred *cred, uint32_t share_access, uint64_t owner, uint64_t fileid)
{
	const struct nfs4_op_open o = {.owner = owner, .share_access = share_access, .fh = *fh};

	st->cl = (struct nfs4_client *)&rig;
	st->fh = *fh;
	st->owner = owner;
	st->share_access = share_access;
	fake_state_opened(&o);
	fake_keep_state(st);
}

int nfs4_keep_get_deleg(const struct tables_record *r, struct nfs4_client *cl)
{
	return 0;
}

void nfs4_keep_replaying(struct nfs4_client *cl)
{
}

void nfs4_keep_replayed(struct nfs4_session *s)
{
	rig.fake.replayed++;
	rig.fake.not_durable = fs_gauges(rig.fs).dirty + fs_gauges(rig.fs).uncommitted;
}

void nfs4_keep_put_lockowner(struct tables_out *t, struct nfs4_lockowner *lo)
{
	tables_put(t, LOCK_NUMBER, lo->number);
}

int nfs4_keep_get_lockowner(const struct tables_record *r, struct nfs4_client *cl,
	struct nfs4_lockowner *lo, struct nfs4_state *st)
{
	nfs4_lockowner_init(lo, cl);
	lo->number = tables_get(r, LOCK_NUMBER);
	lo->state = st;
	fake_keep_locks(lo);
	return 0;
}
