/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that takes over what another one held on the server (nfs4_keep.h): the client ID is the
 * same, and so are opens and locks; or, if the server was restarted meanwhile, they are reclaimed.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nfs4_keep.h"
#include "nfs4_lock.h"
#include "open_rig.h"

#define FILES  3u
#define STATE  500
#define LOCKS  501
#define FILEID 1 /* number of the file */
#define LANES  2u

static struct nfs4_lockowner locker[2];
static int tables = -1;

/* Two owners on the first file: a range in the midst of another is no longer locked, and the end.
 */
static void begin(void)
{
	open_begin(LANES, FILES);
	for (int i = 0; i < 2; i++)
		nfs4_lockowner_init(&locker[i], w.cl);
	cr_assert_eq(sim_brlock(&w, 0, &files[0], &locker[0], 0, 100, true), 0);
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], &locker[0], 40, 10), 0);
	cr_assert_eq(sim_brlock(&w, 1, &files[0], &locker[1], 1000, NFS4_LOCK_TO_END, false), 0);
}

static void check_locks(void)
{
	cr_assert_eq(nfsd_sim_locks(w.srv, NULL, NULL, 0), 3);
	for (int i = 0; i < 2; i++)
		cr_assert(nfs4_lockowner_holds(&locker[i], i ? 5000 : 39, 1));
	cr_assert_not(nfs4_lockowner_holds(&locker[0], 40, 10));
	cr_assert_not(nfsd_sim_lock(w.srv, "/f0", 39, 1, true));
	cr_assert_not(nfsd_sim_lock(w.srv, "/f0", 7000, 1, true));
	cr_assert(nfsd_sim_lock(w.srv, "/f0", 40, 10, true));
}

static void write_down(void)
{
	struct tables_out t;

	cr_assert_null(nfs4_keep_obstacle(w.cl), "%s", nfs4_keep_obstacle(w.cl));
	tables = memfd_create("tables", MFD_CLOEXEC);
	tables_begin(&t, tables);
	nfs4_keep_put_client(&t, w.cl);
	for (unsigned int i = 0; i < w.lanes; i++)
		nfs4_keep_put_session(&t, w.lane[i].sess);
	for (unsigned int i = 0; i < FILES; i++) {
		tables_record(&t, STATE);
		tables_put(&t, FILEID, i);
		nfs4_keep_put_state(&t, &files[i].state);
	}
	for (unsigned int i = 0; i < 2; i++) {
		tables_record(&t, LOCKS);
		tables_put(&t, FILEID, i);
		nfs4_keep_put_lockowner(&t, &locker[i]);
	}
	cr_assert_eq(tables_end(&t), 0);
}

/* The process is gone. */
static void leave(void)
{
	for (unsigned int i = 0; i < w.lanes; i++)
		nfs4_session_free(w.lane[i].sess);
	nfs4_client_free(w.cl);
	memset(w.lane, 0, sizeof(w.lane));
	memset(locker, 0, sizeof(locker));
}

/* Nothing that it says at its end reaches the server. */
static void die(void)
{
	sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_DESTROY_SESSION, 0, 0, 0);
	sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_DESTROY_CLIENTID, 0, 0, 0);
	sim_nfs_stop(&w);
	leave();
	nfsd_sim_rules_clear(w.srv);
	cr_assert_eq(nfsd_sim_live_sessions(w.srv), LANES);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES);
}

static int take_up(unsigned int lanes, bool sequence_known)
{
	struct tables_record r;
	struct tables_in in;
	int err;

	sim_nfs_client(&w, lanes);
	cr_assert_eq(tables_open(&in, tables), 0);
	cr_assert(tables_next(&in, &r));
	err = nfs4_keep_get_client(&r, w.cl, sequence_known);
	while (err == 0 && tables_next(&in, &r)) {
		uint64_t i = tables_get(&r, FILEID);

		if (r.type == STATE)
			err = nfs4_keep_get_state(&r, w.cl, &files[i].state, &files[i].fh);
		else
			err = nfs4_keep_get_lockowner(&r, w.cl, &locker[i], &files[0].state);
	}
	tables_close(&in);
	return err;
}

static void go_on(void)
{
	cr_assert(sim_nfs_up(&w), "%s", w.lane[0].failure.text);
	cr_assert(sim_nfs_mount(&w, "/"), "%s", w.mount_failure.text);
}

