/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer of roce_wire: a queue pair with wire formats of its own (InfiniBand volume 1, chapter 9;
 * annex A17), that looks at each packet that comes: the sequence number, the ICRC by zlib, each
 * bit of its headers, each byte. Whatever it does not like is the end, and it says which section
 * asks for it (IBA: volume 1; A17: the annex).
 *
 * As a requester it keeps what is not acknowledged, and sends it again after a NAK, a gap in the
 * answer of a Read, or a silence, and waits after an RNR NAK. As a responder it takes Sends in
 * order, asks once for a missing one, and acknowledges once more what comes twice; of a mixed lot
 * it has now and then no receive.
 *
 * On a lossy wire it loses packets itself, those that come and its own, marks some of its own as
 * having met congestion, and tells of congestion that there was none.
 */
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

#include "roce_wire_peer.h"

#define BATCH    64u
#define PEER_QPN 0x123456u
#define PEER_ID  0x77u /* communication ID */
#define QUEUE    512u  /* requests without an acknowledgement, at most; a power of two */
#define WINDOW   128   /* packets under way, at most */
#define READS    2u    /* of CHUNK under way */
#define SILENCE  20    /* ms, after which all is sent again */
#define EACH     (CHUNK / MTU)
#define RNR_EACH 16u   /* of so many Sends one finds no receive: MIXED */
#define RNR      0x21u /* that is there 10 us later (table 45) */
#define THEIRS   0x2cu /* 0.64 ms, which is what the endpoint says */
#define RNR_NS   640000
#define PSN      0xffffffu

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
	READ_LAST = 0x0f,
	READ_ONLY = 0x10,
	ACK = 0x11,
	SEND_LAST_INV = 0x16,
	SEND_ONLY_INV = 0x17,
	UD_SEND = 0x64,
	CNP = 0x81,
};

/* A request of ours. */
struct request {
	uint8_t op;
	bool ack;
	uint8_t ext[16];
	size_t ext_len;
	const uint8_t *payload; /* or text */
	size_t len;
	uint8_t text[CALL];
	uint32_t psn, packets; /* packets: of the answer, if it is a Read */
	uint32_t msn;          /* messages that are done when it is */
	uint64_t off;          /* of a Read, in the chunks */
	uint32_t bytes, got;   /* of a Read; packets of its answer that came */
	bool twice;            /* it went out more than once */
	bool again;            /* what is left of a Read is asked for again */
};

static struct {
	const struct wire *w;
	int fd;
	struct sockaddr_storage ep;
	socklen_t ep_len;
	uint32_t qpn, id;  /* of the endpoint; 0: none */
	uint64_t tid;      /* of its REQ */
	uint16_t from;     /* port of the packet that is looked at */
	uint16_t port;     /* of the connection's packets */
	bool is_up;        /* the RTU has come */
	uint32_t expected; /* PSN of its next request */
	bool ack_due, nak_sent;
	uint32_t taken; /* Sends */
	bool has_begun; /* one of several packets, so far in: */
	uint8_t call[4 * MTU];
	size_t call_len;
	uint32_t reads;         /* that the endpoint answers at a time */
	bool mixed, no_receive; /* no_receive: for the Send that is expected; it was told */
	uint16_t id_next;       /* Identification that may come next, if it is not 0 */
	struct request q[QUEUE];
	uint32_t first, end; /* counts of requests */
	uint32_t psn;        /* of our next request */
	uint32_t msn;        /* messages of ours, so far */
	uint32_t acked_msn;  /* ... before the first one of the queue */
	bool gap;            /* some of it did not come, and was asked for again */
	struct ask job;      /* what is being done */
	uint64_t done;       /* packets or Reads of it that were posted */
	uint64_t lost, naks, rnr_naks, cnps, told;
	uint32_t dice;
	uint8_t chunk[CHUNKS * CHUNK];
} P;

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

/* Annex A17.3.3. */
static uint32_t icrc(
	const char *src, const char *dst, uint16_t port, uint16_t id, const uint8_t *b, size_t len)
{
	uint8_t h[8 + 40 + 8 + 12], *udp;
	uLong crc;

	memset(h, 0xff, sizeof(h));
	udp = h + 8 + put_ip(h + 8, src, dst, id, 8 + len + 4);
	put(udp, port, 2);
	put(udp + 2, 4791, 2);
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
};

