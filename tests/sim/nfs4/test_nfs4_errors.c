/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every row of the error table (src/nfs4/wire/nfs4_status.c) as the answer to an
 * ordinary operation, and every status there is as the answer to SEQUENCE:
 * what the caller sees, what is repeated, and that the session, its slots and
 * the open file are good afterwards.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "nfs4_session_int.h"
#include "nfs4_status.h"
#include "sim_log.h"
#include "sim_ops.h"

static struct sim_nfs w;
static struct sim_file file;
static struct nfsd_sim_stats before;

static void begin(void)
{
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &file), 0);
	before = nfsd_sim_stats(w.srv);
}

static uint64_t more(unsigned int op)
{
	return nfsd_sim_stats(w.srv).ops[op] - before.ops[op];
}

static void must_getattr(void)
{
	struct sim_nfs_call c = {0};

	cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0, "%d", c.err);
}

/* As many calls at once as there are slots; the judge sees false retries and misordered ones. */
static void must_have_all_slots(const char *name)
{
	struct sim_nfs_call c[16] = {0};
	int n = 0;

	while (n < 16 && sim_nfs_getattr(&w, 0, &c[n]) == 0)
		n++;
	for (int i = 0; i < n; i++)
		cr_assert_eq(sim_nfs_wait(&w, &c[i]), 0, "%s: %d", name, c[i].err);
	cr_assert_eq(n, 13, "%s: %d requests are left", name, n);
}

/* left: the server may have a session that it said it lost. */
static void end(unsigned int left)
{
	nfsd_sim_rules_clear(w.srv);
	cr_assert_eq(sim_close(&w, &file), 0);
	SIM_NFS_CLOSE(&w, left);
}

/* ---- an operation's status ---- */

/* What the action promises for one answer of this kind to a READ of an open file. */
static void check_once(const struct nfs4_status_row *row)
{
	static struct sim_op op;
	uint64_t t0 = reactor_now(w.r), waited;
	int err = sim_read(&w, &op, &file, 0, 100);
	bool repeated = more(OP_READ) == 1;

	waited = reactor_now(w.r) - t0;
	switch (row->action) {
	case NFS4_ACT_NONE:
	case NFS4_ACT_FAIL:
	case NFS4_ACT_REVALIDATE:
		cr_assert_eq(err, -row->err, "%s: %d", row->name, err);
		cr_assert_not(repeated, "%s", row->name);
		cr_assert_lt(waited, SIM_SEC, "%s", row->name);
		break;
	case NFS4_ACT_DELAY:
	case NFS4_ACT_BUSY:
		cr_assert_eq(err, 0, "%s: %d", row->name, err);
		cr_assert(repeated && waited >= nfs4_delay_ns(0), "%s", row->name);
		cr_assert_eq(w.lane[0].st.delays, 1, "%s", row->name);
		break;
	case NFS4_ACT_SLOT:
		/* Executed, nothing kept: a READ may be executed again. Else only SEQUENCE's. */
		if (row->status == NFS4ERR_RETRY_UNCACHED_REP)
			cr_assert(err == 0 && repeated, "%s: %d", row->name, err);
		else
			cr_assert(err == -row->err && !repeated, "%s: %d", row->name, err);
		break;
	case NFS4_ACT_STATE:
		/* Opened anew, or said to be newer; but not what somebody took from us. */
		if (row->status == NFS4ERR_ADMIN_REVOKED)
			cr_assert(err == -EIO && !repeated, "%s: %d", row->name, err);
		else
			cr_assert(err == 0 && repeated, "%s: %d", row->name, err);
		break;
	case NFS4_ACT_SESSION:
	case NFS4_ACT_CLIENT:
		cr_assert_eq(err, 0, "%s: %d", row->name, err);
		cr_assert(repeated, "%s", row->name);
		break;
	}
	cr_assert_eq(w.lane[0].st.sessions,
		row->action == NFS4_ACT_SESSION || row->action == NFS4_ACT_CLIENT ? 2 : 1, "%s",
		row->name);
	cr_assert_eq(
		nfsd_sim_stats(w.srv).clients, 1, "%s: the client ID is still good", row->name);
}

