/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "log.h"

#define STEPS 1000

struct roce_rig rig;

void roce_rig_broken(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: broken: %s; after %llu packets\n", file, line, what,
		(unsigned long long)rig.counts.given);
	__builtin_trap();
}

uint32_t roce_rig_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545f4914f6cdd1dull >> 32);
}

/* In place of the kernel's. */
ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)roce_rig_random(&rig.numbers);
	return (ssize_t)len;
}

static struct roce_ep *ep(void)
{
	return roce_of(rig.ep);
}

/* ---- what the endpoint says ---- */

static void close_wins(void)
{
	for (unsigned int i = 0; i < RIG_WINS; i++) {
		struct rig_win *w = &rig.wins[i];

		if (w->access)
			roce_rig_mem_close(w->area);
		w->access = 0;
		w->mw = NULL;
	}
}

/* Nothing follows. */
static void ended(void)
{
	RIG_CHECK(rig.send_first == rig.send_end && rig.recv_first == rig.recv_end &&
		  rig.done_first == rig.done_end);
	close_wins();
	rig.state = RIG_IDLE;
}

static void register_all(void)
{
	const struct rig_area *rd = &rig.areas[RIG_AREA_READ], *wr = &rig.areas[RIG_AREA_WRITE];

	rig.mr = roce_impl.mr_reg(rig.ep, roce_rig_mem, RIG_MEM, FAB_LOCAL, true);
	rig.mr_read = roce_impl.mr_reg(rig.ep, rd->addr, rd->len, FAB_REMOTE_READ, false);
	rig.mr_write = roce_impl.mr_reg(rig.ep, wr->addr, wr->len, FAB_REMOTE_WRITE, false);
	RIG_CHECK(rig.mr && rig.mr_read && rig.mr_write);
}

static void on_event(void *ctx, const struct fab_event *ev)
{
	RIG_CHECK(!rig.in_call);
	switch (ev->type) {
	case FAB_EV_RESOLVED:
		RIG_CHECK(rig.state == RIG_RESOLVING && ev->new_device == !rig.mr);
		if (ev->new_device)
			register_all();
		rig.state = RIG_RESOLVED;
		break;
	case FAB_EV_ESTABLISHED:
		RIG_CHECK(rig.state == RIG_CONNECTING && ev->priv_len <= ROCE_MAD_REP_PRIV);
		for (size_t i = 0; i < ev->priv_len; i++)
			(void)*(const volatile uint8_t *)(ev->priv + i);
		rig.state = RIG_UP;
		/* By the REP that it took, which may be another one than ours. */
		rig.psn = ep()->path.local_psn;
		rig.peer_qpn = ep()->peer_qpn;
		rig.dreqs += 3;
		rig.counts.connections++;
		break;
	case FAB_EV_FAILED:
		RIG_CHECK(rig.state == RIG_RESOLVING || rig.state == RIG_CONNECTING);
		ended();
		break;
	case FAB_EV_DOWN:
		RIG_CHECK(rig.state == RIG_UP);
		rig.state = RIG_DRAINING;
		rig.counts.lost++;
		break;
	case FAB_EV_DRAINED:
		RIG_CHECK(rig.state == RIG_DRAINING);
		ended();
		break;
	}
}

static void completed(enum fab_status status)
{
	if (status != FAB_OK)
		rig.counts.flushed++;
	if (rig.meddle)
		rig.meddle();
}

static void take_done(uint64_t cookie, bool is_inv)
{
	const struct rig_done *d = &rig.dones[rig.done_first % RIG_DONES];

	RIG_CHECK(rig.done_first != rig.done_end && d->cookie == cookie && d->is_inv == is_inv);
	rig.done_first++;
}

