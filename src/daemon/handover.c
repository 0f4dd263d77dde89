/* SPDX-License-Identifier: BSD-3-Clause */
#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "arguments.h"
#include "live.h"
#include "log.h"
#include "log_thread.h"
#include "reactor.h"
#include "store.h"
#include "store_before.h"
#include "upgrade.h"

/* "TABLES BEFORE": descriptors. */
#define VARIABLE "RPCRDMAFS_HANDOVER"
/* Why the mount is given back. */
#define WHY "RPCRDMAFS_GIVEN_BACK"

/* Fields of the record. */
enum {
	FIELD_MOUNTPOINT = 1,
	FIELD_OWNER = 2,
	FIELD_VERSION = 3,
	FIELD_MOUNTED_NS = 4,
	FIELD_PAUSED_NS = 5,
	FIELD_COUNT = 6,
	FIELD_LONGEST_NS = 7,
	FIELD_CRASHES = 8,
	FIELD_STORED = 9,
	FIELD_SOURCE = 10,
	FIELD_SET = 11,
	FIELD_SET_BEFORE = 12,
	FIELD_LEFT = 13,
	FIELD_UPGRADED_NS = 14,
	FIELD_UPGRADED_CRASHES = 15,
};

bool handover_is_asked(const char *arg, int *ret_status)
{
	char *end;

	if (strncmp(arg, HANDOVER_ASK, strlen(HANDOVER_ASK)) != 0)
		return false;
	arg += strlen(HANDOVER_ASK);
	*ret_status = strtoul(arg, &end, 10) == HANDOVER_VERSION && *end == '\0' ? 0 : 1;
	if (*ret_status == 0)
		fputs(HANDOVER_ANSWER, stdout);
	return true;
}

void handover_put(struct tables_out *t, const struct handover_facts *f)
{
	tables_record(t, HANDOVER_RECORD);
	tables_put_bytes(t, FIELD_MOUNTPOINT, f->mountpoint, strlen(f->mountpoint));
	tables_put_bytes(t, FIELD_OWNER, f->owner, strlen(f->owner));
	tables_put_bytes(t, FIELD_VERSION, RPCRDMAFS_VERSION, strlen(RPCRDMAFS_VERSION));
	tables_put(t, FIELD_MOUNTED_NS, f->mounted_ns);
	tables_put(t, FIELD_PAUSED_NS, f->paused_ns);
	tables_put(t, FIELD_COUNT, f->count);
	tables_put(t, FIELD_LONGEST_NS, f->longest_ns);
	tables_put(t, FIELD_CRASHES, f->crashes);
	tables_put(t, FIELD_STORED, f->stored);
	tables_put(t, FIELD_LEFT, f->left);
	tables_put(t, FIELD_UPGRADED_NS, f->upgraded_ns);
	tables_put(t, FIELD_UPGRADED_CRASHES, f->upgraded_crashes);
	tables_put_bytes(t, FIELD_SOURCE, f->source, strlen(f->source));
	if (f->set != NULL)
		tables_put_bytes(t, FIELD_SET, f->set, strlen(f->set));
	if (f->set_before != NULL)
		tables_put_bytes(t, FIELD_SET_BEFORE, f->set_before, strlen(f->set_before));
}

void handover_live(struct live *live, live_ref *ref, const struct handover_facts *f)
{
	const struct live_key key = {.rank = 0};
	struct tables_out t;

	tables_begin_in(&t);
	handover_put(&t, f);
	live_put(live, ref, &key, &t);
	tables_end_in(&t);
}

static char *get_text(const struct tables_record *r, uint16_t field)
{
	size_t len;
	const char *p = tables_get_bytes(r, field, &len);

	return p != NULL && memchr(p, '\0', len) == NULL ? strndup(p, len) : NULL;
}

/* since_ns: the one before says so; 0: it did not wait. */
static void get_pause(struct handover *h, uint64_t since_ns)
{
	bool waited = since_ns != 0 && since_ns < h->paused_ns; /* when it died */

	if (!h->crashed || h->left || waited)
		h->paused_ns = since_ns;
}

