/* SPDX-License-Identifier: BSD-3-Clause */
/* A file system below that of the root, whose facts are others. */
#include <criterion/criterion.h>
#include <errno.h>

#include "nfsd_sim.h"
#include "sim_ops.h"

static struct sim_nfs w;
static const struct nfs4_fs *below;
static struct nfs4_fh dir;

static const struct nfsd_sim_fs facts = {
	.maxread = 8192,
	.maxwrite = 4096,
	.maxname = 100,
	.maxfilesize = 1ull << 40,
	.supported_mask = {1u << FATTR4_ACL},
	.clone_block = 65536,
	.case_insensitive = true,
};

/* The root's file system lacks SPACE_USED, the other ACL. */
static void begin(void)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.supported_mask[1] = 1u << (FATTR4_SPACE_USED - 32);
	sim_nfs_open(&w, &sconf);
	nfsd_sim_mknod(w.srv, "/vol", NFSD_SIM_DIR, 0777, NULL, 0);
	nfsd_sim_below(w.srv, "/vol", &facts);
	sim_nfs_mounted(&w, 1);
}

static void meet(void)
{
	static struct sim_op op;
	struct nfs4_attr attr;

	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.lookup.dir = &nfs4_client_fsinfo(w.cl)->root;
	op.call.u.lookup.name = (struct nfs4_str){"vol", 3};
	cr_assert_eq(sim_op_run(&op, nfs4_lookup), 0);
	dir = op.call.u.lookup.fh;
	attr = op.call.u.lookup.attr;
	cr_assert_null(nfs4_fs_find(w.cl, attr.fsid_major, attr.fsid_minor));
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.facts.fh = &dir;
	cr_assert_eq(sim_op_run(&op, nfs4_fs_facts), 0);
	below = nfs4_fs_learn(w.cl, &op.call.u.facts.fs);
	cr_assert_not_null(below);
	cr_assert_eq(nfs4_fs_find(w.cl, attr.fsid_major, attr.fsid_minor), below);
	/* Once more: it is the same. */
	cr_assert_eq(nfs4_fs_learn(w.cl, &op.call.u.facts.fs), below);
}

Test(nfs4_fs, facts_of_another_file_system_are_learned)
{
	const struct nfs4_fs *root;

	begin();
	meet();
	root = &nfs4_client_fsinfo(w.cl)->fs;
	cr_assert_eq(nfs4_fs_find(w.cl, root->fsid_major, root->fsid_minor), root);
	cr_assert_eq(nfs4_fs_learn(w.cl, root), root);
	cr_expect_eq(below->rsize, 8192);
	cr_expect_eq(below->wsize, 4096);
	cr_expect_eq(below->maxname, 100);
	cr_expect_eq(below->maxfilesize, 1ull << 40);
	cr_expect_eq(below->clone_blksize, 65536);
	cr_expect(below->case_insensitive);
	cr_expect_not(below->supported[0] & 1u << FATTR4_ACL);
	cr_expect(root->supported[0] & 1u << FATTR4_ACL);
	cr_expect_gt(root->rsize, 8192);
	cr_expect_not(root->case_insensitive);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_fs, calls_ask_for_what_the_file_system_has)
{
	static struct sim_op op;

	begin();
	meet();
	for (int i = 0; i < 2; i++) {
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.getattr.fh = &dir;
		op.call.fs = i ? below : NULL;
		cr_assert_eq(sim_op_run(&op, nfs4_getattr), 0);
		cr_expect_eq(op.call.u.getattr.attr.valid & NFS4_ATTR_SPACE_USED,
			i ? NFS4_ATTR_SPACE_USED : 0);
	}
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.getacl.fh = &dir;
	op.call.fs = below;
	op.call.u.getacl.sink =
		(struct rpcrdma_span){.buf = op.buf, .p = op.buf->data, .len = 8192};
	cr_expect_eq(sim_op_run(&op, nfs4_getacl), -EOPNOTSUPP);
	SIM_NFS_CLOSE(&w, 0);
}

/* As many as a server likes: what is behind the end of the table is not known, that is all. */
Test(nfs4_fs, there_may_be_any_number_of_them)
{
	struct nfs4_fs fs = {.maxname = 10};
	uint64_t i;

	begin();
	for (i = 1; nfs4_fs_learn(w.cl, &fs); i++) {
		fs.fsid_major = i * 0x10001;
		cr_assert_lt(i, 100000);
	}
	cr_expect_gt(i, 1000);
	cr_expect_null(nfs4_fs_find(w.cl, fs.fsid_major, 0));
	cr_expect_eq(nfs4_fs_find(w.cl, 5 * 0x10001, 0)->fsid_major, 5 * 0x10001);
	SIM_NFS_CLOSE(&w, 0);
}
