/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "log.h"

/*
 * rxe (Linux 6.1, seen in the test VM) hands its kernel's flag value for "with
 * invalidate" to user space. In libibverbs the bit is IBV_WC_IP_CSUM_OK, which
 * real devices set for other reasons: it counts on rxe only.
 */
#define RXE_WC_WITH_INV 0x4u

/* ---- dispatch ---- */

static int wc_err(enum ibv_wc_status status)
{
	/* The common ones; all others mean that one of the peers made a mistake. */
	if (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RESP_TIMEOUT_ERR)
		return -ETIMEDOUT;
	if (status == IBV_WC_RNR_RETRY_EXC_ERR) /* more calls than the peer had receives for */
		return -ENOBUFS;
	if (status == IBV_WC_LOC_LEN_ERR)
		return -EMSGSIZE;
	if (status == IBV_WC_WR_FLUSH_ERR)
		return -ECONNRESET;
	if (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
		status == IBV_WC_REM_OP_ERR)
		return -EREMOTEIO;
	return -EIO;
}

static uint32_t wc_inv_rkey(const struct verbs_ep *ep, const struct ibv_wc *wc)
{
	unsigned int flags = IBV_WC_WITH_INV | (ep->dev.is_rxe ? RXE_WC_WITH_INV : 0);

	return wc->wc_flags & flags ? wc->invalidated_rkey : 0;
}

void verbs_cq_deliver(
	struct verbs_ep *ep, uint32_t idx, enum fab_status status, uint32_t len, uint32_t inv_rkey)
{
	struct verbs_wr wr = verbs_qp_wr_put(ep, idx);

	if (wr.broke)
		status = FAB_ERROR;
	if (wr.kind == WR_RECV)
		ep->ops->received(ep->ctx, wr.cookie, len, inv_rkey, status);
	else if (wr.kind == WR_SEND)
		ep->ops->sent(ep->ctx, wr.cookie, status);
	else
		ep->ops->invalidated(ep->ctx, wr.cookie, status);
}

static const char *kind_name(enum wr_kind kind)
{
	static const char *const names[] = {
		"?", "Send", "Receive", "invalidation", "bind", "invalidation"};

	return names[kind];
}

static void dispatch(struct verbs_ep *ep, const struct ibv_wc *wc)
{
	uint32_t idx = (uint32_t)wc->wr_id;
	uint64_t kind = wc->wr_id >> 32;
	bool failed = wc->status != IBV_WC_SUCCESS;
	/* The one that broke the connection; what follows is flushed. */
	bool broke = failed && wc->status != IBV_WC_WR_FLUSH_ERR && ep->state != EP_DRAINING;

	if (kind < WR_SEND || kind > WR_INV_MORE || idx >= ep->wr_cnt) {
		log_warn_limited("%s: completion of an unknown work request", ep->name);
		return;
	}
	if (broke)
		log_warn("%s: a %s failed: %s (vendor error 0x%x)", ep->name,
			kind_name((enum wr_kind)kind), ibv.wc_status_str(wc->status),
			wc->vendor_err);
	if (kind == WR_BIND || kind == WR_INV_MORE) {
		/* What ends the chain is flushed now, and takes the blame. */
		if (broke && ep->wrs[idx].kind == (kind == WR_BIND ? WR_SEND : WR_INV))
			ep->wrs[idx].broke = true;
	} else if (ep->wrs[idx].kind != kind) {
		log_warn_limited("%s: a work request completed twice", ep->name);
		return;
	} else if (failed) {
		verbs_cq_deliver(ep, idx, broke ? FAB_ERROR : FAB_FLUSHED, 0, 0);
	} else if (kind == WR_RECV) {
		verbs_cq_deliver(ep, idx, FAB_OK, wc->byte_len, wc_inv_rkey(ep, wc));
	} else {
		verbs_cq_deliver(ep, idx, FAB_OK, 0, 0);
	}
	if (failed && ep->state != EP_DRAINING)
		verbs_ep_lost(ep, wc_err(wc->status));
}

bool verbs_cq_poll(struct verbs_ep *ep)
{
	struct ibv_wc wcs[VERBS_POLL_BATCH];
	int cnt = ep->cq ? ibv_poll_cq(ep->cq, VERBS_POLL_BATCH, wcs) : 0;
	bool outer;

	if (cnt < 0)
		verbs_ep_lost(ep, -EIO);
	if (cnt <= 0)
		return false;
	outer = ep->delivering;
	ep->delivering = true;
	verbs_post_hold(ep);
	for (int i = 0; i < cnt; i++)
		dispatch(ep, &wcs[i]);
	if (ep->ops->batch_done)
		ep->ops->batch_done(ep->ctx);
	verbs_post_release(ep);
	ep->delivering = outer;
	verbs_ep_drain_check(ep);
	return true;
}

