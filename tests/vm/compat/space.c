/* SPDX-License-Identifier: BSD-3-Clause */
/* fallocate in each mode, lseek to data and holes, the blocks of a file. */
#include "compat.h"

#include <linux/falloc.h>

enum {
	KIB = 1024,
	FILE_SIZE = 256 * KIB
};

/* What became of size, blocks and the data at 64 KiB. */
static void changed(int mode, off_t off, off_t len)
{
	int fd = data_file("f", FILE_SIZE);
	struct stat a, b;
	char c = 0;

	NEED(fsync(fd));
	NEED(stat(on_server("f"), &a));
	if (tell(fallocate(fd, mode, off, len)) == -1)
		return;
	NEED(stat(on_server("f"), &b));
	say("size %+ld blocks %+ld", (long)(b.st_size - a.st_size),
		(long)(b.st_blocks - a.st_blocks));
	NEED(pread(fd, &c, 1, 64 * KIB));
	say("%s", c == 'x' ? "data" : "zeros");
}

static void allocate(void)
{
	changed(0, FILE_SIZE, 64 * KIB);
}

static void allocate_inside(void)
{
	changed(0, 0, 64 * KIB);
}

static void keep_size(void)
{
	changed(FALLOC_FL_KEEP_SIZE, FILE_SIZE, 64 * KIB);
}

static void punch(void)
{
	changed(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 64 * KIB, 64 * KIB);
}

static void punch_odd(void)
{
	changed(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 64 * KIB - 5, 4096 + 10);
}

static void punch_past_end(void)
{
	changed(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1024 * KIB, 64 * KIB);
}

static void punch_alone(void)
{
	changed(FALLOC_FL_PUNCH_HOLE, 64 * KIB, 64 * KIB);
}

static void zero(void)
{
	changed(FALLOC_FL_ZERO_RANGE, 64 * KIB, 64 * KIB);
}

static void zero_keep(void)
{
	changed(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 64 * KIB, 64 * KIB);
}

static void collapse(void)
{
	changed(FALLOC_FL_COLLAPSE_RANGE, 0, 64 * KIB);
}

static void insert(void)
{
	changed(FALLOC_FL_INSERT_RANGE, 0, 64 * KIB);
}

static void unshare(void)
{
	changed(FALLOC_FL_UNSHARE_RANGE, 0, 64 * KIB);
}

static void unknown(void)
{
	changed(0x800, 0, 64 * KIB);
}

static void arguments(void)
{
	int fd = data_file("f", 10);

	tell(fallocate(fd, 0, 0, 0));
	tell(fallocate(fd, 0, -1, 10));
	tell(fallocate(fd, 0, 0, -1));
	tell(fallocate(fd, 0, LLONG_MAX, 1));
	tell(fallocate(fd, 0, 16ll << 40, 4096));
}

static void too_much(void)
{
	int fd = data_file("f", 10);

	/* ext4 keeps what it had allocated until it failed. */
	tell(fallocate(fd, 0, 0, 1ll << 40));
	say_size("f");
	NEED(close(fd));
	NEED(unlink("f"));
}

static void wrong_files(void)
{
	NEED(mkdir("d", 0777));
	NEED(mkfifo("p", 0666));
	NEED(close(data_file("f", 10)));
	tell(fallocate((int)NEED(open("f", O_RDONLY)), 0, 0, 10));
	tell(fallocate((int)NEED(open("d", O_RDONLY)), 0, 0, 10));
	tell(fallocate((int)NEED(open("p", O_RDWR)), 0, 0, 10));
}

static void posix(void)
{
	int fd = (int)NEED(open("f", O_CREAT | O_RDWR, 0644));

	errno = posix_fallocate(fd, 0, 100000);
	tell(errno == 0 ? 0 : -1);
	say_size("f");
}

static void limit(void)
{
	int fd = data_file("f", 10);
	struct stat st;

	tell(fallocate(fd, 0, 0, 1 << 20));
	NEED(fstat(fd, &st));
	say("%s", st.st_blocks >= 2048 ? "allocated" : "not allocated");
}

/* ---- lseek: 64 KiB data, 64 KiB hole, 64 KiB data, hole to 256 KiB ---- */

static int holes(void)
{
	char *data = malloc(64 * KIB);
	int fd = (int)NEED(open("f", O_CREAT | O_RDWR, 0644));

	memset(data, 'x', 64 * KIB);
	NEED(pwrite(fd, data, 64 * KIB, 0));
	NEED(pwrite(fd, data, 64 * KIB, 128 * KIB));
	NEED(ftruncate(fd, FILE_SIZE));
	free(data);
	return fd;
}

