/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line that mount(8) calls its helpers with:
 *
 *   mount.rpcrdmafs SOURCE MOUNTPOINT [-sfnvrwVh] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "optset.h"

bool mounthelper_called(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	return strcmp(slash != NULL ? slash + 1 : argv0, "mount.rpcrdmafs") == 0;
}

static int __attribute__((format(printf, 3, 4))) fail(char *fault, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault, len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* mount -N: the mount is to be made in another mount namespace, named by a path or a process. */
static int enter_namespace(const char *ns, char *fault, size_t len)
{
	char path[64];
	int fd, err = 0;

	if (*ns != '\0' && ns[strspn(ns, "0123456789")] == '\0') {
		if (snprintf(path, sizeof(path), "/proc/%s/ns/mnt", ns) >= (int)sizeof(path))
			return fail(fault, len, "-N %s: no such process", ns);
		ns = path;
	}
	fd = open(ns, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(fault, len, "-N %s: %s", ns, strerror(errno));
	if (setns(fd, CLONE_NEWNS) != 0)
		err = fail(fault, len, "-N %s: cannot enter the mount namespace: %s", ns,
			strerror(errno));
	close(fd);
	return err;
}

static int check_type(const char *type, char *fault, size_t len)
{
	if (strcmp(type, "rpcrdmafs") == 0 || strcmp(type, "fuse.rpcrdmafs") == 0)
		return 0;
	return fail(fault, len, "-t %s: only rpcrdmafs is mounted here", type);
}

/* What a letter alone says; -EINVAL: none that mount(8) has for its helpers. */
static int take_flag(struct options *o, int c)
{
	switch (c) {
	case 's':
		o->sloppy = true;
		return 0;
	case 'f':
		o->fake = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case 'n': /* there is no mtab */
		return 0;
	case 'V':
		o->version = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	default:
		return -EINVAL;
	}
}

struct strings {
	const char *opts[16], *ns;
	unsigned int cnt;
};

static int read_args(
	struct options *o, int argc, char **argv, struct strings *s, char *fault, size_t len)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {0}};
	const char *more;
	int c, err = 0;

	optind = 0;
	while (err == 0 && (c = getopt_long(argc, argv, ":o:t:N:sfnvVhrw", longs, NULL)) != -1) {
		more = c == 'o' ? optarg : c == 'r' ? "ro" : c == 'w' ? "rw" : NULL;
		if (more != NULL && s->cnt == sizeof(s->opts) / sizeof(s->opts[0]))
			err = fail(fault, len, "too many -o: put all options in one");
		else if (more != NULL)
			s->opts[s->cnt++] = more;
		else if (c == 't')
			err = check_type(optarg, fault, len);
		else if (c == 'N')
			s->ns = optarg;
		else if (c == ':')
			err = fail(fault, len, "option -%c needs a value: try mount.rpcrdmafs -h",
				optopt);
		else if (take_flag(o, c) != 0)
			err = fail(
				fault, len, "unknown option -%c: try mount.rpcrdmafs -h", optopt);
	}
	return err;
}

static int take_positional(struct options *o, int argc, char **argv, char *fault, size_t len)
{
	uint16_t port = o->port;
	int err;

	if (argc - optind != 2)
		return fail(fault, len, "%s: expected server:/path and a mountpoint",
			argc - optind < 2 ? "too few arguments" : "too many arguments");
	err = source_parse(o, argv[optind], fault, len);
	if (err != 0)
		return err;
	if (port != OPTIONS_PORT)
		o->port = port; /* port= names it even when the URL has one */
	o->mountpoint = strdup(argv[optind + 1]);
	return o->mountpoint != NULL ? 0 : fail(fault, len, "out of memory");
}

int mounthelper_parse(struct options *o, int argc, char **argv, options_say_fn warn, void *ctx,
	char *fault, size_t fault_len)
{
	struct options_seen *seen = options_seen_new();
	struct strings s = {0};
	int err;

	if (seen == NULL)
		return fail(fault, fault_len, "out of memory");
	/* All users, as of every other file system that root mounts; the server checks each. */
	o->fs.allow_other = geteuid() == 0;
	err = read_args(o, argc, argv, &s, fault, fault_len);
	for (unsigned int i = 0; err == 0 && i < s.cnt; i++)
		err = options_apply(o, seen, s.opts[i], warn, ctx, fault, fault_len);
	if (err == 0)
		err = optset_apply(o, seen, warn, ctx, fault, fault_len);
	options_seen_free(seen);
	if (err != 0 || o->help || o->version)
		return err;
	err = take_positional(o, argc, argv, fault, fault_len);
	if (err == 0)
		err = options_finish(o, fault, fault_len);
	if (err == 0 && s.ns != NULL)
		err = enter_namespace(s.ns, fault, fault_len);
	return err;
}
