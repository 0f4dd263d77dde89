/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process is killed, and another one takes the mount over from what was kept outside
 * (fs_live.h): what it knows is what the kernel and the server know.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "file_rig.h"
#include "fs_asked_int.h"
#include "fs_attr.h"
#include "fs_inode.h"
#include "fs_live.h"
#include "fs_unstable.h"
#include "fs_share.h"
#include "fs_sync.h"
#include "fs_writeback.h"

static void set_up(void)
{
	rig_keep = true;
	rig_write_mode = FS_WRITE_LAZY;
	file_set_up_open(100, O_RDWR);
}

TestSuite(fs_crash, .init = set_up, .fini = rig_down);

static void closed(uint64_t handle)
{
	cr_assert_eq(rig_release(ino, handle), 0);
	rig_settle();
}

static const struct nfs4_call *on_its_way(void)
{
	cr_assert_not(list_empty(&rig.fake.pending));
	return container_of(rig.fake.pending.next, struct nfs4_call, link);
}

/* ---- what is open ---- */

Test(fs_crash, an_open_file_is_read_and_written_on)
{
	unsigned int opened;

	cr_assert_eq(rig_write(ino, fh.fh, 0, "before", 6, O_RDWR), 6);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	opened = rig.fake.count[FAKE_OPEN];
	rig_crash();
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 6), 6);
	cr_assert_arr_eq(re.body, "before", 6);
	cr_assert_eq(rig_write(ino, fh.fh, 6, " after", 6, O_RDWR), 6);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "before after", 12);
	cr_assert_eq(rig.fake.count[FAKE_OPEN], opened, "it was not opened anew");
	cr_assert_eq(rig_file(fh.fh)->cred.uid, 1000);
	closed(fh.fh);
}

Test(fs_crash, again_and_again)
{
	for (uint64_t i = 0; i < 4; i++) {
		cr_assert_eq(rig_write(ino, fh.fh, i, &"abcd"[i], 1, O_RDWR), 1);
		rig_crash();
	}
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "abcd", 4);
	closed(fh.fh);
}

Test(fs_crash, opens_of_one_user_are_one_open_still)
{
	struct fuse_open_out other, late;

	cr_assert_eq(rig_open(ino, O_RDONLY, &other), 0);
	rig_crash();
	cr_assert_eq(rig_file(fh.fh)->share, rig_file(other.fh)->share);
	cr_assert_eq(rig_open(ino, O_WRONLY, &late), 0);
	cr_assert_eq(rig_file(fh.fh)->share, rig_file(late.fh)->share, "a later one joins it");
	closed(late.fh);
	closed(fh.fh);
	cr_assert_eq(rig.fake.count[FAKE_DOWNGRADE], 1, "what is left is for reading");
	rig_crash();
	closed(other.fh);
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
}

Test(fs_crash, what_the_server_has_it_open_for_is_known)
{
	struct fuse_open_out other;

	closed(fh.fh);
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(rig_open(ino, O_WRONLY, &other), 0);
	rig_crash();
	cr_assert_eq(rig_file(fh.fh)->share->access, OPEN4_SHARE_ACCESS_BOTH);
	rig_crash();
	cr_assert_eq(rig_file(fh.fh)->share->access, OPEN4_SHARE_ACCESS_BOTH);
	closed(other.fh);
	rig_crash();
	cr_assert_eq(rig_file(fh.fh)->share->access, OPEN4_SHARE_ACCESS_READ);
	closed(fh.fh);
}

/* Each record costs more than all else of keeping a file. */
Test(fs_crash, a_file_has_one_record_however_it_is_used)
{
	const struct fs_inode *in = rig_inode(ino);
	const struct fs_share *sh = rig_file(fh.fh)->share;
	live_ref inode_ref = in->live_ref, share_ref = sh->live_ref;
	struct fuse_open_out other;

	cr_assert_neq(inode_ref, LIVE_NONE);
	cr_assert_neq(share_ref, LIVE_NONE);
	cr_assert_eq(rig_open(ino, O_RDONLY, &other), 0);
	cr_assert_eq(rig_write(ino, fh.fh, 0, "x", 1, O_RDWR), 1);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	closed(fh.fh);
	cr_assert_eq(in->live_ref, inode_ref);
	cr_assert_eq(rig_file(other.fh)->share->live_ref, share_ref);
	closed(other.fh);
	cr_assert_eq(in->live_ref, inode_ref);
}

Test(fs_crash, what_is_closed_is_not_there)
{
	struct fuse_open_out old, new;

	cr_assert_eq(rig_open(ino, O_RDONLY, &old), 0);
	closed(old.fh);
	rig_crash();
	cr_assert_eq(rig_read(&re, ino, old.fh, 0, 5), -EBADF);
	cr_assert_eq(rig_open(ino, O_RDONLY, &new), 0);
	cr_assert_neq(new.fh, old.fh);
	closed(new.fh);
	closed(fh.fh);
}

Test(fs_crash, a_file_whose_close_was_on_its_way_is_closed)
{
	rig.fake.hold_ops = 1ull << FAKE_CLOSE;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 1);
	rig.fake.hold_ops = 0;
	rig_crash();
	rig_settle();
	cr_assert_eq(rig.fake.opens, 0);
	cr_assert_eq(rig.fs->files_open, 0);
}

Test(fs_crash, also_by_the_one_after_the_next)
{
	rig.fake.hold_ops = 1ull << FAKE_CLOSE;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	rig_crash();
	no_answer(100);
	cr_assert_eq(rig.fake.opens, 1);
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert(rig_file(fh.fh)->released);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 0);
	cr_assert_eq(rig.fs->files_open, 0);
}

Test(fs_crash, an_error_that_nobody_has_heard_is_told)
{
	rig_file(fh.fh)->write_err = EDQUOT;
	fs_live_data(rig_file(fh.fh));
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), EDQUOT);
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	closed(fh.fh);
}

