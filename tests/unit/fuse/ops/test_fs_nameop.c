/* SPDX-License-Identifier: BSD-3-Clause */
/* LOOKUP, GETATTR, SETATTR, UNLINK, RENAME, MKDIR, SYMLINK, MKNOD, LINK, READLINK, STATFS, ACCESS.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs_attr.h"
#include "file_rig.h"
#include "fs_inode.h"

static struct nfs4_op_create created;
static char created_target[5000];

static int serve_create(struct nfs4_call *call)
{
	struct nfs4_op_create *o = &call->u.create;
	struct fake_file *f = fake_add("made", 0);

	created = *o;
	if (o->linkdata.len)
		memcpy(created_target, o->linkdata.p, o->linkdata.len);
	f->attr.type = o->type;
	o->fh = (struct nfs4_fh){1, {(uint8_t)(f - rig.fake.files)}};
	o->attr = f->attr;
	return 0;
}

static void set_up(void)
{
	file_set_up(10);
	rig.fake.other = serve_create;
}

TestSuite(fs_nameop, .init = set_up, .fini = rig_down);

static int by_name(uint32_t opcode, const char *name)
{
	return rig_call(&re, opcode, FUSE_ROOT_ID, NULL, 0, name, strlen(name) + 1);
}

static const struct fuse_entry_out *entry(void)
{
	cr_assert_eq(re.len, sizeof(struct fuse_entry_out));
	return (struct fuse_entry_out *)re.body;
}

Test(fs_nameop, a_lookup_gives_the_inode_and_counts_it)
{
	const struct fs_inode *in = rig_inode(ino);
	uint64_t before = in->nlookup;

	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	cr_assert_eq(entry()->nodeid, ino);
	cr_assert_eq(entry()->generation, in->generation);
	cr_assert_eq(entry()->attr.size, 10);
	cr_assert(entry()->attr_valid > 0);
	cr_assert_eq(in->nlookup, before + 1);
}

Test(fs_nameop, what_is_not_there_is_cached_as_absent)
{
	cr_assert_eq(by_name(FUSE_LOOKUP, "none"), 0);
	cr_assert_eq(entry()->nodeid, 0);
	cr_assert(entry()->entry_valid > 0);
	/* Another spelling of it may be made. */
	rig.fake.info.fs.case_insensitive = true;
	cr_assert_eq(by_name(FUSE_LOOKUP, "none"), ENOENT);
}

/* The directory was changed by somebody else, and nobody asks for its attributes. */
Test(fs_nameop, names_are_cached_again_after_a_change)
{
	struct fake_file *root = fake_file_of(&(struct nfs4_fh){1, {0}});

	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	cr_assert(entry()->entry_valid > 0);
	fake_touch(root);
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0); /* sees it */
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	cr_assert(entry()->entry_valid > 0);
	cr_assert_eq(rig.fake.count[FAKE_GETATTR], 0);
}

Test(fs_nameop, too_long_a_name_is_not_asked_for)
{
	char name[300];

	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	cr_assert_eq(by_name(FUSE_LOOKUP, name), ENAMETOOLONG);
	cr_assert_eq(by_name(FUSE_UNLINK, name), ENAMETOOLONG);
	cr_assert_eq(by_name(FUSE_RMDIR, name), ENAMETOOLONG);
	cr_assert_eq(rig.fake.count[FAKE_LOOKUP], 0);
	rig.fake.info.fs.maxname = 100;
	name[101] = '\0';
	cr_assert_eq(by_name(FUSE_LOOKUP, name), ENAMETOOLONG);
	cr_assert(fake_all_free());
}

Test(fs_nameop, errors_are_the_servers)
{
	rig.fake.fail[FAKE_LOOKUP] = EACCES;
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), EACCES);
	rig.fake.fail[FAKE_REMOVE] = ENOTEMPTY;
	cr_assert_eq(by_name(FUSE_RMDIR, "f"), ENOTEMPTY);
	rig.fake.fail[FAKE_OTHER] = EEXIST;
	cr_assert_eq(rig_call(&re, FUSE_MKDIR, FUSE_ROOT_ID, &(struct fuse_mkdir_in){.mode = 0700},
			     sizeof(struct fuse_mkdir_in), "d", 2),
		EEXIST);
}

