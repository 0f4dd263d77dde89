/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of null_srv.h behind a wire: an NFS server with RoCEv2 in a process of its own, over
 * the queue pair of wire_qp.h. It writes what READ answers to the client's memory, reads what WRITE
 * takes from there, and looks at each byte of that.
 *
 *   wire_srv ADDRESS CLIENT       listens at ADDRESS (as soon as this machine has it) for CLIENT;
 *                                 ends when the client parts: status 0 if nothing was wrong
 *   wire_srv --pattern            prints the 1 MiB that each READ begins with
 *
 * WRITEs are iobench's, whose bytes are all 'x'. RFC 8166 and 8797 are what is checked of
 * RPC-over-RDMA.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "list.h"
#include "null_srv.h"
#include "wire_qp.h"

#define CALL_MAX 4096u
#define SEGS     8u
#define IO_MAX   (1u << 20)
#define READING  (4u << 20) /* bytes of Reads under way, at most: the socket has room for them */
#define INV_FLAG 0x01u

struct seg {
	uint32_t rkey, len;
	uint64_t addr;
};

/* A call, from its Send to its reply's. */
struct call {
	struct list link; /* in unread, unsaid or unused */
	uint8_t msg[CALL_MAX], reply[NULL_SRV_REPLY];
	uint32_t len, reply_len;
	uint32_t rkey; /* of a window that the reply closes; 0: none */
	struct seg reads[SEGS], writes[SEGS];
	unsigned int read_cnt, write_cnt;
	unsigned int asked, came; /* of reads */
	unsigned int at;          /* of writes, ... */
	uint32_t off;             /* ... and how much of it has gone out */
};

static struct {
	struct call calls[NULL_SRV_CREDITS];
	/* Calls whose Reads are not asked for; whose reply has not gone out; none. */
	struct list unread, unsaid, unused;
	uint64_t reading; /* bytes */
	bool invalidates; /* the client takes Sends with Invalidate */
	uint64_t cnt, read_bytes, written_bytes;
	uint8_t pattern[IO_MAX], written[IO_MAX];
} S;

/* ---- RPC-over-RDMA headers (RFC 8166, section 4.3) ---- */

struct words {
	const uint8_t *p;
	uint32_t left;
};

static uint32_t word(struct words *w)
{
	uint32_t v;

	if (w->left < 4)
		DIE("RFC 8166, 4.2: a header that ends too early");
	memcpy(&v, w->p, 4);
	w->p += 4;
	w->left -= 4;
	return ntohl(v);
}

static struct seg segment(struct words *w)
{
	struct seg s = {.rkey = word(w)};

	s.len = word(w);
	s.addr = (uint64_t)word(w) << 32;
	s.addr |= word(w);
	return s;
}

static void add(struct seg *to, unsigned int *cnt, struct seg s)
{
	if (*cnt == SEGS)
		DIE("more than %u segments of a call", SEGS);
	if (s.len > IO_MAX)
		DIE("RFC 8881, 5.8.2.20: a segment of %u bytes, more than the server offers",
			s.len);
	to[(*cnt)++] = s;
}

/* XID, version, credits, type. */
static void begin(struct words *w, bool is_call)
{
	word(w);
	if (word(w) != 1)
		DIE("RFC 8166, 4.2.2: another version");
	if (word(w) == 0 && is_call)
		DIE("RFC 8166, 3.3.1: a call that asks for no credits");
	if (word(w) != 0)
		DIE("RFC 8166, 4.2.4: a message that is not RDMA_MSG");
}

/* Chunks of a Write list, or the Reply chunk, if `present` says so. NULL: they are not kept. */
static uint32_t segments(struct words *w, struct seg *to, unsigned int *cnt)
{
	uint32_t rkey = 0;

	for (uint32_t n = word(w); n > 0; n--) {
		struct seg s = segment(w);

		rkey = s.rkey;
		if (to && s.len > 0)
			add(to, cnt, s);
	}
	return rkey;
}

static void take_chunks(struct call *c)
{
	struct words w = {c->msg, c->len};

	begin(&w, true);
	while (word(&w)) {
		if (word(&w) == 0)
			DIE("RFC 8166, 3.5.3: a Read chunk at position 0 of an RDMA_MSG");
		add(c->reads, &c->read_cnt, segment(&w));
		c->rkey = c->reads[0].rkey;
	}
	while (word(&w))
		c->rkey = segments(&w, NULL, NULL);
	if (word(&w))
		c->rkey = segments(&w, NULL, NULL);
	if (!S.invalidates)
		c->rkey = 0;
}

/* RFC 8166, 4.3.2: the Write list of a reply says how much was written. */
static void take_written(struct call *c)
{
	struct words w = {c->reply, c->reply_len};

	begin(&w, false);
	if (word(&w) != 0)
		null_srv_die("a reply with a Read list");
	while (word(&w))
		segments(&w, c->writes, &c->write_cnt);
}

/* ---- calls ---- */

static void answer(struct call *c)
{
	c->reply_len = null_srv_answer(c->msg, c->len, c->reply);
	take_written(c);
	list_push_back(&S.unsaid, &c->link);
}

