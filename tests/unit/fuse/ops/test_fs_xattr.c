/* SPDX-License-Identifier: BSD-3-Clause */
/* GETXATTR, SETXATTR, LISTXATTR, REMOVEXATTR: user.* and system.nfs4_acl. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "file_rig.h"

#define VALUE_MAX 65536u

/* what the server has and was asked */
static uint8_t value[VALUE_MAX + 4];
static uint32_t value_len;
static bool no_acl;
static struct nfs4_op_setxattr set;
static uint8_t set_value[VALUE_MAX];
static char set_name[256];
static uint32_t sink_len;
static const char *const *names; /* NULL at the end */
static unsigned int names_once;  /* so many in one reply; 0: all */

static void note_name(const struct nfs4_str *s)
{
	cr_assert(s->len < sizeof(set_name));
	memcpy(set_name, s->p, s->len);
	set_name[s->len] = '\0';
}

static void note_value(const void *p, uint32_t len, struct rpcrdma_buf *long_buf)
{
	set.len = len;
	set.long_buf = long_buf;
	if (len)
		memcpy(set_value, p, len);
	fake_touch(file);
}

static void list_names(struct nfs4_call *call)
{
	struct nfs4_op_listxattrs *o = &call->u.listxattrs;
	unsigned int i = (unsigned int)o->cookie, given = 0;

	for (; names[i] && (!names_once || given < names_once); i++, given++) {
		const struct nfs4_str s = {names[i], (uint32_t)strlen(names[i])};

		if (!o->name(call, &s))
			break;
	}
	o->cookie_out = i;
	o->eof = !names[i];
}