Test(fs_crash, a_file_without_a_name_goes_with_its_last_close)
{
	cr_assert_eq(rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2), 0);
	cr_assert_eq(strncmp(file->name, ".nfs", 4), 0);
	rig_crash();
	cr_assert_eq(rig_inode(FUSE_ROOT_ID)->sillies, 1);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	closed(fh.fh);
	cr_assert_not(file->used);
	cr_assert_eq(rig.fs->sillies, 0);
}

/* Its own request for that is none of the kernel's, who would not know of it. */
Test(fs_crash, what_the_next_one_was_to_remove_is_removed_by_the_one_after_it)
{
	const struct nfs4_op_rename *rename;

	rig.fake.hold_ops = 1ull << FAKE_RENAME;
	rig.was_done = rig_send(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
	no_answer(1000);
	closed(fh.fh);
	rename = &on_its_way()->u.rename;
	memcpy(file->name, rename->to.p, rename->to.len);
	file->name[rename->to.len] = '\0';
	rig.fake.hold_ops = 1ull << FAKE_REMOVE;
	rig_crash();
	cr_assert_eq(answer_to(rig.was_done, 3000), 0);
	no_answer(1000);
	cr_assert(file->used);
	rig.fake.hold_ops = 0;
	rig_crash();
	rig_settle();
	cr_assert_not(file->used);
}

/* Something else is mounted there by now. */
Test(fs_crash, the_device_is_that_of_before_and_not_of_what_is_there_now)
{
	rig.fs->dev = makedev(0, 50);
	rig.conf.mountpoint = "/proc";
	fs_handover_live_mounted(rig.fs);
	rig_crash();
	cr_assert_eq(fs_dev(rig.fs), makedev(0, 50));
	rig_crash();
	cr_assert_eq(fs_dev(rig.fs), makedev(0, 50));
	closed(fh.fh);
}

Test(fs_crash, an_open_directory_is_one_still)
{
	struct fuse_open_out dir;
	struct fuse_release_in in = {0};

	cr_assert_eq(rig_call(&re, FUSE_OPENDIR, FUSE_ROOT_ID, &(struct fuse_open_in){0},
			     sizeof(struct fuse_open_in), NULL, 0),
		0);
	memcpy(&dir, re.body, sizeof(dir));
	rig_crash();
	in.fh = dir.fh;
	cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID, &in, sizeof(in), NULL, 0), 0);
	rig_crash();
	cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID, &in, sizeof(in), NULL, 0), EBADF);
	closed(fh.fh);
}

/* ---- what the kernel knows ---- */

Test(fs_crash, nodeids_stay_and_are_forgotten_by_count)
{
	uint32_t generation = rig_inode(ino)->generation;
	struct fake_file *other = fake_add("other", 1);
	fuse_ino_t other_ino = rig_ino(other);

	cr_assert_eq(rig_ino(other), other_ino, "twice");
	rig_crash();
	cr_assert_eq(rig_inode(ino)->generation, generation);
	cr_assert_eq(rig_inode(other_ino)->nlookup, 2);
	cr_assert_eq(rig_ino(other), other_ino, "the same filehandle is the same file");
	fs_inode_forget(rig.fs, other_ino, 2);
	rig_crash();
	cr_assert_eq(rig_inode(other_ino)->nlookup, 1);
	fs_inode_forget(rig.fs, other_ino, 1);
	rig_crash();
	cr_assert_eq(fs_inode_count(rig.fs), 2);
	cr_assert_neq(rig_inode(rig_ino(fake_add("new", 1)))->generation, generation);
	closed(fh.fh);
}

Test(fs_crash, a_file_that_was_another_one_stays_out_of_sight)
{
	fuse_ino_t new;

	fs_inode_unhash(rig.fs, rig_inode(ino));
	rig_crash();
	cr_assert(rig_inode(ino)->unhashed);
	new = rig_ino(file);
	cr_assert_neq(new, ino);
	closed(fh.fh);
}

/* Which version they are of the next one does not know. */
Test(fs_crash, pages_are_asked_for_again)
{
	struct fuse_open_out out;

	cr_assert_eq(rig_open(ino, O_RDONLY, &out), 0);
	closed(out.fh);
	rig_crash();
	cr_assert_eq(rig_open(ino, O_RDONLY, &out), 0);
	cr_assert_not(out.open_flags & FOPEN_KEEP_CACHE);
	closed(out.fh);
	closed(fh.fh);
}

/* ---- locks ---- */

Test(fs_crash, a_lock_is_its_owners_still)
{
	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 10, 19), 0);
	rig_crash();
	cr_assert_eq(fake_lock_held(file), 1);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 15, 15), EAGAIN);
	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 10, 29), 0, "it may take more");
	rig_crash();
	cr_assert_eq(setlk(ino, fh.fh, 1, F_UNLCK, 0, TO_END), 0);
	cr_assert_eq(fake_lock_held(file), 0);
	rig_crash();
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 15, 15), 0);
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	cr_assert_eq(fake_lock_held(file), 0);
	closed(fh.fh);
}

Test(fs_crash, a_flock_goes_with_its_file)
{
	struct fuse_open_out other;

	cr_assert_eq(rig_open(ino, O_RDWR, &other), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, other.fh, 77, F_WRLCK), 3000), 0);
	rig_crash();
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, fh.fh, 78, F_WRLCK), 3000), EAGAIN);
	closed(other.fh);
	cr_assert_eq(fake_lock_held(file), 0);
	closed(fh.fh);
}

