/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of nfs4.h and rpcrdma.h that src/fuse calls, on files in memory. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_copy.h"
#include "fake_lock.h"
#include "fake_state.h"
#include "fs_unstable.h"

#define PAGE 4096u

const struct nfs4_stateid nfs4_stateid_anon;

/* ---- calls ---- */

int nfs4_call_get(struct nfs4_session *s, struct nfs4_call *call)
{
	struct fake *k = &rig.fake;

	if (k->dead)
		return k->dead;
	if (k->calls == k->calls_max) {
		k->refused = true;
		return -EAGAIN;
	}
	k->calls++;
	list_init(&call->link);
	return 0;
}

static void freed(void)
{
	struct fake *k = &rig.fake;

	if (k->refused) {
		k->refused = false;
		reactor_timer_in(k->r, &k->unblock, 0);
	}
}

void nfs4_call_put(struct nfs4_call *call)
{
	rig.fake.calls--;
	freed();
}

static void start(struct nfs4_call *call, enum fake_op op)
{
	struct fake *k = &rig.fake;

	call->state = op;
	k->count[op]++;
	k->last_cred = *call->cred;
	fake_lock_check(call, &k->pending);
	fake_state_check(call);
	rig_step();
	list_push_back(&k->pending, &call->link);
	reactor_timer_in(k->r, &k->timer, 0);
	rig_step();
}

/* ---- data buffers ---- */

/* From now on; those before are of a process that is no more. */
void fake_buf_memory(const struct slab_memory *mem)
{
	struct list *node;

	while (rig.fake.buf_mem.get && (node = list_pop_front(&rig.fake.spare_bufs)))
		free(container_of(node, struct rpcrdma_buf, link));
	list_init(&rig.fake.spare_bufs);
	rig.fake.buf_mem = *mem;
}

static struct rpcrdma_buf *new_buf(struct fake *k)
{
	struct rpcrdma_buf *buf = calloc(1, sizeof(*buf));
	size_t size = PAGE + RIG_WSIZE + PAGE;
	uint8_t *mem = k->buf_mem.get ? k->buf_mem.get(k->buf_mem.ctx, size, 1)
				      : aligned_alloc(PAGE, size);

	assert(mem);
	buf->priv = (struct rpcrdma_bufpriv *)mem;
	buf->data = mem + PAGE;
	buf->mem = buf->data - RPCRDMA_DATA_LEAD;
	return buf;
}

struct rpcrdma_buf *rpcrdma_buf_get_above(struct rpcrdma *x, unsigned int left)
{
	struct fake *k = &rig.fake;

	if (k->bufs + left >= k->bufs_max) {
		k->refused = true;
		return NULL;
	}
	k->bufs++;
	if (k->buf_mem.get && !list_empty(&k->spare_bufs))
		return container_of(list_pop_front(&k->spare_bufs), struct rpcrdma_buf, link);
	return new_buf(k);
}

struct rpcrdma_buf *rpcrdma_buf_get(struct rpcrdma *x)
{
	return rpcrdma_buf_get_above(x, 0);
}

void rpcrdma_buf_put(struct rpcrdma *x, struct rpcrdma_buf *buf)
{
	rig.fake.bufs--;
	if (rig.fake.buf_mem.get) {
		list_push_front(&rig.fake.spare_bufs, &buf->link);
	} else {
		free(buf->priv);
		free(buf);
	}
	freed();
}

unsigned int rpcrdma_buf_free_count(const struct rpcrdma *x)
{
	return rig.fake.bufs_max - rig.fake.bufs;
}

size_t rpcrdma_data_size(const struct rpcrdma *x)
{
	return RIG_WSIZE;
}

struct rpcrdma *nfs4_session_xprt(struct nfs4_session *s)
{
	return NULL;
}

const struct nfs4_fsinfo *nfs4_client_fsinfo(const struct nfs4_client *cl)
{
	return &rig.fake.info;
}

const struct nfs4_fs *nfs4_fs_find(struct nfs4_client *cl, uint64_t major, uint64_t minor)
{
	struct nfs4_fs *below = rig.fake.learned;

	if (major == rig.fake.info.fs.fsid_major && minor == rig.fake.info.fs.fsid_minor)
		return &rig.fake.info.fs;
	return below && below->fsid_major == major && below->fsid_minor == minor ? below : NULL;
}

const struct nfs4_fs *nfs4_fs_at(const struct nfs4_client *cl, unsigned int nr)
{
	return nr ? rig.fake.learned : &rig.fake.info.fs;
}

