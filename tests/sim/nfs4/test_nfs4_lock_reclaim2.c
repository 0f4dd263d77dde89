/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens while locks are reclaimed, at any moment of that: another
 * restart, the user's locks, unlocks, frees and closes, the end. And what was
 * on its way when it began.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "nfs4_lock.h"
#include "sim_log.h"
#include "sim_ops.h"

#define FILES  2
#define OWNERS 3 /* of each file */
#define RANGES 2 /* of each owner */
#define GRACE  (10 * SIM_SEC)
#define END    NFS4_LOCK_TO_END

static struct sim_nfs w;
static struct sim_file files[FILES];
/* Each in memory of its own: what touches one that was freed is found. */
static struct nfs4_lockowner *owners[FILES][OWNERS];
static unsigned int owner_cnt;

static uint64_t offset_of(unsigned int owner, unsigned int range)
{
	return owner * 1000 + range * 20;
}

static struct nfs4_lockowner *owner_new(void)
{
	struct nfs4_lockowner *lo = malloc(sizeof(*lo));

	nfs4_lockowner_init(lo, w.cl);
	return lo;
}

static void owner_free(struct nfs4_lockowner **lo, unsigned int lane)
{
	nfs4_lockowner_free(*lo, w.lane[lane].sess);
	free(*lo);
	*lo = NULL;
}

static void begin(unsigned int lanes, unsigned int nowners)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, lanes);
	owner_cnt = nowners;
	for (unsigned int i = 0; i < FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, name, &files[i]), 0);
		for (unsigned int k = 0; k < nowners; k++) {
			owners[i][k] = owner_new();
			for (unsigned int r = 0; r < RANGES; r++)
				cr_assert_eq(sim_brlock(&w, k % lanes, &files[i], owners[i][k],
						     offset_of(k, r), 10, r % 2),
					0);
		}
	}
}

static unsigned int held(void)
{
	return nfsd_sim_locks(w.srv, NULL, NULL, 0);
}

/* left: client IDs that may remain on the server. */
static void end(unsigned int left)
{
	for (unsigned int i = 0; i < FILES; i++) {
		cr_assert_eq(sim_close(&w, &files[i]), 0);
		for (unsigned int k = 0; k < owner_cnt; k++) {
			cr_assert(!owners[i][k] || !owners[i][k]->state);
			free(owners[i][k]);
		}
	}
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	cr_assert_eq(held(), 0);
	cr_assert_eq(nfsd_sim_live_lock_states(w.srv), 0);
	SIM_NFS_CLOSE(&w, left);
}

/*
 * A recovery comes a while after the restart, and is then over in a moment: its moments are
 * counted in calls that the server has seen, and the time to the next one.
 */
#define MOMENT_US   8
#define PER_CALL    3
#define LAST_MOMENT (26 * PER_CALL)

static void restart(unsigned int moment, uint64_t grace_ns)
{
	uint64_t before = nfsd_sim_stats(w.srv).calls, late = reactor_now(w.r) + SIM_SEC;

	nfsd_sim_restart(w.srv, grace_ns, false);
	while (nfsd_sim_stats(w.srv).calls < before + moment / PER_CALL && reactor_now(w.r) < late)
		reactor_turn(w.r, late - reactor_now(w.r));
	sim_nfs_run(&w, moment % PER_CALL * MOMENT_US * NSEC_PER_USEC);
}

Test(nfs4_lock_reclaim2, second_restart_at_any_moment, .init = sim_log_count)
{
	for (unsigned int m = 0; m < LAST_MOMENT; m++)
		for (unsigned int i = 0; i < 4; i++) {
			struct sim_op op = {0};

			begin(2, 2);
			restart(m, i % 2 ? GRACE : 0);
			restart(0, i / 2 ? GRACE : 0);
			for (unsigned int k = 0; k < FILES; k++)
				cr_assert_eq(sim_read(&w, &op, &files[k], 0, 100), 0, "%u", m);
			cr_assert_eq(held(), 8, "moment %u: %u", m, held());
			end(0);
		}
	cr_assert_eq(sim_said.lost, 0);
}

/* ---- the user meanwhile ---- */

