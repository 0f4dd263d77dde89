/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for locks, for test_fs_lock.c and test_fs_lockwait.c. */
#ifndef RPCRDMAFS_LOCK_RIG_H
#define RPCRDMAFS_LOCK_RIG_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fake_lock.h"

#define TO_END INT64_MAX /* the kernel's OFFSET_MAX: last byte of a lock to the end */

/* The process that works as `owner`. */
#define LK_PID(owner) ((uint32_t)(owner) + 4000)

/* SETLK, SETLKW or GETLK of bytes first..last. */
static inline uint64_t lk_send(uint32_t opcode, fuse_ino_t ino, uint64_t fh, uint64_t owner,
	uint32_t type, uint64_t first, uint64_t last)
{
	struct fuse_lk_in in = {.fh = fh,
		.owner = owner,
		.lk = {.start = first, .end = last, .type = type, .pid = LK_PID(owner)}};

	return rig_send(opcode, ino, &in, sizeof(in), NULL, 0);
}

static inline uint64_t flock_send(
	uint32_t opcode, fuse_ino_t ino, uint64_t fh, uint64_t owner, uint32_t type)
{
	struct fuse_lk_in in = {.fh = fh,
		.owner = owner,
		.lk = {.end = TO_END, .type = type},
		.lk_flags = FUSE_LK_FLOCK};

	return rig_send(opcode, ino, &in, sizeof(in), NULL, 0);
}

/* The error of the next reply, which must be to `unique`. */
static inline int answer_to(uint64_t unique, unsigned int wait_ms)
{
	static struct rig_reply re;

	cr_assert(rig_reply(&re, wait_ms), "no answer");
	cr_assert_eq(re.h.unique, unique);
	return -re.h.error;
}

static inline void no_answer(unsigned int wait_ms)
{
	static struct rig_reply re;

	cr_assert_not(rig_reply(&re, wait_ms), "answered too early");
}

static inline int setlk(
	fuse_ino_t ino, uint64_t fh, uint64_t owner, uint32_t type, uint64_t first, uint64_t last)
{
	return answer_to(lk_send(FUSE_SETLK, ino, fh, owner, type, first, last), 3000);
}

static inline uint64_t setlkw(
	fuse_ino_t ino, uint64_t fh, uint64_t owner, uint32_t type, uint64_t first, uint64_t last)
{
	return lk_send(FUSE_SETLKW, ino, fh, owner, type, first, last);
}

static inline int flush_as(fuse_ino_t ino, uint64_t fh, uint64_t owner)
{
	struct fuse_flush_in in = {.fh = fh, .lock_owner = owner};

	return answer_to(rig_send(FUSE_FLUSH, ino, &in, sizeof(in), NULL, 0), 3000);
}

static inline void interrupt(uint64_t unique)
{
	struct fuse_interrupt_in in = {.unique = unique};

	rig_send(FUSE_INTERRUPT, 0, &in, sizeof(in), NULL, 0);
}

static inline unsigned int count(enum fake_op op)
{
	return rig.fake.count[op];
}

#endif
