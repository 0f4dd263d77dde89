/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that writes the log: syslog, journald and pipes may block for as long as they
 * like, and whoever logs must not. While it runs, a line is copied into a ring of bounded
 * size; a line that finds no room is dropped and counted, and the log says how many were
 * as soon as it takes lines again.
 *
 * Invariant: nothing that blocks runs under the ring's lock.
 */
#ifndef RPCRDMAFS_LOG_THREAD_H
#define RPCRDMAFS_LOG_THREAD_H

#include <stdint.h>

#include "log.h"

/*
 * log_thread_start - from now on lines are written by a thread, which gets no signal
 *
 * Context: the main thread. A child of a fork() after it has no such thread, and may not log.
 * Returns: 0, also if it runs already; -errno: lines are written by those who log, as before.
 */
int log_thread_start(void);
/*
 * log_thread_stop - all that was logged is written, and the thread ended
 *
 * Waits for the sink as long as it takes lines, and at most wait_ns for one line.
 *
 * Context: the main thread. Harmless if nothing was started.
 * Returns: 0: lines are written by those who log again; -ETIMEDOUT: the sink blocks. Lines
 * still go to the ring then, and are lost when the process ends.
 */
int log_thread_stop(uint64_t wait_ns);
/* A log that takes no line for so long does not keep a process from ending. */
#define LOG_THREAD_WAIT_NS 2000000000u
/* Lines that were dropped since the process began. Context: any thread. */
uint64_t log_thread_dropped(void);
/* log.c's: the line is the thread's now, or dropped. False: no thread runs. Any thread. */
bool log_thread_take(enum log_level level, const char *line);

#endif
