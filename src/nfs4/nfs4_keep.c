/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_keep_int.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_deleg.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"
#include "nfs4_tables.h"

/* One process does not use up so many numbers after it wrote down which is the next one. */
#define NUMBERS_ON (1ull << 32)

/* ---- a stateid ---- */

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

void nfs4_keep_live(struct nfs4_client *cl, struct live *live, const struct slab_memory *bufs)
{
	cl->live = live;
	cl->ranges_max = live ? NFS4_KEEP_RANGES : 0;
	cl->conf.rdma.data_mem = *bufs;
}

int nfs4_keep_before(struct nfs4_client *cl, int fd)
{
	cl->before = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return cl->before < 0 ? -errno : 0;
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

void nfs4_keep_get_session(const struct tables_record *r, struct nfs4_client *cl)
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
	nfs4_keep_get_session(r, cl);
	if (!sequence_known) {
		atomic_fetch_add(&cl->owner_next, NUMBERS_ON);
		atomic_fetch_add(&cl->verf_next, NUMBERS_ON);
	}
	/* Generations count in this process only: what is there is of the first. */
	cl->left_gen = (uint32_t)tables_get(r, CLIENT_GEN);
	cl->id_gen = 1;
	atomic_store(&cl->generation, 1);
	cl->states.id_gen = 1;
	cl->reclaim_done = !tables_get(r, CLIENT_UNRECLAIMED);
	cl->states.may_reclaim = !cl->reclaim_done;
	nfs4_live_client(cl);
	return 0;
}

/* ---- opens ---- */

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
	if ((uint32_t)tables_get(r, STATE_GEN) != cl->left_gen)
		st->id_gen--;
	if (tables_get(r, STATE_LOST))
		nfs4_state_move(st, &all->lost, NFS4_STATE_LOST);
	else
		nfs4_state_place(all, st, st->id_gen);
	nfs4_live_state(st, cl);
	mutex_unlock(&all->lock);
	return 0;
}

void nfs4_keep_get_served(struct nfs4_client *cl, struct nfs4_state *st, const struct nfs4_fh *fh,
	const struct rpc_cred *cred, uint32_t share_access, uint64_t owner, uint64_t fileid)
{
	struct nfs4_states *all = &cl->states;

	mutex_lock(&all->lock);
	nfs4_state_begin(st, cl, fh, cred, owner);
	st->share_access = share_access;
	st->fileid = fileid;
	st->id_gen = all->id_gen;
	st->was_served = true;
	nfs4_state_move(st, &all->reopen, NFS4_STATE_BAD);
	mutex_unlock(&all->lock);
}

/* ---- delegations ---- */

int nfs4_keep_get_deleg(const struct tables_record *r, struct nfs4_client *cl)
{
	struct nfs4_states *all = &cl->states;
	struct nfs4_stateid sid;
	struct rpc_cred cred;
	struct nfs4_fh fh;
	size_t len;
	const void *p = tables_get_bytes(r, DELEG_FH, &len);

	if (!p || len > sizeof(fh.data) || !get_stateid(r, DELEG_STATEID, &sid) ||
		!nfs4_tables_get_cred(r, DELEG_CRED, &cred))
		return -EBADMSG;
	memcpy(fh.data, p, len);
	fh.len = (uint32_t)len;
	mutex_lock(&all->lock);
	sid.seqid = 0; /* RFC 8881 section 8.2.2: whichever is the newest */
	if ((uint32_t)tables_get(r, DELEG_GEN) == cl->left_gen) {
		nfs4_return_list_push(all, &fh, &sid, &cred, all->id_gen);
		all->delegs.left = true;
	}
	mutex_unlock(&all->lock);
	return 0;
}

void nfs4_keep_replaying(struct nfs4_client *cl)
{
	mutex_lock(&cl->states.lock);
	cl->states.delegs.left = cl->states.delegs.replaying = true;
	mutex_unlock(&cl->states.lock);
}

void nfs4_keep_replayed(struct nfs4_session *s)
{
	struct nfs4_states *all = &s->cl->states;

	mutex_lock(&all->lock);
	all->delegs.replaying = false;
	mutex_unlock(&all->lock);
	nfs4_lease_kick(s);
}

/* ---- locks ---- */

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

uint64_t nfs4_keep_owner_of(const struct tables_record *r)
{
	return tables_get(r, STATE_OWNER);
}

uint64_t nfs4_keep_number_of(const struct tables_record *r)
{
	return tables_get(r, LOCK_NUMBER);
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
	nfs4_live_locks(lo);
	mutex_unlock(&cl->states.lock);
	return err;
}
