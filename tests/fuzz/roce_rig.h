/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint of src/roce without a network, with its owner and its peer: what it sends is looked
 * at and goes nowhere (roce_rig_out.c), what it gets is made by a harness (roce_rig_peer.c). Time
 * is virtual and the endpoint's random numbers come from a seed: the same packets do the same.
 *
 * The owner posts, binds and takes back as fab.h lets it, and holds the endpoint to it: each work
 * request ends once and in order, no callback comes from inside a call, memory changes where a
 * receive is posted or a window is open for that, and nowhere else.
 */
#ifndef RPCRDMAFS_ROCE_RIG_H
#define RPCRDMAFS_ROCE_RIG_H

#include "roce_rx.h"

#define RIG_SENDS    8u
#define RIG_RECVS    8u
#define RIG_WINS     6u
#define RIG_DONES    8u /* binds and invalidations that nobody was told of yet */
#define RIG_SGES     3u
#define RIG_MEM      (96u << 10)
#define RIG_PEER_QPN 0xabcdefu
#define RIG_PEER_ID  0x600df00du
#define RIG_PORT     50123u /* that the peer sends from */
#define RIG_OUR_PORT 40123u

/* Of any packet that is made: longer than what may come. */
#define RIG_PACKET (ROCE_PACKET_MAX + 64u)

/* That one system call receives. */
#define RIG_TOGETHER 8u

