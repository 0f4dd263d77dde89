/* SPDX-License-Identifier: BSD-3-Clause */
/* Hard links, rename, unlink and rmdir. */
#include "compat.h"

#include <sys/syscall.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE  (1 << 1)
#define RENAME_WHITEOUT  (1 << 2)
#endif

static void say_links(const char *name)
{
	struct stat st;

	count(lstat(name, &st) == -1 ? -1 : (long)st.st_nlink);
}

static void linked(void)
{
	struct stat a, b;

	put("f", "text");
	tell(link("f", "g"));
	NEED(stat("f", &a));
	NEED(stat("g", &b));
	say("%s", a.st_ino == b.st_ino ? "same number" : "other number");
	say_links("f");
	say_links("g");
	NEED(unlink("f"));
	say_links("g");
	say_text("g");
}

static void link_refused(void)
{
	NEED(mkdir("d", 0777));
	put("f", "");
	put("g", "");
	tell(link("d", "e"));
	tell(link("f", "g"));
	tell(link("f", "f"));
	tell(link("f", "none/f"));
	tell(link("none", "h"));
	tell(link("f", "d"));
	tell(link("f", "g/h"));
	tell(link("f", "/tmp/compat-link"));
}

static void link_symlink(void)
{
	struct stat st;

	put("f", "text");
	NEED(symlink("f", "l"));
	tell(link("l", "m"));
	NEED(lstat("m", &st));
	say("%s", type_name(st.st_mode));
	tell(linkat(AT_FDCWD, "l", AT_FDCWD, "n", AT_SYMLINK_FOLLOW));
	NEED(lstat("n", &st));
	say("%s", type_name(st.st_mode));
}

static void link_special(void)
{
	NEED(mkfifo("p", 0666));
	tell(link("p", "q"));
	say_links("p");
}

