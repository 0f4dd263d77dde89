/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reply sizes: with the longest filehandles, owners and names that there are,
 * no reply is longer than its operation said (sim_ops.c and the judge look at
 * each), and none that must be cached is longer than the session caches.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim_ops.h"

static struct sim_nfs w;
static struct sim_op op;

static void open_longest(unsigned int minor, uint32_t inline_size)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.longest = true;
	sconf.minor_max = minor;
	sconf.inline_size = inline_size;
	sim_nfs_open(&w, &sconf);
	w.conf.rdma.inline_size = inline_size;
	sim_nfs_mounted(&w, 1);
}

Test(nfs4_bounds, every_operation_with_the_longest_replies)
{
	for (unsigned int minor = 1; minor <= 2; minor++) {
		open_longest(minor, 4096);
		cr_assert(sim_script(&w, minor == 2), "%s", fab_sim_failure());
		SIM_NFS_CLOSE(&w, 0);
	}
}

static void open_with(uint32_t max_ops, uint32_t max_cached, bool longest)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.max_ops = max_ops;
	sconf.max_cached = max_cached;
	sconf.longest = longest;
	sim_nfs_open(&w, &sconf);
	sim_nfs_mounted(&w, 1);
}

/* Makes a file exclusively; true: its directory's attributes came with it. */
static bool make(const char *name, struct sim_file *f)
{
	struct nfs4_op_open *o = &op.call.u.open;

	cr_assert(sim_op_get(&w, 0, &op));
	*o = (struct nfs4_op_open){
		.dir = &nfs4_client_fsinfo(w.cl)->root,
		.name = {name, (uint32_t)strlen(name)},
		.share_access = OPEN4_SHARE_ACCESS_BOTH,
		.owner = nfs4_new_owner(w.cl),
		.create = true,
		.sattr = {.set = NFS4_ATTR_MODE, .mode = 0600},
	};
	nfs4_make_exclusive(w.cl, o);
	cr_assert_eq(sim_op_run(&op, nfs4_open), 0, "%s: %d", name, op.err);
	f->fh = o->fh;
	nfs4_share_open(&f->state, &op.call);
	cr_assert(o->stamped);
	cr_assert_neq(o->fh.len, 0);
	return o->dir_attr.valid != 0;
}

Test(nfs4_bounds, few_operations_in_a_compound_are_enough)
{
	for (uint32_t max = 8; max <= 11; max++) {
		struct sim_file f = {0}, g = {0};

		open_with(max, 2048, false);
		cr_assert_eq(make("f", &f), max >= 10, "%u", max);
		cr_assert_neq(op.call.u.open.attr.valid, 0);
		cr_assert_eq(sim_close(&w, &f), 0);
		/* Executed before a session was lost: LOOKUP and VERIFY more. */
		sim_rule(&w, NFSD_SIM_CUT_AFTER, OP_OPEN, 0, 1, 0);
		sim_rule(&w, NFSD_SIM_STATUS, OP_SEQUENCE, 1, 1, NFS4ERR_BADSESSION);
		cr_assert_eq(make("g", &g), max >= 11, "%u", max);
		cr_assert(op.call.u.open.again);
		cr_assert_eq(sim_close(&w, &g), 0);
		cr_assert(sim_script(&w, true), "%u: %s", max, fab_sim_failure());
		SIM_NFS_CLOSE(&w, 1);
	}
}

Test(nfs4_bounds, replies_are_no_longer_than_what_the_server_keeps)
{
	static const uint32_t max[] = {448, 512, 640, 800, 1032};

	for (int i = 0; i < 5; i++) {
		struct sim_file f = {0};
		struct nfs4_fh dir;

		open_with(50, max[i], true);
		make("f", &f);
		cr_assert_eq(sim_mkdir(&w, &nfs4_client_fsinfo(w.cl)->root, "d", &dir), 0);
		cr_assert_eq(sim_close(&w, &f), 0);
		/* Not even of the attributes after it: some servers look at the whole before. */
		cr_assert_eq(nfsd_sim_stats(w.srv).too_big_to_cache, 0, "%u", max[i]);
		SIM_NFS_CLOSE(&w, 0);
	}
}

