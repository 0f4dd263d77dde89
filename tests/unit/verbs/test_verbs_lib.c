/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries of rdma-core, which the -dev packages have brought. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "verbs_lib.h"

static char why[200];

Test(verbs_lib, all_functions_of_both_tables_are_there)
{
	void *const *fns[] = {(void *const *)&ibv, (void *const *)&rdma};
	size_t cnt[] = {sizeof(ibv) / sizeof(void *), sizeof(rdma) / sizeof(void *)};

	cr_assert_eq(verbs_lib_load(why, sizeof(why)), 0, "%s", why);
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < cnt[t]; i++)
			cr_assert_not_null(fns[t][i], "table %d, function %zu", t, i);
	cr_assert_eq(verbs_lib_load(why, sizeof(why)), 0, "again");
	cr_assert_str_eq(why, "");
}

#if !VERBS_LINKED

Test(verbs_lib, a_library_that_is_missing_is_named)
{
	void *fn = NULL;
	const struct verbs_lib_sym syms[] = {{"ibv_open_device", "IBVERBS_1.1", &fn}};

	cr_assert_eq(
		verbs_lib_open("libibverbs-of-nobody.so.1", syms, 1, why, sizeof(why)), -ELIBACC);
	cr_assert_not_null(strstr(why, "libibverbs-of-nobody.so.1"), "%s", why);
	cr_assert_null(fn);
}

Test(verbs_lib, a_function_that_is_missing_is_named_with_its_library)
{
	void *fns[2] = {NULL, NULL};
	const struct verbs_lib_sym syms[] = {{"ibv_open_device", "IBVERBS_1.1", &fns[0]},
		{"ibv_open_the_door", "IBVERBS_1.1", &fns[1]}};

	cr_assert_eq(verbs_lib_open("libibverbs.so.1", syms, 2, why, sizeof(why)), -ELIBACC);
	cr_assert_not_null(strstr(why, "libibverbs.so.1"), "%s", why);
	cr_assert_not_null(strstr(why, "ibv_open_the_door"), "%s", why);
	cr_assert_not_null(fns[0]);
	cr_assert_null(fns[1]);
}

/* The older one has other structures. */
Test(verbs_lib, a_function_with_two_versions_is_the_one_that_was_asked_for)
{
	void *old = NULL, *cur = NULL;
	const struct verbs_lib_sym syms[] = {
		{"ibv_open_device", "IBVERBS_1.0", &old}, {"ibv_open_device", "IBVERBS_1.1", &cur}};

	cr_assert_eq(verbs_lib_open("libibverbs.so.1", syms, 2, why, sizeof(why)), 0, "%s", why);
	cr_assert_neq(old, cur);
	cr_assert_eq(verbs_lib_load(why, sizeof(why)), 0, "%s", why);
	cr_assert_eq((void *)ibv.open_device, cur);
}

Test(verbs_lib, nothing_else_finds_its_functions_in_what_was_loaded)
{
	cr_assert_null(dlsym(RTLD_DEFAULT, "rdma_connect"), "the program is linked with it");
	cr_assert_eq(verbs_lib_load(why, sizeof(why)), 0, "%s", why);
	cr_assert_null(dlsym(RTLD_DEFAULT, "rdma_connect"));
	cr_assert_null(dlsym(RTLD_DEFAULT, "ibv_open_device"));
}

#endif
