/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include "log_thread.h"
#include "mutex.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_LEN     1024 /* of the message, before escaping */
#define ESCAPED_MAX_LEN  (4 * LINE_MAX_LEN)
#define RATELIMIT_NS     5000000000ull
#define DEBUG_PREFIX     "debug: "
#define TRUNCATED_SUFFIX "..."

static _Atomic enum log_level max_level = LOG_LVL_INFO;

/* Guards the sink and keeps its lines in one piece; held while the sink runs. */
static struct mutex sink_lock = MUTEX_INIT(MUTEX_LOG_SINK);
static log_sink_fn sink_fn; /* NULL: standard error */
static void *sink_ctx;
static char syslog_ident[64]; /* openlog() keeps the pointer */
static int own_stderr = -1;   /* log_keep_stderr() */

static void stderr_line(const char *line)
{
	char buf[ESCAPED_MAX_LEN + 64];
	int len = snprintf(buf, sizeof(buf), "rpcrdmafs: %s\n", line);
	ssize_t n;

	/* One write, so that lines of several processes do not mix; nobody to tell if it fails. */
	n = write(own_stderr >= 0 ? own_stderr : STDERR_FILENO, buf, (size_t)len);
	(void)n;
}

static void syslog_line(void *ctx, enum log_level level, const char *line)
{
	static const int priority[] = {
		[LOG_LVL_ERR] = LOG_ERR,
		[LOG_LVL_WARN] = LOG_WARNING,
		[LOG_LVL_INFO] = LOG_INFO,
		[LOG_LVL_DEBUG] = LOG_DEBUG,
	};

	syslog(priority[level], "%s", line);
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&max_level, level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return atomic_load_explicit(&max_level, memory_order_relaxed);
}

void log_to_syslog(const char *ident)
{
	mutex_lock(&sink_lock);
	snprintf(syslog_ident, sizeof(syslog_ident), "%s", ident);
	openlog(syslog_ident, LOG_PID, LOG_DAEMON);
	sink_fn = syslog_line;
	sink_ctx = NULL;
	mutex_unlock(&sink_lock);
}

void log_set_sink(log_sink_fn sink, void *ctx)
{
	mutex_lock(&sink_lock);
	sink_fn = sink;
	sink_ctx = ctx;
	mutex_unlock(&sink_lock);
}

/*
 * WIRE: names and messages come from the server. All but printable ASCII is
 * written as \xNN, so that they can neither start a line nor drive a terminal.
 */
static void escape(char *out, const char *in)
{
	static const char hex[] = "0123456789abcdef";

	for (; *in; in++) {
		unsigned char c = (unsigned char)*in;

		if (c >= 0x20 && c < 0x7f) {
			*out++ = (char)c;
			continue;
		}
		*out++ = '\\';
		*out++ = 'x';
		*out++ = hex[c >> 4];
		*out++ = hex[c & 15];
	}
	*out = '\0';
}

void log_keep_stderr(void)
{
	mutex_lock(&sink_lock);
	if (!sink_fn && own_stderr < 0)
		own_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	mutex_unlock(&sink_lock);
}

void log_write(enum log_level level, const char *line)
{
	mutex_lock(&sink_lock);
	if (sink_fn)
		sink_fn(sink_ctx, level, line);
	else
		stderr_line(line);
	mutex_unlock(&sink_lock);
}

static void __attribute__((format(printf, 2, 0)))
log_line(enum log_level level, const char *fmt, va_list ap)
{
	char raw[LINE_MAX_LEN + 1];
	char line[sizeof(DEBUG_PREFIX) + ESCAPED_MAX_LEN + sizeof(TRUNCATED_SUFFIX)];
	int saved_errno = errno; /* for %m, and for a caller that logs before it returns it */
	char *p = line;
	int len = vsnprintf(raw, sizeof(raw), fmt, ap);

	if (len < 0) /* only a bad %ls does this */
		snprintf(raw, sizeof(raw), "(unprintable) %s", fmt);
	/* libfuse's messages end in a newline. */
	if (len > 0 && len < (int)sizeof(raw) && raw[len - 1] == '\n')
		raw[len - 1] = '\0';

	if (level == LOG_LVL_DEBUG)
		p = stpcpy(p, DEBUG_PREFIX);
	escape(p, raw);
	if (len >= (int)sizeof(raw))
		strcat(p, TRUNCATED_SUFFIX);

	if (!log_thread_take(level, line))
		log_write(level, line);
	errno = saved_errno;
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	if (level > log_get_level())
		return;
	va_start(ap, fmt);
	log_line(level, fmt, ap);
	va_end(ap);
}

void log_out(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(level, fmt, ap);
	va_end(ap);
}

bool log_ratelimit(_Atomic uint64_t *last_ns)
{
	uint64_t last = atomic_load_explicit(last_ns, memory_order_relaxed);
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	if (last && now - last < RATELIMIT_NS)
		return false;
	/* Of several threads here at once, one logs. */
	return atomic_compare_exchange_strong_explicit(
		last_ns, &last, now, memory_order_relaxed, memory_order_relaxed);
}
