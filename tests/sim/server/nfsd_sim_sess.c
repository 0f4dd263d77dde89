/* SPDX-License-Identifier: BSD-3-Clause */
/* Client IDs, sessions, slots and the reply cache. */
#include "nfsd_sim_held.h"

#include <errno.h>
#include <stdlib.h>

#define FLAG_CONFIRMED_R            0x80000000u
#define FLAG_USE_NON_PNFS           0x00010000u
#define FLAG_BIND_PRINC_STATEID     0x00000100u
#define SEQ4_CB_PATH_DOWN           0x1u
#define SEQ4_CB_PATH_DOWN_SESSION   0x200u
#define SEQ4_RESTART_RECLAIM_NEEDED 0x100u
#define CREATE_BACK_CHAN            0x2u

/* ---- lookup and removal ---- */

static struct client *find_client(struct nfsd_sim *sim, uint64_t id)
{
	list_for_each (node, &sim->clients) {
		struct client *cl = container_of(node, struct client, link);

		if (cl->id == id)
			return cl;
	}
	return NULL;
}

static struct session *find_session(struct nfsd_sim *sim, const uint8_t *id)
{
	list_for_each (node, &sim->sessions) {
		struct session *s = container_of(node, struct session, link);

		if (id && !memcmp(s->id, id, 16))
			return s;
	}
	return NULL;
}

void session_drop(struct nfsd_sim *sim, struct session *s)
{
	for (unsigned int i = 0; i < s->slot_cnt; i++) {
		free(s->slots[i].req);
		free(s->slots[i].reply);
	}
	list_del(&s->link);
	free(s->slots);
	free(s);
}

void open_drop(struct nfsd_sim *sim, struct open_state *o)
{
	stateid_gone(sim, o->other);
	locks_drop(sim, o);
	list_del(&o->link);
	o->node->opens--;
	tree_put(&sim->tree, o->node);
	free(o);
}

void client_drop(struct nfsd_sim *sim, struct client *cl)
{
	list_for_each_safe (node, next, &sim->sessions) {
		struct session *s = container_of(node, struct session, link);

		if (s->client == cl)
			session_drop(sim, s);
	}
	list_for_each_safe (onode, onext, &sim->opens) {
		struct open_state *o = container_of(onode, struct open_state, link);

		if (o->client == cl)
			open_drop(sim, o);
	}
	delegs_drop(sim, cl);
	copies_drop(sim, cl);
	waiters_drop(sim, cl);
	list_del(&cl->link);
	free(cl);
}

