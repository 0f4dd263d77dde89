/* SPDX-License-Identifier: BSD-3-Clause */
/* I/O where locks are held, on a server whose locks are mandatory. */
#include <criterion/criterion.h>
#include <errno.h>

#include "nfs4_lock.h"
#include "sim_log.h"
#include "sim_ops.h"

static struct sim_nfs w;
static struct sim_file f;
static struct nfs4_lockowner a, b;
static struct sim_op op;

static void begin(void)
{
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->mandatory_locks = true;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
	nfs4_lockowner_init(&a, w.cl);
	nfs4_lockowner_init(&b, w.cl);
}

static void end(void)
{
	cr_assert_eq(sim_close(&w, &f), 0);
	SIM_NFS_CLOSE(&w, 0);
}

static int write_at(uint64_t off)
{
	return sim_write(&w, &f, off, 10, FILE_SYNC4, NULL);
}

static int read_at(uint64_t off)
{
	return sim_read(&w, &op, &f, off, 10);
}

static int set_size(uint64_t size)
{
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.setattr.fh = &f.fh;
	op.call.u.setattr.state = &f.state;
	op.call.u.setattr.sattr.set = NFS4_ATTR_SIZE;
	op.call.u.setattr.sattr.size = size;
	return sim_op_run(&op, nfs4_setattr);
}

static int allocate_at(uint64_t off)
{
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.allocate.fh = &f.fh;
	op.call.u.allocate.state = &f.state;
	op.call.u.allocate.offset = off;
	op.call.u.allocate.len = 10;
	return sim_op_run(&op, nfs4_allocate);
}

Test(nfs4_lock_io, is_under_the_lock_that_is_held_there, .init = sim_log_quiet)
{
	begin();
	cr_assert_eq(write_at(0), 0);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 100, true), 0);
	cr_assert_eq(sim_brlock(&w, 0, &f, &b, 100, 100, false), 0);
	cr_expect_eq(read_at(0), 0);
	cr_expect_eq(write_at(0), 0);
	cr_expect_eq(allocate_at(0), 0);
	cr_expect_eq(write_at(90), 0);
	cr_expect_eq(read_at(100), 0);
	cr_expect_eq(write_at(200), 0); /* nobody's */
	/* Of two owners one can be named. */
	cr_expect_eq(write_at(95), -EAGAIN);
	cr_assert_eq(sim_brunlock(&w, 0, &f, &b, 100, 100), 0);
	cr_expect_eq(write_at(95), 0);
	cr_expect_eq(set_size(20), 0);
	/* One that is given back has a stateid, and no range. */
	cr_assert_eq(sim_brlock(&w, 0, &f, &b, 100, 100, true), 0);
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, 100), 0);
	cr_expect_eq(write_at(100), 0);
	cr_expect_eq(read_at(0), 0);
	end();
}

/* A program that locks its log and appends to it. */
Test(nfs4_lock_io, ends_where_the_lock_of_another_owner_begins, .init = sim_log_quiet)
{
	struct nfs4_lockowner *const owners[] = {&a, &b};

	begin();
	cr_assert_eq(write_at(0), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(sim_brlock(&w, 0, &f, owners[i], 0, 100, true), 0);
		cr_assert_eq(sim_brlock(&w, 0, &f, owners[!i], 100, 100, true), 0);
		cr_expect_eq(write_at(90), 0);
		cr_expect_eq(read_at(90), 0);
		cr_expect_eq(allocate_at(90), 0);
		cr_expect_eq(write_at(100), 0);
		cr_assert_eq(sim_brunlock(&w, 0, &f, owners[i], 0, 100), 0);
		cr_assert_eq(sim_brunlock(&w, 0, &f, owners[!i], 100, 100), 0);
	}
	end();
}

Test(nfs4_lock_io, an_append_is_under_the_lock_too, .init = sim_log_quiet)
{
	struct nfs4_op_write *o = &op.call.u.write;

	begin();
	cr_assert_eq(write_at(0), 0);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, UINT64_MAX, true), 0);
	cr_assert(sim_op_get(&w, 0, &op));
	o->fh = &f.fh;
	o->state = &f.state;
	o->offset = 10;
	o->at_end = true;
	o->stable = FILE_SYNC4;
	o->data[0] = (struct rpcrdma_span){op.buf, op.buf->data, 5};
	o->data_cnt = 1;
	cr_expect_eq(sim_op_run(&op, nfs4_write), 0);
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, UINT64_MAX), 0);
	end();
}

/* Its owner alone may be there, whoever has locks to read beside it. */
Test(nfs4_lock_io, the_lock_to_write_is_named_first, .init = sim_log_quiet)
{
	begin();
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, false), 0);
	cr_assert_eq(sim_brlock(&w, 0, &f, &b, 10, 10, true), 0);
	cr_expect_eq(sim_read(&w, &op, &f, 0, 20), 0);
	end();
}

Test(nfs4_lock_io, what_others_hold_is_refused, .init = sim_log_quiet)
{
	begin();
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 10, true), 0);
	cr_assert(nfsd_sim_lock(w.srv, "/f", 20, 10, true));
	cr_expect_eq(read_at(0), 0);
	cr_expect_eq(read_at(20), -EAGAIN);
	cr_expect_eq(write_at(15), -EAGAIN);
	nfsd_sim_unlock(w.srv, "/f", 20, 10);
	cr_expect_eq(write_at(15), 0);
	end();
}

/* Its stateid is freed while a READ bears it: that is no word about the open. */
Test(nfs4_lock_io, goes_again_when_the_lock_is_over, .init = sim_log_quiet)
{
	static struct sim_op rd;
	uint64_t opens;

	begin();
	cr_assert_eq(write_at(0), 0);
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 100, true), 0);
	opens = sim_ops(&w, OP_OPEN);
	sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, NFS4ERR_BAD_STATEID);
	sim_rule(&w, NFSD_SIM_HOLD, OP_READ, 0, 1, 0);
	cr_assert(sim_op_get(&w, 0, &rd));
	rd.call.u.read.fh = &f.fh;
	rd.call.u.read.state = &f.state;
	rd.call.u.read.count = 10;
	rd.call.u.read.sink = (struct rpcrdma_span){rd.buf, rd.buf->data, 10};
	sim_op_start(&rd, nfs4_read);
	cr_assert_eq(sim_brunlock(&w, 0, &f, &a, 0, 100), 0);
	nfs4_lockowner_free(&a, w.lane[0].sess);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(rd.done_cnt, 0);
	nfsd_sim_release(w.srv, false);
	cr_assert(sim_nfs_until(&w, &rd.done_cnt, 1, SIM_SEC));
	cr_expect_eq(rd.err, 0);
	cr_expect_eq(sim_ops(&w, OP_OPEN), opens, "the open is as good as before");
	end();
}

/* After a restart the lock has another stateid. */
Test(nfs4_lock_io, bears_the_stateid_that_was_reclaimed, .init = sim_log_quiet)
{
	begin();
	cr_assert_eq(sim_brlock(&w, 0, &f, &a, 0, 100, true), 0);
	nfsd_sim_restart(w.srv, 0, false);
	cr_expect_eq(write_at(0), 0);
	cr_expect_eq(read_at(0), 0);
	end();
}
