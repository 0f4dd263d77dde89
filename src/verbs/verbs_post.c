/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts. A doorbell is a write to the device (with rxe a system call): while a
 * batch of completions is delivered, what that causes - the receives posted
 * again, invalidations, binds and Sends of calls that waited - is put together
 * and posted once. Receives go first: a Send's answer may need them.
 */
#include "verbs_int.h"

#include <errno.h>

/* ---- the chain ---- */

static int post_recvs(struct verbs_ep *ep)
{
	struct verbs_chain *c = &ep->chain;
	struct ibv_recv_wr *bad = NULL;
	unsigned int cnt = c->recv_cnt, done = cnt;
	int rc;

	if (!cnt)
		return 0;
	for (unsigned int i = 0; i < cnt; i++) {
		c->recvs[i].sg_list = &c->recv_sges[i];
		c->recvs[i].next = i + 1 < cnt ? &c->recvs[i + 1] : NULL;
	}
	rc = ibv_post_recv(ep->qp, c->recvs, &bad);
	if (rc)
		done = bad ? (unsigned int)(bad - c->recvs) : 0;
	c->recv_cnt = cnt - done;
	for (unsigned int i = 0; i < c->recv_cnt; i++) {
		c->recvs[i] = c->recvs[done + i];
		c->recv_sges[i] = c->recv_sges[done + i];
	}
	return rc > 0 ? -rc : rc;
}

/* sg_list is given by count while the chain is built: what is left of it may move. */
static int post_sends(struct verbs_ep *ep)
{
	struct verbs_chain *c = &ep->chain;
	struct ibv_send_wr *bad = NULL;
	unsigned int cnt = c->send_cnt, done = cnt, sge = 0;
	int rc;

	if (!cnt)
		return 0;
	for (unsigned int i = 0; i < cnt; i++) {
		c->sends[i].sg_list = &c->sges[sge];
		c->sends[i].next = i + 1 < cnt ? &c->sends[i + 1] : NULL;
		sge += (unsigned int)c->sends[i].num_sge;
	}
	rc = ibv_post_send(ep->qp, c->sends, &bad);
	if (rc)
		done = bad ? (unsigned int)(bad - c->sends) : 0;
	/* Windows' keys follow what was posted: to post a bind the provider needs the one before.
	 */
	for (unsigned int i = 0; i < done; i++)
		if (c->sends[i].opcode == IBV_WR_BIND_MW)
			c->sends[i].bind_mw.mw->rkey = c->sends[i].bind_mw.rkey;
	c->send_cnt = cnt - done;
	for (unsigned int i = 0; i < c->send_cnt; i++)
		c->sends[i] = c->sends[done + i];
	/* After an error nothing of the rest is posted: its buffers are of no interest. */
	c->sge_cnt = 0;
	/* A bind without its Send: not to be mistaken for a full queue. */
	return rc && done ? -EIO : rc > 0 ? -rc : rc;
}

static int post_all(struct verbs_ep *ep)
{
	int rc = post_recvs(ep);

	return rc ? rc : post_sends(ep);
}

void verbs_post_hold(struct verbs_ep *ep)
{
	ep->chain.held = true;
}

/* The one among those with the same index that completes for all. */
static bool ends_chain(const struct ibv_send_wr *wr)
{
	return wr->wr_id >> 32 == WR_SEND || wr->wr_id >> 32 == WR_INV;
}

/* What the device never got. */
static void flush_chain(struct verbs_ep *ep)
{
	struct verbs_chain *c = &ep->chain;
	unsigned int sends = c->send_cnt, recvs = c->recv_cnt;

	/* Nothing can be added meanwhile: there is no connection. */
	c->send_cnt = c->sge_cnt = c->recv_cnt = 0;
	for (unsigned int i = 0; i < recvs; i++)
		verbs_cq_deliver(ep, (uint32_t)c->recvs[i].wr_id, FAB_FLUSHED, 0, 0);
	for (unsigned int i = 0; i < sends; i++)
		if (ends_chain(&c->sends[i]))
			verbs_cq_deliver(ep, (uint32_t)c->sends[i].wr_id, FAB_FLUSHED, 0, 0);
}

void verbs_post_release(struct verbs_ep *ep)
{
	struct verbs_chain *c = &ep->chain;
	int rc = 0;

	c->held = false;
	if (ep->state != EP_DRAINING)
		rc = post_all(ep);
	if (rc)
		verbs_ep_lost(ep, rc);
	if (c->send_cnt || c->recv_cnt)
		flush_chain(ep);
}

/* Posts what was added last, and all before it, unless it is held. */
static int added(struct verbs_ep *ep, uint32_t idx)
{
	int rc = ep->chain.held ? 0 : post_all(ep);

	if (!rc)
		return 0;
	/* There was nothing else in the chain: the caller is told. */
	ep->chain.send_cnt = ep->chain.sge_cnt = ep->chain.recv_cnt = 0;
	(void)verbs_qp_wr_put(ep, idx);
	return rc;
}

/* ---- receives ---- */

static bool can_post_recv(const struct verbs_ep *ep)
{
	return ep->qp && ep->state >= EP_RESOLVED && ep->state <= EP_UP;
}

int verbs_post_recv(
	struct verbs_ep *ep, void *addr, uint32_t len, const struct verbs_mr *mr, uint64_t cookie)
{
	struct verbs_chain *c = &ep->chain;
	uint32_t idx;
	int rc;