static int serve(struct nfs4_call *call)
{
	switch ((int)call->state) {
	case FAKE_GETXATTR:
		note_name(&call->u.getxattr.name);
		sink_len = call->u.getxattr.sink.len;
		call->u.getxattr.value = value;
		call->u.getxattr.len = value_len;
		return 0;
	case FAKE_SETXATTR:
		set = call->u.setxattr;
		note_name(&set.name);
		note_value(set.value, set.len, set.long_buf);
		call->u.setxattr.attr = file->attr;
		return 0;
	case FAKE_REMOVEXATTR:
		note_name(&call->u.removexattr.name);
		fake_touch(file);
		call->u.removexattr.attr = file->attr;
		return 0;
	case FAKE_LISTXATTRS:
		list_names(call);
		return 0;
	case FAKE_GETACL:
		sink_len = call->u.getacl.sink.len;
		call->u.getacl.acl = no_acl ? NULL : value;
		call->u.getacl.len = no_acl ? 0 : value_len;
		return 0;
	case FAKE_SETACL:
		file->attr.mode = 0600;
		note_value(call->u.setacl.acl, call->u.setacl.len, call->u.setacl.long_buf);
		call->u.setacl.attr = file->attr;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static void supports(uint32_t minor, bool xattr, bool acl)
{
	rig.fake.info.minor = minor;
	rig.fake.info.fs.supported[0] = acl ? 1u << FATTR4_ACL : 0;
	rig.fake.info.fs.supported[2] = xattr ? 1u << (FATTR4_XATTR_SUPPORT - 64) : 0;
}

static void set_up(void)
{
	file_set_up(10);
	rig.fake.other = serve;
	supports(2, true, true);
	no_acl = false;
	names_once = 0;
	memset(set_name, 0, sizeof(set_name));
	for (uint32_t i = 0; i < sizeof(value); i++)
		value[i] = (uint8_t)(i * 13 + i / 256);
}

static void tear_down(void)
{
	rig_settle();
	cr_expect(fake_all_free());
	rig_down();
}

TestSuite(fs_xattr, .init = set_up, .fini = tear_down);

static int get(const char *name, uint32_t size)
{
	const struct fuse_getxattr_in in = {.size = size};

	return rig_call(&re, FUSE_GETXATTR, ino, &in, sizeof(in), name, strlen(name) + 1);
}

static int list(uint32_t size)
{
	const struct fuse_getxattr_in in = {.size = size};

	return rig_call(&re, FUSE_LISTXATTR, ino, &in, sizeof(in), NULL, 0);
}

static uint64_t send_set(const char *name, const void *p, uint32_t len, uint32_t flags)
{
	static char args[256 + 16 + VALUE_MAX + 16];
	const struct fuse_setxattr_in in = {.size = len, .flags = flags};
	size_t name_len = strlen(name) + 1;

	memcpy(args, name, name_len);
	if (len)
		memcpy(args + name_len, p, len);
	return rig_send(
		FUSE_SETXATTR, ino, &in, FUSE_COMPAT_SETXATTR_IN_SIZE, args, name_len + len);
}

static int set_attr(const char *name, const void *p, uint32_t len, uint32_t flags)
{
	uint64_t unique = send_set(name, p, len, flags);

	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	return -re.h.error;
}

static int remove_attr(const char *name)
{
	return rig_call(&re, FUSE_REMOVEXATTR, ino, NULL, 0, name, strlen(name) + 1);
}

static uint32_t told_len(void)
{
	cr_assert_eq(re.len, sizeof(struct fuse_getxattr_out));
	return ((struct fuse_getxattr_out *)re.body)->size;
}

Test(fs_xattr, get_gives_the_value_its_length_or_erange)
{
	value_len = 100;
	cr_assert_eq(get("user.colour", 100), 0);
	cr_assert_str_eq(set_name, "colour");
	cr_assert_eq(re.len, 100);
	cr_assert_eq(memcmp(re.body, value, 100), 0);
	cr_assert_eq(rig.fake.last_cred.uid, 1000);
	cr_assert_eq(get("user.colour", 0), 0);
	cr_assert_eq(told_len(), 100);
	cr_assert_eq(get("user.colour", 99), ERANGE);
	value_len = 0;
	cr_assert_eq(get("user.colour", 10), 0);
	cr_assert_eq(re.len, 0);
	rig.fake.fail[FAKE_GETXATTR] = ENODATA;
	cr_assert_eq(get("user.none", 10), ENODATA);
}

Test(fs_xattr, the_longest_value_has_room_and_a_longer_one_is_e2big)
{
	value_len = VALUE_MAX;
	cr_assert_eq(get("user.big", VALUE_MAX), 0);
	cr_assert_geq(sink_len, VALUE_MAX + 512);
	cr_assert_eq(re.len, VALUE_MAX);
	cr_assert_eq(memcmp(re.body, value, VALUE_MAX), 0);
	value_len = VALUE_MAX + 4;
	cr_assert_eq(get("user.big", 0), E2BIG);
	cr_assert_eq(get("user.big", VALUE_MAX), E2BIG);
}

Test(fs_xattr, names_of_other_kinds_never_reach_the_server)
{
	static const char *const others[] = {"security.capability", "security.selinux",
		"trusted.overlay.opaque", "system.posix_acl_access", "system.posix_acl_default",
		"system.nfs4_dacl", "system.nfs4_aclx", "user", "users.x", "USER.x", "x"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		cr_expect_eq(get(others[i], 100), EOPNOTSUPP, "%s", others[i]);
		cr_expect_eq(set_attr(others[i], "v", 1, 0), EOPNOTSUPP, "%s", others[i]);
		cr_expect_eq(remove_attr(others[i]), EOPNOTSUPP, "%s", others[i]);
	}
	cr_assert_eq(get("user.", 100), EINVAL);
	cr_assert_eq(set_attr("user.", "v", 1, 0), EINVAL);
	for (int i = FAKE_GETXATTR; i <= FAKE_SETACL; i++)
		cr_expect_eq(rig.fake.count[i], 0);
}

Test(fs_xattr, without_the_servers_support_there_are_none)
{
	static const struct {
		uint32_t minor;
		bool xattr;
	} rows[] = {{1, true}, {2, false}};

	for (size_t i = 0; i < 2; i++) {
		supports(rows[i].minor, rows[i].xattr, false);
		cr_expect_eq(get("user.a", 1), EOPNOTSUPP);
		cr_expect_eq(set_attr("user.a", "v", 1, 0), EOPNOTSUPP);
		cr_expect_eq(remove_attr("user.a"), EOPNOTSUPP);
		cr_expect_eq(get("system.nfs4_acl", 1), EOPNOTSUPP);
		cr_expect_eq(set_attr("system.nfs4_acl", "\0\0\0\0", 4, 0), EOPNOTSUPP);
		cr_expect_eq(list(100), 0);
		cr_expect_eq(re.len, 0);
	}
}

static void expect_refused(int get_err, int set_err)
{
	cr_expect_eq(get("user.a", 1), get_err);
	cr_expect_eq(set_attr("user.a", "v", 1, 0), set_err);
	cr_expect_eq(remove_attr("user.a"), set_err);
}

/* As from the kernel's client, which asks for the right first; on the error path only. */
Test(fs_xattr, where_there_are_none_who_has_no_right_hears_that)
{
	supports(1, false, true);
	rig.fake.denied = ACCESS4_MODIFY;
	expect_refused(EOPNOTSUPP, EACCES);
	rig.fake.denied = ACCESS4_READ;
	expect_refused(EACCES, EOPNOTSUPP);
	cr_expect_eq(get("user.", 1), EACCES);
	cr_expect_eq(get("none.a", 1), EACCES);
	cr_expect_eq(set_attr("user.", "v", 1, 0), EINVAL);
	rig.fake.denied = UINT32_MAX;
	cr_expect_eq(set_attr("user.", "v", 1, 0), EACCES);
	cr_expect_eq(get("trusted.a", 1), EOPNOTSUPP);
	cr_expect_eq(get("security.a", 1), EOPNOTSUPP);
	cr_expect_eq(get("security.", 1), EINVAL);
	cr_expect_eq(get("system.a", 1), EOPNOTSUPP);
	rig.fake.fail[FAKE_ACCESS] = ESTALE;
	cr_expect_eq(set_attr("user.a", "v", 1, 0), ESTALE);
}

Test(fs_xattr, in_a_read_only_export_who_has_no_right_hears_that)
{
	rig.fake.denied = ACCESS4_MODIFY | ACCESS4_EXTEND;
	cr_expect_eq(set_attr("user.a", "v", 1, 0), 0);
	cr_expect_eq(rig.fake.count[FAKE_ACCESS], 0, "not asked where all is well");
	rig.fake.fail[FAKE_SETXATTR] = EROFS;
	cr_expect_eq(set_attr("user.a", "v", 1, 0), EACCES);
	rig.fake.fail[FAKE_REMOVEXATTR] = EROFS;
	cr_expect_eq(remove_attr("user.a"), EACCES);
	rig.fake.denied = 0;
	rig.fake.fail[FAKE_SETXATTR] = EROFS;
	cr_expect_eq(set_attr("user.a", value, 1000, 0), EROFS);
	rig.fake.denied = UINT32_MAX;
	rig.fake.fail[FAKE_SETACL] = EROFS;
	cr_expect_eq(set_attr("system.nfs4_acl", "\0\0\0\0", 4, 0), EROFS);
}

/* A sticky directory: its owner and root; not what `none.` would be. */
Test(fs_xattr, in_a_sticky_directory_only_the_owner_sets_them)
{
	file->attr.type = NF4DIR;
	file->attr.mode = 01777;
	file->attr.uid = 1001;
	fake_touch(file);
	ino = rig_ino(file);
	supports(1, false, true);
	rig.uid = 1002;
	expect_refused(EOPNOTSUPP, EPERM);
	cr_expect_eq(set_attr("none.a", "v", 1, 0), EOPNOTSUPP);
	rig.fake.denied = UINT32_MAX;
	expect_refused(EACCES, EPERM);
	rig.uid = 1001;
	expect_refused(EACCES, EACCES);
	rig.fake.denied = 0;
	expect_refused(EOPNOTSUPP, EOPNOTSUPP);
	rig.uid = 0;
	expect_refused(EOPNOTSUPP, EOPNOTSUPP);
	supports(2, true, true);
	rig.uid = 1002;
	rig.fake.fail[FAKE_SETXATTR] = EROFS;
	cr_expect_eq(set_attr("user.a", "v", 1, 0), EPERM);
	file->attr.mode = 0777;
	rig.fake.fail[FAKE_SETXATTR] = EROFS;
	cr_expect_eq(set_attr("user.a", "v", 1, 0), EROFS);
}

Test(fs_xattr, names_have_255_bytes_at_most)
{
	char name[300];

	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[255] = '\0';
	value_len = 1;
	cr_assert_eq(get(name, 1), 0);
	cr_assert_eq(strlen(set_name), 250);
	cr_assert_eq(set_attr(name, "v", 1, 0), 0);
	name[255] = 'n';
	name[256] = '\0';
	cr_assert_eq(get(name, 1), ERANGE);
	cr_assert_eq(set_attr(name, "v", 1, 0), ERANGE);
	cr_assert_eq(remove_attr(name), ERANGE);
}

Test(fs_xattr, set_sends_value_and_option)
{
	static const struct {
		uint32_t flags;
		enum nfs4_setxattr_option option;
	} rows[] = {{0, SETXATTR4_EITHER}, {XATTR_CREATE, SETXATTR4_CREATE},
		{XATTR_REPLACE, SETXATTR4_REPLACE}};

	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(set_attr("user.a", "abc", 3, rows[i].flags), 0);
		cr_assert_eq(set.option, rows[i].option);
		cr_assert_eq(set.len, 3);
		cr_assert_eq(memcmp(set_value, "abc", 3), 0);
		cr_assert_null(set.long_buf);
	}
	cr_assert_eq(set_attr("user.a", "", 0, 0), 0);
	cr_assert_eq(set.len, 0);
	cr_assert_eq(set_attr("user.a", "abc", 3, XATTR_CREATE | XATTR_REPLACE), EINVAL);
	rig.fake.fail[FAKE_SETXATTR] = EEXIST;
	cr_assert_eq(set_attr("user.a", "abc", 3, XATTR_CREATE), EEXIST);
	/* Longer than the data buffers of this mount. */
	rig.fake.fail[FAKE_SETXATTR] = EMSGSIZE;
	cr_assert_eq(set_attr("user.a", "abc", 3, 0), E2BIG);
}

Test(fs_xattr, a_long_value_is_sent_from_a_data_buffer)
{
	cr_assert_eq(set_attr("user.a", value, 512, 0), 0);
	cr_assert_null(set.long_buf);
	cr_assert_eq(set_attr("user.a", value, 60000, 0), 0);
	cr_assert_not_null(set.long_buf);
	cr_assert_eq(set.len, 60000);
	cr_assert_eq(memcmp(set_value, value, 60000), 0);
}

static void expect_new_attributes(uint64_t ctime_before)
{
	struct fuse_attr_out out;

	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.ctime, (uint64_t)file->attr.ctime.tv_sec);
	cr_assert_gt(out.attr.ctime, ctime_before);
}