const struct nfs4_fs *nfs4_fs_learn(struct nfs4_client *cl, const struct nfs4_fs *fs)
{
	rig.fake.below.nr = 1;
	rig.fake.learned = &rig.fake.below;
	return rig.fake.learned;
}

uint32_t nfs4_client_generation(const struct nfs4_client *cl)
{
	return rig.fake.gen;
}

uint64_t nfs4_new_owner(struct nfs4_client *cl)
{
	static uint64_t owner;

	return ++owner;
}

void nfs4_make_exclusive(struct nfs4_client *cl, struct nfs4_op_open *o)
{
	o->exclusive = true;
}

/* ---- files ---- */

struct fake_file *fake_file_of(const struct nfs4_fh *fh)
{
	return fh && fh->len == 1 && fh->data[0] < FAKE_FILES ? &rig.fake.files[fh->data[0]] : NULL;
}

static void set_fh(struct nfs4_fh *fh, const struct fake_file *f)
{
	fh->len = 1;
	fh->data[0] = (uint8_t)(f - rig.fake.files);
}

struct fake_file *fake_find(const char *name)
{
	for (unsigned int i = 1; i < FAKE_FILES; i++)
		if (rig.fake.files[i].used && strcmp(rig.fake.files[i].name, name) == 0)
			return &rig.fake.files[i];
	return NULL;
}

static struct fake_file *find_str(const struct nfs4_str *s)
{
	char name[64] = "";

	memcpy(name, s->p, s->len < 63 ? s->len : 63);
	memcpy(rig.fake.last_name, name, sizeof(name));
	return fake_find(name);
}

void fake_touch(struct fake_file *f)
{
	f->attr.change = ++rig.fake.change;
	f->attr.ctime.tv_sec++;
	f->attr.mtime = f->attr.ctime;
}

static void stabilize(struct fake_file *f, uint64_t off, size_t len)
{
	memcpy(f->stable + off, f->data + off, len);
	f->stable_size = f->attr.size;
}

struct fake_file *fake_add(const char *name, size_t size)
{
	struct fake *k = &rig.fake;

	for (unsigned int i = 1; i < FAKE_FILES; i++) {
		struct fake_file *f = &k->files[i];

		if (f->used)
			continue;
		memset(f, 0, sizeof(*f));
		f->used = true;
		snprintf(f->name, sizeof(f->name), "%.60s", name);
		f->attr.valid = NFS4_ATTR_STAT;
		f->attr.type = NF4REG;
		f->attr.mode = 0644;
		f->attr.nlink = 1;
		f->attr.fileid = 100 + i;
		f->attr.size = size;
		for (size_t j = 0; j < size; j++)
			f->data[j] = (uint8_t)(j * 7 + j / 256);
		stabilize(f, 0, sizeof(f->data));
		fake_touch(f);
		return f;
	}
	return NULL;
}

void fake_restart(void)
{
	rig.fake.verf.data[0]++;
	for (unsigned int i = 1; i < FAKE_FILES; i++) {
		struct fake_file *f = &rig.fake.files[i];

		memcpy(f->data, f->stable, sizeof(f->data));
		f->attr.size = f->stable_size;
	}
}

/* ---- operations ---- */

static int do_read(struct nfs4_op_read *r)
{
	struct fake *k = &rig.fake;
	struct fake_file *f = fake_file_of(r->fh);
	uint64_t left = r->offset < f->attr.size ? f->attr.size - r->offset : 0;
	uint32_t n = r->count < left ? r->count : (uint32_t)left;

	assert(r->count <= r->sink.len);
	assert((size_t)(r->sink.p - r->sink.buf->data) + r->sink.len <= RIG_WSIZE);
	if (k->short_count && n > k->short_count)
		n = k->short_count;
	memcpy(k->inline_read ? k->inline_mem : r->sink.p, f->data + r->offset, n);
	r->data = k->inline_read ? k->inline_mem : r->sink.p;
	r->len = n;
	r->eof = r->offset + n >= f->attr.size;
	if (k->stuck_at && r->offset >= k->stuck_at) {
		r->len = 0;
		r->eof = false;
	}
	return 0;
}

/* In the COMPOUND of an OPEN: what comes of it does not matter there. */
static void do_open_read(const struct nfs4_op_open *o)
{
	struct nfs4_op_read *r = o->read;

	r->data = NULL;
	r->len = 0;
	r->eof = false;
	if (rig.fake.no_open_read)
		return;
	r->fh = o->file;
	do_read(r);
	r->fh = NULL;
}

