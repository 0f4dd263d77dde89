/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed, and another one goes on with all that it had on the server, from memory that
 * outlives it (nfs4_live.h); and calls that must not be executed twice are not (nfs4_redo.h).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live_rig.h"
#include "nfs4_lock.h"
#include "nfs4_session_int.h"
#include "open_rig.h"

#define FILES 3u
#define LANES 2u

static struct nfs4_lockowner locker[2];
static uint64_t owners[FILES];
static unsigned int file_got, locks_got; /* taken up last; taken up so far */
static struct sim_nfs_call call;
static struct nfs4_once once;

static void begin(void)
{
	live_rig_begin();
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
	cr_assert_not(nfsd_sim_lock(w.srv, "/f0", 39, 1, true));
	cr_assert_not(nfsd_sim_lock(w.srv, "/f0", 7000, 1, true));
	cr_assert(nfsd_sim_lock(w.srv, "/f0", 40, 10, true));
}

static void die_and(bool restart)
{
	for (unsigned int i = 0; i < FILES; i++)
		owners[i] = files[i].state.owner;
	live_rig_die(&w, restart);
	memset(locker, 0, sizeof(locker));
	for (unsigned int i = 0; i < FILES; i++)
		memset(&files[i].state, 0, sizeof(files[i].state));
}

static void die(void)
{
	die_and(false);
}

static unsigned int file_of(uint64_t owner)
{
	for (unsigned int i = 0; i < FILES; i++)
		if (owners[i] == owner)
			return i;
	cr_assert_fail("an open of nobody's");
	return 0;
}

static int take_record(const struct tables_record *r)
{
	if (r->type == NFS4_KEEP_LOCKS)
		return nfs4_keep_get_lockowner(
			r, w.cl, &locker[locks_got++], &files[file_got].state);
	cr_assert_eq(r->type, NFS4_KEEP_STATE);
	file_got = file_of(nfs4_keep_owner_of(r));
	return nfs4_keep_get_state(r, w.cl, &files[file_got].state, &files[file_got].fh);
}

static void take_up(unsigned int lanes)
{
	locks_got = 0;
	live_rig_take_up(&w, lanes, take_record);
	live_rig_up(&w);
}

static void end(void)
{
	check_locks();
	open_use(FILES, -1);
	open_end(FILES);
	live_rig_end();
}

Test(nfs4_live, opens_and_locks_stay)
{
	uint64_t opens, locks;

	begin();
	opens = sim_ops(&w, OP_OPEN);
	locks = sim_ops(&w, OP_LOCK);
	die();
	take_up(LANES);
	cr_assert_eq(nfsd_sim_live_sessions(w.srv), LANES, "those of before are destroyed");
	cr_assert_eq(sim_ops(&w, OP_OPEN), opens);
	cr_assert_eq(sim_ops(&w, OP_LOCK), locks);
	end();
}

Test(nfs4_live, what_is_closed_is_not_there)
{
	struct tables_record r;
	struct tables_out t;
	struct tables_in in;
	uint64_t owner;
	int fd = memfd_create("tables", MFD_CLOEXEC);

	begin();
	owner = files[2].state.owner;
	cr_assert_eq(sim_close(&w, &files[2]), 0);
	tables_begin(&t, fd);
	cr_assert_eq(live_tables(live_fd(live_rig_now), &t), 0);
	cr_assert_eq(tables_end(&t), 0);
	cr_assert_eq(tables_open(&in, fd), 0);
	while (tables_next(&in, &r))
		cr_assert(r.type != NFS4_KEEP_STATE || nfs4_keep_owner_of(&r) != owner);
	tables_close(&in);
	close(fd);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), FILES - 1);
	open_end(2);
	live_rig_end();
}

/* It is asked to end, and does, whatever is open and locked then. */
Test(nfs4_live, an_end_may_leave_some_behind)
{
	begin();
	SIM_NFS_CLOSE(&w, 1);
	live_rig_end();
}

Test(nfs4_live, again_and_again)
{
	begin();
	for (unsigned int i = 1; i <= 5; i++) {
		die();
		take_up(i % 3 + 1);
	}
	end();
}

Test(nfs4_live, opens_that_were_reclaimed_are_known_as_they_are)
{
	begin();
	nfsd_sim_restart(w.srv, 10 * SIM_SEC, false);
	cr_assert_eq(sim_nfs_getattr(&w, 0, &call), 0);
	cr_assert_eq(sim_nfs_wait(&w, &call), 0);
	check_locks();
	die();
	take_up(LANES);
	cr_assert_eq(nfsd_sim_stats(w.srv).lock_reclaims, 3, "once");
	end();
}

Test(nfs4_live, a_server_that_was_restarted_meanwhile_gives_them_back)
{
	begin();
	die_and(true);
	take_up(LANES);
	cr_assert_eq(nfsd_sim_stats(w.srv).lock_reclaims, 3);
	end();
}

