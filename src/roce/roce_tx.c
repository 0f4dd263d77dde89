/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets on their way out. They are collected, and go to the socket together: one system call for
 * many. Payload is not copied before the kernel does it, so all goes out before memory may change:
 * at the end of each callback of the reactor and of each call of the endpoint's owner. A Send that
 * waits for the end of a turn is no packet yet.
 */
#include "roce_int.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "log.h"
#include "roce_read.h"

#define UDP_LEN      8u
#define TRAIN_BYTES  (65535u - 40u - UDP_LEN) /* of a datagram, before it is cut */
#define TRAIN_LEAST  4u /* packets of a Read: the first and the last one are no part of it */
#define TRAINS_LOST  8u /* of these, before ROCE_TRAINS_TRIES, unless they are trusted */
#define TRAINS_ALONE 8u /* so many lost ones for each that was lost one by one */

bool roce_tx_has_room(const struct roce_ep *ep)
{
	return ep->tx.cnt < ROCE_TX_BATCH && ep->tx.iov_cnt + ROCE_SGES + 2 <= ROCE_TX_IOV;
}

void roce_tx_put(struct roce_ep *ep, const struct roce_packet *p, const struct iovec *pieces,
	unsigned int cnt, const struct roce_tx_from *from)
{
	struct roce_tx *tx = &ep->tx;
	struct roce_tx_packet *k;
	struct iovec *iov;
	uint32_t pad = roce_wire_pad(p->payload_len);

	/* One that nobody misses is not waited for. */
	if (!roce_tx_has_room(ep) && !roce_tx_flush(ep))
		return;
	k = &tx->packets[tx->cnt++];
	iov = &tx->iov[tx->iov_cnt];
	iov[0] = (struct iovec){k->head, roce_wire_encode(p, k->head)};
	for (unsigned int i = 0; i < cnt; i++)
		iov[1 + i] = pieces[i];
	iov[1 + cnt] = (struct iovec){k->tail, pad + ROCE_ICRC_LEN};
	memset(k->tail, 0, pad);
	k->iov_at = tx->iov_cnt;
	k->iov_cnt = 2 + cnt;
	k->payload_len = p->payload_len;
	k->len = iov[0].iov_len + p->payload_len + pad + ROCE_ICRC_LEN;
	k->from = from ? *from : (struct roce_tx_from){.psn = UINT32_MAX};
	tx->iov_cnt += k->iov_cnt;
}

/* ---- trains ---- */

/* The last packet may be shorter than the others: an acknowledgement has no datagram of its own. */
static bool may_follow(const struct roce_tx_packet *k, size_t bytes)
{
	return k->head[0] == ROCE_OP_ACK && k->head[ROCE_BTH_LEN] == ROCE_AETH_ACK &&
	       bytes + k->len <= TRAIN_BYTES;
}

/*
 * How many packets from the i-th on go out as one datagram, which the kernel cuts: full ones of
 * answers of Reads, as long as each other. That saves most of what a packet costs. Their
 * Identifications count up from 0 (Linux); what an adapter that cuts them itself does is not known,
 * so it is seen at first whether the peer gets them at all.
 */
static unsigned int train_len(const struct roce_ep *ep, unsigned int i)
{
	const struct roce_tx *tx = &ep->tx;
	const struct roce_tx_packet *first = &tx->packets[i];
	unsigned int n = 1;
	size_t bytes = first->len;

	if (tx->trains.state == ROCE_TRAINS_OFF || first->payload_len != ep->mtu)
		return 1;
	while (i + n < tx->cnt && tx->packets[i + n].len == first->len &&
		bytes + first->len <= TRAIN_BYTES) {
		bytes += first->len;
		n++;
	}
	for (unsigned int k = i; k < i + n; k++)
		if (tx->packets[k].from.psn == UINT32_MAX || tx->packets[k].from.is_send ||
			tx->packets[k].from.alone)
			return 1;
	return n + (i + n < tx->cnt && may_follow(&tx->packets[i + n], bytes));
}

static unsigned int tries(const struct roce_trains *t)
{
	return t->psn_cnt + t->lost;
}

/* Packets that go out one by one after a loss arrive, nearly always: else the network loses both.
 */
