/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of /proc/self/mountinfo and its like (proc_pid_mountinfo(5)). */
#ifndef RPCRDMAFS_MOUNT_FIELD_H
#define RPCRDMAFS_MOUNT_FIELD_H

#include <stddef.h>

/*
 * mount_field - a field as it was before the kernel escaped it: \040 is a space
 *
 * to: room for len bytes; may be `from`. Writes no NUL. Without three octal digits behind it a
 * backslash stays as it is. Returns: the bytes written.
 */
size_t mount_field(char *to, const char *from, size_t len);
/* The same of a string, in place. */
void mount_field_str(char *s);

#endif
