/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.statfs = (struct nfs4_op_statfs){.fh = &op_test_fh, .maxname = 99};
}

static void check(const struct nfs4_call *call)
{
	const struct nfs4_op_statfs *o = &call->u.statfs;

	cr_assert_eq(o->files_avail, 1);
	cr_assert_eq(o->files_free, 2);
	cr_assert_eq(o->files_total, 3);
	cr_assert_eq(o->maxname, 255);
	cr_assert_eq(o->bytes_avail, 4);
	cr_assert_eq(o->bytes_free, 5);
	cr_assert_eq(o->bytes_total, 6);
}

static const struct op_golden golden = {
	.op = nfs4_statfs,
	.setup = setup,
	.args = HEX_PUTFH "00000009 00000002 20e00000 00001c00",
	.results = {RES_PUTFH, "00000009 00000000 00000002 20e00000 00001c00 00000034"
			       "0000000000000001 0000000000000002 0000000000000003 000000ff"
			       "0000000000000004 0000000000000005 0000000000000006"},
	.reply_max = 8 + 8 + 20 + 52,
	.check = check,
};

Test(nfs4_statfs, reads_the_counts)
{
	op_golden_check(&golden);
}

Test(nfs4_statfs, what_the_server_does_not_have_is_neither_asked_for_nor_read)
{
	static const uint32_t supported[3] = {0x20000000, 0x00001000, 0};
	const char *results[] = {RES_PUTFH, "00000009 00000000 00000002 20000000 00001000 0000000c"
					    "00000080 0000000000000006"};
	struct op_golden g = golden;
	struct op_test t;

	g.supported = supported;
	op_test_init(&t, &g);
	cr_assert_eq(
		op_test_encode(&t, &g, 4096, HEX_PUTFH "00000009 00000002 20000000 00001000"), 0);
	/* of an earlier answer, of a server that had them */
	t.call.u.statfs.files_total = t.call.u.statfs.bytes_free = 7;
	cr_assert_eq(op_test_decode(&t, results, 2, NFS4_OK), 0);
	cr_assert_eq(t.call.u.statfs.maxname, 128);
	cr_assert_eq(t.call.u.statfs.bytes_total, 6);
	cr_assert_eq(t.call.u.statfs.files_total, 0);
	cr_assert_eq(t.call.u.statfs.bytes_free, 0);
}

Test(nfs4_statfs, attributes_of_files_are_refused)
{
	const char *unasked[] = {RES_PUTFH, "00000009 00000000 00000001 00000010 00000008"
					    "0000000000000001"};
	const char *too_long[] = {RES_PUTFH, "00000009 00000000 00000001 20000000 00000008"
					     "00000001 00000000"};
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, unasked, 2, NFS4_OK), -EBADMSG);
	op_test_init(&t, &golden);
	cr_assert_eq(op_test_decode(&t, too_long, 2, NFS4_OK), -EBADMSG);
}
