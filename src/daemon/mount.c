/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a mount: connect the first lane, find the export, start the other
 * lanes, mount, serve. Everything here runs on the main thread's reactor; lanes
 * report by messages.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "background.h"
#include "ctl_cmds.h"
#include "fs.h"
#include "host.h"
#include "idmap_lib.h"
#include "log.h"
#include "mount_int.h"
#include "protect.h"
#include "stats.h"

/* The counters, to the log: sums over all lanes. */
static void print_stats(const struct mount *m)
{
	struct stats sum = {0};
	char *text = NULL, *line, *rest;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL)
		return;
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		stats_add(&sum, lane_stats(m->lanes[i]));
	stats_print(out, &sum, nfs4_op_name);
	fclose(out);
	rest = text;
	while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			log_info("%s", line);
	log_info("inodes=%zu", fs_inode_count(m->fs));
	log_info("lanes=%u", m->lane_cnt); /* the last line: who reads along knows it has all */
	free(text);
}

static void on_signal(struct reactor_fd *src, uint32_t events)
{
	struct mount *m = container_of(src, struct mount, signals);
	struct signalfd_siginfo si;

	while (read(src->fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGUSR1)
			print_stats(m);
		else
			mount_stop_signal(m, (int)si.ssi_signo);
	}
}

/* ---- starting ---- */

/* There is nothing to go back to any more. */
static void taken_over(struct mount *m)
{
	const struct handover *h = m->handover;
	bool crashed = h->crashed && !h->left;

	m->mounted_ns = h->mounted_ns;
	m->upgrades = h->count + (h->before >= 0 || h->left);
	m->crashes = h->crashes + crashed;
	m->longest_pause_ns = h->longest_ns;
	m->upgraded_ns = crashed ? h->upgraded_ns : h->before >= 0 ? reactor_clock(m->reactor) : 0;
	m->upgraded_crashes = crashed ? h->upgraded_crashes : m->crashes;
	m->pause = (struct mount_pause){.since_ns = h->paused_ns,
		.crashed = crashed,
		.given_back = handover_is_given_back(h)};
	snprintf(m->pause.version, sizeof(m->pause.version), "%s", h->version);
	if (m->pause.given_back)
		snprintf(m->upgrade.why, sizeof(m->upgrade.why),
			"the new program could not go on, and the one before does%s%s",
			h->why[0] != '\0' ? ": " : "", h->why);
}

/* Lanes read what the kernel asks now, and nothing that was asked before is left. */
static void pause_is_over(struct mount *m)
{
	uint64_t ns = reactor_clock(m->reactor) - m->pause.since_ns, ms = ns / NSEC_PER_MSEC;

	m->pause.since_ns = 0;
	m->pause_ns = ns;
	if (ns > m->longest_pause_ns)
		m->longest_pause_ns = ns;
	mount_keep_note(m);
	if (m->pause.given_back)
		log_warn("%s: " RPCRDMAFS_VERSION " goes on, as the program that was to take over "
			 "could not: requests waited %" PRIu64 " ms",
			m->opt->mountpoint, ms);
	else if (m->pause.crashed)
		log_warn("%s: " RPCRDMAFS_VERSION " goes on for a daemon that died: requests "
			 "waited %" PRIu64 " ms; the mount goes on",
			m->opt->mountpoint, ms);
	else
		log_info("%s: " RPCRDMAFS_VERSION
			 " has taken over from %s: requests waited %" PRIu64
			 " ms; the mount goes on",
			m->opt->mountpoint, m->pause.version, ms);
}

