/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inode table: a hash of filehandles, and the slots whose numbers are the nodeids (fs_slot.h).
 * One lock guards the buckets, the slots and the two counts that keep an inode alive: `nlookup`,
 * what the kernel holds, and `refs`, what our own operations and open files hold. An inode is freed
 * when both are 0. The lock is held for a few memory accesses, never across a call.
 *
 * A stale inode (its filehandle now names another file, or the server said
 * ESTALE) leaves the buckets but lives on until the kernel forgets it.
 */
#include "fs_inode.h"
#include "fs_facts.h"
#include "fs_dentry.h"
#include "fs_inode_record.h"
#include "fs_live.h"
#include "fs_slot.h"
#include "fs_part.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TABLE_MIN       1024u
#define GIVE_BACK_OF    8192u /* below so many inodes it is not worth it */
#define GIVE_BACK_AGAIN 8u    /* but once there were: until some 30 are left, in a page each */

/* With malloc's header, its slot, and up to two buckets. */
static_assert(sizeof(struct fs_inode) + NFS4_FHSIZE + 8 + 12 + 2 * sizeof(uint32_t) <= 512,
	"an inode takes more than fs_inode.h says");

struct fs_table {
	struct mutex lock;
	struct fs_slots slots;
	uint32_t *buckets; /* of slots, each chain by fs_slot_next() */
	size_t size;       /* a power of two */
	size_t count;
	size_t most;       /* there were, since memory was given back last */
	uint32_t again;    /* so often it is given back though there are few */
	uint64_t seed;     /* the server chooses filehandles: it must not choose the buckets */
	uint32_t unhashed; /* a chain: so that fs_inode_table_free() finds them */
};

int fs_inode_table_new(struct fs *fs)
{
	struct fs_table *t = calloc(1, sizeof(*t));
	uint64_t random[2];

	if (!t)
		return -ENOMEM;
	t->size = TABLE_MIN;
	t->buckets = calloc(t->size, sizeof(*t->buckets));
	if (!t->buckets) {
		free(t);
		return -ENOMEM;
	}
	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		random[0] = random[1] = (uintptr_t)t ^ 0x9e3779b97f4a7c15ull;
	t->seed = random[0];
	fs_slot_init(&t->slots, (uint32_t)random[1]);
	mutex_init(&t->lock, MUTEX_FS_TABLE);
	fs->table = t;
	return 0;
}

static void inode_free(const struct fs *fs, struct fs_inode *in)
{
	mutex_destroy(&in->lock);
	fs_part_inode_gone(fs, in);
	free(in->silly_name);
	fs_dentry_store_free(in->dentries);
	free(in);
}

static struct fs_inode *at(const struct fs_table *t, uint32_t slot)
{
	return fs_slot_inode(&t->slots, slot);
}

static void free_chain(const struct fs *fs, struct fs_table *t, uint32_t slot)
{
	while (slot != FS_SLOT_NONE) {
		uint32_t next = *fs_slot_next(&t->slots, slot);

		inode_free(fs, at(t, slot));
		slot = next;
	}
}

void fs_inode_table_free(struct fs *fs)
{
	struct fs_table *t = fs->table;

	if (!t)
		return;
	for (size_t i = 0; i < t->size; i++)
		free_chain(fs, t, t->buckets[i]);
	free_chain(fs, t, t->unhashed);
	fs_slot_fini(&t->slots);
	mutex_destroy(&t->lock);
	free(t->buckets);
	free(t);
	fs->table = NULL;
	fs->root = NULL;
}

void MUTEX_UNANALYSED fs_inode_table_lock(struct fs *fs)
{
	mutex_lock(&fs->table->lock);
}

void MUTEX_UNANALYSED fs_inode_table_unlock(struct fs *fs)
{
	mutex_unlock(&fs->table->lock);
}

