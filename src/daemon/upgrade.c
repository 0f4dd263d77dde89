/* SPDX-License-Identifier: BSD-3-Clause */
#include "upgrade.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl_cmds.h"
#include "handover.h"
#include "log.h"
#include "log_thread.h"
#include "mount_int.h"
#include "optset.h"
#include "service.h"
#include "store.h"
#include "store_before.h"
#include "upgrade_ask.h"

/* The new program answers within so long whether it can. */
#define CHECK_NS (10 * NSEC_PER_SEC)
/* All is durable within so long, while programs go on ... */
#define SYNC_NS (60 * NSEC_PER_SEC)
/* ... and nothing in work within so long, while they wait. */
#define WAIT_NS (10 * NSEC_PER_SEC)
/* One that leaves does so in any case: a container has 30 s to end. */
#define LEAVE_SYNC_NS (10 * NSEC_PER_SEC)
#define TICK_NS       (2 * NSEC_PER_MSEC)
/* The kernel is told of changes: that may wait for requests which are not read. */
#define AIR_NS (20 * NSEC_PER_MSEC)
#define LOG_NS NSEC_PER_SEC

#define TO(name) (1u << UPGRADE_##name)

/* From each state to which. */
static const unsigned int legal[] = {
	[UPGRADE_NONE] = TO(CHECKS) | TO(SYNCS),
	[UPGRADE_CHECKS] = TO(SYNCS) | TO(NONE),
	[UPGRADE_SYNCS] = TO(WAITS) | TO(NONE),
	[UPGRADE_WAITS] = TO(HOLDS) | TO(NONE),
	[UPGRADE_HOLDS] = TO(WAITS) | TO(SYNCS) | TO(NONE),
};

static void set_state(struct upgrade *u, enum upgrade_state to)
{
	assert(legal[u->state] & 1u << to);
	u->state = to;
}

static void tick_in(struct mount *m, uint64_t ns)
{
	reactor_timer_in(m->reactor, &m->upgrade.timer, ns);
}

/* ---- given up ---- */

static void lanes_go_on(struct mount *m)
{
	if (m->upgrade.paused_ns == 0)
		return;
	m->upgrade.paused_ns = 0;
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_go_on(m->lanes[i]);
}

static void release_held(struct mount *m)
{
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		if (m->upgrade.held & 1u << i)
			lane_release(m->lanes[i]);
	m->upgrade.held = 0;
}

void upgrade_give_up(struct mount *m, const char *why)
{
	struct upgrade *u = &m->upgrade;

	if (u->state == UPGRADE_NONE)
		return;
	snprintf(u->why, sizeof(u->why), "%s", why);
	if (!u->only_check)
		log_warn("%s: the upgrade is given up, this program goes on: %s",
			m->opt->mountpoint, why);
	reactor_timer_cancel(m->reactor, &u->timer);
	free(u->set);
	u->set = NULL;
	release_held(m);
	lanes_go_on(m);
	upgrade_ask_end(u);
	set_state(u, UPGRADE_NONE);
	service_status("%s mounted on %s", m->opt->source, m->opt->mountpoint);
}

/* ---- the hand-over ---- */

static int write_tables(struct mount *m, int fd)
{
	struct handover_facts facts = mount_keep_facts(m);
	struct tables_out t;

	facts.paused_ns = m->upgrade.paused_ns;
	facts.set_before = facts.set;
	if (m->upgrade.set != NULL)
		facts.set = m->upgrade.set;
	tables_begin(&t, fd);
	handover_put(&t, &facts);
	fs_handover_put(m->fs, &t); /* sessions are of its last record */
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_put_session(m->lanes[i], &t);
	return tables_end(&t);
}

/* Nobody is told anything from here on. */
static void say_no_more(struct mount *m)
{
	(void)capture_stop(m->capture);
	(void)log_thread_stop(LOG_NS);
	ctl_end(m->ctl);
	notifier_end(&m->notifier);
}

/*
 * Whatever is still in work is as after a crash: what the next one has to know is in m->live. Does
 * not return unless there would be none.
 */
static void leave(struct mount *m)
{
	struct handover_facts facts = mount_keep_facts(m);
	const char *fault = mount_keep_fault(m);

	if (fault != NULL) {
		upgrade_give_up(m, fault);
		return;
	}
	facts.paused_ns =
		m->upgrade.paused_ns != 0 ? m->upgrade.paused_ns : reactor_clock(m->reactor);
	facts.left = true;
	handover_live(m->live, &m->live_ref, &facts);
	log_info("%s: this program ends, and leaves the mount to the next one", m->opt->mountpoint);
	say_no_more(m);
	store_before_drop(); /* the next one is what the unit says */
	store_forgive();
	_exit(UPGRADE_LEFT);
}

