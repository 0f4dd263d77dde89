/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that die while they wait.
 *
 * Context: the lane of the op.
 */
#ifndef RPCRDMAFS_FS_INTERRUPT_H
#define RPCRDMAFS_FS_INTERRUPT_H

#include "fs_op.h"

struct fuse_in_header;

void fs_interrupt_init(struct fs_lane *l);
void fs_interrupt_fini(struct fs_lane *l);
/* The op ends: what waits for that goes on. */
void fs_interrupt_ended(struct fs_op *op);
/*
 * Are operations of programs that died still on their way with op->file? Then `then` runs on the
 * op's lane when they have ended: the server must not close it before.
 */
bool fs_interrupt_release_waits(struct fs_op *op, void (*then)(struct fs_op *op));
/* One operation more, for a lane that reads on (fs_metalane_reads_on()). False: no. */
bool fs_interrupt_spare(struct fs_lane *l);
/* The op's request begins to wait. */
void fs_interrupt_watch(struct fs_op *op);
/* It is about to be answered before the op has ended. */
void fs_interrupt_abandon(struct fs_op *op);
/* The request that this one, if it is a FUSE_INTERRUPT, is about; 0: it is not. */
uint64_t fs_interrupt_of(const struct fuse_in_header *h);
/*
 * A FUSE_INTERRUPT of this request came: if it is this lane's and its program is dying, EINTR.
 * False: it is not this lane's, or was answered before.
 */
bool fs_interrupt_now(struct fs_lane *l, uint64_t unique);
/*
 * Does anybody wait for the answer of a FLUSH? Not who is on its way out: the kernel closes its
 * files. Reads /proc.
 */
bool fs_interrupt_is_awaited(const struct fs_op *op);
/*
 * Has the thread that asks a signal that ends it? One with another uid or gid is not it: the pid
 * may be of another namespace. Reads /proc.
 */
bool fs_interrupt_is_dying(const struct fuse_ctx *ctx);
/* Pure: of /proc/PID/status, is a signal pending that will end it? */
bool fs_interrupt_is_killed(const char *status);
/* Pure: of /proc/PID/stat, is it on its way out? And because of a signal? */
bool fs_interrupt_is_exiting(const char *stat);
bool fs_interrupt_dies_of_signal(const char *stat);

#endif
