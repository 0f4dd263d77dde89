/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that the kernel may walk: what is kept of them, and for how long. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fs_dentry.h"

#define S    NSEC_PER_SEC
#define GOOD (60 * S)

static struct fs_dentries *store;

static void tear_down(void)
{
	fs_dentry_store_free(store);
	store = NULL;
	cr_expect_eq(fs_dentry_store_bytes(), 0, "%zu bytes are left", fs_dentry_store_bytes());
}

TestSuite(fs_dentry_store, .fini = tear_down);

static void add(const char *name, uint64_t now_ns)
{
	uint32_t known = 0;

	cr_assert(fs_dentry_store_add(&store, name, &known, now_ns, GOOD));
	cr_assert_neq(known, 0);
}

static unsigned int seen, stop_after;
static char last[FS_NAME_MAX + 1];

static bool see(void *ctx, const char *name, size_t len)
{
	cr_assert_eq(strlen(name), len);
	if (ctx && strcmp(ctx, name) != 0)
		return true;
	strcpy(last, name);
	return ++seen != stop_after;
}

/* How often a name is there; NULL: all of them. */
static unsigned int count(const char *name)
{
	seen = stop_after = 0;
	fs_dentry_store_each(store, see, (void *)(uintptr_t)name);
	return seen;
}

Test(fs_dentry_store, names_of_any_length_come_back)
{
	char name[FS_NAME_MAX + 1];

	for (unsigned int len = 1; len <= FS_NAME_MAX; len++) {
		memset(name, 'a' + (int)(len % 26), len);
		name[len] = '\0';
		add(name, 100 * S);
	}
	cr_assert_eq(count(NULL), FS_NAME_MAX);
	cr_assert_eq(store->count, FS_NAME_MAX);
	for (unsigned int len = 1; len <= FS_NAME_MAX; len++) {
		memset(name, 'a' + (int)(len % 26), len);
		name[len] = '\0';
		cr_assert_eq(count(name), 1, "of %u bytes", len);
	}
}

Test(fs_dentry_store, a_name_takes_little_more_than_its_length)
{
	char name[16];

	for (unsigned int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "file%06u", i);
		add(name, 100 * S);
	}
	cr_assert_eq(store->count, 100000);
	cr_assert_lt(fs_dentry_store_bytes(), 100000u * 12);
	fs_dentry_store_free(store);
	store = NULL;
	cr_assert_eq(fs_dentry_store_bytes(), 0);
	add("one", 100 * S);
	cr_assert_leq(fs_dentry_store_bytes(), 112);
}

Test(fs_dentry_store, a_file_that_is_told_again_is_noted_once_a_period)
{
	uint32_t known = 0, other = 0;
	struct fs_dentries *elsewhere = NULL;

	for (unsigned int i = 0; i < 60; i++)
		cr_assert(fs_dentry_store_add(&store, "f", &known, (100 + i) * S, GOOD));
	cr_assert_eq(count("f"), 1);
	cr_assert(fs_dentry_store_add(&store, "f", &known, 160 * S, GOOD));
	cr_assert_eq(count("f"), 2);
	/* Another name of it, another directory, another file. */
	cr_assert(fs_dentry_store_add(&store, "g", &known, 160 * S, GOOD));
	cr_assert_eq(count("g"), 1);
	cr_assert(fs_dentry_store_add(&elsewhere, "g", &known, 160 * S, GOOD));
	cr_assert_eq(elsewhere->count, 1);
	fs_dentry_store_free(elsewhere);
	cr_assert(fs_dentry_store_add(&store, "h", &other, 160 * S, GOOD));
	cr_assert_eq(count("h"), 1);
	cr_assert_eq(store->count, 4);
}

Test(fs_dentry_store, what_a_store_that_was_taken_knew_is_noted_anew)
{
	uint32_t known = 0;

	cr_assert(fs_dentry_store_add(&store, "f", &known, 100 * S, GOOD));
	fs_dentry_store_free(store);
	store = NULL;
	cr_assert(fs_dentry_store_add(&store, "f", &known, 101 * S, GOOD));
	cr_assert_eq(count("f"), 1);
}

