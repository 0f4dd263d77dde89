/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file_rig.h"

static void set_up(void)
{
	file_set_up(100);
}

TestSuite(fs_open, .init = set_up, .fini = rig_down);

static void open_close(int flags, bool expect_keep)
{
	cr_assert_eq(rig_open(ino, flags, &fh), 0);
	cr_assert_eq(!!(fh.open_flags & FOPEN_KEEP_CACHE), expect_keep);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
}

Test(fs_open, always_asks_the_server_and_closes_there)
{
	open_close(O_RDONLY, false);
	open_close(O_RDONLY, true);
	cr_assert_eq(rig.fake.count[FAKE_OPEN], 2);
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 2);
	cr_assert_eq(rig.fake.opens, 0);
}

Test(fs_open, pages_are_kept_only_while_the_change_attribute_stays)
{
	open_close(O_RDONLY, false);
	open_close(O_RDONLY, true);
	fake_touch(file);
	rig_send(FUSE_OPEN, ino, &(struct fuse_open_in){.flags = O_RDONLY},
		sizeof(struct fuse_open_in), NULL, 0);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert(rig_reply(&re, 1000));
	memcpy(&fh, re.body, sizeof(fh));
	cr_assert_not(fh.open_flags & FOPEN_KEEP_CACHE);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	open_close(O_RDONLY, true);
}

Test(fs_open, pages_are_not_kept_past_a_write_of_our_own)
{
	open_close(O_RDONLY, false);
	cr_assert_eq(rig_open(ino, O_WRONLY, &fh), 0);
	cr_assert_eq(rig_write(ino, fh.fh, 0, "x", 1, O_WRONLY), 1);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	open_close(O_RDONLY, false);
	open_close(O_RDONLY, true);
}

Test(fs_open, attributes_the_kernel_holds_of_another_version_go_before_the_reply)
{
	struct fuse_attr_out attr;
	struct fuse_notify_inval_inode_out *inval = (void *)re.body;

	cr_assert_eq(rig_getattr(ino, &attr), 0);
	cr_assert_gt(attr.attr_valid, 0);
	file->attr.size = 5000;
	fake_touch(file);
	rig_send(FUSE_OPEN, ino, &(struct fuse_open_in){.flags = O_RDONLY},
		sizeof(struct fuse_open_in), NULL, 0);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, 0);
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert_eq(inval->ino, ino);
	cr_assert_lt(inval->off, 0, "attributes only: the kernel drops the pages itself");
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, rig.unique);
	cr_assert_eq(re.h.error, 0);
}

Test(fs_open, stale_pages_go_before_a_getattr_tells_the_new_size)
{
	struct fuse_notify_inval_inode_out *inval = (void *)re.body;
	struct fuse_getattr_in in = {0};

	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	file->attr.size = 5000;
	fake_touch(file);
	rig.fs->conf.noac = true; /* what is cached is no answer */
	rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert_eq(inval->off, 0);
	cr_assert_eq(inval->len, 0);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, rig.unique);
	cr_assert_eq(((struct fuse_attr_out *)re.body)->attr.size, 5000);
	/* Once is enough. */
	rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, rig.unique);
}

Test(fs_open, truncation_is_a_setattr_with_the_new_stateid)
{
	cr_assert_eq(rig_open(ino, O_WRONLY | O_TRUNC, &fh), 0);
	cr_assert_eq(file->attr.size, 0);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 1);
}

Test(fs_open, a_truncation_that_fails_closes_the_file_again)
{
	rig.fake.fail[FAKE_SETATTR] = ENOSPC;
	cr_assert_eq(rig_open(ino, O_WRONLY | O_TRUNC, &fh), ENOSPC);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 0);
	cr_assert(fake_all_free());
}

/* As from the kernel's client, which asks for the right to write first; on the error path only. */
Test(fs_open, a_truncation_in_a_read_only_export_is_eacces)
{
	cr_assert_eq(rig_open(ino, O_RDONLY | O_TRUNC, &fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 0);
	rig.fake.denied = ACCESS4_MODIFY | ACCESS4_EXTEND;
	rig.fake.fail[FAKE_SETATTR] = EROFS;
	cr_assert_eq(rig_open(ino, O_RDONLY | O_TRUNC, &fh), EACCES);
	rig.fake.denied = 0;
	rig.fake.fail[FAKE_SETATTR] = EROFS;
	cr_assert_eq(rig_open(ino, O_RDONLY | O_TRUNC, &fh), EROFS);
	rig.fake.fail[FAKE_SETATTR] = EROFS;
	rig.fake.fail[FAKE_ACCESS] = ESTALE;
	cr_assert_eq(rig_open(ino, O_RDONLY | O_TRUNC, &fh), ESTALE);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 1);
	cr_assert(fake_all_free());
}

Test(fs_open, a_refusal_of_the_server_is_the_answer)
{
	rig.fake.fail[FAKE_OPEN] = EACCES;
	cr_assert_eq(rig_open(ino, O_RDWR, &fh), EACCES);
	cr_assert(fake_all_free());
	cr_assert_eq(fs_inode_count(rig.fs), 2);
}

Test(fs_open, a_file_that_may_only_be_executed_cannot_be_read)
{
	rig.fake.access = ACCESS4_EXECUTE;
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), EACCES);
	cr_assert_eq(rig_open(ino, O_RDONLY | 0x20, &fh), 0);
	rig.fake.access = ACCESS4_READ;
	cr_assert_eq(rig_open(ino, O_RDONLY | 0x20, &fh), EACCES);
}

