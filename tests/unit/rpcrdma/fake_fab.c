/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_fab.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum ep_state {
	S_IDLE,
	S_RESOLVING,
	S_RESOLVED,
	S_CONNECTING,
	S_UP,
	S_DRAINING
};

struct fab_mr {
	struct list link;
	uint8_t *addr;
	size_t len;
	unsigned int access;
	uint32_t rkey;
	unsigned int bound;
	bool bind;
};

struct fab_mw {
	struct list link;
	uint32_t rkey;
	struct fab_bind bind; /* mr NULL: not bound */
};

enum ev_type {
	EV_EVENT,
	EV_SENT,
	EV_RECV,
	EV_INVALIDATED,
	EV_TO_SERVER,
	EV_TO_CLIENT
};

struct ev {
	struct list link;
	enum ev_type type;
	struct fab_event event;
	uint64_t cookie;
	enum fab_status status;
	struct fab_mw *mws[FAB_MAX_WINS];
	unsigned int mw_cnt;
	uint32_t inv_rkey;
	size_t len;
	uint8_t data[];
};

struct recv {
	struct list link;
	uint8_t *addr;
	uint32_t len;
	uint64_t cookie;
};

struct fab_ep {
	struct reactor *r;
	const struct fab_ep_ops *ops;
	void *ctx;
	enum ep_state state;
	struct reactor_timer timer;
	struct list events, held_sent, held_invals, recvs, mrs, mws;
};

struct fake fake;
static struct fab_ep *the_ep;
static uint32_t next_key;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.caps = (struct fab_caps){.dev_name = "fake0",
		.mw2b = true,
		.max_sge = 32,
		.max_wr = 4096,
		.max_mw = 1024,
		.max_rd = 16,
		.max_mr_size = UINT64_MAX};
	fake.fail_err = -EIO;
	next_key = 0x100;
}

static struct ev *ev_new(struct fab_ep *ep, enum ev_type type, size_t len)
{
	struct ev *ev = calloc(1, sizeof(*ev) + len);

	ev->type = type;
	ev->len = len;
	list_init(&ev->link);
	list_push_back(&ep->events, &ev->link);
	if (!reactor_timer_armed(&ep->timer))
		reactor_timer_in(ep->r, &ep->timer, 0);
	return ev;
}

static void event(struct fab_ep *ep, enum fab_event_type type, int err, enum fab_step step)
{
	ev_new(ep, EV_EVENT, 0)->event = (struct fab_event){.type = type, .err = err, .step = step};
}

/* Counts a call. Returns the error it is to end with. */
static int called(enum fake_call call)
{
	int err = fake.fail[call];

	fake.calls++;
	fake.count[call]++;
	fake.fail[call] = 0;
	if (fake.fail_at == fake.calls)
		err = fake.fail_err;
	if (fake.cut_at == fake.calls)
		fake_down(-ECONNRESET);
	return err;
}

static void free_list(struct list *l)
{
	struct list *node;

	while ((node = list_pop_front(l)) != NULL)
		free(container_of(node, struct ev, link)); /* link is first in each */
}

/* A message that waits to be delivered is a completed receive. */
static void arrived(struct fab_ep *ep, struct ev *ev)
{
	struct list *node = list_pop_front(&ep->recvs);
	struct recv *r = container_of(node, struct recv, link);

	assert(node && ev->len <= r->len);
	memcpy(r->addr, ev->data, ev->len);
	ev->type = EV_RECV;
	ev->cookie = r->cookie;
	ev->status = FAB_OK;
	free(r);
}

static void flush(struct fab_ep *ep)
{
	struct list *node;

	list_for_each_safe (pos, tmp, &ep->events) {
		struct ev *ev = container_of(pos, struct ev, link);

		if (ev->type == EV_TO_CLIENT && fake.same_batch) {
			arrived(ep, ev);
		} else if (ev->type == EV_TO_SERVER || ev->type == EV_TO_CLIENT) {
			list_del(pos);
			free(ev);
		}
	}
	fake_flush_sent();
	fake_flush_invals();
	while ((node = list_pop_front(&ep->recvs)) != NULL) {
		struct recv *r = container_of(node, struct recv, link);
		struct ev *ev = ev_new(ep, EV_RECV, 0);

		ev->cookie = r->cookie;
		ev->status = FAB_FLUSHED;
		free(r);
	}
	fake.recvs = 0;
}

