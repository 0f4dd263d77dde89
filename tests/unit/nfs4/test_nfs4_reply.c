/* SPDX-License-Identifier: BSD-3-Clause */
/* A reply, its slot and its session (nfs4_reply.c); scenarios are in tests/sim. */
#include "sess_rig.h"

#include <errno.h>

static uint8_t mem[128];
static struct nfs4_call call;
static bool over;

static void done(struct nfs4_call *c)
{
	over = true;
}

static int no_results(struct nfs4_call *c, struct nfs4_compound *compound)
{
	return 0;
}

static const struct nfs4_opdesc desc = {.name = "TEST", .decode = no_results};

/* A call on slot 0 that was sent. */
static void set_up(void)
{
	sess_rig_up();
	nfs4_slot_init(&sr.s.slots, 4, 4);
	memcpy(sr.s.id.data, "this session's..", sizeof(sr.s.id.data));
	memcpy(sr.s.old_id.data, "the one before..", sizeof(sr.s.old_id.data));
	sess_rig_call(&call);
	call.desc = &desc;
	call.done = done;
	call.slot = nfs4_slot_get(&sr.s.slots, &call.seqid);
	call.sent_ns = reactor_now(sr.s.r);
	call.state = NFS4_CALL_SENT;
	sr.s.sent_cnt = 1;
	over = false;
}

TestSuite(nfs4_reply, .init = set_up, .fini = sess_rig_down);

/* SEQUENCE, with that status, is all there is. */
static void answer(enum nfs4_status status, const struct nfs4_sessionid *id)
{
	struct xdr_enc x;

	xdr_enc_init(&x, mem, sizeof(mem));
	xdr_put_u32(&x, status);
	xdr_put_opaque(&x, "", 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, OP_SEQUENCE);
	xdr_put_u32(&x, status);
	if (!status) {
		xdr_put_fixed(&x, id->data, sizeof(id->data));
		xdr_put_u32(&x, call.seqid);
		xdr_put_u32(&x, call.slot);
		xdr_put_u32(&x, 3); /* highest, target */
		xdr_put_u32(&x, 3);
		xdr_put_u32(&x, 0);
	}
	xdr_dec_init(&call.rpc.results, mem, xdr_enc_len(&x));
	call.rpc.result = RPC_OK;
	nfs4_reply_done(&call.rpc);
}

static void expect_next(uint32_t seqid)
{
	uint32_t next;

	cr_assert_eq(nfs4_slot_get(&sr.s.slots, &next), 0);
	cr_assert_eq(next, seqid);
}

/* The server may have carried the call out: its slot is not used again. */
static void expect_next_slot_is_another(void)
{
	uint32_t next;

	cr_assert_eq(nfs4_slot_get(&sr.s.slots, &next), 1);
}

Test(nfs4_reply, that_succeeds_renews_the_lease_and_uses_a_number_up)
{
	answer(NFS4_OK, &sr.s.id);
	cr_assert(over);
	cr_assert_eq(call.err, 0);
	cr_assert_eq(sr.s.renewed_ns, call.sent_ns);
	expect_next(2);
}

Test(nfs4_reply, of_the_session_before_renews_nothing)
{
	sr.s.gen++;
	answer(NFS4_OK, &sr.s.old_id);
	cr_assert(over);
	cr_assert_eq(call.err, 0);
	cr_assert_eq(sr.s.renewed_ns, 0);
}

Test(nfs4_reply, garbage_args_leave_the_number_as_it_was)
{
	call.rpc.result = RPC_GARBAGE_ARGS;
	nfs4_reply_done(&call.rpc);
	cr_assert(over);
	cr_assert_eq(call.err, -EIO);
	expect_next(1);
}

Test(nfs4_reply, a_call_that_the_transport_gave_up_is_not_repeated)
{
	call.rpc.result = RPC_BADREPLY;
	call.rpc.req.end = RPCRDMA_GIVENUP;
	nfs4_reply_done(&call.rpc);
	cr_assert(over);
	cr_assert_eq(call.err, -EIO);
	expect_next_slot_is_another();
}

Test(nfs4_reply, a_false_retry_goes_again_under_the_next_number)
{
	answer(NFS4ERR_SEQ_FALSE_RETRY, NULL);
	cr_assert_not(over);
	cr_assert_eq(call.state, NFS4_CALL_WAITING);
	expect_next(2);
}
