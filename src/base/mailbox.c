/* SPDX-License-Identifier: BSD-3-Clause */
#include "mailbox.h"

#include <stddef.h>

bool mailbox_push(struct mailbox *mb, struct reactor_msg *msg)
{
	struct reactor_msg *head = atomic_load_explicit(&mb->newest, memory_order_relaxed);

	do {
		msg->next = head;
	} while (!atomic_compare_exchange_weak(&mb->newest, &head, msg));
	return !head;
}

bool mailbox_has_some(struct mailbox *mb)
{
	return atomic_load(&mb->newest) != NULL;
}

bool mailbox_run(struct mailbox *mb)
{
	struct reactor_msg *stack, *fifo = NULL;

	/* A relaxed look first: the exchange would take the cache line each time. */
	if (!atomic_load_explicit(&mb->newest, memory_order_relaxed))
		return false;
	stack = atomic_exchange(&mb->newest, NULL);
	while (stack) {
		struct reactor_msg *next = stack->next;

		stack->next = fifo;
		fifo = stack;
		stack = next;
	}
	while (fifo) {
		struct reactor_msg *msg = fifo;

		fifo = msg->next; /* first: run() may free it or post it again */
		msg->run(msg);
	}
	return true;
}
