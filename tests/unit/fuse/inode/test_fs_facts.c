/* SPDX-License-Identifier: BSD-3-Clause */
/* Two file systems of the server: that of the root, and one below it whose facts differ. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fs_facts.h"
#include "fs_rig.h"

#define KIB 1024u

static struct rig_reply re;
static struct fake_file *here, *vol; /* a file of the root's; one that is in the other */

static void set_up(void)
{
	rig_up(NULL);
	here = fake_add("here", 100);
	vol = fake_add("vol", 100);
	vol->attr.fsid_major = 1;
}

TestSuite(fs_facts, .init = set_up, .fini = rig_down);

static int lookup(const char *name, fuse_ino_t *ret)
{
	int err = rig_call(&re, FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, name, strlen(name) + 1);

	*ret = err ? 0 : ((struct fuse_entry_out *)re.body)->nodeid;
	return err;
}

static const struct nfs4_fs *facts_of(fuse_ino_t ino)
{
	return fs_facts(rig.fs, rig_inode(ino));
}

Test(fs_facts, of_a_file_system_are_asked_for_once_when_it_is_first_met)
{
	fuse_ino_t ino;

	cr_assert_eq(lookup("here", &ino), 0);
	cr_expect_eq(rig.fake.count[FAKE_FACTS], 0);
	cr_expect_eq(facts_of(ino), &rig.fake.info.fs);
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_expect_eq(rig.fake.count[FAKE_FACTS], 1);
	cr_expect_eq(facts_of(ino), &rig.fake.below);
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_expect_eq(rig.fake.count[FAKE_FACTS], 1);
	cr_expect_eq(rig.fake.count[FAKE_LOOKUP], 3);
	cr_expect(fake_all_free());
}

/* Then the server decides: nothing is refused in its name, and the way in is there. */
Test(fs_facts, that_the_server_does_not_tell_are_not_the_roots)
{
	fuse_ino_t ino;

	rig.fake.info.fs.maxfilesize = 10 * KIB;
	rig.fake.fail[FAKE_FACTS] = EACCES;
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_expect_eq(rig.fake.count[FAKE_FACTS], 1);
	cr_expect_eq(facts_of(ino), &rig.fs->unknown);
	cr_expect_eq(facts_of(ino)->maxfilesize, INT64_MAX);
	cr_expect_eq(facts_of(ino)->rsize, RIG_WSIZE);
	/* Of another one than it is. */
	rig.fake.below.fsid_minor = 7;
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_expect_null(rig.fake.learned);
	rig.fake.below.fsid_minor = 0;
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_expect_eq(facts_of(ino), &rig.fake.below);
}

static int fallocate_at(struct fake_file *f, uint64_t off)
{
	struct fuse_fallocate_in in = {.offset = off, .length = 4};
	struct fuse_open_out of;
	fuse_ino_t ino;
	int err;

	cr_assert_eq(lookup(f->name, &ino), 0);
	cr_assert_eq(rig_open(ino, O_WRONLY, &of), 0);
	in.fh = of.fh;
	err = rig_call(&re, FUSE_FALLOCATE, ino, &in, sizeof(in), NULL, 0);
	cr_assert_eq(rig_release(ino, of.fh), 0);
	return err;
}

Test(fs_facts, the_largest_file_is_the_file_systems)
{
	rig.fake.info.minor = 2;
	rig.fake.info.fs.maxfilesize = 10 * KIB;
	rig.fake.below.maxfilesize = 20 * KIB;
	cr_expect_eq(fallocate_at(here, 10 * KIB - 4), 0);
	cr_expect_eq(fallocate_at(here, 10 * KIB), EFBIG);
	cr_expect_eq(fallocate_at(vol, 20 * KIB - 4), 0);
	cr_expect_eq(fallocate_at(vol, 20 * KIB), EFBIG);
}

Test(fs_facts, transfers_are_as_long_as_the_file_system_takes)
{
	uint8_t data[16 * KIB] = {1};
	struct fuse_open_out of;
	fuse_ino_t ino;

	rig.fake.below.wsize = 4 * KIB;
	rig.fake.below.rsize = 8 * KIB;
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_assert_eq(rig_open(ino, O_RDWR | O_DIRECT, &of), 0);
	cr_assert_eq(rig_write(ino, of.fh, 0, data, sizeof(data), O_DIRECT), (int)sizeof(data));
	cr_assert_eq(rig_read(&re, ino, of.fh, 0, sizeof(data)), (int)sizeof(data));
	cr_expect_eq(rig.fake.count[FAKE_READ], 2);
	cr_assert_eq(rig_release(ino, of.fh), 0);
}

