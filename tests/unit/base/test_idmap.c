/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "idmap.h"

/* u<n>@x is n + 1, bad@x is nobody 99; 7 is seven@x, 8 has no name. */
static unsigned int asked;

static int to_id(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id)
{
	asked++;
	if (name[0] != 'u') {
		*ret_id = 99;
		return -ENOENT;
	}
	*ret_id = (uint32_t)atoi(name + 1) + (kind == IDMAP_GROUP ? 1000001 : 1);
	return 0;
}

static int to_name(void *ctx, enum idmap_kind kind, uint32_t id, char name[IDMAP_OUT_MAX + 1])
{
	asked++;
	if (id != 7)
		return -ENOENT;
	strcpy(name, kind == IDMAP_USER ? "seven@x" : "grp7@x");
	return 0;
}

static const struct idmap_resolver res = {.to_id = to_id, .to_name = to_name};

static struct idmap *by_hand(void)
{
	struct idmap *m = idmap_new(&res, NULL, false);

	cr_assert_not_null(m);
	asked = 0;
	return m;
}

#define T0 (100 * NSEC_PER_SEC)

static enum idmap_answer id_at(struct idmap *m, enum idmap_kind kind, const char *name,
	uint64_t now_ns, uint32_t *ret_id, uint64_t *ret_ticket)
{
	return idmap_to_id(m, kind, name, strlen(name), now_ns, ret_id, ret_ticket);
}

/* Asks and answers. */
static uint32_t id_of(struct idmap *m, enum idmap_kind kind, const char *name, uint64_t now_ns)
{
	uint64_t ticket;
	uint32_t id = 0;

	if (id_at(m, kind, name, now_ns, &id, &ticket) == IDMAP_ASKED)
		while (idmap_step(m, now_ns))
			;
	cr_assert_eq(id_at(m, kind, name, now_ns, &id, &ticket),
		*name == 'u' ? IDMAP_KNOWN : IDMAP_NONE, "%s", name);
	return id;
}

Test(idmap, names_and_numbers_both_ways)
{
	struct idmap *m = by_hand();
	char name[IDMAP_OUT_MAX + 1];
	uint64_t ticket;

	cr_assert_eq(id_of(m, IDMAP_USER, "u5@x", T0), 6);
	cr_assert_eq(id_of(m, IDMAP_GROUP, "u5@x", T0), 1000006, "groups are others");
	cr_assert_eq(idmap_to_name(m, IDMAP_USER, 7, T0, name, &ticket), IDMAP_ASKED);
	cr_assert_str_empty(name);
	cr_assert(idmap_step(m, T0));
	cr_assert_eq(idmap_to_name(m, IDMAP_USER, 7, T0, name, &ticket), IDMAP_KNOWN);
	cr_assert_str_eq(name, "seven@x");
	cr_assert_eq(idmap_to_name(m, IDMAP_GROUP, 7, T0, name, &ticket), IDMAP_ASKED);
	cr_assert_eq(idmap_to_name(m, IDMAP_GROUP, 8, T0, name, &ticket), IDMAP_ASKED);
	cr_assert(idmap_step(m, T0) && idmap_step(m, T0) && !idmap_step(m, T0));
	cr_assert_eq(idmap_to_name(m, IDMAP_GROUP, 7, T0, name, &ticket), IDMAP_KNOWN);
	cr_assert_str_eq(name, "grp7@x");
	cr_assert_eq(idmap_to_name(m, IDMAP_GROUP, 8, T0, name, &ticket), IDMAP_NONE);
	cr_assert_str_empty(name, "it has none");
	cr_assert_eq(asked, 5);
	idmap_free(m);
}

