/* SPDX-License-Identifier: BSD-3-Clause */
/* CLONE: all or nothing, durable when it is answered, at most as much as was asked for. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sim_held.h"

#define BLOCK 4096u
#define SIZE  50000u /* ends in a block */

static struct sim_nfs w;
static struct sim_file from, to;
static struct sim_op op;
static struct nfsd_sim_stats before;

static void begin_on(const struct nfsd_sim_conf *conf)
{
	const struct nfs4_fh *root;

	sim_nfs_open(&w, conf);
	sim_nfs_mounted(&w, 1);
	root = &nfs4_client_fsinfo(w.cl)->root;
	cr_assert_eq(sim_create(&w, root, "from", &from), 0);
	cr_assert_eq(sim_create(&w, root, "to", &to), 0);
	cr_assert_eq(sim_write(&w, &from, 0, SIZE, FILE_SYNC4, NULL), 0);
	before = nfsd_sim_stats(w.srv);
}

static void begin(void)
{
	begin_on(NULL);
}

static void end(void)
{
	cr_assert_eq(sim_close(&w, &from), 0);
	cr_assert_eq(sim_close(&w, &to), 0);
	SIM_NFS_CLOSE(&w, 0);
}

static void fill(
	struct sim_file *src, struct sim_file *dst, uint64_t src_off, uint64_t off, uint64_t count)
{
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.copy = (struct nfs4_op_copy){
		.src = &src->fh,
		.fh = &dst->fh,
		.src_state = &src->state,
		.state = &dst->state,
		.src_offset = src_off,
		.offset = off,
		.count = count,
	};
}

static int clone_blocks(uint64_t src_off, uint64_t off, uint64_t count)
{
	fill(&from, &to, src_off, off, count);
	return sim_op_run(&op, nfs4_clone);
}

static uint64_t size_of(const char *path)
{
	return nfsd_sim_peek(w.srv, path, 0, NULL, 0);
}

static void is_cloned(uint64_t off, uint64_t src_off, uint64_t len)
{
	cr_assert_geq(
		nfsd_sim_peek(w.srv, "/to", 0, op.data, sizeof(op.data)), (uint32_t)(off + len));
	cr_assert(sim_is_pattern(op.data + off, src_off, (uint32_t)len));
	cr_assert_eq(nfsd_sim_unstable_bytes(w.srv), 0, "it is durable");
}

static uint64_t more(unsigned int what)
{
	return nfsd_sim_stats(w.srv).ops[what] - before.ops[what];
}

Test(nfs4_cloning, blocks_and_the_end)
{
	begin();
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->fs.clone_blksize, BLOCK);
	cr_assert_eq(clone_blocks(BLOCK, 0, 2 * BLOCK), 0);
	cr_assert_eq(op.call.u.copy.copied, 2 * BLOCK);
	cr_assert_eq(op.call.u.copy.committed, FILE_SYNC4);
	cr_assert_eq(op.call.u.copy.attr.size, 2 * BLOCK);
	cr_assert_eq(size_of("/to"), 2 * BLOCK, "not more than was asked for");
	is_cloned(0, BLOCK, 2 * BLOCK);
	cr_assert_eq(clone_blocks(0, 0, SIZE), 0);
	is_cloned(0, 0, SIZE);
	cr_assert_eq(size_of("/to"), SIZE);
	end();
}

Test(nfs4_cloning, within_a_file)
{
	begin();
	fill(&from, &from, 0, 8 * BLOCK, 2 * BLOCK);
	cr_assert_eq(sim_op_run(&op, nfs4_clone), 0);
	cr_assert_eq(nfsd_sim_peek(w.srv, "/from", 8 * BLOCK, op.data, 2 * BLOCK), SIZE);
	cr_assert(sim_is_pattern(op.data, 0, 2 * BLOCK));
	fill(&from, &from, 0, BLOCK, 2 * BLOCK);
	cr_assert_eq(sim_op_run(&op, nfs4_clone), -EINVAL, "onto itself");
	end();
}