static void received(const uint8_t *msg, size_t len)
{
	struct list *node = list_pop_front(&S.unused);
	struct call *c;

	if (!node)
		DIE("RFC 8166, 3.3.1: more calls than credits");
	if (len > CALL_MAX)
		DIE("RFC 8166, 3.3.2: a call of %zu bytes, more than the inline threshold", len);
	c = container_of(node, struct call, link);
	memcpy(c->msg, msg, len);
	c->len = (uint32_t)len;
	c->rkey = c->off = 0;
	c->read_cnt = c->write_cnt = c->asked = c->came = c->at = 0;
	take_chunks(c);
	S.cnt++;
	if (c->read_cnt > 0)
		list_push_back(&S.unread, &c->link);
	else
		answer(c);
}

static void on_read(void *ctx)
{
	struct call *c = ctx;

	S.reading -= c->reads[c->came++].len;
	if (c->came == c->read_cnt)
		answer(c);
}

/* Nothing goes out between the packets of a Write (IBA 9.7.3.2). */
static bool is_writing(void)
{
	return !list_empty(&S.unsaid) && list_first(&S.unsaid, struct call, link)->off > 0;
}

/* Of the oldest calls: one has gone on when all its Reads are asked for. */
static void ask(void)
{
	if (is_writing())
		return;
	while (!list_empty(&S.unread) && qp_unacked() < QP_WINDOW && qp_reads() < qp_reads_most()) {
		struct call *c = list_first(&S.unread, struct call, link);
		const struct seg *s = &c->reads[c->asked];

		if (S.reading > 0 && S.reading + s->len > READING)
			return;
		S.reading += s->len;
		S.read_bytes += s->len;
		if (++c->asked == c->read_cnt)
			list_del(&c->link);
		qp_read(s->addr, s->rkey, S.written, s->len, on_read, c);
	}
}

/* Writes, and behind them the reply. */
static void say(void)
{
	while (!list_empty(&S.unsaid) && qp_unacked() < QP_WINDOW) {
		struct call *c = list_first(&S.unsaid, struct call, link);
		const struct seg *s = &c->writes[c->at];

		if (c->at < c->write_cnt) {
			qp_write(s->addr, s->rkey, S.pattern, s->len, c->off);
			c->off += MTU;
			if (c->off < s->len)
				continue;
			S.written_bytes += s->len;
			c->off = 0;
			c->at++;
			continue;
		}
		list_del(&c->link);
		qp_send(c->reply, c->reply_len, c->rkey != 0, c->rkey);
		list_push_back(&S.unused, &c->link);
	}
}

static void go_on(void)
{
	ask();
	say();
}

/* RFC 8797, section 4.1. The server offers the same sizes. */
static void accept_conn(const uint8_t theirs[QP_PRIV], uint8_t ours[QP_PRIV])
{
	static const uint8_t head[5] = {0xf6, 0xab, 0x0e, 0x18, 1};

	if (memcmp(theirs, head, sizeof(head)) != 0)
		DIE("RFC 8797, 4.1: private data of another format");
	if ((theirs[5] & ~INV_FLAG) != 0)
		DIE("RFC 8797, 4.1: reserved flags %#x", theirs[5]);
	if ((theirs[6] + 1u) * 1024 > CALL_MAX)
		DIE("calls of %u bytes: inline is %u here at most", (theirs[6] + 1u) * 1024,
			CALL_MAX);
	S.invalidates = theirs[5] & INV_FLAG;
	memcpy(ours, theirs, 8);
}

static void parted(void)
{
	qp_tell();
	printf("calls %llu, MiB read %llu, written %llu\n", (unsigned long long)S.cnt,
		(unsigned long long)S.read_bytes >> 20, (unsigned long long)S.written_bytes >> 20);
	fflush(stdout);
}

/* The wire comes after this process, whose namespace it leads to. */
static void wait_for_addr(const struct wire *w)
{
	struct sockaddr_storage in;
	socklen_t len = wire_addr(w, &in, w->peer_addr, 0);
	int err = -1;

	for (int i = 0; i < 1000 && err != 0; i++) {
		int fd = socket(in.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		err = bind(fd, (struct sockaddr *)&in, len);
		close(fd);
		if (err != 0)
			usleep(10000);
	}
	if (err != 0)
		DIE("%s is no address of this machine", w->peer_addr);
}

int main(int argc, char **argv)
{
	static const struct qp_user user = {
		.received = received, .go_on = go_on, .accept = accept_conn, .parted = parted};
	struct wire wire;

	for (size_t i = 0; i < sizeof(S.pattern); i++)
		S.pattern[i] = (uint8_t)(i * 31 + (i >> 12));
	if (argc == 2 && strcmp(argv[1], "--pattern") == 0)
		return fwrite(S.pattern, sizeof(S.pattern), 1, stdout) == 1 ? 0 : 1;
	if (argc != 3)
		DIE("wire_srv ADDRESS CLIENT, or --pattern");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wire = (struct wire){
		.v6 = strchr(argv[1], ':') != NULL, .peer_addr = argv[1], .ep_addr = argv[2]};
	memset(S.written, 'x', sizeof(S.written));
	list_init(&S.unread);
	list_init(&S.unsaid);
	list_init(&S.unused);
	for (unsigned int i = 0; i < NULL_SRV_CREDITS; i++)
		list_push_back(&S.unused, &S.calls[i].link);
	wait_for_addr(&wire);
	qp_run(&wire, &user);
}
