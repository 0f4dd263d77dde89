/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Servers that do not do as Linux' nfsd does, as far as no other file has the
 * subject: what an ACL may deny, which attributes there are.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "deleg_rig.h"

/* ---- attributes that an ACL denies ---- */

Test(nfs4_servers, file_is_closed_though_its_attributes_are_denied, .init = sim_log_count)
{
	static struct sim_op op;
	struct nfs4_lockowner lo;

	for (int i = 0; i < 3; i++) {
		deleg_begin(1, 0);
		cr_assert_eq(sim_hopen(&h, 0, BOTH, false), 0);
		/* With locks, which a server may want back before: close_wants_unlock. */
		nfsd_sim_conf(w.srv)->close_wants_unlock = i == 1;
		nfs4_lockowner_init(&lo, w.cl);
		if (i == 1)
			cr_assert_eq(sim_brlock(&w, 0, &h.f, &lo, 0, 10, true), 0);
		nfsd_sim_deny_attrs(w.srv, "/f", true);
		if (i == 2) /* delayed, not refused: it goes again as it was */
			sim_rule(&w, NFSD_SIM_STATUS, OP_GETATTR, 0, 1, NFS4ERR_DELAY);
		cr_assert(sim_op_get(&w, 0, &op));
		op.call.u.close.fh = &h.f.fh;
		op.call.u.close.state = &h.f.state;
		cr_assert_eq(sim_op_run(&op, nfs4_close), 0, "%d", i);
		cr_assert_eq(op.call.u.close.attr.valid, 0);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
		deleg_end(0);
	}
}

Test(nfs4_servers, delegation_is_returned_though_attributes_are_denied, .init = sim_log_count)
{
	deleg_begin_idle(1, NFSD_SIM_DELEG_READ);
	nfsd_sim_deny_attrs(w.srv, "/f", true);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	deleg_end(0);
}

Test(nfs4_servers, what_nobody_wants_is_returned_without_attributes, .init = sim_log_count)
{
	struct sim_held_op ho = {.refuses = true};

	deleg_begin(2, NFSD_SIM_DELEG_READ);
	nfsd_sim_deny_attrs(w.srv, "/f", true);
	cr_assert(sim_open_start(&ho, &h, 1, READ, true));
	cr_assert_eq(sim_held_wait(&ho), 0);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_returns, 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
	/* And at the end of the mount. */
	deleg_begin_idle(1, NFSD_SIM_DELEG_READ);
	nfsd_sim_deny_attrs(w.srv, "/f", true);
	sim_nfs_stop(&w);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	nfs4_deleg_forget(&h.deleg);
	deleg_end(0);
}

Test(nfs4_servers, names_are_found_in_a_directory_whose_attributes_are_denied,
	.init = sim_log_count)
{
	struct sim_nfs_call c = {0};
	static struct sim_op op;

	deleg_begin(1, 0);
	nfsd_sim_deny_attrs(w.srv, "/", true);
	cr_assert_eq(sim_nfs_lookup(&w, 0, &c, "f"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), 0);
	c = (struct sim_nfs_call){0};
	cr_assert_eq(sim_nfs_lookup(&w, 0, &c, "none"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &c), -ENOENT);
	cr_assert(sim_op_get(&w, 0, &op));
	op.call.u.access.fh = &nfs4_client_fsinfo(w.cl)->root;
	op.call.u.access.want = ACCESS4_READ;
	cr_assert_eq(sim_op_run(&op, nfs4_access), 0);
	cr_assert_eq(op.call.u.access.access, ACCESS4_READ);
	cr_assert_eq(op.call.u.access.attr.valid, 0);
	deleg_end(0);
}

/* ---- stateids that are bound to users ---- */

Test(nfs4_servers, delegation_serves_all_users, .init = sim_log_count)
{
	struct nfsd_sim_conf sconf;

	nfsd_sim_conf_default(&sconf);
	sconf.bind_princ = true;
	sim_nfs_open(&w, &sconf);
	sim_held_mounted(&w, 1, NFSD_SIM_DELEG_READ);
	sim_held_file(&w, &h, "/f");
	cr_assert_eq(sim_hopen(&h, 0, READ, true), 0);
	cr_assert_eq(h.taken, 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	w.cred.uid++;
	cr_assert(sim_hserve(&h, READ));
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).deleg_io, 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	deleg_end(0);
}

/* ---- attributes of an exclusive create ---- */

#define WORD1_MODE       (1u << (33 - 32))
#define WORD2_MODE_UMASK (1u << (81 - 64))

