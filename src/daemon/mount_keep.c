/* SPDX-License-Identifier: BSD-3-Clause */
/* keep=: somebody who starts a successor, and what that finds. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs.h"
#include "held.h"
#include "log.h"
#include "mount_int.h"
#include "store.h"
#include "store_before.h"

int mount_keep_check(const struct options *o, char *text, size_t len)
{
	if (o->keep != OPTIONS_KEEP_SYSTEMD || (o->foreground && store_is_offered()))
		return 0;
	snprintf(text, len,
		"keep=systemd needs -f and a unit with FileDescriptorStoreMax=%u and "
		"Environment=FDSTORE=%u",
		STORE_PLACES, STORE_PLACES);
	return -EINVAL;
}

int mount_keep_begin(struct mount *m)
{
	int err;

	if (m->opt->keep == OPTIONS_KEEP_NO)
		return 0;
	m->live = live_new();
	if (m->live == NULL)
		return -errno;
	err = fs_handover_live(m->fs, m->live, m->opt->keep != OPTIONS_KEEP_TABLES);
	if (err == 0 && m->handover != NULL && m->handover->crash.live_fd >= 0)
		err = fs_handover_before(
			m->fs, m->handover->crash.live_fd, m->handover->crash.fuse_fd);
	return err;
}

void mount_keep_end(struct mount *m)
{
	notifier_end(&m->notifier);
	keeper_end(&m->keeper);
	mount_held_stop(m);
	if (m->stored > 0)
		store_drop(m->stored);
}

static enum options_keep kept_by(const struct options *o)
{
	if (o->keep == OPTIONS_KEEP_NO || o->keep == OPTIONS_KEEP_SYSTEMD)
		return o->keep;
	/*
	 * In the background we are not the process that the manager listens to, yet. A manager that
	 * offers it starts the next daemon in any case, so `process` is the same.
	 */
	return o->foreground && store_is_offered() ? OPTIONS_KEEP_SYSTEMD : OPTIONS_KEEP_PROCESS;
}

/* The keeper of the program before, or of the daemon that died; *ret_pid only if there is one. */
static int keeper_before(struct mount *m, pid_t *ret_pid)
{
	struct handover *h = m->handover;
	int sock;

	if (h == NULL)
		return -1;
	sock = keeper_kept(ret_pid);
	if (sock < 0 && h->crash.sock >= 0) {
		sock = h->crash.sock;
		*ret_pid = h->crash.keeper;
		h->crash.sock = -1;
	}
	return sock;
}

static int let_process_keep(struct mount *m, unsigned int crashes, int sock, pid_t pid)
{
	const struct keeper_conf conf = {
		.mountpoint = m->opt->mountpoint,
		.fuse_fd = fs_handover_device(m->fs),
		.live_fd = live_fd(m->live),
		.crashes = crashes,
		.syslog = !m->opt->foreground,
	};

	return keeper_start(&m->keeper, m->reactor, &conf, sock, pid);
}

void mount_keep_notifier(struct mount *m)
{
	int err = m->live != NULL
			  ? notifier_start(&m->notifier, m->reactor, m->fs, m->opt->mountpoint)
			  : 0;

	if (err != 0)
		log_err("%s: there is no notifier: %s: if this daemon is killed, the mount may "
			"hang",
			m->opt->mountpoint, strerror(-err));
}

static uint64_t stored_before(const struct mount *m)
{
	return m->handover != NULL ? m->handover->stored : 0;
}

const char *mount_keep_fault(const struct mount *m)
{
	if (!keeper_is_there(&m->keeper) && m->stored == 0)
		return "nobody keeps the mount";
	if (m->held_lost)
		return "the holder has gone";
	if (!live_is_complete(m->live))
		return "the memory that is kept is not complete";
	return NULL;
}

struct handover_facts mount_keep_facts(const struct mount *m)
{
	return (struct handover_facts){
		.mountpoint = m->opt->mountpoint,
		.owner = m->identity.owner,
		.mounted_ns = m->mounted_ns,
		.paused_ns = m->pause.since_ns,
		.count = m->upgrades,
		.longest_ns = m->longest_pause_ns,
		.crashes = m->crashes,
		.upgraded_ns = m->upgraded_ns,
		.upgraded_crashes = m->upgraded_crashes,
		.source = m->opt->source,
		.stored = m->stored,
		.set = m->opt->set,
	};
}

/* By another program, or the same with other options, just now. */
static bool is_upgraded(const struct mount *m)
{
	return m->handover != NULL && (!m->handover->crashed || m->handover->left);
}

void mount_keep_note(struct mount *m)
{
	struct handover_facts facts = mount_keep_facts(m);

	if (m->live != NULL)
		handover_live(m->live, &m->live_ref, &facts);
}

void mount_keep(struct mount *m)
{
	bool by_manager = kept_by(m->opt) == OPTIONS_KEEP_SYSTEMD;
	unsigned int crashes = m->handover != NULL ? m->handover->crash.crashes : 0;
	uint64_t stored = by_manager ? stored_before(m) + 1 : 0;
	struct handover_facts facts = mount_keep_facts(m);
	pid_t pid = -1;
	/* First: the next one has our environment. */
	int err = 0, before = keeper_before(m, &pid);

	mount_keep_notifier(m);
	facts.stored = stored;
	if (m->live != NULL) {
		handover_live(m->live, &m->live_ref, &facts);
		fs_handover_live_mounted(m->fs);
	}
	if (by_manager) {
		err = store_put(fs_handover_device(m->fs), live_fd(m->live), stored, stored == 1);
		/* A holder may come again; a manager does not. */
		if (err == 0 || held_is())
			m->stored = stored;
		else
			store_drop(stored);
		mount_held_start(m, err == 0);
		/* The next container's program is its own. */
		if (err == 0 && !held_is() && is_upgraded(m))
			store_before_put(m->handover->before);
	} else if (stored_before(m) > 0) {
		store_drop(stored_before(m)); /* the unit says something else by now */
	}
	if (m->live != NULL && !by_manager)
		err = let_process_keep(m, crashes, before, pid);
	else
		keeper_dismiss(before, pid);
	if (m->handover != NULL)
		handover_free(m->handover);
	m->handover = NULL;
	if (err != 0)
		log_err("%s: nobody keeps the mount, which will not outlive its daemon: %s",
			m->opt->mountpoint, strerror(-err));
}
