/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of this fabric. */
#include "roce_int.h"

static struct fab_ep *ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	struct fab_ep *ep = roce_ep_new(r, conf, ops, ctx);

	if (ep)
		ep->impl = &roce_impl;
	return ep;
}

static const struct fab_caps *ep_caps(const struct fab_ep *ep)
{
	return &roce_of(ep)->caps;
}

static const char *ep_name(const struct fab_ep *ep)
{
	return roce_of(ep)->name;
}

static const char *ep_why(const struct fab_ep *ep)
{
	return roce_of(ep)->why;
}

/* There is nothing to spin for: the kernel wakes the lane. */
static void ep_set_busy(struct fab_ep *ep, unsigned int in_flight)
{
}

static struct fab_mr *mr_reg(
	struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	struct fab_mr *mr = roce_key_reg(ep, addr, len, access, bind);

	if (mr)
		mr->impl = &roce_impl;
	return mr;
}

static struct fab_mw *mw_alloc(struct fab_ep *ep)
{
	struct fab_mw *mw = roce_key_alloc(ep);

	if (mw)
		mw->impl = &roce_impl;
	return mw;
}

const struct fab_impl roce_impl = {
	.name = "soft",
	.ep_new = ep_new,
	.ep_free = roce_ep_free,
	.ep_resolve = roce_ep_resolve,
	.ep_caps = ep_caps,
	.ep_setup = roce_ep_setup,
	.ep_connect = roce_ep_connect,
	.ep_disconnect = roce_ep_disconnect,
	.ep_set_busy = ep_set_busy,
	.ep_path = roce_ep_path,
	.ep_name = ep_name,
	.ep_why = ep_why,
	.post_send = roce_ep_send,
	.answered = roce_send_answered,
	.post_recv = roce_ep_recv,
	.mr_reg = mr_reg,
	.mr_dereg = roce_key_dereg,
	.mr_rkey = roce_key_of_mr,
	.mw_alloc = mw_alloc,
	.mw_rkey = roce_key_of_mw,
	.mw_next_rkey = roce_key_next,
	.mw_bind = roce_ep_bind,
	.mw_invalidate = roce_ep_invalidate,
};
