/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation from nfs4.h to the server's tree and back, in every way they can travel. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "sim_ops.h"

static struct sim_nfs w;

static void run_script(bool v42)
{
	sim_nfs_mounted(&w, 1);
	cr_assert(sim_script(&w, v42), "%s", fab_sim_failure());
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_ops, all_of_them_with_windows)
{
	sim_nfs_open(&w, NULL);
	w.conf.rdma.memreg = RPCRDMA_MEMREG_MW;
	run_script(true);
}

Test(nfs4_ops, all_of_them_with_standing_registrations)
{
	sim_nfs_open(&w, NULL);
	w.conf.rdma.memreg = RPCRDMA_MEMREG_STATIC;
	run_script(true);
}

Test(nfs4_ops, all_of_them_in_small_segments_without_remote_invalidation)
{
	sim_nfs_open(&w, NULL);
	w.conf.rdma.max_seg = 4096;
	nfsd_sim_conf(w.srv)->no_inval = true;
	run_script(true);
}

Test(nfs4_ops, all_of_them_in_minor_version_one)
{
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->minor_max = 1;
	run_script(false);
}

Test(nfs4_ops, all_of_them_with_one_credit_and_one_slot)
{
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->credits = 1;
	nfsd_sim_conf(w.srv)->max_slots = 1;
	run_script(true);
}

Test(nfs4_ops, all_of_them_with_thresholds_of_1024_bytes)
{
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->no_priv = true;
	nfsd_sim_conf(w.srv)->client_small = true;
	run_script(true);
}

Test(nfs4_ops, all_of_them_with_large_thresholds)
{
	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->inline_size = 65536;
	w.conf.rdma.inline_size = 65536;
	run_script(true);
}

Test(nfs4_ops, all_of_them_when_every_operation_is_delayed_once)
{
	static const uint32_t ops[] = {OP_ACCESS, OP_CLOSE, OP_COMMIT, OP_CREATE, OP_GETATTR,
		OP_LINK, OP_LOOKUP, OP_OPEN, OP_PUTFH, OP_READ, OP_READDIR, OP_READLINK, OP_REMOVE,
		OP_RENAME, OP_RESTOREFH, OP_SAVEFH, OP_SETATTR, OP_WRITE, OP_SEQUENCE, 72, 73, 74,
		75};

	sim_nfs_open(&w, NULL);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_STATUS,
					     .op = ops[i],
					     .skip = 1,
					     .count = 1,
					     .arg = NFS4ERR_DELAY});
	run_script(true);
}

/* ---- many files ---- */

#define MANY NFS4_GETATTRS_MAX

static struct nfs4_fh many_fh[MANY];
static struct nfs4_attr many_attr[MANY];

static int get_many(struct sim_op *op, uint32_t cnt)
{
	cr_assert(sim_op_get(&w, 0, op));
	op->call.u.getattrs =
		(struct nfs4_op_getattrs){.fh = many_fh, .cnt = cnt, .attr = many_attr};
	return sim_op_run(op, nfs4_getattrs);
}

static void make_many(void)
{
	for (uint32_t i = 0; i < MANY; i++) {
		char name[4] = {'f', (char)('a' + i), '\0'};
		struct sim_file f = {0};

		cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, name, &f), 0);
		cr_assert_eq(sim_write(&w, &f, 0, 100 + i, FILE_SYNC4, NULL), 0);
		cr_assert_eq(sim_close(&w, &f), 0);
		many_fh[i] = f.fh;
	}
}

Test(nfs4_ops, attributes_of_many_files_are_one_call)
{
	static struct sim_op op;
	uint64_t calls, counted;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	make_many();
	calls = nfsd_sim_stats(w.srv).calls;
	counted = w.lane[0].st.ops[OP_GETATTR];
	cr_assert_eq(get_many(&op, MANY), 0);
	cr_assert_eq(op.call.u.getattrs.got, MANY);
	cr_assert_eq(nfsd_sim_stats(w.srv).calls, calls + 1);
	cr_assert_eq(w.lane[0].st.ops[OP_GETATTR], counted + MANY);
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert_eq(many_attr[i].size, 100 + i);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_ops, as_many_attributes_as_fit_are_one_call)
{
	static struct sim_op op;

	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->no_priv = true;
	nfsd_sim_conf(w.srv)->client_small = true;
	sim_nfs_mounted(&w, 1);
	make_many();
	cr_assert_eq(get_many(&op, MANY), 0);
	cr_assert_gt(op.call.u.getattrs.got, 3);
	cr_assert_lt(op.call.u.getattrs.got, MANY);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_ops, attributes_of_many_files_end_with_the_one_that_is_gone)
{
	static struct sim_op op;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	make_many();
	cr_assert(nfsd_sim_unlink(w.srv, "/fd"));
	cr_assert_eq(get_many(&op, MANY), -ESTALE);
	cr_assert_eq(op.call.status, NFS4ERR_STALE);
	cr_assert_eq(op.call.u.getattrs.got, 3);
	cr_assert_eq(many_attr[2].size, 102);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_ops, attributes_of_many_files_do_not_wait_for_one_that_is_delayed)
{
	static struct sim_op op;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	make_many();
	sim_rule(&w, NFSD_SIM_STATUS, OP_GETATTR, 0, 0, NFS4ERR_DELAY);
	cr_assert_eq(get_many(&op, MANY), -EAGAIN);
	cr_assert_eq(op.call.status, NFS4ERR_DELAY);
	cr_assert_eq(op.call.u.getattrs.got, 0);
	nfsd_sim_rules_clear(w.srv);
	SIM_NFS_CLOSE(&w, 0);
}

