/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting and parting (volume 1, section 12.9), as the active side:
 *
 *   REQ ->   <- REP   RTU ->        up
 *            <- MRA                 wait longer
 *            <- REJ                 refused
 *   DREQ ->  <- DREP  or the other way round
 *
 * All that may be lost is sent again. The two sides know each other by the random numbers
 * (communication IDs) that each side chose.
 */
#include "roce_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

#define REQ_NS      (300 * NSEC_PER_MSEC) /* it doubles */
#define REQ_GROWS   4u
#define DREQ_NS     (300 * NSEC_PER_MSEC)
#define DREQ_TRIES  3u
#define LABEL_TRIES 16u
/* Of the peer's. 7 is for ever in Linux' rxe, and with it an end of ours that nobody tells. */
#define RETRY_MOST 6u

/* ---- out ---- */

static void send_mad(struct roce_ep *ep, const struct roce_mad *m)
{
	uint8_t mad[ROCE_MAD_LEN];

	roce_mad_put(m, mad);
	roce_tx_mad(ep, mad);
}

static void send_req(struct roce_ep *ep)
{
	struct roce_conn *c = &ep->conn;
	unsigned int grown = c->tries < REQ_GROWS ? c->tries : REQ_GROWS;

	/* An error of the one before would come in place of this one's sending. */
	(void)roce_sock_error(ep);
	c->send_err = 0;
	roce_sock_renew(ep);
	roce_tx_mad(ep, c->req);
	c->tries++;
	reactor_timer_in(ep->r, &c->timer, REQ_NS << grown);
}

static void on_timer(struct reactor_timer *t)
{
	struct roce_ep *ep = container_of(t, struct roce_ep, conn.timer);

	if (ep->state == ROCE_CONNECTING)
		send_req(ep);
}

static void on_dreq_timer(struct reactor_timer *t)
{
	struct roce_ep *ep = container_of(t, struct roce_ep, conn.dreq_timer);
	struct roce_conn *c = &ep->conn;

	if (c->dreq_tries == 0 || !ep->sock)
		return;
	c->dreq_tries--;
	send_mad(ep, &c->dreq);
	reactor_timer_in(ep->r, &c->dreq_timer, DREQ_NS);
}

void roce_conn_init(struct roce_ep *ep)
{
	reactor_timer_init(&ep->conn.timer, on_timer);
	reactor_timer_init(&ep->conn.dreq_timer, on_dreq_timer);
}

void roce_conn_free(struct roce_ep *ep)
{
	reactor_timer_cancel(ep->r, &ep->conn.timer);
	reactor_timer_cancel(ep->r, &ep->conn.dreq_timer);
}

/* ---- connecting ---- */

static void put_gid(uint8_t gid[16], const uint8_t addr[16], bool is_v6)
{
	memset(gid, 0, 16);
	if (is_v6) {
		memcpy(gid, addr, 16);
		return;
	}
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, addr, 4);
}

static uint16_t port_of(const struct sockaddr_storage *ss)
{
	return ntohs(ss->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)ss)->sin6_port
					       : ((const struct sockaddr_in *)ss)->sin_port);
}

/* As adapters do it, and Linux (annex A17.4.3 leaves it to them). */
static uint16_t port_of_label(uint32_t label)
{
	return (uint16_t)(0xc000u | ((label & 0x3fff) ^ (label & 0xfc000) >> 14));
}

/*
 * The peer makes the source port of its packets of it: another way through the network for each
 * connection, and another socket of ours. 20 bits, not 0.
 */
static uint32_t new_label(struct roce_ep *ep)
{
	uint32_t label;
	int err;

	for (unsigned int i = 0; i < LABEL_TRIES; i++) {
		label = 1 + roce_key_random() % 0xfffff;
		err = roce_sock_claim(ep, port_of_label(label));
		if (err != -EADDRINUSE)
			break;
	}
	/* Without one that is ours alone: packets are handed over. */
	return label;
}

void roce_conn_start(struct roce_ep *ep)
{
	struct roce_conn *c = &ep->conn;
	struct roce_mad_req req = {
		.is_v6 = ep->out.is_v6,
		.src_port = roce_sock_port_anew(ep),
		.dst_port = port_of(&ep->remote),
		.guid = (uint64_t)roce_key_random() << 32 | roce_key_random(),
		.qpn = ep->qpn,
		.psn = roce_key_random() & ROCE_PSN_MASK,
		.reads = ROCE_READS,
		.retries = ep->conf.retry_count < RETRY_MOST ? ep->conf.retry_count : RETRY_MOST,
		.ack_timeout = ep->conf.ack_timeout ? ep->conf.ack_timeout : ROCE_ACK_TIMEOUT,
		.mtu = ep->mtu,
		.tos = ep->conf.tos,
		.flow_label = ep->flow_label = new_label(ep),
		.priv = ep->priv,
		.priv_len = ep->priv_len,
	};

	c->local_id = (roce_key_random() & ~ROCE_PSN_MASK) | ep->qpn;
	c->remote_id = 0;
	c->tid = req.tid = (uint64_t)roce_key_random() << 32 | roce_key_random();
	req.local_id = c->local_id;
	put_gid(req.local, ep->out.src, ep->out.is_v6);
	put_gid(req.remote, ep->out.dst, ep->out.is_v6);
	roce_mad_put_req(&req, c->req);
	/* ORDER: the PSN of the REQ is what the peer sends with, that of the REP is ours. */
	roce_serve_begin(ep, req.psn);
	ep->path.remote_psn = req.psn;
	c->tries = 0;
	c->heard = false;
	roce_sock_hear(ep, true);
	send_req(ep);
}

