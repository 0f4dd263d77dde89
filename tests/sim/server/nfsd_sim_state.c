/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients had open or delegated when the server was restarted: who may reclaim what. */
#include "nfsd_sim_held.h"

#include <stdlib.h>

struct held {
	struct list link;
	uint8_t client[1024], owner[1024]; /* co_ownerid, open owner */
	uint32_t client_len, owner_len;
	uint64_t node;
	uint32_t access;
	bool done;     /* reclaimed */
	bool revoked;  /* was not its any more: may be asked for, by who had not heard of it */
	uint32_t gone; /* the same of one before it that was revoked, when it was opened anew */
	bool noted;    /* by this restart */
};

#define UNSURE_NS NSEC_PER_SEC

/* What an open was for before its CLOSE or OPEN_DOWNGRADE. */
struct held_less {
	struct list link;
	uint8_t client[1024], owner[1024];
	uint32_t client_len, owner_len;
	uint64_t node, when_ns;
	uint32_t access;
};

struct held_deleg {
	struct list link;
	uint8_t client[1024];
	uint32_t client_len;
	uint64_t node;
	uint32_t type, uid;
	bool revoked; /* as held.revoked */
};

static bool is_of(const struct held *h, const struct client *cl)
{
	return h->client_len == cl->owner_len && !memcmp(h->client, cl->owner, cl->owner_len);
}

static struct held_deleg *find_deleg(struct nfsd_sim *sim, const struct client *cl, uint64_t node)
{
	list_for_each (pos, &sim->held_deleg) {
		struct held_deleg *h = container_of(pos, struct held_deleg, link);

		if (h->node == node && h->client_len == cl->owner_len &&
			!memcmp(h->client, cl->owner, cl->owner_len))
			return h;
	}
	return NULL;
}

static struct held *find(struct nfsd_sim *sim, const struct client *cl, uint64_t node,
	const uint8_t *owner, uint32_t owner_len)
{
	list_for_each (pos, &sim->held) {
		struct held *h = container_of(pos, struct held, link);

		if (h->node == node && is_of(h, cl) && h->owner_len == owner_len &&
			!memcmp(h->owner, owner, owner_len))
			return h;
	}
	return NULL;
}

static void drop(struct nfsd_sim *sim, const struct client *cl)
{
	list_for_each_safe (pos, next, &sim->held) {
		struct held *h = container_of(pos, struct held, link);

		if (!cl || is_of(h, cl)) {
			list_del(&h->link);
			free(h);
		}
	}
	list_for_each_safe (dpos, dnext, &sim->held_deleg) {
		struct held_deleg *h = container_of(dpos, struct held_deleg, link);

		if (!cl || (h->client_len == cl->owner_len &&
				   !memcmp(h->client, cl->owner, cl->owner_len))) {
			list_del(&h->link);
			free(h);
		}
	}
}

static void free_less(struct nfsd_sim *sim, uint64_t before_ns)
{
	list_for_each_safe (pos, next, &sim->held_less) {
		struct held_less *l = container_of(pos, struct held_less, link);

		if (l->when_ns <= before_ns) {
			list_del(&l->link);
			free(l);
		}
	}
}

void held_less(struct cmp *c, const struct open_state *o)
{
	struct held_less *l = calloc(1, sizeof(*l));

	l->when_ns = now_of(c->conn->reactor);
	free_less(c->sim, l->when_ns > UNSURE_NS ? l->when_ns - UNSURE_NS : 0);
	memcpy(l->client, o->client->owner, o->client->owner_len);
	l->client_len = o->client->owner_len;
	memcpy(l->owner, o->owner, o->owner_len);
	l->owner_len = o->owner_len;
	l->node = o->node->id;
	l->access = o->access;
	list_push_back(&c->sim->held_less, &l->link);
}

/* Was it open for more a moment before the restart? */
static uint32_t unsure_access(struct nfsd_sim *sim, const struct client *cl, uint64_t node,
	const uint8_t *owner, uint32_t owner_len)
{
	uint32_t access = 0;

	list_for_each (pos, &sim->held_less) {
		const struct held_less *l = container_of(pos, struct held_less, link);

		if (l->node == node && l->client_len == cl->owner_len &&
			!memcmp(l->client, cl->owner, cl->owner_len) && l->owner_len == owner_len &&
			!memcmp(l->owner, owner, owner_len))
			access |= l->access;
	}
	return access;
}