Test(fs_crash, who_sleeps_for_a_lock_sleeps_on)
{
	uint64_t first, second;

	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 0, 9), 0);
	first = setlkw(ino, fh.fh, 2, F_WRLCK, 5, 5);
	rig_settle();
	second = flock_send(FUSE_SETLKW, ino, fh.fh, 3, F_WRLCK);
	rig_settle();
	rig_crash();
	no_answer(1000);
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
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	closed(fh.fh);
}

/* It holds a part of the range, and waits for the answer. */
Test(fs_crash, a_signal_that_came_before_is_not_forgotten)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 0, 9), 0);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 12, 20), 0);
	rig.fake.hold_ops = 1ull << FAKE_LOCK;
	unique = setlkw(ino, fh.fh, 1, F_WRLCK, 5, 15);
	no_answer(100);
	interrupt(unique);
	no_answer(100);
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	cr_assert_eq(flush_as(ino, fh.fh, 1), 0);
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	closed(fh.fh);
}

Test(fs_crash, what_was_in_the_place_of_a_request_is_forgotten)
{
	uint64_t unique;

	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 0, 9), 0);
	unique = setlkw(ino, fh.fh, 1, F_WRLCK, 0, 9);
	no_answer(100);
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	unique = setlkw(ino, fh.fh, 1, F_WRLCK, 0, 9);
	no_answer(100);
	rig_crash();
	no_answer(1000);
	interrupt(unique);
	cr_assert_eq(answer_to(unique, 3000), EINTR);
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	closed(fh.fh);
}

/* A lane may have the request, and be at it, when another one hears of the signal. */
Test(fs_crash, nor_is_one_that_another_lane_heard_of_first)
{
	struct {
		struct fuse_in_header h;
		struct fuse_interrupt_in in;
	} signal = {.h = {.len = sizeof(signal), .opcode = FUSE_INTERRUPT},
		.in = {.unique = rig.unique + 2 * 2}};

	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 0, 9), 0);
	fs_asked_note(rig.fs, &signal, sizeof(signal), LIVE_NONE);
	cr_assert_eq(setlkw(ino, fh.fh, 1, F_WRLCK, 0, 9), signal.in.unique);
	no_answer(100);
	rig_crash();
	cr_assert_eq(answer_to(signal.in.unique, 3000), EINTR);
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	closed(fh.fh);
}

/* ---- what was asked ---- */

static uint64_t placed_in_rxbuf(void)
{
	return live_raw_placed(rig.fs->live, live_raw_ref(rig.fs->live, rig.lane->rxbuf->mem));
}

static uint64_t answered_at;

static void note_place(const struct iovec *iov, int cnt)
{
	answered_at = placed_in_rxbuf();
	cr_assert_eq(rig.fs->asked->cnt, 0);
}

Test(fs_crash, what_is_answered_at_once_is_in_its_buffer_alone)
{
	uint64_t order = rig.fs->asked->order;

	rig.kernel_waits = note_place;
	cr_assert_eq(rig_call(&re, FUSE_GETATTR, ino, &(struct fuse_getattr_in){0},
			     sizeof(struct fuse_getattr_in), NULL, 0),
		0);
	rig.kernel_waits = NULL;
	cr_assert_eq(answered_at, order + 1);
	cr_assert_eq(placed_in_rxbuf(), LIVE_RAW_NONE);
	closed(fh.fh);
}

Test(fs_crash, a_request_that_was_not_answered_is_answered)
{
	uint64_t unique;

	rig.fake.hold_ops = 1ull << FAKE_LOOKUP;
	unique = rig_send(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "f", 2);
	no_answer(1000);
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), 0);
	closed(fh.fh);
}

Test(fs_crash, it_is_told_once_that_nothing_is_left)
{
	uint64_t lookup, sleeper;

	rig.fake.hold_ops = 1ull << FAKE_LOOKUP;
	lookup = rig_send(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "f", 2);
	no_answer(1000);
	rig_crash();
	cr_assert(fs_handover_is_behind(rig.fs));
	no_answer(1000);
	cr_assert_eq(rig.caught_up, 0, "the lookup is not answered");
	fake_release();
	rig.fake.hold_ops = 0;
	cr_assert_eq(answer_to(lookup, 3000), 0);
	rig_settle();
	cr_assert_eq(rig.caught_up, 1);
	/* Only others know when a lock is free. */
	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 0, 9), 0);
	sleeper = setlkw(ino, fh.fh, 2, F_WRLCK, 0, 9);
	no_answer(1000);
	rig_crash();
	no_answer(1000);
	cr_assert_eq(rig.caught_up, 2);
	interrupt(sleeper);
	cr_assert_eq(answer_to(sleeper, 3000), EINTR);
	rig_settle();
	cr_assert_eq(rig.caught_up, 2);
	cr_assert_eq(flush_as(ino, fh.fh, 1), 0);
	closed(fh.fh);
}

Test(fs_crash, and_one_that_was_is_not_done_again)
{
	unsigned int writes;

	cr_assert_eq(rig_write(ino, fh.fh, 0, "once", 4, O_RDWR | O_DSYNC), 4);
	writes = rig.fake.count[FAKE_WRITE];
	cr_assert_eq(rig.fs->asked->cnt, 0);
	rig_crash();
	no_answer(1000);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], writes);
	closed(fh.fh);
}

/* It was answered, and not noted; or the kernel gave it up. */
Test(fs_crash, nor_is_one_that_the_kernel_waits_for_no_more)
{
	struct fuse_write_in in = {.fh = fh.fh, .size = 4, .flags = O_RDWR | O_DSYNC};
	unsigned int writes;
	uint64_t unique;

	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	unique = rig_send(FUSE_WRITE, ino, &in, sizeof(in), "once", 4);
	no_answer(1000);
	writes = rig.fake.count[FAKE_WRITE];
	rig.asked[unique] = false;
	rig.fake.hold_ops = 0;
	rig_crash();
	no_answer(1000);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], writes);
	cr_assert_not(fs_handover_is_behind(rig.fs));
	closed(fh.fh);
}