void roce_conn_stop(struct roce_ep *ep)
{
	reactor_timer_cancel(ep->r, &ep->conn.timer);
	if (!ep->sock)
		return;
	roce_sock_hear(ep, false);
	(void)roce_sock_error(ep); /* nor is the next packet to fail by it */
}

static void fail(struct roce_ep *ep, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(struct roce_ep *ep, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ep->why, sizeof(ep->why), fmt, ap);
	va_end(ap);
	roce_ep_fail(ep, FAB_STEP_CONNECT, err);
}

void roce_conn_send_failed(struct roce_ep *ep, int err)
{
	if (ep->state == ROCE_CONNECTING)
		ep->conn.send_err = err;
}

void roce_conn_timed_out(struct roce_ep *ep)
{
	const struct roce_conn *c = &ep->conn;
	int err = roce_sock_error(ep);

	if (err == 0)
		err = c->send_err;
	switch (c->heard ? 0 : err) {
	case 0:
		break;
	case -ECONNREFUSED:
		fail(ep, -ECONNREFUSED,
			"the server's machine has nothing at UDP port 4791: neither an RDMA "
			"adapter that speaks RoCEv2 at this address, nor rdma_rxe on its "
			"interface");
		return;
	case -EPERM: /* it may let them out later */
		fail(ep, -EHOSTUNREACH,
			"a packet filter of this machine does not let UDP packets to port 4791 "
			"out");
		return;
	default:
		fail(ep, -EHOSTUNREACH, "UDP packets to port 4791 of the server: %s",
			strerror(-err));
		return;
	}
	if (c->heard)
		fail(ep, -ETIMEDOUT,
			"the server asked for more time, and did not accept the connection: its "
			"log may say why");
	else
		fail(ep, -ETIMEDOUT,
			"no answer to RoCEv2: the server has no RDMA at this address; or a "
			"firewall does not let UDP port 4791 pass both ways: the server's "
			"packets are a flow of their own; or NAT is between, which RoCE "
			"cannot pass: use the host's network, macvlan or one that routes; or an "
			"adapter below our interface takes the packets");
}

void roce_conn_part(struct roce_ep *ep, bool tell)
{
	struct roce_conn *c = &ep->conn;

	/*
	 * ORDER: before Sends and windows are taken back, which tell what was due. Where the peer
	 * misses a Send it may be that nothing passes: then a window that waits does not count.
	 */
	if (roce_mtu_end(&ep->passes, ep->mtu, roce_send_waits(ep),
		    ep->req.tries == 0 && roce_key_waits(ep, ROCE_MTU_SAFE)))
		log_warn_limited(
			"%s: packets of %u bytes do not pass, and nothing on the path says so: "
			"from now on they have %u (an MTU differs, of the server's interface or on "
			"the way)",
			ep->name, ep->mtu, ROCE_MTU_SAFE);
	c->dreq = (struct roce_mad){.attr = ROCE_MAD_DREQ,
		.tid = c->tid,
		.local_id = c->local_id,
		.remote_id = c->remote_id,
		.qpn = ep->peer_qpn};
	c->dreq_tries = tell ? DREQ_TRIES : 0;
	on_dreq_timer(&c->dreq_timer);
	c->local_id = c->remote_id = 0;
}

/* ---- in ---- */

/* The attempt, or connection, that it is about. */
static bool is_ours(const struct roce_ep *ep, const struct roce_mad *m)
{
	const struct roce_conn *c = &ep->conn;

	return c->local_id != 0 && m->remote_id == c->local_id &&
	       (c->remote_id == 0 || m->local_id == c->remote_id);
}

static bool is_past(const struct roce_ep *ep, const struct roce_mad *m)
{
	const struct roce_conn *c = &ep->conn;

	return c->dreq.local_id != 0 && m->remote_id == c->dreq.local_id &&
	       m->local_id == c->dreq.remote_id;
}

static void reply(struct roce_ep *ep, const struct roce_mad *to, enum roce_mad_attr attr)
{
	const struct roce_mad m = {.attr = attr,
		.tid = to->tid,
		.local_id = to->remote_id,
		.remote_id = to->local_id,
		.reason = ROCE_REJ_CONSUMER,
		.rejected = 1};

	send_mad(ep, &m);
}