Test(nfs4_lock_reclaim2, lock_and_unlock_in_flight_over_a_restart, .init = sim_log_count)
{
	for (unsigned int us = 0; us < 80; us++) {
		struct sim_op l = {0}, u = {0};

		begin(2, 2);
		/* It cannot know that what it asked for, and got no answer to, is done. */
		nfsd_sim_conf(w.srv)->tolerant_state = true;
		cr_assert(sim_op_get(&w, 0, &l) && sim_op_get(&w, 1, &u));
		sim_lock_start(&l, &files[0], owners[0][0], 500, 10, true, false);
		sim_unlock_start(&u, &files[0], owners[0][1], offset_of(1, 0), 10);
		sim_nfs_run(&w, us * NSEC_PER_USEC);
		nfsd_sim_restart(w.srv, us % 2 ? GRACE : 0, false);
		cr_assert(sim_nfs_until(&w, &l.done_cnt, 1, 900 * SIM_SEC), "%u us", us);
		cr_assert(sim_nfs_until(&w, &u.done_cnt, 1, 900 * SIM_SEC), "%u us", us);
		cr_assert(!l.err && !u.err, "%u us: %d, %d", us, l.err, u.err);
		sim_nfs_run(&w, 30 * SIM_SEC);
		cr_assert_eq(held(), 8, "%u us", us);
		cr_assert(nfsd_sim_lock(w.srv, "/f0", offset_of(1, 0), 10, true), "%u us", us);
		cr_assert_not(nfsd_sim_lock(w.srv, "/f0", 500, 10, false), "%u us", us);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim2, locked_unlocked_freed_and_closed_at_any_moment, .init = sim_log_count)
{
	for (unsigned int m = 0; m < 2 * LAST_MOMENT; m++) {
		struct sim_nfs_call o = {0}, c = {0};

		begin(2, 3);
		cr_assert_eq(sim_nfs_creat(&w, 0, &o, "a"), 0);
		cr_assert_eq(sim_nfs_wait(&w, &o), 0);
		restart(m / 2, m % 2 ? GRACE : 0);
		/* What they hold goes with their open. */
		owner_free(&owners[0][0], 0);
		owner_free(&owners[0][2], 1);
		cr_assert_eq(sim_nfs_close_file(&w, 1, &c, &o), 0);
		cr_assert_eq(sim_brunlock(&w, 0, &files[1], owners[1][0], 0, END), 0);
		cr_assert_eq(sim_brlock(&w, 1, &files[1], owners[1][1], 0, 10, true), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), 0);
		sim_nfs_run(&w, 30 * SIM_SEC);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 2, "moment %u", m);
		end(0);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim2, stop_and_forget_at_any_moment, .init = sim_log_count)
{
	for (unsigned int m = 0; m < 2 * LAST_MOMENT; m++) {
		begin(2, 2);
		restart(m / 2, m % 2 ? GRACE : 0);
		nfs4_state_forget(&files[0].state);
		for (unsigned int k = 0; k < 2; k++) {
			cr_assert_null(owners[0][k]->state);
			free(owners[0][k]);
		}
		sim_nfs_run(&w, m % 5 * 20 * NSEC_PER_USEC);
		sim_nfs_stop(&w);
		if (m % 3)
			nfs4_state_forget(&files[1].state);
		SIM_NFS_CLOSE(&w, 1);
		for (unsigned int k = 0; k < 2; k++) {
			cr_assert_null(owners[1][k]->state);
			free(owners[1][k]);
		}
	}
}

/* ---- on its way when it began ---- */

Test(nfs4_lock_reclaim2, answered_when_the_open_was_reclaimed_already, .init = sim_log_count)
{
	for (int unlock = 0; unlock < 2; unlock++) {
		struct sim_op op = {0}, read = {0};

		begin(2, 1);
		sim_rule(&w, NFSD_SIM_HOLD, unlock ? OP_LOCKU : OP_LOCK, 0, 1, 0);
		cr_assert(sim_op_get(&w, 1, &op));
		if (unlock)
			sim_unlock_start(&op, &files[0], owners[0][0], offset_of(0, 0), 10);
		else
			sim_lock_start(&op, &files[0], owners[0][0], 500, 10, true, false);
		sim_nfs_run(&w, 100 * NSEC_PER_USEC);
		cr_assert_eq(held(), unlock ? 3 : 5);
		cr_assert_eq(nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_EXPIRED), 1);
		cr_assert_eq(sim_read(&w, &read, &files[0], 0, 100), 0);
		cr_assert_eq(held(), 4, "what the books had");
		nfsd_sim_release(w.srv, false);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 60 * SIM_SEC));
		cr_assert_eq(op.err, 0);
		cr_assert_eq(held(), unlock ? 3 : 5, "%d", unlock);
		end(0);
	}
}

