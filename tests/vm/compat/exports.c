/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server allows on an export: read-only, root squashed. And mounts with
 * options of their own.
 */
#include "compat.h"

#include <sys/time.h>
#include <sys/xattr.h>

/* ---- nothing may be changed; in the working directory: file, dir, dir/in ---- */

static void creates(void)
{
	tell(open("new", O_CREAT | O_WRONLY, 0644));
	tell(mkdir("new", 0777));
	tell(symlink("x", "new"));
	tell(mknod("new", S_IFIFO | 0600, 0));
	tell(link("file", "new"));
	tell(mkdir("dir", 0777));
	tell(open("file", O_CREAT | O_RDONLY, 0644));
	tell(open("file", O_CREAT | O_EXCL | O_RDONLY, 0644));
}

static void removes(void)
{
	tell(unlink("file"));
	tell(rmdir("dir"));
	tell(rename("file", "new"));
	tell(unlink("none"));
	tell(rmdir("none"));
}

static void opens(void)
{
	tell(open("file", O_RDONLY));
	tell(open("file", O_WRONLY));
	tell(open("file", O_RDWR));
	tell(open("file", O_RDONLY | O_TRUNC));
	say_text("file");
	tell(truncate("file", 0));
}

static void attributes(void)
{
	tell(chmod("file", 0600));
	tell(chown("file", ALICE, TEAM));
	tell(utimes("file", NULL));
	tell(setxattr("file", "user.a", "1", 1, 0));
	tell(removexattr("file", "user.a"));
	tell(setxattr("file", "system.nfs4_acl", "\0\0\0\0", 4, 0));
}

static void asks(void)
{
	struct stat st;

	tell(access("file", R_OK));
	tell(access("file", W_OK));
	tell(access("dir", W_OK));
	tell(access("dir", X_OK));
	tell(stat("dir/in", &st));
}

static void prepare(const char *dir)
{
	static const char *const files[] = {"file", "dir/in"};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/new", dir); /* of who could make it */
	unlink(path);
	snprintf(path, sizeof(path), "%s/dir", dir);
	mkdir(path, 0777);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		put(path, "text");
	}
}

/* The export that is read-only, or this folder if the whole mount is. */
static void enter(void)
{
	if (access(".", W_OK) == -1) {
		prepare(on_server(""));
		return;
	}
	mkdir(server_root("ro/compat"), 0777);
	prepare(server_root("ro/compat"));
	NEED(chdir(from_root("ro/compat")));
}

static void ro_creates(void)
{
	enter();
	creates();
}

static void ro_removes(void)
{
	enter();
	removes();
}

static void ro_opens(void)
{
	enter();
	opens();
}

static void ro_attributes(void)
{
	enter();
	attributes();
}

static void ro_asks(void)
{
	enter();
	asks();
}

static void ro_asks_alice(void)
{
	enter();
	as(ALICE, TEAM, asks);
}

static void ro_opens_alice(void)
{
	enter();
	as(ALICE, TEAM, opens);
}

const struct topic topic_readonly = {.name = "read-only",
	.probes = (const struct probe[]){
		{"create, mkdir, symlink, mkfifo, link, mkdir over one, O_CREAT of a file, O_EXCL",
			ro_creates},
		{"unlink, rmdir, rename, unlink and rmdir of no such name", ro_removes},
		{"open: O_RDONLY, O_WRONLY, O_RDWR, O_TRUNC; what it holds; truncate", ro_opens},
		{"the same by a user", ro_opens_alice},
		{"chmod, chown, utimes, setxattr, removexattr, set an ACL", ro_attributes},
		{"access: reading, writing, a directory for writing, searching; stat", ro_asks},
		{"the same by a user", ro_asks_alice}, {0}}};

/* ---- root becomes nobody ---- */

static void squash_enter(void)
{
	mkdir(server_root("squash/compat"), 0777);
	chmod(server_root("squash/compat"), 0777);
	unlink(server_root("squash/compat/f"));
	put_as(server_root("squash/compat/mine"), ALICE, TEAM, 0600);
	NEED(chdir(from_root("squash/compat")));
}

static void squash_make(void)
{
	struct stat st;

	squash_enter();
	tell(open("f", O_CREAT | O_RDWR, 0644));
	NEED(stat("f", &st));
	say("%u:%u", st.st_uid, st.st_gid);
	tell(chown("f", ALICE, TEAM));
	tell(chmod("f", 0600));
	tell(unlink("f"));
}

static void squash_foreign(void)
{
	squash_enter();
	tell(open("mine", O_RDONLY));
	tell(access("mine", R_OK));
	tell(chmod("mine", 0666));
	tell(truncate("mine", 0));
	tell(mknod("c", S_IFCHR | 0600, 0x103));
}

static void own_file(void)
{
	tell(open("mine", O_RDWR));
	tell(chmod("mine", 0600));
}

static void squash_user(void)
{
	squash_enter();
	as(ALICE, TEAM, own_file);
}

static void squash_opened(void)
{
	int fd;

	squash_enter();
	NEED(chmod(server_root("squash/compat/mine"), 0666));
	fd = (int)NEED(open("mine", O_RDWR));
	NEED(chmod(server_root("squash/compat/mine"), 0600));
	count(pwrite(fd, "more", 4, 0));
	tell(fsync(fd));
}

const struct topic topic_exports = {.name = "root squashed",
	.probes = (const struct probe[]){
		{"root makes a file; its owner; chown, chmod, unlink", squash_make},
		{"root and a file of another user: open, access, chmod, truncate; mknod",
			squash_foreign},
		{"a user and his own file: open, chmod", squash_user},
		{"root writes to what was open before it was forbidden: write, fsync",
			squash_opened},
		{0}}};

/* ---- what options of the mount change ---- */

static void write_through(void)
{
	int fd = (int)NEED(open("f", O_CREAT | O_WRONLY, 0644));

	count(write(fd, "text", 4));
	say_size(on_server("f"));
}

static void stat_follows(void)
{
	put("f", "text");
	say_size("f");
	NEED(truncate(on_server("f"), 2));
	say_size("f");
}

static void new_name(void)
{
	struct stat st;

	tell(stat("f", &st));
	put(on_server("f"), "text");
	tell(stat("f", &st));
}

static void old_name(void)
{
	struct stat st;

	put("f", "text");
	tell(stat("f", &st));
	NEED(unlink(on_server("f")));
	tell(stat("f", &st));
}

static void data_follows(void)
{
	put("f", "text");
	say_text("f");
	put(on_server("f"), "next");
	say_text("f");
}

static void use(void)
{
	int fd = data_file("f", 10000);
	char c = 0;

	count(pwrite(fd, "y", 1, 5000));
	count(pread(fd, &c, 1, 5000));
	tell(close(fd));
	tell(rename("f", "g"));
	say_size("g");
	tell(unlink("g"));
}

const struct topic topic_option = {.name = "options",
	.asked = true,
	.probes = (const struct probe[]){{"write, read, close, rename, size, unlink", use},
		{"written, not closed: size on the server", write_through},
		{"changed on the server: size before, size at once", stat_follows},
		{"a name that was not there is made on the server", new_name},
		{"a name that was there is removed on the server", old_name},
		{"changed on the server: what the next open reads", data_follows}, {0}}};