Test(fs_nameop, getattr_is_answered_from_the_cache_while_it_is_good)
{
	struct fuse_attr_out out;
	unsigned int before;

	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	before = rig.fake.count[FAKE_GETATTR];
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.size, 10);
	cr_assert_eq(rig.fake.count[FAKE_GETATTR], before);
}

/* Which inode a REMOVE takes a link from we do not know: the kernel asks, and so must we. */
Test(fs_nameop, getattr_after_a_name_was_removed_asks_for_the_links)
{
	struct fuse_attr_out out;

	fake_add("g", 0);
	file->attr.nlink = 2;
	fake_touch(file);
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	cr_assert_eq(by_name(FUSE_UNLINK, "g"), 0);
	file->attr.nlink = 1;
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.nlink, 1);
}

Test(fs_nameop, a_stale_inode_is_not_found_again)
{
	struct fuse_attr_out out;

	fs_attr_changed(rig_inode(ino));
	rig.fake.fail[FAKE_GETATTR] = ESTALE;
	cr_assert_eq(rig_getattr(ino, &out), ESTALE);
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	cr_assert_neq(entry()->nodeid, ino);
}

static bool has_no_nodeid(uint32_t opcode)
{
	return opcode == FUSE_INIT || opcode == FUSE_DESTROY || opcode == FUSE_FORGET ||
	       opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT ||
	       opcode == FUSE_NOTIFY_REPLY;
}

/* A handle of what is open tells the inode by itself. */
static bool has_a_handle(uint32_t opcode)
{
	return opcode == FUSE_READ || opcode == FUSE_WRITE || opcode == FUSE_FLUSH ||
	       opcode == FUSE_RELEASE || opcode == FUSE_FSYNC || opcode == FUSE_FALLOCATE ||
	       opcode == FUSE_LSEEK || opcode == FUSE_COPY_FILE_RANGE ||
	       opcode == FUSE_RELEASEDIR || opcode == FUSE_GETLK || opcode == FUSE_SETLK ||
	       opcode == FUSE_SETLKW;
}

/* Forgotten, never given out, or no number of an inode at all. */
Test(fs_nameop, a_request_for_a_nodeid_that_is_none_is_stale)
{
	const fuse_ino_t none[] = {ino, 77, 1 << 20, 1ull << 40, UINT64_MAX};
	char arg[200] = {0};

	fs_inode_forget(rig.fs, ino, 1);
	memset(arg + 150, 'n', 3); /* after the longest argument: a name */
	for (uint32_t opcode = FUSE_LOOKUP; opcode <= FUSE_RENAME2; opcode++) {
		if (has_no_nodeid(opcode) || has_a_handle(opcode) || opcode == FUSE_IOCTL ||
			opcode == FUSE_POLL || opcode == FUSE_BMAP)
			continue;
		for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
			int err = rig_call(&re, opcode, none[i], arg, sizeof(arg), NULL, 0);

			cr_expect(err == ESTALE || err == ENOSYS, "operation %u: %d", opcode, err);
		}
	}
	cr_assert(fake_all_free());
}

Test(fs_nameop, rename_and_link_to_a_nodeid_that_is_none_are_stale)
{
	struct fuse_rename_in to = {.newdir = 77};
	struct fuse_link_in of = {.oldnodeid = 77};

	cr_assert_eq(rig_call(&re, FUSE_RENAME, FUSE_ROOT_ID, &to, sizeof(to), "f\0g", 4), ESTALE);
	cr_assert_eq(rig_call(&re, FUSE_LINK, FUSE_ROOT_ID, &of, sizeof(of), "g", 2), ESTALE);
	cr_assert_eq(rig.fake.count[FAKE_RENAME] + rig.fake.count[FAKE_LINK], 0);
	cr_assert(fake_all_free());
}

static int set_attr(const struct fuse_setattr_in *in)
{
	return rig_call(&re, FUSE_SETATTR, ino, in, sizeof(*in), NULL, 0);
}

