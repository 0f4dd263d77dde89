/* SPDX-License-Identifier: BSD-3-Clause */
/* Special files of a mount of several users: the owner is 1000, 2000 may do what a test says. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file_rig.h"
#include "fs_inode.h"

#define OWNER 1000
#define OTHER 2000
#define WRITE (ACCESS4_MODIFY | ACCESS4_EXTEND)
#define ALL   (ACCESS4_READ | WRITE)

static uint32_t denied_others;

static uint32_t denies(const struct nfs4_call *call)
{
	return call->cred->uid == OWNER ? 0 : denied_others;
}

/* LINK and CREATE of a socket. */
static int makes(struct nfs4_call *call)
{
	if (call->state == FAKE_LINK) {
		call->u.link.attr = file->attr;
		return 0;
	}
	file = fake_add("made", 0);
	file->attr.type = call->u.create.type;
	call->u.create.fh = (struct nfs4_fh){1, {(uint8_t)(file - rig.fake.files)}};
	call->u.create.attr = file->attr;
	return 0;
}

static void set_up(void)
{
	file_set_up(0);
	rig.fs->conf.allow_other = true;
	rig.fake.denies = denies;
	rig.fake.other = makes;
	denied_others = ALL;
	fs_inode_forget(rig.fs, ino, 1);
	file->attr.type = NF4SOCK;
	file->attr.mode = 0700;
	file->attr.uid = OWNER;
	file->attr.rdev_major = 1;
	file->attr.rdev_minor = 3;
}

TestSuite(fs_special, .init = set_up, .fini = rig_down);

static struct fuse_entry_out e;

static int lookup_in(uint32_t uid, fuse_ino_t dir, const char *name)
{
	int err;

	rig.uid = uid;
	err = rig_call(&re, FUSE_LOOKUP, dir, NULL, 0, name, strlen(name) + 1);
	if (!err)
		memcpy(&e, re.body, sizeof(e));
	return err;
}

/* The nodeid by which the user finds it. */
static uint64_t seen_by(uint32_t uid)
{
	cr_assert_eq(lookup_in(uid, FUSE_ROOT_ID, "f"), 0);
	return e.nodeid;
}

static bool is_shadow(uint64_t nodeid)
{
	return nodeid & FS_INO_SHADOW;
}

Test(fs_special, who_may_not_use_it_gets_another_inode)
{
	static const struct {
		enum nfs4_ftype type;
		uint32_t denied;
		bool shadow;
	} cases[] = {
		{NF4SOCK, 0, false},
		{NF4SOCK, ACCESS4_READ, false},
		{NF4SOCK, WRITE, true},
		{NF4SOCK, ACCESS4_MODIFY, true},
		{NF4SOCK, ACCESS4_EXTEND, true},
		{NF4SOCK, ALL, true},
		{NF4CHR, ACCESS4_READ, false},
		{NF4CHR, WRITE, true},
		{NF4BLK, ACCESS4_READ, false},
		{NF4BLK, WRITE, true},
		{NF4FIFO, ACCESS4_READ, false},
		{NF4FIFO, WRITE, false},
		{NF4FIFO, ALL, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t own, other;

		file->attr.type = cases[i].type;
		denied_others = cases[i].denied;
		own = seen_by(OWNER);
		cr_expect_not(is_shadow(own));
		other = seen_by(OTHER);
		cr_expect_eq(is_shadow(other), cases[i].shadow, "case %zu", i);
		cr_expect_eq(other & ~FS_INO_SHADOW, own, "case %zu", i);
	}
}

Test(fs_special, all_that_a_stat_shows_is_the_same_but_the_number_of_a_device)
{
	struct fuse_entry_out own;
	struct fuse_attr_out attr;

	file->attr.type = NF4CHR;
	seen_by(OWNER);
	own = e;
	seen_by(OTHER);
	cr_assert_eq(own.attr.rdev, makedev(1, 3));
	cr_assert_eq(e.attr.rdev, 0);
	cr_assert_eq(rig_getattr(own.nodeid, &attr), 0);
	cr_assert_eq(attr.attr.rdev, makedev(1, 3));
	cr_assert_eq(rig_getattr(e.nodeid, &attr), 0);
	cr_assert_eq(attr.attr.rdev, 0);
	own.attr.rdev = 0;
	cr_assert_eq(memcmp(&own.attr, &e.attr, sizeof(e.attr)), 0);
	cr_assert_eq(memcmp(&attr.attr, &e.attr, sizeof(e.attr)), 0);
	cr_assert_eq(own.generation, e.generation);
}

/* Else the next user would walk the name to what the last one was told. */
Test(fs_special, each_walk_asks_as_its_user)
{
	for (int i = 0; i < 3; i++) {
		cr_assert_not(is_shadow(seen_by(OWNER)));
		cr_assert_eq(e.entry_valid + e.entry_valid_nsec, 0);
		cr_assert_eq(e.attr_valid + e.attr_valid_nsec, 0);
		cr_assert(is_shadow(seen_by(OTHER)));
		cr_assert_eq(e.entry_valid + e.entry_valid_nsec, 0);
		cr_assert_eq(e.attr_valid + e.attr_valid_nsec, 0);
	}
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 6);
	cr_assert_eq(rig.stats.shadows, 3);
}