static void on_sent(void *ctx, uint64_t cookie, enum fab_status status)
{
	const struct rig_send *s = &rig.sends[rig.send_first % RIG_SENDS];

	RIG_CHECK(!rig.in_call && rig.state != RIG_IDLE && status != FAB_ERROR);
	if (rig.send_first != rig.send_end && s->cookie == cookie) {
		rig.send_first++;
		rig.counts.sent += status == FAB_OK;
	} else {
		take_done(cookie, false);
	}
	completed(status);
}

static void on_received(
	void *ctx, uint64_t cookie, uint32_t len, uint32_t inv, enum fab_status status)
{
	const struct rig_recv r = rig.recvs[rig.recv_first % RIG_RECVS];

	RIG_CHECK(!rig.in_call && rig.state != RIG_IDLE && status != FAB_ERROR);
	RIG_CHECK(rig.recv_first != rig.recv_end && r.cookie == cookie && len <= r.area->len);
	rig.recv_first++;
	roce_rig_mem_close(r.area);
	rig.counts.received += status == FAB_OK;
	if (inv) {
		unsigned int i = 0;

		while (i < RIG_WINS && (!rig.wins[i].access || rig.wins[i].rkey != inv))
			i++;
		RIG_CHECK(i < RIG_WINS);
		roce_rig_mem_close(rig.wins[i].area);
		rig.wins[i].access = 0;
		rig.counts.invalidated++;
	}
	/* It answers the oldest Send, or another one, which may not have gone out; or none. */
	if (status == FAB_OK && len % 4 != 0)
		roce_impl.answered(
			rig.ep, rig.sends[(rig.send_first + len % 4 - 1) % RIG_SENDS].cookie);
	completed(status);
}

static void on_invalidated(void *ctx, uint64_t cookie, enum fab_status status)
{
	RIG_CHECK(!rig.in_call && rig.state != RIG_IDLE);
	take_done(cookie, true);
	completed(status);
}

static const struct fab_ep_ops ops = {
	.event = on_event, .sent = on_sent, .received = on_received, .invalidated = on_invalidated};

/* ---- what the owner does ---- */

/* One that the endpoint refuses because the connection is over, or as it has no room. */
static bool was_refused(int err, bool was_full)
{
	RIG_CHECK(err == 0 || (err == -ENOTCONN && ep()->state != ROCE_UP) ||
		  (err == -ENOMEM && was_full));
	return err != 0;
}

void roce_rig_recv(uint32_t pick)
{
	struct rig_area *a = NULL;
	int err;

	for (uint32_t i = 0; i < RIG_RECVS && (!a || a->open); i++)
		a = &rig.areas[(pick + i) % RIG_RECVS];
	if (a->open)
		return;
	rig.in_call = true;
	err = roce_impl.post_recv(rig.ep, a->addr, a->len, rig.mr, rig.cookie + 1);
	rig.in_call = false;
	if (was_refused(err, false))
		return;
	roce_rig_mem_open(a, FAB_REMOTE_WRITE);
	rig.recvs[rig.recv_end++ % RIG_RECVS] =
		(struct rig_recv){.cookie = ++rig.cookie, .area = a};
}

static struct rig_win *win_at(uint32_t pick, bool is_open)
{
	for (uint32_t i = 0; i < RIG_WINS; i++) {
		struct rig_win *w = &rig.wins[(pick + i) % RIG_WINS];

		if (w->mw && (w->access != 0) == is_open)
			return w;
	}
	return NULL;
}

static struct fab_bind bind_of(const struct rig_win *w, unsigned int access)
{
	return (struct fab_bind){.mw = w->mw,
		.mr = rig.mr,
		.addr = w->area->addr,
		.len = w->area->len,
		.access = access};
}

static void bound(struct rig_win *w, unsigned int access, uint32_t rkey)
{
	RIG_CHECK(rkey != 0 && roce_impl.mw_rkey(w->mw) == rkey);
	w->rkey = rkey;
	w->access = access;
	roce_rig_mem_open(w->area, access);
}