Test(fs_xattr, set_and_remove_change_the_attributes)
{
	struct fuse_attr_out out;

	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(set_attr("user.a", "v", 1, 0), 0);
	expect_new_attributes(out.attr.ctime);
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(remove_attr("user.a"), 0);
	cr_assert_str_eq(set_name, "a");
	expect_new_attributes(out.attr.ctime);
	rig.fake.fail[FAKE_REMOVEXATTR] = ENODATA;
	cr_assert_eq(remove_attr("user.a"), ENODATA);
}

static const char *const some[] = {"a", "bb", "ccc", "dddd", NULL};
static const char some_listed[] = "system.nfs4_acl\0user.a\0user.bb\0user.ccc\0user.dddd";

static void expect_some(void)
{
	cr_assert_eq(re.len, sizeof(some_listed));
	cr_assert_eq(memcmp(re.body, some_listed, sizeof(some_listed)), 0);
}

Test(fs_xattr, list_gives_the_names_their_length_or_erange)
{
	names = some;
	cr_assert_eq(list(1000), 0);
	expect_some();
	cr_assert_eq(list(sizeof(some_listed)), 0);
	cr_assert_eq(list(0), 0);
	cr_assert_eq(told_len(), sizeof(some_listed));
	cr_assert_eq(list(sizeof(some_listed) - 1), ERANGE);
	rig.fake.fail[FAKE_LISTXATTRS] = EREMOTEIO;
	cr_assert_eq(list(1000), EREMOTEIO);
	/* Who may not read the file: that it has an ACL is known without asking. */
	rig.fake.fail[FAKE_LISTXATTRS] = EACCES;
	cr_assert_eq(list(1000), 0);
	cr_assert_eq(re.len, sizeof("system.nfs4_acl"));
}

