/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of an endpoint of src/roce, natively: bytes that the peer writes to it and reads from it
 * for each second of a processor, and the processor's time of an operation of 4 KiB.
 *
 *   roce_wire [-6] [MIB [OPERATIONS]]
 *
 * Two network namespaces with a veth pair between them, MTU 4200: the endpoint in the one, in the
 * other its peer, which shares no code with src/roce, and looks at each packet that it gets: the
 * sequence number, the ICRC, each byte. -6: IPv6. Needs root, or user namespaces.
 *
 * ROCE_WIRE_WATCH in the environment: a command that is run in the endpoint's namespace before
 * anything is sent (wire_tshark).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/udp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "fab_impl.h"
#include "reactor.h"

#define ADD_ADDR "ip addr add %s/%s dev %s"
#define MTU      4096u
#define CHUNK    (1u << 20) /* of an RDMA Write or Read */
#define CHUNKS   16u
#define DEPTH    16u
#define OP_LEN   4096u
#define CALL     200u /* bytes of a call, and of its reply */
#define PEER_QPN 0x123456u
#define BATCH    64u

#define DIE(...)                                                                                   \
	do {                                                                                       \
		fprintf(stderr, "roce_wire: " __VA_ARGS__);                                        \
		fputc('\n', stderr);                                                               \
		exit(1);                                                                           \
	} while (0)

/* Meson takes 77 for a test that cannot be done here. */
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		fprintf(stderr, "roce_wire: " __VA_ARGS__);                                        \
		fputc('\n', stderr);                                                               \
		exit(77);                                                                          \
	} while (0)

/* The endpoint asks its peer for one of these, in a Send. */
enum what {
	WRITE_TO_ME = 1,
	READ_FROM_ME,
	OPERATION,
};

struct ask {
	uint8_t what;
	uint32_t rkey;
	uint64_t addr;
	uint64_t bytes;
};

static bool v6;
static const char *ep_addr = "10.9.0.1", *peer_addr = "10.9.0.2";

/* Returns its length. */
static socklen_t make_addr(struct sockaddr_storage *to, const char *text, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = v6 ? AF_INET6 : AF_INET;
	in->sin_port = htons(port); /* at the same place in both */
	inet_pton(to->ss_family, text, v6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr);
	return v6 ? sizeof(*in6) : sizeof(*in);
}

static uint8_t byte_at(uint64_t off)
{
	return (uint8_t)(off * 31 + (off >> 12));
}

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Of all processors, since boot. */
static double softirq_seconds(void)
{
	unsigned long long v[7] = {0};
	FILE *f = fopen("/proc/stat", "re");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
			  &v[4], &v[5], &v[6]) != 7)
		DIE("/proc/stat: %s", strerror(errno));
	fclose(f);
	return (double)v[6] / (double)sysconf(_SC_CLK_TCK);
}

/* ---- the peer: wire formats of its own (InfiniBand volume 1, chapter 9; annex A17) ---- */

