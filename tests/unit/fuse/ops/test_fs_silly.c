/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "file_rig.h"

static struct fuse_open_out fh2;

static void set_up(void)
{
	file_set_up(100);
}

TestSuite(fs_silly, .init = set_up, .fini = rig_down);

static int unlink_f(void)
{
	return rig_call(&re, FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
}

Test(fs_silly, a_closed_file_is_removed)
{
	cr_assert_eq(unlink_f(), 0);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 0);
	cr_assert_not(file->used);
}

Test(fs_silly, an_open_file_is_renamed_and_goes_with_its_last_close)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh2), 0);
	cr_assert_eq(unlink_f(), 0);
	cr_assert(file->used);
	cr_assert_eq(strncmp(file->name, ".nfs0000000000000065", 20), 0, "%s", file->name);
	cr_assert_eq(strlen(file->name), 28);
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert(file->used);
	cr_assert_eq(rig_release(ino, fh2.fh), 0);
	rig_settle();
	cr_assert_not(file->used);
	cr_assert(fake_all_free());
}

/* Whoever closes it last may not have been allowed to. */
Test(fs_silly, it_is_removed_by_who_removed_the_name)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	rig.uid = 1005;
	cr_assert_eq(unlink_f(), 0);
	rig.uid = 1000;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_not(file->used);
	cr_assert_eq(rig.fake.last_cred.uid, 1005);
}

/* The OPEN is on its way when the name is removed. */
static uint64_t open_while_unlinked(void)
{
	struct fuse_open_in in = {.flags = O_RDONLY};
	uint64_t unique, open;

	rig.fake.hold_ops = 1u << FAKE_OPEN;
	open = rig_send(FUSE_OPEN, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	unique = rig_send(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	cr_assert(file->used);
	cr_assert_eq(strncmp(file->name, ".nfs", 4), 0, "%s", file->name);
	return open;
}

Test(fs_silly, a_file_that_is_being_opened_is_renamed_too)
{
	uint64_t open = open_while_unlinked();

	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, open);
	cr_assert_eq(re.h.error, 0);
	memcpy(&fh, re.body, sizeof(fh));
	cr_assert_eq(rig_read(&re, ino, fh.fh, 0, 100), 100);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_not(file->used);
	cr_assert(fake_all_free());
}

Test(fs_silly, and_goes_if_it_could_not_be_opened)
{
	open_while_unlinked();
	rig.fake.fail[FAKE_OPEN] = EACCES;
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, -EACCES);
	rig_settle();
	cr_assert_not(file->used);
	cr_assert_eq(rig.fs->sillies, 0);
	cr_assert_eq(rig.fs->files_opening, 0);
	cr_assert(fake_all_free());
}

static unsigned int dir_removals;

/* REMOVE of "d" found the .nfs file that has gone by the time this is heard. */
static int not_empty_once(struct nfs4_call *call, enum fake_op op)
{
	cr_assert_eq(op, FAKE_REMOVE);
	if (call->u.remove.name.len == 1)
		return dir_removals++ == 0 ? -ENOTEMPTY : 0;
	return 0;
}

Test(fs_silly, a_directory_that_was_emptied_meanwhile_is_removed_again)
{
	uint64_t rmdir;

	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(unlink_f(), 0);
	rig.fake.names = not_empty_once;
	rig.fake.hold = true;
	rig_send(FUSE_RELEASE, ino, &(struct fuse_release_in){.fh = fh.fh},
		sizeof(struct fuse_release_in), NULL, 0);
	rig_settle();
	rig.fake.hold = false;
	rig.fake.hold_ops = 1u << FAKE_REMOVE;
	reactor_timer_in(rig.fake.r, &rig.fake.timer, 0);
	cr_assert(rig_reply(&re, 1000));
	rmdir = rig_send(FUSE_RMDIR, FUSE_ROOT_ID, NULL, 0, "d", 2);
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_REMOVE], 2);
	fake_release(); /* the .nfs file's, which was sent first, and then this one */
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, rmdir);
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(dir_removals, 2);
	rig_settle();
	cr_assert(fake_all_free());
}

