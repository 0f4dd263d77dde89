/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of NFS in tables that another process wrote. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nfs4_tables.h"

static struct tables_in in;
static struct tables_record r;
static int fd = -1;

static void tear_down(void)
{
	tables_close(&in);
	close(fd);
}

TestSuite(nfs4_tables, .fini = tear_down);

/* Field 1 of a record that is read again: these bytes, or this credential. */
static void write_and_read(const void *bytes, size_t len, const struct rpc_cred *cred)
{
	struct tables_out t;

	tables_close(&in);
	if (fd >= 0)
		close(fd);
	fd = memfd_create("tables", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
	tables_begin(&t, fd);
	tables_record(&t, 1);
	if (cred)
		nfs4_tables_put_cred(&t, 1, cred);
	else
		tables_put_bytes(&t, 1, bytes, len);
	cr_assert_eq(tables_end(&t), 0);
	cr_assert_eq(tables_open(&in, fd), 0);
	cr_assert(tables_next(&in, &r));
}

Test(nfs4_tables, a_credential_is_what_it_was)
{
	struct rpc_cred cred = {.flavor = RPC_AUTH_SYS, .uid = 1000, .gid = 100}, got;

	for (uint32_t cnt = 0; cnt <= RPC_MAX_GROUPS; cnt += RPC_MAX_GROUPS) {
		cred.gids_cnt = cnt;
		for (uint32_t i = 0; i < cnt; i++)
			cred.gids[i] = 7 * i;
		write_and_read(NULL, 0, &cred);
		cr_assert(nfs4_tables_get_cred(&r, 1, &got));
		cr_assert_eq(got.flavor, RPC_AUTH_SYS);
		cr_assert_eq(got.uid, 1000);
		cr_assert_eq(got.gid, 100);
		cr_assert_eq(got.gids_cnt, cnt);
		cr_assert_arr_eq(got.gids, cred.gids, cnt * sizeof(cred.gids[0]));
	}
}

Test(nfs4_tables, bytes_that_are_no_credential_are_none)
{
	static const uint8_t sys[4 * (3 + RPC_MAX_GROUPS + 1)] = {RPC_AUTH_SYS};
	static const uint8_t other[12] = {6};
	static const size_t lens[] = {0, 8, 11, 13, 15, sizeof(sys)};
	struct rpc_cred got;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		write_and_read(sys, lens[i], NULL);
		cr_assert_not(nfs4_tables_get_cred(&r, 1, &got), "%zu", lens[i]);
	}
	write_and_read(sys, 12, NULL);
	cr_assert(nfs4_tables_get_cred(&r, 1, &got));
	cr_assert_not(nfs4_tables_get_cred(&r, 2, &got), "there is no such field");
	write_and_read(other, sizeof(other), NULL);
	cr_assert_not(nfs4_tables_get_cred(&r, 1, &got), "nor such a flavor");
}
