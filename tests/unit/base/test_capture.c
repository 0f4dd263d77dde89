/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture.h"
#include "log.h"
#include "pcapng.h"

static struct capture *c;
static struct capture_batch b;
static char path[64];
static char last_line[256];
static unsigned int lines;

static void sink(void *ctx, enum log_level level, const char *line)
{
	lines++;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static void start(void)
{
	snprintf(path, sizeof(path), "/tmp/test_capture.%d", (int)getpid());
	unlink(path);
	log_set_sink(sink, NULL);
	c = capture_new();
	cr_assert_not_null(c);
}

static void stop(void)
{
	capture_free(c);
	log_set_sink(NULL, NULL);
	unlink(path);
}

TestSuite(capture, .init = start, .fini = stop);

static int begin(uint64_t max_bytes)
{
	struct capture_limits lim = {.max_bytes = max_bytes};
	int fd = capture_open(path);

	cr_assert_geq(fd, 0);
	return capture_start(c, fd, &lim);
}

static void add(size_t len, unsigned int cnt)
{
	capture_batch_begin(&b);
	for (unsigned int i = 0; i < cnt; i++) {
		uint8_t *p = capture_batch_frame(c, &b);

		memset(p, (int)(i + 1), len);
		capture_batch_add(&b, len, len);
	}
	capture_batch_end(c, &b);
}

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

/* Walks the blocks. Returns: frames; fails where lengths do not fit. */
static unsigned int walk(uint64_t *ret_dropped, size_t *ret_len)
{
	static uint8_t file[4 << 20];
	FILE *in = fopen(path, "r");
	unsigned int frames = 0, stats = 0;
	size_t len, at = 0;

	cr_assert_not_null(in);
	len = fread(file, 1, sizeof(file), in);
	fclose(in);
	cr_assert_lt(len, sizeof(file));
	cr_assert_eq(word(file), 0x0a0d0d0a);
	while (at < len) {
		uint32_t type = word(file + at), size = word(file + at + 4);

		cr_assert_leq(at + size, len);
		cr_assert_eq(size % 4, 0);
		cr_assert_eq(word(file + at + size - 4), size);
		frames += type == 6;
		if (type == 5) {
			stats++;
			cr_assert_eq(size, PCAPNG_STATS_LEN);
			memcpy(ret_dropped, file + at + 20 + 3 * 12 + 4, 8);
		}
		at += size;
	}
	cr_assert_eq(stats, 1, "the last block tells what was dropped");
	if (ret_len)
		*ret_len = len;
	return frames;
}

Test(capture, a_file_is_new_and_its_owners_alone)
{
	struct stat st;

	umask(0);
	cr_assert_eq(begin(1 << 20), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(capture_open(path), -EEXIST);
	unlink(path);
	cr_assert_eq(symlink("/tmp/test_capture.none", path), 0);
	cr_assert_eq(capture_open(path), -EEXIST);
	cr_assert_neq(access("/tmp/test_capture.none", F_OK), 0);
}

Test(capture, frames_come_out_as_they_went_in)
{
	struct capture_state st;
	uint64_t dropped = 9;
	uint8_t buf[600];
	int fd;

	cr_assert_not(capture_is_on(c));
	cr_assert_eq(begin(1 << 20), 0);
	cr_assert(capture_is_on(c));
	add(61, 3);
	add(64, 1);
	capture_state(c, &st);
	cr_assert_eq(st.end, CAPTURE_RUNNING);
	cr_assert_eq(st.frames, 4);
	cr_assert_eq(capture_stop(c), 0);
	cr_assert_not(capture_is_on(c));
	cr_assert_eq(walk(&dropped, NULL), 4);
	cr_assert_eq(dropped, 0);
	capture_state(c, &st);
	cr_assert_eq(st.end, CAPTURE_STOPPED);
	/* the first frame, behind section header and interface */
	fd = open(path, O_RDONLY);
	cr_assert_eq(pread(fd, buf, sizeof(buf), 0), (ssize_t)sizeof(buf));
	close(fd);
	const uint8_t *p = buf + word(buf + 4);
	p += word(p + 4);
	cr_assert_eq(word(p), 6);
	cr_assert_eq(word(p + 4), 28 + 64 + 4);
	cr_assert_eq(word(p + 20), 61);
	cr_assert_eq(word(p + 24), 61);
	cr_assert_eq(p[28], 1);
	cr_assert_eq(p[28 + 60], 1);
	cr_assert_eq(p[28 + 61], 0);
}

Test(capture, a_frame_that_is_cut_says_how_long_it_was)
{
	uint8_t buf[600] = {0};
	int fd;

	cr_assert_eq(begin(1 << 20), 0);
	capture_batch_begin(&b);
	memset(capture_batch_frame(c, &b), 1, 54);
	capture_batch_add(&b, 54, 4154);
	capture_batch_end(c, &b);
	cr_assert_eq(capture_stop(c), 0);
	fd = open(path, O_RDONLY);
	cr_assert_gt(pread(fd, buf, sizeof(buf), 0), 0);
	close(fd);
	const uint8_t *p = buf + word(buf + 4);
	p += word(p + 4);
	cr_assert_eq(word(p + 4), 28 + 56 + 4);
	cr_assert_eq(word(p + 20), 54);
	cr_assert_eq(word(p + 24), 4154);
}

Test(capture, it_ends_at_its_limit_with_one_line)
{
	uint64_t dropped;
	struct capture_state st;
	size_t len;

	cr_assert_eq(begin(CAPTURE_MIN_BYTES), 0);
	for (int i = 0; i < 100; i++)
		add(1000, 1);
	cr_assert_not(capture_is_on(c));
	cr_assert_eq(capture_stop(c), 0);
	capture_state(c, &st);
	cr_assert_eq(st.end, CAPTURE_FULL, "what ended it is what stays");
	cr_assert_eq(walk(&dropped, &len), st.frames);
	cr_assert_leq(len, CAPTURE_MIN_BYTES);
	cr_assert_gt(len, CAPTURE_MIN_BYTES - 2000);
	cr_assert_eq(st.bytes, len);
	cr_assert_eq(lines, 1);
	cr_assert_not_null(strstr(last_line, "ended"));
}

Test(capture, a_full_disk_ends_it_and_is_told)
{
	struct capture_limits lim = {.max_bytes = 1 << 20};
	struct capture_state st;
	int fd = open("/dev/full", O_WRONLY);

	cr_assert_eq(capture_start(c, fd, &lim), 0);
	add(1000, 10);
	cr_assert_eq(capture_stop(c), -ENOSPC);
	capture_state(c, &st);
	cr_assert_eq(st.end, CAPTURE_FAILED);
	cr_assert_eq(st.err, -ENOSPC);
	cr_assert_eq(lines, 1);
	cr_assert_not_null(strstr(last_line, strerror(ENOSPC)));
	cr_assert_eq(fcntl(fd, F_GETFD), -1, "the descriptor was the capture's to close");
}

/* A pipe that nobody reads is a disk that does not answer. */
Test(capture, who_adds_never_waits_and_what_does_not_fit_is_counted)
{
	struct capture_limits lim = {.max_bytes = 1 << 30};
	struct capture_state st;
	uint64_t in_file;
	static uint8_t sinkbuf[1 << 16];
	int fds[2], out, status;
	pid_t reader;
	ssize_t n;

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(capture_start(c, fds[1], &lim), 0);
	for (int i = 0; i < 5000; i++)
		add(4000, 1);
	capture_state(c, &st);
	cr_assert_gt(st.dropped, 0);
	cr_assert_eq(st.frames + st.dropped, 5000);
	in_file = st.frames;
	/* somebody reads after all: the rest and the count arrive */
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	reader = fork();
	cr_assert_geq(reader, 0);
	if (reader == 0) {
		close(fds[1]);
		while ((n = read(fds[0], sinkbuf, sizeof(sinkbuf))) > 0)
			if (write(out, sinkbuf, (size_t)n) != n)
				_exit(1);
		_exit(0);
	}
	close(fds[0]);
	cr_assert_eq(capture_stop(c), 0);
	cr_assert_eq(waitpid(reader, &status, 0), reader);
	cr_assert_eq(status, 0);
	capture_state(c, &st);
	cr_assert_eq(st.frames, in_file);
}

Test(capture, of_a_message_of_several_batches_no_piece_follows_a_hole)
{
	struct capture_limits lim = {.max_bytes = 1 << 30};
	struct capture_state st;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(capture_start(c, fds[1], &lim), 0);
	capture_batch_begin(&b);
	b.cut = true; /* its first batch found no room */
	for (unsigned int i = 0; i < 200; i++) {
		capture_batch_frame(c, &b);
		capture_batch_add(&b, 4000, 4000);
	}
	capture_batch_end(c, &b);
	capture_state(c, &st);
	cr_assert_eq(st.frames, 0);
	cr_assert_eq(st.dropped, 200);
	close(fds[0]);
}

Test(capture, one_at_a_time_and_again_after_its_end)
{
	struct capture_limits lim = {.max_bytes = 1 << 20};
	uint32_t run;
	uint64_t dropped;

	cr_assert_eq(begin(1 << 20), 0);
	run = capture_run(c);
	cr_assert_eq(capture_start(c, 1, &lim), -EBUSY);
	lim.max_bytes = 100;
	cr_assert_eq(capture_start(c, 1, &lim), -EINVAL);
	cr_assert_eq(capture_stop(c), 0);
	cr_assert_eq(capture_stop(c), 0);
	add(100, 1); /* a lane that was in the middle of it */
	unlink(path);
	cr_assert_eq(begin(1 << 20), 0);
	cr_assert_neq(capture_run(c), run, "lanes tell their connections anew");
	add(100, 2);
	cr_assert_eq(capture_stop(c), 0);
	cr_assert_eq(walk(&dropped, NULL), 2);
}
