/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file_rig.h"
#include "fs_inode.h"

static uint8_t data[RIG_WSIZE];

static void set_up(void)
{
	file_set_up(100);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 13);
	cr_assert_eq(rig_open(ino, O_RDWR, &fh), 0);
}

TestSuite(fs_write, .init = set_up, .fini = rig_down);

Test(fs_write, the_payload_goes_out_of_the_buffer_it_was_received_in)
{
	struct rpcrdma_buf *buf;
	const uint8_t *page;

	rig_settle();
	buf = rig.lane->rxbuf;
	page = buf->data;
	rig.fake.hold = true;
	rig_send(FUSE_WRITE, ino,
		&(struct fuse_write_in){.fh = fh.fh, .offset = 0, .size = RIG_WSIZE},
		sizeof(struct fuse_write_in), data, RIG_WSIZE);
	rig_settle();
	cr_assert_neq(rig.lane->rxbuf, buf, "the lane took another one");
	fake_release();
	rig_settle();
	cr_assert_eq(rig.fake.last_write, page, "payload at +80, page aligned");
	cr_assert_arr_eq(file->data, data, RIG_WSIZE);
	cr_assert_eq(rig.stats.copied_bytes, 0);
	cr_assert_eq(rig.stats.bytes_written, RIG_WSIZE);
	cr_assert(fake_all_free());
}

Test(fs_write, is_unstable_and_under_the_openers_credential)
{
	cr_assert_eq(rig_write(ino, fh.fh, 10, data, 100, O_RDWR), 100);
	cr_assert_eq(rig.fake.last_stable, UNSTABLE4);
	cr_assert_eq(rig.fake.last_cred.uid, 1000);
	cr_assert_eq(rig.fake.last_cred.gid, 1001);
	cr_assert_arr_eq(file->data + 10, data, 100);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0);
}

Test(fs_write, of_a_synchronous_file_is_file_sync_and_needs_no_commit)
{
	cr_assert_eq(rig_write(ino, fh.fh, 0, data, 100, O_RDWR | O_DSYNC), 100);
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 0);
}

Test(fs_write, larger_than_wsize_takes_several)
{
	rig.fake.info.fs.wsize = 4096;
	cr_assert_eq(rig_write(ino, fh.fh, 1, data, 10000, O_RDWR), 10000);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 3);
	cr_assert_arr_eq(file->data + 1, data, 10000);
}

Test(fs_write, a_short_one_goes_on_where_it_ended)
{
	rig.fake.short_count = 1000;
	cr_assert_eq(rig_write(ino, fh.fh, 0, data, 2500, O_RDWR), 2500);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 3);
	cr_assert_arr_eq(file->data, data, 2500);
}

/* A server that says so would be asked for ever, or the file end behind its data. */
Test(fs_write, a_count_of_nothing_or_of_more_than_was_sent_is_an_error)
{
	rig.fake.wrong_count = -100;
	cr_assert_eq(rig_write(ino, fh.fh, 0, data, 100, O_RDWR), -EIO);
	rig.fake.wrong_count = 1;
	cr_assert_eq(rig_write(ino, fh.fh, 0, data, 100, O_RDWR), -EIO);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], 2);
	cr_assert(fake_all_free());
}

Test(fs_write, with_noac_is_file_sync)
{
	rig.fs->conf.noac = true;
	cr_assert_eq(rig_write(ino, fh.fh, 0, data, 100, O_RDWR), 100);
	cr_assert_eq(rig.fake.last_stable, FILE_SYNC4);
}

/* The server clears the bit, and does not say so. */
Test(fs_write, of_a_file_with_a_suid_bit_makes_the_kernel_ask_for_its_mode)
{
	struct fs_inode *in = fs_inode_get(rig.fs, ino);

	in->attr.mode |= 04000;
	fs_inode_put(rig.fs, in);
	rig_send(FUSE_WRITE, ino, &(struct fuse_write_in){.fh = fh.fh, .size = 100},
		sizeof(struct fuse_write_in), data, 100);
	for (int told = 0; told == 0;) {
		cr_assert(rig_reply(&re, 1000), "the kernel is not told");
		told = re.h.unique == 0 && re.h.error == FUSE_NOTIFY_INVAL_INODE;
	}
}

