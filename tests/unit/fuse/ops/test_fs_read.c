/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file_rig.h"

static void set_up(void)
{
	file_set_up_open(100000, O_RDONLY);
}

TestSuite(fs_read, .init = set_up, .fini = rig_down);

Test(fs_read, brings_the_bytes_without_copying_them)
{
	cr_assert_eq(rig_read(&re, ino, fh.fh, 4096, 65536), 65536);
	cr_assert_arr_eq(re.body, file->data + 4096, 65536);
	cr_assert_eq(rig.stats.copied_bytes, 0);
	cr_assert_eq(rig.stats.bytes_read, 65536);
	cr_assert(fake_all_free());
}

Test(fs_read, an_inline_answer_goes_straight_to_the_kernel)
{
	rig.fake.inline_read = true;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 4096), 4096);
	cr_assert_arr_eq(re.body, file->data, 4096);
	cr_assert_eq(rig.stats.copied_bytes, 0);
}

Test(fs_read, ends_at_the_end_of_the_file)
{
	cr_assert_eq(rig_read(&re, ino, fh.fh, 99990, 4096), 10);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 200000, 4096), 0);
}

Test(fs_read, as_little_as_there_is)
{
	cr_assert_eq(rig_read(&re, ino, fh.fh, 77, 1), 1);
	cr_assert_eq(re.body[0], file->data[77]);
	cr_assert_eq(rig.fake.count[FAKE_READ], 1);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 77, 0), 0);
	cr_assert_eq(rig.fake.count[FAKE_READ], 1, "nothing asks nobody");
}

Test(fs_read, a_short_answer_before_the_end_goes_on)
{
	rig.fake.short_count = 30000;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 65536), 65536);
	cr_assert_arr_eq(re.body, file->data, 65536);
	cr_assert_eq(rig.fake.count[FAKE_READ], 3);
}

Test(fs_read, larger_than_rsize_takes_several)
{
	rig.fake.info.fs.rsize = 16384;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 50000, 65536), 50000);
	cr_assert_arr_eq(re.body, file->data + 50000, 50000);
}

Test(fs_read, short_inline_answers_are_joined)
{
	rig.fake.inline_read = true;
	rig.fake.short_count = 1000;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 7, 2500), 2500);
	cr_assert_arr_eq(re.body, file->data + 7, 2500);
	cr_assert_eq(rig.stats.copied_bytes, 2500);
}

Test(fs_read, an_error_is_the_answer_never_a_short_read)
{
	rig.fake.fail[FAKE_READ] = EIO;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 4096), -EIO);
	cr_assert(fake_all_free());
}

/* The kernel would fill the rest with zeros, and cut the file off there. */
Test(fs_read, nothing_without_an_end_is_an_error_and_no_end)
{
	rig.fake.stuck_at = 4096;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 4096, 4096), -EIO);
	cr_assert_eq(rig.fake.count[FAKE_READ], 1);
	cr_assert(fake_all_free());
}

Test(fs_read, nothing_without_an_end_after_a_part_too)
{
	rig.fake.short_count = 1000;
	rig.fake.stuck_at = 2000;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 4096), -EIO);
	cr_assert_eq(rig.fake.count[FAKE_READ], 3);
	cr_assert(fake_all_free());
}

Test(fs_read, a_dead_session_is_an_error_for_each_request)
{
	rig.fake.dead = -EIO;
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 4096), -EIO);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 4096), -EIO);
	rig.fake.dead = 0;
	cr_assert(fake_all_free());
}