static void teardown(struct fab_ep *ep)
{
	list_for_each (pos, &ep->mws) {
		struct fab_mw *mw = container_of(pos, struct fab_mw, link);

		if (mw->bind.mr)
			((struct fab_mr *)mw->bind.mr)->bound--;
	}
	free_list(&ep->mws);
	ep->state = S_IDLE;
	fake.up = false;
}

static void drain(struct fab_ep *ep)
{
	if (ep->state == S_IDLE || ep->state == S_DRAINING)
		return;
	ep->state = S_DRAINING;
	flush(ep);
	event(ep, FAB_EV_DRAINED, 0, FAB_STEP_ADDR);
}

static void deliver_event(struct fab_ep *ep, const struct fab_event *in)
{
	struct fab_event ev = *in;

	switch (ev.type) {
	case FAB_EV_RESOLVED:
		if (ep->state != S_RESOLVING)
			return;
		ep->state = S_RESOLVED;
		ev.new_device = fake.new_device;
		if (fake.new_device)
			free_list(&ep->mrs);
		fake.new_device = false;
		break;
	case FAB_EV_ESTABLISHED:
		if (ep->state != S_CONNECTING)
			return;
		ep->state = S_UP;
		fake.up = true;
		ev.priv = fake.peer_priv;
		ev.priv_len = fake.peer_priv_len;
		break;
	case FAB_EV_DOWN:
		break;
	case FAB_EV_FAILED:
		if (ep->state != S_CONNECTING && ep->state != S_RESOLVING)
			return;
		teardown(ep);
		break;
	case FAB_EV_DRAINED:
		teardown(ep);
		break;
	}
	ep->ops->event(ep->ctx, &ev);
}

static void to_client(struct fab_ep *ep, struct ev *ev)
{
	struct list *node = list_pop_front(&ep->recvs);
	struct recv *r;

	assert(node && "the client had no receive posted");
	fake.recvs--;
	r = container_of(node, struct recv, link);
	assert(ev->len <= r->len);
	memcpy(r->addr, ev->data, ev->len);
	list_for_each (pos, &ep->mws) {
		struct fab_mw *mw = container_of(pos, struct fab_mw, link);

		if (mw->bind.mr && mw->rkey == ev->inv_rkey) {
			((struct fab_mr *)mw->bind.mr)->bound--;
			mw->bind.mr = NULL;
		}
	}
	ep->ops->received(ep->ctx, r->cookie, (uint32_t)ev->len, ev->inv_rkey, FAB_OK);
	free(r);
}

static void deliver(struct fab_ep *ep, struct ev *ev)
{
	switch (ev->type) {
	case EV_EVENT:
		deliver_event(ep, &ev->event);
		break;
	case EV_SENT:
		ep->ops->sent(ep->ctx, ev->cookie, ev->status);
		break;
	case EV_RECV:
		ep->ops->received(ep->ctx, ev->cookie, (uint32_t)ev->len, 0, ev->status);
		break;
	case EV_INVALIDATED:
		for (unsigned int i = 0; ev->status == FAB_OK && i < ev->mw_cnt; i++) {
			((struct fab_mr *)ev->mws[i]->bind.mr)->bound--;
			ev->mws[i]->bind.mr = NULL;
		}
		ep->ops->invalidated(ep->ctx, ev->cookie, ev->status);
		break;
	case EV_TO_SERVER:
		if (fake.server)
			fake.server(ev->data, ev->len);
		break;
	case EV_TO_CLIENT:
		to_client(ep, ev);
		break;
	}
}

static void run(struct reactor_timer *t)
{
	struct fab_ep *ep = container_of(t, struct fab_ep, timer);
	struct list *node;

	while ((node = list_pop_front(&ep->events)) != NULL) {
		struct ev *ev = container_of(node, struct ev, link);
		bool completion = ev->type != EV_EVENT && ev->type != EV_TO_SERVER;

		deliver(ep, ev);
		free(ev);
		if (the_ep != ep) /* its owner took another one (FAILED) */
			return;
		if (completion)
			ep->ops->batch_done(ep->ctx);
	}
}

