/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define SIZE_MIN 64u

/* len: at most 256, which are never a part of what was asked for. */
static void randomize(void *v, size_t len)
{
	while (getrandom(v, len, 0) != (ssize_t)len)
		;
}

/* 0 is none: it means that nothing was invalidated. */
uint32_t roce_key_random(void)
{
	uint32_t v;

	do
		randomize(&v, sizeof(v));
	while (v == 0);
	return v;
}

/* ---- the table ---- */

/* Keys are random: any of their bits will do. */
static struct roce_key **find(const struct roce_keys *k, uint32_t rkey)
{
	uint32_t at = rkey & (k->size - 1);

	while (k->v[at] && k->v[at]->rkey != rkey)
		at = (at + 1) & (k->size - 1);
	return &k->v[at];
}

static bool grow(struct roce_keys *k)
{
	struct roce_keys to = {.size = k->size ? k->size * 2 : SIZE_MIN};

	to.v = calloc(to.size, sizeof(*to.v));
	if (!to.v)
		return false;
	for (uint32_t i = 0; i < k->size; i++)
		if (k->v[i])
			*find(&to, k->v[i]->rkey) = k->v[i];
	free(k->v);
	k->v = to.v;
	k->size = to.size;
	return true;
}

static bool reserve(struct roce_keys *k)
{
	return (k->cnt + 1) * 2 <= k->size || grow(k);
}

/* There is room; a key that is in use already is none. */
static bool insert(struct roce_keys *k, struct roce_key *key)
{
	struct roce_key **at = find(k, key->rkey);

	if (*at)
		return false;
	*at = key;
	k->cnt++;
	return true;
}

/* Those behind it that are there because its place was taken move up. */
static void take_out(struct roce_keys *k, const struct roce_key *key)
{
	uint32_t hole = (uint32_t)(find(k, key->rkey) - k->v);

	for (uint32_t at = (hole + 1) & (k->size - 1); k->v[at]; at = (at + 1) & (k->size - 1)) {
		uint32_t home = k->v[at]->rkey & (k->size - 1);

		if (((at - home) & (k->size - 1)) < ((at - hole) & (k->size - 1)))
			continue;
		k->v[hole] = k->v[at];
		hole = at;
	}
	k->v[hole] = NULL;
	k->cnt--;
}

static bool is_used(const struct roce_keys *k, uint32_t rkey)
{
	return k->size > 0 && *find(k, rkey) != NULL;
}

/* Each bind takes one: the kernel is asked for many at once. */
static uint32_t new_key(struct roce_keys *k)
{
	uint32_t rkey;

	do {
		if (k->fresh_cnt == 0) {
			randomize(k->fresh, sizeof(k->fresh));
			k->fresh_cnt = ROCE_KEYS_FRESH;
		}
		rkey = k->fresh[--k->fresh_cnt];
	} while (rkey == 0 || is_used(k, rkey));
	return rkey;
}

uint8_t *roce_key_find(
	const struct roce_ep *ep, uint32_t rkey, uint64_t va, uint64_t len, unsigned int access)
{
	const struct roce_key *key = ep->keys.size > 0 ? *find(&ep->keys, rkey) : NULL;
	uint64_t first;

	if (!key || (key->access & access) != access)
		return NULL;
	first = va - (uintptr_t)key->addr;
	if (va < (uintptr_t)key->addr || first > key->len || len > key->len - first)
		return NULL;
	return key->addr + first;
}

/* ---- registrations ---- */

struct fab_mr *roce_key_reg(
	struct fab_ep *fep, void *addr, size_t len, unsigned int access, bool bind)
{
	struct roce_ep *ep = roce_of(fep);
	struct roce_mr *mr = NULL;

