/* SPDX-License-Identifier: BSD-3-Clause */
/* The callback service: RPC errors, CB_SEQUENCE's slots, what each operation is answered with. */
#include <criterion/criterion.h>
#include <string.h>

#include "nfs4_cb.h"
#include "nfs4_lock.h"
#include "rpc.h"

static struct nfs4_cb cb;
static const struct nfs4_sessionid id = {"session-of-ours"};
static uint8_t msg[4096], out[NFS4_CB_ANSWER_MAX];
static struct xdr_enc e;
static size_t out_len;

/* ---- what the service asks about ---- */

static struct {
	unsigned int recalls, anys, getattrs;
	struct nfs4_stateid sid;
	struct nfs4_fh fh;
	enum nfs4_status status;
	uint32_t keep;
	bool read, write, known;
	unsigned int offloads;
	struct nfs4_offload_result res;
} asked;

static struct nfs4_slots fore; /* of our own calls */

static enum nfs4_status execute(struct nfs4_cb_op *op)
{
	switch (op->kind) {
	case NFS4_CB_RECALL:
		asked.recalls++;
		asked.sid = op->recall.stateid;
		asked.fh = op->recall.fh;
		return asked.status;
	case NFS4_CB_RECALL_ANY:
		asked.anys++;
		asked.keep = op->recall_any.keep;
		asked.read = op->recall_any.read;
		asked.write = op->recall_any.write;
		return NFS4_OK;
	case NFS4_CB_GETATTR:
		asked.getattrs++;
		asked.fh = op->getattr.fh;
		op->change = 0x1122334455667788;
		op->size = 0x99aabbccddeeff00;
		return asked.known ? NFS4_OK : NFS4ERR_BADHANDLE;
	case NFS4_CB_OFFLOAD:
		asked.offloads++;
		asked.sid = op->offload.id;
		asked.res = op->offload.res;
		return asked.status;
	}
	cr_assert_fail("no such operation");
	return NFS4ERR_SERVERFAULT;
}

/* Length of the answer in `out`; 0: none. */
static size_t answer_to(size_t len)
{
	struct nfs4_cb_run run;
	struct nfs4_cb_op *op = nfs4_cb_begin(&run, &cb, &fore, msg, len, out);

	while (op)
		op = nfs4_cb_next(&run, execute(op));
	return run.len;
}

static void begin(uint32_t prog, uint32_t vers, uint32_t proc)
{
	struct rpc_callhdr h = {.xid = 0x77, .prog = prog, .vers = vers, .proc = proc};

	xdr_enc_init(&e, msg, sizeof(msg));
	rpc_encode_call(&e, &h, "server");
}

static void compound(const char *tag, uint32_t minor, uint32_t cnt)
{
	begin(NFS4_CB_PROGRAM, 1, NFS4_CB_PROC_COMPOUND);
	xdr_put_opaque(&e, tag, strlen(tag));
	xdr_put_u32(&e, minor);
	xdr_put_u32(&e, 0);
	xdr_put_u32(&e, cnt);
}

static bool referring; /* the lists follow, as the test writes them */

static void sequence(uint32_t seqid, uint32_t slot)
{
	xdr_put_u32(&e, OP_CB_SEQUENCE);
	xdr_put_fixed(&e, id.data, sizeof(id.data));
	xdr_put_u32(&e, seqid);
	xdr_put_u32(&e, slot);
	xdr_put_u32(&e, slot);
	xdr_put_bool(&e, false);
	if (!referring)
		xdr_put_u32(&e, 0);
}

/* The RPC result. */
static enum rpc_result answer(struct xdr_dec *x)
{
	uint32_t low, high, auth;

	out_len = answer_to(xdr_enc_len(&e));
	cr_assert_gt(out_len, 0);
	xdr_dec_init(x, out, out_len);
	return rpc_decode_reply(x, 0x77, &low, &high, &auth);
}