static void become_ready(struct mount *m)
{
	bool is_next = m->handover != NULL;

	/* Before anything is logged: those who use what is mounted would wait for the log. */
	mount_retry_detach();
	if (!m->opt->foreground)
		log_set_level(LOG_LVL_INFO);
	mount_stop_set_state(m, MOUNT_SERVING);
	m->mounted_ns = reactor_clock(m->reactor);
	m->ctl = ctl_start(m->reactor, mount_commands, m);
	if (m->handover != NULL)
		taken_over(m);
	/* Before a request is answered: the keeper of before has memory that knows nothing of it.
	 * And before those who mount are told: the mount outlives this process from then on. */
	mount_keep(m);
	background_ready();
	if (!is_next)
		log_info("%s mounted on %s", m->opt->source, m->opt->mountpoint);
	if (m->pause.since_ns != 0 && !fs_handover_is_behind(m->fs))
		pause_is_over(m);
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_fs_start(m->lanes[i]);
	m->code_lock = protect_code();
	service_ready(m->opt->source, m->opt->mountpoint);
	service_watchdog_stop(&m->watchdog);
	service_watchdog_start(&m->watchdog, m->reactor, m->lanes, &m->lane_cnt);
}

/* Requests a lane can have in work: what waits for a credit costs only memory. */
static unsigned int lane_ops(const struct mount *m)
{
	return m->opt->nfs.rdma.credits + 16;
}

static unsigned int lanes_wanted(const struct mount *m)
{
	return m->opt->nconnect + (m->opt->fs.metalane ? 1 : 0);
}

static void start_serving(struct mount *m)
{
	char text[256];
	int err = fs_set_root(m->fs);

	for (unsigned int i = 0; err == 0 && i < m->lane_cnt; i++)
		err = lane_fs_new(m->lanes[i], m->fs, lane_ops(m));
	if (err != 0) {
		snprintf(text, sizeof(text), "set-up: %s", strerror(-err));
		mount_retry_fail(m, err, text);
		return;
	}
	err = m->handover != NULL
		      ? fs_handover_mount(m->fs, m->handover->crash.fuse_fd, text, sizeof(text))
		      : fs_mount(m->fs, text, sizeof(text));
	if (err != 0) {
		mount_retry_fail(m, err, text);
		return;
	}
	become_ready(m);
}

static void on_report(void *ctx, const struct lane_report *r);

static int start_lane(struct mount *m)
{
	bool metadata = m->lane_cnt == m->opt->nconnect;
	struct lane *l = lane_new(m->lane_cnt, m->client, metadata, m->reactor, on_report, m);

	if (l == NULL)
		return -errno;
	m->lanes[m->lane_cnt++] = l;
	lane_connect(l, m->src.ss_family != AF_UNSPEC ? (struct sockaddr *)&m->src : NULL,
		(struct sockaddr *)&m->dst);
	return 0;
}

static void no_lane(struct mount *m, int err)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot start a lane: %s%s", strerror(-err),
		err == -ENOMEM && m->live != NULL
			? "; with keep= its buffers are in a file: RLIMIT_FSIZE counts"
			: "");
	mount_retry_fail(m, err, text);
}

/* The first lane finds the export; the others join its client ID one after the other. */
static void lane_is_up(struct mount *m)
{
	int err = 0;

	m->up++;
	if (m->up == 1) {
		lane_mount_path(m->lanes[0], m->opt->path, &m->cred);
		return;
	}
	if (m->up < lanes_wanted(m))
		err = start_lane(m);
	else
		start_serving(m);
	if (err != 0)
		no_lane(m, err);
}

static void path_is_done(struct mount *m, const struct nfs4_failure *f)
{
	char text[400];
	int err;

	if (f->err != 0) {
		snprintf(text, sizeof(text), "%s: %s", f->step, f->text);
		mount_retry_fail_err(m, f->err, text);
		return;
	}
	if (lanes_wanted(m) == 1) {
		start_serving(m);
		return;
	}
	err = start_lane(m);
	if (err != 0)
		no_lane(m, err);
}

