/* SPDX-License-Identifier: BSD-3-Clause */
/* The file system in memory, and its view from outside. */
#include "nfsd_sim_held.h"

#include <stdio.h>
#include <stdlib.h>

static struct timespec tick(struct tree *t)
{
	t->clock += 1000;
	return (struct timespec){.tv_sec = 1700000000 + (time_t)(t->clock / 1000000000),
		.tv_nsec = (long)(t->clock % 1000000000)};
}

struct node *tree_new(struct tree *t, uint32_t type, uint32_t mode)
{
	struct node *n = calloc(1, sizeof(*n));

	if (t->cnt == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		t->nodes = realloc(t->nodes, t->cap * sizeof(*t->nodes));
	}
	t->nodes[t->cnt++] = n;
	n->id = t->cnt;
	n->type = type;
	n->mode = mode;
	n->nlink = type == NFSD_SIM_DIR ? 2 : 0;
	n->size = type == NFSD_SIM_DIR ? 4096 : 0;
	n->next_cookie = 3; /* 0, 1 and 2 have meanings of their own */
	list_init(&n->entries);
	list_init(&n->xattrs);
	tree_touch(t, n, true);
	n->atime = n->mtime;
	return n;
}

void tree_touch(struct tree *t, struct node *n, bool data)
{
	n->change++;
	n->ctime = tick(t);
	if (data)
		n->mtime = n->ctime;
}

uint32_t tree_crowd_name(uint64_t number, char name[256])
{
	return (uint32_t)snprintf(name, 256, "file-%08llu", (unsigned long long)number);
}

static struct node *crowd_node(struct tree *t, uint64_t number)
{
	t->made_up = *t->crowd;
	t->made_up.id = TREE_CROWD_ID + number;
	t->made_up.type = NFSD_SIM_REG;
	t->made_up.nlink = 1;
	t->made_up.size = 0;
	return &t->made_up;
}

struct node *tree_node(struct tree *t, uint64_t id)
{
	if (t->crowd && id >= TREE_CROWD_ID && id - TREE_CROWD_ID < t->crowd_cnt)
		return crowd_node(t, id - TREE_CROWD_ID);
	return id && id <= t->cnt ? t->nodes[id - 1] : NULL;
}

static void node_free(struct tree *t, struct node *n)
{
	t->nodes[n->id - 1] = NULL;
	while (!list_empty(&n->entries)) {
		struct dirent_sim *de = list_first(&n->entries, struct dirent_sim, link);

		list_del(&de->link);
		free(de);
	}
	while (!list_empty(&n->xattrs)) {
		struct xattr *x = list_first(&n->xattrs, struct xattr, link);

		list_del(&x->link);
		free(x->value);
		free(x);
	}
	free(n->acl);
	free(n->data);
	free(n->stable);
	free(n);
}

void tree_init(struct tree *t)
{
	t->root = tree_new(t, NFSD_SIM_DIR, 0777);
	t->root->parent = t->root;
}

void tree_fini(struct tree *t)
{
	for (size_t i = 0; i < t->cnt; i++) {
		if (t->nodes[i])
			node_free(t, t->nodes[i]);
	}
	free(t->nodes);
}

struct dirent_sim *tree_find(struct node *dir, const char *name, uint32_t len)
{
	list_for_each (pos, &dir->entries) {
		struct dirent_sim *de = container_of(pos, struct dirent_sim, link);

		if (de->len == len && !memcmp(de->name, name, len))
			return de;
	}
	return NULL;
}

struct node *tree_lookup(struct tree *t, struct node *dir, const char *name, uint32_t len)
{
	struct dirent_sim *de = tree_find(dir, name, len);
	char text[256], made[256];
	uint64_t number;

	if (de || dir != t->crowd)
		return de ? de->node : NULL;
	memcpy(text, name, len);
	text[len] = '\0';
	number = len > 5 ? strtoull(text + 5, NULL, 10) : 0;
	if (number >= t->crowd_cnt || tree_crowd_name(number, made) != len ||
		memcmp(made, name, len) != 0)
		return NULL;
	return crowd_node(t, number);
}

