/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets on their way out. They are collected, and go to the socket together: one system call for
 * many. Payload is not copied before the kernel does it, so all goes out before memory may change:
 * at the end of each callback of the reactor and of each call of the endpoint's owner.
 */
#include "roce_int.h"

#include <errno.h>
#include <string.h>

#include "log.h"

#define UDP_LEN 8u

bool roce_tx_has_room(const struct roce_ep *ep)
{
	return ep->tx.cnt < ROCE_TX_BATCH;
}

/* Of one packet: pad and ICRC behind the payload. */
static size_t put_tail(struct roce_ep *ep, const struct iovec *iov, unsigned int cnt, uint8_t *tail,
	uint32_t payload_len)
{
	uint32_t pad = roce_wire_pad(payload_len);
	size_t udp_len = UDP_LEN + iov[0].iov_len + payload_len + pad + ROCE_ICRC_LEN;
	const uint8_t *head = iov[0].iov_base;
	uint32_t crc = roce_icrc_begin(&ep->out, roce_sock_port(ep), udp_len, head);

	crc = roce_icrc_add(crc, head + ROCE_BTH_LEN, iov[0].iov_len - ROCE_BTH_LEN);
	for (unsigned int i = 1; i < cnt; i++)
		crc = roce_icrc_add(crc, iov[i].iov_base, iov[i].iov_len);
	memset(tail, 0, pad);
	crc = roce_icrc_add(crc, tail, pad);
	roce_icrc_put(tail + pad, crc);
	return pad + ROCE_ICRC_LEN;
}

void roce_tx_put(struct roce_ep *ep, const struct roce_packet *p, const struct iovec *pieces,
	unsigned int cnt, const struct roce_tx_from *from)
{
	struct roce_tx *tx = &ep->tx;
	unsigned int i = tx->cnt;
	struct iovec *iov = tx->iov[i];

	/* One that nobody misses is not waited for. */
	if (!roce_tx_has_room(ep) && !roce_tx_flush(ep))
		return;
	i = tx->cnt++;
	iov = tx->iov[i];
	iov[0] = (struct iovec){tx->heads[i], roce_wire_encode(p, tx->heads[i])};
	for (unsigned int k = 0; k < cnt; k++)
		iov[1 + k] = pieces[k];
	iov[1 + cnt] = (struct iovec){
		tx->tails[i], put_tail(ep, iov, 1 + cnt, tx->tails[i], p->payload_len)};
	tx->from[i] = from ? *from : (struct roce_tx_from){.psn = UINT32_MAX};
	tx->msgs[i].msg_hdr = (struct msghdr){
		.msg_name = &ep->to,
		.msg_namelen =
			ep->out.is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
		.msg_iov = iov,
		.msg_iovlen = 2 + cnt,
	};
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
	(void)roce_tx_flush(ep);
}

/* Packets from the i-th on did not go out; of each kind the first one counts. */
static void take_back(struct roce_ep *ep, unsigned int i)
{
	bool sends = false, reads = false;

	for (; i < ep->tx.cnt; i++) {
		const struct roce_tx_from *from = &ep->tx.from[i];

		if (from->psn == UINT32_MAX || (from->is_send ? sends : reads))
			continue;
		if (from->is_send) {
			sends = true;
			roce_send_back(ep, from->psn);
		} else {
			reads = true;
			roce_serve_back(ep, from->psn);
		}
	}
}

bool roce_tx_flush(struct roce_ep *ep)
{
	struct roce_tx *tx = &ep->tx;
	unsigned int done = 0;
	bool full = false;

	while (done < tx->cnt && !full) {
		int n = roce_sock_send(ep, tx->msgs + done, tx->cnt - done);

		if (n > 0) {
			done += (unsigned int)n;
		} else if (n == -EAGAIN || n == -ENOBUFS) {
			full = true;
		} else {
			/* No route for a moment, or a path that takes less: as if it were lost. */
			log_debug("%s: a packet cannot be sent: %s", ep->name, strerror(-n));
			done++;
		}
	}
	if (full) {
		take_back(ep, done);
		roce_sock_wait(ep);
	}
	tx->cnt = 0;
	return !full;
}

void roce_tx_go(struct roce_ep *ep)
{
	if (ep->delivering)
		return;
	if (ep->state == ROCE_UP) {
		roce_serve_go(ep);
		roce_send_go(ep);
	}
	(void)roce_tx_flush(ep);
}
