/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "sess_rig.h"

Test(nfs4_reply_chunk, grows_to_the_limit_and_stays_there)
{
	cr_assert_eq(nfs4_reply_chunk_at(0, 4000, 1u << 20), 8192);
	cr_assert_eq(nfs4_reply_chunk_at(1, 4000, 1u << 20), 73728);
	cr_assert_geq(
		nfs4_reply_chunk_at(1, 4000, 1u << 20), 65536 + 200, "the largest value at once");
	cr_assert_eq(nfs4_reply_chunk_at(4, 4000, 1u << 20), 1u << 20);
	cr_assert_eq(nfs4_reply_chunk_at(UINT32_MAX, 4000, 5000), 5000);
	cr_assert_eq(nfs4_reply_chunk_at(0, 4000, 5000), 5000);
	cr_assert_eq(nfs4_reply_chunk_at(40, 4000, UINT32_MAX), UINT32_MAX);
}

Test(nfs4_reply_chunk, is_always_longer_than_inline)
{
	for (uint32_t inline_max = 900; inline_max < 66000; inline_max += 100)
		cr_assert_gt(nfs4_reply_chunk_at(0, inline_max, 1u << 20), inline_max + 100);
}

Test(nfs4_reply_chunk, only_three_statuses_say_that_a_reply_is_too_long)
{
	unsigned int cnt = 0;

	for (uint32_t st = 0; st < 11000; st++)
		cnt += nfs4_status_is_too_big((enum nfs4_status)st);
	cr_assert_eq(cnt, 3);
}

Test(nfs4_reply_chunk, only_a_call_whose_reply_has_no_bound_is_sent_again_with_more)
{
	static const struct nfs4_opdesc desc = {.name = "WRITE"};
	struct nfs4_call call;

	sess_rig_up();
	sess_rig_call(&call);
	call.desc = &desc;
	call.chunk.most = 1u << 20; /* of what it was used for before */
	cr_assert_not(nfs4_reply_chunk_grow(&call));
	sess_rig_down();
}
