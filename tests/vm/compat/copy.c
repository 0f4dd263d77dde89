/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_file_range, and the three ioctls of reflinks. */
#include "compat.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

enum {
	SIZE = 65536
};

static ssize_t copy_at(int in, off_t from, int out, off_t to, size_t len)
{
	return copy_file_range(in, &from, out, &to, len, 0);
}

static int letters(const char *name, char c, size_t len)
{
	char *data = malloc(len);
	int fd = data_file(name, len);

	memset(data, c, len);
	NEED(pwrite(fd, data, len, 0));
	free(data);
	return fd;
}

static void say_byte(int fd, off_t off)
{
	char c = '-';

	NEED(pread(fd, &c, 1, off));
	say("%c", c);
}

static void two_files(void)
{
	int in = letters("in", 'a', SIZE), out = letters("out", 'b', 10);

	count(copy_at(in, 0, out, 5, SIZE));
	say_size("out");
	say_byte(out, 4);
	say_byte(out, 5);
}

static void positions(void)
{
	int in = letters("in", 'a', 100), out = letters("out", 'b', 10);

	NEED(lseek(in, 90, SEEK_SET));
	count(copy_file_range(in, NULL, out, NULL, 100, 0));
	count(lseek(in, 0, SEEK_CUR));
	count(lseek(out, 0, SEEK_CUR));
}

static void past_end(void)
{
	int in = letters("in", 'a', 100), out = letters("out", 'b', 10);

	count(copy_at(in, 50, out, 0, 1000));
	count(copy_at(in, 100, out, 0, 10));
	count(copy_at(in, 1000, out, 0, 10));
	count(copy_at(in, 0, out, 0, 0));
	say_size("out");
}

static void same_file(void)
{
	int fd = letters("f", 'a', SIZE);

	count(copy_at(fd, 0, fd, SIZE, SIZE));
	say_size("f");
	count(copy_at(fd, 0, open_rw("f"), 2 * SIZE, SIZE));
	say_size("f");
}

static void overlapping(void)
{
	int fd = letters("f", 'a', SIZE);

	count(copy_at(fd, 0, fd, 100, SIZE));
	count(copy_at(fd, 0, fd, 0, SIZE));
	say_size("f");
}

static void wrong_files(void)
{
	int f = letters("f", 'a', 100), d, p;

	NEED(mkdir("d", 0777));
	NEED(mkfifo("p", 0666));
	d = (int)NEED(open("d", O_RDONLY));
	p = (int)NEED(open("p", O_RDWR));
	count(copy_at(f, 0, d, 0, 10));
	count(copy_at(d, 0, f, 0, 10));
	count(copy_at(f, 0, p, 0, 10));
	count(copy_at(p, 0, f, 0, 10));
}

static void wrong_opens(void)
{
	int in = letters("in", 'a', 100);

	NEED(close(letters("out", 'b', 10)));
	count(copy_at(in, 0, (int)NEED(open("out", O_RDONLY)), 0, 10));
	count(copy_at(in, 0, (int)NEED(open("out", O_WRONLY | O_APPEND)), 0, 10));
	count(copy_at((int)NEED(open("in", O_WRONLY)), 0, open_rw("out"), 0, 10));
	count(copy_at(in, 0, (int)NEED(open("out", O_WRONLY)), 0, 10));
}

static void arguments(void)
{
	int in = letters("in", 'a', 100), out = letters("out", 'b', 10);

	count(copy_file_range(in, NULL, out, NULL, 10, 1));
	count(copy_at(in, -1, out, 0, 10));
	count(copy_at(in, 0, out, -1, 10));
	count(copy_at(in, 0, out, LLONG_MAX - 5, 10));
	count(copy_at(in, 0, out, (16ll << 40) - 4096, 10));
}

static void from_elsewhere(void)
{
	char path[] = "/tmp/compat.XXXXXX";
	int tmp = (int)NEED(mkstemp(path)), f = letters("f", 'a', 100);

	unlink(path);
	NEED(write(tmp, "text", 4));
	count(copy_at(tmp, 0, f, 0, 10));
	count(copy_at(f, 0, tmp, 0, 10));
}

static void unwritten(void)
{
	int in = letters("in", 'a', 3 * SIZE), out = letters("out", 'b', 10);

	NEED(pwrite(in, "c", 1, 2 * SIZE));
	NEED(pwrite(out, "d", 1, 3 * SIZE));
	count(copy_at(in, 0, out, 0, 3 * SIZE));
	say_byte(out, 2 * SIZE);
	say_byte(out, 3 * SIZE);
}

