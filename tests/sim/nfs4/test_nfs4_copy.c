/* SPDX-License-Identifier: BSD-3-Clause */
/* COPY, and what the server goes on with: CB_OFFLOAD, OFFLOAD_STATUS, OFFLOAD_CANCEL. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nfs4_offload_int.h"
#include "sim_held.h"

#define SIZE 60000u

static struct sim_nfs w;
static struct sim_file from, to;
static struct sim_op data;

/* A COPY, and what becomes of it. */
static struct copying {
	struct sim_op op; /* first */
	struct nfs4_offload off;
	struct nfs4_op_copy res; /* of its reply */
	unsigned int ended;
	bool ignored;
} cp, more;

static void begin(unsigned int lanes)
{
	const struct nfs4_fh *root;

	memset(&cp, 0, sizeof(cp));
	memset(&more, 0, sizeof(more));
	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, lanes);
	root = &nfs4_client_fsinfo(w.cl)->root;
	cr_assert_eq(sim_create(&w, root, "from", &from), 0);
	cr_assert_eq(sim_create(&w, root, "to", &to), 0);
	cr_assert_eq(sim_write(&w, &from, 0, SIZE, FILE_SYNC4, NULL), 0);
}

static void end(unsigned int left)
{
	cr_assert_eq(nfsd_sim_live_copies(w.srv), 0);
	cr_assert_eq(sim_close(&w, &from), 0);
	cr_assert_eq(sim_close(&w, &to), 0);
	SIM_NFS_CLOSE(&w, left);
}

static void is_copied(uint64_t off, uint64_t len)
{
	cr_assert_eq(nfsd_sim_peek(w.srv, "/to", 0, data.data, sizeof(data.data)), off + len);
	cr_assert(sim_is_pattern(data.data + off, 0, (uint32_t)len));
}

static void offload_done(struct nfs4_offload *off)
{
	container_of(off, struct copying, off)->ended++;
}

static void replied(struct sim_op *op)
{
	struct copying *c = container_of(op, struct copying, op);

	c->res = op->call.u.copy;
	if (!op->err && c->res.async && !c->ignored)
		nfs4_offload_begin(&c->off, &op->call, offload_done);
}

static void start(struct copying *c, unsigned int lane, bool synchronous)
{
	cr_assert(sim_op_get(&w, lane, &c->op));
	c->op.then = replied;
	c->ended = 0;
	c->op.call.u.copy = (struct nfs4_op_copy){
		.src = &from.fh,
		.fh = &to.fh,
		.src_state = &from.state,
		.state = &to.state,
		.count = SIZE,
		.synchronous = synchronous,
	};
	sim_op_start(&c->op, nfs4_copy);
}

static int finish(struct copying *c)
{
	cr_assert(sim_nfs_until(&w, &c->op.done_cnt, 1, 1000 * SIM_SEC));
	return c->op.err;
}

static int copy(unsigned int lane, bool synchronous)
{
	start(&cp, lane, synchronous);
	return finish(&cp);
}

static bool ends(struct copying *c)
{
	return sim_nfs_until(&w, &c->ended, 1, SIM_SEC);
}

static int ask(unsigned int lane, void (*what)(struct nfs4_call *), enum nfs4_status *ret_status)
{
	int err;

	cr_assert(sim_op_get(&w, lane, &data));
	data.then = NULL;
	data.call.u.offload = (struct nfs4_op_offload){.fh = &to.fh, .id = cp.res.id};
	err = sim_op_run(&data, what);
	*ret_status = data.call.status;
	return err;
}

/* ---- synchronous ---- */

Test(nfs4_copying, the_server_copies_a_part)
{
	struct nfs4_verf verf;

	begin(1);
	nfsd_sim_conf(w.srv)->copy_max = 4096;
	cr_assert_eq(copy(0, true), 0);
	cr_assert_not(cp.res.async);
	cr_assert_eq(cp.res.copied, 4096);
	cr_assert_eq(cp.res.committed, UNSTABLE4);
	cr_assert_eq(cp.res.attr.size, 4096);
	is_copied(0, 4096);
	cr_assert_eq(sim_commit(&w, &to, &verf), 0);
	cr_assert_eq(memcmp(&verf, &cp.res.verf, sizeof(verf)), 0);
	end(0);
}

