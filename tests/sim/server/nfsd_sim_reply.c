/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies: their form, and how rules spoil them. */
#include "nfsd_sim_int.h"

#include <errno.h>
#include <stdlib.h>

/* ---- rules ---- */

void nfsd_sim_rule(struct nfsd_sim *sim, const struct nfsd_sim_rule *r)
{
	struct rule *rule = calloc(1, sizeof(*rule));

	rule->r = *r;
	pthread_mutex_lock(&sim->lock);
	list_push_back(&sim->rules, &rule->link);
	pthread_mutex_unlock(&sim->lock);
}

void nfsd_sim_rules_clear(struct nfsd_sim *sim)
{
	pthread_mutex_lock(&sim->lock);
	/* Calls being served may still point at them. */
	list_splice_back(&sim->old_rules, &sim->rules);
	pthread_mutex_unlock(&sim->lock);
}

bool rule_turn(struct rule *rule)
{
	if (rule->r.every > 1 && ++rule->met % rule->r.every != 0)
		return false;
	if (rule->seen++ < rule->r.skip)
		return false;
	if (rule->r.count && rule->acted >= rule->r.count)
		return false;
	rule->acted++;
	return true;
}

static bool rule_acts(struct rule *rule, const struct job *job)
{
	if (rule->r.op && (rule->r.op >= 80 || !job->op_seen[rule->r.op]))
		return false;
	/* NULL calls are health checks: only rules for everything, forever, hit them. */
	if (job->is_null && (rule->r.op || rule->r.count))
		return false;
	return rule_turn(rule);
}

static uint32_t other_key(const struct job *job)
{
	list_for_each (node, &job->conn->jobs) {
		const struct job *it = container_of(node, struct job, link);

		if (it != job && it->a_key && it->a_key != job->a_key)
			return it->a_key;
	}
	return 0xbad00;
}

static void apply(struct job *job, const struct nfsd_sim_rule *r)
{
	switch (r->act) {
	case NFSD_SIM_LATE:
		job->late_ns += r->arg;
		break;
	case NFSD_SIM_LOSE:
		job->lose = true;
		break;
	case NFSD_SIM_DUP:
		job->dups += r->arg ? (unsigned int)r->arg : 1;
		break;
	case NFSD_SIM_HOLD:
		job->hold = true;
		break;
	case NFSD_SIM_ERR_VERS:
		job->err_code = SIM_ERR_VERS;
		break;
	case NFSD_SIM_ERR_CHUNK:
		job->err_code = SIM_ERR_CHUNK;
		break;
	case NFSD_SIM_ERR_OTHER:
		job->err_code = (int)r->arg;
		break;
	case NFSD_SIM_ERR_AFTER:
		job->err_after = true;
		break;
	case NFSD_SIM_CUT_BEFORE:
		job->err_code = -1;
		break;
	case NFSD_SIM_CUT_AFTER:
		job->cut_after = true;
		break;
	case NFSD_SIM_CUT_REPLIED:
		job->cut_replied = true;
		break;
	case NFSD_SIM_NO_INV:
		job->no_inv = true;
		break;
	case NFSD_SIM_WRONG_INV:
		job->wrong_inv = true;
		job->wrong_key = (uint32_t)r->arg;
		break;
	case NFSD_SIM_RPC_ACCEPT:
		job->accept_stat = (int)r->arg;
		break;
	case NFSD_SIM_RPC_DENY:
		job->deny_stat = (int)r->arg;
		break;
	case NFSD_SIM_RAW:
		job->raw = r;
		break;
	case NFSD_SIM_MUTATE_BODY:
		job->mutate_body = r;
		break;
	case NFSD_SIM_MUTATE:
		job->mutate = r;
		break;
	case NFSD_SIM_SEQ_FLAGS:
		job->seq_flags |= (uint32_t)r->arg;
		break;
	case NFSD_SIM_STATUS:
	case NFSD_SIM_STATUS_DONE:
		break; /* nfsd_sim_compound.c */
	}
}

void job_rules(struct job *job)
{
	list_for_each (node, &job->conn->sim->rules) {
		struct rule *rule = container_of(node, struct rule, link);

		if (rule->r.act == NFSD_SIM_STATUS || rule->r.act == NFSD_SIM_STATUS_DONE)
			continue;
		if (rule->r.act == NFSD_SIM_CUT_BEFORE && !rule->r.op)
			continue; /* before the Reads */
		if (!rule_acts(rule, job))
			continue;
		if (rule->r.hostile)
			fab_sim_conn_set_hostile(job->conn->fab, true);
		apply(job, &rule->r);
	}
}

