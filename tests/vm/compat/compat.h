/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the topics of the prober share. A probe is a function that does one
 * operation, or the few that show one flag, in a folder of its own, in a process
 * of its own, as root, and tells what came of it in words that do not depend on
 * the file system: "ok", the name of an errno, a value. docs/compatibility.md is
 * made of what it tells on two clients of the same export.
 */
#ifndef RPCRDMAFS_COMPAT_H
#define RPCRDMAFS_COMPAT_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

struct probe {
	const char *name; /* of the operation or flag: the row of the table */
	void (*run)(void);
};

struct topic {
	const char *name;
	const struct probe *probes; /* the last has no name */
	bool asked;                 /* runs only if it is named: it needs a mount of its own */
};

extern const struct topic topic_open, topic_append, topic_data, topic_truncate, topic_mmap,
	topic_space, topic_copy, topic_clone, topic_ioctl, topic_fcntl, topic_locks, topic_flock,
	topic_times, topic_mode, topic_owner, topic_access, topic_names, topic_link, topic_rename,
	topic_unlink, topic_dirs, topic_special, topic_xattr, topic_acl, topic_exec, topic_fs,
	topic_exports, topic_readonly, topic_full, topic_quota, topic_option;

/* Users that own nothing but what a probe gives them. */
enum {
	ROOT = 0,
	ALICE = 1001,
	BOB = 1002,
	CAROL = 1003,
	TEAM = 2001,
	CREW = 2002
};

/* Adds a word to what the probe tells. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "ok" if rc is not -1, else the name of errno. Returns rc. */
long tell(long rc);
/* rc itself, or the name of errno if it is -1. */
long count(long rc);
const char *error_name(int error);

/* A call that only prepares: the probe ends there if it fails, and says so. */
#define NEED(call) need((long)(call), #call, __LINE__)
long need(long rc, const char *call, int line);

/* This process is that user from here on, in that group alone. */
void become(uid_t uid, gid_t gid);
/* Runs fn as that user and waits; what it tells is a part of what this probe tells. */
void as(uid_t uid, gid_t gid, void (*fn)(void));
/* Runs fn in another process and waits. */
void apart(void (*fn)(void));

/* The same name in the server's own file system. Valid until the 8th call after. */
const char *on_server(const char *name);
/* From the root of the mount. Likewise. */
const char *from_root(const char *name);
/* From the root of what is exported, on the server. Likewise. */
const char *server_root(const char *name);

/* A file with that text, mode 0666. */
void put(const char *name, const char *text);
/* The same, owner and mode as given. */
void put_as(const char *name, uid_t uid, gid_t gid, mode_t mode);
/* A new file of len bytes 'x', open for both. */
int data_file(const char *name, size_t len);
int open_rw(const char *name);
/* Says what a file holds: its text up to 60 bytes, or the error. */
void say_text(const char *name);
void say_mode(const char *name);
void say_size(const char *name);
/* Name of the type of a file, from its mode. */
const char *type_name(mode_t mode);

#endif
