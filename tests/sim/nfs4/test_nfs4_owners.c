/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of owners: replies that wait for them, SETATTRs that send them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "idmap.h"
#include "sim_ops.h"

#define NOBODY 65534u
#define HERE   7000u /* u5@sim is 7005 here */

static struct sim_nfs w;
static struct sim_op op[8];
static const struct nfs4_fh *root;

/* ---- the resolver: each answer takes `latency`; 0: it never comes ---- */

static struct {
	struct reactor_timer timer;
	uint64_t latency;
	unsigned int asked;
} who;

static int to_id(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id)
{
	char rest[8] = "";
	unsigned int n;

	who.asked++;
	*ret_id = NOBODY;
	if (sscanf(name + 1, "%u@%7s", &n, rest) != 2 || strcmp(rest, "sim") ||
		*name != (kind == IDMAP_USER ? 'u' : 'g'))
		return -ENOENT;
	*ret_id = HERE + n;
	return 0;
}

static int to_name(void *ctx, enum idmap_kind kind, uint32_t id, char name[IDMAP_OUT_MAX + 1])
{
	who.asked++;
	if (id < HERE)
		return -ENOENT;
	snprintf(name, IDMAP_OUT_MAX + 1, "%c%u@sim", kind == IDMAP_USER ? 'u' : 'g', id - HERE);
	return 0;
}

static const struct idmap_resolver res = {.to_id = to_id, .to_name = to_name};

static void on_timer(struct reactor_timer *t)
{
	if (!who.latency)
		return;
	idmap_step(w.conf.idmap, reactor_now(w.r));
	reactor_timer_in(w.r, t, who.latency);
}

static void set_latency(uint64_t ns)
{
	who.latency = ns;
	reactor_timer_init(&who.timer, on_timer);
	if (ns)
		reactor_timer_in(w.r, &who.timer, ns);
}

/* Numbers at first, so that nothing is asked by the mount. */
static void open_with(unsigned int lanes)
{
	sim_nfs_open(&w, NULL);
	w.conf.idmap = idmap_new(&res, NULL, false);
	w.cred.uid = w.cred.gid = 0;
	memset(&who, 0, sizeof(who));
	sim_nfs_mounted(&w, lanes);
	root = &nfs4_client_fsinfo(w.cl)->root;
	cr_assert_eq(who.asked, 0, "a number is asked of nobody");
}

static void names(bool on)
{
	nfsd_sim_conf(w.srv)->names = on;
}

static void done_with(void)
{
	who.latency = 0;
	reactor_timer_cancel(w.r, &who.timer);
	SIM_NFS_CLOSE(&w, 0);
	/* Answers that come now have nobody to be told. */
	while (w.conf.idmap && idmap_step(w.conf.idmap, 0))
		;
	idmap_free(w.conf.idmap);
}

/* ---- operations ---- */

static void start_getattr(struct sim_op *o, unsigned int lane)
{
	cr_assert(sim_op_get(&w, lane, o));
	o->call.u.getattr.fh = root;
	sim_op_start(o, nfs4_getattr);
}

static const struct nfs4_attr *attr_of(const struct sim_op *o)
{
	return &o->call.u.getattr.attr;
}

static bool run_until(const unsigned int *cnt, uint64_t ns)
{
	return sim_nfs_until(&w, cnt, 1, ns);
}

static int chown_to(const struct nfs4_fh *fh, uint32_t set, uint32_t uid, uint32_t gid)
{
	cr_assert(sim_op_get(&w, 0, &op[7]));
	op[7].call.u.setattr.fh = fh;
	op[7].call.u.setattr.sattr.set = set;
	op[7].call.u.setattr.sattr.uid = uid;
	op[7].call.u.setattr.sattr.gid = gid;
	return sim_op_run(&op[7], nfs4_setattr);
}

static uint64_t setattrs(void)
{
	return nfsd_sim_stats(w.srv).ops[OP_SETATTR];
}

/* ---- received ---- */

