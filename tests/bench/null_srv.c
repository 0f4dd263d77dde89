/* SPDX-License-Identifier: BSD-3-Clause */
#include "null_srv.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_prot.h"
#include "rpc.h"
#include "rpcrdma_prot.h"
#include "xdr.h"

#define WRITES_MAX 4u
#define ROOT_ID    2u
#define FOLDER_BIT (1ull << 62) /* in a file ID */

static const uint8_t sessionid[NFS4_SESSIONID_SIZE] = {1, 2, 3};
static const uint8_t stateid[16] = {0, 0, 0, 1, 's', 't', 'a', 't', 'e'};

/* One call, while it is answered. */
struct srv {
	struct xdr_dec in;
	struct xdr_enc out;
	uint64_t id; /* current filehandle, as a file ID; 0: none */
	uint64_t saved;
	bool has_read;                /* a Read chunk: the payload of WRITE is not in the message */
	size_t write_len[WRITES_MAX]; /* where the answer says how much of a Write chunk was used */
	unsigned int write_cnt, write_used;
};

void null_srv_die(const char *what)
{
	fprintf(stderr, "null server: %s\n", what);
	exit(1);
}

/* ---- files ---- */

static uint64_t id_of(const uint8_t *name, uint32_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ name[i]) * 0x100000001b3u;
	h = h >> 8 | 0x100;
	if (name[0] == 'd' && !(len >= 4 && memcmp(name, "data", 4) == 0))
		h |= FOLDER_BIT;
	return h;
}

static bool is_folder(uint64_t id)
{
	return id == ROOT_ID || (id & FOLDER_BIT);
}

static void put_fh(struct xdr_enc *x, uint64_t id)
{
	uint8_t fh[28] = {9};

	memcpy(fh + 8, &id, sizeof(id));
	xdr_put_opaque(x, fh, sizeof(fh));
}

static uint64_t get_fh(struct xdr_dec *x)
{
	uint64_t id = 0;
	uint32_t len = 0;
	const uint8_t *fh = xdr_get_opaque(x, NFS4_FHSIZE, &len);

	if (fh && len == 28)
		memcpy(&id, fh + 8, sizeof(id));
	return id;
}

/* ---- attributes ---- */

#define BIT(attr) (1u << ((attr) % 32))

static const uint32_t supported[3] = {
	BIT(FATTR4_SUPPORTED_ATTRS) | BIT(FATTR4_TYPE) | BIT(FATTR4_CHANGE) | BIT(FATTR4_SIZE) |
		BIT(FATTR4_FSID) | BIT(FATTR4_LEASE_TIME) | BIT(FATTR4_FILEID) |
		BIT(FATTR4_MAXFILESIZE) | BIT(FATTR4_MAXNAME) | BIT(FATTR4_MAXREAD) |
		BIT(FATTR4_MAXWRITE),
	BIT(FATTR4_MODE) | BIT(FATTR4_NUMLINKS) | BIT(FATTR4_OWNER) | BIT(FATTR4_OWNER_GROUP) |
		BIT(FATTR4_SPACE_USED) | BIT(FATTR4_TIME_ACCESS) | BIT(FATTR4_TIME_METADATA) |
		BIT(FATTR4_TIME_MODIFY) | BIT(FATTR4_MOUNTED_ON_FILEID),
	0,
};

static void put_time(struct xdr_enc *x)
{
	xdr_put_u64(x, 1700000000);
	xdr_put_u32(x, 5);
}

static void put_attr(struct xdr_enc *x, uint64_t id, unsigned int attr)
{
	switch (attr) {
	case FATTR4_SUPPORTED_ATTRS:
		xdr_put_u32(x, 2);
		xdr_put_u32(x, supported[0]);
		xdr_put_u32(x, supported[1]);
		break;
	case FATTR4_TYPE:
		xdr_put_u32(x, is_folder(id) ? NF4DIR : NF4REG);
		break;
	case FATTR4_FSID:
		xdr_put_u64(x, 1);
		xdr_put_u64(x, 2);
		break;
	case FATTR4_LEASE_TIME:
		xdr_put_u32(x, 90);
		break;
	case FATTR4_SIZE:
	case FATTR4_SPACE_USED:
		xdr_put_u64(x, is_folder(id) ? 4096 : NULL_SRV_SIZE);
		break;
	case FATTR4_FILEID:
	case FATTR4_MOUNTED_ON_FILEID:
		xdr_put_u64(x, id);
		break;
	case FATTR4_CHANGE:
		xdr_put_u64(x, 77);
		break;
	case FATTR4_MAXFILESIZE:
		xdr_put_u64(x, INT64_MAX);
		break;
	case FATTR4_MAXNAME:
		xdr_put_u32(x, 255);
		break;
	case FATTR4_MAXREAD:
	case FATTR4_MAXWRITE:
		xdr_put_u64(x, 1 << 20);
		break;
	case FATTR4_MODE:
		xdr_put_u32(x, is_folder(id) ? 0755 : 0644);
		break;
	case FATTR4_NUMLINKS:
		xdr_put_u32(x, 1);
		break;
	case FATTR4_OWNER:
	case FATTR4_OWNER_GROUP:
		xdr_put_opaque(x, "0", 1);
		break;
	default: /* the times */
		put_time(x);
		break;
	}
}

