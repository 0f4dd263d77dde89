/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making and freeing a transport, and what it tells about itself.
 */
#include "rpcrdma_int.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void rpcrdma_conf_default(struct rpcrdma_conf *conf)
{
	*conf = (struct rpcrdma_conf){
		.fabric = RPCRDMA_FABRIC_AUTO,
		.memreg = RPCRDMA_MEMREG_AUTO,
		.credits = 64,
		.inline_size = 4096,
		.data_size = 1024 * 1024,
		.data_cnt = 64,
		.timeo_ns = 60 * NSEC_PER_SEC,
		.retrans = 2,
		.resolve_timeout_ns = 5 * NSEC_PER_SEC,
		.connect_timeout_ns = 10 * NSEC_PER_SEC,
		.retry_count = 6, /* 7 is "endless" to rxe, at the server's end too */
		.backoff_min_ns = 250 * NSEC_PER_MSEC,
		.backoff_max_ns = 30 * NSEC_PER_SEC,
		.idle_probe_ns = 15 * NSEC_PER_SEC,
		/* a NULL call waits for an nfsd thread, and all may be busy with slow disks */
		.probe_timeout_ns = 30 * NSEC_PER_SEC,
		/* twice the ACK timeout that adapters have by default, of up to 4.3 s; where it is
		 * longer the connection says so (rpcrdma_probe.c) */
		.send_stall_ns = 9 * NSEC_PER_SEC,
	};
}

static void seed(struct rpcrdma *x)
{
	/* virtual time means a test that wants the same run again */
	if (reactor_is_virtual(x->reactor) ||
		getrandom(&x->rng, sizeof(x->rng), GRND_NONBLOCK) != sizeof(x->rng) || x->rng == 0)
		x->rng = 0x9e3779b97f4a7c15ull;
}

static bool conf_is_valid(const struct rpcrdma_conf *c)
{
	return c->credits >= 1 && c->credits <= RPCRDMA_MAX_CREDITS &&
	       c->inline_size >= RPCRDMA_INLINE_DEFAULT && c->inline_size <= RPCRDMA_INLINE_MAX &&
	       c->data_size > 0 && c->data_size <= UINT32_MAX / 2 && c->data_cnt > 0 &&
	       c->timeo_ns > 0 && c->backoff_min_ns > 0 && c->backoff_max_ns >= c->backoff_min_ns;
}

static int init(struct rpcrdma *x)
{
	int err = rpcrdma_mem_init(x);

	if (!err)
		err = rpcrdma_win_init(x);
	if (!err)
		err = rpcrdma_req_init(x);
	if (err)
		return err;
	rpcrdma_conn_init(x);
	rpcrdma_timeo_init(x);
	rpcrdma_probe_init(x);
	rpcrdma_trial_init(x);
	return rpcrdma_fabric_use(
		x, x->conf.fabric == RPCRDMA_FABRIC_SOFT ? FAB_SOFT : FAB_VERBS, &rpcrdma_fab_ops);
}

static void destroy(struct rpcrdma *x)
{
	fab_ep_free(x->ep);
	rpcrdma_req_fini(x);
	rpcrdma_win_fini(x);
	rpcrdma_mem_fini(x);
	free(x->tap.batch);
	free(x);
}

struct rpcrdma *rpcrdma_new(struct reactor *r, const struct rpcrdma_conf *conf,
	const struct rpcrdma_ops *ops, void *ctx, struct stats *stats)
{
	struct rpcrdma *x;
	int err;

	if (!conf_is_valid(conf)) {
		errno = EINVAL;
		return NULL;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->reactor = r;
	x->conf = *conf;
	x->conf.inline_size &= ~1023u; /* what a size byte of RFC 8797 can say */
	x->ops = ops;
	x->ctx = ctx;
	x->stats = stats;
	x->limits = (struct rpcrdma_limits){.send_max = RPCRDMA_INLINE_DEFAULT,
		.recv_max = RPCRDMA_INLINE_DEFAULT,
		.max_seg = conf->max_seg,
		.max_sge = RPCRDMA_MAX_SGE};
	snprintf(x->peer, sizeof(x->peer), "(not connected)");
	seed(x);
	err = init(x);
	if (err) {
		destroy(x);
		errno = -err;
		return NULL;
	}
	return x;
}

void rpcrdma_free(struct rpcrdma *x)
{
	if (!x)
		return;
	assert(x->state == RPCRDMA_C_IDLE || x->state == RPCRDMA_C_FAILED ||
		x->state == RPCRDMA_C_STOPPED);
	assert(list_empty(&x->flight) && list_empty(&x->queue) && list_empty(&x->ended));
	reactor_timer_cancel(x->reactor, &x->kick_timer);
	reactor_timer_cancel(x->reactor, &x->backoff_timer);
	rpcrdma_timeo_fini(x);
	rpcrdma_probe_stop(x);
	destroy(x);
}

bool rpcrdma_is_up(const struct rpcrdma *x)
{
	return x->state == RPCRDMA_C_UP;
}

uint64_t rpcrdma_generation(const struct rpcrdma *x)
{
	return x->generation;
}

size_t rpcrdma_inline_call_max(const struct rpcrdma *x)
{
	return x->limits.send_max -
	       rpcrdma_chunk_worst_call_hdr((uint32_t)x->conf.data_size, x->limits.max_seg);
}

size_t rpcrdma_inline_reply_max(const struct rpcrdma *x)
{
	return x->limits.recv_max -
	       rpcrdma_chunk_worst_reply_hdr((uint32_t)x->conf.data_size, x->limits.max_seg);
}

size_t rpcrdma_data_size(const struct rpcrdma *x)
{
	return x->conf.data_size;
}

size_t rpcrdma_result_size(const struct rpcrdma *x)
{
	uint64_t room = x->credit.inbound_room;
	size_t size = 4096;

	if (room == 0 || room / 2 >= x->conf.data_size)
		return x->conf.data_size;
	while (2 * size <= room / 2)
		size *= 2;
	return size;
}

enum rpcrdma_memreg rpcrdma_memreg(const struct rpcrdma *x)
{
	return x->memreg;
}

const char *rpcrdma_failure_detail(const struct rpcrdma *x)
{
	return x->detail;
}

const char *rpcrdma_peer_name(const struct rpcrdma *x)
{
	return x->peer;
}

const char *rpcrdma_device_name(const struct rpcrdma *x)
{
	return fab_ep_caps(x->ep)->dev_name;
}

void rpcrdma_thresholds(const struct rpcrdma *x, uint32_t *ret_send, uint32_t *ret_recv)
{
	*ret_send = x->limits.send_max;
	*ret_recv = x->limits.recv_max;
}

bool rpcrdma_facts(const struct rpcrdma *x, struct rpcrdma_facts *ret)
{
	struct fab_path path = {.mtu = 0};

	if (x->state != RPCRDMA_C_UP)
		return false;
	(void)fab_ep_path(x->ep, &path);
	*ret = (struct rpcrdma_facts){
		.fabric = x->fab.kind == FAB_SOFT ? RPCRDMA_FABRIC_SOFT : RPCRDMA_FABRIC_VERBS,
		.local = path.local,
		.remote = path.remote,
		.mtu = path.mtu,
		.version = RPCRDMA_VERSION, /* no other is understood */
		.asked = x->credit.asked,
		.granted = x->credit.granted,
		.max_inbound = x->credit.inbound_room,
	};
	ret->has_priv = rpcrdma_priv_decode(
		x->tap.peer_priv, x->tap.peer_priv_len, &ret->peer_send, &ret->peer_recv);
	return true;
}
