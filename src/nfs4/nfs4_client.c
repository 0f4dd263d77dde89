/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client of a mount: what all its lanes share. One lane at a time, the
 * holder of the token, may talk to the server about the client ID or make a
 * session: CREATE_SESSION is answered from a cache of one entry (RFC 8881
 * section 18.36.4), so that two in flight would make one of them a replay or
 * misordered; and of several lanes that find the client ID lost the first
 * makes the new one and the others find it there.
 *
 * I12 (client ID): one session holds the token, and only that one sends what changes the client ID
 *    or makes a session.
 *    Asserted: token_set(), nfs4_client_token_put(), nfs4_client_token_granted(), setup_next(),
 *    nfs4_setup_send()
 *    Test: nfs4_session::lanes_started_together_make_their_sessions_one_by_one
 *
 * Context: any lane. `lock` is held for a few instructions and never across a
 * call to another layer; a token is handed over through the mailbox of the
 * lane that gets it.
 */
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Random, or at least of this moment: unique is enough for every use. */
static void fill_random(void *buf, size_t len)
{
	struct timespec now;

	memset(buf, 0, len);
	if (getrandom(buf, len, 0) == (ssize_t)len)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	memcpy(buf, &now.tv_nsec, len < sizeof(now.tv_nsec) ? len : sizeof(now.tv_nsec));
}

struct nfs4_client *nfs4_client_new(const struct nfs4_conf *conf)
{
	struct nfs4_client *cl;
	uint64_t seed;
	size_t owner_len;

	owner_len = conf->owner ? strlen(conf->owner) : 0;
	if (conf->minor_min < 1 || conf->minor_max < conf->minor_min || owner_len == 0 ||
		owner_len > NFS4_OPAQUE_LIMIT) {
		errno = EINVAL;
		return NULL;
	}
	cl = calloc(1, sizeof(*cl));
	if (!cl)
		return NULL;
	cl->conf = *conf;
	cl->conf.owner = strdup(conf->owner);
	if (!cl->conf.owner) {
		free(cl);
		errno = ENOMEM;
		return NULL;
	}
	mutex_init(&cl->lock, MUTEX_NFS4_CLIENT);
	list_init(&cl->waiters);
	nfs4_state_init(&cl->states);
	nfs4_redo_init(cl);
	nfs4_offload_init(&cl->offloads);
	nfs4_fs_table_init(&cl->file_systems);
	cl->minor = conf->minor_max;
	fill_random(cl->verf.data, sizeof(cl->verf.data));
	fill_random(&seed, sizeof(seed));
	cl->verf_next = seed;
	/*
	 * Owners need to be unique within the client ID only; but a server tells who holds a lock,
	 * and the number of another client's owner should not be one of ours (LOCK4denied).
	 */
	fill_random(&seed, sizeof(seed));
	cl->owner_next = (seed << 32 | 1) & ~NFS4_OWNER_OF_REQUEST;
	return cl;
}

void nfs4_client_free(struct nfs4_client *cl)
{
	if (!cl)
		return;
	nfs4_state_fini(&cl->states);
	nfs4_redo_fini(cl);
	nfs4_offload_fini(&cl->offloads);
	nfs4_fs_table_fini(&cl->file_systems);
	mutex_destroy(&cl->lock);
	free((char *)cl->conf.owner);
	free(cl);
}

const struct nfs4_fsinfo *nfs4_client_fsinfo(const struct nfs4_client *cl)
{
	return &cl->fsinfo;
}

void nfs4_client_on_lock_free(
	struct nfs4_client *cl, void (*fn)(void *ctx, uint64_t number), void *ctx)
{
	cl->lock_free = fn;
	cl->lock_free_ctx = ctx;
}

uint32_t nfs4_client_generation(const struct nfs4_client *cl)
{
	return atomic_load(&cl->generation);
}

uint64_t nfs4_new_owner(struct nfs4_client *cl)
{
	return atomic_fetch_add_explicit(&cl->owner_next, 1, memory_order_relaxed);
}

