/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that may begin before the process says which signals it waits for. */
#ifndef RPCRDMAFS_THREAD_H
#define RPCRDMAFS_THREAD_H

#include <pthread.h>

/*
 * thread_start - a thread that gets no signal: those are for the main thread
 *
 * Context: any thread. Returns: 0 and the thread, which is to be joined; or -errno.
 */
int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
