/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op_test.h"

static uint8_t room[4608];
static struct rpcrdma_buf buf = {.data = room};

/* What came, for the checks; the entries' own memory is gone by then. */
static unsigned int seen_cnt, stop_after;
static struct nfs4_dirent seen[8];
static char names[8][256];

static bool entry(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	cr_assert_lt(seen_cnt, 8);
	seen[seen_cnt] = *de;
	memcpy(names[seen_cnt], de->name.p, de->name.len);
	names[seen_cnt][de->name.len] = '\0';
	seen_cnt++;
	return seen_cnt != stop_after;
}

static void setup(struct nfs4_call *call)
{
	seen_cnt = stop_after = 0;
	call->u.readdir = (struct nfs4_op_readdir){
		.fh = &op_test_fh,
		.cookie = 0x300000007,
		.verf = {{1, 2, 3, 4, 5, 6, 7, 8}},
		.maxcount = 4096,
		.sink = {&buf, room, sizeof(room)},
		.entry = entry,
	};
}

static void setup_plus(struct nfs4_call *call)
{
	setup(call);
	call->u.readdir.plus = true;
}

#define HEX_READDIR "0000001a 0000000300000007 0102030405060708 00001000 00001000 "
#define RES_READDIR "0000001a 00000000 1112131415161718 "
#define END_EOF     "00000000 00000001"
#define END_MORE    "00000000 00000000"
/* type, RDATTR_ERROR, fileid, mounted_on_fileid */
#define FATTR(type, fileid)                                                                        \
	"00000002 00100802 00800000 00000018 000000" type " 00000000 00000000000000" fileid        \
	" 00000000000000ff"
#define ENTRY(cookie, name, fattr) "00000001 00000000000000" cookie " " name " " fattr " "

static void check(const struct nfs4_call *call)
{
	const struct nfs4_op_readdir *o = &call->u.readdir;

	cr_assert_eq(seen_cnt, 2);
	cr_assert_str_eq(names[0], "abc");
	cr_assert_eq(seen[0].cookie, 8);
	cr_assert_eq(seen[0].attr.valid, NFS4_ATTR_TYPE | NFS4_ATTR_FILEID | NFS4_ATTR_MOUNTED_ON);
	cr_assert_eq(seen[0].attr.type, NF4REG);
	cr_assert_eq(seen[0].attr.fileid, 0x21);
	cr_assert_eq(seen[0].fh.len, 0);
	cr_assert_str_eq(names[1], "d");
	cr_assert_eq(seen[1].cookie, 9);
	cr_assert_eq(seen[1].attr.type, NF4DIR);
	cr_assert(o->eof);
	cr_assert_eq(o->skipped, 0);
	cr_assert_arr_eq(o->verf_out.data, "\x11\x12\x13\x14\x15\x16\x17\x18", 8);
}

static const struct op_golden golden = {
	.op = nfs4_readdir,
	.setup = setup,
	.args = HEX_PUTFH HEX_READDIR "00000002 00100802 00800000",
	.results = {RES_PUTFH, RES_READDIR ENTRY("08", "00000003 61626300", FATTR("01", "21"))
				       ENTRY("09", "00000001 64000000", FATTR("02", "22")) END_EOF},
	.reply_max = 8 + 8 + 4096,
	.check = check,
};

/* A directory of the server where something is mounted has a number of its own. */
static const uint32_t supported[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

static void check_mounted_on(const struct nfs4_call *call)
{
	cr_assert_eq(seen_cnt, 1);
	cr_assert_eq(seen[0].attr.valid, NFS4_ATTR_TYPE | NFS4_ATTR_MOUNTED_ON);
	cr_assert_eq(seen[0].attr.fileid, 0x21);
}

static const struct op_golden golden_mounted_on = {
	.op = nfs4_readdir,
	.setup = setup,
	.supported = supported,
	.args = HEX_PUTFH HEX_READDIR "00000002 00000802 00800000",
	.results = {RES_PUTFH,
		RES_READDIR ENTRY("08", "00000001 61000000",
			"00000002 00000802 00800000 00000010 00000002 00000000 0000000000000021")
			END_EOF},
	.reply_max = 8 + 8 + 4096,
	.check = check_mounted_on,
};

static const uint32_t unsupported[3] = {UINT32_MAX, ~(1u << (FATTR4_MOUNTED_ON_FILEID - 32)), 0};

Test(nfs4_readdir, tells_the_number_in_its_own_file_system)
{
	struct op_golden g = golden_mounted_on;
	struct op_test t;

	op_golden_check(&golden_mounted_on);
	g.supported = unsupported;
	op_test_init(&t, &g);
	cr_assert_eq(op_test_encode(&t, &g, 4096, HEX_PUTFH HEX_READDIR "00000001 00100802"), 0);
}

static void check_plus(const struct nfs4_call *call)
{
	cr_assert_eq(seen_cnt, 1);
	cr_assert_eq(seen[0].attr.valid,
		NFS4_ATTR_TYPE | NFS4_ATTR_FILEID | NFS4_ATTR_FH | NFS4_ATTR_MODE);
	cr_assert_eq(seen[0].attr.mode, 0755);
	op_test_is_fh2(&seen[0].fh);
	cr_assert(!call->u.readdir.eof);
}

static const struct op_golden golden_plus = {
	.op = nfs4_readdir,
	.setup = setup_plus,
	.args = HEX_PUTFH HEX_READDIR "00000002 0018091a 00b0a23a",
	.results = {RES_PUTFH,
		RES_READDIR ENTRY("08", "00000001 61000000",
			"00000002 00180802 00000002 00000020 00000002 00000000 " HEX_FH2
			"0000000000000021 000001ed") END_MORE},
	.reply_max = 8 + 8 + 4096,
	.check = check_plus,
};

Test(nfs4_readdir, tells_names_and_types)
{
	op_golden_check(&golden);
}

Test(nfs4_readdir, plus_brings_attributes_and_filehandles)
{
	op_golden_check(&golden_plus);
}

Test(nfs4_readdir, reply_must_fit_its_sink)
{
	struct op_test t;

	op_test_init(&t, &golden);
	cr_assert_eq(op_test_encode(&t, &golden, 4096, golden.args), 0);
	cr_assert_eq(t.call.rpc.req.reply_sink.p, room);
	cr_assert_eq(t.call.rpc.req.result_cnt, 0);
	t.call.u.readdir.sink.len = 4096 + 80 + 16;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), 0);
	t.call.u.readdir.sink.len--;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), -EINVAL);
	t.call.u.readdir.maxcount = UINT32_MAX;
	cr_assert_eq(op_test_encode(&t, &golden, 4096, NULL), -EINVAL);
}