/* Eight bytes at a time, each mixed by a multiplication whose halves are folded. */
static uint32_t hash_fh(uint64_t seed, const uint8_t *p, size_t len)
{
	uint64_t h = seed ^ len;

	while (len > 0) {
		size_t n = len < 8 ? len : 8;
		uint64_t w = 0;
		unsigned __int128 m;

		memcpy(&w, p, n);
		m = (unsigned __int128)(h ^ w) * 0x9fb21c651e98df25ull;
		h = (uint64_t)m ^ (uint64_t)(m >> 64) ^ seed;
		p += n;
		len -= n;
	}
	return (uint32_t)(h ^ (h >> 32));
}

/* Not kept: there are many of them. */
static uint32_t hash_of(const struct fs_table *t, const struct fs_inode *in)
{
	return hash_fh(t->seed, in->fh, in->fh_len);
}

static uint32_t *bucket(struct fs_table *t, uint32_t hash)
{
	return &t->buckets[hash & (t->size - 1)];
}

static struct fs_inode *table_find(struct fs_table *t, uint32_t hash, const struct nfs4_fh *fh)
{
	uint32_t slot = *bucket(t, hash);

	for (; slot != FS_SLOT_NONE; slot = *fs_slot_next(&t->slots, slot)) {
		struct fs_inode *in = at(t, slot);

		if (in->fh_len == fh->len && memcmp(in->fh, fh->data, fh->len) == 0)
			return in;
	}
	return NULL;
}

static void chain_add(struct fs_table *t, uint32_t *first, uint32_t slot)
{
	*fs_slot_next(&t->slots, slot) = *first;
	*first = slot;
}

/* Out of memory: it stays as it is. */
static void table_resize(struct fs_table *t, size_t size)
{
	uint32_t *to = calloc(size, sizeof(*to));

	if (!to)
		return;
	for (size_t i = 0; i < t->size; i++) {
		uint32_t slot = t->buckets[i];

		while (slot != FS_SLOT_NONE) {
			uint32_t next = *fs_slot_next(&t->slots, slot);

			chain_add(t, &to[hash_of(t, at(t, slot)) & (size - 1)], slot);
			slot = next;
		}
	}
	free(t->buckets);
	t->buckets = to;
	t->size = size;
}

/* Not so few inodes that the buckets are what takes the memory. */
static void table_shrink(struct fs_table *t)
{
	if (t->size > TABLE_MIN && t->count < t->size / 8)
		table_resize(t, t->size / 2);
}

/*
 * What is freed in the midst of an arena malloc keeps. Each time half of the inodes went since the
 * last time: a walk may leave a million of them, and the last ones lie anywhere.
 */
static bool is_time_to_give_back(struct fs_table *t)
{
	if (t->count > t->most / 2 || (t->most < GIVE_BACK_OF && t->again == 0))
		return false;
	t->again = t->most < GIVE_BACK_OF ? t->again - 1 : GIVE_BACK_AGAIN;
	t->most = t->count;
	return true;
}

/* Takes it out of whichever chain it is on. Table lock held. */
static void chain_del(struct fs_table *t, struct fs_inode *in)
{
	uint32_t *p = in->unhashed ? &t->unhashed : bucket(t, hash_of(t, in));

	while (*p != in->slot)
		p = fs_slot_next(&t->slots, *p);
	*p = *fs_slot_next(&t->slots, in->slot);
}

static void table_unhash(struct fs_table *t, struct fs_inode *in)
{
	if (in->unhashed)
		return;
	chain_del(t, in);
	in->unhashed = true;
	chain_add(t, &t->unhashed, in->slot);
}

static struct fs_inode *inode_alloc(const struct nfs4_fh *fh)
{
	struct fs_inode *in = calloc(1, sizeof(*in) + fh->len);

	if (!in)
		return NULL;
	in->fh_len = fh->len;
	memcpy(in->fh, fh->data, fh->len);
	list_init(&in->open_files);
	return in;
}

static struct fs_inode *inode_new(struct fs_table *t, const struct nfs4_fh *fh)
{
	struct fs_inode *in = inode_alloc(fh);

