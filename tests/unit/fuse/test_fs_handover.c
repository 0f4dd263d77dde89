/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another process takes the mount over (fs_handover.c): the kernel goes on with its numbers, and
 * the server with what it holds.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file_rig.h"
#include "fs_dentry.h"
#include "fs_inode.h"
#include "fs_share.h"
#include "fs_tables.h"
#include "tables.h"

static void set_up(void)
{
	file_set_up_open(100, O_RDWR);
}

TestSuite(fs_handover, .init = set_up, .fini = rig_down);

static void closed(uint64_t handle)
{
	cr_assert_eq(rig_release(ino, handle), 0);
	rig_settle();
}

/* ---- files ---- */

Test(fs_handover, an_open_file_is_read_and_written_on)
{
	unsigned int opened;

	cr_assert_eq(rig_write(ino, fh.fh, 0, "before", 6, O_RDWR), 6);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	opened = rig.fake.count[FAKE_OPEN];
	rig_hand_over();
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 6), 6);
	cr_assert_arr_eq(re.body, "before", 6);
	cr_assert_eq(rig_write(ino, fh.fh, 6, " after", 6, O_RDWR), 6);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "before after", 12);
	cr_assert_eq(rig.fake.count[FAKE_OPEN], opened, "it was not opened anew");
	cr_assert_eq(rig_file(fh.fh)->cred.uid, 1000);
	closed(fh.fh);
	cr_assert_eq(rig.fake.opens, 0);
}

Test(fs_handover, four_times_in_a_row)
{
	for (uint64_t i = 0; i < 4; i++) {
		cr_assert_eq(rig_write(ino, fh.fh, i, &"abcd"[i], 1, O_RDWR), 1);
		cr_assert_eq(rig_fsync(ino, fh.fh), 0);
		rig_hand_over();
	}
	cr_assert_arr_eq(file->stable, "abcd", 4);
	closed(fh.fh);
}

Test(fs_handover, opens_of_one_user_are_one_open_still)
{
	struct fuse_open_out other, late;

	cr_assert_eq(rig_open(ino, O_RDONLY, &other), 0);
	rig_hand_over();
	cr_assert_eq(rig_file(fh.fh)->share, rig_file(other.fh)->share);
	cr_assert_eq(rig_open(ino, O_WRONLY, &late), 0);
	cr_assert_eq(rig_file(fh.fh)->share, rig_file(late.fh)->share, "a later one joins it");
	closed(late.fh);
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 0);
	closed(fh.fh);
	cr_assert_eq(rig.fake.count[FAKE_DOWNGRADE], 1, "what is left is for reading");
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 0);
	closed(other.fh);
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
}

Test(fs_handover, handles_of_before_are_not_given_out_again)
{
	struct fuse_open_out old, new;

	cr_assert_eq(rig_open(ino, O_RDONLY, &old), 0);
	closed(old.fh);
	rig_hand_over();
	cr_assert_eq(rig_read(&re, ino, old.fh, 0, 5), -EBADF);
	for (int i = 0; i < 5; i++) {
		cr_assert_eq(rig_open(ino, O_RDONLY, &new), 0);
		cr_assert_neq(new.fh, old.fh);
		cr_assert_neq(new.fh, fh.fh);
		closed(new.fh);
	}
	closed(fh.fh);
}

Test(fs_handover, an_error_that_nobody_has_heard_is_told)
{
	rig_file(fh.fh)->write_err = EIO;
	rig_hand_over();
	cr_assert_eq(rig_fsync(ino, fh.fh), EIO);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	closed(fh.fh);
}

Test(fs_handover, a_file_without_a_name_goes_with_its_last_close)
{
	cr_assert_eq(rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2), 0);
	cr_assert_eq(strncmp(file->name, ".nfs", 4), 0);
	rig_hand_over();
	cr_assert_eq(rig_inode(FUSE_ROOT_ID)->sillies, 1);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	closed(fh.fh);
	cr_assert_not(file->used);
	cr_assert_eq(rig.fs->sillies, 0);
}

/* ---- what the kernel knows ---- */

Test(fs_handover, nodeids_stay_and_are_forgotten_by_count)
{
	uint32_t generation = rig_inode(ino)->generation;
	struct fake_file *other = fake_add("other", 1);
	fuse_ino_t other_ino = rig_ino(other);

	cr_assert_eq(rig_ino(other), other_ino, "twice");
	rig_hand_over();
	cr_assert_eq(rig_inode(ino)->generation, generation);
	cr_assert_eq(rig_inode(other_ino)->nlookup, 2);
	cr_assert_eq(rig_ino(other), other_ino, "the same filehandle is the same file");
	fs_inode_forget(rig.fs, other_ino, 2);
	cr_assert_eq(rig_inode(other_ino)->nlookup, 1);
	fs_inode_forget(rig.fs, other_ino, 1);
	cr_assert_eq(fs_inode_count(rig.fs), 2);
	cr_assert_neq(rig_inode(rig_ino(fake_add("new", 1)))->generation, generation);
	closed(fh.fh);
}

