/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs_rig.h"

static struct fake_file *file;
static struct fuse_open_out fh, fh2;
static fuse_ino_t ino;

static void set_up(void)
{
	rig_up(NULL);
	file = fake_add("f", 100);
	ino = rig_ino(file);
}

TestSuite(fs_silly, .init = set_up, .fini = rig_down);

static int unlink_f(void)
{
	struct rig_reply re;

	return rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
}

Test(fs_silly, a_closed_file_is_removed)
{
	cr_assert_eq(unlink_f(), 0);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 0);
	cr_assert_not(file->used);
}

Test(fs_silly, an_open_file_is_renamed_and_goes_with_its_last_close)
{
	struct rig_reply re;

	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh2), 0);
	cr_assert_eq(unlink_f(), 0);
	cr_assert(file->used);
	cr_assert_eq(strncmp(file->name, ".nfs0000000000000065", 20), 0, "%s", file->name);
	cr_assert_eq(strlen(file->name), 28);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert(file->used);
	cr_assert_eq(rig_release(ino, fh2.fh), 0);
	rig_settle();
	cr_assert_not(file->used);
	cr_assert(fake_all_free());
}

Test(fs_silly, closed_while_it_is_renamed_it_is_removed_at_once)
{
	struct rig_reply re;

	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	rig_settle();
	rig.fake.hold = true;
	rig_send(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
	rig_settle();
	fake_release(); /* the LOOKUP, if there is one */
	for (int i = 0; i < 100 && rig.fake.count[FAKE_RENAME] == 0; i++)
		reactor_turn(rig.fake.r, 0);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 1);
	rig.fake.hold = true;
	rig_send(FUSE_RELEASE, ino, &(struct fuse_release_in){.fh = fh.fh},
		sizeof(struct fuse_release_in), NULL, 0);
	rig_settle();
	/* CLOSE is answered before RENAME. */
	struct list *rename = list_pop_front(&rig.fake.pending);

	list_push_back(&rig.fake.pending, rename);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert(rig_reply(&re, 1000));
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_REMOVE], 1);
	cr_assert_not(file->used);
	cr_assert(fake_all_free());
}

Test(fs_silly, a_rename_that_fails_is_the_unlinks_answer)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	rig.fake.fail[FAKE_RENAME] = EACCES;
	cr_assert_eq(unlink_f(), EACCES);
	cr_assert_eq(strcmp(file->name, "f"), 0);
}
