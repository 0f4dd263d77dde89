/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log_thread.h"

#define MANY     50000u
#define LONG_NS  (600 * 1000000000ull) /* only a hang lasts so long */
#define SHORT_NS 1000000u

/* A log that takes a line each time somebody lets it. */
static struct {
	sem_t called, let;
	unsigned int cnt, told;
	unsigned int next; /* number that the next line bears at least */
	char last[256];
} gate;

static void gate_line(void *ctx, enum log_level level, const char *line)
{
	unsigned int n;

	sem_post(&gate.called);
	sem_wait(&gate.let);
	gate.cnt++;
	if (sscanf(line, "line %u", &n) == 1) {
		cr_assert_geq(n, gate.next);
		gate.next = n + 1;
	} else if (sscanf(line, "%u lines of the log were dropped", &n) == 1) {
		cr_assert_eq(level, LOG_LVL_WARN);
		gate.told += n;
	}
	snprintf(gate.last, sizeof(gate.last), "%s", line);
}

static void open_gate(void)
{
	for (unsigned int i = 0; i < 2 * MANY; i++)
		sem_post(&gate.let);
}

static void setup(void)
{
	sem_init(&gate.called, 0, 0);
	sem_init(&gate.let, 0, 0);
	log_set_sink(gate_line, NULL);
	cr_assert_eq(log_thread_start(), 0);
}

TestSuite(log_thread, .init = setup);

/* syslog(3) on a socket that nobody reads (review: fuse L2). */
Test(log_thread, who_logs_does_not_wait_for_the_log)
{
	for (unsigned int i = 0; i < MANY; i++)
		log_warn("line %u", i);
	sem_wait(&gate.called);
	cr_assert_eq(gate.cnt, 0);
	cr_assert_gt(log_thread_dropped(), 0);
	open_gate();
	cr_assert_eq(log_thread_stop(LONG_NS), 0);
	cr_assert_eq(gate.told, log_thread_dropped());
	cr_assert_eq(gate.cnt - 1, MANY - log_thread_dropped());
}

Test(log_thread, what_fits_is_written_in_order_and_whole)
{
	char big[1000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	open_gate();
	/* More than the ring in all: it wraps. */
	for (unsigned int i = 0; i < 600; i++) {
		log_warn("line %u %s", i, big);
		sem_wait(&gate.called);
	}
	cr_assert_eq(log_thread_stop(LONG_NS), 0);
	cr_assert_eq(log_thread_dropped(), 0);
	cr_assert_eq(gate.cnt, 600);
	cr_assert_eq(strncmp(gate.last, "line 599 xxx", 12), 0);
}

Test(log_thread, a_log_that_blocks_does_not_keep_the_process)
{
	log_warn("line %u", 0);
	sem_wait(&gate.called);
	cr_assert_eq(log_thread_stop(SHORT_NS), -ETIMEDOUT);
	log_warn("line %u", 1); /* does not wait either */
	cr_assert_eq(gate.cnt, 0);
	open_gate();
	cr_assert_eq(log_thread_stop(LONG_NS), 0);
	cr_assert_eq(gate.cnt, 2);
}

/* As while something is mounted. */
Test(log_thread_stderr, a_line_goes_where_standard_error_was)
{
	char text[100] = "";
	int was[2], now[2];

	cr_assert_eq(pipe(was) | pipe(now), 0);
	dup2(was[1], STDERR_FILENO);
	cr_assert_eq(log_thread_start(), 0);
	dup2(now[1], STDERR_FILENO);
	log_warn("line");
	cr_assert_eq(log_thread_stop(LONG_NS), 0);
	cr_assert_eq(read(was[0], text, sizeof(text) - 1), (ssize_t)strlen("rpcrdmafs: line\n"));
	cr_expect_str_eq(text, "rpcrdmafs: line\n");
}

Test(log_thread, after_its_end_who_logs_writes)
{
	open_gate();
	cr_assert_eq(log_thread_stop(LONG_NS), 0);
	log_warn("line %u", 0);
	cr_assert_eq(gate.cnt, 1);
	cr_assert_eq(log_thread_start(), 0);
	log_warn("line %u", 1);
	cr_assert_eq(log_thread_stop(LONG_NS), 0);
	cr_assert_eq(gate.cnt, 2);
}
