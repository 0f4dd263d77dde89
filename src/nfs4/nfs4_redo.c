/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_redo.h"
#include "nfs4_codec.h"
#include "nfs4_keep.h"
#include "nfs4_session_int.h"
#include "nfs4_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a record: a call that is sent once. */
enum {
	ONCE_REQUEST = 10,
	ONCE_CRED = 11,
	ONCE_OPS = 12,   /* how many */
	ONCE_REPLY = 13, /* bytes, at most */
	ONCE_BODY = 14,
	ONCE_DONE = 15,
};

/* An answer that is none is asked for so often. */
#define TRIES 3u

struct redo {
	struct list link; /* nfs4_client.redos: those that are to be sent first */
	uint64_t request;
	struct rpc_cred cred;
	uint32_t ops_cnt, reply_max;
	unsigned int tries; /* without an answer */
	bool asked, done;
	live_ref live_ref;
	size_t len;
	uint8_t body[];
};

static const struct live_key key = {.rank = NFS4_KEEP_RANK_ONCE, .count_field = ONCE_DONE};

/* ---- the process that sends them ---- */

static void put(struct tables_out *t, uint64_t request, const struct rpc_cred *cred,
	uint32_t ops_cnt, uint32_t reply_max, const void *body, size_t len)
{
	tables_begin_in(t);
	tables_record(t, NFS4_KEEP_ONCE);
	tables_put(t, ONCE_REQUEST, request);
	nfs4_tables_put_cred(t, ONCE_CRED, cred);
	tables_put(t, ONCE_OPS, ops_cnt);
	tables_put(t, ONCE_REPLY, reply_max);
	tables_put_bytes(t, ONCE_BODY, body, len);
}

/* An OPEN of a file that may be there already can be done again. */
static bool is_once(const struct nfs4_call *call)
{
	return call->once && call->desc->once && (call->op != OP_OPEN || call->u.open.exclusive);
}

void nfs4_redo_sent(struct nfs4_call *call, const struct nfs4_compound *c)
{
	struct live *live = call->sess->cl->live;
	size_t head = c->op_cnt_off + 4, len = xdr_enc_len(&c->enc) - head;
	live_ref before = LIVE_NONE, *ref = call->once ? &call->once->live_ref : NULL;
	struct tables_out t;

	/* One whose data lies elsewhere is done again. */
	if (!live || !is_once(call) || call->rpc.req.arg_cnt > 0 || len > TABLES_FIELD_MAX)
		return;
	/* A call of the same request that is done stays done, and this one is not. */
	if (*ref != LIVE_NONE && live_counted(live, *ref)) {
		before = *ref;
		*ref = LIVE_NONE;
	}
	put(&t, call->once->request, call->cred, c->op_cnt, c->reply_max, c->enc.base + head, len);
	live_put(live, ref, &key, &t);
	live_drop(live, &before);
	tables_end_in(&t);
}

void nfs4_redo_answered(struct nfs4_call *call, enum nfs4_status status)
{
	struct live *live = call->sess->cl->live;

	if (!live || !is_once(call))
		return;
	if (status == NFS4_OK)
		live_count(live, call->once->live_ref, true);
	else
		live_drop(live, &call->once->live_ref);
}

void nfs4_redo_over(struct nfs4_client *cl, struct nfs4_once *once)
{
	if (once->live_ref != LIVE_NONE)
		live_drop(cl->live, &once->live_ref);
}

/* ---- the one that sends them again ---- */

void nfs4_redo_init(struct nfs4_client *cl)
{
	list_init(&cl->redos);
	cl->before = -1;
}

static void close_before(struct nfs4_client *cl)
{
	if (cl->before >= 0)
		close(cl->before);
	cl->before = -1;
}

void nfs4_redo_fini(struct nfs4_client *cl)
{
	struct list *node;

	while ((node = list_pop_front(&cl->redos)))
		free(container_of(node, struct redo, link));
	close_before(cl);
}

uint64_t nfs4_redo_request_of(const struct tables_record *r)
{
	return tables_get(r, ONCE_REQUEST);
}

