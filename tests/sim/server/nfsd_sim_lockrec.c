/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks seen from outside: what was held when the server was restarted, and
 * whether its holder works on as if it still had it; another client; who waits.
 */
#include "nfsd_sim_held.h"

/* ---- held at the restart ---- */

struct lock_held {
	struct list link;
	uint8_t client[1024]; /* co_ownerid */
	uint32_t client_len;
	uint8_t open_owner[1024];
	uint32_t open_owner_len;
	struct lock_range r; /* without its client */
	bool done;           /* reclaimed, refused, or given up */
};

static struct lock_held *held_of(struct list *node)
{
	return container_of(node, struct lock_held, link);
}

static bool is_of(const struct lock_held *h, const struct client *cl)
{
	return h->client_len == cl->owner_len && !memcmp(h->client, cl->owner, cl->owner_len);
}

static bool same_owner(const struct lock_range *a, const struct lock_range *b)
{
	return a->node == b->node && a->owner_len == b->owner_len &&
	       !memcmp(a->owner, b->owner, a->owner_len);
}

static void drop(struct nfsd_sim *sim, const struct client *cl)
{
	list_for_each_safe (node, next, &sim->lock_held) {
		struct lock_held *h = held_of(node);

		if (!cl || is_of(h, cl)) {
			list_del(&h->link);
			free(h);
		}
	}
}

static void note(struct nfsd_sim *sim, const struct lock_state *ls, const struct lock_range *r)
{
	struct lock_held *h;

	list_for_each (node, &sim->lock_held) {
		h = held_of(node);
		if (same_owner(&h->r, r) && h->r.first == r->first && h->r.last == r->last &&
			h->r.write == r->write)
			return;
	}
	h = calloc(1, sizeof(*h));
	memcpy(h->client, ls->open->client->owner, ls->open->client->owner_len);
	h->client_len = ls->open->client->owner_len;
	memcpy(h->open_owner, ls->open->owner, ls->open->owner_len);
	h->open_owner_len = ls->open->owner_len;
	h->r = *r;
	h->r.client = NULL;
	list_push_back(&sim->lock_held, &h->link);
}

void lock_held_note(struct nfsd_sim *sim)
{
	list_for_each (node, &sim->clients) {
		const struct client *cl = container_of(node, struct client, link);

		/* Who was in the middle of it may go on with that. */
		if (cl->confirmed && cl->reclaimed)
			drop(sim, cl);
	}
	list_for_each (lnode, &sim->lock_states) {
		const struct lock_state *ls = container_of(lnode, struct lock_state, link);

		list_for_each (rnode, &sim->lock_ranges) {
			const struct lock_range *r = container_of(rnode, struct lock_range, link);

			if (!ls->open->revoked && r->client == ls->open->client &&
				r->node == ls->open->node && r->owner_len == ls->owner_len &&
				!memcmp(r->owner, ls->owner, r->owner_len))
				note(sim, ls, r);
		}
	}
	list_for_each (hnode, &sim->lock_held)
		held_of(hnode)->done = false;
}

void lock_held_free(struct nfsd_sim *sim)
{
	drop(sim, NULL);
}

/* Does it know? The part of a range that it was told about stands for all of it. */
void lock_held_done(struct nfsd_sim *sim, const struct lock_range *r)
{
	list_for_each (node, &sim->lock_held) {
		struct lock_held *h = held_of(node);

		if (same_owner(&h->r, r) && h->r.first <= r->last && h->r.last >= r->first)
			h->done = true;
	}
}

uint32_t lock_held_reclaim(struct cmp *c, const struct lock_range *r)
{
	list_for_each (node, &c->sim->lock_held) {
		const struct lock_held *h = held_of(node);

		if (is_of(h, c->sess->client) && same_owner(&h->r, r) && h->r.first <= r->first &&
			h->r.last >= r->last && h->r.write == r->write)
			return ST_OK;
	}
	if (c->sim->conf.tolerant_state)
		return ST_OK; /* nfsd does not know either */
	fab_sim_fail("xid %#x: reclaim of a lock that was not there", c->job->xid);
	return ST_RECLAIM_BAD;
}

