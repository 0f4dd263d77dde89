/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: made, found, moved and removed; what is refused, and with which error. */
#include "mnt.h"

#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

SUITE(names);

static const char *of_len(size_t len, char ch)
{
	static char name[2][5000];
	static int next;
	char *p = name[next++ % 2];

	memset(p, ch, len);
	p[len] = '\0';
	return p;
}

Test(names, of_255_bytes_work_everywhere)
{
	const char *a = of_len(255, 'a'), *b = of_len(255, 'b');

	put_text(c(a), "long");
	want_text(s(a), "long");
	WORKS(rename(c(a), c(b)));
	want_text(c(b), "long");
	WORKS(link(c(b), c(a)));
	WORKS(unlink(c(a)));
	WORKS(unlink(c(b)));
	WORKS(mkdir(c(a), 0755));
	WORKS(symlink("x", c(b)));
	cr_assert(count_entries(c("")) == 2);
	WORKS(rmdir(c(a)));
	WORKS(unlink(c(b)));
}

Test(names, of_256_bytes_are_too_long)
{
	const char *a = of_len(256, 'a');
	struct stat st;

	put_text(c("f"), "");
	FAILS(stat(c(a), &st), ENAMETOOLONG);
	FAILS(open(c(a), O_CREAT | O_WRONLY, 0600), ENAMETOOLONG);
	FAILS(mkdir(c(a), 0700), ENAMETOOLONG);
	FAILS(rename(c("f"), c(a)), ENAMETOOLONG);
	FAILS(link(c("f"), c(a)), ENAMETOOLONG);
	FAILS(symlink("f", c(a)), ENAMETOOLONG);
	FAILS(unlink(c(a)), ENAMETOOLONG);
}

Test(names, may_hold_any_byte_but_slash_and_nul)
{
	for (int b = 1; b < 256; b += 6) {
		char name[8] = {'n', (char)b, (char)(b + 1 < 256 ? b + 1 : 1), 'x', 0};

		if (strchr(name, '/'))
			continue;
		put_text(c(name), "odd");
		want_text(s(name), "odd");
		WORKS(unlink(c(name)));
	}
	put_text(c(" lead and trail "), "1");
	put_text(c("new\nline"), "2");
	put_text(c("-rf *"), "3");
	put_text(c("\xff\xfe"), "4");
	put_text(c("..."), "5");
	cr_assert(count_entries(c("")) == 5);
	cr_assert(count_entries(s("")) == 5);
}

Test(names, differ_by_case)
{
	put_text(c("Name"), "1");
	put_text(c("name"), "2");
	want_text(s("Name"), "1");
	want_text(c("name"), "2");
}

Test(names, in_deep_paths)
{
	char path[3000] = "", longer[3100];

	for (int i = 0; i < 100; i++) {
		strcat(path, i ? "/directory" : "directory");
		WORKS(mkdir(c(path), 0755));
	}
	snprintf(longer, sizeof(longer), "%s/f", path);
	put_text(c(longer), "deep");
	want_text(s(longer), "deep");
}

Test(names, of_directories_come_and_go)
{
	WORKS(mkdir(c("d"), 0755));
	cr_assert(S_ISDIR(stat_of(s("d")).st_mode));
	cr_assert(stat_of(c("")).st_nlink == stat_of(s("")).st_nlink);
	FAILS(mkdir(c("d"), 0755), EEXIST);
	WORKS(mkdir(c("d/e"), 0700));
	FAILS(rmdir(c("d")), ENOTEMPTY);
	FAILS(unlink(c("d/e")), EISDIR);
	FAILS(mkdir(c("no/e"), 0700), ENOENT);
	put_text(c("f"), "");
	FAILS(rmdir(c("f")), ENOTDIR);
	FAILS(mkdir(c("f/e"), 0700), ENOTDIR);
	WORKS(rmdir(c("d/e")));
	WORKS(rmdir(c("d")));
	FAILS(rmdir(c("d")), ENOENT);
	FAILS(access(s("d"), F_OK), ENOENT);
	cr_assert(stat_of(c("")).st_nlink == stat_of(s("")).st_nlink);
}

Test(names, are_moved_by_rename)
{
	WORKS(mkdir(c("d"), 0755));
	WORKS(mkdir(c("e"), 0755));
	put_text(c("f"), "f");
	put_text(c("g"), "g");
	WORKS(rename(c("f"), c("d/f")));
	want_text(s("d/f"), "f");
	WORKS(rename(c("g"), c("d/f")));
	want_text(c("d/f"), "g");
	WORKS(rename(c("d"), c("e")));
	want_text(c("e/f"), "g");
	FAILS(access(c("d"), F_OK), ENOENT);
	WORKS(rename(c("e/f"), c("e/f")));
	want_text(s("e/f"), "g");
}

