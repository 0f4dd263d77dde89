/* SPDX-License-Identifier: BSD-3-Clause */
/* remount on the control socket: which options would change, and that ro or rw did. */
#include "ctl_cmds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_proto.h"
#include "log.h"
#include "mount_int.h"
#include "optset.h"

static void pass_over(void *ctx, const char *line)
{
}

/* Words about mounting itself, and those that the kernel's flags tell. */
static void forget_kernels(struct options *o, const struct options *now)
{
	o->given = 0;
	o->kernels = NULL;
	o->remount = now->remount;
	o->sloppy = now->sloppy;
	o->bg = now->bg;
	o->dev = now->dev;
	o->suid = now->suid;
	o->retry_min = now->retry_min;
	o->retry_set = now->retry_set;
	o->fs.read_only = now->fs.read_only;
	o->fs.mount_opts = NULL;
	free(o->asked);
	free(o->vfs_opts);
	o->asked = o->vfs_opts = NULL;
}

/* The string that was asked for, or none, is the one in force. It is freed. */
static bool same_string(char **asked, const char *now)
{
	bool same = *asked == NULL || (now != NULL && strcmp(*asked, now) == 0);

	free(*asked);
	*asked = NULL;
	return same;
}

/* Would one word on top of what is in force change anything? -EINVAL: it would, or is none. */
static int check_word(const struct options *now, const char *word, char *fault, size_t len)
{
	struct options_seen *seen = options_seen_new();
	struct options before, then;
	bool same;
	int err;

	if (seen == NULL) {
		snprintf(fault, len, "out of memory");
		return -ENOMEM;
	}
	memcpy(&before, now, sizeof(before)); /* with its padding: memcmp() below */
	before.asked = before.vfs_opts = NULL;
	before.clientaddr = before.clientid = before.capture = NULL;
	before.remount = true; /* the kernel's words are welcome */
	before.given = 0;
	before.kernels = NULL;
	before.fs.mount_opts = NULL;
	memcpy(&then, &before, sizeof(then));
	if (now->capture != NULL) { /* without which its other options are none */
		then.capture = strdup(now->capture);
		if (then.capture == NULL) {
			options_seen_free(seen);
			snprintf(fault, len, "out of memory");
			return -ENOMEM;
		}
	}
	err = options_apply(&then, seen, word, pass_over, NULL, fault, len);
	options_seen_free(seen);
	if (err == 0)
		err = options_finish(&then, fault, len);
	forget_kernels(&then, &before);
	same = same_string(&then.clientaddr, now->clientaddr);
	same = same_string(&then.clientid, now->clientid) && same;
	same = same_string(&then.capture, now->capture) && same;
	if (err != 0)
		return err;
	if (same && memcmp(&then, &before, sizeof(then)) == 0)
		return 0;
	if (optset_check(now, word, fault, len) != 0)
		return optset_needs_mount(word, fault, len);
	snprintf(fault, len, "option %s is changed by: rpcrdmafs set %s %s", word, now->mountpoint,
		word);
	return -EINVAL;
}

int ctl_remount_check(
	const struct options *now, const char *source, char *asked, char *fault, size_t len)
{
	char *word;
	int err = 0;

	if (strcmp(source, now->source) != 0) {
		snprintf(fault, len, "%s is mounted there, not %s", now->source, source);
		return -EINVAL;
	}
	while (err == 0 && (word = strsep(&asked, ",")) != NULL)
		err = *word != '\0' ? check_word(now, word, fault, len) : 0;
	return err;
}

/* remount check SOURCE OPTIONS; remount done ro|rw */
int ctl_remount_run(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	struct mount *m = ctx;
	char fault[400];
	int err;

	if (argc == 4 && strcmp(argv[1], "check") == 0 && ctl_proto_unescape(argv[2]) &&
		ctl_proto_unescape(argv[3])) {
		err = ctl_remount_check(m->opt, argv[2], argv[3], fault, sizeof(fault));
		if (err != 0)
			fputs(fault, out);
		return err;
	}
	if (argc == 3 && strcmp(argv[1], "done") == 0 &&
		(strcmp(argv[2], "ro") == 0 || strcmp(argv[2], "rw") == 0)) {
		m->opt->fs.read_only = argv[2][1] == 'o';
		log_info("%s is mounted %s now", m->opt->mountpoint,
			m->opt->fs.read_only ? "read-only" : "for reading and writing");
		return 0;
	}
	fputs("remount knows check and done", out);
	return -EINVAL;
}
