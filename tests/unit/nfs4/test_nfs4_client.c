/* SPDX-License-Identifier: BSD-3-Clause */
/* Two mounts of the same machine; how a client speaks to a server is in tests/sim. */
#include <criterion/criterion.h>

#include <string.h>

#include "nfs4_session_int.h"

static const struct nfs4_conf conf = {.minor_max = 2, .minor_min = 1, .owner = "this machine"};

/* The server takes a repeated verifier for the same OPEN, and O_EXCL would not be exclusive. */
Test(nfs4_client, verifiers_and_owners_of_two_are_never_the_same)
{
	struct nfs4_client *a = nfs4_client_new(&conf), *b = nfs4_client_new(&conf);
	struct nfs4_op_open one = {0}, two = {0}, other = {0};

	cr_assert(a && b);
	cr_assert_arr_neq(a->verf.data, b->verf.data, sizeof(a->verf.data));
	nfs4_make_exclusive(a, &one);
	nfs4_make_exclusive(a, &two);
	nfs4_make_exclusive(b, &other);
	cr_assert(one.exclusive);
	cr_assert_arr_neq(one.verf.data, two.verf.data, sizeof(one.verf.data));
	cr_assert_arr_neq(one.verf.data, other.verf.data, sizeof(one.verf.data));
	cr_assert_neq(nfs4_new_owner(a), nfs4_new_owner(a));
	cr_assert_neq(nfs4_new_owner(a), nfs4_new_owner(b));
	nfs4_client_free(a);
	nfs4_client_free(b);
}

Test(nfs4_client, needs_a_name_and_versions_that_there_are)
{
	struct nfs4_conf bad = conf;

	bad.owner = "";
	cr_assert_null(nfs4_client_new(&bad));
	bad = conf;
	bad.minor_min = 0;
	cr_assert_null(nfs4_client_new(&bad));
	bad = conf;
	bad.minor_max = 0;
	cr_assert_null(nfs4_client_new(&bad));
}