Test(nfs4_lock_reclaim2, answered_when_the_open_is_lost, .init = sim_log_count)
{
	struct sim_op op = {0}, read = {0};

	begin(2, 1);
	sim_rule(&w, NFSD_SIM_HOLD, OP_LOCK, 0, 1, 0);
	cr_assert(sim_op_get(&w, 1, &op));
	sim_lock_start(&op, &files[0], owners[0][0], 500, 10, true, false);
	sim_nfs_run(&w, 100 * NSEC_PER_USEC);
	cr_assert_eq(nfsd_sim_revoke(w.srv, "/f0", NFS4ERR_ADMIN_REVOKED), 1);
	cr_assert_eq(sim_read(&w, &read, &files[0], 0, 100), -EIO);
	nfsd_sim_release(w.srv, false);
	cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 60 * SIM_SEC));
	cr_assert_eq(op.err, -EIO);
	cr_assert_not(nfs4_lockowner_holds(owners[0][0], 0, END));
	end(0);
	cr_assert_eq(sim_said.lost, 1);
}

/* Opened, and without its locks: another file's NFS4ERR_NO_GRACE must not set it free. */
Test(nfs4_lock_reclaim2, session_lost_before_the_locks_and_no_more_reclaims, .init = sim_log_count)
{
	for (uint32_t again = 0; again < 2; again++) {
		struct sim_op op = {0};

		begin(2, 1);
		nfsd_sim_restart(w.srv, GRACE, false);
		sim_rule(&w, NFSD_SIM_STATUS, OP_LOCK, 0, 1, NFS4ERR_BADSESSION);
		if (again) /* so that its next OPEN fails too */
			sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 1, 2, NFS4ERR_BADSESSION);
		sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 1, 1, NFS4ERR_NO_GRACE);
		cr_assert_eq(sim_read(&w, &op, &files[0], 0, 100), 0);
		cr_assert_eq(sim_read(&w, &op, &files[1], 0, 100), 0);
		cr_assert_eq(held(), 4);
		cr_assert_eq(nfsd_sim_stats(w.srv).lock_reclaims, 0);
		end(1);
	}
	cr_assert_eq(sim_said.lost, 0);
}

/* The server has it open, so CLOSE is sent, although the open is not to be used. */
Test(nfs4_lock_reclaim2, closed_when_the_locks_are_not_there_yet, .init = sim_log_count)
{
	for (uint32_t again = 0; again < 2; again++) {
		begin(1, 1);
		nfsd_sim_restart(w.srv, GRACE, false);
		sim_rule(&w, NFSD_SIM_STATUS, OP_LOCK, 0, 1, NFS4ERR_BADSESSION);
		if (again)
			sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 1, 2, NFS4ERR_BADSESSION);
		sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 1, 1, NFS4ERR_NO_GRACE);
		sim_nfs_run(&w, 2 * SIM_SEC);
		end(1);
	}
	cr_assert_eq(sim_said.lost, 0);
}

Test(nfs4_lock_reclaim2, closed_when_the_open_is_refused_after_its_locks, .init = sim_log_count)
{
	begin(1, 1);
	nfsd_sim_restart(w.srv, 0, false);
	sim_rule(&w, NFSD_SIM_STATUS, OP_LOCK, 0, 1, NFS4ERR_BAD_STATEID);
	/* After the reclaim, its own and that of the other file. */
	sim_rule(&w, NFSD_SIM_STATUS, OP_OPEN, 3, 1, NFS4ERR_ACCESS);
	sim_nfs_run(&w, 2 * SIM_SEC);
	cr_assert_eq(sim_said.lost, 1);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 2);
	end(0);
}

