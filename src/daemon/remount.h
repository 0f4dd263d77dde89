/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mount -o remount of a mount that is there: the kernel changes what it keeps itself, and
 * everything else that was asked for must be as it is already, or is refused by name.
 *
 * Context: the only thread of a program that mounts nothing.
 */
#ifndef RPCRDMAFS_REMOUNT_H
#define RPCRDMAFS_REMOUNT_H

#include <stddef.h>

#include "mountinfo.h"
#include "options.h"

/*
 * remount_flags - the flags of mount(2) for what `o` asks of the mount `now`; pure
 *
 * From mount(8) comes all that holds from now on: it keeps exec and the like to itself, and
 * adds what fstab or the kernel's table has. Otherwise what is not named stays as it is.
 * nosuid and nodev are never taken away.
 *
 * *flags: MS_REMOUNT, with MS_BIND if the mountpoint alone changes (ro and rw are the file
 * system's, and so all its mountpoints').
 * Returns: 0; -EINVAL: *fault names what only a new mount can change.
 */
int remount_flags(const struct mountinfo *now, const struct options *o, unsigned long *flags,
	char *fault, size_t len);
/*
 * remount_run - do it: o->mountpoint, o->asked, o->source
 *
 * Its daemon judges the options that are not the kernel's; after `ro` it makes durable what
 * was written. Says what goes wrong in one line.
 * Returns: the exit status, as mount_retry_run() of a mount that cannot be made.
 */
int remount_run(const struct options *o);

#endif
