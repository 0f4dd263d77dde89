/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and calls as they arrive: the judge of what the client puts on the wire. */
#include "nfsd_sim_held.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PRIV_MAGIC  0xf6ab0e18u
#define SPARE_RECVS 64 /* for backchannel replies and errors */

/* A failure of the client, with the XID that names the message. */
#define BLAME(xid, ...)                                                                            \
	do {                                                                                       \
		char text_[200];                                                                   \
		snprintf(text_, sizeof(text_), __VA_ARGS__);                                       \
		fab_sim_fail("xid %#x: %s", xid, text_);                                           \
	} while (0)

/* ---- the judge's account of credits ---- */

static int call_index(const struct sconn *conn, uint32_t xid)
{
	for (unsigned int i = 0; i < conn->call_cnt; i++) {
		if (conn->calls[i] == xid)
			return (int)i;
	}
	return -1;
}

/*
 * Is this message a call of the client's? Not its answers to our calls, which
 * are RDMA_MSG with an RPC REPLY, nor its errors.
 */
static bool is_call(const uint8_t *msg, uint32_t len, uint32_t *ret_xid)
{
	struct rd r = {msg, msg + len, false};
	uint32_t proc;

	*ret_xid = rd_u32(&r);
	rd_u32(&r);
	rd_u32(&r);
	proc = rd_u32(&r);
	if (r.bad)
		return false;
	if (proc == SIM_RDMA_MSG && len >= 36 && !msg[16 + 3] && !msg[20 + 3] && !msg[24 + 3])
		return !msg[32 + 3];
	return proc == SIM_RDMA_MSG || proc == SIM_RDMA_NOMSG;
}

static void conn_posted(void *ctx, const uint8_t *msg, uint32_t len)
{
	struct sconn *conn = ctx;
	struct nfsd_sim *sim = conn->sim;
	uint32_t xid;

	if (!is_call(msg, len, &xid))
		return;
	pthread_mutex_lock(&sim->lock);
	if (call_index(conn, xid) >= 0)
		BLAME(xid, "sent twice on one connection");
	if (!sim->conf.tolerant_credits && conn->call_cnt >= conn->granted)
		BLAME(xid, "credit overrun: %u calls on their way, %u granted", conn->call_cnt,
			conn->granted);
	if (conn->call_cnt < 4096)
		conn->calls[conn->call_cnt++] = xid;
	sim->posted_xids[sim->posted_pos] = xid;
	sim->posted_conn[sim->posted_pos] = conn->id;
	sim->posted_pos = (sim->posted_pos + 1) % 4096;
	if (conn->call_cnt > sim->stats.max_outstanding)
		sim->stats.max_outstanding = conn->call_cnt;
	pthread_mutex_unlock(&sim->lock);
}

static void conn_delivered(void *ctx, const uint8_t *msg, uint32_t len)
{
	struct sconn *conn = ctx;
	struct rd r = {msg, msg + len, false};
	uint32_t xid = rd_u32(&r), vers = rd_u32(&r), credits = rd_u32(&r), proc = rd_u32(&r);
	int i;

	if (r.bad || vers != 1)
		return;
	if (proc == SIM_RDMA_MSG && len >= 36 && !msg[19] && !msg[23] && !msg[27] && !msg[35])
		return; /* a call of ours */
	pthread_mutex_lock(&conn->sim->lock);
	i = call_index(conn, xid);
	if (i >= 0) {
		conn->calls[i] = conn->calls[--conn->call_cnt];
		conn->granted = credits ? credits : 1;
	}
	pthread_mutex_unlock(&conn->sim->lock);
}

/* ---- decoding ---- */

static bool get_seg(struct rd *r, struct chunk *c, uint32_t xid)
{
	struct seg s;

	s.rkey = rd_u32(r);
	s.len = rd_u32(r);
	s.addr = rd_u64(r);
	if (r->bad)
		return false;
	if (!s.len)
		BLAME(xid, "empty segment");
	if (c->seg_cnt == SEGS_MAX)
		return false;
	c->segs[c->seg_cnt++] = s;
	c->total += s.len;
	return true;
}

