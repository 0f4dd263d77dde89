/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of a pcapng file (draft-ietf-opsawg-pcapng) with one Ethernet
 * interface and times in nanoseconds, in this machine's byte order.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_PCAPNG_H
#define RPCRDMAFS_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#define PCAPNG_HEAD_MAX     512u /* section header and interface */
#define PCAPNG_PACKET_HEAD  28u  /* before a frame */
#define PCAPNG_PACKET_EXTRA 36u  /* that, round-up, and behind it */
#define PCAPNG_STATS_LEN    76u

struct pcapng_stats {
	uint64_t start_ns, end_ns;  /* since 1970 */
	uint64_t received, dropped; /* frames; those dropped were received */
};

/* The beginning of a file. Each returns the bytes it wrote, a multiple of 4. */
size_t pcapng_head(uint8_t out[PCAPNG_HEAD_MAX]);
/*
 * The block around a frame of which `len` bytes are at out + PCAPNG_PACKET_HEAD already; `whole`:
 * that it has in all.
 */
size_t pcapng_packet(uint8_t *out, uint64_t ns, size_t len, size_t whole);
size_t pcapng_stats(uint8_t out[PCAPNG_STATS_LEN], const struct pcapng_stats *st);

#endif