uint64_t now_of(const struct reactor *r)
{
	struct timespec ts;

	if (reactor_is_virtual(r))
		return reactor_now(r);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

bool in_grace(const struct cmp *c)
{
	return reactor_now(c->conn->reactor) < c->sim->grace_until_ns;
}

/* ---- EXCHANGE_ID, DESTROY_CLIENTID ---- */

uint32_t op_exchange_id(struct cmp *c)
{
	struct nfsd_sim *sim = c->sim;
	struct client *cl = NULL;
	const uint8_t *verf = rd_bytes(&c->in, 8), *owner;
	uint32_t owner_len, flags, impl, len;
	const char *scope, *major;

	owner = rd_opaque(&c->in, &owner_len);
	flags = rd_u32(&c->in);
	if (rd_u32(&c->in) != 0)
		fab_sim_fail("EXCHANGE_ID without SP4_NONE");
	impl = rd_u32(&c->in);
	if (impl > 1)
		c->in.bad = true;
	if (impl && !c->in.bad) {
		rd_opaque(&c->in, &len);
		rd_opaque(&c->in, &len);
		rd_bytes(&c->in, 12);
	}
	if (c->in.bad)
		return ST_BADXDR;
	if (flags & ~0x40070103u || !owner_len || owner_len > 1024)
		return ST_INVAL;
	list_for_each_safe (node, next, &sim->clients) {
		struct client *it = container_of(node, struct client, link);

		if (it->owner_len != owner_len || memcmp(it->owner, owner, owner_len) != 0)
			continue;
		if (!memcmp(it->verf, verf, 8) && it->confirmed)
			cl = it;
		else if (!it->confirmed)
			client_drop(sim, it);
	}
	if (!cl) {
		cl = calloc(1, sizeof(*cl));
		cl->id = (uint64_t)sim->boot << 32 | ++sim->next_id;
		memcpy(cl->verf, verf, 8);
		memcpy(cl->owner, owner, owner_len);
		cl->owner_len = owner_len;
		cl->cs_seq = 1;
		list_push_back(&sim->clients, &cl->link);
		sim->stats.clients++;
	}
	cl->flags = flags;
	cl->bound = sim->conf.bind_princ && flags & FLAG_BIND_PRINC_STATEID;
	wr_u64(c->out, cl->id);
	wr_u32(c->out, cl->cs_seq);
	wr_u32(c->out, FLAG_USE_NON_PNFS | (cl->confirmed ? FLAG_CONFIRMED_R : 0) |
			       (cl->bound ? FLAG_BIND_PRINC_STATEID : 0));
	wr_u32(c->out, 0);
	wr_u64(c->out, 0);
	major = sim->conf.major ? sim->conf.major : "simserver";
	wr_opaque(c->out, major, strlen(major));
	scope = sim->conf.scope ? sim->conf.scope : "simscope";
	wr_opaque(c->out, scope, strlen(scope));
	wr_u32(c->out, 0);
	return ST_OK;
}

uint32_t op_destroy_clientid(struct cmp *c)
{
	struct nfsd_sim *sim = c->sim;
	struct client *cl = find_client(sim, rd_u64(&c->in));

	if (!cl)
		return ST_STALE_CLIENTID;
	list_for_each (node, &sim->sessions) {
		if (container_of(node, struct session, link)->client == cl)
			return ST_CLIENTID_BUSY;
	}
	list_for_each (onode, &sim->opens) {
		if (container_of(onode, struct open_state, link)->client == cl)
			return ST_CLIENTID_BUSY;
	}
	if (delegs_held(sim, cl))
		return ST_CLIENTID_BUSY;
	client_drop(sim, cl);
	return ST_OK;
}

/* ---- CREATE_SESSION, DESTROY_SESSION, BIND_CONN_TO_SESSION ---- */

struct chan {
	uint32_t pad, maxreq, maxresp, maxcached, maxops, maxreqs;
};

static void rd_chan(struct rd *r, struct chan *ch)
{
	uint32_t ird;

	ch->pad = rd_u32(r);
	ch->maxreq = rd_u32(r);
	ch->maxresp = rd_u32(r);
	ch->maxcached = rd_u32(r);
	ch->maxops = rd_u32(r);
	ch->maxreqs = rd_u32(r);
	ird = rd_u32(r);
	if (ird > 1)
		r->bad = true;
	else if (ird)
		rd_u32(r);
}

static void wr_chan(struct wr *w, const struct chan *ch)
{
	wr_u32(w, 0);
	wr_u32(w, ch->maxreq);
	wr_u32(w, ch->maxresp);
	wr_u32(w, ch->maxcached);
	wr_u32(w, ch->maxops);
	wr_u32(w, ch->maxreqs);
	wr_u32(w, 0);
}

static void rd_cb_sec(struct rd *r)
{
	uint32_t cnt = rd_u32(r), len, gids;

	for (uint32_t i = 0; i < cnt && !r->bad; i++) {
		uint32_t flavor = rd_u32(r);

		if (flavor == 1) {
			rd_u32(r);
			rd_opaque(r, &len);
			rd_u32(r);
			rd_u32(r);
			gids = rd_u32(r);
			if (gids > 16)
				r->bad = true;
			else
				rd_bytes(r, 4 * (size_t)gids);
		} else if (flavor) {
			r->bad = true;
		}
	}
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct session *session_new(struct cmp *c, struct client *cl, struct chan *fore)
{
	const struct nfsd_sim_conf *conf = &c->sim->conf;
	struct session *s = calloc(1, sizeof(*s));

	fore->maxreq = s->max_request = min_u32(fore->maxreq, conf->max_request);
	fore->maxresp = s->max_response = min_u32(fore->maxresp, conf->max_response);
	fore->maxcached = s->max_cached = min_u32(fore->maxcached, conf->max_cached);
	fore->maxops = s->max_ops = min_u32(fore->maxops, conf->max_ops);
	fore->maxreqs = s->slot_cnt = min_u32(fore->maxreqs, conf->max_slots);
	if (conf->first_slots)
		fore->maxreqs = min_u32(fore->maxreqs, conf->first_slots);
	s->slots = calloc(s->slot_cnt + 1, sizeof(*s->slots));
	s->client = cl;
	put_u32(s->id, c->sim->boot);
	put_u32(s->id + 4, 0x5e551);
	put_u32(s->id + 8, (uint32_t)++c->sim->next_id);
	put_u32(s->id + 12, (uint32_t)cl->id);
	list_push_back(&c->sim->sessions, &s->link);
	c->sim->stats.sessions++;
	return s;
}

static void confirm(struct nfsd_sim *sim, struct client *cl)
{
	if (cl->confirmed)
		return;
	cl->confirmed = true;
	/* The earlier incarnation of the same owner is gone. */
	list_for_each_safe (node, next, &sim->clients) {
		struct client *it = container_of(node, struct client, link);

		if (it != cl && it->owner_len == cl->owner_len &&
			!memcmp(it->owner, cl->owner, cl->owner_len))
			client_drop(sim, it);
	}
}

uint32_t op_create_session(struct cmp *c)
{
	uint64_t id = rd_u64(&c->in);
	uint32_t seq = rd_u32(&c->in), flags = rd_u32(&c->in), cb_prog;
	struct chan fore, back;
	struct client *cl;
	struct session *s;
	size_t start;

	rd_chan(&c->in, &fore);
	rd_chan(&c->in, &back);
	cb_prog = rd_u32(&c->in);
	rd_cb_sec(&c->in);
	if (c->in.bad)
		return ST_BADXDR;
	cl = find_client(c->sim, id);
	if (!cl)
		return ST_STALE_CLIENTID;
	if (seq + 1 == cl->cs_seq && cl->cs_reply_len) {
		c->sim->stats.replays++;
		wr_raw(c->out, cl->cs_reply, cl->cs_reply_len);
		return cl->cs_status;
	}
	if (seq != cl->cs_seq) {
		c->sim->stats.misordered++;
		if (!c->sim->conf.tolerant_seq)
			fab_sim_fail(
				"CREATE_SESSION with sequence %u, expected %u", seq, cl->cs_seq);
		return ST_SEQ_MISORDERED;
	}
	if (flags & CREATE_BACK_CHAN &&
		(back.maxreq < 540 || back.maxresp < 112 || back.maxops < 2)) {
		fab_sim_fail("CREATE_SESSION: backchannel too small for nfsd");
		return ST_TOOSMALL;
	}
	if (!fore.maxreqs || !fore.maxops)
		return ST_TOOSMALL;
	confirm(c->sim, cl);
	s = session_new(c, cl, &fore);
	s->cb_prog = cb_prog;
	s->back = flags & CREATE_BACK_CHAN && !c->sim->conf.no_backchannel;
	if (s->back) {
		c->conn->has_back = true;
		memcpy(c->conn->back_session, s->id, 16);
		recalls_again(c->sim, s);
	}
	cl->cs_seq++;
	start = c->out->len;
	wr_raw(c->out, s->id, 16);
	wr_u32(c->out, seq);
	wr_u32(c->out, s->back ? CREATE_BACK_CHAN : 0);
	wr_chan(c->out, &fore);
	wr_chan(c->out, &back);
	cl->cs_reply_len = c->out->len - start;
	memcpy(cl->cs_reply, c->out->base + start, cl->cs_reply_len);
	cl->cs_status = ST_OK;
	c->cached = &cl->cs_status;
	return ST_OK;
}

uint32_t op_destroy_session(struct cmp *c)
{
	struct session *s = find_session(c->sim, rd_bytes(&c->in, 16));

	if (!s)
		return ST_BADSESSION;
	if (c->sess == s) {
		c->sess = NULL;
		c->slot = NULL;
	}
	session_drop(c->sim, s);
	return ST_OK;
}

uint32_t op_bind_conn(struct cmp *c)
{
	const uint8_t *id = rd_bytes(&c->in, 16);
	uint32_t dir = rd_u32(&c->in), rdma = rd_u32(&c->in);
	struct session *s;

	if (c->in.bad)
		return ST_BADXDR;
	s = find_session(c->sim, id);
	if (!s)
		return ST_BADSESSION;
	if (rdma)
		fab_sim_fail("BIND_CONN_TO_SESSION: use_conn_in_rdma_mode on RDMA");
	if (dir == 0x7) /* FORE_OR_BOTH... the wire's values are 1, 2, 3 and 7 */
		dir = 0x3;
	if (dir & 0x2) {
		c->conn->has_back = true;
		memcpy(c->conn->back_session, s->id, 16);
		recalls_again(c->sim, s);
	}
	wr_raw(c->out, s->id, 16);
	wr_u32(c->out, dir);
	wr_u32(c->out, 0);
	return ST_OK;
}

uint32_t op_reclaim_complete(struct cmp *c)
{
	uint32_t one_fs = rd_u32(&c->in);

	if (one_fs || !c->sess)
		return ST_OK;
	if (c->sess->client->reclaimed) {
		if (!c->sim->conf.tolerant_state)
			fab_sim_fail("xid %#x: second RECLAIM_COMPLETE", c->job->xid);
		return ST_COMPLETE_ALREADY;
	}
	held_complete(c);
	lock_held_complete(c);
	c->sess->client->reclaimed = true;
	return ST_OK;
}

/* ---- SEQUENCE ---- */

static uint32_t retry(struct cmp *c, struct slot *slot)
{
	if (slot->req_len != c->args_len || memcmp(slot->req, c->args, c->args_len) != 0) {
		c->sim->stats.false_retries++;
		fab_sim_fail("xid %#x: false retry: another request with slot and sequence of an "
			     "earlier one",
			c->job->xid);
		return ST_SEQ_FALSE_RETRY;
	}
	if (slot->cached) {
		c->sim->stats.replays++;
		c->out->len = c->status_off;
		wr_raw(c->out, slot->reply, slot->reply_len);
		c->replayed = true;
		return ST_OK;
	}
	c->sim->stats.uncached_replays++;
	c->uncached_retry = c->op_cnt > 1;
	return ST_OK;
}

static uint32_t check_slot(struct cmp *c, uint32_t slotid, uint32_t seqid)
{
	struct slot *slot;

	if (slotid >= c->sess->slot_cnt) {
		fab_sim_fail("xid %#x: slot %u of %u", c->job->xid, slotid, c->sess->slot_cnt);
		return ST_BADSLOT;
	}
	slot = &c->sess->slots[slotid];
	if (slot->used && seqid == slot->seqid)
		return retry(c, slot);
	if (seqid != (slot->used ? slot->seqid + 1 : 1)) {
		c->sim->stats.misordered++;
		if (c->sim->unsure && seqid == (slot->used ? slot->seqid : 0) + 2)
			c->sim->unsure--; /* it found out just so */
		else if (!c->sim->conf.tolerant_seq)
			fab_sim_fail("xid %#x: slot %u: sequence %u after %u", c->job->xid, slotid,
				seqid, slot->used ? slot->seqid : 0);
		return ST_SEQ_MISORDERED;
	}
	slot->seqid = seqid;
	c->slot = slot;
	return ST_OK;
}

uint32_t op_sequence(struct cmp *c)
{
	const uint8_t *id = rd_bytes(&c->in, 16);
	uint32_t seqid = rd_u32(&c->in), slotid = rd_u32(&c->in), highest = rd_u32(&c->in);
	uint32_t cachethis = rd_u32(&c->in), flags = c->job->seq_flags, st, target;
	struct session *s;

	if (c->in.bad)
		return ST_BADXDR;
	s = find_session(c->sim, id);
	if (!s) {
		c->sim->stats.bad_sessions++;
		return ST_BADSESSION;
	}
	c->sess = s;
	c->cachethis = cachethis;
	if (highest < slotid)
		fab_sim_fail(
			"xid %#x: highest slot %u below slot %u", c->job->xid, highest, slotid);
	if (c->op_cnt > s->max_ops) {
		fab_sim_fail("xid %#x: %u operations", c->job->xid, c->op_cnt);
		return ST_TOO_MANY_OPS;
	}
	if (c->job->call_len > s->max_request) {
		fab_sim_fail("xid %#x: request of %zu bytes", c->job->xid, c->job->call_len);
		return ST_REQ_TOO_BIG;
	}
	st = check_slot(c, slotid, seqid);
	if (st || c->replayed)
		return st;
	if (s->back && !back_is_up(c->sim, s))
		flags |= SEQ4_CB_PATH_DOWN | SEQ4_CB_PATH_DOWN_SESSION;
	delegs_judge(c);
	flags |= revoked_flags(c->sim, s->client);
	if (c->sim->conf.restart_flag && !s->client->reclaimed)
		flags |= SEQ4_RESTART_RECLAIM_NEEDED;
	wr_raw(c->out, s->id, 16);
	wr_u32(c->out, seqid);
	wr_u32(c->out, slotid);
	target = c->sim->conf.target_slots ? c->sim->conf.target_slots : s->slot_cnt;
	c->sim->stats.over_target += slotid >= target;
	wr_u32(c->out, s->slot_cnt - 1);
	wr_u32(c->out, target - 1);
	wr_u32(c->out, flags);
	return ST_OK;
}

/* Keeps request and reply: the one to tell false retries, the other to replay. */
void slot_store(struct cmp *c, size_t reply_off)
{
	struct slot *slot = c->slot;

	free(slot->req);
	free(slot->reply);
	slot->used = true;
	slot->cached = c->cachethis;
	slot->req_len = c->args_len;
	slot->req = malloc(c->args_len + 1);
	memcpy(slot->req, c->args, c->args_len);
	slot->reply = NULL;
	slot->reply_len = 0;
	if (!slot->cached)
		return;
	slot->reply_len = c->out->len - reply_off;
	slot->reply = malloc(slot->reply_len + 1);
	memcpy(slot->reply, c->out->base + reply_off, slot->reply_len);
}

/* ---- what tests do to them ---- */

void nfsd_sim_drop_sessions(struct nfsd_sim *sim)
{
	pthread_mutex_lock(&sim->lock);
	sim->amnesia_ns = sim_now(sim);
	while (!list_empty(&sim->sessions))
		session_drop(sim, list_first(&sim->sessions, struct session, link));
	pthread_mutex_unlock(&sim->lock);
}

void nfsd_sim_drop_clients(struct nfsd_sim *sim)
{
	pthread_mutex_lock(&sim->lock);
	while (!list_empty(&sim->clients))
		client_drop(sim, list_first(&sim->clients, struct client, link));
	pthread_mutex_unlock(&sim->lock);
}

void nfsd_sim_new_verifier(struct nfsd_sim *sim)
{
	pthread_mutex_lock(&sim->lock);
	sim->verf[7]++;
	tree_crash(&sim->tree);
	pthread_mutex_unlock(&sim->lock);
}

void nfsd_sim_restart(struct nfsd_sim *sim, uint64_t grace_ns, bool lose_data)
{
	pthread_mutex_lock(&sim->lock);
	held_note(sim);
	lock_held_note(sim);
	pthread_mutex_unlock(&sim->lock);
	nfsd_sim_drop_clients(sim);
	pthread_mutex_lock(&sim->lock);
	/* Those of nfsd_sim_lock() too. */
	while (!list_empty(&sim->lock_ranges))
		ranges_clear(sim, list_first(&sim->lock_ranges, struct lock_range, link));
	sim->boot++;
	sim->verf[6]++;
	if (lose_data)
		tree_crash(&sim->tree);
	/* Without a connection, whose reactor knows the time, the last grace goes on. */
	if (!grace_ns) {
		sim->grace_until_ns = 0;
	} else if (!list_empty(&sim->conns)) {
		const struct sconn *conn = list_first(&sim->conns, struct sconn, link);

		sim->grace_until_ns = now_of(conn->reactor) + grace_ns;
	}
	/* Before the connections break: what came on the next ones would be lost without a trace.
	 */
	sim->paused = false;
	pthread_mutex_unlock(&sim->lock);
	fab_sim_break_all(-ECONNRESET);
}

void nfsd_sim_disconnect(struct nfsd_sim *sim)
{
	(void)sim;
	fab_sim_break_all(0);
}

static unsigned int list_count(struct nfsd_sim *sim, const struct list *l)
{
	unsigned int n = 0;

	pthread_mutex_lock(&sim->lock);
	for (const struct list *node = l->next; node != l; node = node->next)
		n++;
	pthread_mutex_unlock(&sim->lock);
	return n;
}

unsigned int nfsd_sim_live_sessions(struct nfsd_sim *sim)
{
	return list_count(sim, &sim->sessions);
}

unsigned int nfsd_sim_live_clients(struct nfsd_sim *sim)
{
	return list_count(sim, &sim->clients);
}

unsigned int nfsd_sim_live_opens(struct nfsd_sim *sim)
{
	return list_count(sim, &sim->opens);
}

unsigned int nfsd_sim_live_conns(struct nfsd_sim *sim)
{
	return list_count(sim, &sim->conns);
}