Test(fs_nameop, setattr_replies_what_the_server_has_now)
{
	const struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 3};

	cr_assert_eq(set_attr(&in), 0);
	cr_assert_eq(((struct fuse_attr_out *)re.body)->attr.size, 3);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 1);
}

static struct nfs4_sattr asked;

static int note_setattr(struct nfs4_call *call)
{
	asked = call->u.setattr.sattr;
	return 0;
}

Test(fs_nameop, what_a_program_sets_is_set_and_nothing_else)
{
	static const struct {
		uint32_t valid, set;
	} each[] = {{FATTR_MODE, NFS4_ATTR_MODE}, {FATTR_UID, NFS4_ATTR_OWNER},
		{FATTR_GID, NFS4_ATTR_GROUP}, {FATTR_SIZE, NFS4_ATTR_SIZE},
		{FATTR_ATIME, NFS4_ATTR_ATIME}, {FATTR_MTIME, NFS4_ATTR_MTIME},
		{FATTR_ATIME | FATTR_ATIME_NOW, NFS4_ATTR_ATIME},
		{FATTR_UID | FATTR_GID, NFS4_ATTR_OWNER | NFS4_ATTR_GROUP}};
	struct fuse_setattr_in in = {.mode = 0640, .uid = 1001, .gid = 1002, .size = 5};

	rig.fake.refuse_setattr = note_setattr;
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		in.valid = each[i].valid;
		cr_assert_eq(set_attr(&in), 0, "%zu", i);
		cr_assert_eq(asked.set, each[i].set, "%zu: %#lx", i, (unsigned long)asked.set);
		cr_assert_eq(asked.uid, 1001);
		cr_assert_eq(asked.gid, 1002);
		cr_assert_eq(asked.atime_now, i == 6);
		cr_assert_not(asked.mtime_now);
	}
}

/* A server lets the owner do it whatever the mode is. */
Test(fs_nameop, truncate_by_name_asks_for_the_right_to_write)
{
	const struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 3};
	const struct fuse_setattr_in mode = {.valid = FATTR_MODE, .mode = 0600};
	struct fuse_setattr_in by_fh = {.valid = FATTR_SIZE | FATTR_FH, .size = 4};
	struct fuse_open_out of;

	rig.fake.denied = ACCESS4_MODIFY;
	cr_assert_eq(set_attr(&in), EACCES);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 0);
	cr_assert_eq(file->attr.size, 10);
	rig.fake.denied = ACCESS4_READ | ACCESS4_EXECUTE;
	cr_assert_eq(set_attr(&in), 0);
	rig.fake.fail[FAKE_ACCESS] = ESTALE;
	cr_assert_eq(set_attr(&in), ESTALE);
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 3);
	/* Nor where the file is open, or its size stays. */
	rig.fake.denied = ACCESS4_MODIFY;
	ino = rig_ino(file);
	cr_assert_eq(set_attr(&mode), 0);
	cr_assert_eq(rig_open(ino, O_RDWR, &of), 0);
	by_fh.fh = of.fh;
	cr_assert_eq(set_attr(&by_fh), 0);
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 3);
}

Test(fs_nameop, setattr_of_nothing_only_asks)
{
	const struct fuse_setattr_in in = {.valid = FATTR_CTIME};

	cr_assert_eq(set_attr(&in), 0);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 0);
}

static int rename_to(const char *from, const char *to, unsigned int flags)
{
	const struct fuse_rename2_in in = {.newdir = FUSE_ROOT_ID, .flags = flags};
	char names[600];
	size_t a = strlen(from) + 1, b = strlen(to) + 1;

	memcpy(names, from, a);
	memcpy(names + a, to, b);
	return rig_call(&re, FUSE_RENAME2, FUSE_ROOT_ID, &in, sizeof(in), names, a + b);
}

Test(fs_nameop, rename_is_one_call_when_nothing_is_open)
{
	cr_assert_eq(rename_to("f", "g", 0), 0);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 1);
	cr_assert_eq(rig.fake.count[FAKE_LOOKUP], 0);
	cr_assert_eq(strcmp(file->name, "g"), 0);
}

