/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_rig.h"

#include <criterion/criterion.h>
#include <string.h>

struct reactor *r;
struct fab_ep *ep;
struct peer peer;
struct fab_mr *mr;
uint8_t mem[64 << 10];

char seen[256];
struct fab_event last;
int down;
uint8_t priv[256];
uint64_t cookie;
uint32_t len, inv;
bool rig_parts;

struct peer_packet k;
uint8_t text[3 * MTU];
struct fab_mw *mw;
uint8_t reth[16];

struct stats stats;
const struct fab_conf rig_conf = {.stats = &stats,
	.connect_timeout_ns = 60 * NSEC_PER_SEC,
	.retry_count = 3,
	.ack_timeout = 24}; /* a minute: a slow machine is none that is silent */

/* ---- the owner ---- */

static void note(char what)
{
	size_t n = strlen(seen);

	cr_assert_lt(n + 1, sizeof(seen));
	seen[n] = what;
}

static void on_event(void *ctx, const struct fab_event *ev)
{
	static const char letters[] = {[FAB_EV_RESOLVED] = 'R',
		[FAB_EV_ESTABLISHED] = 'E',
		[FAB_EV_FAILED] = 'F',
		[FAB_EV_DOWN] = 'D',
		[FAB_EV_DRAINED] = '.'};

	note(letters[ev->type]);
	last = *ev;
	if (ev->type == FAB_EV_DOWN)
		down = ev->err;
	if (ev->type == FAB_EV_ESTABLISHED)
		memcpy(priv, ev->priv, ev->priv_len);
}

static void on_sent(void *ctx, uint64_t c, enum fab_status status)
{
	note(status == FAB_OK ? 's' : 'x');
	cookie = c;
}

static void on_received(void *ctx, uint64_t c, uint32_t n, uint32_t key, enum fab_status status)
{
	note(status == FAB_OK ? 'r' : 'f');
	cookie = c;
	len = n;
	inv = key;
	if (rig_parts)
		roce_impl.ep_disconnect(ep);
}

static void on_invalidated(void *ctx, uint64_t c, enum fab_status status)
{
	note(status == FAB_OK ? 'i' : 'y');
}

const struct fab_ep_ops rig_ops = {
	.event = on_event, .sent = on_sent, .received = on_received, .invalidated = on_invalidated};

/* ---- turns ---- */

void rig_turn(void)
{
	reactor_turn(r, NSEC_PER_MSEC);
}

void rig_turns(void)
{
	for (int i = 0; i < 5; i++)
		reactor_turn(r, 0);
}

void rig_sees(const char *what)
{
	for (int i = 0; i < 20000 && strlen(seen) < strlen(what); i++)
		rig_turn();
	cr_assert_str_eq(seen, what);
}

static unsigned int silent; /* packets of Sends, since one that asked to be acknowledged */

void rig_none(void)
{
	/* Some of it goes out before the thread would sleep. */
	for (int i = 0; i < 4; i++)
		rig_turn();
	cr_assert_not(peer_next(&peer, &k, rig_turns), "a packet %#x too many", k.op);
	cr_assert_eq(silent, 0, "the last packet does not ask to be acknowledged");
}

/* ---- life ---- */

void rig_make(void)
{
	peer_network();
	r = reactor_new();
	peer_new(&peer);
	ep = roce_impl.ep_new(r, &rig_conf, &rig_ops, NULL);
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 7 + i / 251) | 0x80; /* no letter */
}

void rig_resolve(void)
{
	const struct fab_qp_conf qp = {.send_wr = SENDS, .recv_wr = RECVS, .max_send_sge = 4};
	struct sockaddr_storage src, dst;

	memset(seen, 0, sizeof(seen));
	peer_addrs(&src, &dst);
	/* Of IPv6 the kernel would choose the peer's own address. */
	cr_assert_eq(roce_impl.ep_resolve(ep,
			     src.ss_family == AF_INET6 ? (const struct sockaddr *)&src : NULL,
			     (const struct sockaddr *)&dst),
		0);
	rig_sees("R");
	cr_assert_eq(roce_impl.ep_setup(ep, &qp), 0);
	if (!mr)
		mr = roce_impl.mr_reg(ep, mem, sizeof(mem), FAB_LOCAL, true);
}

void rig_connect(uint32_t psn)
{
	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_accept(&peer, psn, "answer", 6, rig_turn);
	rig_sees("RE");
	memset(seen, 0, sizeof(seen));
}

void rig_connect_again(void)
{
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, rig_turn);
	roce_of(ep)->conn.dreq_tries = 0;
	rig_connect(OURS);
}

void rig_set_up(void)
{
	rig_make();
	rig_connect(OURS);
}

