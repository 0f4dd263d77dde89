/* SPDX-License-Identifier: BSD-3-Clause */
#include "remount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cmd.h"
#include "ctl_client.h"
#include "ctl_proto.h"
#include "log.h"
#include "mount.h"
#include "optset.h"
#include "opttable.h"

#define ID(name) (1ull << ID_##name)
/* The kernel's table tells them, or they are about mounting alone. */
#define NOT_THE_DAEMONS (ID(RW) | ID(ALLOW_OTHER) | ID(REMOUNT) | ID(BG) | ID(RETRY) | ID(SLOPPY))

/* Words of the kernel: `clears` is what becomes less strict. */
static const struct {
	const char *word;
	unsigned long sets, clears;
	bool frozen; /* only a new mount can change it */
} words[] = {
	{"nosuid", MS_NOSUID, 0, false},
	{"suid", 0, MS_NOSUID, true},
	{"nodev", MS_NODEV, 0, false},
	{"dev", 0, MS_NODEV, true},
	{"noexec", MS_NOEXEC, 0, false},
	{"exec", 0, MS_NOEXEC, false},
	{"noatime", MS_NOATIME, MS_RELATIME, false},
	{"atime", MS_RELATIME, MS_NOATIME, false},
	{"nodiratime", MS_NODIRATIME, 0, false},
	{"diratime", 0, MS_NODIRATIME, false},
	{"dirsync", MS_DIRSYNC, 0, true},
};

static int apply_word(unsigned long *flags, const char *word, char *fault, size_t len)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		unsigned long then = (*flags | words[i].sets) & ~words[i].clears;

		if (strcmp(words[i].word, word) != 0)
			continue;
		if (words[i].frozen && then != *flags)
			return optset_needs_mount(word, fault, len);
		*flags = then;
	}
	return 0;
}

static int apply_words(unsigned long *flags, const char *list, char *fault, size_t len)
{
	char *copy = strdup(list != NULL ? list : ""), *rest = copy, *word;
	int err = 0;

	if (copy == NULL) {
		snprintf(fault, len, "out of memory");
		return -ENOMEM;
	}
	while (err == 0 && (word = strsep(&rest, ",")) != NULL)
		err = apply_word(flags, word, fault, len);
	free(copy);
	return err;
}

int remount_flags(const struct mountinfo *now, const struct options *o, unsigned long *flags,
	char *fault, size_t len)
{
	const unsigned long both = MS_RDONLY;
	unsigned long kept = now->fs_flags & ~both, want = now->flags | kept;
	bool whole = false;
	int err = 0;

	if ((o->given & ID(ALLOW_OTHER)) != 0 && o->fs.allow_other != now->allow_other)
		return optset_needs_mount(
			o->fs.allow_other ? "allow_other" : "noallow_other", fault, len);
	if (o->helper || o->kernels != NULL)
		err = apply_words(&want, "exec,atime,diratime", fault, len);
	if (err == 0)
		err = apply_words(&want, o->vfs_opts, fault, len);
	if (err != 0)
		return err;
	if ((o->given & ID(RW)) != 0) {
		unsigned long wish = o->fs.read_only ? MS_RDONLY : 0;

		want = (want & ~both) | wish;
		whole = (now->flags & both) != wish || (now->fs_flags & both) != wish;
	}
	*flags = MS_REMOUNT | (whole ? want : MS_BIND | (want & ~kept));
	return 0;
}

/* ---- the daemon ---- */

/* One word of a request: no spaces either. malloced, or NULL. */
static char *one_word(const char *text)
{
	char *escaped = ctl_proto_escape(text), *word, *to;

	word = escaped != NULL ? malloc(4 * strlen(escaped) + 1) : NULL;
	if (word == NULL) {
		free(escaped);
		return NULL;
	}
	to = word;
	for (const char *p = escaped; *p != '\0'; p++)
		to = *p == ' ' ? stpcpy(to, "\\x20") : stpncpy(to, p, 1);
	*to = '\0';
	free(escaped);
	return word;
}

/* 0: all is in force that is not the kernel's. */
static int ask_daemon(const struct ctl_daemon *d, const struct options *o, char *fault, size_t len)
{
	char *asked = one_word(o->asked), *source = one_word(o->source), *request = NULL, *answer;

	if (asked == NULL || source == NULL ||
		asprintf(&request, "remount check %s %s", source, asked) < 0) {
		snprintf(fault, len, "out of memory");
		request = NULL;
	}
	answer = request != NULL ? ctl_client_ask(d, request, -1, fault, len) : NULL;
	free(asked);
	free(source);
	free(request);
	free(answer);
	return answer != NULL ? 0 : -EINVAL;
}

/* It shows what is in force, and, read-only, has nothing left to write. */
static int tell_daemon(const struct ctl_daemon *d, bool read_only, char *fault, size_t len)
{
	char *answer = ctl_client_ask(
		d, read_only ? "remount done ro" : "remount done rw", -1, fault, len);

	free(answer);
	if (answer == NULL)
		return -EIO;
	return read_only ? cmd_sync_daemon(d, fault, len) : 0;
}

static int change(const char *path, unsigned long flags, const struct options *o,
	const struct ctl_daemon *d, char *fault, size_t len)
{
	int err;

	if (mount(NULL, path, NULL, flags, NULL) != 0) {
		err = -errno;
		snprintf(fault, len, "%s%s", strerror(-err),
			err == -EBUSY   ? ": files are open for writing"
			: err == -EPERM ? ": only root can change a mount"
					: "");
		return err;
	}
	if (d->mountpoint == NULL || (flags & MS_BIND) != 0)
		return 0;
	return tell_daemon(d, o->fs.read_only, fault, len);
}

/* ctl_client_find() said why there is no daemon to ask. That matters if there is something to ask.
 */
static int need_daemon(const struct options *o, char *fault, size_t len)
{
	char why[300];

	if ((o->given & ~NOT_THE_DAEMONS) == 0)
		return 0;
	snprintf(why, sizeof(why), "%s", fault);
	snprintf(fault, len, "cannot tell which options are in force: %s", why);
	return -ESRCH;
}

static int remount(const struct options *o, char *fault, size_t len)
{
	struct ctl_daemon d = {.mountpoint = NULL};
	char cwd[PATH_MAX], path[PATH_MAX];
	struct mountinfo now;
	unsigned long flags;
	int err;

	if (getcwd(cwd, sizeof(cwd)) == NULL || !mountinfo_path(cwd, o->mountpoint, path) ||
		!mountinfo_mounted(path, &now)) {
		snprintf(fault, len, "no rpcrdmafs is mounted there");
		return -EINVAL;
	}
	err = remount_flags(&now, o, &flags, fault, len);
	if (err != 0)
		return err;
	if (ctl_client_find(path, &d, fault, len) != 0) {
		d.mountpoint = NULL;
		err = need_daemon(o, fault, len);
	} else {
		err = ask_daemon(&d, o, fault, len);
	}
	if (err == 0 && !o->fake)
		err = change(path, flags, o, &d, fault, len);
	free(d.mountpoint);
	return err;
}

int remount_run(const struct options *o)
{
	char fault[400];

	if (remount(o, fault, sizeof(fault)) == 0)
		return 0;
	log_err("%s: %s", o->mountpoint, fault);
	return o->helper ? MOUNT_EX_FAIL : MOUNT_EX_USAGE;
}