static int decode(struct op_test *t, const char *body)
{
	const char *results[] = {RES_PUTFH, body};
	unsigned int stop = stop_after;

	op_test_init(t, &golden);
	stop_after = stop;
	return op_test_decode(t, results, 2, NFS4_OK);
}

Test(nfs4_readdir, empty_directory)
{
	struct op_test t;

	cr_assert_eq(decode(&t, RES_READDIR END_EOF), 0);
	cr_assert_eq(seen_cnt, 0);
	cr_assert(t.call.u.readdir.eof);
}

Test(nfs4_readdir, user_says_when_it_is_enough)
{
	struct op_test t;

	stop_after = 1;
	cr_assert_eq(
		decode(&t, RES_READDIR ENTRY("08", "00000001 61000000", FATTR("01", "21"))
				   ENTRY("09", "00000001 62000000", FATTR("01", "22")) END_EOF),
		0);
	cr_assert_eq(seen_cnt, 1);
	cr_assert(!t.call.u.readdir.eof);
}

Test(nfs4_readdir, a_call_that_is_used_again_gives_all_entries_again)
{
	struct op_test t;

	op_test_init(&t, &golden);
	for (unsigned int i = 0; i < 2; i++) {
		seen_cnt = 0;
		cr_assert_eq(op_test_decode(&t, golden.results, 2, NFS4_OK), 0);
		cr_assert_eq(seen_cnt, 2);
	}
}

Test(nfs4_readdir, entry_whose_attributes_failed_is_an_entry)
{
	struct op_test t;

	cr_assert_eq(decode(&t, RES_READDIR ENTRY("08", "00000001 61000000",
					"00000001 00000800 00000004 0000000d") END_EOF),
		0);
	cr_assert_eq(seen_cnt, 1);
	cr_assert_eq(seen[0].attr.valid, NFS4_ATTR_RDERROR);
	cr_assert_eq(seen[0].attr.rderror, NFS4ERR_ACCESS);
}

Test(nfs4_readdir, names_that_no_directory_has_are_skipped)
{
	static const char *const bad[] = {
		"00000000",          /* empty */
		"00000001 2e000000", /* . */
		"00000002 2e2e0000", /* .. */
		"00000003 612f6200", /* a/b */
		"00000003 61006200", /* a NUL b */
		"00000001 2f000000", /* / */
	};
	char body[2048];
	struct op_test t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(body, sizeof(body),
			RES_READDIR ENTRY("08", "%s", FATTR("01", "21"))
				ENTRY("09", "00000003 2e2e2e00", FATTR("01", "22")) END_EOF,
			bad[i]);
		cr_assert_eq(decode(&t, body), 0);
		cr_assert_eq(t.call.u.readdir.skipped, 1, "%s", bad[i]);
		cr_assert_eq(seen_cnt, 1);
		cr_assert_str_eq(names[0], "...");
	}
}

Test(nfs4_readdir, name_of_255_is_the_longest)
{
	char name[600], body[2048];
	struct op_test t;

	for (unsigned int len = 255; len <= 256; len++) {
		int n = snprintf(name, sizeof(name), "%08x", len);

		for (unsigned int i = 0; i < 256; i++)
			n += snprintf(name + n, sizeof(name) - (size_t)n, i < len ? "61" : "00");
		snprintf(body, sizeof(body),
			RES_READDIR ENTRY("08", "%s", FATTR("01", "21")) END_EOF, name);
		cr_assert_eq(decode(&t, body), 0);
		cr_assert_eq(seen_cnt, len == 255);
		cr_assert_eq(t.call.u.readdir.skipped, len == 256);
	}
}

Test(nfs4_readdir, endless_directories_are_refused)
{
	struct op_test t;

	/* nothing, but not the end */
	cr_assert_eq(decode(&t, RES_READDIR END_MORE), -EBADMSG);
	/* back to where we asked from */
	cr_assert_eq(decode(&t, RES_READDIR "00000001 0000000300000007 00000001 61000000 " FATTR(
					"01", "21") END_MORE),
		-EBADMSG);
	/* the same at the end harms nobody */
	cr_assert_eq(decode(&t, RES_READDIR "00000001 0000000300000007 00000001 61000000 " FATTR(
					"01", "21") END_EOF),
		0);
	/* back to the start */
	cr_assert_eq(
		decode(&t, RES_READDIR ENTRY("00", "00000001 61000000", FATTR("01", "21")) END_EOF),
		-EBADMSG);
}
