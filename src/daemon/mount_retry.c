/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attempts to mount, one after the other, until one works, fails for good, or
 * time is up (nfs(5): bg, fg, retry=). Each is a struct mount of its own.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "background.h"
#include "log.h"
#include "log_thread.h"
#include "mount_int.h"
#include "protect.h"
#include "store.h"

/* Programs wait for a mount that is taken over: so long until the next attempt. */
#define TAKE_OVER_NS (NSEC_PER_SEC / 2)

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int exit_status(const struct options *o, int err)
{
	if (!o->helper)
		return MOUNT_EX_USAGE;
	return err == EINTR ? MOUNT_EX_USER : MOUNT_EX_FAIL;
}

/* There are no lanes yet if there is no reactor. */
static void stop(struct mount *m)
{
	if (m->reactor != NULL)
		mount_stop_begin(m);
}

static void fail(struct mount *m, int err, bool hopeless, const char *text)
{
	const struct options *o = m->opt;

	if (m->status != 0)
		return;
	m->status = exit_status(o, err);
	if (m->handover != NULL && err != EINTR) {
		snprintf(m->handover->why, sizeof(m->handover->why), "%s", text);
		if (m->tried)
			log_debug("%s: it cannot be taken over: %s", o->mountpoint, text);
		else
			log_err("%s: the mount cannot be taken over, as yet: %s", o->mountpoint,
				text);
		m->again = true;
		m->ours = err == EINVAL;
		m->hopeless = hopeless;
		m->wait_ns = TAKE_OVER_NS;
		stop(m);
		return;
	}
	if (m->elsewhere) {
		log_info("%s on %s: %s: trying another address", o->source, o->mountpoint, text);
		stop(m);
		return;
	}
	m->again = m->state == MOUNT_STARTING && retry_after(m->retry, now_ns(), err, &m->wait_ns);
	if (!m->again)
		log_err("%s on %s: %s", o->source, o->mountpoint, text);
	else if (m->retry->tries == 1)
		log_warn("%s on %s: %s: trying again for %u min%s", o->source, o->mountpoint, text,
			o->retry_min, o->bg && !o->foreground ? ", in the background" : "");
	else
		log_debug("%s on %s: %s", o->source, o->mountpoint, text);
	stop(m);
}

void mount_retry_fail_err(struct mount *m, int err, const char *text)
{
	fail(m, err, err == EINVAL, text);
}

/* That of a mount which is none yet is not tried again. */
void mount_retry_fail(struct mount *m, int err, const char *text)
{
	fail(m, EINVAL, retry_is_hopeless(abs(err)), text);
}

static void start_log_thread(void)
{
	int err = log_thread_start();

	if (err != 0)
		log_warn("the log has no thread of its own: %s", strerror(-err));
}

void mount_retry_detach(void)
{
	/* Before it is left: lanes log too. No thread writes yet, which could hang meanwhile. */
	if (background_is_waited_for())
		log_to_syslog("rpcrdmafs");
	background_leave();
	start_log_thread();
}

/* False: a signal that ends us came first. They are blocked here, and only here. */
static bool wait_for_next(const struct mount *m)
{
	struct timespec ts = {.tv_sec = (time_t)(m->wait_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(m->wait_ns % NSEC_PER_SEC)};
	sigset_t set, all;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	all = set;
	sigaddset(&all, SIGUSR1); /* an attempt has it blocked, and there is nothing to print */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	do
		sig = sigtimedwait(&set, NULL, &ts);
	while (sig < 0 && errno == EINTR);
	if (sig < 0) {
		sigdelset(&all, SIGUSR1);
		pthread_sigmask(SIG_UNBLOCK, &all, NULL);
		return true;
	}
	log_err("%s on %s: interrupted", m->opt->source, m->opt->mountpoint);
	return false;
}

/* Nobody takes it over any more: what is mounted must not wait for ever. */
static void end_of(struct handover *h, const struct options *o)
{
	if (h != NULL) {
		if (h->crashed)
			log_err("%s: nobody takes it over: what programs wrote, and was not "
				"durable on the server, is lost",
				h->mountpoint);
		fs_handover_drop(&h->tables, h->crash.fuse_fd, h->mountpoint,
			h->source != NULL ? h->source : o->source);
		keeper_bye(h->crash.sock);
		h->crash.sock = -1;
		if (h->stored > 0)
			store_drop(h->stored);
	}
	handover_free(h);
}

static int try_until_mounted(
	struct options *opt, struct capture *capture, struct handover *handover)
{
	struct mount_where where = {0};
	struct retry retry;

	uint64_t began_ns = now_ns(), hopeless_ns = 0;
	bool tried = false, over;

	retry_init(&retry, began_ns, opt->retry_min, opt->bg);
	for (;;) {
		struct mount m = {
			.opt = opt,
			.retry = &retry,
			.where = &where,
			.capture = capture,
			.identity.fd = -1,
			.handover = handover,
			.tried = tried,
		};

		mount_attempt(&m);
		handover = m.handover;
		tried = true;
		over = retry_is_over(&hopeless_ns, now_ns(), m.hopeless);
		if (handover != NULL && handover->before >= 0 && m.again &&
			(m.ours || now_ns() - began_ns >= RETRY_TAKE_OVER_NS))
			handover_give_back(handover);
		if (handover != NULL && handover->crashed && over) {
			log_err("%s: the mount is given up, and all use of it fails",
				opt->mountpoint);
			m.again = false;
		}
		if (m.elsewhere) {
			where.at++;
			continue;
		}
		where.at = 0;
		if (!m.again) {
			end_of(handover, opt);
			return m.status;
		}
		if (opt->bg && background_is_waited_for()) {
			mount_retry_detach();
			log_set_level(opt->debug ? LOG_LVL_DEBUG : LOG_LVL_INFO);
			background_ready();
		}
		if (!wait_for_next(&m)) {
			end_of(handover, opt);
			return exit_status(opt, EINTR);
		}
	}
}

int mount_retry_run(struct options *opt, struct handover *handover)
{
	struct capture *capture = capture_new();
	int status;

	if (capture == NULL) {
		log_err("cannot start: %s", strerror(errno));
		return exit_status(opt, ENOMEM);
	}
	protect_process();
	/* Those who mount get each line before we end or leave, and wait for it if they must. */
	if (!background_is_waited_for())
		start_log_thread();
	status = try_until_mounted(opt, capture, handover);
	capture_free(capture);
	return status;
}
