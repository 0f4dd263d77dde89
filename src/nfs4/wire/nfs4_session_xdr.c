/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls about a session: CREATE_SESSION (RFC 8881 section 18.36),
 * DESTROY_SESSION (18.37) and BIND_CONN_TO_SESSION (18.34), and how large a
 * session we ask for.
 *
 * Context: pure.
 */
#include "nfs4_cb_xdr.h"
#include "nfs4_codec.h"

#include <string.h>

/*
 * Longest part of a call beside a WRITE's data, and of a reply beside a READ's:
 * RPC headers (AUTH_SYS with 16 groups and a long machine name: 400 bytes) and
 * COMPOUNDs that fit inline. nfsd counts chunks in, so the data is added.
 */
#define CALL_ROOM  4096u
#define REPLY_ROOM 4096u
/*
 * nfsd gives 64 KiB of reply cache to a session: with replies of 1032 bytes to
 * keep that makes 64 slots (asking for the usual 7584 makes 30). An OPEN with
 * GETFH and two GETATTRs is about 700.
 */
#define CACHED_MAX 1032u
/* Back channel: inline only, so that connections with larger thresholds get no more either. */
#define BACK_SIZE 4068u

#define BACK_MIN_REQ 540u

/* Smaller than these and ordinary calls do not fit: see nfs4_session_xdr_check(). */
#define MIN_SIZE 2048u
#define MIN_OPS  8u /* RENAME, CREATE; what Linux' client asks for */
/* An OPEN by name with a filehandle of 32 bytes, a delegation, and no attributes. */
#define MIN_CACHED 448u

#define CHAN_RES 28u /* channel_attrs4 without ca_rdma_ird's one word */
#define RDMA_IRD 4u

void nfs4_session_xdr_ask(struct nfs4_create_session *cs, uint32_t slots, uint32_t data_size)
{
	memset(cs, 0, sizeof(*cs));
	cs->flags = CREATE_SESSION4_FLAG_CONN_BACK_CHAN; /* PERSIST: nobody has it */
	cs->fore.maxreq = data_size + CALL_ROOM;
	cs->fore.maxresp = data_size + REPLY_ROOM;
	cs->fore.maxcached = CACHED_MAX;
	cs->fore.maxops = NFS4_MAX_OPS;
	cs->fore.maxreqs = slots < NFS4_SLOT_MAX ? slots : NFS4_SLOT_MAX;
	cs->back.maxreq = BACK_SIZE;
	cs->back.maxresp = BACK_SIZE;
	cs->back.maxops = NFS4_CB_OPS;
	cs->back.maxreqs = NFS4_CB_SLOTS;
	cs->cb_program = NFS4_CB_PROGRAM;
}

/*
 * RFC 8167 section 5.1: a call of the server and our answer fit inline. Without room for the
 * least that nfsd takes there is no back channel.
 */
void nfs4_session_xdr_ask_back(struct nfs4_create_session *cs, size_t call_max, size_t reply_max)
{
	if (cs->back.maxreq > call_max)
		cs->back.maxreq = (uint32_t)call_max;
	if (cs->back.maxresp > reply_max)
		cs->back.maxresp = (uint32_t)reply_max;
	if (cs->back.maxreq < BACK_MIN_REQ || cs->back.maxresp < NFS4_CB_ANSWER_MAX)
		cs->flags &= ~CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
}

static void put_chan(struct xdr_enc *x, const struct nfs4_chan *ch)
{
	xdr_put_u32(x, ch->headerpad);
	xdr_put_u32(x, ch->maxreq);
	xdr_put_u32(x, ch->maxresp);
	xdr_put_u32(x, ch->maxcached);
	xdr_put_u32(x, ch->maxops);
	xdr_put_u32(x, ch->maxreqs);
	xdr_put_u32(x, 0); /* ca_rdma_ird<1> */
}

static void get_chan(struct xdr_dec *x, struct nfs4_chan *ch)
{
	ch->headerpad = xdr_get_u32(x);
	ch->maxreq = xdr_get_u32(x);
	ch->maxresp = xdr_get_u32(x);
	ch->maxcached = xdr_get_u32(x);
	ch->maxops = xdr_get_u32(x);
	ch->maxreqs = xdr_get_u32(x);
	if (xdr_get_count(x, 1, RDMA_IRD) == 1)
		xdr_get_u32(x);
}

