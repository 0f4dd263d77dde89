/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies without a bound (RFC 8267 section 3.1, short Reply chunk retry):
 * values of extended attributes, their names, ACLs. The operation names the
 * sink; the first attempt offers a part of it, which is enough nearly always,
 * and each further one RETRY_FACTOR times as much, up to the sink or to
 * ca_maxresponsesize.
 *
 * A repetition is another call: new XID, and another slot or number, since the
 * server's reply cache may hold the failure. Whether the failed one used up
 * its number is found out by nfs4_slot_unsure().
 *
 * Not all servers say that a reply was too long (nfs4_reply.c): a call without an
 * answer comes back from the transport, once, instead of being sent again as it was.
 *
 * Context: the session's lane.
 */
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>

#define FIRST_ROOM   8192u
#define RETRY_FACTOR 9u /* 8 KiB, 72 KiB (nfsd's largest value), 648 KiB, 5.7 MiB */
#define MAX_RETRIES  4u

/*
 * Always longer than inline, so that there is a Reply chunk: what fits neither nfsd 6.1 sends all
 * the same.
 */
uint32_t nfs4_reply_chunk_at(unsigned int tries, uint32_t inline_max, uint32_t most)
{
	uint64_t room = inline_max + 1024u > FIRST_ROOM ? 2ull * inline_max : FIRST_ROOM;

	while (tries-- > 0 && room < most)
		room *= RETRY_FACTOR;
	return room < most ? (uint32_t)room : most;
}

static uint32_t chunk_of(const struct nfs4_call *call, unsigned int tries)
{
	const struct nfs4_session *s = call->sess;
	uint32_t most = call->chunk.most;

	if (most > s->params.fore.maxresp)
		most = s->params.fore.maxresp;
	return nfs4_reply_chunk_at(tries, (uint32_t)rpcrdma_inline_reply_max(s->x), most) & ~3u;
}

static bool may_grow(const struct nfs4_call *call)
{
	return call->chunk.tries < MAX_RETRIES &&
	       chunk_of(call, call->chunk.tries + 1u) > chunk_of(call, call->chunk.tries);
}

void nfs4_reply_chunk_offer(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct rpcrdma_req *req = &call->rpc.req;

	/* What cannot be repeated must not come here. */
	assert(!call->desc->cachethis && req->reply_sink.buf);
	call->chunk.most = req->reply_sink.len;
	req->reply_sink.len = chunk_of(call, call->chunk.tries);
	c->reply_max = req->reply_sink.len - RPC_REPLY_HDR;
	req->give_back = !call->room_guessed && may_grow(call);
}

bool nfs4_reply_chunk_grow(struct nfs4_call *call)
{
	if (!call->desc->unbounded || !may_grow(call))
		return false;
	call->chunk.tries++;
	stats_count(&call->sess->stats->reply_chunk_retries, 1);
	log_debug("%s: the reply to %s is longer than its Reply chunk, again with %u bytes",
		call->sess->peer, call->desc->name,
		(unsigned int)chunk_of(call, call->chunk.tries));
	return true;
}
