/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "protect.h"

static int oom_score(void)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "r");
	int score = 0;

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%d", &score), 1);
	fclose(f);
	return score;
}

static void set_oom_score(int score)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "w");

	cr_assert_not_null(f);
	fprintf(f, "%d", score);
	cr_assert_eq(fclose(f), 0);
}

/* Is the mapping locked that this function lies in? */
static void code_is_locked(bool *ret)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	uintptr_t here = (uintptr_t)(void *)code_is_locked, begin, end;
	bool within = false;
	char line[512];

	*ret = false;
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
			within = begin <= here && here < end;
		if (within && strncmp(line, "VmFlags:", 8) == 0)
			*ret = strstr(line, " lo") != NULL;
	}
	fclose(f);
}

Test(protect, code_stays_where_that_is_permitted)
{
	bool locked;
	int err;

	err = protect_code();
	code_is_locked(&locked);
	cr_assert(locked || err != 0); /* of what the limit allows a part may be */
	if (err != 0)
		cr_log_info("not permitted here: %s", strerror(-err));
}

/* Registered memory needs its limit more, and what is mapped later must not fail. */
Test(protect, a_limit_is_no_fault)
{
	struct rlimit lim = {.rlim_cur = 4096, .rlim_max = 4096};
	void *p;

	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &lim), 0);
	if (geteuid() == 0)
		cr_assert(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
	cr_assert_lt(protect_code(), 0);
	p = mmap(NULL, 64u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(p, MAP_FAILED);
	memset(p, 1, 64u << 20);
	munmap(p, 64u << 20);
}

Test(protect, a_score_that_somebody_chose_stays)
{
	set_oom_score(500); /* what may be raised by anybody */
	(void)protect_process();
	cr_assert_eq(oom_score(), 500);
}

Test(protect, a_score_of_0_becomes_one_that_spares)
{
	if (oom_score() != 0)
		return; /* whoever started us chose one: see above */
	(void)protect_process();
	cr_assert(oom_score() == PROTECT_OOM_SCORE || oom_score() == 0);
	if (oom_score() == 0)
		cr_log_info("not permitted here");
}
