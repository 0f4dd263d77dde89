/* SPDX-License-Identifier: BSD-3-Clause */
#include "store.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "keeper_run.h"
#include "store_before.h"

#define FUSE   "rpcrdmafs-fuse"
#define LIVE   "rpcrdmafs-live-"
#define DEATHS "rpcrdmafs-deaths"

/* A manager that does not answer for so long does not keep a mount from being served. */
#define ANSWER_USEC 5000000u

bool store_is_offered(void)
{
	const char *places = getenv("FDSTORE");

	return getenv("NOTIFY_SOCKET") != NULL && places != NULL &&
	       isdigit((unsigned char)*places) && strtoul(places, NULL, 10) >= STORE_PLACES;
}

/* ---- what it has ---- */

static bool number_of(const char *name, uint64_t *ret)
{
	char *end;

	if (strncmp(name, LIVE, strlen(LIVE)) != 0 || !isdigit((unsigned char)name[strlen(LIVE)]))
		return false;
	errno = 0;
	*ret = strtoull(name + strlen(LIVE), &end, 10);
	return errno == 0 && *end == '\0' && *ret > 0;
}

static void takes_place(int *of, int fd)
{
	if (*of >= 0)
		close(*of);
	*of = fd;
}

/* Returns: it is one of ours. */
static bool take_one(struct store_kept *s, int *deaths, const char *name, int fd)
{
	uint64_t number;

	if (strcmp(name, FUSE) == 0) {
		takes_place(&s->crash.fuse_fd, fd);
	} else if (strcmp(name, DEATHS) == 0) {
		takes_place(deaths, fd);
	} else if (!number_of(name, &number)) {
		return false;
	} else if (number < s->number) {
		close(fd);
	} else {
		s->number = number;
		takes_place(&s->crash.live_fd, fd);
	}
	return true;
}

static int count_death(int fd, struct keeper_crash *c)
{
	struct keeper_deaths d;
	bool go_on;

	if (pread(fd, &d, sizeof(d), 0) != (ssize_t)sizeof(d))
		return -EBADMSG;
	c->died_ns = keeper_run_wait(0);
	go_on = keeper_run_count(&d, c->died_ns);
	c->crashes = d.cnt;
	if (pwrite(fd, &d, sizeof(d), 0) != (ssize_t)sizeof(d))
		return -EBADMSG;
	return go_on ? 1 : -ELOOP;
}

static void close_all(struct store_kept *s)
{
	takes_place(&s->crash.fuse_fd, -1);
	takes_place(&s->crash.live_fd, -1);
	takes_place(&s->before, -1);
}

int store_take(struct store_kept *ret)
{
	struct listened *l = store_before_note();
	char **names = NULL;
	int cnt = sd_listen_fds_with_names(1, &names), deaths = -1, err = 0;
	bool any = false;

	*ret = (struct store_kept){
		.crash = {.live_fd = -1, .fuse_fd = -1, .sock = -1}, .before = -1};
	if (cnt > 0)
		ret->before = store_before_take(l, names, cnt);
	store_before_forget(l);
	if (cnt < 0)
		return cnt;
	for (int i = 0; i < cnt; i++) {
		any |= take_one(ret, &deaths, names[i], SD_LISTEN_FDS_START + i);
		free(names[i]);
	}
	free(names);
	if (any)
		err = ret->crash.fuse_fd < 0 || ret->crash.live_fd < 0 || deaths < 0
			      ? -EBADMSG
			      : count_death(deaths, &ret->crash);
	takes_place(&deaths, -1);
	if (err == -EBADMSG)
		close_all(ret);
	return err;
}

/* ---- what it is to have ---- */

int store_put_one(const char *name, int fd)
{
	char text[80];
	int n;

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	n = sd_pid_notify_with_fds(0, 0, text, &fd, 1);
	return n > 0 ? 0 : n < 0 ? n : -ENOTCONN;
}

void store_remove_one(const char *name)
{
	(void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

static void live_name(char name[40], uint64_t number)
{
	snprintf(name, 40, LIVE "%" PRIu64, number);
}

/* A program that died before it had removed the one before left both. */
static void remove_before(uint64_t number)
{
	char name[40];

	for (uint64_t i = 1; i < number && i < STORE_PLACES; i++) {
		live_name(name, number - i);
		store_remove_one(name);
	}
}

static int put_deaths(void)
{
	const struct keeper_deaths none = {.since_ns = keeper_run_wait(0)};
	int fd = memfd_create(DEATHS, MFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = pwrite(fd, &none, sizeof(none), 0) == (ssize_t)sizeof(none)
		      ? store_put_one(DEATHS, fd)
		      : -EIO;
	close(fd);
	return err;
}

static int answered(void)
{
	int n = sd_notify_barrier(0, ANSWER_USEC);

	return n > 0 ? 0 : n < 0 ? n : -ENOTCONN;
}

int store_put(int fuse_fd, int live_fd, uint64_t number, bool all)
{
	char name[40];
	int err = 0;

	live_name(name, number);
	if (all)
		err = put_deaths();
	if (err == 0 && all)
		err = store_put_one(FUSE, fuse_fd);
	if (err == 0)
		err = store_put_one(name, live_fd);
	if (err == 0)
		remove_before(number);
	return err == 0 ? answered() : err;
}

void store_forgive(void)
{
	store_remove_one(DEATHS);
	(void)put_deaths();
	(void)answered();
}

void store_drop(uint64_t number)
{
	char name[40];

	live_name(name, number);
	store_remove_one(name);
	remove_before(number);
	store_before_drop();
	store_remove_one(DEATHS);
	store_remove_one(FUSE);
}
