/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries are in a hash table and on one of two lists: `queue`, asked and not
 * answered, in the order of their tickets; or `kept`, in the order of their
 * answers. Tickets are answered in their order, because one thread answers.
 */
#include "idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "log.h"
#include "mutex.h"

#define BUCKETS   4096u
#define LINGER_S  1 /* idmap_free() waits for the resolver */
#define NO_TICKET 0

/* A name with its number, or a number with its name: `by_id` says which was asked. */
struct entry {
	struct entry *next; /* of its bucket */
	uint32_t hash;
	struct list link; /* m->queue or m->kept */
	enum idmap_kind kind;
	bool by_id;
	uint32_t id;
	uint64_t ticket;   /* NO_TICKET: answered */
	bool none;         /* the answer: no number of its own, no name */
	uint64_t since_ns; /* when it was asked, or answered */
	uint64_t keep_ns;
	size_t len;
	char *name; /* NUL-terminated; by_id: NULL until answered, or if `none` */
};

struct idmap {
	const struct idmap_resolver *res;
	void *ctx;
	bool own_thread;
	uint32_t seed; /* names are the server's choice, buckets are not */

	struct mutex lock; /* all below */
	pthread_cond_t wake;
	struct entry *bucket[BUCKETS];
	struct list queue, kept;
	unsigned int queue_cnt, kept_cnt;
	uint64_t last_ticket, answered;
	struct list waiters;
	bool busy; /* the resolver is asked, since busy_ns */
	uint64_t busy_ns;
	bool used; /* it was asked */
	bool started, no_thread, stop;
	pthread_t thread;
};

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- entries; the lock is held ---- */

/* FNV-1a from a random start. */
static uint32_t hash_of(
	const struct idmap *m, enum idmap_kind kind, bool by_id, const void *key, size_t len)
{
	const uint8_t *p = key;
	uint32_t h = m->seed ^ (uint32_t)kind ^ (by_id ? 0x100u : 0);

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 16777619u;
	return h ^ h >> 16;
}

static struct entry **find(struct idmap *m, uint32_t hash, enum idmap_kind kind, bool by_id,
	uint32_t id, const char *name, size_t len)
{
	struct entry **pe = &m->bucket[hash % BUCKETS];

	for (; *pe; pe = &(*pe)->next) {
		const struct entry *e = *pe;

		if (e->hash != hash || e->kind != kind || e->by_id != by_id)
			continue;
		if (by_id ? e->id == id : e->len == len && memcmp(e->name, name, len) == 0)
			break;
	}
	return pe;
}

static void entry_free(struct entry *e)
{
	free(e->name);
	free(e);
}

/* It is in no list any more. */
static void forget(struct idmap *m, struct entry *e)
{
	struct entry **pe = &m->bucket[e->hash % BUCKETS];

	while (*pe != e)
		pe = &(*pe)->next;
	*pe = e->next;
	list_del(&e->link);
	entry_free(e);
}

static void keep(struct idmap *m, struct entry *e)
{
	list_push_back(&m->kept, &e->link);
	m->kept_cnt++;
	while (m->kept_cnt > IDMAP_KEPT_MAX) {
		m->kept_cnt--;
		forget(m, container_of(m->kept.next, struct entry, link));
	}
}

static struct entry *entry_new(
	enum idmap_kind kind, bool by_id, uint32_t id, const char *name, size_t len, uint32_t hash)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct entry){.kind = kind, .by_id = by_id, .id = id, .len = len, .hash = hash};
	list_init(&e->link);
	if (!by_id) {
		e->name = malloc(len + 1);
		if (!e->name) {
			free(e);
			return NULL;
		}
		memcpy(e->name, name, len);
		e->name[len] = '\0';
	}
	return e;
}

/* ---- asking ---- */

static void answer(struct idmap *m, struct entry *e, uint64_t now_ns) MUTEX_REQUIRES(&m->lock);
static bool answer_first(struct idmap *m, uint64_t now_ns) MUTEX_REQUIRES(&m->lock);

