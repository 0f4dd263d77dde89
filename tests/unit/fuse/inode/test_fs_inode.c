/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs_attr.h"
#include "fs_inode.h"
#include "fs_inode_record.h"
#include "live.h"
#include "mutex.h"

static struct fs fs;
static struct nfs4_fh root_fh = {.len = 4, .data = "root"};

static void set_up(void)
{
	memset(&fs, 0, sizeof(fs));
	list_init(&fs.files);
	cr_assert_eq(fs_inode_table_new(&fs), 0);
	fs.root = fs_inode_lookup(&fs, &root_fh, NULL, 0);
}

static void tear_down(void)
{
	fs_inode_table_free(&fs);
}

TestSuite(fs_inode, .init = set_up, .fini = tear_down);

static struct nfs4_fh make_fh(uint32_t n, uint8_t len)
{
	struct nfs4_fh fh = {.len = len};

	memset(fh.data, 0xab, len);
	memcpy(fh.data + len - sizeof(n), &n, sizeof(n));
	return fh;
}

static struct nfs4_attr with_fileid(uint64_t fileid)
{
	struct nfs4_attr a = {
		.valid = NFS4_ATTR_FILEID | NFS4_ATTR_TYPE | NFS4_ATTR_FSID,
		.type = NF4REG,
		.fileid = fileid,
	};

	return a;
}

Test(fs_inode, the_same_filehandle_is_the_same_inode)
{
	struct nfs4_fh fh = make_fh(1, 32), other = make_fh(2, 32), shorter = make_fh(1, 16);
	struct fs_inode *in = fs_inode_lookup(&fs, &fh, NULL, 1);

	cr_assert_not_null(in);
	cr_assert_eq(fs_inode_lookup(&fs, &fh, NULL, 1), in);
	cr_assert_neq(fs_inode_lookup(&fs, &other, NULL, 1), in);
	cr_assert_neq(fs_inode_lookup(&fs, &shorter, NULL, 1), in);
	cr_assert_eq(in->nlookup, 2);
	cr_assert_eq(in->refs, 2);
}

Test(fs_inode, an_empty_filehandle_is_none)
{
	struct nfs4_fh none = {0};

	cr_assert_null(fs_inode_lookup(&fs, &none, NULL, 1));
}

Test(fs_inode, the_root_is_nodeid_1_and_is_never_forgotten)
{
	cr_assert_eq(fs_inode_ino(&fs, fs.root), FUSE_ROOT_ID);
	fs_inode_forget(&fs, FUSE_ROOT_ID, 1000);
	cr_assert_eq(fs_inode_get(&fs, FUSE_ROOT_ID), fs.root);
	cr_assert_eq(fs_inode_lookup(&fs, &root_fh, NULL, 1), fs.root);
}

Test(fs_inode, lives_while_the_kernel_or_an_operation_holds_it)
{
	struct nfs4_fh fh = make_fh(1, 32);
	struct fs_inode *in = fs_inode_lookup(&fs, &fh, NULL, 1);
	fuse_ino_t ino = fs_inode_ino(&fs, in);

	fs_inode_put(&fs, in);
	cr_assert_eq(fs_inode_get(&fs, ino), in);
	fs_inode_forget(&fs, ino, 1);
	cr_assert_eq(fs_inode_count(&fs), 2, "an operation still holds it");
	cr_assert_eq(fs_inode_find(&fs, &fh), in);
	fs_inode_put(&fs, in);
	fs_inode_put(&fs, in);
	cr_assert_eq(fs_inode_count(&fs), 1);
	cr_assert_null(fs_inode_find(&fs, &fh));
}

Test(fs_inode, more_forgets_than_lookups_do_no_harm)
{
	struct nfs4_fh fh = make_fh(1, 32);
	struct fs_inode *in = fs_inode_lookup(&fs, &fh, NULL, 1);

	fs_inode_forget(&fs, fs_inode_ino(&fs, in), 5);
	cr_assert_eq(in->nlookup, 0);
	fs_inode_put(&fs, in);
	cr_assert_eq(fs_inode_count(&fs), 1);
}

Test(fs_inode, a_nodeid_used_again_has_another_generation)
{
	struct nfs4_fh fh = make_fh(1, 32), other = make_fh(2, 32);
	struct fs_inode *in = fs_inode_lookup(&fs, &fh, NULL, 1);
	fuse_ino_t ino = fs_inode_ino(&fs, in);
	uint32_t generation = in->generation;

	fs_inode_put(&fs, in);
	fs_inode_forget(&fs, ino, 1);
	in = fs_inode_lookup(&fs, &other, NULL, 1);
	cr_assert_eq(fs_inode_ino(&fs, in), ino, "else this test shows nothing");
	cr_assert_neq(in->generation, generation);
	generation = in->generation;
	cr_assert_eq(fs_inode_lookup(&fs, &other, NULL, 1)->generation, generation);
}

