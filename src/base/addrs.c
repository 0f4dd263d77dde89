/* SPDX-License-Identifier: BSD-3-Clause */
#include "addrs.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mutex.h"

struct addrs {
	struct mutex lock;
	pthread_cond_t wake;
	/* constant */
	addrs_resolve *resolve;
	void *ctx;
	bool own_thread;
	/* lock */
	struct addrs_list list;
	struct sockaddr_storage now;
	unsigned int next; /* of list: what is tried after `now` */
	uint64_t turn;
	unsigned int fails; /* of this turn, since it was up last */
	unsigned int ups;   /* connections */
	bool due;           /* to be resolved */
	bool running;       /* the thread is there: the last of the two frees */
	bool over;
};

static bool same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

void addrs_print(char *out, size_t size, const struct sockaddr *sa)
{
	bool is_v6 = sa->sa_family == AF_INET6;
	socklen_t len = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo(sa, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, size, "(address family %d)", sa->sa_family);
	else
		snprintf(out, size, is_v6 ? "[%.70s]:%.8s" : "%.70s:%.8s", host, port);
}

static bool has(const struct addrs_list *list, const struct sockaddr_storage *addr)
{
	for (unsigned int i = 0; i < list->cnt; i++)
		if (same(&list->addr[i], addr))
			return true;
	return false;
}

bool addrs_list_add(struct addrs_list *list, const struct sockaddr *sa)
{
	struct sockaddr_storage addr = {0};

	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return false;
	memcpy(&addr, sa,
		sa->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					 : sizeof(struct sockaddr_in6));
	if (list->cnt == ADDRS_MAX || has(list, &addr))
		return false;
	list->addr[list->cnt++] = addr;
	return true;
}

static void destroy(struct addrs *a)
{
	free(a->ctx);
	mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->wake);
	free(a);
}

struct addrs *addrs_new(const struct addrs_list *list, unsigned int first, addrs_resolve *resolve,
	void *ctx, bool own_thread)
{
	struct addrs *a = calloc(1, sizeof(*a));

	if (!a) {
		free(ctx);
		errno = ENOMEM;
		return NULL;
	}
	mutex_init(&a->lock, MUTEX_ADDRS);
	pthread_cond_init(&a->wake, NULL);
	a->resolve = resolve;
	a->ctx = ctx;
	a->own_thread = own_thread;
	a->list = *list;
	a->now = list->addr[first];
	a->next = first + 1;
	return a;
}

void addrs_free(struct addrs *a)
{
	bool running;

	if (!a)
		return;
	mutex_lock(&a->lock);
	a->over = true;
	running = a->running;
	pthread_cond_signal(&a->wake);
	mutex_unlock(&a->lock);
	if (!running)
		destroy(a);
}

/* ---- the next one; lock held ---- */

static void use(struct addrs *a, const struct sockaddr_storage *addr)
{
	a->fails = 0;
	if (same(&a->now, addr))
		return;
	a->now = *addr;
	a->turn++;
}

static void *thread_main(void *arg);

static void ask(struct addrs *a)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (a->due || !a->resolve)
		return;
	a->due = true;
	pthread_cond_signal(&a->wake);
	if (!a->own_thread || a->running)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	a->running = pthread_create(&thread, &attr, thread_main, a) == 0;
	a->due = a->running; /* else the next time */
	pthread_attr_destroy(&attr);
}

static void advance(struct addrs *a)
{
	if (a->next >= a->list.cnt) {
		a->next = 0;
		ask(a);
	}
	use(a, &a->list.addr[a->next++]);
}

static void resolved(struct addrs *a, const struct addrs_list *list)
{
	if (list->cnt == 0)
		return;
	a->list = *list;
	a->next = 0;
	/* It is known to have moved. */
	if (a->ups == 0 && a->fails > 0 && !has(list, &a->now))
		advance(a);
}

static bool step(struct addrs *a) MUTEX_REQUIRES(&a->lock);

/* Without the lock while it resolves. */
static bool step(struct addrs *a)
{
	struct addrs_list list = {0};
	bool ok;

	if (!a->due)
		return false;
	mutex_unlock(&a->lock);
	mutex_assert_none();
	ok = a->resolve(a->ctx, &list);
	mutex_lock(&a->lock);
	a->due = false;
	if (ok)
		resolved(a, &list);
	return true;
}

bool addrs_step(struct addrs *a)
{
	bool was_due;

	mutex_lock(&a->lock);
	was_due = step(a);
	mutex_unlock(&a->lock);
	return was_due;
}

static void *thread_main(void *arg)
{
	struct addrs *a = arg;

	pthread_setname_np(pthread_self(), "resolve");
	mutex_lock(&a->lock);
	while (!a->over)
		if (!step(a))
			mutex_wait(&a->lock, &a->wake);
	mutex_unlock(&a->lock);
	destroy(a);
	return NULL;
}

/* ---- the lanes ---- */

uint64_t addrs_now(struct addrs *a, struct sockaddr_storage *ret)
{
	uint64_t turn;

	mutex_lock(&a->lock);
	*ret = a->now;
	turn = a->turn;
	mutex_unlock(&a->lock);
	return turn;
}

void addrs_failed(struct addrs *a, uint64_t turn)
{
	mutex_lock(&a->lock);
	if (turn == a->turn && a->ups == 0 && ++a->fails >= ADDRS_TRIES)
		advance(a);
	mutex_unlock(&a->lock);
}

bool addrs_up(struct addrs *a, uint64_t turn)
{
	bool current;

	mutex_lock(&a->lock);
	current = turn == a->turn;
	a->ups += current;
	mutex_unlock(&a->lock);
	return current;
}

void addrs_down(struct addrs *a, bool good)
{
	mutex_lock(&a->lock);
	a->ups--;
	if (good)
		a->fails = 0;
	mutex_unlock(&a->lock);
}
