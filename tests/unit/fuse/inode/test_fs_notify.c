/* SPDX-License-Identifier: BSD-3-Clause */
/* A page that the kernel waits for holds up its own file, and nothing else. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_rig.h"

#define FILES  6u
#define HANG_S 60u

static struct fake_file *files[FILES];
static fuse_ino_t inos[FILES];
static struct fs_inode *inodes[FILES];
static struct rig_reply re;

/* The nodes whose pages are locked. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unlocked = PTHREAD_COND_INITIALIZER;
static bool locked[FILES];
static unsigned int waiting, most_waiting;

static void wait_for_pages(const struct iovec *iov, int cnt)
{
	const struct fuse_out_header *h = iov[0].iov_base;
	const struct fuse_notify_inval_inode_out *out;

	if (h->unique != 0 || h->error != FUSE_NOTIFY_INVAL_INODE || cnt < 2)
		return;
	out = iov[1].iov_base;
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < FILES; i++) {
		while (out->ino == inos[i] && out->off >= 0 && locked[i]) {
			waiting++;
			if (most_waiting < waiting)
				most_waiting = waiting;
			pthread_cond_wait(&unlocked, &lock);
			waiting--;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void set_up(void)
{
	rig_up(NULL);
	for (unsigned int i = 0; i < FILES; i++) {
		char name[2] = {(char)('a' + i), '\0'};

		files[i] = fake_add(name, 100);
		inos[i] = rig_ino(files[i]);
		inodes[i] = fs_inode_get(rig.fs, inos[i]);
		locked[i] = false;
	}
	waiting = most_waiting = 0;
	rig.kernel_waits = wait_for_pages;
}

static void release_pages(void)
{
	pthread_mutex_lock(&lock);
	memset(locked, 0, sizeof(locked));
	pthread_cond_broadcast(&unlocked);
	pthread_mutex_unlock(&lock);
	rig.hangs = false;
}

static void tear_down(void)
{
	release_pages();
	while (rig_reply(&re, 10))
		;
	for (unsigned int i = 0; i < FILES; i++)
		fs_inode_put(rig.fs, inodes[i]);
	rig_down();
}

TestSuite(fs_notify, .init = set_up, .fini = tear_down);

static unsigned int now_waiting(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = waiting;
	pthread_mutex_unlock(&lock);
	return n;
}

/* The kernel is told to drop pages of that file, and waits for one of them. */
static void hang(unsigned int i)
{
	unsigned int before = now_waiting();

	rig.hangs = true;
	pthread_mutex_lock(&lock);
	locked[i] = true;
	pthread_mutex_unlock(&lock);
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[i], 0, 0));
	for (unsigned int t = 0; t < HANG_S * 1000 && now_waiting() == before; t++)
		usleep(1000);
	cr_assert_eq(now_waiting(), before + 1);
}

/* The next message to the kernel. The bound is for one that hangs. */
static bool next_message(void)
{
	for (unsigned int t = 0; t < HANG_S * 10; t++) {
		if (rig_reply(&re, 0))
			return true;
		usleep(t < 100 ? 1000 : 100000);
	}
	return false;
}

static void told_of(unsigned int i)
{
	struct fuse_notify_inval_inode_out out;

	cr_assert(next_message(), "the kernel is not told");
	cr_assert_eq(re.h.unique, 0);
	memcpy(&out, re.body, sizeof(out));
	cr_assert_eq(out.ino, inos[i]);
}

Test(fs_notify, attributes_do_not_wait_for_pages)
{
	hang(0);
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[0], -1, 0));
	told_of(0);
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[1], -1, 0));
	told_of(1);
}

Test(fs_notify, pages_of_one_file_do_not_wait_for_those_of_another)
{
	hang(0);
	for (unsigned int i = 1; i < FILES; i++) {
		cr_assert(fs_notify_inval_inode(rig.fs, inodes[i], 0, 0));
		told_of(i);
	}
}

Test(fs_notify, several_files_may_hang)
{
	for (unsigned int i = 0; i < FILES - 1; i++)
		hang(i);
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[FILES - 1], 0, 0));
	told_of(FILES - 1);
}

Test(fs_notify, one_file_has_one_thread)
{
	hang(0);
	for (unsigned int i = 0; i < 100; i++)
		cr_assert(fs_notify_inval_inode(rig.fs, inodes[0], 0, 0));
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[1], 0, 0));
	told_of(1);
	cr_assert_eq(most_waiting, 1);
	release_pages();
	for (unsigned int i = 0; i < 101; i++)
		told_of(0);
}

