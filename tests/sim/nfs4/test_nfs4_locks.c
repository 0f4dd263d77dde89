/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte-range locks on a server that stays: what is held there is what the books
 * say. What a restart makes of them is test_nfs4_lock_reclaim.c's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_lock.h"
#include "sim_log.h"
#include "sim_ops.h"

#define END NFS4_LOCK_TO_END

static struct sim_nfs w;
static struct sim_file f;
static struct nfs4_lockowner a, b;
static struct sim_op op;

static void ready(unsigned int lanes)
{
	sim_nfs_mounted(&w, lanes);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
	nfs4_lockowner_init(&a, w.cl);
	nfs4_lockowner_init(&b, w.cl);
}

static void begin(unsigned int lanes)
{
	sim_nfs_open(&w, NULL);
	ready(lanes);
}

static void end(void)
{
	cr_assert_eq(sim_close(&w, &f), 0);
	cr_assert_eq(nfsd_sim_locks(w.srv, NULL, NULL, 0), 0);
	cr_assert_eq(nfsd_sim_live_lock_states(w.srv), 0);
	cr_assert_null(a.state);
	cr_assert_null(b.state);
	SIM_NFS_CLOSE(&w, 0);
}

static int by_first(const void *x, const void *y)
{
	const struct nfsd_sim_range *p = x, *q = y;

	return p->first < q->first ? -1 : p->first > q->first;
}

/* The books of an owner are what the server has. */
static unsigned int check_books(struct nfs4_lockowner *lo, const char *when)
{
	struct nfsd_sim_range all[256], mine[256];
	unsigned int cnt = nfsd_sim_locks(w.srv, "/f", all, 256), n = 0, i = 0;

	for (unsigned int k = 0; k < cnt; k++)
		if (all[k].owner == lo->number)
			mine[n++] = all[k];
	qsort(mine, n, sizeof(mine[0]), by_first);
	list_for_each (node, &lo->ranges) {
		const struct nfs4_lockrange *r = container_of(node, struct nfs4_lockrange, link);

		cr_assert_lt(i, n, "%s: %u ranges here, %u there", when, i + 1, n);
		cr_assert(r->first == mine[i].first && r->last == mine[i].last &&
				  r->write == mine[i].write,
			"%s: range %u: %lu to %lu, there %lu to %lu", when, i, r->first, r->last,
			mine[i].first, mine[i].last);
		i++;
	}
	cr_assert_eq(i, n, "%s: %u ranges here, %u there", when, i, n);
	return n;
}

Test(nfs4_locks, granted_denied_and_given_back, .init = sim_log_quiet)
{
	begin(1);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, true), 0);
	cr_assert_eq(a.state, &f.state);
	cr_assert(nfs4_lockowner_holds(&a, 9, 1) && !nfs4_lockowner_holds(&a, 10, END));
	cr_assert_not(nfsd_sim_lock(w.srv, "/f", 5, 1, false));
	cr_assert(nfsd_sim_lock(w.srv, "/f", 20, 10, true));
	cr_assert(sim_op_get(&w, 0, &op));
	sim_lock_start(&op, &f, &b, 25, END, false, false);
	cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, SIM_SEC));
	cr_assert_eq(op.err, -EAGAIN);
	cr_assert_eq(op.call.status, NFS4ERR_DENIED);
	cr_assert_eq(op.call.u.lock.denied.offset, 20);
	cr_assert_eq(op.call.u.lock.denied.length, 10);
	cr_assert(op.call.u.lock.denied.write);
	cr_assert_null(b.state, "the server knows nothing of it");
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, 10), 0);
	cr_assert(nfsd_sim_lock(w.srv, "/f", 5, 1, false));
	cr_assert_eq(check_books(&a, "end"), 0);
	end();
}

Test(nfs4_locks, conflict_to_the_end_of_the_file_may_have_length_0, .init = sim_log_quiet)
{
	struct nfs4_denied denied;
	uint64_t before;

	begin(1);
	nfsd_sim_conf(w.srv)->denied_len0 = true;
	cr_assert(nfsd_sim_lock(w.srv, "/f", 20, END, true));
	before = sim_ops(&w, OP_LOCKU);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 10, 15, true), -EAGAIN);
	cr_assert_eq(sim_ops(&w, OP_LOCKU), before, "it is certain that nothing is held");
	cr_assert_eq(sim_brtest(&w, &f, &a, 0, END, true, &denied), 1);
	cr_assert(denied.offset == 20 && denied.length == END);
	nfsd_sim_unlock(w.srv, "/f", 0, END);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 10, 15, true), 0);
	end();
}

