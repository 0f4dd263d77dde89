/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "log.h"

/* ---- registrations ---- */

struct verbs_mr *verbs_mem_reg(
	struct verbs_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	/* Remote writes and binds for them demand the local right too. */
	int flags = IBV_ACCESS_LOCAL_WRITE;
	struct verbs_mr *mr;

	if (!ep->dev.pd || ep->dev.gone) {
		errno = ENODEV;
		return NULL;
	}
	if (access & FAB_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & FAB_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (bind)
		flags |= IBV_ACCESS_MW_BIND;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->mr = ibv.reg_mr(ep->dev.pd, addr, len, flags);
	if (!mr->mr) {
		int err = errno;

		free(mr);
		errno = err;
		return NULL;
	}
	mr->lkey = mr->mr->lkey;
	mr->rkey = mr->mr->rkey;
	list_push_back(&ep->dev.mrs, &mr->link);
	return mr;
}

void verbs_mem_release_mr(struct verbs_mr *mr)
{
	int rc = mr->mr ? ibv.dereg_mr(mr->mr) : 0;

	if (rc)
		log_warn("cannot deregister memory: error %d", rc);
	mr->mr = NULL;
}

void verbs_mem_dereg(struct verbs_mr *mr)
{
	verbs_mem_release_mr(mr);
	list_del(&mr->link);
	free(mr);
}

void verbs_mem_free_mrs(struct verbs_ep *ep)
{
	list_for_each_safe (pos, next, &ep->dev.mrs)
		verbs_mem_dereg(container_of(pos, struct verbs_mr, link));
}

/* ---- windows ---- */

/* After the queue pair: should we die, the kernel cleans up newest first. */
struct verbs_mw *verbs_mem_mw_alloc(struct verbs_ep *ep)
{
	struct verbs_mw *mw;

	if (!ep->qp || ep->state == EP_DRAINING) {
		errno = ENOTCONN;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	errno = 0;
	mw->mw = ibv_alloc_mw(ep->dev.pd, IBV_MW_TYPE_2);
	if (!mw->mw) {
		int err = errno ? errno : ENOMEM;

		free(mw);
		errno = err;
		return NULL;
	}
	/* The low byte of a key is ours to choose: not always the next one. */
	if (getrandom(&mw->stride, 1, GRND_NONBLOCK) != 1)
		mw->stride = 1;
	mw->stride |= 1;
	list_push_back(&ep->mws, &mw->link);
	return mw;
}

/*
 * Bound ones too: deallocating takes them away from the peer. Never by
 * LOCAL_INV here: rxe's kernel crashes on a window that the peer invalidated.
 */
void verbs_mem_free_mws(struct verbs_ep *ep)
{
	struct list *node;

	while ((node = list_pop_front(&ep->mws))) {
		struct verbs_mw *mw = container_of(node, struct verbs_mw, link);
		int rc = ibv_dealloc_mw(mw->mw);

		if (rc)
			log_warn("%s: cannot free a window: error %d", ep->name, rc);
		free(mw);
	}
}

uint32_t verbs_mem_mw_next_rkey(const struct verbs_mw *mw)
{
	uint32_t rkey = mw->mw->rkey;

	return (rkey & ~0xffu) | ((rkey + mw->stride) & 0xffu);
}