/* The server has it open once for the kernel, and once for nobody. */
Test(fs_crash, an_open_that_the_kernel_was_not_told_of_is_closed)
{
	struct fuse_open_out out;
	uint64_t unique;

	rig.fake.hold_ops = 1ull << FAKE_SETATTR;
	unique = rig_send(FUSE_OPEN, ino, &(struct fuse_open_in){.flags = O_WRONLY | O_TRUNC},
		sizeof(struct fuse_open_in), NULL, 0);
	no_answer(1000);
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	rig_settle();
	memcpy(&out, re.body, sizeof(out));
	cr_assert_eq(rig.fs->files_open, 2);
	closed(out.fh);
	closed(fh.fh);
}

/* The server has it open, and the request is done again by the same owner: it is one open. */
Test(fs_crash, a_made_file_that_the_kernel_was_not_told_of_stays_open)
{
	struct fuse_create_in in = {.flags = O_RDWR | O_CREAT | O_EXCL, .mode = 0644};
	struct fuse_open_out out;
	unsigned int opens = rig.fake.opens;
	uint64_t unique;

	rig.fake.unstamped = true;
	rig.fake.hold_ops = 1ull << FAKE_SETATTR;
	unique = rig_send(FUSE_CREATE, FUSE_ROOT_ID, &in, sizeof(in), "made", 5);
	no_answer(1000);
	cr_assert_eq(rig.fake.opens, opens + 1);
	rig.was_done = unique;
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	rig_settle();
	memcpy(&out, re.body + sizeof(struct fuse_entry_out), sizeof(out));
	cr_assert_eq(rig.fake.opens, opens + 1, "the server has it open as long as the kernel");
	closed(out.fh);
	closed(fh.fh);
}

/* The server may have done it: then it has one open, and one lock. */
Test(fs_crash, an_open_on_its_way_is_by_the_same_owner)
{
	uint64_t unique, owner;
	struct fuse_open_out out;

	rig.uid = 2000; /* who has nothing open there */
	rig.fake.hold_ops = 1ull << FAKE_OPEN;
	unique = rig_send(FUSE_OPEN, ino, &(struct fuse_open_in){.flags = O_RDONLY},
		sizeof(struct fuse_open_in), NULL, 0);
	no_answer(1000);
	owner = on_its_way()->u.open.owner;
	rig_crash();
	no_answer(1000);
	cr_assert_eq(on_its_way()->u.open.owner, owner);
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	memcpy(&out, re.body, sizeof(out));
	closed(out.fh);
	closed(fh.fh);
}

Test(fs_crash, a_lock_on_its_way_is_by_the_same_owner)
{
	uint64_t unique, number;

	rig.fake.hold_ops = 1ull << FAKE_LOCK;
	unique = setlkw(ino, fh.fh, 5, F_WRLCK, 0, 9);
	no_answer(1000);
	number = on_its_way()->u.lock.lock->number;
	rig_crash();
	no_answer(1000);
	cr_assert_eq(on_its_way()->u.lock.lock->number, number);
	fake_release();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_eq(flush_as(ino, fh.fh, 5), 0);
	closed(fh.fh);
}

static uint64_t held(uint64_t ops, uint32_t opcode, const void *arg, size_t len, const char *name)
{
	uint64_t unique;

	rig.fake.hold_ops = ops;
	unique = rig_send(opcode, FUSE_ROOT_ID, arg, len, name, strlen(name) + 1);
	no_answer(1000);
	rig.fake.hold_ops = 0;
	return unique;
}

Test(fs_crash, what_the_server_did_is_not_done_again)
{
	unsigned int removed = rig.fake.count[FAKE_REMOVE];

	fake_add("other", 1);
	rig.was_done = held(1ull << FAKE_REMOVE, FUSE_UNLINK, NULL, 0, "other");
	rig_crash();
	cr_assert_eq(answer_to(rig.was_done, 3000), 0);
	rig_settle();
	cr_assert_leq(rig.fake.count[FAKE_REMOVE], removed + 1);
	closed(fh.fh);
}

Test(fs_crash, but_what_it_made_is_shown)
{
	struct fuse_mkdir_in in = {.mode = 0755};
	struct fuse_entry_out e;

	rig.was_done = held(1ull << FAKE_OTHER, FUSE_MKDIR, &in, sizeof(in), "made");
	fake_add("made", 1);
	rig_crash();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, rig.was_done);
	cr_assert_eq(re.h.error, 0);
	memcpy(&e, re.body, sizeof(e));
	cr_assert_eq(e.nodeid, rig_ino(fake_find("made")));
	closed(fh.fh);
}

Test(fs_crash, what_it_has_not_done_is_done)
{
	uint64_t unique;

	fake_add("other", 1);
	unique = held(1ull << FAKE_LOOKUP | 1ull << FAKE_REMOVE, FUSE_UNLINK, NULL, 0, "other");
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_null(fake_find("other"));
	closed(fh.fh);
}

/* ---- delegations ---- */

/* The server does not know of it; the delegation, which it knows of, goes back. */
Test(fs_crash, what_a_delegation_served_is_opened, .init = NULL)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	struct fuse_open_out served;

	rig_delegation = true;
	set_up();
	rig.fake.grant = OPEN_DELEGATE_READ;
	closed(fh.fh);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(rig_call(&re, FUSE_OPEN, ino, &in, sizeof(in), NULL, 0), 0);
		memcpy(&served, re.body, sizeof(served));
		if (i == 0)
			closed(served.fh);
	}
	cr_assert_not_null(file->deleg);
	cr_assert_eq(rig.fake.opens, 0, "the second one is served");
	file->granted = false; /* returned; of that test_nfs4_live_deleg has to tell */
	file->deleg = NULL;
	rig_crash();
	cr_assert_eq(rig.fake.opens, 1);
	cr_assert_eq(rig_read(&re, ino, served.fh, 0, 10), 10);
	closed(served.fh);
	cr_assert_eq(rig.fake.opens, 0);
}