Test(fs_dentry_store, a_name_stays_as_long_as_it_can_be_good)
{
	uint32_t known = 0;

	cr_assert(fs_dentry_store_add(&store, "f", &known, 100 * S, GOOD));
	cr_assert(fs_dentry_store_add(&store, "f", &known, 159 * S, GOOD)); /* good until 219 s */
	add("x", 160 * S);
	add("y", 219 * S);
	cr_assert_eq(count("f"), 1);
	add("z", 220 * S);
	cr_assert_eq(count("f"), 0);
	cr_assert_eq(count("x") + count("y") + count("z"), 3);
	cr_assert_eq(store->count, 3);
	add("later", 340 * S);
	cr_assert_eq(count(NULL), 1, "all others are over");
	cr_assert_eq(store->count, 1);
}

Test(fs_dentry_store, telling_ends_when_it_is_told_to)
{
	add("a", 100 * S);
	add("b", 100 * S);
	add("c", 160 * S);
	seen = 0;
	stop_after = 1;
	fs_dentry_store_each(store, see, NULL);
	cr_assert_eq(seen, 1);
	cr_assert_str_eq(last, "c", "the newest first");
}

static struct nfs4_attr dir_attr(uint32_t mode)
{
	return (struct nfs4_attr){
		.valid = NFS4_ATTR_STAT,
		.type = NF4DIR,
		.mode = mode,
		.uid = 10,
		.gid = 20,
	};
}

static bool shrinks(uint32_t before, uint32_t after)
{
	struct nfs4_attr old = dir_attr(before), a = dir_attr(after);

	return fs_dentry_search_shrinks(&old, &a);
}

Test(fs_dentry_store, the_right_to_search_shrinks_with_any_x)
{
	cr_expect(shrinks(0755, 0700));
	cr_expect(shrinks(0755, 0655));
	cr_expect(shrinks(0755, 0745));
	cr_expect(shrinks(0711, 0170));
	cr_expect(shrinks(0100, 0));
	cr_expect_not(shrinks(0755, 0711));
	cr_expect_not(shrinks(0700, 0755));
	cr_expect_not(shrinks(0644, 0));
	cr_expect_not(shrinks(0755, 07755));
}

Test(fs_dentry_store, another_owner_or_group_matters_where_not_all_may_search)
{
	struct nfs4_attr old = dir_attr(0711), a = dir_attr(0711);

	a.uid = 11;
	a.gid = 21;
	cr_expect_not(fs_dentry_search_shrinks(&old, &a));
	old = a = dir_attr(0750);
	a.uid = 11;
	cr_expect(fs_dentry_search_shrinks(&old, &a));
	a = old;
	a.gid = 21;
	cr_expect(fs_dentry_search_shrinks(&old, &a));
	a.valid &= ~(uint32_t)NFS4_ATTR_MODE;
	cr_expect(fs_dentry_search_shrinks(&old, &a), "it has the mode that it had");
	a.valid &= ~(uint32_t)NFS4_ATTR_GROUP;
	cr_expect_not(fs_dentry_search_shrinks(&old, &a), "nothing is said of the group");
}

Test(fs_dentry_store, only_directories_are_searched_and_only_what_is_known_can_shrink)
{
	struct nfs4_attr old = dir_attr(0755), a = dir_attr(0);

	old.type = a.type = NF4REG;
	cr_expect_not(fs_dentry_search_shrinks(&old, &a));
	old.type = a.type = NF4DIR;
	old.valid = 0;
	cr_expect_not(fs_dentry_search_shrinks(&old, &a));
	old.valid = NFS4_ATTR_STAT;
	a.valid = NFS4_ATTR_CHANGE;
	cr_expect_not(fs_dentry_search_shrinks(&old, &a));
}