Test(fs_inode, a_nodeid_that_is_none_is_no_inode)
{
	struct nfs4_fh fh = make_fh(1, 32);
	struct fs_inode *in = fs_inode_lookup(&fs, &fh, NULL, 1);
	fuse_ino_t ino = fs_inode_ino(&fs, in);

	fs_inode_put(&fs, in);
	fs_inode_forget(&fs, ino, 1);
	cr_assert_null(fs_inode_get(&fs, ino));
	cr_assert_null(fs_inode_get(&fs, 0));
	cr_assert_null(fs_inode_get(&fs, UINT64_MAX));
	cr_assert_null(fs_inode_get(&fs, (uintptr_t)in));
	fs_inode_forget(&fs, ino, 1);
	fs_inode_forget(&fs, 1ull << 40, 1);
	cr_assert_eq(fs_inode_count(&fs), 1);
}

Test(fs_inode, another_fileid_under_a_filehandle_makes_the_old_one_stale)
{
	struct nfs4_fh fh = make_fh(1, 32);
	struct nfs4_attr first = with_fileid(10), second = with_fileid(11);
	struct fs_inode *old = fs_inode_lookup(&fs, &fh, &first, 1), *in;

	fs_attr_update(&fs, old, &first, 0, 1);
	cr_assert_eq(fs_inode_lookup(&fs, &fh, &first, 0), old);
	in = fs_inode_lookup(&fs, &fh, &second, 1);
	cr_assert_neq(in, old);
	cr_assert(old->unhashed);
	cr_assert_eq(fs_inode_find(&fs, &fh), in);
	/* The kernel still has the old nodeid: it stays good until forgotten. */
	fs_inode_put(&fs, old);
	fs_inode_put(&fs, old);
	cr_assert_eq(fs_inode_get(&fs, fs_inode_ino(&fs, old)), old);
	fs_inode_put(&fs, old);
	fs_inode_forget(&fs, fs_inode_ino(&fs, old), 1);
	cr_assert_eq(fs_inode_count(&fs), 2);
}

Test(fs_inode, another_type_or_fsid_under_a_filehandle_makes_it_stale_too)
{
	struct nfs4_fh fh = make_fh(1, 32);
	struct nfs4_attr a = with_fileid(10);
	struct fs_inode *in = fs_inode_lookup(&fs, &fh, &a, 1), *second;

	fs_attr_update(&fs, in, &a, 0, 1);
	a.type = NF4DIR;
	second = fs_inode_lookup(&fs, &fh, &a, 1);
	cr_assert_neq(second, in);
	fs_attr_update(&fs, second, &a, 0, 1);
	a.fsid_minor = 1;
	cr_assert_neq(fs_inode_lookup(&fs, &fh, &a, 1), second);
}

Test(fs_inode, the_filehandle_comes_back_as_it_was)
{
	struct nfs4_fh fh = make_fh(77, 128), out = {0};

	fs_inode_fh(fs_inode_lookup(&fs, &fh, NULL, 1), &out);
	cr_assert_eq(out.len, 128);
	cr_assert_arr_eq(out.data, fh.data, 128);
}

