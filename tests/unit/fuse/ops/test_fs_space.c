/* SPDX-License-Identifier: BSD-3-Clause */
/* fallocate and lseek(SEEK_DATA, SEEK_HOLE). */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "file_rig.h"
#include "fs_background.h"

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

static uint64_t seek_send(uint64_t off, uint32_t whence)
{
	const struct fuse_lseek_in in = {.fh = of.fh, .offset = off, .whence = whence};

	asks = 0;
	invals = 0;
	return rig_send(FUSE_LSEEK, ino, &in, sizeof(in), NULL, 0);
}

/* The answer to it; what else the kernel is told before is passed over. */
static int seek_answer(uint64_t unique, uint64_t *ret_off)
{
	const struct fuse_lseek_out *out = (const void *)re.body;

	for (;;) {
		cr_assert(rig_reply(&re, 3000));
		if (re.h.unique == unique)
			break;
		if (re.h.unique != 0)
			continue;
		cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
		memcpy(&inval, re.body, sizeof(inval));
		invals++;
	}
	if (re.h.error)
		return -re.h.error;
	cr_assert_eq(re.len, sizeof(*out));
	*ret_off = out->offset;
	return 0;
}

static int seek_at(uint64_t off, uint32_t whence, uint64_t *ret_off)
{
	return seek_answer(seek_send(off, whence), ret_off);
}

/* It waits: the server saw a hole, the kernel was told to write, and neither is asked for more. */
static void seek_waits(void)
{
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, 0);
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	no_answer(100);
	cr_assert_eq(asks, 1);
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

/* The program that wrote may have closed it, and its WRITE be what the SEEK overtook. */
Test(fs_space, a_file_that_is_closed_meanwhile_may_have_been_written)
{
	struct fuse_open_out writer = of, reader;
	uint64_t off = 0, unique;

	cr_assert_eq(rig_open(ino, O_RDONLY, &reader), 0);
	of = reader;
	found = 60;
	found_again = 50;
	rig.fake.hold_ops = 1u << FAKE_SEEK;
	unique = seek_send(50, SEEK_DATA);
	rig_settle();
	rig_release(ino, writer.fh);
	rig_settle();
	fake_release();
	cr_assert_eq(seek_answer(unique, &off), 0);
	cr_expect_eq(off, 50);
	cr_expect_eq(asks, 2);
}

/* ---- what the kernel took for written before the server has it: FUSE of Linux up to 6.14 ---- */

static uint64_t send_page(uint64_t off)
{
	static const char page[4096] = "mapped";
	const struct fuse_write_in in = {
		.fh = of.fh, .offset = off, .size = sizeof(page), .write_flags = FUSE_WRITE_CACHE};

	return rig_send(FUSE_WRITE, ino, &in, sizeof(in), page, sizeof(page));
}

/* munmap(2) has returned, and an invalidation finds the pages written. */
static void seek_after_a_page(uint32_t whence, uint64_t before, uint64_t after)
{
	uint64_t off = 0, unique;

	found = before;
	found_again = after;
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	send_page(0);
	unique = seek_send(0, whence);
	seek_waits();
	fake_release();
	cr_assert_eq(seek_answer(unique, &off), 0);
	cr_expect_eq(asks, 2);
	cr_expect_eq(off, after);
}

Test(fs_space, a_seek_waits_for_pages_on_their_way_to_the_server)
{
	seek_after_a_page(SEEK_DATA, 9000, 4096);
	seek_after_a_page(SEEK_HOLE, 4096, 9000);
}

/* The page at 4096. */
static bool is_later(const struct nfs4_call *call)
{
	return (int)call->state == FAKE_WRITE && call->u.write.offset == 4096;
}

Test(fs_space, a_seek_does_not_wait_for_pages_that_are_written_later)
{
	uint64_t off = 0, unique;

	found = 9000;
	found_again = 4096;
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	rig.fake.holds = is_later;
	send_page(0);
	unique = seek_send(0, SEEK_DATA);
	seek_waits();
	send_page(4096);
	rig_settle();
	fake_release();
	cr_assert_eq(seek_answer(unique, &off), 0);
	cr_expect_eq(off, 4096);
	rig.fake.holds = NULL;
	fake_release();
	rig_settle();
}