static void lane_failed(struct mount *m, const struct lane *l, const struct nfs4_failure *f)
{
	char text[400];

	for (unsigned int i = 0; i < m->lane_cnt; i++)
		m->failed[i] |= m->lanes[i] == l;
	m->stopped++;
	if (m->status != 0 && m->stopped == m->lane_cnt)
		reactor_stop(m->reactor);
	if (m->status == 0 && m->up == 0)
		m->elsewhere =
			host_may_be_elsewhere(f->step) && m->where->at + 1 < m->where->list.cnt;
	snprintf(text, sizeof(text), "%s: %s", f->step, f->text);
	mount_retry_fail_err(m, f->err, text);
}

static void on_report(void *ctx, const struct lane_report *r)
{
	struct mount *m = ctx;

	switch (r->type) {
	case LANE_UP:
		if (m->state == MOUNT_STARTING && m->status == 0)
			lane_is_up(m);
		break;
	case LANE_FAILED:
		lane_failed(m, r->lane, &r->failure);
		break;
	case LANE_PATH_DONE:
		if (m->status == 0)
			path_is_done(m, &r->failure);
		break;
	case LANE_EXITED:
		mount_stop_drain(m);
		break;
	case LANE_CAUGHT_UP:
		if (m->pause.since_ns != 0)
			pause_is_over(m);
		break;
	case LANE_HELD:
	case LANE_BUSY:
		upgrade_on_report(m, r);
		break;
	case LANE_IDLE:
		if (++m->idle == m->lane_cnt && m->state == MOUNT_DRAINING)
			mount_stop_begin(m);
		mount_stop_end_if_over(m);
		break;
	case LANE_STOPPED:
		m->stopped++;
		mount_stop_end_if_over(m);
		break;
	}
}

static int make_client(struct mount *m)
{
	char host[HOST_NAME_MAX + 1] = "localhost", folder[PATH_MAX];
	int err;

	gethostname(host, sizeof(host) - 1);
	rpc_set_machine_name(host);
	identity_folder(folder);
	err = 0;
	if (m->handover != NULL)
		identity_get_again(&m->identity, m->opt, folder, m->handover->owner);
	else
		err = identity_get(&m->identity, m->opt, folder);
	if (err != 0)
		return err;
	m->idmap = idmap_lib_new();
	if (m->idmap == NULL)
		return -errno;
	m->opt->nfs.idmap = m->idmap;
	m->opt->nfs.rdma.capture = m->capture;
	m->addrs = host_addrs_new(m->opt, &m->where->list, m->where->at, &m->src);
	if (m->addrs == NULL)
		return -errno;
	m->opt->nfs.rdma.addrs = m->addrs;
	m->opt->nfs.owner = m->identity.owner;
	m->client = nfs4_client_new(&m->opt->nfs);
	m->opt->nfs.owner = NULL;
	if (m->client == NULL)
		return -errno;
	m->fs = fs_new(&m->opt->fs, m->client);
	if (m->fs == NULL)
		return -errno;
	err = mount_keep_begin(m);
	if (err != 0)
		return err;
	if (m->handover == NULL)
		return 0;
	return fs_handover_get(m->fs, &m->handover->tables, m->handover->before >= 0 && !m->tried,
		reactor_now(m->reactor));
}

/* The path is not looked at: it is this mount, and nobody would answer. */
static int take_mountpoint(struct mount *m, char *text, size_t len)
{
	const char *source = m->handover->source;
	char *path;

	/* The unit may say something else by now. */
	if (source != NULL && strcmp(source, m->opt->source) != 0) {
		snprintf(text, len, "it is of %s, and not of %s", source, m->opt->source);
		return -EINVAL;
	}
	if (m->handover->crashed && m->handover->stored > 0)
		service_takes_over();
	path = strdup(m->handover->mountpoint);
	if (path == NULL) {
		snprintf(text, len, "out of memory");
		return -ENOMEM;
	}
	free(m->opt->mountpoint);
	m->opt->mountpoint = path;
	host_mountpoint_is(m->opt);
	return 0;
}

