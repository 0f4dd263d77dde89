/* SPDX-License-Identifier: BSD-3-Clause */
#include "fab_impl.h"

struct fab_ep *fab_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	static const struct fab_impl *const impls[] = {
		[FAB_VERBS] = &verbs_impl, [FAB_SOFT] = &roce_impl};

	return impls[conf->kind]->ep_new(r, conf, ops, ctx);
}

void fab_ep_free(struct fab_ep *ep)
{
	if (ep)
		ep->impl->ep_free(ep);
}

int fab_ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	return ep->impl->ep_resolve(ep, src, dst);
}

const struct fab_caps *fab_ep_caps(const struct fab_ep *ep)
{
	return ep->impl->ep_caps(ep);
}

int fab_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf)
{
	return ep->impl->ep_setup(ep, conf);
}

int fab_ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len)
{
	return ep->impl->ep_connect(ep, priv, priv_len);
}

void fab_ep_disconnect(struct fab_ep *ep)
{
	ep->impl->ep_disconnect(ep);
}

void fab_ep_set_busy(struct fab_ep *ep, unsigned int in_flight)
{
	ep->impl->ep_set_busy(ep, in_flight);
}

bool fab_ep_path(const struct fab_ep *ep, struct fab_path *ret)
{
	return ep->impl->ep_path(ep, ret);
}

const char *fab_ep_name(const struct fab_ep *ep)
{
	return ep->impl->ep_name(ep);
}

const char *fab_ep_why(const struct fab_ep *ep)
{
	return ep->impl->ep_why(ep);
}

struct fab_mr *fab_mr_reg(struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	return ep->impl->mr_reg(ep, addr, len, access, bind);
}

void fab_mr_dereg(struct fab_mr *mr)
{
	if (mr)
		mr->impl->mr_dereg(mr);
}

uint32_t fab_mr_rkey(const struct fab_mr *mr)
{
	return mr->impl->mr_rkey(mr);
}

struct fab_mw *fab_mw_alloc(struct fab_ep *ep)
{
	return ep->impl->mw_alloc(ep);
}

uint32_t fab_mw_rkey(const struct fab_mw *mw)
{
	return mw->impl->mw_rkey(mw);
}

uint32_t fab_mw_next_rkey(const struct fab_mw *mw)
{
	return mw->impl->mw_next_rkey(mw);
}

int fab_mw_bind(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie)
{
	return ep->impl->mw_bind(ep, bind, cookie);
}

int fab_mw_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	return ep->impl->mw_invalidate(ep, mws, cnt, cookie);
}

int fab_post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	return ep->impl->post_send(ep, sges, sge_cnt, binds, bind_cnt, cookie);
}

void fab_answered(struct fab_ep *ep, uint64_t cookie)
{
	if (ep->impl->answered)
		ep->impl->answered(ep, cookie);
}

int fab_post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	return ep->impl->post_recv(ep, addr, len, mr, cookie);
}
