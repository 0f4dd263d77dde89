/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire_qp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define BATCH      64u
#define PEER_QPN   0x123456u
#define PEER_ID    0x77u
#define QUEUE      512u /* requests without an acknowledgement, at most; a power of two */
#define ACK_EACH   64u  /* packets of a Write of which one asks for an acknowledgement */
#define RECEIVE    65536u
#define SILENCE    20    /* ms, after which all is sent again, on a lossy wire; */
#define LONG       1000  /* ... on one that loses nothing: the endpoint had no processor */
#define RNR        0x21u /* a receive is there 10 us later (table 45) */
#define THEIRS     0x2cu /* ... 0.64 ms, which is what the endpoint says */
#define RNR_NS     640000
#define PSN        0xffffffu
#define PORT       4791u
#define LISTENS_AT 20049u

enum {
	SEND_FIRST = 0x00,
	SEND_MIDDLE = 0x01,
	SEND_LAST = 0x02,
	SEND_ONLY = 0x04,
	WRITE_FIRST = 0x06,
	WRITE_MIDDLE = 0x07,
	WRITE_LAST = 0x08,
	WRITE_ONLY = 0x0a,
	READ_REQUEST = 0x0c,
	READ_FIRST = 0x0d,
	READ_MIDDLE = 0x0e,
	READ_LAST = 0x0f,
	READ_ONLY = 0x10,
	ACK = 0x11,
	SEND_LAST_INV = 0x16,
	SEND_ONLY_INV = 0x17,
	UD_SEND = 0x64,
	CNP = 0x81,
};

/* Attributes of the CM's datagrams (IBA 12.6). */
enum {
	REQ = 0x10,
	REP = 0x13,
	RTU = 0x14,
	DREQ = 0x15,
	DREP = 0x16,
};

/* A request of ours. */
struct request {
	uint8_t op;
	bool ack;
	uint8_t ext[16];
	size_t ext_len;
	const uint8_t *payload;
	size_t len;
	uint32_t psn, packets; /* packets: of the answer, if it is a Read */
	uint32_t msn;          /* messages that are done when it is */
	bool twice;            /* it went out more than once */
	/* Of a Read: */
	const uint8_t *expect; /* its answer */
	uint32_t bytes, got;   /* got: packets of the answer */
	bool again;            /* what is left of it is asked for again */
	void (*done)(void *ctx);
	void *ctx;
};

/* One that came. */
struct packet {
	uint8_t op;
	bool ack_req;
	uint32_t psn;
	const uint8_t *ext, *payload;
	size_t len; /* of the payload, without pad */
};

static struct {
	const struct wire *w;
	const struct qp_user *user;
	int fd;     /* of RoCE's port; datagrams of the CM leave from it, too */
	int out_fd; /* all others do from this one */
	uint16_t out_port;
	struct sockaddr_storage ep;
	socklen_t ep_len;
	uint16_t ep_port; /* that the endpoint sends from */
	uint8_t tid[8];   /* of the REQ, */
	uint8_t req[232]; /* ... and what it says */
	uint32_t id, qpn; /* of the endpoint; qpn 0: none */
	bool is_up;       /* the RTU has come */
	uint32_t reads_most;
	uint32_t expected; /* PSN of its next request */
	bool ack_due, nak_sent;
	bool no_receive; /* for the Send that is expected; it was told */
	uint32_t taken;  /* Sends */
	bool in_message; /* a Send has begun */
	size_t got;      /* bytes of it */
	uint16_t ident;  /* Identification that may come next, if it is not 0 */
	struct request q[QUEUE];
	uint8_t texts[QUEUE][MTU]; /* of Sends */
	uint32_t first, end;       /* counts of requests */
	uint32_t psn;              /* of our next request */
	uint32_t msn;              /* messages of ours, so far */
	uint32_t acked_msn;        /* ... before the first one of the queue */
	bool half_posted;          /* a message's first packet is, its last one is not */
	uint32_t reads;            /* without all of their answer */
	uint32_t read_next;        /* what is before it of answers has come */
	bool gap;                  /* some of an answer did not come, and was asked for again */
	uint64_t lost, naks, cnps, told;
	uint32_t dice;
	uint8_t message[RECEIVE];
} P;

socklen_t wire_addr(
	const struct wire *w, struct sockaddr_storage *to, const char *text, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = w->v6 ? AF_INET6 : AF_INET;
	in->sin_port = htons(port); /* at the same place in both */
	inet_pton(to->ss_family, text, w->v6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr);
	return w->v6 ? sizeof(*in6) : sizeof(*in);
}

