/* SPDX-License-Identifier: BSD-3-Clause */
#include "null_fab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "null_srv.h"

/* Measured alone: a call must stay a call. */
#define NOINLINE __attribute__((noinline))

/* A call is answered in less than a microsecond. */
#define PREEMPTED_NS 5000u

static struct null_fab_spent own_spent;
struct null_fab_spent *null_fab_spent = &own_spent;
struct fab_ep *null_fab_last;
bool null_fab_mw = true;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- what is due ---- */

static void free_windows(struct fab_ep *ep)
{
	struct list *node;

	while ((node = list_pop_front(&ep->mws)))
		free(container_of(node, struct fab_mw, link));
}

static void flush(struct fab_ep *ep)
{
	while (ep->send_head != ep->send_tail)
		ep->ops->sent(
			ep->ctx, ep->sends[ep->send_head++ % NULL_FAB_SENDS].cookie, FAB_FLUSHED);
	while (ep->recv_head != ep->recv_tail)
		ep->ops->received(ep->ctx, ep->recvs[ep->recv_head++ % NULL_FAB_RECVS].cookie, 0, 0,
			FAB_FLUSHED);
}

static void tell(struct fab_ep *ep, enum fab_event_type type)
{
	struct fab_event ev = {.type = type,
		.new_device = type == FAB_EV_RESOLVED && !ep->known,
		.priv = ep->priv,
		.priv_len = sizeof(ep->priv)};

	ep->known = true;
	ep->ops->event(ep->ctx, &ev);
}

/* True: there was one. */
static bool take(bool *due)
{
	bool was = *due;

	*due = false;
	return was;
}

/*
 * Reading the thread's CPU clock is a system call, which would cost more than what is measured. So
 * the time is that of the wall, in which the thread may have been preempted: a batch that took
 * PREEMPTED_NS a call counts as those before it did.
 */
static void count_server(unsigned int calls, uint64_t ns)
{
	static _Atomic uint64_t known_ns, known_calls;

	if (ns < calls * PREEMPTED_NS) {
		known_ns += ns;
		known_calls += calls;
	} else {
		ns = known_calls ? known_ns / known_calls * calls : 0;
	}
	null_fab_spent->server_ns += ns;
	null_fab_spent->calls += calls;
}

static bool poll_now(struct reactor_spin *s)
{
	struct fab_ep *ep = container_of(s, struct fab_ep, spin);
	unsigned int calls = null_fab_sends(ep);
	uint64_t start;

	if (take(&ep->leaving)) {
		flush(ep);
		free_windows(ep);
		ep->active = false;
		tell(ep, FAB_EV_DRAINED);
		return true;
	}
	if (take(&ep->resolved)) {
		tell(ep, FAB_EV_RESOLVED);
		return true;
	}
	if (take(&ep->connected)) {
		tell(ep, FAB_EV_ESTABLISHED);
		return true;
	}
	if (take(&ep->bound)) {
		ep->ops->sent(ep->ctx, ep->trial, FAB_OK);
		ep->ops->batch_done(ep->ctx);
		return true;
	}
	if (take(&ep->unbound)) {
		ep->ops->invalidated(ep->ctx, ep->trial, FAB_OK);
		ep->ops->batch_done(ep->ctx);
		return true;
	}
	if (calls == 0)
		return false;
	start = now_ns();
	null_fab_answer(ep);
	count_server(calls, now_ns() - start);
	null_fab_deliver(ep);
	return true;
}

static bool nothing_due(struct reactor_spin *s)
{
	struct fab_ep *ep = container_of(s, struct fab_ep, spin);

	return !ep->leaving && !ep->resolved && !ep->connected && !ep->bound && !ep->unbound &&
	       null_fab_sends(ep) == 0;
}

/* A payload that travels inline is a part of its own. */
static const uint8_t *message(const struct null_send *s, uint8_t *room, size_t size, uint32_t *len)
{
	*len = 0;
	for (unsigned int i = 0; i < s->sge_cnt; i++)
		*len += s->sges[i].len;
	if (s->sge_cnt == 1)
		return s->sges[0].addr;
	if (*len > size)
		null_srv_die("a Send is too long");
	for (unsigned int i = 0; i < s->sge_cnt; i++) {
		memcpy(room, s->sges[i].addr, s->sges[i].len);
		room += s->sges[i].len;
	}
	return room - *len;
}

void null_fab_answer(struct fab_ep *ep)
{
	uint8_t room[RPCRDMA_INLINE_MAX];

	for (unsigned int i = 0; i < null_fab_sends(ep); i++) {
		struct null_recv *r = &ep->recvs[(ep->recv_head + i) % NULL_FAB_RECVS];
		const uint8_t *msg;
		uint32_t len;

		if (ep->recv_head + i == ep->recv_tail)
			null_srv_die("no receive is posted for an answer");
		msg = message(
			&ep->sends[(ep->send_head + i) % NULL_FAB_SENDS], room, sizeof(room), &len);
		r->len = null_srv_answer(msg, len, r->mem);
	}
}

