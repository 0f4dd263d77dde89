/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "nfs4.h"

static struct nfs4_failure f;

Test(nfs4_failure, a_refused_connection_says_what_to_check)
{
	nfs4_failure_connect(&f, -ECONNREFUSED, "connect", "");
	cr_assert_eq(f.err, ECONNREFUSED);
	cr_assert_str_eq(f.step, "connect");
	cr_assert(strstr(f.text, "Connection refused: nothing listens there"), "%s", f.text);
}

Test(nfs4_failure, what_the_transport_knows_takes_the_place_of_the_hint)
{
	nfs4_failure_connect(&f, -ENOMEM, "set-up", "cannot pin memory");
	cr_assert_eq(f.err, ENOMEM);
	cr_assert_str_eq(f.step, "set-up");
	cr_assert_str_eq(f.text, "cannot pin memory");
}

Test(nfs4_failure, without_a_device_modules_are_named)
{
	nfs4_failure_start(&f, -ENODEV, "");
	cr_assert_eq(f.err, ENODEV);
	cr_assert_str_eq(f.step, "connect");
	cr_assert(strstr(f.text, "ib_uverbs and rdma_ucm"), "%s", f.text);
	nfs4_failure_start(&f, -EADDRINUSE, "");
	cr_assert_eq(f.err, EADDRINUSE);
	cr_assert(strstr(f.text, strerror(EADDRINUSE)), "%s", f.text);
	cr_assert(strstr(f.text, "UDP port 4791"), "%s", f.text);
	nfs4_failure_start(&f, -ELIBACC, "no library");
	cr_assert_str_eq(f.text, "no library");
}

Test(nfs4_failure, a_call_that_is_refused_has_a_hint_if_there_is_one)
{
	char text[200];

	nfs4_failure_rpc(text, sizeof(text), "NULL", RPC_PROG_MISMATCH);
	cr_assert_str_eq(text,
		"NULL failed: program version mismatch: no NFSv4 there, check the port and the "
		"versions the server has enabled");
	nfs4_failure_rpc(text, sizeof(text), "NULL", RPC_SYSTEM_ERR);
	cr_assert_str_eq(text, "NULL failed: server system error");
}