/* With O_DIRECT no attributes come back: what is known of the size grows all the same. */
Test(fs_write, makes_the_file_as_long_as_it_is_also_without_attributes)
{
	struct fs_inode *in = fs_inode_get(rig.fs, ino);

	cr_assert_eq(rig_write(ino, fh.fh, 4096, data, 4096, O_RDWR | O_DIRECT), 4096);
	cr_assert_eq(in->attr.size, 8192);
	cr_assert_eq(rig_write(ino, fh.fh, 0, data, 4096, O_RDWR | O_DIRECT), 4096);
	cr_assert_eq(in->attr.size, 8192);
	fs_inode_put(rig.fs, in);
}

Test(fs_write, an_error_is_the_answer)
{
	unsigned int getattrs;
	struct fuse_attr_out attr;

	cr_assert_eq(rig_getattr(ino, &attr), 0);
	getattrs = rig.fake.count[FAKE_GETATTR];
	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	cr_assert_eq(rig_write(ino, fh.fh, 0, data, 100, O_RDWR), -ENOSPC);
	cr_assert_eq(rig_flush(ino, fh.fh), 0, "reported once, at the write");
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	cr_assert_eq(rig.fake.count[FAKE_GETATTR], getattrs + 1, "a part may have been written");
	cr_assert(fake_all_free());
}

/* Of 2000 bytes the first 1000 are written, then there is an error. */
static void write_half(int flags, int err, struct rig_reply *ret)
{
	rig.fake.short_count = 1000;
	rig.fake.hold = true;
	rig_send(FUSE_WRITE, ino,
		&(struct fuse_write_in){.fh = fh.fh, .size = 2000, .flags = (uint32_t)flags},
		sizeof(struct fuse_write_in), data, 2000);
	rig_settle();
	fake_release();
	reactor_turn(rig.fake.r, 0);
	for (int i = 0; i < 10 && rig.fake.count[FAKE_WRITE] < 2; i++) {
		reactor_turn(rig.fake.r, 0);
	}
	rig.fake.fail[FAKE_WRITE] = err;
	cr_assert(rig_reply(ret, 1000));
}

/* The kernel makes EIO of a short answer there. */
Test(fs_write, with_o_direct_an_error_after_a_part_is_the_answer)
{
	write_half(O_RDWR | O_DIRECT, ENOSPC, &re);
	cr_assert_eq(re.h.error, -ENOSPC);
	cr_assert_eq(rig_flush(ino, fh.fh), 0, "reported once, at the write");
}

Test(fs_write, an_error_after_a_part_is_a_short_write_and_is_told_at_close)
{
	write_half(O_RDWR, EDQUOT, &re);
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(((struct fuse_write_out *)re.body)->size, 1000);
	cr_assert_eq(rig_flush(ino, fh.fh), EDQUOT);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
}

/* Nothing that was answered is lost: who hears it from write knows all. */
Test(fs_write, an_error_after_a_part_that_the_next_write_told_is_not_fsyncs)
{
	write_half(O_RDWR, EDQUOT, &re);
	cr_assert_eq(rig_write(ino, fh.fh, 1000, data, 100, O_RDWR), -EDQUOT);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
}

Test(fs_write, waits_for_a_call_and_stops_the_reading_meanwhile)
{
	rig.fake.calls_max = 1;
	rig.fake.hold = true;
	for (int i = 0; i < 4; i++)
		rig_send(FUSE_WRITE, ino,
			&(struct fuse_write_in){
				.fh = fh.fh, .offset = (uint64_t)i * 10, .size = 10},
			sizeof(struct fuse_write_in), data, 10);
	rig_settle();
	cr_assert_eq(rig.stats.fuse_requests, 3, "OPEN, one in work, one parked");
	cr_assert(rig.lane->stalled);
	cr_assert_gt(rig.stats.buf_waits, 0);
	fake_release();
	for (int i = 0; i < 4; i++) {
		cr_assert(rig_reply(&re, 1000));
		cr_assert_eq(re.h.error, 0);
	}
	cr_assert(fake_all_free());
}

Test(fs_write, with_a_single_buffer_still_goes_on)
{
	rig_settle();
	rig.fake.bufs_max = 1;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(rig_write(ino, fh.fh, 0, data, 100, O_RDWR), 100);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 50), 50, "the receive buffer is lent");
	cr_assert_arr_eq(re.body, data, 50);
	cr_assert(fake_all_free());
}

Test(fs_write, makes_the_kernels_size_right_after_an_append)
{
	struct fuse_attr_out out;

	cr_assert_eq(rig_write(ino, fh.fh, 100, data, 500, O_RDWR | O_APPEND), 500);
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.size, 600);
}