/* Write chunk or Reply chunk. */
static bool get_chunk(struct rd *r, struct chunk *c, uint32_t xid)
{
	uint32_t cnt = rd_u32(r);

	if (!cnt)
		BLAME(xid, "chunk without segments: nfsd refuses it");
	if (cnt > 16)
		BLAME(xid, "chunk of %u segments", cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!get_seg(r, c, xid))
			return false;
	}
	return !r->bad;
}

static bool get_reads(struct rd *r, struct job *job)
{
	for (;;) {
		uint32_t more = rd_u32(r), pos;

		if (r->bad || more > 1)
			return false;
		if (!more)
			return true;
		pos = rd_u32(r);
		if (pos & 3)
			BLAME(job->xid, "Read chunk at position %u", pos);
		if (pos && job->read_pos && pos != job->read_pos)
			BLAME(job->xid, "two normal Read chunks: nfsd 6.1 corrupts data");
		if (!pos && job->read.seg_cnt)
			BLAME(job->xid, "Read list is not in order of positions");
		if (pos)
			job->read_pos = pos;
		if (!get_seg(r, pos ? &job->read : &job->pz, job->xid))
			return false;
	}
}

static bool get_lists(struct rd *r, struct job *job)
{
	uint32_t more;

	if (!get_reads(r, job))
		return false;
	for (;;) {
		more = rd_u32(r);
		if (r->bad || more > 1)
			return false;
		if (!more)
			break;
		if (job->write_cnt == CHUNKS_MAX ||
			!get_chunk(r, &job->writes[job->write_cnt], job->xid))
			return false;
		job->write_cnt++;
	}
	more = rd_u32(r);
	if (r->bad || more > 1)
		return false;
	job->has_reply_chunk = more;
	return !more || get_chunk(r, &job->reply_chunk, job->xid);
}

static void note_keys(struct job *job, const struct chunk *c, unsigned int *distinct)
{
	for (unsigned int i = 0; i < c->seg_cnt; i++) {
		if (*distinct && c->segs[i].rkey == job->a_key)
			continue;
		job->a_key = c->segs[i].rkey;
		++*distinct;
	}
}

static void count_forms(struct job *job)
{
	struct nfsd_sim_stats *st = &job->conn->sim->stats;
	unsigned int distinct = 0;

	note_keys(job, &job->pz, &distinct);
	note_keys(job, &job->read, &distinct);
	for (unsigned int i = 0; i < job->write_cnt; i++) {
		note_keys(job, &job->writes[i], &distinct);
		st->write_segs += job->writes[i].seg_cnt;
	}
	note_keys(job, &job->reply_chunk, &distinct);
	if (distinct == 1 && job->conn->inv_ok && !job->conn->sim->conf.no_inval)
		job->inv_rkey = job->a_key;
	st->calls++;
	if (job->proc == SIM_RDMA_NOMSG)
		st->nomsg++;
	else
		st->msg++;
	st->read_chunks += job->read.seg_cnt ? 1 : 0;
	st->pz_with_chunk += job->read.seg_cnt && job->pz.seg_cnt ? 1 : 0;
	st->read_segs += job->read.seg_cnt + job->pz.seg_cnt;
	st->write_chunks += job->write_cnt;
	st->reply_chunks += job->has_reply_chunk;
}

static bool pull(struct job *job, const struct chunk *c, uint8_t *dst)
{
	for (unsigned int i = 0; i < c->seg_cnt; i++) {
		const struct seg *s = &c->segs[i];

		if (fab_sim_conn_read(job->conn->fab, s->rkey, s->addr, dst, s->len))
			return false;
		job->conn->sim->stats.reads_bytes += s->len;
		dst += s->len;
	}
	return true;
}

