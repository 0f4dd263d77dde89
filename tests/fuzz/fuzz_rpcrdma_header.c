/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input is a transport header and what follows it: counts stay in bounds,
 * what was decoded encodes to the same bytes, chunks never carry more than
 * their room.
 */
#include "fuzz.h"

#include <string.h>

#include "rpcrdma_chunk.h"

static void check_chunk(const struct rpcrdma_chunk *c)
{
	static const uint32_t rooms[] = {0, 1, 4096, 65537, 1048576, UINT32_MAX};
	static const uint32_t max_segs[] = {0, 1, 4096, 65536};

	FUZZ_CHECK(c->cnt <= RPCRDMA_MAX_SEGS);
	for (unsigned int i = 0; i < sizeof(rooms) / sizeof(*rooms); i++)
		for (unsigned int j = 0; j < sizeof(max_segs) / sizeof(*max_segs); j++) {
			int64_t got = rpcrdma_chunk_got(c, rooms[i], max_segs[j]);

			FUZZ_CHECK(got < 0 || (got <= rooms[i] &&
						      (uint64_t)got == rpcrdma_hdr_chunk_bytes(c)));
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[4096];
	struct rpcrdma_hdr h;
	struct xdr_dec dec;
	struct xdr_enc enc;
	size_t len;

	xdr_dec_init(&dec, data, size);
	if (rpcrdma_hdr_decode(&dec, &h))
		return 0;
	FUZZ_CHECK(!dec.failed && dec.p >= data && dec.p <= data + size);
	fuzz_touch(dec.p, xdr_dec_left(&dec));
	if (h.proc == RDMA_MSG || h.proc == RDMA_NOMSG || h.proc == RDMA_MSGP) {
		FUZZ_CHECK(h.read_cnt <= RPCRDMA_MAX_READ_SEGS);
		FUZZ_CHECK(h.write_cnt <= RPCRDMA_MAX_RESULTS);
		for (uint32_t i = 0; i < h.write_cnt; i++)
			check_chunk(&h.writes[i]);
		if (h.has_reply)
			check_chunk(&h.reply);
	}
	if (h.proc == RDMA_MSGP) /* whose two hints are not kept */
		return 0;
	len = xdr_dec_pos(&dec);
	xdr_enc_init(&enc, out, sizeof(out));
	rpcrdma_hdr_encode(&enc, &h);
	FUZZ_CHECK(!enc.failed && xdr_enc_len(&enc) == len && memcmp(out, data, len) == 0);
	return 0;
}
