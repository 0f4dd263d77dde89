/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_keep.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_lock.h"
#include "nfs4_session_int.h"
#include "nfs4_tables.h"

/* Fields; a number never gets another meaning. */
enum {
	CLIENT_VERIFIER = 1,
	CLIENT_ID = 2,
	CLIENT_SEQUENCE = 3, /* csa_sequence of the next CREATE_SESSION */
	CLIENT_MINOR = 4,
	CLIENT_OWNER_NEXT = 5,
	CLIENT_VERF_NEXT = 6,
	CLIENT_SERVER_MAJOR = 7, /* eir_server_owner */
	CLIENT_SERVER_SCOPE = 8,
	CLIENT_SESSION = 9, /* several */
	CLIENT_OWNER = 10,
};

enum {
	STATE_STATEID = NFS4_KEEP_FIELDS,
	STATE_OWNER,
	STATE_CRED,
	STATE_ACCESS,
	STATE_MODES,
	STATE_FILEID,
	STATE_LOST,
};

enum {
	LOCK_NUMBER = NFS4_KEEP_FIELDS + 50,
	LOCK_STATEID,
	LOCK_RANGE, /* several: first, last, write */
	LOCK_DOUBT, /* the same, one */
};

#define STATEID_LEN 16u
#define RANGE_LEN   17u

/* ---- a stateid ---- */

static void put_stateid(struct tables_out *t, uint16_t field, const struct nfs4_stateid *id)
{
	uint8_t bytes[STATEID_LEN];
	uint32_t seqid = htole32(id->seqid);

	memcpy(bytes, &seqid, sizeof(seqid));
	memcpy(bytes + sizeof(seqid), id->other, sizeof(id->other));
	tables_put_bytes(t, field, bytes, sizeof(bytes));
}

static bool get_stateid(const struct tables_record *r, uint16_t field, struct nfs4_stateid *ret)
{
	uint8_t bytes[STATEID_LEN];
	uint32_t seqid;

	if (!tables_copy(r, field, bytes, sizeof(bytes)))
		return false;
	memcpy(&seqid, bytes, sizeof(seqid));
	ret->seqid = le32toh(seqid);
	memcpy(ret->other, bytes + sizeof(seqid), sizeof(ret->other));
	return true;
}

/* ---- the client ---- */

const char *nfs4_keep_obstacle(struct nfs4_client *cl)
{
	struct nfs4_states *all = &cl->states;
	const char *what = NULL;

	mutex_lock(&cl->offloads.lock);
	if (!list_empty(&cl->offloads.waiting))
		what = "the server copies";
	mutex_unlock(&cl->offloads.lock);
	mutex_lock(&all->lock);
	if (all->delegs.cnt > 0 || !list_empty(&all->delegs.returns) ||
		!list_empty(&all->delegs.returning))
		what = "delegations are returned";
	if (!list_empty(&all->revoke.revoked) || all->revoke.freeing > 0 || all->revoke.tester)
		what = "what the server revoked is freed";
	if (!cl->have_id || !cl->reclaim_done || all->id_gen != cl->id_gen ||
		!list_empty(&all->reclaim) || !list_empty(&all->reopen) ||
		!list_empty(&all->in_hand))
		what = "opens and locks are reclaimed";
	mutex_unlock(&all->lock);
	return what;
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
}

void nfs4_keep_put_session(struct tables_out *t, const struct nfs4_session *s)
{
	if (s->have_session)
		tables_put_bytes(t, CLIENT_SESSION, s->id.data, sizeof(s->id.data));
}

static uint32_t get_opaque(const struct tables_record *r, uint16_t field, uint8_t *to)
{
	size_t len;
	const void *p = tables_get_bytes(r, field, &len);

	if (!p || len > NFS4_OPAQUE_LIMIT)
		return 0;
	memcpy(to, p, len);
	return (uint32_t)len;
}

static void get_sessions(const struct tables_record *r, struct nfs4_client *cl)
{
	const void *p = NULL;
	size_t len;

	while (cl->left_cnt < NFS4_SESSIONS_LEFT &&
		(p = tables_get_next(r, CLIENT_SESSION, p, &len)))
		if (len == sizeof(cl->left[0].data))
			memcpy(cl->left[cl->left_cnt++].data, p, len);
}

int nfs4_keep_get_client(const struct tables_record *r, struct nfs4_client *cl, bool sequence_known)
{
	uint64_t minor = tables_get(r, CLIENT_MINOR);
	const char *owner;
	size_t len;

	owner = tables_get_bytes(r, CLIENT_OWNER, &len);
	if (r->type != NFS4_KEEP_CLIENT || !owner || minor < 1 || minor > cl->conf.minor_max ||
		len != strlen(cl->conf.owner) || memcmp(owner, cl->conf.owner, len) != 0 ||
		!tables_copy(r, CLIENT_VERIFIER, cl->verf.data, sizeof(cl->verf.data)))
		return -EBADMSG;
	cl->minor = (unsigned int)minor;
	cl->clientid = tables_get(r, CLIENT_ID);
	cl->sequence = (uint32_t)tables_get(r, CLIENT_SEQUENCE);
	cl->sequence_lost = !sequence_known;
	atomic_store(&cl->owner_next, tables_get(r, CLIENT_OWNER_NEXT));
	atomic_store(&cl->verf_next, tables_get(r, CLIENT_VERF_NEXT));
	cl->server.major_len = get_opaque(r, CLIENT_SERVER_MAJOR, cl->server.major);
	cl->server.scope_len = get_opaque(r, CLIENT_SERVER_SCOPE, cl->server.scope);
	get_sessions(r, cl);
	/* Generations count in this process only: what is there is of the first. */
	cl->id_gen = 1;
	atomic_store(&cl->generation, 1);
	cl->states.id_gen = 1;
	cl->reclaim_done = true;
	return 0;
}