/* ---- FREE_STATEID ---- */

static void free_one(uint32_t delays, uint32_t status)
{
	begin(1, 2);
	if (status)
		sim_rule(&w, NFSD_SIM_STATUS, OP_FREE_STATEID, 0, delays, status);
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], owners[0][1], 0, END), 0);
	owner_free(&owners[0][1], 0);
}

Test(nfs4_lock_reclaim2, free_stateid_that_is_delayed_for_ever_is_given_up, .init = sim_log_count)
{
	static const uint32_t waits[] = {NFS4ERR_DELAY, NFS4ERR_GRACE};

	for (int i = 0; i < 2; i++) {
		struct sim_op op = {0};
		uint64_t since;

		free_one(0, waits[i]);
		since = reactor_now(w.r);
		/* Opens that are reclaimed do not wait for it. */
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, NFS4ERR_BAD_STATEID);
		cr_assert_eq(sim_read(&w, &op, &files[0], 0, 100), 0);
		cr_assert_lt(reactor_now(w.r) - since, 2 * SIM_SEC);
		sim_nfs_run(&w, 60 * SIM_SEC);
		nfsd_sim_rules_clear(w.srv);
		sim_nfs_run(&w, 60 * SIM_SEC);
		cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_FREE_STATEID], 0);
		cr_assert_eq(held(), 6);
		end(0);
	}
}

Test(nfs4_lock_reclaim2, free_stateid_that_is_delayed_is_tried_again, .init = sim_log_count)
{
	free_one(2, NFS4ERR_DELAY);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_FREE_STATEID], 1);
	cr_assert_eq(nfsd_sim_live_lock_states(w.srv), 3);
	end(0);
}

/* To another incarnation of the server the stateid may mean something else. */
Test(nfs4_lock_reclaim2, stateid_of_before_is_not_freed, .init = sim_log_count)
{
	for (int i = 0; i < 2; i++) {
		free_one(0, 0);
		if (i)
			nfsd_sim_restart(w.srv, 0, false);
		else
			nfsd_sim_drop_clients(w.srv);
		sim_nfs_run(&w, 60 * SIM_SEC);
		cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_FREE_STATEID], 0, "%d", i);
		cr_assert_eq(held(), 6);
		end(0);
	}
}

/* ---- an owner that moves to another open of the file ---- */

static void open_for(struct sim_file *f, uint32_t access)
{
	struct sim_op op = {0};

	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.open = (struct nfs4_op_open){
		.file = &files[0].fh, .share_access = access, .owner = nfs4_new_owner(w.cl)};
	cr_assert_eq(sim_op_run(&op, nfs4_open), 0);
	f->fh = files[0].fh;
	nfs4_share_open(&f->state, &op.call);
}

/* The server has what the books have: the same range, and of the same kind. */
static void check_moved(struct nfs4_lockowner *lo, unsigned int when)
{
	const struct nfs4_lockrange *r = list_first(&lo->ranges, struct nfs4_lockrange, link);
	struct nfsd_sim_range there;

	cr_assert(!list_empty(&lo->ranges) && r->write && r->first == 0 && r->last == 9);
	cr_assert_eq(nfsd_sim_locks(w.srv, "/f0", &there, 1), 1, "%u", when);
	cr_assert(there.write && there.first == 0 && there.last == 9, "%u: %d, %lu to %lu", when,
		there.write, there.first, there.last);
}

Test(nfs4_lock_reclaim2, moved_while_its_open_is_reclaimed, .init = sim_log_count)
{
	for (unsigned int m = 0; m < LAST_MOMENT; m++) {
		struct nfs4_lockowner *lo;
		struct sim_file rd = {0};

		begin(2, 0);
		open_for(&rd, OPEN4_SHARE_ACCESS_READ);
		lo = owner_new();
		cr_assert_eq(sim_brlock(&w, 0, &rd, lo, 0, 10, false), 0);
		restart(m, 0);
		cr_assert_eq(sim_brlock(&w, 1, &files[0], lo, 0, 10, true), 0);
		sim_nfs_run(&w, SIM_SEC);
		check_moved(lo, m);
		cr_assert_eq(sim_close(&w, &rd), 0);
		end(0);
		free(lo);
	}
}

