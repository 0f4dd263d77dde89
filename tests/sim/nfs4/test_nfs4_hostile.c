/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies that are proper RPC-over-RDMA and proper RPC, but whose COMPOUND
 * results lie. Each call ends once with success or an errno, and the session
 * still works, or another one does.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_log.h"
#include "sim_ops.h"

static struct sim_nfs w;
static struct sim_file file;
static struct nfs4_fh link_fh;

static void open_all(enum rpcrdma_memreg memreg)
{
	sim_log_quiet();
	sim_nfs_open(&w, NULL);
	w.conf.rdma.memreg = memreg;
	nfsd_sim_mknod(w.srv, "/l", NFSD_SIM_LNK, 0777, "target", 6);
	nfsd_sim_mknod(w.srv, "/dir", NFSD_SIM_DIR, 0777, NULL, 0);
	for (int i = 0; i < 8; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/dir/file-%d", i);
		nfsd_sim_mknod(w.srv, path, NFSD_SIM_REG, 0666, "abc", 3);
	}
	nfsd_sim_conf(w.srv)->tolerant_seq = true;
	nfsd_sim_conf(w.srv)->tolerant_state = true;
	nfsd_sim_conf(w.srv)->allow_toosmall = true;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &file), 0);
	cr_assert_eq(sim_write(&w, &file, 0, 20000, FILE_SYNC4, NULL), 0);
}

static bool an_entry(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	cr_assert(de->name.len > 0 && de->name.len < 256);
	return true;
}

static struct sim_op op;

/* One of several operations; only that it ends matters. */
static int one(unsigned int which)
{
	const struct nfs4_fh *root = &nfs4_client_fsinfo(w.cl)->root;

	switch (which) {
	case 0:
		if (!sim_read(&w, &op, &file, 0, 10000))
			cr_assert_leq(op.len, 10000);
		return op.err;
	case 1:
		if (!sim_read(&w, &op, &file, 10, 100))
			cr_assert_leq(op.len, 100);
		return op.err;
	case 2:
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.write.fh = &file.fh;
		op.call.u.write.state = &file.state;
		op.call.u.write.data[0] = (struct rpcrdma_span){op.buf, op.buf->data, 5000};
		op.call.u.write.data_cnt = 1;
		if (!sim_op_run(&op, nfs4_write))
			cr_assert_leq(op.call.u.write.count, 5000);
		return op.err;
	case 3:
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.readdir.fh = root;
		op.call.u.readdir.maxcount = 8000;
		op.call.u.readdir.sink = (struct rpcrdma_span){op.buf, op.buf->data, 9000};
		op.call.u.readdir.plus = true;
		op.call.u.readdir.entry = an_entry;
		return sim_op_run(&op, nfs4_readdir);
	case 4:
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.lookup.dir = root;
		op.call.u.lookup.name = (struct nfs4_str){"l", 1};
		if (!sim_op_run(&op, nfs4_lookup) && !link_fh.len)
			link_fh = op.call.u.lookup.fh;
		return op.err;
	case 5:
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.readlink.fh = &link_fh;
		op.call.u.readlink.sink = (struct rpcrdma_span){op.buf, op.buf->data, 4608};
		return sim_op_run(&op, nfs4_readlink);
	case 6:
		return sim_commit(&w, &file, NULL);
	default:
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.getattr.fh = root;
		return sim_op_run(&op, nfs4_getattr);
	}
}
#define KINDS 8

struct edit {
	uint32_t off, value, len;
	bool cut;
	unsigned int *seed;
};

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

/* off counts from the start of the COMPOUND result. */
static void do_edit(void *ctx, struct nfsd_sim_out *out)
{
	const struct edit *e = ctx;
	uint32_t at = out->body_off + 24 + e->off;

	if (e->seed) {
		/* Behind SEQUENCE: what it says about the slot must be believed. */
		for (int i = 0; i < 4 && out->len > 88; i++) {
			at = 84 + (uint32_t)rand_r(e->seed) % (out->len - 84);
			if ((at & ~3u) + 4 <= out->len)
				put32(out->msg + (at & ~3u),
					(uint32_t)rand_r(e->seed) >> (rand_r(e->seed) % 31));
		}
	} else if (e->cut) {
		if (at < out->len)
			out->len = at;
	} else if (at + 4 <= out->len) {
		put32(out->msg + at, e->value);
	}
}

