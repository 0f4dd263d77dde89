/* SPDX-License-Identifier: BSD-3-Clause */
/* Short Reply chunk retry (RFC 8267 section 3.1): replies without a bound, and all the others. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_log.h"
#include "sim_ops.h"

static struct sim_nfs w;
static struct sim_op op;
static struct sim_file file;

#define VALUE_MAX 65536u

static void set_value(const char *name, uint32_t len)
{
	static uint8_t value[VALUE_MAX];

	nfsd_sim_fill(value, 0, len);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.setxattr.fh = &file.fh;
	op.call.u.setxattr.name = (struct nfs4_str){name, (uint32_t)strlen(name)};
	op.call.u.setxattr.value = value;
	op.call.u.setxattr.len = len;
	op.call.u.setxattr.long_buf = op.buf;
	cr_assert_eq(sim_op_run(&op, nfs4_setxattr), 0);
}

static void open_with(uint32_t value_len)
{
	sim_nfs_open(&w, NULL);
	w.conf.rdma.data_size = 128 * 1024;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &file), 0);
	set_value("x", value_len);
}

/* Starts in `op`; the value's length is checked by the caller. */
static int get_value(uint32_t room)
{
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.getxattr.fh = &file.fh;
	op.call.u.getxattr.name = (struct nfs4_str){"x", 1};
	op.call.u.getxattr.sink = (struct rpcrdma_span){op.buf, op.buf->data, room};
	op.len = 3;
	return sim_op_run(&op, nfs4_getxattr);
}

static void done_with(void)
{
	cr_assert_eq(sim_close(&w, &file), 0);
	SIM_NFS_CLOSE(&w, 0);
}

static uint64_t retries(void)
{
	return w.lane[0].st.reply_chunk_retries;
}

Test(nfs4_reply_chunk, a_reply_that_fits_the_first_chunk_costs_one_call)
{
	open_with(5000);
	cr_assert_eq(get_value(70000), 0);
	cr_assert(op.len == 5000 && sim_is_pattern(op.data, 0, op.len));
	cr_assert_eq(retries(), 0);
	done_with();
}

Test(nfs4_reply_chunk, a_larger_one_is_asked_for_again_with_a_larger_chunk)
{
	uint64_t before;

	open_with(60000);
	before = nfsd_sim_stats(w.srv).ops[OP_GETXATTR];
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(get_value(70000), 0);
		cr_assert(op.len == 60000 && sim_is_pattern(op.data, 0, op.len));
	}
	cr_assert_eq(retries(), 3);
	cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_GETXATTR] - before, 6);
	/* The failed ones were executed, so no number was tried twice and none left out. */
	cr_assert_eq(nfsd_sim_stats(w.srv).misordered, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).replays + nfsd_sim_stats(w.srv).uncached_replays, 0);
	done_with();
}

Test(nfs4_reply_chunk, one_that_fits_nowhere_is_e2big)
{
	open_with(60000);
	cr_assert_eq(get_value(40000), -E2BIG);
	cr_assert_eq(retries(), 1);
	cr_assert_eq(get_value(70000), 0);
	done_with();
}

/* ERR_CHUNK before anything was executed: the server never saw the number. */
Test(nfs4_reply_chunk, numbers_that_were_not_used_up_are_used_again)
{
	open_with(3000);
	nfsd_sim_conf(w.srv)->tolerant_seq = true;
	for (unsigned int times = 1; times <= 1; times++) {
		sim_rule(&w, NFSD_SIM_ERR_CHUNK, OP_GETXATTR, 0, times, 0);
		cr_assert_eq(get_value(100000), 0);
		cr_assert(op.len == 3000 && sim_is_pattern(op.data, 0, op.len));
	}
	cr_assert_eq(retries(), 1);
	cr_assert_eq(nfsd_sim_stats(w.srv).misordered, 1);
	cr_assert_eq(nfsd_sim_stats(w.srv).false_retries, 0);
	cr_assert_eq(w.lane[0].st.sessions, 1);
	/* And the slot goes on. */
	for (int i = 0; i < 10; i++)
		cr_assert_eq(get_value(100000), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).misordered, 1);
	done_with();
}

