/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reactor's spinners (reactor.h), and for how long it polls them before it sleeps.
 *
 * Context: the reactor's thread. A spinner's callback may remove any spinner.
 */
#ifndef RPCRDMAFS_SPIN_H
#define RPCRDMAFS_SPIN_H

#include "reactor.h"

struct spin {
	struct list spinners; /* of reactor_spin.link; the spinners stay their owners' */
	uint64_t budget_ns;   /* after the last work; 0: it is not polled for */
};

void spin_init(struct spin *s);
/* ns: 0 is what is set where this thread has one CPU alone: the answer could not be produced. */
void spin_set_budget(struct spin *s, uint64_t ns);
/* Polls each once. True: one of them found work. */
bool spin_poll(struct spin *s);
/* Before the thread sleeps. False: one has work, and the others need not be armed. */
bool spin_arm(struct spin *s);
/* idle_ns: since the last work. Is there budget left, and a spinner that it is worth for? */
bool spin_is_worth_it(const struct spin *s, uint64_t idle_ns);
/* Between two polls. */
void spin_relax(void);

#endif
