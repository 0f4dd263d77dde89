/* SPDX-License-Identifier: BSD-3-Clause */
/* How memory is exposed: what is chosen, what is told, how long keys live. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

TestSuite(rpcrdma_memreg, .init = rig_init);

/* ---- no memory, no device ---- */

static void first_fails(const char *hint)
{
	const char *said;

	cr_assert_not(rig_connect());
	cr_assert_eq(rig.failed, 1);
	cr_assert_str_eq(rig.step, "set-up");
	said = rpcrdma_failure_detail(rig.x);
	cr_assert(strstr(said, hint), "%s", said);
	rig_fini();
	rig_init();
	rig_quiet();
}

/* "Resource temporarily unavailable" makes nobody think of it. */
Test(rpcrdma_memreg, the_rdma_cgroup_is_named)
{
	rig_quiet();
	fake.fail[FAKE_MR_REG] = -EAGAIN;
	first_fails("rdma cgroup");
	fake.dev_err = -EAGAIN;
	first_fails("rdma cgroup");
	cr_assert_null(strstr(rpcrdma_strerror(ENOMEM), "cgroup"));
}

Test(rpcrdma_memreg, a_device_that_takes_less_than_a_buffer_is_named)
{
	rig_quiet();
	fake.caps.max_mr_size = 8192;
	fake.fail[FAKE_MR_REG] = -EINVAL;
	first_fails("fake0 takes 8 KiB at once");
	fake.fail[FAKE_MR_REG] = -EINVAL;
	first_fails("Invalid argument");
	fake.caps.max_mr_size = 0; /* not known */
	fake.fail[FAKE_MR_REG] = -EINVAL;
	first_fails("Invalid argument");
}