static int do_open(struct nfs4_op_open *o)
{
	struct fake *k = &rig.fake;
	struct fake_file *f = o->dir ? find_str(&o->name) : fake_file_of(o->file);

	k->last_open = *o;
	o->cinfo.before = o->cinfo.after = 1;
	if (!f && o->dir && o->create) {
		f = fake_add(k->last_name, 0);
		o->cinfo.after = 2;
	} else if (f && o->exclusive) {
		return -EEXIST;
	}
	if (!f)
		return -ENOENT;
	if (o->truncate)
		f->attr.size = 0;
	set_fh(&o->fh, f);
	o->attr = f->attr;
	o->stamped = o->exclusive && !k->unstamped;
	o->mode_unset = o->exclusive && !o->stamped && k->mode_unset;
	if (o->exclusive && !o->stamped)
		o->attr.valid = 0;
	o->dir_attr.valid = 0;
	o->access = k->access;
	o->stateid.seqid = 1;
	fake_state_opened(o);
	fake_grant(o, f);
	if (o->read)
		do_open_read(o);
	return 0;
}

static int do_write(struct nfs4_op_write *w)
{
	struct fake *k = &rig.fake;
	struct fake_file *f = fake_file_of(w->fh);
	uint32_t n = 0, left;

	for (unsigned int i = 0; i < w->data_cnt; i++)
		n += w->data[i].len;
	if (k->short_count && n > k->short_count)
		n = k->short_count;
	k->last_stable = w->stable;
	k->last_write = w->data[0].p;
	left = n;
	for (unsigned int i = 0; i < w->data_cnt; i++) {
		uint32_t part = w->data[i].len < left ? w->data[i].len : left;

		memcpy(f->data + w->offset + n - left, w->data[i].p, part);
		left -= part;
	}
	if (f->attr.size < w->offset + n)
		f->attr.size = w->offset + n;
	if (w->stable == FILE_SYNC4)
		stabilize(f, w->offset, n);
	k->log[k->log_cnt++ % FAKE_LOG] = (struct fake_write){
		w->offset, n, w->stable, container_of(w, struct nfs4_call, u.write)->cred->uid};
	fake_touch(f);
	w->count = n + (uint32_t)k->wrong_count;
	w->committed = w->stable;
	w->verf = k->verf;
	w->attr = f->attr;
	w->attr.valid = NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE | NFS4_ATTR_CTIME | NFS4_ATTR_MTIME;
	if (w->no_attr)
		w->attr.valid = 0;
	return 0;
}

static int do_write_at_end(struct nfs4_call *call)
{
	struct nfs4_op_write *w = &call->u.write;

	if (w->at_end && fake_file_of(w->fh)->attr.size != w->offset) {
		rig.fake.missed++;
		call->status = NFS4ERR_NOT_SAME;
		return -EIO;
	}
	rig.fake.at_end += w->at_end;
	return do_write(w);
}

static int do_commit(struct nfs4_call *call)
{
	struct fake *k = &rig.fake;
	struct fake_file *f = fake_file_of(call->u.commit.fh);
	int err = k->refuse_commit ? k->refuse_commit(call) : 0;

	if (err)
		return err;
	if (k->restarts_in_commit > 0) {
		k->restarts_in_commit--;
		fake_restart();
	}
	if (f) {
		stabilize(f, 0, FAKE_SIZE);
		call->u.commit.attr = f->attr;
	}
	call->u.commit.verf = k->verf;
	return 0;
}

/* A file that was removed is stale: those before it have their answer. */
static int do_getattrs(struct nfs4_call *call)
{
	struct nfs4_op_getattrs *o = &call->u.getattrs;
	uint32_t max = rig.fake.getattrs_max;

	rig.fake.last_getattrs = o->cnt;
	o->asked = max && max < o->cnt ? max : o->cnt;
	for (o->got = 0; o->got < o->asked; o->got++) {
		const struct fake_file *f = fake_file_of(&o->fh[o->got]);

		if (!f->used) {
			call->status = NFS4ERR_STALE;
			return -ESTALE;
		}
		o->attr[o->got] = f->attr;
		o->attr[o->got].valid =
			NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE | NFS4_ATTR_CTIME | NFS4_ATTR_MTIME;
	}
	return 0;
}

