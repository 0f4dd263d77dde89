/* SPDX-License-Identifier: BSD-3-Clause */
/* State that the server takes away while the client ID stays good: it is remembered until freed. */
#include "nfsd_sim_held.h"

#define SEQ4_EXPIRED_ALL        0x08u
#define SEQ4_EXPIRED_SOME       0x10u
#define SEQ4_ADMIN_REVOKED      0x20u
#define SEQ4_RECALLABLE_REVOKED 0x40u

static uint32_t flag_of(uint32_t revoked)
{
	switch (revoked) {
	case 0:
	case ST_BAD_STATEID:
		return 0;
	case ST_EXPIRED:
		return SEQ4_EXPIRED_SOME;
	case ST_ADMIN_REVOKED:
		return SEQ4_ADMIN_REVOKED;
	default:
		return SEQ4_RECALLABLE_REVOKED;
	}
}

uint32_t revoked_flags(const struct nfsd_sim *sim, const struct client *cl)
{
	uint32_t flags = 0;
	bool all = true;

	for (const struct list *node = sim->opens.next; node != &sim->opens; node = node->next) {
		const struct open_state *o = container_of(node, struct open_state, link);

		if (o->client != cl)
			continue;
		all = all && o->revoked == ST_EXPIRED;
		flags |= flag_of(o->revoked);
	}
	for (const struct list *node = sim->delegs.next; node != &sim->delegs; node = node->next) {
		const struct deleg *d = container_of(node, struct deleg, link);

		if (d->client != cl)
			continue;
		all = all && d->revoked == ST_EXPIRED;
		flags |= flag_of(d->revoked);
	}
	if (flags == SEQ4_EXPIRED_SOME && all)
		return SEQ4_EXPIRED_ALL;
	return flags;
}

/* The locks go at once, their stateids when they are freed. */
static void drop_ranges(struct nfsd_sim *sim, const struct open_state *o)
{
	list_for_each (node, &sim->lock_states) {
		const struct lock_state *ls = container_of(node, struct lock_state, link);
		struct lock_range all = {.client = o->client, .node = o->node, .last = UINT64_MAX};

		if (ls->open != o)
			continue;
		all.owner_len = ls->owner_len;
		memcpy(all.owner, ls->owner, ls->owner_len);
		ranges_clear(sim, &all);
	}
}

unsigned int nfsd_sim_revoke(struct nfsd_sim *sim, const char *path, uint32_t status)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->opens) {
		struct open_state *o = container_of(node, struct open_state, link);

		if (path && o->node != tree_path(&sim->tree, path))
			continue;
		o->revoked = status;
		drop_ranges(sim, o);
		cnt++;
	}
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

unsigned int nfsd_sim_revoked(struct nfsd_sim *sim)
{
	unsigned int cnt = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->opens)
		cnt += flag_of(container_of(node, struct open_state, link)->revoked) != 0;
	list_for_each (dnode, &sim->delegs)
		cnt += flag_of(container_of(dnode, struct deleg, link)->revoked) != 0;
	pthread_mutex_unlock(&sim->lock);
	return cnt;
}

void nfsd_sim_swap(struct nfsd_sim *sim, const char *a, const char *b)
{
	struct node *na, *nb;

	pthread_mutex_lock(&sim->lock);
	na = tree_path(&sim->tree, a);
	nb = tree_path(&sim->tree, b);
	for (size_t i = 0; i < sim->tree.cnt; i++) {
		if (sim->tree.nodes[i] == na)
			sim->tree.nodes[i] = nb;
		else if (sim->tree.nodes[i] == nb)
			sim->tree.nodes[i] = na;
	}
	pthread_mutex_unlock(&sim->lock);
}