Test(fs_xattr, list_goes_on_where_the_server_stopped)
{
	names = some;
	names_once = 1;
	cr_assert_eq(list(1000), 0);
	expect_some();
	cr_assert_eq(rig.fake.count[FAKE_LISTXATTRS], 4);
}

Test(fs_xattr, where_one_file_has_none_the_acl_is_listed)
{
	rig.fake.fail[FAKE_LISTXATTRS] = EOPNOTSUPP;
	cr_assert_eq(list(1000), 0);
	cr_assert_eq(re.len, sizeof("system.nfs4_acl"));
	supports(1, false, true);
	cr_assert_eq(list(1000), 0);
	cr_assert_str_eq((char *)re.body, "system.nfs4_acl");
	supports(2, true, false);
	names = some + 4;
	cr_assert_eq(list(1000), 0);
	cr_assert_eq(re.len, 0);
}

Test(fs_xattr, more_names_than_linux_can_list)
{
	static char long_names[300][251];
	static const char *many[301];

	for (int i = 0; i < 300; i++) {
		memset(long_names[i], 'n', 250);
		many[i] = long_names[i];
	}
	names = many;
	cr_assert_eq(list(0), E2BIG);
	cr_assert_eq(list(65536), E2BIG);
	names_once = 100;
	cr_assert_eq(list(65536), E2BIG);
	/* 255 bytes and the NUL each; the ACL's name takes one place. */
	many[255] = NULL;
	names_once = 0;
	cr_assert_eq(list(65536), 0);
	cr_assert_eq(re.len, 255 * 256 + sizeof("system.nfs4_acl"));
}