/* Every lane stands still and nothing is in work. Does not return if the other program runs. */
static void hand_over(struct mount *m)
{
	struct upgrade *u = &m->upgrade;
	int tables = memfd_create("rpcrdmafs-tables", MFD_CLOEXEC), self = handover_self();
	char why[200];
	int err = tables < 0 ? -errno : self < 0 ? self : write_tables(m, tables);

	if (err == 0) {
		if (u->set != NULL)
			log_info("%s: the same program takes over, with %s", m->opt->mountpoint,
				u->set);
		else
			log_info("%s: another program takes over", m->opt->mountpoint);
		say_no_more(m);
		fs_handover_keep_device(m->fs, true);
		keeper_keep(&m->keeper, true);
		err = handover_exec(u->program, tables, self);
		keeper_keep(&m->keeper, false);
		fs_handover_keep_device(m->fs, false);
		mount_keep_notifier(m);
		m->ctl = ctl_start(m->reactor, mount_commands, m);
		(void)log_thread_start();
	}
	if (tables >= 0)
		close(tables);
	if (self >= 0)
		close(self);
	snprintf(why, sizeof(why), "the hand-over: %s", strerror(-err));
	upgrade_give_up(m, why);
}

/* ---- what has to be over before ---- */

static void time_is_over(struct mount *m)
{
	char why[200];

	if (m->upgrade.leaves) {
		leave(m);
		return;
	}
	snprintf(why, sizeof(why), "something was still in work: %s",
		m->upgrade.obstacle != NULL ? m->upgrade.obstacle : "requests");
	upgrade_give_up(m, why);
}

static void sync_begin(struct mount *m)
{
	fs_handover_prepare(m->fs);
	m->upgrade.ticket = fs_sync_wish(m->fs);
}

/* Has what was wished for been tried? False too if the upgrade was given up. */
static bool is_synced(struct mount *m)
{
	unsigned int failed;

	if (!fs_sync_is_done(m->fs, m->upgrade.ticket, &failed))
		return false;
	if (failed == 0 || m->upgrade.leaves)
		return true;
	upgrade_give_up(m, "data of some files could not be made durable");
	return false;
}

static void pause_begin(struct mount *m)
{
	struct upgrade *u = &m->upgrade;

	set_state(u, UPGRADE_WAITS);
	service_status("handing the mount over");
	if (!u->was_paused)
		u->until_ns = reactor_now(m->reactor) + WAIT_NS;
	u->was_paused = true;
	u->paused_ns = reactor_clock(m->reactor);
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_pause(m->lanes[i]);
	sync_begin(m);
}

static void hold_begin(struct mount *m)
{
	set_state(&m->upgrade, UPGRADE_HOLDS);
	m->upgrade.asked = m->lane_cnt;
	for (unsigned int i = 0; i < m->lane_cnt; i++)
		lane_hold(m->lanes[i]);
}

/* All have answered. */
static void hold_over(struct mount *m)
{
	struct upgrade *u = &m->upgrade;
	bool all = u->held == (1u << m->lane_cnt) - 1;

	u->obstacle = all ? fs_handover_obstacle(m->fs) : NULL;
	if (all && u->obstacle == NULL) {
		if (u->leaves)
			leave(m);
		else
			hand_over(m);
		return;
	}
	release_held(m);
	if (reactor_now(m->reactor) >= u->until_ns) {
		time_is_over(m);
	} else if (fs_handover_wants_air(m->fs)) {
		lanes_go_on(m);
		set_state(u, UPGRADE_SYNCS);
		sync_begin(m);
		tick_in(m, AIR_NS);
	} else {
		set_state(u, UPGRADE_WAITS);
		sync_begin(m);
		tick_in(m, TICK_NS);
	}
}

void upgrade_on_report(struct mount *m, const struct lane_report *r)
{
	struct upgrade *u = &m->upgrade;
	unsigned int nr = 0;

	while (m->lanes[nr] != r->lane)
		nr++;
	u->asked--;
	if (r->type == LANE_HELD && u->state == UPGRADE_HOLDS)
		u->held |= 1u << nr;
	else if (r->type == LANE_HELD)
		lane_release(r->lane); /* it was given up meanwhile */
	if (u->asked == 0 && u->state == UPGRADE_HOLDS)
		hold_over(m);
}

/* ---- the new program ---- */

static void check(struct mount *m)
{
	int answer = upgrade_ask_answer(&m->upgrade);

	if (answer < 0) {
		upgrade_give_up(m, "the new program cannot take over what this one writes down");
		return;
	}
	if (answer > 0 && m->upgrade.only_check) {
		m->upgrade.checked = true;
		upgrade_ask_end(&m->upgrade);
		set_state(&m->upgrade, UPGRADE_NONE);
		return;
	}
	if (answer > 0) {
		set_state(&m->upgrade, UPGRADE_SYNCS);
		m->upgrade.until_ns = reactor_now(m->reactor) + SYNC_NS;
		sync_begin(m);
	}
	tick_in(m, TICK_NS);
}

