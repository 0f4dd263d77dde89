/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_ops.h"

#include <errno.h>
#include <string.h>

static struct nfs4_str str(const char *s)
{
	return (struct nfs4_str){s, (uint32_t)strlen(s)};
}

/* ---- one operation ---- */

/* What the operation said its reply can be is what it is at most. */
static void check_bound(const struct nfs4_call *call)
{
	const struct rpcrdma_req *req = &call->rpc.req;
	uint64_t bound = req->reply_max;

	for (unsigned int i = 0; i < req->result_cnt; i++)
		bound += XDR_ROUND(req->results[i].sink.len);
	if (req->reply_len > bound)
		fab_sim_fail("xid %#x: a reply of %zu bytes, its bound is %llu", req->xid,
			req->reply_len, (unsigned long long)bound);
}

static void op_done(struct nfs4_call *call)
{
	struct sim_op *op = container_of(call, struct sim_op, call);
	const void *p = NULL;

	if (op->done_cnt++)
		fab_sim_fail("->done twice");
	if (call->desc)
		check_bound(call);
	op->err = call->err;
	if (!call->err && call->desc) {
		/* What is valid only now; the names tell the operation. */
		if (op->len == 1) {
			p = call->u.read.data;
			op->len = call->u.read.len;
		} else if (op->len == 2) {
			p = call->u.readlink.target.p;
			op->len = call->u.readlink.target.len;
		} else if (op->len == 3) {
			p = call->u.getxattr.value;
			op->len = call->u.getxattr.len;
		} else if (op->len == 4) {
			p = call->u.getacl.acl;
			op->len = call->u.getacl.len;
		}
	}
	if (p && op->len <= sizeof(op->data))
		memcpy(op->data, p, op->len);
	if (op->buf)
		rpcrdma_buf_put(nfs4_session_xprt(call->sess), op->buf);
	op->buf = NULL;
	nfs4_call_put(call);
	if (op->then)
		op->then(op);
}

bool sim_op_get(struct sim_nfs *w, unsigned int lane, struct sim_op *op)
{
	struct nfs4_session *s = w->lane[lane].sess;
	uint64_t end = reactor_now(w->r) + 1000 * SIM_SEC;
	int err;

	op->w = w;
	op->done_cnt = 0;
	op->len = 0;
	op->err = -EINPROGRESS;
	while ((err = nfs4_call_get(s, &op->call)) == -EAGAIN && reactor_now(w->r) < end)
		reactor_turn(w->r, SIM_SEC);
	if (err) {
		fab_sim_fail("nfs4_call_get(): %s", strerror(-err));
		return false;
	}
	while (!(op->buf = rpcrdma_buf_get(nfs4_session_xprt(s))) && reactor_now(w->r) < end)
		reactor_turn(w->r, SIM_SEC);
	if (!op->buf) {
		fab_sim_fail("no buffer came free");
		nfs4_call_put(&op->call);
		return false;
	}
	memset(&op->call.u, 0, sizeof(op->call.u));
	op->call.cred = &w->cred;
	op->call.done = op_done;
	return true;
}

void sim_op_start(struct sim_op *op, void (*start)(struct nfs4_call *))
{
	start(&op->call);
	if (op->done_cnt)
		fab_sim_fail("->done from inside the start");
}

int sim_op_run(struct sim_op *op, void (*start)(struct nfs4_call *))
{
	sim_op_start(op, start);
	if (!sim_nfs_until(op->w, &op->done_cnt, 1, 5000 * SIM_SEC)) {
		fab_sim_fail("a call does not end");
		return -ETIME;
	}
	return op->err;
}

static struct rpcrdma_span whole(struct sim_op *op)
{
	return (struct rpcrdma_span){op->buf, op->buf->data, (uint32_t)op->w->conf.rdma.data_size};
}

/* ---- the common ones ---- */

static struct sim_op shared; /* one at a time */