	if (!in)
		return NULL;
	in->slot = fs_slot_take(&t->slots, in, &in->generation);
	if (in->slot == FS_SLOT_NONE) {
		free(in);
		return NULL;
	}
	mutex_init(&in->lock, MUTEX_FS_INODE);
	return in;
}

static void table_add(struct fs_table *t, struct fs_inode *in)
{
	if (t->count >= t->size)
		table_resize(t, t->size * 2);
	chain_add(t, bucket(t, hash_of(t, in)), in->slot);
	if (++t->count > t->most)
		t->most = t->count;
}

void fs_inode_put_back_room(struct fs *fs, size_t cnt)
{
	size_t size = fs->table->size;

	while (size < cnt)
		size *= 2;
	fs_inode_table_lock(fs);
	if (size > fs->table->size)
		table_resize(fs->table, size);
	fs_inode_table_unlock(fs);
}

struct fs_inode *fs_inode_put_back(struct fs *fs, uint64_t slot, uint32_t generation,
	const struct nfs4_fh *fh, uint64_t nlookup)
{
	struct fs_inode *in = inode_alloc(fh);

	if (!in)
		return NULL;
	fs_inode_table_lock(fs);
	if (!fs_slot_put(&fs->table->slots, slot, in)) {
		fs_inode_table_unlock(fs);
		free(in);
		return NULL;
	}
	in->slot = (uint32_t)slot;
	in->generation = generation;
	in->nlookup = nlookup;
	mutex_init(&in->lock, MUTEX_FS_INODE);
	table_add(fs->table, in);
	fs_inode_table_unlock(fs);
	return in;
}

void fs_inode_put_back_all(struct fs *fs, uint32_t generation)
{
	fs_inode_table_lock(fs);
	fs_slot_put_all(&fs->table->slots, generation);
	fs_inode_table_unlock(fs);
}

void fs_inode_each(struct fs *fs, void (*fn)(void *ctx, struct fs_inode *in), void *ctx)
{
	fs_inode_table_lock(fs);
	fs_slot_each(&fs->table->slots, fn, ctx);
	fs_inode_table_unlock(fs);
}

uint32_t fs_inode_generation(const struct fs *fs)
{
	return fs->table->slots.generation;
}

/* Is it still the file that we know by this filehandle? A field not known on a side says nothing.
 */
static bool same_file(struct fs_inode *in, const struct nfs4_attr *a)
{
	uint32_t both;
	bool same;

	if (!a)
		return true;
	mutex_lock(&in->lock);
	both = in->attr.valid & a->valid;
	same = (!(both & NFS4_ATTR_FILEID) || in->attr.fileid == a->fileid) &&
	       (!(both & NFS4_ATTR_TYPE) || in->attr.type == a->type) &&
	       (!(both & NFS4_ATTR_FSID) || (in->attr.fsid_major == a->fsid_major &&
						    in->attr.fsid_minor == a->fsid_minor));
	mutex_unlock(&in->lock);
	return same;
}

struct fs_inode *fs_inode_lookup(
	struct fs *fs, const struct nfs4_fh *fh, const struct nfs4_attr *attr, unsigned int nlookup)
{
	struct fs_table *t = fs->table;
	uint32_t hash = hash_fh(t->seed, fh->data, fh->len);
	struct fs_inode *in;

	if (fh->len == 0)
		return NULL;
	fs_inode_table_lock(fs);
	in = table_find(t, hash, fh);
	if (in && in != fs->root && !same_file(in, attr)) {
		table_unhash(t, in);
		fs_live_inode_locked(fs, in);
		in = NULL;
	}
	if (!in) {
		in = inode_new(t, fh);
		if (!in)
			goto out;
		/* Else there would be another record when they are noted (fs_attr.h). */
		if (attr)
			fs_inode_record_note(&in->attr, attr);
		table_add(t, in);
		fs_live_inode_locked(fs, in);
	}
	in->refs++;
	in->nlookup += nlookup;
	fs_live_lookups(fs, in);
out:
	fs_inode_table_unlock(fs);
	if (in && attr)
		fs_facts_note(fs, in, attr);
	return in;
}

