/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_lock_xdr.h"
#include "op_test.h"

static struct nfs4_lockowner lo = {.number = 0x1122334455667788};

static void setup(struct nfs4_call *call)
{
	call->stateid = (struct nfs4_stateid){7, {0xaa, 0xbb}};
	call->u.lock = (struct nfs4_op_lock){
		.fh = &op_test_fh,
		.lock = &lo,
		.write = true,
		.offset = 0x100,
		.length = 0x200,
	};
}

static void setup_wait(struct nfs4_call *call)
{
	setup(call);
	call->u.lock.write = false;
	call->u.lock.wait = true;
	call->u.lock.length = NFS4_LOCK_TO_END;
}

static void start_first(struct nfs4_call *call)
{
	nfs4_lock(call);
	call->u.lock.work.first = true;
}

static void start_reclaim(struct nfs4_call *call)
{
	start_first(call);
	call->u.lock.work.reclaim = true;
}

static void check(const struct nfs4_call *call)
{
	cr_assert_eq(call->u.lock.work.stateid.seqid, 1);
	cr_assert_eq(call->u.lock.work.stateid.other[0], 0xcc);
	cr_assert_eq(call->stateid.seqid, 7, "an argument stays as it is");
}

#define RANGE   "0000000000000100 0000000000000200 "
#define STATEID "00000007 aabb00000000000000000000 "
#define OWNER   "0000000000000000 00000010 6c6f636b2069643a 1122334455667788"
#define RESULT  "0000000c 00000000 00000001 cc0000000000000000000000"
#define BOUND   (8u + 8u + 8u + 8u + 4u + 8u + 4u + 128u)

static const struct op_golden first = {
	.op = start_first,
	.setup = setup,
	.args = HEX_PUTFH "0000000c 00000002 00000000 " RANGE "00000001 00000000 " STATEID
			  "00000000 " OWNER,
	.results = {RES_PUTFH, RESULT},
	.reply_max = BOUND,
	.cachethis = true,
	.check = check,
};

Test(nfs4_lock, first_of_an_owner_names_the_open)
{
	op_golden_check(&first);
}

Test(nfs4_lock, reclaims)
{
	struct op_golden g = first;

	g.op = start_reclaim;
	g.args = HEX_PUTFH "0000000c 00000002 00000001 " RANGE "00000001 00000000 " STATEID
			   "00000000 " OWNER;
	op_golden_check(&g);
}

Test(nfs4_lock, later_ones_bear_the_stateid_of_locks)
{
	struct op_golden g = first;

	g.op = nfs4_lock;
	g.args = HEX_PUTFH "0000000c 00000002 00000000 " RANGE "00000000 " STATEID "00000000";
	op_golden_check(&g);
	/* For reading, waiting, to the end. */
	g.setup = setup_wait;
	g.args = HEX_PUTFH "0000000c 00000003 00000000 0000000000000100 ffffffffffffffff "
			   "00000000 " STATEID "00000000";
	op_golden_check(&g);
}

/* ---- LOCK4denied ---- */

static int decode(struct op_test *t, const char *denied, uint32_t status)
{
	char text[256];
	const char *results[] = {RES_PUTFH, text};

	snprintf(text, sizeof(text), "0000000c %08x %s", status, denied);
	op_test_init(t, &first);
	return op_test_decode(t, results, 2, status);
}

Test(nfs4_lock, says_who_has_it)
{
	struct op_test t;

	cr_assert_eq(decode(&t,
			     "0000000000001000 ffffffffffffffff 00000001"
			     "0102030405060708 00000003 61626300",
			     NFS4ERR_DENIED),
		0);
	cr_assert_eq(t.status, NFS4ERR_DENIED);
	cr_assert_eq(t.call.u.lock.denied.offset, 0x1000);
	cr_assert_eq(t.call.u.lock.denied.length, NFS4_LOCK_TO_END);
	cr_assert_not(t.call.u.lock.denied.write);
	/* nfsd leaves out an owner that has no room. */
	cr_assert_eq(decode(&t,
			     "0000000000000000 0000000000000001 00000004"
			     "0000000000000000 00000000",
			     NFS4ERR_DENIED),
		0);
	cr_assert(t.call.u.lock.denied.write);
	/* Only DENIED has a body. */
	cr_assert_eq(decode(&t, "", NFS4ERR_DEADLOCK), 0);
	cr_assert_eq(t.call.u.lock.denied.length, 0);
}