Test(fs_handover, a_file_that_was_another_one_stays_out_of_sight)
{
	fuse_ino_t new;

	fs_inode_unhash(rig.fs, rig_inode(ino));
	rig_hand_over();
	cr_assert(rig_inode(ino)->unhashed);
	new = rig_ino(file);
	cr_assert_neq(new, ino);
	closed(fh.fh);
}

Test(fs_handover, pages_are_kept_if_the_file_is_as_it_was)
{
	struct fuse_open_out out;

	cr_assert_eq(rig_open(ino, O_RDONLY, &out), 0);
	closed(out.fh);
	rig_hand_over();
	cr_assert_eq(rig_open(ino, O_RDONLY, &out), 0);
	cr_assert(out.open_flags & FOPEN_KEEP_CACHE);
	closed(out.fh);
	fake_touch(file);
	rig_hand_over();
	rig_send(FUSE_OPEN, ino, &(struct fuse_open_in){.flags = O_RDONLY},
		sizeof(struct fuse_open_in), NULL, 0);
	do
		cr_assert(rig_reply(&re, 1000));
	while (re.h.error == FUSE_NOTIFY_INVAL_INODE);
	memcpy(&out, re.body, sizeof(out));
	cr_assert_not(out.open_flags & FOPEN_KEEP_CACHE);
	closed(out.fh);
	closed(fh.fh);
}

static unsigned int names;

static bool count_name(void *ctx, const char *name, size_t len)
{
	cr_assert(strcmp(name, "f") == 0 || strcmp(name, "g") == 0, "%s", name);
	names++;
	return true;
}

Test(fs_handover, names_that_may_be_walked_are_known)
{
	uint64_t now = reactor_now(rig.fake.r);

	cr_assert(fs_dentry_told(rig.fs, rig_inode(FUSE_ROOT_ID), "f", now));
	cr_assert(fs_dentry_told(rig.fs, rig_inode(FUSE_ROOT_ID), "g", now));
	rig_hand_over();
	fs_dentry_store_each(rig_inode(FUSE_ROOT_ID)->dentries, count_name, NULL);
	cr_assert_eq(names, 2);
	closed(fh.fh);
}

Test(fs_handover, an_open_directory_is_one_still)
{
	struct fuse_open_out dir;
	struct fuse_release_in in = {0};

	cr_assert_eq(rig_call(&re, FUSE_OPENDIR, FUSE_ROOT_ID, &(struct fuse_open_in){0},
			     sizeof(struct fuse_open_in), NULL, 0),
		0);
	memcpy(&dir, re.body, sizeof(dir));
	rig_hand_over();
	in.fh = dir.fh;
	cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID, &in, sizeof(in), NULL, 0), 0);
	cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID, &in, sizeof(in), NULL, 0), EBADF);
	closed(fh.fh);
}

/* ---- locks ---- */

Test(fs_handover, a_lock_is_its_owners_still)
{
	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 10, 19), 0);
	rig_hand_over();
	cr_assert_eq(fake_lock_held(file), 1);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 15, 15), EAGAIN);
	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 10, 29), 0, "it may take more");
	cr_assert_eq(setlk(ino, fh.fh, 1, F_UNLCK, 0, TO_END), 0);
	cr_assert_eq(fake_lock_held(file), 0);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 15, 15), 0);
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	cr_assert_eq(fake_lock_held(file), 0);
	closed(fh.fh);
}

Test(fs_handover, a_flock_goes_with_its_file)
{
	struct fuse_open_out other;

	cr_assert_eq(rig_open(ino, O_RDWR, &other), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, other.fh, 77, F_WRLCK), 3000), 0);
	rig_hand_over();
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, fh.fh, 78, F_WRLCK), 3000), EAGAIN);
	closed(other.fh);
	cr_assert_eq(fake_lock_held(file), 0);
	closed(fh.fh);
}