static int do_setattr(struct nfs4_op_setattr *s)
{
	struct fake_file *f = fake_file_of(s->fh);

	rig.fake.last_sattr = s->sattr;
	/* One to write is ours, and a change by who has it does not break it. */
	if (!f->deleg || f->deleg->type != OPEN_DELEGATE_WRITE)
		fake_check_clear(f);
	if (s->sattr.set & NFS4_ATTR_SIZE) {
		if (s->sattr.size < f->attr.size)
			memset(f->data + s->sattr.size, 0, sizeof(f->data) - s->sattr.size);
		f->attr.size = s->sattr.size;
		stabilize(f, 0, sizeof(f->data));
	}
	fake_touch(f);
	s->attr = f->attr;
	return 0;
}

/* Durable at once, as with Linux' nfsd. */
static int do_allocate(struct nfs4_op_allocate *o, bool punch)
{
	struct fake_file *f = fake_file_of(o->fh);
	uint64_t end = o->offset + o->len;

	if (punch) {
		memset(f->data + o->offset, 0, o->len);
		memset(f->stable + o->offset, 0, o->len);
	} else if (f->attr.size < end) {
		f->attr.size = f->stable_size = end;
	}
	fake_touch(f);
	o->attr = f->attr;
	return 0;
}

static int do_rename(struct nfs4_op_rename *r)
{
	struct fake_file *f = find_str(&r->from);

	if (!f)
		return -ENOENT;
	fake_check_clear(f);
	fake_check_clear(find_str(&r->to));
	memset(f->name, 0, sizeof(f->name));
	memcpy(f->name, r->to.p, r->to.len);
	fake_touch(f);
	return 0;
}

static int do_remove(struct nfs4_op_remove *r)
{
	struct fake_file *f = find_str(&r->name);

	if (!f)
		return -ENOENT;
	fake_check_clear(f);
	f->used = false;
	return 0;
}

static int do_lookup(struct nfs4_op_lookup *o)
{
	struct fake_file *f = find_str(&o->name), *dir = fake_file_of(o->dir);

	o->dir_attr = dir->attr;
	if (o->ask == NFS4_DIR_NONE)
		o->dir_attr.valid = 0;
	else if (o->ask == NFS4_DIR_CHANGES)
		o->dir_attr.valid &= NFS4_ATTR_CHANGE;
	if (!f)
		return -ENOENT;
	set_fh(&o->fh, f);
	o->attr = f->attr;
	return 0;
}

static bool is_of_names(enum fake_op op)
{
	return op == FAKE_LOOKUP || op == FAKE_RENAME || op == FAKE_REMOVE || op == FAKE_LINK ||
	       op == FAKE_OTHER;
}

static int execute(struct nfs4_call *call)
{
	struct fake *k = &rig.fake;
	int err;

	if (k->names && is_of_names((enum fake_op)call->state))
		return k->names(call, (enum fake_op)call->state);
	switch ((enum fake_op)call->state) {
	case FAKE_OPEN:
		return do_open(&call->u.open);
	case FAKE_CLOSE:
		return fake_close(&call->u.close);
	case FAKE_DOWNGRADE:
		return fake_downgrade(&call->u.downgrade);
	case FAKE_CLAIM:
		return fake_claim(&call->u.open);
	case FAKE_DELEGRETURN:
		return fake_delegreturn(&call->u.delegreturn);
	case FAKE_READ:
		return do_read(&call->u.read);
	case FAKE_WRITE:
		err = k->refuse_write ? k->refuse_write(call) : 0;
		return err ? err : do_write_at_end(call);
	case FAKE_COMMIT:
		return do_commit(call);
	case FAKE_GETATTR:
		call->u.getattr.attr = fake_file_of(call->u.getattr.fh)->attr;
		return 0;
	case FAKE_SETATTR:
		err = k->refuse_setattr ? k->refuse_setattr(call) : 0;
		return err ? err : do_setattr(&call->u.setattr);
	case FAKE_REMOVE:
		return do_remove(&call->u.remove);
	case FAKE_RENAME:
		return do_rename(&call->u.rename);
	case FAKE_LOOKUP:
		return do_lookup(&call->u.lookup);
	case FAKE_ACCESS:
		call->u.access.supported = call->u.access.want & ~k->unknown;
		call->u.access.access = call->u.access.want & ~k->denied & ~k->unknown &
					~(k->denies ? k->denies(call) : 0);
		call->u.access.attr = fake_file_of(call->u.access.fh)->attr;
		return 0;
	case FAKE_LINK:
	case FAKE_OTHER:
	case FAKE_GETXATTR:
	case FAKE_SETXATTR:
	case FAKE_LISTXATTRS:
	case FAKE_REMOVEXATTR:
	case FAKE_GETACL:
	case FAKE_SETACL:
	case FAKE_SEEK:
		if (call->state == FAKE_SETXATTR)
			fake_check_clear(fake_file_of(call->u.setxattr.fh));
		return k->other ? k->other(call) : -EOPNOTSUPP;
	case FAKE_ALLOCATE:
		return do_allocate(&call->u.allocate, false);
	case FAKE_DEALLOCATE:
		return do_allocate(&call->u.allocate, true);
	case FAKE_LOCK:
	case FAKE_LOCKT:
	case FAKE_LOCKU:
		return fake_lock_execute(call, (enum fake_op)call->state);
	case FAKE_COPY:
	case FAKE_CLONE:
	case FAKE_OFFLOAD_STATUS:
	case FAKE_OFFLOAD_CANCEL:
		return fake_copy_execute(call, (enum fake_op)call->state);
	case FAKE_GETATTRS:
		return do_getattrs(call);
	case FAKE_FACTS:
		call->u.facts.fs = rig.fake.below;
		return 0;
	case FAKE_OPS:
		break;
	}
	return -EOPNOTSUPP;
}

