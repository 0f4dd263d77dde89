/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: FREE -> BOUND -> (INVALIDATING ->) FREE. Strict, because
 * rxe 6.1 crashes the kernel when a window that is not bound is invalidated,
 * and because data may only be handed up when its window is not BOUND.
 *
 * I5 (window): it is BOUND or INVALIDATING only while one call in FLIGHT has it. ->done runs with
 *    each window of the call FREE, or gone with the queue pair: no key of a call is valid when its
 *    user looks at the data. (rpcrdma_trial.c has one to itself, before there are calls.)
 *    Asserted: rpcrdma_win_get(), rpcrdma_win_put(), rpcrdma_win_set_state(), deliver()
 *    Test: rpcrdma_reply::without_remote_invalidation_data_waits_for_the_local_one
 */
#include "rpcrdma_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static_assert(RPCRDMA_MAX_WINS <= FAB_MAX_WINS, "one post binds and invalidates a call's windows");

/* Calls expose buffers of their own: a window for each, and some for one exposed both ways. */
static unsigned int win_total(const struct rpcrdma *x)
{
	unsigned int most = x->conf.credits > x->conf.data_cnt ? x->conf.credits : x->conf.data_cnt;

	return most + 2 * RPCRDMA_MAX_WINS;
}

unsigned int rpcrdma_win_most(const struct rpcrdma *x)
{
	const struct fab_caps *caps = fab_ep_caps(x->ep);
	unsigned int sends = x->conf.credits + 1 + RPCRDMA_REVERSE_SENDS;
	unsigned int room = caps->max_wr > sends ? (caps->max_wr - sends) / 2 : 0;
	unsigned int most = win_total(x);

	if (most > caps->max_mw)
		most = caps->max_mw;
	return most < room ? most : room;
}

int rpcrdma_win_init(struct rpcrdma *x)
{
	list_init(&x->win_free);
	x->wins = calloc(win_total(x), sizeof(*x->wins));
	return x->wins ? 0 : -ENOMEM;
}

void rpcrdma_win_fini(struct rpcrdma *x)
{
	free(x->wins);
}

int rpcrdma_win_alloc(struct rpcrdma *x)
{
	unsigned int most = rpcrdma_win_most(x);

	assert(x->win_cnt == 0);
	if (most < RPCRDMA_MAX_WINS) /* not enough for one call, and never will be */
		return -EOPNOTSUPP;
	for (unsigned int i = 0; i < most; i++) {
		struct rpcrdma_win *win = &x->wins[i];

		errno = 0;
		win->mw = fab_mw_alloc(x->ep);
		if (!win->mw)
			return errno ? -errno : -ENOMEM;
		win->state = RPCRDMA_W_FREE;
		win->owner = NULL;
		win->rkey = 0;
		list_init(&win->link);
		list_push_back(&x->win_free, &win->link);
		x->win_cnt++;
		x->win_free_cnt++;
	}
	return 0;
}

void rpcrdma_win_forget(struct rpcrdma *x)
{
	list_init(&x->win_free);
	x->win_cnt = x->win_free_cnt = 0;
}

struct rpcrdma_win *rpcrdma_win_get(struct rpcrdma *x, struct rpcrdma_reqpriv *owner)
{
	struct list *node = list_pop_front(&x->win_free);
	struct rpcrdma_win *win;

	if (!node)
		return NULL;
	win = container_of(node, struct rpcrdma_win, link);
	assert(win->state == RPCRDMA_W_FREE && !win->owner); /* I5 */
	win->owner = owner;
	x->win_free_cnt--;
	return win;
}

void rpcrdma_win_put(struct rpcrdma *x, struct rpcrdma_win *win)
{
	assert(win->state == RPCRDMA_W_FREE && !list_is_linked(&win->link)); /* I5 */
	win->owner = NULL;
	/* the longest unused first: a stale key stays wrong for as long as possible */
	list_push_back(&x->win_free, &win->link);
	x->win_free_cnt++;
}

void rpcrdma_win_set_state(struct rpcrdma_win *win, enum rpcrdma_winstate state)
{
	switch (win->state) {
	case RPCRDMA_W_FREE:
		assert(state == RPCRDMA_W_BOUND); /* I5 */
		break;
	case RPCRDMA_W_BOUND:
		assert(state == RPCRDMA_W_INVALIDATING || state == RPCRDMA_W_FREE); /* I5 */
		break;
	case RPCRDMA_W_INVALIDATING:
		assert(state == RPCRDMA_W_FREE); /* I5 */
		break;
	}
	win->state = state;
	if (state == RPCRDMA_W_FREE)
		win->rkey = 0;
}

struct rpcrdma_win *rpcrdma_win_by_rkey(struct rpcrdma *x, uint32_t rkey)
{
	for (unsigned int i = 0; i < x->win_cnt; i++)
		if (x->wins[i].state != RPCRDMA_W_FREE && x->wins[i].rkey == rkey)
			return &x->wins[i];
	return NULL;
}

static struct rpcrdma_win *own_win(struct rpcrdma_reqpriv *priv, uint32_t rkey)
{
	for (unsigned int i = 0; i < priv->win_cnt; i++)
		if (priv->wins[i]->state == RPCRDMA_W_BOUND && priv->wins[i]->rkey == rkey)
			return priv->wins[i];
	return NULL;
}

int rpcrdma_win_fence(struct rpcrdma_reqpriv *priv, uint32_t inv_rkey)
{
	struct rpcrdma *x = priv->x;
	struct fab_mw *mws[RPCRDMA_MAX_WINS];
	unsigned int cnt = 0;
	int err;

	if (inv_rkey != 0) {
		struct rpcrdma_win *win = own_win(priv, inv_rkey);

		/* WIRE: some other call's window may be gone now: no window is certain any more */
		if (!win)
			return -EBADMSG;
		rpcrdma_win_set_state(win, RPCRDMA_W_FREE);
		stats_count(&x->stats->remote_invals, 1);
	}
	for (unsigned int i = 0; i < priv->win_cnt; i++)
		if (priv->wins[i]->state == RPCRDMA_W_BOUND)
			mws[cnt++] = priv->wins[i]->mw;
	if (cnt == 0) {
		priv->req->pending &= ~(uint32_t)RPCRDMA_PENDING_INV;
		return 0;
	}
	priv->invalidating = true;
	err = fab_mw_invalidate(x->ep, mws, cnt, priv->idx);
	if (err)
		return err; /* only the drain clears INV */
	for (unsigned int i = 0; i < priv->win_cnt; i++)
		if (priv->wins[i]->state == RPCRDMA_W_BOUND)
			rpcrdma_win_set_state(priv->wins[i], RPCRDMA_W_INVALIDATING);
	stats_count(&x->stats->local_invals, cnt);
	return 0;
}

void rpcrdma_win_invalidated(struct rpcrdma *x, uint64_t cookie, enum fab_status status)
{
	struct rpcrdma_reqpriv *priv;

	assert(cookie <= x->conf.credits); /* the probe's request is the last */
	priv = &x->reqs[cookie];
	assert(priv->invalidating);
	/* after a failure they stay as they are: the connection is going, and they with it */
	if (status != FAB_OK)
		return;
	for (unsigned int i = 0; i < priv->win_cnt; i++)
		if (priv->wins[i]->state == RPCRDMA_W_INVALIDATING)
			rpcrdma_win_set_state(priv->wins[i], RPCRDMA_W_FREE);
	priv->invalidating = false;
	rpcrdma_req_cleared(priv, RPCRDMA_PENDING_INV);
}
