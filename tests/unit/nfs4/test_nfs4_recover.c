/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "nfs4_sess_int.h"

/* RFC 8881 section 18.46.3 and table 8's row of SEQUENCE. */
Test(nfs4_recover, each_status_of_sequence_has_its_own_answer)
{
	cr_assert_eq(nfs4_seq_action(NFS4ERR_DELAY), NFS4_SEQ_RESEND);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_BADSLOT), NFS4_SEQ_CUT);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_BAD_HIGH_SLOT), NFS4_SEQ_RESEND);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_BADSESSION), NFS4_SEQ_SESSION);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_DEADSESSION), NFS4_SEQ_SESSION);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_CONN_NOT_BOUND_TO_SESSION), NFS4_SEQ_BIND);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_SEQ_MISORDERED), NFS4_SEQ_ORPHAN);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_SEQ_FALSE_RETRY), NFS4_SEQ_NEXT);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_RETRY_UNCACHED_REP), NFS4_SEQ_NEXT_IDEM);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_TOO_MANY_OPS), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_REQ_TOO_BIG), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_REP_TOO_BIG), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_REP_TOO_BIG_TO_CACHE), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_BADXDR), NFS4_SEQ_FAIL);
	cr_assert_eq(nfs4_seq_action(NFS4ERR_SEQUENCE_POS), NFS4_SEQ_FAIL);
}