static int names(struct nfs4_call *call, enum fake_op op)
{
	cr_assert(op == FAKE_LOOKUP && call->fs == &rig.fake.below);
	return -ENOENT;
}

Test(fs_facts, names_and_their_spelling_are_the_directorys)
{
	char name[20] = "nnnnnnnnnn";
	fuse_ino_t ino;

	vol->attr.type = NF4DIR;
	rig.fake.below.maxname = 9;
	rig.fake.info.fs.case_insensitive = true;
	cr_assert_eq(lookup("vol", &ino), 0);
	rig.fake.names = names; /* calls bear what they are about */
	cr_expect_eq(rig_call(&re, FUSE_LOOKUP, ino, NULL, 0, name, 11), ENAMETOOLONG);
	name[9] = '\0';
	cr_expect_eq(rig_call(&re, FUSE_LOOKUP, ino, NULL, 0, name, 10), 0);
	cr_expect_eq(((struct fuse_entry_out *)re.body)->nodeid, 0);
	rig.fake.names = NULL;
	cr_expect_eq(lookup("none", &ino), ENOENT); /* no entry that the kernel keeps */
}

static int getxattr(fuse_ino_t ino, const char *name)
{
	const struct fuse_getxattr_in in = {.size = 100};

	return rig_call(&re, FUSE_GETXATTR, ino, &in, sizeof(in), name, strlen(name) + 1);
}

static int value_of(struct nfs4_call *call)
{
	call->u.getacl.acl = (const uint8_t *)"\0\0\0";
	call->u.getacl.len = 4;
	return 0;
}

Test(fs_facts, acls_are_where_the_file_system_has_them)
{
	fuse_ino_t ino;

	rig.fake.other = value_of;
	rig.fake.below.supported[0] = 1u << FATTR4_ACL;
	cr_assert_eq(lookup("here", &ino), 0);
	cr_expect_eq(getxattr(ino, "system.nfs4_acl"), EOPNOTSUPP);
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_expect_eq(getxattr(ino, "system.nfs4_acl"), 0);
	cr_expect_eq(rig.fake.count[FAKE_GETACL], 1);
}

static struct fake_file *listed;

static int serve_readdir(struct nfs4_call *call)
{
	struct nfs4_op_readdir *o = &call->u.readdir;
	struct nfs4_dirent de = {
		.cookie = 10,
		.name = {listed->name, (uint32_t)strlen(listed->name)},
		.attr = listed->attr,
		.fh = {1, {(uint8_t)(listed - rig.fake.files)}},
	};

	if (o->cookie == 0)
		o->entry(call, &de);
	o->eof = true;
	return 0;
}

/* Of the only entry. */
static uint64_t listed_nodeid(struct fake_file *f)
{
	const struct fuse_open_out *out = (const struct fuse_open_out *)re.body;
	struct fuse_read_in in = {.size = 4096};
	struct fuse_release_in rel = {0};
	uint64_t nodeid = 0;

	listed = f;
	rig.fake.other = serve_readdir;
	cr_assert_eq(rig_call(&re, FUSE_OPENDIR, FUSE_ROOT_ID, &(struct fuse_open_in){0},
			     sizeof(struct fuse_open_in), NULL, 0),
		0);
	rel.fh = in.fh = out->fh;
	cr_assert_eq(rig_call(&re, FUSE_READDIRPLUS, FUSE_ROOT_ID, &in, sizeof(in), NULL, 0), 0);
	for (size_t off = 0; off + sizeof(struct fuse_direntplus) <= re.len;) {
		const struct fuse_direntplus *d = (const void *)(re.body + off);

		if (d->dirent.namelen == strlen(f->name))
			nodeid = d->entry_out.nodeid;
		off += FUSE_DIRENTPLUS_SIZE(d);
	}
	cr_assert_eq(rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID, &rel, sizeof(rel), NULL, 0), 0);
	return nodeid;
}

Test(fs_facts, lists_give_no_inode_of_what_is_not_known)
{
	fuse_ino_t ino;

	cr_expect_neq(listed_nodeid(here), 0);
	cr_expect_eq(listed_nodeid(vol), 0);
	cr_assert_eq(lookup("vol", &ino), 0);
	cr_expect_eq(listed_nodeid(vol), ino);
}