/* Status of the COMPOUND, and number and status of the last result; the answer is whole. */
static uint32_t run(uint32_t *ret_op, uint32_t *ret_cnt)
{
	struct xdr_dec x;
	uint32_t status, cnt, op = 0, op_status = 0;

	cr_assert_eq(answer(&x), RPC_OK);
	status = xdr_get_u32(&x);
	xdr_skip_opaque(&x, NFS4_CB_TAG_MAX);
	cnt = xdr_get_u32(&x);
	for (uint32_t i = 0; i < cnt; i++) {
		op = xdr_get_u32(&x);
		op_status = xdr_get_u32(&x);
		if (op == OP_CB_SEQUENCE && op_status == NFS4_OK)
			xdr_get_fixed(&x, 32);
	}
	cr_assert(!x.failed && xdr_dec_left(&x) == 0);
	cr_assert(cnt == 0 || op_status == status);
	if (ret_op)
		*ret_op = op;
	if (ret_cnt)
		*ret_cnt = cnt;
	return status;
}

static void opened(void)
{
	nfs4_cb_open(&cb, &id, 2, NFS4_CB_SLOTS, NFS4_CB_OPS);
}

Test(nfs4_cb, rpc_errors)
{
	static const struct {
		uint32_t prog, vers, proc;
		enum rpc_result result;
	} rows[] = {
		{NFS4_CB_PROGRAM + 1, 1, 1, RPC_PROG_UNAVAIL},
		{NFS4_CB_PROGRAM, 2, 1, RPC_PROG_MISMATCH},
		{NFS4_CB_PROGRAM, 1, 2, RPC_PROC_UNAVAIL},
		{NFS4_CB_PROGRAM, 1, NFS4_CB_PROC_COMPOUND, RPC_GARBAGE_ARGS},
		{NFS4_CB_PROGRAM, 1, NFS4_CB_PROC_NULL, RPC_OK},
		{NFS4_CB_PROGRAM, 4, NFS4_CB_PROC_NULL, RPC_OK},
	};
	struct xdr_dec x;

	opened();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(rows[i].prog, rows[i].vers, rows[i].proc);
		cr_assert_eq(answer(&x), rows[i].result, "row %zu", i);
		cr_assert_eq(xdr_dec_left(&x), 0);
	}
	/* RPC version 3: rejected. A reply: dropped. */
	begin(NFS4_CB_PROGRAM, 1, 0);
	msg[11] = 3;
	cr_assert_eq(answer(&x), RPC_BADREPLY);
	cr_assert_eq(out_len, 24);
	msg[7] = 1;
	cr_assert_eq(answer_to(xdr_enc_len(&e)), 0);
	cr_assert_eq(answer_to(7), 0);
}

Test(nfs4_cb, each_operation_has_its_status)
{
	static const struct {
		uint32_t op, minor, status, answered;
	} rows[] = {
		{OP_CB_LAYOUTRECALL, 1, NFS4ERR_NOMATCHING_LAYOUT, OP_CB_LAYOUTRECALL},
		{OP_CB_NOTIFY, 1, NFS4ERR_NOTSUPP, OP_CB_NOTIFY},
		{OP_CB_PUSH_DELEG, 1, NFS4ERR_NOTSUPP, OP_CB_PUSH_DELEG},
		{OP_CB_RECALLABLE_OBJ_AVAIL, 1, NFS4ERR_NOTSUPP, OP_CB_RECALLABLE_OBJ_AVAIL},
		{OP_CB_WANTS_CANCELLED, 1, NFS4ERR_NOTSUPP, OP_CB_WANTS_CANCELLED},
		{OP_CB_NOTIFY_DEVICEID, 1, NFS4ERR_NOTSUPP, OP_CB_NOTIFY_DEVICEID},
		{OP_CB_SEQUENCE, 1, NFS4ERR_SEQUENCE_POS, OP_CB_SEQUENCE},
		{OP_CB_RECALL, 1, NFS4ERR_BADXDR, OP_CB_RECALL},
		{OP_CB_GETATTR, 1, NFS4ERR_BADXDR, OP_CB_GETATTR},
		{OP_CB_RECALL_ANY, 1, NFS4ERR_BADXDR, OP_CB_RECALL_ANY},
		{OP_CB_OFFLOAD, 2, NFS4ERR_BADXDR, OP_CB_OFFLOAD},
		{OP_CB_OFFLOAD, 1, NFS4ERR_OP_ILLEGAL, OP_CB_ILLEGAL},
		{2, 1, NFS4ERR_OP_ILLEGAL, OP_CB_ILLEGAL},
		{16, 2, NFS4ERR_OP_ILLEGAL, OP_CB_ILLEGAL},
	};
	uint32_t op, cnt;

	opened();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		compound("", rows[i].minor, 2);
		sequence((uint32_t)i + 1, 0);
		xdr_put_u32(&e, rows[i].op);
		cr_assert_eq(run(&op, &cnt), rows[i].status, "row %zu", i);
		cr_assert(op == rows[i].answered && cnt == 2, "row %zu", i);
		cr_assert_leq(out_len, 104, "nfsd drops longer ones");
	}
}