Test(fs_inode, a_hundred_thousand_cost_at_most_512_bytes_each)
{
	const uint32_t cnt = 100000;
	/* The mark of its lock, where the order of locks is checked; malloc has steps of 16. */
	const size_t most = 512 + (MUTEX_CHECKED ? 16 : 0);
	struct mallinfo2 before = mallinfo2(), after;
	size_t each;

	for (uint32_t i = 0; i < cnt; i++) {
		struct nfs4_fh fh = make_fh(i, 128);

		fs_inode_put(&fs, fs_inode_lookup(&fs, &fh, NULL, 1));
	}
	after = mallinfo2();
	each = (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / cnt;
	cr_assert_eq(fs_inode_count(&fs), cnt + 1);
	cr_expect_leq(each, most, "%zu bytes", each);
	/* All are found after the table has grown, and all go. */
	for (uint32_t i = 0; i < cnt; i++) {
		struct nfs4_fh fh = make_fh(i, 128);
		struct fs_inode *in = fs_inode_find(&fs, &fh);

		cr_assert_not_null(in);
		fs_inode_put(&fs, in);
		fs_inode_forget(&fs, fs_inode_ino(&fs, in), 1);
	}
	cr_assert_eq(fs_inode_count(&fs), 1);
}

/* 0: under a sanitizer malloc says nothing of itself. */
static size_t used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Of a mount that is taken over: the table neither grows step by step, nor shrinks meanwhile. */
Test(fs_inode, there_is_room_for_those_that_are_put_back)
{
	enum {
		CNT = 100000,
		SOME = 1000
	};
	size_t before = used(), room;

	fs_inode_put_back_room(&fs, CNT);
	room = used();
	cr_assert(before == 0 || room - before >= CNT * sizeof(uint32_t));
	for (uint32_t i = 0; i < SOME; i++) {
		struct nfs4_fh fh = make_fh(i, 32);

		cr_assert_not_null(fs_inode_put_back(&fs, i + 2, 1, &fh, 1));
	}
	cr_assert(before == 0 || used() > room, "no table was given back");
	fs_inode_put_back_all(&fs, 1);
	for (uint32_t i = 0; i < SOME; i++) {
		struct nfs4_fh fh = make_fh(i, 32);
		struct fs_inode *in = fs_inode_find(&fs, &fh);

		cr_assert_not_null(in);
		fs_inode_put(&fs, in);
		fs_inode_forget(&fs, fs_inode_ino(&fs, in), 1);
	}
	cr_assert(before == 0 || used() < room, "it is given back when they are gone");
}

static size_t resident(void)
{
	size_t size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%zu %zu", &size, &pages), 2);
	(void)fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void forget(uint32_t n)
{
	struct nfs4_fh fh = make_fh(n, 128);
	struct fs_inode *in = fs_inode_find(&fs, &fh);

	cr_assert_not_null(in);
	fs_inode_put(&fs, in);
	fs_inode_forget(&fs, fs_inode_ino(&fs, in), 1);
}

/* The kernel may forget them in any order: here those that go last had a page each. */
Test(fs_inode, memory_is_given_back_down_to_the_last_ones)
{
	enum {
		CNT = 65536,
		LAST = 16
	};
	size_t before = resident(), all, left;

	for (uint32_t i = 0; i < CNT; i++) {
		struct nfs4_fh fh = make_fh(i, 128);

		fs_inode_put(&fs, fs_inode_lookup(&fs, &fh, NULL, 1));
	}
	all = resident() - before;
	cr_assert_geq(all, CNT * sizeof(struct fs_inode));
	for (uint32_t i = 0; i < CNT; i++)
		if (i % LAST != 0)
			forget(i);
	for (uint32_t i = 0; i < CNT; i += LAST)
		forget(i);
	cr_assert_eq(fs_inode_count(&fs), 1);
	left = resident();
	if (used() > 0)
		cr_assert_lt(
			left, before + all / 16, "%zu before, %zu more, %zu", before, all, left);
}

Test(fs_inode, a_record_differs_by_each_attribute_that_it_has)
{
	const uint32_t all = NFS4_ATTR_TYPE | NFS4_ATTR_FILEID | NFS4_ATTR_FSID | NFS4_ATTR_MODE |
			     NFS4_ATTR_OWNER | NFS4_ATTR_GROUP;
	const struct nfs4_attr was = {.valid = all, .type = NF4REG};
	struct nfs4_attr is[8];

	for (size_t i = 0; i < 8; i++)
		is[i] = was;
	is[0].type = NF4DIR;
	is[1].fileid = 1;
	is[2].fsid_major = 1;
	is[3].fsid_minor = 1;
	is[4].mode = 0600;
	is[5].uid = 1;
	is[6].gid = 1;
	cr_assert_not(fs_inode_record_differs(&was, &was));
	for (size_t i = 0; i < 7; i++) {
		cr_assert(fs_inode_record_differs(&was, &is[i]), "%zu", i);
		is[i].valid = 0; /* what did not come says nothing */
		cr_assert_not(fs_inode_record_differs(&was, &is[i]), "%zu", i);
	}
	is[7].size = 1; /* no part of it */
	is[7].valid |= NFS4_ATTR_SIZE;
	cr_assert_not(fs_inode_record_differs(&was, &is[7]));
	is[7].valid = NFS4_ATTR_TYPE; /* the others are new */
	cr_assert(fs_inode_record_differs(&is[7], &was));
}

Test(fs_inode, what_is_looked_up_has_one_record)
{
	struct nfs4_fh fh = make_fh(1, 28);
	struct nfs4_attr a = {.valid = NFS4_ATTR_STAT,
		.type = NF4REG,
		.fileid = 7,
		.fsid_minor = 2,
		.mode = 0640,
		.uid = 3,
		.gid = 4};
	struct fs_inode *in;
	live_ref ref;

	fs.live = live_new();
	cr_assert_not_null(fs.live);
	in = fs_inode_lookup(&fs, &fh, &a, 1);
	ref = in->live_ref;
	cr_assert_neq(ref, LIVE_NONE);
	fs_attr_update(&fs, in, &a, 0, 1);
	cr_assert_eq(in->live_ref, ref);
	a.gid = 5;
	fs_attr_update(&fs, in, &a, 0, 2);
	cr_assert_neq(in->live_ref, ref, "it is another one now");
	fs_inode_put(&fs, in);
	fs_inode_forget(&fs, fs_inode_ino(&fs, in), 1);
	live_free(fs.live);
	fs.live = NULL;
}
