/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode bits and owners: who may change them, what clears and what hands them on. */
#include "compat.h"

#include <grp.h>
#include <sys/xattr.h>

static void each_bit(void)
{
	put("f", "");
	for (int bit = 0; bit < 12; bit++)
		NEED(chmod("f", 1u << bit));
	tell(chmod("f", 07777));
	say_mode("f");
	say_mode(on_server("f"));
	NEED(mkdir("d", 0777));
	tell(chmod("d", 07777));
	say_mode("d");
}

static void change_mode(void)
{
	tell(chmod("f", 0600));
	tell(fchmod((int)NEED(open("f", O_RDONLY)), 0640));
	say_mode("f");
}

static void by_owner(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(ALICE, TEAM, change_mode);
}

static void by_other(void)
{
	put_as("f", ALICE, TEAM, 0666);
	as(BOB, CREW, change_mode);
}

static void set_sgid(void)
{
	tell(chmod("f", 02755));
	say_mode("f");
	tell(chmod("f", 04755));
	say_mode("f");
	tell(chmod("f", 01755));
	say_mode("f");
}

static void sgid_foreign_group(void)
{
	put_as("f", ALICE, CREW, 0755);
	as(ALICE, TEAM, set_sgid);
}

static void sgid_own_group(void)
{
	put_as("f", ALICE, TEAM, 0755);
	as(ALICE, TEAM, set_sgid);
}

static void special_files(void)
{
	put("f", "");
	NEED(symlink("f", "l"));
	tell(chmod("l", 0600));
	say_mode("f");
	tell(fchmodat(AT_FDCWD, "l", 0640, AT_SYMLINK_NOFOLLOW));
	tell(chmod("none", 0600));
	tell(chmod("f/none", 0600));
}

/* ---- suid and sgid are cleared ---- */

static void do_write(void)
{
	int fd = (int)NEED(open("f", O_WRONLY));

	NEED(write(fd, "more", 4));
	NEED(close(fd));
	say_mode("f");
}

static void cleared_by_write(void)
{
	put_as("f", ALICE, TEAM, 06777);
	as(BOB, CREW, do_write);
	NEED(chmod("f", 02767));
	as(BOB, CREW, do_write);
	say_mode(on_server("f"));
}

static void cleared_by_own_write(void)
{
	put_as("f", ALICE, TEAM, 06777);
	as(ALICE, TEAM, do_write);
}

static void kept_by_root(void)
{
	put_as("f", ALICE, TEAM, 06777);
	do_write();
}

static void do_truncate(void)
{
	NEED(truncate("f", 1));
	say_mode("f");
}

static void cleared_by_truncate(void)
{
	put_as("f", ALICE, TEAM, 06777);
	as(BOB, CREW, do_truncate);
	NEED(chmod("f", 06777));
	do_truncate();
}

static void do_trunc_open(void)
{
	NEED(close((int)NEED(open("f", O_WRONLY | O_TRUNC))));
	say_mode("f");
}

static void cleared_by_trunc_open(void)
{
	put_as("f", ALICE, TEAM, 06777);
	as(BOB, CREW, do_trunc_open);
}

static void do_fallocate(void)
{
	tell(fallocate((int)NEED(open("f", O_WRONLY)), 0, 0, 4096));
	say_mode("f");
}

static void cleared_by_fallocate(void)
{
	put_as("f", ALICE, TEAM, 06777);
	as(BOB, CREW, do_fallocate);
}

static void do_direct(void)
{
	count(write((int)NEED(open("f", O_WRONLY | O_DIRECT)), "more", 4));
	say_mode("f");
}

static void cleared_by_direct(void)
{
	put_as("f", ALICE, TEAM, 06777);
	as(BOB, CREW, do_direct);
}

static void do_copy(void)
{
	int in = (int)NEED(open("in", O_RDONLY));

	count(copy_file_range(in, NULL, (int)NEED(open("f", O_WRONLY)), NULL, 100, 0));
	say_mode("f");
}

static void cleared_by_copy(void)
{
	put_as("in", ALICE, TEAM, 0666);
	put_as("f", ALICE, TEAM, 06777);
	as(BOB, CREW, do_copy);
}

static void do_chown(void)
{
	tell(chown("f", (uid_t)-1, CREW));
	say_mode("f");
}

static void two_groups(void)
{
	gid_t groups[] = {TEAM, CREW};

	NEED(setgroups(2, groups));
	NEED(setresgid(TEAM, TEAM, TEAM));
	NEED(setresuid(ALICE, ALICE, ALICE));
	do_chown();
}

static void cleared_by_chown(void)
{
	put_as("f", ALICE, TEAM, 06777);
	apart(two_groups);
	NEED(chmod("f", 06777));
	do_chown();
	NEED(chmod("f", 06767));
	do_chown();
	NEED(mkdir("d", 0777));
	NEED(chmod("d", 06777));
	tell(chown("d", BOB, CREW));
	say_mode("d");
}