int nfs4_redo_get(const struct tables_record *r, struct nfs4_client *cl)
{
	size_t len;
	const void *body = tables_get_bytes(r, ONCE_BODY, &len);
	uint64_t ops_cnt = tables_get(r, ONCE_OPS);
	struct redo *rd;
	struct tables_out t;

	if (!body || len % 4 != 0 || ops_cnt == 0 || ops_cnt > NFS4_MAX_OPS)
		return -EBADMSG;
	rd = calloc(1, sizeof(*rd) + len);
	if (!rd)
		return -ENOMEM;
	if (!nfs4_tables_get_cred(r, ONCE_CRED, &rd->cred)) {
		free(rd);
		return -EBADMSG;
	}
	rd->request = tables_get(r, ONCE_REQUEST);
	rd->ops_cnt = (uint32_t)ops_cnt;
	rd->reply_max = (uint32_t)tables_get(r, ONCE_REPLY);
	rd->asked = rd->done = tables_get(r, ONCE_DONE);
	rd->len = len;
	memcpy(rd->body, body, len);
	put(&t, rd->request, &rd->cred, rd->ops_cnt, rd->reply_max, body, len);
	live_put(cl->live, &rd->live_ref, &key, &t);
	live_count(cl->live, rd->live_ref, rd->done);
	tables_end_in(&t);
	if (rd->asked)
		list_push_back(&cl->redos, &rd->link);
	else
		list_push_front(&cl->redos, &rd->link);
	return 0;
}

bool nfs4_redo_was_done(struct nfs4_client *cl, uint64_t request)
{
	list_for_each (node, &cl->redos) {
		const struct redo *rd = container_of(node, struct redo, link);

		if (rd->request == request)
			return rd->done;
	}
	return false;
}

static struct redo *first(const struct nfs4_client *cl)
{
	struct redo *rd = list_empty(&cl->redos) ? NULL : list_first(&cl->redos, struct redo, link);

	return rd && !rd->asked ? rd : NULL;
}

const struct rpc_cred *nfs4_redo_next(struct nfs4_session *s)
{
	const struct redo *rd = first(s->cl);

	return rd ? &rd->cred : NULL;
}

void nfs4_redo_done(struct nfs4_session *s, const struct nfs4_call *call)
{
	struct redo *rd = first(s->cl);

	if (!rd || (call->err && call->status == NFS4_OK && ++rd->tries < TRIES))
		return; /* no answer: it is sent again */
	rd->asked = true;
	rd->done = call->err == 0;
	list_del(&rd->link);
	list_push_back(&s->cl->redos, &rd->link);
	live_count(s->cl->live, rd->live_ref, rd->done);
	log_debug("%s: a call of the process before: %s", s->peer,
		rd->done ? "it is done" : nfs4_status_name(call->status));
}

static bool was_done(void *ctx, const struct tables_record *r)
{
	return nfs4_redo_was_done(ctx, tables_get(r, ONCE_REQUEST));
}

void nfs4_redo_note(struct nfs4_client *cl)
{
	bool any = false;
	int err = 0;

	list_for_each (node, &cl->redos)
		any |= container_of(node, struct redo, link)->done;
	if (any && cl->before >= 0)
		err = live_tables_mark(cl->before, NFS4_KEEP_ONCE, was_done, cl);
	if (err)
		log_warn("which calls of the process before are done cannot be noted: %s",
			strerror(-err));
	close_before(cl);
}

/* All that follows the number of operations, SEQUENCE first. */
static int redo_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	const struct redo *rd = first(call->sess->cl);

	if (!rd)
		return -EINVAL;
	xdr_put_fixed(&c->enc, rd->body, rd->len);
	c->op_cnt = rd->ops_cnt;
	c->reply_max = rd->reply_max;
	return 0;
}

/* Only whether all of it was done is of interest. */
static int redo_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	c->op_cnt = 0;
	return 0;
}

const struct nfs4_opdesc nfs4_redo_desc = {
	.name = "a call of the process before",
	.encode = redo_encode,
	.decode = redo_decode,
	.no_sequence = true,
};