Test(nfs4_owners, a_stat_never_shows_a_wrong_owner_first)
{
	open_with(1);
	names(true);
	set_latency(2 * SIM_SEC);
	start_getattr(&op[0], 0);
	cr_assert_not(run_until(&op[0].done_cnt, SIM_SEC));
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_eq(op[0].err, 0);
	cr_assert_eq(attr_of(&op[0])->valid, NFS4_ATTR_STAT);
	cr_assert_eq(attr_of(&op[0])->uid, HERE);
	cr_assert_eq(attr_of(&op[0])->gid, HERE);
	cr_assert_not(attr_of(&op[0])->owner_late || attr_of(&op[0])->owner_alien);
	cr_assert_eq(who.asked, 2);
	/* And it is known from now on. */
	who.latency = 0;
	start_getattr(&op[1], 0);
	cr_assert(run_until(&op[1].done_cnt, SIM_SEC));
	cr_assert_eq(attr_of(&op[1])->uid, HERE);
	cr_assert_eq(who.asked, 2);
	done_with();
}

Test(nfs4_owners, other_calls_go_on_meanwhile)
{
	open_with(1);
	nfsd_sim_conf(w.srv)->latency_ns = SIM_MSEC;
	names(true);
	set_latency(2 * SIM_SEC);
	/* One slot would do: who waits has none. */
	start_getattr(&op[0], 0);
	for (int i = 0; i < 100; i++) {
		cr_assert(sim_op_get(&w, 0, &op[1]));
		op[1].call.u.statfs.fh = root;
		cr_assert_eq(sim_op_run(&op[1], nfs4_statfs), 0);
	}
	cr_assert_eq(op[0].done_cnt, 0);
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_eq(attr_of(&op[0])->uid, HERE);
	done_with();
}

Test(nfs4_owners, many_calls_make_one_question)
{
	open_with(2);
	names(true);
	set_latency(SIM_SEC);
	for (unsigned int i = 0; i < 8; i++)
		start_getattr(&op[i], i % 2);
	for (unsigned int i = 0; i < 8; i++) {
		cr_assert(run_until(&op[i].done_cnt, 10 * SIM_SEC));
		cr_assert_eq(attr_of(&op[i])->uid, HERE);
		cr_assert_eq(attr_of(&op[i])->gid, HERE);
	}
	cr_assert_eq(who.asked, 2, "one for the user, one for the group");
	done_with();
}

Test(nfs4_owners, without_an_answer_it_is_nobody_in_the_end)
{
	uint64_t start;

	open_with(1);
	names(true);
	start = reactor_now(w.r);
	start_getattr(&op[0], 0);
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_geq(reactor_now(w.r) - start, IDMAP_WAIT_NS);
	cr_assert_eq(op[0].err, 0);
	cr_assert_eq(attr_of(&op[0])->uid, NOBODY);
	cr_assert_eq(attr_of(&op[0])->gid, NOBODY);
	cr_assert(attr_of(&op[0])->owner_late);
	/* The next one does not wait for the same again. */
	start = reactor_now(w.r);
	start_getattr(&op[1], 0);
	cr_assert(run_until(&op[1].done_cnt, SIM_SEC));
	cr_assert_eq(attr_of(&op[1])->uid, NOBODY);
	cr_assert(attr_of(&op[1])->owner_late);
	/* An answer that comes at last counts. */
	set_latency(SIM_MSEC);
	sim_nfs_run(&w, 10 * SIM_MSEC);
	start_getattr(&op[2], 0);
	cr_assert(run_until(&op[2].done_cnt, SIM_SEC));
	cr_assert_eq(attr_of(&op[2])->uid, HERE);
	done_with();
}

Test(nfs4_owners, a_mount_without_an_answer_works)
{
	struct nfsd_sim_conf conf;

	nfsd_sim_conf_default(&conf);
	conf.names = true;
	sim_nfs_open(&w, &conf);
	w.conf.idmap = idmap_new(&res, NULL, false);
	memset(&who, 0, sizeof(who));
	sim_nfs_mounted(&w, 1);
	cr_assert_eq(nfs4_client_fsinfo(w.cl)->root_attr.uid, NOBODY);
	done_with();
}

Test(nfs4_owners, what_is_known_not_to_be_is_nobody_at_once)
{
	open_with(1);
	nfsd_sim_conf(w.srv)->fresh_names = true; /* x...@sim */
	set_latency(SIM_MSEC);
	start_getattr(&op[0], 0);
	cr_assert(run_until(&op[0].done_cnt, SIM_SEC));
	cr_assert_eq(attr_of(&op[0])->uid, NOBODY);
	cr_assert(attr_of(&op[0])->owner_alien);
	cr_assert_not(attr_of(&op[0])->owner_late, "that is the answer");
	done_with();
}

