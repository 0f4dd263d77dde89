/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "ctl_client.h"
#include "prom.h"
#include "stat_print.h"

enum format {
	FORMAT_TEXT,
	FORMAT_JSON,
	FORMAT_PROM,
};

struct stat_opts {
	double interval; /* seconds; 0: once */
	unsigned long count;
	enum format format;
	const char *mount; /* NULL: all */
};

/* One mount that is looked at again and again. */
struct watched {
	struct ctl_daemon daemon;
	struct snapshot *before; /* NULL: it is new */
};

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs stat [-i SECONDS] [-c COUNT] [--json|--prometheus] [MOUNT]\n"
	      "\n"
	      "What mounts do: requests of programs, calls to the server, where their time\n"
	      "goes (n, u, m, s: nanoseconds to seconds; average, median, 99 %).\n"
	      "\n"
	      "  queue  until calls were sent: waiting for slots, credits, a session\n"
	      "  rpc    from sent to answered\n"
	      "  fuse   the rest, until the program's request was answered\n"
	      "\n"
	      "  MOUNT         mountpoint, or pid:N: the daemon with that PID; default: all\n"
	      "                mounts of this user (root: of everybody)\n"
	      "  -i SECONDS    again and again, each time what was since then; default: once,\n"
	      "                since the mount\n"
	      "  -c COUNT      as often; without -i every second\n"
	      "  --json        for programs, a line each time\n"
	      "  --prometheus  for node_exporter's textfile collector; counts since the mount\n"
	      "  -h            this help\n",
		to);
}

static int say(const char *fault)
{
	return cmd_fail("stat", fault);
}

/* ---- looking ---- */

static struct snapshot *look(const struct ctl_daemon *d, char *fault, size_t len)
{
	char *text = ctl_client_ask(d, "stat", -1, fault, len);
	struct snapshot *s = text != NULL ? snapshot_parse(text) : NULL;

	if (text != NULL && s == NULL)
		snprintf(fault, len, "pid %d: its answer makes no sense: another version?",
			(int)d->pid);
	free(text);
	return s;
}

/* What is told of this reading: with an interval, what is new in it. */
static struct snapshot *told_of(const struct stat_opts *o, struct watched *w, struct snapshot *now)
{
	struct snapshot *told = now;

	if (o->interval > 0 && o->format != FORMAT_PROM) {
		told = snapshot_new();
		if (told != NULL) {
			*told = *now;
			told->source = strdup(now->source);
			told->mountpoint = strdup(now->mountpoint);
		}
		if (told == NULL || told->source == NULL || told->mountpoint == NULL) {
			snapshot_free(told);
			snapshot_free(now);
			return NULL;
		}
		if (w->before != NULL)
			snapshot_subtract(told, w->before);
		snapshot_free(w->before);
		w->before = now;
	}
	return told;
}

