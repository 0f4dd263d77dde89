/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes: what stat shows is what the server's file system has, and what can be set. */
#include "mnt.h"

#include <sys/statvfs.h>

SUITE(attrs);

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* The two sides agree on everything but st_dev. */
static void want_same(const char *name)
{
	struct stat a = stat_of(c(name)), b = stat_of(s(name));

	cr_assert(a.st_mode == b.st_mode, "%s: mode %o, %o", name, a.st_mode, b.st_mode);
	cr_assert(a.st_ino == b.st_ino, "%s: ino", name);
	cr_assert(a.st_nlink == b.st_nlink, "%s: nlink %lu, %lu", name, (unsigned long)a.st_nlink,
		(unsigned long)b.st_nlink);
	cr_assert(a.st_uid == b.st_uid && a.st_gid == b.st_gid, "%s: owner %u:%u, %u:%u", name,
		a.st_uid, a.st_gid, b.st_uid, b.st_gid);
	cr_assert(a.st_size == b.st_size, "%s: size %lld, %lld", name, (long long)a.st_size,
		(long long)b.st_size);
	cr_assert(a.st_blocks == b.st_blocks, "%s: blocks %lld, %lld", name, (long long)a.st_blocks,
		(long long)b.st_blocks);
	cr_assert(a.st_rdev == b.st_rdev, "%s: rdev", name);
	cr_assert(same_time(a.st_mtim, b.st_mtim), "%s: mtime %ld.%09ld, %ld.%09ld", name,
		a.st_mtim.tv_sec, a.st_mtim.tv_nsec, b.st_mtim.tv_sec, b.st_mtim.tv_nsec);
	cr_assert(same_time(a.st_ctim, b.st_ctim), "%s: ctime", name);
}

Test(attrs, are_the_servers_own)
{
	put_pattern(s("f"), 123456);
	WORKS(chmod(s("f"), 04751));
	WORKS(chown(s("f"), 1234, 5678));
	sync();
	WORKS(mkdir(s("d"), 01777));
	WORKS(symlink("f", s("l")));
	WORKS(mkfifo(s("p"), 0600));
	want_same("f");
	want_same("d");
	want_same("l");
	want_same("p");
	want_same("");
	cr_assert(stat_of(c("f")).st_dev == stat_of(c("d")).st_dev);
}

Test(attrs, of_what_is_made_here_are_the_servers_own)
{
	put_pattern(c("f"), 70000);
	WORKS(mkdir(c("d"), 0750));
	WORKS(symlink("anything", c("l")));
	WORKS(mkfifo(c("p"), 0600));
	want_same("d");
	want_same("l");
	want_same("p");
	/* Blocks and times come to rest with the last write. */
	sync();
	sleep(4);
	want_same("f");
	want_same("");
}

Test(attrs, mode_is_changed_by_chmod)
{
	static const mode_t modes[] = {0, 0777, 0644, 04755, 02755, 06711, 01777, 0400};
	int fd;

	put_text(c("f"), "");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		WORKS(chmod(c("f"), modes[i]));
		cr_assert((stat_of(s("f")).st_mode & 07777) == modes[i], "%o", modes[i]);
		want_same("f");
	}
	fd = WORKS(open(c("f"), O_RDONLY));
	WORKS(fchmod(fd, 0123));
	cr_assert((stat_of(s("f")).st_mode & 07777) == 0123);
	WORKS(close(fd));
	WORKS(mkdir(c("d"), 0755));
	WORKS(chmod(c("d"), 03775));
	want_same("d");
	FAILS(chmod(c("none"), 0600), ENOENT);
}

Test(attrs, owner_is_changed_by_chown)
{
	struct stat st;

	put_text(c("f"), "");
	WORKS(chown(c("f"), 1001, 1002));
	st = stat_of(s("f"));
	cr_assert(st.st_uid == 1001 && st.st_gid == 1002);
	WORKS(chown(c("f"), (uid_t)-1, 1003));
	WORKS(chown(c("f"), 1004, (gid_t)-1));
	st = stat_of(s("f"));
	cr_assert(st.st_uid == 1004 && st.st_gid == 1003);
	want_same("f");
	WORKS(chown(c("f"), 4000000000u, 4000000001u));
	want_same("f");
	WORKS(symlink("f", c("l")));
	WORKS(lchown(c("l"), 7, 8));
	cr_assert(stat_of(s("l")).st_uid == 7 && stat_of(s("f")).st_uid == 4000000000u);
	WORKS(chown(c("f"), (uid_t)-1, (gid_t)-1));
}

