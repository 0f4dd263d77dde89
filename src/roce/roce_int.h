/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the files of the endpoint: a reliable connection of RoCEv2 in this process, on a UDP
 * socket, without a device and without privilege.
 *
 *   roce.c       the table (fab_impl.h)
 *   roce_ep.c    the endpoint's life: states, loss, draining; what fab.h asks for
 *   roce_conn.c  connecting and parting by datagrams of the CM
 *   roce_send.c  requester: Sends, their acknowledgements, what is sent again
 *   roce_serve.c responder: the peer's Sends, RDMA Writes and RDMA Reads
 *   roce_read.c  the queue of those Reads
 *   roce_pace.c  how fast answers of Reads go out after congestion
 *   roce_mtu.c   the path MTU, also where nothing tells that large packets do not pass
 *   roce_rx.c    what comes: whose it is, whether it is whole
 *   roce_tx.c    what goes out, many packets at once
 *   roce_sock.c  the sockets
 *   roce_box.c   names of the machine: how a packet that reached another process is handed over
 *   roce_filter.c what sockets are not given
 *   roce_addr.c  addresses without their ports
 *   roce_sys.c   whether an adapter takes our packets
 *   roce_cap.c   all that in a capture
 *   roce_key.c   registrations, windows and their keys
 *   roce_wire.c, roce_mad.c, roce_icrc.c, roce_crc.c  formats
 *
 * docs/protocol/rocev2.md says what the standard asks of each, and where it is done otherwise.
 *
 * Anybody who can send UDP to the port is hostile. Numbers that name something of ours are random;
 * a packet of nobody's costs a look at the clock, but for a few that are offered to the machine's
 * other endpoints (roce_sock_hand_over()); one of a connection must come from its peer's
 * address and be whole (ICRC) before anything is done for it. Answers are no longer than questions,
 * but for 4 bytes of an acknowledgement and 16 of a CNP, and what a Read or a NAK asks for.
 *
 * I13 (work request): as I1 (verbs_int.h).
 *    Asserted: finish()
 *    Test: roce_conn::the_peer_parts
 *
 * Context: the lane that owns the endpoint.
 */
#ifndef RPCRDMAFS_ROCE_INT_H
#define RPCRDMAFS_ROCE_INT_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "fab_impl.h"
#include "list.h"
#include "reactor.h"
#include "roce_cap.h"
#include "roce_icrc.h"
#include "roce_mad.h"
#include "roce_mtu.h"
#include "roce_pace.h"
#include "roce_wire.h"

#define ROCE_SGES        32u /* buffers of a Send at most */
#define ROCE_READS       16u /* of the peer under way at most */
#define ROCE_READ_QUEUE  64u /* with those that are answered once more */
#define ROCE_MAX_WR      4096u
#define ROCE_MAX_MW      65536u
#define ROCE_PRIV_MAX    ROCE_MAD_REQ_PRIV
#define ROCE_ACK_TIMEOUT 14u  /* 67 ms, if nobody says otherwise */
#define ROCE_UNACKED     128u /* packets of ours under way at most */
/* ECN: two bits of the type of service. */
#define ROCE_ECN  3u
#define ROCE_ECT0 2u /* we answer CE */
#define ROCE_CE   3u /* congestion on its way */
/* Memory for packets that came: the kernel counts, and doubles, half of it. */
#define ROCE_ROOM 8388608u

enum roce_state {
	ROCE_IDLE,
	ROCE_RESOLVING,
	ROCE_RESOLVED,
	ROCE_CONNECTING,
	ROCE_UP,
	ROCE_DRAINING, /* the final event follows from the timer */
};

/* ---- memory ---- */

/* The memory that a key opens. */
struct roce_key {
	uint32_t rkey;
	uint8_t *addr;
	uint64_t len;
	unsigned int access; /* FAB_REMOTE_* */
	bool is_window;      /* of roce_mw.key */
};

