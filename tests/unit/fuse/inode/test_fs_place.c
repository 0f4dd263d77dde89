/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file_rig.h"

static struct fake_file *made;

static fuse_ino_t look_up(const char *name)
{
	struct fuse_entry_out out;

	cr_assert_eq(rig_call(&re, FUSE_LOOKUP, FUSE_ROOT_ID, name, strlen(name) + 1, NULL, 0), 0);
	memcpy(&out, re.body, sizeof(out));
	return out.nodeid;
}

static fuse_ino_t make_dir(const char *name)
{
	made = fake_add(name, 0);
	made->attr.type = NF4DIR;
	made->attr.mode = 0755;
	made->attr.nlink = 2;
	return look_up(name);
}

static uint64_t open_dir(fuse_ino_t dir)
{
	cr_assert_eq(rig_call(&re, FUSE_OPENDIR, dir, &(struct fuse_open_in){0},
			     sizeof(struct fuse_open_in), NULL, 0),
		0);
	return ((struct fuse_open_out *)re.body)->fh;
}

static void close_dir(fuse_ino_t dir, uint64_t dh)
{
	cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, dir, &(struct fuse_release_in){.fh = dh},
			     sizeof(struct fuse_release_in), NULL, 0),
		0);
}

static int remove_dir(const char *name)
{
	return rig_call(&re, FUSE_RMDIR, FUSE_ROOT_ID, name, strlen(name) + 1, NULL, 0);
}

static int move(const char *from, const char *to)
{
	const struct fuse_rename_in in = {.newdir = FUSE_ROOT_ID};
	char names[64];
	size_t len = strlen(from) + 1;

	memcpy(names, from, len);
	memcpy(names + len, to, strlen(to) + 1);
	return rig_call(
		&re, FUSE_RENAME, FUSE_ROOT_ID, &in, sizeof(in), names, len + strlen(to) + 1);
}

static int stat_stale(fuse_ino_t dir, struct fuse_attr_out *out)
{
	rig.fake.fail[FAKE_GETATTR] = ESTALE;
	return rig_getattr(dir, out);
}

static void set_up(void)
{
	file_set_up(100);
}

TestSuite(fs_place, .init = set_up, .fini = rig_down);

Test(fs_place, a_directory_removed_while_open_has_no_links)
{
	fuse_ino_t dir = make_dir("d");
	uint64_t dh = open_dir(dir);
	struct fuse_attr_out out;

	cr_assert_eq(remove_dir("d"), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(stat_stale(dir, &out), 0);
		cr_assert_eq(rig.fake.fail[FAKE_GETATTR], 0, "the server is asked");
		cr_assert_eq(out.attr.nlink, 0);
		cr_assert_eq(out.attr.mode, S_IFDIR | 0755);
		cr_assert_eq(out.attr_valid, 0);
		cr_assert_eq(out.attr_valid_nsec, 0);
	}
	rig.fake.fail[FAKE_ACCESS] = ESTALE;
	cr_assert_eq(rig_call(&re, FUSE_OPENDIR, dir, &(struct fuse_open_in){0},
			     sizeof(struct fuse_open_in), NULL, 0),
		ESTALE);
	close_dir(dir, dh);
}

/* The server may know it for a while; what it says is better. */
Test(fs_place, what_the_server_says_comes_first)
{
	fuse_ino_t dir = make_dir("d");
	uint64_t dh = open_dir(dir);
	struct fuse_attr_out out;

	cr_assert_eq(remove_dir("d"), 0);
	made->attr.nlink = 0;
	made->attr.mode = 0700;
	cr_assert_eq(rig_getattr(dir, &out), 0);
	cr_assert_eq(out.attr.nlink, 0);
	cr_assert_eq(out.attr.mode, S_IFDIR | 0700);
	close_dir(dir, dh);
}

Test(fs_place, a_directory_replaced_while_open_has_no_links)
{
	fuse_ino_t dir = make_dir("d"), other = make_dir("e");
	uint64_t dh = open_dir(dir), eh = open_dir(other);
	struct fuse_attr_out out;

	cr_assert_eq(move("e", "d"), 0);
	cr_assert_eq(stat_stale(dir, &out), 0);
	cr_assert_eq(out.attr.nlink, 0);
	cr_assert_eq(stat_stale(other, &out), ESTALE, "it is there, as far as we know");
	close_dir(dir, dh);
	close_dir(other, eh);
}

Test(fs_place, a_directory_is_known_where_it_was_moved)
{
	fuse_ino_t dir = make_dir("d"), other = make_dir("e");
	uint64_t dh = open_dir(dir), eh = open_dir(other);
	struct fuse_attr_out out;

	cr_assert_eq(move("d", "g"), 0);
	cr_assert_eq(remove_dir("g"), 0);
	cr_assert_eq(stat_stale(other, &out), ESTALE);
	cr_assert_eq(stat_stale(dir, &out), 0);
	cr_assert_eq(out.attr.nlink, 0);
	close_dir(dir, dh);
	close_dir(other, eh);
}

Test(fs_place, a_directory_that_was_moved_before_it_was_opened_is_found)
{
	fuse_ino_t dir = make_dir("d");
	struct fuse_attr_out out;
	uint64_t dh;

	cr_assert_eq(move("d", "g"), 0);
	dh = open_dir(dir);
	cr_assert_eq(remove_dir("g"), 0);
	cr_assert_eq(stat_stale(dir, &out), 0);
	cr_assert_eq(out.attr.nlink, 0);
	close_dir(dir, dh);
}

/* stat(2) of a path looks its name up again then. */
Test(fs_place, a_directory_that_others_removed_is_stale)
{
	fuse_ino_t dir = make_dir("d");
	uint64_t dh = open_dir(dir);
	struct fuse_attr_out out;

	make_dir("e");
	cr_assert_eq(remove_dir("e"), 0);
	rig_run_for(100 * NSEC_PER_SEC);
	cr_assert_eq(stat_stale(dir, &out), ESTALE);
	close_dir(dir, dh);
}

Test(fs_place, a_directory_that_could_not_be_removed_is_not)
{
	fuse_ino_t dir = make_dir("d");
	uint64_t dh = open_dir(dir);
	struct fuse_attr_out out;

	rig.fake.fail[FAKE_REMOVE] = ENOTEMPTY;
	cr_assert_eq(remove_dir("d"), ENOTEMPTY);
	rig_run_for(100 * NSEC_PER_SEC);
	cr_assert_eq(stat_stale(dir, &out), ESTALE);
	close_dir(dir, dh);
}
