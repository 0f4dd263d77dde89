/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_held.h"

#include <errno.h>
#include <string.h>

struct sim_recall_any sim_recall_any;

/* ---- what is told ---- */

static struct sim_held *held_of(struct nfs4_deleg *d)
{
	return container_of(d, struct sim_held, deleg);
}

static void on_recall(void *ctx, struct nfs4_deleg *d)
{
	if (!d->cl)
		fab_sim_fail("->recall of a delegation that is none");
	held_of(d)->recalls++;
}

static void on_lost(void *ctx, struct nfs4_deleg *d)
{
	held_of(d)->losses++;
}

static void on_recall_any(void *ctx, uint32_t keep, bool read, bool write)
{
	sim_recall_any.cnt++;
	sim_recall_any.keep = keep;
	sim_recall_any.read = read;
	sim_recall_any.write = write;
}

static bool on_getattr(void *ctx, struct nfs4_deleg *d, uint64_t *ret_change, uint64_t *ret_size)
{
	*ret_change = held_of(d)->change;
	*ret_size = held_of(d)->size;
	return held_of(d)->answers;
}

static const struct nfs4_deleg_ops deleg_ops = {
	.recall = on_recall,
	.lost = on_lost,
	.recall_any = on_recall_any,
	.getattr = on_getattr,
};

/* ---- life ---- */

void sim_held_hear(struct sim_nfs *w)
{
	nfs4_deleg_set_ops(w->cl, &deleg_ops, w);
}

void sim_held_mounted(struct sim_nfs *w, unsigned int lanes, uint32_t delegs)
{
	nfsd_sim_conf(w->srv)->delegs = delegs;
	sim_recall_any = (struct sim_recall_any){0};
	sim_nfs_client(w, lanes);
	sim_held_hear(w);
	if (!sim_nfs_up(w))
		fab_sim_fail("not up: %s", w->lane[0].failure.text);
	else if (!sim_nfs_mount(w, "/"))
		fab_sim_fail("not mounted: %s", w->mount_failure.text);
}

void sim_held_file(struct sim_nfs *w, struct sim_held *h, const char *path)
{
	static struct sim_op op;
	uint8_t data[100];

	memset(h, 0, sizeof(*h));
	h->w = w;
	h->owner = nfs4_new_owner(w->cl);
	nfsd_sim_fill(data, 0, sizeof(data));
	if (!nfsd_sim_mknod(w->srv, path, NFSD_SIM_REG, 0666, data, sizeof(data)))
		fab_sim_fail("%s cannot be made", path);
	if (!sim_op_get(w, 0, &op))
		return;
	op.call.u.lookup.dir = &nfs4_client_fsinfo(w->cl)->root;
	op.call.u.lookup.name = (struct nfs4_str){path + 1, (uint32_t)strlen(path + 1)};
	if (sim_op_run(&op, nfs4_lookup))
		fab_sim_fail("%s is not found", path);
	h->f.fh = op.call.u.lookup.fh;
}

/* ---- calls ---- */

static bool get(struct sim_held_op *ho, struct sim_held *h, unsigned int lane)
{
	ho->h = h;
	ho->op.then = NULL;
	return sim_op_get(h->w, lane, &ho->op);
}

static void opened(struct sim_op *op)
{
	struct sim_held_op *ho = container_of(op, struct sim_held_op, op);
	struct sim_held *h = ho->h;
	const struct nfs4_op_open *o = &op->call.u.open;

	if (op->err)
		return;
	if (o->read) {
		h->came = o->read->len;
		h->came_eof = o->read->eof;
		h->came_right = o->read->data && sim_is_pattern(o->read->data, 0, o->read->len);
	}
	nfs4_share_open(&h->f.state, &op->call);
	if (o->deleg_type != OPEN_DELEGATE_READ && o->deleg_type != OPEN_DELEGATE_WRITE)
		return;
	if (ho->refuses || h->deleg.cl || h->returns) {
		nfs4_return_refuse(&op->call);
		h->refused++;
	} else {
		h->how = nfs4_deleg_take(&h->deleg, &op->call);
		h->taken++;
	}
}

bool sim_open_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane, uint32_t access,
	bool want_deleg)
{
	struct nfs4_op_open *o = &ho->op.call.u.open;

	if (!get(ho, h, lane))
		return false;
	o->file = &h->f.fh;
	o->owner = h->owner;
	o->share_access = access;
	o->want_deleg = want_deleg;
	if (h->with_open) {
		o->read = &ho->read;
		ho->read = (struct nfs4_op_read){.count = h->with_open,
			.sink = {ho->op.buf, ho->op.buf->data, h->with_open}};
	}
	ho->op.then = opened;
	sim_op_start(&ho->op, nfs4_open);
	return true;
}