#define ROCE_KEYS_FRESH 32u

/* By key; of its places one half is free. */
struct roce_keys {
	struct roce_key **v;
	uint32_t size, cnt;
	uint32_t fresh[ROCE_KEYS_FRESH]; /* random numbers: [0, fresh_cnt) were not used yet */
	unsigned int fresh_cnt;
};

struct roce_mr {
	struct fab_mr base;
	struct list link;
	struct roce_ep *ep;
	uint8_t *addr;
	size_t len;
	struct roce_key key; /* in the table if the peer may use it */
};

struct roce_mw {
	struct fab_mw base;
	struct list link;
	struct roce_key key; /* of now, or of before */
	uint32_t next;       /* the key of the next bind */
	bool bound;          /* in the table */
};

/* ---- queues ---- */

struct roce_wqe {
	uint64_t cookie;
	struct iovec sges[ROCE_SGES];
	unsigned int sge_cnt;
	uint32_t len;
	uint32_t psn, packets;
};

/* A ring of Sends: [una, end) have no acknowledgement. */
struct roce_requester {
	struct roce_wqe *ring;
	uint32_t size, room; /* places; of which so many are in use at most */
	uint32_t una, end;   /* counts of Sends; modulo size: places */
	uint32_t next;       /* the Send that is sent next ... */
	uint32_t next_off;   /* ... from this packet of it */
	uint32_t psn;        /* of the next new Send */
	uint32_t acked;      /* PSN of the oldest packet without an acknowledgement ... */
	uint32_t sent;       /* ... and of the first that was never sent */
	uint32_t window;     /* packets under way at most: less after a loss or a CNP */
	unsigned int tries;  /* in a row, of what is sent again */
	bool waits;          /* RNR: nothing is sent before the timer */
	struct reactor_timer timer;
	unsigned int silent; /* packets since the last one that asks for an acknowledgement */
	bool answered;       /* the owner tells of answers: not each last packet need ask */
};

struct roce_recv {
	uint64_t cookie;
	uint8_t *addr;
	uint32_t len;
};

/* An RDMA Read that is being answered. */
struct roce_read {
	uint32_t psn, packets, done; /* packets that went out */
	uint32_t rkey, len;
	uint64_t va;
	uint32_t msn;
	bool again; /* some of it had gone out when it was asked for once more */
};

struct roce_responder {
	struct roce_recv *ring; /* receives: [first, end) */
	uint32_t size, room;    /* places; of which so many are in use at most */
	uint32_t first, end;
	uint32_t psn;           /* that is expected */
	uint32_t done_psn;      /* of the last packet of a Send or Write that was taken */
	uint32_t msn, done_msn; /* now; when that packet was taken */
	/* The message that has begun, by its kind: 0: none */
	unsigned int kind;
	uint32_t got;         /* bytes of it */
	uint32_t rkey, total; /* of a Write */
	uint64_t va;
	uint32_t acked; /* PSN of our last acknowledgement */
	bool ack_due;
	bool ack_now;      /* it has waited, in vain */
	unsigned int wary; /* so many of the next ones do not wait */
	uint64_t clean;    /* bytes that the peer wrote since something was lost */
	uint64_t told_ns;  /* until then a gap has its NAK. 0: it has none */
	uint8_t nak_due;   /* its syndrome; it follows the answers before it. 0: none */
	uint32_t nak_psn;  /* when this one has come it is of no use */
	struct roce_read reads[ROCE_READ_QUEUE];
	unsigned int read_first, read_cnt;
	struct roce_pace pace;
	struct reactor_timer pace_timer; /* the next tick, which answers wait for */
};

/* ---- packets ---- */

#define ROCE_TX_BATCH 64u
#define ROCE_TX_IOV   (4 * ROCE_TX_BATCH + ROCE_SGES + 2)