Test(names, are_refused_by_rename_where_posix_says_so)
{
	WORKS(mkdir(c("d"), 0755));
	WORKS(mkdir(c("full"), 0755));
	put_text(c("full/x"), "");
	put_text(c("f"), "");
	FAILS(rename(c("d"), c("full")), ENOTEMPTY);
	FAILS(rename(c("f"), c("d")), EISDIR);
	FAILS(rename(c("d"), c("f")), ENOTDIR);
	FAILS(rename(c("full"), c("full/x/y")), ENOTDIR);
	FAILS(rename(c("full"), c("full/inside")), EINVAL);
	FAILS(rename(c("none"), c("f")), ENOENT);
	FAILS(rename(c("f"), c("none/f")), ENOENT);
	FAILS(rename(c("f"), mnt_root("sub/f")), EXDEV);
	FAILS(link(c("f"), mnt_root("sub/f")), EXDEV);
}

static int rename2(const char *from, const char *to, unsigned int flags)
{
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static int give(const char *from, const char *to)
{
	return rename2(from, to, RENAME_NOREPLACE);
}

Test(names, are_not_exchanged)
{
	put_text(c("f"), "");
	put_text(c("g"), "");
	FAILS(rename2(c("f"), c("g"), RENAME_EXCHANGE), EINVAL);
	FAILS(rename2(c("f"), c("g"), RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
	FAILS(rename2(c("f"), c("new"), RENAME_WHITEOUT), EINVAL);
	cr_assert(count_entries(s("")) == 2);
}

Test(names, are_given_if_they_are_free)
{
	char buf[8] = "";
	int fd;

	put_text(c("f"), "f");
	WORKS(mkdir(c("d"), 0755));
	WORKS(mkdir(c("full"), 0755));
	put_text(c("full/x"), "x");
	WORKS(symlink("nowhere", c("s")));
	WORKS(link(c("f"), c("l")));
	FAILS(give(c("f"), c("d")), EEXIST);
	FAILS(give(c("f"), c("s")), EEXIST);
	FAILS(give(c("f"), c("l")), EEXIST);
	FAILS(give(c("full"), c("d")), EEXIST);
	FAILS(give(c("full"), c("f")), EEXIST);
	FAILS(give(c("none"), c("new")), ENOENT);
	FAILS(give(c("f"), c("none/new")), ENOENT);
	FAILS(give(c("f"), mnt_root("sub/f")), EXDEV);
	FAILS(give(c("full"), mnt_root("sub/full")), EXDEV);
	FAILS(access(mnt_root("sub/full"), F_OK), ENOENT);
	fd = (int)WORKS(open(c("f"), O_RDWR));
	WORKS(give(c("f"), c("d/f")));
	FAILS(access(c("f"), F_OK), ENOENT);
	want_text(s("d/f"), "f");
	cr_assert(stat_of(c("d/f")).st_nlink == 2, "as before");
	cr_assert(pread(fd, buf, 1, 0) == 1 && buf[0] == 'f');
	WORKS(pwrite(fd, "g", 1, 0));
	WORKS(close(fd));
	want_text(s("l"), "g");
	WORKS(give(c("full"), c("d/full")));
	want_text(c("d/full/x"), "x");
	want_text(s("d/full/x"), "x");
	cr_assert((stat_of(s("d/full")).st_mode & 0777) == 0755);
	FAILS(access(c("full"), F_OK), ENOENT);
	WORKS(give(c("s"), c("d/s")));
	cr_assert(S_ISLNK(stat_of(s("d")).st_mode) == 0 && access(s("s"), F_OK) == -1);
	WORKS(mkdir(c("empty"), 0700));
	FAILS(give(c("empty"), c("d")), EEXIST);
	WORKS(give(c("empty"), c("d/empty")));
	cr_assert(count_entries(s("d")) == 4);
	cr_assert(count_entries(s("")) == 2);
}

static const char *numbered(const char *name, int i)
{
	static char buf[8][32];
	static int next;
	char *p = buf[next++ % 8];

	snprintf(p, sizeof(buf[0]), "%s%d", name, i);
	return p;
}

/* In a child, after so long; 0: it worked. */
static pid_t in_child(
	int (*call)(const char *, const char *), const char *a, const char *b, int wait_us)
{
	pid_t pid = fork();

	if (pid == 0) {
		usleep((useconds_t)wait_us);
		_exit(call(a, b) == 0 ? 0 : errno);
	}
	return pid;
}

static int result_of(pid_t pid)
{
	int status;

	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int take_it(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (fd < 0)
		return -1;
	if (write(fd, text, strlen(text)) < 0)
		return -1;
	return close(fd);
}

/* On the server, where the kernel of this side keeps nobody apart. */
Test(names, are_given_to_one)
{
	int theirs = 0;

	for (int i = 0; i < 60; i++) {
		char to[64];
		int err, other;
		pid_t pid;

		snprintf(to, sizeof(to), "%s", numbered("to", i));
		put_text(c(numbered("from", i)), "ours");
		pid = in_child(take_it, s(to), "theirs", i * 400);
		err = give(c(numbered("from", i)), c(to)) ? errno : 0;
		other = result_of(pid);
		cr_assert((err == 0) != (other == 0), "%d: %d and %d", i, err, other);
		cr_assert(err == 0 || err == EEXIST, "%s", strerror(err));
		want_text(s(to), err ? "theirs" : "ours");
		cr_assert((access(s(numbered("from", i)), F_OK) == 0) == (err != 0));
		theirs += err != 0;
	}
	fprintf(stderr, "# %d of 60 were theirs\n", theirs);
	cr_assert(count_silly() == 0);
}

Test(names, are_given_to_one_of_two_programs)
{
	for (int i = 0; i < 20; i++) {
		char to[64];
		int a, b;
		pid_t pid;

		snprintf(to, sizeof(to), "%s", numbered("to", i));
		put_text(c(numbered("a", i)), "a");
		put_text(c(numbered("b", i)), "b");
		pid = in_child(give, c(numbered("a", i)), c(to), 0);
		b = give(c(numbered("b", i)), c(to)) ? errno : 0;
		a = result_of(pid);
		cr_assert((a == 0 && b == EEXIST) || (b == 0 && a == EEXIST), "%d: %d and %d", i, a,
			b);
		want_text(s(to), a ? "b" : "a");
		want_text(s(numbered(a ? "a" : "b", i)), a ? "a" : "b");
	}
}

/* Somebody puts another file in the place of the one that is renamed. */
Test(names, may_change_hands_meanwhile_and_no_file_is_lost)
{
	int moved = 0;

	for (int i = 0; i < 60; i++) {
		const char *old = numbered("old", i), *new = numbered("new", i);
		char text[8] = "";
		pid_t pid;
		int err, fd;

		put_text(c(old), "ours");
		put_text(s(numbered("x", i)), "theirs");
		pid = in_child(rename, s(numbered("x", i)), s(old), i * 400);
		err = give(c(old), c(new)) ? errno : 0;
		cr_assert(result_of(pid) == 0);
		if (err)
			cr_assert(err == ENOENT || err == ESTALE, "%s", strerror(err));
		else
			cr_assert(access(s(new), F_OK) == 0);
		fd = open(s(old), O_RDONLY);
		if (fd < 0)
			fd = (int)WORKS(open(s(new), O_RDONLY));
		WORKS(read(fd, text, sizeof(text) - 1));
		cr_assert(strcmp(text, "theirs") == 0, "%d: %s", i, text);
		WORKS(close(fd));
		moved += access(s(old), F_OK) != 0;
	}
	fprintf(stderr, "# theirs was renamed %d of 60 times\n", moved);
	cr_assert(count_silly() == 0);
}

Test(names, linked_twice_are_one_file)
{
	put_text(c("a"), "one");
	WORKS(link(c("a"), c("b")));
	cr_assert(stat_of(c("a")).st_nlink == 2);
	cr_assert(stat_of(c("b")).st_nlink == 2);
	cr_assert(stat_of(c("a")).st_ino == stat_of(c("b")).st_ino);
	cr_assert(stat_of(s("b")).st_nlink == 2);
	FAILS(link(c("a"), c("b")), EEXIST);
	put_text(c("b"), "changed");
	want_text(c("a"), "changed");
	WORKS(unlink(c("a")));
	cr_assert(stat_of(c("b")).st_nlink == 1, "%lu links",
		(unsigned long)stat_of(c("b")).st_nlink);
	want_text(s("b"), "changed");
	WORKS(mkdir(c("d"), 0755));
	FAILS(link(c("d"), c("e")), EPERM);
	FAILS(link(c("none"), c("e")), ENOENT);
	/* The one that RENAME replaces loses a link as well. */
	WORKS(link(c("b"), c("b2")));
	put_text(c("n"), "new");
	WORKS(rename(c("n"), c("b2")));
	cr_assert(stat_of(c("b")).st_nlink == 1);
}

Test(names, of_symbolic_links_have_targets_of_any_length)
{
	static const size_t lens[] = {
		1, 2, 59, 60, 511, 513, 1000, 3700, 3800, 3900, 4000, 4094, 4095};
	char name[16], buf[5000];

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		const char *target = of_len(lens[i], 't');
		ssize_t n;

		snprintf(name, sizeof(name), "l%zu", lens[i]);
		WORKS(symlink(target, c(name)));
		n = WORKS(readlink(c(name), buf, sizeof(buf)));
		cr_assert(
			(size_t)n == lens[i] && memcmp(buf, target, lens[i]) == 0, "%zu", lens[i]);
		n = WORKS(readlink(s(name), buf, sizeof(buf)));
		cr_assert(
			(size_t)n == lens[i] && memcmp(buf, target, lens[i]) == 0, "%zu", lens[i]);
		cr_assert(stat_of(c(name)).st_size == (off_t)lens[i]);
	}
	FAILS(symlink("x", c("l1")), EEXIST);
	put_text(c("f"), "");
	FAILS(readlink(c("f"), buf, sizeof(buf)), EINVAL);
}

Test(names, of_symbolic_links_made_on_the_server_are_followed)
{
	WORKS(mkdir(s("d"), 0755));
	put_text(s("d/f"), "through");
	WORKS(symlink("d", s("l")));
	WORKS(symlink("l/../d/f", s("m")));
	want_text(c("l/f"), "through");
	want_text(c("m"), "through");
	WORKS(symlink("loop", s("loop")));
	FAILS(open(c("loop"), O_RDONLY), ELOOP);
}

Test(names, of_special_files)
{
	struct stat st;

	WORKS(mkfifo(c("fifo"), 0640));
	cr_assert(S_ISFIFO(stat_of(s("fifo")).st_mode));
	WORKS(mknod(c("sock"), S_IFSOCK | 0600, 0));
	cr_assert(S_ISSOCK(stat_of(c("sock")).st_mode));
	WORKS(mknod(c("chr"), S_IFCHR | 0600, makedev(5, 300)));
	st = stat_of(s("chr"));
	cr_assert(S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 300));
	cr_assert(stat_of(c("chr")).st_rdev == makedev(5, 300));
	WORKS(mknod(c("blk"), S_IFBLK | 0600, makedev(7, 1)));
	cr_assert(S_ISBLK(stat_of(c("blk")).st_mode));
	WORKS(mknod(c("reg"), S_IFREG | 0604, 0));
	st = stat_of(c("reg"));
	cr_assert(S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0604 && st.st_size == 0);
	cr_assert(labs((long)(st.st_mtim.tv_sec - time(NULL))) < 60);
	FAILS(mknod(c("reg"), S_IFREG | 0600, 0), EEXIST);
	put_text(c("reg"), "usable");
	want_text(s("reg"), "usable");
}

Test(names, not_there_are_found_once_they_are)
{
	struct stat st;

	FAILS(stat(c("f"), &st), ENOENT);
	FAILS(stat(c("f"), &st), ENOENT);
	put_text(c("f"), "now");
	WORKS(stat(c("f"), &st));
	WORKS(unlink(c("f")));
	FAILS(stat(c("f"), &st), ENOENT);
	WORKS(mkdir(c("f"), 0755));
	WORKS(stat(c("f"), &st));
	cr_assert(S_ISDIR(st.st_mode));
}

Test(names, removed_on_the_server_and_made_anew_are_new_files)
{
	put_text(s("f"), "first");
	want_text(c("f"), "first");
	WORKS(rename(s("f"), s("g")));
	put_text(s("f"), "second");
	/* open() by filehandle would find the first: the name is asked for again in time. */
	for (int i = 0; i < 50; i++) {
		char buf[16] = "";
		int fd = open(c("f"), O_RDONLY);

		if (fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 0 && strcmp(buf, "second") == 0)
			return;
		close(fd);
		sleep(1);
	}
	cr_assert_fail("still the first file");
}

Test(names, below_a_read_only_export_cannot_be_changed)
{
	want_text(mnt_root("ro/file"), "read me\n");
	FAILS(open(mnt_root("ro/new"), O_CREAT | O_WRONLY, 0600), EROFS);
	FAILS(open(mnt_root("ro/file"), O_WRONLY), EROFS);
	FAILS(mkdir(mnt_root("ro/newdir"), 0700), EROFS);
	FAILS(unlink(mnt_root("ro/file")), EROFS);
	FAILS(rename(mnt_root("ro/file"), mnt_root("ro/other")), EROFS);
	FAILS(symlink("x", mnt_root("ro/link")), EROFS);
	FAILS(chmod(mnt_root("ro/file"), 0600), EROFS);
	/* Who may not write is told so first, as by the kernel's client. */
	FAILS(truncate(mnt_root("ro/file"), 0), EACCES);
}

Test(names, below_another_file_system_of_the_server)
{
	put_text(mnt_root("sub/f"), "below");
	want_text("/export/sub/f", "below");
	WORKS(unlink(mnt_root("sub/f")));
}
