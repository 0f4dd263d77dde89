/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An implementation of fab.h has a table of its functions, and each of its objects begins with a
 * pointer to that. fab.c calls them; they do what fab.h says of the function of that name.
 */
#ifndef RPCRDMAFS_FAB_IMPL_H
#define RPCRDMAFS_FAB_IMPL_H

#include "fab.h"

struct fab_impl {
	const char *name;
	struct fab_ep *(*ep_new)(struct reactor *r, const struct fab_conf *conf,
		const struct fab_ep_ops *ops, void *ctx);
	void (*ep_free)(struct fab_ep *ep);
	int (*ep_resolve)(
		struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst);
	const struct fab_caps *(*ep_caps)(const struct fab_ep *ep);
	int (*ep_setup)(struct fab_ep *ep, const struct fab_qp_conf *conf);
	int (*ep_connect)(struct fab_ep *ep, const void *priv, size_t priv_len);
	void (*ep_disconnect)(struct fab_ep *ep);
	void (*ep_set_busy)(struct fab_ep *ep, unsigned int in_flight);
	bool (*ep_path)(const struct fab_ep *ep, struct fab_path *ret);
	const char *(*ep_name)(const struct fab_ep *ep);
	const char *(*ep_why)(const struct fab_ep *ep);
	int (*post_send)(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
		const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie);
	/* NULL: the device acknowledges by itself. */
	void (*answered)(struct fab_ep *ep, uint64_t cookie);
	int (*post_recv)(struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr,
		uint64_t cookie);
	struct fab_mr *(*mr_reg)(
		struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind);
	void (*mr_dereg)(struct fab_mr *mr); /* not NULL */
	uint32_t (*mr_rkey)(const struct fab_mr *mr);
	struct fab_mw *(*mw_alloc)(struct fab_ep *ep);
	uint32_t (*mw_rkey)(const struct fab_mw *mw);
	uint32_t (*mw_next_rkey)(const struct fab_mw *mw);
	int (*mw_bind)(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie);
	int (*mw_invalidate)(
		struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie);
};

extern const struct fab_impl verbs_impl; /* src/verbs */
extern const struct fab_impl roce_impl;  /* src/roce */

struct fab_ep {
	const struct fab_impl *impl;
};

struct fab_mr {
	const struct fab_impl *impl;
};

struct fab_mw {
	const struct fab_impl *impl;
};

#endif
