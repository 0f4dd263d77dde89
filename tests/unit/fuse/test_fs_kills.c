/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon is killed at each of its steps (rig_kill_at), once: the kernel hears of each request
 * what it would have heard, and at the end nothing is left over on the server or in the daemon.
 */
#include <criterion/criterion.h>
#include <criterion/event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_rig.h"
#include "fs_inode.h"

enum {
	WAS_KILLED = 10,
	WAS_NOT_KILLED,
};

static void forget(fuse_ino_t of, uint64_t count)
{
	struct fuse_forget_in in = {.nlookup = count};

	rig_send(FUSE_FORGET, of, &in, sizeof(in), NULL, 0);
	rig_settle();
}

static void nothing_is_left(void)
{
	for (int i = 0; i < 200 && !fake_all_free(); i++)
		rig_turn();
	rig_run_for(12000 * 1000000ull); /* what is committed by itself is */
	cr_assert_eq(rig.fake.opens, 0, "the server has %u open", rig.fake.opens);
	cr_assert_eq(rig.fs->files_open, 0);
	cr_assert_eq(rig.fs->sillies, 0);
	cr_assert_eq(fs_gauges(rig.fs).uncommitted, 0);
	cr_assert(fake_all_free());
}

/* ---- what programs do ---- */

static void locks(void)
{
	file_set_up_open(100, O_RDWR);
	cr_assert_eq(setlk(ino, fh.fh, 1, F_WRLCK, 10, 19), 0);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 15, 25), EAGAIN);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 20, 25), 0);
	cr_assert_eq(setlk(ino, fh.fh, 1, F_UNLCK, 10, 19), 0);
	cr_assert_eq(setlk(ino, fh.fh, 2, F_WRLCK, 15, 25), 0);
	cr_assert_eq(fake_lock_held(file), 1);
	cr_assert_eq(flush_as(ino, fh.fh, 2), 0);
	cr_assert_eq(fake_lock_held(file), 0);
	cr_assert_eq(answer_to(flock_send(FUSE_SETLK, ino, fh.fh, 7, F_WRLCK), 3000), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(fake_lock_held(file), 0);
}

static void writes(void)
{
	file_set_up_open(4, O_RDWR);
	cr_assert_eq(rig_write(ino, fh.fh, 0, "aaaa", 4, O_RDWR), 4);
	cr_assert_eq(rig_write(ino, fh.fh, 2, "bbbb", 4, O_RDWR), 4);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 6), 6);
	cr_assert_arr_eq(re.body, "aabbbb", 6);
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	cr_assert_arr_eq(file->stable, "aabbbb", 6);
	cr_assert_eq(rig_write(ino, fh.fh, 4, "cc", 2, O_RDWR), 2);
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino,
			     &(struct fuse_setattr_in){.valid = FATTR_SIZE, .size = 5},
			     sizeof(struct fuse_setattr_in), NULL, 0),
		0);
	cr_assert_eq(rig_write(ino, fh.fh, 5, "d", 1, O_RDWR), 1);
	cr_assert_eq(rig_flush(ino, fh.fh), 0);
	fake_restart();
	cr_assert_arr_eq(file->stable, "aabbcd", 6);
	cr_assert_eq(file->attr.size, 6);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
}

static int refuse(struct nfs4_call *call)
{
	call->status = NFS4ERR_IO;
	return -EIO;
}