Test(nfs4_copying, synchronous_if_the_server_likes)
{
	begin(1);
	cr_assert_eq(copy(0, false), 0);
	cr_assert_not(cp.res.async);
	is_copied(0, SIZE);
	end(0);
}

Test(nfs4_copying, once_although_the_reply_is_lost)
{
	begin(1);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	nfsd_sim_rule(w.srv,
		&(struct nfsd_sim_rule){.act = NFSD_SIM_CUT_AFTER, .op = OP_COPY, .count = 1});
	cr_assert_eq(copy(0, false), 0);
	cr_assert_eq(nfsd_sim_live_copies(w.srv), 1);
	sim_nfs_run(&w, SIM_SEC); /* the back channel is there again */
	cr_assert_eq(nfsd_sim_copies_end(w.srv, NFS4_OK, SIZE, true, 0), 1);
	cr_assert(ends(&cp));
	end(0);
}

Test(nfs4_copying, delay_is_waited_for_and_errors_are_told)
{
	static const struct {
		uint32_t status;
		int err;
	} rows[] = {{NFS4ERR_DELAY, 0}, {NFS4ERR_NOSPC, -ENOSPC}, {NFS4ERR_XDEV, -EXDEV},
		{NFS4ERR_NOTSUPP, -EOPNOTSUPP}, {NFS4ERR_OP_ILLEGAL, -EOPNOTSUPP},
		{NFS4ERR_OFFLOAD_DENIED, -EOPNOTSUPP}, {NFS4ERR_INVAL, -EINVAL}};

	begin(1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_STATUS,
					     .op = OP_COPY,
					     .count = 1,
					     .arg = rows[i].status});
		cr_assert_eq(copy(0, true), rows[i].err, "row %zu: %d", i, cp.op.err);
		nfsd_sim_rules_clear(w.srv);
	}
	end(0);
}

Test(nfs4_copying, not_in_minor_version_1)
{
	const struct nfs4_fh *root;

	memset(&cp, 0, sizeof(cp));
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->minor_max = 1;
	sim_nfs_mounted(&w, 1);
	root = &nfs4_client_fsinfo(w.cl)->root;
	cr_assert_eq(sim_create(&w, root, "from", &from), 0);
	cr_assert_eq(sim_create(&w, root, "to", &to), 0);
	cr_assert_eq(copy(0, true), -EOPNOTSUPP);
	end(0);
}

/* ---- stateids ---- */

/* Which of the two it is, only who reads and writes finds out. */
Test(nfs4_copying, a_stateid_that_is_not_good_is_left_to_reads_and_writes)
{
	static const char *const paths[] = {"/from", "/to"};

	for (int i = 0; i < 2; i++) {
		begin(1);
		cr_assert_eq(nfsd_sim_revoke(w.srv, paths[i], NFS4ERR_EXPIRED), 1);
		cr_assert_eq(copy(0, true), -EOPNOTSUPP);
		cr_assert_eq(sim_read(&w, &data, &from, 0, 100), 0);
		cr_assert_eq(sim_write(&w, &to, 0, 100, FILE_SYNC4, NULL), 0);
		cr_assert_eq(copy(0, true), 0);
		is_copied(0, SIZE);
		end(0);
	}
}

Test(nfs4_copying, it_waits_for_both_after_a_restart)
{
	begin(1);
	nfsd_sim_rule(
		w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_LOSE, .op = OP_COPY, .count = 1});
	start(&cp, 0, true);
	sim_nfs_run(&w, SIM_MSEC);
	nfsd_sim_restart(w.srv, 10 * SIM_SEC, true);
	cr_assert_eq(finish(&cp), 0);
	is_copied(0, SIZE);
	end(0);
}