static void tick(struct reactor_timer *t)
{
	struct mount *m = container_of(t, struct mount, upgrade.timer);
	struct upgrade *u = &m->upgrade;

	if (reactor_now(m->reactor) >= u->until_ns && u->leaves && !u->was_paused)
		pause_begin(m);
	if (reactor_now(m->reactor) >= u->until_ns) {
		time_is_over(m);
		return;
	}
	switch (u->state) {
	case UPGRADE_NONE:
		return;
	case UPGRADE_HOLDS: /* lanes answer; one that hangs must not keep the others */
		break;
	case UPGRADE_CHECKS:
		check(m);
		return;
	case UPGRADE_SYNCS:
		if (is_synced(m))
			pause_begin(m);
		break;
	case UPGRADE_WAITS:
		if (u->asked == 0 && is_synced(m))
			hold_begin(m);
		break;
	}
	if (u->state != UPGRADE_NONE)
		tick_in(m, TICK_NS);
}

/* fault: why not; or NULL. Returns: it may begin; false: out has a line. */
static bool may_begin(const struct mount *m, const char *fault, FILE *out)
{
	if (fault == NULL && m->upgrade.state != UPGRADE_NONE)
		fault = "an upgrade is going on";
	if (fault == NULL && (m->state != MOUNT_SERVING || m->unmounting))
		fault = "the mount ends";
	if (fault != NULL)
		fputs(fault, out);
	return fault == NULL;
}

static void begin(struct mount *m, FILE *out)
{
	struct upgrade *u = &m->upgrade;

	u->why[0] = '\0';
	u->checked = false;
	u->obstacle = NULL;
	u->was_paused = false;
	tick_in(m, TICK_NS);
	fprintf(out, "%" PRIu64 "\n", m->upgrades);
}

/* fault: why not; or NULL. */
static int start(struct mount *m, int program, bool only_check, const char *fault, FILE *out)
{
	struct upgrade *u = &m->upgrade;
	int err;

	if (!may_begin(m, fault, out))
		return -EINVAL;
	u->program = fcntl(program, F_DUPFD_CLOEXEC, 3);
	err = u->program < 0 ? -errno : upgrade_ask(u);
	if (err != 0) {
		fprintf(out, "the program does not run: %s", strerror(-err));
		upgrade_ask_end(u);
		return err;
	}
	u->only_check = only_check;
	u->leaves = false;
	u->until_ns = reactor_now(m->reactor) + CHECK_NS;
	set_state(u, UPGRADE_CHECKS);
	begin(m, out);
	return 0;
}

int upgrade_leave(struct mount *m, FILE *out)
{
	struct upgrade *u = &m->upgrade;
	const char *fault = m->stored > 0 ? mount_keep_fault(m)
					  : "nobody who keeps it waits for the next program: that "
					    "is systemd, or rpcrdmafs hold";

	if (!may_begin(m, fault, out))
		return -EINVAL;
	u->only_check = false;
	u->leaves = true;
	u->until_ns = reactor_now(m->reactor) + LEAVE_SYNC_NS;
	set_state(u, UPGRADE_SYNCS);
	sync_begin(m);
	begin(m, out);
	return 0;
}

int upgrade_start(struct mount *m, int program, bool only_check, FILE *out)
{
	return start(m, program, only_check, upgrade_ask_fault(program, fs_dev(m->fs)), out);
}

int upgrade_set(struct mount *m, const char *list, FILE *out)
{
	char fault[300], *set;
	int err = optset_check(m->opt, list, fault, sizeof(fault)), self;

	if (err != 0) {
		fputs(fault, out);
		return err;
	}
	set = optset_join(m->opt->set, list);
	self = set != NULL ? handover_self() : -ENOMEM;
	if (self < 0) {
		fprintf(out, "the program does not run: %s", strerror(-self));
		free(set);
		return self;
	}
	err = start(m, self, false, NULL, out);
	close(self);
	if (err == 0)
		m->upgrade.set = set;
	else
		free(set);
	return err;
}

void upgrade_say(const struct mount *m, FILE *out)
{
	if (m->upgrade.state != UPGRADE_NONE || m->pause.since_ns != 0)
		fputs("running\n", out);
	else if (m->upgrade.why[0] != '\0')
		fprintf(out, "failed %s\n", m->upgrade.why);
	else if (m->upgrade.checked)
		fputs("checked\n", out);
	else
		fprintf(out, "done %" PRIu64 " %" PRIu64 "\n", m->upgrades, m->pause_ns);
}

void upgrade_init(struct mount *m)
{
	m->upgrade = (struct upgrade){.program = -1, .answer = -1};
	reactor_timer_init(&m->upgrade.timer, tick);
}
