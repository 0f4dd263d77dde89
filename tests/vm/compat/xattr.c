/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended attributes and ACLs. */
#include "compat.h"

#include <sys/xattr.h>

static char large[XATTR_SIZE_MAX + 2];

static void set_get(void)
{
	char buf[16] = "";

	put("f", "");
	tell(setxattr("f", "user.a", "value", 5, 0));
	count(getxattr("f", "user.a", buf, sizeof(buf)));
	say("%s", buf);
	count(getxattr("f", "user.a", NULL, 0));
	count(getxattr("f", "user.a", buf, 3));
	count(getxattr("f", "user.none", buf, 3));
	count(getxattr("none", "user.none", buf, 3));
}

static void flags(void)
{
	put("f", "");
	tell(setxattr("f", "user.a", "1", 1, XATTR_REPLACE));
	tell(setxattr("f", "user.a", "1", 1, XATTR_CREATE));
	tell(setxattr("f", "user.a", "2", 1, XATTR_CREATE));
	tell(setxattr("f", "user.a", "3", 1, XATTR_REPLACE));
	tell(setxattr("f", "user.a", "4", 1, XATTR_CREATE | XATTR_REPLACE));
	tell(setxattr("f", "user.a", "5", 1, 4));
}

/* A file with user.a, if there is such a thing here. */
static bool made(mode_t mode)
{
	put_as("f", ALICE, TEAM, mode);
	if (setxattr("f", "user.a", "1", 1, 0) == 0)
		return true;
	tell(-1);
	return false;
}

static void removal(void)
{
	if (!made(0666))
		return;
	tell(removexattr("f", "user.a"));
	tell(removexattr("f", "user.a"));
	tell(removexattr("f", "trusted.a"));
	tell(removexattr("f", "security.a"));
}

static void listing(void)
{
	char names[256];
	ssize_t n;

	if (!made(0666))
		return;
	NEED(setxattr("f", "user.bb", "1", 1, 0));
	n = count(listxattr("f", names, sizeof(names)));
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
		say("%s", names + i);
	count(listxattr("f", NULL, 0));
	count(listxattr("f", names, 3));
}

static void sizes(void)
{
	put("f", "");
	tell(setxattr("f", "user.empty", "", 0, 0));
	count(getxattr("f", "user.empty", large, sizeof(large)));
	tell(setxattr("f", "user.large", large, XATTR_SIZE_MAX, 0));
	count(getxattr("f", "user.large", large, XATTR_SIZE_MAX));
	tell(setxattr("f", "user.large", large, XATTR_SIZE_MAX + 1, 0));
	tell(setxattr("f", "user.medium", large, 3000, 0));
	count(getxattr("f", "user.medium", large, sizeof(large)));
}

static void names(void)
{
	char name[300] = "user.";

	put("f", "");
	memset(name + 5, 'n', 290);
	name[255] = '\0';
	tell(setxattr("f", name, "1", 1, 0));
	name[255] = 'n';
	name[256] = '\0';
	tell(setxattr("f", name, "1", 1, 0));
	tell(setxattr("f", "user.", "1", 1, 0));
	tell(setxattr("f", "", "1", 1, 0));
	tell(setxattr("f", "none.a", "1", 1, 0));
	tell(setxattr("f", "user.\xff\x01", "1", 1, 0));
}

static void namespaces(void)
{
	static const char *const others[] = {"trusted.a", "security.a", "security.capability",
		"security.selinux", "system.posix_acl_access", "system.posix_acl_default",
		"system.other"};
	char buf[64];

	put("f", "");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		tell(setxattr("f", others[i], "1", 1, 0));
		count(getxattr("f", others[i], buf, sizeof(buf)));
	}
}

static void kinds(void)
{
	NEED(mkdir("d", 0777));
	NEED(symlink("d", "l"));
	NEED(mkfifo("p", 0666));
	tell(setxattr("d", "user.a", "1", 1, 0));
	tell(lsetxattr("l", "user.a", "1", 1, 0));
	tell(setxattr("p", "user.a", "1", 1, 0));
	count(lgetxattr("l", "user.a", NULL, 0));
	count(getxattr("p", "user.a", NULL, 0));
	count(llistxattr("p", NULL, 0));
}

static void by_descriptor(void)
{
	int fd = data_file("f", 10);
	char buf[8];

	tell(fsetxattr((int)NEED(open("f", O_RDONLY)), "user.a", "1", 1, 0));
	count(fgetxattr(fd, "user.a", buf, sizeof(buf)));
	NEED(unlink("f"));
	count(fgetxattr(fd, "user.a", buf, sizeof(buf)));
	tell(fsetxattr(fd, "user.b", "1", 1, 0));
}

static void do_xattr(void)
{
	char buf[8];

	tell(setxattr("f", "user.b", "1", 1, 0));
	count(getxattr("f", "user.a", buf, sizeof(buf)));
	count(listxattr("f", large, sizeof(large)));
	tell(removexattr("f", "user.a"));
}

static void permissions(void)
{
	static const mode_t modes[] = {0600, 0604, 0602, 0606};

	for (size_t i = 0; i < 4; i++) {
		put_as("f", ALICE, TEAM, modes[i]);
		setxattr("f", "user.a", "1", 1, 0);
		as(BOB, CREW, do_xattr);
		NEED(unlink("f"));
	}
}

