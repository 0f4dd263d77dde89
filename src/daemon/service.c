/* SPDX-License-Identifier: BSD-3-Clause */
#include "service.h"

#include <stdarg.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "log.h"

void service_ready(const char *source, const char *mountpoint)
{
	/* The PID: with Type=notify and without -f the manager knows the one that forked. */
	(void)sd_notifyf(0, "READY=1\nMAINPID=%d\nSTATUS=%s mounted on %s", (int)getpid(), source,
		mountpoint);
}

void service_status(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	(void)sd_notifyf(0, "STATUS=%s", line);
}

void service_takes_over(void)
{
	(void)sd_notify(0, "EXTEND_TIMEOUT_USEC=600000000\nSTATUS=taking the mount over");
}

void service_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1");
}

/* ---- watchdog ---- */

static bool all_run(struct watchdog *w)
{
	bool all = true;

	for (unsigned int i = 0; i < *w->lane_cnt; i++) {
		if (lane_answered(w->lanes[i]))
			continue;
		if (!w->late)
			log_err("lane %u does not run any more: the watchdog is not told", i);
		all = false;
	}
	return all;
}

static void watchdog_tick(struct reactor_timer *t)
{
	struct watchdog *w = container_of(t, struct watchdog, timer);
	bool run = all_run(w);

	if (run) {
		(void)sd_notify(0, "WATCHDOG=1");
		for (unsigned int i = 0; i < *w->lane_cnt; i++)
			lane_ping(w->lanes[i]);
	}
	w->late = !run;
	reactor_timer_in(w->reactor, t, w->period_ns);
}

void service_watchdog_start(struct watchdog *w, struct reactor *r, struct lane *const *lanes,
	const unsigned int *lane_cnt)
{
	uint64_t usec = 0;

	if (sd_watchdog_enabled(0, &usec) <= 0)
		return;
	w->reactor = r;
	w->lanes = lanes;
	w->lane_cnt = lane_cnt;
	/* Three in its time: one may be late. */
	w->period_ns = usec * NSEC_PER_USEC / 3;
	reactor_timer_init(&w->timer, watchdog_tick);
	watchdog_tick(&w->timer);
}

void service_watchdog_stop(struct watchdog *w)
{
	if (w->period_ns != 0)
		reactor_timer_cancel(w->reactor, &w->timer);
	w->period_ns = 0;
}
