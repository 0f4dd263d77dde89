/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random walks: users of a few files open, read, write, close, claim and return
 * side by side on several sessions, while the server is restarted, revokes,
 * recalls, forgets, and connections break. Nothing of it is an error for
 * anybody; the simulated server judges the rest. A walk is told by its number; in each third one
 * owners are names that were never heard of before.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idmap.h"
#include "log.h"
#include "sim_held.h"

#define FILES 3
#define USERS 2 /* of each file; the delegation is with the first */
#define CALLS 12
#define STEPS 120

static struct sim_nfs w;

/* What one user does with one file. */
struct user {
	struct sim_held h;
	struct user *file;               /* the one that has the delegation */
	unsigned int refs[4];            /* opens of each access */
	unsigned int opens, ios, claims; /* on their way */
	bool ends;                       /* CLOSE or OPEN_DOWNGRADE is */
	/* of the file */
	bool wants_back, returns;
	unsigned int recalls_seen;
};

struct walk_call {
	struct sim_held_op ho; /* first */
	struct user *u;
	enum {
		FREE,
		OPEN,
		IO,
		CLAIM,
		END,
		RETURN
	} kind;
	uint32_t access;
};

static struct user users[FILES][USERS];
static struct walk_call calls[CALLS];
static uint64_t seed, state;
/* It lost sessions: a delegation whose OPEN was repeated on another one is nobody's. */
static bool forgetful;

static unsigned int rnd(unsigned int below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)((state >> 11) % below);
}

/* ---- calls ---- */

static uint32_t union_of(const struct user *u)
{
	return (u->refs[1] || u->refs[3] ? READ : 0) | (u->refs[2] || u->refs[3] ? WRITE : 0);
}

static void ended(struct walk_call *c)
{
	struct user *u = c->u;

	cr_assert_eq(c->ho.op.err, 0, "walk %lu: call of kind %d, access %u: %d",
		(unsigned long)seed, c->kind, c->access, c->ho.op.err);
	switch (c->kind) {
	case OPEN:
		u->opens--;
		u->refs[c->access]++;
		if (u->h.how == NFS4_DELEG_RECALLED)
			u->file->wants_back = true;
		break;
	case IO:
		u->ios--;
		if (c->access == READ)
			cr_assert(c->ho.op.len == 100 && sim_is_pattern(c->ho.op.data, 0, 100));
		break;
	case CLAIM:
		u->claims--;
		break;
	case END:
		u->ends = false;
		if (!union_of(u))
			nfs4_state_forget(&u->h.f.state);
		break;
	case RETURN:
		u->returns = u->wants_back = false;
		break;
	case FREE:
		break;
	}
	c->kind = FREE;
}

static void reap(void)
{
	for (unsigned int i = 0; i < CALLS; i++)
		if (calls[i].kind != FREE && calls[i].ho.op.done_cnt)
			ended(&calls[i]);
}

static struct walk_call *unused(struct user *u)
{
	for (unsigned int i = 0; i < CALLS; i++)
		if (calls[i].kind == FREE) {
			calls[i].u = u;
			return &calls[i];
		}
	return NULL;
}

/* ---- steps ---- */

static void step_open(struct user *u)
{
	uint32_t access = rnd(3) + 1;
	struct walk_call *c = unused(u);

	if (u->ends || !c)
		return;
	if (!u->opens && !u->claims &&
		nfs4_deleg_open(&u->file->h.deleg, &u->h.f.state, &w.cred, access, u->h.owner, 0)) {
		u->refs[access]++;
		return;
	}
	c->access = access;
	c->kind = OPEN;
	u->opens++;
	/* Only the first user's OPENs may bring one, so that there is one place for it. */
	cr_assert(sim_open_start(&c->ho, &u->h, rnd(w.lanes), access, u == u->file && rnd(4)));
}

static void step_io(struct user *u)
{
	uint32_t all = union_of(u);
	struct walk_call *c = unused(u);

	if (!all || u->ends || !c)
		return;
	c->access = all == BOTH ? rnd(2) + 1 : all;
	c->kind = IO;
	u->ios++;
	if (c->access == READ)
		cr_assert(sim_read_start(&c->ho, &u->h, rnd(w.lanes)));
	else
		cr_assert(sim_write_start(&c->ho, &u->h, rnd(w.lanes)));
}

static void step_close(struct user *u)
{
	uint32_t access = rnd(3) + 1, before = union_of(u);
	struct walk_call *c = unused(u);

	if (!u->refs[access] || u->opens || u->claims || u->ios || u->ends || !c)
		return;
	u->refs[access]--;
	if (union_of(u) == before || (!union_of(u) && nfs4_deleg_close(&u->h.f.state)))
		return;
	c->access = union_of(u);
	c->kind = END;
	u->ends = true;
	if (c->access)
		cr_assert(sim_downgrade_start(&c->ho, &u->h, rnd(w.lanes), c->access));
	else
		cr_assert(sim_close_start(&c->ho, &u->h, rnd(w.lanes)));
}