bool sim_claim_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane)
{
	if (!get(ho, h, lane))
		return false;
	ho->op.call.u.open.claim = &h->f.state;
	sim_op_start(&ho->op, nfs4_claim);
	return true;
}

static void returned(struct sim_op *op)
{
	container_of(op, struct sim_held_op, op)->h->returns--;
}

bool sim_return_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane)
{
	if (!get(ho, h, lane))
		return false;
	ho->op.call.u.delegreturn.fh = &h->f.fh;
	ho->op.call.u.delegreturn.deleg = &h->deleg;
	ho->op.then = returned;
	h->returns++;
	sim_op_start(&ho->op, nfs4_delegreturn);
	return true;
}

bool sim_downgrade_start(
	struct sim_held_op *ho, struct sim_held *h, unsigned int lane, uint32_t access)
{
	if (!get(ho, h, lane))
		return false;
	ho->op.call.u.downgrade.fh = &h->f.fh;
	ho->op.call.u.downgrade.state = &h->f.state;
	ho->op.call.u.downgrade.share_access = access;
	sim_op_start(&ho->op, nfs4_downgrade);
	return true;
}

bool sim_close_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane)
{
	if (!get(ho, h, lane))
		return false;
	ho->op.call.u.close.fh = &h->f.fh;
	ho->op.call.u.close.state = &h->f.state;
	sim_op_start(&ho->op, nfs4_close);
	return true;
}

bool sim_read_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane)
{
	struct nfs4_op_read *o = &ho->op.call.u.read;

	if (!get(ho, h, lane))
		return false;
	o->fh = &h->f.fh;
	o->state = &h->f.state;
	o->count = 100;
	o->sink = (struct rpcrdma_span){ho->op.buf, ho->op.buf->data, 100};
	ho->op.len = 1;
	sim_op_start(&ho->op, nfs4_read);
	return true;
}

bool sim_write_start(struct sim_held_op *ho, struct sim_held *h, unsigned int lane)
{
	struct nfs4_op_write *o = &ho->op.call.u.write;

	if (!get(ho, h, lane))
		return false;
	nfsd_sim_fill(ho->op.buf->data, 0, 100);
	o->fh = &h->f.fh;
	o->state = &h->f.state;
	o->data[0] = (struct rpcrdma_span){ho->op.buf, ho->op.buf->data, 100};
	o->data_cnt = 1;
	o->stable = FILE_SYNC4;
	sim_op_start(&ho->op, nfs4_write);
	return true;
}

int sim_held_wait(struct sim_held_op *ho)
{
	if (!sim_nfs_until(ho->h->w, &ho->op.done_cnt, 1, 600 * SIM_SEC))
		return -ETIME;
	return ho->op.err;
}

/* ---- one after the other ---- */

static struct sim_held_op one;

int sim_hopen(struct sim_held *h, unsigned int lane, uint32_t access, bool want_deleg)
{
	return sim_open_start(&one, h, lane, access, want_deleg) ? sim_held_wait(&one) : -EIO;
}

int sim_hclaim(struct sim_held *h, unsigned int lane)
{
	return sim_claim_start(&one, h, lane) ? sim_held_wait(&one) : -EIO;
}

int sim_hreturn(struct sim_held *h, unsigned int lane)
{
	return sim_return_start(&one, h, lane) ? sim_held_wait(&one) : -EIO;
}

int sim_hdowngrade(struct sim_held *h, unsigned int lane, uint32_t access)
{
	return sim_downgrade_start(&one, h, lane, access) ? sim_held_wait(&one) : -EIO;
}

int sim_hclose(struct sim_held *h, unsigned int lane)
{
	int err;

	if (nfs4_deleg_close(&h->f.state))
		return 0;
	err = sim_close_start(&one, h, lane) ? sim_held_wait(&one) : -EIO;
	nfs4_state_forget(&h->f.state);
	return err;
}

int sim_hread(struct sim_held *h, unsigned int lane)
{
	int err = sim_read_start(&one, h, lane) ? sim_held_wait(&one) : -EIO;

	if (!err && (one.op.len != 100 || !sim_is_pattern(one.op.data, 0, 100)))
		return -EBADMSG;
	return err;
}

int sim_hwrite(struct sim_held *h, unsigned int lane)
{
	return sim_write_start(&one, h, lane) ? sim_held_wait(&one) : -EIO;
}

bool sim_hserve(struct sim_held *h, uint32_t access)
{
	return nfs4_deleg_open(&h->deleg, &h->f.state, &h->w->cred, access, h->owner, 0);
}
