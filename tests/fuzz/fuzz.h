/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target: takes bytes from anywhere, must neither crash nor break what
 * it promises its callers (FUZZ_CHECK). Built by libFuzzer (./fuzz) and, with
 * replay_main.c, as an ordinary test over its corpus.
 */
#ifndef RPCRDMAFS_FUZZ_H
#define RPCRDMAFS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			__builtin_trap();                                                          \
	} while (0)

/* Reads every byte, so that ASan looks at all of it. */
static inline void fuzz_touch(const void *p, size_t len)
{
	const volatile uint8_t *b = p;
	size_t i;

	for (i = 0; i < len; i++)
		(void)b[i];
}

#endif