int sim_mkdir(struct sim_nfs *w, const struct nfs4_fh *dir, const char *name, struct nfs4_fh *ret)
{
	struct nfs4_op_create *o = &shared.call.u.create;
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->dir = dir;
	o->name = str(name);
	o->type = NF4DIR;
	o->sattr.set = NFS4_ATTR_MODE;
	o->sattr.mode = 0755;
	err = sim_op_run(&shared, nfs4_create);
	if (!err && ret)
		*ret = o->fh;
	return err;
}

int sim_create(struct sim_nfs *w, const struct nfs4_fh *dir, const char *name, struct sim_file *f)
{
	struct nfs4_op_open *o = &shared.call.u.open;
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->dir = dir;
	o->name = str(name);
	o->share_access = OPEN4_SHARE_ACCESS_BOTH;
	o->owner = nfs4_new_owner(w->cl);
	o->create = true;
	o->sattr.set = NFS4_ATTR_MODE;
	o->sattr.mode = 0644;
	err = sim_op_run(&shared, nfs4_open);
	if (!err) {
		f->fh = o->fh;
		nfs4_share_open(&f->state, &shared.call);
	}
	return err;
}

int sim_close(struct sim_nfs *w, struct sim_file *f)
{
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.close.fh = &f->fh;
	shared.call.u.close.state = &f->state;
	err = sim_op_run(&shared, nfs4_close);
	nfs4_state_forget(&f->state);
	return err;
}

int sim_write(struct sim_nfs *w, struct sim_file *f, uint64_t off, uint32_t len,
	enum nfs4_stable stable, struct nfs4_verf *verf)
{
	struct nfs4_op_write *o = &shared.call.u.write;
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	nfsd_sim_fill(shared.buf->data, (uint32_t)off, len);
	o->fh = &f->fh;
	o->state = &f->state;
	o->offset = off;
	o->data[0] = (struct rpcrdma_span){shared.buf, shared.buf->data, len};
	o->data_cnt = len > 0;
	o->stable = stable;
	err = sim_op_run(&shared, nfs4_write);
	if (!err && o->count != len)
		fab_sim_fail("WRITE of %u bytes wrote %u", len, o->count);
	if (!err && o->committed < stable)
		fab_sim_fail("WRITE is less stable than asked");
	if (!err && verf)
		*verf = o->verf;
	return err;
}

int sim_commit(struct sim_nfs *w, struct sim_file *f, struct nfs4_verf *verf)
{
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.commit.fh = &f->fh;
	err = sim_op_run(&shared, nfs4_commit);
	if (!err && verf)
		*verf = shared.call.u.commit.verf;
	return err;
}

int sim_read(struct sim_nfs *w, struct sim_op *op, struct sim_file *f, uint64_t off, uint32_t len)
{
	struct nfs4_op_read *o = &op->call.u.read;

	if (!sim_op_get(w, 0, op))
		return -EIO;
	o->fh = &f->fh;
	o->state = &f->state;
	o->offset = off;
	o->count = len;
	o->sink = (struct rpcrdma_span){op->buf, op->buf->data, len};
	op->len = 1;
	return sim_op_run(op, nfs4_read);
}

void sim_lock_start(struct sim_op *op, struct sim_file *f, struct nfs4_lockowner *lo, uint64_t off,
	uint64_t len, bool write, bool wait)
{
	struct nfs4_op_lock *o = &op->call.u.lock;

	o->fh = &f->fh;
	o->state = &f->state;
	o->lock = lo;
	o->write = write;
	o->wait = wait;
	o->offset = off;
	o->length = len;
	sim_op_start(op, nfs4_lock);
}

void sim_unlock_start(struct sim_op *op, struct sim_file *f, struct nfs4_lockowner *lo,
	uint64_t off, uint64_t len)
{
	struct nfs4_op_locku *o = &op->call.u.locku;

	o->fh = &f->fh;
	o->lock = lo;
	o->offset = off;
	o->length = len;
	sim_op_start(op, nfs4_locku);
}

static int finish(struct sim_op *op)
{
	if (sim_nfs_until(op->w, &op->done_cnt, 1, 5000 * SIM_SEC))
		return op->err;
	fab_sim_fail("a call does not end");
	return -ETIME;
}