/* The RPC message as it would be without RDMA. */
static bool assemble(struct job *job, const uint8_t *body, size_t body_len)
{
	size_t base_len = job->proc == SIM_RDMA_NOMSG ? job->pz.total : body_len;
	size_t data = job->read.total, pad = (4 - (data & 3)) & 3, pos = job->read_pos;
	uint8_t *base;
	bool ok = true;

	if (job->pz.total > (2u << 20) || data > (2u << 20)) {
		BLAME(job->xid, "Read chunks of %zu and %zu bytes", (size_t)job->pz.total, data);
		return false;
	}
	base = malloc(base_len + 1);
	if (job->proc == SIM_RDMA_NOMSG)
		ok = pull(job, &job->pz, base);
	else
		memcpy(base, body, body_len);
	if (!data) {
		job->call = base;
		job->call_len = base_len;
		return ok;
	}
	if (ok && (pos > base_len || pos < 4)) {
		BLAME(job->xid, "Read chunk at %zu of a message of %zu bytes", pos, base_len);
		ok = false;
	}
	if (!ok) {
		free(base);
		return false;
	}
	job->call_len = base_len + data + pad;
	job->call = calloc(1, job->call_len + 1);
	memcpy(job->call, base, pos);
	ok = pull(job, &job->read, job->call + pos);
	memcpy(job->call + pos + data + pad, base + pos, base_len - pos);
	if (ok) {
		struct rd len = {base + pos - 4, base + pos, false};
		uint32_t word = rd_u32(&len);

		if (word != data)
			BLAME(job->xid, "Read chunk of %zu bytes for an argument of %u", data,
				word);
	}
	free(base);
	return ok;
}

void job_free(struct job *job)
{
	reactor_timer_cancel(job->conn->reactor, &job->timer);
	list_del(&job->link);
	free(job->call);
	free(job->rep.base);
	free(job);
}

static bool is_resent(const struct sconn *conn, uint32_t xid)
{
	const struct nfsd_sim *sim = conn->sim;

	for (unsigned int i = 0; i < 4096 && sim->posted_conn[i]; i++) {
		if (sim->posted_xids[i] == xid && sim->posted_conn[i] != conn->id)
			return true;
	}
	return false;
}

static void note_xid(struct sconn *conn, uint32_t xid)
{
	struct nfsd_sim *sim = conn->sim;

	for (unsigned int i = 0; i < 4096 && sim->recent_conn[i]; i++) {
		if (sim->recent_xids[i] == xid && sim->recent_conn[i] != conn->id) {
			sim->stats.resends++;
			break;
		}
	}
	sim->recent_xids[sim->recent_pos] = xid;
	sim->recent_conn[sim->recent_pos] = conn->id;
	sim->recent_pos = (sim->recent_pos + 1) % 4096;
}

static void serve(struct job *job)
{
	if (job->err_code) {
		send_error(job->conn, job->xid, (uint32_t)job->err_code);
		job_free(job);
		return;
	}
	rpc_execute(job);
	if (job->cut_after) {
		fab_sim_conn_close(job->conn->fab, -ECONNRESET);
		return;
	}
	job_answer(job);
}

static void take_call(struct sconn *conn, uint32_t xid, uint32_t proc, struct rd *r)
{
	struct job *job = calloc(1, sizeof(*job));
	bool cut_before = false;

	job->conn = conn;
	job->xid = xid;
	job->proc = proc;
	job->accept_stat = job->deny_stat = -1;
	list_push_back(&conn->jobs, &job->link);
	if (!get_lists(r, job)) {
		BLAME(xid, "transport header cannot be decoded");
		send_error(conn, xid, SIM_ERR_CHUNK);
		job_free(job);
		return;
	}
	if (proc == SIM_RDMA_NOMSG && (!job->pz.seg_cnt || r->p != r->end))
		BLAME(xid, "RDMA_NOMSG call with %u Position-Zero segments and %zu bytes after it",
			job->pz.seg_cnt, (size_t)(r->end - r->p));
	if (proc == SIM_RDMA_MSG && job->pz.seg_cnt)
		BLAME(xid, "Position-Zero Read chunk in RDMA_MSG");
	count_forms(job);
	note_xid(conn, xid);
	job->resent = is_resent(conn, xid);
	/* The Reads first, as nfsd does; a rule may cut the connection before them. */
	for (struct list *node = conn->sim->rules.next; node != &conn->sim->rules;
		node = node->next) {
		struct rule *rule = container_of(node, struct rule, link);

		if (rule->r.act == NFSD_SIM_CUT_BEFORE && !rule->r.op)
			cut_before |= rule_turn(rule);
	}
	if (cut_before) {
		fab_sim_conn_close(conn->fab, -ECONNRESET);
		return;
	}
	if (!assemble(job, r->p, (size_t)(r->end - r->p))) {
		fab_sim_conn_close(conn->fab, -EPROTO);
		return;
	}
	if (job->call_len < 4 || memcmp(job->call,
					 &(uint8_t[4]){(uint8_t)(xid >> 24), (uint8_t)(xid >> 16),
						 (uint8_t)(xid >> 8), (uint8_t)xid},
					 4))
		BLAME(xid, "transport header and RPC message have different XIDs");
	rpc_scan(job);
	job_rules(job);
	if (job->err_code == -1) { /* CUT_BEFORE with an operation */
		fab_sim_conn_close(conn->fab, -ECONNRESET);
		return;
	}
	serve(job);
}