Test(fs_special, regular_files_cost_what_they_did)
{
	file->attr.type = NF4REG;
	cr_assert_not(is_shadow(seen_by(OTHER)));
	cr_assert_gt(e.entry_valid, 0);
	cr_assert_gt(e.attr_valid, 0);
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 0);
}

Test(fs_special, is_one_inode_where_the_kernel_judges_or_nobody_else_comes)
{
	rig.fs->conf.default_permissions = true;
	cr_assert_not(is_shadow(seen_by(OTHER)));
	cr_assert_gt(e.attr_valid, 0);
	rig.fs->conf.default_permissions = false;
	rig.fs->conf.allow_other = false;
	cr_assert_not(is_shadow(seen_by(OTHER)));
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 0);
}

Test(fs_special, of_a_mount_that_was_handed_over_is_always_guarded)
{
	rig.fs->conf.allow_other = false;
	rig.fs->mount_fd = fs_mountfd_of("/dev/fd/7");
	cr_assert(is_shadow(seen_by(OTHER)));
}

Test(fs_special, what_the_server_cannot_tell_is_no_right)
{
	rig.fake.unknown = ALL;
	cr_assert(is_shadow(seen_by(OWNER)));
	file->attr.type = NF4FIFO;
	cr_assert(is_shadow(seen_by(OWNER)));
	rig.fake.unknown = ACCESS4_EXTEND;
	cr_assert_not(is_shadow(seen_by(OWNER)));
}

Test(fs_special, an_access_that_fails)
{
	rig.fake.fail[FAKE_ACCESS] = EACCES;
	cr_assert(is_shadow(seen_by(OWNER)));
	rig.fake.fail[FAKE_ACCESS] = ESTALE;
	cr_assert_eq(lookup_in(OWNER, FUSE_ROOT_ID, "f"), ESTALE);
	rig.fake.fail[FAKE_ACCESS] = EIO;
	cr_assert_eq(lookup_in(OWNER, FUSE_ROOT_ID, "f"), EIO);
	cr_assert_not(is_shadow(seen_by(OWNER)));
	cr_assert(fake_all_free());
}

/* LOOKUP tells attributes, and the ACCESS behind it. */
Test(fs_special, attributes_are_those_of_the_later_answer)
{
	uint64_t unique;

	rig.fake.hold_ops = 1u << FAKE_ACCESS;
	rig.uid = OWNER;
	unique = rig_send(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "f", 2);
	rig_settle();
	file->attr.mode = 0600;
	fake_touch(file);
	fake_release();
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	memcpy(&e, re.body, sizeof(e));
	cr_assert_eq(e.attr.mode & 07777, 0600, "%o", e.attr.mode);
}