Test(nfs4_errors, each_row_answers_an_operation_once, .init = sim_log_quiet)
{
	const struct nfs4_status_row *row;

	for (unsigned int i = 1; (row = nfs4_status_at(i)); i++) {
		begin();
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, row->status);
		check_once(row);
		must_have_all_slots(row->name);
		/* What it says is revoked it has not revoked. */
		end(w.lane[0].st.sessions > 1 || row->status == NFS4ERR_ADMIN_REVOKED);
	}
}

/* The operations that change something; the answer is the second time the real one. */
Test(nfs4_errors, each_row_answers_a_change_once_and_it_is_made_at_most_once, .init = sim_log_quiet)
{
	const struct nfs4_status_row *row;

	for (unsigned int i = 1; (row = nfs4_status_at(i)); i++) {
		struct sim_nfs_call c = {0};
		int want = -row->err;

		if (row->action == NFS4_ACT_DELAY || row->action == NFS4_ACT_BUSY ||
			row->action == NFS4_ACT_SESSION || row->action == NFS4_ACT_CLIENT)
			want = 0;
		begin();
		sim_rule(&w, NFSD_SIM_STATUS, OP_CREATE, 0, 1, row->status);
		cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), want, "%s: %d", row->name, c.err);
		cr_assert_eq(more(OP_CREATE), want ? 0 : 1, "%s", row->name);
		cr_assert_eq(nfsd_sim_exists(w.srv, "/d"), !want, "%s", row->name);
		must_have_all_slots(row->name);
		end(w.lane[0].st.sessions > 1);
	}
}

/* Nobody waits for ever but for what will end: DELAY, and a session that cannot be made. */
Test(nfs4_errors, each_row_answers_always, .init = sim_log_quiet)
{
	const struct nfs4_status_row *row;

	for (unsigned int i = 1; (row = nfs4_status_at(i)); i++) {
		static struct sim_op op;
		uint64_t t0;
		bool waits = row->action == NFS4_ACT_DELAY || row->action == NFS4_ACT_SESSION ||
			     row->action == NFS4_ACT_CLIENT ||
			     row->status == NFS4ERR_RETRY_UNCACHED_REP;

		begin();
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 0, row->status);
		t0 = reactor_now(w.r);
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.read.fh = &file.fh;
		op.call.u.read.state = &file.state;
		op.call.u.read.count = 100;
		op.call.u.read.sink = (struct rpcrdma_span){op.buf, op.buf->data, 100};
		sim_op_start(&op, nfs4_read);
		sim_nfs_until(&w, &op.done_cnt, 1, 100 * SIM_SEC);
		cr_assert_eq(op.done_cnt, waits ? 0 : 1, "%s", row->name);
		if (row->action == NFS4_ACT_BUSY)
			cr_assert_leq(reactor_now(w.r) - t0, SIM_SEC, "%s", row->name);
		/* Not in a busy loop: at most a few a second in the long run. */
		cr_assert_leq(w.lane[0].st.sessions, 30, "%s: %u", row->name,
			(unsigned int)w.lane[0].st.sessions);
		cr_assert_leq(nfsd_sim_stats(w.srv).calls - before.calls, 250, "%s: %u", row->name,
			(unsigned int)(nfsd_sim_stats(w.srv).calls - before.calls));
		nfsd_sim_rules_clear(w.srv);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 100 * SIM_SEC), "%s", row->name);
		cr_assert_eq(op.err, waits ? 0 : -row->err, "%s: %d", row->name, op.err);
		must_have_all_slots(row->name);
		end(1);
	}
}

Test(nfs4_errors, status_that_no_rfc_has_is_an_io_error, .init = sim_log_quiet)
{
	static const uint32_t unknown[] = {3, 9999, 10199, 0x7fffffff, 0xffffffff};

	for (int i = 0; i < 5; i++) {
		struct sim_nfs_call c = {0};
		static struct sim_op op;

		begin();
		/* -1 is the rule's "none". */
		sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, unknown[i] & 0x7fffffff);
		cr_assert_eq(sim_read(&w, &op, &file, 0, 100), -EIO);
		sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 1, unknown[i] & 0x7fffffff);
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), -EIO);
		must_have_all_slots("unknown");
		cr_assert_eq(w.lane[0].st.sessions, 1);
		end(0);
	}
}