static void do_names(void)
{
	static const char *const others[] = {"user.", "none.a", "trusted.a", "security.",
		"security.a", "system.a", "system.nfs4_acl"};
	char buf[8];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		tell(setxattr("f", others[i], "1", 1, 0));
		count(getxattr("f", others[i], buf, sizeof(buf)));
	}
}

static void name_permissions(void)
{
	put_as("f", ALICE, TEAM, 0600);
	as(BOB, CREW, do_names);
}

static void sticky(void)
{
	NEED(mkdir("f", 0777));
	NEED(chmod("f", 01777));
	as(BOB, CREW, do_xattr);
}

static void many(void)
{
	char name[32];
	int set = 0;

	put("f", "");
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "user.name%d", i);
		set += setxattr("f", name, "1", 1, 0) == 0;
	}
	say("%d set", set);
	count(listxattr("f", large, sizeof(large)));
}

const struct topic topic_xattr = {.name = "extended attributes",
	.probes = (const struct probe[]){
		{"user.: set, get, its size, a short buffer, no such one, no such file", set_get},
		{"XATTR_REPLACE, XATTR_CREATE, both again, both at once, an unknown flag", flags},
		{"removexattr: one, again, trusted., security.", removal},
		{"listxattr: names, size, a short buffer", listing},
		{"0 bytes: set, get; 64 KiB: set, get; more; 3000 bytes: set, get", sizes},
		{"names of 255 bytes, 256; 'user.'; \"\"; no namespace; odd bytes", names},
		{"set and get: trusted., security., capability, selinux, posix_acl_access, "
		 "posix_acl_default, system.",
			namespaces},
		{"user. of a directory, a symlink, a fifo; get of the last two; list", kinds},
		{"fsetxattr of O_RDONLY, fgetxattr, of a removed file, set there", by_descriptor},
		{"by others, 0600, 0604, 0602, 0606: set, get, list, remove", permissions},
		{"by others, 0600, set and get: user. alone, no namespace, trusted., security. "
		 "alone, security., system., system.nfs4_acl",
			name_permissions},
		{"a sticky directory, by another user: set, get, list, remove", sticky},
		{"60 names: set, bytes of the list", many}, {0}}};

/* ---- NFSv4 ACLs; POSIX ones on the server show in the mode ---- */

static void say_acl(const char *name)
{
	uint8_t acl[2048];
	ssize_t n = count(getxattr(name, "system.nfs4_acl", acl, sizeof(acl)));
	unsigned int sum = 0;

	for (ssize_t i = 0; i < n; i++)
		sum = sum * 31 + acl[i];
	say("%08x", sum);
}

static void acl_read(void)
{
	put("f", "");
	NEED(chmod("f", 0640));
	say_acl("f");
	NEED(chmod("f", 0000));
	say_acl("f");
	NEED(mkdir("d", 0755));
	say_acl("d");
	NEED(mkfifo("p", 0600));
	say_acl("p");
}

static void acl_copied(void)
{
	uint8_t acl[2048];
	ssize_t n;

	put("f", "");
	put("g", "");
	NEED(chmod("f", 0751));
	NEED(chmod("g", 0600));
	n = NEED(getxattr("f", "system.nfs4_acl", acl, sizeof(acl)));
	tell(setxattr("g", "system.nfs4_acl", acl, (size_t)n, 0));
	say_mode("g");
	say_acl("g");
}

static void acl_wrong(void)
{
	char buf[8];

	put("f", "");
	tell(setxattr("f", "system.nfs4_acl", "", 0, 0));
	tell(setxattr("f", "system.nfs4_acl", "abc", 3, 0));
	tell(setxattr("f", "system.nfs4_acl", "\xff\xff\xff\xff", 4, 0));
	tell(removexattr("f", "system.nfs4_acl"));
	count(getxattr("f", "system.nfs4_acl", buf, sizeof(buf)));
	count(getxattr("none", "system.nfs4_acl", buf, sizeof(buf)));
}

static void acl_change(void)
{
	uint8_t acl[2048];
	ssize_t n = count(getxattr("f", "system.nfs4_acl", acl, sizeof(acl)));

	if (n > 0)
		tell(setxattr("f", "system.nfs4_acl", acl, (size_t)n, 0));
}

static void acl_users(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(ALICE, TEAM, acl_change);
	as(BOB, CREW, acl_change);
}

static void acl_posix(void)
{
	/* user::rw- user 1002 rwx group::r-- mask::rwx other::--- */
	static const uint8_t posix[] = {2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 7, 0,
		0xea, 0x03, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 7, 0, 255, 255, 255, 255,
		32, 0, 0, 0, 255, 255, 255, 255};

	put_as("f", ALICE, TEAM, 0640);
	NEED(setxattr(on_server("f"), "system.posix_acl_access", posix, sizeof(posix), 0));
	sleep(2); /* the attribute cache: actimeo=1 */
	say_mode("f");
	say_acl("f");
	as(BOB, CREW, acl_change);
}

const struct topic topic_acl = {.name = "ACLs",
	.probes = (const struct probe[]){
		{"system.nfs4_acl of 0640, of 0000, of a directory, of a fifo: bytes, sum",
			acl_read},
		{"system.nfs4_acl given to another file; its mode, its ACL", acl_copied},
		{"system.nfs4_acl: set empty, 3 bytes, a bad count; remove; a short buffer; no "
		 "file",
			acl_wrong},
		{"system.nfs4_acl: got and set by the owner, by another user", acl_users},
		{"a POSIX ACL of the server: mode, NFSv4 ACL, got and set by its user", acl_posix},
		{0}}};