/* ---- opens ---- */

void nfs4_keep_put_state(struct tables_out *t, struct nfs4_state *st)
{
	put_stateid(t, STATE_STATEID, &st->stateid);
	tables_put(t, STATE_OWNER, st->owner);
	nfs4_tables_put_cred(t, STATE_CRED, &st->cred);
	tables_put(t, STATE_ACCESS, st->share_access);
	tables_put(t, STATE_MODES, st->modes);
	tables_put(t, STATE_FILEID, st->fileid);
	tables_put(t, STATE_LOST, st->status == NFS4_STATE_LOST);
}

int nfs4_keep_get_state(const struct tables_record *r, struct nfs4_client *cl,
	struct nfs4_state *st, const struct nfs4_fh *fh)
{
	uint64_t access = tables_get(r, STATE_ACCESS), modes = tables_get(r, STATE_MODES);
	struct nfs4_states *all = &cl->states;
	struct nfs4_stateid stateid;
	struct rpc_cred cred;

	if (!get_stateid(r, STATE_STATEID, &stateid) ||
		!nfs4_tables_get_cred(r, STATE_CRED, &cred) || access == 0 ||
		access > OPEN4_SHARE_ACCESS_BOTH || modes >= 1u << (OPEN4_SHARE_ACCESS_BOTH + 1))
		return -EBADMSG;
	mutex_lock(&all->lock);
	nfs4_state_begin(st, cl, fh, &cred, tables_get(r, STATE_OWNER));
	st->share_access = (uint32_t)access;
	st->modes = (uint32_t)modes;
	st->fileid = tables_get(r, STATE_FILEID);
	st->stateid = stateid;
	st->id_gen = all->id_gen;
	if (tables_get(r, STATE_LOST))
		nfs4_state_move(st, &all->lost, NFS4_STATE_LOST);
	else
		nfs4_state_place(all, st, all->id_gen);
	mutex_unlock(&all->lock);
	return 0;
}

/* ---- locks ---- */

static void put_range(
	struct tables_out *t, uint16_t field, uint64_t first, uint64_t last, bool write)
{
	uint64_t numbers[2] = {htole64(first), htole64(last)};
	uint8_t bytes[RANGE_LEN];

	memcpy(bytes, numbers, sizeof(numbers));
	bytes[RANGE_LEN - 1] = write;
	tables_put_bytes(t, field, bytes, sizeof(bytes));
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

static bool get_range(const uint8_t *p, size_t len, struct nfs4_lockrange *ret)
{
	uint64_t numbers[2];

	if (len != RANGE_LEN)
		return false;
	memcpy(numbers, p, sizeof(numbers));
	ret->first = le64toh(numbers[0]);
	ret->last = le64toh(numbers[1]);
	ret->write = p[RANGE_LEN - 1];
	return ret->first <= ret->last;
}

static int get_ranges(const struct tables_record *r, struct nfs4_lockowner *lo)
{
	const void *p = NULL;
	size_t len;
	int err = 0;

	while (!err && (p = tables_get_next(r, LOCK_RANGE, p, &len))) {
		struct nfs4_lockrange got, *spare[2] = {malloc(sizeof(got)), malloc(sizeof(got))};

		if (!spare[0] || !spare[1])
			err = -ENOMEM;
		else if (!get_range(p, len, &got))
			err = -EBADMSG;
		else
			nfs4_lockrange_set(&lo->ranges, got.first, got.last, got.write, spare);
		free(spare[0]);
		free(spare[1]);
	}
	return err;
}

int nfs4_keep_get_lockowner(const struct tables_record *r, struct nfs4_client *cl,
	struct nfs4_lockowner *lo, struct nfs4_state *st)
{
	struct nfs4_lockrange doubt;
	size_t len;
	const void *p = tables_get_bytes(r, LOCK_DOUBT, &len);
	int err;

	nfs4_lockowner_init(lo, cl);
	lo->number = tables_get(r, LOCK_NUMBER);
	mutex_lock(&cl->states.lock);
	nfs4_lock_hang(lo, st);
	lo->has_stateid = get_stateid(r, LOCK_STATEID, &lo->stateid);
	err = get_ranges(r, lo);
	if (p && get_range(p, len, &doubt)) {
		lo->doubt = true;
		lo->doubt_first = doubt.first;
		lo->doubt_last = doubt.last;
		lo->doubt_write = doubt.write;
	}
	mutex_unlock(&cl->states.lock);
	return err;
}
