/* SPDX-License-Identifier: BSD-3-Clause */
/* truncate and ftruncate: what they refuse, and what cached data becomes. */
#include "compat.h"

#include <sys/mman.h>

static void up(void)
{
	char buf[8] = "xxxxxxx";
	int fd = data_file("f", 10);

	tell(ftruncate(fd, 20000));
	say_size("f");
	NEED(pread(fd, buf, 8, 15000));
	say("%s", memcmp(buf, (char[8]){0}, 8) == 0 ? "zeros" : "no zeros");
}

/* Cached data must not come back. */
static void down_up(void)
{
	int fd = data_file("f", 20000);
	char buf[8];

	NEED(pread(fd, buf, 8, 10000));
	tell(ftruncate(fd, 5001));
	tell(ftruncate(fd, 20000));
	NEED(pread(fd, buf, 8, 5001));
	say("%s", memcmp(buf, (char[8]){0}, 8) == 0 ? "zeros" : "no zeros");
	NEED(pread(fd, buf, 8, 10000));
	say("%s", memcmp(buf, (char[8]){0}, 8) == 0 ? "zeros" : "no zeros");
	NEED(pread(fd, buf, 1, 5000));
	say("%c", buf[0]);
}

static void down_write(void)
{
	int fd = data_file("f", 20000);
	char buf[8];

	tell(truncate("f", 100));
	count(pwrite(fd, "y", 1, 10000));
	say_size("f");
	NEED(pread(fd, buf, 8, 5000));
	say("%s", memcmp(buf, (char[8]){0}, 8) == 0 ? "zeros" : "no zeros");
	NEED(fsync(fd));
	say_size(on_server("f"));
}

static void elsewhere(void)
{
	int fd = data_file("f", 20000);
	char c;

	NEED(fsync(fd));
	tell(truncate("f", 0));
	count(pread(fd, &c, 1, 10000));
	say_size("f");
}

static void refused(void)
{
	NEED(close(data_file("f", 10)));
	NEED(mkdir("d", 0777));
	NEED(mkfifo("p", 0666));
	tell(truncate("f", -1));
	tell(truncate("d", 0));
	tell(truncate("p", 0));
	tell(truncate("none", 0));
	tell(ftruncate((int)NEED(open("f", O_RDONLY)), 0));
	tell(ftruncate((int)NEED(open("f", O_RDWR)), -1));
}

static void largest(void)
{
	int fd = data_file("f", 10);

	tell(ftruncate(fd, (16ll << 40) - 4096));
	say_size("f");
	tell(ftruncate(fd, 16ll << 40));
	tell(ftruncate(fd, LLONG_MAX));
	say_size("f");
}

static void by_name(void)
{
	tell(truncate("f", 2));
}

static void not_writable(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(BOB, CREW, by_name);
	say_text("f");
}

static void owner_0444(void)
{
	put_as("f", ALICE, TEAM, 0444);
	as(ALICE, TEAM, by_name);
}

static void by_handle(void)
{
	int fd = (int)NEED(open("f", O_RDWR));

	NEED(chmod("f", 0));
	tell(ftruncate(fd, 2));
	tell(truncate("f", 1));
}

static void handle_0000(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(ALICE, TEAM, by_handle);
	say_size("f");
}

static void through_symlink(void)
{
	put("f", "text");
	NEED(symlink("f", "l"));
	NEED(symlink("none", "dangling"));
	tell(truncate("l", 2));
	say_size("f");
	tell(truncate("dangling", 2));
}

static void same_size(void)
{
	struct stat a, b;
	int fd = data_file("f", 10);

	NEED(fsync(fd));
	NEED(fstat(fd, &a));
	usleep(20000);
	tell(ftruncate(fd, 10));
	NEED(fstat(fd, &b));
	say("%s", a.st_mtim.tv_nsec == b.st_mtim.tv_nsec ? "same mtime" : "new mtime");
	say("%s", a.st_ctim.tv_nsec == b.st_ctim.tv_nsec ? "same ctime" : "new ctime");
}

static void mapped(void)
{
	int fd = data_file("f", 8192);
	char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	map[100] = 'm';
	map[5000] = 'm';
	tell(ftruncate(fd, 50));
	tell(ftruncate(fd, 8192));
	say("%d %d %c", map[100], map[5000], map[49]);
}

const struct topic topic_truncate = {.name = "truncate",
	.probes = (const struct probe[]){{"up: size, what is read there", up},
		{"down under cached data, and up again", down_up},
		{"down, then a write past the end", down_write},
		{"to 0 by name under an open file: pread, size", elsewhere},
		{"-1, a directory, a fifo, no such name; ftruncate of O_RDONLY, to -1", refused},
		{"to the largest size of ext4; to more; to LLONG_MAX", largest},
		{"by a user who may not write", not_writable},
		{"by the owner of a file of mode 0444", owner_0444},
		{"mode 0000: ftruncate of what is open for writing, truncate by name", handle_0000},
		{"through a symlink, a dangling one", through_symlink},
		{"ftruncate to the size it has: mtime, ctime", same_size},
		{"under a shared mapping, down and up: what is mapped", mapped}, {0}}};