struct fab_ep *fab_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx)
{
	struct fab_ep *ep = calloc(1, sizeof(*ep));

	*ep = (struct fab_ep){.r = r, .ops = ops, .ctx = ctx};
	reactor_timer_init(&ep->timer, run);
	list_init(&ep->events);
	list_init(&ep->held_sent);
	list_init(&ep->held_invals);
	list_init(&ep->recvs);
	list_init(&ep->mrs);
	list_init(&ep->mws);
	the_ep = ep;
	fake.kind = conf->kind;
	fake.capture = conf->capture;
	return ep;
}

void fab_ep_free(struct fab_ep *ep)
{
	if (!ep)
		return;
	assert(ep->state == S_IDLE && list_empty(&ep->events));
	reactor_timer_cancel(ep->r, &ep->timer);
	free_list(&ep->mrs);
	if (the_ep == ep)
		the_ep = NULL;
	free(ep);
}

int fab_ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	int err = called(FAKE_RESOLVE);

	assert(ep->state == S_IDLE);
	if (err)
		return err;
	fake.dst = ntohl(((const struct sockaddr_in *)dst)->sin_addr.s_addr);
	fake.src = src ? ntohl(((const struct sockaddr_in *)src)->sin_addr.s_addr) : 0;
	ep->state = S_RESOLVING;
	if (fake.no_way[fake.kind])
		event(ep, FAB_EV_FAILED, fake.no_way[fake.kind], FAB_STEP_ADDR);
	else if (fake.dev_err)
		event(ep, FAB_EV_FAILED, fake.dev_err, FAB_STEP_SETUP);
	else
		event(ep, FAB_EV_RESOLVED, 0, FAB_STEP_ADDR);
	return 0;
}

const struct fab_caps *fab_ep_caps(const struct fab_ep *ep)
{
	return &fake.caps;
}

int fab_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf)
{
	assert(ep->state == S_RESOLVED);
	fake.qp = *conf;
	return called(FAKE_SETUP);
}

int fab_ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len)
{
	int err = called(FAKE_CONNECT);

	assert(ep->state == S_RESOLVED && priv_len <= sizeof(fake.priv));
	memcpy(fake.priv, priv, priv_len);
	fake.priv_len = priv_len;
	if (err)
		return err;
	ep->state = S_CONNECTING;
	if (fake.connecting)
		fake.connecting();
	if (fake.refuse || (fake.refuse_dst && fake.refuse_dst == fake.dst)) {
		flush(ep);
		event(ep, FAB_EV_FAILED, -ECONNREFUSED, FAB_STEP_CONNECT);
	} else {
		event(ep, FAB_EV_ESTABLISHED, 0, FAB_STEP_ADDR);
	}
	return 0;
}

void fab_ep_disconnect(struct fab_ep *ep)
{
	drain(ep);
}

void fake_down(int err)
{
	struct fab_ep *ep = the_ep;

	if (!ep || ep->state != S_UP)
		return;
	ep->state = S_DRAINING;
	event(ep, FAB_EV_DOWN, err, FAB_STEP_ADDR);
	flush(ep);
	event(ep, FAB_EV_DRAINED, 0, FAB_STEP_ADDR);
}

struct fab_mr *fab_mr_reg(struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind)
{
	int err = called(FAKE_MR_REG);
	struct fab_mr *mr;

	if (err) {
		errno = -err;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	*mr = (struct fab_mr){.addr = addr, .len = len, .access = access, .bind = bind};
	mr->rkey = access ? next_key += 0x100 : 0;
	list_init(&mr->link);
	list_push_back(&ep->mrs, &mr->link);
	return mr;
}

void fab_mr_dereg(struct fab_mr *mr)
{
	if (!mr)
		return;
	assert(mr->bound == 0);
	list_del(&mr->link);
	free(mr);
}

uint32_t fab_mr_rkey(const struct fab_mr *mr)
{
	return mr->rkey;
}

struct fab_mw *fab_mw_alloc(struct fab_ep *ep)
{
	int err = called(FAKE_MW_ALLOC);
	struct fab_mw *mw;

