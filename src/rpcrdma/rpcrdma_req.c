/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request pool: who owns a request, how an XID finds it, how it ends.
 */
#include "rpcrdma_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define TO(name) (1u << RPCRDMA_R_##name)

/* From each state to which. */
static const unsigned int legal[] = {
	[RPCRDMA_R_FREE] = TO(HELD),
	[RPCRDMA_R_HELD] = TO(FREE) | TO(QUEUED),
	[RPCRDMA_R_QUEUED] = TO(HELD) | TO(FLIGHT) | TO(ENDED), /* HELD: a probe was not posted */
	[RPCRDMA_R_FLIGHT] = TO(HELD) | TO(QUEUED) | TO(ENDED),
	[RPCRDMA_R_ENDED] = TO(HELD),
};

void rpcrdma_req_set_state(struct rpcrdma_reqpriv *priv, enum rpcrdma_reqstate to)
{
	assert(legal[priv->state] & 1u << to); /* I2 */
	priv->state = to;
}

int rpcrdma_req_init(struct rpcrdma *x)
{
	unsigned int cnt = x->conf.credits + 1;
	uint32_t size = 16;

	list_init(&x->req_free);
	list_init(&x->ended);
	list_init(&x->queue);
	list_init(&x->flight);
	while (size < 2 * cnt)
		size *= 2;
	x->hash_mask = size - 1;
	x->hash = calloc(size, sizeof(*x->hash));
	x->reqs = calloc(cnt, sizeof(*x->reqs));
	if (!x->hash || !x->reqs)
		return -ENOMEM;
	for (unsigned int i = cnt; i-- > 0;) {
		struct rpcrdma_reqpriv *priv = &x->reqs[i];

		priv->x = x;
		priv->idx = i;
		priv->head = (uint8_t *)slab_at(&x->send_slab, i) + RPCRDMA_SEND_HDR;
		list_init(&priv->free_link);
		if (i < x->conf.credits)
			list_push_front(&x->req_free, &priv->free_link);
	}
	x->next_xid = (uint32_t)rpcrdma_random(x);
	return 0;
}

void rpcrdma_req_fini(struct rpcrdma *x)
{
	free(x->hash);
	free(x->reqs);
}

static void lend(struct rpcrdma_reqpriv *priv, struct rpcrdma_req *req)
{
	void (*done)(struct rpcrdma_req *) = req->done;

	memset(req, 0, sizeof(*req));
	req->done = done;
	req->idx = priv->idx;
	req->head = priv->head;
	req->head_room = priv->x->head_size;
	req->priv = priv;
	list_init(&req->link);
	priv->req = req;
	rpcrdma_req_set_state(priv, RPCRDMA_R_HELD);
}

int rpcrdma_req_get(struct rpcrdma *x, struct rpcrdma_req *req)
{
	struct list *node = list_pop_front(&x->req_free);

	if (!node) {
		stats_count(&x->stats->buf_waits, 1);
		x->want_unblock = true;
		return -EAGAIN;
	}
	lend(container_of(node, struct rpcrdma_reqpriv, free_link), req);
	return 0;
}

void rpcrdma_req_put(struct rpcrdma *x, struct rpcrdma_req *req)
{
	struct rpcrdma_reqpriv *priv = req->priv;

	assert(priv && priv->req == req && priv->state == RPCRDMA_R_HELD); /* I2 */
	assert(req->pending == 0 && !list_is_linked(&req->link));          /* I2 */
	priv->req = NULL;
	rpcrdma_req_set_state(priv, RPCRDMA_R_FREE);
	req->priv = NULL;
	list_push_front(&x->req_free, &priv->free_link);
	rpcrdma_mem_freed(x);
}

void rpcrdma_req_lend_probe(struct rpcrdma *x)
{
	lend(&x->reqs[x->conf.credits], &x->probe);
	x->reqs[x->conf.credits].is_probe = true;
}

