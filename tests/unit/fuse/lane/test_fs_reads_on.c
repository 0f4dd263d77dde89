/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane whose operations wait for the notify thread reads on. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "file_rig.h"
#include "fs_lane.h"

static void set_up(void)
{
	file_set_up_open(100000, O_RDWR);
}

TestSuite(fs_reads_on, .init = set_up, .fini = rig_down);

#define OPS 16 /* of the rig's lane */

/*
 * It waits for a page that a READ in the kernel's queue has locked: whatever waits for it, that
 * READ must be taken.
 */
static void read_while_all_operations_wait(unsigned int bufs_max)
{
	struct fuse_read_in in = {.fh = fh.fh, .size = 4096};
	struct fuse_access_in access_in = {.mask = R_OK};
	uint64_t unique;

	rig.fake.hold_ops = 1u << FAKE_ACCESS;
	rig.fake.calls_max = 2 * OPS;
	rig.fake.bufs_max = bufs_max;
	for (unsigned int i = 0; i < OPS; i++)
		rig_send(FUSE_ACCESS, ino, &access_in, sizeof(access_in), NULL, 0);
	rig_settle();
	cr_assert_eq(rig.lane->ops_free, 0);
	rig.lane->notify_waits = 1; /* as if they did */
	unique = rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
	fs_lane_turn(rig.lane);
	cr_assert(rig_reply(&re, 100));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.len, 4096);
	rig.lane->notify_waits = 0;
	fake_release();
	for (unsigned int i = 0; i < OPS; i++)
		cr_assert(rig_reply(&re, 1000));
}

Test(fs_reads_on, pages_are_dropped_while_all_operations_wait)
{
	read_while_all_operations_wait(8);
}

Test(fs_reads_on, pages_are_dropped_with_a_single_buffer)
{
	read_while_all_operations_wait(1);
}

Test(fs_reads_on, operations_that_wait_for_the_notify_thread_are_counted)
{
	struct fuse_open_in in = {.flags = O_RDONLY};

	for (unsigned int i = 0; i < 3; i++) {
		fake_touch(file);
		rig_send(FUSE_OPEN, ino, &in, sizeof(in), NULL, 0);
	}
	rig_settle();
	cr_assert_gt(rig.stats.invals, 0);
	cr_assert_eq(rig.lane->notify_waits, 0);
}