/* ---- forming ---- */

static uint32_t inline_limit(const struct sconn *conn)
{
	uint32_t mine = conn->sim->conf.inline_size;

	return conn->client_recv < mine ? conn->client_recv : mine;
}

static void wr_header(struct wr *w, const struct sconn *conn, uint32_t xid, uint32_t proc)
{
	wr_u32(w, xid);
	wr_u32(w, 1);
	wr_u32(w, conn->sim->conf.credits);
	wr_u32(w, proc);
}

void send_error(struct sconn *conn, uint32_t xid, uint32_t code)
{
	uint8_t buf[64];
	struct wr w = {buf, 0, sizeof(buf), false};

	wr_header(&w, conn, xid, SIM_RDMA_ERROR);
	wr_u32(&w, code);
	if (code == SIM_ERR_VERS) {
		wr_u32(&w, 1);
		wr_u32(&w, 1);
	}
	conn->sim->stats.err_chunks += code == SIM_ERR_CHUNK;
	conn->sim->unsure += code == SIM_ERR_CHUNK;
	fab_sim_conn_send(conn->fab, buf, (uint32_t)w.len, 0);
}

/* Writes `len` bytes over a chunk's segments; lens: what each got. */
static bool push(
	struct job *job, const struct chunk *c, const uint8_t *p, size_t len, uint32_t *lens)
{
	for (unsigned int i = 0; i < c->seg_cnt; i++) {
		size_t n = len < c->segs[i].len ? len : c->segs[i].len;

		lens[i] = (uint32_t)n;
		if (n && fab_sim_conn_write(job->conn->fab, c->segs[i].rkey, c->segs[i].addr, p, n))
			return false;
		job->conn->sim->stats.writes_bytes += n;
		p += n;
		len -= n;
	}
	return true;
}

static void wr_chunk(struct wr *w, const struct chunk *c, const uint32_t *lens)
{
	wr_u32(w, c->seg_cnt);
	for (unsigned int i = 0; i < c->seg_cnt; i++) {
		wr_u32(w, c->segs[i].rkey);
		wr_u32(w, lens[i]);
		wr_u64(w, c->segs[i].addr);
	}
}

/*
 * The DDP results move to the Write chunks: `body` becomes what is left of the
 * reply. False: a result does not fit its chunk, or the connection broke.
 */
static bool reduce(struct job *job, struct wr *body, uint32_t lens[][SEGS_MAX], bool *ret_broke)
{
	const struct nfsd_sim_conf *conf = &job->conn->sim->conf;
	unsigned int k = 0;
	size_t pos = 0;

	*ret_broke = false;
	for (unsigned int i = 0; i < job->ddp_cnt && k < job->write_cnt; i++) {
		size_t off = job->ddp[i].off, len = job->ddp[i].len;
		size_t padded = (len + 3) & ~(size_t)3;
		size_t put = conf->write_pad ? padded : len;

		if (!len) {
			k += conf->zero_read_keeps ? 0 : 1;
			continue;
		}
		if (put > job->writes[k].total)
			return false;
		if (!push(job, &job->writes[k], job->rep.base + off, put, lens[k])) {
			*ret_broke = true;
			return false;
		}
		wr_raw(body, job->rep.base + pos, off - pos);
		pos = off + padded;
		k++;
	}
	wr_raw(body, job->rep.base + pos, job->rep.len - pos);
	return true;
}

static void transmit(struct job *job, struct nfsd_sim_out *out)
{
	struct sconn *conn = job->conn;

	if (job->mutate)
		job->mutate->mutate(job->mutate->ctx, out);
	if (job->raw) {
		out->len = job->raw->raw_len;
		memcpy(out->msg, job->raw->raw, out->len);
		out->inv_rkey = 0;
	}
	if (job->wrong_inv)
		out->inv_rkey = job->wrong_key ? job->wrong_key : other_key(job);
	if (job->no_inv)
		out->inv_rkey = 0;
	for (unsigned int i = 0; i <= job->dups; i++)
		fab_sim_conn_send(conn->fab, out->msg, out->len, i ? 0 : out->inv_rkey);
	conn->sim->stats.replies++;
	if (out->inv_rkey)
		conn->sim->stats.remote_invals++;
	else
		conn->sim->stats.plain_replies++;
}