static void step_claim(struct user *u)
{
	struct walk_call *c = unused(u);

	if (!union_of(u) || u->ends || u->claims || !c || !nfs4_deleg_serves(&u->h.f.state))
		return;
	c->kind = CLAIM;
	u->claims++;
	cr_assert(sim_claim_start(&c->ho, &u->h, rnd(w.lanes)));
}

/* When nothing of the file bears its stateid. */
static void step_return(struct user *file)
{
	struct walk_call *c = unused(file);

	if (file->returns || !file->h.deleg.cl || !c)
		return;
	for (unsigned int i = 0; i < USERS; i++) {
		if (file[i].ios || file[i].claims ||
			(union_of(&file[i]) && nfs4_deleg_serves(&file[i].h.f.state)))
			return;
	}
	c->kind = RETURN;
	file->returns = true;
	cr_assert(sim_return_start(&c->ho, &file->h, rnd(w.lanes)));
}

static void step(void)
{
	struct user *u = &users[rnd(FILES)][rnd(USERS)];

	if (u->file->h.recalls != u->file->recalls_seen) {
		u->file->recalls_seen = u->file->h.recalls;
		u->file->wants_back = true;
	}
	switch (rnd(u->file->wants_back ? 12 : 9)) {
	case 0:
	case 1:
		step_open(u);
		break;
	case 2:
	case 3:
	case 4:
		step_io(u);
		break;
	case 5:
	case 6:
		step_close(u);
		break;
	case 7:
	case 10:
		step_claim(u);
		break;
	default:
		step_return(u->file);
		break;
	}
}

/* ---- what happens to it ---- */

static void one_status(uint32_t op, uint32_t status)
{
	nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){
				     .act = NFSD_SIM_STATUS, .op = op, .count = 1, .arg = status});
}

static void run_calls(void);

/* Who is told NFS4ERR_BADSESSION by a server that has it after all may leave a client behind. */
static void event(void)
{
	static const uint32_t some[] = {OP_OPEN, OP_READ, OP_WRITE, OP_CLOSE, OP_DELEGRETURN,
		OP_OPEN_DOWNGRADE, OP_TEST_STATEID, OP_FREE_STATEID};
	char path[16];

	snprintf(path, sizeof(path), "/f%u", rnd(FILES));
	switch (rnd(16)) {
	case 0:
		nfsd_sim_restart(w.srv, rnd(2) ? 5 * SIM_SEC : 0, false);
		break;
	case 1:
		/* Who has not heard of it would ask a server restarted meanwhile for it. */
		nfsd_sim_drop_clients(w.srv);
		for (unsigned int lane = 0; lane < w.lanes; lane++) {
			static struct sim_nfs_call c;

			cr_assert_eq(sim_nfs_getattr(&w, lane, &c), 0);
			cr_assert_eq(sim_nfs_wait(&w, &c), 0);
		}
		run_calls();
		break;
	case 2:
		forgetful = true;
		nfsd_sim_drop_sessions(w.srv);
		break;
	case 3:
		nfsd_sim_revoke(w.srv, path, NFS4ERR_EXPIRED);
		break;
	case 4:
		nfsd_sim_revoke_deleg(w.srv, path, NFS4ERR_DELEG_REVOKED);
		break;
	case 5:
		nfsd_sim_revoke_deleg(w.srv, path, NFS4ERR_BAD_STATEID);
		break;
	case 6:
	case 7:
	case 8:
		nfsd_sim_recall_on(w.srv, path, rnd(w.lanes));
		break;
	case 9:
		nfsd_sim_disconnect(w.srv);
		break;
	case 10:
		one_status(some[rnd(8)], NFS4ERR_DELAY);
		break;
	case 11:
		nfsd_sim_rule(
			w.srv, &(struct nfsd_sim_rule){
				       .act = NFSD_SIM_CUT_AFTER, .op = some[rnd(6)], .count = 1});
		break;
	case 12:
		nfsd_sim_rule(w.srv, &(struct nfsd_sim_rule){.act = NFSD_SIM_LATE,
					     .op = some[rnd(6)],
					     .count = 1 + rnd(3),
					     .arg = rnd(300) * NSEC_PER_USEC});
		break;
	case 13:
		nfsd_sim_conf(w.srv)->deleg_recalled = rnd(4) == 0;
		nfsd_sim_conf(w.srv)->deleg_no_reclaim = rnd(4) == 0;
		break;
	case 14:
		nfsd_sim_conf(w.srv)->deleg_early = rnd(3);
		nfsd_sim_conf(w.srv)->deleg_early_ns = rnd(100) * NSEC_PER_USEC;
		break;
	default:
		sim_nfs_run(&w, rnd(20) * SIM_SEC);
		break;
	}
}

