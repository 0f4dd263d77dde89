/* SPDX-License-Identifier: BSD-3-Clause */
/* For test_fs_deleg.c and test_fs_deleg_return.c: a file that is opened with a delegation. */
#ifndef RPCRDMAFS_DELEG_RIG_H
#define RPCRDMAFS_DELEG_RIG_H

#include "fake_state.h"
#include "fs_deleg.h"
#include "lock_rig.h"

#define KEEPS(out) (((out).open_flags & FOPEN_KEEP_CACHE) != 0)

static struct fake_file *file;
static struct fuse_open_out a, b;
static fuse_ino_t ino;
static struct rig_reply re;

static inline void deleg_set_up(void)
{
	rig_delegation = true;
	rig_up(NULL);
	rig.fake.grant = OPEN_DELEGATE_READ;
	file = fake_add("f", 100);
	ino = rig_ino(file);
}

static inline uint64_t open_send(int flags)
{
	struct fuse_open_in in = {.flags = (uint32_t)flags};

	return rig_send(FUSE_OPEN, ino, &in, sizeof(in), NULL, 0);
}

/* The answer to `unique`, whatever the kernel is told before it. */
static inline int answer_after_notices(uint64_t unique)
{
	do
		cr_assert(rig_reply(&re, 3000));
	while (re.h.unique == 0);
	cr_assert_eq(re.h.unique, unique);
	return -re.h.error;
}

static inline void open_ok(int flags, struct fuse_open_out *out)
{
	cr_assert_eq(answer_after_notices(open_send(flags)), 0);
	memcpy(out, re.body, sizeof(*out));
}

static inline void closed(uint64_t fh)
{
	cr_assert_eq(answer_after_notices(
			     rig_send(FUSE_RELEASE, ino, &(struct fuse_release_in){.fh = fh},
				     sizeof(struct fuse_release_in), NULL, 0)),
		0);
	rig_settle();
}

/* Opened and closed: a delegation is held, nothing is open. */
static inline void delegated(void)
{
	open_ok(O_RDONLY, &a);
	cr_assert_not_null(file->deleg);
	closed(a.fh);
}

static inline uint64_t getattr_send(void)
{
	static const struct fuse_getattr_in in;

	return rig_send(FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);
}

#endif