static void spoil_body(struct job *job)
{
	struct nfsd_sim_out out = {.msg = job->rep.base, .len = (uint32_t)job->rep.len};

	job->mutate_body->mutate(job->mutate_body->ctx, &out);
	if (out.len < job->rep.len)
		job->rep.len = out.len;
	while (job->ddp_cnt && job->ddp[job->ddp_cnt - 1].off +
					       ((job->ddp[job->ddp_cnt - 1].len + 3) & ~(size_t)3) >
				       job->rep.len)
		job->ddp_cnt--;
}

/* The reply fits nowhere. True: `body` is another one, which goes inline. */
static bool too_big(struct job *job, struct wr *body)
{
	struct sconn *conn = job->conn;
	const struct nfsd_sim_conf *conf = &conn->sim->conf;

	if (!conf->allow_toosmall && !job->unbounded)
		fab_sim_fail("xid %#x: reply of %zu bytes fits neither inline nor its "
			     "Reply chunk (%zu)",
			job->xid, body->len, (size_t)job->reply_chunk.total);
	switch (conf->big_reply) {
	case NFSD_SIM_BIG_ERR_CHUNK:
		send_error(conn, job->xid, SIM_ERR_CHUNK);
		return false;
	case NFSD_SIM_BIG_SILENCE:
		return false;
	case NFSD_SIM_BIG_SYSTEM_ERR:
	case NFSD_SIM_BIG_GARBAGE:
		break;
	}
	body->len = 0;
	wr_u32(body, job->xid);
	wr_u32(body, 1); /* REPLY, MSG_ACCEPTED, AUTH_NONE */
	wr_u32(body, 0);
	wr_u64(body, 0);
	wr_u32(body, conf->big_reply == NFSD_SIM_BIG_GARBAGE ? 4 : 5);
	return true;
}

/* Everything the wire needs, done now. */
static void send_reply(struct job *job)
{
	struct sconn *conn = job->conn;
	const struct nfsd_sim_conf *conf = &conn->sim->conf;
	uint32_t lens[CHUNKS_MAX][SEGS_MAX], rlens[SEGS_MAX];
	struct wr body = {malloc(job->rep.len + 16), 0, job->rep.len + 16, false};
	struct wr w = {conn->sim->out, 0, NFSD_SIM_OUT_ROOM, false};
	struct nfsd_sim_out out = {.msg = w.base, .inv_rkey = job->inv_rkey};
	size_t hdr_len = 28;
	bool broke = false, use_chunk;

	if (job->mutate_body)
		spoil_body(job);
	memset(lens, 0, sizeof(lens));
	memset(rlens, 0, sizeof(rlens));
	if (job->err_after || !reduce(job, &body, lens, &broke)) {
		if (!broke)
			send_error(conn, job->xid, SIM_ERR_CHUNK);
		goto out;
	}
	for (unsigned int i = 0; i < job->write_cnt; i++)
		hdr_len += 8 + 16 * job->writes[i].seg_cnt;
	use_chunk = job->has_reply_chunk &&
		    (!conf->reply_chunk_lazy || hdr_len + body.len > inline_limit(conn));
	if (!use_chunk && job->has_reply_chunk)
		hdr_len += 4 + 16 * job->reply_chunk.seg_cnt;
	if (use_chunk ? body.len > job->reply_chunk.total
		      : hdr_len + body.len > inline_limit(conn)) {
		if (!too_big(job, &body))
			goto out;
		use_chunk = false;
	}
	if (conf->misplaces && job->write_cnt && !job->ddp_cnt) {
		if (!push(job, &job->writes[0], body.base, body.len, lens[0]))
			goto out;
		body.len = 0;
		use_chunk = false;
	}
	if (use_chunk && !push(job, &job->reply_chunk, body.base, body.len, rlens))
		goto out;

	wr_header(&w, conn, job->xid,
		use_chunk         ? SIM_RDMA_NOMSG
		: conf->send_msgp ? SIM_RDMA_MSGP
				  : SIM_RDMA_MSG);
	if (!use_chunk && conf->send_msgp) {
		wr_u32(&w, 4);    /* rdma_align */
		wr_u32(&w, 4096); /* rdma_thresh */
	}
	wr_u32(&w, 0);
	for (unsigned int i = 0; i < job->write_cnt; i++) {
		wr_u32(&w, 1);
		if (!i)
			out.write_off = (uint32_t)w.len;
		wr_chunk(&w, &job->writes[i], lens[i]);
	}
	wr_u32(&w, 0);
	wr_u32(&w, job->has_reply_chunk);
	if (job->has_reply_chunk) {
		out.reply_off = (uint32_t)w.len;
		wr_chunk(&w, &job->reply_chunk, rlens);
	}
	out.body_off = (uint32_t)w.len;
	if (!use_chunk)
		wr_raw(&w, body.base, body.len);
	out.len = (uint32_t)w.len;
	transmit(job, &out);
out:
	free(body.base);
}

