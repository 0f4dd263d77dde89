/* SPDX-License-Identifier: BSD-3-Clause */
/* read and write in all their forms, fsync and its family, offsets of any size. */
#include "compat.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static void past_end(void)
{
	char buf[16];
	int fd;

	put("f", "text");
	fd = open_rw("f");
	count(pread(fd, buf, 16, 2));
	count(pread(fd, buf, 16, 4));
	count(pread(fd, buf, 16, 1000000));
}

static void hole(void)
{
	char buf[8] = "xxxxxxx";
	int fd;

	put("f", "text");
	fd = open_rw("f");
	count(pwrite(fd, "more", 4, 10000));
	say_size("f");
	NEED(pread(fd, buf, 8, 5000));
	say("%s", memcmp(buf, (char[8]){0}, 8) == 0 ? "zeros" : "no zeros");
}

static void negative(void)
{
	char c = 'x';
	int fd = data_file("f", 10);

	count(pread(fd, &c, 1, -1));
	count(pwrite(fd, &c, 1, -1));
	count(lseek(fd, -1, SEEK_SET));
	count(lseek(fd, -11, SEEK_END));
}

static void bad_address(void)
{
	/* volatile: or the compiler sees it and refuses. */
	void *volatile nowhere = (void *)8;
	int fd = data_file("f", 10);

	count(pread(fd, nowhere, 10, 0));
	count(pwrite(fd, nowhere, 10, 0));
}

static void half_bad_address(void)
{
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = data_file("f", 8192);

	NEED(mprotect(two + 4096, 4096, PROT_NONE));
	count(pread(fd, two, 8192, 0));
	count(pwrite(fd, two, 8192, 0));
}

static void nothing(void)
{
	struct stat before, after;
	int fd = data_file("f", 10);

	NEED(fsync(fd));
	NEED(fstat(fd, &before));
	count(write(fd, "", 0));
	count(pwrite(fd, "", 0, 1000));
	NEED(fstat(fd, &after));
	say("%ld", (long)after.st_size);
	say("%s", before.st_mtim.tv_nsec == after.st_mtim.tv_nsec ? "same mtime" : "new mtime");
}

static void vectors(void)
{
	char a[3] = "", b[8] = "";
	struct iovec w[3] = {{(char[]){"one"}, 3}, {NULL, 0}, {(char[]){"two"}, 3}};
	struct iovec r[2] = {{a, 2}, {b, 7}};
	int fd = (int)NEED(open("f", O_CREAT | O_RDWR, 0644));
	volatile int negative_count = -1;

	count(writev(fd, w, 3));
	count(preadv(fd, r, 2, 0));
	say("%s %s", a, b);
	count(writev(fd, w, negative_count));
}

static void with_flags(int flags)
{
	char c = 'x';
	struct iovec v = {&c, 1};
	int fd = data_file("f", 10);

	count(preadv2(fd, &v, 1, 0, flags));
	count(pwritev2(fd, &v, 1, 0, flags));
}

static void rwf_sync(void)
{
	with_flags(RWF_SYNC);
	with_flags(RWF_DSYNC);
}

static void rwf_hipri(void)
{
	with_flags(RWF_HIPRI);
}

static void rwf_nowait(void)
{
	with_flags(RWF_NOWAIT);
}

static void rwf_unknown(void)
{
	with_flags(0x8000);
}

/* What is written at `off` is there, the size is what it says, the hole takes no room. */
static void far(off_t off)
{
	char c = 0;
	struct stat st;
	int fd = (int)NEED(open("f", O_CREAT | O_RDWR, 0644));

	if (count(pwrite(fd, "x", 1, off)) != 1)
		return;
	tell(fsync(fd));
	count(pread(fd, &c, 1, off));
	NEED(fstat(fd, &st));
	say("%c size %lld %s", c, (long long)st.st_size,
		st.st_blocks < 1000 ? "sparse" : "not sparse");
}

static void past_4_gib(void)
{
	far((4ll << 30) + 5);
}

static void at_1_tib(void)
{
	far(1ll << 40);
}

static void last_of_server(void)
{
	far((16ll << 40) - 4096 - 1);
}

static void past_server(void)
{
	far((16ll << 40) + 4096);
}

static void last_offset(void)
{
	int fd = data_file("f", 10);
	char c = 'x';

	count(pwrite(fd, &c, 1, LLONG_MAX));
	count(pwrite(fd, &c, 1, LLONG_MAX - 1));
	count(pread(fd, &c, 1, LLONG_MAX));
	count(pread(fd, &c, 1, LLONG_MAX - 1));
}

static void file_limit(void)
{
	int fd = data_file("f", 10);
	char *buf = calloc(1, 8192);

	signal(SIGXFSZ, SIG_IGN);
	NEED(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}));
	count(pwrite(fd, buf, 8192, 0));
	count(pwrite(fd, buf, 1, 4096));
	tell(ftruncate(fd, 5000));
	signal(SIGXFSZ, SIG_DFL);
	count(pwrite(fd, buf, 1, 4096));
}

static void file_limit_signal(void)
{
	apart(file_limit);
}

static void with_sendfile(void)
{
	int in = data_file("in", 10000), out = data_file("out", 1);

	count(sendfile(out, in, NULL, 10000));
	say_size("out");
}

