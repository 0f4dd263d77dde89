/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are kept open are looked at again as their attributes age. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fake_state.h"
#include "file_rig.h"

static void set_up(void)
{
	rig_delegation = true; /* none is granted, unless a test says so */
	file_set_up(100);
	rig.fake.calls_max = 32;
}

static void tear_down(void)
{
	while (rig_reply(&re, 0))
		;
	rig_down();
}

TestSuite(fs_validate, .init = set_up, .fini = tear_down);

static void keep_open(int flags)
{
	cr_assert_eq(rig_open(ino, flags, &fh), 0);
}

static void run_s(unsigned int s)
{
	rig_run_for(s * NSEC_PER_SEC);
}

/* How many times the kernel was told to drop all pages of this node. */
static unsigned int drops_of(fuse_ino_t node)
{
	struct fuse_notify_inval_inode_out out;
	unsigned int n = 0;

	rig_settle();
	while (rig_reply(&re, 0)) {
		if (re.h.unique != 0 || re.h.error != FUSE_NOTIFY_INVAL_INODE)
			continue;
		memcpy(&out, re.body, sizeof(out));
		n += out.ino == node && out.off == 0 && out.len == 0;
	}
	return n;
}

static unsigned int asked(void)
{
	return count(FAKE_GETATTRS);
}

Test(fs_validate, a_change_of_a_file_that_is_kept_open_drops_its_pages)
{
	keep_open(O_RDONLY);
	run_s(4);
	cr_assert_eq(asked(), 1);
	cr_assert_eq(drops_of(ino), 0);
	fake_touch(file);
	run_s(7);
	cr_assert_eq(asked(), 2);
	cr_assert_eq(rig.stats.validations, 2);
	cr_assert_eq(drops_of(ino), 1);
	run_s(120);
	cr_assert_eq(drops_of(ino), 0, "once");
}

Test(fs_validate, is_asked_less_often_while_nothing_changes)
{
	keep_open(O_RDONLY);
	run_s(100); /* after 3, 9, 21, 45, 93 s */
	cr_assert_geq(asked(), 4);
	cr_assert_leq(asked(), 5);
	run_s(600); /* each minute */
	cr_assert_geq(asked(), 13);
	cr_assert_leq(asked(), 16);
	fake_touch(file);
	for (unsigned int i = 0; i < 62 && drops_of(ino) == 0; i++)
		run_s(1);
	rig.fake.count[FAKE_GETATTRS] = 0;
	run_s(22); /* after a change more often: 3, 9, 21 s */
	cr_assert_geq(asked(), 2);
	cr_assert_leq(asked(), 3);
}

Test(fs_validate, what_nobody_has_open_is_not_asked)
{
	keep_open(O_RDONLY);
	run_s(2);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	run_s(300);
	cr_assert_eq(asked(), 0);
}

Test(fs_validate, nor_is_what_has_no_pages)
{
	struct fuse_open_out fh2;

	keep_open(O_WRONLY);
	cr_assert_eq(rig_open(ino, O_RDWR | O_DIRECT, &fh2), 0);
	run_s(300);
	cr_assert_eq(asked(), 0);
}

Test(fs_validate, nor_with_noac)
{
	rig.fs->conf.noac = true;
	keep_open(O_RDONLY);
	run_s(300);
	cr_assert_eq(asked(), 0);
}

Test(fs_validate, nor_while_it_is_delegated)
{
	rig.fake.grant = OPEN_DELEGATE_READ;
	keep_open(O_RDONLY);
	cr_assert_not_null(file->deleg);
	run_s(300);
	cr_assert_eq(asked(), 0);
	fake_recall(file);
	rig_settle();
	fake_touch(file);
	run_s(62);
	cr_assert_geq(asked(), 1);
	cr_assert_eq(drops_of(ino), 1);
}

/* Ours are too old after each WRITE; the file is nobody else's all the same. */
Test(fs_validate, nor_while_it_is_delegated_to_write)
{
	rig.fake.grant = OPEN_DELEGATE_WRITE;
	keep_open(O_RDWR);
	cr_assert_not_null(file->deleg);
	cr_assert_eq(rig_write(ino, fh.fh, 0, "abc", 3, O_RDWR), 3);
	run_s(300);
	cr_assert_eq(asked(), 0);
}

/* The kernel asks for attributes itself. */
Test(fs_validate, nor_while_others_ask)
{
	struct fuse_attr_out out;

	keep_open(O_RDONLY);
	for (unsigned int i = 0; i < 100; i++) {
		cr_assert_eq(rig_getattr(ino, &out), 0);
		run_s(1);
	}
	cr_assert_leq(asked(), 5);
	cr_assert_leq(asked() + count(FAKE_GETATTR), 6);
}

Test(fs_validate, without_a_cache_time_it_is_asked_each_second)
{
	rig.fs->conf.acregmin_s = rig.fs->conf.acregmax_s = 0;
	keep_open(O_RDONLY);
	run_s(30);
	cr_assert_geq(asked(), 29);
	cr_assert_leq(asked(), 31);
}

Test(fs_validate, what_we_write_ourselves_is_no_change)
{
	keep_open(O_RDWR);
	for (unsigned int i = 0; i < 20; i++) {
		cr_assert_eq(rig_write(ino, fh.fh, 0, "abc", 3, O_RDWR), 3);
		run_s(3);
	}
	run_s(100);
	cr_assert_gt(asked(), 0);
	cr_assert_eq(drops_of(ino), 0);
}

