/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that is strict: what is at the other end of a connection of src/roce, packet by packet, as
 * a test says. It looks at each bit that it gets, by rules of its own, and shares no code with
 * src/roce. Endpoint and peer are on the loopback of a network namespace, if there may be one.
 *
 * IBA: InfiniBand Architecture Specification, volume 1, release 1.3.
 */
#ifndef RPCRDMAFS_ROCE_PEER_H
#define RPCRDMAFS_ROCE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define PEER_QPN    0xabcdefu
#define PEER_ID     0x600df00du
#define PEER_PRIV   196u
#define PEER_PACKET 5000u

/* One that came, and was right. */
struct peer_packet {
	uint8_t op;
	bool ack_req, becn;
	uint16_t pkey;
	uint32_t qpn, psn;
	uint8_t syndrome; /* AETH */
	uint32_t msn;
	uint8_t ext[16]; /* extended headers */
	uint8_t payload[PEER_PACKET];
	size_t len;
	uint8_t ecn, tos; /* of the IP header; tos: without it */
	uint16_t id;      /* its Identification */
};

struct peer {
	int fd;
	uint32_t qpn, id; /* of the endpoint */
	uint32_t psn;     /* that we send next */
	uint32_t mtu;
	uint16_t port;    /* that it sends from */
	uint64_t tid;     /* of the MAD that came last */
	uint64_t req_tid; /* ... of the REQ */
	uint8_t req[256]; /* the REQ */
	uint16_t id_next; /* the Identification of the next packet, unless it is 0 */
};

/* Datagrams from BTH to ICRC, the first PEER_SEEN of each way since peer_new(). */
#define PEER_SEEN 64u
struct peer_seen {
	unsigned int cnt;
	struct {
		uint16_t port, id; /* that it is from; Identification */
		size_t len;
		uint8_t bytes[PEER_PACKET];
	} v[PEER_SEEN];
};
/* peer_next() gave it; peer_send() sent it, and it was not spoilt. */
extern struct peer_seen peer_came, peer_went;

/* Before anything else: a network of its own, if that may be; else it waits for other tests. */
void peer_network(void);
/*
 * The same, with fd00::1 to 3, or fe80::1 to 3, which are used from now on. False: there is none,
 * or no IPv6.
 */
bool peer_network6(bool link_local);
/* Of the endpoint, and of the peer with the port of the service. */
void peer_addrs(struct sockaddr_storage *ret_ep, struct sockaddr_storage *ret_peer);
/* Packets of IP are no longer from now on. False: the network is not ours. */
bool peer_path_mtu(int mtu);
/* Requests have this path MTU from now on. */
void peer_expects_mtu(uint32_t mtu);
/* The kernel chooses ports of these from now on. False: the network is not ours. */
bool peer_ports(unsigned int first, unsigned int last);
void peer_new(struct peer *p);
void peer_free(struct peer *p);
/* A test has said so to the endpoint: the next request has this PSN, so many messages are done. */
void peer_counts_from(uint32_t psn, uint32_t msn);
/* All that came until now is dropped. */
void peer_forget(struct peer *p);

/* The next packet; false: none came meanwhile. turn: is called while there is none. */
bool peer_next(struct peer *p, struct peer_packet *ret, void (*turn)(void));
/* A datagram of the CM with this attribute, from the MAD's byte 24 on; repetitions are passed over.
 */
void peer_next_mad(struct peer *p, uint16_t attr, uint8_t ret[232], void (*turn)(void));
void peer_send_mad(struct peer *p, uint16_t attr, const uint8_t body[232]);
/* The same with other bytes: what is exclusive-ored with the MAD's first four, and with the Q_Key.
 */
void peer_send_odd_mad(
	struct peer *p, uint16_t attr, const uint8_t body[232], uint32_t head, uint32_t qkey);
/* REQ, REP (our first PSN for the endpoint is `psn`), RTU. */
void peer_accept(struct peer *p, uint32_t psn, const void *priv, size_t len, void (*turn)(void));
/* The REQ as it should be, and its answer. */
void peer_take_req(struct peer *p, void (*turn)(void));
void peer_send_rep(struct peer *p, uint32_t psn, const void *priv, size_t len);

/* A packet with what is behind its BTH; `spoil`: its ICRC is wrong. */
struct peer_out {
	uint8_t op;
	bool ack_req, spoil;
	uint16_t pkey;      /* 0: the default one */
	uint16_t id;        /* Identification that the ICRC counts */
	uint8_t bth1;       /* exclusive-ored: solicited event, MigReq, pad, TVer */
	uint8_t bth4, bth8; /* reserved bits, FECN, BECN */
	uint32_t qpn, psn;
	const void *ext;
	size_t ext_len;
	const void *payload;
	size_t len;
};

void peer_send(const struct peer *p, const struct peer_out *o);
/* The same from another address (NULL: from its own) or port. */
void peer_send_from(
	const struct peer *p, const char *addr, uint16_t port, const struct peer_out *o);
/* To whoever has that number, by somebody who got it; `ce`: a byte that says so, or anything. */
void peer_hand_over(const struct peer_out *o, uint32_t number, uint8_t ce);
/* An acknowledgement of that PSN. */
void peer_ack(const struct peer *p, uint8_t syndrome, uint32_t psn);
/* A CNP (annex A17.9.3): packets of ours met congestion. */
void peer_notify(const struct peer *p);
void peer_notify_from(const struct peer *p, uint16_t port);
/* All that it sends from now on has this in the two bits of ECN. */
void peer_mark(const struct peer *p, uint8_t ecn);
/* RETH (IBA 9.3.3). */
void peer_reth(uint8_t ext[16], uint64_t va, uint32_t rkey, uint32_t len);

#endif