Test(nfs4_copying, with_the_stateid_of_a_delegation)
{
	static struct sim_held h, h2;

	memset(&cp, 0, sizeof(cp));
	sim_nfs_open(&w, NULL);
	sim_held_mounted(&w, 1, NFSD_SIM_DELEG_READ | NFSD_SIM_DELEG_WRITE);
	sim_held_file(&w, &h, "/from");
	sim_held_file(&w, &h2, "/to");
	cr_assert_eq(sim_hopen(&h, 0, OPEN4_SHARE_ACCESS_READ, true), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert(sim_hserve(&h, OPEN4_SHARE_ACCESS_READ));
	cr_assert_eq(sim_hopen(&h2, 0, OPEN4_SHARE_ACCESS_BOTH, true), 0);
	cr_assert_eq(sim_hclose(&h2, 0), 0);
	cr_assert(sim_hserve(&h2, OPEN4_SHARE_ACCESS_BOTH));
	cr_assert(sim_op_get(&w, 0, &cp.op));
	cp.op.call.u.copy = (struct nfs4_op_copy){
		.src = &h.f.fh,
		.fh = &h2.f.fh,
		.src_state = &h.f.state,
		.state = &h2.f.state,
		.count = 50,
		.synchronous = true,
	};
	cr_assert_eq(sim_op_run(&cp.op, nfs4_copy), 0);
	cr_assert_eq(cp.op.call.u.copy.copied, 50);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 2);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hclose(&h2, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h2, 0), 0);
	SIM_NFS_CLOSE(&w, 0);
}

/* ---- CB_OFFLOAD ---- */

Test(nfs4_copying, its_end_is_told_on_any_session)
{
	for (int session = 0; session < 3; session++) {
		begin(3);
		nfsd_sim_conf(w.srv)->copy_by_itself = true;
		cr_assert_eq(copy(1, false), 0);
		cr_assert(cp.res.async);
		cr_assert_not(ends(&cp));
		cr_assert_eq(nfsd_sim_copies_end(w.srv, NFS4_OK, UINT64_MAX, true, session), 1);
		cr_assert(ends(&cp));
		cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
		cr_assert_eq(cp.off.res.status, NFS4_OK);
		cr_assert_eq(cp.off.res.copied, SIZE);
		cr_assert_eq(cp.off.res.committed, FILE_SYNC4);
		is_copied(0, SIZE);
		end(0);
	}
}

Test(nfs4_copying, an_error_is_told_with_what_is_done)
{
	begin(1);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	cr_assert_eq(copy(0, false), 0);
	cr_assert_eq(nfsd_sim_copies_end(w.srv, NFS4ERR_NOSPC, 5000, false, 0), 1);
	cr_assert(ends(&cp));
	cr_assert_eq(cp.off.res.status, NFS4ERR_NOSPC);
	cr_assert_eq(cp.off.res.copied, 5000);
	end(0);
}

Test(nfs4_copying, its_end_may_come_before_the_reply)
{
	for (uint64_t late = 0; late < 3; late++) {
		begin(2);
		nfsd_sim_conf(w.srv)->copy_by_itself = true;
		nfsd_sim_conf(w.srv)->copy_early = NFSD_SIM_EARLY_PLAIN;
		nfsd_sim_conf(w.srv)->copy_early_ns = late * SIM_MSEC;
		cr_assert_eq(copy(1, false), 0);
		cr_assert(cp.res.async);
		cr_assert(ends(&cp));
		cr_assert_eq(cp.off.res.copied, SIZE);
		cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
		end(0);
	}
}

/* The server says so: it will come again, or is asked. */
Test(nfs4_copying, what_names_the_copy_that_is_in_flight_comes_again)
{
	begin(1);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	nfsd_sim_conf(w.srv)->copy_early = NFSD_SIM_EARLY_REFERS;
	nfsd_sim_conf(w.srv)->copy_early_ns = SIM_SEC;
	cr_assert_eq(copy(0, false), 0);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_DELAY);
	cr_assert_not(ends(&cp));
	cr_assert(nfs4_offload_end(&cp.off));
	end(0);
}

Test(nfs4_copying, of_what_nobody_copies_nothing_is_kept)
{
	begin(1);
	cr_assert_eq(nfsd_sim_callback(w.srv, NFSD_SIM_CB_OFFLOAD, false), 1);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_BAD_STATEID);
	end(0);
}