/* Of up to three pieces; every fourth one binds a window. */
void roce_rig_send(uint32_t pick)
{
	static const uint32_t lens[] = {100, 1, 5000, 0, 256, 1024, 9000, 4096};
	const struct rig_area *a = &rig.areas[RIG_AREA_SENT];
	struct rig_win *w = pick % 4 == 3 ? win_at(pick, false) : NULL;
	unsigned int access = pick & 4 ? FAB_REMOTE_READ : FAB_REMOTE_WRITE;
	bool is_full = rig.send_end - rig.send_first == RIG_SENDS;
	struct rig_send s = {.cookie = rig.cookie + 1, .sge_cnt = 1 + pick % RIG_SGES};
	struct fab_sge sges[RIG_SGES];
	struct fab_bind b = {.mw = NULL};
	uint32_t rkey = 0;
	int err;

	for (unsigned int i = 0; i < s.sge_cnt; i++) {
		uint32_t len = lens[(pick >> 4 * i) % 8], off = pick % (a->len - len);

		s.sges[i] = (struct iovec){a->addr + off, len};
		sges[i] = (struct fab_sge){a->addr + off, len, rig.mr};
		s.len += len;
	}
	s.psn = rig.psn;
	s.packets = roce_wire_packets(s.len, ep()->mtu);
	if (w) {
		b = bind_of(w, access);
		rkey = roce_impl.mw_next_rkey(w->mw);
	}
	/* Before the call, which may send it. */
	if (!is_full)
		rig.sends[rig.send_end % RIG_SENDS] = s;
	rig.send_end += !is_full;
	rig.in_call = true;
	err = roce_impl.post_send(rig.ep, sges, s.sge_cnt, &b, w != NULL, s.cookie);
	rig.in_call = false;
	if (was_refused(err, is_full)) {
		rig.send_end -= !is_full;
		return;
	}
	RIG_CHECK(!is_full);
	rig.cookie++;
	rig.psn = roce_wire_psn_add(rig.psn, s.packets);
	if (w)
		bound(w, access, rkey);
}

static void note_done(bool is_inv)
{
	RIG_CHECK(rig.done_end - rig.done_first < RIG_DONES);
	rig.dones[rig.done_end++ % RIG_DONES] =
		(struct rig_done){.cookie = ++rig.cookie, .is_inv = is_inv};
}

void roce_rig_open(uint32_t pick, unsigned int access)
{
	bool is_full = ep()->done_cnt == RIG_DONES;
	struct rig_win *w = win_at(pick, false);
	struct fab_bind b;
	uint32_t rkey;
	int err;

	if (!w)
		return;
	b = bind_of(w, access);
	rkey = roce_impl.mw_next_rkey(w->mw);
	rig.in_call = true;
	err = roce_impl.mw_bind(rig.ep, &b, rig.cookie + 1);
	rig.in_call = false;
	if (was_refused(err, is_full))
		return;
	note_done(false);
	bound(w, access, rkey);
}

void roce_rig_close(uint32_t pick)
{
	bool is_full = ep()->done_cnt == RIG_DONES;
	struct rig_win *w = win_at(pick, true);
	int err;

	if (!w)
		return;
	rig.in_call = true;
	err = roce_impl.mw_invalidate(rig.ep, &w->mw, 1, rig.cookie + 1);
	rig.in_call = false;
	if (was_refused(err, is_full))
		return;
	note_done(true);
	roce_rig_mem_close(w->area);
	w->access = 0;
}

void roce_rig_disconnect(void)
{
	rig.in_call = true;
	roce_impl.ep_disconnect(rig.ep);
	rig.in_call = false;
	if (rig.state != RIG_IDLE)
		rig.state = RIG_DRAINING;
}

/* ---- connecting ---- */

void roce_rig_pass(uint64_t ns)
{
	(void)reactor_turn(rig.r, ns);
}

