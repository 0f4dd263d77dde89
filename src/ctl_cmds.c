/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything here runs on the main thread, whatever lanes and the server are doing. */
#include "ctl_cmds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ctl_proto.h"
#include "log.h"
#include "mount_int.h"

static int refuse(FILE *out, const char *why)
{
	fputs(why, out);
	return -EINVAL;
}

static int put_line(FILE *out, const char *name, const char *value)
{
	char *text = ctl_escape(value);

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

/* log LEVEL */
static int run_log(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	static const char *const names[] = {
		[LOG_LVL_ERR] = "error",
		[LOG_LVL_WARN] = "warn",
		[LOG_LVL_INFO] = "info",
		[LOG_LVL_DEBUG] = "debug",
	};

	if (argc > 2)
		return refuse(out, "one level is wanted");
	for (size_t i = 0; argc == 2 && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(argv[1], names[i]) != 0)
			continue;
		log_set_level((enum log_level)i);
		fprintf(out, "level %s\n", names[i]);
		return 0;
	}
	if (argc == 2)
		return refuse(out, "the levels are error, warn, info and debug");
	fprintf(out, "level %s\n", names[log_get_level()]);
	return 0;
}

const struct ctl_command mount_commands[] = {
	{"hello", run_hello},
	{"log", run_log},
	{NULL, NULL},
};
