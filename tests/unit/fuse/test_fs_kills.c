/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon is killed at each of its steps (rig_kill_at), once: the kernel hears of each request
 * what it would have heard, and at the end nothing is left over on the server or in the daemon.
 */
#include <criterion/criterion.h>
#include <criterion/event.h>
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

/* ---- */

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

static void at_each_step(void (*work)(void))
{
	unsigned int step = 1;

	while (killed_at(work, step, 0) == WAS_KILLED)
		step++;
	cr_assert_gt(step, 50, "there were %u steps", step);
	/* And the next one as well, at one of its first steps: some of all the pairs. */
	for (unsigned int i = 1; i < step; i += 5)
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