/* ---- SEQUENCE's status ---- */

/* What is due for one answer of this kind to a call that may be executed twice, or may not. */
struct due {
	bool fails_idem, fails_once; /* with the status' errno; EIO */
	unsigned int sessions;
};

static struct due due_for(enum nfs4_status status)
{
	struct due due = {.sessions = 1};

	switch (nfs4_recover_action(status)) {
	case NFS4_SEQ_FAIL:
		due.fails_idem = due.fails_once = true;
		break;
	case NFS4_SEQ_NEXT_IDEM:
		due.fails_once = true;
		break;
	case NFS4_SEQ_RESEND:
	case NFS4_SEQ_HIGHEST:
	case NFS4_SEQ_NEXT:
	case NFS4_SEQ_ORPHAN:
	case NFS4_SEQ_BIND:
		break;
	case NFS4_SEQ_CUT: /* slot 0, which there must be */
	case NFS4_SEQ_SESSION:
	case NFS4_SEQ_CLIENT:
		due.sessions = 2;
		break;
	}
	return due;
}

/* The answer says a number was used up that was not: the next one is misordered to the judge. */
static bool uses_up(enum nfs4_status status)
{
	return nfs4_recover_action(status) == NFS4_SEQ_NEXT ||
	       nfs4_recover_action(status) == NFS4_SEQ_NEXT_IDEM;
}

static void check_sequence(const struct nfs4_status_row *row, bool once)
{
	struct due due = due_for(row->status);
	bool fails = once ? due.fails_once : due.fails_idem;
	int want = !fails ? 0 : uses_up(row->status) ? -EIO : -row->err;
	struct sim_nfs_call c = {0};

	begin();
	nfsd_sim_conf(w.srv)->tolerant_seq = uses_up(row->status);
	sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 1, row->status);
	if (once)
		cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
	else
		cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), want, "%s: %d", row->name, c.err);
	if (once)
		cr_assert_eq(more(OP_CREATE), want ? 0 : 1, "%s", row->name);
	cr_assert_eq(w.lane[0].st.sessions, due.sessions, "%s", row->name);
	must_have_all_slots(row->name);
	end(due.sessions > 1);
}

Test(nfs4_errors, each_row_answers_sequence_once, .init = sim_log_quiet)
{
	const struct nfs4_status_row *row;

	for (unsigned int i = 1; (row = nfs4_status_at(i)); i++) {
		check_sequence(row, false);
		check_sequence(row, true);
	}
}

/* On a slot that is not 0 there is another way than a new session. */
Test(nfs4_errors, slots_the_server_takes_back_are_not_used, .init = sim_log_quiet)
{
	struct sim_nfs_call held = {0}, c = {0};

	begin();
	sim_rule(&w, NFSD_SIM_HOLD, OP_CREATE, 0, 1, 0);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &held, "d"), 0);
	sim_nfs_run(&w, SIM_MSEC);
	sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 1, NFS4ERR_BADSLOT);
	cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(c.done_cnt, 0, "there is no slot but the one in use");
	cr_assert_eq(w.lane[0].st.delays, 0, "it waits for that, not for the server");
	cr_assert_eq(w.lane[0].st.slots, 1);
	nfsd_sim_release(w.srv, false);
	cr_assert_eq(sim_nfs_wait(&w, &held), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	cr_assert_eq(w.lane[0].st.sessions, 1);
	end(0);
}

Test(nfs4_errors, no_more_slots_are_used_than_the_server_would_like, .init = sim_log_quiet)
{
	static const unsigned int targets[] = {3, 1, 8, 100, 2, 0};

	begin();
	for (int i = 0; i < 6; i++) {
		uint64_t over;

		nfsd_sim_conf(w.srv)->target_slots = targets[i];
		must_getattr();
		must_getattr(); /* the first may have been on one of those */
		over = nfsd_sim_stats(w.srv).over_target;
		must_have_all_slots("target");
		cr_assert_eq(nfsd_sim_stats(w.srv).over_target, over, "%u", targets[i]);
		cr_assert_eq(w.lane[0].st.slots, targets[i] && targets[i] < 16 ? targets[i] : 16);
	}
	end(0);
}