	assert(ep->state == S_RESOLVED);
	if (err) {
		errno = -err;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	mw->rkey = next_key += 0x100;
	list_init(&mw->link);
	list_push_back(&ep->mws, &mw->link);
	return mw;
}

uint32_t fab_mw_rkey(const struct fab_mw *mw)
{
	return mw->rkey;
}

uint32_t fab_mw_next_rkey(const struct fab_mw *mw)
{
	return (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
}

static void bind_one(const struct fab_bind *bind)
{
	struct fab_mw *mw = bind->mw;

	assert(!mw->bind.mr && "a bound window was bound");
	assert(bind->mr->bind && "memory that is not for windows");
	mw->rkey = fab_mw_next_rkey(mw);
	mw->bind = *bind;
	((struct fab_mr *)bind->mr)->bound++;
}

/* Completes in error, and the connection is gone. */
static void breaks(struct fab_ep *ep, enum ev_type type, uint64_t cookie)
{
	struct ev *ev = ev_new(ep, type, 0);

	ev->cookie = cookie;
	ev->status = FAB_ERROR;
	fake_down(-EIO);
}

int fab_mw_bind(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie)
{
	int err = called(FAKE_BIND);

	if (ep->state != S_UP)
		return -ENOTCONN;
	if (err || fake.bind_err)
		return err ? err : fake.bind_err;
	if (fake.bind_breaks) {
		breaks(ep, EV_SENT, cookie);
		return 0;
	}
	bind_one(bind);
	if (fake.bind_kills) {
		fake_down(-EIO);
		ev_new(ep, EV_SENT, 0)->cookie = cookie;
		container_of(ep->events.prev, struct ev, link)->status = FAB_FLUSHED;
		return 0;
	}
	ev_new(ep, EV_SENT, 0)->cookie = cookie;
	return 0;
}

int fab_post_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie)
{
	int err = called(FAKE_POST_SEND);
	size_t len = 0;
	struct ev *ev;

	assert(sge_cnt >= 1 && sge_cnt <= fake.qp.max_send_sge);
	if (ep->state != S_UP)
		return -ENOTCONN;
	if (err || (bind_cnt && fake.bind_err))
		return err ? err : fake.bind_err;
	if (bind_cnt && fake.bind_breaks) {
		breaks(ep, EV_SENT, cookie);
		return 0;
	}
	for (unsigned int i = 0; i < sge_cnt; i++) {
		const uint8_t *p = sges[i].addr;

		assert(p >= sges[i].mr->addr &&
			p + sges[i].len <= sges[i].mr->addr + sges[i].mr->len);
		len += sges[i].len;
	}
	for (unsigned int i = 0; i < bind_cnt; i++)
		bind_one(&binds[i]);
	fake.sends++;
	ev = ev_new(ep, EV_SENT, 0);
	ev->cookie = cookie;
	if (fake.hold_sent) {
		list_del(&ev->link);
		list_push_back(&ep->held_sent, &ev->link);
	}
	ev = ev_new(ep, EV_TO_SERVER, len);
	len = 0;
	for (unsigned int i = 0; i < sge_cnt; i++) {
		memcpy(ev->data + len, sges[i].addr, sges[i].len);
		len += sges[i].len;
	}
	return 0;
}

static void release(struct fab_ep *ep, struct list *held)
{
	struct list *node;

	while ((node = list_pop_front(held)) != NULL) {
		struct ev *ev = container_of(node, struct ev, link);

		if (ep->state == S_DRAINING)
			ev->status = FAB_FLUSHED;
		list_push_back(&ep->events, node);
		if (!reactor_timer_armed(&ep->timer))
			reactor_timer_in(ep->r, &ep->timer, 0);
	}
}

void fake_flush_sent(void)
{
	release(the_ep, &the_ep->held_sent);
}

void fake_flush_invals(void)
{
	release(the_ep, &the_ep->held_invals);
}

void fab_answered(struct fab_ep *ep, uint64_t cookie)
{
	fake.answered = cookie;
	fake.answers++;
}

int fab_post_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie)
{
	int err = called(FAKE_POST_RECV);
	struct recv *r;

	if (ep->state != S_RESOLVED && ep->state != S_CONNECTING && ep->state != S_UP)
		return -ENOTCONN;
	if (err)
		return err;
	assert((uint8_t *)addr >= mr->addr && (uint8_t *)addr + len <= mr->addr + mr->len);
	r = calloc(1, sizeof(*r));
	*r = (struct recv){.addr = addr, .len = len, .cookie = cookie};
	list_init(&r->link);
	list_push_back(&ep->recvs, &r->link);
	fake.recvs++;
	return 0;
}

int fab_mw_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie)
{
	int err = called(FAKE_INVALIDATE);
	struct ev *ev;

	assert(cnt > 0 && cnt <= FAB_MAX_WINS);
	for (unsigned int i = 0; i < cnt; i++)
		assert(mws[i]->bind.mr && "rxe's kernel would have crashed here");
	if (ep->state != S_UP)
		return -ENOTCONN;
	if (err)
		return err;
	if (fake.inval_breaks) {
		breaks(ep, EV_INVALIDATED, cookie);
		return 0;
	}
	ev = ev_new(ep, EV_INVALIDATED, 0);
	ev->cookie = cookie;
	ev->mw_cnt = cnt;
	memcpy(ev->mws, mws, cnt * sizeof(*mws));
	if (fake.hold_invals) {
		list_del(&ev->link);
		list_push_back(&ep->held_invals, &ev->link);
	}
	return 0;
}

