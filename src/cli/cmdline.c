/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "optset.h"

void cmdline_help(void)
{
	puts("usage: rpcrdmafs [options] server:/path mountpoint\n"
	     "       rpcrdmafs [options] nfs://server/path mountpoint\n"
	     "       rpcrdmafs stat|info|log|sync|capture|upgrade|set|leave|hold|probe ... -h\n"
	     "\n"
	     "Mounts an NFSv4.1/4.2 export over RDMA.\n"
	     "\n"
	     "  -o OPTIONS  as nfs(5): vers=4.1|4.2, port=, rsize=, wsize=, hard|soft|softerr,\n"
	     "              timeo=, retrans=, ro, sync, noac, actimeo=, acregmin=..., nocto,\n"
	     "              lookupcache=, write=lazy|eager|wait, nodelegation, nconnect=,\n"
	     "              sec=sys|none; and dirty=, fabric=, memreg=, credits=, inline=,\n"
	     "              buffers=, ack_timeout=, tos=, probe=, readahead=, read_ahead_kb=,\n"
	     "              metalane, keep=auto, stats, allow_other: "
	     "docs/options.md\n"
	     "  -f          stay in the foreground\n"
	     "  -d          debug: log what happens, stay in the foreground\n"
	     "  -V          version\n"
	     "  -h          this help\n"
	     "\n"
	     "Unmount with `fusermount3 -u MOUNTPOINT`, umount(8), or SIGTERM.\n"
	     "SIGUSR1 prints the counters to the log.");
}

static int missing(const char *what, char *fault, size_t len)
{
	snprintf(fault, len, "%s: try rpcrdmafs -h", what);
	return -EINVAL;
}

static int take_flag(struct options *o, int c, char *fault, size_t len)
{
	switch (c) {
	case 'f':
		o->foreground = true;
		return 0;
	case 'd':
		o->debug = o->foreground = true;
		return 0;
	case 'V':
		o->version = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	case ':':
		snprintf(fault, len, "option -%c needs a value: try rpcrdmafs -h", optopt);
		return -EINVAL;
	default:
		snprintf(fault, len, "unknown option -%c: try rpcrdmafs -h", optopt);
		return -EINVAL;
	}
}

static int take_positional(struct options *o, int argc, char **argv, char *fault, size_t len)
{
	int err;

	if (optind >= argc)
		return missing("what to mount is missing", fault, len);
	if (optind + 1 >= argc)
		return missing("the mountpoint is missing", fault, len);
	if (optind + 2 < argc) {
		snprintf(fault, len, "too many arguments at \"%s\": try rpcrdmafs -h",
			argv[optind + 2]);
		return -EINVAL;
	}
	err = source_parse(o, argv[optind], fault, len);
	if (err != 0)
		return err;
	o->mountpoint = strdup(argv[optind + 1]);
	if (o->mountpoint == NULL)
		return missing("out of memory", fault, len);
	return 0;
}

int cmdline_parse(struct options *o, int argc, char **argv, options_say_fn warn, void *ctx,
	char *fault, size_t fault_len)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {0}};
	struct options_seen *seen = options_seen_new();
	int c, err = 0;

	if (seen == NULL)
		return missing("out of memory", fault, fault_len);
	optind = 0; /* glibc: start anew, also for a second call */
	while (err == 0 && (c = getopt_long(argc, argv, ":o:fdVh", longs, NULL)) != -1) {
		if (c == 'o')
			err = options_apply(o, seen, optarg, warn, ctx, fault, fault_len);
		else
			err = take_flag(o, c, fault, fault_len);
	}
	if (err == 0)
		err = optset_apply(o, seen, warn, ctx, fault, fault_len);
	if (err == 0 && !o->help && !o->version) {
		uint16_t port = o->port;

		err = take_positional(o, argc, argv, fault, fault_len);
		/* -o port= names the port even when the URL has one. */
		if (err == 0 && port != OPTIONS_PORT)
			o->port = port;
		if (err == 0)
			err = options_finish(o, fault, fault_len);
	}
	options_seen_free(seen);
	return err;
}