static struct out out;

static void flush(void)
{
	for (unsigned int done = 0; done < out.cnt;) {
		int n = sendmmsg(P.fd, out.m + done, out.cnt - done, 0);

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
	b[1] = (uint8_t)((op == CNP ? 0 : 0x40) | pad << 4);
	put(b + 2, 0xffff, 2);
	b[4] = op == CNP ? 0x40 : 0;
	put(b + 5, qpn, 3);
	b[8] = ack ? 0x80 : 0;
	put(b + 9, psn, 3);
	if (ext_len > 0)
		memcpy(b + 12, ext, ext_len);
	if (len > 0)
		memcpy(b + 12 + ext_len, payload, len);
	memset(b + n - pad, 0, pad);
	crc = icrc(P.w->peer_addr, P.w->ep_addr, 4791, 0, b, n);
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

static void send_request(const struct request *r)
{
	send_packet(r->op, P.qpn, r->psn, r->ack, r->ext, r->ext_len, r->payload, r->len);
}

/* A new one, of so many PSNs; what else it has is the caller's, who sends it. */
static struct request *post(uint8_t op, bool ack, uint32_t packets)
{
	struct request *r = at(P.end);

	if (P.end - P.first == QUEUE)
		DIE("too many requests");
	if (op != WRITE_FIRST && op != WRITE_MIDDLE && op != SEND_FIRST && op != SEND_MIDDLE)
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

static void say(const char *text, bool inval, uint32_t rkey)
{
	struct request *r = post(inval ? SEND_ONLY_INV : SEND_ONLY, true, 1);

	snprintf((char *)r->text, sizeof(r->text), "%s", text);
	put(r->ext, rkey, 4);
	r->ext_len = inval ? 4 : 0;
	r->payload = r->text;
	r->len = sizeof(r->text);
	send_request(r);
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
		uint32_t end = r->psn + r->packets;

		if (behind(psn, end) < 0 || (r->op == READ_REQUEST && r->got < r->packets))
			return;
		P.acked_msn = r->msn;
		P.first++;
	}
}

/* A Read asks for the missing part only, which has another place and the same key. */
static void ask_for_rest(struct request *r)
{
	uint32_t got = r->got * MTU;

	if (got == 0)
		return;
	put_reth(r, get(r->ext, 8) + got, (uint32_t)get(r->ext + 8, 4), r->bytes - got);
	r->off += got;
	r->bytes -= got;
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

static const struct request *read_of(uint32_t psn)
{
	for (uint32_t n = P.first; n != P.end; n++) {
		const struct request *r = at(n);
		int32_t off = behind(psn, r->psn);

		if (r->op == READ_REQUEST && off >= 0 && off < (int32_t)r->packets)
			return r;
	}
	return NULL;
}

/*
 * All before `end` is acknowledged. Reads are done with their answers, which come first. The MSN is
 * known if nothing of before is left, and nothing behind it is done.
 */
static void acknowledged(uint32_t end, uint32_t msn)
{
	done_before(end);
	if (P.w->lossy == 0 && P.first != P.end && behind(end, at(P.first)->psn) > 0)
		DIE("IBA 9.5: an acknowledgement of %#x overtakes the answer of a Read", end);
	if (behind(end, oldest()) == 0 && msn != P.acked_msn)
		DIE("IBA 9.7.7.1: MSN %#x, and %#x messages are done", msn, P.acked_msn);
}

static void on_acknowledged(const uint8_t *aeth, uint32_t psn)
{
	uint8_t syndrome = aeth[0];
	uint32_t msn = (uint32_t)get(aeth + 1, 3);

	if (behind(psn, P.psn) >= 0)
		DIE("IBA 9.7.5.1: an acknowledgement of %#x, which was not sent", psn);
	if (syndrome == 0x1f) {
		if (read_of(psn))
			DIE("IBA 9.7.5.1.2: a Read is acknowledged by its answer: %#x", psn);
		acknowledged((psn + 1) & PSN, msn);
		return;
	}
	/* This end asks for nothing that is wrong: nothing is refused. */
	if (syndrome != 0x60 && (syndrome != THEIRS || !P.mixed))
		DIE("IBA 9.7.5.2: syndrome %#x", syndrome);
	acknowledged(psn, msn);
	if (syndrome == THEIRS) {
		P.rnr_naks++;
		flush();
		nanosleep(&(struct timespec){.tv_nsec = RNR_NS}, NULL); /* IBA 9.7.5.2.8 */
	} else {
		P.naks++;
	}
	send_again();
}

/* ---- answers of Reads ---- */

/* The first one whose answer is not there. */
static struct request *unanswered(void)
{
	for (uint32_t n = P.first; n != P.end; n++)
		if (at(n)->op == READ_REQUEST && at(n)->got < at(n)->packets)
			return at(n);
	return NULL;
}

static void on_read(uint8_t op, uint32_t psn, const uint8_t *b, size_t len)
{
	struct request *r = unanswered();
	uint32_t next = r ? (r->psn + r->got) & PSN : P.psn, i, left;
	size_t ext = op == READ_FIRST || op == READ_LAST || op == READ_ONLY ? 4 : 0;

	if (behind(psn, next) < 0)
		return; /* it came before */
	if (!r || !read_of(psn))
		DIE("IBA 9.7.6.1: an answer that nobody asked for: %#x", psn);
	if (psn != next) {
		if (P.w->lossy == 0)
			DIE("IBA 9.7.5.1: a packet of an answer is lost: %#x", next);
		/* Once: all that follows is of before. */
		if (!P.gap)
			send_again();
		P.gap = true;
		return;
	}
	i = (psn - r->psn) & PSN;
	/* Of one that was asked for again the first packet may be of the answer of before. */
	if ((i > 0 && i + 1 < r->packets && ext != 0) ||
		(i + 1 == r->packets && op != READ_LAST && op != READ_ONLY) ||
		(i == 0 && !r->again && op != (r->packets == 1 ? READ_ONLY : READ_FIRST)))
		DIE("IBA 9.4.4: packet %u of an answer of %u has opcode %#x", i, r->packets, op);
	if (ext > 0 && b[12] != 0x1f)
		DIE("IBA 9.7.5.2.1: an answer of syndrome %#x", b[12]);
	/* Where it was asked for more than once the count may be a later one. */
	if (ext > 0 && !r->twice && get(b + 13, 3) != r->msn)
		DIE("IBA 9.7.7.1: an answer of MSN %#llx, not %#x",
			(unsigned long long)get(b + 13, 3), r->msn);
	left = r->bytes - i * MTU;
	if (len != 12 + ext + (left < MTU ? left : MTU))
		DIE("IBA 9.4.1: a packet of an answer has %zu bytes", len - 12 - ext);
	if (memcmp(b + 12 + ext, P.chunk + (r->off + (uint64_t)i * MTU) % sizeof(P.chunk),
		    len - 12 - ext) != 0)
		DIE("IBA 9.4.4: an answer of other bytes");
	P.gap = false;
	r->got++;
	done_before((psn + 1) & PSN);
}

/* ---- what we are asked for ---- */

static uint32_t packets_of(uint32_t len)
{
	return len == 0 ? 1 : (len + MTU - 1) / MTU;
}

static void next_write(void)
{
	uint32_t in = (uint32_t)(P.done % EACH);
	uint64_t off = P.done / EACH % CHUNKS * CHUNK;
	struct request *r = post(in == 0          ? WRITE_FIRST
				 : in + 1 == EACH ? WRITE_LAST
						  : WRITE_MIDDLE,
		in % 64 == 63, 1);

	if (in == 0)
		put_reth(r, P.job.addr + off, P.job.rkey, CHUNK);
	r->payload = P.chunk + off + (uint64_t)in * MTU;
	r->len = MTU;
	send_request(r);
	P.done++;
}

static void post_read(uint64_t addr, uint32_t rkey, uint64_t off, uint32_t len)
{
	struct request *r = post(READ_REQUEST, false, packets_of(len));

	put_reth(r, addr, rkey, len);
	r->off = off;
	r->bytes = len;
	send_request(r);
}

static void next_read(void)
{
	uint64_t off = P.done++ % CHUNKS * CHUNK;

	post_read(P.job.addr + off, P.job.rkey, off, CHUNK);
}

/* As much as there may be under way. */
static void go_on(void)
{
	uint64_t all = P.job.bytes / (P.job.what == WRITE_TO_ME ? MTU : CHUNK);

	if (P.job.what == WRITE_TO_ME)
		while (P.done < all && behind(P.psn, oldest()) < WINDOW)
			next_write();
	else if (P.job.what == READ_FROM_ME)
		while (P.done < all && P.end - P.first < READS)
			next_read();
	else
		return;
	if (P.done < all || P.first != P.end)
		return;
	say("done", false, 0);
	P.job.what = 0;
	if ((P.lost | P.naks) != 0)
		fprintf(stderr, "# the peer: packets lost %llu, NAKs %llu, CNPs %llu, sent %llu\n",
			(unsigned long long)P.lost, (unsigned long long)P.naks,
			(unsigned long long)P.cnps, (unsigned long long)P.told);
}

static void operate(const struct ask *a)
{
	struct request *r = post(WRITE_ONLY, false, 1);

	put_reth(r, a->addr, a->rkey, OP_LEN);
	r->payload = P.chunk;
	r->len = OP_LEN;
	send_request(r);
	say("reply", true, a->rkey);
}

/* A message of the chunks' bytes from `off` on; ext: of its first, or of its last packet. */
static void post_message(const uint8_t ops[4], uint64_t off, uint32_t len, const uint8_t *ext,
	size_t ext_len, bool ext_is_last)
{
	uint32_t cnt = packets_of(len);

	for (uint32_t i = 0; i < cnt; i++) {
		bool first = i == 0, last = i + 1 == cnt;
		struct request *r = post(ops[first      ? (last ? 3 : 0)
						 : last ? 2
							: 1],
			last && ext_is_last, 1);

		if (ext_is_last ? last : first) {
			memcpy(r->ext, ext, ext_len);
			r->ext_len = ext_len;
		}
		r->payload = P.chunk + off + i * MTU;
		r->len = last ? len - i * MTU : MTU;
		send_request(r);
	}
}

static uint32_t reads_under_way(void)
{
	uint32_t cnt = 0;

	for (uint32_t n = P.first; n != P.end; n++)
		cnt += at(n)->op == READ_REQUEST;
	return cnt;
}

/* A Write, a Read if there may be another one, and a Send with Invalidate. */
static void mix(const struct ask *a)
{
	static const uint8_t writes[] = {WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY};
	static const uint8_t sends[] = {SEND_FIRST, SEND_MIDDLE, SEND_LAST_INV, SEND_ONLY_INV};
	uint64_t n = a->bytes;
	struct request to;

	P.mixed = true;
	put_reth(&to, a->addr, a->rkey, mixed_len(n, WRITTEN));
	post_message(writes, a->off, mixed_len(n, WRITTEN), to.ext, 16, false);
	if (reads_under_way() < P.reads)
		post_read(a->chunks + mixed_off(n), a->mr, mixed_off(n), mixed_len(n, READ));
	put(to.ext, a->rkey, 4);
	post_message(sends, 0, mixed_len(n, REPLIED), to.ext, 4, true);
}

static void on_call(void)
{
	struct ask a;

	if (P.call_len < sizeof(a))
		DIE("IBA 9.4.1: a Send of %zu bytes", P.call_len);
	memcpy(&a, P.call, sizeof(a));
	if (P.call_len != (a.what == MIXED ? sizeof(a) + mixed_len(a.bytes, CALLED) : CALL))
		DIE("IBA 9.4.1: a Send of %zu bytes", P.call_len);
	if (a.what == MIXED && memcmp(P.call + sizeof(a), P.chunk, P.call_len - sizeof(a)) != 0)
		DIE("IBA 9.4.1: a Send of other bytes");
	if (a.what == OPERATION) {
		operate(&a);
		return;
	}
	if (a.what == MIXED) {
		mix(&a);
		return;
	}
	if (P.job.what != 0)
		DIE("a second question");
	P.job = a;
	P.done = 0;
}

/* Now and then, once for each: what comes behind it is dropped until it comes again. */
static bool has_no_receive(bool first)
{
	if (P.no_receive || !P.mixed || !first || P.taken % RNR_EACH != 0)
		return false;
	answer(RNR, P.expected);
	P.ack_due = false; /* it acknowledges what was before */
	P.no_receive = P.nak_sent = true;
	return true;
}

static void on_send(uint8_t op, uint32_t psn, const uint8_t *b, size_t len)
{
	bool first = op == SEND_FIRST || op == SEND_ONLY, last = op == SEND_LAST || op == SEND_ONLY;
	int32_t early = behind(psn, P.expected);

	if (early > 0) {
		if (P.w->lossy == 0 && !P.no_receive)
			DIE("IBA 9.7.3.1: PSN %#x in place of %#x", psn, P.expected);
		if (!P.nak_sent)
			answer(0x60, P.expected);
		P.nak_sent = true;
		return;
	}
	if (early < 0) {
		P.ack_due = true;
		return;
	}
	if (has_no_receive(first))
		return;
	P.ack_due = true;
	P.expected = (P.expected + 1) & PSN;
	P.nak_sent = P.no_receive = false;
	if (first == P.has_begun)
		DIE("IBA 9.7.3.2: opcode %#x out of turn", op);
	if (first)
		P.call_len = 0;
	len -= 12;
	if (last ? len > MTU || (!first && len == 0) : len != MTU)
		DIE("IBA 9.7.3.2, 9.7.4.1.6: a packet of %zu bytes, opcode %#x", len, op);
	if (P.call_len + len > sizeof(P.call))
		DIE("IBA 9.4.1: a Send of more than %zu bytes", P.call_len);
	memcpy(P.call + P.call_len, b + 12, len);
	P.call_len += len;
	P.has_begun = !last;
	if (!last)
		return;
	P.taken = (P.taken + 1) & PSN;
	on_call();
}

/* ---- connecting (volume 1, section 12.9) ---- */

static void send_mad(uint16_t attr, const uint8_t *tid, const uint8_t body[232])
{
	uint8_t deth[8], mad[256] = {1, 7, 2, 3};

	put(deth, 0x80010000, 4);
	put(deth + 4, 1, 4);
	memcpy(mad + 8, tid, 8);
	put(mad + 16, attr, 2);
	memcpy(mad + 24, body, 232);
	send_packet(UD_SEND, 1, 0, false, deth, 8, mad, sizeof(mad));
}

static void gid_of(const char *addr, uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	inet_pton(P.w->v6 ? AF_INET6 : AF_INET, addr, P.w->v6 ? gid : gid + 12);
}

/* Annex A11.3: 36 bytes, of IPv4 without what a GID has in front of an address. */
static void check_private(const uint8_t *p)
{
	uint8_t ip[36] = {0, P.w->v6 ? 0x60 : 0x40};

	put(ip + 2, P.from, 2);
	gid_of(P.w->ep_addr, ip + 4);
	gid_of(P.w->peer_addr, ip + 20);
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

	gid_of(P.w->ep_addr, gids);
	gid_of(P.w->peer_addr, gids + 16);
	if (get(r, 4) == 0 || get(r + 32, 3) < 2)
		DIE("IBA 12.7.1, 3.5.10: no ID, or a queue pair that is special");
	if (get(r + 8, 8) != (0x01060000 | 20049))
		DIE("A11.2: service ID %#llx", (unsigned long long)get(r + 8, 8));
	if (r[35] < READS)
		DIE("table 106: it answers %u Reads at a time", r[35]);
	if ((r[43] & 7) != 0)
		DIE("IBA 12.7.8, 12.7.26: no reliable connection, or credits that we do not count");
	if (get(r + 48, 2) != 0xffff)
		DIE("IBA 10.9.3: P_Key");
	if (128u << (r[50] >> 4) != MTU)
		DIE("IBA 9.7.3.3: the MTU is %u", 128u << (r[50] >> 4));
	if (get(r + 52, 4) != 0xffffffff)
		DIE("A17.6.1.1: there are no LIDs");
	if (memcmp(r + 56, gids, sizeof(gids)) != 0)
		DIE("A17.4.1.1: other GIDs");
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

static void on_req(const uint8_t *mad)
{
	const uint8_t *body = mad + 24;
	uint8_t rep[232] = {0};

	check_req(body);
	P.qpn = (uint32_t)get(body + 32, 3);
	P.id = (uint32_t)get(body, 4);
	P.tid = get(mad + 8, 8);
	P.port = P.from;
	P.reads = body[35];
	P.psn = (uint32_t)get(body + 44, 3);
	P.first = P.end = 0;
	P.msn = P.acked_msn = P.taken = 0;
	put(rep, PEER_ID, 4);
	put(rep + 4, P.id, 4);
	put(rep + 12, PEER_QPN, 3);
	put(rep + 20, 1, 3);
	rep[25] = 16;
	rep[26] = 15 << 3;
	P.expected = 1;
	send_mad(0x13, mad + 8, rep);
}

static void on_mad(const uint8_t *mad)
{
	const uint8_t *body = mad + 24;
	uint32_t attr = (uint32_t)get(mad + 16, 2);
	size_t numbers = attr == 0x15 ? 12 : 8;

	if (get(mad, 4) != 0x01070203 || !is_zero(mad + 4, 4) || !is_zero(mad + 18, 6) ||
		is_zero(mad + 8, 8))
		DIE("IBA 13.4.3: the header of a MAD of the CM");
	if (attr == 0x10) { /* REQ; once more: the one of before is not answered yet */
		if (P.is_up)
			DIE("IBA 12.9.8.1: a REQ of a connection that is up");
		on_req(mad);
		return;
	}
	if (attr != 0x14 && attr != 0x15)
		DIE("IBA 12.9: message %#x of the active side", attr);
	if (get(mad + 8, 8) != P.tid || P.from != P.port)
		DIE("IBA 12.6, A17.3.2.1: another transaction, or another port");
	if (get(body, 4) != P.id || get(body + 4, 4) != PEER_ID ||
		(attr == 0x15 && get(body + 8, 4) != PEER_QPN << 8) ||
		!is_zero(body + numbers, 232 - numbers))
		DIE("tables 111, 112: IDs, the queue pair, or what is behind them in %#x", attr);
	if (attr == 0x15) /* DREQ */
		exit(0);
	P.is_up = true;
}

/* ---- what comes ---- */

static void send_cnp(void)
{
	static const uint8_t zeros[16];

	send_packet(CNP, P.qpn, 0, false, zeros, sizeof(zeros), NULL, 0);
	P.told++;
}

/* Annex A17.9.3, figure 6. */
static void on_cnp(const uint8_t *b, size_t len)
{
	static const uint8_t zeros[16];

	if (len != 12 + 16 || b[1] != 0 || b[4] != 0x40 || get(b + 9, 3) != 0 ||
		memcmp(b + 12, zeros, 16) != 0)
		DIE("A17.9.3: a CNP that is none");
	if (P.w->lossy == 0)
		DIE("A17.9.3: a CNP without congestion");
	P.cnps++;
}

/* len: without pad and ICRC. */
static void on_packet(const uint8_t *b, size_t len)
{
	uint32_t psn = (uint32_t)get(b + 9, 3);

	if (b[0] == UD_SEND) {
		if (len != 12 + 8 + 256 || get(b + 12, 4) != 0x80010000 || get(b + 16, 4) != 1)
			DIE("IBA 9.3.2, 10.2.4, 13.4.3: a datagram that is no MAD of the CM");
		on_mad(b + 20);
		return;
	}
	if (P.from != P.port)
		DIE("A17.3.2.1: a packet of port %u, and before of %u", P.from, P.port);
	if (!P.is_up)
		DIE("IBA 12.9.7: a packet before the RTU");
	if (falls()) {
		P.lost++;
		return;
	}
	if (falls())
		send_cnp();
	switch (b[0]) {
	case SEND_FIRST:
	case SEND_MIDDLE:
	case SEND_LAST:
	case SEND_ONLY:
		on_send(b[0], psn, b, len);
		break;
	case ACK:
		if (len != 12 + 4)
			DIE("IBA 9.4: an acknowledgement of %zu bytes", len);
		on_acknowledged(b + 12, psn);
		break;
	case CNP:
		on_cnp(b, len);
		break;
	default:
		if (b[0] < READ_FIRST || b[0] > READ_ONLY)
			DIE("IBA table 38: a packet of opcode %#x", b[0]);
		on_read(b[0], psn, b, len);
	}
}

/* The header, without what depends on what is under way. Returns: how many bytes of pad. */
static size_t check_bth(const uint8_t *b, size_t len)
{
	bool is_cnp = b[0] == CNP;
	size_t pad = b[1] >> 4 & 3;

	if ((b[1] & 0x80) != 0)
		DIE("IBA 9.2.2: a solicited event that nobody asked for");
	if ((b[1] & 0x40) != (is_cnp ? 0 : 0x40))
		DIE("IBA 9.2.3, A17.9.3: MigReq of opcode %#x", b[0]);
	if ((b[1] & 0x0f) != 0)
		DIE("IBA 9.2.5: TVer %u", b[1] & 0x0f);
	if (get(b + 2, 2) != 0xffff)
		DIE("IBA 9.2.6, A17.9.3: P_Key %#llx", (unsigned long long)get(b + 2, 2));
	if (b[4] != (is_cnp ? 0x40 : 0))
		DIE("IBA 9.2, A17.9.3: BECN is CNP's, FECN a switch's, the rest reserved: %#x",
			b[4]);
	if ((b[8] & 0x7f) != 0)
		DIE("IBA 9.2: reserved bits are %#x", b[8]);
	if (b[8] != 0 && b[0] > SEND_ONLY)
		DIE("IBA 9.7.5.1.2: opcode %#x asks to be acknowledged", b[0]);
	if (get(b + 5, 3) != (b[0] == UD_SEND ? 1 : PEER_QPN))
		DIE("IBA 9.6.1.1, 3.5.10: a packet of another queue pair");
	if (len < 12 + pad || !is_zero(b + len - pad, pad))
		DIE("IBA 9.2.4: pad");
	return pad;
}

/* A datagram, which ends with its ICRC. */
static void check(const uint8_t *b, size_t len, uint16_t port)
{
	const struct wire *w = P.w;
	uint32_t is;

	if (len < 16 || len % 4 != 0)
		DIE("A17.3, IBA 9.4.1: a packet of %zu bytes", len);
	is = (uint32_t)b[len - 1] << 24 | (uint32_t)b[len - 2] << 16 | (uint32_t)b[len - 3] << 8 |
	     b[len - 4];
	if (icrc(w->ep_addr, w->peer_addr, port, 0, b, len - 4) == is) {
		P.id_next = 1;
	} else {
		if (icrc(w->ep_addr, w->peer_addr, port, P.id_next, b, len - 4) != is)
			DIE("A17.3.3: a wrong ICRC");
		P.id_next++;
	}
	P.from = port;
	on_packet(b, len - 4 - check_bth(b, len - 4));
}

/* Returns: false: nothing came for a while. */
static bool receive(void)
{
	static uint8_t b[BATCH][12 + 16 + MTU + 8];
	static struct sockaddr_storage from[BATCH];
	struct pollfd p = {.fd = P.fd, .events = POLLIN};
	struct mmsghdr m[BATCH];
	struct iovec iov[BATCH];
	int n;

	for (unsigned int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){b[i], sizeof(b[i])};
		m[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &iov[i],
			.msg_iovlen = 1};
	}
	n = recvmmsg(P.fd, m, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0 && errno == EAGAIN) {
		if (poll(&p, 1, P.first != P.end ? SILENCE : -1) == 0)
			return false;
		n = recvmmsg(P.fd, m, BATCH, MSG_DONTWAIT, NULL);
	}
	if (n < 0 && errno != EAGAIN)
		DIE("recvmmsg: %s", strerror(errno));
	for (int i = 0; i < n; i++)
		check(b[i], m[i].msg_len, ntohs(((struct sockaddr_in *)&from[i])->sin_port));
	return true;
}

static void open_socket(void)
{
	struct sockaddr_storage in;
	socklen_t len = wire_addr(P.w, &in, P.w->peer_addr, 4791);
	int dont = IP_PMTUDISC_DO, on = 1, room = 16 << 20;

	P.fd = socket(in.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(P.fd, IPPROTO_IP, IP_MTU_DISCOVER, &dont, sizeof(dont));
	setsockopt(P.fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
	if (P.w->v6) /* the endpoint's have no checksum, and here zero needs leave */
		setsockopt(P.fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
	if (setsockopt(P.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(P.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(P.fd, (struct sockaddr *)&in, len))
		DIE("bind: %s", strerror(errno));
	P.ep_len = wire_addr(P.w, &P.ep, P.w->ep_addr, 4791);
}

_Noreturn void peer_run(const struct wire *w)
{
	P.w = w;
	P.dice = 1;
	open_socket();
	for (size_t i = 0; i < sizeof(P.chunk); i++)
		P.chunk[i] = byte_at(i);
	for (;;) {
		if (!receive())
			send_again();
		if (P.ack_due)
			answer(0x1f, P.expected - 1);
		P.ack_due = false;
		go_on();
		flush();
	}
}
