/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mutex.h"
#include "reactor.h"

#if !MUTEX_CHECKED
static_assert(sizeof(struct mutex) == sizeof(pthread_mutex_t), "the checker costs a release");
#endif

/* By their order: states, inode, unstable. */
static struct mutex states, inode, inode2, unstable;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void setup(void)
{
	mutex_init(&states, MUTEX_NFS4_STATES);
	mutex_init(&inode, MUTEX_FS_INODE);
	mutex_init(&inode2, MUTEX_FS_INODE);
	mutex_init(&unstable, MUTEX_FS_UNSTABLE);
}

TestSuite(mutex, .init = setup, .timeout = 60);

/* ---- in each build ---- */

Test(mutex, locks_are_taken_in_their_order)
{
	mutex_lock(&states);
	mutex_lock(&inode);
	mutex_lock(&unstable);
	mutex_assert_held(&inode);
	mutex_unlock(&unstable);
	mutex_unlock(&inode);
	mutex_unlock(&states);
	mutex_assert_none();
}

Test(mutex, locks_are_dropped_in_any_order)
{
	mutex_lock(&states);
	mutex_lock(&inode);
	mutex_unlock(&states);
	mutex_lock(&unstable);
	mutex_unlock(&inode);
	mutex_assert_held(&unstable);
	mutex_unlock(&unstable);
	/* Nothing that was dropped counts any more. */
	mutex_lock(&states);
	mutex_unlock(&states);
}

Test(mutex, two_of_a_class_are_taken_one_after_the_other)
{
	mutex_lock(&inode);
	mutex_unlock(&inode);
	mutex_lock(&inode2);
	mutex_unlock(&inode2);
}

static void *take_keep(void *arg)
{
	mutex_lock(&unstable);
	mutex_unlock(&unstable);
	return arg;
}

/* A lock that one thread holds says nothing about another. */
Test(mutex, each_thread_has_its_own_locks)
{
	pthread_t t;

	mutex_lock(&inode);
	cr_assert_eq(pthread_create(&t, NULL, take_keep, NULL), 0);
	pthread_join(t, NULL);
	mutex_unlock(&inode);
}

Test(mutex, destroyed_ones_may_be_made_again)
{
	mutex_destroy(&inode);
	mutex_init(&inode, MUTEX_FS_INODE);
	mutex_lock(&inode);
	mutex_unlock(&inode);
	mutex_destroy(&inode);
}

static struct mutex fixed = MUTEX_INIT(MUTEX_LOG_SINK);

Test(mutex, a_static_one_needs_no_call)
{
	mutex_lock(&states);
	mutex_lock(&fixed);
	mutex_unlock(&fixed);
	mutex_unlock(&states);
}

static bool flag; /* unstable */

static void *raise_flag(void *arg)
{
	mutex_lock(&unstable);
	flag = true;
	pthread_cond_signal(&cond);
	mutex_unlock(&unstable);
	return arg;
}

Test(mutex, a_wait_lets_others_in_and_holds_it_again)
{
	pthread_t t;

	mutex_lock(&unstable);
	cr_assert_eq(pthread_create(&t, NULL, raise_flag, NULL), 0);
	while (!flag)
		mutex_wait(&unstable, &cond);
	mutex_assert_held(&unstable);
	mutex_unlock(&unstable);
	pthread_join(t, NULL);
}

Test(mutex, a_wait_ends_at_its_time)
{
	struct timespec past = {.tv_sec = 1};

	mutex_lock(&unstable);
	cr_assert_eq(mutex_wait_until(&unstable, &cond, &past), ETIMEDOUT);
	mutex_assert_held(&unstable);
	mutex_unlock(&unstable);
}

#if MUTEX_CHECKED

/* ---- with the checker ---- */

#ifdef __clang__ /* It sees most of them, too. */
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

