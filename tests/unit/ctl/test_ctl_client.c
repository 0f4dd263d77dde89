/* SPDX-License-Identifier: BSD-3-Clause */
/* Which daemons are found, and which are passed over. */
#include <criterion/criterion.h>
#include <errno.h>
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
	cr_assert_eq(ctl_client_find_all(&all), 1);
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
	cr_assert_eq(ctl_client_find_all(&all), 2);
	cr_assert_eq(all[0].pid, own.pid);
	cr_assert_eq(all[1].pid, user.pid);
	cr_assert_eq(all[1].uid, FAKE_USER);
}

Test(ctl_client, a_folder_that_leads_to_roots_is_not_looked_into)
{
	root_and_user();
	started(OWN, 0, NULL, HELLO);
	cr_assert_eq(symlink(OWN, USER_DIR), 0);
	cr_assert_eq(ctl_client_find_all(&all), 1);
	cr_assert_eq(fake_daemon_asked(), 1);
}

Test(ctl_client, what_a_user_left_is_his_to_remove)
{
	root_and_user();
	started(USER_DIR, FAKE_USER, NULL, HELLO);
	fake_daemon_dead(USER_DIR "/2147483647.sock");
	cr_assert_eq(mkdir(OWN, 0700), 0);
	fake_daemon_dead(OWN "/2147483647.sock");
	cr_assert_eq(ctl_client_find_all(&all), 1);
	cr_assert(exists(USER_DIR "/2147483647.sock"));
	cr_assert_not(exists(OWN "/2147483647.sock"));
}

Test(ctl_client, a_socket_that_says_another_process_is_passed_over)
{
	root_and_user();
	started(USER_DIR, FAKE_USER, "1.sock", HELLO);
	cr_assert_eq(ctl_client_find_all(&all), 0);
}
