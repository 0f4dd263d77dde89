/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static const uint32_t everything[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

static void setup_fh(struct nfs4_call *call)
{
	call->u.open = (struct nfs4_op_open){
		.file = &op_test_fh2,
		.share_access = OPEN4_SHARE_ACCESS_BOTH,
		.owner = 0x1122334455667788,
	};
}

static void setup_name(struct nfs4_call *call)
{
	setup_fh(call);
	call->u.open.file = NULL;
	call->u.open.dir = &op_test_fh;
	call->u.open.name = (struct nfs4_str){"file", 4};
	call->u.open.share_access = OPEN4_SHARE_ACCESS_READ;
}

static void setup_create(struct nfs4_call *call)
{
	setup_name(call);
	call->u.open.create = call->u.open.truncate = true;
	call->u.open.sattr = (struct nfs4_sattr){
		.set = NFS4_ATTR_MODE | NFS4_ATTR_SIZE,
		.size = 77, /* not his to set: truncate says 0 */
		.mode = 0666,
		.umask = 022,
		.use_umask = true,
	};
}

static void setup_exclusive(struct nfs4_call *call)
{
	setup_create(call);
	call->u.open.truncate = false;
	call->u.open.exclusive = true;
	call->u.open.verf = (struct nfs4_verf){"verf4321"};
	call->u.open.atime = (struct timespec){0x11223344, 0x0a0b0c0d};
	call->u.open.sattr.set |= NFS4_ATTR_ATIME | NFS4_ATTR_MTIME;
	call->u.open.sattr.atime_now = true;
}

static void setup_again(struct nfs4_call *call)
{
	setup_exclusive(call);
	call->u.open.again = true;
}

static void is_open(const struct nfs4_op_open *o)
{
	cr_assert_eq(o->stateid.seqid, 1);
	cr_assert_eq(o->stateid.other[0], 0x0a);
	cr_assert_eq(o->stateid.other[11], 0x0b);
	cr_assert_eq(o->rflags, OPEN4_RESULT_LOCKTYPE_POSIX);
	cr_assert_eq(o->access, ACCESS4_READ | ACCESS4_MODIFY);
	cr_assert_eq(o->deleg_type, OPEN_DELEGATE_NONE_EXT);
	op_test_is_cinfo(&o->cinfo);
	op_test_is_fh2(&o->fh);
	op_test_is_stat(&o->attr);
}

static void check_fh(const struct nfs4_call *call)
{
	is_open(&call->u.open);
	cr_assert_eq(call->u.open.dir_attr.valid, 0);
}

static void check_name(const struct nfs4_call *call)
{
	is_open(&call->u.open);
	op_test_is_dir(&call->u.open.dir_attr);
	cr_assert_eq(call->u.open.stamped, call->u.open.exclusive);
}

#define HEX_OWNER      "0000000000000000 00000010 6f70656e2069643a 1122334455667788 "
#define HEX_OPEN_READ  "00000012 00000000 00000401 00000000 " HEX_OWNER
#define HEX_OPEN_BOTH  "00000012 00000000 00000403 00000000 " HEX_OWNER
#define HEX_CLAIM_NAME "00000000 00000004 66696c65 "
#define HEX_ACCESS     "00000003 0000002d "
#define HEX_REST       HEX_GETFH HEX_ACCESS HEX_GETATTR_STAT HEX_RESTORE HEX_GETATTR_DIR

#define RES_OPEN_HEAD                                                                              \
	"00000012 00000000 00000001 0a000000000000000000000b " RES_CINFO                           \
	"00000004 00000002 00000000 00000002 "
#define RES_OPEN   RES_OPEN_HEAD "00000003 00000000"
#define RES_ACCESS "00000003 00000000 0000003d 00000005"

#define MAX_OPEN (8u + 16u + 20u + 4u + 16u + 180u)

#define BY_NAME                                                                                    \
	.op = nfs4_open,                                                                           \
	.results = {RES_PUTFH, RES_SAVEFH, RES_OPEN, RES_GETFH2, RES_ACCESS, op_test_res_stat,     \
		RES_RESTORE, op_test_res_dir},                                                     \
	.forgiven = 4, .reply_max = 16 + MAX_OPEN + MAX_GETFH + 16 + MAX_STAT + 8 + MAX_DIR,       \
	.cachethis = true, .check = check_name

static const struct op_golden golden_fh = {
	.op = nfs4_open,
	.setup = setup_fh,
	.args = HEX_PUTFH2 HEX_OPEN_BOTH "00000000 00000004" HEX_ACCESS HEX_GETATTR_STAT,
	.results = {RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + MAX_OPEN + 16 + MAX_STAT,
	.cachethis = true,
	.check = check_fh,
};

static void setup_reclaim(struct nfs4_call *call)
{
	setup_fh(call);
	call->u.open.reclaim = true;
}

static const struct op_golden golden_reclaim = {
	.op = nfs4_open,
	.setup = setup_reclaim,
	.args = HEX_PUTFH2 HEX_OPEN_BOTH "00000000 00000001 00000000" HEX_ACCESS HEX_GETATTR_STAT,
	.results = {RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + MAX_OPEN + 16 + MAX_STAT,
	.cachethis = true,
	.check = check_fh,
};

/* With the delegation it had: then one is wanted, whichever the server likes. */
static void setup_reclaim_deleg(struct nfs4_call *call)
{
	setup_reclaim(call);
	call->u.open.reclaim_deleg = OPEN_DELEGATE_READ;
}

#define HEX_OPEN_BOTH_WANT "00000012 00000000 00000003 00000000 " HEX_OWNER

static const struct op_golden golden_reclaim_deleg = {
	.op = nfs4_open,
	.setup = setup_reclaim_deleg,
	.args = HEX_PUTFH2 HEX_OPEN_BOTH_WANT
	"00000000 00000001 00000001" HEX_ACCESS HEX_GETATTR_STAT,
	.results = {RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + MAX_OPEN + 16 + MAX_STAT,
	.cachethis = true,
	.check = check_fh,
};

static void setup_want(struct nfs4_call *call)
{
	setup_fh(call);
	call->u.open.want_deleg = true;
}

static const struct op_golden golden_want = {
	.op = nfs4_open,
	.setup = setup_want,
	.args = HEX_PUTFH2 HEX_OPEN_BOTH_WANT "00000000 00000004" HEX_ACCESS HEX_GETATTR_STAT,
	.results = {RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + MAX_OPEN + 16 + MAX_STAT,
	.cachethis = true,
	.check = check_fh,
};

/* With READ of the file, by the stateid that OPEN has just made. */
static uint8_t room[64];
static struct rpcrdma_buf buf = {.data = room};
static struct nfs4_op_read data;

static void setup_read(struct nfs4_call *call)
{
	setup_want(call);
	data = (struct nfs4_op_read){
		.count = 10,
		.asked = 10, /* for who decodes only */
		.sink = {&buf, room, sizeof(room)},
	};
	call->u.open.read = &data;
}

static void check_read(const struct nfs4_call *call)
{
	is_open(&call->u.open);
	cr_assert(data.eof);
	cr_assert_eq(data.len, 5);
	cr_assert_not_null(data.data);
	cr_assert_neq(data.data, room);
}

#define HEX_READ "00000019 00000001 000000000000000000000000 0000000000000000 0000000a"
#define RES_READ "00000019 00000000 00000001 00000005 68656c6c6f 000000"

static const struct op_golden golden_read = {
	.op = nfs4_open,
	.setup = setup_read,
	.args = HEX_PUTFH2 HEX_OPEN_BOTH "00000000 00000004" HEX_ACCESS HEX_GETATTR_STAT HEX_READ,
	.results = {RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat, RES_READ},
	.forgiven = 2,
	.reply_max = 8 + MAX_OPEN + 16 + MAX_STAT + 8 + 8,
	.ddp_len = 8,
	.check = check_read,
};

/* nfs4_claim(): what a delegation served; another one is not wanted. */
static struct nfs4_state served;

static void setup_claim(struct nfs4_call *call)
{
	served.fh = op_test_fh2;
	served.owner = 0x1122334455667788;
	call->stateid = (struct nfs4_stateid){1, {0xdd, 0xee}};
	call->u.open = (struct nfs4_op_open){
		.claim = &served,
		.want_deleg = true, /* of whatever the call did before */
		.truncate = true,
	};
}

static void start_claim(struct nfs4_call *call)
{
	nfs4_claim(call);
	call->u.open.share_access = OPEN4_SHARE_ACCESS_BOTH; /* when it is sent */
}

static const struct op_golden golden_claim = {
	.op = start_claim,
	.setup = setup_claim,
	.args = HEX_PUTFH2 HEX_OPEN_BOTH
	"00000000 00000005 00000001 ddee00000000000000000000" HEX_ACCESS HEX_GETATTR_STAT,
	.results = {RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat},
	.forgiven = 2,
	.reply_max = 8 + MAX_OPEN + 16 + MAX_STAT,
	.cachethis = true,
	.check = check_fh,
};

static const struct op_golden golden_name = {
	BY_NAME,
	.setup = setup_name,
	.args = HEX_PUTFH HEX_SAVEFH HEX_OPEN_READ "00000000" HEX_CLAIM_NAME HEX_REST,
};

static const struct op_golden golden_create = {
	BY_NAME,
	.setup = setup_create,
	.args = HEX_PUTFH HEX_SAVEFH HEX_OPEN_READ
	"00000001 00000000 00000002 00000010 00000002 0000000c 0000000000000000 "
	"000001a4" HEX_CLAIM_NAME HEX_REST,
};

#define HEX_ATIME "0000000011223344 0a0b0c0d "
/* The anonymous stateid; to the client's time and to the server's. */
#define HEX_STAMP                                                                                  \
	"00000022 00000000000000000000000000000000"                                                \
	"00000002 00000000 00410000 00000014 00000001 " HEX_ATIME "00000000 "
#define HEX_OURS                                                                                   \
	"0000000f 00000004 66696c65 00000025 00000002 00000000 00008000 0000000c " HEX_ATIME
#define RES_STAMP "00000022 00000000 00000002 00000000 00410000"

#define EXCLUSIVELY .op = nfs4_open, .supported = everything, .cachethis = true, .check = check_name

static const struct op_golden golden_exclusive = {
	EXCLUSIVELY,
	.setup = setup_exclusive,
	.args = HEX_PUTFH HEX_SAVEFH HEX_OPEN_READ
	"00000001 00000003 7665726634333231"
	"00000003 00000000 00000000 00020000 00000008 000001b6 00000012" HEX_CLAIM_NAME HEX_GETFH
		HEX_STAMP HEX_ACCESS HEX_GETATTR_STAT HEX_RESTORE HEX_GETATTR_DIR,
	.results = {RES_PUTFH, RES_SAVEFH, RES_OPEN, RES_GETFH2, RES_STAMP, RES_ACCESS,
		op_test_res_stat, RES_RESTORE, op_test_res_dir},
	.forgiven = 4,
	.reply_max = 16 + MAX_OPEN + MAX_GETFH + 24 + 16 + MAX_STAT + 8 + MAX_DIR,
};

/* What an earlier execution made, by its access time; else EEXIST as it was. */
static const struct op_golden golden_again = {
	EXCLUSIVELY,
	.setup = setup_again,
	.args = HEX_PUTFH HEX_SAVEFH HEX_OURS HEX_OPEN_READ "00000000 00000004" HEX_REST,
	.results = {RES_PUTFH, RES_SAVEFH, "0000000f 00000000", "00000025 00000000", RES_OPEN,
		RES_GETFH2, RES_ACCESS, op_test_res_stat, RES_RESTORE, op_test_res_dir},
	.forgiven = 6,
	.reply_max = 16 + 16 + MAX_OPEN + MAX_GETFH + 16 + MAX_STAT + 8 + MAX_DIR,
};

Test(nfs4_open, by_filehandle)
{
	op_golden_check(&golden_fh);
}

Test(nfs4_open, reclaimed_after_a_restart)
{
	op_golden_check(&golden_reclaim);
}

Test(nfs4_open, reclaimed_with_its_delegation)
{
	op_golden_check(&golden_reclaim_deleg);
}

Test(nfs4_open, a_delegation_is_welcome)
{
	op_golden_check(&golden_want);
}

Test(nfs4_open, reads_with_the_current_stateid)
{
	op_golden_check(&golden_read);
}

Test(nfs4_open, what_is_read_may_come_by_write_chunk)
{
	const char *results[] = {RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat,
		"00000019 00000000 00000000 00000007"};
	struct op_test t;

	op_test_init(&t, &golden_read);
	cr_assert_eq(op_test_encode(&t, &golden_read, 4096, golden_read.args), 0);
	cr_assert_eq(t.call.rpc.req.result_cnt, 1);
	cr_assert_eq(t.call.rpc.req.results[0].sink.p, room);
	cr_assert_eq(t.call.rpc.req.results[0].sink.len, 12);
	t.call.rpc.req.results[0].used = true;
	t.call.rpc.req.results[0].got = 7;
	cr_assert_eq(op_test_decode(&t, results, 5, NFS4_OK), 0);
	cr_assert_eq(data.data, room);
	cr_assert_eq(data.len, 7);
	cr_assert_not(data.eof);
}

/* Whatever it is: the call must be neither repeated nor fail, and what the OPEN said counts. */
Test(nfs4_open, is_open_though_it_cannot_be_read)
{
	static const struct {
		enum nfs4_status status;
		const char *result;
	} errors[] = {
		{NFS4ERR_DELAY, "00000019 00002718"},
		{NFS4ERR_GRACE, "00000019 0000271d"},
		{NFS4ERR_LOCKED, "00000019 0000271c"},
		{NFS4ERR_ACCESS, "00000019 0000000d"},
		{NFS4ERR_OPENMODE, "00000019 00002736"},
		{NFS4ERR_BAD_STATEID, "00000019 00002729"},
		{NFS4ERR_EXPIRED, "00000019 0000271b"},
		{NFS4ERR_REP_TOO_BIG, "00000019 00002752"},
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		const char *results[] = {
			RES_PUTFH, RES_OPEN, RES_ACCESS, op_test_res_stat, errors[i].result};
		struct op_test t;

		op_test_init(&t, &golden_read);
		data.data = room;
		data.len = 3;
		cr_assert_eq(op_test_decode(&t, results, 5, errors[i].status), 0);
		cr_assert_eq(t.status, NFS4_OK);
		is_open(&t.call.u.open);
		cr_assert_null(data.data);
		cr_assert_eq(data.len, 0);
	}
}

Test(nfs4_open, reads_by_filehandle_only_and_where_there_is_room)
{
	struct op_test t;

	op_test_init(&t, &golden_read);
	data.sink.len = 9;
	cr_assert_eq(op_test_encode(&t, &golden_read, 4096, NULL), -EINVAL);
	op_test_init(&t, &golden_name);
	t.call.u.open.read = &data;
	cr_assert_eq(op_test_encode(&t, &golden_name, 4096, NULL), -EINVAL);
}

Test(nfs4_open, claimed_from_a_delegation)
{
	op_golden_check(&golden_claim);
}

Test(nfs4_open, by_name)
{
	op_golden_check(&golden_name);
}

Test(nfs4_open, creates_and_truncates_unchecked)
{
	op_golden_check(&golden_create);
}

Test(nfs4_open, creates_exclusively_without_the_times)
{
	op_golden_check(&golden_exclusive);
}

Test(nfs4_open, knows_what_it_made_before)
{
	const char *none[] = {RES_PUTFH, RES_SAVEFH, "0000000f 00000002"};
	const char *other[] = {RES_PUTFH, RES_SAVEFH, "0000000f 00000000", "00000025 0000272b"};
	struct op_test t;

	op_golden_check(&golden_again);
	op_test_init(&t, &golden_again);
	cr_assert_eq(op_test_decode(&t, other, 4, NFS4ERR_NOT_SAME), 0);
	cr_assert_eq(t.status, NFS4ERR_EXIST);
	op_test_init(&t, &golden_again);
	cr_assert_eq(op_test_decode(&t, none, 3, NFS4ERR_NOENT), 0);
	cr_assert_eq(t.status, NFS4ERR_EXIST);
}

Test(nfs4_open, asks_again_only_what_may_have_been_executed)
{
	struct op_test t;

	op_test_init(&t, &golden_exclusive);
	t.call.status = NFS4ERR_EXIST;
	cr_assert_not(t.desc->again(&t.call), "never sent before: it is another one's");
	t.call.resent = true;
	t.call.status = NFS4ERR_ACCESS;
	cr_assert_not(t.desc->again(&t.call));
	t.call.status = NFS4ERR_EXIST;
	cr_assert(t.desc->again(&t.call));
	cr_assert(t.call.u.open.again);
	cr_assert_not(t.desc->again(&t.call), "once");
	op_test_init(&t, &golden_create);
	t.call.resent = true;
	t.call.status = NFS4ERR_EXIST;
	cr_assert_not(t.desc->again(&t.call));
}

Test(nfs4_open, is_open_though_the_times_are_not_set)
{
	const char *results[] = {RES_PUTFH, RES_SAVEFH, RES_OPEN, RES_GETFH2, "00000022 00002718"};
	struct op_test t;

	op_test_init(&t, &golden_exclusive);
	cr_assert_eq(op_test_decode(&t, results, 5, NFS4ERR_DELAY), 0);
	cr_assert_eq(t.status, NFS4_OK);
	cr_assert_not(t.call.u.open.stamped);
	op_test_is_fh2(&t.call.u.open.fh);
	cr_assert_eq(t.call.u.open.attr.valid, 0);
}

Test(nfs4_open, fits_the_replay_cache)
{
	/* 80 before the first operation; with the longest delegation */
	cr_assert_leq(NFS4_REPLY_HEAD + golden_name.reply_max, 1032);
	cr_assert_leq(NFS4_REPLY_HEAD + golden_exclusive.reply_max, 1032);
	cr_assert_leq(NFS4_REPLY_HEAD + golden_again.reply_max, 1032);
}

Test(nfs4_open, only_creating_by_name_can_truncate)
{
	struct op_test t;

	op_test_init(&t, &golden_name);
	t.call.u.open.truncate = true;
	cr_assert_eq(op_test_encode(&t, &golden_name, 4096, NULL), -EINVAL);
	op_test_init(&t, &golden_fh);
	t.call.u.open.create = true;
	cr_assert_eq(op_test_encode(&t, &golden_fh, 4096, NULL), -EINVAL);
}

/* The reply of golden_fh with this delegation; cut at every byte of OPEN as well. */
static int decode_deleg(struct op_test *t, const char *open_result)
{
	struct op_golden g = golden_fh;
	const char *results[] = {RES_PUTFH, open_result, RES_ACCESS, op_test_res_stat};
	size_t len, cut;
	uint8_t *p = op_test_hex(open_result, &len);
	uint8_t *all = malloc(8 + len);

	memcpy(all, "\0\0\0\x16\0\0\0\0", 8);
	memcpy(all + 8, p, len);
	for (cut = 0; cut < 8 + len; cut++) {
		op_test_init(t, &g);
		cr_assert_eq(op_test_decode_bytes(t, all, cut, 4, NFS4_OK), -EBADMSG);
	}
	free(p);
	free(all);
	op_test_init(t, &g);
	return op_test_decode(t, results, 4, NFS4_OK);
}

#define HEX_ACE "00000000 00000000 00000001 0000000a 45564552594f4e454021 0000"

Test(nfs4_open, takes_every_delegation_a_server_may_give)
{
	struct op_test t;

	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000000"), 0);
	cr_assert_eq(t.call.u.open.deleg_type, OPEN_DELEGATE_NONE);
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000001 00000001 dd00000000000000000000ee"
						    "00000000" HEX_ACE),
		0);
	cr_assert_eq(t.call.u.open.deleg_type, OPEN_DELEGATE_READ);
	cr_assert_eq(t.call.u.open.deleg.seqid, 1);
	cr_assert_eq(t.call.u.open.deleg.other[0], 0xdd);
	cr_assert_eq(t.call.u.open.deleg.other[11], 0xee);
	cr_assert_not(t.call.u.open.deleg_recalled);
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000002 00000001 dd00000000000000000000ee"
						    "00000001 00000001 0000000000010000" HEX_ACE),
		0);
	cr_assert_eq(t.call.u.open.deleg_type, OPEN_DELEGATE_WRITE);
	cr_assert(t.call.u.open.deleg_recalled);
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000002 00000001 dd00000000000000000000ee"
						    "00000000 00000002 00000010 00001000" HEX_ACE),
		0);
	op_test_is_stat(&t.call.u.open.attr);
}

