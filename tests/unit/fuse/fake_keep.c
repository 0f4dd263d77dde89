/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of nfs4_keep.h: the server is still there, and so is what it holds. */
#include "fs_rig.h"
#include "nfs4_held.h"
#include "nfs4_keep.h"

enum {
	STATE_OWNER = NFS4_KEEP_FIELDS,
	STATE_ACCESS,
	LOCK_NUMBER,
};

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
	return 0;
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
	return 0;
}