void lock_held_complete(struct cmp *c)
{
	list_for_each (node, &c->sim->lock_held) {
		const struct lock_held *h = held_of(node);

		if (is_of(h, c->sess->client) && !h->done)
			c->sim->stats.locks_not_reclaimed++;
	}
}

void lock_held_close(struct nfsd_sim *sim, const struct open_state *o)
{
	list_for_each (node, &sim->lock_held) {
		struct lock_held *h = held_of(node);

		if (h->r.node == o->node && h->open_owner_len == o->owner_len &&
			!memcmp(h->open_owner, o->owner, o->owner_len))
			h->done = true;
	}
}

void lock_held_io(struct cmp *c, const struct open_state *o)
{
	if (c->sim->conf.tolerant_state)
		return;
	list_for_each (node, &c->sim->lock_held) {
		const struct lock_held *h = held_of(node);

		if (!h->done && h->r.node == o->node && is_of(h, o->client) &&
			h->open_owner_len == o->owner_len &&
			!memcmp(h->open_owner, o->owner, o->owner_len))
			fab_sim_fail("xid %#x: the open is used before its locks are reclaimed",
				c->job->xid);
	}
}

/* ---- another client ---- */

static bool other_range(
	struct nfsd_sim *sim, const char *path, uint64_t off, uint64_t len, struct lock_range *r)
{
	memset(r, 0, sizeof(*r));
	r->node = tree_path(&sim->tree, path);
	r->first = off;
	r->last = len == UINT64_MAX ? UINT64_MAX : off + len - 1;
	r->owner_len = 5;
	memcpy(r->owner, "other", 5);
	return r->node != NULL;
}

bool nfsd_sim_lock(struct nfsd_sim *sim, const char *path, uint64_t off, uint64_t len, bool write)
{
	struct lock_range r;
	bool ok;

	pthread_mutex_lock(&sim->lock);
	ok = other_range(sim, path, off, len, &r);
	r.write = write;
	ok = ok && !ranges_conflict(sim, &r);
	if (ok)
		ranges_set(sim, &r);
	pthread_mutex_unlock(&sim->lock);
	return ok;
}

void nfsd_sim_unlock(struct nfsd_sim *sim, const char *path, uint64_t off, uint64_t len)
{
	struct lock_range r;

	pthread_mutex_lock(&sim->lock);
	if (other_range(sim, path, off, len, &r))
		ranges_clear(sim, &r);
	pthread_mutex_unlock(&sim->lock);
}

unsigned int nfsd_sim_locks(
	struct nfsd_sim *sim, const char *path, struct nfsd_sim_range *ranges, unsigned int max)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->lock_ranges) {
		const struct lock_range *r = container_of(node, struct lock_range, link);
		struct rd number = {r->owner + r->owner_len - 8, r->owner + r->owner_len, false};

		if (!r->client || (path && r->node != tree_path(&sim->tree, path)))
			continue;
		if (cnt < max)
			ranges[cnt] =
				(struct nfsd_sim_range){r->owner_len == 16 ? rd_u64(&number) : 0,
					r->first, r->last, r->write};
		cnt++;
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

unsigned int nfsd_sim_live_lock_states(struct nfsd_sim *sim)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->lock_states)
		cnt++;
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

/* ---- who waits ---- */

void waiter_note(struct nfsd_sim *sim, const struct lock_range *r)
{
	struct lock_range *w = malloc(sizeof(*w));

	*w = *r;
	list_push_back(&sim->lock_waiters, &w->link);
}

void waiters_drop(struct nfsd_sim *sim, const struct client *cl)
{
	list_for_each_safe (node, next, &sim->lock_waiters) {
		struct lock_range *w = container_of(node, struct lock_range, link);

		if (cl && w->client != cl)
			continue;
		list_del(&w->link);
		free(w);
	}
}

unsigned int nfsd_sim_notify_locks(struct nfsd_sim *sim)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->lock_waiters)
		cnt += callback_lock(sim, container_of(node, struct lock_range, link));
	waiters_drop(sim, NULL);
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}
