/* SPDX-License-Identifier: BSD-3-Clause */
/* Contents of files: what goes in and out of the mount is what the server's file system holds. */
#include "mnt.h"

#include <sys/mman.h>

SUITE(files);

Test(files, of_many_sizes_written_here_are_the_same_on_the_server)
{
	static const size_t sizes[] = {0, 1, 4, 511, 1000, 3800, 4095, 4096, 4097, 16384, 65536,
		131073, 1048575, 1048576, 1048577, 3 * 1048576 + 5};
	char name[32];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "f%zu", sizes[i]);
		put_pattern(c(name), sizes[i]);
		want_pattern(s(name), sizes[i]);
		want_pattern(c(name), sizes[i]);
		cr_assert(stat_of(c(name)).st_size == (off_t)sizes[i]);
	}
}

Test(files, of_many_sizes_made_on_the_server_are_read_right)
{
	static const size_t sizes[] = {0, 1, 3, 4000, 4096, 5000, 70001, 1048576, 2500000};
	char name[32];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "f%zu", sizes[i]);
		put_pattern(s(name), sizes[i]);
		want_pattern(c(name), sizes[i]);
	}
}

Test(files, written_in_odd_pieces_out_of_order)
{
	const size_t len = 600000, piece = 7919;
	int fd = WORKS(open(c("f"), O_CREAT | O_RDWR, 0600));
	char buf[7919];

	for (size_t off = len - len % piece;; off -= piece) {
		size_t n = off + piece > len ? len - off : piece;

		fill(buf, n, off);
		write_all(fd, buf, n, (off_t)off);
		if (off == 0)
			break;
	}
	WORKS(close(fd));
	want_pattern(s("f"), len);
	want_pattern(c("f"), len);
}

Test(files, are_sparse_where_nothing_was_written)
{
	int fd = WORKS(open(c("f"), O_CREAT | O_RDWR, 0600));
	char buf[100], zero[100] = {0};
	const off_t far = (off_t)5 << 30;

	write_all(fd, "end", 3, far);
	cr_assert(stat_of(c("f")).st_size == far + 3);
	read_all(fd, buf, sizeof(buf), 1 << 20);
	cr_assert(memcmp(buf, zero, sizeof(buf)) == 0);
	read_all(fd, buf, 3, far);
	cr_assert(memcmp(buf, "end", 3) == 0);
	WORKS(fsync(fd));
	WORKS(close(fd));
	cr_assert(stat_of(s("f")).st_size == far + 3);
	cr_assert(stat_of(c("f")).st_blocks < 100, "%lld blocks",
		(long long)stat_of(c("f")).st_blocks);
}

Test(files, opened_for_append_are_appended_to_by_two_handles)
{
	int a = WORKS(open(c("f"), O_CREAT | O_APPEND | O_WRONLY, 0600));
	int b = WORKS(open(c("f"), O_APPEND | O_WRONLY));

	for (int i = 0; i < 5; i++) {
		cr_assert(write(a, "a", 1) == 1);
		cr_assert(write(b, "bb", 2) == 2);
	}
	WORKS(close(a));
	WORKS(close(b));
	want_text(s("f"), "abbabbabbabbabb");
	want_text(c("f"), "abbabbabbabbabb");
}

Test(files, are_emptied_by_o_trunc)
{
	put_pattern(c("f"), 100000);
	WORKS(close(WORKS(open(c("f"), O_TRUNC | O_WRONLY))));
	cr_assert(stat_of(c("f")).st_size == 0);
	cr_assert(stat_of(s("f")).st_size == 0);
	put_text(c("f"), "again");
	want_text(s("f"), "again");
}

Test(files, made_with_o_excl_are_made_once)
{
	time_t now = time(NULL);
	int fd = WORKS(open(c("f"), O_CREAT | O_EXCL | O_RDWR, 0640));
	struct stat st = stat_of(c("f"));

	FAILS(open(c("f"), O_CREAT | O_EXCL | O_RDWR, 0640), EEXIST);
	cr_assert((st.st_mode & 07777) == 0640);
	/* The server keeps the verifier of an exclusive create in the times. */
	cr_assert(labs((long)(st.st_mtim.tv_sec - now)) < 60, "mtime %ld", (long)st.st_mtim.tv_sec);
	cr_assert(labs((long)(st.st_atim.tv_sec - now)) < 60, "atime %ld", (long)st.st_atim.tv_sec);
	cr_assert(labs((long)(stat_of(s("f")).st_mtim.tv_sec - now)) < 60);
	write_all(fd, "x", 1, 0);
	WORKS(close(fd));
	want_text(s("f"), "x");
	put_text(s("there"), "already");
	FAILS(open(c("there"), O_CREAT | O_EXCL | O_RDWR, 0640), EEXIST);
	want_text(s("there"), "already");
}

Test(files, made_without_o_excl_keep_what_is_there)
{
	put_text(s("f"), "kept");
	WORKS(close(WORKS(open(c("f"), O_CREAT | O_RDWR, 0600))));
	want_text(c("f"), "kept");
	cr_assert((stat_of(s("f")).st_mode & 07777) == 0644);
}