static unsigned int entries;

static bool an_entry(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	cr_assert_eq(de->name.len, 255);
	entries++;
	return true;
}

Test(nfs4_bounds, directories_of_the_longest_names)
{
	char path[300] = "/";

	open_longest(2, 4096);
	memset(path + 1, 'n', 255);
	for (int i = 0; i < 40; i++) {
		snprintf(path + 1 + 252, 4, "%03d", i);
		nfsd_sim_mknod(w.srv, path, NFSD_SIM_REG, 0666, NULL, 0);
	}
	for (uint32_t max = 2000; max < 50000; max += 1777) {
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.readdir.fh = &nfs4_client_fsinfo(w.cl)->root;
		op.call.u.readdir.maxcount = max;
		op.call.u.readdir.sink = (struct rpcrdma_span){op.buf, op.buf->data, max + 512};
		op.call.u.readdir.plus = true;
		op.call.u.readdir.entry = an_entry;
		cr_assert_eq(sim_op_run(&op, nfs4_readdir), 0);
	}
	cr_assert_gt(entries, 40);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_bounds, names_of_255_bytes)
{
	char name[256];
	struct sim_nfs_call c = {0};
	struct nfs4_str n = {name, 255};

	memset(name, 'n', 255);
	name[255] = 0;
	open_longest(2, 4096);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.create.dir = &nfs4_client_fsinfo(w.cl)->root;
	op.call.u.create.name = n;
	op.call.u.create.type = NF4DIR;
	op.call.u.create.sattr.set = NFS4_ATTR_MODE;
	op.call.u.create.sattr.mode = 0755;
	cr_assert_eq(sim_op_run(&op, nfs4_create), 0);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.lookup.dir = &nfs4_client_fsinfo(w.cl)->root;
	op.call.u.lookup.name = n;
	cr_assert_eq(sim_op_run(&op, nfs4_lookup), 0);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.remove.dir = &nfs4_client_fsinfo(w.cl)->root;
	op.call.u.remove.name = n;
	cr_assert_eq(sim_op_run(&op, nfs4_remove), 0);
	cr_assert_eq(sim_nfs_getattr(&w, 0, &c), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	SIM_NFS_CLOSE(&w, 0);
}

/* A server without private data receives 1024 bytes; the longest RENAME has more. */
Test(nfs4_bounds, the_longest_calls_need_no_data_buffer)
{
	char from[257] = "/", to[256] = "";
	struct nfsd_sim_conf sconf;
	struct nfs4_fh dir;

	memset(from + 1, 'f', 255);
	memset(to, 't', 255);
	nfsd_sim_conf_default(&sconf);
	sconf.longest = true;
	sconf.no_priv = true;
	sim_nfs_open(&w, &sconf);
	for (uint32_t i = 0; i < RPC_MAX_GROUPS; i++)
		w.cred.gids[i] = 1000 + i;
	w.cred.gids_cnt = RPC_MAX_GROUPS;
	rpc_set_machine_name("a-host-with-a-name-of-sixty-three-characters-which-is-the-longest");
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(sim_mkdir(&w, &nfs4_client_fsinfo(w.cl)->root, "d", &dir), 0);
	cr_assert_neq(nfsd_sim_mknod(w.srv, from, NFSD_SIM_REG, 0644, NULL, 0), 0);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.rename = (struct nfs4_op_rename){
		.from_dir = &nfs4_client_fsinfo(w.cl)->root,
		.to_dir = &dir,
		.from = {from + 1, 255},
		.to = {to, 255},
	};
	cr_assert_eq(sim_op_run(&op, nfs4_rename), 0);
	cr_assert_eq(w.lane[0].st.long_calls, 1);
	SIM_NFS_CLOSE(&w, 0);
}