/* The kernel is told no names of it, and there is nothing to be noted. */
Test(fs_nameop, rename_in_a_directory_that_not_all_may_search)
{
	rig.fs->conf.allow_other = true;
	rig.fs->conf.default_permissions = false;
	rig.fs->root->attr.mode = 0700;
	cr_assert_eq(rename_to("f", "g", 0), 0);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 1);
}

Test(fs_nameop, rename_with_flags_is_refused)
{
	cr_assert_eq(rename_to("f", "g", 2), EINVAL);
	cr_assert_eq(rename_to("f", "g", 4), EINVAL);
	cr_assert_eq(rename_to("f", "g", 5), EINVAL);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 0);
	cr_assert(fake_all_free());
}

Test(fs_nameop, rename_over_an_open_file_puts_it_aside)
{
	struct fuse_open_out fo;

	fake_add("new", 1);
	cr_assert_eq(rig_open(ino, O_RDONLY, &fo), 0);
	cr_assert_eq(rename_to("new", "f", 0), 0);
	cr_assert_eq(strncmp(file->name, ".nfs", 4), 0, "%s", file->name);
	cr_assert_not_null(fake_find("f"));
	cr_assert_eq(rig_release(ino, fo.fh), 0);
	rig_settle();
	cr_assert_not(file->used);
	cr_assert(fake_all_free());
}

Test(fs_nameop, rename_onto_another_name_of_the_open_file_leaves_it)
{
	struct fuse_open_out fo;

	cr_assert_eq(rig_open(ino, O_RDONLY, &fo), 0);
	cr_assert_eq(rename_to("f", "f", 0), 0);
	cr_assert_eq(rig.fake.count[FAKE_RENAME], 1);
	cr_assert_eq(strcmp(file->name, "f"), 0);
	cr_assert_eq(rig_release(ino, fo.fh), 0);
}

static const char *below; /* this name is the root of another file system */
static enum nfs4_status rename_status;

static int serve_mounted(struct nfs4_call *call, enum fake_op op)
{
	const struct nfs4_str *name = &call->u.lookup.name;

	if (op == FAKE_RENAME) {
		call->status = rename_status;
		return -EIO;
	}
	call->u.lookup.attr = file->attr;
	call->u.lookup.attr.fsid_major +=
		name->len == strlen(below) && memcmp(name->p, below, name->len) == 0;
	return 0;
}

/* Linux' server has no better error for it than NFS4ERR_IO. */
Test(fs_nameop, rename_of_a_root_of_another_file_system_is_ebusy)
{
	rig.fake.names = serve_mounted;
	rename_status = NFS4ERR_IO;
	below = "f";
	cr_assert_eq(rename_to("f", "g", 0), EBUSY);
	below = "g";
	cr_assert_eq(rename_to("f", "g", 0), EBUSY);
	below = "h";
	cr_assert_eq(rename_to("f", "g", 0), EIO);
	rename_status = NFS4_OK; /* a timeout, a dead session */
	below = "f";
	cr_assert_eq(rename_to("f", "g", 0), EIO);
}

static int serve_refused(struct nfs4_call *call, enum fake_op op)
{
	if (op == FAKE_REMOVE)
		return -EACCES;
	return serve_mounted(call, op);
}

/* Linux' server says NFS4ERR_ACCESS of it, too. */
Test(fs_nameop, rmdir_of_a_root_of_another_file_system_is_ebusy)
{
	rig.fake.names = serve_refused;
	below = "f";
	cr_assert_eq(by_name(FUSE_RMDIR, "f"), EBUSY);
	below = "g";
	cr_assert_eq(by_name(FUSE_RMDIR, "f"), EACCES);
	cr_assert_eq(rig.fake.count[FAKE_REMOVE], 2);
}