	/* Not in DRAINING: what rxe finds in a queue that it has flushed stays there. */
	if (!can_post_recv(ep))
		return -ENOTCONN;
	if (c->recv_cnt == VERBS_HELD_MAX) {
		rc = post_recvs(ep);
		if (rc)
			return rc;
	}
	idx = verbs_qp_wr_get(ep, WR_RECV, 0, cookie);
	if (idx == WR_NONE)
		return -ENOMEM;
	c->recv_sges[c->recv_cnt] =
		(struct ibv_sge){.addr = (uintptr_t)addr, .length = len, .lkey = mr->lkey};
	c->recvs[c->recv_cnt++] = (struct ibv_recv_wr){.wr_id = WR_ID(WR_RECV, idx), .num_sge = 1};
	return added(ep, idx);
}

/* ---- Sends, binds, invalidations ---- */

static void add_bind(struct verbs_ep *ep, const struct fab_bind *bind, uint32_t idx)
{
	struct ibv_send_wr *wr = &ep->chain.sends[ep->chain.send_cnt++];
	const struct verbs_mw *mw = verbs_mw_of(bind->mw);

	*wr = (struct ibv_send_wr){
		.wr_id = WR_ID(WR_BIND, idx),
		.opcode = IBV_WR_BIND_MW,
		.bind_mw =
			{
				.mw = mw->mw,
				.rkey = verbs_mem_mw_next_rkey(mw),
				.bind_info =
					{
						.mr = verbs_mr_of(bind->mr)->mr,
						.addr = (uintptr_t)bind->addr,
						.length = bind->len,
					},
			},
	};
	if (bind->access & FAB_REMOTE_READ)
		wr->bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (bind->access & FAB_REMOTE_WRITE)
		wr->bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_REMOTE_WRITE;
}

/* Room for so much more in the chain, after a post if need be. */
static int make_room(struct verbs_ep *ep, unsigned int wrs, unsigned int sges)
{
	struct verbs_chain *c = &ep->chain;

	return c->send_cnt + wrs > VERBS_HELD_MAX || c->sge_cnt + sges > VERBS_HELD_MAX
		       ? post_all(ep)
		       : 0;
}

int verbs_post_send(struct verbs_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	struct verbs_chain *c = &ep->chain;
	uint32_t idx;
	int rc;

	if (ep->state != EP_UP)
		return -ENOTCONN;
	if (!sge_cnt || sge_cnt > ep->qp_conf.max_send_sge || sge_cnt > VERBS_SEND_SGES ||
		bind_cnt >= VERBS_CHAIN_MAX)
		return -EINVAL;
	if (ep->sq_used + bind_cnt + 1 > ep->qp_conf.send_wr)
		return -ENOMEM;
	rc = make_room(ep, bind_cnt + 1, sge_cnt);
	if (rc)
		return -EIO;
	idx = verbs_qp_wr_get(ep, WR_SEND, bind_cnt + 1, cookie);
	if (idx == WR_NONE)
		return -ENOMEM;
	for (unsigned int i = 0; i < bind_cnt; i++)
		add_bind(ep, &binds[i], idx);
	for (unsigned int i = 0; i < sge_cnt; i++)
		c->sges[c->sge_cnt++] = (struct ibv_sge){
			.addr = (uintptr_t)sges[i].addr,
			.length = sges[i].len,
			.lkey = verbs_mr_of(sges[i].mr)->lkey,
		};
	c->sends[c->send_cnt++] = (struct ibv_send_wr){
		.wr_id = WR_ID(WR_SEND, idx),
		.num_sge = (int)sge_cnt,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	return added(ep, idx);
}

int verbs_post_bind(struct verbs_ep *ep, const struct fab_bind *bind, uint64_t cookie)
{
	uint32_t idx;
	struct ibv_send_wr *wr;

	if (ep->state != EP_UP)
		return -ENOTCONN;
	if (ep->sq_used + 1 > ep->qp_conf.send_wr)
		return -ENOMEM;
	if (make_room(ep, 1, 0))
		return -EIO;
	idx = verbs_qp_wr_get(ep, WR_SEND, 1, cookie);
	if (idx == WR_NONE)
		return -ENOMEM;
	add_bind(ep, bind, idx);
	/* Nothing follows that completes for it. */
	wr = &ep->chain.sends[ep->chain.send_cnt - 1];
	wr->wr_id = WR_ID(WR_SEND, idx);
	wr->send_flags = IBV_SEND_SIGNALED;
	return added(ep, idx);
}

/* A queue completes in its order: the last one's success is that of all. */
int verbs_post_invalidate(
	struct verbs_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	struct verbs_chain *c = &ep->chain;
	uint32_t idx;
	int rc;

	if (ep->state != EP_UP)
		return -ENOTCONN;
	if (!cnt || cnt > FAB_MAX_WINS)
		return -EINVAL;
	if (ep->sq_used + cnt > ep->qp_conf.send_wr)
		return -ENOMEM;
	rc = make_room(ep, cnt, 0);
	if (rc)
		return rc;
	idx = verbs_qp_wr_get(ep, WR_INV, cnt, cookie);
	if (idx == WR_NONE)
		return -ENOMEM;
	for (unsigned int i = 0; i < cnt; i++) {
		bool last = i + 1 == cnt;

		c->sends[c->send_cnt++] = (struct ibv_send_wr){
			.wr_id = WR_ID(last ? WR_INV : WR_INV_MORE, idx),
			.opcode = IBV_WR_LOCAL_INV,
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.invalidate_rkey = verbs_mw_of(mws[i])->mw->rkey,
		};
	}
	return added(ep, idx);
}