Test(nfs4_locks, books_are_what_the_server_has_whatever_is_locked, .init = sim_log_quiet)
{
	unsigned int most = 0, seed = 7;
	uint64_t before;

	begin(2);
	for (int i = 0; i < 1500; i++) {
		unsigned int r = (unsigned int)rand_r(&seed), n;
		uint64_t off = r % 40, len = r / 64 % 16 ? 1 + r / 1024 % 12 : END;
		char when[32];

		snprintf(when, sizeof(when), "step %d", i);
		if (r / 16384 % 3)
			cr_assert_eq(sim_brlock(&w, i % 2, &f, &a, off, len, r & 0x10000), 0);
		else
			cr_assert_eq(sim_brunlock(&w, i % 2, &f, &a, off, len), 0);
		n = check_books(&a, when);
		most = n > most ? n : most;
	}
	cr_assert_geq(most, 4);
	/* The largest that there are. */
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, END, true), 0);
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 1ull << 63, UINT64_MAX - (1ull << 63)), 0);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, UINT64_MAX - 1, 1, false), 0);
	cr_assert_eq(check_books(&a, "large"), 3);
	before = nfsd_sim_stats(w.srv).calls;
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 0, true), -EINVAL);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 2, UINT64_MAX - 1, true), -EINVAL);
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 2, UINT64_MAX - 1), -EINVAL);
	cr_assert_eq(sim_brtest(&w, &f, &a, 2, UINT64_MAX - 1, true, NULL), -EINVAL);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, before);
	end();
}

static void open_for(struct sim_file *file, uint32_t access)
{
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.open = (struct nfs4_op_open){
		.file = &f.fh, .share_access = access, .owner = nfs4_new_owner(w.cl)};
	cr_assert_eq(sim_op_run(&op, nfs4_open), 0);
	file->fh = f.fh;
	nfs4_share_open(&file->state, &op.call);
}

Test(nfs4_locks, the_open_must_allow_for_the_lock, .init = sim_log_quiet)
{
	struct sim_file r = {0}, wr = {0};

	begin(1);
	open_for(&r, OPEN4_SHARE_ACCESS_READ);
	open_for(&wr, OPEN4_SHARE_ACCESS_WRITE);
	cr_assert_eq(sim_brlock(&w, 0, &r, &a, 0, 10, true), -EBADF);
	cr_assert_eq(sim_brlock(&w, 0, &wr, &a, 0, 10, false), -EBADF);
	cr_assert_null(a.state);
	/* An owner on one open locks through another that allows it. */
	cr_assert_eq(sim_brlock(&w, 0, &r, &a, 0, 10, false), 0);
	cr_assert_eq(a.state, &r.state);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 5, 10, false), 0);
	cr_assert_eq(a.state, &r.state);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 20, 10, true), 0);
	cr_assert_eq(a.state, &f.state);
	cr_assert_eq(check_books(&a, "moved"), 2);
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, END), 0);
	cr_assert_eq(check_books(&a, "all"), 0);
	cr_assert_eq(sim_close(&w, &r), 0);
	cr_assert_eq(sim_close(&w, &wr), 0);
	end();
}

Test(nfs4_locks, lockt_tells_whose_it_is, .init = sim_log_quiet)
{
	struct nfs4_denied d;

	begin(1);
	cr_assert(nfsd_sim_lock(w.srv, "/f", 100, END, false));
	cr_assert_eq(sim_brtest(&w, &f, &a, 0, 100, true, &d), 0);
	cr_assert_eq(sim_brtest(&w, &f, &a, 0, END, false, &d), 0);
	cr_assert_eq(sim_brtest(&w, &f, &a, 0, END, true, &d), 1);
	cr_assert(d.offset == 100 && d.length == END && !d.write);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 50, true), 0);
	cr_assert_eq(sim_brtest(&w, &f, &a, 0, 50, true, &d), 0, "its own does not count");
	cr_assert_eq(sim_brtest(&w, &f, &b, 49, 1, false, &d), 1);
	cr_assert(d.offset == 0 && d.length == 50 && d.write);
	end();
}

Test(nfs4_locks, what_is_not_held_is_unlocked_without_a_call, .init = sim_log_quiet)
{
	uint64_t calls;

	begin(1);
	calls = nfsd_sim_stats(w.srv).calls;
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, END), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, true), 0);
	calls = nfsd_sim_stats(w.srv).calls;
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 10, END), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls);
	end();
}

/* ---- told that it is free ---- */

static uint64_t told[8];
static unsigned int told_cnt;

static void lock_free(void *ctx, uint64_t number)
{
	cr_assert_eq(ctx, &w);
	told[told_cnt++ % 8] = number;
}

