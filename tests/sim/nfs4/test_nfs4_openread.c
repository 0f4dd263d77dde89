/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OPEN with READ in one COMPOUND, by the current stateid: nothing of it is cached,
 * so its reply may be lost for good. The simulated server judges: one open whatever
 * happens, and nothing is left when it is closed.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "sim_held.h"

#define BIG 20000u

enum {
	NR_CLOSE = 4,
	NR_OPEN = 18,
	NR_READ = 25,
};

static struct sim_nfs w;
static struct sim_held h;

static void begin(unsigned int lanes, uint32_t delegs)
{
	sim_nfs_open(&w, NULL);
	sim_held_mounted(&w, lanes, delegs);
	sim_held_file(&w, &h, "/f");
	h.with_open = 100;
}

/* All of the file is BIG bytes now. */
static void grow(void)
{
	static uint8_t data[BIG];

	nfsd_sim_fill(data, 0, BIG);
	cr_assert(nfsd_sim_poke(w.srv, "/f", 0, data, BIG));
}

static void end(void)
{
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	SIM_NFS_CLOSE(&w, 0);
}

/* It is open, once, and what it brought is all of the file. */
static void is_open(uint32_t seqid, uint32_t len)
{
	struct nfsd_sim_open o;

	cr_assert_eq(nfsd_sim_opens(w.srv, "/f", &o, 1), 1);
	cr_assert_eq(o.owner, h.owner);
	cr_assert_eq(o.access, READ);
	cr_assert_eq(o.seqid, seqid);
	cr_assert_eq(h.came, len);
	cr_assert(h.came_eof);
	cr_assert(h.came_right);
}

Test(nfs4_openread, brings_the_file_inline_or_by_write_chunk)
{
	begin(1, 0);
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(1, 100);
	cr_assert_eq(nfsd_sim_stats(w.srv).write_chunks, 0);
	cr_assert_eq(sim_hread(&h, 0), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	grow();
	h.with_open = BIG;
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(1, BIG);
	cr_assert_eq(nfsd_sim_stats(w.srv).write_chunks, 1);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_ops(&w, NR_OPEN), 2);
	end();
}

Test(nfs4_openread, what_changed_meanwhile_is_as_it_is_now)
{
	begin(1, 0);
	h.with_open = 60;
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	cr_assert_eq(h.came, 60);
	cr_assert(h.came_right);
	cr_assert_not(h.came_eof, "it has grown: what is there is not its end");
	h.with_open = 150;
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(2, 100);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

Test(nfs4_openread, an_error_of_its_read_is_none_of_the_open)
{
	static const uint32_t errors[] = {NFS4ERR_DELAY, NFS4ERR_GRACE, NFS4ERR_ACCESS,
		NFS4ERR_OPENMODE, NFS4ERR_LOCKED, NFS4ERR_IO, NFS4ERR_STALE, NFS4ERR_BAD_STATEID,
		NFS4ERR_EXPIRED, NFS4ERR_NOTSUPP};

	begin(1, 0);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		h.came = 1;
		nfsd_sim_rules_clear(w.srv);
		sim_rule(&w, NFSD_SIM_STATUS, NR_READ, 0, 1, errors[i]);
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		cr_assert_eq(h.came, 0);
		cr_assert_eq(sim_ops(&w, NR_OPEN), i + 1, "executed once");
		cr_assert_eq(sim_hread(&h, 0), 0, "and good to be read");
		cr_assert_eq(sim_hclose(&h, 0), 0);
		cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	}
	end();
}

Test(nfs4_openread, an_error_of_the_open_is_its_own)
{
	begin(1, 0);
	sim_rule(&w, NFSD_SIM_STATUS, NR_OPEN, 0, 1, NFS4ERR_ACCESS);
	cr_assert_eq(sim_hopen(&h, 0, READ, false), -EACCES);
	cr_assert_eq(sim_ops(&w, NR_READ), 0);
	sim_rule(&w, NFSD_SIM_STATUS, NR_OPEN, 0, 2, NFS4ERR_DELAY);
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(1, 100);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

/* ---- the reply is lost ---- */

Test(nfs4_openread, executed_twice_it_is_one_open)
{
	for (uint32_t len = 100; len <= BIG; len += BIG - 100) {
		begin(1, 0);
		if (len > 100)
			grow();
		h.with_open = len;
		sim_rule(&w, NFSD_SIM_CUT_AFTER, NR_OPEN, 0, 1, 0);
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		cr_assert_eq(nfsd_sim_stats(w.srv).uncached_replays, 1);
		cr_assert_eq(sim_ops(&w, NR_OPEN), 2);
		is_open(2, len);
		cr_assert_eq(sim_hread(&h, 0), 0);
		cr_assert_eq(sim_hclose(&h, 0), 0);
		cr_assert_eq(sim_ops(&w, NR_CLOSE), 1);
		end();
	}
}

Test(nfs4_openread, however_often_the_reply_is_lost)
{
	begin(1, 0);
	/* Each second one is the repetition, which is refused. */
	for (uint32_t i = 0; i < 3; i++)
		nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_CUT_AFTER,
					     .op = NR_OPEN,
					     .skip = 2 * i,
					     .count = 1});
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(4, 100);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_ops(&w, NR_OPEN), 4);
	end();
}

