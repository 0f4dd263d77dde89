/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rig: an endpoint of src/roce, what its owner is told, and a strict peer (peer.h).
 */
#ifndef RPCRDMAFS_ROCE_RIG_H
#define RPCRDMAFS_ROCE_RIG_H

#include "log.h"
#include "peer.h"
#include "roce_rx.h"

#define MTU   4096u
#define OURS  500u /* PSN that the endpoint begins with */
#define SENDS 7u
#define RECVS 7u
#define SOON  (20 * NSEC_PER_MSEC)

extern struct reactor *r;
extern struct fab_ep *ep;
extern struct peer peer;
extern struct fab_mr *mr; /* of mem */
extern uint8_t mem[64 << 10];
extern struct stats stats;
extern const struct fab_conf rig_conf;

/* The endpoint's owner saw this: a letter for each, in order. */
extern char seen[256];
extern struct fab_event last;
extern int down; /* why the connection was lost */
extern uint8_t priv[256];
extern uint64_t cookie;
extern uint32_t len, inv;
extern bool rig_parts; /* the owner parts when it hears of a receive */
extern const struct fab_ep_ops rig_ops;

/* Of tests: the last packet that came, what is sent, a window, a RETH. */
extern struct peer_packet k;
extern uint8_t text[3 * MTU];
extern struct fab_mw *mw;
extern uint8_t reth[16];

/* An endpoint and a peer; both are connected, too; the end. */
void rig_make(void);
void rig_set_up(void);
void rig_tear_down(void);
/* The address is known, the queue pair is there. */
void rig_resolve(void);
/* ... and it is connected; its first PSN is `psn`. */
void rig_connect(uint32_t psn);
/* The connection has ended, the peer hears of it, and there is another one. */
void rig_connect_again(void);

/* The endpoint goes on: also a while; for what is there. */
void rig_turn(void);
void rig_turns(void);
/* The endpoint does not. */
void rig_still(void);
/* Until the owner has seen this, which nothing else follows. */
void rig_sees(const char *what);
/* No packet comes; the last one of a Send asked to be acknowledged. */
void rig_none(void);
/* Packets of before were dropped; this one is received. */
void rig_none_but(const struct peer_out *o);

void rig_post(size_t off, uint32_t n, uint64_t c);
void rig_receive(size_t off, uint32_t n, uint64_t c);
/* The next packet is this one of a Send, with the bytes of mem at off. */
void rig_sends(uint8_t op, uint32_t psn, size_t off, size_t n);
/* The next packet is an acknowledgement. */
void rig_answers(uint8_t syndrome, uint32_t psn);
/* The next packet is one of the answer of a Read, with the bytes of mem at off. */
void rig_reads(uint8_t op, uint32_t psn, size_t off, size_t n);
/* A request packet of the peer's; the last one of a message wants to be acknowledged. */
void rig_asks(uint8_t op, uint32_t psn, const void *ext, size_t ext_len, const void *p, size_t n);
/* A Send of the peer's, "hello", for a test to make it odd. */
struct peer_out rig_odd(void);
/* A Read of mem at off. */
void rig_asks_read(uint32_t psn, uint32_t rkey, size_t off, uint32_t n);
/* A window over [off, off + n) of mem, which is told to the peer by a Send. Returns its key. */
uint32_t rig_window(size_t off, uint64_t n, unsigned int access);
uint64_t rig_at(size_t off);

#endif