/* Whose packet it is, so that it goes out again if the socket was full. */
struct roce_tx_from {
	bool is_send;
	bool alone; /* it was lost before: not in a train */
	uint32_t psn;
};

struct roce_tx_packet {
	uint8_t head[ROCE_HDR_MAX];
	uint8_t tail[3 + ROCE_ICRC_LEN];
	unsigned int iov_at, iov_cnt;
	uint32_t payload_len;
	uint16_t id; /* Identification */
	size_t len;  /* of the datagram */
	struct roce_tx_from from;
};

#define ROCE_TRAINS_TRIES 64u /* trains after which it is decided, again and again */

/* Packets that the kernel makes of one long datagram (UDP_SEGMENT). */
struct roce_trains {
	enum {
		ROCE_TRAINS_TRIED,
		ROCE_TRAINS_TRUSTED, /* enough of the last ones arrived: a cut is no reason */
		ROCE_TRAINS_OFF,     /* the kernel does not do it; or the peer gets none of them */
	} state;
	/* Of the last trains; of one long Read those behind its first one are not counted: */
	unsigned int lost;         /* that the peer missed first */
	unsigned int alone_lost;   /* packets that it missed first, and had gone out one by one */
	uint32_t first, end;       /* PSNs of them, if there are any */
	uint32_t alone, alone_end; /* and of packets one by one after a loss */
	bool goes_back; /* it asks for all that is behind a loss; until it asks for something new */
	unsigned int psn_cnt;             /* of those that it did not miss so far */
	uint32_t psns[ROCE_TRAINS_TRIES]; /* that they begin with */
};

struct roce_tx {
	unsigned int cnt, iov_cnt;
	bool has_mad; /* one of them is the CM's */
	struct roce_tx_packet packets[ROCE_TX_BATCH];
	struct iovec iov[ROCE_TX_IOV];
	struct roce_trains trains;
	struct reactor_spin turns; /* of the reactor, while there is a connection */
	unsigned int posted;       /* Sends in this one */
};

struct roce_rx_about; /* roce_rx.h */
struct roce_sock;     /* roce_sock.c */

/* A call that ended at once; its owner hears of it from the reactor. */
struct roce_done {
	uint64_t cookie;
	bool is_inv; /* else a bind */
};

/* The CM's part, which goes on when the endpoint does something else. */
struct roce_conn {
	uint32_t local_id, remote_id;
	uint64_t tid;
	uint8_t req[ROCE_MAD_LEN];
	unsigned int tries;
	bool heard;   /* a datagram of the CM came */
	int send_err; /* what the network, or this machine, said of ours; 0: nothing */
	struct reactor_timer timer;
	/* The connection before, which the peer is to hear of. 0: none */
	struct roce_mad dreq;
	unsigned int dreq_tries;
	struct reactor_timer dreq_timer;
};

struct roce_ep {
	struct fab_ep base;
	struct reactor *r;
	struct fab_conf conf;
	const struct fab_ep_ops *ops;
	void *ctx;
	enum roce_state state; /* by set_state() only */
	enum fab_step step;
	struct fab_event final;
	struct reactor_timer timer; /* resolved; the attempt took too long; path changed; the end */
	struct fab_caps caps;
	uint64_t inbound_most; /* caps.max_inbound where nothing is lost */
	char name[128];
	char why[320]; /* the attempt failed, for the user (fab_ep_why()) */
	bool resolved_before;

	struct sockaddr_storage local, remote;
	struct sockaddr_storage to;     /* remote, with the port of RoCEv2 */
	struct roce_flow_addrs out, in; /* and back */
	uint32_t mtu;
	struct roce_mtu passes; /* of it */
	struct roce_sock *sock;
	struct roce_conn conn;
	uint8_t priv[ROCE_PRIV_MAX];
	size_t priv_len;
	struct fab_qp_conf qp_conf;
	struct fab_path path;
	uint32_t qpn, peer_qpn; /* 0: there is no queue pair; it is not connected */
	unsigned int parted;    /* by the peer: reads that are left; 0: not */
	uint32_t flow_label;    /* of which the peer makes its source port */

