/* SPDX-License-Identifier: BSD-3-Clause */
#include "fab_sim_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- registrations ---- */

struct fab_mr *fab_mr_reg(struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	int err = sim_call(ep);
	struct fab_mr *mr;

	if (!err && !ep->have_caps) {
		fab_sim_fail("fab_mr_reg() before RESOLVED");
		err = -EINVAL;
	}
	if (!err && (!len || !addr)) {
		fab_sim_fail("fab_mr_reg() of nothing");
		err = -EINVAL;
	}
	if (err) {
		errno = -err;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	*mr = (struct fab_mr){.ep = ep, .addr = addr, .len = len, .access = access, .bind = bind};
	if (access) {
		mr->rkey = sim_new_key() | 1;
		sim_keys_add(1, 0);
	}
	list_push_back(&ep->mrs, &mr->link);
	sim_objects_add(1);
	return mr;
}

static void kill_mr(struct fab_mr *mr)
{
	if (mr->dead)
		return;
	mr->dead = true;
	if (mr->access)
		sim_keys_add(-1, 0);
	sim_objects_add(-1);
}

void fab_mr_dereg(struct fab_mr *mr)
{
	if (!mr)
		return;
	if (mr->dead)
		fab_sim_fail("fab_mr_dereg() of a registration that is gone");
	if (mr->bound)
		fab_sim_fail("fab_mr_dereg() of memory with %u bound windows", mr->bound);
	kill_mr(mr);
}

uint32_t fab_mr_rkey(const struct fab_mr *mr)
{
	if (mr->dead)
		fab_sim_fail("fab_mr_rkey() of a registration that is gone");
	return mr->rkey;
}

/* The device is another one: all registrations are gone. */
void sim_kill_mrs(struct fab_ep *ep)
{
	list_for_each (node, &ep->mrs)
		kill_mr(container_of(node, struct fab_mr, link));
}

void sim_free_mrs(struct fab_ep *ep)
{
	struct list *node;

	sim_kill_mrs(ep);
	while ((node = list_pop_front(&ep->mrs)))
		free(container_of(node, struct fab_mr, link));
}

bool sim_mr_check(const struct fab_ep *ep, const struct fab_mr *mr, const void *addr, uint64_t len,
	const char *what)
{
	const uint8_t *p = addr;

	if (!mr) {
		fab_sim_fail("%s: no registration", what);
		return false;
	}
	if (mr->ep != ep || mr->dead) {
		fab_sim_fail("%s: registration is gone or of another endpoint", what);
		return false;
	}
	if (p < mr->addr || len > mr->len || (size_t)(p - mr->addr) > mr->len - len) {
		fab_sim_fail(
			"%s: %llu bytes outside their registration", what, (unsigned long long)len);
		return false;
	}
	return true;
}

/* ---- windows ---- */

struct fab_mw *fab_mw_alloc(struct fab_ep *ep)
{
	int err = sim_call(ep);
	struct fab_mw *mw;

	if (!err && (!ep->setup || ep->state == SIM_DRAINING || ep->state == SIM_IDLE)) {
		fab_sim_fail("fab_mw_alloc() without a queue pair");
		err = -EINVAL;
	}
	if (!err && !ep->caps.mw2b)
		err = -EOPNOTSUPP;
	if (err) {
		errno = -err;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	*mw = (struct fab_mw){.ep = ep, .rkey = sim_new_key()};
	list_push_back(&ep->mws, &mw->link);
	return mw;
}

uint32_t fab_mw_rkey(const struct fab_mw *mw)
{
	return mw->rkey;
}

uint32_t fab_mw_next_rkey(const struct fab_mw *mw)
{
	return (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xffu);
}

int sim_bind_check(const struct fab_ep *ep, const struct fab_bind *b)
{
	if (b->mw->ep != ep || b->mw->dead) {
		fab_sim_fail("bind of a window of another connection");
		return -EINVAL;
	}
	if (b->mw->bound) {
		fab_sim_fail("bind of a window that is bound");
		return -EINVAL;
	}
	if (b->access != FAB_REMOTE_READ && b->access != FAB_REMOTE_WRITE) {
		fab_sim_fail("bind with access %u: one direction is needed", b->access);
		return -EINVAL;
	}
	if (!b->len || !sim_mr_check(ep, b->mr, b->addr, b->len, "bind"))
		return -EINVAL;
	if (!b->mr->bind) {
		fab_sim_fail("bind to memory that was not registered for windows");
		return -EINVAL;
	}
	return 0;
}

void sim_bind(const struct fab_bind *b)
{
	struct fab_mw *mw = b->mw;

	mw->rkey = fab_mw_next_rkey(mw);
	mw->bound = true;
	mw->mr = (struct fab_mr *)b->mr;
	mw->mr->bound++;
	mw->addr = b->addr;
	mw->len = b->len;
	mw->access = b->access;
	sim_keys_add(1, 1);
}

void sim_unbind(struct fab_mw *mw)
{
	if (!mw->bound)
		return;
	mw->bound = false;
	mw->mr->bound--;
	mw->mr = NULL;
	sim_keys_add(-1, -1);
}

struct fab_mw *sim_find_window(struct fab_ep *ep, uint32_t rkey)
{
	list_for_each (node, &ep->mws) {
		struct fab_mw *mw = container_of(node, struct fab_mw, link);

		if (mw->bound && mw->rkey == rkey)
			return mw;
	}
	return NULL;
}

void sim_free_windows(struct fab_ep *ep)
{
	struct list *node;

	while ((node = list_pop_front(&ep->mws))) {
		struct fab_mw *mw = container_of(node, struct fab_mw, link);

		sim_unbind(mw);
		free(mw);
	}
}

/* ---- what the server does to our memory ---- */

static void *reach(
	struct fab_sim_conn *conn, uint32_t rkey, uint64_t addr, size_t len, unsigned int access)
{
	struct fab_ep *ep = conn->ep;
	const char *dir = access == FAB_REMOTE_READ ? "RDMA Read" : "RDMA Write";
	const struct fab_mw *mw = sim_find_window(ep, rkey);
	const uint8_t *base = NULL;
	uint64_t size = 0;
	unsigned int allowed = 0;

	if (mw) {
		base = mw->addr;
		size = mw->len;
		allowed = mw->access;
	} else {
		list_for_each (node, &ep->mrs) {
			const struct fab_mr *mr = container_of(node, struct fab_mr, link);

			if (mr->dead || !mr->access || mr->rkey != rkey)
				continue;
			base = mr->addr;
			size = mr->len;
			allowed = mr->access;
		}
	}
	if (!base) {
		if (!conn->hostile)
			fab_sim_fail("%s with key %#x, which is not valid", dir, rkey);
		return NULL;
	}
	if (!(allowed & access)) {
		if (!conn->hostile)
			fab_sim_fail("%s with key %#x: wrong direction", dir, rkey);
		return NULL;
	}
	if (addr < (uintptr_t)base || len > size || addr - (uintptr_t)base > size - len) {
		if (!conn->hostile)
			fab_sim_fail("%s of %zu bytes with key %#x: out of bounds", dir, len, rkey);
		return NULL;
	}
	return (void *)(uintptr_t)addr;
}

int fab_sim_conn_read(
	struct fab_sim_conn *conn, uint32_t rkey, uint64_t addr, void *dst, size_t len)
{
	const void *src;

	if (conn->ep->state != SIM_UP)
		return -ENOTCONN;
	src = reach(conn, rkey, addr, len, FAB_REMOTE_READ);
	if (!src) {
		fab_sim_conn_close(conn, -EACCES);
		return -EACCES;
	}
	memcpy(dst, src, len);
	SIM_COUNT(rdma_reads);
	return 0;
}

int fab_sim_conn_write(
	struct fab_sim_conn *conn, uint32_t rkey, uint64_t addr, const void *src, size_t len)
{
	void *dst;

	if (conn->ep->state != SIM_UP)
		return -ENOTCONN;
	dst = reach(conn, rkey, addr, len, FAB_REMOTE_WRITE);
	if (!dst) {
		fab_sim_conn_close(conn, -EACCES);
		return -EACCES;
	}
	memcpy(dst, src, len);
	SIM_COUNT(rdma_writes);
	return 0;
}