Test(idmap, one_question_for_many_who_ask)
{
	struct idmap *m = by_hand();
	uint64_t first = 0, ticket = 0;
	uint32_t id;

	cr_assert_eq(id_at(m, IDMAP_USER, "u1@x", T0, &id, &first), IDMAP_ASKED);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(id_at(m, IDMAP_USER, "u1@x", T0, &id, &ticket), IDMAP_ASKED);
		cr_assert_eq(ticket, first);
	}
	cr_assert_lt(idmap_answered(m), first);
	while (idmap_step(m, T0))
		;
	cr_assert_eq(asked, 1);
	cr_assert_eq(idmap_answered(m), first);
	idmap_free(m);
}

Test(idmap, answers_are_kept_for_their_time)
{
	struct idmap *m = by_hand();
	uint64_t ticket;
	uint32_t id = 0;

	id_of(m, IDMAP_USER, "u1@x", T0);
	cr_assert_eq(id_of(m, IDMAP_USER, "bad@x", T0), 99, "who is nobody says the resolver");
	cr_assert_eq(asked, 2);
	id_of(m, IDMAP_USER, "bad@x", T0 + IDMAP_NO_KEEP_NS - 1);
	cr_assert_eq(asked, 2);
	cr_assert_eq(id_at(m, IDMAP_USER, "bad@x", T0 + IDMAP_NO_KEEP_NS, &id, &ticket),
		IDMAP_ASKED, "it may be there by now");
	cr_assert(idmap_step(m, T0 + IDMAP_NO_KEEP_NS));
	id_of(m, IDMAP_USER, "u1@x", T0 + IDMAP_KEEP_NS - 1);
	cr_assert_eq(asked, 3);
	id_of(m, IDMAP_USER, "u1@x", T0 + IDMAP_KEEP_NS);
	cr_assert_eq(asked, 4);
	/* A clock that was read before the answer came. */
	cr_assert_eq(id_at(m, IDMAP_USER, "u1@x", T0, &id, &ticket), IDMAP_KNOWN);
	idmap_free(m);
}

Test(idmap, nobody_waits_for_what_does_not_come)
{
	struct idmap *m = by_hand();
	uint64_t ticket;
	uint32_t id = 0;

	cr_assert_eq(id_at(m, IDMAP_USER, "u1@x", T0, &id, &ticket), IDMAP_ASKED);
	cr_assert_eq(
		id_at(m, IDMAP_USER, "u1@x", T0 + IDMAP_WAIT_NS - 1, &id, &ticket), IDMAP_ASKED);
	cr_assert_eq(id_at(m, IDMAP_USER, "u1@x", T0 + IDMAP_WAIT_NS, &id, &ticket), IDMAP_REFUSED);
	cr_assert(idmap_step(m, T0 + 2 * IDMAP_WAIT_NS));
	cr_assert_eq(id_at(m, IDMAP_USER, "u1@x", T0 + 2 * IDMAP_WAIT_NS, &id, &ticket),
		IDMAP_KNOWN, "late is not never");
	idmap_free(m);
}

Test(idmap, what_is_asked_and_kept_is_bounded)
{
	struct idmap *m = by_hand();
	unsigned int made = 0, refused = 0;
	uint64_t ticket;
	uint32_t id = 0;
	char name[32];

	/* A server that never says the same name twice. */
	while (made < 3 * IDMAP_KEPT_MAX) {
		snprintf(name, sizeof(name), "u%u@x", made++);
		if (id_at(m, IDMAP_USER, name, T0, &id, &ticket) == IDMAP_REFUSED) {
			refused++;
			while (idmap_step(m, T0))
				;
		}
	}
	while (idmap_step(m, T0))
		;
	cr_assert_geq(refused, 3 * IDMAP_KEPT_MAX / (IDMAP_QUEUE_MAX + 1));
	cr_assert_leq(asked, 3 * IDMAP_KEPT_MAX);
	/* The oldest are gone, the newest are there. */
	asked = 0;
	cr_assert_eq(id_at(m, IDMAP_USER, "u0@x", T0, &id, &ticket), IDMAP_ASKED);
	cr_assert_eq(id_at(m, IDMAP_USER, name, T0, &id, &ticket), IDMAP_KNOWN);
	made = 0;
	for (unsigned int i = 0; i < 3 * IDMAP_KEPT_MAX; i++) {
		/* Another kind asks nothing that is kept; count what is known. */
		snprintf(name, sizeof(name), "u%u@x", i);
		if (id_at(m, IDMAP_USER, name, T0, &id, &ticket) == IDMAP_KNOWN)
			made++;
	}
	cr_assert_leq(made, IDMAP_KEPT_MAX);
	cr_assert_geq(made, IDMAP_KEPT_MAX - refused - 1);
	idmap_free(m);
}

