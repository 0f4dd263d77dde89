/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients had open when the server was restarted: who may reclaim what. */
#include "nfsd_sim_int.h"

#include <stdlib.h>

struct held {
	struct list link;
	uint8_t client[1024], owner[1024]; /* co_ownerid, open owner */
	uint32_t client_len, owner_len;
	uint64_t node;
	uint32_t access;
	bool done;    /* reclaimed */
	bool revoked; /* was not its any more: may be asked for, by who had not heard of it */
};

static bool is_of(const struct held *h, const struct client *cl)
{
	return h->client_len == cl->owner_len && !memcmp(h->client, cl->owner, cl->owner_len);
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
}

void held_note(struct nfsd_sim *sim)
{
	/* Who has not said RECLAIM_COMPLETE since the last restart may go on with that. */
	list_for_each (pos, &sim->clients) {
		struct client *cl = container_of(pos, struct client, link);

		if (cl->confirmed && cl->reclaimed)
			drop(sim, cl);
	}
	list_for_each (opos, &sim->opens) {
		struct open_state *o = container_of(opos, struct open_state, link);
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
		h->access = o->access;
		h->revoked = o->revoked;
	}
	list_for_each (hpos, &sim->held)
		container_of(hpos, struct held, link)->done = false;
}

void held_free(struct nfsd_sim *sim)
{
	drop(sim, NULL);
}

uint32_t held_reclaim(struct cmp *c, const uint8_t *owner, uint32_t owner_len, uint32_t access)
{
	struct client *cl = c->sess->client;
	struct held *h = find(c->sim, cl, c->cur->id, owner, owner_len);

	if (cl->reclaimed) {
		fab_sim_fail("xid %#x: reclaim after RECLAIM_COMPLETE", c->job->xid);
		return ST_NO_GRACE;
	}
	if (h && h->revoked)
		return ST_RECLAIM_BAD;
	if (!h || h->access != (access & 3)) {
		fab_sim_fail("xid %#x: reclaim of an open that was not there", c->job->xid);
		return ST_RECLAIM_BAD;
	}
	h->done = true;
	c->sim->stats.reclaims++;
	return ST_OK;
}

void held_complete(struct cmp *c)
{
	list_for_each (pos, &c->sim->held) {
		const struct held *h = container_of(pos, struct held, link);

		if (is_of(h, c->sess->client) && !h->done && !h->revoked)
			c->sim->stats.not_reclaimed++;
	}
}
