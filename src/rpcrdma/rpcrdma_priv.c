/* SPDX-License-Identifier: BSD-3-Clause */
/* The private data of RFC 8797, with which both sides of a connection tell their limits. */
#include "rpcrdma_int.h"

static uint8_t size_byte(uint32_t bytes)
{
	return (uint8_t)((bytes >> 10) - 1);
}

size_t rpcrdma_priv_encode(const struct rpcrdma *x, uint8_t priv[RPCRDMA_PRIV_LEN])
{
	struct xdr_enc enc;

	xdr_enc_init(&enc, priv, RPCRDMA_PRIV_LEN);
	xdr_put_u32(&enc, RPCRDMA_PRIV_MAGIC);
	priv[4] = RPCRDMA_PRIV_VERSION;
	/* with standing registrations an invalidation would break the connection */
	priv[5] = x->memreg == RPCRDMA_MEMREG_MW ? RPCRDMA_PRIV_F_INV : 0;
	priv[6] = size_byte(x->conf.inline_size);
	priv[7] = size_byte(x->conf.inline_size);
	return RPCRDMA_PRIV_LEN;
}

bool rpcrdma_priv_decode(const uint8_t *priv, size_t len, uint32_t *ret_send, uint32_t *ret_recv)
{
	struct xdr_dec dec;

	xdr_dec_init(&dec, priv, priv ? len : 0);
	/* WIRE: the CM pads it; another magic or version means: as if there were none */
	if (!priv || len < RPCRDMA_PRIV_LEN || xdr_get_u32(&dec) != RPCRDMA_PRIV_MAGIC ||
		priv[4] != RPCRDMA_PRIV_VERSION)
		return false;
	*ret_send = (priv[6] + 1u) << 10;
	*ret_recv = (priv[7] + 1u) << 10;
	return true;
}

void rpcrdma_priv_apply(struct rpcrdma *x, const uint8_t *priv, size_t len)
{
	uint32_t send = RPCRDMA_INLINE_DEFAULT, recv = RPCRDMA_INLINE_DEFAULT;

	(void)rpcrdma_priv_decode(priv, len, &recv, &send); /* we receive what it sends */
	send = send < x->conf.inline_size ? send : x->conf.inline_size;
	recv = recv < x->conf.inline_size ? recv : x->conf.inline_size;
	if (send != x->limits.send_max || recv != x->limits.recv_max || x->limits_seq == 0)
		x->limits_seq++;
	x->limits.send_max = send;
	x->limits.recv_max = recv;
}