int sim_brlock(struct sim_nfs *w, unsigned int lane, struct sim_file *f, struct nfs4_lockowner *lo,
	uint64_t off, uint64_t len, bool write)
{
	if (!sim_op_get(w, lane, &shared))
		return -EIO;
	sim_lock_start(&shared, f, lo, off, len, write, false);
	return finish(&shared);
}

int sim_brunlock(struct sim_nfs *w, unsigned int lane, struct sim_file *f,
	struct nfs4_lockowner *lo, uint64_t off, uint64_t len)
{
	if (!sim_op_get(w, lane, &shared))
		return -EIO;
	sim_unlock_start(&shared, f, lo, off, len);
	return finish(&shared);
}

int sim_brtest(struct sim_nfs *w, struct sim_file *f, const struct nfs4_lockowner *lo, uint64_t off,
	uint64_t len, bool write, struct nfs4_denied *denied)
{
	struct nfs4_op_lockt *o = &shared.call.u.lockt;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->fh = &f->fh;
	o->owner = lo->number;
	o->write = write;
	o->offset = off;
	o->length = len;
	if (sim_op_run(&shared, nfs4_lockt))
		return shared.err;
	if (denied)
		*denied = o->denied;
	return o->conflict;
}

bool sim_is_pattern(const uint8_t *p, uint64_t off, uint32_t len)
{
	return nfsd_sim_is_pattern(p, (uint32_t)off, len);
}

/* ---- the script ---- */

static int getattr(struct sim_nfs *w, const struct nfs4_fh *fh, struct nfs4_attr *attr)
{
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.getattr.fh = fh;
	err = sim_op_run(&shared, nfs4_getattr);
	*attr = shared.call.u.getattr.attr;
	return err;
}

static int lookup(
	struct sim_nfs *w, const struct nfs4_fh *dir, const char *name, struct nfs4_fh *fh)
{
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.lookup.dir = dir;
	shared.call.u.lookup.name = str(name);
	err = sim_op_run(&shared, nfs4_lookup);
	*fh = shared.call.u.lookup.fh;
	return err;
}

static int setattr(struct sim_nfs *w, struct sim_file *f, uint32_t mode, int64_t size)
{
	struct nfs4_op_setattr *o = &shared.call.u.setattr;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->fh = &f->fh;
	o->sattr.set = NFS4_ATTR_MODE;
	o->sattr.mode = mode;
	if (size >= 0) {
		o->state = &f->state;
		o->sattr.set |= NFS4_ATTR_SIZE;
		o->sattr.size = (uint64_t)size;
	}
	return sim_op_run(&shared, nfs4_setattr);
}

static int symlink(struct sim_nfs *w, const struct nfs4_fh *dir, const char *name, uint32_t len,
	struct nfs4_fh *fh)
{
	static char target[5000];
	struct nfs4_op_create *o = &shared.call.u.create;
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	memset(target, 'x', sizeof(target));
	o->dir = dir;
	o->name = str(name);
	o->type = NF4LNK;
	o->linkdata = (struct nfs4_str){target, len};
	o->long_buf = shared.buf;
	err = sim_op_run(&shared, nfs4_create);
	*fh = o->fh;
	return err;
}

static int readlink(struct sim_nfs *w, const struct nfs4_fh *fh, uint32_t len)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.readlink.fh = fh;
	shared.call.u.readlink.sink =
		(struct rpcrdma_span){shared.buf, shared.buf->data, 4096 + 512};
	shared.len = 2;
	if (sim_op_run(&shared, nfs4_readlink))
		return shared.err;
	return shared.len == len && shared.data[len - 1] == 'x' ? 0 : -EBADMSG;
}

static bool entry(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	container_of(call, struct sim_op, call)->entries++;
	return de->name.len > 0;
}

static int readdir(struct sim_nfs *w, const struct nfs4_fh *fh, bool plus, unsigned int want)
{
	struct nfs4_op_readdir *o = &shared.call.u.readdir;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->fh = fh;
	o->maxcount = 16384;
	o->sink = whole(&shared);
	o->plus = plus;
	o->entry = entry;
	shared.entries = 0;
	if (sim_op_run(&shared, nfs4_readdir))
		return shared.err;
	return shared.entries == want && o->eof ? 0 : -EBADMSG;
}

