/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "nfs4_status.h"

/* RFC 8881 section 15.1, RFC 7862 section 11, RFC 8276 section 8.3: first to last of each run. */
static const uint32_t runs[][2] = {
	{0, 2},
	{5, 6},
	{13, 13},
	{17, 18},
	{20, 22},
	{27, 28},
	{30, 31},
	{63, 63},
	{66, 66},
	{69, 70},
	{10001, 10001},
	{10003, 10072},
	{10074, 10096},
};

Test(nfs4_status, every_status_of_the_rfcs_has_one_row)
{
	unsigned int cnt = 0, rows = 0;

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		for (uint32_t s = runs[i][0]; s <= runs[i][1]; s++, cnt++)
			cr_assert_not_null(nfs4_status_find(s), "%u", s);
	for (const struct nfs4_status_row *row; (row = nfs4_status_at(rows)); rows++) {
		cr_assert_eq(nfs4_status_find(row->status), row, "%s is there twice", row->name);
		cr_assert_not_null(row->note);
	}
	cr_assert_eq(rows, cnt);
}

Test(nfs4_status, only_success_is_errno_zero)
{
	for (unsigned int i = 0; nfs4_status_at(i); i++) {
		const struct nfs4_status_row *row = nfs4_status_at(i);

		cr_assert_eq(row->err == 0, row->status == NFS4_OK, "%s", row->name);
		cr_assert_eq(row->action == NFS4_ACT_NONE, row->status == NFS4_OK);
		cr_assert_eq(nfs4_status_errno(row->status), row->err);
		cr_assert_eq(nfs4_status_action(row->status), row->action);
	}
}

Test(nfs4_status, errors_with_an_errno_of_their_own)
{
	cr_assert_eq(nfs4_status_errno(NFS4ERR_NOENT), ENOENT);
	cr_assert_eq(nfs4_status_errno(NFS4ERR_NAMETOOLONG), ENAMETOOLONG);
	cr_assert_eq(nfs4_status_errno(NFS4ERR_NOTEMPTY), ENOTEMPTY);
	cr_assert_eq(nfs4_status_errno(NFS4ERR_DQUOT), EDQUOT);
	cr_assert_eq(nfs4_status_errno(NFS4ERR_STALE), ESTALE);
	cr_assert_eq(nfs4_status_errno(NFS4ERR_NOXATTR), ENODATA);
	cr_assert_eq(nfs4_status_errno(NFS4ERR_NOTSUPP), EOPNOTSUPP);
}

Test(nfs4_status, actions_that_recovery_stands_on)
{
	cr_assert_eq(nfs4_status_action(NFS4ERR_DELAY), NFS4_ACT_DELAY);
	cr_assert_eq(nfs4_status_action(NFS4ERR_GRACE), NFS4_ACT_DELAY);
	cr_assert_eq(nfs4_status_action(NFS4ERR_FILE_OPEN), NFS4_ACT_BUSY);
	cr_assert_eq(nfs4_status_action(NFS4ERR_BADSESSION), NFS4_ACT_SESSION);
	cr_assert_eq(nfs4_status_action(NFS4ERR_DEADSESSION), NFS4_ACT_SESSION);
	cr_assert_eq(nfs4_status_action(NFS4ERR_STALE_CLIENTID), NFS4_ACT_CLIENT);
	cr_assert_eq(nfs4_status_action(NFS4ERR_EXPIRED), NFS4_ACT_STATE);
	cr_assert_eq(nfs4_status_action(NFS4ERR_STALE), NFS4_ACT_REVALIDATE);
	cr_assert_eq(nfs4_status_action(NFS4ERR_NOENT), NFS4_ACT_FAIL);
}

static unsigned int lines;

static void count_lines(void *ctx, enum log_level level, const char *line)
{
	lines++;
	cr_assert(strstr(line, "10073"));
}

Test(nfs4_status, unknown_status_is_an_io_error_and_one_line)
{
	log_set_sink(count_lines, NULL);
	cr_assert_eq(nfs4_status_errno((enum nfs4_status)10073), EIO);
	cr_assert_eq(lines, 1);
	cr_assert_eq(nfs4_status_action((enum nfs4_status)10073), NFS4_ACT_FAIL);
	cr_assert_eq(lines, 1);
	cr_assert_str_eq(nfs4_status_name((enum nfs4_status)10073), "NFS4ERR_(unknown)");
	cr_assert_str_eq(nfs4_status_name(NFS4ERR_STALE), "NFS4ERR_STALE");
	cr_assert_str_eq(nfs4_status_name(NFS4_OK), "NFS4_OK");
}