static void put(uint8_t *p, uint64_t v, int n)
{
	while (n-- > 0) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t get(const uint8_t *p, int n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static int32_t behind(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static bool is_zero(const uint8_t *p, size_t len)
{
	while (len-- > 0)
		if (*p++ != 0)
			return false;
	return true;
}

/* With the probability of a loss. */
static bool falls(void)
{
	P.dice = P.dice * 1664525 + 1013904223;
	return (P.dice >> 8) % 1000 < P.w->lossy;
}

/* ---- packets ---- */

/* The header of IPv4 or IPv6, with ones where it may change on the way. Returns its length. */
static size_t put_ip(uint8_t *h, const char *src, const char *dst, uint16_t id, size_t len)
{
	memset(h, 0xff, 40);
	if (P.w->v6) {
		h[0] = 0x6f;
		put(h + 4, len, 2);
		h[6] = 17;
		inet_pton(AF_INET6, src, h + 8);
		inet_pton(AF_INET6, dst, h + 24);
		return 40;
	}
	h[0] = 0x45;
	put(h + 2, 20 + len, 2);
	put(h + 4, id, 2);
	put(h + 6, 0x4000, 2);
	h[9] = 17;
	inet_pton(AF_INET, src, h + 12);
	inet_pton(AF_INET, dst, h + 16);
	return 20;
}

/* A17.3.3. */
static uint32_t icrc(
	const char *src, const char *dst, uint16_t port, uint16_t id, const uint8_t *b, size_t len)
{
	uint8_t h[8 + 40 + 8 + 12], *udp;
	uLong crc;

	memset(h, 0xff, sizeof(h));
	udp = h + 8 + put_ip(h + 8, src, dst, id, 8 + len + 4);
	put(udp, port, 2);
	put(udp + 2, PORT, 2);
	put(udp + 4, 8 + len + 4, 2);
	memcpy(udp + 8, b, 12);
	udp[12] = 0xff;
	crc = crc32(0, h, (uInt)(udp - h) + 8 + 12);
	return (uint32_t)crc32(crc, b + 12, (uInt)(len - 12));
}

struct out {
	uint8_t b[BATCH][12 + 16 + MTU + 4];
	struct iovec iov[BATCH];
	union {
		struct cmsghdr align;
		uint8_t b[CMSG_SPACE(sizeof(int))];
	} control[BATCH];
	struct mmsghdr m[BATCH];
	unsigned int cnt;
	bool is_mad; /* alone */
};

static struct out out;

static void flush(void)
{
	for (unsigned int done = 0; done < out.cnt;) {
		int n = sendmmsg(out.is_mad ? P.fd : P.out_fd, out.m + done, out.cnt - done, 0);

		if (n < 0)
			DIE("sendmmsg: %s", strerror(errno));
		done += (unsigned int)n;
	}
	out.cnt = 0;
}

/* Congestion is on its way, as a switch would write it. */
static void mark(unsigned int i)
{
	struct msghdr *m = &out.m[i].msg_hdr;
	const int ce = 3;
	struct cmsghdr *c;

	m->msg_control = out.control[i].b;
	m->msg_controllen = sizeof(out.control[i].b);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = P.w->v6 ? IPPROTO_IPV6 : IPPROTO_IP;
	c->cmsg_type = P.w->v6 ? IPV6_TCLASS : IP_TOS;
	c->cmsg_len = CMSG_LEN(sizeof(ce));
	memcpy(CMSG_DATA(c), &ce, sizeof(ce));
}

static void send_packet(uint8_t op, uint32_t qpn, uint32_t psn, bool ack, const uint8_t *ext,
	size_t ext_len, const uint8_t *payload, size_t len)
{
	uint8_t *b = out.b[out.cnt];
	size_t pad = -len & 3, n = 12 + ext_len + len + pad;
	uint32_t crc;

	if (op != UD_SEND && falls()) {
		P.lost++;
		return;
	}
	memset(b, 0, 12);
	b[0] = op;
	b[1] = op == CNP ? 0 : (uint8_t)(0x40 | pad << 4);
	put(b + 2, 0xffff, 2);
	b[4] = op == CNP ? 0x40 : 0;
	put(b + 5, qpn, 3);
	b[8] = ack ? 0x80 : 0;
	put(b + 9, psn, 3);
	if (ext_len > 0)
		memcpy(b + 12, ext, ext_len);
	if (len > 0)
		memcpy(b + 12 + ext_len, payload, len);
	memset(b + 12 + ext_len + len, 0, pad);
	crc = icrc(P.w->peer_addr, P.w->ep_addr, op == UD_SEND ? PORT : P.out_port, 0, b, n);
	for (int i = 0; i < 4; i++)
		b[n + (size_t)i] = (uint8_t)(crc >> 8 * i);
	out.iov[out.cnt] = (struct iovec){b, n + 4};
	out.m[out.cnt].msg_hdr = (struct msghdr){.msg_name = &P.ep,
		.msg_namelen = P.ep_len,
		.msg_iov = &out.iov[out.cnt],
		.msg_iovlen = 1};
	if (op != UD_SEND && falls())
		mark(out.cnt);
	if (++out.cnt == BATCH)
		flush();
}

static void answer(uint8_t syndrome, uint32_t psn)
{
	uint8_t aeth[4] = {syndrome};

	put(aeth + 1, P.taken, 3);
	send_packet(ACK, P.qpn, psn & PSN, false, aeth, sizeof(aeth), NULL, 0);
}

/* ---- requests of ours ---- */

static struct request *at(uint32_t n)
{
	return &P.q[n % QUEUE];
}

static bool is_unanswered(const struct request *r)
{
	return r->op == READ_REQUEST && r->got < r->packets;
}

static void send_request(const struct request *r)
{
	send_packet(r->op, P.qpn, r->psn, r->ack, r->ext, r->ext_len, r->payload, r->len);
}

/* The user's mistake: another message begins between the packets of one. */
static void keep_whole(bool begins, bool ends)
{
	if (begins == P.half_posted)
		DIE("IBA 9.7.3.2: a message of ours within another one");
	P.half_posted = !ends;
}

/* A new one, of so many PSNs; what else it has is the caller's, who sends it. */
static struct request *post(uint8_t op, bool ack, uint32_t packets)
{
	struct request *r = at(P.end);
	bool is_middle = op == WRITE_MIDDLE || op == SEND_MIDDLE;
	bool ends = op != WRITE_FIRST && op != SEND_FIRST && !is_middle;

	if (P.end - P.first == QUEUE)
		DIE("too many requests");
	keep_whole(!is_middle && op != WRITE_LAST && op != SEND_LAST && op != SEND_LAST_INV, ends);
	if (ends)
		P.msn = (P.msn + 1) & PSN;
	*r = (struct request){.op = op, .ack = ack, .psn = P.psn, .packets = packets, .msn = P.msn};
	P.psn = (P.psn + packets) & PSN;
	P.end++;
	return r;
}

static void put_reth(struct request *r, uint64_t addr, uint32_t rkey, uint32_t len)
{
	put(r->ext, addr, 8);
	put(r->ext + 8, rkey, 4);
	put(r->ext + 12, len, 4);
	r->ext_len = 16;
}

/* Of the first, middle, last and only packet of a message. */
static uint8_t pick(const uint8_t ops[4], bool first, bool last)
{
	if (first)
		return ops[last ? 3 : 0];
	return ops[last ? 2 : 1];
}

void qp_send(const void *msg, size_t len, bool invalidate, uint32_t rkey)
{
	static const uint8_t ops[4] = {SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY};
	static const uint8_t inv[4] = {SEND_FIRST, SEND_MIDDLE, SEND_LAST_INV, SEND_ONLY_INV};
	size_t off = 0, n;

	do {
		bool last = len - off <= MTU;
		uint8_t *text = P.texts[P.end % QUEUE];
		struct request *r = post(pick(invalidate ? inv : ops, off == 0, last), last, 1);

		n = last ? len - off : MTU;
		memcpy(text, (const uint8_t *)msg + off, n);
		if (last && invalidate) {
			put(r->ext, rkey, 4);
			r->ext_len = 4;
		}
		r->payload = text;
		r->len = n;
		send_request(r);
		off += n;
	} while (off < len);
}

void qp_write(uint64_t addr, uint32_t rkey, const uint8_t *payload, uint32_t len, uint32_t off)
{
	static const uint8_t ops[4] = {WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY};
	bool last = len - off <= MTU;
	struct request *r =
		post(pick(ops, off == 0, last), off / MTU % ACK_EACH == ACK_EACH - 1, 1);

	if (off == 0)
		put_reth(r, addr, rkey, len);
	r->payload = payload + off;
	r->len = last ? len - off : MTU;
	send_request(r);
}

void qp_read(uint64_t addr, uint32_t rkey, const uint8_t *expect, uint32_t len,
	void (*done)(void *ctx), void *ctx)
{
	struct request *r = post(READ_REQUEST, false, len == 0 ? 1 : (len + MTU - 1) / MTU);

	if (P.reads++ == 0)
		P.read_next = r->psn;
	put_reth(r, addr, rkey, len);
	r->expect = expect;
	r->bytes = len;
	r->done = done;
	r->ctx = ctx;
	send_request(r);
}

uint32_t qp_unacked(void)
{
	return P.end - P.first;
}

uint32_t qp_reads(void)
{
	return P.reads;
}

uint32_t qp_reads_most(void)
{
	return P.reads_most;
}

void qp_tell(void)
{
	if ((P.lost | P.naks) != 0)
		fprintf(stderr, "# the peer: packets lost %llu, NAKs %llu, CNPs %llu, sent %llu\n",
			(unsigned long long)P.lost, (unsigned long long)P.naks,
			(unsigned long long)P.cnps, (unsigned long long)P.told);
}

static uint32_t oldest(void)
{
	return P.first == P.end ? P.psn : at(P.first)->psn;
}

/* All before this PSN is done. A Read is when its answer is there, which acknowledges as well. */
static void done_before(uint32_t psn)
{
	while (P.first != P.end) {
		const struct request *r = at(P.first);

		if (behind(psn, r->psn + r->packets) < 0 || is_unanswered(r))
			return;
		P.acked_msn = r->msn;
		P.first++;
	}
}

/* A Read asks for the missing part only, which has another place and the same key. */
static void ask_for_rest(struct request *r)
{
	uint32_t bytes = r->got * MTU;

	if (r->got == 0)
		return;
	r->bytes -= bytes;
	put_reth(r, get(r->ext, 8) + bytes, (uint32_t)get(r->ext + 8, 4), r->bytes);
	r->expect += bytes;
	r->psn = (r->psn + r->got) & PSN;
	r->packets -= r->got;
	r->got = 0;
	r->again = true;
}

static void send_again(void)
{
	for (uint32_t n = P.first; n != P.end; n++) {
		if (at(n)->op == READ_REQUEST)
			ask_for_rest(at(n));
		at(n)->twice = true;
		send_request(at(n));
	}
}

/* The oldest Read without all of its answer: answers are in order. */
static struct request *reading(void)
{
	for (uint32_t n = P.first; n != P.end; n++)
		if (is_unanswered(at(n)))
			return at(n);
	return NULL;
}

/* A Read has this PSN. */
static bool is_asked_for(uint32_t psn)
{
	for (uint32_t n = P.first; n != P.end; n++) {
		int32_t off = behind(psn, at(n)->psn);

		if (at(n)->op == READ_REQUEST && off >= 0 && off < (int32_t)at(n)->packets)
			return true;
	}
	return false;
}

/*
 * All before `end` is acknowledged. Reads are done with their answers, which come first. The MSN is
 * known if nothing of before is left, and nothing behind it is done.
 */
static void acknowledged(uint32_t end, uint32_t msn)
{
	done_before(end);
	if (P.w->lossy == 0 && behind(end, oldest()) > 0)
		DIE("IBA 9.5, rxe_comp.c: an acknowledgement of %#x passes a Read without its "
		    "answer",
			end);
	if (end == oldest() && msn != P.acked_msn)
		DIE("IBA 9.7.7.1: MSN %#x, and %#x messages are done", msn, P.acked_msn);
}

static void on_acknowledged(const struct packet *p)
{
	uint8_t syndrome = p->ext[0];
	uint32_t msn = (uint32_t)get(p->ext + 1, 3);

	if (p->len != 0)
		DIE("IBA 9.4: an acknowledgement with %zu bytes of payload", p->len);
	if (behind(p->psn, P.psn) >= 0)
		DIE("IBA 9.7.6.1.1: an acknowledgement of what was not sent: %#x", p->psn);
	if (syndrome == 0x1f) {
		if (is_asked_for(p->psn))
			DIE("IBA 9.7.5.1.2: a Read is acknowledged by its answer: %#x", p->psn);
		acknowledged((p->psn + 1) & PSN, msn);
		return;
	}
	/* This end asks for nothing that is wrong: nothing is refused. */
	if (syndrome != 0x60 &&
		(syndrome != THEIRS || !P.user->may_lack_receives || !P.user->may_lack_receives()))
		DIE("IBA 9.7.5.2: syndrome %#x", syndrome);
	acknowledged(p->psn, msn);
	if (syndrome == THEIRS) {
		flush();
		nanosleep(&(struct timespec){.tv_nsec = RNR_NS}, NULL); /* IBA 9.7.5.2.8 */
	} else {
		P.naks++;
	}
	send_again();
}

/* ---- answers of Reads ---- */

/* IBA 9.4.4: first, middle, last or only; full packets, the PSNs of the request on. */
static void check_answer(const struct request *r, const struct packet *p)
{
	static const uint8_t ops[4] = {READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY};
	uint32_t left = r->bytes - r->got * MTU;
	bool first = r->got == 0, last = r->got + 1 == r->packets;

	/* Of one that was asked for again the first packets may be of the answer of before. */
	if (p->op != pick(ops, first, last) &&
		!(first && r->again && p->op == pick(ops, false, last)))
		DIE("IBA 9.4.4: packet %u of an answer of %u has opcode %#x", r->got, r->packets,
			p->op);
	if (p->len != (last ? left : MTU))
		DIE("IBA 9.4.4: a packet of an answer has %zu bytes", p->len);
	if (p->op != READ_MIDDLE && p->ext[0] != 0x1f)
		DIE("IBA 9.7.5.2.1: an answer of syndrome %#x", p->ext[0]);
	/* Where it was asked for more than once the count may be a later one. */
	if (p->op != READ_MIDDLE && !r->twice && get(p->ext + 1, 3) != r->msn)
		DIE("IBA 9.7.7.1: an answer of MSN %#llx, not %#x",
			(unsigned long long)get(p->ext + 1, 3), r->msn);
	if (memcmp(p->payload, r->expect + r->got * MTU, p->len) != 0)
		DIE("IBA 9.4.4: an answer has other bytes than were there");
}

static void on_read(const struct packet *p)
{
	struct request *r = reading(), was;

	if (behind(p->psn, P.read_next) < 0)
		return; /* it came before */
	if (!r || !is_asked_for(p->psn))
		DIE("IBA 9.7.6.1: an answer that nobody asked for: %#x", p->psn);
	if (p->psn != ((r->psn + r->got) & PSN)) {
		if (P.w->lossy == 0)
			DIE("IBA 9.7.3: a packet of an answer is missing before %#x", p->psn);
		/* Once: all that follows is of before. */
		if (!P.gap)
			send_again();
		P.gap = true;
		return;
	}
	check_answer(r, p);
	P.gap = false;
	P.read_next = (p->psn + 1) & PSN;
	r->got++;
	was = *r;
	P.reads -= was.got == was.packets;
	done_before(P.read_next);
	if (was.got == was.packets && was.done)
		was.done(was.ctx);
}

/* ---- Sends ---- */

/* Of each Send once at most: what comes behind it is dropped until it comes again. */
static bool has_no_receive(bool first)
{
	if (P.no_receive || !first || !P.user->has_no_receive || !P.user->has_no_receive())
		return false;
	answer(RNR, P.expected);
	P.ack_due = false; /* it acknowledges what was before */
	P.no_receive = P.nak_sent = true;
	return true;
}

/* True: it is the next one, and there is a receive. */
static bool is_taken(const struct packet *p, bool first)
{
	int32_t early = behind(p->psn, P.expected);

	if (early > 0) {
		if (P.w->lossy == 0 && !P.no_receive)
			DIE("IBA 9.7.3.1: PSN %#x in place of %#x", p->psn, P.expected);
		if (!P.nak_sent)
			answer(0x60, P.expected);
		P.nak_sent = true;
		return false;
	}
	if (early == 0 && has_no_receive(first))
		return false;
	/* IBA 9.7.5.1: once more what comes twice; 9.7.5.1.2: else what asks. */
	P.ack_due |= early < 0 || p->ack_req;
	return early == 0;
}

static void on_send(const struct packet *p)
{
	bool first = p->op == SEND_FIRST || p->op == SEND_ONLY;
	bool last = p->op == SEND_LAST || p->op == SEND_ONLY;

	if (!is_taken(p, first))
		return;
	P.expected = (P.expected + 1) & PSN;
	P.nak_sent = P.no_receive = false;
	if (first == P.in_message)
		DIE("IBA 9.7.4.1.2, rxe_resp.c: opcode %#x is out of turn", p->op);
	if (last ? p->len > MTU || (!first && p->len == 0) : p->len != MTU)
		DIE("IBA 9.7.4.1.6: a packet of a Send has %zu bytes, opcode %#x", p->len, p->op);
	if (first)
		P.got = 0;
	if (p->len > sizeof(P.message) - P.got)
		DIE("IBA 9.4.1: a Send longer than its receive");
	memcpy(P.message + P.got, p->payload, p->len);
	P.got += p->len;
	P.in_message = !last;
	if (!last)
		return;
	P.taken = (P.taken + 1) & PSN;
	P.user->received(P.message, P.got);
}

/* ---- connecting (IBA 12.9) ---- */

static void send_mad(uint16_t attr, const uint8_t *tid, const uint8_t body[232])
{
	uint8_t deth[8], mad[256] = {1, 7, 2, 3};

	put(deth, 0x80010000, 4);
	put(deth + 4, 1, 4);
	memcpy(mad + 8, tid, 8);
	put(mad + 16, attr, 2);
	memcpy(mad + 24, body, 232);
	flush();
	out.is_mad = true;
	send_packet(UD_SEND, 1, 0, false, deth, 8, mad, sizeof(mad));
	flush();
	out.is_mad = false;
}

static int open_socket(uint16_t port)
{
	struct sockaddr_storage in;
	socklen_t len = wire_addr(P.w, &in, P.w->peer_addr, port);
	int dont = IP_PMTUDISC_DO, on = 1, room = 16 << 20;
	int fd = socket(in.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &dont, sizeof(dont));
	setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
	if (P.w->v6) { /* the endpoint's have no checksum, and here zero needs leave */
		setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
		setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on));
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(fd, (struct sockaddr *)&in, len))
		DIE("bind: %s", strerror(errno));
	return fd;
}

/* A17.4.1.1: of IPv4 ::ffff:a.b.c.d. */
static void put_gid(uint8_t gid[16], const char *addr)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	inet_pton(P.w->v6 ? AF_INET6 : AF_INET, addr, P.w->v6 ? gid : gid + 12);
}