static void on_rep(struct roce_ep *ep, const struct roce_mad *m)
{
	struct roce_conn *c = &ep->conn;
	bool again = ep->state == ROCE_UP && c->remote_id != 0;

	/* Of our IDs a part is no secret on this machine, the transaction is. */
	if (is_ours(ep, m) && m->tid != c->tid)
		return;
	/* Queue pairs 0 and 1 are for management. */
	if (!is_ours(ep, m) || (ep->state != ROCE_CONNECTING && !again) || m->qpn < 2) {
		/* Of an attempt that was given up: else the peer has it for a while. */
		reply(ep, m, ROCE_MAD_REJ);
		return;
	}
	c->remote_id = m->local_id;
	if (!again)
		roce_sock_from(ep, port_of_label(ep->flow_label));
	reply(ep, m, ROCE_MAD_RTU);
	if (again)
		return;
	roce_conn_stop(ep);
	roce_ep_up(ep, m);
}

/* The server's side takes less: another REQ, within the time of this attempt. */
static void narrower(struct roce_ep *ep)
{
	if (ep->mtu <= ROCE_MTU_LEAST) {
		fail(ep, -EMSGSIZE, "the server takes no path MTU that we can have");
		return;
	}
	ep->mtu /= 2;
	log_debug("%s: the server refuses the path MTU: %u is tried", ep->name, ep->mtu);
	roce_conn_stop(ep);
	roce_conn_start(ep);
}

static void on_rej(struct roce_ep *ep, const struct roce_mad *m)
{
	/* It did not hear in time that we know, or does not know us any more. */
	if (ep->state == ROCE_UP && is_ours(ep, m)) {
		log_debug("%s: the connection is rejected: reason %u", ep->name, m->reason);
		roce_ep_lost(ep, -ECONNRESET);
		return;
	}
	/* It may not have had a number for us yet. */
	if (ep->state != ROCE_CONNECTING || m->remote_id != ep->conn.local_id ||
		m->tid != ep->conn.tid)
		return;
	switch (m->reason) {
	case ROCE_REJ_BAD_SERVICE: /* what listens is NFS' matter */
		roce_ep_fail(ep, FAB_STEP_CONNECT, -ECONNREFUSED);
		break;
	case ROCE_REJ_NO_QP:
	case ROCE_REJ_NO_RESOURCES:
		fail(ep, -ECONNREFUSED,
			"the server's adapter has no room for another connection (REJ, reason %u)",
			m->reason);
		break;
	case ROCE_REJ_TIMEOUT:
		fail(ep, -ETIMEDOUT,
			"the server did not get what we sent, though its answers came: a firewall "
			"does not let UDP port 4791 pass to it?");
		break;
	case ROCE_REJ_MTU:
		narrower(ep);
		break;
	case ROCE_REJ_STALE:
		fail(ep, -ECONNRESET, "the server takes this for a connection of before");
		break;
	case ROCE_REJ_CONSUMER:
		fail(ep, -ECONNREFUSED,
			"the server's NFS refuses the connection: its log may say why");
		break;
	default:
		fail(ep, -ECONNREFUSED, "the server refuses the connection (REJ, reason %u)",
			m->reason);
	}
}

static void on_dreq(struct roce_ep *ep, const struct roce_mad *m)
{
	/* Before the REP is_ours() looks at our ID alone, which strangers may guess. */
	bool ours = ep->state == ROCE_UP && is_ours(ep, m) && m->qpn == ep->qpn;

	if (!ours && !is_past(ep, m))
		return;
	reply(ep, m, ROCE_MAD_DREP);
	if (ours)
		roce_ep_parted(ep);
	else
		ep->conn.dreq_tries = 0;
}

void roce_conn_received(struct roce_ep *ep, const struct roce_packet *p)
{
	struct roce_conn *c = &ep->conn;
	struct roce_mad m;

	if (p->opcode != ROCE_OP_UD_SEND_ONLY || p->qkey != ROCE_QKEY_GSI ||
		!roce_mad_get(p->payload, p->payload_len, &m))
		return;
	c->heard |= m.remote_id == c->local_id; /* not the connection before */
	switch (m.attr) {
	case ROCE_MAD_REP:
		on_rep(ep, &m);
		break;
	case ROCE_MAD_REJ:
		on_rej(ep, &m);
		break;
	case ROCE_MAD_MRA:
		if (ep->state == ROCE_CONNECTING && m.remote_id == c->local_id && m.tid == c->tid)
			reactor_timer_in(ep->r, &c->timer, fab_ack_ns(m.timeout) + REQ_NS);
		break;
	case ROCE_MAD_DREQ:
		on_dreq(ep, &m);
		break;
	case ROCE_MAD_DREP:
		if (is_past(ep, &m))
			c->dreq_tries = 0;
		break;
	case ROCE_MAD_REQ: /* nobody listens here */
	case ROCE_MAD_RTU:
		break;
	}
}