void nfs4_make_exclusive(struct nfs4_client *cl, struct nfs4_op_open *o)
{
	uint64_t v = atomic_fetch_add_explicit(&cl->verf_next, 1, memory_order_relaxed);

	o->exclusive = true;
	memcpy(o->verf.data, &v, sizeof(o->verf.data));
	clock_gettime(CLOCK_REALTIME, &o->atime);
	o->atime.tv_nsec = (long)(v % NSEC_PER_SEC); /* of a random start */
}

/* ---- the token ---- */

#define TO(name) (1u << NFS4_TOKEN_##name)

/* The only place that changes it; cl->lock is held. */
static void token_set(struct nfs4_session *s, enum nfs4_token_state to)
{
	static const unsigned int legal[] = {
		[NFS4_TOKEN_NONE] = TO(WAITING) | TO(HELD),
		[NFS4_TOKEN_WAITING] = TO(HELD) | TO(NONE),
		[NFS4_TOKEN_HELD] = TO(NONE),
	};

	assert(legal[s->token] & 1u << to); /* I12 */
	s->token = to;
}

bool nfs4_client_token_get(struct nfs4_session *s)
{
	struct nfs4_client *cl = s->cl;
	bool mine;

	mutex_lock(&cl->lock);
	mine = !cl->holder;
	if (mine) {
		cl->holder = s;
		token_set(s, NFS4_TOKEN_HELD);
	} else {
		token_set(s, NFS4_TOKEN_WAITING);
		list_push_back(&cl->waiters, &s->token_link);
	}
	mutex_unlock(&cl->lock);
	return mine;
}

void nfs4_client_token_granted(struct nfs4_session *s)
{
	struct nfs4_client *cl = s->cl;

	mutex_lock(&cl->lock);
	assert(cl->holder == s); /* I12 */
	token_set(s, NFS4_TOKEN_HELD);
	mutex_unlock(&cl->lock);
}

void nfs4_client_token_put(struct nfs4_session *s)
{
	struct nfs4_client *cl = s->cl;
	struct list *first;

	mutex_lock(&cl->lock);
	assert(cl->holder == s); /* I12 */
	token_set(s, NFS4_TOKEN_NONE);
	cl->holder = NULL;
	first = list_pop_front(&cl->waiters);
	if (first) {
		struct nfs4_session *next = container_of(first, struct nfs4_session, token_link);

		cl->holder = next;
		/*
		 * Under the lock: a waiter goes away only after nfs4_client_token_cancel(), which
		 * takes it, so its reactor lives until the message is posted.
		 */
		reactor_post(next->r, &next->token_msg);
	}
	mutex_unlock(&cl->lock);
}

bool nfs4_client_token_cancel(struct nfs4_session *s)
{
	struct nfs4_client *cl = s->cl;
	bool was_waiting;

	mutex_lock(&cl->lock);
	was_waiting = list_is_linked(&s->token_link);
	if (was_waiting) {
		list_del(&s->token_link);
		token_set(s, NFS4_TOKEN_NONE);
	}
	mutex_unlock(&cl->lock);
	return was_waiting;
}

/* ---- how many sessions the server has of us: the last one out ends the client ID ---- */

void nfs4_client_session_made(struct nfs4_client *cl)
{
	mutex_lock(&cl->lock);
	cl->sess_cnt++;
	mutex_unlock(&cl->lock);
}

unsigned int nfs4_client_session_gone(struct nfs4_client *cl)
{
	unsigned int left;

	mutex_lock(&cl->lock);
	left = --cl->sess_cnt;
	mutex_unlock(&cl->lock);
	return left;
}

void nfs4_client_server_impl(struct nfs4_client *cl, char *text, size_t len)
{
	mutex_lock(&cl->lock);
	snprintf(text, len, "%s", cl->server.impl);
	mutex_unlock(&cl->lock);
}