/* An open of a file that was changed elsewhere waits until its pages are gone. */
Test(fs_notify, an_operation_waits_for_its_own_file)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	struct fuse_open_out fh;
	uint64_t first, second;

	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(rig_open(inos[i], O_RDONLY, &fh), 0);
		fake_touch(files[i]);
	}
	hang(0);
	first = rig_send(FUSE_OPEN, inos[0], &in, sizeof(in), NULL, 0);
	second = rig_send(FUSE_OPEN, inos[1], &in, sizeof(in), NULL, 0);
	told_of(1);
	cr_assert(next_message());
	cr_assert_eq(re.h.unique, second);
	cr_assert_eq(re.h.error, 0);
	release_pages();
	told_of(0);
	told_of(0);
	cr_assert(next_message());
	cr_assert_eq(re.h.unique, first);
}

/* Nothing more is told, and all threads end. */
Test(fs_notify, the_end_waits_for_what_hangs)
{
	for (unsigned int i = 0; i < 3; i++)
		hang(i);
	for (unsigned int i = 0; i < 10; i++)
		cr_assert(fs_notify_inval_inode(rig.fs, inodes[i % FILES], 0, 0));
	fs_lane_stop(rig.lane);
	rig_run_for(NSEC_PER_SEC);
	cr_assert_not(rig.idle, "a READ may have to be answered first");
	release_pages();
	rig_run_for(NSEC_PER_SEC);
	cr_assert(rig.idle);
}

/* ---- keep=: another process writes ---- */

static int lines[FS_NOTIFY_LINES]; /* its ends */

static void make_lines(void)
{
	int ours[FS_NOTIFY_LINES], sv[2];

	for (unsigned int i = 0; i < FS_NOTIFY_LINES; i++) {
		cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
		ours[i] = sv[0];
		lines[i] = sv[1];
	}
	fs_notify_through(rig.fs, ours);
}

static void close_lines(void)
{
	for (unsigned int i = 0; i < FS_NOTIFY_LINES; i++)
		close(lines[i]);
}

/* The notice that comes next, about that file. Returns: over which line. */
static unsigned int asked_for(unsigned int file)
{
	struct pollfd p[FS_NOTIFY_LINES];
	struct fuse_notify_inval_inode_out out;
	char notice[FS_NOTIFY_MAX];
	unsigned int i = 0;

	for (unsigned int k = 0; k < FS_NOTIFY_LINES; k++)
		p[k] = (struct pollfd){.fd = lines[k], .events = POLLIN};
	for (unsigned int t = 0; t < HANG_S * 1000 && poll(p, FS_NOTIFY_LINES, 1) == 0; t++)
		rig_run_for(NSEC_PER_MSEC); /* the lane */
	while (!p[i].revents)
		i++;
	cr_assert_eq(recv(lines[i], notice, sizeof(notice), 0),
		sizeof(struct fuse_out_header) + sizeof(out));
	memcpy(&out, notice + sizeof(struct fuse_out_header), sizeof(out));
	cr_assert_eq(out.ino, inos[file]);
	return i;
}

static void say(unsigned int line, int32_t what)
{
	cr_assert_eq(send(lines[line], &what, sizeof(what), 0), sizeof(what));
}

Test(fs_notify, another_process_writes_what_may_wait)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	struct fuse_open_out fh;
	uint64_t open;
	unsigned int line, other;

	cr_assert_eq(rig_open(inos[0], O_RDONLY, &fh), 0);
	make_lines();
	rig.hangs = true;
	fake_touch(files[0]);
	open = rig_send(FUSE_OPEN, inos[0], &in, sizeof(in), NULL, 0);
	line = asked_for(0);
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[1], 0, 0));
	other = asked_for(1);
	cr_assert_neq(other, line, "one waits, others do not");
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[0], -1, 0));
	told_of(0); /* attributes wait for nothing */
	rig_run_for(NSEC_PER_SEC);
	cr_assert_not(rig_reply(&re, 0), "the operation waits for the answer");
	say(other, -ENOENT); /* the kernel has forgotten it */
	say(line, 40);
	cr_assert(next_message());
	cr_assert_eq(re.h.unique, open);
	cr_assert_eq(re.h.error, 0);
	close_lines();
}

Test(fs_notify, and_if_that_ends_we_do)
{
	make_lines();
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[0], 0, 0));
	asked_for(0);
	close_lines();
	told_of(0);
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[1], 0, 0));
	told_of(1);
	make_lines();
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[2], 0, 0));
	say(asked_for(2), 40);
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[2], 0, 0));
	say(asked_for(2), 40);
	cr_assert_not(rig_reply(&re, 0));
	close_lines();
}

Test(fs_notify, lines_that_are_not_used_any_more_are_closed)
{
	int before[FS_NOTIFY_LINES];
	char byte;

	make_lines();
	memcpy(before, lines, sizeof(before));
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[0], 0, 0));
	say(asked_for(0), 40);
	make_lines();
	cr_assert(fs_notify_inval_inode(rig.fs, inodes[0], 0, 0));
	say(asked_for(0), 40);
	/* Not those of threads that were at work and may be again. */
	for (unsigned int i = 4; i < FS_NOTIFY_LINES; i++)
		cr_assert_eq(recv(before[i], &byte, 1, MSG_DONTWAIT), 0, "%u", i);
	close_lines();
}