static void put_fh(void)
{
	xdr_put_opaque(&e, "handle", 6);
}

static void put_stateid(void)
{
	xdr_put_fixed(&e, "0123456789abcdef", 16);
}

Test(nfs4_cb, operations_with_arguments)
{
	uint32_t op;

	asked.status = NFS4ERR_BADHANDLE;
	opened();
	compound("", 1, 2);
	sequence(1, 0);
	xdr_put_u32(&e, OP_CB_RECALL);
	put_stateid();
	xdr_put_bool(&e, true);
	put_fh();
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADHANDLE);
	compound("", 1, 2);
	sequence(2, 0);
	xdr_put_u32(&e, OP_CB_GETATTR);
	put_fh();
	xdr_put_u32(&e, 1);
	xdr_put_u32(&e, 8);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADHANDLE);
	compound("", 1, 2);
	sequence(3, 0);
	xdr_put_u32(&e, OP_CB_NOTIFY_LOCK);
	put_fh();
	xdr_put_u64(&e, 1);
	xdr_put_opaque(&e, "lock owner", 10);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_eq(cb.lock_free_cnt, 0, "somebody else's");
	compound("", 1, 3);
	sequence(4, 0);
	xdr_put_u32(&e, OP_CB_RECALL_ANY);
	xdr_put_u32(&e, 0);
	xdr_put_u32(&e, 1);
	xdr_put_u32(&e, 0x3f31f); /* flexible files' layouts among them */
	xdr_put_u32(&e, OP_CB_RECALL_SLOT);
	xdr_put_u32(&e, 7);
	cr_assert_eq(cb.recall_slot, UINT32_MAX);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_eq(cb.recall_slot, 7);
	compound("", 1, 2);
	sequence(5, 0);
	xdr_put_u32(&e, OP_CB_RECALL_ANY);
	xdr_put_u32(&e, 0);
	xdr_put_u32(&e, 1);
	xdr_put_u32(&e, 0x40000);
	cr_assert_eq(run(&op, NULL), NFS4ERR_INVAL);
}

static void put_offload(uint32_t seqid, uint32_t status)
{
	compound("", 2, 2);
	sequence(seqid, 0);
	xdr_put_u32(&e, OP_CB_OFFLOAD);
	put_fh();
	put_stateid();
	xdr_put_u32(&e, status);
}

static void put_write_response(uint32_t ids, uint32_t committed)
{
	xdr_put_u32(&e, ids);
	if (ids)
		put_stateid();
	xdr_put_u64(&e, 0x500000000);
	xdr_put_u32(&e, committed);
	xdr_put_fixed(&e, "verifier", 8);
}

Test(nfs4_cb, offload_says_how_a_copy_ended)
{
	uint32_t op;

	opened();
	put_offload(1, NFS4_OK);
	put_write_response(0, FILE_SYNC4);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_leq(out_len, 104);
	cr_assert_eq(asked.offloads, 1);
	cr_assert_eq(asked.sid.seqid, 0x30313233);
	cr_assert_arr_eq(asked.sid.other, "456789abcdef", 12);
	cr_assert_eq(asked.res.status, NFS4_OK);
	cr_assert_eq(asked.res.copied, 0x500000000);
	cr_assert_eq(asked.res.committed, FILE_SYNC4);
	cr_assert_arr_eq(asked.res.verf.data, "verifier", 8);
	put_offload(2, NFS4_OK);
	put_write_response(1, UNSTABLE4);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_eq(asked.res.committed, UNSTABLE4);
	put_offload(3, NFS4ERR_NOSPC);
	xdr_put_u64(&e, 4096);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_eq(asked.res.status, NFS4ERR_NOSPC);
	cr_assert_eq(asked.res.copied, 4096);
	asked.status = NFS4ERR_BAD_STATEID;
	put_offload(4, NFS4ERR_IO);
	xdr_put_u64(&e, 0);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BAD_STATEID, "not ours");
	cr_assert_eq(asked.offloads, 4);
}

