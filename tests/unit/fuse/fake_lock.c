/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks of the server of fake_nfs4.c, and nfs4_lockowner_*(). */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "fake_lock.h"

struct fake_locks fake_locks;

void fake_locks_init(void)
{
	memset(&fake_locks, 0, sizeof(fake_locks));
}

static uint64_t end_of(uint64_t off, uint64_t len)
{
	return len == NFS4_LOCK_TO_END ? UINT64_MAX : off + len;
}

static void add(uint8_t file, uint64_t owner, uint64_t off, uint64_t end, bool write)
{
	if (off >= end)
		return;
	cr_assert_lt(fake_locks.cnt, FAKE_LOCKS);
	fake_locks.v[fake_locks.cnt++] = (struct fake_lock){file, owner, off, end, write};
}

/* Takes a range away from an owner: what is left of a lock at either side stays. */
static void cut(uint8_t file, uint64_t owner, uint64_t off, uint64_t end)
{
	for (unsigned int i = fake_locks.cnt; i-- > 0;) {
		struct fake_lock l = fake_locks.v[i];

		if (l.file != file || l.owner != owner || l.off >= end || off >= l.end)
			continue;
		fake_locks.v[i] = fake_locks.v[--fake_locks.cnt];
		add(file, owner, l.off, off < l.end ? off : l.end, l.write);
		add(file, owner, end > l.off ? end : l.off, l.end, l.write);
	}
}

static const struct fake_lock *conflict(
	uint8_t file, uint64_t owner, uint64_t off, uint64_t end, bool write)
{
	for (unsigned int i = 0; i < fake_locks.cnt; i++) {
		const struct fake_lock *l = &fake_locks.v[i];

		if (l->file == file && l->owner != owner && (l->write || write) && l->off < end &&
			off < l->end)
			return l;
	}
	return NULL;
}

static void tell(struct nfs4_denied *d, const struct fake_lock *l)
{
	d->offset = l->off;
	d->length = l->end == UINT64_MAX ? NFS4_LOCK_TO_END : l->end - l->off;
	d->write = l->write;
	d->owner = l->owner;
}

static int lock(struct nfs4_call *call, struct nfs4_op_lock *o)
{
	const struct fake_lock *l = conflict(
		o->fh->data[0], o->lock->number, o->offset, end_of(o->offset, o->length), o->write);

	if (l) {
		fake_locks.denials++;
		tell(&o->denied, l);
		call->status = NFS4ERR_DENIED;
		return -EAGAIN;
	}
	cut(o->fh->data[0], o->lock->number, o->offset, end_of(o->offset, o->length));
	add(o->fh->data[0], o->lock->number, o->offset, end_of(o->offset, o->length), o->write);
	o->lock->state = o->lock->state ? o->lock->state : o->state;
	fake_keep_locks(o->lock);
	return 0;
}

int fake_lock_execute(struct nfs4_call *call, enum fake_op op)
{
	struct nfs4_op_lockt *t = &call->u.lockt;
	struct nfs4_op_locku *u = &call->u.locku;
	const struct fake_lock *l;
	int err = 0;

	if (fake_locks.refuse) {
		call->status = NFS4ERR_NOTSUPP;
		return -fake_locks.refuse;
	}
	if (op == FAKE_LOCK) {
		err = lock(call, &call->u.lock);
	} else if (op == FAKE_LOCKU) {
		cut(u->fh->data[0], u->lock->number, u->offset, end_of(u->offset, u->length));
	} else {
		l = conflict(t->fh->data[0], t->owner, t->offset, end_of(t->offset, t->length),
			t->write);
		t->conflict = l != NULL;
		if (l)
			tell(&t->denied, l);
		return 0;
	}
	if (fake_locks.silent > 0) {
		fake_locks.silent--;
		call->status = NFS4_OK;
		if (op == FAKE_LOCK && !call->u.lock.lock->state)
			call->u.lock.lock->state = call->u.lock.state;
		return -ETIMEDOUT;
	}
	return err;
}

void fake_lock_check(const struct nfs4_call *call, const struct list *pending)
{
	const struct nfs4_lockowner *lo = fake_lock_owner_of(call);

	list_for_each (node, pending) {
		const struct nfs4_call *other = container_of(node, struct nfs4_call, link);

		cr_assert(!lo || other == call || fake_lock_owner_of(other) != lo,
			"two calls of one lock owner at a time");
	}
}

const struct nfs4_lockowner *fake_lock_owner_of(const struct nfs4_call *call)
{
	if (call->state == FAKE_LOCK)
		return call->u.lock.lock;
	return call->state == FAKE_LOCKU ? call->u.locku.lock : NULL;
}

/* ---- what tests see and do ---- */

unsigned int fake_lock_held(struct fake_file *f)
{
	uint8_t file = (uint8_t)(f - rig.fake.files);
	unsigned int cnt = 0;

	for (unsigned int i = 0; i < fake_locks.cnt; i++)
		cnt += fake_locks.v[i].file == file;
	return cnt;
}

void fake_lock_foreign(struct fake_file *f, uint64_t off, uint64_t len, bool write)
{
	add((uint8_t)(f - rig.fake.files), 0, off, end_of(off, len), write);
}

void fake_unlock_foreign(struct fake_file *f)
{
	cut((uint8_t)(f - rig.fake.files), 0, 0, UINT64_MAX);
}

void fake_lock_notify(uint64_t number)
{
	fake_locks.on_free(fake_locks.on_free_ctx, number);
}

/* ---- nfs4.h ---- */

void nfs4_lockowner_init(struct nfs4_lockowner *lo, struct nfs4_client *cl)
{
	memset(lo, 0, sizeof(*lo));
	lo->number = nfs4_new_owner(cl);
}

bool nfs4_lockowner_holds(struct nfs4_lockowner *lo, uint64_t offset, uint64_t length)
{
	for (unsigned int i = 0; i < fake_locks.cnt; i++) {
		const struct fake_lock *l = &fake_locks.v[i];

		if (l->owner == lo->number && l->off < end_of(offset, length) && offset < l->end)
			return true;
	}
	return false;
}

void nfs4_lockowner_free(struct nfs4_lockowner *lo, struct nfs4_session *s)
{
	cr_assert_not(nfs4_lockowner_holds(lo, 0, NFS4_LOCK_TO_END) && !fake_locks.lost_ok);
	list_for_each (node, &rig.fake.pending)
		cr_assert_neq(fake_lock_owner_of(container_of(node, struct nfs4_call, link)), lo);
	for (unsigned int i = 0; i < fake_locks.cnt; i++) /* they go with the open */
		if (fake_locks.v[i].owner == lo->number)
			fake_locks.v[i--] = fake_locks.v[--fake_locks.cnt];
	lo->state = NULL;
	fake_keep_locks(lo);
	fake_locks.freed++;
}

void nfs4_client_on_lock_free(
	struct nfs4_client *cl, void (*fn)(void *ctx, uint64_t number), void *ctx)
{
	fake_locks.on_free = fn;
	fake_locks.on_free_ctx = ctx;
}