static void take_message(struct sconn *conn, const uint8_t *msg, uint32_t len)
{
	struct rd r = {msg, msg + len, false};
	uint32_t xid = rd_u32(&r), vers = rd_u32(&r), credits = rd_u32(&r), proc = rd_u32(&r);
	uint32_t dummy;

	fab_sim_conn_post_recvs(conn->fab, 1);
	if (r.bad || vers != 1) {
		BLAME(xid, "message of %u bytes, version %u", len, vers);
		return;
	}
	if (!credits)
		BLAME(xid, "asks for 0 credits");
	switch (proc) {
	case SIM_RDMA_MSG:
	case SIM_RDMA_NOMSG:
		if (is_call(msg, len, &dummy)) {
			if (!conn->sim->paused)
				take_call(conn, xid, proc, &r);
			break;
		}
		if (len > 28)
			cb_reply(conn, msg + 28, len - 28);
		break;
	case SIM_RDMA_ERROR:
		conn->sim->stats.client_errors++;
		break;
	default:
		BLAME(xid, "procedure %u: a client must not send it", proc);
		break;
	}
}

/* ---- connections ---- */

static void conn_received(void *ctx, const uint8_t *msg, uint32_t len)
{
	struct sconn *conn = ctx;

	pthread_mutex_lock(&conn->sim->lock);
	if (!conn->since_ns)
		conn->since_ns = now_of(conn->reactor);
	take_message(conn, msg, len);
	pthread_mutex_unlock(&conn->sim->lock);
}

static void conn_closed(void *ctx)
{
	struct sconn *conn = ctx;
	struct nfsd_sim *sim = conn->sim;

	pthread_mutex_lock(&sim->lock);
	while (!list_empty(&conn->jobs))
		job_free(list_first(&conn->jobs, struct job, link));
	cbs_drop(conn);
	list_del(&conn->link);
	pthread_mutex_unlock(&sim->lock);
	free(conn);
}

static uint32_t priv_size(uint8_t b)
{
	return ((uint32_t)b + 1) << 10;
}

static int conn_accept(void *ctx, struct fab_sim_conn *fab, const uint8_t *priv, size_t priv_len)
{
	struct nfsd_sim *sim = ctx;
	struct sconn *conn = calloc(1, sizeof(*conn));
	uint8_t answer[8] = {0xf6, 0xab, 0x0e, 0x18, 1, 0, 0, 0};

	pthread_mutex_lock(&sim->lock);
	conn->sim = sim;
	conn->id = ++sim->next_conn_id;
	conn->fab = fab;
	conn->reactor = fab_sim_conn_reactor(fab);
	list_init(&conn->jobs);
	list_init(&conn->cbs);
	conn->granted = 1;
	conn->client_recv = conn->client_send = 1024;
	if (priv_len >= 8) {
		struct rd r = {priv, priv + 4, false};

		if (rd_u32(&r) != PRIV_MAGIC || priv[4] != 1)
			fab_sim_fail("private data is not that of RFC 8797");
		conn->inv_ok = priv[5] & 1;
		conn->client_send = priv_size(priv[6]);
		conn->client_recv = priv_size(priv[7]);
	} else {
		fab_sim_fail("%zu bytes of private data", priv_len);
	}
	if (sim->conf.client_small)
		conn->client_recv = 1024;
	answer[6] = answer[7] = (uint8_t)((sim->conf.inline_size >> 10) - 1);
	fab_sim_conn_init(fab, conn, answer, sim->conf.no_priv ? 0 : sizeof(answer),
		sim->conf.no_priv ? 1024 : sim->conf.inline_size, 4096 + SPARE_RECVS);
	list_push_back(&sim->conns, &conn->link);
	sim->stats.connections++;
	pthread_mutex_unlock(&sim->lock);
	return 0;
}

