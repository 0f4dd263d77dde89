/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a mount: unmount, let lanes finish, end sessions. Everything here
 * runs on the main thread's reactor but unmount_main().
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "fs.h"
#include "log.h"
#include "log_thread.h"
#include "mount_int.h"
#include "stats.h"

/* After a signal, programs that still use the mount have so long to end. */
#define LINGER_S 10
/* Draining ends when the server was silent for so long beyond the time in which a living one would
 * have answered a health check (probe=, or 15 s); sessions then end within 5 s. */
#define SILENT_S     5
#define SILENT_PROBE (15 * NSEC_PER_SEC)

#define TO(name) (1u << MOUNT_##name)

/* From each state to which. */
static const unsigned int legal[] = {
	[MOUNT_STARTING] = TO(SERVING) | TO(STOPPING),
	[MOUNT_SERVING] = TO(DRAINING) | TO(STOPPING),
	[MOUNT_DRAINING] = TO(STOPPING),
	[MOUNT_STOPPING] = TO(STOPPING), /* a lane fails meanwhile */
};

void mount_stop_set_state(struct mount *m, enum mount_state to)
{
	assert(legal[m->state] & 1u << to);
	m->state = to;
}

/* Sessions are gone, and if there were lanes with operations, these as well. */
void mount_stop_end_if_over(struct mount *m)
{
	if (m->state == MOUNT_STOPPING && m->stopped == m->lane_cnt &&
		(!m->drains || m->idle == m->lane_cnt))
		reactor_stop(m->reactor);
}

void mount_stop_begin(struct mount *m)
{
	if (m->state == MOUNT_DRAINING)
		progress_end(&m->progress);
	mount_stop_set_state(m, MOUNT_STOPPING);
	service_status("ending sessions");
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		if (!m->failed[i])
			lane_stop(m->lanes[i]);
	mount_stop_end_if_over(m);
}

static uint64_t answers(const struct mount *m)
{
	uint64_t cnt = 0;

	for (unsigned int i = 0; i < m->lane_cnt; i++) {
		const struct stats *st = lane_stats(m->lanes[i]);

		cnt += __atomic_load_n(&st->replies, __ATOMIC_RELAXED) +
		       __atomic_load_n(&st->probe_replies, __ATOMIC_RELAXED);
	}
	return cnt;
}

/* What is left waits for the server (`hard`): as long as it says anything. */
static void check_silence(struct reactor_timer *t)
{
	struct mount *m = container_of(t, struct mount, silence);
	uint64_t now = reactor_now(m->reactor), cnt = answers(m);
	uint64_t probe = m->opt->nfs.rdma.idle_probe_ns;

	if (m->state != MOUNT_DRAINING)
		return;
	progress_tell(&m->progress, now, fs_gauges(m->fs).dirty);
	if (cnt != m->heard) {
		m->heard = cnt;
		m->heard_ns = now;
	}
	if (now - m->heard_ns >= (probe ? probe : SILENT_PROBE) + SILENT_S * NSEC_PER_SEC) {
		log_warn("%s: the server is silent: what still waits for it is given up",
			m->opt->mountpoint);
		mount_stop_begin(m);
		return;
	}
	reactor_timer_in(m->reactor, t, NSEC_PER_SEC / 2);
}

void mount_stop_drain(struct mount *m)
{
	if (m->state != MOUNT_SERVING)
		return;
	upgrade_give_up(m, "the mount ends");
	mount_stop_set_state(m, MOUNT_DRAINING);
	service_stopping();
	service_status("finishing what is in work");
	m->drains = true;
	m->lost = fs_losses(m->fs);
	m->heard = answers(m);
	m->heard_ns = reactor_now(m->reactor);
	progress_start(&m->progress, m->heard_ns, m->opt->mountpoint,
		m->opt->foreground && isatty(STDERR_FILENO));
	reactor_timer_init(&m->silence, check_silence);
	reactor_timer_in(m->reactor, &m->silence, NSEC_PER_SEC);
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_drain(m->lanes[i]);
}

/* Unmounting waits for the kernel, which waits for lanes: not on the main reactor's thread. */
static void *unmount_main(void *arg)
{
	struct mount *m = arg;

	fs_unmount(m->fs);
	return NULL;
}

/* Programs still have files open: these are committed and closed, the programs get errors. */
static void linger_over(struct reactor_timer *t)
{
	struct mount *m = container_of(t, struct mount, linger);

	if (m->state != MOUNT_SERVING)
		return;
	log_warn("%s is still in use: its files are closed now", m->opt->mountpoint);
	mount_stop_drain(m);
}

static void start_unmount(struct mount *m)
{
	upgrade_give_up(m, "the mount ends");
	service_stopping();
	service_status("unmounting; programs have %d s to close their files", LINGER_S);
	if (pthread_create(&m->unmount_thread, NULL, unmount_main, m) != 0) {
		log_err("cannot unmount: out of threads");
		return;
	}
	m->unmounting = true;
	reactor_timer_init(&m->linger, linger_over);
	reactor_timer_in(m->reactor, &m->linger, LINGER_S * NSEC_PER_SEC);
}

void mount_stop_signal(struct mount *m, int signo)
{
	if (m->state == MOUNT_SERVING && !m->unmounting) {
		if (fs_mountfd_of(m->opt->mountpoint) >= 0)
			log_info("signal %d: who mounted %s has %d s to unmount it", signo,
				m->opt->mountpoint, LINGER_S);
		else
			log_info("signal %d: unmounting %s", signo, m->opt->mountpoint);
		start_unmount(m);
		return;
	}
	if (m->state == MOUNT_STARTING) {
		mount_retry_fail_err(m, EINTR, "interrupted");
		return;
	}
	if (m->state == MOUNT_SERVING) {
		reactor_timer_in(m->reactor, &m->linger, 0);
		return;
	}
	/* Once more: the user does not want to wait for a server that does not answer. */
	log_err("signal %d: ending at once; the server keeps our state until its lease runs out",
		signo);
	(void)log_thread_stop(NSEC_PER_SEC / 2);
	_exit(1);
}

/* Nobody heard of it but the log, one line a file. */
static void say_lost(const struct mount *m)
{
	struct fs_losses now = fs_losses(m->fs);
	uint64_t bytes = now.bytes - m->lost.bytes;

	if (bytes > 0)
		log_err("%s: %llu bytes of %u files were not written, and are lost",
			m->opt->mountpoint, (unsigned long long)bytes, now.files - m->lost.files);
}

void mount_stop_fini(struct mount *m)
{
	if (m->drains)
		say_lost(m);
	if (m->unmounting) {
		pthread_join(m->unmount_thread, NULL);
		reactor_timer_cancel(m->reactor, &m->linger);
	}
	reactor_timer_cancel(m->reactor, &m->silence);
}
