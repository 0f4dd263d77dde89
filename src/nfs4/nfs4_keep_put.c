/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_keep_int.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "nfs4_lock.h"
#include "nfs4_session_int.h"
#include "nfs4_tables.h"

static void put_stateid(struct tables_out *t, uint16_t field, const struct nfs4_stateid *id)
{
	uint8_t bytes[STATEID_LEN];
	uint32_t seqid = htole32(id->seqid);

	memcpy(bytes, &seqid, sizeof(seqid));
	memcpy(bytes + sizeof(seqid), id->other, sizeof(id->other));
	tables_put_bytes(t, field, bytes, sizeof(bytes));
}

void nfs4_keep_put_client(struct tables_out *t, struct nfs4_client *cl)
{
	tables_record(t, NFS4_KEEP_CLIENT);
	tables_put_bytes(t, CLIENT_VERIFIER, cl->verf.data, sizeof(cl->verf.data));
	tables_put_bytes(t, CLIENT_OWNER, cl->conf.owner, strlen(cl->conf.owner));
	tables_put(t, CLIENT_ID, cl->clientid);
	tables_put(t, CLIENT_SEQUENCE, cl->sequence);
	tables_put(t, CLIENT_MINOR, cl->minor);
	tables_put(t, CLIENT_OWNER_NEXT, atomic_load(&cl->owner_next));
	tables_put(t, CLIENT_VERF_NEXT, atomic_load(&cl->verf_next));
	tables_put_bytes(t, CLIENT_SERVER_MAJOR, cl->server.major, cl->server.major_len);
	tables_put_bytes(t, CLIENT_SERVER_SCOPE, cl->server.scope, cl->server.scope_len);
	tables_put(t, CLIENT_GEN, cl->id_gen);
	tables_put(t, CLIENT_UNRECLAIMED, !cl->reclaim_done);
}

void nfs4_keep_put_session(struct tables_out *t, const struct nfs4_session *s)
{
	if (s->have_session)
		tables_put_bytes(t, CLIENT_SESSION, s->id.data, sizeof(s->id.data));
}

void nfs4_keep_put_state(struct tables_out *t, struct nfs4_state *st)
{
	put_stateid(t, STATE_STATEID, &st->stateid);
	tables_put(t, STATE_OWNER, st->owner);
	nfs4_tables_put_cred(t, STATE_CRED, &st->cred);
	tables_put(t, STATE_ACCESS, st->share_access);
	tables_put(t, STATE_MODES, st->modes);
	tables_put(t, STATE_FILEID, st->fileid);
	tables_put(t, STATE_LOST, st->status == NFS4_STATE_LOST);
	tables_put(t, STATE_GEN, st->id_gen);
}

void nfs4_keep_put_deleg(struct tables_out *t, const struct nfs4_fh *fh,
	const struct nfs4_stateid *sid, const struct rpc_cred *cred, uint32_t id_gen)
{
	tables_put_bytes(t, DELEG_FH, fh->data, fh->len);
	put_stateid(t, DELEG_STATEID, sid);
	nfs4_tables_put_cred(t, DELEG_CRED, cred);
	tables_put(t, DELEG_GEN, id_gen);
}

static void put_range(
	struct tables_out *t, uint16_t field, uint64_t first, uint64_t last, bool write)
{
	uint64_t numbers[2] = {htole64(first), htole64(last)};
	uint8_t bytes[RANGE_LEN];

	memcpy(bytes, numbers, sizeof(numbers));
	bytes[RANGE_LEN - 1] = write;
	tables_put_bytes(t, field, bytes, sizeof(bytes));
}

void nfs4_keep_put_number(struct tables_out *t, const struct nfs4_lockowner *lo)
{
	tables_put(t, LOCK_NUMBER, lo->number);
}

void nfs4_keep_put_lockowner(struct tables_out *t, struct nfs4_lockowner *lo)
{
	tables_put(t, LOCK_NUMBER, lo->number);
	if (lo->has_stateid)
		put_stateid(t, LOCK_STATEID, &lo->stateid);
	list_for_each (node, &lo->ranges) {
		const struct nfs4_lockrange *range =
			container_of(node, struct nfs4_lockrange, link);

		put_range(t, LOCK_RANGE, range->first, range->last, range->write);
	}
	if (lo->doubt)
		put_range(t, LOCK_DOUBT, lo->doubt_first, lo->doubt_last, lo->doubt_write);
}
