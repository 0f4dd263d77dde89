/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer_count.h"

#include <criterion/criterion.h>

#define MOST 1024u
#define PSNS 0xffffffu

/* Packets of requests. A Read takes as many PSNs as its answer has packets (IBA 9.7.4.1.1). */
struct asked {
	uint32_t psn, packets;
	bool is_read, ends; /* ends: a message */
	bool again;         /* a Read that was asked for more than once, or a part of it */
};

static struct {
	uint32_t qpn, psn, msn, mtu;
	unsigned int cnt;
	bool lost; /* another request had the same PSN: which one was taken nobody knows */
	struct asked v[MOST];
} C;

static uint32_t be(const uint8_t *p, int len)
{
	uint32_t v = 0;

	for (int i = 0; i < len; i++)
		v = v << 8 | p[i];
	return v;
}

/* How far a is behind b, of the 24 bits. */
static int32_t behind(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

void peer_count_begin(uint32_t qpn, uint32_t psn, uint32_t mtu)
{
	C.qpn = qpn;
	C.psn = psn;
	C.mtu = mtu;
	C.msn = 0;
	C.cnt = 0;
	C.lost = false;
}

void peer_counts_from(uint32_t psn, uint32_t msn)
{
	peer_count_begin(C.qpn, psn, C.mtu);
	C.msn = msn;
}

/* The one that has this PSN; else NULL. */
static struct asked *at(uint32_t psn)
{
	for (unsigned int i = 0; i < C.cnt; i++) {
		int32_t off = behind(psn, C.v[i].psn);

		if (off >= 0 && off < (int32_t)C.v[i].packets)
			return &C.v[i];
	}
	return NULL;
}

/* Opcodes of a reliable connection (IBA table 38). */
static bool is_request(uint8_t op)
{
	return op <= 0x0c || op == 0x16 || op == 0x17;
}

static bool ends_message(uint8_t op)
{
	return is_request(op) && op != 0x00 && op != 0x01 && op != 0x06 && op != 0x07;
}

void peer_count_sent(const uint8_t *b, size_t len)
{
	struct asked is = {.psn = be(b + 9, 3), .packets = 1, .is_read = b[0] == 0x0c}, *was;

	/* One without its headers is none. */
	if (!is_request(b[0]) || be(b + 5, 3) != C.qpn || (is.is_read && len < 12 + 16 + 4))
		return;
	is.ends = ends_message(b[0]);
	if (is.is_read)
		is.packets = be(b + 24, 4) == 0 ? 1 : (be(b + 24, 4) - 1) / C.mtu + 1;
	was = at(is.psn);
	if (was && was->is_read && is.is_read) {
		was->again = true;
		return;
	}
	if (was) {
		C.lost |= was->is_read != is.is_read || was->ends != is.ends;
		return;
	}
	for (unsigned int i = 0; i < C.cnt; i++) {
		int32_t off = behind(C.v[i].psn, is.psn);

		C.lost |= off > 0 && off < (int32_t)is.packets;
	}
	if (C.cnt == MOST)
		C.lost = true;
	else
		C.v[C.cnt++] = is;
}

/*
 * How many messages end before this PSN (IBA 9.7.7.1: the MSN), Reads when they are asked for.
 * All of them were asked for.
 */
static uint32_t done_before(uint32_t psn)
{
	uint32_t msn = C.msn;

	for (uint32_t is = C.psn; behind(is, psn) < 0;) {
		const struct asked *a = at(is);

		cr_assert_not_null(
			a, "IBA 9.7.5.1: an answer to %#x, and nobody asked for %#x", psn, is);
		msn += a->ends;
		is = a->psn + a->packets;
	}
	return msn & PSNS;
}

static uint32_t all_done(void)
{
	uint32_t msn = C.msn;

	for (unsigned int i = 0; i < C.cnt; i++)
		msn += C.v[i].ends;
	return msn & PSNS;
}

/* Of a Read that ends there, or of all that was asked for: which of them is not known here. */
static void is_between(uint32_t msn, uint32_t least)
{
	cr_assert(behind(msn, least) >= 0 && behind(msn, all_done()) <= 0,
		"IBA 9.7.7.1: MSN %#x is not between %#x and %#x", msn, least, all_done());
}

static void acknowledges(const struct peer_packet *k)
{
	const struct asked *a = at(k->psn);

	cr_assert(
		!a || !a->is_read, "IBA 9.7.5.1.2: a Read's answer acknowledges it (%#x)", k->psn);
	cr_assert_eq(k->msn, done_before((k->psn + 1) & PSNS), "IBA 9.7.7.1: MSN %#x of PSN %#x",
		k->msn, k->psn);
}

static void refuses(const struct peer_packet *k)
{
	const struct asked *a = at(k->psn);

	/* In place of a packet of an answer: that Read, and those behind it, count. */
	if (k->syndrome == 0x62 && a && a->is_read)
		is_between(k->msn, done_before(a->psn));
	else
		cr_assert_eq(k->msn, done_before(k->psn), "IBA 9.7.7.1: MSN %#x of NAK %#x", k->msn,
			k->psn);
}

static void answers(const struct peer_packet *k)
{
	const struct asked *a = at(k->psn);
	bool first, last;

	cr_assert(a && a->is_read, "IBA 9.7.6.1: nobody asked for %#x", k->psn);
	first = behind(k->psn, a->psn) == 0;
	last = behind(k->psn, a->psn) + 1 == (int32_t)a->packets;
	if (!a->again)
		cr_assert_eq(k->op,
			first  ? (last ? 0x10 : 0x0d)
			: last ? 0x0f
			       : 0x0e,
			"IBA 9.4.4: opcode %#x of %#x", k->op, k->psn);
	if (k->op == 0x0e)
		return;
	if (a->again)
		is_between(k->msn, done_before(a->psn + a->packets));
	else
		cr_assert_eq(k->msn, done_before(a->psn + a->packets),
			"IBA 9.7.7.1: MSN %#x of the answer %#x", k->msn, k->psn);
}

void peer_count_came(uint32_t qpn, const struct peer_packet *k)
{
	if (C.lost || qpn != C.qpn)
		return;
	if (k->op != 0x11)
		answers(k);
	else if ((k->syndrome & 0xe0) == 0)
		acknowledges(k);
	else
		refuses(k);
}
