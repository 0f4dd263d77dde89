/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a lane: data buffers (one registration each, so that nothing but
 * the buffer is reachable even where a device checks windows badly), Send and
 * Receive buffers in local-only registrations.
 *
 * I4 (data buffer): it is free, or lent to one user. From rpcrdma_send() to ->done of a call that
 *    names it the transport has it too, and it is not given back, however that call ends.
 *    Asserted: rpcrdma_buf_get_above(), rpcrdma_buf_put()
 *    Test: rpcrdma_req::a_buffer_of_a_call_cannot_be_put_before_its_end
 * I6 (receive buffer): it is posted, being looked at, or holds the reply of one call, which has it
 *    until ->done returns. So nothing is received over a reply that waits for its fence.
 *    Asserted: rpcrdma_mem_post_rep(), rpcrdma_reply_receive(), conclude()
 *    Test: rpcrdma_reply::what_waits_for_its_fence_is_not_written_over
 */
#include "rpcrdma_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"

/* The kernel charges each object to the rdma cgroup, and says no more than "try again". */
const char *rpcrdma_mem_strerror(int err)
{
	return err == EAGAIN ? "the limit of the rdma cgroup is reached (rdma.max)" : strerror(err);
}

static size_t data_room(const struct rpcrdma *x)
{
	return x->conf.data_size + x->page; /* from buf->data on */
}

static int bufs_init(struct rpcrdma *x)
{
	x->bufs = calloc(x->conf.data_cnt, sizeof(*x->bufs));
	x->bufprivs = calloc(x->conf.data_cnt, sizeof(*x->bufprivs));
	if (!x->bufs || !x->bufprivs)
		return -ENOMEM;
	for (unsigned int i = x->conf.data_cnt; i-- > 0;) {
		struct rpcrdma_buf *buf = &x->bufs[i];

		buf->data = (uint8_t *)slab_at(&x->data_slab, i) + x->page;
		buf->mem = buf->data - RPCRDMA_DATA_LEAD;
		buf->priv = &x->bufprivs[i];
		list_init(&buf->link);
		list_push_front(&x->buf_free, &buf->link);
	}
	x->buf_free_cnt = x->conf.data_cnt;
	return 0;
}

static int copies_init(struct rpcrdma *x)
{
	int err = slab_init(&x->copy_slab, x->head_size, RPCRDMA_COPIES);

	list_init(&x->copy_free);
	for (unsigned int i = 0; i < RPCRDMA_COPIES && !err; i++) {
		struct rpcrdma_buf *buf = &x->copies[i];

		buf->data = buf->mem = slab_at(&x->copy_slab, i);
		buf->priv = &x->copyprivs[i];
		list_push_back(&x->copy_free, &buf->link);
	}
	return err;
}

int rpcrdma_mem_init(struct rpcrdma *x)
{
	size_t send_size;
	int err;

	x->page = (size_t)sysconf(_SC_PAGESIZE);
	x->head_size =
		x->conf.inline_size > RPCRDMA_HEAD_MIN ? x->conf.inline_size : RPCRDMA_HEAD_MIN;
	send_size = RPCRDMA_SEND_HDR + x->head_size;
	x->recv_size = 2 * x->conf.inline_size;
	if (x->recv_size < RPCRDMA_RECV_ARMOUR)
		x->recv_size = RPCRDMA_RECV_ARMOUR;
	x->rep_cnt = x->conf.credits + 1 + RPCRDMA_REVERSE_RECVS;
	list_init(&x->buf_free);
	x->reps = calloc(x->rep_cnt, sizeof(*x->reps));
	if (!x->reps)
		return -ENOMEM;
	err = slab_init_in(
		&x->data_slab, &x->conf.data_mem, x->page + data_room(x), x->conf.data_cnt);
	if (!err)
		err = slab_init(&x->send_slab, send_size, x->conf.credits + 1);
	if (!err)
		err = slab_init(&x->recv_slab, x->recv_size, x->rep_cnt);
	if (!err)
		err = slab_init(&x->rsend_slab, RPCRDMA_HDR_MIN + x->conf.inline_size,
			RPCRDMA_REVERSE_SENDS);
	if (!err)
		err = copies_init(x);
	if (err)
		return err;
	for (unsigned int i = 0; i < x->rep_cnt; i++)
		x->reps[i].mem = slab_at(&x->recv_slab, i);
	return bufs_init(x);
}

/* The registrations go with the endpoint, before this. */
void rpcrdma_mem_fini(struct rpcrdma *x)
{
	free(x->bufs);
	free(x->bufprivs);
	free(x->reps);
	free(x->private_reply);
	if (x->data_slab.base)
		slab_fini(&x->data_slab);
	if (x->send_slab.base)
		slab_fini(&x->send_slab);
	if (x->recv_slab.base)
		slab_fini(&x->recv_slab);
	if (x->rsend_slab.base)
		slab_fini(&x->rsend_slab);
	if (x->copy_slab.base)
		slab_fini(&x->copy_slab);
}