static struct {
	int fd;
	struct sockaddr_storage ep;
	socklen_t ep_len;
	uint16_t ep_port; /* that it sends from */
	uint32_t qpn;     /* of the endpoint */
	uint32_t psn;     /* of our next request */
	uint32_t acked;   /* all before this PSN are acknowledged */
	uint32_t expected;
	uint16_t id; /* Identification that may come next, if it is not 0 */
	uint64_t naks;
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

/* The header of IPv4 or IPv6, with ones where it may change on the way. Returns its length. */
static size_t put_ip(uint8_t *h, const char *src, const char *dst, uint16_t id, size_t len)
{
	memset(h, 0xff, 40);
	if (v6) {
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

static void send_packet(uint8_t op, uint32_t qpn, uint32_t psn, bool ack, const uint8_t *ext,
	size_t ext_len, const uint8_t *payload, size_t len)
{
	uint8_t *b = out.b[out.cnt];
	size_t n = 12 + ext_len + len;
	uint32_t crc;

	memset(b, 0, 12);
	b[0] = op;
	b[1] = 0x40;
	put(b + 2, 0xffff, 2);
	put(b + 5, qpn, 3);
	b[8] = ack ? 0x80 : 0;
	put(b + 9, psn, 3);
	if (ext_len > 0)
		memcpy(b + 12, ext, ext_len);
	if (len > 0)
		memcpy(b + 12 + ext_len, payload, len);
	crc = icrc(peer_addr, ep_addr, 4791, 0, b, n);
	for (int i = 0; i < 4; i++)
		b[n + (size_t)i] = (uint8_t)(crc >> 8 * i);
	out.iov[out.cnt] = (struct iovec){b, n + 4};
	out.m[out.cnt].msg_hdr = (struct msghdr){.msg_name = &P.ep,
		.msg_namelen = P.ep_len,
		.msg_iov = &out.iov[out.cnt],
		.msg_iovlen = 1};
	if (++out.cnt == BATCH)
		flush();
}

/* A packet that came. */
struct in {
	const uint8_t *b;
	size_t len;
	uint8_t op;
	uint32_t psn;
};

static bool check(struct in *k, const uint8_t *b, size_t len, uint16_t port)
{
	uint32_t crc, is;

	if (len < 16 || (b[1] & 0x0f) != 0 || get(b + 2, 2) != 0xffff)
		DIE("a packet that is none");
	is = (uint32_t)b[len - 1] << 24 | (uint32_t)b[len - 2] << 16 | (uint32_t)b[len - 3] << 8 |
	     b[len - 4];
	crc = icrc(ep_addr, peer_addr, port, 0, b, len - 4);
	if (crc != is) {
		crc = icrc(ep_addr, peer_addr, port, P.id, b, len - 4);
		if (crc != is)
			DIE("a wrong ICRC");
		P.id++;
	} else {
		P.id = 1;
	}
	*k = (struct in){.b = b, .len = len - 4, .op = b[0], .psn = (uint32_t)get(b + 9, 3)};
	return true;
}

/* Calls `each` for what came, after waiting for it. */
static void receive(void (*each)(const struct in *k))
{
	static uint8_t b[BATCH][12 + 16 + MTU + 8];
	static struct sockaddr_storage from[BATCH];
	struct mmsghdr m[BATCH];
	struct iovec iov[BATCH];
	struct in k;
	int n;

	for (unsigned int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){b[i], sizeof(b[i])};
		m[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &iov[i],
			.msg_iovlen = 1};
	}
	n = recvmmsg(P.fd, m, BATCH, MSG_WAITFORONE, NULL);
	if (n < 0)
		DIE("recvmmsg: %s", strerror(errno));
	for (int i = 0; i < n; i++)
		if (check(&k, b[i], m[i].msg_len,
			    ntohs(((struct sockaddr_in *)&from[i])->sin_port)))
			each(&k);
	flush();
}

static void acknowledge(uint32_t psn)
{
	const uint8_t aeth[4] = {0x1f};

	send_packet(0x11, P.qpn, psn, false, aeth, 4, NULL, 0);
}

/* ---- the peer: connecting (volume 1, section 12.9) ---- */

static uint32_t ep_id;

static void send_mad(uint16_t attr, const uint8_t *tid, const uint8_t body[232])
{
	uint8_t deth[8], mad[256] = {1, 7, 2, 3};

	put(deth, 0x80010000, 4);
	put(deth + 4, 1, 4);
	memcpy(mad + 8, tid, 8);
	put(mad + 16, attr, 2);
	memcpy(mad + 24, body, 232);
	send_packet(0x64, 1, 0, false, deth, 8, mad, sizeof(mad));
	flush();
}

static bool is_up;
static struct ask asked;

static void on_first(const struct in *k)
{
	const uint8_t *mad = k->b + 20, *body = mad + 24;
	uint8_t rep[232] = {0};

	if (k->op == 0x64 && get(mad + 16, 2) == 0x10) {
		ep_id = (uint32_t)get(body, 4);
		P.qpn = (uint32_t)get(body + 32, 3);
		P.psn = P.acked = (uint32_t)get(body + 44, 3);
		if (128u << (body[50] >> 4) != MTU)
			DIE("the MTU is %u", 128u << (body[50] >> 4));
		put(rep, 0x77, 4);
		put(rep + 4, ep_id, 4);
		put(rep + 12, PEER_QPN, 3);
		put(rep + 20, 1, 3);
		rep[25] = 16;
		rep[26] = 15 << 3;
		P.expected = 1;
		send_mad(0x13, mad + 8, rep);
	} else if (k->op == 0x64 && get(mad + 16, 2) == 0x15) {
		exit(0);
	} else if (k->op == 0x04 && k->psn == P.expected) {
		memcpy(&asked, k->b + 12, sizeof(asked));
		P.expected++;
		acknowledge(k->psn);
		is_up = true;
	}
}

/* ---- the peer: what it is asked for ---- */

static void on_answer(const struct in *k)
{
	if (k->op != 0x11)
		return;
	if ((k->b[12] & 0xe0) == 0) {
		if (behind(k->psn + 1, P.acked) > 0)
			P.acked = (k->psn + 1) & 0xffffff;
	} else {
		P.naks++;
		P.acked = P.psn = k->psn;
	}
}

static void say(const char *text, bool inval, uint32_t rkey)
{
	uint8_t b[CALL] = {0}, ieth[4];

	snprintf((char *)b, sizeof(b), "%s", text);
	put(ieth, rkey, 4);
	send_packet(inval ? 0x17 : 0x04, P.qpn, P.psn, true, ieth, inval ? 4 : 0, b, sizeof(b));
	P.psn = (P.psn + 1) & 0xffffff;
}

/* Packets [0, bytes / MTU) of Writes of CHUNK bytes, one after the other. */
static void write_all(void)
{
	uint32_t first = P.psn, each = CHUNK / MTU, all = (uint32_t)(asked.bytes / MTU);

	while (behind(P.acked, first + all) < 0) {
		while (behind(P.psn, P.acked) < 128 && behind(P.psn, first + all) < 0) {
			uint32_t i = (P.psn - first) & 0xffffff, in = i % each;
			uint64_t off = (uint64_t)(i / each) % CHUNKS * CHUNK;
			uint8_t reth[16];

			put(reth, asked.addr + off, 8);
			put(reth + 8, asked.rkey, 4);
			put(reth + 12, CHUNK, 4);
			send_packet(in == 0          ? 0x06
				    : in + 1 == each ? 0x08
						     : 0x07,
				P.qpn, P.psn, in % 64 == 63, reth, in == 0 ? 16 : 0,
				P.chunk + off + in * MTU, MTU);
			P.psn = (P.psn + 1) & 0xffffff;
		}
		flush();
		receive(on_answer);
	}
	say("done", false, 0);
	flush();
}

static uint32_t read_next, read_first; /* PSN of the next packet of an answer */

static void on_read(const struct in *k)
{
	uint32_t i = (k->psn - read_first) & 0xffffff, in = i % (CHUNK / MTU);
	uint64_t off = (uint64_t)(i / (CHUNK / MTU)) % CHUNKS * CHUNK + in * MTU;
	size_t ext = in == 0 || in + 1 == CHUNK / MTU ? 4 : 0;

	if (k->op == 0x11)
		return;
	if (k->op != (in == 0      ? 0x0d
			     : ext ? 0x0f
				   : 0x0e) ||
		k->psn != read_next || k->len != 12 + ext + MTU)
		DIE("a packet of an answer is lost, or another one: %#x", k->op);
	if (memcmp(k->b + 12 + ext, P.chunk + off, MTU) != 0)
		DIE("wrong bytes");
	read_next = (read_next + 1) & 0xffffff;
}

static void read_all(void)
{
	uint32_t each = CHUNK / MTU, chunks = (uint32_t)(asked.bytes / CHUNK), sent = 0;

	read_first = read_next = P.psn;
	while (behind(read_next, read_first + chunks * each) < 0) {
		while (sent < chunks && behind(P.psn, read_next) < (int32_t)(2 * each)) {
			uint8_t reth[16];

			put(reth, asked.addr + (uint64_t)(sent % CHUNKS) * CHUNK, 8);
			put(reth + 8, asked.rkey, 4);
			put(reth + 12, CHUNK, 4);
			send_packet(0x0c, P.qpn, P.psn, false, reth, 16, NULL, 0);
			P.psn = (P.psn + each) & 0xffffff;
			sent++;
		}
		flush();
		receive(on_read);
	}
	say("done", false, 0);
	flush();
}

static uint32_t last_call;

static void on_call(const struct in *k)
{
	struct ask a;
	uint8_t reth[16];

	if (k->op == 0x64 && get(k->b + 20 + 16, 2) == 0x15)
		exit(0);
	if (k->op != 0x04 || k->psn != P.expected)
		return;
	P.expected = (P.expected + 1) & 0xffffff;
	last_call = k->psn;
	memcpy(&a, k->b + 12, sizeof(a));
	put(reth, a.addr, 8);
	put(reth + 8, a.rkey, 4);
	put(reth + 12, OP_LEN, 4);
	send_packet(0x0a, P.qpn, P.psn, false, reth, 16, P.chunk, OP_LEN);
	P.psn = (P.psn + 1) & 0xffffff;
	say("reply", true, a.rkey);
}

static void peer(void)
{
	struct sockaddr_storage in;
	socklen_t len = make_addr(&in, peer_addr, 4791);
	int dont = IP_PMTUDISC_DO, on = 1, room = 16 << 20;

	P.fd = socket(in.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(P.fd, IPPROTO_IP, IP_MTU_DISCOVER, &dont, sizeof(dont));
	setsockopt(P.fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
	if (v6) /* the endpoint's have no checksum, and here zero needs leave */
		setsockopt(P.fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
	if (setsockopt(P.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(P.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(P.fd, (struct sockaddr *)&in, len))
		DIE("bind: %s", strerror(errno));
	P.ep_len = make_addr(&P.ep, ep_addr, 4791);
	for (size_t i = 0; i < sizeof(P.chunk); i++)
		P.chunk[i] = byte_at(i);
	for (;;) {
		is_up = false;
		while (!is_up)
			receive(on_first);
		if (asked.what == WRITE_TO_ME)
			write_all();
		else if (asked.what == READ_FROM_ME)
			read_all();
		else
			for (;;) {
				uint32_t before = last_call;

				receive(on_call);
				if (last_call != before) {
					acknowledge(last_call);
					flush();
				}
			}
		if (P.naks > 0)
			fprintf(stderr, "# NAKs: %llu\n", (unsigned long long)P.naks);
	}
}

/* ---- the endpoint ---- */

static struct reactor *r;
static struct fab_ep *ep;
static struct fab_mr *mr, *send_mr;
static struct fab_mw *mws[DEPTH];
static uint8_t *mem, *calls; /* CHUNKS chunks; DEPTH calls and twice as many replies */
static bool up, finished;
static uint64_t ops_left, ops_sent;
static struct stats stats;

static void call(unsigned int slot)
{
	struct ask *a = (struct ask *)(calls + slot * CALL);
	const struct fab_bind bind = {.mw = mws[slot],
		.mr = mr,
		.addr = mem + slot * OP_LEN,
		.len = OP_LEN,
		.access = FAB_REMOTE_WRITE};
	const struct fab_sge sge = {a, CALL, send_mr};

	*a = (struct ask){.what = OPERATION,
		.rkey = roce_impl.mw_next_rkey(mws[slot]),
		.addr = (uintptr_t)bind.addr,
		.bytes = OP_LEN};
	if (roce_impl.post_send(ep, &sge, 1, &bind, 1, slot))
		DIE("post_send failed");
	ops_sent++;
}

static void post_recv(uint64_t cookie)
{
	if (roce_impl.post_recv(ep, calls + (DEPTH + cookie) * CALL, CALL, send_mr, cookie))
		DIE("post_recv failed");
}

static void on_event(void *ctx, const struct fab_event *ev)
{
	const struct fab_qp_conf qp = {
		.send_wr = 4 * DEPTH, .recv_wr = 4 * DEPTH, .max_send_sge = 4};

	switch (ev->type) {
	case FAB_EV_RESOLVED:
		if (roce_impl.ep_setup(ep, &qp) || roce_impl.ep_connect(ep, NULL, 0))
			DIE("no connection");
		break;
	case FAB_EV_ESTABLISHED:
		up = true;
		break;
	case FAB_EV_FAILED:
	case FAB_EV_DOWN:
		DIE("the connection is lost: %s %s", strerror(-ev->err), roce_impl.ep_why(ep));
	case FAB_EV_DRAINED:
		up = false;
		break;
	}
}

static void on_sent(void *ctx, uint64_t cookie, enum fab_status status)
{
}

static void on_received(
	void *ctx, uint64_t cookie, uint32_t len, uint32_t inv, enum fab_status status)
{
	if (status != FAB_OK)
		return;
	post_recv(cookie);
	if (inv == 0) {
		finished = true;
		return;
	}
	for (unsigned int i = 0; i < DEPTH; i++) {
		if (roce_impl.mw_rkey(mws[i]) != inv)
			continue;
		if (--ops_left == 0)
			finished = true;
		else if (ops_left >= DEPTH)
			call(i);
		return;
	}
	DIE("a window that is none");
}

static const struct fab_ep_ops ops = {.event = on_event, .sent = on_sent, .received = on_received};

static void connect_ep(void)
{
	struct sockaddr_storage in;

	make_addr(&in, peer_addr, 20049);
	if (roce_impl.ep_resolve(ep, NULL, (struct sockaddr *)&in))
		DIE("no way to the peer");
	while (!up)
		reactor_turn(r, NSEC_PER_SEC);
	for (uint64_t i = 0; i < 2 * DEPTH; i++)
		post_recv(i);
}

static void measure(const char *name, enum what what, uint64_t amount)
{
	struct ask *a = (struct ask *)calls;
	const struct fab_sge sge = {a, CALL, send_mr};
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	double softirq = softirq_seconds();

	finished = false;
	*a = (struct ask){.what = (uint8_t)what,
		.rkey = roce_impl.mr_rkey(mr),
		.addr = (uintptr_t)mem,
		.bytes = amount};
	ops_left = amount;
	if (roce_impl.post_send(ep, &sge, 1, NULL, 0, 99))
		DIE("post_send failed");
	if (what == OPERATION) {
		reactor_turn(r, NSEC_PER_SEC); /* acknowledged: its memory is ours */
		for (unsigned int i = 0; i < DEPTH; i++)
			call(i);
	}
	while (!finished)
		reactor_turn(r, NSEC_PER_SEC);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
	softirq = softirq_seconds() - softirq;
	if (what == OPERATION)
		printf("%-6s %8.2f us of a processor each, %6.0f/s; softirq of all %5.2f us each\n",
			name, cpu * 1e6 / (double)amount, (double)amount / wall,
			softirq * 1e6 / (double)amount);
	else
		printf("%-6s %8.2f GB/s for each processor, %5.2f GB/s; softirq of all %4.0f %% of "
		       "the time\n",
			name, (double)amount / 1e9 / cpu, (double)amount / 1e9 / wall,
			100 * softirq / wall);
}

static void run(const char *cmd)
{
	if (system(cmd))
		DIE("%s failed", cmd);
}

int main(int argc, char **argv)
{
	const int shift = argc > 1 && strcmp(argv[1], "-6") == 0;
	uint64_t mib = argc > 1 + shift ? strtoull(argv[1 + shift], NULL, 10) : 512;
	uint64_t ops_cnt = argc > 2 + shift ? strtoull(argv[2 + shift], NULL, 10) : 50000;
	struct fab_conf conf = {.kind = FAB_SOFT,
		.connect_timeout_ns = 10 * NSEC_PER_SEC,
		.retry_count = 6,
		.stats = &stats};
	char cmd[256];
	int sync[2];
	pid_t pid;

	if (mib == 0 || ops_cnt < 2 * DEPTH)
		DIE("too few of them");
	v6 = shift > 0;
	if (v6) {
		ep_addr = "fd09::1";
		peer_addr = "fd09::2";
	}
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		SKIP("no namespace of the network: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync))
		DIE("socketpair: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		char c = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(sync[1], &c, 1) != 1 ||
			read(sync[1], &c, 1) != 1)
			DIE("no namespace of the peer");
		snprintf(cmd, sizeof(cmd), "ip link set lo up && ip link set w1 up && " ADD_ADDR,
			peer_addr, v6 ? "64 nodad" : "24", "w1");
		run(cmd);
		if (write(sync[1], &c, 1) != 1)
			return 1;
		peer();
	}
	if (pid < 0 || read(sync[0], cmd, 1) != 1)
		DIE("no peer");
	snprintf(cmd, sizeof(cmd),
		"ip link set lo up && ip link add w0 mtu 4200 type veth peer name w1 mtu 4200 "
		"netns "
		"%d && ip link set w0 up && " ADD_ADDR,
		(int)pid, ep_addr, v6 ? "64 nodad" : "24", "w0");
	run(cmd);
	if (getenv("ROCE_WIRE_WATCH"))
		run(getenv("ROCE_WIRE_WATCH"));
	if (write(sync[0], cmd, 1) != 1 || read(sync[0], cmd, 1) != 1)
		DIE("no peer");
	mem = mmap(
		NULL, CHUNKS * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	calls = calloc(4 * DEPTH, CALL);
	r = reactor_new();
	ep = r ? roce_impl.ep_new(r, &conf, &ops, NULL) : NULL;
	if (mem == MAP_FAILED || !calls || !ep)
		DIE("no memory");
	for (size_t i = 0; i < CHUNKS * CHUNK; i++)
		mem[i] = byte_at(i);
	mr = roce_impl.mr_reg(ep, mem, CHUNKS * CHUNK, FAB_REMOTE_READ | FAB_REMOTE_WRITE, true);
	send_mr = roce_impl.mr_reg(ep, calls, 4 * DEPTH * CALL, FAB_LOCAL, false);
	connect_ep();
	for (unsigned int i = 0; i < DEPTH; i++)
		mws[i] = roce_impl.mw_alloc(ep);
	measure("write", WRITE_TO_ME, mib << 20);
	for (size_t i = 0; i < CHUNKS * CHUNK; i++)
		if (mem[i] != byte_at(i))
			DIE("wrong bytes");
	measure("read", READ_FROM_ME, mib << 20);
	measure("4 KiB", OPERATION, ops_cnt);
	printf("# packets early %llu, twice %llu, sent again %llu\n",
		(unsigned long long)stats.packets_early, (unsigned long long)stats.packets_twice,
		(unsigned long long)stats.packets_resent);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