static void get_mask(struct xdr_dec *x, uint32_t words[3])
{
	uint32_t cnt = xdr_get_count(x, 8, 4);

	memset(words, 0, 3 * sizeof(words[0]));
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t word = xdr_get_u32(x);

		if (i < 3)
			words[i] = word;
	}
}

static void op_getattr(struct srv *s)
{
	uint32_t words[3];
	size_t start;

	get_mask(&s->in, words);
	xdr_put_u32(&s->out, 2);
	xdr_put_u32(&s->out, words[0] & supported[0]);
	xdr_put_u32(&s->out, words[1] & supported[1]);
	start = xdr_enc_len(&s->out);
	xdr_put_u32(&s->out, 0);
	for (unsigned int w = 0; w < 2; w++) {
		for (uint32_t left = words[w] & supported[w]; left; left &= left - 1)
			put_attr(&s->out, s->id, w * 32 + (unsigned int)__builtin_ctz(left));
	}
	xdr_patch_u32(&s->out, start, (uint32_t)(xdr_enc_len(&s->out) - start - 4));
}

static void skip_fattr(struct srv *s)
{
	uint32_t words[3];

	get_mask(&s->in, words);
	xdr_skip_opaque(&s->in, 4096);
}

/* ---- files opened, data ---- */

static uint32_t op_lookup(struct srv *s)
{
	uint32_t len = 0;
	const uint8_t *name = xdr_get_opaque(&s->in, NFS4_MAXNAMLEN, &len);

	if (!name || len == 0 || name[0] != 'd')
		return NFS4ERR_NOENT;
	s->id = id_of(name, len);
	return NFS4_OK;
}

static void op_open(struct srv *s)
{
	uint32_t len = 0, mode, claim;
	const uint8_t *name;

	xdr_get_fixed(&s->in, 4 + 4 + 4 + 8); /* seqid, access, deny, client ID */
	xdr_skip_opaque(&s->in, NFS4_OPAQUE_LIMIT);
	if (xdr_get_u32(&s->in) == OPEN4_CREATE) {
		mode = xdr_get_u32(&s->in);
		if (mode == EXCLUSIVE4_1)
			xdr_get_u64(&s->in);
		skip_fattr(s);
	}
	claim = xdr_get_u32(&s->in);
	if (claim == CLAIM_NULL) {
		name = xdr_get_opaque(&s->in, NFS4_MAXNAMLEN, &len);
		if (name)
			s->id = id_of(name, len);
	} else if (claim != CLAIM_FH) {
		null_srv_die("an OPEN with a claim that is not known");
	}
	xdr_put_fixed(&s->out, stateid, sizeof(stateid));
	xdr_put_bool(&s->out, true); /* of the folder: atomic, before, after */
	xdr_put_u64(&s->out, 77);
	xdr_put_u64(&s->out, 77);
	xdr_put_u32(&s->out, 0);
	xdr_put_u32(&s->out, 0);
	xdr_put_u32(&s->out, OPEN_DELEGATE_NONE);
}

static void op_read(struct srv *s)
{
	static const uint8_t payload[8192];
	uint64_t off;
	uint32_t count;

	xdr_get_fixed(&s->in, 16);
	off = xdr_get_u64(&s->in);
	count = xdr_get_u32(&s->in);
	if (off >= NULL_SRV_SIZE)
		count = 0;
	else if (count > NULL_SRV_SIZE - off)
		count = (uint32_t)(NULL_SRV_SIZE - off);
	xdr_put_bool(&s->out, off + count >= NULL_SRV_SIZE);
	if (s->write_used < s->write_cnt) {
		xdr_patch_u32(&s->out, s->write_len[s->write_used++], count);
		xdr_put_u32(&s->out, count);
	} else {
		xdr_put_opaque(&s->out, payload, count < sizeof(payload) ? count : sizeof(payload));
	}
}