static void suffer(unsigned int which, struct edit *e)
{
	struct nfsd_sim_rule rule = {.act = NFSD_SIM_MUTATE_BODY,
		.mutate = do_edit,
		.ctx = e,
		.count = 1,
		.hostile = true};

	nfsd_sim_rule(w.srv, &rule);
	(void)one(which);
	nfsd_sim_rules_clear(w.srv);
	cr_assert_eq(op.buf, NULL);
	cr_assert_eq(one(7), 0, "which %u, off %u, value %x", which, e->off, e->value);
	cr_assert_eq(fab_sim_failures(), 0, "which %u, off %u, value %x: %s", which, e->off,
		e->value, fab_sim_failure());
}

static void finish(void)
{
	const char *wrong;

	cr_assert_eq(one(4), 0);
	cr_assert_eq(sim_close(&w, &file), 0);
	wrong = sim_nfs_close(&w, 1);
	cr_assert_null(wrong, "%s", wrong);
}

Test(nfs4_hostile, every_word_of_the_results_replaced)
{
	static const uint32_t values[] = {
		0, 1, 2, 3, 22, 53, 10008, 0x7fffffff, 0x80000001, 0xfffffffd, 0xffffffff};

	open_all(RPCRDMA_MEMREG_MW);
	cr_assert_eq(one(4), 0);
	for (unsigned int which = 0; which < KINDS; which++) {
		for (uint32_t off = 0; off < 420; off += 4) {
			/* SEQUENCE's own status is test_nfs4_recovery.c's. */
			if (off >= 12 && off < 60)
				continue;
			for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
				suffer(which, &(struct edit){.off = off, .value = values[v]});
		}
	}
	finish();
}

Test(nfs4_hostile, results_cut_at_every_length)
{
	for (int m = RPCRDMA_MEMREG_MW; m <= RPCRDMA_MEMREG_STATIC; m++) {
		open_all((enum rpcrdma_memreg)m);
		cr_assert_eq(one(4), 0);
		for (unsigned int which = 0; which < KINDS; which++)
			for (uint32_t off = 0; off < 500; off += off < 80 ? 1 : 4)
				suffer(which, &(struct edit){.off = off, .cut = true});
		finish();
	}
}

Test(nfs4_hostile, scrambled_results)
{
	unsigned int seed = 99;

	open_all(RPCRDMA_MEMREG_MW);
	cr_assert_eq(one(4), 0);
	for (int i = 0; i < 4000; i++)
		suffer((unsigned int)i % KINDS, &(struct edit){.seed = &seed});
	finish();
}

/* Every status there is, on every operation. */
Test(nfs4_hostile, every_status_on_every_operation)
{
	static const uint32_t ops[] = {OP_PUTFH, OP_READ, OP_WRITE, OP_READDIR, OP_LOOKUP,
		OP_GETATTR, OP_READLINK, OP_COMMIT};

	open_all(RPCRDMA_MEMREG_MW);
	cr_assert_eq(one(4), 0);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (uint32_t status = 1; status < 10100;
			status = status == 80 ? 10001 : status + 1) {
			nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_STATUS,
						     .op = ops[i],
						     .count = 1,
						     .arg = status});
			for (unsigned int which = 0; which < KINDS; which++)
				(void)one(which);
			nfsd_sim_rules_clear(w.srv);
			cr_assert_eq(one(7), 0, "status %u on %u", status, ops[i]);
			cr_assert_eq(fab_sim_failures(), 0, "status %u on %u: %s", status, ops[i],
				fab_sim_failure());
		}
	}
	finish();
}
