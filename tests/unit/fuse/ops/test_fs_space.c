/* SPDX-License-Identifier: BSD-3-Clause */
/* fallocate and lseek(SEEK_DATA, SEEK_HOLE). */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "file_rig.h"

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static struct fuse_open_out of;
/* the server's answer to SEEK, and what it was asked */
static bool eof;
static uint64_t found;
static int seek_err;
static struct nfs4_op_seek asked;
/* what the kernel was told meanwhile, and what the server says when it is asked again; 0: the same
 */
static unsigned int invals, asks;
static struct fuse_notify_inval_inode_out inval;
static uint64_t found_again;
static bool restarts; /* the server does, before it answers for the first time */

static int serve(struct nfs4_call *call)
{
	if ((int)call->state != FAKE_SEEK)
		return -EOPNOTSUPP;
	asked = call->u.seek;
	call->u.seek.eof = eof;
	call->u.seek.found = asks++ && found_again ? found_again : found;
	if (restarts) { /* what it does not have any more looks like a hole */
		restarts = false;
		fake_restart();
		rig.fake.gen++;
		return -ENXIO;
	}
	return seek_err;
}

static void set_up(void)
{
	file_set_up(100);
	rig.fake.other = serve;
	eof = false;
	found = 0;
	seek_err = 0;
	found_again = 0;
	restarts = false;
	cr_assert_eq(rig_open(ino, O_RDWR, &of), 0);
}

static void tear_down(void)
{
	rig_release(ino, of.fh);
	rig_settle();
	cr_expect(fake_all_free());
	rig_down();
}

TestSuite(fs_space, .init = set_up, .fini = tear_down);

static int fallocate_at(uint32_t mode, uint64_t off, uint64_t len)
{
	const struct fuse_fallocate_in in = {
		.fh = of.fh, .offset = off, .length = len, .mode = mode};

	return rig_call(&re, FUSE_FALLOCATE, ino, &in, sizeof(in), NULL, 0);
}

static int seek_at(uint64_t off, uint32_t whence, uint64_t *ret_off)
{
	const struct fuse_lseek_in in = {.fh = of.fh, .offset = off, .whence = whence};
	int err;

	asks = 0;
	rig_send(FUSE_LSEEK, ino, &in, sizeof(in), NULL, 0);
	for (invals = 0;; invals++) {
		cr_assert(rig_reply(&re, 1000));
		if (re.h.unique == rig.unique)
			break;
		cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
		memcpy(&inval, re.body, sizeof(inval));
	}
	err = -re.h.error;
	if (!err) {
		const struct fuse_lseek_out *out = (const void *)re.body;

		cr_assert_eq(re.len, sizeof(*out));
		*ret_off = out->offset;
	}
	return err;
}

Test(fs_space, allocated_space_counts_in_the_size)
{
	struct fuse_attr_out out;

	cr_assert_eq(fallocate_at(0, 50, 1000), 0);
	cr_expect_eq(rig.fake.count[FAKE_ALLOCATE], 1);
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_expect_eq(out.attr.size, 1050);
}

Test(fs_space, modes_that_nfs_does_not_have_are_refused)
{
	static const uint32_t modes[] = {FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE,
		FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		cr_expect_eq(fallocate_at(modes[i], 0, 10), EOPNOTSUPP, "%x", modes[i]);
	cr_expect_eq(rig.fake.count[FAKE_ALLOCATE] + rig.fake.count[FAKE_DEALLOCATE], 0);
}

/* Whatever is asked for, and without asking. */
Test(fs_space, no_file_is_longer_than_the_servers_limit)
{
	static const uint32_t modes[] = {0, PUNCH, FALLOC_FL_ZERO_RANGE};

	rig.fake.info.fs.maxfilesize = 100000;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		cr_expect_eq(fallocate_at(modes[i], 100000, 1), EFBIG, "%x", modes[i]);
		cr_expect_eq(fallocate_at(modes[i], INT64_MAX - 1, 1), EFBIG, "%x", modes[i]);
	}
	cr_expect_eq(rig.fake.count[FAKE_ALLOCATE] + rig.fake.count[FAKE_DEALLOCATE], 0);
	cr_expect_eq(fallocate_at(0, 99999, 1), 0);
}

Test(fs_space, an_error_of_the_server_is_the_programs)
{
	rig.fake.fail[FAKE_ALLOCATE] = ENOSPC;
	cr_expect_eq(fallocate_at(0, 0, 1000), ENOSPC);
	rig.fake.fail[FAKE_DEALLOCATE] = EOPNOTSUPP;
	cr_expect_eq(fallocate_at(PUNCH, 0, 50), EOPNOTSUPP);
	rig.fake.fail[FAKE_COMMIT] = EIO;
	cr_assert_eq(rig_write(ino, of.fh, 0, "data", 4, 0), 4);
	cr_expect_eq(fallocate_at(PUNCH, 0, 50), EIO);
}