static const struct fab_sim_srv_ops srv_ops = {
	.accept = conn_accept,
	.received = conn_received,
	.closed = conn_closed,
	.posted = conn_posted,
	.delivered = conn_delivered,
};

/* ---- life ---- */

void nfsd_sim_conf_default(struct nfsd_sim_conf *conf)
{
	*conf = (struct nfsd_sim_conf){
		.credits = 64,
		.inline_size = 4096,
		.latency_ns = 20 * NSEC_PER_USEC,
		.minor_max = 2,
		.lease_s = 90,
		.max_slots = 64,
		.max_ops = 50,
		.max_request = (1u << 20) + 4096,
		.max_response = (1u << 20) + 4096,
		.max_cached = 2128,
		.maxread = 1u << 20,
		.maxwrite = 1u << 20,
		.copy_max = 4u << 20,
		.clone_block = 4096,
	};
}

struct nfsd_sim *nfsd_sim_new(const struct nfsd_sim_conf *conf, const struct sockaddr *addr)
{
	struct nfsd_sim *sim = calloc(1, sizeof(*sim));

	pthread_mutex_init(&sim->lock, NULL);
	sim->out = calloc(1, NFSD_SIM_OUT_ROOM);
	if (conf)
		sim->conf = *conf;
	else
		nfsd_sim_conf_default(&sim->conf);
	list_init(&sim->conns);
	list_init(&sim->rules);
	list_init(&sim->old_rules);
	list_init(&sim->clients);
	list_init(&sim->sessions);
	list_init(&sim->opens);
	list_init(&sim->delegs);
	list_init(&sim->copies);
	list_init(&sim->held);
	list_init(&sim->held_less);
	list_init(&sim->held_deleg);
	list_init(&sim->lock_states);
	list_init(&sim->lock_ranges);
	list_init(&sim->lock_waiters);
	list_init(&sim->lock_held);
	tree_init(&sim->tree);
	sim->boot = 0x1001;
	sim->next_cb_xid = 0x5000;
	memcpy(sim->verf, "verf0001", 8);
	if (fab_sim_listen(addr, &srv_ops, sim)) {
		nfsd_sim_free(sim);
		return NULL;
	}
	return sim;
}

void nfsd_sim_free(struct nfsd_sim *sim)
{
	if (!list_empty(&sim->conns))
		fab_sim_fail("sim: a connection is left");
	fab_sim_unlisten(sim);
	nfsd_sim_rules_clear(sim);
	nfsd_sim_drop_clients(sim);
	held_free(sim);
	lock_held_free(sim);
	while (!list_empty(&sim->lock_ranges)) {
		struct lock_range *r = list_first(&sim->lock_ranges, struct lock_range, link);

		list_del(&r->link);
		free(r);
	}
	while (!list_empty(&sim->old_rules)) {
		struct rule *rule = list_first(&sim->old_rules, struct rule, link);

		list_del(&rule->link);
		free(rule);
	}
	tree_fini(&sim->tree);
	pthread_mutex_destroy(&sim->lock);
	free(sim->out);
	free(sim);
}

struct nfsd_sim_conf *nfsd_sim_conf(struct nfsd_sim *sim)
{
	return &sim->conf;
}

struct nfsd_sim_stats nfsd_sim_stats(struct nfsd_sim *sim)
{
	struct nfsd_sim_stats st;

	pthread_mutex_lock(&sim->lock);
	st = sim->stats;
	pthread_mutex_unlock(&sim->lock);
	return st;
}