/* Other calls come between the failed one and the repetition, on the same slots. */
Test(nfs4_reply_chunk, other_calls_on_the_slot_find_the_number_too)
{
	struct sim_nfs_call c[12] = {0};

	open_with(3000);
	nfsd_sim_conf(w.srv)->tolerant_seq = true;
	sim_rule(&w, NFSD_SIM_ERR_CHUNK, OP_GETXATTR, 0, 3, 0);
	sim_rule(&w, NFSD_SIM_ERR_CHUNK, OP_CREATE, 0, 6, 0);
	for (int i = 0; i < 12; i++) {
		char name[8];

		snprintf(name, sizeof(name), "d%d", i);
		cr_assert_eq(sim_nfs_mkdir(&w, 0, &c[i], name), 0);
	}
	cr_assert_eq(get_value(100000), -E2BIG);
	for (int i = 0; i < 12; i++) {
		char name[8];
		int err = sim_nfs_wait(&w, &c[i]);

		snprintf(name, sizeof(name), "/d%d", i);
		cr_assert(err == 0 || err == -EREMOTEIO, "%d: %d", i, err);
		cr_assert_eq(nfsd_sim_exists(w.srv, name), err == 0);
	}
	for (int i = 0; i < 20; i++)
		cr_assert_eq(get_value(100000), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).false_retries, 0);
	cr_assert_eq(w.lane[0].st.sessions, 1);
	done_with();
}

Test(nfs4_reply_chunk, a_server_that_always_refuses_is_not_asked_for_ever)
{
	uint64_t before;

	open_with(3000);
	nfsd_sim_conf(w.srv)->tolerant_seq = true;
	before = nfsd_sim_stats(w.srv).calls;
	sim_rule(&w, NFSD_SIM_ERR_CHUNK, OP_GETXATTR, 0, 0, 0);
	cr_assert_eq(get_value(100000), -E2BIG);
	cr_assert_leq(nfsd_sim_stats(w.srv).calls - before, 5);
	nfsd_sim_rules_clear(w.srv);
	cr_assert_eq(get_value(100000), 0);
	done_with();
}

Test(nfs4_reply_chunk, statuses_that_say_the_same_are_treated_the_same)
{
	static const uint32_t statuses[] = {
		NFS4ERR_REP_TOO_BIG, NFS4ERR_REP_TOO_BIG_TO_CACHE, NFS4ERR_TOOSMALL};

	for (size_t i = 0; i < 3; i++) {
		open_with(3000);
		sim_rule(&w, NFSD_SIM_STATUS, OP_GETXATTR, 0, 1, statuses[i]);
		cr_assert_eq(get_value(100000), 0);
		cr_assert_eq(retries(), 1);
		sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 0, 1, statuses[i]);
		cr_assert_eq(get_value(100000), 0);
		cr_assert_eq(retries(), 2);
		sim_rule(&w, NFSD_SIM_STATUS, OP_GETXATTR, 0, 0, statuses[i]);
		cr_assert_eq(get_value(100000), -E2BIG);
		nfsd_sim_rules_clear(w.srv);
		done_with();
	}
}

Test(nfs4_reply_chunk, never_past_what_the_session_allows)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.max_response = 50000;
	sim_nfs_open(&w, &sconf);
	w.conf.rdma.data_size = 128 * 1024;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &file), 0);
	set_value("x", 60000);
	cr_assert_eq(get_value(100000), -E2BIG);
	cr_assert_eq(retries(), 1);
	set_value("x", 40000);
	cr_assert_eq(get_value(100000), 0);
	done_with();
}

