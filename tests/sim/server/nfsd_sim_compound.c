/* SPDX-License-Identifier: BSD-3-Clause */
/* COMPOUND: which operations it holds, and their execution one after the other. */
#include "nfsd_sim_int.h"

#include <stdlib.h>

static const struct {
	uint32_t num;
	op_fn fn;
} ops[] = {
	{OP4_ACCESS, op_access},
	{OP4_CLOSE, op_close},
	{OP4_COMMIT, op_commit},
	{OP4_CREATE, op_create},
	{OP4_DELEGRETURN, op_delegreturn},
	{OP4_GETATTR, op_getattr},
	{OP4_GETFH, op_getfh},
	{OP4_LINK, op_link},
	{OP4_LOCK, op_lock},
	{OP4_LOCKT, op_lockt},
	{OP4_LOCKU, op_locku},
	{OP4_LOOKUP, op_lookup},
	{OP4_LOOKUPP, op_lookupp},
	{OP4_OPEN, op_open},
	{OP4_OPEN_DOWNGRADE, op_open_downgrade},
	{OP4_PUTFH, op_putfh},
	{OP4_PUTPUBFH, op_putrootfh},
	{OP4_PUTROOTFH, op_putrootfh},
	{OP4_READ, op_read},
	{OP4_READDIR, op_readdir},
	{OP4_READLINK, op_readlink},
	{OP4_REMOVE, op_remove},
	{OP4_RENAME, op_rename},
	{OP4_RESTOREFH, op_restorefh},
	{OP4_SAVEFH, op_savefh},
	{OP4_SETATTR, op_setattr},
	{OP4_VERIFY, op_verify},
	{OP4_WRITE, op_write},
	{OP4_BIND_CONN, op_bind_conn},
	{OP4_EXCHANGE_ID, op_exchange_id},
	{OP4_CREATE_SESSION, op_create_session},
	{OP4_DESTROY_SESSION, op_destroy_session},
	{OP4_FREE_STATEID, op_free_stateid},
	{OP4_SECINFO_NO_NAME, op_secinfo_no_name},
	{OP4_SEQUENCE, op_sequence},
	{OP4_TEST_STATEID, op_test_stateid},
	{OP4_DESTROY_CLIENTID, op_destroy_clientid},
	{OP4_RECLAIM_COMPLETE, op_reclaim_complete},
	{OP4_ALLOCATE, op_allocate},
	{OP4_DEALLOCATE, op_deallocate},
	{OP4_COPY, op_copy},
	{OP4_OFFLOAD_CANCEL, op_offload_cancel},
	{OP4_OFFLOAD_STATUS, op_offload_status},
	{OP4_SEEK, op_seek},
	{OP4_CLONE, op_clone},
	{OP4_GETXATTR, op_getxattr},
	{OP4_SETXATTR, op_setxattr},
	{OP4_LISTXATTRS, op_listxattrs},
	{OP4_REMOVEXATTR, op_removexattr},
};

/* ---- looking ahead, for the rules ---- */

static void skip_opaque(struct rd *r)
{
	uint32_t len;

	rd_opaque(r, &len);
}

static void skip_fattr(struct rd *r)
{
	uint32_t mask[3];

	rd_bitmap(r, mask);
	skip_opaque(r);
}

static void skip_open(struct rd *r)
{
	uint32_t mode, claim;

	rd_bytes(r, 20);
	skip_opaque(r);
	if (rd_u32(r) == 1) {
		mode = rd_u32(r);
		if (mode >= 2)
			rd_bytes(r, 8);
		if (mode != 2)
			skip_fattr(r);
	}
	claim = rd_u32(r);
	if (claim == 0 || claim == 3)
		skip_opaque(r);
	else if (claim == 1)
		rd_u32(r);
	else if (claim == 2 || claim == 5)
		rd_bytes(r, 16);
	if (claim == 2)
		skip_opaque(r);
}

static void skip_create(struct rd *r)
{
	uint32_t type = rd_u32(r);

	if (type == NFSD_SIM_LNK)
		skip_opaque(r);
	else if (type == 3 || type == 4)
		rd_bytes(r, 8);
	skip_opaque(r);
	skip_fattr(r);
}

static void skip_lock(struct rd *r)
{
	rd_bytes(r, 24);
	if (rd_u32(r)) {
		rd_bytes(r, 4 + 16 + 4 + 8);
		skip_opaque(r);
	} else {
		rd_bytes(r, 16 + 4);
	}
}

