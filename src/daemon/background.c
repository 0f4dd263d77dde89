/* SPDX-License-Identifier: BSD-3-Clause */
#include "background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int ready_fd = -1;

/*
 * Waits for the child's word; its error line was printed by itself on our shared standard error.
 * A signal that would end us must end the mount attempt as well: nobody else waits for it.
 */
static void wait_for_child(pid_t child, int fd)
{
	char byte;
	int status;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1);
}

static pid_t forwarded_child;

/* What the terminal sends, the child has got as well. */
static void forward_signal(int sig, siginfo_t *si, void *ctx)
{
	if (si->si_code != SI_KERNEL)
		kill(forwarded_child, sig);
}

int background_start(void)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (pid > 0) {
		struct sigaction sa = {
			.sa_sigaction = forward_signal, .sa_flags = SA_RESTART | SA_SIGINFO};

		forwarded_child = pid;
		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
		close(fds[1]);
		wait_for_child(pid, fds[0]);
	}
	close(fds[0]);
	ready_fd = fds[1];
	return 0;
}

bool background_is_waited_for(void)
{
	return ready_fd >= 0;
}

void background_leave(void)
{
	int null;

	if (ready_fd < 0)
		return;
	/*
	 * Not earlier: systemd starts what mounts for an automount unit in its own process group,
	 * and the kernel lets nobody else pass that mountpoint until something is mounted there.
	 */
	setsid();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	if (chdir("/") != 0) {
		/* The folder we were started in stays busy: a nuisance, not an error. */
	}
}

void background_ready(void)
{
	char byte = 1;

	if (ready_fd < 0)
		return;
	while (write(ready_fd, &byte, 1) < 0 && errno == EINTR)
		;
	close(ready_fd);
	ready_fd = -1;
}