static void op_write(struct srv *s)
{
	uint32_t len, stable;

	xdr_get_fixed(&s->in, 16 + 8);
	stable = xdr_get_u32(&s->in);
	len = xdr_get_u32(&s->in);
	if (!s->has_read)
		xdr_get_fixed(&s->in, len);
	xdr_put_u32(&s->out, len);
	xdr_put_u32(&s->out, stable);
	xdr_put_u64(&s->out, 0x1122334455667788);
}

/* ---- client ID, session ---- */

/* Whoever takes the mount over has our variables, and is known. */
#define KNOWN "NULL_SRV_KNOWN"

static void op_exchange_id(struct srv *s)
{
	uint32_t flags = EXCHGID4_FLAG_USE_NON_PNFS;

	if (getenv(KNOWN))
		flags |= EXCHGID4_FLAG_CONFIRMED_R;
	setenv(KNOWN, "1", 1);
	xdr_get_u64(&s->in);
	xdr_skip_opaque(&s->in, NFS4_OPAQUE_LIMIT);
	xdr_get_fixed(&s->in, 12);
	xdr_put_u64(&s->out, 1); /* client ID */
	xdr_put_u32(&s->out, 1);
	xdr_put_u32(&s->out, flags);
	xdr_put_u32(&s->out, SP4_NONE);
	xdr_put_u64(&s->out, 0);
	xdr_put_opaque(&s->out, "null", 4);
	xdr_put_opaque(&s->out, "null", 4);
	xdr_put_u32(&s->out, 0);
}

/* The last operation of its call: what follows in the arguments is not read. */
static void op_create_session(struct srv *s)
{
	static const uint32_t chan[] = {0, (1 << 20) + 4096, (1 << 20) + 4096, 4096, 50, 64, 0};

	xdr_get_u64(&s->in); /* client ID */
	xdr_put_fixed(&s->out, sessionid, sizeof(sessionid));
	xdr_put_u32(&s->out, xdr_get_u32(&s->in)); /* the sequence number */
	xdr_put_u32(&s->out, 0);                   /* no backchannel, so no delegations either */
	for (unsigned int i = 0; i < 14; i++)
		xdr_put_u32(&s->out, chan[i % 7]);
}

static void op_sequence(struct srv *s)
{
	uint32_t seqid, slot;

	xdr_get_fixed(&s->in, sizeof(sessionid));
	seqid = xdr_get_u32(&s->in);
	slot = xdr_get_u32(&s->in);
	xdr_get_fixed(&s->in, 8);
	xdr_put_fixed(&s->out, sessionid, sizeof(sessionid));
	xdr_put_u32(&s->out, seqid);
	xdr_put_u32(&s->out, slot);
	xdr_put_u32(&s->out, 63);
	xdr_put_u32(&s->out, 63);
	xdr_put_u32(&s->out, 0);
}

/* ---- COMPOUND ---- */

/* Operations whose results are more than a status; false: not one of these. */
static bool run_other(struct srv *s, uint32_t op)
{
	switch (op) {
	case OP_SEQUENCE:
		op_sequence(s);
		return true;
	case OP_EXCHANGE_ID:
		op_exchange_id(s);
		return true;
	case OP_CREATE_SESSION:
		op_create_session(s);
		return true;
	case OP_GETATTR:
		op_getattr(s);
		return true;
	case OP_OPEN:
		op_open(s);
		return true;
	case OP_READ:
		op_read(s);
		return true;
	case OP_WRITE:
		op_write(s);
		return true;
	case OP_GETFH:
		put_fh(&s->out, s->id);
		return true;
	case OP_ACCESS:
		xdr_put_u32(&s->out, 0x3f);
		xdr_put_u32(&s->out, xdr_get_u32(&s->in));
		return true;
	case OP_COMMIT:
		xdr_get_fixed(&s->in, 12);
		xdr_put_u64(&s->out, 0x1122334455667788);
		return true;
	case OP_CLOSE:
		xdr_get_fixed(&s->in, 20);
		xdr_put_fixed(&s->out, stateid, sizeof(stateid));
		return true;
	case OP_SETATTR:
		xdr_get_fixed(&s->in, 16);
		skip_fattr(s);
		xdr_put_u32(&s->out, 0);
		return true;
	default:
		return false;
	}
}

