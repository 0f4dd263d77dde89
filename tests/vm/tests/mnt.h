/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the Criterion programs in the VM share: a mount made before the first
 * test and unmounted after the last one, a folder for each test, seen from both
 * sides, and assertions that say what went wrong.
 *
 *   c("file")  its path through the mount (the client's side)
 *   s("file")  its path in the server's own file system
 *
 * Environment: BUILD_DIR and FABRIC as for all tests (guest.sh), SERVER, EXPORT_DIR and MNT_WRAP
 * as its criterion() sets them;
 * MNT_OPTS: mount options (t_lanes.sh and others run these programs again);
 * CLIENT=kernel: the kernel's NFS/RDMA client instead (docs/testing.md).
 */
#ifndef RPCRDMAFS_MNT_H
#define RPCRDMAFS_MNT_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Criterion .init of each suite: the test's folder, which every user may write in. */
void mnt_setup(void);

/* Valid until the 32nd call after. */
const char *c(const char *name);
const char *s(const char *name);
/* From the root of the mount, not the test's folder. */
const char *mnt_root(const char *path);

/* Pattern bytes that depend on the position, so that misplaced data shows. */
void fill(void *buf, size_t len, uint64_t pos);
/* Index of the first byte that is not the pattern; len: all are. */
size_t fill_check(const void *buf, size_t len, uint64_t pos);

void write_all(int fd, const void *buf, size_t len, off_t off);
void read_all(int fd, void *buf, size_t len, off_t off);
/* A whole file with `len` pattern bytes. */
void put_pattern(const char *path, size_t len);
/* Fails the test if path does not hold exactly len pattern bytes. */
void want_pattern(const char *path, size_t len);
void put_text(const char *path, const char *text);
void want_text(const char *path, const char *text);
struct stat stat_of(const char *path);
/* Number of entries, "." and ".." not counted. */
int count_entries(const char *path);
/* Number of .nfs files in the test's folder on the server. */
int count_silly(void);
/* Runs fn in a child as that user; fails the test if it returns false or dies. */
void as_user(uid_t uid, gid_t gid, bool (*fn)(void));

/* The result of a system call that must not fail. */
#define WORKS(call) works((long)(call), #call, __LINE__)
long works(long result, const char *call, int line);

#define FAILS(call, error)                                                                         \
	do {                                                                                       \
		errno = 0;                                                                         \
		cr_assert((call) == -1, "%s worked", #call);                                       \
		cr_assert(errno == (error), "%s: %s, not %s", #call, strerror(errno),              \
			strerror(error));                                                          \
	} while (0)

#define SUITE(name) TestSuite(name, .init = mnt_setup, .timeout = 120)

#endif
