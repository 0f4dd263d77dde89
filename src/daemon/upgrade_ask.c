/* SPDX-License-Identifier: BSD-3-Clause */
#include "upgrade_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handover.h"

/* Without a request to its file system, which may be ours. */
static bool is_on(int program, dev_t dev)
{
	struct statx stx;

	return statx(program, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &stx) == 0 &&
	       makedev(stx.stx_dev_major, stx.stx_dev_minor) == dev;
}

const char *upgrade_ask_fault(int program, dev_t dev)
{
	struct stat st;

	if (program >= 0 && is_on(program, dev))
		return "the program lies on the mount itself: copy it to another file system";
	if (program < 0 || fstat(program, &st) != 0 || !S_ISREG(st.st_mode))
		return "a program has to come with it";
	if ((st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
		return "that file is no program";
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return "the program belongs to another user";
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return "others may write to the program";
	return NULL;
}

/* Its standard output is `to`, and it has nothing else of ours. */
static int spawn(struct upgrade *u, int to)
{
	char path[32], ask[32];
	char *argv[] = {(char *)"rpcrdmafs", ask, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", u->program);
	snprintf(ask, sizeof(ask), HANDOVER_ASK "%d", HANDOVER_VERSION);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&files);
	err = posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
	if (err == 0)
		err = posix_spawn(&pid, path, &files, &attr, argv, environ);
	u->child = err == 0 ? pid : 0;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -err;
}

int upgrade_ask(struct upgrade *u)
{
	int p[2], err;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	err = spawn(u, p[1]);
	close(p[1]);
	u->answer = p[0];
	return err;
}

int upgrade_ask_answer(struct upgrade *u)
{
	char said[sizeof(HANDOVER_ANSWER)];
	int status;
	pid_t pid = waitpid(u->child, &status, WNOHANG);

	if (pid == 0 || (pid < 0 && errno == EINTR))
		return 0;
	u->child = 0;
	if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return -1;
	/* Not any program that is content with any argument. */
	return read(u->answer, said, sizeof(said)) == sizeof(said) - 1 &&
			       memcmp(said, HANDOVER_ANSWER, sizeof(said) - 1) == 0
		       ? 1
		       : -1;
}

void upgrade_ask_end(struct upgrade *u)
{
	if (u->child > 0) {
		kill(u->child, SIGKILL);
		while (waitpid(u->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (u->program >= 0)
		close(u->program);
	if (u->answer >= 0)
		close(u->answer);
	u->child = 0;
	u->program = u->answer = -1;
}