Test(nfs4_copying, while_a_copy_is_in_flight_some_are_kept)
{
	begin(1);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	nfsd_sim_conf(w.srv)->copy_early = NFSD_SIM_EARLY_PLAIN;
	nfsd_sim_rule(
		w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_HOLD, .op = OP_COPY, .count = 1});
	start(&cp, 0, false);
	for (unsigned int i = 1; i <= NFS4_EARLY_OFFLOADS; i++) {
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4_OK);
		cr_assert_eq(nfsd_sim_callback(w.srv, NFSD_SIM_CB_OFFLOAD, false), 1);
	}
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_DELAY, "there is no more room");
	nfsd_sim_release(w.srv, false);
	cr_assert_eq(finish(&cp), 0);
	cr_assert(ends(&cp));
	cr_assert_eq(cp.off.res.copied, SIZE);
	cr_assert_eq(nfsd_sim_callback(w.srv, NFSD_SIM_CB_OFFLOAD, false), 1);
	sim_nfs_run(&w, SIM_MSEC);
	cr_assert_eq(nfsd_sim_cb_last(w.srv).status, NFS4ERR_BAD_STATEID, "nothing is in flight");
	end(0);
}

Test(nfs4_copying, two_of_them_are_told_apart)
{
	begin(2);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	cr_assert_eq(copy(0, false), 0);
	start(&more, 1, false);
	cr_assert_eq(finish(&more), 0);
	cr_assert_eq(nfsd_sim_live_copies(w.srv), 2);
	cr_assert(nfs4_offload_end(&more.off));
	cr_assert(nfs4_offload_end(&more.off), "nothing is waited for");
	cr_assert_eq(nfsd_sim_copies_end(w.srv, NFS4_OK, 100, true, 0), 2);
	cr_assert(ends(&cp));
	cr_assert_eq(more.ended, 0);
	end(0);
}

/* ---- when it does not come ---- */

Test(nfs4_copying, the_server_is_asked)
{
	enum nfs4_status status;

	begin(2);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	cr_assert_eq(copy(0, false), 0);
	cr_assert_eq(ask(1, nfs4_copy_status, &status), 0);
	cr_assert_eq(data.call.u.offload.copied, 1);
	cr_assert_not(data.call.u.offload.complete);
	cr_assert_eq(nfsd_sim_copies_end(w.srv, NFS4_OK, SIZE, true, -1), 1);
	cr_assert_neq(ask(1, nfs4_copy_status, &status), 0);
	cr_assert_eq(status, NFS4ERR_BAD_STATEID, "it has forgotten");
	cr_assert(nfs4_offload_end(&cp.off));
	end(0);
}

Test(nfs4_copying, the_server_is_told_to_stop)
{
	enum nfs4_status status;

	begin(1);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	cr_assert_eq(copy(0, false), 0);
	cr_assert_eq(ask(0, nfs4_copy_cancel, &status), 0);
	cr_assert_eq(nfsd_sim_live_copies(w.srv), 0);
	cr_assert_neq(ask(0, nfs4_copy_cancel, &status), 0);
	cr_assert_eq(status, NFS4ERR_BAD_STATEID);
	cr_assert(nfs4_offload_end(&cp.off));
	end(0);
}

Test(nfs4_copying, it_outlives_its_session)
{
	begin(2);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	cr_assert_eq(copy(0, false), 0);
	nfsd_sim_drop_sessions(w.srv);
	cr_assert_eq(sim_commit(&w, &to, NULL), 0);
	cr_assert_not(nfs4_offload_is_over(&cp.off));
	cr_assert_eq(nfsd_sim_copies_end(w.srv, NFS4_OK, SIZE, true, 0), 1);
	cr_assert(ends(&cp));
	end(0);
}

Test(nfs4_copying, but_not_the_server)
{
	enum nfs4_status status;

	begin(1);
	nfsd_sim_conf(w.srv)->copy_by_itself = true;
	cr_assert_eq(copy(0, false), 0);
	nfsd_sim_restart(w.srv, SIM_SEC, true);
	cr_assert_eq(nfsd_sim_live_copies(w.srv), 0);
	cr_assert_eq(sim_commit(&w, &to, NULL), 0);
	cr_assert(nfs4_offload_is_over(&cp.off));
	cr_assert_neq(ask(0, nfs4_copy_status, &status), 0);
	cr_assert(nfs4_offload_end(&cp.off));
	cr_assert_eq(copy(0, true), 0);
	is_copied(0, SIZE);
	end(0);
}