/* As nfs4_redo.c has it. */
static bool is_once(const struct nfs4_call *call)
{
	const uint64_t once = 1ull << FAKE_REMOVE | 1ull << FAKE_RENAME | 1ull << FAKE_LINK |
			      1ull << FAKE_OTHER | 1ull << FAKE_SETXATTR | 1ull << FAKE_REMOVEXATTR;

	return (once & (1ull << call->state)) != 0 ||
	       (call->state == FAKE_OPEN && call->u.open.exclusive);
}

static void run_pending(struct reactor_timer *t)
{
	struct fake *k = &rig.fake;
	struct list batch;
	struct list *node;

	if (k->hold)
		return;
	list_init(&batch);
	list_splice_back(&batch, &k->pending);
	while ((node = list_pop_front(&batch))) {
		struct nfs4_call *call = container_of(node, struct nfs4_call, link);
		int *fail = &k->fail[call->state];

		if ((k->hold_ops & (1ull << call->state)) || (k->holds && k->holds(call))) {
			list_push_back(&k->pending, &call->link);
			continue;
		}
		call->status = NFS4_OK;
		call->err = *fail ? -*fail : execute(call);
		*fail = 0;
		if (!call->err && call->once && call->once->request < RIG_ASKED && is_once(call))
			rig.did[call->once->request] = true;
		rig_step();
		call->done(call);
	}
}

void fake_release(void)
{
	rig.fake.hold = false;
	rig.fake.hold_ops = 0;
	reactor_timer_in(rig.fake.r, &rig.fake.timer, 0);
}

static void unblock(struct reactor_timer *t)
{
	if (rig.lane)
		fs_lane_unblocked(rig.lane);
}

bool fake_all_free(void)
{
	struct fake *k = &rig.fake;

	return k->calls == 0 && k->bufs <= 1 + rig.lane->unstable->bufs &&
	       rig.lane->ops_free == rig.lane->ops_cnt;
}

void fake_new_reactor(struct fake *k, struct reactor *r)
{
	k->r = r;
	list_init(&k->pending);
	reactor_timer_init(&k->timer, run_pending);
	reactor_timer_init(&k->unblock, unblock);
	k->calls = k->bufs = 0;
	k->refused = false;
}

void fake_init(struct fake *k, struct reactor *r)
{
	memset(k, 0, sizeof(*k));
	fake_locks_init();
	fake_copy_init();
	fake_new_reactor(k, r);
	k->calls_max = 8;
	k->bufs_max = 8;
	k->access = ACCESS4_READ | ACCESS4_MODIFY | ACCESS4_EXTEND | ACCESS4_EXECUTE;
	k->info.fs.rsize = k->info.fs.wsize = RIG_WSIZE;
	k->info.fs.maxname = 255;
	k->info.fs.maxfilesize = INT64_MAX;
	k->info.root.len = 1;
	k->below = k->info.fs;
	k->below.fsid_major = 1;
	k->files[0].used = true;
	k->files[0].attr.valid = NFS4_ATTR_STAT;
	k->files[0].attr.type = NF4DIR;
	k->files[0].attr.mode = 0755;
	k->files[0].attr.fileid = 100;
	k->files[0].attr.change = ++k->change;
	k->info.root_attr = k->files[0].attr;
}

