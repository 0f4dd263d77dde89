/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for what is written back, what is told of it, and who hears of errors. */
#include <sys/stat.h>

#include "fs_writeback.h"
#include "writeback_rig.h"
#include "fs_inode.h"

TestSuite(fs_writeback_order, .init = dirty_set_up, .fini = rig_down);

static struct rig_reply re;

/* The answer to this one; what the kernel is told meanwhile is passed over. Positive errno. */
static int answered(uint64_t unique)
{
	do
		cr_assert(rig_reply(&re, 1000), "no answer");
	while (re.h.unique == 0);
	cr_assert_eq(re.h.unique, unique);
	return -re.h.error;
}

static int sync_of(uint32_t opcode, uint64_t handle)
{
	struct fuse_flush_in flush = {.fh = handle};
	struct fuse_fsync_in fsync = {.fh = handle};
	bool is_flush = opcode == FUSE_FLUSH;

	return answered(rig_send(opcode, dino, is_flush ? (void *)&flush : &fsync,
		is_flush ? sizeof(flush) : sizeof(fsync), NULL, 0));
}

/* 20 KiB at `off` are on their way, or 1 KiB is gathered; the request waits until they are there.
 */
static uint64_t writeback(uint64_t off)
{
	hold(FAKE_WRITE);
	cr_assert_eq(put(off, 20 * KIB), 20 * KIB);
	return off;
}

static void waits_for_it(uint64_t unique, enum fake_op op)
{
	unsigned int before = count(op);

	no_answer(50);
	cr_assert_eq(count(op), before, "the server was asked too early");
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_gt(count(op), before);
}

/* ---- data ---- */

Test(fs_writeback_order, a_read_of_it_waits)
{
	writeback(0);
	waits_for_it(get_send(1000, 100), FAKE_READ);
}

Test(fs_writeback_order, what_is_written_back_and_over_is_looked_for_no_more)
{
	writeback(0);
	cr_assert(rig_inode(dino)->is_written_back);
	waits_for_it(get_send(1000, 100), FAKE_READ);
	cr_assert_not(rig_inode(dino)->is_written_back);
}

Test(fs_writeback_order, a_read_of_it_sends_what_is_gathered)
{
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(rig_read(&re, dino, dfh.fh, 0, KIB), KIB);
	cr_assert_arr_eq(re.body, ddata, KIB);
}

Test(fs_writeback_order, a_read_elsewhere_does_not_wait)
{
	dfile->attr.size = 60 * KIB;
	writeback(0);
	cr_assert_eq(rig_read(&re, dino, dfh.fh, 30 * KIB, KIB), KIB);
	fake_release();
}

/* The kernel would make the file as short as the answer says. */
Test(fs_writeback_order, a_read_that_meets_the_end_looks_again)
{
	hold(FAKE_READ);
	writeback(10 * KIB);
	cr_assert_eq(count(FAKE_WRITE), 1);
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	uint64_t unique = get_send(0, KIB); /* the server has 100 bytes so far */

	rig_settle();
	no_answer(50);
	cr_assert_eq(count(FAKE_READ), 1);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.len, KIB);
	cr_assert_eq(count(FAKE_READ), 2);
}

/* The file has 100 bytes at the server, and these are its last ones there. */
Test(fs_writeback_order, a_read_that_got_all_does_not_look_again)
{
	uint64_t unique;

	hold(FAKE_WRITE);
	cr_assert_eq(put(64 * KIB, KIB), (int)KIB);
	unique = get_send(0, 100);
	cr_assert_eq(answer_to(unique, 1000), 0, "what is written elsewhere is still on its way");
	cr_assert_eq(count(FAKE_READ), 1);
	fake_release();
	rig_settle();
}

Test(fs_writeback_order, a_read_at_the_real_end_is_short)
{
	cr_assert_eq(rig_read(&re, dino, dfh.fh, 0, KIB), 100);
	cr_assert_eq(count(FAKE_READ), 1);
}

Test(fs_writeback_order, a_write_over_it_waits)
{
	writeback(0);
	waits_for_it(put_send(4000, 20 * KIB, O_RDWR, 0), FAKE_WRITE);
}

Test(fs_writeback_order, a_direct_write_over_it_waits)
{
	writeback(0);
	waits_for_it(put_send(4096, 4096, O_RDWR | O_DIRECT, 0), FAKE_WRITE);
}

