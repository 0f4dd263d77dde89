/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is told of a request when it is answered: where its time went (latency.h), and a line of
 * the operation log.
 */
#include "fs_reply.h"
#include "fs_inode.h"
#include "latency.h"
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>

static const char *error_name(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "?";
}

/* What the request is about, as far as it has that. */
static void describe(const struct fs_op *op, char *text, size_t len)
{
	size_t at = 0;

	text[0] = '\0';
	if (op->inode)
		at += (size_t)snprintf(text, len, " file=%" PRIu64, fs_inode_fileid(op->inode));
	if (at < len && op->name[0])
		at += (size_t)snprintf(text + at, len - at, " name=%s", op->name);
	if (at < len && op->name2[0])
		at += (size_t)snprintf(text + at, len - at, " to=%s", op->name2);
	if (at < len && (op->opcode == FUSE_READ || op->opcode == FUSE_WRITE))
		snprintf(text + at, len - at, " at=%" PRId64 " size=%zu", (int64_t)op->off,
			op->size);
}

static void log_line(const struct fs_op *op, int64_t result, uint64_t total_ns)
{
	const char *name = latency_fuse_name(latency_fuse_row(op->opcode));
	char what[700], end[64];

	describe(op, what, sizeof(what));
	if (result < 0)
		snprintf(end, sizeof(end), "%s", error_name((int)-result));
	else if (result > 0)
		snprintf(end, sizeof(end), "%" PRId64, result);
	else
		snprintf(end, sizeof(end), "ok");
	log_out(LOG_LVL_INFO,
		"op %s%s uid=%u: %s in %" PRIu64 " us (queue %" PRIu64 ", rpc %" PRIu64 ")",
		name ? name : "?", what, (unsigned int)op->cred.uid, end, total_ns / 1000,
		op->times.queue_ns / 1000, op->times.rpc_ns / 1000);
}

void fs_trace_answered(struct fs_op *op, int64_t result)
{
	struct latency *lat = op->lane->stats->latency;
	const struct nfs4_times *t = &op->times;
	uint64_t total, calls = t->queue_ns + t->rpc_ns;
	struct hist *h;

	if (!lat)
		return;
	total = reactor_clock(op->lane->reactor) - op->read_ns;
	h = lat->fuse[latency_fuse_row(op->opcode)];
	hist_add(&h[LATENCY_QUEUE], t->queue_ns);
	hist_add(&h[LATENCY_RPC], t->rpc_ns);
	hist_add(&h[LATENCY_FUSE], total > calls ? total - calls : 0);
	if (op->lane->fs->ops_log)
		log_line(op, result, total);
}
