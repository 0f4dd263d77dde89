/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_daemon.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static atomic_uint *asked;

void fake_daemon_run(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
		mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("run", "/run", "tmpfs", 0, "mode=755") != 0)
		cr_skip_test("no /run of its own");
	cr_assert_eq(mkdir("/run/user", 0755), 0);
}

const char *fake_daemon_dir(void)
{
	static char dir[] = "/tmp/fake-daemon.XXXXXX";

	cr_assert_not_null(mkdtemp(dir));
	return dir;
}

void fake_daemon_dead(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	unlink(path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0, "%s", strerror(errno));
	close(fd);
}

static int listen_as(const struct fake_daemon *f)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (f->name != NULL)
		snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", f->dir, f->name);
	else
		snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%d.sock", f->dir, (int)getpid());
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || chmod(sa.sun_path, 0666) != 0)
		return -1;
	/* The kernel tells who it was that called listen(2). */
	if (f->uid != geteuid() && (setgroups(0, NULL) != 0 || setuid(f->uid) != 0))
		return -1;
	return listen(fd, 64) == 0 ? fd : -1;
}

/* In the daemon; does not return. */
static void serve(const struct fake_daemon *f, int ready)
{
	int fd = listen_as(f), conn;
	char request[1024];

	/* Behind setuid(2), which forgets it. Nothing of the test's waits for our end. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	if (fd < 0 || write(ready, "", 1) != 1)
		_exit(1);
	while ((conn = accept(fd, NULL, NULL)) >= 0) {
		atomic_fetch_add(asked, 1);
		if (f->answer == NULL)
			continue;
		(void)!read(conn, request, sizeof(request));
		(void)!send(conn, f->answer, strlen(f->answer), MSG_NOSIGNAL);
		close(conn);
	}
	_exit(1);
}

void fake_daemon_start(struct fake_daemon *f)
{
	int ready[2];
	char c;

	if (asked == NULL)
		asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* The folder is its user's. */
	if (mkdir(f->dir, 0755) == 0 && f->uid != geteuid())
		cr_assert_eq(chown(f->dir, f->uid, f->uid), 0);
	cr_assert_eq(pipe(ready), 0);
	/* Not by unshare(2), behind which this process cannot have a thread: leaks are looked for
	 * by one.
	 */
	f->pid = f->in_own_pids ? (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0)
				: fork();
	if (f->pid == 0) {
		close(ready[0]);
		serve(f, ready[1]);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &c, 1), 1, "the fake daemon does not listen");
	close(ready[0]);
}

unsigned int fake_daemon_asked(void)
{
	return asked != NULL ? atomic_load(asked) : 0;
}