/* False: where the next operation starts is not known. */
static bool skip_args(struct rd *r, uint32_t op)
{
	uint32_t mask[3];

	switch (op) {
	case OP4_GETFH:
	case OP4_LOOKUPP:
	case OP4_PUTPUBFH:
	case OP4_PUTROOTFH:
	case OP4_READLINK:
	case OP4_RESTOREFH:
	case OP4_SAVEFH:
		break;
	case OP4_ACCESS:
	case OP4_SECINFO_NO_NAME:
	case OP4_RECLAIM_COMPLETE:
		rd_u32(r);
		break;
	case OP4_CLOSE:
		rd_bytes(r, 20);
		break;
	case OP4_COMMIT:
	case OP4_LISTXATTRS:
		rd_bytes(r, 12);
		break;
	case OP4_CREATE:
		skip_create(r);
		break;
	case OP4_GETATTR:
		rd_bitmap(r, mask);
		break;
	case OP4_LINK:
	case OP4_LOOKUP:
	case OP4_REMOVE:
	case OP4_PUTFH:
	case OP4_GETXATTR:
	case OP4_REMOVEXATTR:
		skip_opaque(r);
		break;
	case OP4_LOCK:
		skip_lock(r);
		break;
	case OP4_LOCKT:
		rd_bytes(r, 28);
		skip_opaque(r);
		break;
	case OP4_LOCKU:
		rd_bytes(r, 40);
		break;
	case OP4_OPEN:
		skip_open(r);
		break;
	case OP4_OPEN_DOWNGRADE:
	case OP4_SEEK:
	case OP4_READ:
		rd_bytes(r, 28);
		break;
	case OP4_READDIR:
		rd_bytes(r, 24);
		rd_bitmap(r, mask);
		break;
	case OP4_RENAME:
		skip_opaque(r);
		skip_opaque(r);
		break;
	case OP4_SETATTR:
		rd_bytes(r, 16);
		skip_fattr(r);
		break;
	case OP4_VERIFY:
		skip_fattr(r);
		break;
	case OP4_WRITE:
		rd_bytes(r, 28);
		skip_opaque(r);
		break;
	case OP4_DELEGRETURN:
	case OP4_DESTROY_SESSION:
	case OP4_FREE_STATEID:
	case OP4_OFFLOAD_CANCEL:
	case OP4_OFFLOAD_STATUS:
		rd_bytes(r, 16);
		break;
	case OP4_CLONE:
		rd_bytes(r, 56);
		break;
	case OP4_COPY:
		rd_bytes(r, 64);
		return !rd_u32(r) && !r->bad;
	case OP4_ALLOCATE:
	case OP4_DEALLOCATE:
	case OP4_SEQUENCE:
		rd_bytes(r, 32);
		break;
	case OP4_SETXATTR:
		rd_u32(r);
		skip_opaque(r);
		skip_opaque(r);
		break;
	default:
		return false;
	}
	return !r->bad;
}

void compound_scan(struct rd *in, bool seen[80])
{
	struct rd r = *in;
	uint32_t len, cnt;

	rd_opaque(&r, &len);
	rd_u32(&r);
	cnt = rd_u32(&r);
	for (uint32_t i = 0; i < cnt && !r.bad; i++) {
		uint32_t op = rd_u32(&r);

		if (op < 80)
			seen[op] = true;
		if (!skip_args(&r, op))
			return;
	}
}

/* ---- execution ---- */

/* A status that a rule wants this operation to have; -1: none. */
static int rule_status(struct cmp *c, uint32_t op, enum nfsd_sim_act act)
{
	list_for_each (node, &c->sim->rules) {
		struct rule *rule = container_of(node, struct rule, link);

		if (rule->r.act != act)
			continue;
		if (rule->r.op ? rule->r.op != op : c->op_idx != 1)
			continue;
		if (rule_turn(rule))
			return (int)rule->r.arg;
	}
	return -1;
}

static bool stands_alone(uint32_t op)
{
	return op == OP4_EXCHANGE_ID || op == OP4_CREATE_SESSION || op == OP4_BIND_CONN ||
	       op == OP4_DESTROY_SESSION || op == OP4_DESTROY_CLIENTID;
}

/* SEQUENCE first, or one of those that need none, alone. */
static uint32_t check_place(struct cmp *c, uint32_t op)
{
	if (c->op_idx == 0 && op == OP4_SEQUENCE)
		return ST_OK;
	if (c->op_idx == 0 && stands_alone(op)) {
		if (c->op_cnt == 1)
			return ST_OK;
		fab_sim_fail("xid %#x: operation %u without SEQUENCE is not the only one",
			c->job->xid, op);
		return ST_NOT_ONLY_OP;
	}
	if (c->op_idx && op == OP4_SEQUENCE) {
		fab_sim_fail("xid %#x: SEQUENCE is not the first operation", c->job->xid);
		return ST_SEQUENCE_POS;
	}
	if (!c->sess && c->op_idx == 0) {
		fab_sim_fail("xid %#x: operation %u without SEQUENCE", c->job->xid, op);
		return ST_OP_NOT_IN_SESSION;
	}
	return ST_OK;
}

