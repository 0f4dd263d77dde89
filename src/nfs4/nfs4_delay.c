/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a call waits that was answered NFS4ERR_DELAY or GRACE.
 *
 * Context: pure.
 */
#include "nfs4_session_int.h"

uint64_t nfs4_delay_ns(uint32_t tries)
{
	uint64_t ns = 100 * NSEC_PER_MSEC;

	while (tries-- > 0 && ns < 15 * NSEC_PER_SEC)
		ns *= 2;
	return ns < 15 * NSEC_PER_SEC ? ns : 15 * NSEC_PER_SEC;
}

uint64_t nfs4_delay_total_ns(uint32_t tries)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tries; i++)
		sum += nfs4_delay_ns(i);
	return sum;
}
