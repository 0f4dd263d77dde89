/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 as of IEEE 802.3: libdeflate's where the processor multiplies polynomials or has an
 * instruction for this CRC, else, for long pieces, one of our own that needs no table.
 *
 * crc: of what is before p; 0: nothing. Returns: with p's len bytes.
 *
 * Context: pure, any thread.
 */
#ifndef RPCRDMAFS_ROCE_CRC_H
#define RPCRDMAFS_ROCE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t roce_crc(uint32_t crc, const void *p, size_t len);
/* Our own, of any length. */
uint32_t roce_crc_own(uint32_t crc, const void *data, size_t len);

#endif