void tree_link(struct tree *t, struct node *dir, const char *name, uint32_t len, struct node *n)
{
	struct dirent_sim *de = calloc(1, sizeof(*de));

	de->cookie = dir->next_cookie++;
	de->len = len;
	memcpy(de->name, name, len);
	de->node = n;
	list_push_back(&dir->entries, &de->link);
	n->below = dir->below || n->is_root;
	if (n->type == NFSD_SIM_DIR) {
		n->parent = dir;
		dir->nlink++;
	} else {
		n->nlink++;
	}
	tree_touch(t, dir, true);
	tree_touch(t, n, false);
}

void tree_unlink(struct tree *t, struct node *dir, struct dirent_sim *de)
{
	struct node *n = de->node;

	list_del(&de->link);
	free(de);
	tree_touch(t, dir, true);
	if (n->type == NFSD_SIM_DIR) {
		dir->nlink--;
		node_free(t, n);
		return;
	}
	tree_touch(t, n, false);
	n->nlink--;
	tree_put(t, n);
}

void tree_put(struct tree *t, struct node *n)
{
	if (n->type != NFSD_SIM_DIR && !n->nlink && !n->opens)
		node_free(t, n);
}

static void save_stable(struct node *n)
{
	if (n->stable)
		return;
	n->stable = malloc(n->size + 1);
	if (n->size)
		memcpy(n->stable, n->data, n->size);
	n->stable_size = n->size;
}

void tree_resize(struct node *n, uint64_t size)
{
	if (size > n->cap) {
		size_t cap = n->cap ? n->cap : 4096;

		while (cap < size)
			cap *= 2;
		n->data = realloc(n->data, cap);
		memset(n->data + n->cap, 0, cap - n->cap);
		n->cap = cap;
	}
	if (size < n->size)
		memset(n->data + size, 0, n->size - size);
	n->size = size;
}

/* A change of size is stable at once. */
void tree_truncate(struct tree *t, struct node *n, uint64_t size)
{
	tree_resize(n, size);
	if (n->stable) {
		n->stable = realloc(n->stable, size + 1);
		if (size > n->stable_size)
			memset(n->stable + n->stable_size, 0, size - n->stable_size);
		n->stable_size = size;
	}
	tree_touch(t, n, true);
}

void tree_write(
	struct tree *t, struct node *n, uint64_t off, const void *p, size_t len, bool stable)
{
	if (!stable) {
		save_stable(n);
		n->unstable += len;
	}
	if (off + len > n->size)
		tree_resize(n, off + len);
	if (len)
		memcpy(n->data + off, p, len);
	/* What is stable at once is so in the saved copy as well. */
	if (stable && n->stable) {
		if (off + len > n->stable_size) {
			n->stable = realloc(n->stable, off + len + 1);
			memset(n->stable + n->stable_size, 0, off + len - n->stable_size);
			n->stable_size = off + len;
		}
		memcpy(n->stable + off, p, len);
	}
	tree_touch(t, n, true);
}

void tree_commit(struct node *n)
{
	free(n->stable);
	n->stable = NULL;
	n->unstable = 0;
}

/* What was not committed is lost. */
void tree_crash(struct tree *t)
{
	for (size_t i = 0; i < t->cnt; i++) {
		struct node *n = t->nodes[i];

		if (!n || !n->stable)
			continue;
		tree_resize(n, n->stable_size);
		if (n->size)
			memcpy(n->data, n->stable, n->size);
		tree_commit(n);
	}
}

/* ---- from outside ---- */

static struct node *walk(struct tree *t, const char *path, bool parent, const char **ret_last)
{
	struct node *n = t->root;

	while (n) {
		const char *end;
		struct dirent_sim *de;

		while (*path == '/')
			path++;
		end = strchrnul(path, '/');
		if (!*path || (parent && !*end)) {
			if (ret_last)
				*ret_last = path;
			return n;
		}
		de = n->type == NFSD_SIM_DIR ? tree_find(n, path, (uint32_t)(end - path)) : NULL;
		n = de ? de->node : NULL;
		path = end;
	}
	return NULL;
}

struct node *tree_path(struct tree *t, const char *path)
{
	return walk(t, path, false, NULL);
}

uint64_t nfsd_sim_mknod(struct nfsd_sim *sim, const char *path, enum nfsd_sim_type type,
	uint32_t mode, const void *data, size_t len)
{
	const char *name = "";
	struct node *dir, *n = NULL;

	pthread_mutex_lock(&sim->lock);
	dir = walk(&sim->tree, path, true, &name);
	if (dir && *name && !tree_find(dir, name, (uint32_t)strlen(name))) {
		n = tree_new(&sim->tree, type, mode);
		if (len)
			tree_write(&sim->tree, n, 0, data, len, true);
		tree_link(&sim->tree, dir, name, (uint32_t)strlen(name), n);
	}
	pthread_mutex_unlock(&sim->lock);
	return n ? n->id : 0;
}

