/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "op_test.h"

/* ---- COPY ---- */

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){0, {0xdd}};
	call->u.copy = (struct nfs4_op_copy){
		.src = &op_test_fh2,
		.fh = &op_test_fh,
		.src_stateid = {0, {0x55}},
		.src_offset = 0x10000,
		.offset = 0x20000,
		.count = 0x100000000,
	};
}

static void setup_synchronous(struct nfs4_call *call)
{
	setup(call);
	call->u.copy.synchronous = true;
}

#define ARGS(synchronous)                                                                          \
	HEX_PUTFH2 HEX_SAVEFH HEX_PUTFH "0000003c 00000000 550000000000000000000000"               \
					" 00000000 dd0000000000000000000000"                       \
					" 0000000000010000 0000000000020000 0000000100000000"      \
					" 00000001 " synchronous " 00000000"                       \
					"00000009 00000002 00000018 00302000"
#define COPY_OK "0000003c 00000000"
#define VERF    "7665726966696572"
#define RES_GETATTR                                                                                \
	"00000009 00000000 00000002 00000010 00002000 00000010"                                    \
	"0000000100020000 0000000100000000"
#define COPY_MAX (8 + 8 + 8 + 8 + 48 + MAX_WRITTEN + 8)

static void is_done(const struct nfs4_call *call)
{
	const struct nfs4_op_copy *o = &call->u.copy;

	cr_assert_not(o->async);
	cr_assert_eq(o->copied, 0x400000);
	cr_assert_eq(o->committed, DATA_SYNC4);
	cr_assert_arr_eq(o->verf.data, "verifier", 8);
	cr_assert_eq(o->attr.valid, NFS4_ATTR_SIZE | NFS4_ATTR_SPACE_USED);
	cr_assert_eq(o->attr.size, 0x100020000);
}

static void goes_on(const struct nfs4_call *call)
{
	const struct nfs4_op_copy *o = &call->u.copy;
	static const uint8_t other[12] = {0xcc};

	cr_assert(o->async);
	cr_assert_eq(o->id.seqid, 1);
	cr_assert_arr_eq(o->id.other, other, 12);
	cr_assert_eq(o->copied, 0, "whatever it says");
}

static const struct op_golden synchronous = {
	.op = nfs4_copy,
	.setup = setup_synchronous,
	.minor = 2,
	.args = ARGS("00000001"),
	.results = {RES_PUTFH, RES_SAVEFH, RES_PUTFH,
		COPY_OK "00000000 0000000000400000 00000001" VERF "00000001 00000001", RES_GETATTR},
	.forgiven = 4,
	.reply_max = COPY_MAX,
	.cachethis = true,
	.check = is_done,
};

static const struct op_golden asynchronous = {
	.op = nfs4_copy,
	.setup = setup,
	.minor = 2,
	.args = ARGS("00000000"),
	.results = {RES_PUTFH, RES_SAVEFH, RES_PUTFH,
		COPY_OK "00000001 00000001 cc0000000000000000000000"
			"00000000ffffffff 00000000" VERF "00000001 00000000",
		RES_GETATTR},
	.forgiven = 4,
	.reply_max = COPY_MAX,
	.cachethis = true,
	.check = goes_on,
};

Test(nfs4_copy, answered_when_it_is_done)
{
	op_golden_check(&synchronous);
}

Test(nfs4_copy, answered_before_it_is_done)
{
	op_golden_check(&asynchronous);
}

static int decode_with(const char *copy, struct op_test *t)
{
	const char *results[OP_TEST_RESULTS];

	memcpy(results, synchronous.results, sizeof(results));
	results[3] = copy;
	op_test_init(t, &synchronous);
	return op_test_decode(t, results, 5, NFS4_OK);
}

