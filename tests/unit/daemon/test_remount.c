/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "ctl_cmds.h"
#include "remount.h"

static char fault[400];

static void no_warning(void *ctx, const char *line)
{
}

static void parse(struct options *o, const char *string)
{
	struct options_seen *seen = options_seen_new();

	options_default(o);
	o->by_root = true;
	o->source = strdup("srv:/exp");
	cr_assert_eq(options_apply(o, seen, string, no_warning, NULL, fault, sizeof(fault)), 0,
		"%s", fault);
	cr_assert_eq(options_finish(o, fault, sizeof(fault)), 0, "%s", fault);
	options_seen_free(seen);
}

/* ---- what mount(2) is asked ---- */

static const struct mountinfo usual = {.flags = MS_NOSUID | MS_NODEV | MS_RELATIME,
	.fs_flags = MS_SYNCHRONOUS,
	.allow_other = true};

static unsigned long flags_for(const struct mountinfo *now, const char *string)
{
	unsigned long flags = 0;
	struct options o;
	int err;

	parse(&o, string);
	*fault = '\0';
	err = remount_flags(now, &o, &flags, fault, sizeof(fault));
	options_fini(&o);
	cr_assert_eq(err, *fault != '\0' ? -EINVAL : 0);
	return flags;
}

Test(remount, ro_and_rw_are_the_file_systems)
{
	struct mountinfo ro = usual;

	cr_assert_eq(flags_for(&usual, "remount,ro"),
		MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_RELATIME | MS_SYNCHRONOUS);
	ro.flags |= MS_RDONLY;
	ro.fs_flags |= MS_RDONLY;
	cr_assert_eq(flags_for(&ro, "remount,rw"),
		MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_RELATIME | MS_SYNCHRONOUS);
	/* A mountpoint of its own may be read-only on a file system that is not. */
	ro.fs_flags = 0;
	cr_assert_eq(flags_for(&ro, "remount,rw"), MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_RELATIME);
}

Test(remount, the_others_are_the_mountpoints)
{
	const unsigned long as_is = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV;
	struct mountinfo now = usual;

	cr_assert_eq(flags_for(&usual, "remount,rw"), as_is | MS_RELATIME);
	cr_assert_eq(flags_for(&usual, "remount,noexec"), as_is | MS_RELATIME | MS_NOEXEC);
	cr_assert_eq(flags_for(&usual, "remount,noatime,nodiratime"),
		as_is | MS_NOATIME | MS_NODIRATIME);
	now.flags |= MS_NOEXEC;
	cr_assert_eq(flags_for(&now, "remount,exec"), as_is | MS_RELATIME);
	cr_assert_eq(
		flags_for(&now, "remount,nosuid,nodev,noexec"), as_is | MS_RELATIME | MS_NOEXEC);
	now.flags = 0;
	cr_assert_eq(flags_for(&now, "remount,nosuid"), MS_REMOUNT | MS_BIND | MS_NOSUID);
	cr_assert_eq(flags_for(&now, "remount,suid,dev"), MS_REMOUNT | MS_BIND);
}

/* "exec" does not come through mount(8): the absence of noexec says it. */
Test(remount, mount8_names_all_that_holds)
{
	struct mountinfo now = usual;
	unsigned long flags;
	struct options o;

	now.flags |= MS_NOEXEC | MS_NODIRATIME;
	cr_assert_eq(flags_for(&now, "rw,remount,user_id=0"),
		MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_RELATIME);
	parse(&o, "rw,remount,noexec");
	o.helper = true;
	cr_assert_eq(remount_flags(&now, &o, &flags, fault, sizeof(fault)), 0);
	cr_assert_eq(flags, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_RELATIME | MS_NOEXEC);
	options_fini(&o);
}

Test(remount, protection_is_not_taken_away)
{
	static const char *const refused[][2] = {{"remount,suid", "option suid"},
		{"remount,dev", "option dev"}, {"remount,dirsync", "option dirsync"},
		{"remount,noallow_other", "option noallow_other"}};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		flags_for(&usual, refused[i][0]);
		cr_assert_eq(strncmp(fault, refused[i][1], strlen(refused[i][1])), 0, "%s", fault);
	}
	(void)flags_for(&usual, "remount,allow_other");
	cr_assert_str_eq(fault, "");
}

/* ---- what the daemon is asked ---- */

static struct options now;

static bool changes_nothing(const char *source, const char *asked)
{
	char *copy = strdup(asked);
	int err = ctl_remount_check(&now, source, copy, fault, sizeof(fault));

	free(copy);
	return err == 0;
}

Test(remount, what_is_in_force_may_be_asked_again)
{
	parse(&now, "rw,hard,timeo=300,wsize=5000,nconnect=2,vers=4.2,noac,clientid=a b,nosuid");
	cr_assert(changes_nothing("srv:/exp", "remount,ro,nosuid,noexec,user_id=0,group_id=0"),
		"%s", fault);
	cr_assert(changes_nothing("srv:/exp",
			  "ro,remount,hard,timeo=300,wsize=5000,nconnect=2,vers=4.2,noac"),
		"%s", fault);
	cr_assert(changes_nothing("srv:/exp", "remount,,wsize=4096,sync,memreg=auto,acregmin=3"),
		"%s", fault);
	cr_assert(changes_nothing("srv:/exp", "retry=9,bg,x-systemd.automount,clientid=a b"), "%s",
		fault);
	/* It changed nothing of what is in force. */
	cr_assert_eq(now.nconnect, 2);
	cr_assert_str_eq(now.clientid, "a b");
	cr_assert_str_eq(now.vfs_opts, "nosuid");
}

Test(remount, a_mount_that_captures_is_changed_too)
{
	parse(&now, "rw,capture=/tmp/x,capture_data");
	cr_assert(changes_nothing("srv:/exp", "remount,ro"), "%s", fault);
	cr_assert(changes_nothing("srv:/exp", "remount,capture=/tmp/x,capture_data"), "%s", fault);
	cr_assert_not(changes_nothing("srv:/exp", "remount,capture=/tmp/y"));
}

Test(remount, an_option_that_would_change_is_named)
{
	static const char *const words[] = {"soft", "timeo=301", "wsize=8192", "nconnect=3",
		"vers=4.1", "ac", "clientid=b", "srcaddr=1.2.3.4", "allow_other", "stats",
		"capture=/tmp/x", "metalane", "memreg=static", "acregmax=5", "port=1"};
	/* These are not refused by rpcrdmafs set. */
	static const char can[] = " soft timeo=301 wsize=8192 nconnect=3 stats metalane "
				  "memreg=static acregmax=5 ";

	parse(&now, "rw,hard,timeo=300,wsize=5000,nconnect=2,vers=4.2,noac,clientid=a b,nosuid");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char asked[100], word[40];

		snprintf(asked, sizeof(asked), "remount,ro,%s,nosuid", words[i]);
		cr_assert_not(changes_nothing("srv:/exp", asked), "%s", words[i]);
		snprintf(word, sizeof(word), " %s ", words[i]);
		snprintf(asked, sizeof(asked), "option %s %s", words[i],
			strstr(can, word) != NULL ? "is changed by: rpcrdmafs set"
						  : "cannot be changed");
		cr_assert_eq(strncmp(fault, asked, strlen(asked)), 0, "%s", fault);
	}
}

Test(remount, another_source_is_another_mount)
{
	parse(&now, "rw");
	cr_assert_not(changes_nothing("srv:/other", "remount,ro"));
	cr_assert_str_eq(fault, "srv:/exp is mounted there, not srv:/other");
}