static int catch_signals(struct mount *m)
{
	static const int sigs[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		sigaddset(&set, sigs[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	return reactor_fd_add(m->reactor, &m->signals, fd, EPOLLIN, on_signal);
}

/* Once, by the first attempt that comes here, while relative names mean what the user meant. */
static int start_capture(struct mount *m, char *text, size_t len)
{
	struct capture_state st;
	int err, fd;

	capture_state(m->capture, &st);
	if (m->opt->capture == NULL || st.end != CAPTURE_NEVER)
		return 0;
	fd = capture_open(m->opt->capture);
	err = fd < 0 ? fd : capture_start(m->capture, fd, &m->opt->capture_limits);
	if (err == 0)
		return 0;
	if (fd >= 0)
		close(fd);
	snprintf(text, len, "capture=%s: %s%s", m->opt->capture, strerror(-err),
		err == -EEXIST ? ": remove it, or name another file" : "");
	return err;
}

static void run(struct mount *m)
{
	static const unsigned int no_lanes;
	char text[400];
	int err = m->handover != NULL ? take_mountpoint(m, text, sizeof(text))
				      : host_mountpoint(m->opt, text, sizeof(text));

	/* To its manager it serves all the time, and a server may be away for long. */
	if (m->handover != NULL)
		service_watchdog_start(&m->watchdog, m->reactor, m->lanes, &no_lanes);
	if (err == 0)
		err = mount_keep_check(m->opt, text, sizeof(text));
	if (err != 0) {
		mount_retry_fail(m, err, text);
		return;
	}
	if (m->where->at == 0)
		err = host_addresses(m->opt, &m->where->list, &m->where->src, text, sizeof(text));
	if (err != 0) {
		mount_retry_fail_err(m, -err, text);
		return;
	}
	m->dst = m->where->list.addr[m->where->at];
	m->src = m->where->src;
	host_cred(m->opt, &m->cred);
	err = m->handover != NULL ? 0 : start_capture(m, text, sizeof(text));
	if (err != 0) {
		mount_retry_fail(m, err, text);
		return;
	}
	err = catch_signals(m);
	if (err == 0)
		err = make_client(m);
	if (err == 0) {
		err = m->handover != NULL ? 0 : fs_mount_check(m->fs, text, sizeof(text));
		if (err != 0) {
			mount_retry_fail(m, err, text);
			return;
		}
		service_status("connecting to %s", m->opt->host);
		err = start_lane(m);
		if (err != 0) {
			no_lane(m, err);
			return;
		}
	}
	if (err != 0) {
		snprintf(text, sizeof(text), "set-up: %s", strerror(-err));
		mount_retry_fail(m, err, text);
		return;
	}
	reactor_run(m->reactor);
}

static void fini(struct mount *m)
{
	service_watchdog_stop(&m->watchdog);
	ctl_end(m->ctl);
	mount_stop_fini(m);
	if (m->opt->stats)
		print_stats(m);
	/* Whoever posts to a lane may still be in reactor_post() when the lane has run that. */
	fs_stop(m->fs);
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_join(m->lanes[i]);
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_free(m->lanes[i]);
	mount_keep_end(m);
	fs_free(m->fs);
	nfs4_client_free(m->client);
	live_free(m->live);
	addrs_free(m->addrs);
	identity_put(&m->identity);
	idmap_free(m->idmap);
	if (m->signals.reactor != NULL) {
		reactor_fd_del(&m->signals);
		close(m->signals.fd);
	}
	reactor_free(m->reactor);
}

void mount_attempt(struct mount *m)
{
	char text[128];
	int err;

	m->reactor = reactor_new();
	err = errno;
	if (m->reactor == NULL) {
		snprintf(text, sizeof(text), "cannot start: %s", strerror(err));
		mount_retry_fail(m, err, text);
		if (m->opt->helper)
			m->status = MOUNT_EX_SYSERR;
		return;
	}
	upgrade_init(m);
	run(m);
	fini(m);
}