Test(fs_xattr, the_acl_goes_as_it_is)
{
	value_len = 8000;
	cr_assert_eq(get("system.nfs4_acl", 0), 0);
	cr_assert_eq(told_len(), 8000);
	cr_assert_eq(get("system.nfs4_acl", 9000), 0);
	cr_assert_eq(re.len, 8000);
	cr_assert_eq(memcmp(re.body, value, 8000), 0);
	cr_assert_geq(sink_len, VALUE_MAX + 512);
	cr_assert_eq(get("system.nfs4_acl", 7999), ERANGE);
	no_acl = true;
	cr_assert_eq(get("system.nfs4_acl", 9000), EOPNOTSUPP);
	cr_assert_eq(rig.fake.count[FAKE_GETXATTR], 0);
}

/* The mode changes with it: the kernel is told before the request ends. */
static void set_acl(uint32_t len)
{
	uint64_t unique = send_set("system.nfs4_acl", value, len, XATTR_REPLACE);

	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, 0);
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert_lt(((struct fuse_notify_inval_inode_out *)re.body)->off, 0);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(set.len, len);
	cr_assert_eq(memcmp(set_value, value, len), 0);
}

Test(fs_xattr, an_acl_that_is_set_takes_the_names_of_a_directory_back)
{
	bool answered = false, inode = false, name = false;
	struct fuse_attr_out out;

	ino = FUSE_ROOT_ID;
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(rig_call(&re, FUSE_LOOKUP, ino, NULL, 0, "f", 2), 0);
	cr_assert_gt(((struct fuse_entry_out *)re.body)->entry_valid, 0);
	send_set("system.nfs4_acl", "\0\0\0\0", 4, XATTR_REPLACE);
	for (int i = 0; i < 3; i++) {
		const struct fuse_notify_inval_entry_out *e = (const void *)re.body;

		cr_assert(rig_reply(&re, 3000));
		answered |= re.h.unique != 0 && re.h.error == 0;
		inode |= re.h.unique == 0 && re.h.error == FUSE_NOTIFY_INVAL_INODE;
		name |= re.h.unique == 0 && re.h.error == FUSE_NOTIFY_INVAL_ENTRY &&
			e->parent == FUSE_ROOT_ID && strcmp((const char *)(e + 1), "f") == 0;
	}
	cr_assert(answered && inode && name);
}