Test(fs_nameop, mkdir_sends_mode_and_umask)
{
	const struct fuse_mkdir_in in = {.mode = 01777, .umask = 027};

	cr_assert_eq(rig_call(&re, FUSE_MKDIR, FUSE_ROOT_ID, &in, sizeof(in), "d", 2), 0);
	cr_assert_eq(created.type, NF4DIR);
	cr_assert_eq(created.sattr.mode, 01777);
	cr_assert_eq(created.sattr.umask, 027);
	cr_assert(created.sattr.use_umask);
	cr_assert_neq(entry()->nodeid, 0);
}

Test(fs_nameop, mknod_of_devices)
{
	struct fuse_mknod_in in = {.mode = S_IFCHR | 0600, .rdev = (5 << 8) | 3};

	cr_assert_eq(rig_call(&re, FUSE_MKNOD, FUSE_ROOT_ID, &in, sizeof(in), "c", 2), 0);
	cr_assert_eq(created.type, NF4CHR);
	cr_assert_eq(created.rdev_major, 5);
	cr_assert_eq(created.rdev_minor, 3);
	in = (struct fuse_mknod_in){.mode = S_IFBLK | 0600, .rdev = (8 << 8) | 1};
	cr_assert_eq(rig_call(&re, FUSE_MKNOD, FUSE_ROOT_ID, &in, sizeof(in), "b", 2), 0);
	cr_assert_eq(created.type, NF4BLK);
	cr_assert_eq(created.rdev_major, 8);
	cr_assert_eq(created.rdev_minor, 1);
}

Test(fs_nameop, mknod_of_a_regular_file_opens_and_closes)
{
	const struct fuse_mknod_in in = {.mode = S_IFREG | 0640, .umask = 022};

	cr_assert_eq(rig_call(&re, FUSE_MKNOD, FUSE_ROOT_ID, &in, sizeof(in), "reg", 4), 0);
	cr_assert(rig.fake.last_open.exclusive);
	cr_assert_eq(rig.fake.last_open.sattr.mode, 0640);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 0);
	cr_assert_eq(rig.fake.count[FAKE_CLOSE], 1);
	cr_assert_eq(rig.fake.opens, 0);
	cr_assert(entry()->nodeid != 0 && entry()->attr.size == 0);
	cr_assert(fake_all_free());
}

Test(fs_nameop, mknod_repairs_the_times_the_verifier_was_kept_in)
{
	const struct fuse_mknod_in in = {.mode = S_IFREG | 0640};

	rig.fake.unstamped = true;
	cr_assert_eq(rig_call(&re, FUSE_MKNOD, FUSE_ROOT_ID, &in, sizeof(in), "reg", 4), 0);
	cr_assert_eq(rig.fake.count[FAKE_SETATTR], 1);
	cr_assert_eq(rig.fake.last_sattr.set, NFS4_ATTR_ATIME | NFS4_ATTR_MTIME);
	cr_assert(rig.fake.last_sattr.atime_now && rig.fake.last_sattr.mtime_now);
	cr_assert_eq(rig.fake.opens, 0);
	rig.fake.mode_unset = true;
	cr_assert_eq(rig_call(&re, FUSE_MKNOD, FUSE_ROOT_ID, &in, sizeof(in), "two", 4), 0);
	cr_assert(rig.fake.last_sattr.set & NFS4_ATTR_MODE);
	cr_assert_eq(rig.fake.last_sattr.mode, 0640);
}

static int make_link(size_t len)
{
	char args[4200] = "link";

	memset(args + 5, 't', len);
	args[5 + len] = '\0';
	return rig_call(&re, FUSE_SYMLINK, FUSE_ROOT_ID, NULL, 0, args, 5 + len + 1);
}

Test(fs_nameop, symlinks_of_any_length)
{
	static const size_t lens[] = {1, 512, 513, 4095};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		cr_assert_eq(make_link(lens[i]), 0);
		cr_assert_eq(created.type, NF4LNK);
		cr_assert_eq(created.linkdata.len, lens[i]);
		cr_assert_eq(created_target[lens[i] - 1], 't');
		cr_assert_eq(created.long_buf != NULL, lens[i] > 512);
		rig_settle();
		cr_assert(fake_all_free());
	}
}