/* ---- data ---- */

static struct sim_op ops[12];

static void awkward_sizes(bool write_pad)
{
	static struct sim_op op;
	struct sim_file f = {0};
	uint64_t off = 0;

	sim_nfs_open(&w, NULL);
	nfsd_sim_conf(w.srv)->write_pad = write_pad;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
	for (uint32_t len = 1; len < 66000; len = len < 20 ? len + 1 : len * 2 - 7) {
		uint32_t n = len < 65536 ? len : 65536;

		cr_assert_eq(sim_write(&w, &f, off, n, UNSTABLE4, NULL), 0);
		cr_assert_eq(sim_read(&w, &op, &f, off, n), 0);
		cr_assert(op.len == n && sim_is_pattern(op.data, off, n), "%u", n);
		off += n;
	}
	for (uint32_t n = 3700; n < 4100; n++) {
		cr_assert_eq(sim_write(&w, &f, n, n, FILE_SYNC4, NULL), 0);
		cr_assert_eq(sim_read(&w, &op, &f, n, n), 0);
		cr_assert(op.len == n && sim_is_pattern(op.data, n, n), "%u", n);
	}
	cr_assert_eq(sim_close(&w, &f), 0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_ops, data_of_every_awkward_size)
{
	awkward_sizes(false);
}

Test(nfs4_ops, data_of_every_awkward_size_from_a_server_that_writes_the_round_up)
{
	awkward_sizes(true);
}

Test(nfs4_ops, calls_in_parallel_with_replies_in_any_order)
{
	struct nfsd_sim_rule hold = {.act = NFSD_SIM_HOLD, .op = OP_READ};
	static struct sim_op op;
	struct sim_file f = {0};

	sim_nfs_open(&w, NULL);
	w.conf.rdma.data_cnt = 16;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
	for (uint32_t i = 0; i < 12; i++)
		cr_assert_eq(sim_write(&w, &f, i * 10000, 10000, UNSTABLE4, NULL), 0);
	nfsd_sim_rule(w.srv, &hold);
	for (uint32_t i = 0; i < 12; i++) {
		struct nfs4_op_read *o = &ops[i].call.u.read;

		cr_assert(sim_op_get(&w, 0, &ops[i]));
		o->fh = &f.fh;
		o->state = &f.state;
		o->offset = i * 10000;
		o->count = 10000;
		o->sink = (struct rpcrdma_span){ops[i].buf, ops[i].buf->data, 10000};
		ops[i].len = 1;
		sim_op_start(&ops[i], nfs4_read);
	}
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_held(w.srv), 12);
	nfsd_sim_release(w.srv, true);
	for (uint32_t i = 0; i < 12; i++) {
		cr_assert(sim_nfs_until(&w, &ops[i].done_cnt, 1, SIM_SEC));
		cr_assert(ops[i].len == 10000 && sim_is_pattern(ops[i].data, i * 10000, 10000));
	}
	nfsd_sim_rules_clear(w.srv);
	cr_assert_eq(sim_commit(&w, &f, NULL), 0);
	cr_assert_eq(sim_close(&w, &f), 0);
	(void)op;
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_ops, the_verifier_tells_what_was_lost)
{
	struct nfs4_verf v1, v2, v3;
	struct sim_file f = {0};

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
	cr_assert_eq(sim_write(&w, &f, 0, 10000, UNSTABLE4, &v1), 0);
	nfsd_sim_new_verifier(w.srv);
	cr_assert_eq(sim_commit(&w, &f, &v2), 0);
	cr_assert_neq(memcmp(&v1, &v2, 8), 0);
	cr_assert_eq(nfsd_sim_peek(w.srv, "/f", 0, NULL, 0), 0, "the data is lost");
	cr_assert_eq(sim_write(&w, &f, 0, 10000, UNSTABLE4, &v3), 0);
	cr_assert_eq(memcmp(&v2, &v3, 8), 0);
	cr_assert_eq(sim_commit(&w, &f, &v2), 0);
	cr_assert_eq(nfsd_sim_peek(w.srv, "/f", 0, NULL, 0), 10000);
	cr_assert_eq(sim_close(&w, &f), 0);
	SIM_NFS_CLOSE(&w, 0);
}