static void end(void)
{
	check_locks();
	open_use(FILES, -1);
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], &locker[0], 0, NFS4_LOCK_TO_END), 0);
	cr_assert_eq(nfsd_sim_locks(w.srv, NULL, NULL, 0), 1);
	cr_assert_eq(nfsd_sim_live_sessions(w.srv), w.lanes);
	open_end(FILES);
	close(tables);
}

static void same_client(unsigned int lanes, bool sequence_known)
{
	uint64_t opens, locks, completes;

	begin();
	write_down();
	die();
	opens = sim_ops(&w, OP_OPEN);
	locks = sim_ops(&w, OP_LOCK);
	completes = sim_ops(&w, OP_RECLAIM_COMPLETE);
	cr_assert_eq(take_up(lanes, sequence_known), 0);
	go_on();
	cr_assert_eq(nfsd_sim_live_clients(w.srv), 1);
	cr_assert_eq(nfsd_sim_live_sessions(w.srv), lanes, "those of before are destroyed");
	cr_assert_eq(sim_ops(&w, OP_OPEN), opens, "nothing is opened anew");
	cr_assert_eq(sim_ops(&w, OP_LOCK), locks);
	cr_assert_eq(sim_ops(&w, OP_RECLAIM_COMPLETE), completes);
	end();
}

Test(nfs4_keep, opens_and_locks_stay)
{
	same_client(LANES, true);
}

Test(nfs4_keep, with_fewer_lanes)
{
	same_client(1, true);
}

Test(nfs4_keep, with_more_lanes)
{
	same_client(4, true);
}

Test(nfs4_keep, another_one_may_have_tried)
{
	same_client(LANES, false);
}

/* It made sessions, with the numbers that the tables have, and ended them. */
Test(nfs4_keep, another_one_has_tried)
{
	begin();
	write_down();
	die();
	cr_assert_eq(take_up(LANES, true), 0);
	go_on();
	sim_nfs_stop(&w);
	leave();
	cr_assert_eq(nfsd_sim_live_sessions(w.srv), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES, "the client ID stays");
	cr_assert_eq(take_up(LANES, false), 0);
	go_on();
	end();
}

Test(nfs4_keep, a_server_that_was_restarted_gives_them_back)
{
	begin();
	write_down();
	nfsd_sim_restart(w.srv, 60 * SIM_SEC, false);
	sim_nfs_stop(&w);
	leave();
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	cr_assert_eq(take_up(LANES, true), 0);
	go_on();
	cr_assert_eq(nfsd_sim_stats(w.srv).lock_reclaims, 3);
	end();
}

/* Numbers of owners are not given out twice: they would be one open to the server. */
Test(nfs4_keep, owners_are_numbered_on)
{
	uint64_t next;

	begin();
	next = nfs4_new_owner(w.cl);
	write_down();
	die();
	cr_assert_eq(take_up(LANES, true), 0);
	cr_assert_eq(nfs4_new_owner(w.cl) > next, true);
	go_on();
	end();
}

Test(nfs4_keep, it_is_in_the_way_that_something_is_reclaimed)
{
	static struct sim_nfs_call call;

	begin();
	nfsd_sim_restart(w.srv, 10 * SIM_SEC, false);
	sim_rule(&w, NFSD_SIM_LATE, OP_OPEN, 0, 1, 2 * SIM_SEC);
	cr_assert_eq(sim_nfs_getattr(&w, 0, &call), 0);
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(call.done_cnt, 0);
	cr_assert_str_eq(nfs4_keep_obstacle(w.cl), "opens and locks are reclaimed");
	cr_assert_eq(sim_nfs_wait(&w, &call), 0);
	write_down();
	die();
	cr_assert_eq(take_up(LANES, true), 0);
	go_on();
	end();
}

Test(nfs4_keep, what_is_anothers_is_refused)
{
	begin();
	write_down();
	die();
	w.conf.owner = "rpcrdmafs other";
	cr_assert_eq(take_up(1, true), -EBADMSG);
	nfs4_session_free(w.lane[0].sess);
	nfs4_client_free(w.cl);
	w.conf.owner = "rpcrdmafs sim";
	cr_assert_eq(take_up(LANES, true), 0);
	go_on();
	end();
}