static void removed_source(void)
{
	int in = letters("in", 'a', SIZE), out = letters("out", 'b', 10);

	NEED(unlink("in"));
	count(copy_at(in, 0, out, 0, SIZE));
}

static void copy_limit(void)
{
	int in = letters("in", 'a', SIZE), out = letters("out", 'b', 10);

	count(copy_at(in, 0, out, 0, SIZE_MAX));
	count(copy_at(in, 0, out, 0, SSIZE_MAX));
}

const struct topic topic_copy = {.name = "copy_file_range",
	.probes = (const struct probe[]){
		{"between two files; size; bytes around the start", two_files},
		{"without offsets: count, both positions", positions},
		{"over the end, at it, past it, 0 bytes; size", past_end},
		{"within one file by one descriptor, by two", same_file},
		{"within one file, overlapping; onto itself; size", overlapping},
		{"to a directory, from one, to a fifo, from one", wrong_files},
		{"to O_RDONLY, to O_APPEND, from O_WRONLY, to O_WRONLY", wrong_opens},
		{"flags 1; from -1; to -1; over LLONG_MAX; past what ext4 has", arguments},
		{"from another file system, to one", from_elsewhere},
		{"data not written back yet: of the source, behind the target", unwritten},
		{"from a removed file", removed_source}, {"length SIZE_MAX, SSIZE_MAX", copy_limit},
		{0}}};

/* ---- reflinks ---- */

static long clone_range(int in, off_t from, int out, off_t to, size_t len)
{
	struct file_clone_range r = {.src_fd = in,
		.src_offset = (uint64_t)from,
		.src_length = len,
		.dest_offset = (uint64_t)to};

	return ioctl(out, FICLONERANGE, &r);
}

static void ficlone(void)
{
	int in = letters("in", 'a', SIZE), out = letters("out", 'b', 10);

	if (tell(ioctl(out, FICLONE, in)) != -1) {
		say_size("out");
		say_byte(out, 100);
	}
}

static void ficlonerange(void)
{
	int in = letters("in", 'a', SIZE), out = letters("out", 'b', 10);

	if (tell(clone_range(in, 0, out, 4096, 4096)) != -1)
		say_size("out");
	tell(clone_range(in, 1, out, 4096, 4096));
	tell(clone_range(in, 0, out, 0, 100));
	tell(clone_range(in, 0, out, 0, 10 * SIZE));
}

static void clone_wrong(void)
{
	int in = letters("in", 'a', SIZE);

	NEED(mkdir("d", 0777));
	NEED(close(letters("out", 'b', 10)));
	tell(ioctl((int)NEED(open("d", O_RDONLY)), FICLONE, in));
	tell(ioctl(in, FICLONE, NEED(open("d", O_RDONLY))));
	tell(ioctl((int)NEED(open("out", O_RDONLY)), FICLONE, in));
	tell(ioctl((int)NEED(open("out", O_WRONLY | O_APPEND)), FICLONE, in));
	tell(ioctl(open_rw("out"), FICLONE, -1));
	tell(ioctl(open_rw("out"), FICLONE, NEED(open("/dev/null", O_RDONLY))));
}

static void clone_itself(void)
{
	int fd = letters("f", 'a', SIZE);

	tell(ioctl(fd, FICLONE, fd));
	tell(clone_range(fd, 0, fd, SIZE, 4096));
}

static void dedupe(void)
{
	int in = letters("in", 'a', SIZE), out = letters("out", 'a', SIZE);
	struct file_dedupe_range *r = calloc(1, sizeof(*r) + sizeof(r->info[0]));

	r->src_length = 4096;
	r->dest_count = 1;
	r->info[0].dest_fd = out;
	if (tell(ioctl(in, FIDEDUPERANGE, r)) != -1) {
		errno = -r->info[0].status;
		tell(r->info[0].status < 0 ? -1 : 0);
	}
}

const struct topic topic_clone = {.name = "reflink",
	.probes = (const struct probe[]){{"FICLONE: size, data", ficlone},
		{"FICLONERANGE: blocks, an odd offset, an odd length, past the end", ficlonerange},
		{"FICLONE: to a directory, from one, to O_RDONLY, to O_APPEND, from no "
		 "descriptor, from /dev/null",
			clone_wrong},
		{"FICLONE onto itself; FICLONERANGE within a file", clone_itself},
		{"FIDEDUPERANGE: the ioctl, its status", dedupe}, {0}}};