Test(fs_handover, who_sleeps_for_a_lock_sleeps_on)
{
	uint64_t first, second;

	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 0, 9), 0);
	first = setlkw(ino, fh.fh, 2, F_WRLCK, 5, 5);
	rig_settle();
	second = flock_send(FUSE_SETLKW, ino, fh.fh, 3, F_WRLCK);
	rig_settle();
	rig_hand_over();
	no_answer(1000);
	cr_assert_eq(fake_lock_held(file), 1);
	interrupt(second);
	cr_assert_eq(answer_to(second, 3000), EINTR, "a signal still reaches it");
	rig_send(FUSE_SETLK, ino,
		&(struct fuse_lk_in){.fh = fh.fh,
			.owner = 1,
			.lk = {.end = TO_END, .type = F_UNLCK, .pid = LK_PID(1)}},
		sizeof(struct fuse_lk_in), NULL, 0);
	/* In either order. */
	for (int i = 0; i < 2; i++) {
		cr_assert(rig_reply(&re, 10000));
		cr_assert_eq(re.h.error, 0);
		first = re.h.unique == first ? 0 : first;
	}
	cr_assert_eq(first, 0, "it has its lock");
	cr_assert_eq(fake_lock_held(file), 1);
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	closed(fh.fh);
}

/* ---- what is in the way ---- */

Test(fs_handover, nothing_is_written_down_that_the_server_may_lose)
{
	cr_assert_eq(rig_write(ino, fh.fh, 0, "before", 6, O_RDWR), 6);
	rig_pause();
	cr_assert_str_eq(fs_handover_obstacle(rig.fs), "data is written");
	fs_lane_pause_end(rig.lane);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	rig_pause();
	cr_assert_null(fs_handover_obstacle(rig.fs));
	fs_lane_pause_end(rig.lane);
	closed(fh.fh);
}

Test(fs_handover, what_the_kernel_asks_meanwhile_waits)
{
	uint64_t unique;

	rig_pause();
	unique = rig_send(FUSE_FLUSH, ino, &(struct fuse_flush_in){.fh = fh.fh},
		sizeof(struct fuse_flush_in), NULL, 0);
	no_answer(1000);
	rig_take_over(rig_write_tables());
	cr_assert_eq(answer_to(unique, 3000), 0, "the next one answers");
	closed(fh.fh);
}

Test(fs_handover, or_is_answered_when_it_is_given_up)
{
	uint64_t unique;

	rig_pause();
	unique = rig_send(FUSE_FLUSH, ino, &(struct fuse_flush_in){.fh = fh.fh},
		sizeof(struct fuse_flush_in), NULL, 0);
	no_answer(1000);
	fs_lane_pause_end(rig.lane);
	cr_assert_eq(answer_to(unique, 3000), 0);
	closed(fh.fh);
}

/* ---- who cannot go on ---- */

Test(fs_handover, who_cannot_go_on_leaves_all_to_the_next)
{
	int tables;

	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 10, 19), 0);
	cr_assert_eq(rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2), 0);
	rig_pause();
	tables = rig_write_tables();
	rig_cannot_take_over(dup(tables), 0);
	/* Its buffers are too small for the requests that the kernel sends. */
	rig_cannot_take_over(dup(tables), 4096);
	rig_take_over(tables);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 15, 15), EAGAIN);
	cr_assert_eq(flush_as(ino, fh.fh, 1), 0);
	closed(fh.fh);
	cr_assert_not(file->used);
}

/*
 * The same records, those of `type` twice; with `field` of them set to `value`, or to `zeros`
 * bytes, if there is one.
 */
static int copy_tables(int from, uint16_t type, uint16_t field, uint64_t value, size_t zeros)
{
	static const uint8_t none[5000];
	int fd = memfd_create("tables", MFD_CLOEXEC);
	struct tables_record r;
	struct tables_out t;
	struct tables_in in;
	size_t len;

	cr_assert_eq(tables_open(&in, from), 0);
	tables_begin(&t, fd);
	while (tables_next(&in, &r))
		for (int i = 0; i < (r.type == type && !field ? 2 : 1); i++) {
			tables_record(&t, r.type);
			for (uint16_t f = 1; f < 1100; f++) {
				const void *p = NULL;

				if (r.type == type && f == field && zeros)
					tables_put_bytes(&t, f, none, zeros);
				else if (r.type == type && f == field)
					tables_put(&t, f, value);
				else
					while ((p = tables_get_next(&r, f, p, &len)))
						tables_put_bytes(&t, f, p, len);
			}
		}
	cr_assert_eq(tables_end(&t), 0);
	tables_close(&in);
	return fd;
}

static int taken(int tables)
{
	struct fs *fs = fs_new(&rig.conf, NULL);
	struct tables_in in;
	int err;

	cr_assert_eq(tables_open(&in, tables), 0);
	err = fs_handover_get(fs, &in, true, 0);
	fs_free(fs);
	tables_close(&in);
	close(tables);
	return err;
}