struct fs_inode *fs_inode_find(struct fs *fs, const struct nfs4_fh *fh)
{
	struct fs_table *t = fs->table;
	uint32_t hash = hash_fh(t->seed, fh->data, fh->len);
	struct fs_inode *in;

	fs_inode_table_lock(fs);
	in = table_find(t, hash, fh);
	if (in)
		in->refs++;
	fs_inode_table_unlock(fs);
	return in;
}

struct fs_inode *fs_inode_get(struct fs *fs, fuse_ino_t ino)
{
	struct fs_inode *in;

	fs_inode_table_lock(fs);
	in = fs_slot_inode(&fs->table->slots, ino & ~FS_INO_SHADOW);
	if (in)
		in->refs++;
	fs_inode_table_unlock(fs);
	return in;
}

struct fs_inode *fs_inode_ref(struct fs *fs, struct fs_inode *in)
{
	fs_inode_table_lock(fs);
	fs_inode_ref_locked(in);
	fs_inode_table_unlock(fs);
	return in;
}

static void unlock_and_reap(struct fs *fs, struct fs_inode *in) MUTEX_RELEASES(fs->table);

/* Table lock held: gives it up, and the inode with it if nobody holds it any more. */
static void unlock_and_reap(struct fs *fs, struct fs_inode *in)
{
	bool dead = in->refs == 0 && in->nlookup == 0, give_back = false;

	if (dead) {
		fs_live_inode_gone(fs, in);
		chain_del(fs->table, in);
		fs_slot_give(&fs->table->slots, in->slot);
		fs->table->count--;
		table_shrink(fs->table);
		give_back = is_time_to_give_back(fs->table);
	}
	fs_inode_table_unlock(fs);
	if (dead)
		inode_free(fs, in);
	if (give_back)
		malloc_trim(0);
}

void fs_inode_put_unlock(struct fs *fs, struct fs_inode *in)
{
	assert(in->refs > 0);
	in->refs--;
	unlock_and_reap(fs, in);
}

void fs_inode_put(struct fs *fs, struct fs_inode *in)
{
	if (!in)
		return;
	fs_inode_table_lock(fs);
	fs_inode_put_unlock(fs, in);
}

void fs_inode_forget(struct fs *fs, fuse_ino_t ino, uint64_t nlookup)
{
	struct fs_inode *in;

	ino &= ~FS_INO_SHADOW;
	if (ino == FUSE_ROOT_ID) /* held by the mount itself, and never forgotten */
		return;
	fs_inode_table_lock(fs);
	in = fs_slot_inode(&fs->table->slots, ino);
	if (!in) {
		fs_inode_table_unlock(fs);
		return;
	}
	in->nlookup = in->nlookup > nlookup ? in->nlookup - nlookup : 0;
	fs_live_lookups(fs, in);
	unlock_and_reap(fs, in);
}

bool fs_inode_is_forgotten(struct fs *fs, struct fs_inode *in)
{
	bool forgotten;

	fs_inode_table_lock(fs);
	forgotten = in->nlookup == 0;
	fs_inode_table_unlock(fs);
	return forgotten;
}

uint64_t fs_inode_fileid(struct fs_inode *in)
{
	uint64_t fileid;

	mutex_lock(&in->lock);
	fileid = in->attr.fileid;
	mutex_unlock(&in->lock);
	return fileid;
}

size_t fs_inode_count(const struct fs *fs)
{
	size_t count;

	mutex_lock(&fs->table->lock);
	count = fs->table->count;
	mutex_unlock(&fs->table->lock);
	return count;
}

void fs_inode_unhash(struct fs *fs, struct fs_inode *in)
{
	if (in == fs->root)
		return;
	fs_inode_table_lock(fs);
	table_unhash(fs->table, in);
	fs_inode_table_unlock(fs);
	fs_live_inode(fs, in);
}
