/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "fake_copy.h"

struct fake_copy fake_copy;

void fake_copy_init(void)
{
	memset(&fake_copy, 0, sizeof(fake_copy));
}

bool nfs4_offload_has_back(const struct nfs4_session *s)
{
	return !fake_copy.no_back;
}

static struct fake_file *file_of(const struct nfs4_fh *fh)
{
	cr_assert(fh->len == 1 && fh->data[0] > 0 && fh->data[0] < FAKE_FILES);
	return &rig.fake.files[fh->data[0]];
}

/* Returns the bytes copied: none behind the source's end. */
static uint64_t copy(const struct nfs4_op_copy *o, uint64_t most, bool stable)
{
	const struct fake_file *src = file_of(o->src);
	struct fake_file *f = file_of(o->fh);
	uint64_t left = o->src_offset < src->attr.size ? src->attr.size - o->src_offset : 0;
	uint64_t n = o->count < left ? o->count : left;

	if (most && n > most)
		n = most;
	cr_assert_leq(o->offset + n, FAKE_SIZE);
	memcpy(f->data + o->offset, src->data + o->src_offset, n);
	if (n && f->attr.size < o->offset + n)
		f->attr.size = o->offset + n;
	if (stable) {
		memcpy(f->stable + o->offset, f->data + o->offset, n);
		f->stable_size = f->attr.size;
	}
	fake_touch(f);
	return n;
}

static int do_copy(struct nfs4_op_copy *o)
{
	fake_copy.last = *o;
	o->async = fake_copy.async && !o->synchronous;
	o->id.other[0]++;
	o->copied = 0;
	if (o->async)
		fake_copy.running = true;
	else
		o->copied = copy(o, fake_copy.part, !fake_copy.unstable);
	o->committed = fake_copy.unstable ? UNSTABLE4 : FILE_SYNC4;
	o->verf = rig.fake.verf;
	o->attr = file_of(o->fh)->attr;
	if (fake_copy.restarts && !--fake_copy.restarts)
		fake_restart();
	return 0;
}

static int do_clone(struct nfs4_call *call)
{
	struct nfs4_op_copy *o = &call->u.copy;
	const struct fake_file *src = file_of(o->src), *dst = file_of(o->fh);
	uint64_t block = fake_copy.block;
	bool to_end = o->src_offset + o->count == src->attr.size &&
		      o->offset + o->count >= dst->attr.size;

	fake_copy.last_clone = *o;
	call->status = block ? NFS4ERR_INVAL : NFS4ERR_NOTSUPP;
	if (!block)
		return -EOPNOTSUPP;
	if (o->src_offset % block || o->offset % block || (o->count % block && !to_end) ||
		o->src_offset + o->count > src->attr.size || o->count == 0)
		return -EINVAL;
	call->status = NFS4_OK;
	o->copied = copy(o, 0, true);
	o->committed = FILE_SYNC4;
	o->attr = dst->attr;
	return 0;
}

int fake_copy_execute(struct nfs4_call *call, enum fake_op op)
{
	if (op == FAKE_COPY)
		return do_copy(&call->u.copy);
	if (op == FAKE_CLONE)
		return do_clone(call);
	if (op == FAKE_OFFLOAD_CANCEL) {
		fake_copy.running = false;
		return 0;
	}
	call->status = fake_copy.poll_status;
	call->u.offload.complete = fake_copy.complete;
	return fake_copy.poll_err;
}

/* ---- who waits ---- */

static void deliver(struct reactor_msg *msg)
{
	struct nfs4_offload *off = container_of(msg, struct nfs4_offload, msg);

	off->cl = NULL;
	off->done(off);
}

void fake_copy_end(enum nfs4_status status, uint64_t bytes, enum nfs4_stable committed)
{
	struct nfs4_offload *off = fake_copy.off;
	uint64_t n = bytes ? copy(&fake_copy.last, bytes, committed == FILE_SYNC4) : 0;

	cr_assert_not_null(off);
	fake_copy.off = NULL;
	fake_copy.running = false;
	off->res = (struct nfs4_offload_result){
		.status = status, .copied = n, .committed = committed, .verf = rig.fake.verf};
	off->msg.run = deliver;
	reactor_post(rig.fake.r, &off->msg);
}

void nfs4_offload_begin(struct nfs4_offload *off, const struct nfs4_call *call,
	void (*done)(struct nfs4_offload *off))
{
	static char somebody;

	cr_assert(call->u.copy.async);
	cr_assert_null(fake_copy.off);
	off->cl = (struct nfs4_client *)(void *)&somebody;
	off->done = done;
	off->id = call->u.copy.id;
	fake_copy.off = off;
	if (fake_copy.early)
		fake_copy_end(NFS4_OK, UINT64_MAX, FILE_SYNC4);
}

bool nfs4_offload_end(struct nfs4_offload *off)
{
	if (fake_copy.off != off)
		return !off->cl;
	fake_copy.off = NULL;
	off->cl = NULL;
	return true;
}

bool nfs4_offload_is_over(const struct nfs4_offload *off)
{
	return fake_copy.new_client;
}