static uint32_t run(struct srv *s, uint32_t op)
{
	switch (op) {
	case OP_PUTROOTFH:
		s->id = ROOT_ID;
		return NFS4_OK;
	case OP_PUTFH:
		s->id = get_fh(&s->in);
		return NFS4_OK;
	case OP_SAVEFH:
		s->saved = s->id;
		return NFS4_OK;
	case OP_RESTOREFH:
		s->id = s->saved;
		return NFS4_OK;
	case OP_LOOKUP:
		return op_lookup(s);
	case OP_RECLAIM_COMPLETE:
		xdr_get_u32(&s->in);
		return NFS4_OK;
	case OP_DESTROY_SESSION:
	case OP_DESTROY_CLIENTID: /* alone in their calls */
		return NFS4_OK;
	default:
		return run_other(s, op) ? NFS4_OK : NFS4ERR_NOTSUPP;
	}
}

static void compound(struct srv *s)
{
	uint32_t cnt, done = 0, status = NFS4_OK;
	size_t head;

	xdr_skip_opaque(&s->in, 64); /* tag */
	xdr_get_u32(&s->in);
	cnt = xdr_get_u32(&s->in);
	head = xdr_enc_len(&s->out);
	xdr_put_u32(&s->out, NFS4_OK);
	xdr_put_u32(&s->out, 0);
	xdr_put_u32(&s->out, 0);
	while (done < cnt && status == NFS4_OK) {
		uint32_t op = xdr_get_u32(&s->in);
		size_t at = xdr_enc_len(&s->out);

		xdr_put_u32(&s->out, op);
		xdr_put_u32(&s->out, NFS4_OK);
		status = run(s, op);
		xdr_patch_u32(&s->out, at + 4, status);
		done++;
	}
	xdr_patch_u32(&s->out, head, status);
	xdr_patch_u32(&s->out, head + 8, done);
}

/* ---- RPC-over-RDMA ---- */

/* Goes back unused: all answers are small. */
static void reply_chunk(struct srv *s)
{
	uint32_t cnt;

	if (!xdr_get_u32(&s->in)) {
		xdr_put_u32(&s->out, 0);
		return;
	}
	cnt = xdr_get_count(&s->in, 64, RPCRDMA_HDR_SEG);
	xdr_put_u32(&s->out, 1);
	xdr_put_u32(&s->out, cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		xdr_put_u32(&s->out, xdr_get_u32(&s->in));
		xdr_get_u32(&s->in);
		xdr_put_u32(&s->out, 0);
		xdr_put_u64(&s->out, xdr_get_u64(&s->in));
	}
}

/* Chunk lists as they come; those that a server writes to go back with how much it wrote: nothing
 * yet. */
static void chunks(struct srv *s)
{
	xdr_put_u32(&s->out, 0);
	while (xdr_get_u32(&s->in)) {
		xdr_get_fixed(&s->in, RPCRDMA_HDR_READ_SEG - 4);
		s->has_read = true;
	}
	while (xdr_get_u32(&s->in)) {
		if (xdr_get_u32(&s->in) != 1 || s->write_cnt == WRITES_MAX)
			null_srv_die("a Write chunk of several segments, or too many of them");
		xdr_put_u32(&s->out, 1);
		xdr_put_u32(&s->out, 1);
		s->write_len[s->write_cnt++] = xdr_enc_len(&s->out) + 4;
		xdr_put_u32(&s->out, xdr_get_u32(&s->in));
		xdr_get_u32(&s->in);
		xdr_put_u32(&s->out, 0);
		xdr_put_u64(&s->out, xdr_get_u64(&s->in));
	}
	xdr_put_u32(&s->out, 0);
	reply_chunk(s);
}

uint32_t null_srv_answer(const uint8_t *msg, uint32_t len, uint8_t *reply)
{
	struct srv s = {.id = 0};
	struct rpc_callhdr call;
	uint32_t xid;

	xdr_dec_init(&s.in, msg, len);
	xdr_enc_init(&s.out, reply, NULL_SRV_REPLY);
	xid = xdr_get_u32(&s.in);
	xdr_get_u32(&s.in);
	xdr_get_u32(&s.in);
	if (xdr_get_u32(&s.in) != RDMA_MSG)
		null_srv_die("a call that is not RDMA_MSG");
	xdr_put_u32(&s.out, xid);
	xdr_put_u32(&s.out, RPCRDMA_VERSION);
	xdr_put_u32(&s.out, NULL_SRV_CREDITS);
	xdr_put_u32(&s.out, RDMA_MSG);
	chunks(&s);
	if (rpc_decode_call(&s.in, &call) != 0)
		null_srv_die("an RPC header that cannot be decoded");
	rpc_encode_accepted(&s.out, xid, RPC_ACCEPT_SUCCESS, 0, 0);
	if (call.proc != 0)
		compound(&s);
	if (s.in.failed || s.out.failed)
		null_srv_die("a call that cannot be decoded, or an answer that is too long");
	return (uint32_t)xdr_enc_len(&s.out);
}