/* Without the COMMIT before it the restart would bring the data back into the hole. */
Test(fs_space, a_hole_stays_a_hole_over_a_restart)
{
	uint8_t data[64];

	memset(data, 7, sizeof(data));
	cr_assert_eq(rig_write(ino, of.fh, 0, data, sizeof(data), 0), sizeof(data));
	cr_assert_eq(fallocate_at(PUNCH, 16, 16), 0);
	cr_expect_eq(rig.fake.count[FAKE_DEALLOCATE], 1);
	fake_restart();
	cr_assert_eq(rig_fsync(ino, of.fh), 0);
	memset(data + 16, 0, 16);
	cr_expect_arr_eq(file->data, data, sizeof(data));
	cr_expect_arr_eq(file->stable, data, sizeof(data));
}

Test(fs_space, data_and_holes_are_found_by_the_server)
{
	uint64_t off = 0;

	found = 60;
	cr_assert_eq(seek_at(50, SEEK_DATA, &off), 0);
	cr_expect_eq(off, 60);
	cr_expect_eq(asked.what, NFS4_CONTENT_DATA);
	cr_expect_eq(asked.offset, 50);
	found = 100;
	eof = true;
	cr_assert_eq(seek_at(70, SEEK_HOLE, &off), 0);
	cr_expect_eq(off, 100);
	cr_expect_eq(asked.what, NFS4_CONTENT_HOLE);
}

/* A program that writes through a mapping tells nobody: the kernel must write it first. */
Test(fs_space, what_may_be_mapped_is_written_before_it_is_told_to_be_a_hole)
{
	uint64_t off = 0;

	found = 9000;
	found_again = 4096;
	cr_assert_eq(seek_at(50, SEEK_DATA, &off), 0);
	cr_expect_eq(off, 4096);
	cr_expect_eq(invals, 1);
	cr_expect_eq(asks, 2, "once more");
	cr_expect_eq(inval.off, 50);
	cr_expect_eq(inval.len, 8950);
	found = 4096;
	found_again = 9000;
	cr_assert_eq(seek_at(50, SEEK_HOLE, &off), 0);
	cr_expect_eq(off, 9000);
	cr_expect_eq(invals, 1);
	cr_expect_eq(inval.off, 4096);
	cr_expect_eq(inval.len, 0, "and all that follows");
	seek_err = -ENXIO;
	cr_expect_eq(seek_at(50, SEEK_DATA, &off), ENXIO);
	cr_expect_eq(invals, 1);
	cr_expect_eq(inval.off, 50);
	cr_expect_eq(inval.len, 0);
}

Test(fs_space, pages_stay_where_there_is_data_and_where_nobody_writes)
{
	struct fuse_open_out reader;
	uint64_t off = 0;

	found = 50;
	cr_assert_eq(seek_at(50, SEEK_DATA, &off), 0);
	cr_expect_eq(invals, 0);
	found = 100;
	eof = true;
	cr_assert_eq(seek_at(50, SEEK_HOLE, &off), 0);
	cr_expect_eq(invals, 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &reader), 0);
	rig_release(ino, of.fh);
	of = reader;
	found = 60;
	eof = false;
	cr_assert_eq(seek_at(50, SEEK_DATA, &off), 0);
	cr_expect_eq(off, 60);
	cr_expect_eq(invals, 0);
}

Test(fs_space, a_seek_that_was_on_its_way_over_a_restart_is_done_again)
{
	static const char data[50];
	uint64_t off = 0;

	cr_assert_eq(rig_write(ino, of.fh, 100, data, sizeof(data), 0), sizeof(data));
	restarts = true;
	found = found_again = 100;
	cr_assert_eq(seek_at(80, SEEK_DATA, &off), 0);
	cr_expect_eq(off, 100);
	cr_expect_geq(asks, 2);
	cr_expect_eq(file->stable_size, 150, "it is written again before");
}

Test(fs_space, no_data_any_more_is_enxio)
{
	uint64_t off;

	found = 100;
	eof = true;
	cr_expect_eq(seek_at(70, SEEK_DATA, &off), ENXIO);
	seek_err = -ENXIO;
	cr_expect_eq(seek_at(200, SEEK_HOLE, &off), ENXIO);
}

Test(fs_space, an_answer_that_cannot_be_is_an_error)
{
	uint64_t off;

	found = 10;
	cr_expect_eq(seek_at(50, SEEK_DATA, &off), EIO);
	found = 1ull << 63;
	cr_expect_eq(seek_at(50, SEEK_HOLE, &off), EIO);
}

Test(fs_space, a_server_without_seek_lets_the_kernel_do_without)
{
	uint64_t off;

	seek_err = -EOPNOTSUPP;
	cr_expect_eq(seek_at(0, SEEK_DATA, &off), ENOSYS);
}

Test(fs_space, what_the_server_lost_is_no_hole)
{
	uint64_t off;
	uint8_t data[64];

	memset(data, 9, sizeof(data));
	cr_assert_eq(rig_write(ino, of.fh, 0, data, sizeof(data), 0), sizeof(data));
	fake_restart();
	rig.fake.gen++;
	cr_assert_eq(seek_at(0, SEEK_DATA, &off), 0);
	cr_expect_arr_eq(file->data, data, sizeof(data), "it was written again before");
}