/* The checker's words when fn() ran in a process of its own, which it had to abort. */
static const char *caught(void (*fn)(void))
{
	static char text[16384];
	size_t len = 0;
	int p[2], status;
	ssize_t n;
	pid_t pid;

	cr_assert_eq(pipe(p), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		dup2(p[1], STDERR_FILENO);
		close(p[0]);
		close(p[1]);
		fn();
		_exit(0);
	}
	close(p[1]);
	while ((n = read(p[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(p[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "not caught; it wrote: %s",
		text);
	return text;
}

static void says(const char *text, const char *what)
{
	cr_assert(strstr(text, what), "no \"%s\" in: %s", what, text);
}

static void take_against_the_order(void)
{
	mutex_lock(&unstable);
	mutex_lock(&inode);
}

Test(mutex, two_locks_in_the_wrong_order_are_caught)
{
	const char *text = caught(take_against_the_order);

	/* Both names, and where each was taken. */
	says(text, "takes fs_inode.lock");
	says(text, "held: fs_unstable_lane.lock");
	says(text, "test_mutex.c");
	says(text, "take_against_the_order()");
	says(text, "calls:");
}

static void take_two_inodes(void)
{
	mutex_lock(&inode);
	mutex_lock(&inode2);
}

Test(mutex, two_of_a_class_are_caught)
{
	const char *text = caught(take_two_inodes);

	says(text, "takes fs_inode.lock");
	says(text, "held: fs_inode.lock");
}

static void take_twice(void)
{
	mutex_lock(&inode);
	mutex_lock(&inode);
}

Test(mutex, a_lock_that_is_held_is_not_waited_for)
{
	says(caught(take_twice), "held: fs_inode.lock");
}

static void take_behind_two(void)
{
	mutex_lock(&states);
	mutex_lock(&unstable);
	mutex_lock(&inode);
}

Test(mutex, all_that_is_held_is_told_the_innermost_first)
{
	const char *text = caught(take_behind_two), *first;

	first = strstr(text, "held: fs_unstable_lane.lock");
	cr_assert(first, "%s", text);
	says(first, "held: nfs4_states.lock");
}

static void drop_what_is_not_held(void)
{
	mutex_unlock(&inode);
}

Test(mutex, dropping_a_lock_that_is_not_held_is_caught)
{
	says(caught(drop_what_is_not_held), "does not hold, but unlocks fs_inode.lock");
}

static void *drop_inode(void *arg)
{
	mutex_unlock(&inode);
	return arg;
}

static void drop_for_another(void)
{
	pthread_t t;

	mutex_lock(&inode);
	pthread_create(&t, NULL, drop_inode, NULL);
	pthread_join(t, NULL);
}

Test(mutex, dropping_another_threads_lock_is_caught)
{
	says(caught(drop_for_another), "does not hold, but unlocks fs_inode.lock");
}

static void wait_without(void)
{
	mutex_wait(&unstable, &cond);
}

static void wait_with_two(void)
{
	struct timespec past = {.tv_sec = 1};

	mutex_lock(&inode);
	mutex_lock(&unstable);
	mutex_wait_until(&unstable, &cond, &past);
}

Test(mutex, waiting_is_for_who_holds_that_lock_alone)
{
	const char *text;

	says(caught(wait_without), "does not hold, but waits with fs_unstable_lane.lock");
	text = caught(wait_with_two);
	says(text, "waits with more than fs_unstable_lane.lock");
	says(text, "held: fs_inode.lock");
}

static void *end_with_inode(void *arg)
{
	mutex_lock(&inode);
	return arg;
}

static void end_a_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, end_with_inode, NULL);
	pthread_join(t, NULL);
}

Test(mutex, a_thread_that_ends_with_a_lock_is_caught)
{
	const char *text = caught(end_a_thread);

	says(text, "a thread ends");
	says(text, "held: fs_inode.lock");
}

static void use_zeros(void)
{
	static struct mutex m;

	mutex_lock(&m);
}

static void use_destroyed(void)
{
	mutex_destroy(&inode);
	mutex_lock(&inode);
}

static void destroy_held(void)
{
	mutex_lock(&inode);
	mutex_destroy(&inode);
}

Test(mutex, one_that_is_not_alive_is_caught)
{
	says(caught(use_zeros), "not initialised");
	says(caught(use_destroyed), "not initialised");
	says(caught(destroy_held), "destroys fs_inode.lock");
}

static void want_held(void)
{
	mutex_assert_held(&inode);
}

static void want_none(void)
{
	mutex_lock(&inode);
	mutex_assert_none();
}

Test(mutex, a_contract_that_is_broken_is_caught)
{
	says(caught(want_held), "should hold fs_inode.lock");
	says(caught(want_none), "held: fs_inode.lock");
}

static void enter_the_reactor(void)
{
	struct reactor *r = reactor_new();

	mutex_lock(&unstable);
	reactor_turn(r, 0);
}

Test(mutex, a_reactor_waits_for_nobody_who_holds_a_lock)
{
	says(caught(enter_the_reactor), "held: fs_unstable_lane.lock");
}

#endif
