/* SPDX-License-Identifier: BSD-3-Clause */
#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "log_thread.h"
#include "reactor.h"

/* "TABLES BEFORE": descriptors. */
#define VARIABLE "RPCRDMAFS_HANDOVER"

#define ARGS_MAX (256u * 1024)
/* A log that takes no line for so long does not keep it. */
#define LOG_WAIT_NS (2 * NSEC_PER_SEC)

/* Fields of the record. */
enum {
	FIELD_MOUNTPOINT = 1,
	FIELD_OWNER = 2,
	FIELD_VERSION = 3,
	FIELD_MOUNTED_NS = 4,
	FIELD_PAUSED_NS = 5,
	FIELD_COUNT = 6,
	FIELD_LONGEST_NS = 7,
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
}

static char *get_text(const struct tables_record *r, uint16_t field)
{
	size_t len;
	const char *p = tables_get_bytes(r, field, &len);

	return p != NULL && memchr(p, '\0', len) == NULL ? strndup(p, len) : NULL;
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
		h->paused_ns = tables_get(&r, FIELD_PAUSED_NS);
		h->count = tables_get(&r, FIELD_COUNT);
		h->longest_ns = tables_get(&r, FIELD_LONGEST_NS);
		break;
	}
	return h->mountpoint != NULL && h->owner != NULL && h->version != NULL ? 0 : -EBADMSG;
}

struct handover *handover_take(void)
{
	const char *text = getenv(VARIABLE);
	struct handover *h;
	int tables, before, end = 0, err;

	errno = 0;
	if (text == NULL)
		return NULL;
	if (sscanf(text, "%d %d%n", &tables, &before, &end) != 2 || text[end] != '\0') {
		errno = EINVAL;
		return NULL;
	}
	unsetenv(VARIABLE);
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	h->tables_fd = tables;
	h->before = before;
	fcntl(tables, F_SETFD, FD_CLOEXEC);
	if (before >= 0)
		fcntl(before, F_SETFD, FD_CLOEXEC);
	err = tables_open(&h->tables, tables);
	if (err == 0)
		err = get_record(h);
	if (err == 0)
		return h;
	handover_free(h);
	errno = -err;
	return NULL;
}

void handover_free(struct handover *h)
{
	if (h == NULL)
		return;
	tables_close(&h->tables);
	close(h->tables_fd);
	if (h->before >= 0)
		close(h->before);
	free(h->mountpoint);
	free(h->owner);
	free(h->version);
	free(h);
}

/* Of the process, as it was started: pointers into *ret_text. NULL with errno. */
static char **arguments(char **ret_text)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	char *text = malloc(ARGS_MAX + 1), **argv;
	size_t len = 0, cnt = 0;
	ssize_t n = fd < 0 || text == NULL ? -1 : 1;

	while (n > 0 && len < ARGS_MAX) {
		n = read(fd, text + len, ARGS_MAX - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	argv = n < 0 || len == 0 ? NULL : calloc(len + 2, sizeof(char *));
	if (argv == NULL) {
		free(text);
		return NULL;
	}
	text[len] = '\0';
	for (char *p = text; p < text + len; p += strlen(p) + 1)
		argv[cnt++] = p;
	*ret_text = text;
	return argv;
}

static void keep_open(int fd, bool keep)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

int handover_exec(int program, int tables_fd, int before)
{
	char value[32], *text = NULL, **argv = arguments(&text);
	int err;

	if (argv == NULL)
		return errno != 0 ? -errno : -EIO;
	snprintf(value, sizeof(value), "%d %d", tables_fd, before);
	err = setenv(VARIABLE, value, 1) == 0 ? 0 : -errno;
	if (err == 0) {
		keep_open(tables_fd, true);
		keep_open(before, true);
		execveat(program, "", argv, environ, AT_EMPTY_PATH);
		err = -errno;
		keep_open(tables_fd, false);
		keep_open(before, false);
		unsetenv(VARIABLE);
	}
	free(argv);
	free(text);
	return err;
}

void handover_give_back(struct handover *h)
{
	int err;

	if (h->before < 0)
		return;
	log_err("%s: this program gives the mount back to the one before", h->mountpoint);
	(void)log_thread_stop(LOG_WAIT_NS);
	err = handover_exec(h->before, h->tables_fd, -1);
	log_err("%s: the program before cannot be executed: %s", h->mountpoint, strerror(-err));
	close(h->before);
	h->before = -1;
}

int handover_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