Test(idmap, names_of_any_length_up_to_the_longest)
{
	struct idmap *m = by_hand();
	char name[IDMAP_IN_MAX + 2];
	uint64_t ticket;
	uint32_t id;

	memset(name, '0', sizeof(name));
	name[0] = 'u';
	cr_assert_eq(idmap_to_id(m, IDMAP_USER, name, IDMAP_IN_MAX, T0, &id, &ticket), IDMAP_ASKED);
	cr_assert_eq(idmap_to_id(m, IDMAP_USER, name, IDMAP_IN_MAX + 1, T0, &id, &ticket),
		IDMAP_REFUSED);
	/* Two that differ behind a NUL would be one to the resolver. */
	cr_assert_eq(idmap_to_id(m, IDMAP_USER, "u1\0x", 4, T0, &id, &ticket), IDMAP_REFUSED);
	/* A part of a longer one is another one; names need no NUL. */
	cr_assert_eq(idmap_to_id(m, IDMAP_USER, "u12", 2, T0, &id, &ticket), IDMAP_ASKED);
	while (idmap_step(m, T0))
		;
	cr_assert_eq(idmap_to_id(m, IDMAP_USER, "u19", 2, T0, &id, &ticket), IDMAP_KNOWN);
	cr_assert_eq(id, 2);
	cr_assert_eq(idmap_to_id(m, IDMAP_USER, "u12", 3, T0, &id, &ticket), IDMAP_ASKED);
	idmap_free(m);
}

/* ---- waiters ---- */

struct lane {
	struct reactor *r;
	struct idmap *m;
	struct idmap_waiter w;
	unsigned int told;
};

static void on_told(struct reactor_msg *msg)
{
	struct lane *l = container_of(container_of(msg, struct idmap_waiter, msg), struct lane, w);

	idmap_told(l->m, &l->w);
	l->told++;
}

static void lane_init(struct lane *l, struct idmap *m, struct reactor *r)
{
	*l = (struct lane){.r = r, .m = m};
	idmap_waiter_init(&l->w, r, on_told);
}

Test(idmap, waiters_are_told_once_their_answer_is_there)
{
	struct idmap *m = by_hand();
	struct reactor *r = reactor_new_virtual();
	uint64_t t1, t2;
	struct lane a, b;
	uint32_t id;

	lane_init(&a, m, r);
	lane_init(&b, m, r);
	id_at(m, IDMAP_USER, "u1@x", T0, &id, &t1);
	id_at(m, IDMAP_USER, "u2@x", T0, &id, &t2);
	idmap_wait(m, &a.w, t2);
	idmap_wait(m, &a.w, t1); /* the earlier one */
	idmap_wait(m, &b.w, t2);
	reactor_turn(r, 0);
	cr_assert(a.told == 0 && b.told == 0);
	idmap_step(m, T0);
	reactor_turn(r, 0);
	cr_assert(a.told == 1 && b.told == 0);
	idmap_wait(m, &a.w, t1); /* it is there already */
	idmap_step(m, T0);
	idmap_wait(m, &b.w, t2); /* the message is on its way */
	reactor_turn(r, 0);
	cr_assert(a.told == 2 && b.told == 1);
	reactor_turn(r, 0);
	cr_assert(a.told == 2 && b.told == 1);
	reactor_free(r);
	idmap_free(m);
}