Test(nfs4_cloning, all_or_nothing)
{
	begin();
	cr_assert_eq(clone_blocks(1, 0, BLOCK), -EINVAL);
	cr_assert_eq(clone_blocks(0, 1, BLOCK), -EINVAL);
	cr_assert_eq(clone_blocks(0, 0, 100), -EINVAL);
	cr_assert_eq(clone_blocks(0, 0, 2 * SIZE), -EINVAL, "the source is shorter");
	cr_assert_eq(clone_blocks(0, 0, 0), -EINVAL, "this would be all");
	cr_assert_eq(size_of("/to"), 0);
	cr_assert_eq(more(OP_CLONE), 4);
	end();
}

Test(nfs4_cloning, once_although_the_reply_is_lost)
{
	begin();
	nfsd_sim_rule(w.srv,
		&(struct nfsd_sim_rule){.act = NFSD_SIM_CUT_AFTER, .op = OP_CLONE, .count = 1});
	cr_assert_eq(clone_blocks(0, 0, SIZE), 0);
	is_cloned(0, 0, SIZE);
	cr_assert_eq(more(OP_CLONE), 1, "the reply is the cached one");
	end();
}

Test(nfs4_cloning, again_if_the_server_may_have_forgotten_it)
{
	begin();
	nfsd_sim_rule(
		w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_LOSE, .op = OP_CLONE, .count = 1});
	fill(&from, &to, 0, 0, SIZE);
	sim_op_start(&op, nfs4_clone);
	sim_nfs_run(&w, SIM_MSEC);
	nfsd_sim_restart(w.srv, 10 * SIM_SEC, true);
	cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 1000 * SIM_SEC));
	cr_assert_eq(op.err, 0);
	is_cloned(0, 0, SIZE);
	end();
}

Test(nfs4_cloning, delay_is_waited_for_and_errors_are_told)
{
	static const struct {
		uint32_t op, status;
		int err;
	} rows[] = {{OP_CLONE, NFS4ERR_DELAY, 0}, {OP_COMMIT, NFS4ERR_DELAY, 0},
		{OP_CLONE, NFS4ERR_NOSPC, -ENOSPC}, {OP_CLONE, NFS4ERR_XDEV, -EXDEV},
		{OP_CLONE, NFS4ERR_NOTSUPP, -EOPNOTSUPP},
		{OP_CLONE, NFS4ERR_OP_ILLEGAL, -EOPNOTSUPP}, {OP_CLONE, NFS4ERR_INVAL, -EINVAL},
		{OP_COMMIT, NFS4ERR_IO, -EIO}, {OP_GETATTR, NFS4ERR_ACCESS, 0}};

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_STATUS,
					     .op = rows[i].op,
					     .count = 1,
					     .arg = rows[i].status});
		cr_assert_eq(clone_blocks(0, 0, SIZE), rows[i].err, "row %zu: %d", i, op.err);
		if (rows[i].err)
			cr_assert_eq(op.call.status, rows[i].status, "row %zu", i);
		nfsd_sim_rules_clear(w.srv);
	}
	end();
}

Test(nfs4_cloning, a_stateid_that_is_not_good_is_left_to_reads_and_writes)
{
	static const char *const paths[] = {"/from", "/to"};

	for (int i = 0; i < 2; i++) {
		begin();
		cr_assert_eq(nfsd_sim_revoke(w.srv, paths[i], NFS4ERR_EXPIRED), 1);
		cr_assert_eq(clone_blocks(0, 0, SIZE), -EOPNOTSUPP);
		cr_assert_eq(sim_read(&w, &op, &from, 0, 100), 0);
		cr_assert_eq(sim_write(&w, &to, 0, 100, FILE_SYNC4, NULL), 0);
		cr_assert_eq(clone_blocks(0, 0, SIZE), 0);
		end();
	}
}

Test(nfs4_cloning, where_there_is_none)
{
	struct nfsd_sim_conf conf;

	nfsd_sim_conf_default(&conf);
	conf.clone_block = 0;
	begin_on(&conf);
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->fs.clone_blksize, 0);
	cr_assert_eq(clone_blocks(0, 0, BLOCK), -EOPNOTSUPP);
	cr_assert_eq(op.call.status, NFS4ERR_NOTSUPP);
	end();
}