/* ---- data ---- */

static void wrote(uint64_t off, const char *text)
{
	cr_assert_eq(rig_write(ino, fh.fh, off, text, strlen(text), O_RDWR), (int)strlen(text));
}

/* The server has it, and may lose it. */
static void is_sent(void)
{
	no_answer(1000);
	cr_assert_gt(fs_gauges(rig.fs).uncommitted, 0);
}

Test(fs_crash, data_that_the_server_has_not_got_is_written)
{
	wrote(0, "not sent");
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "not sent", 8);
	closed(fh.fh);
}

/* Another client that waits for a delegation of before reads it, and does not write beneath it. */
/* The next one writes one after the other, and comes to the first. */
Test(fs_crash, and_by_the_next_one_but_one)
{
	cr_assert_eq(rig_write(ino, fh.fh, 0, "first", 5, O_RDWR | O_DIRECT), 5);
	cr_assert_eq(rig_write(ino, fh.fh, 5, "second", 6, O_RDWR | O_DIRECT), 6);
	is_sent();
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	rig_crash();
	fake_restart();
	no_answer(100);
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "firstsecond", 11);
	closed(fh.fh);
}

Test(fs_crash, data_is_durable_before_delegations_go_back)
{
	wrote(0, "not sent");
	rig.fake.replayed = 0;
	rig_crash();
	no_answer(1000);
	cr_assert_eq(rig.fake.replayed, 1);
	cr_assert_eq(rig.fake.not_durable, 0);
	closed(fh.fh);
}

/* Its lane ends before it is; whoever waits for a delegation gets it at the end of the session. */
/* The end is what is tested. */
TestSuite(fs_crash_end, .init = set_up);

Test(fs_crash_end, it_may_be_unmounted_while_data_is_made_durable)
{
	wrote(0, "not sent");
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	rig.fake.replayed = 0;
	rig_crash();
	no_answer(1000);
	cr_assert_not_null(rig.fs->sync->files);
	fs_lane_stop(rig.lane);
	rig_settle();
	rig.fake.hold_ops = 0;
	fake_release();
	rig_down();
}

Test(fs_crash, data_that_is_not_durable_is_written_again)
{
	wrote(0, "at the server");
	is_sent();
	rig_crash();
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "at the server", 13);
	closed(fh.fh);
}

Test(fs_crash, data_that_is_durable_is_not)
{
	unsigned int writes;

	wrote(0, "durable");
	is_sent();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	writes = rig.fake.count[FAKE_WRITE];
	rig_crash();
	no_answer(1000);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], writes);
	closed(fh.fh);
}

Test(fs_crash, what_was_written_over_is_not_written_again)
{
	wrote(0, "aaaaaaaaaa");
	is_sent();
	cr_assert_eq(rig_write(ino, fh.fh, 3, "bbb", 3, O_RDWR | O_DSYNC), 3);
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "aaabbbaaaa", 10);
	closed(fh.fh);
}

Test(fs_crash, nor_what_was_cut_off)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 4};

	wrote(100, "behind the end");
	is_sent();
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), 0);
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(file->attr.size, 4);
	closed(fh.fh);
}

Test(fs_crash, nor_what_was_cut_off_after_a_part_was_written_over)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 4};

	wrote(0, "aaaaaaaaaa");
	is_sent();
	cr_assert_eq(rig_write(ino, fh.fh, 8, "bb", 2, O_RDWR | O_DSYNC), 2);
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), 0);
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(file->attr.size, 4);
	cr_assert_arr_eq(file->stable, "aaaa", 4);
	closed(fh.fh);
}

Test(fs_crash, data_of_a_file_that_is_being_closed_is_written)
{
	wrote(0, "late");
	rig.fake.hold_ops = 1ull << FAKE_COMMIT;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	rig.fake.hold_ops = 0;
	rig_crash();
	fake_restart();
	rig_settle();
	cr_assert_arr_eq(file->stable, "late", 4);
	cr_assert_eq(rig.fake.opens, 0);
}

/* A write that the kernel puts at off. */
static void append(uint64_t off, const char *text)
{
	cr_assert_eq(rig_write(ino, fh.fh, off, text, strlen(text), O_RDWR | O_APPEND),
		(int)strlen(text));
}

Test(fs_crash, an_append_is_not_appended_again)
{
	append(100, "end");
	is_sent();
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(file->attr.size, 103);
	closed(fh.fh);
}

static void is_appended(const char *text)
{
	memcpy(file->data + file->attr.size, text, strlen(text));
	memcpy(file->stable + file->attr.size, text, strlen(text));
	file->stable_size = file->attr.size += strlen(text);
	fake_touch(file);
}

static void ends_with(const char *text)
{
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(file->attr.size, 100 + strlen(text), "%u bytes", (unsigned)file->attr.size);
	cr_assert_arr_eq(file->stable + 100, text, strlen(text), "%.30s", file->stable + 100);
	closed(fh.fh);
}

static uint64_t append_durably(const char *text)
{
	struct fuse_write_in in = {.fh = fh.fh,
		.offset = 100,
		.size = (uint32_t)strlen(text),
		.flags = O_RDWR | O_APPEND | O_DSYNC};
	uint64_t unique = rig_send(FUSE_WRITE, ino, &in, sizeof(in), text, strlen(text));

	no_answer(1000);
	return unique;
}

/* The server has not got it. */
static void crash_before_append(void)
{
	uint64_t unique;

	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	unique = append_durably("mine");
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), 0);
}