Test(nfs4_errors, table_that_shrank_is_asked_again_when_higher_calls_have_ended,
	.init = sim_log_quiet)
{
	struct sim_nfs_call held[5] = {0}, c = {0};

	begin();
	sim_rule(&w, NFSD_SIM_HOLD, OP_GETATTR, 1, 4, 0);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(sim_nfs_getattr(&w, 0, &held[i]), 0);
	sim_nfs_run(&w, 20 * SIM_MSEC);
	sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 2, NFS4ERR_BAD_HIGH_SLOT);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
	sim_nfs_run(&w, 50 * SIM_MSEC);
	cr_assert_eq(c.call.slot, 0);
	nfsd_sim_release(w.srv, false);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	cr_assert_eq(c.call.highest, 0, "all others have ended");
	cr_assert_eq(more(OP_CREATE), 1);
	cr_assert_eq(w.lane[0].st.sessions, 1);
	end(0);
}

/* The server insists: nothing of the table is trusted any more. */
Test(nfs4_errors, table_that_is_never_small_enough_is_replaced, .init = sim_log_quiet)
{
	struct sim_nfs_call c = {0};

	begin();
	sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 6, NFS4ERR_BAD_HIGH_SLOT);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
	cr_assert(sim_nfs_until(&w, &c.done_cnt, 1, 10 * SIM_SEC));
	cr_assert_eq(c.err, 0);
	cr_assert_eq(more(OP_CREATE), 1);
	cr_assert_eq(w.lane[0].st.sessions, 2);
	end(0);
}

/* Every slot in use when the answer comes, with each of the statuses that concern the session. */
Test(nfs4_errors, all_slots_get_the_same_answer_at_once, .init = sim_log_quiet)
{
	static const uint32_t statuses[] = {NFS4ERR_DELAY, NFS4ERR_BAD_HIGH_SLOT,
		NFS4ERR_BADSESSION, NFS4ERR_DEADSESSION, NFS4ERR_CONN_NOT_BOUND_TO_SESSION,
		NFS4ERR_SEQ_MISORDERED, NFS4ERR_BADSLOT, NFS4ERR_STALE_CLIENTID};

	for (int i = 0; i < 8; i++) {
		struct sim_nfs_call c[13] = {0};

		begin();
		sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 13, statuses[i]);
		for (int j = 0; j < 13; j++)
			cr_assert_eq(sim_nfs_getattr(&w, 0, &c[j]), 0);
		for (int j = 0; j < 13; j++)
			cr_assert_eq(sim_nfs_wait(&w, &c[j]), 0, "%u: %d", statuses[i], c[j].err);
		cr_assert_leq(w.lane[0].st.sessions, 3, "%u: %u", statuses[i],
			(unsigned int)w.lane[0].st.sessions);
		must_have_all_slots(nfs4_status_name(statuses[i]));
		end(1);
	}
}

/* ---- the calls outside a session ---- */

static bool is_about_id(uint32_t op)
{
	return op == OP_EXCHANGE_ID || op == OP_CREATE_SESSION;
}

/* RECLAIM_COMPLETE that was done before: these two say so, and the server must mean it. */
static bool is_done_already(uint32_t op, enum nfs4_status status)
{
	return op == OP_RECLAIM_COMPLETE &&
	       (status == NFS4ERR_COMPLETE_ALREADY || status == NFS4ERR_RETRY_UNCACHED_REP);
}

