/* SPDX-License-Identifier: BSD-3-Clause */
#include "latency.h"

#include <linux/fuse.h>
#include <stddef.h>

const char *latency_phase_name(enum latency_phase phase)
{
	static const char *const names[] = {
		[LATENCY_QUEUE] = "queue", [LATENCY_RPC] = "rpc", [LATENCY_FUSE] = "fuse"};

	return names[phase];
}

const char *latency_fuse_name(unsigned int opcode)
{
#define NAME(op) [FUSE_##op] = #op
	static const char *const names[LATENCY_FUSE_OPS] = {
		NAME(LOOKUP),
		NAME(FORGET),
		NAME(GETATTR),
		NAME(SETATTR),
		NAME(READLINK),
		NAME(SYMLINK),
		NAME(MKNOD),
		NAME(MKDIR),
		NAME(UNLINK),
		NAME(RMDIR),
		NAME(RENAME),
		NAME(LINK),
		NAME(OPEN),
		NAME(READ),
		NAME(WRITE),
		NAME(STATFS),
		NAME(RELEASE),
		NAME(FSYNC),
		NAME(SETXATTR),
		NAME(GETXATTR),
		NAME(LISTXATTR),
		NAME(REMOVEXATTR),
		NAME(FLUSH),
		NAME(INIT),
		NAME(OPENDIR),
		NAME(READDIR),
		NAME(RELEASEDIR),
		NAME(FSYNCDIR),
		NAME(GETLK),
		NAME(SETLK),
		NAME(SETLKW),
		NAME(ACCESS),
		NAME(CREATE),
		NAME(INTERRUPT),
		NAME(BMAP),
		NAME(DESTROY),
		NAME(IOCTL),
		NAME(POLL),
		NAME(BATCH_FORGET),
		NAME(FALLOCATE),
		NAME(READDIRPLUS),
		NAME(RENAME2),
		NAME(LSEEK),
		NAME(COPY_FILE_RANGE),
	};
#undef NAME

	return opcode < LATENCY_FUSE_OPS ? names[opcode] : NULL;
}

void latency_add(struct latency *to, const struct latency *from)
{
	for (unsigned int op = 0; op < LATENCY_FUSE_OPS; op++)
		for (unsigned int p = 0; p < LATENCY_PHASES; p++)
			hist_merge(&to->fuse[op][p], &from->fuse[op][p]);
	for (unsigned int op = 0; op < STATS_OPS; op++)
		hist_merge(&to->nfs[op], &from->nfs[op]);
}

void latency_subtract(struct latency *from, const struct latency *before)
{
	for (unsigned int op = 0; op < LATENCY_FUSE_OPS; op++)
		for (unsigned int p = 0; p < LATENCY_PHASES; p++)
			hist_subtract(&from->fuse[op][p], &before->fuse[op][p]);
	for (unsigned int op = 0; op < STATS_OPS; op++)
		hist_subtract(&from->nfs[op], &before->nfs[op]);
}