static uint32_t run_op(struct cmp *c, uint32_t op)
{
	uint32_t st = check_place(c, op);
	int forced;

	if (st)
		return st;
	if (c->uncached_retry)
		return ST_RETRY_UNCACHED_REP;
	forced = rule_status(c, op, NFSD_SIM_STATUS);
	if (forced >= 0)
		return (uint32_t)forced;
	if (op < 80)
		c->sim->stats.ops[op]++;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (ops[i].num != op)
			continue;
		st = ops[i].fn(c);
		if (c->in.bad) {
			fab_sim_fail("xid %#x: arguments of operation %u cannot be decoded",
				c->job->xid, op);
			return ST_BADXDR;
		}
		if (!st && !c->replayed) {
			forced = rule_status(c, op, NFSD_SIM_STATUS_DONE);
			st = forced >= 0 ? (uint32_t)forced : ST_OK;
			if (c->cached)
				*c->cached = st;
		}
		return st;
	}
	fab_sim_fail("xid %#x: operation %u is not known here", c->job->xid, op);
	return op >= 3 && op < 80 ? ST_NOTSUPP : ST_OP_ILLEGAL;
}

/* The reply as a whole is bounded by the session. */
static uint32_t check_size(const struct cmp *c, uint32_t st)
{
	if (!c->sess || st)
		return st;
	if (c->out->len > c->sess->max_response)
		return ST_REP_TOO_BIG;
	if (c->cachethis && c->out->len > c->sess->max_cached) {
		c->sim->stats.too_big_to_cache++;
		return ST_REP_TOO_BIG_TO_CACHE;
	}
	return st;
}

static void run_ops(struct cmp *c, size_t cnt_off)
{
	uint32_t st = ST_OK, done = 0;

	for (c->op_idx = 0; c->op_idx < c->op_cnt && !st; c->op_idx++) {
		uint32_t op = rd_u32(&c->in);
		size_t op_off = c->out->len;
		unsigned int ddp = c->job->ddp_cnt;

		if (c->in.bad) {
			fab_sim_fail("xid %#x: COMPOUND ends before operation %u", c->job->xid,
				c->op_idx);
			st = ST_BADXDR;
			break;
		}
		wr_u32(c->out, op);
		wr_u32(c->out, 0);
		c->keep_body = false;
		st = run_op(c, op);
		if (c->replayed)
			return;
		st = check_size(c, st);
		if (st && !c->keep_body) {
			c->out->len = op_off + 8;
			c->job->ddp_cnt = ddp;
			if (op == OP4_SETATTR)
				wr_u32(c->out, 0);
			if (st == ST_DENIED)
				wr_denied(c, NULL);
		}
		put_u32(c->out->base + op_off + 4, st);
		done++;
	}
	if (!st && c->in.p != c->in.end)
		fab_sim_fail("xid %#x: %zu bytes after the last operation", c->job->xid,
			(size_t)(c->in.end - c->in.p));
	put_u32(c->out->base + c->status_off, st);
	put_u32(c->out->base + cnt_off, done);
}

void compound_execute(struct cmp *c)
{
	uint32_t tag_len;
	const uint8_t *tag;
	size_t cnt_off;

	c->args = c->in.p;
	c->args_len = (size_t)(c->in.end - c->in.p);
	tag = rd_opaque(&c->in, &tag_len);
	c->minor = rd_u32(&c->in);
	c->op_cnt = rd_u32(&c->in);
	c->status_off = c->out->len;
	wr_u32(c->out, ST_OK);
	if (c->in.bad) {
		fab_sim_fail("xid %#x: COMPOUND cannot be decoded", c->job->xid);
		put_u32(c->out->base + c->status_off, ST_BADXDR);
		tag_len = 0;
		c->op_cnt = 0;
	}
	wr_opaque(c->out, tag, tag_len);
	cnt_off = c->out->len;
	wr_u32(c->out, 0);
	if (c->in.bad)
		return;
	if (c->minor < 1 || c->minor > c->sim->conf.minor_max) {
		put_u32(c->out->base + c->status_off, ST_MINOR_VERS_MISMATCH);
		return;
	}
	run_ops(c, cnt_off);
	if (c->slot && !c->replayed && !c->uncached_retry)
		slot_store(c, c->status_off);
}
