/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs_covers.h"

#define DEV makedev(0, 50)

/* Each path and a semicolon. */
static void covered(const char *mountinfo, const char *right)
{
	char text[300] = "";
	size_t len;
	char *paths;

	cr_assert_eq(fs_covers_parse(mountinfo, DEV, &paths, &len), 0);
	for (size_t at = 0; at < len; at += strlen(paths + at) + 1) {
		strcat(text, paths + at);
		strcat(text, ";");
	}
	cr_expect_str_eq(text, right);
	free(paths);
}

#define ROOT "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
#define OURS "30 1 0:50 / /mnt rw,nosuid shared:7 - fuse.rpcrdmafs srv:/ rw,allow_other\n"

Test(fs_covers, what_is_mounted_on_files_of_ours)
{
	covered("", "");
	covered(ROOT OURS, "");
	covered(ROOT OURS "31 30 0:5 /null /mnt/a/sock rw - devtmpfs dev rw\n"
			  "32 30 0:6 / /mnt/d rw - tmpfs none rw\n"
			  "33 32 0:7 / /mnt/d/e rw - tmpfs none rw\n"
			  "34 1 0:8 / /mnt2/f rw - tmpfs none rw\n",
		"a/sock;d;");
}

Test(fs_covers, a_part_of_it_mounted_elsewhere_too)
{
	covered(ROOT OURS "31 1 0:50 /a/b /srv rw - fuse.rpcrdmafs srv:/ rw\n"
			  "32 31 0:5 /null /srv/c/sock rw - devtmpfs dev rw\n"
			  "33 1 0:50 /a/fifo /run/fifo rw - fuse.rpcrdmafs srv:/ rw\n"
			  "34 33 0:5 /null /run/fifo rw - devtmpfs dev rw\n",
		"a/b/c/sock;a/fifo;");
}

Test(fs_covers, ours_may_be_the_root)
{
	covered("1 0 0:50 / / rw - fuse.rpcrdmafs srv:/ rw\n"
		"2 1 0:5 / /dev rw - devtmpfs dev rw\n"
		"3 1 0:5 /null /etc/sock rw - devtmpfs dev rw\n",
		"dev;etc/sock;");
}

Test(fs_covers, names_are_as_they_are)
{
	covered("30 1 0:50 / /my\\040mnt rw - fuse.rpcrdmafs srv:/ rw\n"
		"31 30 0:5 / /my\\040mnt/a\\040b\\134c\\011 rw - tmpfs none rw\n"
		"32 30 0:5 / /my\\040mnt/x\\04 rw - tmpfs none rw\n",
		"a b\\c\t;x\\04;");
}

Test(fs_covers, a_line_that_is_no_mount_is_passed_over)
{
	covered("what is this\n31 30\n32 30 0:5\n33 30 0:5 /\n34 30 0 / /mnt/x\n\n" OURS
		"34 30 0:5 / /mnt/d rw - tmpfs none rw",
		"d;");
	covered("30 1 0:50", "");
}

static struct fs_covers covers;
static char path[] = "/tmp/test_fs_covers.XXXXXX";

static void with_file(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	dprintf(fd, "%s",
		OURS "31 30 0:5 / /mnt/sock rw - tmpfs none rw\n"
		     "32 30 0:5 / /mnt/a/b/sock rw - tmpfs none rw\n"
		     "33 30 0:5 / /mnt/a/other rw - tmpfs none rw\n");
	close(fd);
	fs_covers_init(&covers);
	covers.file = path;
}

static void without_file(void)
{
	fs_covers_fini(&covers);
	unlink(path);
}

/* How many have it. */
static unsigned int dirs_of(dev_t dev, const char *name)
{
	unsigned int cnt;
	size_t len;
	char *dirs;

	cr_assert_eq(fs_covers_of(&covers, dev, name, &dirs, &cnt, &len), 0);
	free(dirs);
	return dirs ? cnt : 0;
}

Test(fs_covers, the_directories_that_have_such_a_name, .init = with_file, .fini = without_file)
{
	unsigned int cnt;
	size_t len;
	char *dirs;

	cr_assert_eq(fs_covers_of(&covers, DEV, "sock", &dirs, &cnt, &len), 0);
	cr_assert_not_null(dirs);
	cr_assert_eq(cnt, 2);
	cr_assert_eq(len, 5);
	cr_assert_arr_eq(dirs, "\0a/b", 5);
	free(dirs);
	cr_assert_eq(dirs_of(DEV, "soc"), 0);
	cr_assert_eq(dirs_of(DEV, "b"), 0);
	cr_assert_eq(dirs_of(0, "sock"), 0);
}

Test(fs_covers, something_is_mounted_on_it, .init = with_file, .fini = without_file)
{
	cr_expect(fs_covers_any(&covers, DEV));
	fs_covers_fini(&covers);
	fs_covers_init(&covers);
	covers.file = path;
	cr_expect_not(fs_covers_any(&covers, makedev(0, 51)));
}

Test(fs_covers, where_it_is_not_known_something_may_be, .init = with_file, .fini = without_file)
{
	cr_expect(fs_covers_any(&covers, 0));
	covers.file = "/nowhere/at/all";
	cr_expect(fs_covers_any(&covers, makedev(0, 51)));
}

Test(fs_covers, what_cannot_be_read_leaves_the_list_as_it_was, .init = with_file,
	.fini = without_file)
{
	cr_assert_eq(dirs_of(DEV, "sock"), 2);
	close(covers.fd);
	covers.fd = -1;
	covers.file = "/"; /* opens, and read(2) of it is EISDIR */
	cr_expect_eq(dirs_of(DEV, "sock"), 2);
	cr_expect_eq(covers.fd, -1, "it is opened anew");
}

/* Linked in place of the C library's (meson.build). */
void *__real_realloc(void *p, size_t len);
void *__wrap_realloc(void *p, size_t len);
static int allocations_left = -1;

void *__wrap_realloc(void *p, size_t len)
{
	if (allocations_left == 0)
		return NULL;
	allocations_left -= allocations_left > 0;
	return __real_realloc(p, len);
}

/* With one allocation less each time, down to none: the whole list or an error, never a part. */
Test(fs_covers, without_memory_the_list_stays_as_it_was, .init = with_file, .fini = without_file)
{
	int enough = 0;

	cr_assert_eq(dirs_of(DEV, "sock"), 2);
	do {
		close(covers.fd);
		covers.fd = -1;
		allocations_left = enough++;
		cr_expect_eq(dirs_of(DEV, "sock"), 2);
	} while (covers.fd < 0);
	cr_expect_gt(enough, 5, "the file, one mount, three paths: each failed once");
}

Test(fs_covers, of_this_process_can_be_read)
{
	fs_covers_init(&covers);
	cr_assert_eq(dirs_of(makedev(4095, 1), "none"), 0);
	cr_assert_geq(covers.fd, 0);
	cr_assert_eq(dirs_of(makedev(4095, 1), "none"), 0);
	fs_covers_fini(&covers);
	fs_covers_init(&covers);
	covers.file = "/nowhere/at/all";
	cr_assert_eq(dirs_of(DEV, "none"), 0);
	fs_covers_fini(&covers);
}