Test(nfs4_copy, what_cannot_be_is_malformed)
{
	struct op_test t;

	cr_assert_eq(
		decode_with(
			COPY_OK "00000000 0000000100000001 00000000" VERF "00000001 00000001", &t),
		-EBADMSG, "more than was asked for");
	cr_assert_eq(
		decode_with(
			COPY_OK "00000000 0000000000000001 00000003" VERF "00000001 00000001", &t),
		-EBADMSG, "more stable than can be");
	cr_assert_eq(decode_with(COPY_OK "00000002 00000001 cc0000000000000000000000"
					 "00000001 cd0000000000000000000000"
					 "0000000000000001 00000000" VERF "00000001 00000000",
			     &t),
		-EBADMSG, "two stateids");
}

Test(nfs4_copy, a_part_that_nobody_knows_which_is_none)
{
	struct op_test t;

	cr_assert_eq(
		decode_with(
			COPY_OK "00000000 0000000000400000 00000002" VERF "00000000 00000001", &t),
		0);
	cr_assert_eq(t.call.u.copy.copied, 0);
	cr_assert_eq(
		decode_with(
			COPY_OK "00000000 0000000100000000 00000002" VERF "00000000 00000001", &t),
		0);
	cr_assert_eq(t.call.u.copy.copied, 0x100000000, "all of it");
}

/* OFFLOAD_NO_REQS has what the server could do behind its status. */
Test(nfs4_copy, the_server_cannot_do_it_like_that)
{
	static const char *const results[] = {
		RES_PUTFH, RES_SAVEFH, RES_PUTFH, "0000003c 0000276e 00000000 00000001"};
	struct op_test t;

	op_test_init(&t, &synchronous);
	cr_assert_eq(op_test_decode(&t, results, 4, NFS4ERR_OFFLOAD_NO_REQS), 0);
	cr_assert_eq(t.status, NFS4ERR_OFFLOAD_NO_REQS);
}

Test(nfs4_copy, needs_minor_version_2)
{
	static void (*const ops[])(struct nfs4_call *) = {
		nfs4_copy, nfs4_copy_status, nfs4_copy_cancel};
	struct op_golden g = synchronous;
	struct op_test t;

	g.minor = 1;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		g.op = ops[i];
		op_test_init(&t, &g);
		cr_assert_eq(op_test_encode(&t, &g, 4096, NULL), -EOPNOTSUPP);
	}
}

/* ---- OFFLOAD_STATUS, OFFLOAD_CANCEL ---- */

static void setup_offload(struct nfs4_call *call)
{
	call->u.offload = (struct nfs4_op_offload){.fh = &op_test_fh, .id = {1, {0xcc}}};
}

#define ID " 00000001 cc0000000000000000000000"

static void is_on_its_way(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.offload.copied, 0x12345678);
	cr_assert_not(call->u.offload.complete);
}

static void is_complete(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.offload.copied, 0x12345678);
	cr_assert(call->u.offload.complete);
}

static void nothing(const struct nfs4_call *call)
{
	(void)call;
}

static struct op_golden status = {
	.op = nfs4_copy_status,
	.setup = setup_offload,
	.minor = 2,
	.args = HEX_PUTFH "00000043" ID,
	.results = {RES_PUTFH, "00000043 00000000 0000000012345678 00000000"},
	.reply_max = 8 + 8 + 16,
	.check = is_on_its_way,
};

static const struct op_golden cancel = {
	.op = nfs4_copy_cancel,
	.setup = setup_offload,
	.minor = 2,
	.args = HEX_PUTFH "00000042" ID,
	.results = {RES_PUTFH, "00000042 00000000"},
	.reply_max = 8 + 8,
	.cachethis = true,
	.check = nothing,
};

Test(nfs4_copy, how_far_it_is)
{
	op_golden_check(&status);
	status.results[1] = "00000043 00000000 0000000012345678 00000001 00000000";
	status.check = is_complete;
	op_golden_check(&status);
}

Test(nfs4_copy, it_is_to_stop)
{
	op_golden_check(&cancel);
}