Test(fs_writeback_order, a_direct_write_over_what_is_gathered_sends_it_first)
{
	static const uint8_t other[KIB] = {9};

	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(rig_write(dino, dfh.fh, 0, other, KIB, O_RDWR | O_DIRECT), KIB);
	rig_settle();
	cr_assert_eq(count(FAKE_WRITE), 2);
	cr_assert_arr_eq(dfile->data, other, KIB);
}

static bool is_the_second(const struct nfs4_call *call)
{
	return call->state == (int)FAKE_WRITE && call->u.write.offset == 30 * KIB;
}

Test(fs_writeback_order, a_direct_write_is_not_woken_by_what_it_does_not_overlap)
{
	uint64_t unique;

	writeback(0);
	cr_assert_eq(put(30 * KIB, 20 * KIB), 20 * KIB);
	unique = put_send(32 * KIB, 4096, O_RDWR | O_DIRECT, 0);
	rig_settle();
	rig.fake.holds = is_the_second;
	fake_release();
	no_answer(50);
	cr_assert(at_server(0, 20 * KIB));
	cr_assert_eq(count(FAKE_WRITE), 2, "its own was sent too early");
	rig.fake.holds = NULL;
	fake_release();
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_eq(count(FAKE_WRITE), 3);
}

Test(fs_writeback_order, a_write_elsewhere_does_not_wait)
{
	writeback(0);
	cr_assert_eq(put(30 * KIB, 20 * KIB), 20 * KIB);
	fake_release();
}

static uint64_t setattr_send(uint32_t valid, uint64_t size)
{
	struct fuse_setattr_in in = {.valid = valid, .size = size, .mode = 0600, .mtime = 77};

	return rig_send(FUSE_SETATTR, dino, &in, sizeof(in), NULL, 0);
}

Test(fs_writeback_order, a_truncation_waits)
{
	writeback(0);
	waits_for_it(setattr_send(FATTR_SIZE, 10), FAKE_SETATTR);
	cr_assert_eq(dfile->attr.size, 10);
}

Test(fs_writeback_order, times_that_are_set_are_not_those_of_a_later_write)
{
	writeback(0);
	waits_for_it(setattr_send(FATTR_MTIME, 0), FAKE_SETATTR);
}

Test(fs_writeback_order, a_mode_that_is_set_waits)
{
	writeback(0);
	waits_for_it(setattr_send(FATTR_MODE, 0), FAKE_SETATTR);
}

Test(fs_writeback_order, times_set_on_a_small_file_save_its_commit)
{
	uint64_t unique;

	cr_assert_eq(put(0, KIB), KIB);
	unique = setattr_send(FATTR_MTIME, 0);
	cr_assert_eq(answer_to(unique, 1000), 0);
	cr_assert_eq(rig_flush(dino, dfh.fh), 0);
	cr_assert_eq(count(FAKE_COMMIT), 0);
	cr_assert_eq(memcmp(dfile->stable, ddata, KIB), 0);
}

Test(fs_writeback_order, an_open_that_truncates_waits)
{
	struct fuse_open_in in = {.flags = O_WRONLY | O_TRUNC};
	uint64_t unique;

	writeback(0);
	unique = rig_send(FUSE_OPEN, dino, &in, sizeof(in), NULL, 0);
	rig_settle();
	cr_assert_eq(count(FAKE_SETATTR), 0);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(dfile->attr.size, 0);
	cr_assert_eq(rig_release(dino, ((struct fuse_open_out *)re.body)->fh), 0);
	rig_settle();
}

/* The kernel does not know this name for it: another client gave it. */
Test(fs_writeback_order, a_create_that_truncates_is_not_undone_by_it)
{
	struct fuse_create_in in = {.flags = O_WRONLY | O_CREAT | O_TRUNC, .mode = S_IFREG | 0644};
	struct fuse_open_out out;
	uint64_t unique;

	writeback(0);
	strcpy(dfile->name, "e");
	unique = rig_send(FUSE_CREATE, FUSE_ROOT_ID, &in, sizeof(in), "e", 2);
	rig_settle();
	fake_release();
	cr_assert_eq(answered(unique), 0);
	cr_assert_eq(dfile->attr.size, 0);
	memcpy(&out, re.body + sizeof(struct fuse_entry_out), sizeof(out));
	cr_assert_eq(((struct fuse_entry_out *)re.body)->attr.size, 0);
	cr_assert_eq(rig_release(dino, out.fh), 0);
	rig_settle();
	cr_assert_eq(rig.fake.opens, 1);
}