Test(nfs4_servers, exclusive_create_sets_what_may_be_set_and_the_rest_after_it,
	.init = sim_log_count)
{
	static const struct {
		uint32_t word1, word2;
		bool lose; /* the SETATTR is refused: what is left the caller must know */
	} rows[] = {
		{0, 0, false},
		{0, WORD2_MODE_UMASK, false},
		{WORD1_MODE, 0, false},
		{WORD1_MODE, WORD2_MODE_UMASK, false},
		{WORD1_MODE, WORD2_MODE_UMASK, true},
		{0, 0, true},
	};
	static struct sim_op op;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nfs4_op_open *o = &op.call.u.open;
		struct nfsd_sim_conf sconf;
		struct sim_file f = {0};
		bool sends_mode = !rows[i].word1 || !rows[i].word2;

		nfsd_sim_conf_default(&sconf);
		sconf.excl_mask[1] = rows[i].word1;
		sconf.excl_mask[2] = rows[i].word2;
		sim_nfs_open(&w, &sconf);
		sim_nfs_mounted(&w, 1);
		cr_assert_neq(nfs4_client_fsinfo(w.cl)->fs.exclcreat[0], 0);
		if (rows[i].lose)
			sim_rule(&w, NFSD_SIM_STATUS, OP_SETATTR, 0, 1, NFS4ERR_PERM);
		cr_assert(sim_op_get(&w, 0, &op));
		*o = (struct nfs4_op_open){
			.dir = &nfs4_client_fsinfo(w.cl)->root,
			.name = {"x", 1},
			.share_access = BOTH,
			.owner = nfs4_new_owner(w.cl),
			.create = true,
			.sattr = {.set = NFS4_ATTR_MODE,
				.mode = 0666,
				.umask = 027,
				.use_umask = true},
		};
		nfs4_make_exclusive(w.cl, o);
		cr_assert_eq(sim_op_run(&op, nfs4_open), 0, "%zu: %d", i, op.err);
		cr_assert_eq(o->stamped, !rows[i].lose);
		cr_assert_eq(o->mode_unset, rows[i].lose && !sends_mode, "%zu", i);
		if (!rows[i].lose)
			cr_assert_eq(o->attr.mode, 0640, "%zu: %o", i, o->attr.mode);
		f.fh = o->fh;
		nfs4_share_open(&f.state, &op.call);
		cr_assert_eq(sim_close(&w, &f), 0);
		SIM_NFS_CLOSE(&w, 0);
	}
}

/* ---- clients of other protocols ---- */

Test(nfs4_servers, file_that_others_just_close_can_be_removed, .init = sim_log_count)
{
	for (uint32_t times = 2; times <= 10; times += 8) {
		struct sim_nfs_call c = {0};
		uint64_t t0;

		deleg_begin(1, 0);
		sim_rule(&w, NFSD_SIM_STATUS, OP_REMOVE, 0, times, NFS4ERR_FILE_OPEN);
		t0 = reactor_now(w.r);
		cr_assert_eq(sim_nfs_remove(&w, 0, &c, "f"), 0);
		cr_assert_eq(sim_nfs_wait(&w, &c), times == 2 ? 0 : -EBUSY);
		cr_assert_leq(reactor_now(w.r) - t0, SIM_SEC);
		cr_assert_eq(nfsd_sim_exists(w.srv, "/f"), times != 2);
		deleg_end(0);
	}
}

/* ---- replies in the wrong place ---- */

/* As NFS-Ganesha answers a READ with a Write chunk that fails. */
Test(nfs4_servers, error_in_the_place_of_data_is_that_error, .init = sim_log_count)
{
	static struct sim_op op;
	uint64_t connects;

	deleg_begin(1, 0);
	cr_assert_eq(sim_hopen(&h, 0, BOTH, false), 0);
	cr_assert_eq(sim_write(&w, &h.f, 0, 20000, FILE_SYNC4, NULL), 0);
	nfsd_sim_conf(w.srv)->misplaces = true;
	connects = nfsd_sim_stats(w.srv).connections;
	sim_rule(&w, NFSD_SIM_STATUS, OP_READ, 0, 1, NFS4ERR_STALE);
	cr_assert_eq(sim_read(&w, &op, &h.f, 0, 20000), -ESTALE);
	cr_assert_eq(sim_read(&w, &op, &h.f, 0, 20000), 0);
	cr_assert(op.len == 20000 && sim_is_pattern(op.data, 0, op.len));
	cr_assert_eq(nfsd_sim_stats(w.srv).connections, connects);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	deleg_end(0);
}