/* A step of the recovery gets it once: there is another attempt, and calls go on. */
Test(nfs4_errors, each_row_answers_each_step_of_a_recovery_once, .init = sim_log_quiet)
{
	static const uint32_t steps[] = {OP_EXCHANGE_ID, OP_CREATE_SESSION, OP_RECLAIM_COMPLETE,
		OP_BIND_CONN_TO_SESSION, OP_DESTROY_SESSION};
	const struct nfs4_status_row *row;

	for (unsigned int i = 1; (row = nfs4_status_at(i)); i++)
		for (int j = 0; j < 5; j++) {
			static struct sim_op op;
			int err;

			begin();
			sim_rule(&w,
				is_done_already(steps[j], row->status) ? NFSD_SIM_STATUS_DONE
								       : NFSD_SIM_STATUS,
				steps[j], 0, 1, row->status);
			if (steps[j] == OP_DESTROY_SESSION)
				sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 1,
					NFS4ERR_DEADSESSION);
			else
				nfsd_sim_restart(w.srv, 0, false);
			err = sim_read(&w, &op, &file, 0, 100);
			cr_assert_eq(err, 0, "%s, operation %u: %d", row->name, steps[j], err);
			cr_assert(is_about_id(steps[j]) || w.lane[0].st.sessions <= 3, "%s, %u",
				row->name, steps[j]);
			must_getattr();
			must_have_all_slots(row->name);
			end(1);
		}
}

/* ---- the states of a session ---- */

/* Every line of the table in nfs4_session.c. */
static struct {
	const char *from, *to;
	unsigned int seen;
} moves[] = {
	{"IDLE", "CONNECTING", 0},
	{"IDLE", "STOPPING", 0},
	{"CONNECTING", "SETUP", 0},
	{"CONNECTING", "STOPPING", 0},
	{"CONNECTING", "FAILING", 0},
	{"SETUP", "UP", 0},
	{"SETUP", "STOPPING", 0},
	{"SETUP", "FAILING", 0},
	{"UP", "RECOVERING", 0},
	{"UP", "STOPPING", 0},
	{"RECOVERING", "UP", 0},
	{"RECOVERING", "STOPPING", 0},
	{"STOPPING", "STOPPED", 0},
	{"FAILING", "DEAD", 0},
	{"FAILING", "STOPPING", 0},
	{"DEAD", "STOPPING", 0},
};

static void count_moves(void *ctx, enum log_level level, const char *line)
{
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "session %s -> %s ", moves[i].from, moves[i].to);
		if (strstr(line, text))
			moves[i].seen++;
	}
}

/* Starts, goes on until it is (or is past) this state, is told to stop. */
static void stop_in(enum nfs4_session_state state)
{
	struct nfs4_session *s;

	sim_nfs_client(&w, 1);
	s = w.lane[0].sess;
	cr_assert(state == NFS4_SESSION_IDLE || sim_nfs_start(&w, 0) == 0);
	while (s->state != state)
		cr_assert(reactor_turn(w.r, SIM_SEC) || reactor_now(w.r) < 600 * SIM_SEC);
	nfs4_stop_session(s);
	cr_assert(sim_nfs_until(&w, &w.lane[0].stopped, 1, 10 * SIM_SEC));
	w.lane[0].failed = 0; /* ->stopped after ->failed is what was asked for */
	SIM_NFS_CLOSE(&w, 1);
}

Test(nfs4_errors, each_transition_of_a_session_is_driven, .init = sim_log_quiet)
{
	log_set_sink(count_moves, NULL);
	log_set_level(LOG_LVL_DEBUG);
	for (unsigned int state = NFS4_SESSION_IDLE; state <= NFS4_SESSION_UP; state++) {
		sim_nfs_open(&w, NULL);
		stop_in(state);
	}
	begin();
	nfsd_sim_drop_sessions(w.srv);
	must_getattr();
	end(0);
	begin();
	nfsd_sim_restart(w.srv, 0, false);
	while (w.lane[0].sess->state != NFS4_SESSION_RECOVERING)
		reactor_turn(w.r, SIM_SEC);
	sim_nfs_stop(&w);
	nfs4_state_forget(&file.state);
	SIM_NFS_CLOSE(&w, 1);
	for (int dead = 0; dead < 2; dead++) {
		sim_nfs_open(&w, NULL);
		sim_rule(&w, NFSD_SIM_STATUS, OP_EXCHANGE_ID, 0, 0, NFS4ERR_SERVERFAULT);
		stop_in(dead ? NFS4_SESSION_DEAD : NFS4_SESSION_FAILING);
	}
	sim_nfs_open(&w, NULL);
	fab_sim_conf()->refuse_err = -ECONNREFUSED;
	stop_in(NFS4_SESSION_DEAD);
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		cr_assert_gt(moves[i].seen, 0, "%s -> %s", moves[i].from, moves[i].to);
}
