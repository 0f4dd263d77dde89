/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything here runs on the main thread, whatever lanes and the server are doing. */
#include "ctl_cmds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ctl_proto.h"
#include "info.h"
#include "log.h"
#include "log_thread.h"
#include "mount_int.h"
#include "optval.h"
#include "prom.h"

static int refuse(FILE *out, const char *why)
{
	fputs(why, out);
	return -EINVAL;
}

static int put_line(FILE *out, const char *name, const char *value)
{
	char *text = ctl_proto_escape(value);

	if (text == NULL)
		return refuse(out, "out of memory");
	fprintf(out, "%s=%s\n", name, text);
	free(text);
	return 0;
}

/* Who is it? */
static int run_hello(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	const struct mount *m = ctx;
	dev_t dev = fs_dev(m->fs);

	fprintf(out, "pid=%d\n", (int)getpid());
	if (dev != 0)
		fprintf(out, "dev=%u:%u\n", major(dev), minor(dev));
	return put_line(out, "mountpoint", m->opt->mountpoint);
}

/* ---- stat ---- */

static struct snapshot *take(const struct mount *m)
{
	struct snapshot *s = snapshot_new();
	struct fs_gauges g = fs_gauges(m->fs);

	if (s == NULL)
		return NULL;
	s->source = strdup(m->opt->source);
	s->mountpoint = strdup(m->opt->mountpoint);
	s->pid = (uint64_t)getpid();
	s->at_ns = reactor_clock(m->reactor);
	s->mounted_ns = m->mounted_ns;
	s->lanes = m->lane_cnt;
	s->inodes = g.inodes;
	s->files = g.files;
	s->dirty_bytes = g.dirty;
	s->uncommitted_bytes = g.uncommitted;
	s->log_dropped = log_thread_dropped();
	for (unsigned int i = 0; i < m->lane_cnt; i++) {
		const struct stats *st = lane_stats(m->lanes[i]);

		stats_add(&s->stats, st);
		latency_add(&s->latency, st->latency);
	}
	if (s->source != NULL && s->mountpoint != NULL)
		return s;
	snapshot_free(s);
	return NULL;
}

static int run_stat(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	struct snapshot *s = take(ctx);

	if (s == NULL)
		return refuse(out, "out of memory");
	snapshot_print(out, s);
	snapshot_free(s);
	return 0;
}

/* Prometheus' text format, for GET /metrics too. */
static int run_metrics(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	struct snapshot *s = take(ctx);

	if (s == NULL)
		return refuse(out, "out of memory");
	prom_print(out, &s, 1);
	snapshot_free(s);
	return 0;
}

/* ---- info ---- */

/* info [json] */
static int run_info(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	bool json = argc == 2 && strcmp(argv[1], "json") == 0;

	if (argc > 1 && !json)
		return refuse(out, "info knows json and nothing else");
	info_print(out, ctx, json);
	return 0;
}

/* ---- log ---- */

static void say_log(const struct mount *m, const char *level, FILE *out)
{
	fprintf(out, "level %s, ops %s\n", level, fs_has_ops_log(m->fs) ? "on" : "off");
}

/* log [LEVEL | ops=on | ops=off] */
static int run_log(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	static const char *const names[] = {
		[LOG_LVL_ERR] = "error",
		[LOG_LVL_WARN] = "warn",
		[LOG_LVL_INFO] = "info",
		[LOG_LVL_DEBUG] = "debug",
	};

	const struct mount *m = ctx;

	if (argc > 2)
		return refuse(out, "one level is wanted, or ops=on or ops=off");
	if (argc == 2 && strncmp(argv[1], "ops=", 4) == 0) {
		if (strcmp(argv[1], "ops=on") != 0 && strcmp(argv[1], "ops=off") != 0)
			return refuse(out, "ops is on or off");
		fs_set_ops_log(m->fs, strcmp(argv[1], "ops=on") == 0);
		argc = 1;
	}
	for (size_t i = 0; argc == 2 && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(argv[1], names[i]) != 0)
			continue;
		log_set_level((enum log_level)i);
		say_log(m, names[i], out);
		return 0;
	}
	if (argc == 2)
		return refuse(out, "the levels are error, warn, info and debug");
	say_log(m, names[log_get_level()], out);
	return 0;
}

/* ---- sync ---- */

/* sync: a ticket; sync TICKET: "running", or "done N" when all is tried, N files in vain. */
static int run_sync(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	const struct mount *m = ctx;
	unsigned int failed;
	uint64_t ticket = 0;

	if (argc > 2 || (argc == 2 && !optval_uint(argv[1], 1, UINT64_MAX, &ticket)))
		return refuse(out, "a ticket is wanted, or nothing");
	if (argc == 1)
		fprintf(out, "%" PRIu64 "\n", fs_sync_wish(m->fs));
	else if (fs_sync_is_done(m->fs, ticket, &failed))
		fprintf(out, "done %u\n", failed);
	else
		fputs("running\n", out);
	return 0;
}

/* ---- upgrade ---- */

/* upgrade start and upgrade check, with the program; upgrade set OPTIONS; upgrade leave; upgrade
 * state. */
static int run_upgrade(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	struct mount *m = ctx;

	if (argc == 2 && strcmp(argv[1], "start") == 0)
		return upgrade_start(m, fd, false, out);
	if (argc == 2 && strcmp(argv[1], "check") == 0)
		return upgrade_start(m, fd, true, out);
	if (argc == 3 && strcmp(argv[1], "set") == 0 && ctl_proto_unescape(argv[2]))
		return upgrade_set(m, argv[2], out);
	if (argc == 2 && strcmp(argv[1], "leave") == 0)
		return upgrade_leave(m, out);
	if (argc != 2 || strcmp(argv[1], "state") != 0)
		return refuse(out, "upgrade knows start, check, set, leave and state");
	upgrade_say(m, out);
	return 0;
}

const struct ctl_command mount_commands[] = {
	{"capture", ctl_capture_run},
	{"hello", run_hello},
	{"info", run_info},
	{"log", run_log},
	{"metrics", run_metrics},
	{"remount", ctl_remount_run},
	{"stat", run_stat},
	{"sync", run_sync},
	{"upgrade", run_upgrade},
	{NULL, NULL},
};
