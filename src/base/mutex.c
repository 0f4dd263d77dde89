/* SPDX-License-Identifier: BSD-3-Clause */
#include "mutex.h"

#if MUTEX_CHECKED

#include <assert.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLS_MAX 48

struct held {
	const struct mutex *mutex;
	struct mutex_place at; /* it was taken */
};

/* This thread's, outermost first: one of a class at most. */
static _Thread_local struct held held[MUTEX_CLASS_CNT];
static _Thread_local unsigned int held_cnt;
static _Thread_local bool end_is_watched;

static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;

static const char *name_of(const struct mutex *m)
{
	static const char *const names[MUTEX_CLASS_CNT] = {
		[MUTEX_NONE] = "a mutex that is not initialised",
#define MUTEX_AS_NAME(class, name) [class] = name,
		MUTEX_ORDER(MUTEX_AS_NAME)
#undef MUTEX_AS_NAME
	};

	return m->class < MUTEX_CLASS_CNT ? names[m->class] : "no mutex";
}

static void tell(const char *how, const struct mutex *m, struct mutex_place at)
{
	dprintf(STDERR_FILENO, "%s %s (level %d, %p) at %s:%d, %s()\n", how, name_of(m),
		(int)m->class, (const void *)m, at.file, at.line, at.func);
}

/* Not by log.h, which has locks. */
static _Noreturn void die(const char *what, const struct mutex *m, struct mutex_place at)
{
	void *calls[CALLS_MAX];

	if (m)
		tell(what, m, at);
	else
		dprintf(STDERR_FILENO, "%s at %s:%d, %s()\n", what, at.file, at.line, at.func);
	for (unsigned int i = held_cnt; i > 0; i--)
		tell("    held:", held[i - 1].mutex, held[i - 1].at);
	dprintf(STDERR_FILENO, "    calls:\n");
	backtrace_symbols_fd(calls, backtrace(calls, CALLS_MAX), STDERR_FILENO);
	abort();
}

/* ---- the stack ---- */

static void thread_ends(void *arg)
{
	if (held_cnt > 0)
		die("mutex: a thread ends with locks", NULL, held[held_cnt - 1].at);
}

static void make_end_key(void)
{
	if (pthread_key_create(&end_key, thread_ends))
		abort();
}

/* The key's destructor runs at the end of each thread for that it is not NULL. */
static void watch_end(void)
{
	pthread_once(&end_once, make_end_key);
	pthread_setspecific(end_key, &held);
	end_is_watched = true;
}

static void push(const struct mutex *m, struct mutex_place at)
{
	if (!end_is_watched)
		watch_end();
	held[held_cnt++] = (struct held){m, at};
}

/* held_cnt: it is not there. Mostly it is the innermost. */
static unsigned int find(const struct mutex *m)
{
	for (unsigned int i = held_cnt; i > 0; i--)
		if (held[i - 1].mutex == m)
			return i - 1;
	return held_cnt;
}

static void pop(unsigned int i)
{
	held_cnt--;
	for (; i < held_cnt; i++)
		held[i] = held[i + 1];
}

static void must_be_live(const struct mutex *m, struct mutex_place at)
{
	if (m->class == MUTEX_NONE || m->class >= MUTEX_CLASS_CNT)
		die("mutex: this is", m, at);
}

static unsigned int must_be_held(const char *what, const struct mutex *m, struct mutex_place at)
{
	unsigned int i = find(m);

	if (i == held_cnt)
		die(what, m, at);
	return i;
}

/* ---- mutexes ---- */

void mutex_init(struct mutex *m, enum mutex_class c)
{
	assert(c > MUTEX_NONE && c < MUTEX_CLASS_CNT);
	pthread_mutex_init(&m->pthread, NULL);
	m->class = c;
}

void mutex_destroy_at(struct mutex *m, struct mutex_place at)
{
	must_be_live(m, at);
	if (find(m) < held_cnt)
		die("mutex: this thread holds and destroys", m, at);
	pthread_mutex_destroy(&m->pthread);
	m->class = MUTEX_NONE;
}

void MUTEX_UNANALYSED mutex_lock_at(struct mutex *m, struct mutex_place at)
{
	must_be_live(m, at);
	for (unsigned int i = 0; i < held_cnt; i++)
		if (held[i].mutex->class >= m->class)
			die("mutex: against the order (mutex_order.h) this thread takes", m, at);
	pthread_mutex_lock(&m->pthread);
	push(m, at);
}

void MUTEX_UNANALYSED mutex_unlock_at(struct mutex *m, struct mutex_place at)
{
	must_be_live(m, at);
	pop(must_be_held("mutex: this thread does not hold, but unlocks", m, at));
	pthread_mutex_unlock(&m->pthread);
}

/* It is held, and nothing else is. Returns: where it was taken. */
static struct mutex_place begin_wait(const struct mutex *m, struct mutex_place at)
{
	struct mutex_place was;

	must_be_live(m, at);
	was = held[must_be_held("mutex: this thread does not hold, but waits with", m, at)].at;
	if (held_cnt > 1)
		die("mutex: this thread waits with more than", m, at);
	pop(0);
	return was;
}

void mutex_wait_at(struct mutex *m, pthread_cond_t *cond, struct mutex_place at)
{
	struct mutex_place was = begin_wait(m, at);

	pthread_cond_wait(cond, &m->pthread);
	push(m, was);
}

int mutex_wait_until_at(
	struct mutex *m, pthread_cond_t *cond, const struct timespec *until, struct mutex_place at)
{
	struct mutex_place was = begin_wait(m, at);
	int err = pthread_cond_timedwait(cond, &m->pthread, until);

	push(m, was);
	return err;
}

void mutex_assert_held_at(const struct mutex *m, struct mutex_place at)
{
	must_be_live(m, at);
	must_be_held("mutex: this thread should hold", m, at);
}

void mutex_assert_none_at(struct mutex_place at)
{
	if (held_cnt > 0)
		die("mutex: none may be held", NULL, at);
}

#endif
