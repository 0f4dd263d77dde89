/* SPDX-License-Identifier: BSD-3-Clause */
/* What an owner holds, against an array of bytes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_lock.h"

#define BYTES 48

static struct list ranges;
static struct nfs4_lockrange *spare[2];

static void setup(void)
{
	list_init(&ranges);
}

static void refill(void)
{
	for (int i = 0; i < 2; i++)
		if (!spare[i])
			spare[i] = malloc(sizeof(*spare[i]));
}

static void set(uint64_t first, uint64_t last, bool write)
{
	refill();
	nfs4_lockrange_set(&ranges, first, last, write, spare);
}

static void clear(uint64_t first, uint64_t last)
{
	refill();
	nfs4_lockrange_clear(&ranges, first, last, spare);
	cr_assert(spare[0] || spare[1], "one is enough");
}

static void teardown(void)
{
	nfs4_lockrange_drop(&ranges);
	cr_assert(list_empty(&ranges));
	free(spare[0]);
	free(spare[1]);
	spare[0] = spare[1] = NULL;
}

static void is(const char *want)
{
	char got[256] = "", one[64];

	list_for_each (node, &ranges) {
		const struct nfs4_lockrange *r = container_of(node, struct nfs4_lockrange, link);

		if (r->last == UINT64_MAX)
			snprintf(one, sizeof(one), "%c%lu-end ", r->write ? 'w' : 'r',
				(unsigned long)r->first);
		else
			snprintf(one, sizeof(one), "%c%lu-%lu ", r->write ? 'w' : 'r',
				(unsigned long)r->first, (unsigned long)r->last);
		strcat(got, one);
	}
	cr_assert_str_eq(got, want);
}

Test(nfs4_lockrange, splits_merges_upgrades_and_downgrades, .init = setup, .fini = teardown)
{
	set(10, 19, false);
	is("r10-19 ");
	set(20, 29, false);
	is("r10-29 ");
	set(40, 49, false);
	set(30, 39, false);
	is("r10-49 ");
	set(20, 29, true);
	is("r10-19 w20-29 r30-49 ");
	set(20, 29, false);
	is("r10-49 ");
	clear(15, 15);
	is("r10-14 r16-49 ");
	clear(0, 11);
	is("r12-14 r16-49 ");
	clear(40, UINT64_MAX);
	is("r12-14 r16-39 ");
	set(0, UINT64_MAX, true);
	is("w0-end ");
	clear(100, 199);
	is("w0-99 w200-end ");
	set(UINT64_MAX, UINT64_MAX, false);
	is("w0-99 w200-18446744073709551614 r18446744073709551615-end ");
	clear(0, UINT64_MAX);
	is("");
}

Test(nfs4_lockrange, lengths_and_ends)
{
	cr_assert_eq(nfs4_lock_last(10, 5), 14);
	cr_assert_eq(nfs4_lock_last(10, NFS4_LOCK_TO_END), UINT64_MAX);
	cr_assert_eq(nfs4_lock_length(10, 14), 5);
	cr_assert_eq(nfs4_lock_length(10, UINT64_MAX), NFS4_LOCK_TO_END);
}

/* Disjoint, ascending, no neighbours of one kind, and what the bytes say. */
static void compare(const char *bytes)
{
	char got[BYTES];
	const struct nfs4_lockrange *before = NULL;

	memset(got, '.', sizeof(got));
	list_for_each (node, &ranges) {
		const struct nfs4_lockrange *r = container_of(node, struct nfs4_lockrange, link);

		cr_assert(r->first <= r->last && r->last < BYTES);
		cr_assert(!before || before->last + 1 < r->first ||
			  (before->last + 1 == r->first && before->write != r->write));
		memset(got + r->first, r->write ? 'w' : 'r', r->last - r->first + 1);
		before = r;
	}
	cr_assert_arr_eq(got, bytes, BYTES);
}

Test(nfs4_lockrange, are_what_the_bytes_say, .init = setup, .fini = teardown)
{
	unsigned int seed = 3;
	char bytes[BYTES];

	memset(bytes, '.', sizeof(bytes));
	for (int i = 0; i < 20000; i++) {
		unsigned int r = (unsigned int)rand_r(&seed);
		unsigned int first = r % BYTES, len = 1 + r / 64 % 12, what = r / 1024 % 3;
		unsigned int last = first + len < BYTES ? first + len - 1 : BYTES - 1;
		bool any = false;

		for (unsigned int k = first; k <= last; k++)
			any = any || bytes[k] != '.';
		cr_assert_eq(nfs4_lockrange_overlap(&ranges, first, last), any);
		memset(bytes + first, ".rw"[what], last - first + 1);
		if (what)
			set(first, last, what == 2);
		else
			clear(first, last);
		compare(bytes);
	}
}