/* It is told by an answer that the kernel took, or by the next one. */
static void errors(void)
{
	struct fuse_fsync_in in = {0};
	uint64_t unique;

	file_set_up_open(4, O_RDWR);
	in.fh = fh.fh;
	rig.fake.hold_ops = 1ull << FAKE_WRITE;
	cr_assert_eq(rig_write(ino, fh.fh, 0, "lost", 4, O_RDWR), 4);
	rig_settle();
	rig.fake.refuse_write = refuse;
	rig.fake.hold_ops = 0;
	fake_release();
	rig_settle();
	unique = rig_send(FUSE_FSYNC, ino, &in, sizeof(in), NULL, 0);
	cr_assert(rig_reply(&re, 10000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert(re.h.error == -EIO || rig_fsync(ino, fh.fh) == EIO, "nobody hears of it");
	rig.fake.refuse_write = NULL;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
}

static void opens(void)
{
	struct fuse_open_out other, late;

	file_set_up_open(100, O_RDWR);
	cr_assert_eq(rig_open(ino, O_RDONLY, &other), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	cr_assert_eq(rig_open(ino, O_WRONLY, &late), 0);
	cr_assert_eq(rig_write(ino, late.fh, 0, "x", 1, O_WRONLY), 1);
	cr_assert_eq(rig_release(ino, late.fh), 0);
	cr_assert_eq(rig_read(&re, ino, other.fh, 0, 1), 1);
	cr_assert_eq(re.body[0], 'x');
	cr_assert_eq(rig_release(ino, other.fh), 0);
}

static void names(void)
{
	struct fuse_rename2_in to = {.newdir = FUSE_ROOT_ID};
	struct fuse_open_out made;
	fuse_ino_t node;

	file_set_up_open(100, O_RDWR);
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT | O_EXCL, 0644, &made, &node), 0);
	cr_assert_eq(rig_write(node, made.fh, 0, "new", 3, O_RDWR), 3);
	cr_assert_eq(
		rig_call(&re, FUSE_RENAME2, FUSE_ROOT_ID, &to, sizeof(to), "new\0other", 10), 0);
	cr_assert_null(fake_find("new"));
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2), 0);
	cr_assert_not(file->used);
	cr_assert_eq(rig_release(node, made.fh), 0);
	rig_settle();
	cr_assert_arr_eq(fake_find("other")->stable, "new", 3);
	cr_assert_eq(rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "other", 6), 0);
	cr_assert_null(fake_find("other"));
	forget(node, 1);
	forget(ino, 1);
	cr_assert_leq(fs_inode_count(rig.fs), 2);
}

/* The server is asked to RENAME twice: only after the second one the request is done. */
static void onto_an_open_file(void)
{
	struct fuse_rename2_in to = {.newdir = FUSE_ROOT_ID};
	struct fake_file *new;

	file_set_up_open(100, O_RDWR);
	new = fake_add("new", 3);
	cr_assert_eq(rig_call(&re, FUSE_RENAME2, FUSE_ROOT_ID, &to, sizeof(to), "new\0f", 6), 0);
	cr_assert_eq(fake_find("f"), new);
	cr_assert_null(fake_find("new"));
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_not(file->used, "%s is left on the server", file->name);
}

static void removed_while_open(void)
{
	file_set_up_open(100, O_RDWR);
	cr_assert_eq(rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2), 0);
	cr_assert_null(fake_find("f"));
	cr_assert_eq(strncmp(file->name, ".nfs", 4), 0, "it is %s", file->name);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	cr_assert_eq(rig_call(&re, FUSE_GETATTR, ino, &(struct fuse_getattr_in){0},
			     sizeof(struct fuse_getattr_in), NULL, 0),
		0);
	cr_assert_eq(((struct fuse_attr_out *)re.body)->attr.nlink, 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_not(file->used, "%s is left on the server", file->name);
}

/* Its last close comes before the server has renamed it. */
static void closed_while_removed(void)
{
	uint64_t asked[2];

	file_set_up_open(100, O_RDWR);
	rig.fake.hold_ops = 1ull << FAKE_RENAME;
	asked[0] = rig_send(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
	rig_settle();
	asked[1] = rig_send(FUSE_RELEASE, ino, &(struct fuse_release_in){.fh = fh.fh},
		sizeof(struct fuse_release_in), NULL, 0);
	rig_settle();
	fake_release();
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert(rig_reply(&re, 3000));
		cr_assert_eq(re.h.error, 0);
		cr_assert(re.h.unique == asked[0] || re.h.unique == asked[1]);
	}
	rig_settle();
	cr_assert_not(file->used, "%s is left on the server", file->name);
}