Test(idmap, cancelled_waiters_hear_nothing)
{
	struct idmap *m = by_hand();
	struct reactor *r = reactor_new_virtual();
	struct lane a;
	uint64_t t1;
	uint32_t id;

	lane_init(&a, m, r);
	cr_assert(idmap_cancel(m, &a.w), "it does not wait at all");
	id_at(m, IDMAP_USER, "u1@x", T0, &id, &t1);
	idmap_wait(m, &a.w, t1);
	cr_assert(idmap_cancel(m, &a.w));
	idmap_step(m, T0);
	reactor_turn(r, 0);
	cr_assert_eq(a.told, 0);
	idmap_wait(m, &a.w, t1);
	cr_assert_not(idmap_cancel(m, &a.w), "the message is in the mailbox");
	reactor_turn(r, 0);
	cr_assert_eq(a.told, 1);
	cr_assert(idmap_cancel(m, &a.w));
	reactor_free(r);
	idmap_free(m);
}

/* ---- the thread ---- */

static sem_t in_resolver, go_on;
static _Atomic unsigned int ended;

static int slow_to_id(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id)
{
	sem_post(&in_resolver);
	while (sem_wait(&go_on))
		;
	*ret_id = 5;
	return 0;
}

static void on_fini(void *ctx)
{
	ended++;
}

static const struct idmap_resolver slow = {.to_id = slow_to_id, .fini = on_fini};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

Test(idmap, who_asks_does_not_wait_for_the_resolver)
{
	struct idmap *m = idmap_new(&slow, NULL, true);
	uint64_t ticket, start = now();
	uint32_t id = 0;

	sem_init(&in_resolver, 0, 0);
	sem_init(&go_on, 0, 0);
	cr_assert_eq(id_at(m, IDMAP_USER, "a@x", start, &id, &ticket), IDMAP_ASKED);
	while (sem_wait(&in_resolver))
		;
	/* It is stuck in there, and we are here: no time has passed, however busy the machine. */
	cr_assert_eq(id_at(m, IDMAP_USER, "a@x", start, &id, &ticket), IDMAP_ASKED);
	cr_assert_eq(id_at(m, IDMAP_USER, "b@x", start, &id, &ticket), IDMAP_ASKED);
	/* For so long that nobody waits for anything behind it. */
	cr_assert_eq(id_at(m, IDMAP_USER, "c@x", now() + 2 * IDMAP_WAIT_NS, &id, &ticket),
		IDMAP_REFUSED);
	sem_post(&go_on);
	while (idmap_answered(m) < 1)
		cr_assert_lt(now() - start, 60 * NSEC_PER_SEC);
	cr_assert_eq(id_at(m, IDMAP_USER, "a@x", start, &id, &ticket), IDMAP_KNOWN);
	cr_assert_eq(id, 5);
	sem_post(&go_on);
	sem_post(&go_on);
	while (idmap_answered(m) < 2)
		cr_assert_lt(now() - start, 60 * NSEC_PER_SEC);
	idmap_free(m);
	cr_assert_eq(ended, 1);
}

Test(idmap, a_resolver_that_hangs_is_left_behind)
{
	struct idmap *m = idmap_new(&slow, NULL, true);
	uint64_t ticket, start;
	uint32_t id;

	sem_init(&in_resolver, 0, 0);
	sem_init(&go_on, 0, 0);
	cr_assert_eq(id_at(m, IDMAP_USER, "a@x", now(), &id, &ticket), IDMAP_ASKED);
	while (sem_wait(&in_resolver))
		;
	start = now();
	idmap_free(m);
	cr_assert_lt(now() - start, 30 * NSEC_PER_SEC);
	cr_assert_eq(ended, 0);
}

Test(idmap, nothing_is_touched_before_the_first_question)
{
	struct idmap *m = idmap_new(&slow, NULL, true);

	idmap_free(m);
	cr_assert_eq(ended, 0, "what was not begun needs no end");
	idmap_free(NULL);
}
