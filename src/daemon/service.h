/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the service manager that started us hears (sd_notify(3)): that the mount
 * is usable, what it is doing, that it ends, and, if it asked for that, a sign of
 * life. Without a manager nothing is done.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_SERVICE_H
#define RPCRDMAFS_SERVICE_H

#include "lane.h"

/* The mount is usable (Type=notify waits for that). */
void service_ready(const char *source, const char *mountpoint);
/* One line on what is going on now, as `systemctl status` shows it. */
void service_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The mount is there already, and a server that is away may take its time (RFC 8881 section 8.4.2).
 */
void service_takes_over(void);
/* It begins to end; what that takes is not to be mistaken for a hang. */
void service_stopping(void);

/*
 * The watchdog (WatchdogSec=): the manager is told three times in its time that the main
 * thread and each lane's thread still run. A lane that waits for the server runs; one
 * that hangs keeps the message back, and the manager does what its unit says.
 */
struct watchdog {
	struct reactor *reactor;
	struct reactor_timer timer;
	uint64_t period_ns; /* 0: nobody asked for it */
	struct lane *const *lanes;
	const unsigned int *lane_cnt;
	bool late; /* it was said */
};

/* The first sign is at once. lanes and *lane_cnt live as long as w; r runs on this thread. */
void service_watchdog_start(struct watchdog *w, struct reactor *r, struct lane *const *lanes,
	const unsigned int *lane_cnt);
/* Before the lanes' threads end. Harmless for one that was never started. */
void service_watchdog_stop(struct watchdog *w);

#endif
