/* SPDX-License-Identifier: BSD-3-Clause */
#include "fab_sim_int.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTENERS_MAX 8

struct listener {
	bool used, any;
	struct sockaddr_storage addr;
	const struct fab_sim_srv_ops *ops;
	void *ctx;
};

/* The one world of the process. */
static struct {
	pthread_mutex_t lock;
	bool ready;
	struct fab_sim_conf conf;
	struct fab_sim_stats stats;
	struct listener listeners[LISTENERS_MAX];
	struct list eps;
	uint64_t next_ep_id;
	uint32_t next_key;
	uint64_t calls, fail_at, cut_at;
	int fail_err;
	unsigned int refused;
	int keys, windows, objects;
	unsigned int failures;
	char failure[512];
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sim_lock(void)
{
	pthread_mutex_lock(&world.lock);
}

void sim_unlock(void)
{
	pthread_mutex_unlock(&world.lock);
}

static void world_default(void)
{
	world.conf = (struct fab_sim_conf){
		.caps =
			{
				.dev_name = "sim0",
				.mw2b = true,
				.max_sge = 8,
				.max_wr = 16384,
				.max_mw = 65536,
				.max_rd = 16,
				.max_mr_size = UINT64_MAX,
			},
		.resolve_ns = 100 * NSEC_PER_USEC,
		.connect_ns = 500 * NSEC_PER_USEC,
		.wire_ns = 2 * NSEC_PER_USEC,
		.pad_priv = 16,
	};
	if (!world.ready)
		list_init(&world.eps);
	world.next_key = 0x51;
	world.ready = true;
}

static void world_ready(void)
{
	if (!world.ready)
		world_default();
}

struct fab_sim_conf *fab_sim_conf(void)
{
	sim_lock();
	world_ready();
	sim_unlock();
	return &world.conf;
}

void fab_sim_reset(void)
{
	sim_lock();
	world_ready();
	world_default();
	memset(world.listeners, 0, sizeof(world.listeners));
	memset(&world.stats, 0, sizeof(world.stats));
	world.calls = world.fail_at = world.cut_at = 0;
	world.refused = world.failures = 0;
	world.failure[0] = '\0';
	sim_unlock();
}

/* ---- judge ---- */

void fab_sim_fail(const char *fmt, ...)
{
	char text[480];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sim_lock();
	if (!world.failures++)
		snprintf(world.failure, sizeof(world.failure), "%s", text);
	sim_unlock();
	fprintf(stderr, "sim: FAILURE: %s\n", text);
}

unsigned int fab_sim_failures(void)
{
	unsigned int n;

	sim_lock();
	n = world.failures;
	sim_unlock();
	return n;
}

const char *fab_sim_failure(void)
{
	return world.failure;
}

static unsigned int read_locked(const int *value)
{
	int n;

	sim_lock();
	n = *value;
	sim_unlock();
	return n > 0 ? (unsigned int)n : 0;
}

unsigned int fab_sim_live_keys(void)
{
	return read_locked(&world.keys);
}

unsigned int fab_sim_live_windows(void)
{
	return read_locked(&world.windows);
}

unsigned int fab_sim_live_objects(void)
{
	return read_locked(&world.objects);
}

void sim_keys_add(int keys, int windows)
{
	sim_lock();
	world.keys += keys;
	world.windows += windows;
	sim_unlock();
}

void sim_objects_add(int n)
{
	sim_lock();
	world.objects += n;
	sim_unlock();
}

struct fab_sim_stats *sim_stats(void)
{
	return &world.stats;
}

struct fab_sim_stats fab_sim_stats(void)
{
	struct fab_sim_stats s;