static bool are_lost(const struct roce_trains *t)
{
	return t->lost >= t->psn_cnt && TRAINS_ALONE * t->alone_lost <= t->lost;
}

static void give_up(struct roce_ep *ep)
{
	ep->tx.trains.state = ROCE_TRAINS_OFF;
	log_info_limited(
		"%s: packets that the kernel cuts do not get there (UDP_SEGMENT): done without",
		ep->name);
}

/* From this PSN on so many packets go out in a train, or in several of one Read. */
static void note_try(struct roce_ep *ep, uint32_t psn, uint32_t packets)
{
	struct roce_trains *t = &ep->tx.trains;
	uint32_t end = roce_wire_psn_add(psn, packets);

	if (t->state == ROCE_TRAINS_OFF)
		return;
	if (tries(t) == ROCE_TRAINS_TRIES) {
		if (are_lost(t)) {
			give_up(ep);
			return;
		}
		*t = (struct roce_trains){.state = ROCE_TRAINS_TRUSTED};
	}
	if (tries(t) == 0 || roce_wire_psn_diff(psn, t->first) < 0)
		t->first = psn;
	if (tries(t) == 0 || roce_wire_psn_diff(end, t->end) > 0)
		t->end = end;
	t->psns[t->psn_cnt++] = psn;
}

/* The first packet of a long one goes out by itself, as it is longer than those behind it. */
void roce_tx_read(struct roce_ep *ep, uint32_t psn, uint32_t packets)
{
	ep->tx.trains.goes_back = false;
	if (packets >= TRAIN_LEAST)
		note_try(ep, roce_wire_psn_add(psn, 1), packets - 1);
}

static bool is_in(uint32_t psn, uint32_t first, uint32_t end)
{
	return roce_wire_psn_diff(psn, first) >= 0 && roce_wire_psn_diff(psn, end) < 0;
}

/*
 * Trains that begin in [psn, end) go out once more. Where no train arrives the first packet of one
 * is missed; a network that loses some packets seldom picks that one. All that is behind it is
 * asked for with it: of those nothing is known.
 */
static void forget_tries(struct roce_trains *t, uint32_t psn, uint32_t end, bool is_behind)
{
	for (unsigned int i = t->psn_cnt; i-- > 0;) {
		if (!is_in(t->psns[i], psn, end))
			continue;
		if (t->psns[i] == psn && !is_behind)
			t->lost++;
		t->psns[i] = t->psns[--t->psn_cnt];
	}
}

void roce_tx_lost(struct roce_ep *ep, uint32_t psn, uint32_t packets)
{
	struct roce_trains *t = &ep->tx.trains;
	uint32_t end = roce_wire_psn_add(psn, packets);
	bool is_behind = t->goes_back && roce_wire_psn_diff(psn, t->alone_end) >= 0;

	if (t->state == ROCE_TRAINS_OFF || tries(t) == 0 || !is_in(psn, t->first, t->end))
		return;
	if (t->lost > 0 && is_in(psn, t->alone, t->alone_end))
		t->alone_lost++;
	forget_tries(t, psn, end, is_behind);
	if (!is_behind)
		t->alone = psn;
	t->alone_end = end;
	t->goes_back = true;
	if (t->state == ROCE_TRAINS_TRIED && t->lost >= TRAINS_LOST && are_lost(t))
		give_up(ep);
}

/* ---- out ---- */

/* ICRC behind the pad. */
static void seal(const struct roce_ep *ep, struct roce_tx_packet *k, uint16_t id)
{
	const struct iovec *iov = &ep->tx.iov[k->iov_at];
	struct iovec tail = iov[k->iov_cnt - 1];
	size_t pad = tail.iov_len - ROCE_ICRC_LEN;
	uint32_t crc = roce_icrc_begin(
		&ep->out, id, roce_sock_port(ep), UDP_LEN + k->len, iov[0].iov_base);

	k->id = id;
	crc = roce_icrc_add(crc, k->head + ROCE_BTH_LEN, iov[0].iov_len - ROCE_BTH_LEN);
	for (unsigned int i = 1; i + 1 < k->iov_cnt; i++)
		crc = roce_icrc_add(crc, iov[i].iov_base, iov[i].iov_len);
	crc = roce_icrc_add(crc, tail.iov_base, pad);
	roce_icrc_put((uint8_t *)tail.iov_base + pad, crc);
}

