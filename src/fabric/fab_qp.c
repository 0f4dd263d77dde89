/* SPDX-License-Identifier: BSD-3-Clause */
#include "fab_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* ---- bookkeeping of what is posted ---- */

static int wr_init(struct fab_ep *ep)
{
	ep->wr_cnt = ep->qp_conf.send_wr + ep->qp_conf.recv_wr;
	ep->wrs = calloc(ep->wr_cnt, sizeof(*ep->wrs));
	if (!ep->wrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < ep->wr_cnt; i++)
		ep->wrs[i].next_free = i + 1 < ep->wr_cnt ? i + 1 : WR_NONE;
	ep->wr_free = 0;
	ep->wr_used = 0;
	ep->sq_used = 0;
	return 0;
}

static uint32_t wr_get(struct fab_ep *ep, enum wr_kind kind, unsigned int slots, uint64_t cookie)
{
	uint32_t idx = ep->wr_free;
	struct fab_wr *wr;

	if (idx == WR_NONE)
		return WR_NONE;
	wr = &ep->wrs[idx];
	ep->wr_free = wr->next_free;
	ep->wr_used++;
	ep->sq_used += slots;
	*wr = (struct fab_wr){.cookie = cookie, .slots = (uint16_t)slots, .kind = (uint8_t)kind};
	return idx;
}

struct fab_wr fab_wr_put(struct fab_ep *ep, uint32_t idx)
{
	struct fab_wr *wr = &ep->wrs[idx];
	struct fab_wr copy = *wr;

	assert(wr->kind != WR_FREE);
	ep->sq_used -= wr->slots;
	ep->wr_used--;
	wr->kind = WR_FREE;
	wr->next_free = ep->wr_free;
	ep->wr_free = idx;
	return copy;
}

/* ---- the queue pair ---- */

static int qp_modify(struct fab_ep *ep, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, rc;

	if (rdma_init_qp_attr(ep->id, &attr, &mask))
		return -errno;
	rc = ibv_modify_qp(ep->qp, &attr, mask);
	return rc > 0 ? -rc : rc;
}

int fab_qp_to_rts(struct fab_ep *ep)
{
	/* INIT once more: the CM knows the access flags only now that it has a connection. */
	int rc = qp_modify(ep, IBV_QPS_INIT);

	if (!rc)
		rc = qp_modify(ep, IBV_QPS_RTR);
	if (!rc)
		rc = qp_modify(ep, IBV_QPS_RTS);
	return rc;
}

void fab_qp_to_err(struct fab_ep *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (ep->qp && ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE))
		log_debug("%s: the queue pair cannot be moved to error", ep->name);
}

static int qp_create(struct fab_ep *ep)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = ep,
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.cap =
			{
				.max_send_wr = ep->qp_conf.send_wr,
				.max_recv_wr = ep->qp_conf.recv_wr,
				.max_send_sge = ep->qp_conf.max_send_sge,
				.max_recv_sge = 1,
			},
		.qp_type = IBV_QPT_RC,
	};

	errno = 0;
	ep->qp = ibv_create_qp(ep->dev.pd, &attr);
	if (!ep->qp)
		return errno ? -errno : -ENOMEM;
	/* Receives may be posted from now on. */
	return qp_modify(ep, IBV_QPS_INIT);
}

void fab_qp_destroy(struct fab_ep *ep)
{
	int rc = ep->qp ? ibv_destroy_qp(ep->qp) : 0;

	if (rc)
		log_warn("%s: cannot destroy the queue pair: error %d", ep->name, rc);
	ep->qp = NULL;
}

int fab_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf)
{
	const struct fab_caps *caps = &ep->dev.caps;
	int rc;

	if (ep->state != EP_RESOLVED || ep->qp)
		return -EINVAL;
	if (ep->dev.gone)
		return -ENODEV;
	if (!conf->send_wr || !conf->recv_wr || !conf->max_send_sge ||
		conf->send_wr > caps->max_wr || conf->recv_wr > caps->max_wr ||
		conf->max_send_sge > caps->max_sge)
		return -EINVAL;
	ep->step = FAB_STEP_SETUP;
	ep->qp_conf = *conf;
	rc = wr_init(ep);
	/* Each work request completes at most once, the unsignaled ones when they fail. */
	if (!rc)
		rc = fab_cq_create(ep, ep->wr_cnt);
	if (!rc)
		rc = qp_create(ep);
	return rc;
}

/* ---- posts ---- */

static bool can_post_recv(const struct fab_ep *ep)
{
	return ep->qp && ep->state >= EP_RESOLVED && ep->state <= EP_UP;
}

