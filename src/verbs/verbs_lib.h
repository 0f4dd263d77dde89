/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librdmacm and libibverbs: loaded when the first endpoint looks for a device, so that a machine
 * that has neither of them runs the program and mounts with fabric=soft. Built with
 * -Dlink_rdma_core=true, or with prefer_static, the program is linked with them instead.
 *
 * Either way their functions are called through two tables: ibv.open_device() is
 * ibv_open_device(), rdma.connect() is rdma_connect(). A call of a function that is in no table
 * does not link. Inline functions of their headers are called as they are (ibv_post_send(),
 * ibv_poll_cq(), ibv_alloc_mw(), rdma_get_peer_addr()): they call what the provider has left in the
 * context, or nothing. But ibv_reg_mr() is a macro for one of two functions, which differ for
 * access flags of IBV_ACCESS_OPTIONAL_RANGE alone: ibv.reg_mr() is the one without, so none of
 * these flags may be given to it.
 *
 * Each function is looked up with its version, as the linker notes it. libibverbs has many in two
 * versions, and the older one has other structures (libibverbs/compat-1_0.c).
 *
 * Context: any thread.
 */
#ifndef RPCRDMAFS_VERBS_LIB_H
#define RPCRDMAFS_VERBS_LIB_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>

/* X(name after ibv_, version) */
#define VERBS_LIB_IBV(X)                                                                           \
	X(ack_async_event, "IBVERBS_1.1")                                                          \
	X(ack_cq_events, "IBVERBS_1.1")                                                            \
	X(alloc_pd, "IBVERBS_1.1")                                                                 \
	X(close_device, "IBVERBS_1.1")                                                             \
	X(create_comp_channel, "IBVERBS_1.0")                                                      \
	X(create_cq, "IBVERBS_1.1")                                                                \
	X(create_qp, "IBVERBS_1.1")                                                                \
	X(dealloc_pd, "IBVERBS_1.1")                                                               \
	X(dereg_mr, "IBVERBS_1.1")                                                                 \
	X(destroy_comp_channel, "IBVERBS_1.0")                                                     \
	X(destroy_cq, "IBVERBS_1.1")                                                               \
	X(destroy_qp, "IBVERBS_1.1")                                                               \
	X(event_type_str, "IBVERBS_1.1")                                                           \
	X(fork_init, "IBVERBS_1.1")                                                                \
	X(get_async_event, "IBVERBS_1.1")                                                          \
	X(get_cq_event, "IBVERBS_1.1")                                                             \
	X(get_device_name, "IBVERBS_1.1")                                                          \
	X(modify_qp, "IBVERBS_1.1")                                                                \
	X(open_device, "IBVERBS_1.1")                                                              \
	X(query_device, "IBVERBS_1.1")                                                             \
	X(reg_mr, "IBVERBS_1.1")                                                                   \
	X(wc_status_str, "IBVERBS_1.1")

/* X(name after rdma_, version) */
#define VERBS_LIB_RDMA(X)                                                                          \
	X(ack_cm_event, "RDMACM_1.0")                                                              \
	X(bind_addr, "RDMACM_1.0")                                                                 \
	X(connect, "RDMACM_1.0")                                                                   \
	X(create_event_channel, "RDMACM_1.0")                                                      \
	X(create_id, "RDMACM_1.0")                                                                 \
	X(destroy_event_channel, "RDMACM_1.0")                                                     \
	X(destroy_id, "RDMACM_1.0")                                                                \
	X(disconnect, "RDMACM_1.0")                                                                \
	X(establish, "RDMACM_1.2")                                                                 \
	X(event_str, "RDMACM_1.0")                                                                 \
	X(get_cm_event, "RDMACM_1.0")                                                              \
	X(init_qp_attr, "RDMACM_1.2")                                                              \
	X(resolve_addr, "RDMACM_1.0")                                                              \
	X(resolve_route, "RDMACM_1.0")                                                             \
	X(set_option, "RDMACM_1.0")

#define X(name, version) __typeof__(ibv_##name) *name;
struct verbs_lib_ibv {
	VERBS_LIB_IBV(X)
};
#undef X

#define X(name, version) __typeof__(rdma_##name) *name;
struct verbs_lib_rdma {
	VERBS_LIB_RDMA(X)
};
#undef X

/* Filled by verbs_lib_load(), and never changed after. */
extern struct verbs_lib_ibv ibv;
extern struct verbs_lib_rdma rdma;

/*
 * verbs_lib_load - have both libraries, and all functions of the tables
 *
 * The first call decides; they are never unloaded.
 * why: in words, which library and why not.
 * Returns: 0; -ELIBACC: why says what is missing, no function of the tables may be called.
 */
int verbs_lib_load(char *why, size_t why_len);

/* One function of a library, and where its address goes. */
struct verbs_lib_sym {
	const char *name, *version;
	void **fn;
};

/*
 * verbs_lib_open - load one library and look up functions
 *
 * Returns: 0; -ELIBACC: it cannot be loaded, or lacks one of them; why names it. Functions
 * that were found before are set.
 */
int verbs_lib_open(const char *soname, const struct verbs_lib_sym *syms, size_t cnt, char *why,
	size_t why_len);

#endif