static int access_of(struct sim_nfs *w, const struct nfs4_fh *fh)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.access.fh = fh;
	shared.call.u.access.want = ACCESS4_READ | ACCESS4_MODIFY;
	return sim_op_run(&shared, nfs4_access);
}

static int rename_to(struct sim_nfs *w, const struct nfs4_fh *from_dir, const char *from,
	const struct nfs4_fh *to_dir, const char *to)
{
	struct nfs4_op_rename *o = &shared.call.u.rename;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->from_dir = from_dir;
	o->to_dir = to_dir;
	o->from = str(from);
	o->to = str(to);
	return sim_op_run(&shared, nfs4_rename);
}

static int link_as(
	struct sim_nfs *w, const struct nfs4_fh *file, const struct nfs4_fh *dir, const char *name)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.link.file = file;
	shared.call.u.link.dir = dir;
	shared.call.u.link.name = str(name);
	return sim_op_run(&shared, nfs4_link);
}

static int remove_name(struct sim_nfs *w, const struct nfs4_fh *dir, const char *name)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.remove.dir = dir;
	shared.call.u.remove.name = str(name);
	return sim_op_run(&shared, nfs4_remove);
}

static int statfs_of(struct sim_nfs *w, const struct nfs4_fh *fh)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.statfs.fh = fh;
	return sim_op_run(&shared, nfs4_statfs);
}

static int setxattr(struct sim_nfs *w, const struct nfs4_fh *fh, const char *name, uint32_t len)
{
	struct nfs4_op_setxattr *o = &shared.call.u.setxattr;
	static uint8_t value[65536];

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	nfsd_sim_fill(value, 0, len);
	o->fh = fh;
	o->name = str(name);
	o->value = value;
	o->len = len;
	o->long_buf = shared.buf;
	return sim_op_run(&shared, nfs4_setxattr);
}

static int getxattr(struct sim_nfs *w, const struct nfs4_fh *fh, const char *name, uint32_t len)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.getxattr.fh = fh;
	shared.call.u.getxattr.name = str(name);
	shared.call.u.getxattr.sink = whole(&shared);
	shared.len = 3;
	if (sim_op_run(&shared, nfs4_getxattr))
		return shared.err;
	return shared.len == len && sim_is_pattern(shared.data, 0, len) ? 0 : -EBADMSG;
}

static bool xattr_name(struct nfs4_call *call, const struct nfs4_str *name)
{
	container_of(call, struct sim_op, call)->entries++;
	return true;
}

static int listxattrs(struct sim_nfs *w, const struct nfs4_fh *fh, unsigned int want)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.listxattrs.fh = fh;
	shared.call.u.listxattrs.sink = whole(&shared);
	shared.call.u.listxattrs.name = xattr_name;
	shared.entries = 0;
	if (sim_op_run(&shared, nfs4_listxattrs))
		return shared.err;
	return shared.entries == want ? 0 : -EBADMSG;
}

static int removexattr(struct sim_nfs *w, const struct nfs4_fh *fh, const char *name)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.removexattr.fh = fh;
	shared.call.u.removexattr.name = str(name);
	return sim_op_run(&shared, nfs4_removexattr);
}

/* An ACL of `cnt` entries, 28 bytes each. */
static int setacl(struct sim_nfs *w, const struct nfs4_fh *fh, uint32_t cnt)
{
	static uint8_t acl[60000];
	struct xdr_enc e;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	xdr_enc_init(&e, acl, sizeof(acl));
	xdr_put_u32(&e, cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		for (uint32_t j = 0; j < 3; j++)
			xdr_put_u32(&e, j);
		xdr_put_opaque(&e, "GROUP@xx1234", 12);
	}
	shared.call.u.setacl.fh = fh;
	shared.call.u.setacl.acl = acl;
	shared.call.u.setacl.len = (uint32_t)xdr_enc_len(&e);
	shared.call.u.setacl.long_buf = shared.buf;
	return sim_op_run(&shared, nfs4_setacl);
}

