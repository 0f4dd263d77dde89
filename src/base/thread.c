/* SPDX-License-Identifier: BSD-3-Clause */
#include "thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
	sigset_t all, old;
	int err;

	/* It inherits what is blocked here. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}