Test(attrs, times_are_set_to_the_nanosecond)
{
	const struct timespec old[2] = {{1000000000, 123456789}, {1100000001, 987654321}};
	const struct timespec only[2] = {{0, UTIME_OMIT}, {5, 5}};
	const struct timespec early[2] = {{-1000, 0}, {-5, 999999999}};
	const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	struct stat st;
	int fd;

	put_text(c("f"), "");
	WORKS(utimensat(AT_FDCWD, c("f"), old, 0));
	st = stat_of(s("f"));
	cr_assert(same_time(st.st_atim, old[0]) && same_time(st.st_mtim, old[1]));
	cr_assert(same_time(stat_of(c("f")).st_atim, old[0]));
	want_same("f");
	WORKS(utimensat(AT_FDCWD, c("f"), only, 0));
	st = stat_of(s("f"));
	cr_assert(same_time(st.st_atim, old[0]) && same_time(st.st_mtim, only[1]));
	WORKS(utimensat(AT_FDCWD, c("f"), early, 0));
	cr_assert(same_time(stat_of(c("f")).st_mtim, stat_of(s("f")).st_mtim));
	fd = WORKS(open(c("f"), O_RDWR));
	WORKS(futimens(fd, now));
	st = stat_of(s("f"));
	cr_assert(labs((long)(st.st_mtim.tv_sec - time(NULL))) < 60);
	cr_assert(labs((long)(st.st_atim.tv_sec - time(NULL))) < 60);
	want_same("f");
	WORKS(futimens(fd, old));
	WORKS(close(fd));
	cr_assert(same_time(stat_of(s("f")).st_mtim, old[1]), "close changed the mtime");
}

Test(attrs, times_follow_what_is_done)
{
	struct stat before, after;

	put_text(c("f"), "1");
	before = stat_of(c("f"));
	usleep(50000);
	WORKS(chmod(c("f"), 0600));
	after = stat_of(c("f"));
	cr_assert(!same_time(before.st_ctim, after.st_ctim));
	cr_assert(same_time(before.st_mtim, after.st_mtim));
	usleep(50000);
	put_text(c("f"), "22");
	before = after;
	after = stat_of(c("f"));
	cr_assert(!same_time(before.st_mtim, after.st_mtim));
	cr_assert(same_time(after.st_mtim, stat_of(s("f")).st_mtim));
	usleep(50000);
	before = stat_of(c(""));
	put_text(c("g"), "");
	after = stat_of(c(""));
	cr_assert(!same_time(before.st_mtim, after.st_mtim));
	WORKS(rename(c("g"), c("h")));
	cr_assert(same_time(stat_of(c("h")).st_ctim, stat_of(s("h")).st_ctim));
}

Test(attrs, size_is_changed_by_truncate)
{
	put_pattern(c("f"), 10000);
	WORKS(truncate(c("f"), 777));
	want_same("f");
	WORKS(truncate(c("f"), (off_t)3 << 32));
	cr_assert(stat_of(c("f")).st_size == (off_t)3 << 32);
	want_same("f");
	WORKS(truncate(c("f"), 0));
	want_same("f");
	WORKS(mkdir(c("d"), 0755));
	FAILS(truncate(c("d"), 0), EISDIR);
	FAILS(truncate(c("f"), -1), EINVAL);
}

static const char *user_file;

static bool user_writes(void)
{
	int fd = open(user_file, O_WRONLY);

	return fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0;
}

Test(attrs, suid_and_sgid_go_with_a_write)
{
	put_text(c("f"), "program");
	WORKS(chmod(c("f"), 06777));
	cr_assert((stat_of(c("f")).st_mode & 07777) == 06777);
	user_file = c("f");
	as_user(1500, 1500, user_writes);
	cr_assert((stat_of(s("f")).st_mode & 07777) == 0777, "%o", stat_of(s("f")).st_mode);
	cr_assert((stat_of(c("f")).st_mode & 07777) == 0777, "%o", stat_of(c("f")).st_mode);
}

static bool user_gives_away(void)
{
	return chown(user_file, 1600, (gid_t)-1) == -1 && errno == EPERM &&
	       chown(user_file, (uid_t)-1, 1500) == 0;
}