static int getacl(struct sim_nfs *w, const struct nfs4_fh *fh, uint32_t cnt)
{
	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	shared.call.u.getacl.fh = fh;
	shared.call.u.getacl.sink = whole(&shared);
	shared.len = 4;
	if (sim_op_run(&shared, nfs4_getacl))
		return shared.err;
	return shared.len == 4 + 28 * cnt ? 0 : -EBADMSG;
}

static int seek(
	struct sim_nfs *w, struct sim_file *f, uint64_t off, enum nfs4_content what, uint64_t want)
{
	struct nfs4_op_seek *o = &shared.call.u.seek;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->fh = &f->fh;
	o->state = &f->state;
	o->offset = off;
	o->what = what;
	if (sim_op_run(&shared, nfs4_seek))
		return shared.err;
	return o->found == want ? 0 : -EBADMSG;
}

static int allocate(struct sim_nfs *w, struct sim_file *f, uint64_t off, uint64_t len,
	void (*how)(struct nfs4_call *))
{
	struct nfs4_op_allocate *o = &shared.call.u.allocate;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->fh = &f->fh;
	o->state = &f->state;
	o->offset = off;
	o->len = len;
	return sim_op_run(&shared, how);
}

static int open_exclusive(
	struct sim_nfs *w, const struct nfs4_fh *dir, const char *name, struct sim_file *f)
{
	struct nfs4_op_open *o = &shared.call.u.open;
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->dir = dir;
	o->name = str(name);
	o->share_access = OPEN4_SHARE_ACCESS_WRITE;
	o->owner = nfs4_new_owner(w->cl);
	o->create = true;
	nfs4_make_exclusive(w->cl, o);
	o->sattr.set = NFS4_ATTR_MODE;
	o->sattr.mode = 0600;
	err = sim_op_run(&shared, nfs4_open);
	f->fh = o->fh;
	if (!err)
		nfs4_share_open(&f->state, &shared.call);
	return err;
}

static int open_by_fh(struct sim_nfs *w, const struct nfs4_fh *fh, struct sim_file *f)
{
	struct nfs4_op_open *o = &shared.call.u.open;
	int err;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	o->file = fh;
	o->share_access = OPEN4_SHARE_ACCESS_READ;
	o->owner = nfs4_new_owner(w->cl);
	err = sim_op_run(&shared, nfs4_open);
	f->fh = *fh;
	if (!err)
		nfs4_share_open(&f->state, &shared.call);
	return err;
}