/* They are one record, which does not get too long. */
Test(nfs4_live, an_owner_has_no_more_ranges_than_it_can_leave_behind)
{
	begin();
	w.cl->ranges_max = 2; /* begin() has locked as many */
	cr_assert_eq(sim_brlock(&w, 0, &files[0], &locker[0], 200, 10, true), -ENOLCK);
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], &locker[0], 10, 10), -ENOLCK, "in the midst");
	cr_assert_eq(sim_brunlock(&w, 0, &files[0], &locker[0], 0, 40), 0);
	cr_assert_eq(sim_brlock(&w, 0, &files[0], &locker[0], 0, 40, true), 0);
	die();
	take_up(LANES);
	cr_assert_eq(w.cl->ranges_max, NFS4_KEEP_RANGES);
	end();
}

/* ---- once ---- */

/* A directory is made, by a request of that number, and its answer never comes. */
static void make(enum nfsd_sim_act action)
{
	sim_rule(&w, action, OP_CREATE, 0, 0, 0);
	sim_nfs_once = &once;
	once = (struct nfs4_once){.request = 4711};
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "made"), 0);
	sim_nfs_once = NULL;
	sim_nfs_run(&w, SIM_SEC);
	cr_assert_eq(call.done_cnt, 0);
}

static void made_once(void)
{
	take_up(LANES);
	cr_assert(nfs4_redo_was_done(w.cl, 4711));
	cr_assert_not(nfs4_redo_was_done(w.cl, 4712));
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "made"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &call), -EEXIST);
}

Test(nfs4_live, a_call_that_the_server_executed_is_not_executed_again)
{
	uint64_t creates;

	begin();
	creates = sim_ops(&w, OP_CREATE);
	make(NFSD_SIM_LOSE);
	die();
	made_once();
	cr_assert_eq(sim_ops(&w, OP_CREATE) - creates, 2, "with the one that was refused");
	end();
}

/* The one who asked the server has destroyed the session: nobody else can ask any more. */
Test(nfs4_live, nor_by_the_next_one_but_one)
{
	uint64_t creates;

	begin();
	creates = sim_ops(&w, OP_CREATE);
	make(NFSD_SIM_LOSE);
	die();
	live_rig_again = true;
	take_up(LANES);
	die();
	live_rig_again = false;
	made_once();
	cr_assert_eq(sim_ops(&w, OP_CREATE) - creates, 2, "with the one that was refused");
	end();
}

Test(nfs4_live, one_that_it_never_got_is_executed)
{
	begin();
	make(NFSD_SIM_CUT_BEFORE);
	die();
	made_once();
	end();
}

Test(nfs4_live, one_that_was_answered_is_known_to_be_done)
{
	begin();
	sim_nfs_once = &once;
	once = (struct nfs4_once){.request = 4711};
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "made"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &call), 0);
	sim_nfs_once = NULL;
	/* Others have its slot since. */
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(sim_nfs_getattr(&w, 0, &call), 0);
		cr_assert_eq(sim_nfs_wait(&w, &call), 0);
	}
	die();
	made_once();
	end();
}

static bool killed;

void __real_live_count(struct live *l, live_ref ref, uint64_t value);
void __wrap_live_count(struct live *l, live_ref ref, uint64_t value);

void __wrap_live_count(struct live *l, live_ref ref, uint64_t value)
{
	if (!killed)
		__real_live_count(l, ref, value);
}

/* Of one request: its record is put, and nothing more is done. */
Test(nfs4_live, one_that_follows_one_that_is_done_is_not)
{
	begin();
	sim_nfs_once = &once;
	once = (struct nfs4_once){.request = 4711};
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "first"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &call), 0);
	sim_rule(&w, NFSD_SIM_CUT_BEFORE, OP_CREATE, 0, 0, 0);
	once.request = 4712;
	killed = true;
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "second"), 0);
	sim_nfs_run(&w, SIM_SEC);
	sim_nfs_once = NULL;
	die();
	killed = false;
	take_up(LANES);
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "second"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &call), -EEXIST, "it was not done");
	end();
}

Test(nfs4_live, one_that_nobody_waits_for_any_more_is_forgotten)
{
	begin();
	sim_nfs_once = &once;
	once = (struct nfs4_once){.request = 4711};
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "made"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &call), 0);
	sim_nfs_once = NULL;
	nfs4_redo_over(w.cl, &once);
	die();
	take_up(LANES);
	cr_assert_not(nfs4_redo_was_done(w.cl, 4711));
	end();
}

Test(nfs4_live, one_that_failed_is_not_done)
{
	begin();
	cr_assert_eq(sim_nfs_mkdir(&w, 0, &call, "made"), 0);
	cr_assert_eq(sim_nfs_wait(&w, &call), 0);
	make(NFSD_SIM_LOSE);
	die();
	take_up(LANES);
	cr_assert_not(nfs4_redo_was_done(w.cl, 4711));
	end();
}

/* It lost its memory, and with it what it knows of calls. */
Test(nfs4_live, a_server_that_was_restarted_does_not_know)
{
	begin();
	make(NFSD_SIM_LOSE);
	die_and(true);
	take_up(LANES);
	cr_assert_not(nfs4_redo_was_done(w.cl, 4711));
	end();
}