Test(nfs4_open, reads_why_there_is_none)
{
	struct op_test t;

	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000003 00000001 00000001"), 0);
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000003 00000002 00000000"), 0);
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000003 00000008"), 0);
	op_test_is_stat(&t.call.u.open.attr);
}

Test(nfs4_open, refuses_delegations_that_are_none)
{
	struct op_test t;

	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000004"), -EBADMSG);
	/* a limit by neither size nor blocks */
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000002 00000001 dd00000000000000000000ee"
						    "00000001 00000003 0000000000010000" HEX_ACE),
		-EBADMSG);
	/* a boolean of 2 */
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000001 00000001 dd00000000000000000000ee"
						    "00000002" HEX_ACE),
		-EBADMSG);
	/* a who of 4 GiB */
	cr_assert_eq(decode_deleg(&t, RES_OPEN_HEAD "00000001 00000001 dd00000000000000000000ee"
						    "00000000 00000000 00000000 00000001 ffffffff"),
		-EBADMSG);
}

Test(nfs4_open, is_open_though_access_was_not_told)
{
	const char *results[] = {RES_PUTFH, RES_OPEN, "00000003 00002718"};
	struct op_test t;

	op_test_init(&t, &golden_fh);
	cr_assert_eq(op_test_decode(&t, results, 3, NFS4ERR_DELAY), 0);
	cr_assert_eq(t.status, NFS4_OK, "else nobody would close it");
	cr_assert_eq(t.call.u.open.stateid.seqid, 1);
	cr_assert_eq(t.call.u.open.attr.valid, 0);
	cr_assert_eq(t.call.u.open.access, 0);
}