#define STEP(what)                                                                                 \
	do {                                                                                       \
		int err_ = (what);                                                                 \
		if (err_) {                                                                        \
			fab_sim_fail("%s: %s", #what, strerror(-err_));                            \
			return false;                                                              \
		}                                                                                  \
	} while (0)

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fab_sim_fail("not true: %s", #what);                                       \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static bool script_data(struct sim_nfs *w, const struct nfs4_fh *d, struct sim_file *f)
{
	static struct sim_op op;
	struct nfs4_verf v1, v2, v3;
	struct nfs4_attr attr;

	STEP(sim_create(w, d, "f", f));
	STEP(sim_write(w, f, 0, 20000, UNSTABLE4, &v1));
	STEP(sim_write(w, f, 20000, 20001, UNSTABLE4, &v2));
	STEP(sim_write(w, f, 40001, 100, FILE_SYNC4, NULL));
	STEP(sim_write(w, f, 40101, 3, FILE_SYNC4, NULL));
	STEP(sim_commit(w, f, &v3));
	CHECK(!memcmp(&v1, &v3, 8) && !memcmp(&v2, &v3, 8));
	CHECK(nfsd_sim_unstable_bytes(w->srv) == 0);
	STEP(getattr(w, &f->fh, &attr));
	CHECK(attr.size == 40104);
	STEP(sim_read(w, &op, f, 0, 20000));
	CHECK(op.len == 20000 && sim_is_pattern(op.data, 0, op.len));
	STEP(sim_read(w, &op, f, 20000, 30000));
	CHECK(op.len == 20104 && sim_is_pattern(op.data, 20000, op.len) && op.call.u.read.eof);
	STEP(sim_read(w, &op, f, 100, 101));
	CHECK(op.len == 101 && sim_is_pattern(op.data, 100, op.len) && !op.call.u.read.eof);
	STEP(sim_read(w, &op, f, 50000, 5000));
	CHECK(op.len == 0 && op.call.u.read.eof);
	STEP(setattr(w, f, 0640, 30001));
	STEP(setattr(w, f, 0600, -1));
	STEP(getattr(w, &f->fh, &attr));
	CHECK(attr.size == 30001 && attr.mode == 0600);
	return true;
}

/* What was locked stays locked whatever the fabric does, and what was given back does not. */
static bool script_locks(struct sim_nfs *w, struct sim_file *f)
{
	static struct nfs4_lockowner a, b;
	struct nfs4_denied denied = {0};

	nfs4_lockowner_init(&a, w->cl);
	nfs4_lockowner_init(&b, w->cl);
	STEP(sim_brlock(w, 0, f, &a, 0, 100, true));
	STEP(sim_brlock(w, 0, f, &a, 200, NFS4_LOCK_TO_END, false));
	STEP(sim_brunlock(w, 0, f, &a, 20, 10));
	STEP(sim_brlock(w, 0, f, &b, 20, 10, true));
	CHECK(sim_brlock(w, 0, f, &b, 15, 10, false) == -EAGAIN);
	CHECK(sim_brtest(w, f, &b, 1000, 1, true, &denied) == 1);
	CHECK(denied.offset == 200 && denied.length == NFS4_LOCK_TO_END && !denied.write);
	CHECK(sim_brtest(w, f, &b, 1000, 1, false, NULL) == 0);
	CHECK(nfsd_sim_locks(w->srv, NULL, NULL, 0) == 4);
	STEP(sim_brunlock(w, 0, f, &a, 0, NFS4_LOCK_TO_END));
	CHECK(nfsd_sim_locks(w->srv, NULL, NULL, 0) == 1);
	nfs4_lockowner_free(&a, w->lane[0].sess);
	/* b's goes with the open. */
	return true;
}

/* In parts, as many as the server likes. */
static int copy(struct sim_nfs *w, struct sim_file *from, struct sim_file *to, uint64_t len)
{
	struct nfs4_op_copy *o = &shared.call.u.copy;

	for (uint64_t done = 0; done < len; done += o->copied) {
		if (!sim_op_get(w, 0, &shared))
			return -EIO;
		*o = (struct nfs4_op_copy){
			.src = &from->fh,
			.fh = &to->fh,
			.src_state = &from->state,
			.state = &to->state,
			.src_offset = done,
			.offset = done + 100,
			.count = len - done,
			.synchronous = true,
		};
		if (sim_op_run(&shared, nfs4_copy))
			return shared.err;
		if (o->async || o->copied == 0)
			return -EBADMSG;
	}
	return 0;
}

static int clone_blocks(struct sim_nfs *w, struct sim_file *from, struct sim_file *to, uint32_t len)
{
	struct nfs4_op_copy *o = &shared.call.u.copy;

	if (!sim_op_get(w, 0, &shared))
		return -EIO;
	*o = (struct nfs4_op_copy){
		.src = &from->fh,
		.fh = &to->fh,
		.src_state = &from->state,
		.state = &to->state,
		.src_offset = 4096,
		.offset = 16384,
		.count = len,
	};
	return sim_op_run(&shared, nfs4_clone);
}

static bool script_v42(struct sim_nfs *w, const struct nfs4_fh *d, struct sim_file *f)
{
	struct sim_file to = {0};

	STEP(setxattr(w, &f->fh, "small", 10));
	STEP(setxattr(w, &f->fh, "large", 20001));
	STEP(getxattr(w, &f->fh, "small", 10));
	STEP(getxattr(w, &f->fh, "large", 20001));
	STEP(listxattrs(w, &f->fh, 2));
	STEP(removexattr(w, &f->fh, "small"));
	STEP(listxattrs(w, &f->fh, 1));
	STEP(allocate(w, f, 0, 65536, nfs4_allocate));
	STEP(allocate(w, f, 4096, 4096, nfs4_deallocate));
	STEP(seek(w, f, 0, NFS4_CONTENT_HOLE, 4096));
	STEP(seek(w, f, 4096, NFS4_CONTENT_DATA, 8192));
	STEP(sim_create(w, d, "to", &to));
	nfsd_sim_conf(w->srv)->copy_max = 5000;
	STEP(copy(w, f, &to, 12000));
	STEP(sim_commit(w, &to, NULL));
	CHECK(nfsd_sim_peek(w->srv, "/d/to", 0, NULL, 0) == 12100);
	STEP(clone_blocks(w, f, &to, 8192));
	CHECK(nfsd_sim_unstable_bytes(w->srv) == 0);
	CHECK(nfsd_sim_peek(w->srv, "/d/to", 0, NULL, 0) == 24576);
	STEP(sim_close(w, &to));
	STEP(remove_name(w, d, "to"));
	return true;
}

static bool script_names(struct sim_nfs *w, const struct nfs4_fh *d, struct sim_file *f)
{
	const struct nfs4_fh *root = &nfs4_client_fsinfo(w->cl)->root;
	struct nfs4_fh fh, sub;
	struct sim_file f2 = {0};

	STEP(access_of(w, &f->fh));
	STEP(statfs_of(w, root));
	STEP(link_as(w, &f->fh, d, "l"));
	STEP(rename_to(w, d, "l", root, "m"));
	STEP(lookup(w, root, "m", &fh));
	CHECK(fh.len == f->fh.len && !memcmp(fh.data, f->fh.data, fh.len));
	CHECK(lookup(w, root, "l", &fh) == -ENOENT);
	STEP(symlink(w, d, "s", 20, &fh));
	STEP(readlink(w, &fh, 20));
	STEP(symlink(w, d, "long", 4000, &fh));
	STEP(readlink(w, &fh, 4000));
	STEP(open_exclusive(w, d, "x", &f2));
	STEP(sim_close(w, &f2));
	STEP(open_by_fh(w, &f->fh, &f2));
	STEP(sim_close(w, &f2));
	STEP(sim_mkdir(w, d, "sub", &sub));
	CHECK(sim_mkdir(w, d, "sub", NULL) == -EEXIST);
	STEP(readdir(w, d, false, 5));
	STEP(readdir(w, d, true, 5));
	STEP(setacl(w, &f->fh, 3));
	STEP(getacl(w, &f->fh, 3));
	STEP(setacl(w, &f->fh, 400));
	STEP(getacl(w, &f->fh, 400));
	STEP(remove_name(w, d, "sub"));
	STEP(remove_name(w, d, "s"));
	STEP(remove_name(w, d, "long"));
	STEP(remove_name(w, d, "x"));
	STEP(remove_name(w, root, "m"));
	CHECK(remove_name(w, root, "d") == -ENOTEMPTY);
	return true;
}

bool sim_script(struct sim_nfs *w, bool v42)
{
	const struct nfs4_fh *root = &nfs4_client_fsinfo(w->cl)->root;
	struct nfs4_fh d;
	struct sim_file f = {0};

	STEP(sim_mkdir(w, root, "d", &d));
	if (!script_data(w, &d, &f) || !script_names(w, &d, &f))
		return false;
	if (v42 && !script_v42(w, &d, &f))
		return false;
	if (!script_locks(w, &f))
		return false;
	STEP(sim_close(w, &f));
	CHECK(nfsd_sim_locks(w->srv, NULL, NULL, 0) == 0);
	STEP(remove_name(w, &d, "f"));
	STEP(remove_name(w, root, "d"));
	CHECK(!nfsd_sim_exists(w->srv, "/d"));
	CHECK(nfsd_sim_live_opens(w->srv) == 0);
	return true;
}