static int serve_readlink(struct nfs4_call *call)
{
	static char target[4096];

	memset(target, 't', sizeof(target));
	cr_assert(call->u.readlink.sink.len >= 4096 + 512);
	call->u.readlink.target = (struct nfs4_str){target, 4095};
	return 0;
}

Test(fs_nameop, readlink_of_the_longest_target)
{
	rig.fake.other = serve_readlink;
	cr_assert_eq(rig_call(&re, FUSE_READLINK, ino, NULL, 0, NULL, 0), 0);
	cr_assert_eq(re.len, 4095);
	cr_assert_eq(re.body[4094], 't');
	cr_assert(fake_all_free());
}

static int serve_statfs(struct nfs4_call *call)
{
	struct nfs4_op_statfs *o = &call->u.statfs;

	o->bytes_total = 1000 * 4096;
	o->bytes_free = 500 * 4096 + 5;
	o->bytes_avail = 400 * 4096;
	o->files_total = 77;
	o->files_free = 66;
	o->maxname = 200;
	return 0;
}

Test(fs_nameop, statfs_counts_in_blocks)
{
	const struct fuse_statfs_out *out = (struct fuse_statfs_out *)re.body;

	rig.fake.other = serve_statfs;
	cr_assert_eq(rig_call(&re, FUSE_STATFS, FUSE_ROOT_ID, NULL, 0, NULL, 0), 0);
	cr_assert_eq(out->st.blocks * out->st.frsize, 1000 * 4096);
	cr_assert_eq(out->st.bfree, 500);
	cr_assert_eq(out->st.bavail, 400);
	cr_assert_eq(out->st.files, 77);
	cr_assert_eq(out->st.namelen, 200);
	cr_assert_eq(out->st.bsize, out->st.frsize);
}

static int serve_link(struct nfs4_call *call)
{
	file->attr.nlink++;
	fake_touch(file);
	call->u.link.attr = file->attr;
	return 0;
}

Test(fs_nameop, link_replies_the_same_inode_with_one_link_more)
{
	const struct fuse_link_in in = {.oldnodeid = ino};

	rig.fake.other = serve_link;
	cr_assert_eq(rig_call(&re, FUSE_LINK, FUSE_ROOT_ID, &in, sizeof(in), "g", 2), 0);
	cr_assert_eq(entry()->nodeid, ino);
	cr_assert_eq(entry()->attr.nlink, 2);
}

static bool hardlinks_protected(void)
{
	FILE *f = fopen("/proc/sys/fs/protected_hardlinks", "re");
	int on = f ? fgetc(f) : '0';

	if (f)
		fclose(f);
	return on != '0';
}

static int link_by(uint32_t uid)
{
	const struct fuse_link_in in = {.oldnodeid = ino};

	rig.uid = uid;
	return rig_call(&re, FUSE_LINK, FUSE_ROOT_ID, &in, sizeof(in), "g", 2);
}

/* As long as fs.protected_hardlinks asks for it: his own, and what he may read and write. */
Test(fs_nameop, a_user_links_no_file_of_another_that_he_may_not_read_and_write)
{
	const int refused = hardlinks_protected() ? EPERM : 0;
	static const uint32_t rights[] = {ACCESS4_READ, ACCESS4_MODIFY, ACCESS4_EXTEND};

	rig.fake.other = serve_link;
	file->attr.uid = 1001;
	fake_touch(file);
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		rig.fake.denied = rights[i];
		cr_expect_eq(link_by(1002), refused);
		cr_expect_eq(link_by(1001), 0);
		cr_expect_eq(link_by(0), 0);
	}
	rig.fake.denied = ACCESS4_EXECUTE;
	cr_expect_eq(link_by(1002), 0);
}

Test(fs_nameop, access_tells_what_the_server_grants)
{
	static const struct {
		uint32_t mask, bits;
	} rows[] = {{R_OK, ACCESS4_READ}, {W_OK, ACCESS4_MODIFY}, {W_OK, ACCESS4_EXTEND},
		{X_OK, ACCESS4_EXECUTE}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (uint32_t mask = 0; mask <= (R_OK | W_OK | X_OK); mask++) {
			const struct fuse_access_in in = {.mask = mask};

			rig.fake.denied = rows[i].bits;
			cr_expect_eq(rig_call(&re, FUSE_ACCESS, ino, &in, sizeof(in), NULL, 0),
				mask & rows[i].mask ? EACCES : 0);
		}
	}
}

