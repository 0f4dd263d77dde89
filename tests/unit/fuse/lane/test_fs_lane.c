/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fs_rig.h"
#include "latency.h"
#include "log.h"

TestSuite(fs_lane, .init = NULL, .fini = NULL);

Test(fs_lane, init_agrees_on_what_the_design_says)
{
	rig_up(NULL);
	cr_assert_eq(rig.fs->max_write, RIG_WSIZE);
	cr_assert(rig.fs->init_done);
	cr_assert_eq(rig.init.max_write, RIG_WSIZE);
	cr_assert_eq(rig.init.max_pages, RIG_WSIZE / 4096);
	cr_assert(rig.init.flags & FUSE_PARALLEL_DIROPS, "libfuse 3.14 leaves it out");
	cr_assert(rig.init.flags & FUSE_HANDLE_KILLPRIV_V2);
	cr_assert(rig.init.flags & FUSE_ATOMIC_O_TRUNC);
	cr_assert(rig.init.flags & FUSE_EXPLICIT_INVAL_DATA);
	cr_assert_not(rig.init.flags & FUSE_AUTO_INVAL_DATA);
	cr_assert_not(rig.init.flags & FUSE_WRITEBACK_CACHE);
	cr_assert_not(rig.init.flags & (FUSE_SPLICE_READ | FUSE_SPLICE_WRITE | FUSE_SPLICE_MOVE));
	rig_down();
}

/* The kernel looks for the page of each piece. */
Test(fs_lane, an_answer_is_one_piece_if_it_is_short)
{
	struct fuse_attr_out attr;
	struct fuse_open_out fh;
	struct rig_reply re;
	struct fake_file *f;
	fuse_ino_t ino;

	rig_up(NULL);
	f = fake_add("f", 1000);
	ino = rig_ino(f);
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	cr_assert_eq(rig.pieces, 1);
	cr_assert_eq(attr.attr.size, 1000);
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(rig.pieces, 1);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 1000), 1000);
	cr_assert_gt(rig.pieces, 1, "data is not copied");
	cr_assert_arr_eq(re.body, f->data, 1000);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	rig_down();
}

Test(fs_lane, stop_waits_for_operations_in_work)
{
	struct fake_file *f;
	struct rig_reply re;

	rig_up(NULL);
	f = fake_add("f", 1);
	rig.fake.hold = true;
	rig_send(FUSE_OPEN, rig_ino(f), &(struct fuse_open_in){.flags = O_RDONLY},
		sizeof(struct fuse_open_in), NULL, 0);
	rig_settle();
	fs_lane_stop(rig.lane);
	rig_settle();
	cr_assert_not(rig.idle);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, 0);
	for (int i = 0; i < 100 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	rig_down(); /* checks that the file was closed on the server */
}

Test(fs_lane, stop_commits_and_closes_what_is_left_open)
{
	struct fuse_open_out fh[3];
	struct fake_file *f;
	fuse_ino_t ino;

	rig_up(NULL);
	f = fake_add("f", 1);
	ino = rig_ino(f);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(rig_open(ino, O_RDWR, &fh[i]), 0);
	cr_assert_eq(rig_write(ino, fh[1].fh, 0, "abc", 3, O_RDWR), 3);
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 200 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	cr_assert_eq(rig.fake.count[FAKE_COMMIT], 1);
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
	rig_down();
}

Test(fs_lane, a_stop_with_a_dead_session_still_ends)
{
	struct fuse_open_out fh;
	struct fake_file *f;

	rig_up(NULL);
	f = fake_add("f", 1);
	cr_assert_eq(rig_open(rig_ino(f), O_RDWR, &fh), 0);
	rig.fake.dead = -ESHUTDOWN;
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 200 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	rig.fake.opens = 0;
	rig_down();
}

Test(fs_lane, an_operation_nobody_implements_is_enosys)
{
	struct fuse_bmap_in in = {0};
	struct rig_reply re;

	rig_up(NULL);
	cr_assert_eq(rig_call(&re, FUSE_BMAP, FUSE_ROOT_ID, &in, sizeof(in), NULL, 0), ENOSYS);
	cr_assert(fake_all_free());
	rig_down();
}

Test(fs_lane, the_time_of_a_request_is_counted_once_in_each_phase)
{
	static struct latency lat;
	struct fuse_attr_out attr;
	const struct hist *h = lat.fuse[latency_fuse_row(FUSE_GETATTR)];

	rig_up(NULL);
	rig.stats.latency = &lat;
	cr_assert_eq(rig_getattr(rig_ino(fake_add("counted", 1)), &attr), 0);
	for (int phase = 0; phase < LATENCY_PHASES; phase++)
		cr_assert_eq(hist_count(&h[phase]), 1, "%d", phase);
	rig_down();
}

static char told[800];

static void note_line(void *ctx, enum log_level level, const char *line)
{
	if (strncmp(line, "op ", 3) == 0)
		snprintf(told, sizeof(told), "%s", line);
}

Test(fs_lane, the_operation_log_says_what_each_is_about)
{
	static struct latency lat;
	const struct fuse_rename_in in = {.newdir = FUSE_ROOT_ID};
	struct fuse_open_out fh;
	struct fake_file *f;
	struct rig_reply re;
	char file[40];

	rig_up(NULL);
	rig.stats.latency = &lat;
	log_set_sink(note_line, NULL);
	fs_set_ops_log(rig.fs, true);
	f = fake_add("f", 100);
	snprintf(file, sizeof(file), " file=%" PRIu64 " ", f->attr.fileid);
	cr_assert_eq(rig_open(rig_ino(f), O_RDONLY, &fh), 0);
	cr_assert(strstr(told, file), "%s", told);
	cr_assert_eq(rig_read(&re, rig_ino(f), fh.fh, 20, 30), 30);
	cr_assert(strstr(told, " at=20 size=30 "), "%s", told);
	cr_assert_eq(rig_call(&re, FUSE_RENAME, FUSE_ROOT_ID, &in, sizeof(in), "f\0g", 4), 0);
	cr_assert(strstr(told, " name=f to=g "), "%s", told);
	cr_assert_eq(rig_release(rig_ino(f), fh.fh), 0);
	rig_settle();
	rig_down();
}