void null_fab_deliver(struct fab_ep *ep)
{
	for (unsigned int left = null_fab_sends(ep); left > 0; left--) {
		const struct null_send *s = &ep->sends[ep->send_head++ % NULL_FAB_SENDS];
		const struct null_recv *r = &ep->recvs[ep->recv_head++ % NULL_FAB_RECVS];
		uint32_t rkey = s->rkey, len = r->len;
		uint64_t cookie = r->cookie;

		ep->ops->sent(ep->ctx, s->cookie, FAB_OK);
		ep->ops->received(ep->ctx, cookie, len, rkey, FAB_OK);
	}
	if (ep->ops->batch_done)
		ep->ops->batch_done(ep->ctx);
}

/* ---- fab.h ---- */

struct fab_ep *fab_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	struct fab_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->reactor = r;
	ep->spin = (struct reactor_spin){.poll = poll_now, .arm = nothing_due};
	ep->ops = ops;
	ep->ctx = ctx;
	ep->next_key = 0x100;
	ep->trial = UINT64_MAX;
	list_init(&ep->mrs);
	list_init(&ep->mws);
	ep->caps = (struct fab_caps){.dev_name = "null0",
		.mw2b = null_fab_mw,
		.max_sge = 8,
		.max_wr = 16384,
		.max_mw = 65536,
		.max_rd = 16,
		.max_mr_size = UINT64_MAX};
	reactor_spin_add(r, &ep->spin);
	null_fab_last = ep;
	return ep;
}

void fab_ep_free(struct fab_ep *ep)
{
	if (!ep)
		return;
	free_windows(ep);
	while (!list_empty(&ep->mrs))
		fab_mr_dereg(list_first(&ep->mrs, struct fab_mr, link));
	reactor_spin_del(&ep->spin);
	free(ep);
}

int fab_ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	ep->active = ep->resolved = true;
	return 0;
}

const struct fab_caps *fab_ep_caps(const struct fab_ep *ep)
{
	return &ep->caps;
}

int fab_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf)
{
	return conf->recv_wr < NULL_FAB_RECVS && conf->send_wr <= NULL_FAB_SENDS &&
			       conf->max_send_sge <= 4
		       ? 0
		       : -ENOMEM;
}

int fab_ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len)
{
	memcpy(ep->priv, priv, sizeof(ep->priv)); /* the server offers the same */
	ep->connected = true;
	return 0;
}

void fab_ep_disconnect(struct fab_ep *ep)
{
	ep->resolved = ep->connected = false;
	ep->leaving = ep->active;
}

NOINLINE void fab_ep_set_busy(struct fab_ep *ep, unsigned int in_flight)
{
	ep->busy = in_flight;
}

struct fab_mr *fab_mr_reg(struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	struct fab_mr *mr = calloc(1, sizeof(*mr));

	if (mr) {
		mr->rkey = ep->next_key += 0x100;
		list_push_back(&ep->mrs, &mr->link);
	}
	return mr;
}

void fab_mr_dereg(struct fab_mr *mr)
{
	if (mr)
		list_del(&mr->link);
	free(mr);
}

NOINLINE uint32_t fab_mr_rkey(const struct fab_mr *mr)
{
	return mr->rkey;
}

struct fab_mw *fab_mw_alloc(struct fab_ep *ep)
{
	struct fab_mw *mw = calloc(1, sizeof(*mw));

	if (mw) {
		mw->rkey = ep->next_key += 0x100;
		list_push_back(&ep->mws, &mw->link);
	}
	return mw;
}

uint32_t fab_mw_rkey(const struct fab_mw *mw)
{
	return mw->rkey;
}

NOINLINE uint32_t fab_mw_next_rkey(const struct fab_mw *mw)
{
	return (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
}

NOINLINE int fab_post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	struct null_send *s = &ep->sends[ep->send_tail++ % NULL_FAB_SENDS];

	for (unsigned int i = 0; i < sge_cnt; i++)
		s->sges[i] = sges[i];
	s->sge_cnt = sge_cnt;
	s->cookie = cookie;
	s->rkey = 0;
	for (unsigned int i = 0; i < bind_cnt; i++)
		s->rkey = binds[i].mw->rkey = fab_mw_next_rkey(binds[i].mw);
	return 0;
}

/* Once: the trial of windows. */
int fab_mw_bind(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie)
{
	bind->mw->rkey = fab_mw_next_rkey(bind->mw);
	ep->trial = cookie;
	ep->bound = true;
	return 0;
}

NOINLINE void fab_answered(struct fab_ep *ep, uint64_t cookie)
{
}

NOINLINE int fab_post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	ep->recvs[ep->recv_tail++ % NULL_FAB_RECVS] = (struct null_recv){addr, cookie, 0};
	return 0;
}

int fab_mw_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	if (cookie == ep->trial) {
		ep->unbound = true;
		return 0;
	}
	null_srv_die("the reply did not invalidate the call's window");
}

bool fab_ep_path(const struct fab_ep *ep, struct fab_path *ret)
{
	return false; /* nothing is captured here */
}

const char *fab_ep_name(const struct fab_ep *ep)
{
	return "null";
}

const char *fab_ep_why(const struct fab_ep *ep)
{
	return "";
}