/* Until all that were started are done. */
static void run_calls(void)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		if (calls[i].kind == FREE)
			continue;
		cr_assert(sim_nfs_until(&w, &calls[i].ho.op.done_cnt, 1, 900 * SIM_SEC),
			"walk %lu: a call of kind %d hangs", (unsigned long)seed, calls[i].kind);
	}
	reap();
	sim_nfs_run(&w, 2 * SIM_SEC);
}

/* ---- a walk ---- */

static struct reactor_timer name_timer;

static int to_id(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id)
{
	*ret_id = 1;
	return 0;
}

static const struct idmap_resolver resolver = {.to_id = to_id};

static void answer_name(struct reactor_timer *t)
{
	idmap_step(w.conf.idmap, reactor_now(w.r));
	reactor_timer_in(w.r, t, 20 * SIM_MSEC);
}

static void begin(unsigned int lanes)
{
	sim_nfs_open(&w, NULL);
	if (seed % 3 == 0) {
		w.conf.idmap = idmap_new(&resolver, NULL, false);
		nfsd_sim_conf(w.srv)->fresh_names = true;
		reactor_timer_init(&name_timer, answer_name);
		reactor_timer_in(w.r, &name_timer, 0);
	}
	memset(users, 0, sizeof(users));
	memset(calls, 0, sizeof(calls));
	nfsd_sim_conf(w.srv)->tolerant_revoked = true;
	sim_held_mounted(&w, lanes, rnd(3) + 1);
	for (unsigned int i = 0; i < FILES; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/f%u", i);
		sim_held_file(&w, &users[i][0].h, path);
		for (unsigned int k = 0; k < USERS; k++) {
			struct user *u = &users[i][k];

			u->file = &users[i][0];
			if (!k)
				continue;
			u->h.w = &w;
			u->h.f.fh = u->file->h.f.fh;
			u->h.owner = nfs4_new_owner(w.cl);
		}
	}
}

static void close_all(struct user *u)
{
	struct walk_call *c = unused(u);

	memset(u->refs, 0, sizeof(u->refs));
	if (!u->h.f.state.cl || nfs4_deleg_close(&u->h.f.state))
		return;
	c->kind = END;
	u->ends = true;
	cr_assert(sim_close_start(&c->ho, &u->h, 0));
}

static void end(void)
{
	const char *wrong;

	run_calls();
	nfsd_sim_rules_clear(w.srv);
	for (unsigned int i = 0; i < FILES; i++)
		for (unsigned int k = 0; k < USERS; k++) {
			step_io(&users[i][k]);
			run_calls();
			close_all(&users[i][k]);
			run_calls();
		}
	for (unsigned int i = 0; i < FILES; i++)
		step_return(users[i]);
	run_calls();
	sim_nfs_run(&w, 100 * SIM_SEC);
	cr_assert_eq(nfs4_deleg_count(w.cl), 0, "walk %lu", (unsigned long)seed);
	cr_assert(forgetful || !nfsd_sim_live_delegs(w.srv), "walk %lu: %u delegations are left",
		(unsigned long)seed, nfsd_sim_live_delegs(w.srv));
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0, "walk %lu: %u opens are left",
		(unsigned long)seed, nfsd_sim_live_opens(w.srv));
	if (w.conf.idmap)
		reactor_timer_cancel(w.r, &name_timer);
	wrong = sim_nfs_close(&w, nfsd_sim_live_delegs(w.srv) > 0);
	cr_assert_null(wrong, "walk %lu: %s", (unsigned long)seed, wrong);
	idmap_free(w.conf.idmap);
}

static void walk(uint64_t number)
{
	seed = number;
	forgetful = false;
	state = number * 0x9e3779b97f4a7c15ull + 1;
	begin(number % 4 + 1);
	for (unsigned int i = 0; i < STEPS; i++) {
		step();
		if (rnd(12) == 0)
			event();
		sim_nfs_run(&w, rnd(3) ? rnd(60) * NSEC_PER_USEC : 0);
		reap();
	}
	end();
}

static void quiet(void *ctx, enum log_level level, const char *line)
{
	if (getenv("WALK"))
		fprintf(stderr, "%s\n", line);
	cr_assert(!strstr(line, "does not give back"), "walk %lu: %s", (unsigned long)seed, line);
}

static void setup(void)
{
	log_set_sink(quiet, NULL);
	if (getenv("WALK"))
		log_set_level(LOG_LVL_DEBUG);
}

Test(nfs4_held_walk, some_walks, .init = setup)
{
	const char *one = getenv("WALK"), *cnt = getenv("WALKS");

	if (one) {
		walk(strtoull(one, NULL, 10));
		return;
	}
	for (uint64_t n = 1; n <= (cnt ? strtoull(cnt, NULL, 10) : 300); n++)
		walk(n);
}
