/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests with handles that the kernel does not have: a daemon before this one gave them, say. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file_rig.h"

static void set_up(void)
{
	file_set_up_open(100, O_RDWR);
}

TestSuite(fs_fh, .init = set_up, .fini = rig_down);

struct asked {
	uint32_t opcode;
	const void *arg;
	size_t len;
};

static void ask(fuse_ino_t node, const struct asked *asked, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		cr_expect_eq(
			rig_call(&re, asked[i].opcode, node, asked[i].arg, asked[i].len, NULL, 0),
			EBADF, "%u", asked[i].opcode);
}

/* None of them reaches the server. */
static void refused(uint64_t handle)
{
	const struct fuse_read_in read = {.fh = handle, .size = 10};
	const struct fuse_lk_in lk = {.fh = handle, .lk = {.end = 5, .type = F_WRLCK}};
	const struct fuse_lk_in lock = {.fh = handle, .lk_flags = FUSE_LK_FLOCK, .lk = lk.lk};
	const struct fuse_fallocate_in space = {.fh = handle, .length = 10};
	const struct fuse_lseek_in seek = {.fh = handle, .whence = SEEK_DATA};
	const struct fuse_getattr_in get = {.fh = handle, .getattr_flags = FUSE_GETATTR_FH};
	const struct fuse_setattr_in set = {.fh = handle, .valid = FATTR_FH | FATTR_SIZE};
	const struct fuse_release_in release = {.fh = handle};
	const struct fuse_copy_file_range_in from = {
		.fh_in = handle, .fh_out = fh.fh, .nodeid_out = ino, .len = 10};
	const struct fuse_copy_file_range_in to = {
		.fh_in = fh.fh, .fh_out = handle, .nodeid_out = ino, .len = 10};
	const struct asked asked[] = {
		{FUSE_READ, &read, sizeof(read)},
		{FUSE_GETLK, &lk, sizeof(lk)},
		{FUSE_SETLK, &lk, sizeof(lk)},
		{FUSE_SETLKW, &lk, sizeof(lk)},
		{FUSE_SETLK, &lock, sizeof(lock)},
		{FUSE_FALLOCATE, &space, sizeof(space)},
		{FUSE_LSEEK, &seek, sizeof(seek)},
		{FUSE_GETATTR, &get, sizeof(get)},
		{FUSE_SETATTR, &set, sizeof(set)},
		{FUSE_COPY_FILE_RANGE, &from, sizeof(from)},
		{FUSE_COPY_FILE_RANGE, &to, sizeof(to)},
		{FUSE_RELEASE, &release, sizeof(release)},
	};
	unsigned int count[FAKE_OPS];

	memcpy(count, rig.fake.count, sizeof(count));
	ask(ino, asked, sizeof(asked) / sizeof(asked[0]));
	cr_expect_eq(rig_write(ino, handle, 0, "x", 1, O_RDWR), -EBADF);
	cr_expect_eq(rig_flush(ino, handle), EBADF);
	cr_expect_eq(rig_fsync(ino, handle), EBADF);
	cr_expect_arr_eq(rig.fake.count, count, sizeof(count), "the server was asked");
}

static void refused_dir(uint64_t handle)
{
	const struct fuse_read_in read = {.fh = handle, .size = 10};
	const struct fuse_release_in release = {.fh = handle};
	const struct asked asked[] = {
		{FUSE_READDIR, &read, sizeof(read)},
		{FUSE_READDIRPLUS, &read, sizeof(read)},
		{FUSE_RELEASEDIR, &release, sizeof(release)},
	};
	unsigned int others = rig.fake.count[FAKE_OTHER];

	ask(FUSE_ROOT_ID, asked, sizeof(asked) / sizeof(asked[0]));
	cr_expect_eq(rig.fake.count[FAKE_OTHER], others, "the server was asked");
}

Test(fs_fh, a_number_that_was_never_given_out)
{
	const uint64_t numbers[] = {
		0, fh.fh + 1, fh.fh + (2ull << 32), (uintptr_t)file, UINT64_MAX};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		refused(numbers[i]);
		refused_dir(numbers[i]);
	}
	cr_assert_eq(rig_write(ino, fh.fh, 0, "x", 1, O_RDWR), 1, "the open one is as it was");
}

Test(fs_fh, one_that_was_released)
{
	struct fuse_open_out old = fh;

	cr_assert_eq(rig_release(ino, old.fh), 0);
	rig_settle();
	cr_assert_eq(rig_open(ino, O_RDWR, &fh), 0);
	cr_assert_eq((uint32_t)fh.fh, (uint32_t)old.fh, "its slot is in use again");
	refused(old.fh);
	cr_assert_eq(rig_write(ino, fh.fh, 0, "x", 1, O_RDWR), 1);
}

Test(fs_fh, one_of_a_directory_that_was_released)
{
	struct fuse_open_out dir[2];

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(rig_call(&re, FUSE_OPENDIR, FUSE_ROOT_ID, &(struct fuse_open_in){0},
				     sizeof(struct fuse_open_in), NULL, 0),
			0);
		memcpy(&dir[i], re.body, sizeof(dir[i]));
		cr_assert_eq((uint32_t)dir[i].fh, (uint32_t)dir[0].fh, "its slot is in use again");
		cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID,
				     &(struct fuse_release_in){.fh = dir[i].fh},
				     sizeof(struct fuse_release_in), NULL, 0),
			0);
		refused_dir(dir[0].fh);
	}
}