/* A large directory in many replies: every name once. */
static unsigned int names;
static uint64_t last_cookie;

static bool count_name(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	names++;
	last_cookie = de->cookie;
	return true;
}

Test(nfs4_ops, a_large_directory_in_many_replies)
{
	static struct sim_op op;

	sim_nfs_open(&w, NULL);
	for (int i = 0; i < 1000; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/a-file-with-a-name-of-some-length-%d", i);
		nfsd_sim_mknod(w.srv, path, NFSD_SIM_REG, 0644, "x", 1);
	}
	sim_nfs_mounted(&w, 1);
	for (int plus = 0; plus < 2; plus++) {
		bool eof = false;

		names = 0;
		last_cookie = 0;
		while (!eof) {
			struct nfs4_op_readdir *o = &op.call.u.readdir;
			unsigned int before = names;

			cr_assert(sim_op_get(&w, 0, &op));
			o->fh = &nfs4_client_fsinfo(w.cl)->root;
			o->cookie = last_cookie;
			o->maxcount = 8000;
			o->sink = (struct rpcrdma_span){op.buf, op.buf->data, 9000};
			o->plus = plus;
			o->entry = count_name;
			cr_assert_eq(sim_op_run(&op, nfs4_readdir), 0);
			cr_assert_gt(names, before);
			eof = o->eof;
		}
		cr_assert_eq(names, 1000);
	}
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_ops, the_callers_identity_decides)
{
	struct sim_file f = {0};

	sim_nfs_open(&w, NULL);
	nfsd_sim_mknod(w.srv, "/closed", NFSD_SIM_DIR, 0700, NULL, 0);
	sim_nfs_mounted(&w, 1);
	w.cred.uid = 0;
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
	cr_assert_eq(sim_close(&w, &f), 0);
	w.cred.uid = 1001;
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), -EACCES);
	w.cred.uid = 0;
	SIM_NFS_CLOSE(&w, 0);
}

/* What a RENAME or LINK that fails with it may be its own doing. */
Test(nfs4_ops, who_asks_anew_is_told)
{
	static const struct nfs4_str name = {"l", 1};
	static struct sim_file file;
	static struct sim_op op;

	for (int lost = 0; lost < 2; lost++) {
		const struct nfs4_fh *root;

		sim_nfs_open(&w, NULL);
		sim_nfs_mounted(&w, 1);
		root = &nfs4_client_fsinfo(w.cl)->root;
		cr_assert_eq(sim_create(&w, root, "f", &file), 0);
		nfsd_sim_rule(w.srv,
			&(struct nfsd_sim_rule){.act = lost ? NFSD_SIM_LOSE : NFSD_SIM_CUT_AFTER,
				.op = OP_LINK,
				.count = 1});
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.link = (struct nfs4_op_link){&file.fh, root, name};
		sim_op_start(&op, nfs4_link);
		sim_nfs_run(&w, SIM_MSEC);
		if (lost)
			nfsd_sim_restart(w.srv, 10 * SIM_SEC, true);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 1000 * SIM_SEC));
		cr_assert_eq(op.err, lost ? -EEXIST : 0, "the same again: %d", op.err);
		cr_assert_eq(op.call.resent, lost);
		cr_assert_eq(sim_close(&w, &file), 0);
		SIM_NFS_CLOSE(&w, 0);
	}
}

static void put_at_end(struct sim_op *op, struct sim_file *f, uint64_t off)
{
	cr_assert(sim_op_get(&w, 0, op));
	memset(op->buf->data, 'x', 100);
	op->call.u.write = (struct nfs4_op_write){
		.fh = &f->fh,
		.state = &f->state,
		.offset = off,
		.data = {{op->buf, op->buf->data, 100}},
		.data_cnt = 1,
		.stable = FILE_SYNC4,
		.at_end = true,
	};
}