/* A11.3: 36 bytes, of IPv4 without what a GID has in front of an address. */
static void check_private(const uint8_t *p)
{
	uint8_t ip[36] = {0, P.w->v6 ? 0x60 : 0x40};

	put(ip + 2, P.ep_port, 2);
	put_gid(ip + 4, P.w->ep_addr);
	put_gid(ip + 20, P.w->peer_addr);
	if (!P.w->v6) {
		memset(ip + 4, 0, 12);
		memset(ip + 20, 0, 12);
	}
	if (memcmp(p, ip, sizeof(ip)) != 0)
		DIE("A11.3: other addresses or another port in the private data");
}

/* Table 106, as Linux has it (include/rdma/ibta_vol1_c12.h), which sends 0 in what is reserved. */
static void check_req(const uint8_t *r)
{
	uint8_t gids[32];

	put_gid(gids, P.w->ep_addr);
	put_gid(gids + 16, P.w->peer_addr);
	if (get(r, 4) == 0 || get(r + 32, 3) < 2)
		DIE("IBA 12.7.1, 3.5.10: no ID, or a queue pair that is special");
	if (get(r + 8, 8) != (0x01060000u | LISTENS_AT))
		DIE("A11.2: the service ID is not that of TCP's port %u", LISTENS_AT);
	if (r[35] < QP_READS)
		DIE("IBA 12.7.29: a REQ that allows %u Reads", r[35]);
	if ((r[43] & 7) != 0)
		DIE("IBA 12.7.8, 12.7.26: no reliable connection, or credits that we do not count");
	if (get(r + 48, 2) != 0xffff)
		DIE("IBA 10.9.3: the P_Key is %#x", (unsigned int)get(r + 48, 2));
	if (128u << (r[50] >> 4) != MTU)
		DIE("IBA 12.7.27: the MTU is %u", 128u << (r[50] >> 4));
	if (get(r + 52, 4) != 0xffffffff)
		DIE("A17.6.1.1: a REQ with LIDs");
	if (memcmp(r + 56, gids, sizeof(gids)) != 0)
		DIE("A17.4.1.1: GIDs of other addresses");
	if (get(r + 88, 4) >> 12 == 0)
		DIE("A17.4.3: no flow label");
	if (r[93] < 2) /* or it is of one subnet: Linux' drivers/infiniband/core/cm.c */
		DIE("table 106: hop limit %u", r[93]);
	/* Also Q_Key, EE contexts, Reads of its own; RDC, SRQ, the extended transport; the packet
	 * rate, the service level; the alternate path. */
	if (!is_zero(r + 4, 4) || !is_zero(r + 24, 8) || !is_zero(r + 36, 7) || (r[50] & 8) != 0 ||
		(r[51] & 15) != 0 || (get(r + 88, 4) & 0xfff) != 0 || r[94] != 0 ||
		(r[95] & 7) != 0 || !is_zero(r + 96, 44))
		DIE("table 106: what is reserved, or not used, is not 0");
	check_private(r + 140);
}