Test(fs_special, two_users_walk_at_once)
{
	uint64_t asked[4];
	const uint32_t uids[4] = {OWNER, OTHER, OTHER, OWNER};

	rig.fake.hold = true;
	for (int i = 0; i < 4; i++) {
		rig.uid = uids[i];
		asked[i] = rig_send(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "f", 2);
		rig_settle();
	}
	fake_release();
	for (int i = 0; i < 4; i++) {
		int whose = 0;

		cr_assert(rig_reply(&re, 3000));
		while (whose < 4 && asked[whose] != re.h.unique)
			whose++;
		cr_assert_lt(whose, 4);
		memcpy(&e, re.body, sizeof(e));
		cr_assert_eq(is_shadow(e.nodeid), uids[whose] == OTHER);
	}
}

Test(fs_special, chmod_through_either_is_seen_through_both)
{
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0600};
	uint64_t own = seen_by(OWNER), other = seen_by(OTHER);
	struct fuse_attr_out attr;

	rig.uid = OWNER;
	file->attr.mode = 0600;
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, other, &in, sizeof(in), NULL, 0), 0);
	cr_assert_eq(rig.fake.last_sattr.mode, 0600);
	cr_assert_eq(rig_getattr(own, &attr), 0);
	cr_assert_eq(attr.attr.mode & 07777, 0600);
	file->attr.mode = in.mode = 0640;
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, own, &in, sizeof(in), NULL, 0), 0);
	cr_assert_eq(rig_getattr(other, &attr), 0);
	cr_assert_eq(attr.attr.mode & 07777, 0640);
	cr_assert_eq(attr.attr_valid, 0);
}

Test(fs_special, a_right_that_is_given_counts_for_the_next_walk)
{
	uint64_t own = seen_by(OWNER);

	cr_assert(is_shadow(seen_by(OTHER)));
	denied_others = 0;
	cr_assert_eq(seen_by(OTHER), own);
	denied_others = ALL;
	cr_assert(is_shadow(seen_by(OTHER)));
}

Test(fs_special, a_link_to_either_is_that_one)
{
	uint64_t nodeids[2] = {seen_by(OWNER), seen_by(OTHER)};

	for (int i = 0; i < 2; i++) {
		const struct fuse_link_in in = {.oldnodeid = nodeids[i]};

		rig.uid = OWNER;
		cr_assert_eq(rig_call(&re, FUSE_LINK, FUSE_ROOT_ID, &in, sizeof(in), "g", 2), 0);
		memcpy(&e, re.body, sizeof(e));
		cr_assert_eq(e.nodeid, nodeids[i]);
		cr_assert_eq(e.entry_valid + e.attr_valid, 0);
	}
}

Test(fs_special, unlink_and_rename_are_of_the_name)
{
	const struct fuse_rename_in in = {.newdir = FUSE_ROOT_ID};

	seen_by(OWNER);
	seen_by(OTHER);
	cr_assert_eq(rig_call(&re, FUSE_RENAME, FUSE_ROOT_ID, &in, sizeof(in), "f\0g", 4), 0);
	cr_assert_eq(lookup_in(OTHER, FUSE_ROOT_ID, "g"), 0);
	cr_assert(is_shadow(e.nodeid));
	cr_assert_eq(lookup_in(OWNER, FUSE_ROOT_ID, "g"), 0);
	cr_assert_not(is_shadow(e.nodeid));
	cr_assert_eq(rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "g", 2), 0);
	cr_assert_not(file->used);
}

/* A program binds the socket that it makes, whatever mode that has. */
Test(fs_special, who_makes_it_has_it)
{
	const struct fuse_mknod_in in = {.mode = S_IFSOCK | 0600, .umask = 0777};

	rig.uid = OTHER;
	cr_assert_eq(rig_call(&re, FUSE_MKNOD, FUSE_ROOT_ID, &in, sizeof(in), "made", 5), 0);
	memcpy(&e, re.body, sizeof(e));
	cr_assert_not(is_shadow(e.nodeid));
	cr_assert_eq(e.entry_valid + e.attr_valid, 0);
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 0);
}