static uint64_t fallocate_send(uint32_t mode)
{
	struct fuse_fallocate_in in = {.fh = dfh.fh, .length = 40 * KIB, .mode = mode};

	return rig_send(FUSE_FALLOCATE, dino, &in, sizeof(in), NULL, 0);
}

Test(fs_writeback_order, space_waits)
{
	writeback(0);
	waits_for_it(fallocate_send(0), FAKE_ALLOCATE);
}

Test(fs_writeback_order, a_hole_waits)
{
	writeback(0);
	waits_for_it(fallocate_send(3), FAKE_DEALLOCATE);
	cr_assert_eq(dfile->data[5000], 0);
}

static int seek_at_server(struct nfs4_call *call)
{
	cr_assert_eq(call->state, FAKE_SEEK);
	call->u.seek.eof = false;
	call->u.seek.found = call->u.seek.offset;
	return 0;
}

Test(fs_writeback_order, a_seek_waits)
{
	struct fuse_lseek_in in = {.fh = dfh.fh, .whence = SEEK_DATA};

	rig.fake.other = seek_at_server;
	writeback(0);
	waits_for_it(rig_send(FUSE_LSEEK, dino, &in, sizeof(in), NULL, 0), FAKE_SEEK);
}

/* Both waited for the same: one is written back, the other one beside it does not. */
Test(fs_writeback_order, two_that_overlap_are_not_written_back_at_once)
{
	uint64_t first, second;

	writeback(0);
	first = put_send(0, 20 * KIB, O_RDWR, 0);
	second = put_send(KIB, 20 * KIB, O_RDWR, 0);
	no_answer(50);
	fake_release();
	for (int i = 0; i < 2; i++) {
		cr_assert(rig_reply(&re, 1000));
		cr_assert(re.h.unique == first || re.h.unique == second);
		cr_assert_eq(re.h.error, 0);
	}
	cr_assert_eq(rig.stats.writes_behind, 2);
	rig_settle();
	cr_assert(at_server(0, 21 * KIB));
}

/* ---- close and sync ---- */

Test(fs_writeback_order, close_waits)
{
	struct fuse_flush_in in = {.fh = dfh.fh};

	writeback(0);
	waits_for_it(rig_send(FUSE_FLUSH, dino, &in, sizeof(in), NULL, 0), FAKE_COMMIT);
}

Test(fs_writeback_order, fsync_through_another_handle_waits)
{
	struct fuse_open_out other;
	struct fuse_fsync_in in = {0};

	cr_assert_eq(rig_open(dino, O_RDONLY, &other), 0);
	in.fh = other.fh;
	writeback(0);
	waits_for_it(rig_send(FUSE_FSYNC, dino, &in, sizeof(in), NULL, 0), FAKE_COMMIT);
	cr_assert_eq(rig_release(dino, other.fh), 0);
	rig_settle();
}

Test(fs_writeback_order, a_release_without_a_flush_waits_and_commits)
{
	writeback(0);
	cr_assert_eq(rig_release(dino, dfh.fh), 0);
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 0);
	fake_release();
	rig_settle();
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert_eq(memcmp(dfile->stable, ddata, 20 * KIB), 0);
	cr_assert(fake_all_free());
}

Test(fs_writeback_order, an_unlock_waits)
{
	uint64_t unique;

	cr_assert_eq(setlk(dino, dfh.fh, 1, F_WRLCK, 0, INT64_MAX), 0);
	writeback(0);
	unique = lk_send(FUSE_SETLK, dino, dfh.fh, 1, F_UNLCK, 0, INT64_MAX);
	waits_for_it(unique, FAKE_LOCKU);
}

/* Whoever keeps writing does not keep an fsync waiting. */
Test(fs_writeback_order, fsync_does_not_wait_for_what_comes_after_it)
{
	struct fuse_fsync_in in = {.fh = dfh.fh};
	struct list *later;
	uint64_t unique;

	writeback(0);
	unique = rig_send(FUSE_FSYNC, dino, &in, sizeof(in), NULL, 0);
	rig_settle();
	cr_assert_eq(put(30 * KIB, 20 * KIB), 20 * KIB);
	later = rig.fake.pending.prev;
	list_del(later); /* the server answers it when all else is over */
	fake_release();
	cr_assert_eq(answered(unique), 0);
	cr_assert(at_server(0, 20 * KIB));
	cr_assert_not(at_server(30 * KIB, 20 * KIB));
	list_push_back(&rig.fake.pending, later);
	fake_release();
	rig_settle();
}

/* ---- attributes ---- */