void nfs4_session_xdr_put_create(struct nfs4_compound *c, const struct nfs4_create_session *cs)
{
	static const char machine[] = "rpcrdmafs";
	struct xdr_enc *x = &c->enc;

	nfs4_compound_op(c, OP_CREATE_SESSION, NFS4_SESSIONID_SIZE + 8 + 2 * (CHAN_RES + RDMA_IRD));
	xdr_put_u64(x, cs->clientid);
	xdr_put_u32(x, cs->sequence);
	xdr_put_u32(x, cs->flags);
	put_chan(x, &cs->fore);
	put_chan(x, &cs->back);
	xdr_put_u32(x, cs->cb_program);
	xdr_put_u32(x, 1); /* one callback_sec_parms4: AUTH_SYS, as nfsd's other clients */
	xdr_put_u32(x, RPC_AUTH_SYS);
	xdr_put_u32(x, 0); /* stamp */
	xdr_put_opaque(x, machine, sizeof(machine) - 1);
	xdr_put_u32(x, 0); /* uid, gid, no groups */
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
}

bool nfs4_session_xdr_get_create(struct nfs4_compound *c, struct nfs4_create_session *cs)
{
	const uint8_t *id;

	if (!nfs4_compound_result(c, OP_CREATE_SESSION))
		return false;
	id = xdr_get_fixed(&c->dec, NFS4_SESSIONID_SIZE);
	if (id)
		memcpy(cs->id.data, id, NFS4_SESSIONID_SIZE);
	cs->sequence = xdr_get_u32(&c->dec);
	cs->flags = xdr_get_u32(&c->dec);
	get_chan(&c->dec, &cs->fore);
	get_chan(&c->dec, &cs->back);
	return !c->dec.failed;
}

const char *nfs4_session_xdr_check(
	const struct nfs4_create_session *asked, const struct nfs4_create_session *got)
{
	if (nfs4_codec_has_back(got) && !nfs4_codec_has_back(asked))
		return "it grants a back channel that was not asked for";
	if (nfs4_codec_has_back(got) && (got->back.maxreqs == 0 || got->back.maxops < 2))
		return "it grants a back channel without slots or operations";
	if (got->sequence != asked->sequence)
		return "it answers another sequence number than it was sent";
	if (got->fore.maxreqs == 0)
		return "it grants no slots";
	if (got->fore.maxreq < MIN_SIZE || got->fore.maxresp < MIN_SIZE)
		return "it takes only requests or replies too short to be of use";
	if (got->fore.maxops < MIN_OPS)
		return "it takes too few operations in one request";
	if (got->fore.maxcached < MIN_CACHED)
		return "it keeps only replies too short to be of use";
	return NULL;
}

void nfs4_session_xdr_put_destroy(struct nfs4_compound *c, const struct nfs4_sessionid *id)
{
	nfs4_compound_op(c, OP_DESTROY_SESSION, 0);
	xdr_put_fixed(&c->enc, id->data, sizeof(id->data));
}

void nfs4_session_xdr_put_bind(
	struct nfs4_compound *c, const struct nfs4_sessionid *id, uint32_t dir)
{
	nfs4_compound_op(c, OP_BIND_CONN_TO_SESSION, NFS4_SESSIONID_SIZE + 8);
	xdr_put_fixed(&c->enc, id->data, sizeof(id->data));
	xdr_put_u32(&c->enc, dir);
	xdr_put_bool(&c->enc, false); /* bctsa_use_conn_in_rdma_mode: it is in it already */
}

bool nfs4_session_xdr_get_bind(
	struct nfs4_compound *c, const struct nfs4_sessionid *id, uint32_t *ret_dir)
{
	const uint8_t *got;
	uint32_t dir;

	if (!nfs4_compound_result(c, OP_BIND_CONN_TO_SESSION))
		return false;
	got = xdr_get_fixed(&c->dec, NFS4_SESSIONID_SIZE);
	if (got && memcmp(got, id->data, NFS4_SESSIONID_SIZE) != 0)
		xdr_fail(&c->dec);
	dir = xdr_get_u32(&c->dec);
	xdr_get_bool(&c->dec);
	if (c->dec.failed)
		return false;
	*ret_dir = dir;
	return true;
}