Test(attrs, suid_goes_with_a_chown)
{
	put_text(c("f"), "program");
	WORKS(chown(c("f"), 1500, 1500));
	WORKS(chmod(c("f"), 06755));
	user_file = c("f");
	as_user(1500, 1500, user_gives_away);
	cr_assert((stat_of(s("f")).st_mode & 06000) == 0, "%o", stat_of(s("f")).st_mode);
	want_same("f");
}

static bool user_is_refused(void)
{
	return chmod(user_file, 0777) == -1 && errno == EPERM && truncate(user_file, 0) == -1 &&
	       errno == EACCES && utimensat(AT_FDCWD, user_file, NULL, 0) == -1 &&
	       errno == EACCES && open(user_file, O_WRONLY) == -1 && errno == EACCES &&
	       open(user_file, O_RDONLY) >= 0;
}

Test(attrs, of_others_cannot_be_changed)
{
	put_text(c("f"), "root's");
	user_file = c("f");
	as_user(1500, 1500, user_is_refused);
	want_text(s("f"), "root's");
}

static bool user_touches(void)
{
	const struct timespec past[2] = {{77, 1}, {78, 2}};

	return utimensat(AT_FDCWD, user_file, past, 0) == -1 && errno == EPERM &&
	       utimensat(AT_FDCWD, user_file, NULL, 0) == 0;
}

Test(attrs, times_of_a_writable_file_may_be_set_to_now_by_anyone)
{
	put_text(c("f"), "");
	WORKS(chmod(c("f"), 0666));
	user_file = c("f");
	as_user(1500, 1500, user_touches);
}

Test(attrs, new_modes_obey_the_umask)
{
	umask(027);
	WORKS(close(WORKS(open(c("f"), O_CREAT | O_WRONLY, 0666))));
	WORKS(mkdir(c("d"), 0777));
	WORKS(mknod(c("p"), S_IFIFO | 0666, 0));
	umask(0);
	WORKS(close(WORKS(open(c("g"), O_CREAT | O_WRONLY, 0666))));
	WORKS(mkdir(c("e"), 01777));
	umask(022);
	cr_assert((stat_of(s("f")).st_mode & 07777) == 0640);
	cr_assert((stat_of(s("d")).st_mode & 07777) == 0750);
	cr_assert((stat_of(s("p")).st_mode & 07777) == 0640);
	cr_assert((stat_of(s("g")).st_mode & 07777) == 0666);
	cr_assert((stat_of(s("e")).st_mode & 07777) == 01777);
}

static bool user_access(void)
{
	return access(user_file, F_OK) == 0 && access(user_file, R_OK) == 0 &&
	       access(user_file, W_OK) == -1 && errno == EACCES && access(user_file, X_OK) == -1 &&
	       errno == EACCES;
}

Test(attrs, access_is_what_the_server_grants)
{
	put_text(c("f"), "");
	cr_assert(access(c("f"), R_OK | W_OK) == 0);
	FAILS(access(c("f"), X_OK), EACCES);
	WORKS(chmod(c("f"), 0744));
	cr_assert(access(c("f"), R_OK | W_OK | X_OK) == 0);
	FAILS(access(c("none"), F_OK), ENOENT);
	cr_assert(access(c(""), R_OK | W_OK | X_OK) == 0);
	user_file = c("f");
	as_user(1500, 1500, user_access);
}

Test(attrs, of_the_file_system)
{
	struct statvfs a, b;

	WORKS(statvfs(c(""), &a));
	WORKS(statvfs(s(""), &b));
	cr_assert(a.f_blocks * a.f_frsize == b.f_blocks * b.f_frsize, "%llu, %llu",
		(unsigned long long)(a.f_blocks * a.f_frsize),
		(unsigned long long)(b.f_blocks * b.f_frsize));
	cr_assert(a.f_files == b.f_files);
	cr_assert(a.f_namemax == 255);
	cr_assert(a.f_bavail * a.f_frsize <= b.f_blocks * b.f_frsize && a.f_bavail > 0);
}

Test(attrs, changed_on_the_server_are_seen_in_time)
{
	put_text(s("f"), "1");
	cr_assert(stat_of(c("f")).st_size == 1);
	put_text(s("f"), "22");
	WORKS(chmod(s("f"), 0600));
	for (int i = 0; i < 80 && stat_of(c("f")).st_size != 2; i++)
		usleep(100000);
	want_same("f");
}