Test(fs_xattr, an_acl_that_is_set_changes_the_mode)
{
	struct fuse_attr_out out;

	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.mode & 07777, 0644);
	memset(value, 0, 4); /* no ACE */
	set_acl(4);
	cr_assert_null(set.long_buf);
	cr_assert_eq(rig_getattr(ino, &out), 0);
	cr_assert_eq(out.attr.mode & 07777, 0600);
	set_acl(20000);
	cr_assert_not_null(set.long_buf);
	rig.fake.fail[FAKE_SETACL] = EPERM;
	cr_assert_eq(set_attr("system.nfs4_acl", value, 4, 0), EPERM);
}

Test(fs_xattr, what_is_no_acl_is_refused)
{
	cr_assert_eq(set_attr("system.nfs4_acl", value, 0, 0), EINVAL);
	cr_assert_eq(set_attr("system.nfs4_acl", "\0\0\0\0\0\0", 6, 0), EINVAL);
	/* It counts more than there are: as a server says it, that need not be asked. */
	cr_assert_eq(set_attr("system.nfs4_acl", "abc", 3, 0), EFBIG);
	cr_assert_eq(set_attr("system.nfs4_acl", "\xff\xff\xff\xff", 4, 0), EFBIG);
	cr_assert_eq(set_attr("system.nfs4_acl",
			     "\0\0\0\2"
			     "16 bytes and less",
			     20, 0),
		EFBIG);
	cr_assert_eq(remove_attr("system.nfs4_acl"), EINVAL);
	cr_assert_eq(rig.fake.count[FAKE_SETACL], 0);
}

Test(fs_xattr, requests_end_when_the_session_is_dead)
{
	rig.fake.dead = -EIO;
	cr_assert_eq(get("user.a", 10), EIO);
	cr_assert_eq(set_attr("user.a", value, 10, 0), EIO);
	cr_assert_eq(set_attr("user.a", value, 1000, 0), EIO);
	cr_assert_eq(list(10), EIO);
	cr_assert_eq(remove_attr("user.a"), EIO);
}

Test(fs_xattr, they_wait_for_a_buffer_and_a_call)
{
	uint64_t unique;

	value_len = 5;
	rig.fake.calls_max = 0;
	unique = send_set("user.a", value, 1000, 0);
	cr_assert_not(rig_reply(&re, 50));
	rig.fake.calls_max = 8;
	fs_lane_unblocked(rig.lane);
	cr_assert(rig_reply(&re, 3000));
	cr_assert_eq(re.h.unique, unique);
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(set.len, 1000);
	cr_assert_eq(memcmp(set_value, value, 1000), 0);
}