int fab_post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	struct ibv_sge sge = {.addr = (uintptr_t)addr, .length = len, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	uint32_t idx;
	int rc;

	/* Not in DRAINING: what rxe finds in a queue that it has flushed stays there. */
	if (!can_post_recv(ep))
		return -ENOTCONN;
	idx = wr_get(ep, WR_RECV, 0, cookie);
	if (idx == WR_NONE)
		return -ENOMEM;
	wr.wr_id = WR_ID(WR_RECV, idx);
	rc = ibv_post_recv(ep->qp, &wr, &bad);
	if (rc)
		(void)fab_wr_put(ep, idx);
	return rc > 0 ? -rc : rc;
}

static void fill_bind(struct ibv_send_wr *wr, const struct fab_bind *bind)
{
	*wr = (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw =
			{
				.mw = bind->mw->mw,
				.rkey = fab_mw_next_rkey(bind->mw),
				.bind_info =
					{
						.mr = bind->mr->mr,
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

/*
 * The windows' keys follow what was posted: all of them, or those before the
 * one that was refused (`bad`), which only matters until the connection ends.
 */
static int post_chain(struct fab_ep *ep, struct ibv_send_wr *wrs, const struct fab_bind *binds,
	unsigned int bind_cnt)
{
	struct ibv_send_wr *bad = NULL;
	int rc = ibv_post_send(ep->qp, wrs, &bad);

	for (unsigned int i = 0; i < bind_cnt && (!rc || &wrs[i] != bad); i++)
		binds[i].mw->mw->rkey = wrs[i].bind_mw.rkey;
	if (!rc)
		return 0;
	/* A bind without its Send: not to be mistaken for a full queue. */
	return bad != wrs ? -EIO : rc > 0 ? -rc : rc;
}

int fab_post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	struct ibv_send_wr wrs[FAB_CHAIN_MAX];
	struct ibv_sge list[FAB_SEND_SGES];
	uint32_t idx;
	int rc;

	if (ep->state != EP_UP)
		return -ENOTCONN;
	if (!sge_cnt || sge_cnt > ep->qp_conf.max_send_sge || bind_cnt >= FAB_CHAIN_MAX)
		return -EINVAL;
	if (ep->sq_used + bind_cnt + 1 > ep->qp_conf.send_wr)
		return -ENOMEM;
	idx = wr_get(ep, WR_SEND, bind_cnt + 1, cookie);
	if (idx == WR_NONE)
		return -ENOMEM;
	for (unsigned int i = 0; i < bind_cnt; i++) {
		fill_bind(&wrs[i], &binds[i]);
		wrs[i].wr_id = WR_ID(WR_BIND, idx);
		wrs[i].next = &wrs[i + 1];
	}
	for (unsigned int i = 0; i < sge_cnt; i++)
		list[i] = (struct ibv_sge){
			.addr = (uintptr_t)sges[i].addr,
			.length = sges[i].len,
			.lkey = sges[i].mr->lkey,
		};
	wrs[bind_cnt] = (struct ibv_send_wr){
		.wr_id = WR_ID(WR_SEND, idx),
		.sg_list = list,
		.num_sge = (int)sge_cnt,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	rc = post_chain(ep, wrs, binds, bind_cnt);
	if (rc)
		(void)fab_wr_put(ep, idx);
	return rc;
}

/* A queue completes in its order: the last one's success is that of all. */
int fab_mw_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	struct ibv_send_wr wrs[FAB_MAX_WINS], *bad;
	uint32_t idx;
	int rc;

	if (ep->state != EP_UP)
		return -ENOTCONN;
	if (!cnt || cnt > FAB_MAX_WINS)
		return -EINVAL;
	if (ep->sq_used + cnt > ep->qp_conf.send_wr)
		return -ENOMEM;
	idx = wr_get(ep, WR_INV, cnt, cookie);
	if (idx == WR_NONE)
		return -ENOMEM;
	for (unsigned int i = 0; i < cnt; i++) {
		bool last = i + 1 == cnt;

		wrs[i] = (struct ibv_send_wr){
			.wr_id = WR_ID(last ? WR_INV : WR_INV_MORE, idx),
			.next = last ? NULL : &wrs[i + 1],
			.opcode = IBV_WR_LOCAL_INV,
			.send_flags = last ? IBV_SEND_SIGNALED : 0,
			.invalidate_rkey = mws[i]->mw->rkey,
		};
	}
	rc = ibv_post_send(ep->qp, wrs, &bad);
	if (rc)
		(void)fab_wr_put(ep, idx);
	return rc > 0 ? -rc : rc;
}