Test(fs_open, without_memory_of_calls_an_open_leaves_nothing_behind)
{
	rig.fake.dead = -EIO;
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), EIO);
	rig.fake.dead = 0;
	cr_assert(fake_all_free());
}

Test(fs_open, create_sends_mode_and_umask_apart)
{
	fuse_ino_t made;

	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT, 0666, &fh, &made), 0);
	cr_assert_eq(rig.fake.last_open.sattr.mode, 0666);
	cr_assert_eq(rig.fake.last_open.sattr.umask, 022);
	cr_assert(rig.fake.last_open.sattr.use_umask);
	cr_assert_not_null(fake_find("new"));
	cr_assert_eq(rig_write(made, fh.fh, 0, "abc", 3, O_RDWR), 3);
	cr_assert_eq(rig_flush(made, fh.fh), 0);
	cr_assert_eq(rig_release(made, fh.fh), 0);
}

Test(fs_open, an_exclusive_create_is_one_call)
{
	fuse_ino_t made;

	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT | O_EXCL, 0600, &fh, &made), 0);
	cr_assert(rig.fake.last_open.exclusive);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR] + rig.fake.count[FAKE_GETATTR], 0);
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT | O_EXCL, 0600, &fh, &made), EEXIST);
}

Test(fs_open, an_exclusive_create_repairs_the_times_the_verifier_was_kept_in)
{
	fuse_ino_t made;

	rig.fake.unstamped = true;
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT | O_EXCL, 0600, &fh, &made), 0);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 1);
	cr_assert_eq(rig.fake.last_sattr.set, NFS4_ATTR_ATIME | NFS4_ATTR_MTIME);
	cr_assert_eq(rig.fake.opens, 1);
}

Test(fs_open, an_exclusive_create_sets_the_mode_that_the_server_did_not_take)
{
	fuse_ino_t made;

	rig.fake.unstamped = rig.fake.mode_unset = true;
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT | O_EXCL, 0600, &fh, &made), 0);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 1);
	cr_assert(rig.fake.last_sattr.set & NFS4_ATTR_MODE);
	cr_assert_eq(rig.fake.last_sattr.mode, 0600);
	/* Without it the file is none. */
	rig.fake.fail[FAKE_SETATTR] = EPERM;
	cr_assert_eq(rig_create("other", O_RDWR | O_CREAT | O_EXCL, 0600, &fh, &made), EPERM);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 1);
}

Test(fs_open, an_exclusive_create_does_without_proper_times)
{
	fuse_ino_t made;

	rig.fake.unstamped = true;
	rig.fake.fail[FAKE_SETATTR] = EPERM;
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT | O_EXCL, 0600, &fh, &made), 0);
	cr_assert_eq(rig.fake.count[FAKE_GETATTR], 1);
	cr_assert_eq(rig.fake.opens, 1);
}

Test(fs_open, a_new_file_that_nothing_is_known_of_is_closed)
{
	fuse_ino_t made;

	rig.fake.unstamped = true;
	rig.fake.fail[FAKE_GETATTR] = EACCES;
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT | O_EXCL, 0600, &fh, &made), EACCES);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 0);
}

Test(fs_open, a_new_file_may_be_unreadable_an_old_one_may_not)
{
	fuse_ino_t made;

	rig.fake.access = 0;
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT, 0, &fh, &made), 0);
	cr_assert_eq(rig_create("f", O_RDWR | O_CREAT, 0, &fh, &made), EACCES);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 1);
}

/* ---- O_RDONLY | O_TRUNC ---- */

Test(fs_open, to_read_truncates_only_for_who_may_write)
{
	struct fake_file *f = fake_add("own", 100);
	fuse_ino_t own = rig_ino(f);
	struct fuse_open_out out;

	rig.fake.access = ACCESS4_READ;
	rig.fake.denied = ACCESS4_MODIFY | ACCESS4_EXTEND;
	cr_assert_eq(rig_open(own, O_RDONLY | O_TRUNC, &out), EACCES);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 0);
	cr_assert_eq(f->attr.size, 100);
	cr_assert_eq(rig.fake.opens, 0, "what was opened is closed");
	cr_assert(fake_all_free());
}

Test(fs_open, to_read_truncates_where_the_server_knows_no_right_to_extend)
{
	struct fake_file *f = fake_add("own", 100);
	fuse_ino_t own = rig_ino(f);
	struct fuse_open_out out;

	rig.fake.access = ACCESS4_READ | ACCESS4_MODIFY;
	rig.fake.unknown = ACCESS4_EXTEND;
	cr_assert_eq(rig_open(own, O_RDONLY | O_TRUNC, &out), 0);
	cr_assert_eq(f->attr.size, 0);
	rig_release(own, out.fh);
	rig_settle();
}

Test(fs_open, to_read_truncates_without_another_call_for_who_may_write)
{
	struct fake_file *f = fake_add("own", 100);
	fuse_ino_t own = rig_ino(f);
	struct fuse_open_out out;

	cr_assert_eq(rig_open(own, O_RDONLY | O_TRUNC, &out), 0);
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 0);
	cr_assert_eq(f->attr.size, 0);
	rig_release(own, out.fh);
	rig_settle();
}
