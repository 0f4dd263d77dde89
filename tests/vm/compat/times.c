/* SPDX-License-Identifier: BSD-3-Clause */
/* Times: who may set them to what, and what changes them. */
#include "compat.h"

#include <linux/stat.h>
#include <sys/syscall.h>
#include <time.h>

static const struct timespec then[2] = {{1000000000, 123456789}, {1100000000, 987654321}};

/* A time of the last hour is "now": what it was set to is another one. */
static void say_time(const char *name)
{
	struct stat st;

	NEED(lstat(name, &st));
	if (labs((long)(time(NULL) - st.st_mtim.tv_sec)) < 3600)
		say("now");
	else
		say("%ld.%09ld", (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static void both(void)
{
	struct stat st;

	put("f", "");
	tell(utimensat(AT_FDCWD, "f", then, 0));
	NEED(stat("f", &st));
	say("%ld.%09ld", (long)st.st_atim.tv_sec, st.st_atim.tv_nsec);
	say_time("f");
	say_time(on_server("f"));
}

static void omit(void)
{
	struct timespec ts[2] = {{0, UTIME_OMIT}, {1200000000, 1}};
	struct stat st;

	put("f", "");
	NEED(utimensat(AT_FDCWD, "f", then, 0));
	tell(utimensat(AT_FDCWD, "f", ts, 0));
	NEED(stat("f", &st));
	say("%ld %ld", (long)st.st_atim.tv_sec, (long)st.st_mtim.tv_sec);
	ts[1].tv_nsec = UTIME_OMIT;
	tell(utimensat(AT_FDCWD, "f", ts, 0));
	tell(utimensat(AT_FDCWD, "none", ts, 0));
}

static void now(void)
{
	struct timespec ts[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
	struct stat st;

	put("f", "");
	NEED(utimensat(AT_FDCWD, "f", then, 0));
	tell(utimensat(AT_FDCWD, "f", ts, 0));
	NEED(stat("f", &st));
	say("%s %ld", st.st_atim.tv_sec > 1500000000 ? "now" : "not now", (long)st.st_mtim.tv_sec);
}

static void bad(void)
{
	struct timespec ts[2] = {{1, 1000000000}, {1, 0}};

	put("f", "");
	tell(utimensat(AT_FDCWD, "f", ts, 0));
	tell(utimensat(AT_FDCWD, "f", then, 0x8000));
	tell(utimensat(AT_FDCWD, "none", then, 0));
}

/* Before 1970 and after 2038: what the server's file system can hold. */
static void far(void)
{
	struct timespec ts[2] = {{-100, 5}, {-100, 5}};

	put("f", "");
	tell(utimensat(AT_FDCWD, "f", ts, 0));
	say_time("f");
	ts[0].tv_sec = ts[1].tv_sec = 5000000000;
	tell(utimensat(AT_FDCWD, "f", ts, 0));
	say_time("f");
	ts[0].tv_sec = ts[1].tv_sec = 1ll << 40;
	tell(utimensat(AT_FDCWD, "f", ts, 0));
	say_time(on_server("f"));
}

static void try_all(void)
{
	struct timespec now_omit[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
	struct timespec omits[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};

	tell(utimensat(AT_FDCWD, "f", then, 0));
	tell(utimensat(AT_FDCWD, "f", NULL, 0));
	tell(utimensat(AT_FDCWD, "f", now_omit, 0));
	tell(utimensat(AT_FDCWD, "f", omits, 0));
}

static void owner(void)
{
	put_as("f", ALICE, TEAM, 0444);
	as(ALICE, TEAM, try_all);
}

static void writer(void)
{
	put_as("f", ALICE, TEAM, 0666);
	as(BOB, CREW, try_all);
}

static void reader(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(BOB, CREW, try_all);
}

static void root(void)
{
	put_as("f", ALICE, TEAM, 0);
	try_all();
}

static void others(void)
{
	int fd;

	NEED(mkdir("d", 0777));
	NEED(symlink("none", "l"));
	NEED(mkfifo("p", 0666));
	put("f", "");
	tell(utimensat(AT_FDCWD, "d", then, 0));
	say_time("d");
	tell(utimensat(AT_FDCWD, "l", then, AT_SYMLINK_NOFOLLOW));
	say_time("l");
	tell(utimensat(AT_FDCWD, "p", then, 0));
	say_time("p");
	fd = (int)NEED(open("f", O_RDONLY));
	tell(futimens(fd, then));
	say_time("f");
}

/* Written data that is not back yet must not change the time that was set. */
static void after_write(void)
{
	int fd = data_file("f", 100000);

	tell(futimens(fd, then));
	NEED(fsync(fd));
	NEED(close(fd));
	say_time("f");
	say_time(on_server("f"));
}

static const char *moved(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec ? "same" : "new";
}

static struct stat before;

static void start(const char *name)
{
	NEED(stat(name, &before));
	usleep(20000);
}

static void say_changes(const char *name)
{
	struct stat after;

	NEED(stat(name, &after));
	say("%s mtime %s ctime", moved(&before.st_mtim, &after.st_mtim),
		moved(&before.st_ctim, &after.st_ctim));
}

static void changed_by_write(void)
{
	int fd = data_file("f", 10);

	NEED(fsync(fd));
	start("f");
	NEED(pwrite(fd, "y", 1, 0));
	NEED(fsync(fd));
	say_changes("f");
}

static void changed_by_attributes(void)
{
	NEED(close(data_file("f", 10)));
	start("f");
	NEED(chmod("f", 0600));
	say_changes("f");
	start("f");
	NEED(link("f", "g"));
	say_changes("f");
	start("f");
	NEED(rename("f", "h"));
	say_changes("h");
}

static void changed_directory(void)
{
	NEED(mkdir("d", 0777));
	start("d");
	put("d/f", "");
	say_changes("d");
	start("d");
	NEED(unlink("d/f"));
	say_changes("d");
}

/* With relatime of the server; this client does not set atime itself. */
static void atime_by_read(void)
{
	struct stat st;
	char c;
	int fd = data_file("f", 10);

	NEED(fsync(fd));
	NEED(futimens(fd, then));
	NEED(close(fd));
	fd = (int)NEED(open("f", O_RDONLY));
	NEED(pread(fd, &c, 1, 0));
	NEED(close(fd));
	NEED(stat(on_server("f"), &st));
	say("%s", moved(&then[0], &st.st_atim));
}

static void with_statx(int flags)
{
	struct statx sx = {0};

	if (tell(syscall(SYS_statx, AT_FDCWD, "f", flags, STATX_ALL, &sx)) != -1)
		say("%s size %lld",
			(sx.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS ? "all" : "some",
			(long long)sx.stx_size);
}

static void statx_sync(void)
{
	NEED(close(data_file("f", 10)));
	with_statx(AT_STATX_FORCE_SYNC);
	with_statx(AT_STATX_DONT_SYNC);
	with_statx(AT_STATX_SYNC_AS_STAT);
	with_statx(AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC);
}

static void statx_mask(void)
{
	struct statx sx = {0};

	NEED(close(data_file("f", 10)));
	NEED(syscall(SYS_statx, AT_FDCWD, "f", AT_STATX_FORCE_SYNC, STATX_ALL | STATX_MNT_ID, &sx));
	say("%s", sx.stx_mask & STATX_BTIME ? "btime" : "no btime");
	say("%s", sx.stx_mask & STATX_MNT_ID ? "mnt_id" : "no mnt_id");
	say("attributes %llx", (unsigned long long)(sx.stx_attributes));
}

const struct topic topic_times = {.name = "times",
	.probes = (const struct probe[]){{"utimensat: atime, mtime, mtime on the server", both},
		{"UTIME_OMIT: for one, the times; for both; no such name", omit},
		{"UTIME_NOW for one, UTIME_OMIT for the other", now},
		{"10^9 nanoseconds, an unknown flag, no such name", bad},
		{"before 1970, 2128, year 36812 on the server", far},
		{"by the owner, mode 0444: given, NULL, UTIME_NOW and OMIT, OMIT twice", owner},
		{"by another who may write: given, NULL, UTIME_NOW and OMIT, OMIT twice", writer},
		{"by another who may read: given, NULL, UTIME_NOW and OMIT, OMIT twice", reader},
		{"by root, mode 0000: given, NULL, UTIME_NOW and OMIT, OMIT twice", root},
		{"a directory, a symlink itself, a fifo, futimens of O_RDONLY", others},
		{"futimens after a write, then fsync and close: mtime, on the server", after_write},
		{"changed by write", changed_by_write},
		{"changed by chmod, link, rename", changed_by_attributes},
		{"of a directory, changed by create, unlink", changed_directory},
		{"atime after a read", atime_by_read},
		{"statx: FORCE_SYNC, DONT_SYNC, SYNC_AS_STAT, the first two", statx_sync},
		{"statx: STATX_BTIME, STATX_MNT_ID, attributes", statx_mask}, {0}}};