Test(fs_nameop, access_asks_the_server_each_time)
{
	struct fuse_access_in in = {.mask = R_OK | W_OK};

	cr_assert_eq(rig_call(&re, FUSE_ACCESS, ino, &in, sizeof(in), NULL, 0), 0);
	cr_assert_eq(rig_call(&re, FUSE_ACCESS, ino, &in, sizeof(in), NULL, 0), 0);
	cr_assert_eq(rig.fake.count[FAKE_ACCESS], 2);
	rig.fake.fail[FAKE_ACCESS] = ESTALE;
	cr_assert_eq(rig_call(&re, FUSE_ACCESS, ino, &in, sizeof(in), NULL, 0), ESTALE);
}

Test(fs_nameop, requests_end_when_the_session_is_dead)
{
	rig.fake.dead = -EIO;
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), EIO);
	cr_assert_eq(make_link(600), EIO);
	cr_assert_eq(rename_to("f", "g", 0), EIO);
	cr_assert(fake_all_free());
}

/* ---- names are taken back ---- */

/* The root's mode is another one, as the next GETATTR finds. */
static void chmod_root(uint32_t mode)
{
	rig.fake.files[0].attr.mode = mode;
	fake_touch(&rig.fake.files[0]);
	fs_attr_changed(rig.fs->root);
}

/* Asks for the root's attributes; how many names the kernel was told to ask for again. */
static unsigned int recalled(const char *name)
{
	const struct fuse_getattr_in in = {0};
	unsigned int found = 0;
	bool answered = false;

	rig_send(FUSE_GETATTR, FUSE_ROOT_ID, &in, sizeof(in), NULL, 0);
	while (rig_reply(&re, answered ? 50 : 3000)) {
		const struct fuse_notify_inval_entry_out *out = (const void *)re.body;

		if (re.h.unique != 0) {
			answered = true;
			continue;
		}
		cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_ENTRY);
		cr_assert_eq(out->parent, FUSE_ROOT_ID);
		cr_assert_str_eq((const char *)(out + 1), name);
		cr_assert_eq(out->namelen, strlen(name));
		found++;
	}
	cr_assert(answered);
	return found;
}

Test(fs_nameop, a_name_is_taken_back_when_fewer_may_search)
{
	chmod_root(0755);
	cr_assert_eq(recalled(""), 0);
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	cr_assert_gt(entry()->entry_valid, 0);
	chmod_root(0711);
	cr_assert_eq(recalled(""), 0, "nobody lost anything");
	chmod_root(0700);
	cr_assert_eq(recalled("f"), 1);
	chmod_root(0);
	cr_assert_eq(recalled(""), 0, "it was not told again since");
}

Test(fs_nameop, a_name_that_was_found_before_is_given_no_time_after)
{
	uint64_t unique;

	chmod_root(0755);
	cr_assert_eq(recalled(""), 0);
	rig.fake.hold_ops = 1u << FAKE_LOOKUP;
	unique = rig_send(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "f", 2);
	rig_settle();
	chmod_root(0700);
	cr_assert_eq(recalled(""), 0);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(entry()->nodeid, ino);
	cr_assert_eq(entry()->entry_valid, 0);
	cr_assert_eq(entry()->entry_valid_nsec, 0);
	rig.fake.hold_ops = 0;
	cr_assert_eq(by_name(FUSE_LOOKUP, "f"), 0);
	cr_assert_gt(entry()->entry_valid, 0);
}

Test(fs_nameop, a_new_name_by_rename_is_taken_back_too)
{
	chmod_root(0755);
	cr_assert_eq(recalled(""), 0);
	cr_assert_eq(rename_to("f", "g", 0), 0);
	chmod_root(0700);
	cr_assert_eq(recalled("g"), 1);
}