static struct rpcrdma_reqpriv **bucket(struct rpcrdma *x, uint32_t xid)
{
	return &x->hash[xid & x->hash_mask];
}

struct rpcrdma_reqpriv *rpcrdma_req_find(struct rpcrdma *x, uint32_t xid)
{
	struct rpcrdma_reqpriv *priv = *bucket(x, xid);

	while (priv && priv->req->xid != xid)
		priv = priv->hash_next;
	return priv;
}

void rpcrdma_req_hash(struct rpcrdma *x, struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma_reqpriv **head = bucket(x, priv->req->xid);

	assert(!rpcrdma_req_find(x, priv->req->xid));
	priv->hash_next = *head;
	*head = priv;
}

void rpcrdma_req_unhash(struct rpcrdma *x, struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma_reqpriv **pos = bucket(x, priv->req->xid);

	while (*pos && *pos != priv)
		pos = &(*pos)->hash_next;
	assert(*pos == priv);
	*pos = priv->hash_next;
	priv->hash_next = NULL;
}

uint32_t rpcrdma_next_xid(struct rpcrdma *x)
{
	do
		x->next_xid++;
	while (rpcrdma_req_find(x, x->next_xid));
	return x->next_xid;
}

/* Buffers that a request holds (for the quarantine counter). */
static unsigned int buf_cnt(const struct rpcrdma_req *req)
{
	unsigned int cnt = req->arg_cnt + (req->long_call.len > 0) + (req->reply_sink.buf != NULL);

	for (unsigned int i = 0; i < req->result_cnt; i++)
		cnt += req->results[i].sink.buf != NULL;
	return cnt;
}

void rpcrdma_req_decide(struct rpcrdma_reqpriv *priv, enum rpcrdma_end end)
{
	if (priv->ended)
		return;
	priv->ended = true;
	priv->req->end = end;
	/* the server may still use its memory: kept until this connection is gone */
	if (priv->state == RPCRDMA_R_FLIGHT && (end == RPCRDMA_TIMEDOUT || end == RPCRDMA_BADREPLY))
		stats_count(&priv->x->stats->quarantined, buf_cnt(priv->req));
}

/* Gives the request back to the user. The reply lies in `rep` until ->done returns. */
static void deliver(struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma *x = priv->x;
	struct rpcrdma_req *req = priv->req;
	struct rpcrdma_rep *rep = priv->rep;

	assert(priv->ended && !list_is_linked(&req->link)); /* I2 */
	assert(req->pending == 0);                          /* I3 */
	assert(priv->win_cnt == 0);                         /* I5 */
	rpcrdma_req_unhash(x, priv);
	rpcrdma_mem_lend(req, -1);
	priv->rep = NULL;
	rpcrdma_req_set_state(priv, RPCRDMA_R_HELD);
	if (priv->misplaced && rep && req->end == RPCRDMA_REPLY) {
		memcpy(rep->mem, req->reply, req->reply_len);
		req->reply = rep->mem;
	}
	priv->misplaced = false;
	if (req->end != RPCRDMA_REPLY) {
		req->reply = NULL;
		req->reply_len = 0;
	}
	rpcrdma_mem_privatize(x, req);
	if (!priv->is_probe)
		req->over_ns = reactor_clock(x->reactor);
	req->done(req); /* may put or send it again: neither is touched from here */
	if (rep && x->state == RPCRDMA_C_UP) {
		int err = rpcrdma_mem_post_rep(x, rep);

		if (err)
			rpcrdma_conn_drop(x, err, "a receive could not be posted");
	}
}

static void finish(struct rpcrdma_reqpriv *priv)
{
	struct rpcrdma *x = priv->x;

	assert(priv->state == RPCRDMA_R_FLIGHT && priv->ended && !priv->invalidating); /* I3 */
	list_del(&priv->req->link);
	x->flight_cnt--;
	while (priv->win_cnt > 0)
		rpcrdma_win_put(x, priv->wins[--priv->win_cnt]);
	rpcrdma_send_copy_put(priv);
	rpcrdma_credit_give(&x->credit, priv->is_probe, priv->inbound);
	rpcrdma_send_flight_changed(x);
	deliver(priv);
}

