/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log: one line an event, from the place that decides what an error means.
 * Codecs and pure functions never log.
 *
 * Context: any thread, lane or helper. Once log_thread_start() ran, no line that is logged blocks;
 * before that, the sink may, and whoever changes it then waits for it.
 */
#ifndef RPCRDMAFS_LOG_H
#define RPCRDMAFS_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LVL_ERR,
	LOG_LVL_WARN,
	LOG_LVL_INFO,
	LOG_LVL_DEBUG,
};

/* Receives a finished line without newline. */
typedef void (*log_sink_fn)(void *ctx, enum log_level level, const char *line);

/* Standard error by default: "rpcrdmafs: line". level: everything up to it is logged. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* Lines go to syslog (daemon facility) from now on: the process is in the background. */
void log_to_syslog(const char *ident);
/* Tests: lines go to `sink`; NULL restores standard error. */
void log_set_sink(log_sink_fn sink, void *ctx);

void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * log_ratelimit - may this place log again?
 *
 * Context: any thread; *last_ns is the place's own static variable.
 * Returns: true at most once in 5 s for one place.
 */
bool log_ratelimit(_Atomic uint64_t *last_ns);

/*
 * log_thread.c's: if lines go to standard error then to what that is now. Another descriptor takes
 * its place for a while when something is mounted, and a line may be written later than it was
 * logged. Context: while no other thread logs.
 */
void log_keep_stderr(void);
/* log_thread.c's: a finished line goes to the sink, which may block. Context: any thread. */
void log_write(enum log_level level, const char *line);

/* Whatever the level is: what somebody asked for at run time. */
void log_out(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...)  log_msg(LOG_LVL_ERR, __VA_ARGS__)
#define log_warn(...) log_msg(LOG_LVL_WARN, __VA_ARGS__)
#define log_info(...) log_msg(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_get_level() >= LOG_LVL_DEBUG)                                              \
			log_msg(LOG_LVL_DEBUG, __VA_ARGS__);                                       \
	} while (0)
#define log_limited(level, ...)                                                                    \
	do {                                                                                       \
		static _Atomic uint64_t log_last_ns_;                                              \
		if (log_ratelimit(&log_last_ns_))                                                  \
			log_msg(level, __VA_ARGS__);                                               \
	} while (0)
#define log_warn_limited(...) log_limited(LOG_LVL_WARN, __VA_ARGS__)
#define log_info_limited(...) log_limited(LOG_LVL_INFO, __VA_ARGS__)

#endif
