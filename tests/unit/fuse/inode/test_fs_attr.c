/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_inode.h"
#include "fs_part.h"
#include "fs_rig.h"

#define S NSEC_PER_SEC

static const struct fs_part *const parts[] = {&fs_deleg_lane_part, NULL};
static struct fs fs;
static struct fs_inode *in, *dir;
static struct nfs4_attr a;

static void set_up(void)
{
	struct nfs4_fh fh = {.len = 4, .data = "file"}, dfh = {.len = 3, .data = "dir"};
	struct nfs4_attr d;

	memset(&fs, 0, sizeof(fs));
	fs.parts = parts;
	list_init(&fs.files);
	fs.conf.acregmin_s = 3;
	fs.conf.acregmax_s = 60;
	fs.conf.acdirmin_s = 30;
	fs.conf.acdirmax_s = 60;
	cr_assert_eq(fs_inode_table_new(&fs), 0);
	memset(&a, 0, sizeof(a));
	a.valid = NFS4_ATTR_STAT;
	a.type = NF4REG;
	a.change = 100;
	a.size = 1000;
	a.mode = 0644;
	a.ctime.tv_sec = 50;
	in = fs_inode_lookup(&fs, &fh, NULL, 1);
	dir = fs_inode_lookup(&fs, &dfh, NULL, 1);
	d = a;
	d.type = NF4DIR;
	d.mode = 0755;
	fs_attr_update(&fs, dir, &d, 0, 1000 * S);
}

static void tear_down(void)
{
	fs_inode_table_free(&fs);
}

TestSuite(fs_attr, .init = set_up, .fini = tear_down);

static void update(uint64_t now_ns)
{
	fs_attr_update(&fs, in, &a, fs_attr_seq(in), now_ns);
}

Test(fs_attr, nothing_is_cached_before_the_first_reply)
{
	struct nfs4_attr got;

	cr_assert_not(fs_attr_cached(&fs, in, &got, 1000 * S));
	cr_assert_eq(fs_attr_timeout(&fs, in, 1000 * S), 0);
}

Test(fs_attr, good_for_acregmin_at_first)
{
	struct nfs4_attr got;

	update(1000 * S);
	cr_assert(fs_attr_cached(&fs, in, &got, 1003 * S - 1));
	cr_assert_eq(got.size, 1000);
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1003 * S));
	cr_assert_float_eq(fs_attr_timeout(&fs, in, 1001 * S), 2.0, 1e-6);
}

Test(fs_attr, the_time_doubles_to_acregmax_while_nothing_changes)
{
	uint64_t now_ns = 1000 * S;
	const uint32_t expected[] = {3, 6, 12, 24, 48, 60, 60};

	for (unsigned int i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		update(now_ns);
		cr_assert_eq(in->attr_to_s, expected[i], "step %u: %u s", i, in->attr_to_s);
		now_ns += in->attr_to_s * S;
	}
	a.change++;
	update(now_ns);
	cr_assert_eq(in->attr_to_s, 3);
}

Test(fs_attr, asking_more_often_does_not_double_faster)
{
	update(1000 * S);
	update(1001 * S);
	update(1002 * S);
	cr_assert_eq(in->attr_to_s, 3);
}

Test(fs_attr, directories_have_their_own_times)
{
	cr_assert_eq(dir->attr_to_s, 30);
	cr_assert_float_eq(fs_attr_timeout(&fs, dir, 1000 * S), 30.0, 1e-6);
}

Test(fs_attr, a_lookup_asks_about_a_directory_when_half_of_its_time_is_over)
{
	struct nfs4_attr part = {.valid = NFS4_ATTR_CHANGE, .change = 300};

	cr_assert_eq(fs_attr_ask(&fs, dir, 1015 * S), NFS4_DIR_NONE);
	cr_assert_eq(fs_attr_ask(&fs, dir, 1015 * S + 1), NFS4_DIR_STAT);
	cr_assert_eq(fs_attr_ask(&fs, dir, 2000 * S), NFS4_DIR_STAT);
	fs_attr_update(&fs, dir, &part, fs_attr_seq(dir), 1001 * S);
	cr_assert_eq(fs_attr_ask(&fs, dir, 1001 * S), NFS4_DIR_STAT, "somebody else changed it");
	fs.conf.noac = true;
	cr_assert_eq(fs_attr_ask(&fs, dir, 1000 * S), NFS4_DIR_CHANGES);
}

Test(fs_attr, a_lookup_asks_about_a_directory_of_which_nothing_is_known)
{
	dir->attr_known = false;
	dir->attr_to_s = 0;
	dir->attr_ns = 0;
	cr_assert_eq(fs_attr_ask(&fs, dir, 1000 * S), NFS4_DIR_STAT);
}

Test(fs_attr, noac_caches_nothing)
{
	struct nfs4_attr got;

	fs.conf.noac = true;
	update(1000 * S);
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1000 * S));
	cr_assert_eq(fs_attr_timeout(&fs, in, 1000 * S), 0);
	cr_assert_eq(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
}