/* ... and what goes on elsewhere does not keep it from its answer. */
Test(fs_silly, a_directory_with_other_files_is_not_empty)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(unlink_f(), 0);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	dir_removals = 0;
	rig.fake.names = not_empty_once;
	cr_assert_eq(rig_call(&re, FUSE_RMDIR, FUSE_ROOT_ID, NULL, 0, "d", 2), ENOTEMPTY);
	cr_assert_eq(dir_removals, 1);
}

/* REMOVE of "d" finds what is left in it. */
static struct nfs4_fh dir_fh;
static struct fs_inode *dir_left;

static int not_empty_while_left(struct nfs4_call *call, enum fake_op op)
{
	if (op == FAKE_LOOKUP) {
		call->u.lookup.fh = dir_fh;
		return 0;
	}
	cr_assert_eq(op, FAKE_REMOVE);
	dir_removals++;
	return dir_left->sillies > 0 ? -ENOTEMPTY : 0;
}

/* The kernel sends RELEASE when the program has gone on: to RMDIR, as rm -r does. */
Test(fs_silly, a_directory_waits_a_while_for_files_that_are_being_closed)
{
	for (int closed = 0; closed < 2; closed++) {
		uint64_t unique;

		dir_left = rig_inode(rig_ino(fake_add("d", 1)));
		fs_inode_fh(dir_left, &dir_fh);
		dir_left->sillies = 1;
		rig.fs->sillies = 1;
		dir_removals = 0;
		rig.fake.names = not_empty_while_left;
		unique = rig_send(FUSE_RMDIR, FUSE_ROOT_ID, NULL, 0, "d", 2);
		rig_run_for(100 * NSEC_PER_MSEC);
		cr_assert_eq(dir_removals, 1, "it is not asked for meanwhile");
		dir_left->sillies = closed ? 0 : 1;
		cr_assert(rig_reply(&re, 1000));
		cr_assert_eq(re.h.unique, unique);
		cr_assert_eq(re.h.error, closed ? 0 : -ENOTEMPTY);
		cr_assert_eq(dir_removals, 2);
		dir_left->sillies = 0;
		rig.fs->sillies = 0;
		rig.fake.names = NULL;
		rig_settle();
		cr_assert(fake_all_free());
	}
}

Test(fs_silly, closed_while_it_is_renamed_it_is_removed_at_once)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	rig_settle();
	rig.fake.hold = true;
	rig_send(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
	rig_settle();
	fake_release(); /* the LOOKUP, if there is one */
	for (int i = 0; i < 100 && rig.fake.count[FAKE_RENAME] == 0; i++)
		reactor_turn(rig.fake.r, 0);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 1);
	rig.fake.hold = true;
	rig_send(FUSE_RELEASE, ino, &(struct fuse_release_in){.fh = fh.fh},
		sizeof(struct fuse_release_in), NULL, 0);
	rig_settle();
	/* CLOSE is answered before RENAME. */
	struct list *rename = list_pop_front(&rig.fake.pending);

	list_push_back(&rig.fake.pending, rename);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert(rig_reply(&re, 1000));
	rig_settle();
	cr_assert_eq(rig.fake.count[FAKE_REMOVE], 1);
	cr_assert_not(file->used);
	cr_assert(fake_all_free());
}

Test(fs_silly, a_rename_that_fails_is_the_unlinks_answer)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	rig.fake.fail[FAKE_RENAME] = EACCES;
	cr_assert_eq(unlink_f(), EACCES);
	cr_assert_eq(strcmp(file->name, "f"), 0);
}

