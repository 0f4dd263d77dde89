/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <signal.h>

#include "thread.h"

static void *look(void *ret)
{
	pthread_sigmask(SIG_SETMASK, NULL, ret);
	return NULL;
}

Test(thread, gets_no_signal_and_takes_none_from_who_started_it)
{
	static const int sigs[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD};
	sigset_t there, here;
	pthread_t thread;

	cr_assert_eq(thread_start(&thread, look, &there), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &here);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		cr_expect(sigismember(&there, sigs[i]));
		cr_expect_not(sigismember(&here, sigs[i]));
	}
}