/*
 * A17.4.3: the source port is made of the flow label that the REQ gives, as Linux does it
 * (include/rdma/ib_verbs.h, rdma_flow_label_to_udp_sport()).
 */
static void use_label(uint32_t label)
{
	P.out_port = (uint16_t)(0xc000u | ((label & 0x3fff) ^ (label & 0xfc000) >> 14));
	P.out_fd = open_socket(P.out_port);
}

static void on_req(const uint8_t *tid, const uint8_t *r)
{
	uint8_t rep[232] = {0};

	if (P.is_up)
		DIE("IBA 12.9.8.1: a REQ of a connection that is up");
	/* One that comes again has the same answer. */
	if (P.qpn == 0) {
		check_req(r);
		memcpy(P.tid, tid, sizeof(P.tid));
		memcpy(P.req, r, sizeof(P.req));
		P.id = (uint32_t)get(r, 4);
		P.qpn = (uint32_t)get(r + 32, 3);
		P.psn = P.read_next = (uint32_t)get(r + 44, 3);
		P.reads_most = r[35];
		P.expected = 1;
		use_label((uint32_t)get(r + 88, 3) >> 4);
	} else if (memcmp(tid, P.tid, sizeof(P.tid)) != 0 || memcmp(r, P.req, sizeof(P.req)) != 0) {
		DIE("IBA 12.9.8.1: a REQ that is not the one of before");
	}
	put(rep, PEER_ID, 4);
	put(rep + 4, P.id, 4);
	put(rep + 12, PEER_QPN, 3);
	put(rep + 20, 1, 3);
	rep[25] = 16;
	rep[26] = 15 << 3;
	if (P.user->accept)
		P.user->accept(r + 140 + 36, rep + 36);
	send_mad(REP, tid, rep);
}