Test(nfs4_openread, beside_another_open_of_its_owner_it_is_the_same)
{
	begin(2, 0);
	cr_assert_eq(sim_hopen(&h, 1, READ, false), 0);
	sim_rule(&w, NFSD_SIM_CUT_AFTER, NR_OPEN, 0, 1, 0);
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(3, 100);
	cr_assert_eq(sim_hread(&h, 1), 0);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

Test(nfs4_openread, the_session_is_lost_too)
{
	struct sim_held_op ho;

	begin(1, 0);
	sim_rule(&w, NFSD_SIM_CUT_AFTER, NR_OPEN, 0, 1, 0);
	cr_assert(sim_open_start(&ho, &h, 0, READ, false));
	sim_nfs_run(&w, 10 * SIM_MSEC);
	nfsd_sim_drop_sessions(w.srv);
	cr_assert_eq(sim_held_wait(&ho), 0);
	is_open(2, 100);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

Test(nfs4_openread, the_server_is_restarted_too)
{
	struct sim_held_op ho;

	begin(1, 0);
	sim_rule(&w, NFSD_SIM_LOSE, NR_OPEN, 0, 1, 0);
	cr_assert(sim_open_start(&ho, &h, 0, READ, false));
	sim_nfs_run(&w, 10 * SIM_MSEC);
	nfsd_sim_restart(w.srv, SIM_SEC, false);
	cr_assert_eq(sim_held_wait(&ho), 0);
	is_open(1, 100);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

/* ---- delegations ---- */

/* Given in a reply that is lost it would be nobody's. */
Test(nfs4_openread, asks_for_no_delegation)
{
	begin(1, NFSD_SIM_DELEG_READ);
	sim_rule(&w, NFSD_SIM_CUT_AFTER, NR_OPEN, 0, 1, 0);
	cr_assert_eq(sim_hopen(&h, 0, READ, true), 0);
	is_open(2, 100);
	cr_assert_eq(h.taken, 0);
	cr_assert_eq(nfsd_sim_stats(w.srv).delegs, 0);
	h.with_open = 0;
	cr_assert_eq(sim_hopen(&h, 0, READ, true), 0);
	cr_assert_eq(h.taken, 1, "the next one may");
	cr_assert_eq(sim_hclose(&h, 0), 0);
	cr_assert_eq(sim_hreturn(&h, 0), 0);
	end();
}

static void begin_with(bool names, bool longest)
{
	struct nfsd_sim_conf conf;

	nfsd_sim_conf_default(&conf);
	conf.names = names;
	conf.longest = longest;
	sim_nfs_open(&w, &conf);
	sim_held_mounted(&w, 1, 0);
	sim_held_file(&w, &h, "/f");
	h.with_open = 100;
}

Test(nfs4_openread, names_of_owners_are_no_obstacle)
{
	begin_with(true, false);
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(1, 100);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}

/* The judge minds replies that fit nowhere. */
Test(nfs4_openread, any_size_beside_the_longest_filehandles_and_owners)
{
	uint32_t seqid = 0;

	begin_with(false, true);
	grow();
	for (uint32_t len = 1; len < 5000; len += 97) {
		h.with_open = len;
		cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
		cr_assert_eq(h.came, len);
		cr_assert(h.came_right);
		seqid++;
	}
	h.with_open = BIG;
	cr_assert_eq(sim_hopen(&h, 0, READ, false), 0);
	is_open(seqid + 1, BIG);
	cr_assert_eq(sim_hclose(&h, 0), 0);
	end();
}