/* The next daemon does it again, while the server has not answered: it has the file open once. */
static void made(void)
{
	struct fuse_create_in in = {.flags = O_RDWR | O_CREAT | O_EXCL, .mode = S_IFREG | 0644};
	struct fuse_entry_out entry;
	struct fuse_open_out out;
	uint64_t unique;

	file_set_up_open(4, O_RDWR);
	unique = rig_send(FUSE_CREATE, FUSE_ROOT_ID, &in, sizeof(in), "made", 5);
	for (int i = 0; i < 100; i++) {
		if (rig.kills > 0)
			rig.fake.hold_ops = 1ull << FAKE_OPEN | 1ull << FAKE_CLOSE;
		rig_turn();
	}
	rig.fake.hold_ops = 0;
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	memcpy(&entry, re.body, sizeof(entry));
	memcpy(&out, re.body + sizeof(entry), sizeof(out));
	rig_settle();
	cr_assert_eq(rig.fake.opens, 2);
	cr_assert_eq(rig_write(entry.nodeid, out.fh, 0, "new", 3, O_RDWR), 3);
	cr_assert_eq(rig_release(entry.nodeid, out.fh), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	forget(entry.nodeid, 1);
	forget(ino, 1);
}

/* ---- data that is written over ---- */

static uint8_t want[65536]; /* what the file has to have */
static uint64_t want_end;

static void begin_want(void)
{
	file_set_up_open(4, O_RDWR);
	memcpy(want, file->data, 4);
	want_end = 4;
}

static void write_over(uint64_t off, uint32_t len, int flags)
{
	static uint8_t bytes[65536], number;

	number++;
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(number * 7 + i / 97);
	cr_assert_eq(rig_write(ino, fh.fh, off, bytes, len, O_RDWR | flags), (int)len);
	memcpy(want + off, bytes, len);
	if (off + len > want_end)
		want_end = off + len;
}

static void cut_at(uint64_t size)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = size};

	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), 0);
	memset(want + size, 0, sizeof(want) - size);
	want_end = size;
}

/* All that was acknowledged is there, whatever the server has lost. */
static void as_wanted(uint64_t from)
{
	cr_assert_eq(rig_fsync(ino, fh.fh), 0);
	fake_restart();
	cr_assert_eq(file->attr.size, want_end);
	cr_assert_arr_eq(file->stable + from, want + from, want_end - from);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	forget(ino, 1);
}

static unsigned int seed;

/* Large ones, which stay in their buffers, and small ones, which join others. */
static void write_some(void)
{
	uint32_t big = 16384 + (uint32_t)(rand_r(&seed) % 3) * 1000;
	uint32_t small = 1 + (uint32_t)(rand_r(&seed) % 3000);
	uint64_t off = (uint64_t)(rand_r(&seed) % 30000);

	switch (rand_r(&seed) % 12) {
	case 0:
	case 1:
	case 2:
		write_over(off, big, 0);
		break;
	case 3:
	case 4:
	case 5:
		write_over(want_end < 40000 ? want_end : off, small, 0);
		break;
	case 6:
		write_over(off, small, O_DSYNC);
		break;
	case 7:
		cut_at(off);
		break;
	case 8:
		cr_assert_eq(rig_flush(ino, fh.fh), 0);
		break;
	case 9:
	case 10:
		rig_run_for(250 * NSEC_PER_MSEC);
		break;
	default:
		write_over(off, big, 0);
		write_over(off + big, small, 0);
		write_over(off + 5, small, 0);
	}
}

static unsigned int any_seed;

static void overwritten(void)
{
	seed = any_seed;
	begin_want();
	for (int i = 0; i < 14; i++)
		write_some();
	as_wanted(0);
}

/* Three that became one, of which the end is left. */
static void overwritten_together(void)
{
	begin_want();
	write_over(20000, 1401, 0);
	write_over(21401, 2513, 0);
	write_over(23914, 994, 0);
	rig_run_for(250 * NSEC_PER_MSEC);
	write_over(8000, 16384, 0);
	rig_run_for(250 * NSEC_PER_MSEC);
	as_wanted(2000);
}

/* ---- keep=tables ---- */

/* Until it is durable: it may be lost with a daemon, and then its program hears of it. */
static void make_durable(uint64_t off, const char *bytes, uint32_t len)
{
	unsigned int told = 0;

	while (rig_write(ino, fh.fh, off, bytes, len, O_RDWR) != (int)len ||
		rig_fsync(ino, fh.fh) != 0)
		told++;
	cr_assert_leq(told, 2 * rig.kills, "a write and an fsync hear of each death");
	cr_assert_arr_eq(file->stable + off, bytes, len);
}

static void lost_or_durable(void)
{
	file_set_up_open(4, O_RDWR);
	make_durable(0, "aaaa", 4);
	make_durable(2, "bbbb", 4);
	fake_restart();
	cr_assert_arr_eq(file->stable, "aabbbb", 6);
	cr_assert_eq(file->attr.size, 6);
	rig_write(ino, fh.fh, 4, "cc", 2, O_RDWR);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_arr_eq(file->stable, "aabb", 4);
}

