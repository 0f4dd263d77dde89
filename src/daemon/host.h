/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a mount asks of the machine it runs on: addresses, who mounts, where.
 *
 * Context: the main thread, before anything runs. A function that takes a text puts one line there
 * that says what is wrong, for the user, when it fails.
 */
#ifndef RPCRDMAFS_HOST_H
#define RPCRDMAFS_HOST_H

#include "addrs.h"
#include "options.h"

/*
 * The addresses of the server, in the order in which they are to be tried, and, with srcaddr=, ours
 * (else src->ss_family is AF_UNSPEC). Waits for the DNS.
 * 0: there is one at least; -EAGAIN: there is no such name, or none yet; -EINVAL.
 */
int host_addresses(const struct options *o, struct addrs_list *dst, struct sockaddr_storage *src,
	char *text, size_t len);
/*
 * Ours is of one family, and so are those of the server that it can be used with: *src becomes the
 * first of ours that has any in dst, which keeps these. False: none has. Pure.
 */
bool host_use_from(
	struct addrs_list *dst, const struct addrs_list *ours, struct sockaddr_storage *src);
/* dst[first] is in use; the name is resolved again when all were tried. NULL with errno. */
struct addrs *host_addrs_new(const struct options *o, const struct addrs_list *dst,
	unsigned int first, const struct sockaddr_storage *src);
/* An attempt failed at this step (nfs4_failure): is another address worth one? */
bool host_may_be_elsewhere(const char *step);
/* The credential of who mounts: the export is looked up under it. */
void host_cred(const struct options *o, struct rpc_cred *ret);
/*
 * Makes o->mountpoint absolute, since the daemon leaves the folder it was started in, and checks
 * it (fs_mountpoint_check()). 0 or -errno.
 */
int host_mountpoint(struct options *o, char *text, size_t len);
/* o->mountpoint is absolute, and not checked: what follows from it for the file system. */
void host_mountpoint_is(struct options *o);

#endif