/* Gives the answer to `e`, the first of the queue. The lock is held, but not during the asking. */
static void answer(struct idmap *m, struct entry *e, uint64_t now_ns)
{
	char name[IDMAP_OUT_MAX + 1] = "";
	uint32_t id = IDMAP_NOBODY;
	int err;

	m->busy = m->used = true;
	m->busy_ns = now_ns;
	mutex_unlock(&m->lock);
	mutex_assert_none();
	/* What was asked does not change, and an entry of the queue is not forgotten. */
	if (e->by_id)
		err = m->res->to_name(m->ctx, e->kind, e->id, name);
	else
		err = m->res->to_id(m->ctx, e->kind, e->name, &id);
	if (m->own_thread)
		now_ns = monotonic_ns();
	mutex_lock(&m->lock);
	m->busy = false;
	if (!e->by_id)
		e->id = id;
	else if (!err && !(e->name = strdup(name)))
		err = -ENOMEM;
	e->none = err != 0;
	m->answered = e->ticket;
	e->ticket = NO_TICKET;
	e->since_ns = now_ns;
	e->keep_ns = err ? IDMAP_NO_KEEP_NS : IDMAP_KEEP_NS;
	list_del(&e->link);
	m->queue_cnt--;
	keep(m, e);
}

static void post(struct idmap_waiter *w)
{
	list_del(&w->link);
	w->posted = true;
	/* Under the lock: a waiter goes away only after idmap_cancel(), which takes it. */
	reactor_post(w->reactor, &w->msg);
}

static void tell(struct idmap *m)
{
	list_for_each_safe (node, next, &m->waiters) {
		struct idmap_waiter *w = container_of(node, struct idmap_waiter, link);

		if (w->ticket <= m->answered)
			post(w);
	}
}

static bool answer_first(struct idmap *m, uint64_t now_ns)
{
	if (list_empty(&m->queue))
		return false;
	answer(m, container_of(m->queue.next, struct entry, link), now_ns);
	tell(m);
	return true;
}

bool idmap_step(struct idmap *m, uint64_t now_ns)
{
	bool did;

	mutex_lock(&m->lock);
	did = answer_first(m, now_ns);
	mutex_unlock(&m->lock);
	return did;
}

static void *idmap_main(void *arg)
{
	struct idmap *m = arg;

	pthread_setname_np(pthread_self(), "idmap");
	mutex_lock(&m->lock);
	while (!m->stop)
		if (!answer_first(m, monotonic_ns()))
			mutex_wait(&m->lock, &m->wake);
	mutex_unlock(&m->lock);
	return NULL;
}

/* Somebody answers. The lock is held. */
static bool have_thread(struct idmap *m)
{
	int err;

	if (!m->own_thread || m->started)
		return true;
	if (m->no_thread)
		return false;
	err = pthread_create(&m->thread, NULL, idmap_main, m);
	m->started = err == 0;
	m->no_thread = err != 0;
	if (err)
		log_warn("names of owners cannot be looked up (%s): they show as nobody",
			strerror(err));
	return m->started;
}

/* Asked so long ago that nobody waits for it any more, or behind such a one? */
static bool is_late(const struct idmap *m, const struct entry *e, uint64_t now_ns)
{
	return (m->busy && now_ns > m->busy_ns && now_ns - m->busy_ns >= IDMAP_WAIT_NS) ||
	       (now_ns > e->since_ns && now_ns - e->since_ns >= IDMAP_WAIT_NS);
}

static void ask(struct idmap *m, struct entry *e, uint64_t now_ns)
{
	e->ticket = ++m->last_ticket;
	e->since_ns = now_ns;
	list_push_back(&m->queue, &e->link);
	m->queue_cnt++;
	pthread_cond_signal(&m->wake);
}

/* The entry, answered or asked by now; NULL: neither. */
static struct entry *look_up(struct idmap *m, enum idmap_kind kind, bool by_id, uint32_t id,
	const char *name, size_t len, uint64_t now_ns)
{
	uint32_t hash = by_id ? hash_of(m, kind, true, &id, sizeof(id))
			      : hash_of(m, kind, false, name, len);
	struct entry **pe = find(m, hash, kind, by_id, id, name, len);
	struct entry *e = *pe;

	if (e && e->ticket == NO_TICKET && now_ns > e->since_ns &&
		now_ns - e->since_ns >= e->keep_ns) {
		m->kept_cnt--;
		forget(m, e);
		e = NULL;
	}
	if (e)
		return e;
	if (m->queue_cnt >= IDMAP_QUEUE_MAX || !have_thread(m))
		return NULL;
	e = entry_new(kind, by_id, id, name, len, hash);
	if (!e)
		return NULL;
	e->next = m->bucket[hash % BUCKETS];
	m->bucket[hash % BUCKETS] = e;
	ask(m, e, now_ns);
	return e;
}

static enum idmap_answer state_of(
	const struct idmap *m, const struct entry *e, uint64_t now_ns, uint64_t *ret_ticket)
{
	if (!e)
		return IDMAP_REFUSED;
	if (e->ticket == NO_TICKET)
		return e->none ? IDMAP_NONE : IDMAP_KNOWN;
	if (is_late(m, e, now_ns))
		return IDMAP_REFUSED;
	*ret_ticket = e->ticket;
	return IDMAP_ASKED;
}