/* What one lane pins, in KiB, for the message that names the limit. */
static unsigned long pinned_kib(const struct rpcrdma *x)
{
	size_t data = x->data_slab.stride * x->data_slab.cnt;
	size_t rest = x->send_slab.map_len + x->recv_slab.map_len + x->rsend_slab.map_len +
		      x->copy_slab.map_len;

	if (x->memreg == RPCRDMA_MEMREG_STATIC)
		data *= 2; /* registered once for each direction */
	return (unsigned long)((data + rest) / 1024);
}

static bool is_beyond_memlock(int err, struct rlimit *lim)
{
	return err == ENOMEM && getrlimit(RLIMIT_MEMLOCK, lim) == 0 &&
	       lim->rlim_cur != RLIM_INFINITY;
}

/*
 * max_mr_size is not believed before: siw says RLIMIT_MEMLOCK there, which root need not mind, and
 * no usual adapter has less than a buffer.
 */
static int reg_failed(struct rpcrdma *x, size_t len, int err)
{
	const struct fab_caps *caps = fab_ep_caps(x->ep);
	struct rlimit lim;

	if (is_beyond_memlock(err, &lim))
		snprintf(x->detail, sizeof(x->detail),
			"cannot pin memory for RDMA: this connection needs %lu KiB, RLIMIT_MEMLOCK "
			"is %lu KiB; raise it with `ulimit -l` or LimitMEMLOCK= of the systemd "
			"unit, or use fewer buffers",
			pinned_kib(x), (unsigned long)(lim.rlim_cur / 1024));
	else if (caps->max_mr_size > 0 && len > caps->max_mr_size)
		snprintf(x->detail, sizeof(x->detail),
			"cannot register memory with the RDMA device: %s takes %lu KiB at once, "
			"%lu KiB are needed; use smaller rsize= and wsize=, or credits=",
			caps->dev_name, (unsigned long)(caps->max_mr_size / 1024),
			(unsigned long)(len / 1024));
	else
		snprintf(x->detail, sizeof(x->detail),
			"cannot register %lu KiB of memory with the RDMA device: %s", pinned_kib(x),
			rpcrdma_mem_strerror(err));
	/* Of a first connection the user's line tells (rpcrdma_failure_detail). */
	if (x->ever_up)
		log_err("%s: %s", x->peer, x->detail);
	return err > 0 ? -err : -EIO;
}

static struct fab_mr *reg(
	struct rpcrdma *x, void *addr, size_t len, unsigned int access, bool bind, int *err)
{
	struct fab_mr *mr;

	errno = 0;
	mr = fab_mr_reg(x->ep, addr, len, access, bind);
	if (!mr)
		*err = reg_failed(x, len, errno);
	return mr;
}

/* Not what lies before its data: a request of the kernel's, which no peer may read or write. */
static int reg_buf(struct rpcrdma *x, struct rpcrdma_buf *buf)
{
	size_t len = data_room(x);
	struct rpcrdma_bufpriv *p = buf->priv;
	int err = 0;

	if (x->memreg == RPCRDMA_MEMREG_MW) {
		if (!p->src)
			p->src = reg(x, buf->data, len, FAB_LOCAL, true, &err);
		return err;
	}
	if (!p->src)
		p->src = reg(x, buf->data, len, FAB_REMOTE_READ, false, &err);
	if (!err && !p->dst)
		p->dst = reg(x, buf->data, len, FAB_REMOTE_WRITE, false, &err);
	return err;
}

static int reg_copy(struct rpcrdma *x, struct rpcrdma_buf *buf)
{
	bool mw = x->memreg == RPCRDMA_MEMREG_MW;
	int err = 0;

	if (!buf->priv->src)
		buf->priv->src =
			reg(x, buf->data, x->head_size, mw ? FAB_LOCAL : FAB_REMOTE_READ, mw, &err);
	return err;
}

int rpcrdma_mem_reg(struct rpcrdma *x)
{
	int err = 0;

	if (!x->send_mr)
		x->send_mr =
			reg(x, x->send_slab.base, x->send_slab.map_len, FAB_LOCAL, false, &err);
	if (!err && !x->recv_mr)
		x->recv_mr =
			reg(x, x->recv_slab.base, x->recv_slab.map_len, FAB_LOCAL, false, &err);
	if (!err && !x->rsend_mr)
		x->rsend_mr =
			reg(x, x->rsend_slab.base, x->rsend_slab.map_len, FAB_LOCAL, false, &err);
	for (unsigned int i = 0; i < x->conf.data_cnt && !err; i++)
		err = reg_buf(x, &x->bufs[i]);
	for (unsigned int i = 0; i < RPCRDMA_COPIES && !err; i++)
		err = reg_copy(x, &x->copies[i]);
	if (!err && x->memreg == RPCRDMA_MEMREG_STATIC && !x->private_reply) {
		x->private_reply = malloc(data_room(x));
		err = x->private_reply ? 0 : reg_failed(x, data_room(x), ENOMEM);
	}
	return err;
}