Test(files, of_any_size_go_by_o_direct)
{
	static const size_t sizes[] = {
		1, 512, 1000, 4096, 12288, 65536, 1048576, 2 * 1048576 + 4096};
	char *buf = aligned_alloc(4096, 3 * 1048576);
	char name[32];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd;

		snprintf(name, sizeof(name), "f%zu", sizes[i]);
		fd = WORKS(open(c(name), O_CREAT | O_RDWR | O_DIRECT, 0600));
		fill(buf, sizes[i], 0);
		write_all(fd, buf, sizes[i], 0);
		memset(buf, 0, sizes[i]);
		read_all(fd, buf, sizes[i], 0);
		cr_assert(fill_check(buf, sizes[i], 0) == sizes[i], "size %zu", sizes[i]);
		WORKS(close(fd));
		want_pattern(s(name), sizes[i]);
	}
	free(buf);
}

Test(files, of_any_offset_and_address_go_by_o_direct)
{
	char *buf = aligned_alloc(4096, 1048576);
	int fd = WORKS(open(c("f"), O_CREAT | O_RDWR | O_DIRECT, 0600));

	fill(buf + 3, 300001, 0);
	write_all(fd, buf + 3, 300001, 0);
	fill(buf + 1, 77777, 1001);
	write_all(fd, buf + 1, 77777, 1001);
	memset(buf, 0, 1048576);
	read_all(fd, buf + 5, 299990, 11);
	cr_assert(fill_check(buf + 5, 299990, 11) == 299990);
	cr_assert(pread(fd, buf, 4096, 300001) == 0);
	WORKS(close(fd));
	want_pattern(s("f"), 300001);
	free(buf);
}

Test(files, mapped_shared_reach_the_server)
{
	const size_t len = 70000;
	int fd = WORKS(open(c("f"), O_CREAT | O_RDWR, 0600));
	char *map;

	WORKS(ftruncate(fd, (off_t)len));
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(map != MAP_FAILED, "%s", strerror(errno));
	fill(map, len, 0);
	WORKS(msync(map, len, MS_SYNC));
	want_pattern(s("f"), len);
	map[5] ^= 1;
	map[5] ^= 1;
	WORKS(munmap(map, len));
	WORKS(close(fd));
	want_pattern(s("f"), len);
	want_pattern(c("f"), len);
}

Test(files, mapped_to_be_read)
{
	const size_t len = 300000;
	char *map;
	int fd;

	put_pattern(s("f"), len);
	fd = WORKS(open(c("f"), O_RDONLY));
	map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert(map != MAP_FAILED, "%s", strerror(errno));
	WORKS(close(fd));
	cr_assert(fill_check(map, len, 0) == len);
	WORKS(munmap(map, len));
}

Test(files, truncated_down_and_up_have_zeros_there)
{
	char buf[3000], zero[3000] = {0};
	int fd;

	put_pattern(c("f"), 100000);
	want_pattern(c("f"), 100000);
	WORKS(truncate(c("f"), 50000));
	want_pattern(c("f"), 50000);
	want_pattern(s("f"), 50000);
	WORKS(truncate(c("f"), 53000));
	cr_assert(stat_of(s("f")).st_size == 53000);
	fd = WORKS(open(c("f"), O_RDWR));
	read_all(fd, buf, 3000, 50000);
	cr_assert(memcmp(buf, zero, 3000) == 0);
	WORKS(ftruncate(fd, 10));
	cr_assert(read(fd, buf, 100) == 10);
	cr_assert(stat_of(s("f")).st_size == 10);
	WORKS(ftruncate(fd, 0));
	cr_assert(pread(fd, buf, 100, 0) == 0);
	WORKS(close(fd));
	cr_assert(stat_of(s("f")).st_size == 0);
}

Test(files, unlinked_while_open_live_until_closed)
{
	int fd = WORKS(open(c("f"), O_CREAT | O_RDWR, 0600));
	char buf[10];

	write_all(fd, "before", 6, 0);
	WORKS(unlink(c("f")));
	FAILS(access(c("f"), F_OK), ENOENT);
	FAILS(access(s("f"), F_OK), ENOENT);
	cr_assert(count_silly() == 1, "%d .nfs files", count_silly());
	write_all(fd, "after", 5, 6);
	read_all(fd, buf, 9, 0);
	cr_assert(memcmp(buf, "beforeaft", 9) == 0);
	WORKS(ftruncate(fd, 3));
	WORKS(fsync(fd));
	put_text(c("f"), "new");
	WORKS(close(fd));
	for (int i = 0; count_silly() != 0 && i < 50; i++)
		usleep(100000);
	cr_assert(count_silly() == 0, "left behind");
	want_text(s("f"), "new");
}