static void show(const struct stat_opts *o, struct snapshot *const *s, size_t cnt)
{
	if (o->interval > 0 && o->format == FORMAT_TEXT && isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	if (o->format == FORMAT_JSON)
		stat_print_json(stdout, s, cnt);
	else if (o->format == FORMAT_PROM)
		prom_print(stdout, s, cnt);
	for (size_t i = 0; o->format == FORMAT_TEXT && i < cnt; i++) {
		if (i > 0)
			fputc('\n', stdout);
		stat_print(stdout, s[i]);
	}
}

/* All mounts once. A mount that ended is left out; false: none is there any more. */
static bool once(const struct stat_opts *o, struct watched *w, size_t cnt, bool quiet)
{
	struct snapshot **s = calloc(cnt, sizeof(struct snapshot *));
	int64_t end = ctl_client_now_ms() + CTL_STRANGERS_MS;
	size_t there = 0, alive = 0;
	char fault[400] = "out of memory";

	for (size_t i = 0; s != NULL && i < cnt; i++) {
		struct snapshot *now;

		/* All of other users together. */
		if (w[i].daemon.owner != geteuid())
			w[i].daemon.until_ms = end;
		now = look(&w[i].daemon, fault, sizeof(fault));
		alive += now != NULL;
		s[there] = now != NULL ? told_of(o, &w[i], now) : NULL;
		there += s[there] != NULL;
	}
	if (alive == 0)
		say(fault);
	else if (!quiet)
		show(o, s, there);
	for (size_t i = 0; i < there; i++)
		snapshot_free(s[i]);
	free(s);
	return alive > 0;
}

static void pause_for(double seconds)
{
	struct timespec ts = {.tv_sec = (time_t)seconds};

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
}

static int run(const struct stat_opts *o, struct watched *w, size_t cnt)
{
	/* An interval begins with a look that is not shown. */
	if (!once(o, w, cnt, o->interval > 0))
		return 1;
	for (unsigned long i = 0; o->interval > 0 && (o->count == 0 || i < o->count); i++) {
		if (i > 0 && o->format == FORMAT_TEXT && !isatty(STDOUT_FILENO))
			fputc('\n', stdout);
		pause_for(o->interval);
		if (!once(o, w, cnt, false))
			return 1;
		if (fflush(stdout) != 0)
			return 1; /* who read it has gone */
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- what was asked for ---- */

static bool parse_args(struct stat_opts *o, int argc, char **argv, int *ret_status)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'}, {"prometheus", no_argument, NULL, 'p'}, {0}};
	bool ok = true, counted = false;
	char *end;
	int c;

	optind = 0;
	*ret_status = 2;
	while (ok && (c = getopt_long(argc, argv, "i:c:h", longs, NULL)) != -1) {
		end = NULL;
		if (c == 'i') {
			o->interval = strtod(optarg, &end);
			ok = *end == '\0' && o->interval >= 0.01 && o->interval <= 86400;
		} else if (c == 'c') {
			o->count = strtoul(optarg, &end, 10);
			ok = *end == '\0' && *optarg != '-' && o->count > 0;
			counted = true;
		} else if (c == 'j') {
			o->format = FORMAT_JSON;
		} else if (c == 'p') {
			o->format = FORMAT_PROM;
		} else if (c == 'h') {
			help(stdout);
			*ret_status = 0;
			return false;
		} else {
			ok = false;
		}
	}
	if (counted && o->interval == 0)
		o->interval = 1;
	if (argc - optind > 1 || !ok) {
		help(stderr);
		return false;
	}
	o->mount = argv[optind];
	return true;
}

static struct watched *choose(const struct stat_opts *o, size_t *ret_cnt)
{
	struct ctl_daemon one, *all = NULL;
	struct watched *w;
	char fault[400];
	size_t cnt = 1;

	if (o->mount == NULL)
		cnt = ctl_client_find_all(CTL_STRANGERS_MS, &all);
	else if (ctl_client_find(o->mount, &one, fault, sizeof(fault)) != 0) {
		say(fault);
		return NULL;
	}
	if (cnt == 0) {
		say("no rpcrdmafs of yours runs with a control socket");
		return NULL;
	}
	w = calloc(cnt, sizeof(*w));
	for (size_t i = 0; w != NULL && i < cnt; i++)
		w[i].daemon = all != NULL ? all[i] : one;
	free(all);
	*ret_cnt = cnt;
	if (w == NULL)
		say("out of memory");
	return w;
}

int cmd_stat(int argc, char **argv)
{
	struct stat_opts o = {0};
	struct watched *w;
	size_t cnt;
	int status;

	if (!parse_args(&o, argc, argv, &status))
		return status;
	w = choose(&o, &cnt);
	if (w == NULL)
		return 1;
	status = run(&o, w, cnt);
	for (size_t i = 0; i < cnt; i++) {
		free(w[i].daemon.mountpoint);
		snapshot_free(w[i].before);
	}
	free(w);
	return status;
}