/* The server has not got them, and another client has appended. */
Test(fs_crash, an_append_that_was_not_sent_is_behind_what_others_appended)
{
	is_appended("others");
	crash_before_append();
	ends_with("othersmine");
}

Test(fs_crash, so_is_one_that_was_acknowledged)
{
	is_appended("others");
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	append(100, "mine");
	no_answer(1000);
	rig.fake.hold_ops = 0;
	rig_crash();
	ends_with("othersmine");
}

Test(fs_crash, and_those_behind_it)
{
	is_appended("others");
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	append(100, "mine");
	no_answer(1000);
	append(104, "and more");
	no_answer(1000);
	rig.fake.hold_ops = 0;
	rig_crash();
	ends_with("othersmineand more");
}

/* They are one WRITE, which is longer than what a buffer has room for. */
Test(fs_crash, what_is_there_is_compared_as_far_as_a_buffer_goes)
{
	enum {
		HALF = FS_UNSTABLE_LARGE + RIG_WSIZE / 2,
		ALL = 2 * HALF
	};
	static char others[2 * ALL + 1], mine[HALF + 1];

	memset(others, 'o', ALL);
	memset(mine, 'm', HALF);
	rig.fake.bufs_max = 32;
	rig.lane->writeback->max = rig.lane->unstable->bufs_max = 8;
	rig.fake.info.fs.rsize = rig.fake.info.fs.wsize = ALL;
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	append(100, mine);
	append(100 + HALF, mine);
	no_answer(1000);
	is_appended(others);
	rig.fake.hold_ops = 0;
	rig_crash();
	memset(others + ALL, 'm', ALL);
	ends_with(others);
}

/* The kernel takes the end to be where it would be without the others. */
Test(fs_crash, and_what_is_appended_next)
{
	is_appended("others");
	crash_before_append();
	is_appended("others again");
	append(104, "next");
	ends_with("othersmineothers againnext");
}

static bool at_106(const struct nfs4_call *call)
{
	return call->state == FAKE_WRITE && call->u.write.offset == 106;
}

/* It was refused where the kernel's end is, and is on its way to where the end is. */
static uint64_t append_that_moves(void)
{
	uint64_t unique;

	is_appended("others");
	rig.fake.holds = at_106;
	unique = append_durably("mine");
	cr_assert_not(list_empty(&rig.fake.pending));
	rig.fake.holds = NULL;
	return unique;
}

Test(fs_crash, one_that_was_moved_and_not_done_is_done_there)
{
	uint64_t unique = append_that_moves();

	is_appended("again");
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), 0);
	ends_with("othersagainmine");
}

Test(fs_crash, one_that_was_moved_and_done_is_not_done_again)
{
	uint64_t unique = append_that_moves();

	is_appended("mine");
	is_appended("again");
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), 0);
	ends_with("othersmineagain");
}

static void acknowledged_append_that_moves(void)
{
	is_appended("others");
	rig.fake.holds = at_106;
	append(100, "mine");
	no_answer(1000);
	rig.fake.holds = NULL;
}

Test(fs_crash, nor_is_one_that_was_acknowledged_and_moved)
{
	acknowledged_append_that_moves();
	is_appended("mine");
	is_appended("again");
	rig_crash();
	ends_with("othersmineagain");
}

Test(fs_crash, and_the_next_one_is_behind_it)
{
	uint64_t unique = append_that_moves();

	is_appended("again");
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), 0);
	is_appended("and again");
	append(104, "next");
	ends_with("othersagainmineand againnext");
}

Test(fs_crash, which_is_done_if_it_was_not)
{
	acknowledged_append_that_moves();
	is_appended("again");
	rig_crash();
	ends_with("othersagainmine");
}

/* Where the kernel put it the server reads it, and whoever follows. */
Test(fs_crash, a_large_write_is_not_copied)
{
	static char text[FS_UNSTABLE_LARGE];
	uint64_t copied = rig.copied;

	memset(text, 'x', sizeof(text));
	cr_assert_eq(rig_write(ino, fh.fh, 0, text, sizeof(text), O_RDWR), sizeof(text));
	is_sent();
	cr_assert_lt(rig.copied, copied + sizeof(text));
	rig_crash();
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, text, sizeof(text));
	closed(fh.fh);
}

/* So many of them, each followed by so much time; they are there after a crash and a restart. */
static void outlive(int cnt, int len, unsigned int pause_ms)
{
	char text[600];

	for (int i = 0; i < cnt; i++) {
		snprintf(text, sizeof(text), "write%0*d", len - 5, i);
		wrote((uint64_t)i * (uint64_t)len, text);
		no_answer(pause_ms);
	}
	rig_crash();
	no_answer(1000); /* all of them were told */
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	for (int i = 0; i < cnt; i++) {
		snprintf(text, sizeof(text), "write%0*d", len - 5, i);
		cr_assert_arr_eq(file->stable + i * len, text, (size_t)len, "%d", i);
	}
	closed(fh.fh);
}

/* Its buffer is used for others before it is durable. */
Test(fs_crash, a_small_write_outlives_its_buffer)
{
	outlive(20, 7, 1000);
	cr_assert_eq(rig.copied, 0, "there are places for them");
}

Test(fs_crash, a_larger_write_outlives_its_buffer)
{
	outlive(20, 500, 1000);
	cr_assert_gt(rig.copied, 0);
}

/* There are no more places. */
Test(fs_crash, many_small_writes_outlive_theirs)
{
	outlive(1200, 10, 0);
	cr_assert_gt(rig.copied, 0);
}

/* One copy is enough for a COMMIT that fails and for a crash; its memory is there for the former.
 */