void rpcrdma_req_cleared(struct rpcrdma_reqpriv *priv, uint32_t bits)
{
	assert((priv->req->pending & bits) == bits); /* I3 */
	priv->req->pending &= ~bits;
	if (priv->req->pending == 0)
		finish(priv);
}

void rpcrdma_req_end_later(struct rpcrdma_reqpriv *priv, enum rpcrdma_end end)
{
	assert(priv->state == RPCRDMA_R_QUEUED);
	rpcrdma_req_decide(priv, end);
	list_del(&priv->req->link);
	rpcrdma_req_set_state(priv, RPCRDMA_R_ENDED);
	list_push_back(&priv->x->ended, &priv->req->link);
	rpcrdma_kick(priv->x);
}

void rpcrdma_req_run_ended(struct rpcrdma *x)
{
	struct list *node;

	while ((node = list_pop_front(&x->ended)) != NULL)
		deliver(container_of(node, struct rpcrdma_req, link)->priv);
}

void rpcrdma_req_end_queue(struct rpcrdma *x, enum rpcrdma_end end)
{
	while (!list_empty(&x->queue))
		rpcrdma_req_end_later(list_first(&x->queue, struct rpcrdma_req, link)->priv, end);
}

/*
 * The connection was lost while this call waited for its reply. Returns: true: it is sent again
 * after all others.
 */
static bool note_loss(struct rpcrdma_reqpriv *priv, bool alone)
{
	struct rpcrdma *x = priv->x;
	bool slow = priv->timed_out;

	priv->timed_out = false;
	/* Silence, or that we wanted another one, is no call's doing. */
	if (x->down_err == -ETIMEDOUT || x->retry_now)
		return slow || priv->losses >= RPCRDMA_SUSPECT_LOSSES;
	if (++priv->losses < RPCRDMA_SUSPECT_LOSSES)
		return false;
	x->prove = true;
	/* Only a connection that had answered something was lost by this call. */
	if (!alone || !x->good || priv->losses == RPCRDMA_SUSPECT_LOSSES)
		return true;
	if (++priv->alone_losses == RPCRDMA_ALONE_LOSSES) {
		log_err("%s: %u connections were lost with call %08x alone on them: given up",
			x->peer, priv->alone_losses, priv->req->xid);
		rpcrdma_req_decide(priv, RPCRDMA_GIVENUP);
	}
	return true;
}

void rpcrdma_req_drained(struct rpcrdma *x)
{
	bool alone = x->flight_cnt == 1;
	struct list again = LIST_INIT(again), last = LIST_INIT(last);
	struct list *node;

	while ((node = list_pop_front(&x->flight)) != NULL) {
		struct rpcrdma_reqpriv *priv = container_of(node, struct rpcrdma_req, link)->priv;
		bool goes_last;

		priv->req->pending = 0;
		priv->win_cnt = 0; /* freed with the queue pair */
		rpcrdma_send_copy_put(priv);
		priv->invalidating = false;
		if (x->stopping || priv->is_probe)
			rpcrdma_req_decide(priv, RPCRDMA_SHUTDOWN);
		if (priv->timed_out && priv->req->give_back)
			rpcrdma_req_decide(priv, RPCRDMA_UNANSWERED);
		goes_last = !priv->ended && note_loss(priv, alone);
		rpcrdma_req_set_state(priv, priv->ended ? RPCRDMA_R_ENDED : RPCRDMA_R_QUEUED);
		list_push_back(priv->ended ? &x->ended : goes_last ? &last : &again, node);
	}
	x->flight_cnt = 0;
	list_splice_back(&again, &x->queue); /* what was sent goes first, in its order */
	list_splice_back(&x->queue, &again);
	list_splice_back(&x->queue, &last); /* what the loss may be due to */
	rpcrdma_send_flight_changed(x);
}