void nfs4_open(struct nfs4_call *call)
{
	if (call->u.open.read)
		call->u.open.want_deleg = false;
	start(call, FAKE_OPEN);
}

void nfs4_fs_facts(struct nfs4_call *call)
{
	start(call, FAKE_FACTS);
}

void nfs4_close(struct nfs4_call *call)
{
	start(call, FAKE_CLOSE);
}

void nfs4_claim(struct nfs4_call *call)
{
	start(call, FAKE_CLAIM);
}

void nfs4_delegreturn(struct nfs4_call *call)
{
	start(call, FAKE_DELEGRETURN);
}

void nfs4_downgrade(struct nfs4_call *call)
{
	start(call, FAKE_DOWNGRADE);
}

void nfs4_read(struct nfs4_call *call)
{
	start(call, FAKE_READ);
}

void nfs4_write(struct nfs4_call *call)
{
	start(call, FAKE_WRITE);
}

void nfs4_commit(struct nfs4_call *call)
{
	start(call, FAKE_COMMIT);
}

void nfs4_getattr(struct nfs4_call *call)
{
	start(call, FAKE_GETATTR);
}

void nfs4_getattrs(struct nfs4_call *call)
{
	call->u.getattrs.got = 0;
	start(call, FAKE_GETATTRS);
}

void nfs4_setattr(struct nfs4_call *call)
{
	start(call, FAKE_SETATTR);
}

void nfs4_remove(struct nfs4_call *call)
{
	start(call, FAKE_REMOVE);
}

void nfs4_rename(struct nfs4_call *call)
{
	start(call, FAKE_RENAME);
}

void nfs4_lookup(struct nfs4_call *call)
{
	start(call, FAKE_LOOKUP);
}

void nfs4_access(struct nfs4_call *call)
{
	start(call, FAKE_ACCESS);
}

void nfs4_lock(struct nfs4_call *call)
{
	start(call, FAKE_LOCK);
}

void nfs4_lockt(struct nfs4_call *call)
{
	start(call, FAKE_LOCKT);
}

void nfs4_locku(struct nfs4_call *call)
{
	start(call, FAKE_LOCKU);
}

void nfs4_create(struct nfs4_call *call)
{
	start(call, FAKE_OTHER);
}

void nfs4_link(struct nfs4_call *call)
{
	start(call, FAKE_LINK);
}

void nfs4_readdir(struct nfs4_call *call)
{
	start(call, FAKE_OTHER);
}

void nfs4_readlink(struct nfs4_call *call)
{
	start(call, FAKE_OTHER);
}

void nfs4_statfs(struct nfs4_call *call)
{
	start(call, FAKE_OTHER);
}

void nfs4_getxattr(struct nfs4_call *call)
{
	start(call, FAKE_GETXATTR);
}

void nfs4_setxattr(struct nfs4_call *call)
{
	start(call, FAKE_SETXATTR);
}

void nfs4_listxattrs(struct nfs4_call *call)
{
	start(call, FAKE_LISTXATTRS);
}

void nfs4_removexattr(struct nfs4_call *call)
{
	start(call, FAKE_REMOVEXATTR);
}

void nfs4_getacl(struct nfs4_call *call)
{
	start(call, FAKE_GETACL);
}

void nfs4_setacl(struct nfs4_call *call)
{
	start(call, FAKE_SETACL);
}

void nfs4_seek(struct nfs4_call *call)
{
	start(call, FAKE_SEEK);
}

void nfs4_allocate(struct nfs4_call *call)
{
	start(call, FAKE_ALLOCATE);
}

void nfs4_deallocate(struct nfs4_call *call)
{
	start(call, FAKE_DEALLOCATE);
}

void nfs4_copy(struct nfs4_call *call)
{
	start(call, FAKE_COPY);
}

void nfs4_clone(struct nfs4_call *call)
{
	start(call, FAKE_CLONE);
}

void nfs4_copy_status(struct nfs4_call *call)
{
	start(call, FAKE_OFFLOAD_STATUS);
}

void nfs4_copy_cancel(struct nfs4_call *call)
{
	start(call, FAKE_OFFLOAD_CANCEL);
}
