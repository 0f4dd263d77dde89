/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_int.h"

static struct verbs_ep *of(const struct fab_ep *ep)
{
	return container_of(ep, struct verbs_ep, base);
}

static struct fab_ep *ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	struct verbs_ep *ep = verbs_ep_new(r, conf, ops, ctx);

	if (!ep)
		return NULL;
	ep->base.impl = &verbs_impl;
	return &ep->base;
}

static void ep_free(struct fab_ep *ep)
{
	verbs_ep_free(of(ep));
}

static int ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	return verbs_cm_resolve(of(ep), src, dst);
}

static const struct fab_caps *ep_caps(const struct fab_ep *ep)
{
	return &of(ep)->dev.caps;
}

static int ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf)
{
	return verbs_qp_setup(of(ep), conf);
}

static int ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len)
{
	return verbs_cm_connect(of(ep), priv, priv_len);
}

static void ep_disconnect(struct fab_ep *ep)
{
	verbs_ep_disconnect(of(ep));
}

static void ep_set_busy(struct fab_ep *ep, unsigned int in_flight)
{
	of(ep)->busy = in_flight;
}

static bool ep_path(const struct fab_ep *ep, struct fab_path *ret)
{
	return verbs_ep_path(of(ep), ret);
}

static const char *ep_name(const struct fab_ep *ep)
{
	return of(ep)->name;
}

static const char *ep_why(const struct fab_ep *ep)
{
	return of(ep)->why;
}

static int post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	return verbs_post_send(of(ep), sges, sge_cnt, binds, bind_cnt, cookie);
}

static int post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	return verbs_post_recv(of(ep), addr, len, verbs_mr_of(mr), cookie);
}

static struct fab_mr *mr_reg(
	struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	struct verbs_mr *mr = verbs_mem_reg(of(ep), addr, len, access, bind);

	if (!mr)
		return NULL;
	mr->base.impl = &verbs_impl;
	return &mr->base;
}

static void mr_dereg(struct fab_mr *mr)
{
	verbs_mem_dereg(verbs_mr_of(mr));
}

static uint32_t mr_rkey(const struct fab_mr *mr)
{
	return verbs_mr_of(mr)->rkey;
}

static struct fab_mw *mw_alloc(struct fab_ep *ep)
{
	struct verbs_mw *mw = verbs_mem_mw_alloc(of(ep));

	if (!mw)
		return NULL;
	mw->base.impl = &verbs_impl;
	return &mw->base;
}

static uint32_t mw_rkey(const struct fab_mw *mw)
{
	return verbs_mw_of(mw)->mw->rkey;
}

static uint32_t mw_next_rkey(const struct fab_mw *mw)
{
	return verbs_mem_mw_next_rkey(verbs_mw_of(mw));
}

static int mw_bind(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie)
{
	return verbs_post_bind(of(ep), bind, cookie);
}

static int mw_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	return verbs_post_invalidate(of(ep), mws, cnt, cookie);
}

const struct fab_impl verbs_impl = {
	.name = "verbs",
	.ep_new = ep_new,
	.ep_free = ep_free,
	.ep_resolve = ep_resolve,
	.ep_caps = ep_caps,
	.ep_setup = ep_setup,
	.ep_connect = ep_connect,
	.ep_disconnect = ep_disconnect,
	.ep_set_busy = ep_set_busy,
	.ep_path = ep_path,
	.ep_name = ep_name,
	.ep_why = ep_why,
	.post_send = post_send,
	.post_recv = post_recv,
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.mr_rkey = mr_rkey,
	.mw_alloc = mw_alloc,
	.mw_rkey = mw_rkey,
	.mw_next_rkey = mw_next_rkey,
	.mw_bind = mw_bind,
	.mw_invalidate = mw_invalidate,
};
