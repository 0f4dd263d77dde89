/* SPDX-License-Identifier: BSD-3-Clause */
/* Which daemons are found, and which are passed over. */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_client.h"
#include "fake_daemon.h"

#define OWN      "/run/rpcrdmafs"
#define USER_RUN "/run/user/65534"
#define USER_DIR USER_RUN "/rpcrdmafs"
#define HELLO    "ok\ndev=0:99\nmountpoint=/there\n"

static struct ctl_daemon *all;

/* Folders of root and of a user, below a /run of the test's own. */
static void root_and_user(void)
{
	fake_daemon_run();
	cr_assert_eq(mkdir(USER_RUN, 0700), 0);
	cr_assert_eq(chown(USER_RUN, FAKE_USER, FAKE_USER), 0);
}

static struct fake_daemon started(const char *dir, uid_t uid, const char *name, const char *answer)
{
	struct fake_daemon f = {.dir = dir, .uid = uid, .name = name, .answer = answer};

	fake_daemon_start(&f);
	return f;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

Test(ctl_client, a_user_finds_his_own)
{
	static char dir[256];
	const char *run = fake_daemon_dir();
	struct fake_daemon f;

	/* As an ordinary user in any case. */
	if (geteuid() == 0)
		cr_assert_eq(chown(run, FAKE_USER, FAKE_USER) | setuid(FAKE_USER), 0);
	setenv("XDG_RUNTIME_DIR", run, 1);
	snprintf(dir, sizeof(dir), "%s/rpcrdmafs", run);
	f = started(dir, geteuid(), NULL, HELLO);
	cr_assert_eq(ctl_client_find_all(CTL_STRANGERS_MS, &all), 1);
	cr_assert_eq(all[0].pid, f.pid);
	cr_assert_eq(all[0].uid, geteuid());
	cr_assert_str_eq(all[0].mountpoint, "/there");
}

Test(ctl_client, root_finds_its_own_and_those_of_users)
{
	struct fake_daemon user, own;

	root_and_user();
	user = started(USER_DIR, FAKE_USER, NULL, HELLO);
	own = started(OWN, 0, NULL, HELLO);
	cr_assert_eq(ctl_client_find_all(CTL_STRANGERS_MS, &all), 2);
	cr_assert_eq(all[0].pid, own.pid);
	cr_assert_eq(all[1].pid, user.pid);
	cr_assert_eq(all[1].uid, FAKE_USER);
}

Test(ctl_client, a_folder_that_leads_to_roots_is_not_looked_into)
{
	root_and_user();
	started(OWN, 0, NULL, HELLO);
	cr_assert_eq(symlink(OWN, USER_DIR), 0);
	cr_assert_eq(ctl_client_find_all(CTL_STRANGERS_MS, &all), 1);
	cr_assert_eq(fake_daemon_asked(), 1);
}

Test(ctl_client, what_a_user_left_is_his_to_remove)
{
	root_and_user();
	started(USER_DIR, FAKE_USER, NULL, HELLO);
	fake_daemon_dead(USER_DIR "/2147483647.sock");
	cr_assert_eq(mkdir(OWN, 0700), 0);
	fake_daemon_dead(OWN "/2147483647.sock");
	cr_assert_eq(ctl_client_find_all(CTL_STRANGERS_MS, &all), 1);
	cr_assert(exists(USER_DIR "/2147483647.sock"));
	cr_assert_not(exists(OWN "/2147483647.sock"));
}

Test(ctl_client, a_socket_that_says_another_process_is_passed_over)
{
	root_and_user();
	started(USER_DIR, FAKE_USER, "1.sock", HELLO);
	cr_assert_eq(ctl_client_find_all(CTL_STRANGERS_MS, &all), 0);
}

Test(ctl_client, a_mountpoint_that_cannot_be_is_none)
{
	static char hello[8 * PATH_MAX];
	int head = snprintf(hello, sizeof(hello), "ok\nmountpoint=/");

	memset(hello + head, 'x', sizeof(hello) - 2 - (size_t)head);
	hello[sizeof(hello) - 2] = '\n';
	root_and_user();
	started(USER_DIR, FAKE_USER, NULL, hello);
	cr_assert_eq(ctl_client_find_all(CTL_STRANGERS_MS, &all), 0);
}

/* The first takes all of its user's time: the others are not asked any more. */
Test(ctl_client, mute_sockets_of_a_user_have_one_deadline)
{
	struct fake_daemon own;

	root_and_user();
	for (int i = 0; i < 5; i++)
		started(USER_DIR, FAKE_USER, NULL, NULL);
	own = started(OWN, 0, NULL, HELLO);
	cr_assert_eq(ctl_client_find_all(400, &all), 1);
	cr_assert_eq(all[0].pid, own.pid);
	cr_assert_leq(fake_daemon_asked(), 2);
}

/* The mute ones are older and newer: one of them is listed before the other. */
Test(ctl_client, a_mute_user_leaves_time_for_others)
{
	struct fake_daemon user;

	fake_daemon_run();
	cr_assert_eq(mkdir("/run/user/65532", 0755), 0);
	started("/run/user/65532/rpcrdmafs", 65532, NULL, NULL);
	cr_assert_eq(mkdir(USER_RUN, 0755), 0);
	user = started(USER_DIR, FAKE_USER, NULL, HELLO);
	cr_assert_eq(mkdir("/run/user/65533", 0755), 0);
	started("/run/user/65533/rpcrdmafs", 65533, NULL, NULL);
	cr_assert_eq(ctl_client_find_all(8000, &all), 1);
	cr_assert_eq(all[0].pid, user.pid);
}

Test(ctl_client, a_mount_is_looked_for_where_its_user_has_sockets)
{
	struct ctl_daemon d;
	struct fake_daemon user, own;

	root_and_user();
	cr_assert_eq(mkdir("/run/user/65533", 0700), 0);
	started("/run/user/65533/rpcrdmafs", 65533, NULL, HELLO);
	user = started(USER_DIR, FAKE_USER, NULL, HELLO);
	cr_assert_not(ctl_client_find_dev("0:99", 0, &d));
	cr_assert_eq(fake_daemon_asked(), 0);
	cr_assert(ctl_client_find_dev("0:99", FAKE_USER, &d));
	cr_assert_eq(d.pid, user.pid);
	free(d.mountpoint);
	cr_assert_eq(fake_daemon_asked(), 1);
	own = started(OWN, 0, NULL, HELLO);
	cr_assert(ctl_client_find_dev("0:99", 0, &d));
	cr_assert_eq(d.pid, own.pid);
	free(d.mountpoint);
	cr_assert_eq(fake_daemon_asked(), 2);
}

static int find_pid(pid_t pid, struct ctl_daemon *ret, char fault[400])
{
	char name[32];

	snprintf(name, sizeof(name), "pid:%d", (int)pid);
	return ctl_client_find(name, ret, fault, 400);
}

Test(ctl_client, a_pid_leads_to_sockets_of_that_name)
{
	struct fake_daemon own, user;
	struct ctl_daemon d;
	char fault[400];

	root_and_user();
	started(OWN, 0, NULL, NULL);
	user = started(USER_DIR, FAKE_USER, NULL, HELLO);
	own = started(OWN, 0, NULL, HELLO);
	cr_assert_eq(find_pid(own.pid, &d, fault), 0);
	cr_assert_eq(d.owner, 0);
	free(d.mountpoint);
	cr_assert_eq(find_pid(user.pid, &d, fault), 0);
	cr_assert_eq(d.owner, FAKE_USER);
	free(d.mountpoint);
	cr_assert_eq(fake_daemon_asked(), 2);
	cr_assert_eq(find_pid(INT_MAX, &d, fault), -ESRCH);
	cr_assert_not_null(strstr(fault, "no rpcrdmafs of yours"));
}

Test(ctl_client, a_lie_is_told_if_it_was_named)
{
	struct ctl_daemon d;
	char fault[400];

	root_and_user();
	started(USER_DIR, FAKE_USER, "1.sock", HELLO);
	cr_assert_eq(find_pid(1, &d, fault), -ESRCH);
	cr_assert_not_null(
		strstr(fault, USER_DIR "/1.sock: it is not of the process"), "%s", fault);
}
