/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "op_test.h"

static void setup_dir(struct nfs4_call *call)
{
	call->u.create = (struct nfs4_op_create){
		.dir = &op_test_fh,
		.name = {"sub", 3},
		.type = NF4DIR,
		.sattr = {.set = NFS4_ATTR_MODE, .mode = 0777, .umask = 022, .use_umask = true},
	};
}

static void setup_symlink(struct nfs4_call *call)
{
	setup_dir(call);
	call->u.create.type = NF4LNK;
	call->u.create.linkdata = (struct nfs4_str){"../target", 9};
	call->u.create.sattr.set = 0;
}

static void setup_device(struct nfs4_call *call)
{
	setup_dir(call);
	call->u.create.type = NF4BLK;
	call->u.create.rdev_major = 8;
	call->u.create.rdev_minor = 17;
}

static void check(const struct nfs4_call *call)
{
	const struct nfs4_op_create *o = &call->u.create;

	op_test_is_cinfo(&o->cinfo);
	op_test_is_fh2(&o->fh);
	op_test_is_stat(&o->attr);
	op_test_is_dir(&o->dir_attr);
}

#define REST HEX_GETFH HEX_GETATTR_STAT HEX_RESTORE HEX_GETATTR_DIR

#define RESULTS                                                                                    \
	.results = {RES_PUTFH, RES_SAVEFH,                                                         \
		"00000006 00000000 " RES_CINFO "00000002 00000000 00000002", RES_GETFH2,           \
		op_test_res_stat, RES_RESTORE, op_test_res_dir},                                   \
	.forgiven = 4, .reply_max = 16 + 44 + MAX_GETFH + MAX_STAT + 8 + MAX_DIR,                  \
	.cachethis = true, .check = check

static const uint32_t everything[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

static const struct op_golden golden_dir = {
	.op = nfs4_create,
	.setup = setup_dir,
	.args = HEX_PUTFH HEX_SAVEFH "00000006 00000002 00000003 73756200"
				     "00000002 00000000 00000002 00000004 000001ed" REST,
	RESULTS,
};

static const struct op_golden golden_dir_umask = {
	.op = nfs4_create,
	.setup = setup_dir,
	.supported = everything,
	.args = HEX_PUTFH HEX_SAVEFH "00000006 00000002 00000003 73756200"
				     "00000003 00000000 00000000 00020000 00000008 000001ff "
				     "00000012" REST,
	RESULTS,
};

static const struct op_golden golden_symlink = {
	.op = nfs4_create,
	.setup = setup_symlink,
	.args = HEX_PUTFH HEX_SAVEFH "00000006 00000005 00000009 2e2e2f746172676574 000000"
				     "00000003 73756200 00000000 00000000" REST,
	RESULTS,
};

static const struct op_golden golden_device = {
	.op = nfs4_create,
	.setup = setup_device,
	.args = HEX_PUTFH HEX_SAVEFH "00000006 00000003 00000008 00000011 00000003 73756200"
				     "00000002 00000000 00000002 00000004 000001ed" REST,
	RESULTS,
};

Test(nfs4_create, makes_a_directory_with_the_umask_applied)
{
	op_golden_check(&golden_dir);
}

Test(nfs4_create, leaves_the_umask_to_a_server_that_knows_it)
{
	op_golden_check(&golden_dir_umask);
}

Test(nfs4_create, makes_a_symlink)
{
	op_golden_check(&golden_symlink);
}

Test(nfs4_create, makes_a_device)
{
	op_golden_check(&golden_device);
}

Test(nfs4_create, makes_pipes_and_sockets_and_nothing_else)
{
	struct op_test t;

	op_test_init(&t, &golden_dir);
	t.call.u.create.type = NF4FIFO;
	cr_assert_eq(op_test_encode(&t, &golden_dir, 4096, NULL), 0);
	t.call.u.create.type = NF4SOCK;
	cr_assert_eq(op_test_encode(&t, &golden_dir, 4096, NULL), 0);
	t.call.u.create.type = NF4REG;
	cr_assert_eq(op_test_encode(&t, &golden_dir, 4096, NULL), -EINVAL);
	t.call.u.create.type = (enum nfs4_ftype)0;
	cr_assert_eq(op_test_encode(&t, &golden_dir, 4096, NULL), -EINVAL);
}

Test(nfs4_create, is_built_in_the_long_buffer_if_there_is_one)
{
	struct rpcrdma_buf buf = {0};
	struct op_test t;

	op_test_init(&t, &golden_symlink);
	cr_assert_null(t.desc->long_buf(&t.call));
	t.call.u.create.long_buf = &buf;
	cr_assert_eq(t.desc->long_buf(&t.call), &buf);
}

Test(nfs4_create, failed_when_the_filehandle_is_missing)
{
	const char *results[] = {RES_PUTFH, RES_SAVEFH, golden_dir.results[2], "0000000a 00000046"};
	struct op_test t;

	op_test_init(&t, &golden_dir);
	cr_assert_eq(op_test_decode(&t, results, 4, NFS4ERR_STALE), 0);
	cr_assert_eq(t.status, NFS4ERR_STALE);
	op_test_is_cinfo(&t.call.u.create.cinfo);
	cr_assert_eq(t.call.u.create.fh.len, 0);
}