static void note_deleg(struct nfsd_sim *sim, const struct deleg *d)
{
	struct held_deleg *h = find_deleg(sim, d->client, d->node->id);

	if (!h) {
		h = calloc(1, sizeof(*h));
		memcpy(h->client, d->client->owner, d->client->owner_len);
		h->client_len = d->client->owner_len;
		h->node = d->node->id;
		list_push_back(&sim->held_deleg, &h->link);
	}
	h->type = d->type;
	h->uid = d->uid;
	h->revoked = d->revoked;
}

static void note_open(struct nfsd_sim *sim, const struct open_state *o)
{
	struct held *h = find(sim, o->client, o->node->id, o->owner, o->owner_len);

	if (!h) {
		h = calloc(1, sizeof(*h));
		memcpy(h->client, o->client->owner, o->client->owner_len);
		h->client_len = o->client->owner_len;
		memcpy(h->owner, o->owner, o->owner_len);
		h->owner_len = o->owner_len;
		h->node = o->node->id;
		list_push_back(&sim->held, &h->link);
	}
	if (!h->noted) {
		h->gone = 0;
	} else if (o->revoked) {
		h->gone |= o->access;
		return;
	} else if (h->revoked) {
		h->gone |= h->access;
	}
	h->noted = true;
	h->access = o->access;
	h->revoked = o->revoked;
}

void held_note(struct nfsd_sim *sim)
{
	uint64_t now = sim_now(sim);

	free_less(sim, now > UNSURE_NS ? now - UNSURE_NS : 0);
	/* Who has not said RECLAIM_COMPLETE since the last restart may go on with that. */
	list_for_each (pos, &sim->clients) {
		struct client *cl = container_of(pos, struct client, link);

		if (cl->confirmed && cl->reclaimed)
			drop(sim, cl);
	}
	list_for_each (npos, &sim->held)
		container_of(npos, struct held, link)->noted = false;
	list_for_each (opos, &sim->opens)
		note_open(sim, container_of(opos, struct open_state, link));
	list_for_each (dpos, &sim->delegs)
		note_deleg(sim, container_of(dpos, struct deleg, link));
	list_for_each (hpos, &sim->held)
		container_of(hpos, struct held, link)->done = false;
}

void held_free(struct nfsd_sim *sim)
{
	drop(sim, NULL);
	free_less(sim, UINT64_MAX);
}

/* What the file was open for by this owner, or may have been by its delegation. */
static uint32_t held_access(const struct held *h, const struct held_deleg *d)
{
	uint32_t access = h ? h->access : 0;

	if (d)
		access |= d->type == NFSD_SIM_DELEG_WRITE ? 3 : 1;
	return access;
}

uint32_t held_reclaim(struct cmp *c, const uint8_t *owner, uint32_t owner_len, uint32_t access,
	uint32_t deleg_type)
{
	struct client *cl = c->sess->client;
	struct held *h = find(c->sim, cl, c->cur->id, owner, owner_len);
	const struct held_deleg *d = find_deleg(c->sim, cl, c->cur->id);
	uint32_t had;

	if (cl->reclaimed) {
		BLAME_STATE(c, "xid %#x: reclaim after RECLAIM_COMPLETE", c->job->xid);
		return ST_NO_GRACE;
	}
	if (deleg_type && (!d || d->type != deleg_type)) {
		BLAME_STATE(c, "xid %#x: reclaim of a delegation that was not there", c->job->xid);
		return ST_RECLAIM_BAD;
	}
	if ((h && h->revoked) || (!h && d && d->revoked))
		return ST_RECLAIM_BAD;
	had = held_access(h, d) | unsure_access(c->sim, cl, c->cur->id, owner, owner_len);
	if (h && access & h->gone & ~had && !(access & ~(had | h->gone)))
		return ST_RECLAIM_BAD;
	if (access & ~had) {
		BLAME_STATE(c, "xid %#x: reclaim of an open that was not there", c->job->xid);
		return ST_RECLAIM_BAD;
	}
	if (h)
		h->done = true;
	c->sim->stats.reclaims++;
	return ST_OK;
}

uint32_t held_deleg_uid(struct nfsd_sim *sim, const struct client *cl, const struct node *n)
{
	const struct held_deleg *h = find_deleg(sim, cl, n->id);

	return h ? h->uid : 0;
}

void held_complete(struct cmp *c)
{
	list_for_each (pos, &c->sim->held) {
		const struct held *h = container_of(pos, struct held, link);

		if (is_of(h, c->sess->client) && !h->done && !h->revoked)
			c->sim->stats.not_reclaimed++;
	}
}

void nfsd_sim_end_grace(struct nfsd_sim *sim)
{
	pthread_mutex_lock(&sim->lock);
	sim->grace_until_ns = 0;
	pthread_mutex_unlock(&sim->lock);
}
