/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define ARGS_MAX 20

static struct options o;
static char fault[400], warning[400];

static void setup(void)
{
	options_default(&o);
	o.helper = true;
	fault[0] = warning[0] = '\0';
}

static void teardown(void)
{
	options_fini(&o);
}

TestSuite(mounthelper, .init = setup, .fini = teardown);

static void warn(void *ctx, const char *line)
{
	snprintf(warning, sizeof(warning), "%s", line);
}

/* Words, separated by blanks, after the program's name. */
static int parse(const char *line)
{
	static char copy[400];
	char *argv[ARGS_MAX + 1] = {(char *)"/sbin/mount.rpcrdmafs"}, *rest = copy;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	while (rest != NULL && argc < ARGS_MAX)
		argv[argc++] = strsep(&rest, " ");
	return mounthelper_parse(&o, argc, argv, warn, NULL, fault, sizeof(fault));
}

static void refused(const char *line, const char *says)
{
	cr_assert_eq(parse(line), -EINVAL, "%s", line);
	cr_assert(strstr(fault, says) != NULL, "%s: %s", line, fault);
	teardown();
	setup();
}

Test(mounthelper, is_known_by_its_name_in_any_folder)
{
	cr_assert(mounthelper_called("mount.rpcrdmafs"));
	cr_assert(mounthelper_called("/sbin/mount.rpcrdmafs"));
	cr_assert_not(mounthelper_called("rpcrdmafs"));
	cr_assert_not(mounthelper_called("/usr/bin/rpcrdmafs"));
	cr_assert_not(mounthelper_called("/mount.rpcrdmafs/rpcrdmafs"));
}

Test(mounthelper, what_mount8_calls_is_taken)
{
	cr_assert_eq(parse("srv:/exp /mnt -n -v -o rw,_netdev,nofail,x-systemd.automount,"
			   "X-mount.mkdir,comment=mine,user=joe,noexec,nosuid,nodev"),
		0, "%s", fault);
	cr_assert_str_eq(warning, "");
	cr_assert_str_eq(o.host, "srv");
	cr_assert_str_eq(o.path, "/exp");
	cr_assert_str_eq(o.mountpoint, "/mnt");
	cr_assert_str_eq(o.vfs_opts, "noexec,nosuid,nodev");
	cr_assert(o.verbose);
	cr_assert_not(o.foreground);
}

Test(mounthelper, minus_f_is_fake_and_not_foreground)
{
	cr_assert_eq(parse("srv:/exp /mnt -f"), 0, "%s", fault);
	cr_assert(o.fake);
	cr_assert_not(o.foreground);
}

Test(mounthelper, root_mounts_for_all_users_unless_told_not_to)
{
	cr_assert_eq(parse("srv:/exp /mnt"), 0, "%s", fault);
	cr_assert_eq(o.fs.allow_other, geteuid() == 0);
	options_fini(&o);
	setup();
	cr_assert_eq(parse("srv:/exp /mnt -o noallow_other"), 0, "%s", fault);
	cr_assert_not(o.fs.allow_other);
}

Test(mounthelper, minus_s_lets_unknown_options_pass_with_a_warning)
{
	refused("srv:/exp /mnt -o nosuchthing", "unknown option nosuchthing");
	options_fini(&o);
	setup();
	cr_assert_eq(parse("srv:/exp /mnt -s -o nosuchthing"), 0, "%s", fault);
	cr_assert(strstr(warning, "nosuchthing") != NULL);
}

Test(mounthelper, minus_r_and_ro_are_the_same)
{
	cr_assert_eq(parse("srv:/exp /mnt -r -o ro"), 0, "%s", fault);
	cr_assert(o.fs.read_only);
}

Test(mounthelper, foreground_tries_for_two_minutes_background_for_a_week)
{
	cr_assert_eq(parse("srv:/exp /mnt"), 0);
	cr_assert_eq(o.retry_min, 2);
	options_fini(&o);
	setup();
	cr_assert_eq(parse("srv:/exp /mnt -o bg"), 0);
	cr_assert(o.bg);
	cr_assert_eq(o.retry_min, 10000);
	options_fini(&o);
	setup();
	cr_assert_eq(parse("srv:/exp /mnt -o bg,retry=0"), 0);
	cr_assert_eq(o.retry_min, 0);
	options_fini(&o);
	setup();
	refused("srv:/exp /mnt -o bg,fg", "fg contradicts");
}

Test(mounthelper, types_and_letters_that_are_not_ours_are_refused)
{
	cr_assert_eq(parse("srv:/exp /mnt -t fuse.rpcrdmafs"), 0, "%s", fault);
	options_fini(&o);
	setup();
	refused("srv:/exp /mnt -t nfs", "-t nfs");
	refused("srv:/exp /mnt -x", "unknown option -x");
	refused("srv:/exp /mnt -o", "-o needs a value");
	refused("srv:/exp", "too few arguments");
	refused("srv:/exp /mnt more", "too many arguments");
	refused("nowhere /mnt", "expected server:/path");
	refused("srv:/exp /mnt -o user_id=0,ro", "user_id is the kernel's");
	refused("srv:/exp /mnt -N /nonexistent", "-N /nonexistent");
}

/* mount(8) hands on what the kernel's table has, in any order. */
Test(mounthelper, remount_takes_the_words_of_the_kernels_table)
{
	cr_assert_eq(parse("srv:/exp /mnt -o ro,user_id=0,group_id=0,remount,nosuid,allow_other"),
		0, "%s", fault);
	cr_assert(o.remount && o.fs.read_only && o.fs.allow_other);
	cr_assert_str_eq(o.vfs_opts, "nosuid");
	cr_assert_str_eq(o.asked, "ro,user_id=0,group_id=0,remount,nosuid,allow_other");
}