static void finish(struct job *job)
{
	struct sconn *conn = job->conn;
	bool cut = job->cut_replied;

	send_reply(job);
	job_free(job);
	if (cut)
		fab_sim_conn_close_later(conn->fab, -ECONNRESET);
}

static void answer_now(struct reactor_timer *t)
{
	struct job *job = container_of(t, struct job, timer);
	struct nfsd_sim *sim = job->conn->sim;

	pthread_mutex_lock(&sim->lock);
	finish(job);
	pthread_mutex_unlock(&sim->lock);
}

void job_answer(struct job *job)
{
	if (job->lose) {
		job_free(job);
		return;
	}
	if (job->hold) {
		job->held = true;
		return;
	}
	reactor_timer_init(&job->timer, answer_now);
	reactor_timer_in(
		job->conn->reactor, &job->timer, job->conn->sim->conf.latency_ns + job->late_ns);
}

static unsigned int count_jobs(struct nfsd_sim *sim, bool held)
{
	unsigned int n = 0;

	pthread_mutex_lock(&sim->lock);
	list_for_each (cnode, &sim->conns) {
		struct sconn *conn = container_of(cnode, struct sconn, link);

		list_for_each (node, &conn->jobs)
			n += container_of(node, struct job, link)->held == held;
	}
	pthread_mutex_unlock(&sim->lock);
	return n;
}

unsigned int nfsd_sim_held(struct nfsd_sim *sim)
{
	return count_jobs(sim, true);
}

unsigned int nfsd_sim_answering(struct nfsd_sim *sim)
{
	return count_jobs(sim, false);
}

void nfsd_sim_pause(struct nfsd_sim *sim)
{
	pthread_mutex_lock(&sim->lock);
	sim->paused = true;
	pthread_mutex_unlock(&sim->lock);
}

static void release_conn(struct sconn *conn, bool reversed)
{
	struct list *node = reversed ? conn->jobs.prev : conn->jobs.next;

	while (node != &conn->jobs) {
		struct job *job = container_of(node, struct job, link);

		node = reversed ? node->prev : node->next;
		if (job->held)
			finish(job);
	}
}

void nfsd_sim_release(struct nfsd_sim *sim, bool reversed)
{
	pthread_mutex_lock(&sim->lock);
	list_for_each (cnode, &sim->conns)
		release_conn(container_of(cnode, struct sconn, link), reversed);
	pthread_mutex_unlock(&sim->lock);
}

/* A reply is sent by its connection's thread. */
struct release_msg {
	struct reactor_msg msg; /* first */
	struct nfsd_sim *sim;
	uint64_t conn_id;
};

static void run_release(struct reactor_msg *msg)
{
	struct release_msg *m = (struct release_msg *)msg;

	pthread_mutex_lock(&m->sim->lock);
	list_for_each (node, &m->sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);

		if (conn->id == m->conn_id)
			release_conn(conn, false);
	}
	pthread_mutex_unlock(&m->sim->lock);
	free(m);
}

void nfsd_sim_release_all(struct nfsd_sim *sim)
{
	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);
		struct release_msg *m = calloc(1, sizeof(*m));

		m->msg.run = run_release;
		m->sim = sim;
		m->conn_id = conn->id;
		reactor_post(conn->reactor, &m->msg);
	}
	pthread_mutex_unlock(&sim->lock);
}

void nfsd_sim_inject(struct nfsd_sim *sim, const void *msg, uint32_t len, bool hostile)
{
	pthread_mutex_lock(&sim->lock);
	list_for_each (node, &sim->conns) {
		struct sconn *conn = container_of(node, struct sconn, link);

		if (hostile)
			fab_sim_conn_set_hostile(conn->fab, true);
		fab_sim_conn_send(conn->fab, msg, len, 0);
	}
	pthread_mutex_unlock(&sim->lock);
}