static void resolve(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(20049)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(20049)};

	in.sin_addr.s_addr = htonl(0x7f000002);
	in6.sin6_addr.s6_addr[15] = 2;
	rig.in_call = true;
	RIG_CHECK(roce_impl.ep_resolve(rig.ep, NULL,
			  rig.is_v6 ? (const struct sockaddr *)&in6
				    : (const struct sockaddr *)&in) == 0);
	rig.in_call = false;
	rig.state = RIG_RESOLVING;
}

static void attempt(void)
{
	const struct fab_qp_conf qp = {
		.send_wr = RIG_SENDS, .recv_wr = RIG_RECVS, .max_send_sge = RIG_SGES};

	RIG_CHECK(roce_impl.ep_setup(rig.ep, &qp) == 0);
	for (unsigned int i = 0; i < RIG_WINS; i++) {
		rig.wins[i].area = &rig.areas[RIG_AREA_WINS + i];
		rig.wins[i].mw = roce_impl.mw_alloc(rig.ep);
		RIG_CHECK(rig.wins[i].mw);
	}
	for (uint32_t i = 0; i < RIG_RECVS / 2; i++)
		roce_rig_recv(RIG_RECVS - 1 - i);
	rig.id = 0;
	rig.state = RIG_CONNECTING;
	rig.in_call = true;
	RIG_CHECK(roce_impl.ep_connect(rig.ep, "private", 7) == 0);
	rig.in_call = false;
}

void roce_rig_step(void)
{
	switch (rig.state) {
	case RIG_IDLE:
		resolve();
		break;
	case RIG_RESOLVED:
		attempt();
		break;
	case RIG_CONNECTING:
		if (ep()->state == ROCE_CONNECTING && rig.id != 0)
			roce_rig_accept();
		else
			roce_rig_pass(REACTOR_NEVER);
		break;
	case RIG_RESOLVING:
	case RIG_DRAINING:
		roce_rig_pass(0);
		break;
	case RIG_UP:
		break;
	}
}

void roce_rig_connect(void)
{
	for (unsigned int i = 0; rig.state != RIG_UP; i++) {
		RIG_CHECK(i < STEPS);
		roce_rig_step();
	}
	for (uint32_t i = 0; i < RIG_RECVS; i++)
		roce_rig_recv(i);
	if (!rig.wins[3].access)
		roce_rig_open(3, FAB_REMOTE_READ);
	if (!rig.wins[4].access)
		roce_rig_open(4, FAB_REMOTE_WRITE);
	if (rig.send_first == rig.send_end) {
		roce_rig_send(0x02);
		roce_rig_send(0x60);
	}
	roce_rig_pass(0);
}

static void quiet(void *ctx, enum log_level level, const char *line)
{
}

void roce_rig_new(uint64_t seed)
{
	static struct stats stats;
	static const struct fab_conf conf = {.connect_timeout_ns = 10 * NSEC_PER_SEC,
		.retry_count = 3,
		.ack_timeout = 14,
		.stats = &stats};

	rig = (struct roce_rig){.numbers = seed | 1, .ip_mtu = 1500, .room = UINT32_MAX};
	log_set_sink(quiet, NULL);
	roce_rig_mem_new();
	rig.r = reactor_new_virtual();
	RIG_CHECK(rig.r);
	rig.ep = roce_impl.ep_new(rig.r, &conf, &ops, NULL);
	RIG_CHECK(rig.ep);
}

void roce_rig_free(void)
{
	rig.meddle = NULL;
	roce_rig_room();
	roce_rig_disconnect();
	for (unsigned int i = 0; rig.state != RIG_IDLE; i++) {
		RIG_CHECK(i < STEPS);
		roce_rig_pass(0);
	}
	roce_rig_check();
	roce_impl.ep_free(rig.ep);
	/* It asserts that no timer is left. */
	reactor_free(rig.r);
	rig.ep = NULL;
	rig.r = NULL;
}
