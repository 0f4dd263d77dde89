/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mutex.h"
#include "thread.h"

#define RING_BYTES  (256u << 10)
#define LINE_BYTES  (8u << 10) /* more than log.c makes of its longest line */
#define NSEC_IN_SEC 1000000000u

/* In the ring: level, then the line with its NUL. */
static struct {
	struct mutex lock;
	pthread_cond_t more;  /* there are lines, or it is to end */
	pthread_cond_t wrote; /* one less, or the thread ended */
	pthread_t thread;
	bool runs, ends, ended;
	uint64_t in, out; /* bytes, ever */
	uint64_t lines;   /* written, ever */
	uint64_t dropped, told;
	char bytes[RING_BYTES];
} ring = {.lock = MUTEX_INIT(MUTEX_LOG_RING)};

static void put_byte(char c)
{
	ring.bytes[ring.in++ % RING_BYTES] = c;
}

static char get_byte(void)
{
	return ring.bytes[ring.out++ % RING_BYTES];
}

bool log_thread_take(enum log_level level, const char *line)
{
	size_t len = strlen(line);
	bool runs;

	mutex_lock(&ring.lock);
	runs = ring.runs;
	if (runs && (len >= LINE_BYTES || RING_BYTES - (ring.in - ring.out) < len + 2)) {
		ring.dropped++;
	} else if (runs) {
		put_byte((char)level);
		for (size_t i = 0; i <= len; i++)
			put_byte(line[i]);
		pthread_cond_signal(&ring.more);
	}
	mutex_unlock(&ring.lock);
	return runs;
}

/* The next line; what was dropped is told once all before it is written. */
static enum log_level next_line(char *line)
{
	enum log_level level = LOG_LVL_WARN;
	size_t n = 0;

	if (ring.in == ring.out) {
		snprintf(line, LINE_BYTES,
			"%" PRIu64 " lines of the log were dropped: it did not take them in time",
			ring.dropped - ring.told);
		ring.told = ring.dropped;
		return level;
	}
	level = (enum log_level)get_byte();
	do
		line[n] = get_byte();
	while (line[n++] != '\0');
	return level;
}

static void *write_lines(void *arg)
{
	static char line[LINE_BYTES];

	mutex_lock(&ring.lock);
	for (;;) {
		enum log_level level;

		while (ring.in == ring.out && ring.told == ring.dropped && !ring.ends)
			mutex_wait(&ring.lock, &ring.more);
		if (ring.in == ring.out && ring.told == ring.dropped)
			break;
		level = next_line(line);
		mutex_unlock(&ring.lock);
		log_write(level, line);
		mutex_lock(&ring.lock);
		ring.lines++;
		pthread_cond_signal(&ring.wrote);
	}
	ring.ended = true;
	ring.runs = false; /* from here on who logs writes */
	pthread_cond_signal(&ring.wrote);
	mutex_unlock(&ring.lock);
	return NULL;
}

static int start(void)
{
	pthread_condattr_t attr;
	int err;

	log_keep_stderr();
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ring.more, &attr);
	pthread_cond_init(&ring.wrote, &attr);
	pthread_condattr_destroy(&attr);
	ring.ends = ring.ended = false;
	err = thread_start(&ring.thread, write_lines, NULL);
	ring.runs = err == 0;
	return err;
}

int log_thread_start(void)
{
	int err = 0;

	mutex_lock(&ring.lock);
	if (!ring.runs)
		err = start();
	mutex_unlock(&ring.lock);
	return err;
}

static bool wait_for_end(uint64_t wait_ns) MUTEX_REQUIRES(&ring.lock);

/* Under the lock: until the thread ended, or wrote no line for wait_ns. */
static bool wait_for_end(uint64_t wait_ns)
{
	while (!ring.ended) {
		uint64_t lines = ring.lines;
		struct timespec ts;
		uint64_t ns;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		ns = (uint64_t)ts.tv_nsec + wait_ns % NSEC_IN_SEC;
		ts.tv_sec += (time_t)(wait_ns / NSEC_IN_SEC + ns / NSEC_IN_SEC);
		ts.tv_nsec = (long)(ns % NSEC_IN_SEC);
		while (!ring.ended && ring.lines == lines)
			if (mutex_wait_until(&ring.lock, &ring.wrote, &ts) == ETIMEDOUT)
				return ring.ended;
	}
	return true;
}

int log_thread_stop(uint64_t wait_ns)
{
	bool join = false;
	int err = 0;

	mutex_lock(&ring.lock);
	if (ring.runs) {
		ring.ends = true;
		pthread_cond_signal(&ring.more);
		join = wait_for_end(wait_ns);
		ring.ends = false;
		ring.runs = !join;
		err = join ? 0 : -ETIMEDOUT;
	}
	mutex_unlock(&ring.lock);
	if (join)
		pthread_join(ring.thread, NULL);
	return err;
}

uint64_t log_thread_dropped(void)
{
	uint64_t n;

	mutex_lock(&ring.lock);
	n = ring.dropped;
	mutex_unlock(&ring.lock);
	return n;
}
