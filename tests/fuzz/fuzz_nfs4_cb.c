/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The callback service: byte 0 chooses session and slots, then calls of the
 * server, each behind two bytes of length. Each is answered twice: the second
 * time, if it was taken, with the same bytes.
 */
#include <string.h>

#include "fuzz.h"
#include "nfs4_cb.h"
#include "rpc.h"

static bool is_in_flight(void *ctx, uint32_t slot, uint32_t seqid)
{
	return (slot ^ seqid) & 1;
}

static enum nfs4_status recall(void *ctx, const struct nfs4_stateid *sid, const struct nfs4_fh *fh)
{
	FUZZ_CHECK(fh->len >= 1 && fh->len <= NFS4_FHSIZE);
	fuzz_touch(sid, sizeof(*sid));
	fuzz_touch(fh->data, fh->len);
	return sid->seqid & 1 ? NFS4_OK : NFS4ERR_BAD_STATEID;
}

static void recall_any(void *ctx, uint32_t keep, bool read, bool write)
{
	FUZZ_CHECK(read || write);
}

static bool getattr(void *ctx, const struct nfs4_fh *fh, uint64_t *ret_change, uint64_t *ret_size)
{
	FUZZ_CHECK(fh->len >= 1 && fh->len <= NFS4_FHSIZE);
	*ret_change = *ret_size = 1;
	return fh->data[0] & 1;
}

static enum nfs4_status offload(
	void *ctx, const struct nfs4_stateid *id, const struct nfs4_offload_result *res)
{
	fuzz_touch(id, sizeof(*id));
	FUZZ_CHECK((unsigned int)res->committed <= FILE_SYNC4);
	fuzz_touch(&res->verf, sizeof(res->verf));
	return res->copied & 1 ? NFS4_OK : NFS4ERR_BAD_STATEID;
}

static const struct nfs4_cb_env env = {NULL, is_in_flight, recall, recall_any, getattr, offload};

static void one(struct nfs4_cb *cb, const uint8_t *msg, size_t len)
{
	uint8_t out[NFS4_CB_ANSWER_MAX], again[NFS4_CB_ANSWER_MAX];
	struct nfs4_cb before = *cb;
	size_t n = nfs4_cb_answer(cb, &env, msg, len, out), m;
	uint32_t xid, low, high, auth;
	bool taken = memcmp(before.slots, cb->slots, sizeof(cb->slots)) != 0;
	struct xdr_dec x;

	FUZZ_CHECK(n <= sizeof(out) && (n & 3) == 0);
	if (n == 0) {
		FUZZ_CHECK(!taken);
		return;
	}
	xdr_dec_init(&x, out, n);
	xid = xdr_get_u32(&x);
	xdr_dec_init(&x, out, n);
	if (rpc_decode_reply(&x, xid, &low, &high, &auth) == RPC_OK && xdr_dec_left(&x) > 0) {
		xdr_get_u32(&x);
		xdr_skip_opaque(&x, NFS4_CB_TAG_MAX);
		FUZZ_CHECK(xdr_get_u32(&x) <= NFS4_CB_OPS);
		FUZZ_CHECK(!x.failed);
	}
	for (uint32_t i = 0; i < NFS4_CB_SLOTS; i++)
		FUZZ_CHECK(cb->slots[i].len <= NFS4_CB_RES_MAX);
	FUZZ_CHECK(cb->lock_free_cnt <= NFS4_CB_OPS);
	cb->recall_slot = UINT32_MAX;
	before = *cb;
	m = nfs4_cb_answer(cb, &env, msg, len, again);
	FUZZ_CHECK(!taken || (m == n && memcmp(out, again, n) == 0));
	/* Told again it is not. */
	FUZZ_CHECK(!taken || cb->lock_free_cnt == 0);
	before.lock_free_cnt = 0;
	FUZZ_CHECK(!taken || memcmp(&before, cb, sizeof(before)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nfs4_sessionid id = {"session-of-ours"};
	static struct nfs4_cb cb;

	if (size < 1)
		return 0;
	memset(&cb, 0, sizeof(cb));
	cb.coming = data[0] & 1;
	if (!(data[0] & 2))
		nfs4_cb_open(&cb, &id, 1 + (data[0] >> 2 & 1), data[0] >> 3, 2 + (data[0] >> 5));
	data++;
	size--;
	while (size >= 2) {
		size_t len = (size_t)data[0] << 8 | data[1];

		data += 2;
		size -= 2;
		if (len > size)
			len = size;
		one(&cb, data, len);
		data += len;
		size -= len;
	}
	return 0;
}