void fab_ep_set_busy(struct fab_ep *ep, unsigned int in_flight)
{
	fake.busy = in_flight;
}

bool fab_ep_path(const struct fab_ep *ep, struct fab_path *ret)
{
	struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(40000)};
	struct sockaddr_in remote = {.sin_family = AF_INET, .sin_port = htons(20049)};

	if (ep->state != S_UP)
		return false;
	local.sin_addr.s_addr = htonl(0x0a000002);
	remote.sin_addr.s_addr = htonl(0x0a000001);
	*ret = (struct fab_path){.local_qpn = 0x11,
		.ack_ns = fab_ack_ns(fake.ack_timeout),
		.ack_tries = fake.ack_tries,
		.remote_qpn = 0x12,
		.local_psn = 0xfffffe,
		.remote_psn = 0x2000,
		.mtu = 1024};
	memcpy(&ret->local, &local, sizeof(local));
	memcpy(&ret->remote, &remote, sizeof(remote));
	return true;
}

const char *fab_ep_name(const struct fab_ep *ep)
{
	return "fake0";
}

const char *fab_ep_why(const struct fab_ep *ep)
{
	return fake.why ? fake.why : "";
}

void fake_message(const void *msg, size_t len, uint32_t inv_rkey)
{
	struct ev *ev = ev_new(the_ep, EV_TO_CLIENT, len);

	if (the_ep->state != S_UP) {
		list_del(&ev->link);
		free(ev);
		return;
	}
	memcpy(ev->data, msg, len);
	ev->inv_rkey = inv_rkey;
}

uint8_t *fake_mem(uint32_t rkey, uint64_t addr, uint64_t len, unsigned int access)
{
	uint8_t *p = (uint8_t *)(uintptr_t)addr;

	list_for_each (pos, &the_ep->mws) {
		struct fab_mw *mw = container_of(pos, struct fab_mw, link);
		uint8_t *lo = mw->bind.addr;

		if (mw->bind.mr && mw->rkey == rkey && (mw->bind.access & access) && p >= lo &&
			p + len <= lo + mw->bind.len)
			return p;
	}
	list_for_each (pos, &the_ep->mrs) {
		struct fab_mr *mr = container_of(pos, struct fab_mr, link);

		if (mr->rkey == rkey && (mr->access & access) && p >= mr->addr &&
			p + len <= mr->addr + mr->len)
			return p;
	}
	return NULL;
}

unsigned int fake_open_windows(void)
{
	unsigned int cnt = 0;

	list_for_each (pos, &the_ep->mws)
		cnt += container_of(pos, struct fab_mw, link)->bind.mr != NULL;
	return cnt;
}

unsigned int fake_open_regs(void)
{
	unsigned int cnt = 0;

	list_for_each (pos, &the_ep->mrs)
		cnt += container_of(pos, struct fab_mr, link)->access != 0;
	return cnt;
}