void verbs_cq_flush_rest(struct verbs_ep *ep)
{
	bool any = ep->wr_used > 0;

	for (uint32_t i = 0; i < ep->wr_cnt && ep->wr_used; i++) {
		if (ep->wrs[i].kind != WR_FREE)
			verbs_cq_deliver(ep, i, FAB_FLUSHED, 0, 0);
	}
	if (any && ep->ops->batch_done)
		ep->ops->batch_done(ep->ctx);
	free(ep->wrs);
	ep->wrs = NULL;
	ep->wr_cnt = 0;
}

/* ---- the reactor's side ---- */

static bool spin_poll(struct reactor_spin *s)
{
	return verbs_cq_poll(container_of(s, struct verbs_ep, spin));
}

/*
 * `armed` stays true until the event was read: a completion that was found by
 * polling meanwhile has left an event behind, which wakes us once for nothing.
 */
static bool spin_arm(struct reactor_spin *s)
{
	struct verbs_ep *ep = container_of(s, struct verbs_ep, spin);

	if (!ep->cq || ep->armed)
		return true;
	if (ibv_req_notify_cq(ep->cq, 0)) {
		verbs_ep_lost(ep, -EIO);
		return false;
	}
	ep->armed = true;
	/* ORDER: what completed before it was armed makes no event. */
	return !verbs_cq_poll(ep);
}

static bool spin_wanted(struct reactor_spin *s)
{
	struct verbs_ep *ep = container_of(s, struct verbs_ep, spin);

	return ep->state == EP_UP && ep->busy && ep->busy <= VERBS_SPIN_FLIGHT;
}

static void on_comp(struct reactor_fd *src, uint32_t events)
{
	struct verbs_ep *ep = container_of(src, struct verbs_ep, comp_fd);
	struct ibv_cq *cq;
	void *ctx;

	/* There is one at most: it is armed again only when that was read. */
	if (!ibv.get_cq_event(ep->comp, &cq, &ctx)) {
		ep->armed = false;
		/* Acknowledging takes a lock: many at once. */
		if (++ep->unacked == 1024) {
			ibv.ack_cq_events(ep->cq, ep->unacked);
			ep->unacked = 0;
		}
	}
	(void)verbs_cq_poll(ep);
}

/* ---- life ---- */

int verbs_cq_create(struct verbs_ep *ep, uint32_t cqe)
{
	static _Atomic unsigned int lanes; /* each lane gets another interrupt vector */
	int vectors = ep->dev.verbs->num_comp_vectors;
	int vector = vectors > 0 ? (int)(lanes++ % (unsigned int)vectors) : 0;
	int fd, rc;

	errno = 0;
	ep->comp = ibv.create_comp_channel(ep->dev.verbs);
	if (!ep->comp)
		return errno ? -errno : -ENOMEM;
	fd = ep->comp->fd;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	errno = 0;
	ep->cq = ibv.create_cq(ep->dev.verbs, (int)cqe, ep, ep->comp, vector);
	if (!ep->cq)
		return errno ? -errno : -ENOMEM;
	ep->armed = false;
	ep->unacked = 0;
	rc = reactor_fd_add(ep->r, &ep->comp_fd, fd, EPOLLIN, on_comp);
	if (rc)
		return rc;
	ep->spin = (struct reactor_spin){
		.poll = spin_poll, .arm = spin_arm, .wants_spin = spin_wanted};
	reactor_spin_add(ep->r, &ep->spin);
	return 0;
}

void verbs_cq_destroy(struct verbs_ep *ep)
{
	int rc = 0;

	reactor_spin_del(&ep->spin);
	reactor_fd_del(&ep->comp_fd);
	if (ep->cq) {
		/* Else destroying it waits for ever. */
		ibv.ack_cq_events(ep->cq, ep->unacked);
		rc = ibv.destroy_cq(ep->cq);
	}
	if (!rc && ep->comp)
		rc = ibv.destroy_comp_channel(ep->comp);
	if (rc)
		log_warn("%s: cannot destroy the completion queue: error %d", ep->name, rc);
	ep->cq = NULL;
	ep->comp = NULL;
	ep->busy = 0;
}