Test(fs_attr, a_reply_from_before_our_own_change_is_dropped)
{
	uint64_t before = fs_attr_seq(in);
	struct nfs4_attr got, old = a;

	update(1000 * S);
	a.size = 2000;
	a.change = 101;
	fs_attr_update_own(&fs, in, &a, fs_attr_seq(in), 1001 * S);
	fs_attr_update(&fs, in, &old, before, 1002 * S);
	cr_assert_eq(in->attr.size, 2000);
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1002 * S), "the server is asked again");
}

Test(fs_attr, a_reply_from_before_is_nothing_to_a_delegation)
{
	static struct fs_deleg deleg = {.ready = true};
	uint64_t before = fs_attr_seq(in);
	struct nfs4_attr got, old = a;

	a.size = 2000;
	a.change = 101;
	update(1000 * S);
	in->deleg = &deleg;
	mutex_lock(&in->lock);
	fs_attr_fence(in); /* it is taken */
	mutex_unlock(&in->lock);
	fs_attr_update(&fs, in, &old, before, 1001 * S);
	cr_assert(fs_attr_cached(&fs, in, &got, 1500 * S), "nobody need be asked");
	cr_assert_eq(got.size, 2000);
	in->deleg = NULL;
}

Test(fs_attr, a_reply_from_before_with_a_later_ctime_is_newer_all_the_same)
{
	uint64_t before = fs_attr_seq(in);

	update(1000 * S);
	fs_attr_changed(in);
	a.size = 3000;
	a.ctime.tv_nsec = 1;
	fs_attr_update(&fs, in, &a, before, 1001 * S);
	cr_assert_eq(in->attr.size, 3000);
}

Test(fs_attr, a_change_of_another_inode_is_no_reason_to_doubt)
{
	uint64_t before = fs_attr_seq(in);

	update(1000 * S);
	before = fs_attr_seq(in);
	fs_attr_changed(dir);
	a.size = 5;
	fs_attr_update(&fs, in, &a, before, 1001 * S);
	cr_assert_eq(in->attr.size, 5);
}

Test(fs_attr, somebody_elses_change_makes_the_pages_of_an_opened_file_stale)
{
	update(1000 * S);
	in->opened = true;
	in->data_change = 100;
	update(1001 * S);
	cr_assert_not(fs_stat_pages_stale(in));
	a.change = 200;
	update(1002 * S);
	cr_assert(fs_stat_pages_stale(in));
	cr_assert_eq(in->data_change, 0);
}

Test(fs_attr, our_own_change_leaves_the_pages_alone_but_not_past_the_next_open)
{
	update(1000 * S);
	in->opened = true;
	in->data_change = 100;
	a.change = 101;
	fs_attr_update_own(&fs, in, &a, fs_attr_seq(in), 1001 * S);
	cr_assert_not(fs_stat_pages_stale(in));
	cr_assert_eq(in->data_change, 0);
	update(1002 * S);
	cr_assert_not(fs_stat_pages_stale(in), "the same change attribute as after our write");
}

Test(fs_attr, what_a_write_brings_is_merged_and_the_rest_is_asked_for_again)
{
	struct nfs4_attr got, w = {
				      .valid = NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE,
				      .change = 101,
				      .size = 4096,
			      };

	update(1000 * S);
	fs_attr_update_own(&fs, in, &w, fs_attr_seq(in), 1000 * S);
	cr_assert_eq(in->attr.size, 4096);
	cr_assert_eq(in->attr.mode, 0644);
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1000 * S));
}

Test(fs_attr, part_of_a_directory_that_we_changed_keeps_its_time_without_prolonging_it)
{
	struct nfs4_attr part = {.valid = NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE, .change = 300};

	fs_attr_update_own(&fs, dir, &part, fs_attr_seq(dir), 1010 * S);
	cr_assert_float_eq(fs_attr_timeout(&fs, dir, 1010 * S), 20.0, 1e-6);
}

Test(fs_attr, part_with_the_same_change_attribute_confirms_the_whole)
{
	struct nfs4_attr part = {.valid = NFS4_ATTR_CHANGE, .change = 100};

	fs_attr_update(&fs, dir, &part, fs_attr_seq(dir), 1010 * S);
	cr_assert_float_eq(fs_attr_timeout(&fs, dir, 1010 * S), 30.0, 1e-6);
}