Test(nfs4_owners, the_end_of_the_session_ends_the_waiting)
{
	open_with(2);
	names(true);
	for (unsigned int i = 0; i < 6; i++)
		start_getattr(&op[i], i % 2);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(op[0].done_cnt, 0);
	sim_nfs_stop(&w);
	for (unsigned int i = 0; i < 6; i++) {
		cr_assert_eq(op[i].done_cnt, 1);
		cr_assert_eq(op[i].err, 0, "the server has answered");
		cr_assert_eq(attr_of(&op[i])->uid, NOBODY);
		cr_assert(attr_of(&op[i])->owner_late);
	}
	cr_assert_lt(w.lane[0].stopped_ns - w.lane[0].stop_ns, SIM_SEC);
	done_with();
}

Test(nfs4_owners, an_answer_that_meets_the_end_is_no_harm)
{
	/* The answer, its message and the stop in all orders around one moment. */
	for (unsigned int us = 0; us < 40; us++) {
		open_with(1);
		names(true);
		set_latency(SIM_MSEC);
		start_getattr(&op[0], 0);
		sim_nfs_run(&w, 2 * SIM_MSEC - 20 * NSEC_PER_USEC + us * NSEC_PER_USEC);
		sim_nfs_stop(&w);
		cr_assert_eq(op[0].done_cnt, 1);
		cr_assert_eq(op[0].err, 0);
		done_with();
	}
}

Test(nfs4_owners, the_server_restarts_while_a_reply_waits)
{
	open_with(1);
	names(true);
	set_latency(2 * SIM_SEC);
	start_getattr(&op[0], 0);
	sim_nfs_run(&w, SIM_SEC);
	nfsd_sim_restart(w.srv, 0, false);
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_eq(op[0].err, 0);
	cr_assert_eq(attr_of(&op[0])->uid, HERE);
	done_with();
}

static void cut_later(struct reactor_timer *t)
{
	nfsd_sim_restart(w.srv, 0, false);
}

