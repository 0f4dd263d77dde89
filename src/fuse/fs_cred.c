/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who asks. The kernel says uid and gid with each request; the supplementary
 * groups must be read from /proc. That costs more than a small RPC's CPU time,
 * so they are kept for a moment, by thread id, uid and gid together: a thread
 * id that is used again by another user, or a program that changed its uid or
 * gid, never gets groups of before. What remains: a program that gives up
 * supplementary groups but keeps uid and gid may still be served with the old
 * ones for CRED_LIFE_NS; and a thread id used again within that time by the
 * same uid and gid gets that user's former groups.
 *
 * AUTH_SYS carries 16 groups; what a user has beyond that is not sent (the
 * first 16 in the kernel's order, which is ascending, are).
 *
 * A caller in another pid namespace, or one that /proc hides (hidepid), has no
 * groups here: less is allowed, never more.
 */
#include "fs_int.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CRED_LIFE_NS  NSEC_PER_SEC
#define CRED_CACHE    64u
#define STATUS_MAX    8192u /* "Groups:" is among the first lines; a longer list is cut anyway */
#define GROUPS_PREFIX "\nGroups:"

struct cred_slot {
	pid_t pid;
	uint64_t until_ns; /* 0: empty */
	struct rpc_cred cred;
};

static __thread struct cred_slot cred_cache[CRED_CACHE];

unsigned int fs_cred_parse_groups(const char *status, uint32_t *gids, unsigned int max)
{
	const char *p = strstr(status, GROUPS_PREFIX);
	unsigned int cnt = 0;

	if (!p)
		return 0;
	p += sizeof(GROUPS_PREFIX) - 1;
	while (cnt < max) {
		char *end;
		unsigned long gid;

		while (*p == ' ' || *p == '\t')
			p++;
		if (!isdigit((unsigned char)*p))
			break;
		gid = strtoul(p, &end, 10);
		/* Cut in the middle by the end of the buffer: not a group. */
		if (*end == '\0')
			break;
		gids[cnt++] = (uint32_t)gid;
		p = end;
	}
	return cnt;
}

static unsigned int read_groups(pid_t pid, uint32_t *gids, unsigned int max)
{
	char path[64], status[STATUS_MAX];
	size_t len = 0;
	ssize_t n;
	int fd;

	if (pid <= 0)
		return 0;
	/* The kernel's pid is a thread's: /proc/TID works though it is not listed. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (len < sizeof(status) - 1 &&
		(n = read(fd, status + len, sizeof(status) - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	status[len] = '\0';
	return fs_cred_parse_groups(status, gids, max);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

void fs_cred_of(fuse_req_t req, struct rpc_cred *ret_cred)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct cred_slot *slot = &cred_cache[(unsigned int)ctx->pid % CRED_CACHE];
	uint64_t now_ns = now();

	if (slot->until_ns <= now_ns || slot->pid != ctx->pid || slot->cred.uid != ctx->uid ||
		slot->cred.gid != ctx->gid) {
		slot->pid = ctx->pid;
		slot->cred.flavor = RPC_AUTH_SYS;
		slot->cred.uid = ctx->uid;
		slot->cred.gid = ctx->gid;
		slot->cred.gids_cnt = read_groups(ctx->pid, slot->cred.gids, RPC_MAX_GROUPS);
		slot->until_ns = now_ns + CRED_LIFE_NS;
	}
	*ret_cred = slot->cred;
}
