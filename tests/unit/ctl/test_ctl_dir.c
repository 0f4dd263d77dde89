/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders and sockets that are not what they should be. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_dir.h"
#include "fake_daemon.h"

#define DEAD "2147483647.sock"

static char *in(const char *dir, const char *name)
{
	static char paths[16][256];
	static unsigned int next;
	char *path = paths[next++ % 16];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static int opened(const char *dir)
{
	int fd = ctl_dir_open(dir, geteuid());

	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	return fd;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void must_be_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("one user");
}

Test(ctl_dir, a_link_is_no_folder)
{
	const char *dir = fake_daemon_dir(), *link = in(dir, "link");

	cr_assert_eq(symlink(dir, link), 0);
	cr_assert_lt(ctl_dir_open(link, geteuid()), 0);
	cr_assert_eq(close(opened(dir)), 0);
}

Test(ctl_dir, a_folder_is_of_the_user_that_is_asked_for)
{
	const char *dir = fake_daemon_dir();

	cr_assert_eq(ctl_dir_open(dir, geteuid() + 1), -EPERM);
	cr_assert_eq(close(opened(dir)), 0);
}

Test(ctl_dir, the_folder_stays_the_one_that_was_opened)
{
	const char *dir = fake_daemon_dir(), *mine = in(dir, "mine"), *other = in(dir, "other");
	int fd;

	cr_assert_eq(mkdir(mine, 0700), 0);
	cr_assert_eq(mkdir(other, 0700), 0);
	fake_daemon_dead(in(mine, DEAD));
	fake_daemon_dead(in(other, DEAD));
	fd = opened(mine);
	/* As its user does with a link. */
	cr_assert_eq(renameat2(AT_FDCWD, mine, AT_FDCWD, other, RENAME_EXCHANGE), 0);
	cr_assert_eq(ctl_dir_connect(fd, DEAD), -ECONNREFUSED);
	cr_assert(exists(in(mine, DEAD)));
	cr_assert_not(exists(in(other, DEAD)));
	close(fd);
}

Test(ctl_dir, sockets_of_dead_daemons_are_swept)
{
	const char *dir = fake_daemon_dir();
	struct fake_daemon alive = {.dir = dir, .uid = geteuid(), .answer = ""};
	char name[32];
	int fd;

	fake_daemon_start(&alive);
	snprintf(name, sizeof(name), "%d.sock", (int)alive.pid);
	fake_daemon_dead(in(dir, DEAD));
	ctl_dir_sweep(dir);
	cr_assert_not(exists(in(dir, DEAD)));
	cr_assert(exists(in(dir, name)));
	fake_daemon_dead(in(dir, DEAD));
	fd = opened(dir);
	cr_assert_eq(ctl_dir_connect(fd, DEAD), -ECONNREFUSED);
	cr_assert_not(exists(in(dir, DEAD)));
	close(fd);
}

Test(ctl_dir, a_dead_socket_of_another_user_stays)
{
	const char *dir = fake_daemon_dir();
	int fd;

	must_be_root();
	fake_daemon_dead(in(dir, DEAD));
	cr_assert_eq(chown(dir, FAKE_USER, FAKE_USER), 0);
	fd = ctl_dir_open(dir, FAKE_USER);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ctl_dir_connect(fd, DEAD), -ECONNREFUSED);
	ctl_dir_sweep(dir);
	cr_assert(exists(in(dir, DEAD)));
	close(fd);
}

/* connect(2) of it says ECONNREFUSED, too. */
Test(ctl_dir, a_file_is_no_socket)
{
	const char *dir = fake_daemon_dir();
	int fd = opened(dir), file = openat(fd, DEAD, O_CREAT | O_WRONLY, 0600);

	cr_assert_geq(file, 0);
	close(file);
	cr_assert_eq(ctl_dir_connect(fd, DEAD), -ENOTSOCK);
	cr_assert(exists(in(dir, DEAD)));
	close(fd);
}

Test(ctl_dir, a_link_to_a_socket_is_not_followed)
{
	const char *dir = fake_daemon_dir();
	struct fake_daemon alive = {.dir = dir, .uid = geteuid(), .name = "it", .answer = ""};
	char name[32];
	int fd = opened(dir);

	fake_daemon_start(&alive);
	snprintf(name, sizeof(name), "%d.sock", (int)alive.pid);
	cr_assert_eq(symlinkat("it", fd, name), 0);
	cr_assert_eq(ctl_dir_connect(fd, name), -ENOTSOCK);
	cr_assert_eq(fake_daemon_asked(), 0);
	close(fd);
}

Test(ctl_dir, the_name_is_the_process_that_listens)
{
	const char *dir = fake_daemon_dir();
	struct fake_daemon lies = {.dir = dir, .uid = geteuid(), .name = "1.sock", .answer = ""};
	int fd = opened(dir);

	fake_daemon_start(&lies);
	cr_assert_eq(ctl_dir_connect(fd, "1.sock"), -EPERM);
	cr_assert(exists(in(dir, "1.sock")));
	close(fd);
}

Test(ctl_dir, in_a_container_it_has_a_number_of_its_own)
{
	const char *dir = fake_daemon_dir();
	struct fake_daemon inner = {
		.dir = dir, .uid = geteuid(), .in_own_pids = true, .answer = ""};
	int fd = opened(dir), sock;

	must_be_root();
	fake_daemon_start(&inner);
	cr_assert_neq(inner.pid, 1);
	sock = ctl_dir_connect(fd, "1.sock");
	cr_assert_geq(sock, 0, "%s", strerror(-sock));
	close(sock);
	close(fd);
}

Test(ctl_dir, the_folders_user_listens)
{
	const char *dir = fake_daemon_dir();
	struct fake_daemon other = {.dir = dir, .uid = FAKE_USER, .answer = ""};
	char name[32];
	int fd = opened(dir), sock;

	must_be_root();
	fake_daemon_start(&other);
	snprintf(name, sizeof(name), "%d.sock", (int)other.pid);
	cr_assert_eq(ctl_dir_connect(fd, name), -EPERM);
	cr_assert_eq(chown(dir, FAKE_USER, FAKE_USER), 0);
	sock = ctl_dir_connect(fd, name);
	cr_assert_geq(sock, 0, "%s", strerror(-sock));
	close(sock);
	close(fd);
}

Test(ctl_dir, names_of_sockets_are_numbers)
{
	cr_assert_eq(ctl_dir_name_pid("12.sock"), 12);
	cr_assert_eq(ctl_dir_name_pid(".12"), 0);
	cr_assert_eq(ctl_dir_name_pid("012.sock"), 0);
	cr_assert_eq(ctl_dir_name_pid("12"), 0);
	cr_assert_eq(ctl_dir_name_pid("12.sockx"), 0);
	cr_assert_eq(ctl_dir_name_pid("99999999999.sock"), 0);
}

Test(ctl_dir, a_folder_of_somebody_else_is_not_used)
{
	const char *dir = fake_daemon_dir(), *to = in(dir, "to");

	cr_assert_eq(symlink("/", to), 0);
	cr_assert_eq(ctl_dir_make(to), -EPERM);
	if (geteuid() == 0) {
		cr_assert_eq(chown(dir, 1, 1), 0);
		cr_assert_eq(ctl_dir_make(dir), -EPERM);
	}
}