static int get_record(struct handover *h)
{
	struct tables_record r;

	while (tables_next(&h->tables, &r)) {
		if (r.type != HANDOVER_RECORD)
			continue;
		h->mountpoint = get_text(&r, FIELD_MOUNTPOINT);
		h->owner = get_text(&r, FIELD_OWNER);
		h->version = get_text(&r, FIELD_VERSION);
		h->mounted_ns = tables_get(&r, FIELD_MOUNTED_NS);
		h->left = tables_get(&r, FIELD_LEFT) != 0;
		get_pause(h, tables_get(&r, FIELD_PAUSED_NS));
		h->count = tables_get(&r, FIELD_COUNT);
		h->longest_ns = tables_get(&r, FIELD_LONGEST_NS);
		h->crashes = tables_get(&r, FIELD_CRASHES);
		h->stored = tables_get(&r, FIELD_STORED);
		h->upgraded_ns = tables_get(&r, FIELD_UPGRADED_NS);
		h->upgraded_crashes = tables_get(&r, FIELD_UPGRADED_CRASHES);
		h->source = get_text(&r, FIELD_SOURCE);
		h->set = get_text(&r, handover_is_given_back(h) ? FIELD_SET_BEFORE : FIELD_SET);
		break;
	}
	return h->mountpoint != NULL && h->owner != NULL && h->version != NULL ? 0 : -EBADMSG;
}

static struct handover *handover_new(int tables, int before)
{
	struct handover *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->tables_fd = tables;
	h->before = before;
	h->crash = (struct keeper_crash){.live_fd = -1, .fuse_fd = -1, .sock = -1};
	return h;
}

/* NULL with errno: it is freed. */
static struct handover *read_tables(struct handover *h)
{
	int err = tables_open(&h->tables, h->tables_fd);

	if (err == 0)
		err = get_record(h);
	if (err == 0)
		return h;
	handover_free(h);
	errno = -err;
	return NULL;
}

/* The records in the memory of the dead one, as a file. */
static int tables_of_dead(int live_fd)
{
	int fd = memfd_create("rpcrdmafs-tables", MFD_CLOEXEC), err, ended;
	struct tables_out t;

	if (fd < 0)
		return -errno;
	tables_begin(&t, fd);
	err = live_tables(live_fd, &t);
	ended = tables_end(&t);
	if (err == 0)
		err = ended;
	if (err == 0) {
		live_tables_trim(live_fd);
		return fd;
	}
	close(fd);
	return err;
}

/* The memory is its from now on. NULL with errno: it is of no use. */
static struct handover *take_crashed(const struct keeper_crash *crash)
{
	int tables = tables_of_dead(crash->live_fd), err = tables < 0 ? -tables : ENOMEM;
	struct handover *h = tables < 0 ? NULL : handover_new(tables, -1);

	if (h == NULL) {
		if (tables >= 0)
			close(tables);
		close(crash->live_fd);
		errno = err;
		return NULL;
	}
	h->crashed = true;
	h->crash = *crash;
	h->paused_ns = crash->died_ns;
	return read_tables(h);
}

static struct handover *take_handed_over(const char *text)
{
	int tables, before, end = 0;
	struct handover *h;

	if (sscanf(text, "%d %d%n", &tables, &before, &end) != 2 || text[end] != '\0') {
		errno = EINVAL;
		return NULL;
	}
	unsetenv(VARIABLE);
	(void)prctl(PR_SET_NAME, "rpcrdmafs"); /* else it is that of a descriptor */
	h = handover_new(tables, before);
	if (h == NULL)
		return NULL;
	if (getenv(WHY) != NULL)
		snprintf(h->why, sizeof(h->why), "%s", getenv(WHY));
	unsetenv(WHY);
	fcntl(tables, F_SETFD, FD_CLOEXEC);
	if (before >= 0)
		fcntl(before, F_SETFD, FD_CLOEXEC);
	return read_tables(h);
}

