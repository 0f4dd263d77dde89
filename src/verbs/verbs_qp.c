/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* How long the server waits when our receive queue is empty: 0.64 ms. The CM's 0 is 655 ms. */
#define MIN_RNR_TIMER 12

/* ---- bookkeeping of what is posted ---- */

static int wr_init(struct verbs_ep *ep)
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

uint32_t verbs_qp_wr_get(
	struct verbs_ep *ep, enum wr_kind kind, unsigned int slots, uint64_t cookie)
{
	uint32_t idx = ep->wr_free;
	struct verbs_wr *wr;

	if (idx == WR_NONE)
		return WR_NONE;
	wr = &ep->wrs[idx];
	ep->wr_free = wr->next_free;
	ep->wr_used++;
	ep->sq_used += slots;
	*wr = (struct verbs_wr){.cookie = cookie, .slots = (uint16_t)slots, .kind = (uint8_t)kind};
	return idx;
}

struct verbs_wr verbs_qp_wr_put(struct verbs_ep *ep, uint32_t idx)
{
	struct verbs_wr *wr = &ep->wrs[idx];
	struct verbs_wr copy = *wr;

	assert(wr->kind != WR_FREE); /* I1 */
	ep->sq_used -= wr->slots;
	ep->wr_used--;
	wr->kind = WR_FREE;
	wr->next_free = ep->wr_free;
	ep->wr_free = idx;
	return copy;
}

/* ---- the queue pair ---- */

/* What the CM agreed on with the peer. */
static void note_path(struct fab_path *path, const struct ibv_qp_attr *attr)
{
	if (attr->qp_state == IBV_QPS_RTR) {
		path->remote_qpn = attr->dest_qp_num & 0xffffff;
		path->remote_psn = attr->rq_psn & 0xffffff;
		path->mtu = 128u << attr->path_mtu;
	} else if (attr->qp_state == IBV_QPS_RTS) {
		path->local_psn = attr->sq_psn & 0xffffff;
		path->ack_ns = fab_ack_ns(attr->timeout);
		path->ack_tries = attr->retry_cnt;
	}
}

static int qp_modify(struct verbs_ep *ep, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, rc;

	if (rdma.init_qp_attr(ep->id, &attr, &mask))
		return -errno;
	if (mask & IBV_QP_MIN_RNR_TIMER) /* not on iWARP */
		attr.min_rnr_timer = MIN_RNR_TIMER;
	note_path(&ep->path, &attr);
	rc = ibv.modify_qp(ep->qp, &attr, mask);
	return rc > 0 ? -rc : rc;
}

int verbs_qp_to_rts(struct verbs_ep *ep)
{
	/* INIT once more: the CM knows the access flags only now that it has a connection. */
	int rc = qp_modify(ep, IBV_QPS_INIT);

	if (!rc)
		rc = qp_modify(ep, IBV_QPS_RTR);
	if (!rc)
		rc = qp_modify(ep, IBV_QPS_RTS);
	return rc;
}

void verbs_qp_to_err(struct verbs_ep *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (ep->qp && ibv.modify_qp(ep->qp, &attr, IBV_QP_STATE))
		log_debug("%s: the queue pair cannot be moved to error", ep->name);
}

static int qp_create(struct verbs_ep *ep)
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
	ep->qp = ibv.create_qp(ep->dev.pd, &attr);
	if (!ep->qp)
		return errno ? -errno : -ENOMEM;
	/* iWARP tells none of the others */
	ep->path = (struct fab_path){.local_qpn = ep->qp->qp_num & 0xffffff, .mtu = 4096};
	/* Receives may be posted from now on. */
	return qp_modify(ep, IBV_QPS_INIT);
}

void verbs_qp_destroy(struct verbs_ep *ep)
{
	int rc = ep->qp ? ibv.destroy_qp(ep->qp) : 0;

	if (rc)
		log_warn("%s: cannot destroy the queue pair: error %d", ep->name, rc);
	ep->qp = NULL;
}

int verbs_qp_setup(struct verbs_ep *ep, const struct fab_qp_conf *conf)
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
		rc = verbs_cq_create(ep, ep->wr_cnt);
	if (!rc)
		rc = qp_create(ep);
	return rc;
}