static void link_fd(void)
{
	char path[64];
	int fd = data_file("f", 10);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	tell(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
	say_size("g");
	tell(linkat(fd, "", AT_FDCWD, "h", AT_EMPTY_PATH));
}

static void link_unlinked(void)
{
	char path[64];
	int fd = data_file("f", 10);

	NEED(unlink("f"));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	tell(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
}

static void do_link(void)
{
	tell(link("closed", "g"));
	tell(link("open", "h"));
}

/* fs.protected_hardlinks, which Debian turns on: only of what one may read and write. */
static void link_foreign(void)
{
	put_as("closed", ALICE, TEAM, 0644);
	put_as("open", ALICE, TEAM, 0666);
	as(BOB, CREW, do_link);
}

static void link_over_crossing(void)
{
	put("f", "");
	tell(link("f", from_root("sub/compat-link")));
	tell(rename("f", from_root("sub/compat-link")));
}

/* ext4 has 65000: 64999 are made on the server, where it is quick, by whoever comes first. */
static void link_limit(void)
{
	static const char first[] = "links/f";
	char name[32];

	if (access(server_root(first), F_OK) == -1) {
		NEED(mkdir(server_root("links"), 0777));
		NEED(mknod(server_root(first), S_IFREG | 0666, 0));
		for (int i = 0; i < 64998; i++) {
			snprintf(name, sizeof(name), "links/%d", i);
			if (link(server_root(first), server_root(name)) == -1)
				break;
		}
	}
	tell(link(from_root(first), from_root("links/last")));
	tell(link(from_root(first), from_root("links/more")));
	tell(unlink(from_root("links/last")));
}

const struct topic topic_link = {.name = "link",
	.probes = (const struct probe[]){
		{"a second name: number, links; after unlink of the first", linked},
		{"of a directory; over a file; onto itself; below no such name; of no such name; "
		 "over a directory; below a file; to another file system",
			link_refused},
		{"of a symlink, with AT_SYMLINK_FOLLOW", link_symlink}, {"of a fifo", link_special},
		{"by /proc/self/fd, AT_EMPTY_PATH", link_fd},
		{"of a removed open file", link_unlinked},
		{"of another user's file, 0644, 0666, with fs.protected_hardlinks", link_foreign},
		{"link, rename to another file system of the server", link_over_crossing},
		{"the last one that ext4 has, one more, unlink of one", link_limit}, {0}}};

/* ---- rename ---- */

static long rename2(const char *from, const char *to, unsigned int flags)
{
	return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static void rename_files(void)
{
	put("f", "first");
	tell(rename("f", "g"));
	tell(access("f", F_OK));
	put("h", "second");
	tell(rename("h", "g"));
	say_text("g");
	tell(rename("g", "g"));
	NEED(link("g", "k"));
	tell(rename("g", "k"));
	say_links("g");
}

static void rename_directories(void)
{
	NEED(mkdir("d", 0777));
	NEED(mkdir("empty", 0777));
	NEED(mkdir("full", 0777));
	put("full/f", "");
	put("f", "");
	tell(rename("d", "empty"));
	tell(rename("empty", "full"));
	tell(rename("full", "f"));
	tell(rename("f", "full"));
	tell(rename("full", "full/inside"));
	tell(rename("full", "moved"));
	tell(access("moved/f", F_OK));
}

static void rename_refused(void)
{
	NEED(mkdir("d", 0777));
	put("f", "");
	tell(rename("none", "f"));
	tell(rename("f", "none/f"));
	tell(rename(".", "e"));
	tell(rename("f", "."));
	tell(rename("d/..", "e"));
	tell(rename("f", "f/g"));
	tell(rename("f", "/tmp/compat-rename"));
}

static void rename_between(void)
{
	struct stat st;

	NEED(mkdir("a", 0777));
	NEED(mkdir("b", 0777));
	NEED(mkdir("a/d", 0777));
	tell(rename("a/d", "b/d"));
	NEED(stat("a", &st));
	say("%ld", (long)st.st_nlink);
	NEED(stat("b", &st));
	say("%ld", (long)st.st_nlink);
	tell(access("b/d/../d", F_OK));
}

static void rename_open_target(void)
{
	int fd = data_file("f", 100);
	char c = 0;

	put("g", "new");
	tell(rename("g", "f"));
	count(pread(fd, &c, 1, 50));
	say_text("f");
	tell(close(fd));
}

static void rename_open_source(void)
{
	int fd = data_file("f", 10);

	tell(rename("f", "g"));
	count(pwrite(fd, "more", 4, 0));
	tell(close(fd));
	say_size("g");
}

static void with_flags(unsigned int flags)
{
	put("f", "f");
	put("g", "g");
	if (tell(rename2("f", "new", flags)) != -1)
		NEED(rename("new", "f"));
	tell(rename2("f", "g", flags));
	say_text("g");
}

static void noreplace(void)
{
	with_flags(RENAME_NOREPLACE);
}

static void exchange(void)
{
	with_flags(RENAME_EXCHANGE);
}

static void whiteout(void)
{
	with_flags(RENAME_WHITEOUT);
}

static void noreplace_exchange(void)
{
	with_flags(RENAME_NOREPLACE | RENAME_EXCHANGE);
}

static void unknown_flag(void)
{
	with_flags(0x40);
}

static void do_rename(void)
{
	tell(rename("d/f", "d/g"));
	tell(rename("d/f", "f"));
	tell(rename("own", "d/f"));
}

static void rename_not_writable(void)
{
	NEED(mkdir("d", 0755));
	put("d/f", "");
	put("own", "");
	as(ALICE, TEAM, do_rename);
}

const struct topic topic_rename = {.name = "rename",
	.probes = (const struct probe[]){
		{"a file; its old name; over a file; onto itself; onto another link: links left",
			rename_files},
		{"directories: over an empty one, over one that is not, over a file, a file over "
		 "one, into itself, one with entries",
			rename_directories},
		{"of no such name; to below no such name; of .; to .; of ..; below a file; to "
		 "another file system",
			rename_refused},
		{"a directory to another: links of both, ..", rename_between},
		{"over an open file: read of that, the name, close", rename_open_target},
		{"of an open file: write, close, size", rename_open_source},
		{"RENAME_NOREPLACE: to a new name, over a file", noreplace},
		{"RENAME_EXCHANGE: with no such name, with a file", exchange},
		{"RENAME_WHITEOUT: to a new name, over a file", whiteout},
		{"RENAME_NOREPLACE with EXCHANGE", noreplace_exchange},
		{"an unknown flag", unknown_flag},
		{"in a directory that is not writable, out of it, into it", rename_not_writable},
		{0}}};

/* ---- unlink and rmdir ---- */

static void unlink_kinds(void)
{
	put("f", "");
	NEED(mkdir("d", 0777));
	NEED(symlink("f", "l"));
	NEED(mkfifo("p", 0666));
	tell(unlink("d"));
	tell(unlink("l"));
	tell(unlink("p"));
	tell(unlink("f"));
	tell(unlink("f"));
	tell(unlink("."));
	tell(unlink(".."));
	tell(unlink(""));
}

static void rmdir_kinds(void)
{
	put("f", "");
	NEED(mkdir("d", 0777));
	NEED(mkdir("d/e", 0777));
	NEED(symlink("d", "l"));
	tell(rmdir("f"));
	tell(rmdir("d"));
	tell(rmdir("d/."));
	tell(rmdir("d/e/.."));
	tell(rmdir("l"));
	tell(rmdir("none"));
	tell(rmdir("d/e"));
	tell(rmdir("d"));
}

static void rmdir_used(void)
{
	struct stat st;
	int fd;

	NEED(mkdir("d", 0777));
	fd = (int)NEED(open("d", O_RDONLY));
	NEED(chdir("d"));
	tell(rmdir("../d"));
	tell(open("f", O_CREAT | O_WRONLY, 0644));
	tell(mkdir("e", 0777));
	tell(open(".", O_RDONLY));
	tell(fstat(fd, &st));
}

/* No rename of it: a Linux 6.1 server answers with NFS4ERR_IO, and a warning in its log. */
static void remove_root(void)
{
	tell(rmdir(from_root("")));
	tell(rmdir(from_root("sub")));
	tell(unlink(from_root("sub")));
}

static void unlink_open(void)
{
	struct stat st;
	int fd = data_file("f", 10);

	tell(unlink("f"));
	tell(access("f", F_OK));
	NEED(fstat(fd, &st));
	say("size %ld", (long)st.st_size);
	put("f", "again");
	say_text("f");
	tell(close(fd));
	say_text("f");
}

static void unlink_open_links(void)
{
	struct stat st;
	int fd = data_file("f", 10);

	NEED(fstat(fd, &st));
	NEED(unlink("f"));
	NEED(fstat(fd, &st));
	say("%ld", (long)st.st_nlink);
}

static void rmdir_with_removed(void)
{
	int fd;

	NEED(mkdir("d", 0777));
	fd = data_file("d/f", 10);
	NEED(unlink("d/f"));
	tell(rmdir("d"));
	NEED(close(fd));
	tell(rmdir("d"));
}

const struct topic topic_unlink = {.name = "unlink and rmdir",
	.probes = (const struct probe[]){
		{"unlink: a directory, a symlink, a fifo, a file, no such name, ., .., \"\"",
			unlink_kinds},
		{"rmdir: a file, not empty, ., .., a symlink, no such name, empty, empty",
			rmdir_kinds},
		{"rmdir of the working directory: create, mkdir, open, fstat there", rmdir_used},
		{"rmdir of the mountpoint, of another file system's root; unlink of that",
			remove_root},
		{"unlink of an open file: the name, size, the name given anew, close", unlink_open},
		{"unlink of an open file: its links", unlink_open_links},
		{"rmdir of a directory whose only file is removed and open; after close",
			rmdir_with_removed},
		{0}}};
