/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fs_mountpoint.h"

static bool find(const char *table, const char *path, struct fs_mounted *m)
{
	FILE *f = fmemopen((void *)(uintptr_t)table, strlen(table), "r");
	bool found = fs_mountpoint_find(f, path, m);

	fclose(f);
	return found;
}

static const char table[] =
	"22 1 0:5 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"40 22 0:40 / /mnt rw,nosuid shared:9 - fuse.rpcrdmafs srv:/a\\040b "
	"rw,user_id=1000,group_id=1001,allow_other\n"
	"41 22 0:41 / /mnt/with\\040blank rw - fuse.rpcrdmafs srv:/x rw,user_id=0,group_id=0\n"
	"42 22 0:42 / /twice rw - fuse.rpcrdmafs srv:/below rw,user_id=0,group_id=0\n"
	"43 42 0:43 / /twice rw master:3 - tmpfs above rw\n";

Test(fs_mountpoint, a_mount_is_found_by_its_exact_path)
{
	struct fs_mounted m;

	cr_assert(find(table, "/mnt", &m));
	cr_assert_str_eq(m.type, "fuse.rpcrdmafs");
	cr_assert_str_eq(m.source, "srv:/a b");
	cr_assert_eq(m.uid, 1000);
	cr_assert_eq(m.gid, 1001);
	cr_assert(find(table, "/mnt/with blank", &m));
	cr_assert_str_eq(m.source, "srv:/x");
	cr_assert_not(find(table, "/mn", &m));
	cr_assert_not(find(table, "/mnt/", &m));
	cr_assert_not(find(table, "/mnt/with", &m));
}

Test(fs_mountpoint, of_mounts_over_each_other_the_upper_one_counts)
{
	struct fs_mounted m;

	cr_assert(find(table, "/twice", &m));
	cr_assert_str_eq(m.type, "tmpfs");
	cr_assert_eq(m.uid, (uid_t)-1);
}

static dev_t dev_of(const char *path, const char *source)
{
	FILE *f = fmemopen((void *)(uintptr_t)table, strlen(table), "r");
	dev_t dev = fs_mountpoint_dev(f, path, source);

	fclose(f);
	return dev;
}

Test(fs_mountpoint, a_device_is_that_of_our_mount_if_nothing_is_over_it)
{
	cr_assert_eq(dev_of("/mnt", "srv:/a b"), makedev(0, 40));
	cr_assert_eq(dev_of("/mnt", "srv:/x"), 0, "of another source");
	cr_assert_eq(dev_of("/twice", "srv:/below"), 0, "covered");
	cr_assert_eq(dev_of("/twice", "above"), 0, "of another kind");
	cr_assert_eq(dev_of("/", "/dev/sda1"), 0);
	cr_assert_eq(dev_of("/none", "srv:/a b"), 0);
}

Test(fs_mountpoint, a_line_whose_device_is_none_is_passed_over)
{
	static const char *const odd[] = {"0", "0:", ":40", "x:40", "0:x", "0:40x", "0 :40",
		"4294967296:40", "0:4294967296", "-1:40"};
	struct fs_mounted m;
	char line[80];

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		snprintf(line, sizeof(line), "40 22 %s / /mnt rw - fuse source rw\n", odd[i]);
		cr_assert_not(find(line, "/mnt", &m), "%s", odd[i]);
	}
	cr_assert(find("40 22 4095:1048575 / /mnt rw - fuse source rw\n", "/mnt", &m));
	cr_assert_eq(m.dev, makedev(4095, 1048575));
}

Test(fs_mountpoint, lines_that_are_cut_or_end_in_a_backslash_are_passed_over)
{
	struct fs_mounted m;

	cr_assert_not(find("40 22 0:40 / /mnt rw - fuse.rpcrdmafs\n", "/mnt", &m));
	cr_assert_not(find("40 22 0:40 / /mnt\n", "/mnt", &m));
	cr_assert_not(find("40 22 0:40 / /mnt\\4 rw - fuse x rw\n", "/mnt", &m));
	cr_assert_not(find("\n - \n", "/mnt", &m));
}
