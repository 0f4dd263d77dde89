/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char **process_environment(char *variable)
{
	size_t cnt = 0;
	char **env;

	while (environ != NULL && environ[cnt] != NULL)
		cnt++;
	env = calloc(cnt + 2, sizeof(char *));
	if (env == NULL)
		return NULL;
	if (cnt > 0)
		memcpy(env, environ, cnt * sizeof(char *));
	env[cnt] = variable;
	return env;
}

static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	err = posix_spawnattr_setsigmask(attr, &none);
	if (err == 0)
		err = posix_spawnattr_setsigdefault(attr, &all);
	if (err == 0)
		err = posix_spawnattr_setflags(
			attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return err;
}

static int spawn(pid_t *ret, const char *program, char **argv, char **env, const int *fds,
	unsigned int fd_cnt)
{
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	int err = posix_spawn_file_actions_init(&acts);

	if (err != 0)
		return err;
	err = posix_spawnattr_init(&attr);
	if (err == 0) {
		err = set_attributes(&attr);
		for (unsigned int i = 0; err == 0 && i < fd_cnt; i++)
			err = posix_spawn_file_actions_adddup2(&acts, fds[i], PROCESS_FD + (int)i);
		if (err == 0)
			err = posix_spawn(ret, program, &acts, &attr, argv, env);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&acts);
	return err;
}

pid_t process_spawn(
	const char *program, char **argv, char *variable, const int *fds, unsigned int fd_cnt)
{
	char **env = process_environment(variable);
	int above[PROCESS_FDS], err = fd_cnt > PROCESS_FDS ? EINVAL : env == NULL ? ENOMEM : 0;
	unsigned int cnt = 0;
	pid_t pid = -1;

	/* First out of the way: none may be where another one is to be. */
	for (; err == 0 && cnt < fd_cnt; cnt++) {
		above[cnt] = fcntl(fds[cnt], F_DUPFD_CLOEXEC, PROCESS_FD + (int)PROCESS_FDS);
		if (above[cnt] < 0) {
			err = errno;
			break;
		}
	}
	if (err == 0)
		err = spawn(&pid, program, argv, env, above, fd_cnt);
	while (cnt > 0)
		close(above[--cnt]);
	free(env);
	return err == 0 ? pid : -err;
}