struct out {
	struct mmsghdr msgs[ROCE_TX_BATCH];
	unsigned int packets[ROCE_TX_BATCH]; /* of each */
	unsigned int cnt;
	bool trains;
	_Alignas(struct cmsghdr) uint8_t control[ROCE_TX_BATCH][CMSG_SPACE(sizeof(uint16_t))];
};

static void cut_here(struct msghdr *m, void *control, size_t control_len, size_t len)
{
	uint16_t segment = (uint16_t)len;
	struct cmsghdr *c;

	m->msg_control = control;
	m->msg_controllen = control_len;
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(c), &segment, sizeof(segment));
}

/* Messages of the packets from the i-th on. */
static void put_together(struct roce_ep *ep, unsigned int i, struct out *out)
{
	struct roce_tx *tx = &ep->tx;

	out->cnt = 0;
	out->trains = false;
	while (i < tx->cnt) {
		unsigned int n = train_len(ep, i), last = i + n - 1;
		struct msghdr *m = &out->msgs[out->cnt].msg_hdr;

		for (unsigned int k = 0; k < n; k++)
			seal(ep, &tx->packets[i + k], (uint16_t)(ep->out.is_v6 ? 0 : k));
		*m = (struct msghdr){.msg_name = &ep->to,
			.msg_namelen = ep->out.is_v6 ? sizeof(struct sockaddr_in6)
						     : sizeof(struct sockaddr_in),
			.msg_iov = &tx->iov[tx->packets[i].iov_at],
			.msg_iovlen = tx->packets[last].iov_at + tx->packets[last].iov_cnt -
				      tx->packets[i].iov_at};
		if (n > 1) {
			cut_here(m, out->control[out->cnt], sizeof(out->control[0]),
				tx->packets[i].len);
			out->trains = true;
		}
		out->packets[out->cnt++] = n;
		i += n;
	}
}

void roce_tx_mad(struct roce_ep *ep, const uint8_t mad[ROCE_MAD_LEN])
{
	const struct roce_packet p = {.opcode = ROCE_OP_UD_SEND_ONLY,
		.qpn = ROCE_QP_GSI,
		.psn = roce_key_random() & ROCE_PSN_MASK,
		.qkey = ROCE_QKEY_GSI,
		.src_qpn = ROCE_QP_GSI,
		.payload_len = ROCE_MAD_LEN};
	const struct iovec piece = {(void *)(uintptr_t)mad, ROCE_MAD_LEN};

	roce_tx_put(ep, &p, &piece, 1, NULL);
	ep->tx.has_mad = true;
	(void)roce_tx_flush(ep);
}

/*
 * Packets from the i-th on did not go out; of each kind the first one counts. Nobody misses a CNP
 * or a datagram of the CM.
 */
static void take_back(struct roce_ep *ep, unsigned int i)
{
	bool sends = false, reads = false;

	for (; i < ep->tx.cnt; i++) {
		const struct roce_tx_packet *k = &ep->tx.packets[i];
		const struct roce_tx_from *from = &k->from;

		if (k->head[0] == ROCE_OP_ACK)
			roce_serve_answer_back(ep, k->head[ROCE_BTH_LEN]);
		if (from->psn == UINT32_MAX || (from->is_send ? sends : reads))
			continue;
		if (from->is_send) {
			sends = true;
			roce_send_back(ep, from->psn);
		} else {
			reads = true;
			roce_read_back(ep, from->psn);
		}
	}
}

/* UDP_SEGMENT is not known, or not for this socket or device. */
static bool is_about_trains(int err)
{
	return err == -EINVAL || err == -EIO || err == -EMSGSIZE || err == -EOPNOTSUPP;
}