Test(nfs4_locks, who_waits_is_told, .init = sim_log_quiet)
{
	sim_nfs_open(&w, NULL);
	ready(2);
	nfs4_client_on_lock_free(w.cl, lock_free, &w);
	cr_assert(nfsd_sim_lock(w.srv, "/f", 0, 10, true));
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 1, true), -EAGAIN);
	cr_assert_eq(nfsd_sim_notify_locks(w.srv), 0, "this one does not wait");
	for (int i = 0; i < 2; i++) {
		cr_assert(sim_op_get(&w, i, &op));
		sim_lock_start(&op, &f, i ? &a : &b, 0, 1, i, true);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, SIM_SEC));
		cr_assert_eq(op.err, -EAGAIN);
	}
	nfsd_sim_unlock(w.srv, "/f", 0, END);
	cr_assert_eq(nfsd_sim_notify_locks(w.srv), 2);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(told_cnt, 2);
	cr_assert(told[0] == b.number && told[1] == a.number);
	cr_assert_eq(nfsd_sim_stats(w.srv).cb_status, NFS4_OK);
	/* Of somebody else's owner there is nothing to tell. */
	cr_assert_gt(nfsd_sim_callback(w.srv, NFSD_SIM_CB_NOTIFY_LOCK, false), 0);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).cb_status, NFS4_OK);
	cr_assert_eq(told_cnt, 2);
	end();
}

/* ---- FREE_STATEID, CLOSE ---- */

Test(nfs4_locks, owners_that_are_done_leave_nothing_on_the_server, .init = sim_log_quiet)
{
	begin(2);
	for (int i = 0; i < 5; i++) {
		cr_assert_eq(sim_brlock(&w, i % 2, &f, &a, 0, 10, true), 0);
		cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, END), 0);
		cr_assert_eq(nfsd_sim_live_lock_states(w.srv), 1);
		nfs4_lockowner_free(&a, w.lane[i % 2].sess);
		cr_assert_null(a.state);
		/* Used anew at once: the one overtakes the other. */
		if (i % 2)
			cr_assert_eq(sim_brlock(&w, 0, &f, &a, 5, 10, true), 0);
		sim_nfs_run(&w, SIM_SEC);
		if (i % 2)
			cr_assert_eq(check_books(&a, "anew"), 1);
		else
			cr_assert_eq(nfsd_sim_live_lock_states(w.srv), 0);
	}
	cr_assert_geq(nfsd_sim_stats(w.srv).ops[OP_FREE_STATEID], 3);
	/* With locks held it is CLOSE that ends them. */
	nfs4_lockowner_free(&a, w.lane[0].sess);
	end();
}

Test(nfs4_locks, close_ends_locks_also_where_the_server_wants_them_back_first,
	.init = sim_log_quiet)
{
	struct nfs4_lockowner more[12];

	for (int i = 0; i < 2; i++) {
		begin(1);
		nfsd_sim_conf(w.srv)->close_wants_unlock = i;
		for (int k = 0; k < 12; k++) {
			nfs4_lockowner_init(&more[k], w.cl);
			cr_assert_eq(sim_brlock(&w, 0, &f, &more[k], 10 * k, 10, true), 0);
			cr_assert_eq(sim_brlock(&w, 0, &f, &more[k], 500 + 10 * k, 5, true), 0);
		}
		end();
		for (int k = 0; k < 12; k++)
			cr_assert(!more[k].state && !more[k].has_stateid &&
				  list_empty(&more[k].ranges));
	}
}

Test(nfs4_locks, close_that_finds_locks_for_ever_fails, .init = sim_log_quiet)
{
	begin(1);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, true), 0);
	sim_rule(&w, NFSD_SIM_STATUS, OP_CLOSE, 0, 0, NFS4ERR_LOCKS_HELD);
	cr_assert_eq(sim_close(&w, &f), -EBUSY);
	cr_assert_null(a.state);
	SIM_NFS_CLOSE(&w, 1);
}

/* ---- trouble on the way ---- */

Test(nfs4_locks, once_whatever_becomes_of_the_connection, .init = sim_log_quiet)
{
	static const enum nfsd_sim_act acts[] = {NFSD_SIM_CUT_BEFORE, NFSD_SIM_CUT_AFTER,
		NFSD_SIM_CUT_REPLIED, NFSD_SIM_LOSE, NFSD_SIM_DUP};

	for (int i = 0; i < 5; i++) {
		begin(1);
		sim_rule(&w, acts[i], OP_LOCK, 0, 1, 0);
		sim_rule(&w, acts[i], OP_LOCKU, 0, 1, 0);
		cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, true), 0);
		cr_assert_eq(nfsd_sim_stats(w.srv).locks, 1, "row %d", i);
		cr_assert_eq(check_books(&a, "locked"), 1);
		cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 2, 3), 0);
		cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_LOCKU], 1, "row %d", i);
		cr_assert_eq(check_books(&a, "split"), 2);
		end();
	}
}