const struct topic topic_mode = {.name = "mode",
	.probes = (const struct probe[]){
		{"chmod: each bit, 07777, on the server, of a directory", each_bit},
		{"chmod and fchmod by the owner", by_owner},
		{"chmod and fchmod by another user", by_other},
		{"sgid, suid, sticky by an owner who is in the group", sgid_own_group},
		{"sgid, suid, sticky by an owner who is not in the group", sgid_foreign_group},
		{"chmod through a symlink, of a symlink, no such name, below a file",
			special_files},
		{"06777, 02767 after a write by another user", cleared_by_write},
		{"06777 after a write by the owner", cleared_by_own_write},
		{"06777 after a write by root", kept_by_root},
		{"06777 after truncate by another user, by root", cleared_by_truncate},
		{"06777 after O_TRUNC by another user", cleared_by_trunc_open},
		{"06777 after an O_DIRECT write by another user", cleared_by_direct},
		{"06777 after fallocate by another user", cleared_by_fallocate},
		{"06777 after copy_file_range by another user", cleared_by_copy},
		{"06777 after chown by the owner, by root; 06767; of a directory",
			cleared_by_chown},
		{0}}};

/* ---- owners ---- */

static void say_owner(const char *name)
{
	struct stat st;

	NEED(lstat(name, &st));
	say("%u:%u", st.st_uid, st.st_gid);
}

static void change_owner(void)
{
	tell(chown("f", BOB, (gid_t)-1));
	tell(chown("f", (uid_t)-1, CREW));
	tell(chown("f", (uid_t)-1, TEAM));
	tell(chown("f", ALICE, TEAM));
	tell(chown("f", (uid_t)-1, (gid_t)-1));
}

static void chown_owner(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(ALICE, TEAM, change_owner);
	say_owner("f");
}

static void chown_other(void)
{
	put_as("f", ALICE, TEAM, 0666);
	as(BOB, CREW, change_owner);
	say_owner("f");
}

static void chown_root(void)
{
	put("f", "");
	change_owner();
	say_owner("f");
	tell(chown("f", 4000000000u, 4000000001u));
	say_owner("f");
	say_owner(on_server("f"));
}

static void chown_links(void)
{
	put("f", "");
	NEED(symlink("f", "l"));
	tell(lchown("l", ALICE, TEAM));
	say_owner("l");
	say_owner("f");
	tell(chown("l", BOB, CREW));
	say_owner("f");
	tell(fchown((int)NEED(open("f", O_RDONLY)), CAROL, CREW));
	say_owner("f");
}

static void make_three(void)
{
	put("d/f", "");
	NEED(mkdir("d/d", 0755));
	NEED(symlink("f", "d/l"));
}

static void new_owner(void)
{
	NEED(mkdir("d", 0777));
	NEED(chmod("d", 0777));
	as(ALICE, TEAM, make_three);
	say_owner("d/f");
	say_owner("d/d");
	say_owner("d/l");
}

static void sgid_directory(void)
{
	NEED(mkdir("d", 0777));
	NEED(chown("d", BOB, CREW));
	NEED(chmod("d", 02777));
	as(ALICE, TEAM, make_three);
	say_owner("d/f");
	say_owner("d/d");
	say_mode("d/d");
	say_mode("d/f");
}

static void make_sgid(void)
{
	NEED(close((int)NEED(open("d/f", O_CREAT | O_WRONLY, 02777))));
	say_mode("d/f");
	NEED(mkdir("d/e", 0700));
	say_mode("d/e");
}

static void sgid_directory_sgid_file(void)
{
	NEED(mkdir("d", 0777));
	NEED(chown("d", BOB, CREW));
	NEED(chmod("d", 02777));
	as(ALICE, TEAM, make_sgid);
}

static void make_with_umask(void)
{
	umask(077);
	NEED(close((int)NEED(open("d/f", O_CREAT | O_WRONLY, 0666))));
	NEED(mkdir("d/d", 0777));
	NEED(mkfifo("d/p", 0666));
	say_mode("d/f");
	say_mode("d/d");
	say_mode("d/p");
	umask(0);
	NEED(close((int)NEED(open("d/g", O_CREAT | O_WRONLY, 0666))));
	say_mode("d/g");
}

static void with_umask(void)
{
	NEED(mkdir("d", 0777));
	NEED(chmod("d", 0777));
	as(ALICE, TEAM, make_with_umask);
}

/* user::rwx group::rwx mask::rwx other::r-x, group 2002 rwx, as setfacl -d sets it. */
static void default_acl(const char *dir)
{
	static const uint8_t acl[] = {2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 4, 0, 7, 0, 255,
		255, 255, 255, 8, 0, 7, 0, 0xd2, 0x07, 0, 0, 16, 0, 7, 0, 255, 255, 255, 255, 32, 0,
		5, 0, 255, 255, 255, 255};

	NEED(setxattr(on_server(dir), "system.posix_acl_default", acl, sizeof(acl), 0));
}

/* With a default ACL the umask has no effect: RFC 8275, mode_umask, of NFSv4.2. */
static void with_default_acl(void)
{
	NEED(mkdir("d", 0777));
	NEED(chmod("d", 0777));
	default_acl("d");
	as(ALICE, TEAM, make_with_umask);
}

const struct topic topic_owner = {.name = "owner",
	.probes = (const struct probe[]){
		{"by the owner: to another, to another group, to the own group, both, neither",
			chown_owner},
		{"by another user: to oneself, to a group, to the same, neither", chown_other},
		{"by root; large numbers", chown_root},
		{"lchown, chown through a symlink, fchown of O_RDONLY", chown_links},
		{"of what a user makes: a file, a directory, a symlink", new_owner},
		{"in a directory with sgid: a file, a directory; their modes", sgid_directory},
		{"in a directory with sgid: a file of mode 02777, a directory of 0700",
			sgid_directory_sgid_file},
		{"umask 077: a file, a directory, a fifo; umask 0", with_umask},
		{"umask 077 under a default ACL: a file, a directory, a fifo; umask 0",
			with_default_acl},
		{0}}};