Test(nfs4_cb, offload_that_cannot_be_is_not_passed_on)
{
	uint32_t op;

	opened();
	put_offload(1, NFS4_OK);
	put_write_response(0, 3);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR, "more stable than can be");
	put_offload(2, NFS4_OK);
	xdr_put_u32(&e, 2);
	put_stateid();
	put_stateid();
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR, "two stateids");
	put_offload(3, NFS4ERR_NOSPC);
	xdr_put_u32(&e, 0);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR, "cut");
	cr_assert_eq(asked.offloads, 0);
}

Test(nfs4_cb, compounds_that_are_not_in_order)
{
	uint32_t op, cnt;

	opened();
	compound("", 3, 1);
	sequence(1, 0);
	cr_assert_eq(run(&op, &cnt), NFS4ERR_MINOR_VERS_MISMATCH);
	cr_assert_eq(cnt, 0);
	compound("", 0, 0);
	cr_assert_eq(run(&op, &cnt), NFS4ERR_MINOR_VERS_MISMATCH);
	compound("", 1, 0);
	cr_assert_eq(run(&op, &cnt), NFS4_OK);
	cr_assert_eq(cnt, 0);
	compound("", 1, 1);
	xdr_put_u32(&e, OP_CB_RECALL);
	cr_assert_eq(run(&op, &cnt), NFS4ERR_OP_NOT_IN_SESSION);
	cr_assert_eq(op, OP_CB_RECALL);
	compound("", 1, 1);
	xdr_put_u32(&e, 4711);
	cr_assert_eq(run(&op, &cnt), NFS4ERR_OP_ILLEGAL);
	compound("", 1, 1);
	xdr_put_u32(&e, OP_CB_SEQUENCE);
	cr_assert_eq(run(&op, &cnt), NFS4ERR_BADXDR);
	compound("", 1, NFS4_CB_OPS + 1);
	sequence(1, 0);
	for (uint32_t i = 0; i < NFS4_CB_OPS; i++)
		xdr_put_u32(&e, OP_CB_NOTIFY);
	cr_assert_eq(run(&op, &cnt), NFS4ERR_TOO_MANY_OPS);
	/* None of these used the number up; the longest tag that is sent back. */
	compound("a tag of thirty-two bytes, really", 1, 1);
	sequence(1, 0);
	cr_assert_eq(run(&op, &cnt), NFS4_OK);
}

Test(nfs4_cb, sessions_and_slots)
{
	uint32_t op;

	memset(&cb, 0, sizeof(cb));
	compound("", 1, 1);
	sequence(1, 0);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADSESSION);
	cb.coming = true;
	cr_assert_eq(run(&op, NULL), NFS4ERR_DELAY, "its CREATE_SESSION may be on the way");
	opened();
	msg[e.p - e.base - 30] ^= 1; /* the session's id */
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADSESSION);
	compound("", 1, 1);
	sequence(1, NFS4_CB_SLOTS);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADSLOT);
	compound("", 1, 1);
	sequence(1, 0);
	put_fh(); /* trailing bytes are nothing to us */
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	compound("", 1, 1);
	sequence(3, 0);
	cr_assert_eq(run(&op, NULL), NFS4ERR_SEQ_MISORDERED);
	compound("", 1, 1);
	sequence(1, 15);
	cr_assert_eq(run(&op, NULL), NFS4_OK, "each slot counts for itself");
	nfs4_cb_open(&cb, &id, 2, 0, NFS4_CB_OPS);
	compound("", 1, 1);
	sequence(1, 0);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADSLOT, "no back channel was granted");
}