Test(nfs4_locks, session_lost_with_a_lock_in_flight, .init = sim_log_quiet)
{
	for (int i = 0; i < 2; i++) {
		begin(1);
		sim_rule(&w, i ? NFSD_SIM_LOSE : NFSD_SIM_CUT_AFTER, OP_LOCK, 0, 1, 0);
		cr_assert(sim_op_get(&w, 0, &op));
		sim_lock_start(&op, &f, &a, 0, 10, true, false);
		sim_nfs_run(&w, 100 * NSEC_PER_USEC);
		nfsd_sim_drop_sessions(w.srv);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 600 * SIM_SEC));
		cr_assert_eq(op.err, 0);
		cr_assert_eq(check_books(&a, "again"), 1);
		/* The same with a stateid that the lost answer made old. */
		sim_rule(&w, i ? NFSD_SIM_LOSE : NFSD_SIM_CUT_AFTER, OP_LOCK, 0, 1, 0);
		cr_assert(sim_op_get(&w, 0, &op));
		sim_lock_start(&op, &f, &a, 5, 10, false, false);
		sim_nfs_run(&w, 100 * NSEC_PER_USEC);
		nfsd_sim_drop_sessions(w.srv);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 600 * SIM_SEC));
		cr_assert_eq(op.err, 0);
		cr_assert_eq(check_books(&a, "old"), 2);
		end();
	}
}

Test(nfs4_locks, refused_stateid_of_locks_is_reopened_with_the_open, .init = sim_log_quiet)
{
	static const uint32_t refusals[] = {
		NFS4ERR_BAD_STATEID, NFS4ERR_OLD_STATEID, NFS4ERR_STALE_STATEID};

	for (size_t i = 0; i < 3; i++) {
		begin(2);
		cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, true), 0);
		cr_assert_eq(sim_brlock(&w, 0, &f, &b, 100, 10, false), 0);
		sim_rule(&w, NFSD_SIM_STATUS, OP_LOCKU, 0, 1, refusals[i]);
		sim_rule(&w, NFSD_SIM_STATUS, OP_LOCK, 0, 1, refusals[i]);
		cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 5, 2), 0);
		cr_assert_eq(sim_brlock(&w, 1, &f, &b, 105, 10, true), 0);
		cr_assert_eq(check_books(&a, "a"), 2);
		cr_assert_eq(check_books(&b, "b"), 2);
		cr_assert_eq(nfsd_sim_stats(w.srv).clients, 1);
		end();
	}
}

/*
 * A soft mount gives up, and so does any if the call loses each connection; what the server made of
 * it is found out by the LOCKU that must follow.
 */
Test(nfs4_locks, lock_without_an_answer_can_be_given_back, .init = sim_log_quiet)
{
	static const enum nfsd_sim_act acts[] = {NFSD_SIM_LOSE, NFSD_SIM_CUT_BEFORE};
	static const int errs[] = {-ETIMEDOUT, -EIO};

	for (int i = 0; i < 4; i++) {
		sim_nfs_open(&w, NULL);
		w.conf.hard = i % 2;
		w.conf.timeout_errno = ETIMEDOUT;
		w.conf.rdma.timeo_ns = SIM_SEC;
		w.conf.rdma.retrans = 1;
		ready(1);
		if (i / 2)
			cr_assert_eq(sim_brlock(&w, 0, &f, &a, 1000, 10, true), 0);
		sim_rule(&w, acts[i % 2], OP_LOCK, 0, 0, 0);
		cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, true), errs[i % 2]);
		cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_LOCKU], 0);
		nfsd_sim_rules_clear(w.srv);
		cr_assert_not(nfs4_lockowner_holds(&a, 0, 10));
		cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, 10), 0);
		/* Where the lost answer had a newer stateid, that takes another one. */
		cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_LOCKU], i == 2 ? 2 : 1, "row %d", i);
		cr_assert_eq(check_books(&a, "given back"), i / 2);
		cr_assert(nfsd_sim_lock(w.srv, "/f", 0, 10, true));
		end();
	}
}

/* A server tells whose lock is in the way by the owner's number alone. */
Test(nfs4_locks, owners_of_two_clients_have_numbers_of_their_own, .init = sim_log_quiet)
{
	struct nfs4_client *other;
	uint64_t first;

	begin(1);
	other = nfs4_client_new(&w.conf);
	cr_assert_not_null(other);
	first = nfs4_new_owner(other);
	cr_assert_eq(nfs4_new_owner(other), first + 1);
	cr_assert_gt(first > a.number ? first - a.number : a.number - first, 1000);
	nfs4_client_free(other);
	end();
}
