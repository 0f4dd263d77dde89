/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "op_test.h"

static void setup(struct nfs4_call *call)
{
	call->u.link = (struct nfs4_op_link){
		.file = &op_test_fh, .dir = &op_test_fh2, .name = {"name", 4}};
}

static void check(const struct nfs4_call *call)
{
	op_test_is_cinfo(&call->u.link.cinfo);
	op_test_is_dir(&call->u.link.dir_attr);
	op_test_is_stat(&call->u.link.attr);
}

static const struct op_golden golden = {
	.op = nfs4_link,
	.setup = setup,
	.args = HEX_PUTFH HEX_SAVEFH HEX_PUTFH2
	"0000000b 00000004 6e616d65" HEX_GETATTR_DIR HEX_RESTORE HEX_GETATTR_STAT,
	.results = {RES_PUTFH, RES_SAVEFH, RES_PUTFH, "0000000b 00000000 " RES_CINFO,
		op_test_res_dir, RES_RESTORE, op_test_res_stat},
	.forgiven = 4,
	.reply_max = 24 + 28 + MAX_DIR + 8 + MAX_STAT,
	.cachethis = true,
	.check = check,
};

Test(nfs4_link, brings_the_directory_and_then_the_file)
{
	op_golden_check(&golden);
}
