/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The name by which a server knows a mount (co_ownerid, RFC 8881 section 2.4). The same mount has
 * the same one after its daemon was killed or its container restarted, with another verifier: the
 * server then drops at once what the one before had open and locked (section 18.35.4, case 5).
 *
 * Two mounts that run must never have the same one, or they throw each other's state away. So it
 * is made of random bits, at the first mount, and kept in a file that is locked while it is used;
 * machine-id, host name and path are shared by containers and by copies of a machine.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_IDENTITY_H
#define RPCRDMAFS_IDENTITY_H

#include <limits.h>

#include "options.h"

/* Of the 1024 bytes of NFS4_OPAQUE_LIMIT: the program's and the host's name, and the bits. */
#define IDENTITY_MAX 320

enum identity_kind {
	IDENTITY_RANDOM, /* of this process alone */
	IDENTITY_KEPT,
	IDENTITY_GIVEN, /* clientid= */
};

struct identity {
	enum identity_kind kind;
	char owner[IDENTITY_MAX];
	char path[PATH_MAX]; /* KEPT: the file */
	char why[128];       /* RANDOM: the reason; one line for the user */
	int fd;              /* KEPT: its lock; or -1 */
};

/*
 * identity_folder - where root's mounts keep theirs, or this user's
 *
 * @ret: PATH_MAX bytes. Empty: nowhere.
 */
void identity_folder(char *ret);
/*
 * identity_get - the one of the mount that `o` describes; o->mountpoint is absolute
 *
 * @folder: of identity_folder(); it is made if it is not there.
 *
 * If nothing can be kept, or another process uses it, it is random: that is no error.
 * Returns: 0, then identity_put() is due; -errno: no random bits.
 */
int identity_get(struct identity *id, const struct options *o, const char *folder);
/* The one of the process that handed the mount over to this one; as identity_get() otherwise. */
void identity_get_again(
	struct identity *id, const struct options *o, const char *folder, const char *owner);
/* It may be another process' now: the session has ended. */
void identity_put(struct identity *id);

#endif
