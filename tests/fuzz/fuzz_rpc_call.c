/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a call of the server: what was decoded and encoded again decodes to the same. */
#include "fuzz.h"

#include <string.h>

#include "rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_callhdr h, back;
	struct xdr_dec dec;
	struct xdr_enc enc;
	uint8_t out[1024];

	xdr_dec_init(&dec, data, size);
	if (rpc_decode_call(&dec, &h))
		return 0;
	FUZZ_CHECK(!dec.failed && h.cred.gids_cnt <= RPC_MAX_GROUPS);
	xdr_enc_init(&enc, out, sizeof(out));
	rpc_encode_call(&enc, &h, "machine");
	FUZZ_CHECK(!enc.failed);
	xdr_dec_init(&dec, out, xdr_enc_len(&enc));
	FUZZ_CHECK(rpc_decode_call(&dec, &back) == 0);
	FUZZ_CHECK(back.xid == h.xid && back.prog == h.prog && back.vers == h.vers);
	if (h.cred.flavor == RPC_AUTH_SYS)
		FUZZ_CHECK(memcmp(&back.cred, &h.cred, sizeof(h.cred)) == 0);
	return 0;
}