static _Noreturn void on_dreq(const uint8_t *tid)
{
	uint8_t drep[232] = {0};

	put(drep, PEER_ID, 4);
	put(drep + 4, P.id, 4);
	send_mad(DREP, tid, drep);
	if (P.user->parted)
		P.user->parted();
	exit(0);
}

static void on_mad(const uint8_t *mad)
{
	const uint8_t *body = mad + 24;
	uint32_t attr = (uint32_t)get(mad + 16, 2);
	size_t numbers = attr == DREQ ? 12 : 8;

	if (get(mad, 4) != 0x01070203 || !is_zero(mad + 4, 4) || !is_zero(mad + 18, 6) ||
		is_zero(mad + 8, 8))
		DIE("IBA 13.4.3: the header of a MAD of the CM");
	if (attr == REQ) {
		on_req(mad + 8, body);
		return;
	}
	if (attr != RTU && attr != DREQ)
		DIE("IBA 12.9: message %#x of the active side", attr);
	if (memcmp(mad + 8, P.tid, sizeof(P.tid)) != 0)
		DIE("IBA 12.6: another transaction");
	if (get(body, 4) != P.id || get(body + 4, 4) != PEER_ID ||
		(attr == DREQ && get(body + 8, 4) != PEER_QPN << 8) ||
		!is_zero(body + numbers, 232 - numbers))
		DIE("tables 111, 112: IDs, the queue pair, or what is behind them in %#x", attr);
	if (attr == DREQ)
		on_dreq(mad + 8);
	P.is_up = true;
}