void nfsd_sim_crowd(struct nfsd_sim *sim, const char *path, uint64_t cnt)
{
	pthread_mutex_lock(&sim->lock);
	sim->tree.crowd = tree_path(&sim->tree, path);
	sim->tree.crowd_cnt = cnt;
	pthread_mutex_unlock(&sim->lock);
}

bool nfsd_sim_exists(struct nfsd_sim *sim, const char *path)
{
	bool there;

	pthread_mutex_lock(&sim->lock);
	there = tree_path(&sim->tree, path);
	pthread_mutex_unlock(&sim->lock);
	return there;
}

int64_t nfsd_sim_peek(struct nfsd_sim *sim, const char *path, uint64_t off, void *buf, size_t len)
{
	const struct node *n;
	int64_t size = -1;

	pthread_mutex_lock(&sim->lock);
	n = tree_path(&sim->tree, path);
	if (n) {
		size = (int64_t)n->size;
		if (len && off < n->size && n->data)
			memcpy(buf, n->data + off, len < n->size - off ? len : n->size - off);
	}
	pthread_mutex_unlock(&sim->lock);
	return size;
}

bool nfsd_sim_poke(
	struct nfsd_sim *sim, const char *path, uint64_t off, const void *buf, size_t len)
{
	struct node *n;
	bool ok;

	pthread_mutex_lock(&sim->lock);
	n = tree_path(&sim->tree, path);
	ok = n && !deleg_conflict(sim, n, NULL, 2);
	if (ok && n->type == NFSD_SIM_REG)
		tree_write(&sim->tree, n, off, buf, len, true);
	pthread_mutex_unlock(&sim->lock);
	return ok;
}

bool nfsd_sim_resize(struct nfsd_sim *sim, const char *path, uint64_t size)
{
	struct node *n;
	bool ok;

	pthread_mutex_lock(&sim->lock);
	n = tree_path(&sim->tree, path);
	ok = n && n->type == NFSD_SIM_REG && !deleg_conflict(sim, n, NULL, 2);
	if (ok)
		tree_truncate(&sim->tree, n, size);
	pthread_mutex_unlock(&sim->lock);
	return ok;
}

void nfsd_sim_delay_opens(struct nfsd_sim *sim, const char *path, bool delay)
{
	struct node *n;

	pthread_mutex_lock(&sim->lock);
	n = tree_path(&sim->tree, path);
	if (n)
		n->opens_delayed = delay;
	pthread_mutex_unlock(&sim->lock);
}

void nfsd_sim_deny_attrs(struct nfsd_sim *sim, const char *path, bool deny)
{
	struct node *n;

	pthread_mutex_lock(&sim->lock);
	n = tree_path(&sim->tree, path);
	if (n)
		n->attrs_denied = deny;
	pthread_mutex_unlock(&sim->lock);
}

void nfsd_sim_below(struct nfsd_sim *sim, const char *path, const struct nfsd_sim_fs *facts)
{
	struct node *n;

	pthread_mutex_lock(&sim->lock);
	sim->below = *facts;
	n = tree_path(&sim->tree, path);
	if (n)
		n->below = n->is_root = true;
	pthread_mutex_unlock(&sim->lock);
}

bool nfsd_sim_unlink(struct nfsd_sim *sim, const char *path)
{
	const char *name = "";
	struct dirent_sim *de = NULL;
	struct node *dir;

	pthread_mutex_lock(&sim->lock);
	dir = walk(&sim->tree, path, true, &name);
	if (dir)
		de = tree_find(dir, name, (uint32_t)strlen(name));
	if (de)
		tree_unlink(&sim->tree, dir, de);
	pthread_mutex_unlock(&sim->lock);
	return de != NULL;
}

uint64_t nfsd_sim_unstable_bytes(struct nfsd_sim *sim)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&sim->lock);
	for (size_t i = 0; i < sim->tree.cnt; i++)
		sum += sim->tree.nodes[i] ? sim->tree.nodes[i]->unstable : 0;
	pthread_mutex_unlock(&sim->lock);
	return sum;
}