Test(nfs4_cb, a_repetition_gets_the_same_answer_and_another_call_is_a_false_retry)
{
	uint8_t first[NFS4_CB_ANSWER_MAX];
	uint32_t op, before;

	opened();
	cb.slots[3].seqid = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 4; i++) {
		compound("tag", 1, 2);
		sequence(UINT32_MAX + i, 3); /* wraps */
		xdr_put_u32(&e, OP_CB_RECALL_SLOT);
		xdr_put_u32(&e, i);
		cr_assert_eq(run(&op, NULL), NFS4_OK);
		before = (uint32_t)out_len;
		memcpy(first, out, out_len);
		cb.recall_slot = UINT32_MAX;
		cr_assert_eq(run(&op, NULL), NFS4_OK);
		cr_assert(out_len == before && memcmp(first, out, out_len) == 0);
		cr_assert_eq(cb.recall_slot, UINT32_MAX, "not executed again");
		msg[xdr_enc_len(&e) - 1] ^= 1;
		cr_assert_eq(run(&op, NULL), NFS4ERR_SEQ_FALSE_RETRY);
	}
}

/* CB_NOTIFY_LOCK for `cnt` owners, the first with number 7. */
static void notify(uint32_t seqid, uint32_t cnt)
{
	compound("", 1, cnt + 1);
	sequence(seqid, 0);
	for (uint32_t i = 0; i < cnt; i++) {
		xdr_put_u32(&e, OP_CB_NOTIFY_LOCK);
		put_fh();
		nfs4_lock_xdr_put_owner(&e, 7 + i);
	}
}

Test(nfs4_cb, who_waits_for_a_lock_is_told_once)
{
	uint32_t op;

	opened();
	notify(1, 1);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert(cb.lock_free_cnt == 1 && cb.lock_free[0] == 7);
	/* A repetition says nothing new, nor does what comes after. */
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_eq(cb.lock_free_cnt, 0);
	notify(2, NFS4_CB_OPS - 1);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_eq(cb.lock_free_cnt, NFS4_CB_OPS - 1);
	cr_assert_eq(cb.lock_free[NFS4_CB_OPS - 2], 7 + NFS4_CB_OPS - 2);
	compound("", 1, 1);
	sequence(3, 0);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
	cr_assert_eq(cb.lock_free_cnt, 0);
}

Test(nfs4_cb, malformed_notice_of_a_lock)
{
	uint32_t op;

	for (uint32_t cut = 4; cut <= 36; cut += 4) {
		opened();
		notify(1, 1);
		e.p -= cut;
		cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR, "%u bytes less", cut);
		cr_assert_eq(cb.lock_free_cnt, 0);
	}
}

/* ---- delegations ---- */

static void put_recall(uint32_t seqid)
{
	compound("", 1, 2);
	sequence(seqid, 0);
	xdr_put_u32(&e, OP_CB_RECALL);
	xdr_put_u32(&e, 1);
	xdr_put_fixed(&e, "0123456789ab", 12);
	xdr_put_bool(&e, false);
	put_fh();
}

Test(nfs4_cb, a_recall_is_answered_with_what_is_known_of_the_delegation)
{
	static const enum nfs4_status rows[] = {
		NFS4_OK, NFS4ERR_BADHANDLE, NFS4ERR_BAD_STATEID, NFS4ERR_DELAY};
	uint32_t op, cnt;

	opened();
	for (uint32_t i = 0; i < 4; i++) {
		asked.status = rows[i];
		put_recall(i + 1);
		cr_assert_eq(run(&op, &cnt), rows[i]);
		cr_assert(op == OP_CB_RECALL && cnt == 2);
		cr_assert_eq(out_len, 84, "nfsd drops more than 104");
		cr_assert_eq(asked.recalls, i + 1);
		cr_assert(asked.sid.seqid == 1 && memcmp(asked.sid.other, "0123456789ab", 12) == 0);
		cr_assert(asked.fh.len == 6 && memcmp(asked.fh.data, "handle", 6) == 0);
		/* A repetition is answered from the slot. */
		asked.status = NFS4ERR_SERVERFAULT;
		cr_assert_eq(run(&op, NULL), rows[i]);
		cr_assert_eq(asked.recalls, i + 1);
	}
}

Test(nfs4_cb, a_recall_that_is_cut_is_nobody_s)
{
	for (uint32_t cut = 4; cut <= 32; cut += 4) {
		uint32_t op;

		opened();
		put_recall(1);
		e.p -= cut;
		cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR, "%u bytes less", cut);
		cr_assert_eq(asked.recalls, 0);
	}
}