#define RIG_CHECK(cond)                                                                            \
	do {                                                                                       \
		if (!(cond))                                                                       \
			roce_rig_broken(#cond, __FILE__, __LINE__);                                \
	} while (0)

/* The connection, as its owner knows it. */
enum rig_state {
	RIG_IDLE,
	RIG_RESOLVING,
	RIG_RESOLVED,
	RIG_CONNECTING,
	RIG_UP,
	RIG_DRAINING, /* DRAINED follows, and nothing else */
};

/* Memory of one receive, window or registration, or that is sent. */
struct rig_area {
	uint8_t *addr;
	uint32_t len;
	unsigned int open; /* to the peer: FAB_REMOTE_*; a receive that is posted: to be written */
};

enum {
	RIG_AREA_WINS = RIG_RECVS,
	RIG_AREA_READ = RIG_AREA_WINS + RIG_WINS, /* registered for the peer to read, to write */
	RIG_AREA_WRITE,
	RIG_AREA_SENT,
	RIG_AREAS,
};

struct rig_win {
	struct rig_area *area;
	struct fab_mw *mw;
	uint32_t rkey;       /* of now, or of before */
	unsigned int access; /* 0: it is closed */
};

struct rig_send {
	uint64_t cookie;
	struct iovec sges[RIG_SGES];
	unsigned int sge_cnt;
	uint32_t len, psn, packets;
};

struct rig_recv {
	uint64_t cookie;
	struct rig_area *area;
};

struct rig_done {
	uint64_t cookie;
	bool is_inv;
};

/* How often it came to this: a storm that reaches nothing shows nothing. */
struct rig_counts {
	uint64_t given, taken; /* packets; those that were new requests of the peer's */
	uint64_t apart;        /* those whose payload was received where it belongs */
	uint64_t apart_later;  /* ... behind another one */
	uint64_t connections, lost;
	uint64_t sent, received, flushed, invalidated;
	uint64_t acks, naks, rnrs, cnps, mads, sends, reads; /* packets that went out */
	uint64_t handed_over, full;
};

struct roce_rig {
	struct reactor *r;
	struct fab_ep *ep;
	uint64_t numbers; /* what the endpoint's random ones are made of */
	enum rig_state state;
	bool in_call;
	/* Of the next connection. */
	bool is_v6;
	unsigned int ip_mtu;
	/* Called at the end of each callback of a completion; may be NULL. */
	void (*meddle)(void);

	struct rig_area areas[RIG_AREAS];
	struct fab_mr *mr, *mr_read, *mr_write; /* of all memory, of RIG_AREA_READ and _WRITE */
	struct rig_win wins[RIG_WINS];
	/* Rings: [first, end), modulo size. */
	struct rig_send sends[RIG_SENDS];
	struct rig_recv recvs[RIG_RECVS];
	struct rig_done dones[RIG_DONES];
	uint32_t send_first, send_end, recv_first, recv_end, done_first, done_end;
	uint64_t cookie; /* the last one */
	uint32_t psn;    /* of the next Send */

	/* The peer. */
	uint32_t id, qpn;  /* of the endpoint, as its REQ says */
	uint32_t peer_qpn; /* that the endpoint took */

	/* The socket. */
	unsigned int room; /* packets until it is full */
	bool waits;
	uint32_t answers; /* that may come, of what was given */
	uint32_t cnps, dreqs;
	struct rig_counts counts;
};

extern struct roce_rig rig;

void roce_rig_broken(const char *what, const char *file, int line) __attribute__((noreturn));
/* The next number of a series; *state is not 0. */
uint32_t roce_rig_random(uint64_t *state);

/* roce_rig.c */
void roce_rig_new(uint64_t seed);
void roce_rig_free(void);
/* The next step on the way to a connection that is up. */
void roce_rig_step(void);
/* All of them, then receives, windows and Sends as there are at least. */
void roce_rig_connect(void);
/* Time passes: at most so much, at most until the next timer. */
void roce_rig_pass(uint64_t ns);
/* Of the owner; they do nothing where there is nothing to do. pick: which one, how long. */
void roce_rig_recv(uint32_t pick);
void roce_rig_send(uint32_t pick);
void roce_rig_open(uint32_t pick, unsigned int access);
void roce_rig_close(uint32_t pick);
void roce_rig_disconnect(void);

/* roce_rig_mem.c */
extern uint8_t *roce_rig_mem; /* RIG_MEM bytes */
/* As it is in the beginning. */
void roce_rig_mem_new(void);
/* It may change from now on; it may not. */
void roce_rig_mem_open(struct rig_area *a, unsigned int access);
void roce_rig_mem_close(struct rig_area *a);
void roce_rig_mem_check(void);

/* roce_rig_check.c */
/* Queues and timers; between packets. */
void roce_rig_check_queues(void);
/* That, memory and keys. */
void roce_rig_check(void);

/* roce_rig_out.c */
/* The socket has room again. */
void roce_rig_room(void);

/* roce_rig_peer.c */
/* How a packet comes. */
struct rig_way {
	bool ce, handed_over, trusted;
	bool stranger; /* from another address */
	uint16_t port;
};

struct rig_given {
	const uint8_t *b;
	size_t len;
	struct rig_way way;
};

/* Headers as the opcode has them, in the order of their fields. */
struct rig_packet {
	uint8_t op;
	bool ack_req;
	uint32_t qpn, psn;
	uint64_t va;            /* RETH */
	uint32_t rkey, dma_len; /* RETH; rkey: IETH too */
	uint8_t syndrome;       /* AETH */
	const uint8_t *payload;
	uint32_t len;
};

/* Bytes between BTH and payload. */
size_t roce_rig_ext_len(uint8_t op);
/* Both return the length with the ICRC's four bytes, which are not written. b: RIG_PACKET bytes. */
size_t roce_rig_build(uint8_t *b, const struct rig_packet *p);
size_t roce_rig_build_mad(uint8_t *b, uint16_t attr, const uint8_t *body, size_t len);
/* The ICRC; not of what is too short to have one. */
void roce_rig_seal(uint8_t *b, size_t len, uint16_t port);
/* A batch: what is caused goes out at its end. */
void roce_rig_batch_begin(void);
void roce_rig_batch_end(void);
/* Within a batch. */
void roce_rig_give(const uint8_t *b, size_t len, const struct rig_way *way);
/* RIG_TOGETHER at most, none longer than ROCE_PACKET_MAX, all by our own socket. */
void roce_rig_give_together(const struct rig_given *g, unsigned int cnt);
/* The REP; the endpoint sent a REQ. */
void roce_rig_accept(void);

#endif