/* So many messages did, from the i-th packet on. Trains in the midst of a Read are noted before. */
static void note_sent(struct roce_ep *ep, unsigned int i, const struct out *out, unsigned int cnt)
{
	for (unsigned int m = 0; m < cnt; i += out->packets[m++]) {
		const struct roce_tx_packet *k = &ep->tx.packets[i];

		if (out->packets[m] > 1 && k->head[0] != ROCE_OP_READ_RESP_MIDDLE)
			note_try(ep, k->from.psn, out->packets[m]);
	}
}

/* Returns how many packets went out, or can never. 0: the socket is full. */
static unsigned int send_some(struct roce_ep *ep, unsigned int done)
{
	struct roce_tx *tx = &ep->tx;
	unsigned int sent = 0;
	struct out out;
	int err, n;

	put_together(ep, done, &out);
	err = out.trains ? roce_sock_train(ep) : 0;
	n = err ? err : roce_sock_send(ep, out.msgs, out.cnt, out.trains);
	for (int m = 0; m < n; m++)
		sent += out.packets[m];
	if (n > 0)
		note_sent(ep, done, &out, (unsigned int)n);
	if (sent > 0 && (capture_is_on(ep->conf.capture) || tx->has_mad))
		roce_cap_sent(ep, roce_sock_port(ep), done, sent);
	if (n >= 0 || (!err && (n == -EAGAIN || n == -ENOBUFS)))
		return sent;
	if (err || (out.packets[0] > 1 && is_about_trains(n))) {
		if (n != -EMSGSIZE) /* the path may take less: that is told by the next one */
			log_info_limited("%s: packets are not cut by the kernel: %s", ep->name,
				strerror(-n));
		tx->trains.state = ROCE_TRAINS_OFF;
		return send_some(ep, done);
	}
	/* No route for a moment: as if it were lost. */
	log_debug("%s: a packet cannot be sent: %s", ep->name, strerror(-n));
	roce_conn_send_failed(ep, n);
	if (n == -EMSGSIZE)
		roce_ep_path_changed(ep);
	return out.packets[0];
}

bool roce_tx_flush(struct roce_ep *ep)
{
	struct roce_tx *tx = &ep->tx;
	unsigned int done = 0, n = 1;

	while (done < tx->cnt && n > 0) {
		n = send_some(ep, done);
		done += n;
	}
	if (n == 0) {
		take_back(ep, done);
		roce_sock_wait(ep);
	}
	roce_read_out(&ep->resp);
	tx->cnt = tx->iov_cnt = 0;
	tx->has_mad = false;
	return n > 0;
}

void roce_tx_go(struct roce_ep *ep)
{
	if (ep->delivering)
		return;
	if (ep->state == ROCE_UP)
		roce_serve_go(ep);
	/* Unless that was the end. */
	if (ep->state == ROCE_UP)
		roce_send_go(ep);
	(void)roce_tx_flush(ep);
}

/* ---- turns of the reactor ---- */

/*
 * A Send goes out at once. More in the same turn wait until it is over, and go together: one system
 * call, and one acknowledgement for all of them.
 */
void roce_tx_post(struct roce_ep *ep)
{
	if (ep->delivering || ep->tx.posted++ > 0)
		return;
	roce_serve_ack(ep);
	roce_send_go(ep);
	(void)roce_tx_flush(ep);
}

static bool on_turn(struct reactor_spin *s)
{
	struct roce_ep *ep = container_of(s, struct roce_ep, tx.turns);
	bool waits = ep->tx.posted > 1 || ep->resp.ack_now;

	ep->tx.posted = 0;
	if (waits)
		roce_tx_go(ep);
	ep->resp.ack_now = false;
	return waits;
}

/* One more look at whether there is work, before an acknowledgement goes out by itself. */
static bool before_sleep(struct reactor_spin *s)
{
	struct roce_ep *ep = container_of(s, struct roce_ep, tx.turns);

	return ep->tx.posted <= 1 && !roce_serve_ack_now(ep);
}

void roce_tx_begin(struct roce_ep *ep)
{
	ep->tx.posted = 0;
	ep->tx.turns = (struct reactor_spin){.poll = on_turn, .arm = before_sleep};
	reactor_spin_add(ep->r, &ep->tx.turns);
}

void roce_tx_end(struct roce_ep *ep)
{
	reactor_spin_del(&ep->tx.turns);
}