Test(files, renamed_over_while_open_live_until_closed)
{
	char buf[8] = "";
	int fd;

	put_text(c("old"), "old");
	put_text(c("new"), "new");
	fd = WORKS(open(c("old"), O_RDONLY));
	WORKS(rename(c("new"), c("old")));
	want_text(c("old"), "new");
	want_text(s("old"), "new");
	read_all(fd, buf, 3, 0);
	cr_assert(strcmp(buf, "old") == 0, "%s", buf);
	WORKS(close(fd));
	for (int i = 0; count_silly() != 0 && i < 50; i++)
		usleep(100000);
	cr_assert(count_silly() == 0, "left behind");
	cr_assert(count_entries(s("")) == 1);
}

Test(files, renamed_while_open_are_still_the_same)
{
	int fd = WORKS(open(c("a"), O_CREAT | O_RDWR, 0600));

	write_all(fd, "12", 2, 0);
	WORKS(rename(c("a"), c("b")));
	write_all(fd, "34", 2, 2);
	WORKS(close(fd));
	want_text(s("b"), "1234");
	FAILS(access(s("a"), F_OK), ENOENT);
}

Test(files, with_two_names_renamed_onto_each_other_stay)
{
	int fd;

	put_text(c("a"), "same");
	WORKS(link(c("a"), c("b")));
	fd = WORKS(open(c("b"), O_RDONLY));
	WORKS(rename(c("a"), c("b")));
	WORKS(close(fd));
	want_text(s("a"), "same");
	want_text(s("b"), "same");
	cr_assert(count_entries(s("")) == 2);
}

Test(files, changed_on_the_server_are_seen_after_open)
{
	char buf[16];
	int fd;

	for (int i = 0; i < 4; i++) {
		char text[16];

		snprintf(text, sizeof(text), "version %d", i);
		put_text(s("f"), text);
		want_text(c("f"), text);
	}
	/* The size grows under an open file: seen by the next open. */
	fd = WORKS(open(c("f"), O_RDONLY));
	read_all(fd, buf, 9, 0);
	put_text(s("f"), "version 44");
	want_text(c("f"), "version 44");
	WORKS(close(fd));
}

Test(files, closed_here_are_complete_on_the_server)
{
	int fd = WORKS(open(c("f"), O_CREAT | O_WRONLY, 0600));
	int other = WORKS(open(s("f"), O_RDONLY));
	char *buf = malloc(300000);

	fill(buf, 300000, 0);
	write_all(fd, buf, 300000, 0);
	WORKS(close(fd));
	memset(buf, 0, 300000);
	read_all(other, buf, 300000, 0);
	cr_assert(fill_check(buf, 300000, 0) == 300000);
	WORKS(close(other));
	free(buf);
}

Test(files, synced_by_each_of_the_ways)
{
	int fd = WORKS(open(c("f"), O_CREAT | O_RDWR | O_SYNC, 0600));

	write_all(fd, "one", 3, 0);
	WORKS(close(fd));
	fd = WORKS(open(c("f"), O_RDWR | O_DSYNC));
	write_all(fd, "two", 3, 3);
	WORKS(fsync(fd));
	WORKS(fdatasync(fd));
	WORKS(close(fd));
	want_text(s("f"), "onetwo");
}

Test(files, created_read_only_can_be_written_by_who_made_them)
{
	int fd = WORKS(open(c("f"), O_CREAT | O_RDWR, 0400));

	write_all(fd, "x", 1, 0);
	WORKS(ftruncate(fd, 10));
	WORKS(close(fd));
	cr_assert(stat_of(s("f")).st_size == 10);
	cr_assert((stat_of(s("f")).st_mode & 0777) == 0400);
}

Test(files, are_not_read_past_their_end)
{
	char buf[100];
	int fd;

	put_pattern(c("f"), 50);
	fd = WORKS(open(c("f"), O_RDONLY));
	cr_assert(read(fd, buf, 100) == 50);
	cr_assert(read(fd, buf, 100) == 0);
	cr_assert(pread(fd, buf, 100, 40) == 10);
	cr_assert(pread(fd, buf, 100, 50) == 0);
	cr_assert(pread(fd, buf, 100, 1 << 30) == 0);
	WORKS(close(fd));
}

Test(files, opened_wrongly_are_refused_with_the_right_error)
{
	WORKS(mkdir(c("dir"), 0755));
	put_text(c("f"), "");
	FAILS(open(c("none"), O_RDONLY), ENOENT);
	FAILS(open(c("dir"), O_WRONLY), EISDIR);
	FAILS(open(c("f/below"), O_RDONLY), ENOTDIR);
	FAILS(open(c("f"), O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(open(c("none/below"), O_CREAT | O_WRONLY, 0600), ENOENT);
	WORKS(symlink("f", c("link")));
	FAILS(open(c("link"), O_RDONLY | O_NOFOLLOW), ELOOP);
	WORKS(close(WORKS(open(c("link"), O_RDONLY))));
}

Test(files, of_16_mib_come_back_whole)
{
	put_pattern(c("f"), 16 << 20);
	want_pattern(s("f"), 16 << 20);
	want_pattern(c("f"), 16 << 20);
}