Test(fs_crash, the_copy_of_a_small_write_is_in_its_record)
{
	uint64_t before = live_bytes(rig.live);
	const struct fs_unstable *r;
	char text[500];

	memset(text, 'x', sizeof(text));
	cr_assert_eq(rig_write(ino, fh.fh, 0, text, sizeof(text), O_RDWR), sizeof(text));
	is_sent();
	r = rig_inode(ino)->unstable;
	cr_assert_eq(r->cnt, 1);
	cr_assert_not_null(r->v[0]->mem->lent);
	/* The request is over, as its range is two now; other records take what memory is free. */
	cr_assert_eq(rig_write(ino, fh.fh, 100, "new", 3, O_RDWR), 3);
	is_sent();
	cr_assert_eq(r->cnt, 3);
	memset(text, 'y', sizeof(text));
	for (uint64_t i = 1; i < 4; i++) {
		cr_assert_eq(
			rig_write(ino, fh.fh, i * 1000, text, sizeof(text), O_RDWR), sizeof(text));
		is_sent();
	}
	fake_restart();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	memset(text, 'x', sizeof(text));
	memcpy(text + 100, "new", 3);
	cr_assert_arr_eq(file->stable, text, sizeof(text));
	rig_settle();
	cr_assert_eq(live_bytes(rig.live), before);
	closed(fh.fh);
}

/* A lane that only commits would gather what the others make. */
Test(fs_crash, a_lane_keeps_spare_what_is_its_own)
{
	struct fs_unstable_lane unstable = {.spare_mems = NULL};
	struct fs_lane other = {.fs = rig.fs, .unstable = &unstable};
	char text[500];

	memset(text, 'x', sizeof(text));
	cr_assert_eq(rig_write(ino, fh.fh, 0, text, sizeof(text), O_RDWR), sizeof(text));
	is_sent();
	cr_assert_not_null(rig_inode(ino)->unstable->v[0]->mem->lent);
	fs_unstable_cut(&other, rig_inode(ino), 0);
	cr_assert_null(unstable.spare_mems);
	cr_assert_eq(rig_write(ino, fh.fh, 0, text, sizeof(text), O_RDWR), sizeof(text));
	is_sent();
	fs_unstable_cut(rig.lane, rig_inode(ino), 0);
	cr_assert_not_null(rig.lane->unstable->spare_mems);
	closed(fh.fh);
}

/* As if the other lane had written it. */
static void give_to(struct fs_lane *other, struct fs_unstable_mem *k)
{
	list_del(&k->link);
	list_push_back(&other->unstable->mems, &k->link);
	rig.lane->unstable->bytes -= k->charge;
	other->unstable->bytes += k->charge;
	k->lane = other;
}

/* Of a file that several lanes wrote, one after the other. */
Test(fs_crash, each_lane_has_its_budget_back)
{
	struct fs_unstable_lane unstable = {.bytes = 0};
	struct fs_lane other = {.fs = rig.fs, .unstable = &unstable};
	struct fs_extent **v;
	char text[500];

	mutex_init(&unstable.lock, MUTEX_FS_UNSTABLE);
	list_init(&unstable.mems);
	memset(text, 'x', sizeof(text));
	for (uint64_t off = 0; off < 5000; off += 1000) {
		cr_assert_eq(rig_write(ino, fh.fh, (off_t)off, text, sizeof(text), O_RDWR),
			sizeof(text));
		is_sent();
	}
	v = rig_inode(ino)->unstable->v;
	cr_assert_eq(rig_inode(ino)->unstable->cnt, 5);
	give_to(&other, v[0]->mem);
	give_to(&other, v[3]->mem);
	fs_unstable_cut(rig.lane, rig_inode(ino), 0);
	cr_assert_eq(unstable.bytes, 0);
	cr_assert(list_empty(&unstable.mems));
	cr_assert_eq(rig.lane->unstable->bytes, 0);
	cr_assert(list_empty(&rig.lane->unstable->mems));
	closed(fh.fh);
	mutex_destroy(&unstable.lock);
}

/* The same, if the server had it, and its buffer was something else's since. */
static uint64_t other_handle(void)
{
	list_for_each (node, &rig.fs->files) {
		const struct fs_file *f = container_of(node, struct fs_file, all_link);

		if (f->handle != fh.fh)
			return f->handle;
	}
	return 0;
}

/* As one lane has written the answer to an OPEN, and not noted it, and another one has the WRITE.
 */
Test(fs_crash, what_is_written_after_a_cut_is_not_cut_off)
{
	struct fuse_open_in in = {.flags = O_WRONLY | O_TRUNC};
	unsigned int writes;
	uint64_t handle;

	rig.fake.hold_ops = 1ull << FAKE_SETATTR | 1ull << FAKE_WRITE;
	rig_send(FUSE_OPEN, ino, &in, sizeof(in), NULL, 0);
	no_answer(1000);
	handle = other_handle();
	cr_assert_neq(handle, 0);
	file->attr.size = file->stable_size = 0;
	fake_touch(file);
	cr_assert_eq(rig_write(ino, handle, 0, "acknowledged", 12, O_WRONLY), 12);
	no_answer(1000);
	writes = rig.fake.count[FAKE_WRITE];
	rig.fake.hold_ops = 1ull << FAKE_OPEN; /* the server takes a while for it */
	rig_crash();
	no_answer(100);
	cr_assert_eq(rig.fake.count[FAKE_WRITE], writes, "it waits");
	rig.fake.hold_ops = 0;
	fake_release();
	while (rig_reply(&re, 3000))
		;
	cr_assert_eq(rig_fsync(ino, handle), 0);
	cr_assert_eq(file->attr.size, 12);
	cr_assert_arr_eq(file->stable, "acknowledged", 12);
	closed(handle);
	closed(fh.fh);
}

static int refuse(struct nfs4_call *call)
{
	call->status = NFS4ERR_IO;
	return -EIO;
}