	struct roce_keys keys;
	struct list mrs, mws;
	struct roce_requester req;
	struct roce_responder resp;
	struct roce_tx tx;
	struct roce_done *done; /* of qp_conf.send_wr */
	unsigned int done_cnt;
	struct reactor_timer done_timer;
	bool delivering;     /* callbacks of a batch: what they post goes out after it */
	unsigned int behind; /* packets of the batch behind the one that is taken */
	struct roce_icrc_ids ids;
	struct roce_cap cap;
	struct stats *stats;
	uint64_t cnp_ns; /* the last one that was sent */
};

static inline struct roce_ep *roce_of(const struct fab_ep *ep)
{
	return container_of(ep, struct roce_ep, base);
}

/* roce_ep.c */
/* As fab.h says of the functions of the same names. */
struct fab_ep *roce_ep_new(
	struct reactor *r, const struct fab_conf *conf, const struct fab_ep_ops *ops, void *ctx);
void roce_ep_free(struct fab_ep *ep);
int roce_ep_resolve(struct fab_ep *ep, const struct sockaddr *src, const struct sockaddr *dst);
int roce_ep_setup(struct fab_ep *ep, const struct fab_qp_conf *conf);
int roce_ep_connect(struct fab_ep *ep, const void *priv, size_t priv_len);
void roce_ep_disconnect(struct fab_ep *ep);
bool roce_ep_path(const struct fab_ep *ep, struct fab_path *ret);
int roce_ep_send(struct fab_ep *ep, const struct fab_sge *sges, unsigned int sge_cnt,
	const struct fab_bind *binds, unsigned int bind_cnt, uint64_t cookie);
int roce_ep_recv(
	struct fab_ep *ep, void *addr, uint32_t len, const struct fab_mr *mr, uint64_t cookie);
int roce_ep_bind(struct fab_ep *ep, const struct fab_bind *bind, uint64_t cookie);
int roce_ep_invalidate(
	struct fab_ep *ep, struct fab_mw *const *mws, unsigned int cnt, uint64_t cookie);

/* The connection broke, err as in DOWN. */
void roce_ep_lost(struct roce_ep *ep, int err);
/* The peer has ended the connection: what it sent before is read first, from another socket. */
void roce_ep_parted(struct roce_ep *ep);
/* The path takes no packet of this MTU any more: the next connection has another one. */
void roce_ep_path_changed(struct roce_ep *ep);
/* The attempt failed; ep->why says more, or is empty. */
void roce_ep_fail(struct roce_ep *ep, enum fab_step step, int err);
/* The peer accepted, and was told that we know. */
void roce_ep_up(struct roce_ep *ep, const struct roce_mad *rep);
/* Around callbacks of completions: what they cause goes out at the end. */
void roce_ep_deliver_begin(struct roce_ep *ep);
void roce_ep_deliver_end(struct roce_ep *ep);

/* roce_conn.c */
void roce_conn_init(struct roce_ep *ep);
void roce_conn_start(struct roce_ep *ep);
/* The attempt is over. */
void roce_conn_stop(struct roce_ep *ep);
/* The connection is over, and the peer is told, if it does not know. */
void roce_conn_part(struct roce_ep *ep, bool tell);
void roce_conn_free(struct roce_ep *ep);
void roce_conn_received(struct roce_ep *ep, const struct roce_packet *p);
/* Nobody accepted, or refused, in time. */
void roce_conn_timed_out(struct roce_ep *ep);
/* A datagram could not be sent, or the network says that an earlier one did not arrive. */
void roce_conn_send_failed(struct roce_ep *ep, int err);

