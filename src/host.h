/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a mount asks of the machine it runs on: addresses, who mounts, where.
 *
 * Context: the main thread, before anything runs. A function that takes a text puts one line there
 * that says what is wrong, for the user, when it fails.
 */
#ifndef RPCRDMAFS_HOST_H
#define RPCRDMAFS_HOST_H

#include "options.h"

/*
 * The address of the server and, with srcaddr=, ours (else src->ss_family is AF_UNSPEC). Waits for
 * the DNS. 0; -EAGAIN: there is no such name, or none yet; -EINVAL.
 */
int host_addresses(const struct options *o, struct sockaddr_storage *dst,
	struct sockaddr_storage *src, char *text, size_t len);
/* The credential of who mounts: the export is looked up under it. */
void host_cred(const struct options *o, struct rpc_cred *ret);
/*
 * Makes o->mountpoint absolute, since the daemon leaves the folder it was started in, and checks
 * it (fs_mountpoint_check()). 0 or -errno.
 */
int host_mountpoint(struct options *o, char *text, size_t len);

#endif