Test(fs_silly, and_that_of_a_rename_over_it)
{
	const struct fuse_rename_in in = {.newdir = FUSE_ROOT_ID};
	struct fake_file *other = fake_add("g", 10);

	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	rig.fake.fail[FAKE_RENAME] = EACCES;
	cr_assert_eq(rig_call(&re, FUSE_RENAME, FUSE_ROOT_ID, &in, sizeof(in), "g\0f", 4), EACCES);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 1, "the target's own");
	cr_assert_eq(strcmp(file->name, "f"), 0);
	cr_assert_eq(strcmp(other->name, "g"), 0);
}

/* ---- the links that a stat shows ---- */

/* The kernel may be told of stale pages first. */
static uint32_t links(void)
{
	const struct fuse_getattr_in in = {0};
	uint64_t unique = rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
	struct fuse_attr_out out;

	do
		cr_assert(rig_reply(&re, 1000));
	while (re.h.unique == 0);
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	memcpy(&out, re.body, sizeof(out));
	return out.attr.nlink;
}

Test(fs_silly, an_unlinked_file_has_no_links)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(links(), 1);
	cr_assert_eq(unlink_f(), 0);
	cr_assert_eq(links(), 0);
	cr_assert_eq(links(), 0, "from the cache");
	fake_touch(file);
	rig_run_for(100 * NSEC_PER_SEC);
	cr_assert_eq(links(), 0, "another client wrote it");
	cr_assert_eq(rig_release(ino, fh.fh), 0);
}

/* Which the server says after .nfs went. */
static int one_link_less(struct nfs4_call *call, enum fake_op op)
{
	cr_assert_eq(op, FAKE_REMOVE);
	file->attr.nlink--;
	fake_touch(file);
	return 0;
}

Test(fs_silly, an_unlinked_file_has_its_other_links)
{
	file->attr.nlink = 3;
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(unlink_f(), 0);
	cr_assert_eq(links(), 2);
	rig.fake.names = one_link_less;
	rig.fake.hold_ops = 1u << FAKE_REMOVE;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(links(), 2, "while .nfs is being removed");
	fake_release();
	rig_settle();
	cr_assert_eq(file->attr.nlink, 2);
	cr_assert_eq(links(), 2);
	rig_run_for(120 * NSEC_PER_SEC);
	cr_assert_eq(links(), 2, "by the server, asked again");
	cr_assert(fake_all_free());
}

static int refuse_names(struct nfs4_call *call, enum fake_op op)
{
	return op == FAKE_REMOVE ? -EACCES : 0;
}

/* It is in the directory then, for everybody to see. */
Test(fs_silly, a_name_that_could_not_be_removed_is_a_link)
{
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(unlink_f(), 0);
	rig.fake.names = refuse_names;
	cr_assert_eq(rig_release(ino, fh.fh), 0);
	rig_settle();
	cr_assert_eq(links(), 1);
}

/* As /proc/self/fd lets a program do it, or another name. */
static int make_link(struct nfs4_call *call)
{
	file->attr.nlink++;
	fake_touch(file);
	call->u.link.attr = file->attr;
	return 0;
}

Test(fs_silly, a_link_that_is_made_of_an_unlinked_file_counts)
{
	struct {
		struct fuse_link_in in;
		char name[2];
	} arg = {.in.oldnodeid = ino, .name = "g"};
	struct fuse_entry_out out;

	rig.uid = 0; /* whose file it is does not matter here */
	cr_assert_eq(rig_open(ino, O_RDONLY, &fh), 0);
	cr_assert_eq(unlink_f(), 0);
	rig.fake.other = make_link;
	cr_assert_eq(rig_call(&re, FUSE_LINK, FUSE_ROOT_ID, &arg.in, sizeof(arg.in), arg.name,
			     sizeof(arg.name)),
		0);
	memcpy(&out, re.body, sizeof(out));
	cr_assert_eq(out.nodeid, ino);
	cr_assert_eq(out.attr.nlink, 1);
	cr_assert_eq(links(), 1);
	cr_assert_eq(rig_release(ino, fh.fh), 0);
}