/* ---- */

static bool tables_only;
static unsigned int in_child; /* killed at this step */

void __real_criterion_send_assert(struct criterion_assert_stats *stats);
void __wrap_criterion_send_assert(struct criterion_assert_stats *stats);

/* Criterion would wait for ever for an answer that only its own process gets. */
void __wrap_criterion_send_assert(struct criterion_assert_stats *stats)
{
	if (in_child == 0) {
		__real_criterion_send_assert(stats);
		return;
	}
	if (stats->passed)
		return;
	fprintf(stderr, "%s:%u: killed at step %u: %s\n", stats->file, stats->line, in_child,
		stats->message);
	_exit(EXIT_FAILURE);
}

/* again: the step of the one that takes over; 0: it lives. */
static int killed_at(void (*work)(void), unsigned int step, unsigned int again)
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		in_child = step;
		alarm(60); /* only one that hangs */
		rig_keep = true;
		rig_tables_only = tables_only;
		rig_write_mode = FS_WRITE_LAZY;
		rig_kill_at = step;
		rig_kill_again = again;
		work();
		nothing_is_left();
		_exit(rig.kills > 0 ? WAS_KILLED : WAS_NOT_KILLED);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	cr_assert(WIFEXITED(status) && (WEXITSTATUS(status) == WAS_KILLED ||
					       WEXITSTATUS(status) == WAS_NOT_KILLED),
		"killed at step %u: status %d", step, status);
	return WEXITSTATUS(status);
}

/* Of the steps, one in so many: all of them take minutes under a sanitizer. */
static unsigned int every(void)
{
	const char *said = getenv("KILL_EVERY");

	return said ? (unsigned int)strtoul(said, NULL, 10) : 4;
}

/* At each nth step, at the most; how many there are. */
static unsigned int at_steps(void (*work)(void), unsigned int n)
{
	unsigned int step = 1;

	while (killed_at(work, step, 0) == WAS_KILLED)
		step += n < every() ? n : every();
	cr_assert_gt(step, 50, "there were %u steps", step);
	return step;
}

static void at_each_step(void (*work)(void))
{
	unsigned int steps = at_steps(work, UINT_MAX);

	/* And the next one as well, at one of its first steps: some of all the pairs. */
	for (unsigned int i = 1; i < steps; i += 5 * every())
		cr_assert_eq(killed_at(work, i, i * 17 % 53 + 1), WAS_KILLED);
}

Test(fs_kills, locks)
{
	at_each_step(locks);
}

Test(fs_kills, writes)
{
	at_each_step(writes);
}

Test(fs_kills, errors)
{
	(void)at_steps(errors, 1);
}

Test(fs_kills, opens)
{
	at_each_step(opens);
}

Test(fs_kills, names)
{
	at_each_step(names);
}

Test(fs_kills, onto_an_open_file)
{
	at_each_step(onto_an_open_file);
}

Test(fs_kills, removed_while_open)
{
	at_each_step(removed_while_open);
}

Test(fs_kills, closed_while_removed)
{
	at_each_step(closed_while_removed);
}

Test(fs_kills, made)
{
	at_each_step(made);
}

Test(fs_kills, overwritten)
{
	const unsigned int seeds = every() == 1 ? 4 : 2;

	for (any_seed = 1; any_seed <= seeds; any_seed++)
		(void)at_steps(overwritten, UINT_MAX);
}

Test(fs_kills, overwritten_together)
{
	(void)at_steps(overwritten_together, 2);
}

/* It cannot be asked which requests still wait: they are done again, before what it asks for next.
 */
static void old_kernel(void)
{
	rig_minor = 27;
}

TestSuite(fs_kills_old, .init = old_kernel);

Test(fs_kills_old, writes)
{
	at_each_step(writes);
}

Test(fs_kills_old, names)
{
	at_each_step(names);
}

static void without_data(void)
{
	tables_only = true;
}

TestSuite(fs_kills_tables, .init = without_data);

Test(fs_kills_tables, locks)
{
	at_each_step(locks);
}

Test(fs_kills_tables, lost_or_durable)
{
	at_each_step(lost_or_durable);
}

Test(fs_kills_tables, removed_while_open)
{
	at_each_step(removed_while_open);
}

Test(fs_kills_tables, onto_an_open_file)
{
	at_each_step(onto_an_open_file);
}