Test(nfs4_lock_reclaim2, open_reclaimed_while_it_moves, .init = sim_log_count)
{
	static const uint32_t rows[] = {NFSD_SIM_HOLD, NFSD_SIM_LATE};

	for (unsigned int i = 0; i < 2; i++) {
		struct sim_op op = {0}, read = {0};
		struct nfs4_lockowner *lo;
		struct sim_file rd = {0};

		begin(2, 0);
		open_for(&rd, OPEN4_SHARE_ACCESS_READ);
		lo = owner_new();
		cr_assert_eq(sim_brlock(&w, 0, &rd, lo, 0, 10, false), 0);
		sim_rule(&w, NFSD_SIM_HOLD, OP_LOCK, 0, 1, 0);
		cr_assert(sim_op_get(&w, 1, &op));
		sim_lock_start(&op, &files[0], lo, 0, 10, true, false);
		sim_nfs_run(&w, 100 * NSEC_PER_USEC);
		cr_assert_eq(held(), 1);
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, NFS4ERR_BAD_STATEID);
		if (rows[i] == NFSD_SIM_LATE) { /* its answer comes while the other is on its way */
			sim_rule(&w, NFSD_SIM_LATE, OP_LOCK, 0, 1, SIM_MSEC);
			cr_assert(sim_op_get(&w, 0, &read));
			read.call.u.read = (struct nfs4_op_read){.fh = &rd.fh,
				.state = &rd.state,
				.count = 10,
				.sink = {read.buf, read.buf->data, 10}};
			sim_op_start(&read, nfs4_read);
			sim_nfs_run(&w, 300 * NSEC_PER_USEC);
			nfsd_sim_release(w.srv, false);
			cr_assert(sim_nfs_until(&w, &read.done_cnt, 1, 60 * SIM_SEC));
		} else {
			cr_assert_eq(sim_read(&w, &read, &rd, 0, 10), 0);
			nfsd_sim_release(w.srv, false);
		}
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 60 * SIM_SEC));
		cr_assert(!op.err && !read.err);
		check_moved(lo, i);
		cr_assert_eq(sim_close(&w, &rd), 0);
		end(0);
		free(lo);
	}
}

/* CLOSE finds locks, and meanwhile they are reclaimed. */
Test(nfs4_lock_reclaim2, close_drops_what_is_asked_for, .init = sim_log_count)
{
	struct sim_op c = {0}, read = {0};

	begin(2, 1);
	nfsd_sim_conf(w.srv)->close_wants_unlock = true;
	nfsd_sim_conf(w.srv)->tolerant_state = true;
	sim_rule(&w, NFSD_SIM_HOLD, OP_CLOSE, 0, 1, 0);
	cr_assert(sim_op_get(&w, 1, &c) && sim_op_get(&w, 0, &read));
	c.call.u.close.fh = &files[0].fh;
	c.call.u.close.state = &files[0].state;
	sim_op_start(&c, nfs4_close);
	sim_nfs_run(&w, 100 * NSEC_PER_USEC);
	sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, NFS4ERR_BAD_STATEID);
	sim_rule(&w, NFSD_SIM_LATE, OP_LOCK, 0, 1, SIM_MSEC);
	read.call.u.read = (struct nfs4_op_read){.fh = &files[0].fh,
		.state = &files[0].state,
		.count = 10,
		.sink = {read.buf, read.buf->data, 10}};
	sim_op_start(&read, nfs4_read);
	sim_nfs_run(&w, 300 * NSEC_PER_USEC);
	nfsd_sim_release(w.srv, false);
	cr_assert(sim_nfs_until(&w, &c.done_cnt, 1, 60 * SIM_SEC));
	cr_assert(sim_nfs_until(&w, &read.done_cnt, 1, 60 * SIM_SEC));
	nfs4_state_forget(&files[0].state);
	cr_assert_eq(sim_close(&w, &files[1]), 0);
	free(owners[0][0]);
	free(owners[1][0]);
	SIM_NFS_CLOSE(&w, 1);
}
