/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is an RPC reply to the call whose XID is its first word. */
#include "fuzz.h"

#include "rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t low, high, auth, xid;
	enum rpc_result result;
	struct xdr_dec dec;

	xdr_dec_init(&dec, data, size);
	xid = xdr_get_u32(&dec);
	xdr_dec_init(&dec, data, size);
	result = rpc_decode_reply(&dec, xid, &low, &high, &auth);
	FUZZ_CHECK(rpc_result_name(result)[0] != '?');
	FUZZ_CHECK(result != RPC_OK || (!dec.failed && xdr_dec_pos(&dec) >= RPC_REPLY_HDR));
	FUZZ_CHECK(dec.p >= data && dec.p <= data + size);
	FUZZ_CHECK(result == RPC_PROG_MISMATCH || result == RPC_BADREPLY || (low | high) == 0);
	FUZZ_CHECK(result == RPC_AUTH_ERROR || result == RPC_BADREPLY || auth == 0);
	return 0;
}