/* ---- the mount's device ---- */

/* Something else is mounted there by now. */
Test(fs_handover, the_device_is_that_of_before_and_not_of_what_is_there_now)
{
	rig.fs->dev = makedev(0, 50);
	rig.conf.mountpoint = "/proc";
	rig_hand_over();
	cr_assert_eq(fs_dev(rig.fs), makedev(0, 50));
	rig_hand_over();
	cr_assert_eq(fs_dev(rig.fs), makedev(0, 50));
	rig.fs->dev = 0;
	rig_hand_over();
	cr_assert_eq(fs_dev(rig.fs), 0, "what nobody knew nobody knows");
	closed(fh.fh);
}

/* Field 20 is what an older program does not write. */
Test(fs_handover, without_one_another_file_system_is_not_taken_for_ours)
{
	int tables, old;

	rig.fs->dev = makedev(0, 50);
	rig.conf.mountpoint = "/proc";
	rig_pause();
	tables = rig_write_tables();
	old = copy_tables(tables, FS_TABLES_MOUNT, 20, 0, 0);
	rig_take_over(old);
	cr_assert_eq(fs_dev(rig.fs), 0);
	close(tables);
	closed(fh.fh);
}

/* The kernel is not asked again; it sends what was agreed on at the mount. */
Test(fs_handover, requests_are_as_large_as_before_whatever_the_server_takes_now)
{
	uint32_t before = rig.fs->max_write;

	rig.fake.info.fs.rsize = rig.fake.info.fs.wsize = RIG_WSIZE / 2;
	rig_hand_over();
	cr_assert_eq(rig.fs->max_write, before);
	cr_assert_eq(rig.fs->max_read, before);
	closed(fh.fh);
}

/* A file that is removed while it is open gets a name that none had. */
Test(fs_handover, names_of_removed_files_are_counted_on)
{
	rig.fs->silly_cnt = 77;
	rig_hand_over();
	cr_assert_eq(rig.fs->silly_cnt, 77);
	closed(fh.fh);
}

/* Whatever its checksum says. */
Test(fs_handover, values_out_of_bounds_are_refused)
{
	static const struct {
		uint16_t type, field;
		uint64_t value;
		size_t zeros;
	} wrong[] = {
		{FS_TABLES_LOCKOWNER, 0, 0},          /* an owner twice */
		{FS_TABLES_LOCKWAIT, 25, 0},          /* a range of no bytes */
		{FS_TABLES_LOCKWAIT, 24, UINT64_MAX}, /* one that ends before it begins */
		{FS_TABLES_INODE, 13, 1000},          /* a type of files that there is not */
		{FS_TABLES_SHARE, 12, 4},             /* an access */
		{FS_TABLES_FILE, 10, 4},              /* the same */
		{FS_TABLES_SHARE, 1, 1 << 20},        /* an inode that is none */
		{FS_TABLES_MOUNT, 12, UINT64_MAX},    /* a descriptor */
		{FS_TABLES_MOUNT, 10, 0, 5000},       /* a FUSE_INIT longer than there can be */
		{FS_TABLES_MOUNT, 11, 0, 5000},       /* its answer */
	};
	uint64_t asleep;
	int tables;

	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 0, 9), 0);
	asleep = setlkw(ino, fh.fh, 2, F_WRLCK, 5, 7);
	rig_settle();
	rig_pause();
	tables = rig_write_tables();
	cr_assert_eq(taken(copy_tables(tables, 0, 0, 0, 0)), 0, "a true copy");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(taken(copy_tables(tables, wrong[i].type, wrong[i].field,
				     wrong[i].value, wrong[i].zeros)),
			-EBADMSG, "%zu", i);
	rig_take_over(tables);
	interrupt(asleep);
	cr_assert_eq(answer_to(asleep, 3000), EINTR);
	cr_assert_eq(flush_as(ino, fh.fh, 1), 0);
	closed(fh.fh);
}

Test(fs_handover, tables_of_something_else_are_refused)
{
	struct tables_out t;
	struct tables_in in;
	struct fs *fs = fs_new(&rig.conf, NULL);
	int fd = memfd_create("tables", MFD_CLOEXEC);

	tables_begin(&t, fd);
	tables_record(&t, 12345);
	tables_put(&t, 1, 1);
	cr_assert_eq(tables_end(&t), 0);
	cr_assert_eq(tables_open(&in, fd), 0);
	cr_assert_eq(fs_handover_get(fs, &in, true, 0), -EBADMSG);
	tables_close(&in);
	fs_free(fs);
	close(fd);
	closed(fh.fh);
}