static uint64_t getattr_send(void)
{
	struct fuse_getattr_in in = {0};

	return rig_send(FUSE_GETATTR, dino, &in, sizeof(in), NULL, 0);
}

Test(fs_writeback_order, a_stat_waits_and_tells_what_the_server_has_then)
{
	struct fuse_attr_out out;

	writeback(0);
	waits_for_it(getattr_send(), FAKE_GETATTR);
	cr_assert_eq(rig_getattr(dino, &out), 0);
	cr_assert_eq(out.attr.size, 20 * KIB);
	cr_assert_eq(out.attr.mtime, (uint64_t)dfile->attr.mtime.tv_sec);
}

Test(fs_writeback_order, attributes_from_before_it_are_not_told_any_more)
{
	struct fuse_attr_out out;
	unsigned int before;

	cr_assert_eq(rig_getattr(dino, &out), 0);
	before = count(FAKE_GETATTR);
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(rig_getattr(dino, &out), 0);
	cr_assert_gt(count(FAKE_GETATTR), before);
	cr_assert_eq(out.attr.size, KIB);
}

/* A name is found while the server has not got what is written back: the kernel must not cut it
 * off. */
Test(fs_writeback_order, a_lookup_tells_the_size_that_it_will_have)
{
	struct fuse_entry_out e;

	writeback(0);
	cr_assert_eq(rig_call(&re, FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "d", 2), 0);
	memcpy(&e, re.body, sizeof(e));
	cr_assert_eq(e.attr.size, 20 * KIB);
	cr_assert_eq(e.attr_valid, 0);
	cr_assert_eq(e.attr_valid_nsec, 0);
	fake_release();
}

static struct nfs4_attr before_it;

static int looked_up_before(struct nfs4_call *call, enum fake_op op)
{
	cr_assert_eq(op, FAKE_LOOKUP);
	call->u.lookup.fh = (struct nfs4_fh){.len = 1, .data = {(uint8_t)(dfile - rig.fake.files)}};
	call->u.lookup.attr = before_it;
	return 0;
}

/* ... also if it has it by now, and had not when it looked. */
Test(fs_writeback_order, a_lookup_that_is_older_than_the_write_does_not_tell_its_size)
{
	struct fuse_flush_in in = {.fh = dfh.fh};
	struct fuse_entry_out e;
	uint64_t flush, lookup;

	before_it = dfile->attr;
	rig.fake.names = looked_up_before;
	rig.fake.hold = true;
	cr_assert_eq(put(0, KIB), KIB);
	flush = rig_send(FUSE_FLUSH, dino, &in, sizeof(in), NULL, 0);
	lookup = rig_send(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "d", 2);
	rig_settle();
	fake_release();
	for (int i = 0; i < 2; i++) {
		cr_assert(rig_reply(&re, 1000));
		cr_assert(re.h.unique == flush || re.h.unique == lookup);
		if (re.h.unique == lookup)
			memcpy(&e, re.body, sizeof(e));
	}
	cr_assert_eq(count(FAKE_COMMIT), 0, "it is durable, and not held");
	cr_assert_eq(e.attr.size, KIB);
}

/* It may be ours: pages that were just written stay. */
Test(fs_writeback_order, a_change_seen_meanwhile_is_not_taken_for_another_clients)
{
	struct fs_inode *in = fs_inode_get(rig.fs, dino);
	uint32_t before = in->inval_want;

	writeback(0);
	fake_touch(dfile);
	cr_assert_eq(rig_call(&re, FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "d", 2), 0);
	cr_assert_eq(in->inval_want, before);
	fake_release();
	rig_settle();
	fs_inode_put(rig.fs, in);
}

/* ---- under a delegation to write ---- */

static void delegate(void)
{
	cr_assert_eq(rig_release(dino, dfh.fh), 0);
	rig_down();
	rig_delegation = true;
	dirty_set_up();
	rig_settle();
	cr_assert_eq(rig_release(dino, dfh.fh), 0);
	rig_settle();
	rig.fake.grant = OPEN_DELEGATE_WRITE;
	cr_assert_eq(rig_open(dino, O_RDWR, &dfh), 0);
	cr_assert_not_null(dfile->deleg);
}

Test(fs_writeback_order, the_server_is_told_what_it_has_not_got)
{
	uint64_t change, size, later;

	delegate();
	cr_assert(fake_cb_getattr(dfile, &change, &size));
	cr_assert_eq(size, 100);
	writeback(10 * KIB);
	cr_assert(fake_cb_getattr(dfile, &later, &size));
	cr_assert_eq(size, 30 * KIB);
	cr_assert_neq(later, change);
	fake_release();
	rig_settle();
}