/* ---- what comes ---- */

static void send_cnp(void)
{
	static const uint8_t zeros[16];

	send_packet(CNP, P.qpn, 0, false, zeros, sizeof(zeros), NULL, 0);
	P.told++;
}

static void on_cnp(const struct packet *p)
{
	if (p->len != 0 || p->psn != 0 || !is_zero(p->ext, 16))
		DIE("A17.9.3, figure 6: a CNP that is none");
	if (P.w->lossy == 0)
		DIE("A17.9.3: a CNP without congestion");
	P.cnps++;
}

static void on_packet(const struct packet *p)
{
	if (p->op == UD_SEND) {
		if (p->len != 256)
			DIE("IBA 13.4.3: a datagram that is no MAD");
		on_mad(p->payload);
		return;
	}
	if (!P.is_up)
		DIE("IBA 12.9.7: a packet before the RTU");
	if (falls()) {
		P.lost++;
		return;
	}
	if (falls())
		send_cnp();
	switch (p->op) {
	case SEND_FIRST:
	case SEND_MIDDLE:
	case SEND_LAST:
	case SEND_ONLY:
		on_send(p);
		break;
	case ACK:
		on_acknowledged(p);
		break;
	case CNP:
		on_cnp(p);
		break;
	default:
		on_read(p);
	}
}

