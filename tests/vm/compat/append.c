/* SPDX-License-Identifier: BSD-3-Clause */
/* O_APPEND, and O_DIRECT: where data goes, of what size it may be. */
#include "compat.h"

#include <sys/uio.h>
#include <sys/wait.h>

static void two_fds(void)
{
	int a = (int)NEED(open("f", O_CREAT | O_WRONLY | O_APPEND, 0644));
	int b = (int)NEED(open("f", O_WRONLY | O_APPEND));

	count(write(a, "one.", 4));
	count(write(b, "two.", 4));
	count(write(a, "three.", 6));
	say_text("f");
}

static void hundred_lines(void)
{
	int fd = (int)NEED(open("f", O_WRONLY | O_APPEND));

	for (int i = 0; i < 100; i++)
		NEED(write(fd, "0123456789abcde\n", 16));
	NEED(close(fd));
}

static void two_processes(void)
{
	int status;
	pid_t pid;

	put("f", "");
	pid = (pid_t)NEED(fork());
	if (pid == 0) {
		hundred_lines();
		_exit(0);
	}
	hundred_lines();
	NEED(waitpid(pid, &status, 0));
	say_size("f");
}

static void positions(void)
{
	int fd;

	put("f", "text");
	fd = (int)NEED(open("f", O_WRONLY | O_APPEND));
	count(pwrite(fd, "more", 4, 0));
	say_text("f");
	count(write(fd, "end", 3));
	count(lseek(fd, 0, SEEK_CUR));
}

static void by_fcntl(void)
{
	int fd;

	put("f", "text");
	fd = open_rw("f");
	tell(fcntl(fd, F_SETFL, O_APPEND));
	count(write(fd, "more", 4));
	tell(fcntl(fd, F_SETFL, 0));
	count(pwrite(fd, "T", 1, 0));
	say_text("f");
}

static void rwf_append(void)
{
	struct iovec v = {(char[]){"more"}, 4};
	int fd;

	put("f", "text");
	fd = open_rw("f");
	count(pwritev2(fd, &v, 1, 0, RWF_APPEND));
	say_text("f");
}

static void after_truncate(void)
{
	int fd;

	put("f", "longer text");
	fd = (int)NEED(open("f", O_WRONLY | O_APPEND));
	NEED(truncate("f", 4));
	count(write(fd, "more", 4));
	say_text("f");
}

static void append_direct(void)
{
	int fd;

	put("f", "text");
	fd = (int)tell(open("f", O_WRONLY | O_APPEND | O_DIRECT));
	count(write(fd, "more", 4));
	say_text("f");
}

/* Offset, length and address are `shift` off what a disk wants. */
static void direct_io(size_t len, off_t off, size_t shift)
{
	char *buf = aligned_alloc(4096, 65536);
	int fd = (int)NEED(open("f", O_RDWR | O_CREAT | O_DIRECT, 0644));

	memset(buf, 'd', 65536);
	count(pwrite(fd, buf + shift, len, off));
	memset(buf, 0, 65536);
	count(pread(fd, buf + shift, len, off));
	say("%s", buf[shift] == 'd' && buf[shift + len - 1] == 'd' ? "same" : "other");
	say_size("f");
}

static void direct_aligned(void)
{
	direct_io(8192, 4096, 0);
}

static void direct_odd_size(void)
{
	direct_io(5001, 4096, 0);
}

static void direct_odd_offset(void)
{
	direct_io(4096, 777, 0);
}

static void direct_odd_address(void)
{
	direct_io(4096, 0, 13);
}

static void direct_end(void)
{
	char *buf = aligned_alloc(4096, 8192);
	int fd;

	close(data_file("f", 5000));
	fd = (int)NEED(open("f", O_RDONLY | O_DIRECT));
	count(pread(fd, buf, 8192, 0));
	count(pread(fd, buf, 8192, 4096));
	count(pread(fd, buf, 8192, 8192));
}

static void direct_vector(void)
{
	char *buf = aligned_alloc(4096, 12288);
	struct iovec v[2] = {{buf, 100}, {buf + 4096, 5000}};
	int fd = (int)NEED(open("f", O_RDWR | O_CREAT | O_DIRECT, 0644));

	memset(buf, 'd', 12288);
	count(writev(fd, v, 2));
	count(preadv(fd, v, 2, 0));
}

static void direct_and_cached(void)
{
	int cached = data_file("f", 8192), direct;
	char *buf = aligned_alloc(4096, 4096), c;

	direct = (int)NEED(open("f", O_RDWR | O_DIRECT));
	NEED(pread(cached, &c, 1, 0));
	memset(buf, 'd', 4096);
	NEED(pwrite(direct, buf, 4096, 0));
	NEED(pread(cached, &c, 1, 0));
	say("%c", c);
	NEED(pwrite(cached, "e", 1, 4096));
	NEED(pread(direct, buf, 4096, 4096));
	say("%c", buf[0]);
}

static void direct_by_fcntl(void)
{
	char c = 0;
	int fd;

	put("f", "text");
	fd = open_rw("f");
	tell(fcntl(fd, F_SETFL, O_DIRECT));
	say("%s", NEED(fcntl(fd, F_GETFL)) & O_DIRECT ? "set" : "not set");
	count(pread(fd, &c, 1, 1));
	say("%c", c);
	tell(fcntl(fd, F_SETFL, 0));
}

static void append_direct_by_fcntl(void)
{
	int fd;

	put("f", "text");
	fd = open_rw("f");
	tell(fcntl(fd, F_SETFL, O_DIRECT | O_APPEND));
	count(write(fd, "more", 4));
	say_text("f");
}

const struct topic topic_append = {.name = "append and direct",
	.probes = (const struct probe[]){{"O_APPEND: by two descriptors in turns", two_fds},
		{"O_APPEND: two processes, 100 lines of 16 bytes each: size", two_processes},
		{"O_APPEND: pwrite at 0; the position after a write", positions},
		{"O_APPEND by F_SETFL, and off again", by_fcntl}, {"RWF_APPEND", rwf_append},
		{"O_APPEND: after truncate by name", after_truncate},
		{"O_APPEND with O_DIRECT: open, write", append_direct},
		{"O_DIRECT: write and read, aligned", direct_aligned},
		{"O_DIRECT: an odd size", direct_odd_size},
		{"O_DIRECT: an odd offset", direct_odd_offset},
		{"O_DIRECT: an odd address", direct_odd_address},
		{"O_DIRECT: read over the end, from near it, past it", direct_end},
		{"O_DIRECT: writev and preadv of odd parts", direct_vector},
		{"O_DIRECT write seen by a cached read, and the reverse", direct_and_cached},
		{"O_DIRECT by F_SETFL", direct_by_fcntl},
		{"O_DIRECT and O_APPEND by F_SETFL: write", append_direct_by_fcntl}, {0}}};