static void with_splice(void)
{
	int pipes[2], in = data_file("in", 5000), out = data_file("out", 1);

	NEED(pipe(pipes));
	count(splice(in, NULL, pipes[1], NULL, 5000, 0));
	count(splice(pipes[0], NULL, out, NULL, 5000, 0));
	say_size("out");
}

static void two_descriptors(void)
{
	int a = data_file("f", 10), b = open_rw("f");
	char c = 0;

	NEED(pwrite(a, "a", 1, 3));
	NEED(pread(b, &c, 1, 3));
	say("%c", c);
}

static void fsyncs(void)
{
	int fd = data_file("f", 10);

	tell(fsync(fd));
	tell(fdatasync(fd));
	tell(fsync((int)NEED(open("f", O_RDONLY))));
	tell(fdatasync((int)NEED(open("f", O_RDONLY))));
	tell(syncfs(fd));
}

static void fsync_directory(void)
{
	int fd;

	NEED(mkdir("d", 0777));
	fd = (int)NEED(open("d", O_RDONLY | O_DIRECTORY));
	put("d/f", "text");
	tell(fsync(fd));
	tell(fdatasync(fd));
	tell(syncfs(fd));
}

static void fsync_fifo(void)
{
	NEED(mkfifo("p", 0666));
	tell(fsync((int)NEED(open("p", O_RDWR))));
}

static void range(void)
{
	int fd = data_file("f", 10000);

	tell(sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE));
	tell(sync_file_range(fd, 0, 0,
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
	tell(sync_file_range(fd, 0, 0, 0x80));
	tell(sync_file_range(fd, -1, 10, SYNC_FILE_RANGE_WRITE));
}

static void advice(void)
{
	int fd = data_file("f", 10000);

	for (int a = POSIX_FADV_NORMAL; a <= POSIX_FADV_NOREUSE + 1; a++)
		tell((errno = posix_fadvise(fd, 0, 0, a)) == 0 ? 0 : -1);
}

static void read_ahead(void)
{
	NEED(close(data_file("f", 10000)));
	tell(readahead((int)NEED(open("f", O_RDONLY)), 0, 4096));
	tell(readahead((int)NEED(open("f", O_WRONLY)), 0, 4096));
}

static void unlinked(void)
{
	int fd = data_file("f", 10);
	struct stat st;
	char c = 0;

	NEED(unlink("f"));
	count(pwrite(fd, "y", 1, 20));
	count(pread(fd, &c, 1, 20));
	tell(ftruncate(fd, 30));
	tell(fchmod(fd, 0600));
	tell(fstat(fd, &st));
	say("size %ld", (long)st.st_size);
	tell(fsync(fd));
	tell(close(fd));
}

static void renamed(void)
{
	int fd = data_file("f", 10);

	NEED(rename("f", "g"));
	count(pwrite(fd, "y", 1, 20));
	tell(fsync(fd));
	tell(close(fd));
	say_size("g");
	say_size("f");
}

static void replaced(void)
{
	int fd = data_file("f", 10);

	put("g", "new");
	NEED(rename("g", "f"));
	count(pwrite(fd, "y", 1, 20));
	count(lseek(fd, 0, SEEK_END));
	tell(close(fd));
	say_text("f");
}

const struct topic topic_data = {.name = "read and write",
	.probes = (const struct probe[]){{"pread over the end, at the end, past it", past_end},
		{"pwrite past the end; the size; the hole", hole},
		{"negative offsets: pread, pwrite, lseek, SEEK_END", negative},
		{"a bad address: pread, pwrite", bad_address},
		{"an address that is bad from the second page: pread, pwrite", half_bad_address},
		{"0 bytes: write, pwrite past the end, size, mtime", nothing},
		{"writev, preadv; a negative count", vectors},
		{"RWF_SYNC, RWF_DSYNC: preadv2, pwritev2", rwf_sync},
		{"RWF_HIPRI: preadv2, pwritev2", rwf_hipri},
		{"RWF_NOWAIT: preadv2, pwritev2", rwf_nowait}, {"an unknown RWF flag", rwf_unknown},
		{"a byte past 4 GiB", past_4_gib}, {"a byte at 1 TiB", at_1_tib},
		{"a byte at the last offset that ext4 has", last_of_server},
		{"a byte past what ext4 has", past_server},
		{"offset LLONG_MAX and one before: pwrite, pread", last_offset},
		{"RLIMIT_FSIZE: over it, at it, ftruncate, then SIGXFSZ", file_limit_signal},
		{"sendfile from a file to a file", with_sendfile},
		{"splice to a pipe, and from it", with_splice},
		{"a write by one descriptor, read by another", two_descriptors},
		{"fsync, fdatasync; both on O_RDONLY; syncfs", fsyncs},
		{"fsync, fdatasync, syncfs on a directory", fsync_directory},
		{"fsync on a fifo", fsync_fifo},
		{"sync_file_range: WRITE, all of them, an unknown flag, offset -1", range},
		{"posix_fadvise: each advice, an unknown one", advice},
		{"readahead: O_RDONLY, O_WRONLY", read_ahead},
		{"a removed file: pwrite, pread, ftruncate, fchmod, fstat, fsync, close", unlinked},
		{"a renamed file: pwrite, fsync, close; new size, old name", renamed},
		{"a file replaced by rename: pwrite, its end, close; the new one", replaced}, {0}}};
