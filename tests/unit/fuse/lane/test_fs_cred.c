/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs_cred.h"

TestSuite(fs_cred);

static uint32_t gids[RPC_MAX_GROUPS];

static unsigned int parse(const char *status)
{
	return fs_cred_parse_groups(status, gids, RPC_MAX_GROUPS);
}

Test(fs_cred, groups_are_taken_from_their_line)
{
	cr_assert_eq(
		parse("Name:\tcat\nGid:\t5\t5\t5\t5\nGroups:\t4 24 1000 4294967294 \nNStgid:\t9\n"),
		4);
	cr_assert_eq(gids[0], 4);
	cr_assert_eq(gids[1], 24);
	cr_assert_eq(gids[2], 1000);
	cr_assert_eq(gids[3], 4294967294u);
}

Test(fs_cred, a_user_without_groups_has_none)
{
	cr_assert_eq(parse("Name:\tcat\nGroups:\t \nNStgid:\t9\n"), 0);
	cr_assert_eq(parse("Name:\tcat\n"), 0);
	cr_assert_eq(parse(""), 0);
}

Test(fs_cred, a_program_cannot_name_itself_into_a_group)
{
	/* The kernel escapes a newline in Name: what follows it is on the same line. */
	cr_assert_eq(parse("Name:\tx\\nGroups:\t0\nGroups:\t7 \n"), 1);
	cr_assert_eq(gids[0], 7);
}

Test(fs_cred, more_than_sixteen_groups_are_cut)
{
	cr_assert_eq(parse("X:\nGroups:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 \n"), 16);
	cr_assert_eq(gids[15], 16);
}

Test(fs_cred, a_number_cut_by_the_end_of_the_text_is_no_group)
{
	cr_assert_eq(parse("X:\nGroups:\t10 100"), 1);
	cr_assert_eq(gids[0], 10);
}

/* ---- kept for a moment ---- */

static struct fuse_ctx ctx;
static const char *groups; /* of whoever /proc is asked for */
static unsigned int asked;
static uint64_t later_s;

/* In place of libfuse's and libc's. */
const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
	return &ctx;
}

static unsigned int shown_uid, shown_gid; /* /proc says, of who has `groups` */

int open(const char *path, int flags, ...)
{
	int fd;

	if (!groups || strncmp(path, "/proc/", 6) != 0)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
	asked++;
	fd = memfd_create("status", MFD_CLOEXEC);
	cr_assert_gt(dprintf(fd, "Name:\ta\nUid:\t0\t0\t0\t%u\nGid:\t0\t0\t0\t%u\nGroups:\t%s\n",
			     shown_uid, shown_gid, groups),
		0);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static struct rpc_cred ask(pid_t pid, uid_t uid, gid_t gid, const char *now)
{
	struct rpc_cred cred;

	ctx = (struct fuse_ctx){.pid = pid, .uid = uid, .gid = gid};
	groups = now;
	asked = 0;
	fs_cred_of(NULL, (1000 + later_s) * NSEC_PER_SEC, &cred);
	groups = NULL;
	cr_assert_eq(cred.flavor, RPC_AUTH_SYS);
	cr_assert_eq(cred.uid, uid);
	cr_assert_eq(cred.gid, gid);
	return cred;
}

static struct rpc_cred cred_of(pid_t pid, uid_t uid, gid_t gid, const char *now)
{
	struct rpc_cred cred;

	shown_uid = uid;
	shown_gid = gid;
	cred = ask(pid, uid, gid, now);
	cr_assert_eq(cred.gids_cnt, 1);
	return cred;
}

#define GROUP_7 "7 "
#define GROUP_8 "8 "

Test(fs_cred, groups_are_read_once_in_a_moment)
{
	cr_assert_eq(cred_of(70, 1000, 1001, GROUP_7).gids[0], 7);
	cr_assert_eq(asked, 1);
	cr_assert_eq(cred_of(70, 1000, 1001, GROUP_8).gids[0], 7);
	cr_assert_eq(asked, 0);
	later_s = 2;
	cr_assert_eq(cred_of(70, 1000, 1001, GROUP_8).gids[0], 8);
}

/* The same thread id: another user's, or one that changed its uid or gid. */
Test(fs_cred, groups_are_never_those_of_another_user)
{
	cr_assert_eq(cred_of(70, 1000, 1001, GROUP_7).gids[0], 7);
	cr_assert_eq(cred_of(70, 1002, 1001, GROUP_8).gids[0], 8);
	cr_assert_eq(cred_of(70, 1002, 1003, GROUP_7).gids[0], 7);
}

Test(fs_cred, groups_are_never_those_of_another_thread)
{
	for (pid_t pid = 70; pid < 70 + 3 * 64; pid++)
		cr_assert_eq(cred_of(pid, 1000, 1001, pid & 64 ? GROUP_8 : GROUP_7).gids[0],
			pid & 64 ? 8 : 7, "%d", (int)pid);
}

/* ---- the pid may be one of another namespace ---- */

Test(fs_cred, a_process_of_another_user_or_group_is_not_the_caller)
{
	shown_uid = 0;
	shown_gid = 1001;
	cr_assert_eq(ask(70, 1000, 1001, GROUP_7).gids_cnt, 0);
	shown_uid = 1000;
	shown_gid = 0;
	cr_assert_eq(ask(71, 1000, 1001, GROUP_7).gids_cnt, 0);
	shown_gid = 1001;
	cr_assert_eq(ask(72, 1000, 1001, GROUP_7).gids_cnt, 1);
}

Test(fs_cred, a_status_without_all_numbers_is_nobodys)
{
	cr_assert(fs_cred_is_of("Name:\ta\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n", 4, 8));
	cr_assert_not(fs_cred_is_of("Name:\ta\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n", 1, 5));
	cr_assert_not(fs_cred_is_of("Name:\ta\nUid:\t1\t2\t3\nGid:\t5\t6\t7\t8\n", 5, 8));
	cr_assert_not(fs_cred_is_of("Name:\ta\nUid:\t1\t2\t3\t4\n", 4, 0));
	cr_assert_not(fs_cred_is_of("Name:\ta\nUid:\t1\t2\t3\tx\nGid:\t5\t6\t7\t8\n", 0, 8));
	cr_assert_not(fs_cred_is_of("", 0, 0));
}

/* As /proc shows what has no number in our user namespace. */
Test(fs_cred, a_group_without_a_number_here_is_none)
{
	struct rpc_cred cred = cred_of(70, 1000, 1001, "65534 7 65534 ");

	cr_assert_eq(cred.gids[0], 7);
	shown_gid = 65534;
	cr_assert_eq(ask(71, 1000, 65534, "7 65534 ").gids_cnt, 2);
}