/* It may be the WRITE of such a page. */
Test(fs_space, a_seek_waits_for_what_another_lane_is_reading)
{
	struct fs_lane other = {.fs = rig.fs, .reading = true};
	uint64_t off = 0, unique;

	list_push_back(&rig.fs->lanes, &other.link);
	found = 9000;
	found_again = 4096;
	unique = seek_send(0, SEEK_DATA);
	seek_waits();
	other.reading = false;
	cr_assert_eq(seek_answer(unique, &off), 0);
	cr_expect_eq(asks, 2);
	cr_expect_eq(off, 4096);
	list_del(&other.link);
}

/* As many requests as the kernel sends: it keeps pages to itself. */
static void fill(void)
{
	rig.fs->max_background = 2;
	rig.fake.hold_ops = 1u << FAKE_READ;
	for (int i = 0; i < 2; i++) {
		const struct fuse_read_in in = {
			.fh = of.fh, .offset = (uint64_t)i * 50, .size = 10};

		rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
	}
	rig_settle();
}

Test(fs_space, a_seek_waits_for_pages_that_the_kernel_keeps)
{
	uint64_t off = 0, unique;

	found = 9000;
	found_again = 4096;
	fill();
	unique = seek_send(0, SEEK_DATA);
	seek_waits();
	fake_release();
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	send_page(0);
	rig_run_for(100 * NSEC_PER_MSEC);
	cr_assert_eq(asks, 1);
	fake_release();
	cr_assert_eq(seek_answer(unique, &off), 0);
	cr_expect_eq(off, 4096);
}

/* With its answer, and not before it, one that was kept comes. */
Test(fs_space, nothing_is_known_while_an_answer_is_given)
{
	struct fs_op op = {.lane = rig.lane, .opcode = FUSE_READ};

	rig.fs->max_background = 2;
	fs_background_begin(&op);
	cr_expect(fs_background_is_none(rig.lane));
	fs_background_end(&op);
	cr_expect_not(fs_background_is_none(rig.lane));
	fs_background_answered(rig.lane);
	cr_expect(fs_background_is_none(rig.lane));
	cr_expect_eq(fs_background_cnt(rig.fs), 0);
}

/* A RELEASEDIR is read by one lane and begun, and counted, by another. */
Test(fs_space, nothing_is_known_before_what_is_forwarded_has_begun)
{
	cr_expect(fs_background_is_none(rig.lane));
	rig.fs->forwarded++;
	cr_expect_not(fs_background_is_none(rig.lane));
	rig.fs->forwarded--;
	cr_expect(fs_background_is_none(rig.lane));
}

Test(fs_space, nothing_is_known_before_all_is_read)
{
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	send_page(0);
	cr_expect_not(fs_background_is_none(rig.lane));
	rig_settle();
	cr_expect(fs_background_is_none(rig.lane));
	fake_release();
	rig_settle();
}

/* It will not read what may be there, and the next process will not know when that was asked for.
 */
Test(fs_space, all_is_data_for_a_lane_that_reads_no_more)
{
	struct fs_lane other = {.fs = rig.fs, .reading = true};
	uint64_t off = 0, unique;

	found = 90;
	list_push_back(&rig.fs->lanes, &other.link);
	unique = seek_send(50, SEEK_DATA);
	seek_waits();
	fs_lane_pause(rig.lane);
	cr_assert(rig_reply(&re, 10), "it waits no more");
	cr_assert_eq(re.h.unique, unique);
	memcpy(&off, re.body, sizeof(off));
	cr_expect_eq(off, 50);
	list_del(&other.link);
	fs_lane_pause_end(rig.lane);
}

/* Nobody knows for how long it keeps them. */
Test(fs_space, all_is_data_while_the_kernel_keeps_pages)
{
	uint64_t off = 0;

	file->attr.size = 20000;
	found = 9000;
	fill();
	cr_assert_eq(seek_at(50, SEEK_DATA, &off), 0);
	cr_expect_eq(off, 50);
	cr_assert_eq(seek_at(50, SEEK_HOLE, &off), 0);
	cr_expect_eq(off, 20000);
	seek_err = -ENXIO;
	cr_assert_eq(seek_at(19999, SEEK_DATA, &off), 0);
	cr_expect_eq(off, 19999);
	cr_expect_eq(seek_at(20000, SEEK_DATA, &off), ENXIO);
	rig.fake.fail[FAKE_GETATTR] = EACCES;
	cr_expect_eq(seek_at(50, SEEK_DATA, &off), EACCES);
	fake_release();
	rig_settle();
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