/* roce_send.c */
int roce_send_setup(struct roce_ep *ep);
void roce_send_free(struct roce_ep *ep);
/* Begins with this PSN. */
void roce_send_begin(struct roce_ep *ep, uint32_t psn);
int roce_send_post(
	struct roce_ep *ep, const struct fab_sge *sges, unsigned int cnt, uint64_t cookie);
/* As fab_answered(). */
void roce_send_answered(struct fab_ep *ep, uint64_t cookie);
/* Acknowledgements. */
void roce_send_received(struct roce_ep *ep, const struct roce_packet *p);
/* There is a packet to send, and it may be sent now. */
bool roce_send_may_go(const struct roce_ep *ep);
/* Into the batch, as much as there may be. */
void roce_send_go(struct roce_ep *ep);
/* From this PSN on nothing went out. */
void roce_send_back(struct roce_ep *ep, uint32_t psn);
/* All that is left is told to its owners. */
void roce_send_flush(struct roce_ep *ep);
void roce_send_slower(struct roce_ep *ep);
/* The oldest packet without an acknowledgement is large, and was sent again and again. */
bool roce_send_waits(const struct roce_ep *ep);

/* roce_serve.c */
int roce_serve_setup(struct roce_ep *ep);
void roce_serve_free(struct roce_ep *ep);
void roce_serve_begin(struct roce_ep *ep, uint32_t psn);
int roce_serve_post(struct roce_ep *ep, void *addr, uint32_t len, uint64_t cookie);
void roce_serve_received(struct roce_ep *ep, const struct roce_packet *p);
void roce_serve_go(struct roce_ep *ep);
/* An acknowledgement, if one is due, goes with what is sent now. */
void roce_serve_ack(struct roce_ep *ep);
/* Nothing else is there to do: it waits no more. True: one did. */
bool roce_serve_ack_now(struct roce_ep *ep);
/* An answer of this syndrome did not go out. */
void roce_serve_answer_back(struct roce_ep *ep, uint8_t syndrome);
void roce_serve_flush(struct roce_ep *ep);
/* Congestion: answers of Reads are to go out more slowly. */
void roce_serve_slower(struct roce_ep *ep);

/* roce_tx.c */
/* There is room for one more. */
bool roce_tx_has_room(const struct roce_ep *ep);
/*
 * One packet to the peer: p's headers, then the payload, which is valid until roce_tx_flush().
 * pieces: at most ROCE_SGES. from: NULL: if it cannot be sent nobody misses it.
 */
void roce_tx_put(struct roce_ep *ep, const struct roce_packet *p, const struct iovec *pieces,
	unsigned int cnt, const struct roce_tx_from *from);
void roce_tx_mad(struct roce_ep *ep, const uint8_t mad[ROCE_MAD_LEN]);
/* To the socket. False: it is full, and roce_tx_go() follows when it is not. */
bool roce_tx_flush(struct roce_ep *ep);
/* All that is to be sent. */
void roce_tx_go(struct roce_ep *ep);
/* A Send was posted. The connection does not end in this call. */
void roce_tx_post(struct roce_ep *ep);
/* There is a connection, there is none. */
void roce_tx_begin(struct roce_ep *ep);
void roce_tx_end(struct roce_ep *ep);
/* A Read is answered; it was asked for once more, from this PSN on. */
void roce_tx_read(struct roce_ep *ep, uint32_t psn, uint32_t packets);
void roce_tx_lost(struct roce_ep *ep, uint32_t psn, uint32_t packets);

/* roce_sock.c */
/* Of the endpoint's local address. 0; -EADDRINUSE: the port is somebody's alone; -errno. */
int roce_sock_open(struct roce_ep *ep);
void roce_sock_close(struct roce_ep *ep);
/* Reads what the peer has sent on this connection. True: that was much, there may be more. */
bool roce_sock_read(struct roce_ep *ep);
/* Before a REQ: its answer comes to a socket that was bound last. Without one: as it was. */
void roce_sock_renew(struct roce_ep *ep);
/* Bytes of memory in which the kernel keeps what came, and was not read. */
unsigned int roce_sock_room(const struct roce_ep *ep);
/* Which local address leads to the remote one, and by what MTU of IP; src may be NULL. */
int roce_sock_route(const struct sockaddr *src, const struct sockaddr *dst,
	struct sockaddr_storage *ret_local, unsigned int *ret_mtu);
