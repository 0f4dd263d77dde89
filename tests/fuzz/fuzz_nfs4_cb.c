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

/* Every slot bears a call, whose number is the slot's. */
static struct nfs4_slots fore;

static void fly(void)
{
	uint32_t seqid;

	nfs4_slot_init(&fore, NFS4_SLOT_MAX, NFS4_SLOT_MAX);
	for (uint32_t i = 0; i < NFS4_SLOT_MAX; i++)
		fore.seqid[i] = i;
	while (nfs4_slot_get(&fore, &seqid) != NFS4_SLOT_NONE)
		;
}

static enum nfs4_status execute(struct nfs4_cb_op *op)
{
	switch (op->kind) {
	case NFS4_CB_RECALL:
		FUZZ_CHECK(op->recall.fh.len >= 1 && op->recall.fh.len <= NFS4_FHSIZE);
		fuzz_touch(&op->recall.stateid, sizeof(op->recall.stateid));
		fuzz_touch(op->recall.fh.data, op->recall.fh.len);
		return op->recall.stateid.seqid & 1 ? NFS4_OK : NFS4ERR_BAD_STATEID;
	case NFS4_CB_RECALL_ANY:
		FUZZ_CHECK(op->recall_any.read || op->recall_any.write);
		return NFS4_OK;
	case NFS4_CB_GETATTR:
		FUZZ_CHECK(op->getattr.fh.len >= 1 && op->getattr.fh.len <= NFS4_FHSIZE);
		op->change = op->size = 1;
		return op->getattr.fh.data[0] & 1 ? NFS4_OK : NFS4ERR_BADHANDLE;
	case NFS4_CB_OFFLOAD:
		fuzz_touch(&op->offload.id, sizeof(op->offload.id));
		FUZZ_CHECK((unsigned int)op->offload.res.committed <= FILE_SYNC4);
		fuzz_touch(&op->offload.res.verf, sizeof(op->offload.res.verf));
		return op->offload.res.copied & 1 ? NFS4_OK : NFS4ERR_BAD_STATEID;
	}
	FUZZ_CHECK(!"no such operation");
	return NFS4ERR_SERVERFAULT;
}

static size_t answer(struct nfs4_cb *cb, const uint8_t *msg, size_t len, uint8_t *out)
{
	struct nfs4_cb_run run;
	struct nfs4_cb_op *op = nfs4_cb_begin(&run, cb, &fore, msg, len, out);

	while (op)
		op = nfs4_cb_next(&run, execute(op));
	return run.len;
}

static void one(struct nfs4_cb *cb, const uint8_t *msg, size_t len)
{
	uint8_t out[NFS4_CB_ANSWER_MAX], again[NFS4_CB_ANSWER_MAX];
	struct nfs4_cb before = *cb;
	size_t n = answer(cb, msg, len, out), m;
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
	m = answer(cb, msg, len, again);
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
	fly();
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
