/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes that know their place in the one order of all locks (mutex_order.h).
 *
 * mutex_init - before any other thread knows it; MUTEX_INIT(class) for a static one
 *
 * mutex_destroy - when no other thread knows it any more
 *
 * mutex_lock, mutex_unlock - in one thread, and the latter in the function that did the former
 *
 * mutex_wait - until somebody signals, or for no reason; m is held before and after, not meanwhile
 *
 * mutex_wait_until - the same, at most until `until` by the clock of cond. Returns: 0 or ETIMEDOUT
 *
 * mutex_assert_held - for the checker alone: this thread holds it
 *
 * mutex_assert_none - for the checker alone: this thread holds none, since it may wait now, or
 * leaves its room
 *
 * In a build with the checker (meson's option lock_check: debug and debugoptimized have it) each
 * thread has a stack of the mutexes that it holds. The checker writes that stack and the calls to
 * standard error, and aborts, when a thread
 *
 *   locks a mutex while it holds one that does not stand before it in the order, or one of the
 *   same class
 *   unlocks, or waits with, a mutex that it does not hold; waits while it holds another one too
 *   uses one before mutex_init() or after mutex_destroy(), or destroys one that it holds
 *   fails an assertion of the above, or ends with one held
 *
 * So a deadlock is found by the first thread that could be part of one, without the other. In a
 * build without the checker these are the functions of pthread: the same size and instructions.
 *
 * Context: any thread, never a signal handler. Nothing here fails.
 */
#ifndef RPCRDMAFS_MUTEX_H
#define RPCRDMAFS_MUTEX_H

#include <pthread.h>
#include <time.h>

#include "mutex_order.h"

#ifndef MUTEX_CHECKED
#define MUTEX_CHECKED 0
#endif

/*
 * For clang's -Wthread-safety, in builds with the checker. A function that is called with a lock
 * held and gives it up for a while says so behind its declaration (MUTEX_REQUIRES), and so does
 * one that returns with another state of a lock than it was called with.
 */
#if MUTEX_CHECKED && defined(__clang__)
#define MUTEX_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define MUTEX_ATTRIBUTE(...)
#endif
#define MUTEX_CAPABILITY  MUTEX_ATTRIBUTE(capability("mutex"))
#define MUTEX_REQUIRES(m) MUTEX_ATTRIBUTE(requires_capability(m))
#define MUTEX_ACQUIRES(m) MUTEX_ATTRIBUTE(acquire_capability(m))
#define MUTEX_RELEASES(m) MUTEX_ATTRIBUTE(release_capability(m))
#define MUTEX_EXCLUDES(m) MUTEX_ATTRIBUTE(locks_excluded(m))
#define MUTEX_ASSERTS(m)  MUTEX_ATTRIBUTE(assert_capability(m))
/* In a definition, before the name: the body is not looked at. */
#define MUTEX_UNANALYSED MUTEX_ATTRIBUTE(no_thread_safety_analysis)

#if MUTEX_CHECKED

struct MUTEX_CAPABILITY mutex {
	pthread_mutex_t pthread;
	enum mutex_class class;
};

#define MUTEX_INIT(c)                                                                              \
	{                                                                                          \
		.pthread = PTHREAD_MUTEX_INITIALIZER, .class = (c)                                 \
	}

/* Where in the source a mutex was taken, or was to be. */
struct mutex_place {
	const char *file, *func;
	int line;
};
#define MUTEX_HERE ((struct mutex_place){__FILE__, __func__, __LINE__})

void mutex_init(struct mutex *m, enum mutex_class c);
void mutex_destroy_at(struct mutex *m, struct mutex_place at) MUTEX_EXCLUDES(m);
void mutex_lock_at(struct mutex *m, struct mutex_place at) MUTEX_ACQUIRES(m);
void mutex_unlock_at(struct mutex *m, struct mutex_place at) MUTEX_RELEASES(m);
void mutex_wait_at(struct mutex *m, pthread_cond_t *cond, struct mutex_place at) MUTEX_REQUIRES(m);
int mutex_wait_until_at(struct mutex *m, pthread_cond_t *cond, const struct timespec *until,
	struct mutex_place at) MUTEX_REQUIRES(m);
void mutex_assert_held_at(const struct mutex *m, struct mutex_place at) MUTEX_ASSERTS(m);
void mutex_assert_none_at(struct mutex_place at);

#define mutex_destroy(m)                 mutex_destroy_at((m), MUTEX_HERE)
#define mutex_lock(m)                    mutex_lock_at((m), MUTEX_HERE)
#define mutex_unlock(m)                  mutex_unlock_at((m), MUTEX_HERE)
#define mutex_wait(m, cond)              mutex_wait_at((m), (cond), MUTEX_HERE)
#define mutex_wait_until(m, cond, until) mutex_wait_until_at((m), (cond), (until), MUTEX_HERE)
#define mutex_assert_held(m)             mutex_assert_held_at((m), MUTEX_HERE)
#define mutex_assert_none()              mutex_assert_none_at(MUTEX_HERE)

#else

struct mutex {
	pthread_mutex_t pthread;
};

#define MUTEX_INIT(c)                                                                              \
	{                                                                                          \
		.pthread = PTHREAD_MUTEX_INITIALIZER                                               \
	}

static inline void mutex_init(struct mutex *m, enum mutex_class c)
{
	pthread_mutex_init(&m->pthread, NULL);
}

static inline void mutex_destroy(struct mutex *m)
{
	pthread_mutex_destroy(&m->pthread);
}

static inline void mutex_lock(struct mutex *m)
{
	pthread_mutex_lock(&m->pthread);
}

static inline void mutex_unlock(struct mutex *m)
{
	pthread_mutex_unlock(&m->pthread);
}

static inline void mutex_wait(struct mutex *m, pthread_cond_t *cond)
{
	pthread_cond_wait(cond, &m->pthread);
}

static inline int mutex_wait_until(
	struct mutex *m, pthread_cond_t *cond, const struct timespec *until)
{
	return pthread_cond_timedwait(cond, &m->pthread, until);
}

static inline void mutex_assert_held(const struct mutex *m)
{
}

static inline void mutex_assert_none(void)
{
}

#endif

#endif