	sim_lock();
	s = world.stats;
	sim_unlock();
	return s;
}

/* Keys of registrations and windows: the low byte is the part a bind changes. */
uint32_t sim_new_key(void)
{
	uint32_t key;

	sim_lock();
	key = world.next_key++ << 8;
	sim_unlock();
	return key;
}

/* ---- faults ---- */

uint64_t fab_sim_calls(void)
{
	uint64_t n;

	sim_lock();
	n = world.calls;
	sim_unlock();
	return n;
}

void fab_sim_fail_call(uint64_t nth, int err)
{
	sim_lock();
	world.fail_at = nth ? world.calls + nth : 0;
	world.fail_err = -err;
	sim_unlock();
}

void fab_sim_cut_after(uint64_t nth)
{
	sim_lock();
	world.cut_at = nth ? world.calls + nth : 0;
	sim_unlock();
}

bool fab_sim_fault_hit(void)
{
	bool hit;

	sim_lock();
	hit = world.calls >= world.fail_at && world.calls >= world.cut_at;
	sim_unlock();
	return hit;
}

int sim_call(struct fab_ep *ep)
{
	bool cut;
	int err = 0;

	sim_lock();
	world_ready();
	world.calls++;
	if (world.calls == world.fail_at)
		err = world.fail_err;
	cut = world.calls == world.cut_at;
	sim_unlock();
	if (cut && ep)
		sim_ev_add(ep, SIM_EV_CUT, reactor_now(ep->reactor))->err = -ECONNRESET;
	return err;
}

int sim_take_refusal(void)
{
	int err = 0;

	sim_lock();
	if (world.conf.refuse_err &&
		(!world.conf.refuse_cnt || world.refused < world.conf.refuse_cnt)) {
		world.refused++;
		err = world.conf.refuse_err;
	}
	sim_unlock();
	return err;
}

void sim_world_add(struct fab_ep *ep)
{
	sim_lock();
	world_ready();
	ep->id = ++world.next_ep_id;
	list_push_back(&world.eps, &ep->world_link);
	sim_unlock();
}

void sim_world_del(struct fab_ep *ep)
{
	sim_lock();
	list_del(&ep->world_link);
	sim_unlock();
}

struct break_msg {
	struct reactor_msg msg; /* first */
	uint64_t ep_id;
	int err;
};

static void run_break(struct reactor_msg *msg)
{
	struct break_msg *b = (struct break_msg *)msg;
	struct fab_ep *ep = NULL;

	sim_lock();
	list_for_each (node, &world.eps) {
		struct fab_ep *it = container_of(node, struct fab_ep, world_link);

		if (it->id == b->ep_id)
			ep = it;
	}
	sim_unlock();
	/* Found on its own thread, so it stays. */
	if (ep) {
		if (b->err == -ENODEV)
			ep->new_device = true;
		sim_ep_break(ep, b->err);
	}
	free(b);
}

void fab_sim_break_all(int err)
{
	sim_lock();
	world_ready();
	list_for_each (node, &world.eps) {
		struct fab_ep *ep = container_of(node, struct fab_ep, world_link);
		struct break_msg *b = calloc(1, sizeof(*b));

		*b = (struct break_msg){.msg.run = run_break, .ep_id = ep->id, .err = err};
		reactor_post(ep->reactor, &b->msg);
	}
	sim_unlock();
}

/* ---- listeners ---- */

static bool same_addr(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *x = (const struct sockaddr_in *)a;
		const struct sockaddr_in *y = (const struct sockaddr_in *)b;

		return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
	}
	if (a->sa_family == AF_INET6) {
		const struct sockaddr_in6 *x = (const struct sockaddr_in6 *)a;
		const struct sockaddr_in6 *y = (const struct sockaddr_in6 *)b;

		return x->sin6_port == y->sin6_port &&
		       !memcmp(&x->sin6_addr, &y->sin6_addr, sizeof(x->sin6_addr));
	}
	return false;
}

static size_t addr_len(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

int fab_sim_listen(const struct sockaddr *addr, const struct fab_sim_srv_ops *ops, void *ctx)
{
	int ret = -EADDRINUSE;

	sim_lock();
	world_ready();
	for (int i = 0; i < LISTENERS_MAX; i++) {
		struct listener *l = &world.listeners[i];

		if (l->used)
			continue;
		*l = (struct listener){.used = true, .any = !addr, .ops = ops, .ctx = ctx};
		if (addr)
			memcpy(&l->addr, addr, addr_len(addr));
		ret = 0;
		break;
	}
	sim_unlock();
	return ret;
}

void fab_sim_unlisten(void *ctx)
{
	sim_lock();
	for (int i = 0; i < LISTENERS_MAX; i++) {
		if (world.listeners[i].used && world.listeners[i].ctx == ctx)
			world.listeners[i].used = false;
	}
	sim_unlock();
}

bool sim_find_listener(
	const struct sockaddr *dst, const struct fab_sim_srv_ops **ret_ops, void **ret_ctx)
{
	const struct listener *found = NULL;

	sim_lock();
	for (int i = 0; i < LISTENERS_MAX; i++) {
		const struct listener *l = &world.listeners[i];

		if (!l->used)
			continue;
		if (l->any && !found)
			found = l;
		else if (!l->any && same_addr((const struct sockaddr *)&l->addr, dst))
			found = l;
	}
	if (found) {
		*ret_ops = found->ops;
		*ret_ctx = found->ctx;
	}
	sim_unlock();
	return found != NULL;
}
