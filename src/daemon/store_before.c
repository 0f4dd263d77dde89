/* SPDX-License-Identifier: BSD-3-Clause */
#include "store_before.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "arguments.h"
#include "keeper_run.h"
#include "log.h"
#include "store.h"

#define BEFORE  "rpcrdmafs-before"
#define INSTEAD "rpcrdmafs-instead"

/* ---- what is stored ---- */

static bool has_place(void)
{
	const char *places = getenv("FDSTORE");

	return store_is_offered() && places != NULL && strtoul(places, NULL, 10) > STORE_PLACES;
}

static bool is_this_program(int fd)
{
	struct stat self, other;

	return stat("/proc/self/exe", &self) == 0 && fstat(fd, &other) == 0 &&
	       self.st_dev == other.st_dev && self.st_ino == other.st_ino;
}

void store_before_put(int program)
{
	store_before_drop();
	if (program < 0 || !has_place() || is_this_program(program))
		return;
	if (store_put_one(BEFORE, program) != 0)
		log_warn("the service manager does not take the program before: if this one dies "
			 "again and again, that one does not go on");
}

void store_before_drop(void)
{
	store_remove_one(BEFORE);
	store_remove_one(INSTEAD);
}

/* ---- the next program ---- */

struct listened {
	char *pid, *fds, *names;
};

struct listened *store_before_note(void)
{
	struct listened *l = calloc(1, sizeof(*l));
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"),
		   *names = getenv("LISTEN_FDNAMES");

	if (l == NULL)
		return NULL;
	l->pid = pid != NULL ? strdup(pid) : NULL;
	l->fds = fds != NULL ? strdup(fds) : NULL;
	l->names = names != NULL ? strdup(names) : NULL;
	return l;
}

void store_before_forget(struct listened *l)
{
	if (l == NULL)
		return;
	free(l->pid);
	free(l->fds);
	free(l->names);
	free(l);
}

static void set_cloexec(int cnt, int flag)
{
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + cnt; fd++)
		fcntl(fd, F_SETFD, flag);
}

static int set_variables(const struct listened *l)
{
	if (l == NULL || l->pid == NULL || l->fds == NULL || l->names == NULL)
		return -ENOMEM;
	if (setenv("LISTEN_PID", l->pid, 1) != 0 || setenv("LISTEN_FDS", l->fds, 1) != 0 ||
		setenv("LISTEN_FDNAMES", l->names, 1) != 0)
		return -ENOMEM;
	return 0;
}

/* Returns: -errno. */
static int become(int program, const struct listened *l, int cnt)
{
	struct arguments args;
	int err = arguments_of_self(&args);

	if (err != 0)
		return err;
	err = set_variables(l);
	if (err == 0) {
		set_cloexec(cnt, 0);
		execveat(program, "", args.argv, environ, AT_EMPTY_PATH);
		err = -errno;
		set_cloexec(cnt, FD_CLOEXEC);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	arguments_free(&args);
	return err;
}

int store_before_take(const struct listened *l, char *const *names, int cnt)
{
	int before = -1, fd, err;

	for (int i = 0; i < cnt; i++) {
		fd = SD_LISTEN_FDS_START + i;
		if (strcmp(names[i], BEFORE) == 0) {
			before = fd;
		} else if (strcmp(names[i], INSTEAD) == 0 && is_this_program(fd)) {
			(void)prctl(PR_SET_NAME, "rpcrdmafs"); /* else it is that of a descriptor */
			close(fd);
		} else if (strcmp(names[i], INSTEAD) == 0) {
			err = become(fd, l, cnt);
			log_warn("the program that went on in place of this one cannot be "
				 "executed: %s",
				strerror(-err));
			close(fd);
		}
	}
	return before;
}

bool store_before_is_better(const struct store_before *b, uint64_t died_ns)
{
	if (b->program < 0 || b->since_ns == 0)
		return false;
	if (died_ns - b->since_ns <= KEEPER_EARLY_NS)
		return b->deaths >= KEEPER_EARLY_DEATHS;
	store_before_drop();
	return false;
}

int store_before_instead(int program)
{
	int err;

	store_remove_one(BEFORE); /* there may be no place for it twice */
	err = store_put_one(INSTEAD, program);
	if (err == 0)
		store_forgive();
	return err;
}