/* Bytes of extended headers (IBA table 38), of what an endpoint of ours sends. */
static size_t ext_of(uint8_t op)
{
	switch (op) {
	case SEND_FIRST:
	case SEND_MIDDLE:
	case SEND_LAST:
	case SEND_ONLY:
	case READ_MIDDLE:
		return 0;
	case READ_FIRST:
	case READ_LAST:
	case READ_ONLY:
	case ACK:
		return 4;
	case UD_SEND:
		return 8;
	case CNP:
		return 16;
	default:
		DIE("IBA table 38: a packet of opcode %#x", op);
	}
}

/* The header that all packets have. */
static void check_bth(const uint8_t *b)
{
	bool is_mad = b[0] == UD_SEND, is_cnp = b[0] == CNP;

	if ((b[1] & 0x80) != 0)
		DIE("IBA 9.2.2: a solicited event that nobody asked for");
	if ((b[1] & 0x40) != (is_cnp ? 0 : 0x40))
		DIE("IBA 9.2.3, A17.9.3: MigReq of opcode %#x", b[0]);
	if ((b[1] & 0x0f) != 0)
		DIE("IBA 9.2.5: TVer %u", b[1] & 0x0f);
	if (get(b + 2, 2) != 0xffff)
		DIE("IBA 9.2.6, A17.9.3: the P_Key is %#x", (unsigned int)get(b + 2, 2));
	if (b[4] != (is_cnp ? 0x40 : 0))
		DIE("IBA 9.2, A17.9.3: BECN is CNP's, FECN a switch's, the rest reserved: %#x",
			b[4]);
	if ((b[8] & 0x7f) != 0)
		DIE("IBA 9.2: reserved bits are %#x", b[8]);
	if (b[8] != 0 && b[0] > SEND_ONLY)
		DIE("IBA 9.7.5.1.2: opcode %#x asks to be acknowledged", b[0]);
	if (get(b + 5, 3) != (is_mad ? 1 : PEER_QPN))
		DIE("IBA 9.6.1.1, 3.5.10: a packet of another queue pair");
	if (is_mad && (get(b + 12, 4) != 0x80010000 || get(b + 16, 4) != 1))
		DIE("IBA 9.3.2, 10.2.4: another Q_Key or source");
}

