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
 * groups here: less is allowed, never more. The pid is a number of the mounter's
 * namespace (/dev/fd/N), and may be somebody else's in ours: a process counts only
 * if it has the request's uid and gid. A group that has no number in our user
 * namespace reads as OVERFLOW_GID, and is left out.
 */
#include "fs_cred.h"

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
#define FSID_FIELD    4u     /* of "Uid:" and "Gid:": real, effective, saved, file system */
#define OVERFLOW_GID  65534u /* /proc/sys/kernel/overflowgid */

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

/* The n-th number behind `prefix`, which begins with the end of a line. */
static bool number_of(const char *status, const char *prefix, unsigned int n, unsigned long *ret)
{
	const char *p = strstr(status, prefix);
	char *end = NULL;

	if (!p)
		return false;
	p += strlen(prefix);
	while (n-- > 0) {
		while (*p == '\t' || *p == ' ')
			p++;
		if (!isdigit((unsigned char)*p))
			return false;
		*ret = strtoul(p, &end, 10);
		p = end;
	}
	return true;
}

bool fs_cred_is_of(const char *status, uint32_t uid, uint32_t gid)
{
	unsigned long u, g;

	return number_of(status, "\nUid:", FSID_FIELD, &u) && u == uid &&
	       number_of(status, "\nGid:", FSID_FIELD, &g) && g == gid;
}

static bool read_status(pid_t pid, char status[STATUS_MAX])
{
	char path[64];
	size_t len = 0;
	ssize_t n;
	int fd;

	if (pid <= 0)
		return false;
	/* The kernel's pid is a thread's: /proc/TID works though it is not listed. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (len < STATUS_MAX - 1 && (n = read(fd, status + len, STATUS_MAX - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	status[len] = '\0';
	return true;
}

bool fs_cred_is_caller(const struct fuse_ctx *ctx)
{
	char status[STATUS_MAX];

	return read_status(ctx->pid, status) && fs_cred_is_of(status, ctx->uid, ctx->gid);
}

static void read_groups(const struct fuse_ctx *ctx, struct rpc_cred *cred)
{
	char status[STATUS_MAX];
	unsigned int cnt, kept = 0;

	cred->gids_cnt = 0;
	if (!read_status(ctx->pid, status) || !fs_cred_is_of(status, ctx->uid, ctx->gid))
		return;
	cnt = fs_cred_parse_groups(status, cred->gids, RPC_MAX_GROUPS);
	for (unsigned int i = 0; i < cnt; i++)
		if (cred->gids[i] != OVERFLOW_GID || ctx->gid == OVERFLOW_GID)
			cred->gids[kept++] = cred->gids[i];
	cred->gids_cnt = kept;
}

void fs_cred_of(fuse_req_t req, uint64_t now_ns, struct rpc_cred *ret_cred)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct cred_slot *slot = &cred_cache[(unsigned int)ctx->pid % CRED_CACHE];

	if (slot->until_ns <= now_ns || slot->pid != ctx->pid || slot->cred.uid != ctx->uid ||
		slot->cred.gid != ctx->gid) {
		slot->pid = ctx->pid;
		slot->cred.flavor = RPC_AUTH_SYS;
		slot->cred.uid = ctx->uid;
		slot->cred.gid = ctx->gid;
		read_groups(ctx, &slot->cred);
		slot->until_ns = now_ns + CRED_LIFE_NS;
	}
	*ret_cred = slot->cred;
}