/* The connection goes at each call of a retry. */
Test(nfs4_reply_chunk, a_lost_connection_on_the_way_changes_nothing)
{
	static const enum nfsd_sim_act acts[] = {
		NFSD_SIM_CUT_BEFORE, NFSD_SIM_CUT_AFTER, NFSD_SIM_CUT_REPLIED};

	for (int i = 0; i < 3; i++)
		for (uint32_t skip = 0; skip < 2; skip++) {
			open_with(60000);
			sim_rule(&w, acts[i], OP_GETXATTR, skip, 1, 0);
			cr_assert_eq(get_value(70000), 0);
			cr_assert(op.len == 60000 && sim_is_pattern(op.data, 0, op.len));
			done_with();
		}
}

/* What cannot be repeated ends with an errno that tells it from I/O errors. */
Test(nfs4_reply_chunk, others_are_not_repeated)
{
	struct sim_nfs_call c = {0};

	open_with(1);
	sim_rule(&w, NFSD_SIM_ERR_AFTER, OP_CREATE, 0, 1, 0);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &c, "d"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), -EREMOTEIO);
	cr_assert(nfsd_sim_exists(w.srv, "/d"));
	cr_assert_eq(retries(), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_CREATE], 1);
	done_with();
}

static void open_strange(enum nfsd_sim_big how, uint32_t value_len)
{
	open_with(value_len);
	nfsd_sim_conf(w.srv)->tolerant_seq = true;
	nfsd_sim_conf(w.srv)->big_reply = how;
}

/* As illumos, and whoever finds out too late that a reply does not fit. */
Test(nfs4_reply_chunk, servers_that_do_not_say_what_is_wrong_are_asked_with_a_larger_chunk,
	.init = sim_log_quiet)
{
	for (enum nfsd_sim_big how = NFSD_SIM_BIG_SYSTEM_ERR; how <= NFSD_SIM_BIG_SILENCE; how++) {
		uint64_t before;

		open_strange(how, 60000);
		before = nfsd_sim_stats(w.srv).ops[OP_GETXATTR];
		cr_assert_eq(get_value(70000), 0, "%d", how);
		cr_assert(op.len == 60000 && sim_is_pattern(op.data, 0, op.len));
		cr_assert_eq(retries(), 1);
		cr_assert_eq(nfsd_sim_stats(w.srv).ops[OP_GETXATTR] - before, 2);
		/* And what does fit is as before. */
		set_value("x", 3000);
		cr_assert_eq(get_value(70000), 0);
		cr_assert_eq(retries(), 1);
		done_with();
	}
}

/* It may be just what it says. */
Test(nfs4_reply_chunk, trouble_of_the_servers_own_is_told_the_second_time, .init = sim_log_quiet)
{
	static const struct {
		uint64_t stat;
		int err;
	} ends[] = {{5, -EREMOTEIO}, {4, -EIO}};

	for (size_t i = 0; i < 2; i++) {
		uint64_t before;

		open_with(3000);
		nfsd_sim_conf(w.srv)->tolerant_seq = true;
		before = nfsd_sim_stats(w.srv).calls;
		sim_rule(&w, NFSD_SIM_RPC_ACCEPT, OP_GETXATTR, 0, 0, ends[i].stat);
		cr_assert_eq(get_value(100000), ends[i].err);
		cr_assert_eq(nfsd_sim_stats(w.srv).calls - before, 2);
		nfsd_sim_rules_clear(w.srv);
		cr_assert_eq(get_value(100000), 0);
		done_with();
	}
}

/* A server that was away for longer than timeo is asked again, whatever the size. */
Test(nfs4_reply_chunk, a_server_that_does_not_answer_is_waited_for, .init = sim_log_quiet)
{
	open_with(3000);
	sim_rule(&w, NFSD_SIM_LOSE, OP_GETXATTR, 0, 3, 0);
	cr_assert_eq(get_value(100000), 0);
	cr_assert(op.len == 3000 && sim_is_pattern(op.data, 0, op.len));
	cr_assert_eq(retries(), 1);
	done_with();
}