/* It is in the way all the same: the caller hears that, not that the reply is odd. */
Test(nfs4_lock, denied_by_a_range_or_kind_that_cannot_be)
{
	static const struct {
		const char *hex;
		uint64_t offset;
		bool write;
	} rows[] = {
		/* length 0: Ganesha's way to say "to the end of the file" */
		{"0000000000000000 0000000000000000 00000001 0000000000000000 00000000", 0, false},
		{"0000000000000007 0000000000000000 00000002 0000000000000000 00000000", 7, true},
		/* beyond the last byte */
		{"0000000000000002 fffffffffffffffe 00000001 0000000000000000 00000000", 2, false},
		/* no kind of lock: the one that is in everybody's way */
		{"0000000000000009 ffffffffffffffff 00000000 0000000000000000 00000000", 9, true},
		{"0000000000000009 ffffffffffffffff 00000005 0000000000000000 00000000", 9, true},
	};
	struct op_test t;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct nfs4_denied *d = &t.call.u.lock.denied;

		cr_assert_eq(decode(&t, rows[i].hex, NFS4ERR_DENIED), 0, "row %zu", i);
		cr_assert_eq(t.status, NFS4ERR_DENIED, "row %zu", i);
		cr_assert_eq(d->offset, rows[i].offset, "row %zu", i);
		cr_assert_eq(d->length, NFS4_LOCK_TO_END, "row %zu", i);
		cr_assert_eq(d->write, rows[i].write, "row %zu", i);
	}
}

Test(nfs4_lock, denied_by_what_cannot_be_read)
{
	static const char *const rows[] = {
		/* an owner that is longer than the reply, or than any */
		"0000000000000000 0000000000000001 00000001 0000000000000000 00000004",
		"0000000000000000 0000000000000001 00000001 0000000000000000 00000401",
		"0000000000000000 0000000000000001 00000001 0000000000000000 ffffffff",
	};
	struct op_test t;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(decode(&t, rows[i], NFS4ERR_DENIED), -EBADMSG, "row %zu", i);
		cr_assert_eq(t.call.u.lock.denied.length, 0, "row %zu", i);
	}
}

Test(nfs4_lock, denied_cut_at_any_byte)
{
	size_t len;
	uint8_t *p = op_test_hex("00000016 00000000 0000000c 0000271a 0000000000001000"
				 "0000000000000010 00000001 0102030405060708 00000003 61626300",
		&len);
	struct op_test t;

	for (size_t cut = 0; cut <= len; cut++) {
		op_test_init(&t, &first);
		cr_assert_eq(op_test_decode_bytes(&t, p, cut, 2, NFS4ERR_DENIED),
			cut < len ? -EBADMSG : 0);
	}
	free(p);
}

/* ---- owners ---- */

Test(nfs4_lock, owners_are_ours_or_not)
{
	static const struct {
		const char *hex;
		bool ours, failed;
	} rows[] = {
		{OWNER, true, false},
		{"ffffffffffffffff 00000010 6c6f636b2069643a 1122334455667788", true, false},
		{"0000000000000000 00000010 6f70656e2069643a 1122334455667788", false, false},
		{"0000000000000000 0000000f 6c6f636b2069643a 1122334455667700", false, false},
		{"0000000000000000 00000014 6c6f636b2069643a 1122334455667788 00000000", false,
			false},
		{"0000000000000000 00000000", false, false},
		{"0000000000000000 00000010 6c6f636b2069643a 11223344", false, true},
		{"0000000000000000 00000401", false, true},
		{"00000000", false, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t number = 0;
		struct xdr_dec x;
		size_t len;
		uint8_t *p = op_test_hex(rows[i].hex, &len);

		xdr_dec_init(&x, p, len);
		cr_assert_eq(nfs4_lock_xdr_get_owner(&x, &number), rows[i].ours, "row %zu", i);
		cr_assert_eq(x.failed, rows[i].failed, "row %zu", i);
		cr_assert_eq(number, rows[i].ours ? lo.number : 0, "row %zu", i);
		free(p);
	}
}

Test(nfs4_lock, ranges_that_can_be)
{
	cr_assert(nfs4_lock_xdr_range_ok(0, 1) && nfs4_lock_xdr_range_ok(0, UINT64_MAX - 1));
	cr_assert(nfs4_lock_xdr_range_ok(1, UINT64_MAX - 1) &&
		  nfs4_lock_xdr_range_ok(UINT64_MAX, UINT64_MAX));
	cr_assert(!nfs4_lock_xdr_range_ok(0, 0) && !nfs4_lock_xdr_range_ok(2, UINT64_MAX - 1));
	cr_assert_not(nfs4_lock_xdr_range_ok(UINT64_MAX, 1));
}