/* It is no writeback of this process: its error is told all the same. */
Test(fs_crash, what_cannot_be_written_again_is_told)
{
	cr_assert_eq(rig_write(ino, fh.fh, 0, "direct", 6, O_RDWR | O_DIRECT), 6);
	is_sent();
	rig_crash();
	fake_restart();
	rig.fake.refuse_write = refuse;
	no_answer(1000);
	rig.fake.refuse_write = NULL;
	cr_assert_eq(rig_fsync(ino, fh.fh), EIO);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0, "once");
	cr_assert_eq(rig.fs->lost_bytes, 6);
	closed(fh.fh);
}

Test(fs_crash, an_error_of_before_is_not_told_to_what_was_acknowledged)
{
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	wrote(0, "not sent");
	rig_file(fh.fh)->next_err = ENOSPC; /* of the rest of a short write */
	fs_live_data(rig_file(fh.fh));
	rig.fake.hold_ops = 0;
	rig_crash();
	no_answer(1000);
	cr_assert_eq(rig_write(ino, fh.fh, 100, "next", 4, O_RDWR), -ENOSPC);
	cr_assert_eq(rig_write(ino, fh.fh, 100, "next", 4, O_RDWR), 4, "once");
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "not sent", 8);
	closed(fh.fh);
}

Test(fs_crash, nor_is_what_the_server_lost_missing)
{
	const struct fuse_read_in in = {.fh = fh.fh, .size = 12};
	uint64_t unique;

	wrote(0, "acknowledged");
	is_sent();
	rig.fake.hold_ops = 1ull << FAKE_READ;
	unique = rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
	no_answer(1000);
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	rig.conf.write = FS_WRITE_WAIT;
	rig_crash();
	fake_restart();
	no_answer(1000);
	rig.fake.hold_ops = 0;
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_arr_eq(re.body, "acknowledged", 12);
	closed(fh.fh);
}

/* The write is answered by the server now, and later than the read could be. */
Test(fs_crash, a_read_sees_what_was_acknowledged_before_it)
{
	const struct fuse_read_in in = {.fh = fh.fh, .size = 12};
	uint64_t unique;

	wrote(0, "acknowledged");
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	unique = rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0);
	no_answer(1000);
	rig.conf.write = FS_WRITE_WAIT;
	rig_crash();
	no_answer(1000);
	rig.fake.hold_ops = 0;
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_arr_eq(re.body, "acknowledged", 12);
	closed(fh.fh);
}

/* ---- keep=tables ---- */

static void set_up_tables(void)
{
	rig_tables_only = true;
	set_up();
}

TestSuite(fs_crash_tables, .init = set_up_tables, .fini = rig_down);

/* Neither the server nor the next daemon has it, and programs were told that it is written. */
Test(fs_crash_tables, data_that_the_server_has_not_got_is_told_once_to_all)
{
	struct fuse_open_out other;

	cr_assert_eq(rig_open(ino, O_RDWR, &other), 0);
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	wrote(0, "not sent");
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), EIO);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig_fsync(ino, other.fh), EIO);
	cr_assert_eq(rig_flush(ino, other.fh), 0);
	cr_assert_neq(memcmp(file->stable, "not sent", 8), 0);
	closed(other.fh);
	closed(fh.fh);
}

Test(fs_crash_tables, and_so_is_what_the_server_may_lose)
{
	wrote(0, "unstable");
	is_sent();
	rig_crash();
	rig_crash(); /* before anybody heard of it */
	cr_assert_eq(rig_flush(ino, fh.fh), EIO);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	closed(fh.fh);
}

/* The pages of a file that stays open, when it is looked at. */
Test(fs_crash_tables, what_the_kernel_has_of_it_is_dropped)
{
	struct fuse_attr_out attr;

	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	wrote(0, "not sent");
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert(fs_stat_pages_stale(rig_inode(ino)));
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	rig_settle();
	cr_assert_not(fs_stat_pages_stale(rig_inode(ino)));
	closed(fh.fh);
}

Test(fs_crash_tables, of_a_file_that_is_being_closed_nobody_can_be_told)
{
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	wrote(0, "late");
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	rig.fake.hold_ops = 0;
	rig_crash();
	rig_settle();
	cr_assert_eq(rig.fake.opens, 0);
	cr_assert_eq(fs_losses(rig.fs).files, 1, "but it is counted");
}

Test(fs_crash_tables, data_that_is_durable_is_not)
{
	wrote(0, "durable");
	is_sent();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_eq(rig_write(ino, fh.fh, 7, "!", 1, O_RDWR | O_DSYNC), 1);
	rig_crash();
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "durable!", 8);
	closed(fh.fh);
}

/* It is in the memory until then, and done by the next daemon. */
Test(fs_crash_tables, a_write_that_was_not_answered_is_done)
{
	uint64_t unique;

	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	unique = rig_send(FUSE_WRITE, ino,
		&(struct fuse_write_in){.fh = fh.fh, .size = 5, .flags = O_RDWR | O_DSYNC},
		sizeof(struct fuse_write_in), "again", 5);
	no_answer(100);
	rig.fake.hold_ops = 0;
	rig_crash();
	cr_assert_eq(answer_to(unique, 3000), 0);
	cr_assert_arr_eq(file->stable, "again", 5);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	closed(fh.fh);
}

Test(fs_crash_tables, what_is_written_needs_no_memory)
{
	static uint8_t small[4096];
	uint64_t before = live_bytes(rig.live);

	for (uint64_t i = 0; i < 16; i++)
		cr_assert_eq(rig_write(ino, fh.fh, i * sizeof(small), small, sizeof(small), O_RDWR),
			(int)sizeof(small));
	is_sent();
	cr_assert_lt(live_bytes(rig.live), before + 4 * sizeof(small));
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	closed(fh.fh);
}
