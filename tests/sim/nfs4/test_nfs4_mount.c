/* SPDX-License-Identifier: BSD-3-Clause */
/* From a path to the root of the mount; what is said when there is none. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim_nfs.h"

static struct sim_nfs w;

static void up(const struct nfsd_sim_conf *sconf)
{
	sim_nfs_open(&w, sconf);
	nfsd_sim_mknod(w.srv, "/export", NFSD_SIM_DIR, 0755, NULL, 0);
	nfsd_sim_mknod(w.srv, "/export/a", NFSD_SIM_DIR, 0755, NULL, 0);
	nfsd_sim_mknod(w.srv, "/export/a/b", NFSD_SIM_DIR, 0755, NULL, 0);
	nfsd_sim_mknod(w.srv, "/export/file", NFSD_SIM_REG, 0644, "x", 1);
	nfsd_sim_mknod(w.srv, "/export/link", NFSD_SIM_LNK, 0777, "a", 1);
	sim_nfs_client(&w, 1);
	cr_assert(sim_nfs_up(&w));
}

static void fails(const char *path, int err, const char *text)
{
	cr_assert_not(sim_nfs_mount(&w, path), "%s", path);
	cr_assert_eq(w.mount_failure.err, err, "%s: %d", path, w.mount_failure.err);
	cr_assert_str_eq(w.mount_failure.step, "export path");
	cr_assert(strstr(w.mount_failure.text, text), "%s", w.mount_failure.text);
	cr_assert_null(strchr(w.mount_failure.text, '\n'));
}

Test(nfs4_mount, path_is_looked_up_in_one_compound)
{
	const struct nfs4_fsinfo *fi;
	uint64_t seqs;

	up(NULL);
	seqs = w.lane[0].st.ops[OP_SEQUENCE];
	cr_assert(sim_nfs_mount(&w, "/export/a/b"), "%s", w.mount_failure.text);
	cr_assert_eq(w.lane[0].st.ops[OP_LOOKUP], 3);
	cr_assert_eq(w.lane[0].st.ops[OP_SEQUENCE] - seqs, 3, "walk, facts, root");
	fi = nfs4_client_fsinfo(w.cl);
	cr_assert_gt(fi->root.len, 0);
	cr_assert_eq(fi->root_attr.type, NF4DIR);
	cr_assert_neq(fi->fs.supported[0], 0);
	cr_assert_neq(fi->fs.supported[1], 0);
	cr_assert_gt(fi->lease_s, 0);
	cr_assert_eq(fi->minor, 2);
	cr_assert_leq(fi->fs.maxname, 255);
	cr_assert_gt(fi->fs.maxfilesize, 1ull << 32);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_mount, root_of_the_server_can_be_mounted)
{
	up(NULL);
	cr_assert(sim_nfs_mount(&w, "/"));
	cr_assert(sim_nfs_mount(&w, ""));
	cr_assert(sim_nfs_mount(&w, "//export/./a/"));
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_mount, path_longer_than_one_compound_is_walked_in_lots)
{
	char path[2000] = "";
	struct nfsd_sim_conf sconf;

	for (unsigned int ops = 9; ops <= 50; ops += 41) {
		nfsd_sim_conf_default(&sconf);
		sconf.max_ops = ops;
		up(&sconf);
		path[0] = '\0';
		for (int i = 0; i < 90; i++) {
			snprintf(path + strlen(path), sizeof(path) - strlen(path), "/directory%d",
				i);
			nfsd_sim_mknod(w.srv, path, NFSD_SIM_DIR, 0755, NULL, 0);
		}
		cr_assert(sim_nfs_mount(&w, path), "%s", w.mount_failure.text);
		cr_assert_eq(w.lane[0].st.ops[OP_LOOKUP], 90);
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/missing/more");
		cr_assert_not(sim_nfs_mount(&w, path));
		cr_assert_eq(w.mount_failure.err, ENOENT);
		SIM_NFS_CLOSE(&w, 0);
	}
}

Test(nfs4_mount, failures_name_the_component_and_what_to_check)
{
	up(NULL);
	fails("/nothing/below", ENOENT, "/nothing does not exist on the server or is not exported");
	fails("/nothing/below", ENOENT, "exportfs -v");
	fails("/export/a/c/d", ENOENT, "/export/a/c does not exist");
	fails("/export/file", ENOTDIR, "/export/file is not a directory");
	fails("/export/file/x", ENOTDIR, "/export/file/x is not in a directory");
	fails("/export/../etc", EINVAL, "\"..\"");
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_mount, what_lies_elsewhere_is_served_since_no_referral_is_followed)
{
	struct nfsd_sim_conf sconf;
	struct sim_nfs_call c = {0};

	nfsd_sim_conf_default(&sconf);
	sconf.refers = "a";
	up(&sconf);
	cr_assert(sim_nfs_mount(&w, "/export/a/b"), "%s", w.mount_failure.text);
	cr_assert(sim_nfs_mount(&w, "/export"), "%s", w.mount_failure.text);
	cr_assert_eq(sim_nfs_lookup(&w, 0, &c, "a"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	SIM_NFS_CLOSE(&w, 0);
}

Test(nfs4_mount, statuses_of_the_walk_have_messages_of_their_own)
{
	static const struct {
		uint32_t status;
		int err;
		const char *text;
	} rows[] = {
		{NFS4ERR_ACCESS, EACCES, "permission denied"},
		{NFS4ERR_PERM, EACCES, "permission denied"},
		{NFS4ERR_WRONGSEC, EPERM, "sec="},
		{NFS4ERR_MOVED, EREMOTE, "referral"},
		{NFS4ERR_SERVERFAULT, EREMOTEIO, "NFS4ERR_SERVERFAULT"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		up(NULL);
		nfsd_sim_rule(w.srv,
			&(struct nfsd_sim_rule){
				.act = NFSD_SIM_STATUS, .op = OP_LOOKUP, .arg = rows[i].status});
		fails("/export", rows[i].err, rows[i].text);
		SIM_NFS_CLOSE(&w, 0);
	}
}

Test(nfs4_mount, io_sizes_follow_server_session_and_options)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.maxread = 32768;
	sconf.maxwrite = 16384;
	up(&sconf);
	cr_assert(sim_nfs_mount(&w, "/"));
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->fs.rsize, 32768);
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->fs.wsize, 16384);
	SIM_NFS_CLOSE(&w, 0);

	sim_nfs_open(&w, NULL);
	w.conf.rsize = 10000;
	w.conf.wsize = 4096;
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->fs.rsize, 8192);
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->fs.wsize, 4096);
	SIM_NFS_CLOSE(&w, 0);
}

static unsigned int ended;
static int ended_err;

static void mount_ended(void *ctx, const struct nfs4_failure *f)
{
	ended++;
	ended_err = f ? f->err : 0;
}

Test(nfs4_mount, stop_in_the_middle_ends_it_with_a_failure)
{
	up(NULL);
	nfsd_sim_rule(
		w.srv, &(struct nfsd_sim_rule){
			       .act = NFSD_SIM_STATUS, .op = OP_LOOKUP, .arg = NFS4ERR_DELAY});
	nfs4_mount_path(w.lane[0].sess, "/export", &w.cred, mount_ended, NULL);
	sim_nfs_run(&w, 30 * SIM_SEC);
	cr_assert_eq(ended, 0);
	sim_nfs_stop(&w);
	cr_assert_eq(ended, 1);
	cr_assert_eq(ended_err, ESHUTDOWN);
	SIM_NFS_CLOSE(&w, 0);
}