/* Does not return if the program before is to go on, in place of this one. */
static void judge_program(const struct handover *h, const struct store_kept *s)
{
	uint64_t died = h->crashes + !h->left;
	uint64_t deaths = died > h->upgraded_crashes ? died - h->upgraded_crashes : 0;
	struct store_before b = {.program = s->before, .since_ns = h->upgraded_ns};
	int err;

	/* Of those that died before they served only the store knows. */
	b.deaths = deaths > s->crash.crashes ? (unsigned int)deaths : s->crash.crashes;
	if (!store_before_is_better(&b, s->crash.died_ns))
		return;
	log_err("%s: the program that had taken over died %u times in its first minute: the one "
		"before goes on",
		h->mountpoint, b.deaths);
	err = store_before_instead(s->before);
	if (err == 0) {
		(void)log_thread_stop(LOG_THREAD_WAIT_NS);
		_exit(UPGRADE_LEFT);
	}
	log_err("%s: the program before cannot go on: %s", h->mountpoint, strerror(-err));
}

/* NULL with errno 0: there is nothing, or not any more; else that is not known. */
static struct handover *take_stored(void)
{
	struct store_kept s;
	struct handover *h = NULL;
	int found, err;

	/* Programs use such a mount: nothing that is said of it may hold them up. */
	if (getenv("LISTEN_FDS") != NULL)
		(void)log_thread_start();
	found = store_take(&s);
	err = found > 0 ? 0 : -found;
	if (found < 0 && found != -ELOOP && found != -EBADMSG) {
		errno = err;
		return NULL;
	}
	if (found > 0) {
		h = take_crashed(&s.crash);
		err = errno;
	}
	if (h != NULL)
		judge_program(h, &s);
	if (s.before >= 0)
		close(s.before);
	if (h != NULL) {
		h->stored = s.number;
		return h;
	}
	if (err == ELOOP)
		log_err("the daemon died %u times, one soon after the other: another mount takes "
			"the place of this one",
			s.crash.crashes);
	else if (err != 0)
		log_err("what the service manager has of the mount is of no use: %s: another mount "
			"takes its place",
			strerror(err));
	if (err == ELOOP)
		close(s.crash.live_fd);
	if (s.crash.fuse_fd >= 0)
		close(s.crash.fuse_fd);
	if (err != 0)
		store_drop(s.number);
	(void)log_thread_stop(LOG_THREAD_WAIT_NS); /* an ordinary start may fork */
	errno = 0;
	return NULL;
}

struct handover *handover_take(void)
{
	const char *text = getenv(VARIABLE);
	struct keeper_crash crash;
	int crashed = keeper_take(&crash);

	errno = crashed < 0 ? -crashed : 0;
	if (crashed > 0)
		return take_crashed(&crash);
	if (crashed < 0)
		return NULL;
	return text == NULL ? take_stored() : take_handed_over(text);
}

void handover_free(struct handover *h)
{
	if (h == NULL)
		return;
	tables_close(&h->tables);
	close(h->tables_fd);
	if (h->before >= 0)
		close(h->before);
	if (h->crash.live_fd >= 0)
		close(h->crash.live_fd);
	if (h->crash.sock >= 0)
		close(h->crash.sock);
	free(h->mountpoint);
	free(h->owner);
	free(h->version);
	free(h->source);
	free(h->set);
	free(h);
}

static void keep_open(int fd, bool keep)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

int handover_exec(int program, int tables_fd, int before)
{
	struct arguments args;
	char value[32];
	int err = arguments_of_self(&args);

	if (err != 0)
		return err;
	snprintf(value, sizeof(value), "%d %d", tables_fd, before);
	err = setenv(VARIABLE, value, 1) == 0 ? 0 : -errno;
	if (err == 0) {
		keep_open(tables_fd, true);
		keep_open(before, true);
		execveat(program, "", args.argv, environ, AT_EMPTY_PATH);
		err = -errno;
		keep_open(tables_fd, false);
		keep_open(before, false);
		unsetenv(VARIABLE);
	}
	arguments_free(&args);
	return err;
}

void handover_give_back(struct handover *h)
{
	int err;

	if (h->before < 0)
		return;
	log_err("%s: this program gives the mount back to the one before", h->mountpoint);
	(void)log_thread_stop(LOG_THREAD_WAIT_NS);
	(void)setenv(WHY, h->why, 1);
	err = handover_exec(h->before, h->tables_fd, -1);
	(void)log_thread_start();
	log_err("%s: the program before cannot be executed: %s", h->mountpoint, strerror(-err));
	close(h->before);
	h->before = -1;
}

int handover_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