void rig_tear_down(void)
{
	struct fab_ep *gone = ep;

	if (!gone) /* it was skipped before it began */
		return;
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(ep);
	for (int i = 0; i < 1000 && roce_of(ep)->state != ROCE_IDLE; i++)
		rig_turn();
	cr_assert_eq(roce_of(ep)->state, ROCE_IDLE);
	ep = NULL;
	roce_impl.ep_free(gone);
	reactor_free(r);
	peer_free(&peer);
}

/* ---- packets ---- */

void rig_post(size_t off, uint32_t n, uint64_t c)
{
	const struct fab_sge sge = {.addr = mem + off, .len = n, .mr = mr};

	cr_assert_eq(roce_impl.post_send(ep, &sge, 1, NULL, 0, c), 0);
}

void rig_receive(size_t off, uint32_t n, uint64_t c)
{
	cr_assert_eq(roce_impl.post_recv(ep, mem + off, n, mr, c), 0);
}

/* The next packet is this one, with the bytes of mem at off. */
static void comes(uint8_t op, uint32_t psn, size_t off, size_t n)
{
	cr_assert(peer_next(&peer, &k, rig_turn), "no packet");
	cr_assert_eq(k.op, op, "%#x", k.op);
	cr_assert_eq(k.psn, psn & 0xffffff, "%#x", k.psn);
	cr_assert_eq(k.len, n);
	cr_assert_arr_eq(k.payload, mem + off, n);
	cr_assert_eq(k.ecn, 2, "RFC 3168: it knows ECN");
}

void rig_sends(uint8_t op, uint32_t psn, size_t off, size_t n)
{
	comes(op, psn, off, n);
	silent = k.ack_req ? 0 : silent + 1;
	cr_assert_lt(silent, 4, "nothing asks to be acknowledged");
}

void rig_still(void)
{
}

void rig_answers(uint8_t syndrome, uint32_t psn)
{
	cr_assert(peer_next(&peer, &k, rig_turn), "no answer");
	cr_assert_eq(k.op, 0x11, "%#x", k.op);
	cr_assert_eq(k.syndrome, syndrome, "%#x", k.syndrome);
	cr_assert_eq(k.psn, psn & 0xffffff, "%#x", k.psn);
	cr_assert_not(k.ack_req);
}

void rig_reads(uint8_t op, uint32_t psn, size_t off, size_t n)
{
	comes(op, psn, off, n);
	if (op != 0x0e)
		cr_assert_eq(k.syndrome, 0x1f);
	cr_assert_not(k.ack_req);
}

void rig_asks(uint8_t op, uint32_t psn, const void *ext, size_t ext_len, const void *p, size_t n)
{
	bool ends = op == 0x02 || op == 0x03 || op == 0x04 || op == 0x05 || op == 0x08 ||
		    op == 0x0a || op == 0x0c || op == 0x16 || op == 0x17;

	peer_send(&peer, &(struct peer_out){.op = op,
				 .ack_req = ends,
				 .qpn = peer.qpn,
				 .psn = psn,
				 .ext = ext,
				 .ext_len = ext_len,
				 .payload = p,
				 .len = n});
}

struct peer_out rig_odd(void)
{
	return (struct peer_out){.op = 0x04,
		.ack_req = true,
		.qpn = peer.qpn,
		.psn = peer.psn,
		.payload = "hello",
		.len = 5};
}

void rig_none_but(const struct peer_out *o)
{
	rig_none();
	cr_assert_str_eq(seen, "");
	peer_send(&peer, o);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
}

void rig_asks_read(uint32_t psn, uint32_t rkey, size_t off, uint32_t n)
{
	uint8_t ext[16];

	peer_reth(ext, rig_at(off), rkey, n);
	rig_asks(0x0c, psn, ext, 16, NULL, 0);
}

uint32_t rig_window(size_t off, uint64_t n, unsigned int access)
{
	struct fab_bind bind = {.mr = mr, .addr = mem + off, .len = n, .access = access};
	const struct fab_sge sge = {.addr = mem, .len = 8, .mr = mr};
	uint32_t rkey;

	mw = bind.mw = roce_impl.mw_alloc(ep);
	cr_assert_not_null(mw);
	rkey = roce_impl.mw_next_rkey(mw);
	cr_assert_neq(rkey, 0);
	cr_assert_eq(roce_impl.post_send(ep, &sge, 1, &bind, 1, 1), 0);
	cr_assert_eq(roce_impl.mw_rkey(mw), rkey);
	rig_sends(0x04, OURS, 0, 8);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	memset(seen, 0, sizeof(seen));
	return rkey;
}

uint64_t rig_at(size_t off)
{
	return (uintptr_t)(mem + off);
}