/* Of IPv4 it is of the Identification, too: that of a packet alone is 0, else they count. */
static void check_icrc(const uint8_t *b, size_t len, uint16_t port)
{
	const struct wire *w = P.w;
	uint32_t is = (uint32_t)b[len - 1] << 24 | (uint32_t)b[len - 2] << 16 |
		      (uint32_t)b[len - 3] << 8 | b[len - 4];

	if (icrc(w->ep_addr, w->peer_addr, port, 0, b, len - 4) == is) {
		P.ident = 1;
		return;
	}
	if (icrc(w->ep_addr, w->peer_addr, port, P.ident, b, len - 4) != is)
		DIE("A17.3.3: a wrong ICRC");
	P.ident++;
}

/* A datagram, which ends with its ICRC. */
static void check(const uint8_t *b, size_t len, uint16_t port)
{
	struct packet p;
	size_t ext, pad;

	if (len < 16 || len % 4 != 0)
		DIE("A17.3, IBA 9.4.1: a packet of %zu bytes", len);
	pad = b[1] >> 4 & 3;
	ext = ext_of(b[0]);
	if (len < 12 + ext + pad + 4)
		DIE("IBA 9.2.1, table 38: opcode %#x in %zu bytes", b[0], len);
	check_icrc(b, len, port);
	check_bth(b);
	/* A REQ begins another connection. */
	if (b[0] == UD_SEND && P.qpn == 0)
		P.ep_port = port;
	if (port != P.ep_port)
		DIE("A17.3.2.1: the source port is %u, and was %u", port, P.ep_port);
	if (!is_zero(b + len - 4 - pad, pad))
		DIE("IBA 9.2.4: pad that is not 0");
	p = (struct packet){.op = b[0],
		.ack_req = b[8] & 0x80,
		.psn = (uint32_t)get(b + 9, 3),
		.ext = b + 12,
		.payload = b + 12 + ext,
		.len = len - 12 - ext - pad - 4};
	on_packet(&p);
}

/* Returns: false: nothing came for a while. */
static bool receive(void)
{
	static uint8_t b[BATCH][12 + 16 + MTU + 8];
	static struct sockaddr_storage from[BATCH];
	struct pollfd p = {.fd = P.fd, .events = POLLIN};
	struct mmsghdr m[BATCH];
	struct iovec iov[BATCH];
	int n, most = P.w->lossy ? SILENCE : LONG;

	for (unsigned int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){b[i], sizeof(b[i])};
		m[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &iov[i],
			.msg_iovlen = 1};
	}
	n = recvmmsg(P.fd, m, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0 && errno == EAGAIN) {
		if (poll(&p, 1, P.first != P.end ? most : -1) == 0)
			return false;
		n = recvmmsg(P.fd, m, BATCH, MSG_DONTWAIT, NULL);
	}
	if (n < 0 && errno != EAGAIN)
		DIE("recvmmsg: %s", strerror(errno));
	for (int i = 0; i < n; i++)
		check(b[i], m[i].msg_len, ntohs(((struct sockaddr_in *)&from[i])->sin_port));
	return true;
}

_Noreturn void qp_run(const struct wire *w, const struct qp_user *user)
{
	P.w = w;
	P.user = user;
	P.dice = 1;
	P.out_fd = -1;
	P.fd = open_socket(PORT);
	P.ep_len = wire_addr(w, &P.ep, w->ep_addr, PORT);
	for (;;) {
		if (!receive())
			send_again();
		if (P.ack_due)
			answer(0x1f, P.expected - 1);
		P.ack_due = false;
		user->go_on();
		flush();
	}
}