void rpcrdma_mem_privatize(struct rpcrdma *x, struct rpcrdma_req *req)
{
	if (x->memreg != RPCRDMA_MEMREG_STATIC || !req->reply || req->reply != req->reply_sink.p)
		return;
	memcpy(x->private_reply, req->reply, req->reply_len);
	req->reply = x->private_reply;
}

void rpcrdma_mem_forget(struct rpcrdma *x)
{
	x->send_mr = x->recv_mr = x->rsend_mr = NULL;
	for (unsigned int i = 0; i < x->conf.data_cnt; i++)
		x->bufprivs[i].src = x->bufprivs[i].dst = NULL;
	for (unsigned int i = 0; i < RPCRDMA_COPIES; i++)
		x->copyprivs[i].src = NULL;
}

void rpcrdma_mem_dereg_data(struct rpcrdma *x)
{
	for (unsigned int i = 0; i < x->conf.data_cnt; i++) {
		struct rpcrdma_bufpriv *p = &x->bufprivs[i];

		fab_mr_dereg(p->src);
		fab_mr_dereg(p->dst);
		p->src = p->dst = NULL;
	}
	for (unsigned int i = 0; i < RPCRDMA_COPIES; i++) {
		fab_mr_dereg(x->copyprivs[i].src);
		x->copyprivs[i].src = NULL;
	}
}

bool rpcrdma_mem_span_is_valid(const struct rpcrdma *x, const struct rpcrdma_span *span)
{
	const struct rpcrdma_buf *buf = span->buf;

	if (!buf)
		return span->len == 0;
	return span->p >= buf->data && span->p <= buf->data + data_room(x) &&
	       span->len <= (size_t)(buf->data + data_room(x) - span->p);
}

static void lend_span(const struct rpcrdma_span *span, int by)
{
	if (span->buf)
		span->buf->priv->calls += (unsigned int)by;
}

void rpcrdma_mem_lend(const struct rpcrdma_req *req, int by)
{
	for (unsigned int i = 0; i < req->arg_cnt; i++)
		lend_span(&req->args[i], by);
	for (unsigned int i = 0; i < req->result_cnt; i++)
		lend_span(&req->results[i].sink, by);
	lend_span(&req->long_call, by);
	lend_span(&req->reply_sink, by);
}

struct rpcrdma_buf *rpcrdma_buf_get_above(struct rpcrdma *x, unsigned int left)
{
	struct rpcrdma_buf *buf;

	if (x->buf_free_cnt <= left) {
		stats_count(&x->stats->buf_waits, 1);
		x->want_unblock = true;
		return NULL;
	}
	buf = container_of(list_pop_front(&x->buf_free), struct rpcrdma_buf, link);
	assert(!buf->priv->taken && buf->priv->calls == 0); /* I4 */
	buf->priv->taken = true;
	buf->owner = NULL;
	x->buf_free_cnt--;
	return buf;
}

struct rpcrdma_buf *rpcrdma_buf_get(struct rpcrdma *x)
{
	return rpcrdma_buf_get_above(x, 0);
}

void rpcrdma_buf_put(struct rpcrdma *x, struct rpcrdma_buf *buf)
{
	assert(buf->priv->taken && !list_is_linked(&buf->link)); /* I4 */
	assert(buf->priv->calls == 0);                           /* I4 */
	buf->priv->taken = false;
	buf->owner = NULL;
	list_push_front(&x->buf_free, &buf->link); /* the last one used is warm */
	x->buf_free_cnt++;
	rpcrdma_mem_freed(x);
}

unsigned int rpcrdma_buf_free_count(const struct rpcrdma *x)
{
	return x->buf_free_cnt;
}

void rpcrdma_mem_freed(struct rpcrdma *x)
{
	if (!x->want_unblock)
		return;
	x->want_unblock = false;
	x->unblock_due = true;
	rpcrdma_kick(x);
}

int rpcrdma_mem_post_rep(struct rpcrdma *x, struct rpcrdma_rep *rep)
{
	int err;

	assert(!rep->posted); /* I6 */
	err = fab_post_recv(x->ep, rep->mem, x->recv_size, x->recv_mr, (uint64_t)(rep - x->reps));
	rep->posted = err == 0;
	return err;
}
