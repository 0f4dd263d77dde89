/* SPDX-License-Identifier: BSD-3-Clause */
/* The set-up of tests of what becomes of opens: a client that has some files open. */
#ifndef RPCRDMAFS_OPEN_RIG_H
#define RPCRDMAFS_OPEN_RIG_H

#include "sim_log.h"
#include "sim_ops.h"

#define OPEN_FILES 100

/* The test's world, and its files: /f0, /f1 ... */
extern struct sim_nfs w;
extern struct sim_file files[OPEN_FILES];

/* Mounted by so many lanes, so many files open. */
void open_begin(unsigned int lanes, unsigned int cnt);
/* For tests that mount by themselves. */
void open_files(unsigned int cnt);
/* Writes and reads each; all work but file number `lost` (-1: none), which is EIO. */
void open_use(unsigned int cnt, int lost);
/* All of them; the server has nothing open then. */
void open_close(unsigned int cnt);
/* As open_close(), and the client ends; nothing of it is left on the server. */
void open_end(unsigned int cnt);

#endif