Test(nfs4_owners, an_open_whose_reply_waits_over_a_restart_is_reclaimed)
{
	struct reactor_timer t;
	struct sim_file f = {0};

	open_with(1);
	names(true);
	set_latency(2 * SIM_SEC);
	reactor_timer_init(&t, cut_later);
	reactor_timer_in(w.r, &t, SIM_SEC);
	cr_assert_eq(sim_create(&w, root, "f", &f), 0);
	cr_assert_eq(sim_write(&w, &f, 0, 1000, FILE_SYNC4, NULL), 0);
	cr_assert_eq(sim_close(&w, &f), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	done_with();
}

Test(nfs4_owners, a_close_does_not_wait_and_is_not_reclaimed_after_a_restart)
{
	struct sim_file f = {0};
	uint64_t start;

	open_with(1);
	cr_assert_eq(sim_create(&w, root, "f", &f), 0);
	names(true);
	start = reactor_now(w.r);
	cr_assert_eq(sim_close(&w, &f), 0);
	cr_assert_lt(reactor_now(w.r) - start, SIM_SEC);
	nfsd_sim_restart(w.srv, 0, false);
	sim_nfs_run(&w, 100 * SIM_SEC);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	done_with();
}

Test(nfs4_owners, an_open_of_a_known_file_does_not_wait_and_leaves_the_owner_to_be_asked_for)
{
	struct sim_file f = {0};
	struct nfs4_state again = {0};
	uint64_t start;

	open_with(1);
	cr_assert_eq(sim_create(&w, root, "f", &f), 0);
	names(true);
	start = reactor_now(w.r);
	cr_assert(sim_op_get(&w, 0, &op[0]));
	op[0].call.u.open.file = &f.fh;
	op[0].call.u.open.share_access = OPEN4_SHARE_ACCESS_READ;
	op[0].call.u.open.owner = nfs4_new_owner(w.cl);
	cr_assert_eq(sim_op_run(&op[0], nfs4_open), 0);
	nfs4_share_open(&again, &op[0].call);
	cr_assert_lt(reactor_now(w.r) - start, SIM_SEC);
	cr_assert_eq(op[0].call.u.open.attr.valid,
		NFS4_ATTR_STAT & ~(NFS4_ATTR_OWNER | NFS4_ATTR_GROUP | NFS4_ATTR_MODE));
	cr_assert_eq(sim_close(&w, &f), 0);
	cr_assert(sim_op_get(&w, 0, &op[0]));
	op[0].call.u.close.fh = &again.fh;
	op[0].call.u.close.state = &again;
	cr_assert_eq(sim_op_run(&op[0], nfs4_close), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	done_with();
}

/* ---- READDIR ---- */

static char seen[64][32];
static uint32_t seen_uid[64];
static bool seen_late[64];
static unsigned int seen_cnt, seen_max;

static bool entry(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	cr_assert_lt(seen_cnt, 64);
	snprintf(seen[seen_cnt], sizeof(seen[0]), "%.*s", (int)de->name.len, de->name.p);
	seen_uid[seen_cnt] = de->attr.uid;
	seen_late[seen_cnt] = de->attr.owner_late;
	return ++seen_cnt < seen_max;
}

static void start_readdir(void)
{
	struct nfs4_op_readdir *o = &op[0].call.u.readdir;

	cr_assert(sim_op_get(&w, 0, &op[0]));
	o->fh = root;
	o->maxcount = 16384;
	o->sink = (struct rpcrdma_span){op[0].buf, op[0].buf->data, 20000};
	o->plus = true;
	o->entry = entry;
	seen_cnt = 0;
	seen_max = 64;
	sim_op_start(&op[0], nfs4_readdir);
}

/* Directories d0 to d9 of users 0 to 9 of the server. */
static void make_dirs(void)
{
	struct nfs4_fh fh;
	char name[8];

	for (uint32_t i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		cr_assert_eq(sim_mkdir(&w, root, name, &fh), 0);
		cr_assert_eq(chown_to(&fh, NFS4_ATTR_OWNER, i, 0), 0);
	}
}

Test(nfs4_owners, readdir_gives_each_entry_once_and_with_its_owner)
{
	open_with(1);
	make_dirs();
	names(true);
	set_latency(100 * SIM_MSEC);
	/* u0 and g0 are known when the first entries come, the others are not. */
	start_getattr(&op[1], 0);
	cr_assert(run_until(&op[1].done_cnt, 10 * SIM_SEC));
	start_readdir();
	sim_nfs_run(&w, 50 * SIM_MSEC);
	cr_assert_eq(op[0].done_cnt, 0);
	cr_assert_geq(seen_cnt, 1);
	cr_assert_lt(seen_cnt, 10);
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_eq(op[0].err, 0);
	cr_assert(op[0].call.u.readdir.eof);
	cr_assert_eq(seen_cnt, 10);
	for (unsigned int i = 0; i < 10; i++) {
		cr_assert_eq(seen[i][0], 'd');
		cr_assert_eq(seen_uid[i], HERE + (uint32_t)(seen[i][1] - '0'), "%s", seen[i]);
		for (unsigned int k = 0; k < i; k++)
			cr_assert_str_neq(seen[i], seen[k]);
	}
	cr_assert_eq(who.asked, 11, "ten users, one group");
	done_with();
}

Test(nfs4_owners, readdir_without_answers_has_all_entries_too)
{
	open_with(1);
	make_dirs();
	names(true);
	start_readdir();
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_eq(op[0].err, 0);
	cr_assert_eq(seen_cnt, 10);
	for (unsigned int i = 0; i < 10; i++)
		cr_assert(seen_late[i] && seen_uid[i] == NOBODY);
	done_with();
}

Test(nfs4_owners, readdir_that_has_enough_stops_there)
{
	open_with(1);
	make_dirs();
	names(true);
	set_latency(SIM_MSEC);
	start_readdir();
	seen_max = 4;
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_eq(seen_cnt, 4);
	done_with();
}

/* ---- sent ---- */

Test(nfs4_owners, numbers_first_and_names_where_they_are_refused)
{
	open_with(1);
	cr_assert_eq(chown_to(root, NFS4_ATTR_OWNER, HERE + 3, 0), 0);
	cr_assert_eq(op[7].call.u.setattr.attr.uid, HERE + 3);
	cr_assert_eq(setattrs(), 1);
	cr_assert_eq(who.asked, 0);
	names(true);
	set_latency(SIM_SEC);
	cr_assert_eq(chown_to(root, NFS4_ATTR_OWNER | NFS4_ATTR_GROUP, HERE + 4, HERE + 5), 0);
	cr_assert_eq(op[7].call.u.setattr.attr.uid, HERE + 4);
	cr_assert_eq(op[7].call.u.setattr.attr.gid, HERE + 5);
	cr_assert_eq(setattrs(), 3, "numbers, then names");
	cr_assert_eq(chown_to(root, NFS4_ATTR_GROUP, 0, HERE + 6), 0);
	cr_assert_eq(op[7].call.u.setattr.attr.gid, HERE + 6);
	cr_assert_eq(setattrs(), 4, "names at once");
	/* What has no name is sent as a number, and the answer is the user's. */
	cr_assert_eq(chown_to(root, NFS4_ATTR_OWNER, 12, 0), -EINVAL);
	cr_assert_eq(op[7].call.status, NFS4ERR_BADOWNER);
	cr_assert_eq(setattrs(), 5);
	/* Nothing but owners has names. */
	cr_assert_eq(chown_to(root, NFS4_ATTR_MTIME, 0, 0), 0);
	cr_assert_eq(setattrs(), 6);
	done_with();
}

Test(nfs4_owners, a_call_that_is_used_again_asks_again)
{
	open_with(1);
	names(true);
	set_latency(SIM_SEC);
	cr_assert_eq(chown_to(root, NFS4_ATTR_OWNER, HERE + 4, 0), 0);
	cr_assert(sim_op_get(&w, 0, &op[0]));
	op[0].call.idmap_asked = true; /* by the one before */
	op[0].call.u.setattr.fh = root;
	op[0].call.u.setattr.sattr.set = NFS4_ATTR_OWNER;
	op[0].call.u.setattr.sattr.uid = HERE + 5;
	sim_op_start(&op[0], nfs4_setattr);
	cr_assert(run_until(&op[0].done_cnt, 10 * SIM_SEC));
	cr_assert_eq(op[0].err, 0);
	cr_assert_eq(op[0].call.u.setattr.attr.uid, HERE + 5);
	done_with();
}

Test(nfs4_owners, a_chown_without_an_answer_sends_the_number)
{
	uint64_t start;

	open_with(1);
	names(true);
	start = reactor_now(w.r);
	cr_assert_eq(chown_to(root, NFS4_ATTR_OWNER, HERE + 4, 0), -EINVAL);
	cr_assert_eq(setattrs(), 2);
	cr_assert_leq(reactor_now(w.r) - start, 2 * IDMAP_WAIT_NS);
	done_with();
}

Test(nfs4_owners, a_chown_that_waits_for_a_name_ends_with_the_session)
{
	open_with(1);
	names(true);
	cr_assert(sim_op_get(&w, 0, &op[0]));
	op[0].call.u.setattr.fh = root;
	op[0].call.u.setattr.sattr.set = NFS4_ATTR_OWNER;
	op[0].call.u.setattr.sattr.uid = HERE + 4;
	sim_op_start(&op[0], nfs4_setattr);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(op[0].done_cnt, 0);
	sim_nfs_stop(&w);
	cr_assert_eq(op[0].done_cnt, 1);
	cr_assert_eq(op[0].err, -ESHUTDOWN);
	done_with();
}

Test(nfs4_owners, without_an_idmap_names_are_nobody_and_not_sent)
{
	sim_nfs_open(&w, NULL);
	w.cred.uid = w.cred.gid = 0;
	memset(&who, 0, sizeof(who));
	sim_nfs_mounted(&w, 1);
	root = &nfs4_client_fsinfo(w.cl)->root;
	names(true);
	start_getattr(&op[0], 0);
	cr_assert(run_until(&op[0].done_cnt, SIM_SEC));
	cr_assert_eq(attr_of(&op[0])->uid, NOBODY);
	cr_assert_eq(chown_to(root, NFS4_ATTR_OWNER, HERE + 4, 0), -EINVAL);
	cr_assert_eq(setattrs(), 1);
	done_with();
}

/* ---- everything ---- */

static void script(bool fresh)
{
	sim_nfs_open(&w, NULL);
	w.conf.idmap = idmap_new(&res, NULL, false);
	memset(&who, 0, sizeof(who));
	names(true);
	nfsd_sim_conf(w.srv)->fresh_names = fresh;
	set_latency(NSEC_PER_MSEC);
	sim_nfs_mounted(&w, 1);
	cr_assert(sim_script(&w, true));
	cr_assert_gt(who.asked, 2);
	done_with();
}

Test(nfs4_owners, every_operation_with_names)
{
	script(false);
}

Test(nfs4_owners, every_operation_with_other_names_each_time)
{
	script(true);
}