Test(fs_attr, names_are_cached_for_all_users_only_where_all_may_search)
{
	cr_assert_gt(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
	fs.conf.allow_other = true;
	cr_assert_gt(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
	dir->attr.mode = 0750;
	cr_assert_eq(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
	cr_assert_eq(fs_stat_negative_timeout(&fs, dir, 1000 * S), 0);
	fs.conf.default_permissions = true;
	cr_assert_gt(
		fs_stat_entry_timeout(&fs, dir, 1000 * S), 0, "the kernel checks the path itself");
	dir->attr.owner_alien = true;
	cr_assert_eq(
		fs_stat_entry_timeout(&fs, dir, 1000 * S), 0, "but takes nobody for the owner");
	cr_assert_eq(fs_stat_negative_timeout(&fs, dir, 1000 * S), 0);
	dir->attr.mode = 0755;
	cr_assert_gt(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
}

Test(fs_attr, an_owner_that_was_not_known_in_time_is_asked_for_again_soon)
{
	static struct fs_deleg deleg = {.ready = true};
	struct nfs4_attr got;

	a.owner_late = a.owner_alien = true;
	update(1000 * S);
	cr_assert_float_eq(fs_attr_timeout(&fs, in, 1000 * S), 1.0, 1e-6);
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1001 * S));
	in->deleg = &deleg;
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1001 * S), "it does not vouch for our names");
	/* What says nothing of owners changes nothing. */
	a.valid &= ~(uint32_t)(NFS4_ATTR_OWNER | NFS4_ATTR_GROUP);
	a.owner_late = a.owner_alien = false;
	update(1001 * S);
	cr_assert(in->attr.owner_late && in->attr.owner_alien);
	a.valid = NFS4_ATTR_STAT;
	update(1002 * S);
	cr_assert(fs_attr_cached(&fs, in, &got, 1030 * S));
	cr_assert_not(got.owner_late || got.owner_alien);
	in->deleg = NULL;
}

Test(fs_attr, lookupcache_says_which_names_are_cached)
{
	fs.conf.lookupcache = FS_LOOKUPCACHE_POSITIVE;
	cr_assert_gt(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
	cr_assert_eq(fs_stat_negative_timeout(&fs, dir, 1000 * S), 0);
	fs.conf.lookupcache = FS_LOOKUPCACHE_NONE;
	cr_assert_eq(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
}

Test(fs_attr, absent_names_are_not_cached_where_case_does_not_count)
{
	cr_assert_gt(fs_stat_negative_timeout(&fs, dir, 1000 * S), 0);
	rig.fake.info.fs.case_insensitive = true;
	cr_assert_eq(fs_stat_negative_timeout(&fs, dir, 1000 * S), 0);
	cr_assert_gt(fs_stat_entry_timeout(&fs, dir, 1000 * S), 0);
}

Test(fs_attr, stat_shows_what_the_server_says)
{
	struct stat st;

	a.fileid = 42;
	a.nlink = 2;
	a.uid = 1000;
	a.gid = 100;
	a.mode = 04755;
	a.space_used = 513;
	a.mtime.tv_nsec = 999999999;
	fs.max_write = 1 << 20;
	fs_stat_fill(&fs, &a, &st);
	cr_assert_eq(st.st_ino, 42);
	cr_assert_eq(st.st_mode, (mode_t)(S_IFREG | 04755));
	cr_assert_eq(st.st_nlink, 2);
	cr_assert_eq(st.st_blocks, 2);
	cr_assert_eq(st.st_blksize, 1 << 20);
	cr_assert_eq(st.st_mtim.tv_nsec, 999999999);
	a.size = UINT64_MAX;
	a.space_used = UINT64_MAX;
	fs_stat_fill(&fs, &a, &st);
	cr_assert_gt(st.st_size, 0);
	cr_assert_gt(st.st_blocks, 0);
}

Test(fs_attr, the_same_fileid_in_two_file_systems_is_two_inode_numbers)
{
	struct stat st1, st2, st3;

	a.fileid = 2;
	fs_stat_fill(&fs, &a, &st1);
	a.fsid_minor = 1;
	fs_stat_fill(&fs, &a, &st2);
	a.fsid_minor = 2;
	fs_stat_fill(&fs, &a, &st3);
	cr_assert_eq(st1.st_ino, 2);
	cr_assert_neq(st2.st_ino, 2);
	cr_assert_neq(st3.st_ino, st2.st_ino);
}

/* A WRITE cleared suid; the CLOSE after it shows the same change attribute, but no mode. */
Test(fs_attr, partial_attributes_do_not_renew_what_a_write_left_unknown)
{
	struct nfs4_attr got, part = {.valid = NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE};

	update(1000 * S);
	part.change = 101;
	part.size = 1000;
	fs_attr_update_own(&fs, in, &part, fs_attr_seq(in), 1001 * S);
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1001 * S));
	fs_attr_update(&fs, in, &part, fs_attr_seq(in), 1001 * S);
	cr_assert_not(fs_attr_cached(&fs, in, &got, 1001 * S));
	/* Where all is known they do. */
	a.change = 101;
	update(1002 * S);
	fs_attr_update(&fs, in, &part, fs_attr_seq(in), 1004 * S);
	cr_assert(fs_attr_cached(&fs, in, &got, 1006 * S));
}
