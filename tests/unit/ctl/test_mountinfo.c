/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "mountinfo.h"

static const char *clean(const char *cwd, const char *path)
{
	static char out[PATH_MAX];

	return mountinfo_path(cwd, path, out) ? out : "(none)";
}

Test(mountinfo, paths_are_made_absolute_without_a_look_at_them)
{
	cr_assert_str_eq(clean("/home/u", "mnt"), "/home/u/mnt");
	cr_assert_str_eq(clean("/home/u", "./mnt/"), "/home/u/mnt");
	cr_assert_str_eq(clean("/home/u", "../mnt"), "/home/mnt");
	cr_assert_str_eq(clean("/home/u", "/a//b/../c/."), "/a/c");
	cr_assert_str_eq(clean("/", ".."), "/");
	cr_assert_str_eq(clean("/", "../../a"), "/a");
	cr_assert_str_eq(clean("/home/u", ""), "(none)");
}

Test(mountinfo, a_path_that_is_too_long_is_none)
{
	char path[PATH_MAX + 10];

	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	cr_assert_str_eq(clean("/", path), "(none)");
}

static const char table[] =
	"22 1 0:21 / /proc rw - proc proc rw\n"
	"30 1 0:50 / /mnt rw,nosuid,nodev - fuse.rpcrdmafs host:/ rw,user_id=1000,group_id=0\n"
	"31 1 0:51 / /mnt/with\\040space ro,noexec - fuse.rpcrdmafs host:/ "
	"rw,dirsync,user_id=0,group_id=0,allow_other\n"
	"32 1 0:52 / /twice rw - fuse.rpcrdmafs host:/ rw,user_id=0\n"
	"33 1 0:53 / /twice rw - tmpfs tmpfs rw\n"
	"34 1 0:54 / /again rw - tmpfs tmpfs rw\n"
	"35 1 0:55 / /again rw shared:1 master:2 - fuse.rpcrdmafs host:/ rw,user_id=7\n"
	"a line that is none\n";

static bool find(const char *path, struct mountinfo *ret)
{
	FILE *f = fmemopen((char *)table, sizeof(table) - 1, "r");
	bool found = mountinfo_find(f, path, ret);

	fclose(f);
	return found;
}

Test(mountinfo, finds_the_device_and_who_mounted_it)
{
	struct mountinfo mi;

	cr_assert(find("/mnt", &mi));
	cr_assert_str_eq(mi.dev, "0:50");
	cr_assert_eq(mi.uid, 1000);
	cr_assert(find("/mnt/with space", &mi));
	cr_assert_str_eq(mi.dev, "0:51");
	cr_assert_eq(mi.uid, 0);
	cr_assert(find("/again", &mi));
	cr_assert_str_eq(mi.dev, "0:55");
	cr_assert_eq(mi.uid, 7);
}

Test(mountinfo, does_not_take_what_is_not_ours_or_hidden)
{
	struct mountinfo mi;

	cr_assert(!find("/proc", &mi));
	cr_assert(!find("/twice", &mi));
	cr_assert(!find("/mnt/with", &mi));
	cr_assert(!find("/", &mi));
}

Test(mountinfo, tells_flags_of_the_mountpoint_and_of_the_file_system)
{
	struct mountinfo mi;

	cr_assert(find("/mnt", &mi));
	cr_assert_eq(mi.flags, MS_NOSUID | MS_NODEV);
	cr_assert_eq(mi.fs_flags, 0);
	cr_assert_not(mi.allow_other);
	cr_assert(find("/mnt/with space", &mi));
	cr_assert_eq(mi.flags, MS_RDONLY | MS_NOEXEC);
	cr_assert_eq(mi.fs_flags, MS_DIRSYNC);
	cr_assert(mi.allow_other);
}
