/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File systems of the server: a table of those that were asked about
 * (nfs4_fs_facts.c).
 *
 * Context: any thread; an entry is constant, and there until the client is
 * freed.
 */
#include "nfs4_session_int.h"

#include <stdlib.h>

/* A READ's or WRITE's own part of request and reply, and everything it may be sent with. */
#define IO_OVERHEAD 1024u

uint32_t nfs4_fs_io_size(uint32_t asked, uint64_t data_size, uint64_t server, uint64_t session)
{
	uint64_t size = data_size;

	if (asked && asked < size)
		size = asked;
	if (server && server < size)
		size = server;
	if (session > IO_OVERHEAD && session - IO_OVERHEAD < size)
		size = session - IO_OVERHEAD;
	if (size > 4096)
		size &= ~4095ull;
	return (uint32_t)size;
}

/* ---- the table ---- */

struct nfs4_fs_entry {
	struct nfs4_fs_entry *next;
	struct nfs4_fs fs;
};

void nfs4_fs_table_init(struct nfs4_fs_table *t)
{
	mutex_init(&t->lock, MUTEX_NFS4_FS);
}

void nfs4_fs_table_fini(struct nfs4_fs_table *t)
{
	for (unsigned int i = 0; i < NFS4_FS_BUCKETS; i++) {
		struct nfs4_fs_entry *e = t->buckets[i];

		while (e) {
			struct nfs4_fs_entry *next = e->next;

			free(e);
			e = next;
		}
	}
	mutex_destroy(&t->lock);
}

static struct nfs4_fs_entry **bucket(struct nfs4_fs_table *t, uint64_t major, uint64_t minor)
{
	uint64_t h = (major ^ minor * 0x9e3779b97f4a7c15ull) * 0x9fb21c651e98df25ull;

	return &t->buckets[(h >> 32) % NFS4_FS_BUCKETS];
}

static bool is_it(const struct nfs4_fs *fs, uint64_t major, uint64_t minor)
{
	return fs->fsid_major == major && fs->fsid_minor == minor;
}

/* Lock held. */
static const struct nfs4_fs *find(struct nfs4_fs_table *t, uint64_t major, uint64_t minor)
{
	struct nfs4_fs_entry *e;

	for (e = *bucket(t, major, minor); e; e = e->next)
		if (is_it(&e->fs, major, minor))
			return &e->fs;
	return NULL;
}

const struct nfs4_fs *nfs4_fs_find(struct nfs4_client *cl, uint64_t major, uint64_t minor)
{
	struct nfs4_fs_table *t = &cl->file_systems;
	const struct nfs4_fs *fs;

	if (is_it(&cl->fsinfo.fs, major, minor))
		return &cl->fsinfo.fs;
	mutex_lock(&t->lock);
	fs = find(t, major, minor);
	mutex_unlock(&t->lock);
	return fs;
}

const struct nfs4_fs *nfs4_fs_at(const struct nfs4_client *cl, unsigned int nr)
{
	return nr ? cl->file_systems.by_nr[nr - 1] : &cl->fsinfo.fs;
}

/* Lock held. */
static const struct nfs4_fs *add(struct nfs4_fs_table *t, const struct nfs4_fs *fs)
{
	struct nfs4_fs_entry *e = t->cnt < NFS4_FS_MAX ? malloc(sizeof(*e)) : NULL;
	struct nfs4_fs_entry **at = bucket(t, fs->fsid_major, fs->fsid_minor);

	if (!e)
		return NULL;
	e->fs = *fs;
	e->next = *at;
	*at = e;
	t->by_nr[t->cnt++] = &e->fs;
	e->fs.nr = (uint16_t)t->cnt;
	return &e->fs;
}

const struct nfs4_fs *nfs4_fs_learn(struct nfs4_client *cl, const struct nfs4_fs *fs)
{
	struct nfs4_fs_table *t = &cl->file_systems;
	const struct nfs4_fs *known;

	if (is_it(&cl->fsinfo.fs, fs->fsid_major, fs->fsid_minor))
		return &cl->fsinfo.fs;
	mutex_lock(&t->lock);
	known = find(t, fs->fsid_major, fs->fsid_minor);
	if (!known)
		known = add(t, fs);
	mutex_unlock(&t->lock);
	return known;
}