/* Its change may be seen before its answer. */
Test(fs_validate, nor_is_what_is_being_written)
{
	struct fuse_write_in in = {.fh = 0, .size = 3, .flags = O_RDWR};

	keep_open(O_RDWR);
	run_s(2);
	in.fh = fh.fh;
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	rig_send(FUSE_WRITE, ino, &in, sizeof(in), "abc", 3);
	run_s(2);
	fake_touch(file); /* the WRITE, as the server sees it */
	run_s(30);
	cr_assert_eq(asked(), 0);
	fake_release();
	run_s(60);
	cr_assert_gt(asked(), 0);
	cr_assert_eq(drops_of(ino), 0);
}

/* ---- several files ---- */

#define MORE 6

static struct fake_file *more[MORE];
static fuse_ino_t more_ino[MORE];

static void open_more(void)
{
	struct fuse_open_out out;

	for (unsigned int i = 0; i < MORE; i++) {
		char name[2] = {(char)('a' + i), '\0'};

		more[i] = fake_add(name, 100);
		more_ino[i] = rig_ino(more[i]);
		cr_assert_eq(rig_open(more_ino[i], O_RDONLY, &out), 0);
	}
}

Test(fs_validate, files_of_one_user_are_one_call)
{
	struct fuse_open_out out;

	open_more();
	for (unsigned int i = 0; i < 20; i++)
		cr_assert_eq(rig_open(more_ino[0], O_RDONLY, &out), 0);
	run_s(4);
	cr_assert_eq(asked(), 1);
	cr_assert_eq(rig.fake.last_getattrs, MORE, "each file once");
	cr_assert_eq(rig.stats.validations, MORE);
	for (unsigned int i = 0; i < MORE; i++)
		fake_touch(more[i]);
	run_s(9);
	cr_assert_eq(drops_of(more_ino[0]), 1);
}

Test(fs_validate, what_does_not_fit_is_another_call)
{
	rig.fake.getattrs_max = 4;
	open_more();
	for (unsigned int i = 0; i < MORE; i++)
		fake_touch(more[i]);
	run_s(4);
	cr_assert_eq(asked(), 2);
	cr_assert_eq(rig.stats.validations, MORE);
	rig_settle();
	cr_assert_eq(rig.stats.invals, MORE);
}

Test(fs_validate, each_user_asks_for_his_own)
{
	struct fuse_open_out out;

	open_more();
	rig.uid = 2000;
	keep_open(O_RDONLY);
	cr_assert_eq(rig_open(ino, O_RDONLY, &out), 0);
	run_s(4);
	cr_assert_eq(asked(), 2);
	cr_assert_eq(rig.stats.validations, MORE + 1);
	cr_assert_eq(rig.fake.last_cred.uid, 2000);
}

Test(fs_validate, one_that_is_gone_does_not_keep_the_others)
{
	open_more();
	more[2]->used = false;
	for (unsigned int i = 0; i < MORE; i++)
		fake_touch(more[i]);
	run_s(4);
	cr_assert_eq(asked(), 2);
	cr_assert_eq(rig.stats.validations, MORE - 1);
	cr_assert_eq(rig.stats.invals, MORE - 1);
	more[2]->used = true;
}

/* ---- trouble ---- */

Test(fs_validate, a_server_that_does_not_answer_is_asked_once)
{
	open_more();
	rig.fake.hold_ops = 1ull << FAKE_GETATTRS;
	run_s(3);
	keep_open(O_RDONLY);
	run_s(600);
	cr_assert_eq(asked(), 1);
	fake_release();
	run_s(1);
	cr_assert_eq(asked(), 2);
	cr_assert_eq(rig.stats.validations, MORE + 1);
}

Test(fs_validate, without_a_session_it_is_tried_again)
{
	open_more();
	rig.fake.dead = -EIO;
	run_s(30);
	cr_assert_eq(asked(), 0);
	rig.fake.dead = 0;
	run_s(60);
	cr_assert_gt(asked(), 0);
}

Test(fs_validate, an_error_of_the_call_is_nobodys)
{
	open_more();
	rig.fake.fail[FAKE_GETATTRS] = EIO;
	run_s(4);
	cr_assert_eq(asked(), 1);
	cr_assert_eq(rig.stats.validations, 0);
	run_s(9);
	cr_assert_eq(rig.stats.validations, MORE);
}

/* Requests come first. */
Test(fs_validate, waits_for_an_operation)
{
	struct fuse_read_in in = {.size = 100};

	keep_open(O_RDONLY);
	in.fh = fh.fh;
	rig.fake.bufs_max = 32;
	rig.fake.hold_ops = 1u << FAKE_READ;
	for (unsigned int i = 0; i < 15; i++)
		rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
	run_s(30);
	cr_assert_eq(asked(), 0);
	fake_release();
	run_s(2);
	cr_assert_eq(asked(), 1);
}

Test(fs_validate, one_on_its_way_ends_with_the_lane)
{
	open_more();
	rig.fake.hold_ops = 1ull << FAKE_GETATTRS;
	run_s(4);
	cr_assert_eq(asked(), 1);
	fs_lane_stop(rig.lane);
	run_s(1);
	cr_assert_not(rig.idle);
	fake_release();
	run_s(1);
	cr_assert(rig.idle);
}

Test(fs_validate, a_file_that_is_closed_meanwhile_is_let_go)
{
	keep_open(O_RDONLY);
	rig.fake.hold_ops = 1ull << FAKE_GETATTRS;
	run_s(4);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	fake_release();
	run_s(300);
	cr_assert_eq(asked(), 1);
	cr_assert(fake_all_free());
}
