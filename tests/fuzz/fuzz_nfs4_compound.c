/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * COMPOUND results as the session engine walks them: byte 0 chooses what was
 * sent, the rest is the reply after the RPC header.
 */
#include <string.h>

#include "fuzz.h"
#include "nfs4_session_int.h"

static void sequence(struct nfs4_compound *c, const uint8_t *ops, size_t cnt)
{
	struct nfs4_sequence seq = {0};

	if (!nfs4_compound_get_sequence(c, &seq)) {
		FUZZ_CHECK(c->dec.failed || c->status != NFS4_OK);
		return;
	}
	/* Any operations without a body of results. */
	for (size_t i = 0; i < cnt; i++) {
		uint32_t left = c->op_cnt;
		bool ok = nfs4_compound_void(c, ops[i] % 76u);

		FUZZ_CHECK(!ok || !c->dec.failed);
		FUZZ_CHECK(!ok || c->op_cnt + 1 == left);
		FUZZ_CHECK(ok || c->dec.failed || c->status != NFS4_OK);
	}
}

static void exchange(struct nfs4_compound *c)
{
	struct nfs4_exchange_res res;

	memset(&res, 0, sizeof(res));
	if (!nfs4_exchange_get(c, &res))
		FUZZ_CHECK(c->dec.failed || c->status != NFS4_OK);
	FUZZ_CHECK(res.major_len <= NFS4_OPAQUE_LIMIT && res.scope_len <= NFS4_OPAQUE_LIMIT);
}

static void create(struct nfs4_compound *c)
{
	struct nfs4_create_session asked, got = {0};

	nfs4_session_xdr_ask(&asked, 64, 1u << 20);
	asked.sequence = 1;
	if (!nfs4_session_xdr_get_create(c, &got))
		FUZZ_CHECK(c->dec.failed || c->status != NFS4_OK);
	else if (!nfs4_session_xdr_check(&asked, &got))
		FUZZ_CHECK(got.fore.maxreqs > 0);
}

/* A slot table under a server's answers: what it says may only limit us. */
static void slots(const uint8_t *p, size_t len)
{
	static struct nfs4_slots t;
	uint32_t seqid;

	nfs4_slot_init(&t, len ? p[0] + 1u : 1, 300);
	for (size_t i = 0; i + 2 < len; i += 3) {
		uint32_t slot = nfs4_slot_get(&t, &seqid);

		FUZZ_CHECK(slot == NFS4_SLOT_NONE || slot < t.limit);
		if (slot != NFS4_SLOT_NONE && p[i] % 4 == 0)
			nfs4_slot_done(&t, slot);
		else if (slot != NFS4_SLOT_NONE && p[i] % 4 == 1)
			nfs4_slot_cancel(&t, slot);
		else if (slot != NFS4_SLOT_NONE && p[i] % 4 == 2)
			nfs4_slot_orphan(&t, slot);
		nfs4_slot_set_highest(&t, p[i + 1] == 255 ? UINT32_MAX : p[i + 1],
			p[i + 2] == 255 ? UINT32_MAX : p[i + 2]);
		FUZZ_CHECK(t.limit >= 1 && t.limit <= t.cnt);
		FUZZ_CHECK(nfs4_slot_highest(&t) < t.cnt);
		FUZZ_CHECK(t.busy_cnt + t.orphan_cnt <= t.cnt);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nfs4_sessionid id;
	struct nfs4_compound c = {0};
	size_t ops;
	uint32_t dir;

	if (size < 2)
		return 0;
	ops = data[0] % 5 == 0 ? data[1] % 50u : 0;
	if (size < 2 + ops)
		return 0;
	if (data[0] % 5 == 4) {
		slots(data + 1, size - 1);
		return 0;
	}
	xdr_dec_init(&c.dec, data + 2 + ops, size - 2 - ops);
	if (!nfs4_compound_open(&c, NULL)) {
		FUZZ_CHECK(c.dec.failed);
		return 0;
	}
	FUZZ_CHECK(c.op_cnt <= NFS4_MAX_OPS);
	if (data[0] % 5 == 0)
		sequence(&c, data + 2, ops);
	else if (data[0] % 5 == 1)
		exchange(&c);
	else if (data[0] % 5 == 2)
		create(&c);
	else if (!nfs4_session_xdr_get_bind(&c, &id, &dir))
		FUZZ_CHECK(c.dec.failed || c.status != NFS4_OK);
	FUZZ_CHECK(nfs4_compound_close(&c) == !c.dec.failed);
	return 0;
}