Test(fs_writeback_order, a_recall_waits_for_it)
{
	delegate();
	writeback(0);
	fake_recall(dfile);
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 0);
	fake_release();
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 1);
	cr_assert_eq(memcmp(dfile->stable, ddata, 20 * KIB), 0);
}

/* ---- errors ---- */

Test(fs_writeback_order, an_error_is_the_next_writes)
{
	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	rig_settle();
	cr_assert_eq(answered(put_send(20 * KIB, KIB, O_RDWR, 0)), ENOSPC);
	cr_assert_eq(put(20 * KIB, KIB), KIB, "told once");
	cr_assert_eq(sync_of(FUSE_FSYNC, dfh.fh), ENOSPC);
}

/* The program repeats what it heard the error of, and not what was lost. */
Test(fs_writeback_order, an_error_that_a_write_told_is_fsyncs_too)
{
	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	rig_settle();
	cr_assert_eq(answered(put_send(20 * KIB, KIB, O_RDWR, 0)), ENOSPC);
	cr_assert_eq(put(20 * KIB, KIB), KIB);
	cr_assert_eq(sync_of(FUSE_FSYNC, dfh.fh), ENOSPC);
	cr_assert_eq(sync_of(FUSE_FSYNC, dfh.fh), 0, "told once");
	cr_assert_eq(put(40 * KIB, KIB), KIB);
	cr_assert_eq(sync_of(FUSE_FLUSH, dfh.fh), 0);
}

Test(fs_writeback_order, an_error_is_the_closes)
{
	rig.fake.fail[FAKE_WRITE] = EDQUOT;
	cr_assert_eq(put(0, KIB), KIB);
	cr_assert_eq(sync_of(FUSE_FLUSH, dfh.fh), EDQUOT);
}

Test(fs_writeback_order, an_error_is_every_handles)
{
	struct fuse_open_out writer, reader;

	cr_assert_eq(rig_open(dino, O_WRONLY, &writer), 0);
	cr_assert_eq(rig_open(dino, O_RDONLY, &reader), 0);
	rig.fake.fail[FAKE_WRITE] = EIO;
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	rig_settle();
	cr_assert_eq(sync_of(FUSE_FSYNC, writer.fh), EIO);
	cr_assert_eq(sync_of(FUSE_FLUSH, reader.fh), 0);
	cr_assert_eq(sync_of(FUSE_FSYNC, reader.fh), EIO);
	cr_assert_eq(sync_of(FUSE_FSYNC, dfh.fh), EIO);
	cr_assert_eq(rig_release(dino, writer.fh), 0);
	cr_assert_eq(rig_release(dino, reader.fh), 0);
	rig_settle();
}

/* The kernel was told that the pages are written. */
Test(fs_writeback_order, after_an_error_the_kernel_drops_the_pages)
{
	bool told = false;

	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	for (int i = 0; i < 5 && !told; i++)
		told = rig_reply(&re, 200) && re.h.unique == 0 &&
		       re.h.error == FUSE_NOTIFY_INVAL_INODE;
	cr_assert(told);
	cr_assert_eq(sync_of(FUSE_FSYNC, dfh.fh), ENOSPC);
}

Test(fs_writeback_order, an_error_after_a_part_is_told)
{
	rig.fake.short_count = 10 * KIB;
	hold(FAKE_WRITE);
	cr_assert_eq(put(0, 20 * KIB), 20 * KIB);
	fake_release();
	for (int i = 0; i < 100 && count(FAKE_WRITE) < 2; i++)
		reactor_turn(rig.fake.r, 0);
	rig.fake.fail[FAKE_WRITE] = ENOSPC;
	rig_settle();
	cr_assert_eq(sync_of(FUSE_FSYNC, dfh.fh), ENOSPC);
	cr_assert(at_server(0, 10 * KIB));
}

Test(fs_writeback_order, without_a_session_it_is_an_error_and_nothing_waits)
{
	cr_assert_eq(put(0, KIB), KIB);
	rig.fake.dead = -EIO;
	cr_assert_eq(sync_of(FUSE_FLUSH, dfh.fh), EIO);
	rig.fake.dead = 0;
	rig_settle();
	cr_assert_eq(rig.lane->writeback->cnt, 0);
	cr_assert_eq(rig.lane->writeback->bytes, 0);
}
