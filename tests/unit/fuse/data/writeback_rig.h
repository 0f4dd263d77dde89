/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of write-back: a file that is open, and requests that wait for it. */
#ifndef DIRTY_RIG_H
#define DIRTY_RIG_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fake_state.h"
#include "fs_deleg.h"
#include "fs_rig.h"
#include "fs_writeback.h"
#include "lock_rig.h"

#define KIB 1024u

static struct fake_file *dfile;
static fuse_ino_t dino;
static struct fuse_open_out dfh;
static uint8_t ddata[RIG_WSIZE];

static inline void dirty_set_up(void)
{
	rig_write_mode = FS_WRITE_LAZY;
	rig_up(NULL);
	rig.lane->writeback->max = 6;       /* of the 8 buffers there are */
	rig.lane->writeback->batch_max = 1; /* test_fs_batch.c has longer ones */
	dfile = fake_add("d", 100);
	dino = rig_ino(dfile);
	for (size_t i = 0; i < sizeof(ddata); i++)
		ddata[i] = (uint8_t)(i * 13 + i / 256);
	cr_assert_eq(rig_open(dino, O_RDWR, &dfh), 0);
}

/* A write(2) of what ddata has at that place. */
static inline int put(uint64_t off, uint32_t len)
{
	return rig_write(dino, dfh.fh, off, ddata + off % RIG_WSIZE, len, O_RDWR);
}

static inline uint64_t put_send(uint64_t off, uint32_t len, uint32_t flags, uint32_t write_flags)
{
	struct fuse_write_in in = {.fh = dfh.fh,
		.offset = off,
		.size = len,
		.flags = flags,
		.write_flags = write_flags};

	return rig_send(FUSE_WRITE, dino, &in, sizeof(in), ddata + off % RIG_WSIZE, len);
}

static inline uint64_t get_send(uint64_t off, uint32_t len)
{
	struct fuse_read_in in = {.fh = dfh.fh, .offset = off, .size = len};

	return rig_send(FUSE_READ, dino, &in, sizeof(in), NULL, 0);
}

/* What the server does not answer until fake_release(). */
static inline void hold(enum fake_op op)
{
	rig.fake.hold_ops |= 1u << op;
}

/* The server has this range, and nothing but that was sent. */
static inline bool at_server(uint64_t off, uint32_t len)
{
	return dfile->attr.size >= off + len &&
	       memcmp(dfile->data + off, ddata + off % RIG_WSIZE, len) == 0;
}

#endif