Test(nfs4_cb, returning_any_says_how_many_may_stay_and_of_which_kinds)
{
	static const struct {
		uint32_t types;
		bool read, write;
	} rows[] = {{1, true, false}, {2, false, true}, {3, true, true}, {0x1b, true, true}};
	uint32_t op;

	opened();
	for (uint32_t i = 0; i < 5; i++) {
		compound("", 1, 2);
		sequence(i + 1, 0);
		xdr_put_u32(&e, OP_CB_RECALL_ANY);
		xdr_put_u32(&e, 17 + i);
		xdr_put_u32(&e, 1);
		xdr_put_u32(&e, i < 4 ? rows[i].types : 0x8); /* layouts */
		cr_assert_eq(run(&op, NULL), NFS4_OK);
		if (i == 4) {
			cr_assert_eq(asked.anys, 4, "nothing of ours");
			continue;
		}
		cr_assert_eq(asked.anys, i + 1);
		cr_assert(asked.keep == 17 + i && asked.read == rows[i].read &&
			  asked.write == rows[i].write);
	}
}

static void put_recall_op(void)
{
	xdr_put_u32(&e, OP_CB_RECALL);
	put_stateid();
	xdr_put_bool(&e, false);
	put_fh();
}

Test(nfs4_cb, each_operation_is_executed_once_up_to_the_first_that_fails)
{
	uint32_t op, cnt;

	opened();
	compound("", 1, 7);
	sequence(1, 0);
	put_recall_op();
	xdr_put_u32(&e, OP_CB_RECALL_SLOT);
	xdr_put_u32(&e, 5);
	xdr_put_u32(&e, OP_CB_RECALL_ANY);
	xdr_put_u32(&e, 3);
	xdr_put_u32(&e, 1);
	xdr_put_u32(&e, 1u << RCA4_TYPE_MASK_RDATA_DLG);
	xdr_put_u32(&e, OP_CB_NOTIFY_LOCK);
	put_fh();
	nfs4_lock_xdr_put_owner(&e, 9);
	xdr_put_u32(&e, OP_CB_NOTIFY);
	put_recall_op();
	cr_assert_eq(run(&op, &cnt), NFS4ERR_NOTSUPP);
	cr_assert(op == OP_CB_NOTIFY && cnt == 6);
	cr_assert(asked.recalls == 1 && asked.anys == 1);
	cr_assert_eq(cb.recall_slot, 5);
	cr_assert(cb.lock_free_cnt == 1 && cb.lock_free[0] == 9);
}

/* The results of CB_GETATTR for this bitmap, behind its status. */
static struct xdr_dec getattr_results(uint32_t seqid, uint32_t bits, enum nfs4_status want)
{
	struct xdr_dec x;
	uint32_t cnt;

	compound("", 1, 2);
	sequence(seqid, 0);
	xdr_put_u32(&e, OP_CB_GETATTR);
	put_fh();
	xdr_put_u32(&e, 1);
	xdr_put_u32(&e, bits);
	cr_assert_eq(answer(&x), RPC_OK);
	cr_assert_eq(xdr_get_u32(&x), want);
	xdr_get_u32(&x);
	cnt = xdr_get_u32(&x);
	cr_assert_eq(cnt, 2);
	xdr_get_fixed(&x, 40);
	cr_assert_eq(xdr_get_u32(&x), OP_CB_GETATTR);
	cr_assert_eq(xdr_get_u32(&x), want);
	return x;
}

Test(nfs4_cb, attributes_of_a_file_that_we_may_change)
{
	struct xdr_dec x;

	opened();
	asked.known = true;
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t bits = (i & 1 ? 1u << FATTR4_CHANGE : 0) | (i & 2 ? 1u << FATTR4_SIZE : 0);

		/* Others are not ours to tell. */
		x = getattr_results(i + 1, bits | 1u << FATTR4_TYPE, NFS4_OK);
		cr_assert_eq(xdr_get_u32(&x), 1);
		cr_assert_eq(xdr_get_u32(&x), bits);
		cr_assert_eq(xdr_get_u32(&x), i == 3 ? 16 : i ? 8 : 0);
		cr_assert(!(i & 1) || xdr_get_u64(&x) == 0x1122334455667788);
		cr_assert(!(i & 2) || xdr_get_u64(&x) == 0x99aabbccddeeff00);
		cr_assert(!x.failed && xdr_dec_left(&x) == 0);
	}
	asked.known = false;
	x = getattr_results(5, 1u << FATTR4_CHANGE, NFS4ERR_BADHANDLE);
	cr_assert_eq(xdr_dec_left(&x), 0);
	cr_assert_eq(asked.getattrs, 5);
}