Test(fs_special, lookups_of_both_are_counted_together)
{
	const struct fuse_forget_in two = {.nlookup = 2}, one = {.nlookup = 1};
	uint64_t own = seen_by(OWNER), other = seen_by(OTHER);
	struct fuse_attr_out attr;

	seen_by(OTHER);
	rig_send(FUSE_FORGET, other, &two, sizeof(two), NULL, 0);
	rig_settle();
	cr_assert_eq(rig_getattr(own, &attr), 0);
	rig_send(FUSE_FORGET, own, &one, sizeof(one), NULL, 0);
	rig_settle();
	cr_assert_eq(fs_inode_count(rig.fs), 1);
	cr_assert_eq(rig_getattr(other, &attr), ESTALE);
}

/* ---- what something is mounted on ---- */

static char path[] = "/tmp/test_fs_special.XXXXXX";

/* The mount of ours, and of something on each of these. */
static void mounted_on(const char *first, const char *second)
{
	FILE *f = fdopen(mkstemp(path), "w");

	cr_assert_not_null(f);
	fprintf(f, "30 1 0:50 / /mnt rw - fuse.rpcrdmafs srv:/ rw\n");
	fprintf(f, "31 30 0:5 /null /mnt/%s rw - devtmpfs dev rw\n", first);
	if (second)
		fprintf(f, "32 30 0:5 /null /mnt/%s rw - devtmpfs dev rw\n", second);
	fclose(f);
	rig.fs->covers.file = path;
	rig.fs->dev = makedev(0, 50);
}

static fuse_ino_t add_dir(const char *name)
{
	struct fake_file *d = fake_add(name, 0);

	d->attr.type = NF4DIR;
	d->attr.mode = 0755;
	return rig_ino(d);
}

static void remove_file(void)
{
	unlink(path);
}

Test(fs_special, with_something_mounted_on_it_stays_what_it_was, .fini = remove_file)
{
	uint64_t own = seen_by(OWNER);

	mounted_on("f", NULL);
	cr_assert_eq(seen_by(OTHER), own);
	cr_assert_eq(seen_by(OWNER), own);
	cr_assert_eq(rig.fake.count[FAKE_LOOKUP], 3, "the root is known");
}

/* Root is nobody to this server, and mounted it. */
Test(fs_special, with_something_mounted_on_its_shadow_stays_that, .fini = remove_file)
{
	uint64_t other;

	seen_by(OWNER);
	other = seen_by(OTHER);
	mounted_on("f", NULL);
	cr_assert_eq(seen_by(OWNER), other);
	cr_assert_eq(seen_by(OTHER), other);
}

Test(fs_special, by_another_name_or_in_another_directory_is_guarded, .fini = remove_file)
{
	fuse_ino_t d = add_dir("d"), x = add_dir("x");
	uint64_t own = seen_by(OWNER);

	mounted_on("g", "d/x/f");
	cr_assert(is_shadow(seen_by(OTHER)), "d/x/f is not f");
	cr_assert_eq(rig.fake.count[FAKE_LOOKUP], 4);
	cr_assert_eq(lookup_in(OTHER, d, "f"), 0);
	cr_assert(is_shadow(e.nodeid), "nor is d/f");
	cr_assert_eq(lookup_in(OTHER, x, "f"), 0);
	cr_assert_eq(e.nodeid, own);
	cr_assert_eq(seen_by(OWNER), own);
	cr_assert(fake_all_free());
}

Test(fs_special, a_way_that_the_user_may_not_go_is_not_his, .fini = remove_file)
{
	seen_by(OWNER);
	mounted_on("gone/f", "f");
	cr_assert_not(is_shadow(seen_by(OTHER)), "the second one is");
}