Test(nfs4_ops, a_write_to_an_end_that_is_elsewhere_changes_nothing)
{
	static struct sim_file f;
	static struct sim_op op;

	sim_nfs_open(&w, NULL);
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
	put_at_end(&op, &f, 0);
	cr_assert_eq(sim_op_run(&op, nfs4_write), 0);
	put_at_end(&op, &f, 50);
	cr_assert_eq(sim_op_run(&op, nfs4_write), -EIO);
	cr_assert_eq(op.call.status, NFS4ERR_NOT_SAME);
	cr_assert_not(op.call.u.write.unsure);
	cr_assert_eq(nfsd_sim_peek(w.srv, "/f", 0, NULL, 0), 100);
	put_at_end(&op, &f, 100);
	cr_assert_eq(sim_op_run(&op, nfs4_write), 0);
	cr_assert_eq(nfsd_sim_peek(w.srv, "/f", 0, NULL, 0), 200);
	cr_assert_eq(sim_close(&w, &f), 0);
	SIM_NFS_CLOSE(&w, 0);
}

/* The replay cache answers; where it is gone it must be said. */
Test(nfs4_ops, a_write_to_the_end_whose_reply_is_lost_is_executed_once)
{
	static struct sim_file f;
	static struct sim_op op;

	for (int lost = 0; lost < 2; lost++) {
		sim_nfs_open(&w, NULL);
		sim_nfs_mounted(&w, 1);
		cr_assert_eq(sim_create(&w, &nfs4_client_fsinfo(w.cl)->root, "f", &f), 0);
		nfsd_sim_rule(w.srv,
			&(struct nfsd_sim_rule){.act = lost ? NFSD_SIM_LOSE : NFSD_SIM_CUT_AFTER,
				.op = OP_WRITE,
				.count = 1});
		put_at_end(&op, &f, 0);
		sim_op_start(&op, nfs4_write);
		sim_nfs_run(&w, SIM_MSEC);
		if (lost)
			nfsd_sim_restart(w.srv, 10 * SIM_SEC, false);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 1000 * SIM_SEC));
		cr_assert_eq(op.err, lost ? -EIO : 0, "%d", op.err);
		cr_assert_eq(op.call.status, lost ? NFS4ERR_NOT_SAME : NFS4_OK);
		cr_assert_eq(op.call.u.write.unsure, lost);
		cr_assert_eq(nfsd_sim_peek(w.srv, "/f", 0, NULL, 0), 100);
		cr_assert_eq(sim_close(&w, &f), 0);
		SIM_NFS_CLOSE(&w, 0);
	}
}

/*
 * An exclusive create that was executed, its times set and all, by a server that then forgot the
 * session: the same COMPOUND finds the file, and has to know whose it is.
 */
Test(nfs4_ops, what_was_created_exclusively_is_ours_after_a_restart)
{
	static struct sim_file f;
	static struct sim_op op;

	for (int others = 0; others < 2; others++) {
		struct nfs4_op_open *o = &op.call.u.open;

		sim_nfs_open(&w, NULL);
		sim_nfs_mounted(&w, 1);
		nfsd_sim_rule(w.srv,
			&(struct nfsd_sim_rule){.act = NFSD_SIM_LOSE, .op = OP_OPEN, .count = 1});
		cr_assert(sim_op_get(&w, 0, &op));
		o->dir = &nfs4_client_fsinfo(w.cl)->root;
		o->name = (struct nfs4_str){"x", 1};
		o->share_access = OPEN4_SHARE_ACCESS_WRITE;
		o->owner = nfs4_new_owner(w.cl);
		o->create = true;
		o->sattr.set = NFS4_ATTR_MODE;
		o->sattr.mode = 0600;
		nfs4_make_exclusive(w.cl, o);
		sim_op_start(&op, nfs4_open);
		sim_nfs_run(&w, SIM_MSEC);
		cr_assert(nfsd_sim_exists(w.srv, "/x"));
		if (others) {
			cr_assert(nfsd_sim_unlink(w.srv, "/x"));
			nfsd_sim_mknod(w.srv, "/x", NFSD_SIM_REG, 0600, NULL, 0);
		}
		nfsd_sim_restart(w.srv, 10 * SIM_SEC, false);
		cr_assert(sim_nfs_until(&w, &op.done_cnt, 1, 1000 * SIM_SEC));
		cr_assert(op.call.resent);
		cr_assert_eq(op.err, others ? -EEXIST : 0, "%d", op.err);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), others ? 0 : 1);
		if (!others) {
			cr_assert(o->stamped);
			f.fh = o->fh;
			nfs4_share_open(&f.state, &op.call);
			cr_assert_eq(sim_close(&w, &f), 0);
		}
		SIM_NFS_CLOSE(&w, 0);
	}
}
