/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An NFSv4.1 server that has no files: it answers what a mount and the
 * work-loads of the native bench ask for, from the request alone, in a few
 * hundred nanoseconds, and touches no payload: whoever calls it moves that, or does not
 * (null_fab.c; wire_srv.c, over a wire).
 *
 * Names tell what is there, always: "d..." is a folder, "data..." a file of
 * NULL_SRV_SIZE bytes, all others do not exist until they are created, which
 * is forgotten at once. ceiling.c has the same files.
 */
#ifndef RPCRDMAFS_NULL_SRV_H
#define RPCRDMAFS_NULL_SRV_H

#include <stdint.h>

#define NULL_SRV_SIZE    (1ull << 30)
#define NULL_SRV_REPLY   16384u /* bytes of an answer, at most */
#define NULL_SRV_CREDITS 128u   /* that each answer grants */

/*
 * null_srv_answer - answers one RPC-over-RDMA message
 *
 * reply: room for the client's receive size, which the answer is made for.
 * Returns the answer's length. Operations that it does not know are NFS4ERR_NOTSUPP; what it
 * cannot decode ends the program.
 */
uint32_t null_srv_answer(const uint8_t *msg, uint32_t len, uint8_t *reply);

/* The client did what cannot be measured: says so and ends the program. */
void null_srv_die(const char *what) __attribute__((noreturn));

#endif