/* A number of 24 bits that no other endpoint of this machine has, until roce_sock_part(). */
int roce_sock_number(struct roce_ep *ep, uint32_t *ret_number);
void roce_sock_part(struct roce_ep *ep);
/*
 * The peer is to send from that port, and to no other endpoint of this machine, until
 * roce_sock_part(). 0; -EADDRINUSE: it does already; -errno: nobody knows.
 */
int roce_sock_claim(struct roce_ep *ep, uint16_t port);
/* The peer sends packets of this connection from there. */
void roce_sock_from(struct roce_ep *ep, uint16_t port);
/* Whether roce_sock_send() returns what ICMP says of packets before: while connecting. */
void roce_sock_hear(struct roce_ep *ep, bool on);
/* The same at once, of the last one: 0 or -errno, once. */
int roce_sock_error(const struct roce_ep *ep);
/* The source port of what we send; another one for the next connection. */
uint16_t roce_sock_port(const struct roce_ep *ep);
uint16_t roce_sock_port_anew(struct roce_ep *ep);
int roce_sock_recv(int fd, struct mmsghdr *msgs, unsigned int cnt);
/* Before the first train. 0 or -errno: without trains. */
int roce_sock_train(struct roce_ep *ep);
/* trains: some of them are of several packets (UDP_SEGMENT). */
int roce_sock_send(struct roce_ep *ep, struct mmsghdr *msgs, unsigned int cnt, bool trains);
/* That socket is full: roce_tx_go() is called when there is room. */
void roce_sock_wait(struct roce_ep *ep);
/* It is still. */
bool roce_sock_is_full(const struct roce_ep *ep);
/* A packet of the endpoint that has this number. */
void roce_sock_hand_over(struct roce_ep *ep, uint32_t number, const uint8_t *p, size_t len,
	const struct roce_rx_about *about);

/* roce_sys.c */
/*
 * Does an adapter take UDP port 4791 of these packets: that of the local address, or of the route?
 * Its name, for the user. sys: "/sys", but for tests.
 */
bool roce_sys_adapter(
	const char *sys, const struct sockaddr *local, const struct sockaddr *remote, char ret[64]);
/* The same of a network interface, or one below it. */
bool roce_sys_takes_port(const char *sys, const char *netdev, char ret[64]);

/* roce_key.c */
uint32_t roce_key_random(void);
struct fab_mr *roce_key_reg(
	struct fab_ep *ep, void *addr, size_t len, unsigned int access, bool bind);
void roce_key_dereg(struct fab_mr *mr);
uint32_t roce_key_of_mr(const struct fab_mr *mr);
struct fab_mw *roce_key_alloc(struct fab_ep *ep);
uint32_t roce_key_of_mw(const struct fab_mw *mw);
uint32_t roce_key_next(const struct fab_mw *mw);
int roce_key_bind(struct roce_ep *ep, const struct fab_bind *bind);
void roce_key_unbind(struct roce_ep *ep, struct fab_mw *mw);
/* Of the peer: false: it is no bound window's. */
bool roce_key_invalidate(struct roce_ep *ep, uint32_t rkey);
/* Memory that the key opens for this access; NULL: it does not. */
uint8_t *roce_key_find(
	const struct roce_ep *ep, uint32_t rkey, uint64_t va, uint64_t len, unsigned int access);
/* A window through which the peer may write more than so many bytes. */
bool roce_key_waits(const struct roce_ep *ep, uint64_t len);
void roce_key_free_mws(struct roce_ep *ep);
void roce_key_free(struct roce_ep *ep);

#endif