enum idmap_answer idmap_to_id(struct idmap *m, enum idmap_kind kind, const char *name, size_t len,
	uint64_t now_ns, uint32_t *ret_id, uint64_t *ret_ticket)
{
	enum idmap_answer ans;
	struct entry *e;

	if (len > IDMAP_IN_MAX || memchr(name, '\0', len))
		return IDMAP_REFUSED;
	mutex_lock(&m->lock);
	e = look_up(m, kind, false, 0, name, len, now_ns);
	ans = state_of(m, e, now_ns, ret_ticket);
	if (ans == IDMAP_KNOWN || ans == IDMAP_NONE)
		*ret_id = e->id;
	mutex_unlock(&m->lock);
	return ans;
}

enum idmap_answer idmap_to_name(struct idmap *m, enum idmap_kind kind, uint32_t id, uint64_t now_ns,
	char name[IDMAP_OUT_MAX + 1], uint64_t *ret_ticket)
{
	enum idmap_answer ans;
	struct entry *e;

	mutex_lock(&m->lock);
	e = look_up(m, kind, true, id, NULL, 0, now_ns);
	ans = state_of(m, e, now_ns, ret_ticket);
	name[0] = '\0';
	if (ans == IDMAP_KNOWN)
		memcpy(name, e->name, strlen(e->name) + 1);
	mutex_unlock(&m->lock);
	return ans;
}

uint64_t idmap_answered(struct idmap *m)
{
	uint64_t ticket;

	mutex_lock(&m->lock);
	ticket = m->answered;
	mutex_unlock(&m->lock);
	return ticket;
}

/* ---- waiters ---- */

void idmap_waiter_init(
	struct idmap_waiter *w, struct reactor *r, void (*told)(struct reactor_msg *msg))
{
	memset(w, 0, sizeof(*w));
	list_init(&w->link);
	w->reactor = r;
	w->msg.run = told;
}

void idmap_wait(struct idmap *m, struct idmap_waiter *w, uint64_t ticket)
{
	mutex_lock(&m->lock);
	if (!w->posted) {
		if (!list_is_linked(&w->link)) {
			list_push_back(&m->waiters, &w->link);
			w->ticket = ticket;
		} else if (ticket < w->ticket) {
			w->ticket = ticket;
		}
		if (w->ticket <= m->answered)
			post(w);
	}
	mutex_unlock(&m->lock);
}

void idmap_told(struct idmap *m, struct idmap_waiter *w)
{
	mutex_lock(&m->lock);
	w->posted = false;
	mutex_unlock(&m->lock);
}

bool idmap_cancel(struct idmap *m, struct idmap_waiter *w)
{
	bool posted;

	mutex_lock(&m->lock);
	list_del(&w->link);
	posted = w->posted;
	mutex_unlock(&m->lock);
	return !posted;
}

/* ---- life ---- */

struct idmap *idmap_new(const struct idmap_resolver *res, void *ctx, bool own_thread)
{
	struct idmap *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->res = res;
	m->ctx = ctx;
	m->own_thread = own_thread;
	if (getrandom(&m->seed, sizeof(m->seed), 0) != (ssize_t)sizeof(m->seed))
		m->seed = (uint32_t)monotonic_ns();
	mutex_init(&m->lock, MUTEX_IDMAP);
	pthread_cond_init(&m->wake, NULL);
	list_init(&m->queue);
	list_init(&m->kept);
	list_init(&m->waiters);
	return m;
}

/* False: it does not come back from the resolver. */
static bool stop_thread(struct idmap *m)
{
	struct timespec until;

	if (!m->started)
		return true;
	mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->wake);
	mutex_unlock(&m->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LINGER_S;
	return pthread_timedjoin_np(m->thread, NULL, &until) == 0;
}

void idmap_free(struct idmap *m)
{
	struct list *node;

	if (!m)
		return;
	if (!stop_thread(m)) {
		pthread_detach(m->thread);
		log_warn("a name is still looked up: not waited for");
		return;
	}
	while ((node = list_pop_front(&m->queue)) || (node = list_pop_front(&m->kept)))
		entry_free(container_of(node, struct entry, link));
	if (m->used && m->res->fini)
		m->res->fini(m->ctx);
	pthread_cond_destroy(&m->wake);
	mutex_destroy(&m->lock);
	free(m);
}
