/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs a mount is handed over to. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "upgrade_ask.h"

static int program = -1;
static dev_t dev;

static void setup(void)
{
	char name[] = "/tmp/rpcrdmafs-upgrade-ask-XXXXXX";
	struct stat st;

	program = mkstemp(name);
	cr_assert(program >= 0);
	unlink(name);
	cr_assert_eq(fchmod(program, 0755), 0);
	cr_assert_eq(fstat(program, &st), 0);
	dev = st.st_dev;
}

static void teardown(void)
{
	close(program);
}

TestSuite(upgrade_ask, .init = setup, .fini = teardown);

static void is_refused(mode_t mode, const char *why)
{
	const char *fault;

	cr_assert_eq(fchmod(program, mode), 0);
	fault = upgrade_ask_fault(program, dev + 1);
	cr_assert(fault && strstr(fault, why), "%s", fault ? fault : "taken");
}

Test(upgrade_ask, a_program_of_our_own_is_taken)
{
	cr_assert_null(upgrade_ask_fault(program, dev + 1));
}

Test(upgrade_ask, one_that_others_may_write_is_not)
{
	is_refused(0775, "others may write");
	is_refused(0757, "others may write");
}

Test(upgrade_ask, nor_is_what_is_no_program)
{
	is_refused(0644, "no program");
	cr_assert_str_eq(upgrade_ask_fault(-1, dev), "a program has to come with it");
}

/* It would be read while nothing is served. */
Test(upgrade_ask, nor_is_one_that_lies_on_the_mount)
{
	const char *fault = upgrade_ask_fault(program, dev);

	cr_assert(fault && strstr(fault, "on the mount itself"));
}