static void seek_data(void)
{
	int fd = holes();

	count(lseek(fd, 0, SEEK_DATA));
	count(lseek(fd, 64 * KIB, SEEK_DATA));
	count(lseek(fd, 128 * KIB + 5, SEEK_DATA));
	count(lseek(fd, 192 * KIB, SEEK_DATA));
	count(lseek(fd, FILE_SIZE, SEEK_DATA));
	count(lseek(fd, -1, SEEK_DATA));
}

static void seek_hole(void)
{
	int fd = holes();

	count(lseek(fd, 0, SEEK_HOLE));
	count(lseek(fd, 64 * KIB + 5, SEEK_HOLE));
	count(lseek(fd, 128 * KIB, SEEK_HOLE));
	count(lseek(fd, 192 * KIB, SEEK_HOLE));
	count(lseek(fd, FILE_SIZE, SEEK_HOLE));
	count(lseek(fd, -1, SEEK_HOLE));
}

static void seek_full(void)
{
	int fd = data_file("f", 100000);

	count(lseek(fd, 0, SEEK_DATA));
	count(lseek(fd, 0, SEEK_HOLE));
	count(lseek(fd, 99999, SEEK_HOLE));
}

static void seek_empty(void)
{
	int fd = (int)NEED(open("f", O_CREAT | O_RDWR, 0644));

	count(lseek(fd, 0, SEEK_DATA));
	count(lseek(fd, 0, SEEK_HOLE));
}

static void seek_others(void)
{
	int fd = data_file("f", 100);

	count(lseek(fd, 10, SEEK_SET));
	count(lseek(fd, 10, SEEK_CUR));
	count(lseek(fd, 10, SEEK_END));
	count(lseek(fd, 0, 77));
	count(lseek(fd, LLONG_MAX, SEEK_SET));
	count(lseek(fd, 1, SEEK_CUR));
}

static void seek_directory(void)
{
	int fd;

	NEED(mkdir("d", 0777));
	fd = (int)NEED(open("d", O_RDONLY));
	count(lseek(fd, 0, SEEK_SET));
	count(lseek(fd, 0, SEEK_CUR));
	count(lseek(fd, 0, SEEK_END));
	count(lseek(fd, 0, SEEK_DATA));
	count(lseek(fd, -1, SEEK_SET));
}

static void blocks(void)
{
	struct stat a, b;
	int fd = holes();

	NEED(fsync(fd));
	NEED(close(fd));
	NEED(stat("f", &a));
	NEED(stat(on_server("f"), &b));
	say("%s", a.st_blocks == b.st_blocks ? "as the server's" : "other");
	say("blksize %s", a.st_blksize > 4096 ? "large" : "4096 or less");
}

const struct topic topic_space = {.name = "space",
	.probes = (const struct probe[]){{"fallocate behind the end", allocate},
		{"fallocate inside the file", allocate_inside},
		{"fallocate: blocks of 1 MiB", limit},
		{"FALLOC_FL_KEEP_SIZE behind the end", keep_size},
		{"FALLOC_FL_PUNCH_HOLE with KEEP_SIZE", punch},
		{"FALLOC_FL_PUNCH_HOLE with KEEP_SIZE: odd bytes", punch_odd},
		{"FALLOC_FL_PUNCH_HOLE with KEEP_SIZE: past the end", punch_past_end},
		{"FALLOC_FL_PUNCH_HOLE alone", punch_alone}, {"FALLOC_FL_ZERO_RANGE", zero},
		{"FALLOC_FL_ZERO_RANGE with KEEP_SIZE", zero_keep},
		{"FALLOC_FL_COLLAPSE_RANGE", collapse}, {"FALLOC_FL_INSERT_RANGE", insert},
		{"FALLOC_FL_UNSHARE_RANGE", unshare}, {"an unknown mode of fallocate", unknown},
		{"fallocate: 0 bytes, offset -1, length -1, over LLONG_MAX, past what ext4 has",
			arguments},
		{"fallocate of more than there is; size", too_much},
		{"fallocate: O_RDONLY, a directory, a fifo", wrong_files},
		{"posix_fallocate; size", posix},
		{"SEEK_DATA: in data, in a hole, inside data, in the last hole, at the end, -1",
			seek_data},
		{"SEEK_HOLE: in data, in a hole, in data, in the last hole, at the end, -1",
			seek_hole},
		{"a file without holes: SEEK_DATA, SEEK_HOLE, SEEK_HOLE at the last byte",
			seek_full},
		{"an empty file: SEEK_DATA, SEEK_HOLE", seek_empty},
		{"SEEK_SET, CUR, END, unknown, LLONG_MAX, past it", seek_others},
		{"lseek of a directory: SEEK_SET, CUR, END, DATA, -1", seek_directory},
		{"st_blocks of a sparse file; st_blksize", blocks}, {0}}};