	if (reserve(&ep->keys))
		mr = calloc(1, sizeof(*mr));
	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
	mr->ep = ep;
	mr->addr = addr;
	mr->len = len;
	mr->key = (struct roce_key){
		.rkey = new_key(&ep->keys), .addr = addr, .len = len, .access = access};
	if (access != FAB_LOCAL)
		insert(&ep->keys, &mr->key);
	list_push_back(&ep->mrs, &mr->link);
	return &mr->base;
}

void roce_key_dereg(struct fab_mr *fmr)
{
	struct roce_mr *mr = container_of(fmr, struct roce_mr, base);

	if (mr->key.access != FAB_LOCAL)
		take_out(&mr->ep->keys, &mr->key);
	list_del(&mr->link);
	free(mr);
}

uint32_t roce_key_of_mr(const struct fab_mr *mr)
{
	return container_of(mr, const struct roce_mr, base)->key.rkey;
}

/* ---- windows ---- */

struct fab_mw *roce_key_alloc(struct fab_ep *fep)
{
	struct roce_ep *ep = roce_of(fep);
	struct roce_mw *mw;

	if (ep->qpn == 0 || ep->state == ROCE_DRAINING) {
		errno = ENOTCONN;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	mw->key.rkey = new_key(&ep->keys);
	mw->next = new_key(&ep->keys);
	list_push_back(&ep->mws, &mw->link);
	return &mw->base;
}

uint32_t roce_key_of_mw(const struct fab_mw *mw)
{
	return container_of(mw, const struct roce_mw, base)->key.rkey;
}

uint32_t roce_key_next(const struct fab_mw *mw)
{
	return container_of(mw, const struct roce_mw, base)->next;
}

int roce_key_bind(struct roce_ep *ep, const struct fab_bind *bind)
{
	struct roce_mw *mw = container_of(bind->mw, struct roce_mw, base);
	const struct roce_mr *mr = container_of(bind->mr, const struct roce_mr, base);
	uint8_t *addr = bind->addr;

	if (mw->bound || addr < mr->addr || bind->len > mr->len ||
		(size_t)(addr - mr->addr) > mr->len - bind->len)
		return -EINVAL;
	if (!reserve(&ep->keys))
		return -ENOMEM;
	mw->key = (struct roce_key){.rkey = mw->next,
		.addr = addr,
		.len = bind->len,
		.access = bind->access,
		.is_window = true};
	/* Somebody else may have got it since it was chosen. */
	if (!insert(&ep->keys, &mw->key))
		return -EAGAIN;
	mw->bound = true;
	mw->next = new_key(&ep->keys);
	return 0;
}

void roce_key_unbind(struct roce_ep *ep, struct fab_mw *fmw)
{
	struct roce_mw *mw = container_of(fmw, struct roce_mw, base);

	if (mw->bound)
		take_out(&ep->keys, &mw->key);
	mw->bound = false;
}

bool roce_key_invalidate(struct roce_ep *ep, uint32_t rkey)
{
	struct roce_key *key = ep->keys.size > 0 ? *find(&ep->keys, rkey) : NULL;

	if (!key || !key->is_window)
		return false;
	roce_key_unbind(ep, &container_of(key, struct roce_mw, key)->base);
	return true;
}

bool roce_key_waits(const struct roce_ep *ep, uint64_t len)
{
	for (uint32_t i = 0; i < ep->keys.size; i++) {
		const struct roce_key *k = ep->keys.v[i];

		if (k && k->is_window && (k->access & FAB_REMOTE_WRITE) && k->len > len)
			return true;
	}
	return false;
}

void roce_key_free_mws(struct roce_ep *ep)
{
	struct list *node;

	while ((node = list_pop_front(&ep->mws))) {
		struct roce_mw *mw = container_of(node, struct roce_mw, link);

		roce_key_unbind(ep, &mw->base);
		free(mw);
	}
}

void roce_key_free(struct roce_ep *ep)
{
	list_for_each_safe (node, next, &ep->mrs)
		roce_key_dereg(&container_of(node, struct roce_mr, link)->base);
	free(ep->keys.v);
	ep->keys = (struct roce_keys){.size = 0};
}