Test(nfs4_cb, as_many_attributes_as_there_are_operations_fit)
{
	struct xdr_dec x;

	opened();
	asked.known = true;
	compound("a tag of thirty-two bytes, really", 1, NFS4_CB_OPS);
	sequence(1, 0);
	for (uint32_t i = 0; i < NFS4_CB_OPS - 1; i++) {
		xdr_put_u32(&e, OP_CB_GETATTR);
		put_fh();
		xdr_put_u32(&e, 1);
		xdr_put_u32(&e, 1u << FATTR4_CHANGE | 1u << FATTR4_SIZE);
	}
	cr_assert_eq(answer(&x), RPC_OK);
	cr_assert_eq(xdr_get_u32(&x), NFS4_OK);
	cr_assert_leq(out_len, NFS4_CB_ANSWER_MAX);
	cr_assert_gt(cb.slots[0].len, 0, "it is kept");
}

/* ---- calls of ours that come first ---- */

static void refer(const struct nfs4_sessionid *sess, uint32_t cnt)
{
	xdr_put_fixed(&e, sess->data, sizeof(sess->data));
	xdr_put_u32(&e, cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		xdr_put_u32(&e, 100 + i); /* sequence number */
		xdr_put_u32(&e, 7 + i);   /* slot */
	}
}

/* Two lists, the second of another session's calls; `mine`: the other way round. */
static void put_referring(uint32_t seqid, bool mine)
{
	static const struct nfs4_sessionid other = {"another-session"};

	referring = true;
	compound("", 1, 1);
	sequence(seqid, 0);
	xdr_put_u32(&e, 3);
	refer(&id, 0);
	refer(mine ? &other : &id, 1);
	refer(mine ? &id : &other, 3);
}

/* In flight are those calls of refer()'s slots whose bits are set; bit 0: of slot 7. */
static void fly(uint32_t calls)
{
	uint32_t seqid;

	nfs4_slot_init(&fore, 10, 10);
	for (uint32_t i = 0; i < 3; i++)
		fore.seqid[7 + i] = 100 + i;
	while (nfs4_slot_get(&fore, &seqid) != NFS4_SLOT_NONE)
		;
	for (uint32_t i = 0; i < 3; i++)
		if (!(calls & 1u << i))
			nfs4_slot_cancel(&fore, 7 + i);
}

Test(nfs4_cb, what_refers_to_a_call_in_flight_comes_too_early)
{
	uint32_t op;

	opened();
	put_referring(1, true);
	for (uint32_t i = 0; i < 3; i++) {
		fly(1u << i);
		cr_assert_eq(run(&op, NULL), NFS4ERR_DELAY, "call %u", i);
		cr_assert_eq(op, OP_CB_SEQUENCE);
	}
	fly(0);
	cr_assert_eq(run(&op, NULL), NFS4_OK, "the number was not used up");
	/* Calls of other sessions are not looked up here. */
	put_referring(2, false);
	fly(7);
	cr_assert_eq(run(&op, NULL), NFS4ERR_DELAY, "the one of ours");
	fly(6);
	cr_assert_eq(run(&op, NULL), NFS4_OK);
}

Test(nfs4_cb, referring_lists_that_are_none)
{
	uint32_t op;
	size_t len;

	opened();
	fly(7); /* NFS4ERR_DELAY if they were looked up */
	put_referring(1, true);
	len = xdr_enc_len(&e);
	for (uint32_t cut = 4; cut < len - 90; cut += 4) {
		e.p = e.base + len - cut;
		cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR, "%u bytes less", cut);
	}
	compound("", 1, 1);
	sequence(1, 0);
	xdr_put_u32(&e, UINT32_MAX);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR);
	compound("", 1, 1);
	sequence(1, 0);
	xdr_put_u32(&e, 1);
	xdr_put_fixed(&e, id.data, sizeof(id.data));
	xdr_put_u32(&e, 0x20000001); /* times 8 is more than 32 bits have */
	xdr_put_u64(&e, 0);
	cr_assert_eq(run(&op, NULL), NFS4ERR_BADXDR);
}
