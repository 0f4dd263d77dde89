/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "live_int.h"
#include "live_writer.h"

enum {
	TYPE = 7,
	VALUE = 1,
	BYTES = 2,
	COUNT = 3
};

static struct live *l;
static struct tables_out t; /* of one record */
static int file = -1;       /* what live_tables() writes */
static struct tables_in in;
static struct tables_record r;

static void set_up(void)
{
	l = live_new();
	cr_assert_not_null(l);
	tables_begin_in(&t);
	file = memfd_create("tables", MFD_CLOEXEC);
	cr_assert_geq(file, 0);
}

static void tear_down(void)
{
	tables_close(&in);
	close(file);
	tables_end_in(&t);
	live_free(l);
}

TestSuite(live, .init = set_up, .fini = tear_down, .timeout = 240);

static const uint8_t *bytes_of(uint64_t value)
{
	static _Thread_local uint8_t bytes[TABLES_FIELD_MAX];

	memset(bytes, (int)(value * 31 + 7) & 0xff, sizeof(bytes));
	return bytes;
}

/* A record of the value, with `len` bytes that are made of it. */
static void make(struct tables_out *to, uint64_t value, size_t len)
{
	const uint8_t *bytes = bytes_of(value);

	tables_record(to, TYPE);
	tables_put(to, VALUE, value);
	for (; len > 0; len -= len < TABLES_FIELD_MAX ? len : TABLES_FIELD_MAX)
		tables_put_bytes(to, BYTES, bytes, len < TABLES_FIELD_MAX ? len : TABLES_FIELD_MAX);
}

static void put(live_ref *ref, const struct live_key *key, uint64_t value, size_t len)
{
	make(&t, value, len);
	live_put(l, ref, key, &t);
	cr_assert_neq(*ref, LIVE_NONE);
}

static int read_fd(int fd)
{
	struct tables_out out;
	int rc;

	tables_close(&in);
	cr_assert_eq(ftruncate(file, 0), 0);
	cr_assert_eq(lseek(file, 0, SEEK_SET), 0);
	tables_begin(&out, file);
	rc = live_tables(fd, &out);
	cr_assert_eq(tables_end(&out), 0);
	cr_assert_eq(tables_open(&in, file), 0);
	return rc;
}

/* The next record: its value, and the bytes that belong to it, of which there are `len`. */
static uint64_t next(size_t *len)
{
	uint64_t value;
	const uint8_t *p = NULL;
	size_t n;

	cr_assert(tables_next(&in, &r));
	cr_assert_eq(r.type, TYPE);
	value = tables_get(&r, VALUE);
	*len = 0;
	while ((p = tables_get_next(&r, BYTES, p, &n)) != NULL) {
		cr_assert_eq(memcmp(p, bytes_of(value), n), 0, "a mixture");
		*len += n;
	}
	return value;
}

static void expect(uint64_t value)
{
	size_t len;
	uint64_t has = next(&len);

	cr_assert_eq(has, value, "%ju in place of %ju", (uintmax_t)has, (uintmax_t)value);
}

static void expect_end(void)
{
	cr_assert_not(tables_next(&in, &r));
}

/* ---- one process ---- */

Test(live, records_come_in_their_order)
{
	static const struct live_key keys[] = {
		{.rank = 2, .group = 1, .minor = 1},
		{.rank = 1, .group = UINT64_MAX, .minor = 0},
		{.rank = 1, .group = 3, .minor = 9},
		{.rank = 1, .group = 3, .minor = 8},
		{.rank = 1, .group = 3, .minor = 9},
		{.rank = 255, .group = 0, .minor = 0},
	};
	static const uint64_t order[] = {3, 2, 4, 1, 0, 5};
	live_ref refs[6] = {0};
	int fd = dup(live_fd(l));

	cr_assert_eq(read_fd(fd), 0);
	expect_end();
	for (uint64_t i = 0; i < 6; i++)
		put(&refs[i], &keys[i], i, 10);
	/* Replaced, the older of two that are alike stays the older. */
	put(&refs[2], &keys[2], 2, 10);
	cr_assert_eq(read_fd(fd), 0);
	for (int i = 0; i < 6; i++)
		expect(order[i]);
	expect_end();
	close(fd);
}

Test(live, a_record_is_replaced_and_dropped)
{
	struct live_key key = {.rank = 1};
	live_ref a = LIVE_NONE, b = LIVE_NONE;
	uint64_t one;

	put(&a, &key, 1, 10);
	one = live_bytes(l);
	cr_assert_gt(one, 0);
	put(&b, &key, 2, 10);
	put(&a, &key, 3, 10);
	cr_assert_eq(live_bytes(l), 2 * one);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(3);
	expect(2);
	expect_end();
	/* The last put's key counts. */
	key.rank = 2;
	put(&a, &key, 4, 5000);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(2);
	expect(4);
	expect_end();
	live_drop(l, &b);
	cr_assert_eq(b, LIVE_NONE);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(4);
	expect_end();
	live_drop(l, &a);
	cr_assert_eq(live_bytes(l), 0);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_end();
}

Test(live, slots_are_used_again)
{
	struct live_head *h = mmap(NULL, LIVE_PAGE, PROT_READ, MAP_SHARED, live_fd(l), 0);
	struct live_key key = {.rank = 1};
	live_ref refs[100] = {0};

	cr_assert_neq(h, MAP_FAILED);
	for (int i = 0; i < 100000; i++) {
		put(&refs[i % 100], &key, (uint64_t)i, 40);
		if (i % 7 == 0)
			live_drop(l, &refs[i % 100]);
	}
	cr_assert_eq(h->used, LIVE_PAGE + LIVE_SMALL_CHUNK, "one chunk is enough for them");
	munmap(h, LIVE_PAGE);
}

/* Also when others have put and dropped meanwhile. */
Test(live, what_is_fetched_is_what_is_taken_next)
{
	struct live_key key = {.rank = 1};
	live_ref a = LIVE_NONE, b = LIVE_NONE, c = LIVE_NONE;
	const struct live_slots *s = &l->free[live_class_of(1000)];
	live_ref next;

	live_expect(l, 1000); /* none is there yet */
	cr_assert_eq(s->first, LIVE_NONE);
	put(&a, &key, 1, 1000);
	put(&b, &key, 2, 1000);
	next = s->first;
	live_expect(l, 1000);
	put(&c, &key, 3, 1000);
	cr_assert_eq(c, next);
	next = a;
	live_drop(l, &a);
	cr_assert_eq(s->first, next);
	put(&a, &key, 4, 1000);
	cr_assert_eq(a, next);
	live_expect(l, LIVE_RECORD_MAX);
	live_expect(l, SIZE_MAX / 2);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(2);
	expect(3);
	expect(4);
	expect_end();
}

Test(live, a_number_stands_beside_a_record)
{
	struct live_key key = {.rank = 1, .count_field = COUNT};
	live_ref with = LIVE_NONE, without = LIVE_NONE;

	put(&with, &key, 1, 10);
	key.count_field = 0;
	put(&without, &key, 2, 10);
	live_count(l, with, 0x123456789aull);
	live_count(l, without, 5);
	key.count_field = COUNT;
	put(&with, &key, 3, 300);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(3);
	cr_assert_eq(tables_get(&r, COUNT), 0x123456789aull);
	expect(2);
	cr_assert_eq(tables_get(&r, COUNT), 0);
	live_count(l, with, 0);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(3);
	cr_assert_eq(tables_get(&r, COUNT), 0);
	/* Nor has another record the number of the one whose slot it has. */
	live_count(l, with, 9);
	live_drop(l, &with);
	put(&with, &key, 4, 300);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(2);
	expect(4);
	cr_assert_eq(tables_get(&r, COUNT), 0);
}

static bool is_that(void *ctx, const struct tables_record *record)
{
	return tables_get(record, VALUE) == *(const uint64_t *)ctx;
}

Test(live, a_number_can_be_told_to_who_reads_it_later)
{
	static const struct live_key key = {.rank = 1, .count_field = COUNT};
	live_ref refs[3] = {LIVE_NONE, LIVE_NONE, LIVE_NONE};
	uint64_t second = 11;

	for (uint64_t i = 0; i < 3; i++)
		put(&refs[i], &key, 10 + i, 8);
	cr_assert_eq(
		live_tables_mark(live_fd(l), TYPE + 1, is_that, &second), 0, "of another type");
	cr_assert_eq(live_tables_mark(live_fd(l), TYPE, is_that, &second), 0);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	for (uint64_t i = 0; i < 3; i++) {
		cr_assert(tables_next(&in, &r));
		cr_assert_eq(tables_get(&r, COUNT), i == 1, "%u", (unsigned int)i);
	}
	cr_assert(live_is_complete(l));
	live_spoil(l);
	cr_assert_not(live_is_complete(l));
	cr_assert_eq(live_tables_mark(live_fd(l), TYPE, is_that, &second), -ENODATA);
}

Test(live, without_memory_nothing_is_done)
{
	struct live_key key = {.rank = 1};
	live_ref ref = LIVE_NONE;

	make(&t, 1, 10);
	live_put(NULL, &ref, &key, &t);
	cr_assert_eq(ref, LIVE_NONE);
	cr_assert_eq(t.used, 0);
	live_drop(NULL, &ref);
	live_drop(l, &ref);
	live_count(NULL, ref, 1);
	live_count(l, ref, 1);
	live_free(NULL);
	cr_assert_eq(live_bytes(NULL), 0);
}

Test(live, records_of_all_sizes)
{
	struct live_key key = {.rank = 1};
	live_ref refs[5000] = {0}, big[5] = {0};
	/* 35 fields of the first three, 17 of a MiB */
	static const size_t lens[5] = {2u << 20, LIVE_RECORD_MAX - 8 - 5 - 33 * 4, 1u << 20, 70000,
		12 * 1024 - 128 - 8 - 5 - 4};
	size_t len;

	for (size_t i = 0; i < 5000; i++)
		put(&refs[i], &key, i, i);
	key.rank = 2;
	for (uint64_t round = 1; round <= 3; round++)
		for (size_t i = 0; i < 5; i++)
			put(&big[i], &key, round, lens[i]);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		cr_assert_eq(next(&len), i);
		cr_assert_eq(len, i);
	}
	for (int i = 0; i < 5; i++) {
		cr_assert_eq(next(&len), 3);
		cr_assert_eq(len, lens[i]);
	}
	expect_end();
}

/* ---- not complete ---- */

Test(live, without_room_it_is_not_complete)
{
	const struct rlimit small = {.rlim_cur = LIVE_SIZE_MIN, .rlim_max = LIVE_SIZE_MIN};
	struct live_key key = {.rank = 1};
	live_ref ref, kept = LIVE_NONE;
	unsigned int n = 0;

	live_free(l);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	l = live_new();
	cr_assert_not_null(l);
	put(&kept, &key, 1, 10);
	do {
		ref = LIVE_NONE;
		make(&t, 2, 2u << 20);
		live_put(l, &ref, &key, &t);
		cr_assert_eq(t.used, 0);
	} while (ref != LIVE_NONE && ++n);
	cr_assert_eq(n, 3);
	cr_assert_eq(read_fd(live_fd(l)), -ENODATA);
	expect_end();
	ref = kept;
	make(&t, 3, 2u << 20);
	live_put(l, &kept, &key, &t);
	cr_assert_eq(kept, ref, "the old one stays");
}

Test(live, a_record_that_failed_or_is_too_long_is_missing)
{
	struct live_key key = {.rank = 1};
	live_ref ref = LIVE_NONE, was;

	put(&ref, &key, 1, 10);
	was = ref;
	make(&t, 2, LIVE_RECORD_MAX - 8 - 5 - 33 * 4 + 1);
	live_put(l, &ref, &key, &t);
	cr_assert_eq(ref, was);
	cr_assert_eq(read_fd(live_fd(l)), -ENODATA);
	live_free(l);
	l = live_new();
	cr_assert_not_null(l);
	ref = LIVE_NONE;
	make(&t, 2, 10);
	t.err = -ENOMEM;
	live_put(l, &ref, &key, &t);
	cr_assert_eq(ref, LIVE_NONE);
	cr_assert_eq(t.err, 0, "the next record is another matter");
	put(&ref, &key, 3, 10);
	cr_assert_eq(read_fd(live_fd(l)), -ENODATA, "for good");
}

/* ---- two processes ---- */

enum {
	RECORDS = 20
};

/* The version decides the length too: so slots of several classes are taken and given back. */
static size_t len_of(uint64_t version, uint64_t i)
{
	return (version * 37 + i * 101) % 3000 + (version % 5 == 0 ? 9000 : 0);
}

static void put_round(live_ref *refs, uint64_t version)
{
	for (uint64_t i = 0; i < RECORDS; i++) {
		struct live_key key = {.rank = 1, .group = i, .count_field = COUNT};

		make(&t, version * RECORDS + i, len_of(version, i));
		live_put(l, &refs[i], &key, &t);
	}
}

Test(live, who_is_killed_leaves_one_version_of_each)
{
	_Atomic uint64_t *rounds =
		mmap(NULL, LIVE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(rounds, MAP_FAILED);
	srandom(1);
	for (int kills = 0; kills < 50; kills++) {
		uint64_t at = (uint64_t)random() % 100, first = 0;
		live_ref refs[RECORDS] = {0};
		pid_t child;
		size_t len;

		live_free(l);
		l = live_new();
		cr_assert_not_null(l);
		put_round(refs, 1);
		atomic_store(rounds, 1);
		child = fork();
		cr_assert_geq(child, 0);
		if (child == 0)
			for (uint64_t version = 2;; version++) {
				put_round(refs, version);
				atomic_store(rounds, version);
			}
		while (atomic_load(rounds) < at)
			sched_yield();
		for (volatile long wait = random() % 10000; wait > 0; wait--)
			;
		cr_assert_eq(kill(child, SIGKILL), 0);
		cr_assert_eq(waitpid(child, NULL, 0), child);
		cr_assert_eq(read_fd(live_fd(l)), 0);
		for (uint64_t i = 0, last = 0; i < RECORDS; i++) {
			uint64_t value = next(&len), version = value / RECORDS;

			cr_assert_eq(value % RECORDS, i);
			cr_assert_eq(len, len_of(version, i));
			first = i == 0 ? version : first;
			cr_assert(i == 0 || version <= last, "a later one is newer");
			cr_assert_leq(first - version, 1);
			last = version;
		}
		cr_assert_geq(first, atomic_load(rounds));
		expect_end();
	}
	munmap(rounds, LIVE_PAGE);
}

/* As if the process had died between the two stores of a put. */
Test(live, of_two_versions_the_newer_counts)
{
	struct live_key key = {.rank = 9, .group = 9};
	uint8_t slot[2][128];
	live_ref ref = LIVE_NONE;
	off_t at[2];

	/* The newer one is found first, then last. */
	for (int i = 0; i < 2; i++) {
		for (int version = 0; version < 2; version++) {
			put(&ref, &key, (uint64_t)(10 * i + version), 10);
			at[version] = (off_t)ref * LIVE_UNIT;
			cr_assert_eq(pread(live_fd(l), slot[version], 128, at[version]), 128);
			key.rank--;
		}
		cr_assert_eq(pwrite(live_fd(l), slot[0], 128, at[0]), 128);
		cr_assert_eq(read_fd(live_fd(l)), 0);
		expect((uint64_t)(10 * i + 1));
		expect_end();
		cr_assert_eq(pwrite(live_fd(l), "\0\0\0\0\0\0\0", 8, at[0]), 8);
		put(&ref, &key, 5, 10);
	}
}

/* ---- threads ---- */

static void *put_many(void *arg)
{
	struct live_key key = {.rank = 1, .group = (uintptr_t)arg, .count_field = COUNT};
	live_ref refs[100] = {0};
	struct tables_out mine;

	tables_begin_in(&mine);
	for (uint64_t i = 0; i < 20000; i++) {
		live_ref *ref = &refs[i % 100];

		make(&mine, i, i % 100 == 0 ? 9000 : i % 300);
		live_put(l, ref, &key, &mine);
		live_count(l, *ref, i + 1);
		if (i < 19900 && i % 7 == 0)
			live_drop(l, ref);
	}
	tables_end_in(&mine);
	return NULL;
}

Test(live, many_threads_put_at_once)
{
	pthread_t threads[8];
	size_t len;

	for (uintptr_t i = 0; i < 8; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, put_many, (void *)i), 0);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	for (int i = 0; i < 8; i++) {
		bool there[100] = {false};

		for (int n = 0; n < 100; n++) {
			uint64_t value = next(&len);

			cr_assert_geq(value, 19900);
			cr_assert_not(there[value % 100]);
			there[value % 100] = true;
			cr_assert_eq(tables_get(&r, COUNT), value + 1);
		}
	}
	expect_end();
}

/* ---- damage ---- */

/* Byte `at` is another one. False: that is noticed; else nothing but the number has changed. */
static bool passes(off_t at, uint8_t change)
{
	uint8_t good, bad;
	int rc;

	cr_assert_eq(pread(live_fd(l), &good, 1, at), 1);
	bad = good ^ change;
	cr_assert_eq(pwrite(live_fd(l), &bad, 1, at), 1);
	rc = read_fd(live_fd(l));
	cr_assert_eq(pwrite(live_fd(l), &good, 1, at), 1);
	cr_assert(rc == 0 || rc == -EBADMSG, "byte %jd: %d", (intmax_t)at, rc);
	if (rc == 0)
		for (uint64_t i = 1; i <= 3; i++)
			expect(i);
	expect_end();
	return rc == 0;
}

Test(live, damage_is_noticed_or_changes_nothing)
{
	const off_t used = LIVE_PAGE + LIVE_SMALL_CHUNK;
	struct live_key key = {.rank = 1, .count_field = COUNT};
	live_ref refs[4] = {0};

	for (uint64_t i = 0; i < 4; i++)
		put(&refs[i], &key, i, 700);
	live_drop(l, &refs[0]);
	for (off_t at = 0; at < used + (off_t)sizeof(struct live_chunk); at++)
		(void)passes(at, 0xff);
	for (int bit = 0; bit < 8; bit++) {
		for (off_t at = 0; at < (off_t)sizeof(struct live_head); at++)
			cr_assert_not(passes(at, (uint8_t)(1 << bit)));
		for (off_t at = LIVE_PAGE; at < (off_t)(LIVE_PAGE + sizeof(struct live_chunk));
			at++)
			cr_assert_not(passes(at, (uint8_t)(1 << bit)));
		for (off_t at = 0; at < (off_t)sizeof(struct live_slot); at++)
			cr_assert_eq(passes((off_t)refs[1] * LIVE_UNIT + at, (uint8_t)(1 << bit)),
				at >= 8 && at < 16, "byte %jd: the number alone", (intmax_t)at);
	}
}

/* The slot's checksum is that of what it has; the reader refuses it. */
static void refuses(struct live_slot *slot, const char *why)
{
	slot->crc = live_crc(slot->seq, &slot->about, slot + 1);
	cr_assert_eq(read_fd(live_fd(l)), -EBADMSG, "%s", why);
}

Test(live, what_is_wrong_is_refused_whatever_the_checksum_says)
{
	struct live_key key = {.rank = 1};
	struct live_about good;
	struct live_slot *slot;
	live_ref ref = LIVE_NONE;
	uint8_t *map = mmap(NULL, 1u << 20, PROT_READ | PROT_WRITE, MAP_SHARED, live_fd(l), 0);
	uint8_t *record;

	cr_assert_neq(map, MAP_FAILED);
	put(&ref, &key, 1, 10);
	slot = (struct live_slot *)(map + (size_t)ref * LIVE_UNIT);
	record = (uint8_t *)(slot + 1);
	good = slot->about;
	slot->about.len++;
	refuses(slot, "longer than its record");
	/* 5 bytes of VALUE, and BYTES that go on in the next slot: else it is a good record. */
	slot->about.len = 100;
	record[4] = 100 - 8;
	record[8 + 5 + 2] = 100 - 8 - 5 - 4;
	cr_assert(tables_is_record(record, 100));
	refuses(slot, "of another class");
	record[4] = (uint8_t)(good.len - 8);
	record[8 + 5 + 2] = 10;
	slot->about.len = UINT32_MAX;
	cr_assert_eq(read_fd(live_fd(l)), -EBADMSG);
	slot->about = good;
	slot->about.id = slot->seq + 1;
	refuses(slot, "younger than itself");
	slot->about = good;
	record[0] = TABLES_END;
	refuses(slot, "the end of a table");
	record[0] = TYPE;
	record[10]++;
	refuses(slot, "a field that ends behind it");
	record[10]--;
	slot->crc = live_crc(slot->seq, &slot->about, record);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	((struct live_chunk *)(map + LIVE_PAGE))->what = live_chunk_word(LIVE_CLASSES - 1);
	cr_assert_eq(read_fd(live_fd(l)), -EBADMSG);
	((struct live_chunk *)(map + LIVE_PAGE))->what = 0;
	cr_assert_eq(read_fd(live_fd(l)), -EBADMSG, "less than was used");
	munmap(map, 1u << 20);
}

/* A file with the begin of the memory. */
static int copy(off_t size, int seals)
{
	static uint8_t bytes[LIVE_PAGE + LIVE_SMALL_CHUNK];
	int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t len = size < (off_t)sizeof(bytes) ? (size_t)size : sizeof(bytes);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, size), 0);
	cr_assert_eq(pread(live_fd(l), bytes, sizeof(bytes), 0), sizeof(bytes));
	cr_assert_eq(pwrite(fd, bytes, len, 0), (ssize_t)len);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

Test(live, no_memory_but_the_whole_is_read)
{
	const off_t whole = lseek(live_fd(l), 0, SEEK_END);
	const off_t sizes[] = {
		0, 1, LIVE_PAGE, LIVE_PAGE + 64, LIVE_PAGE + LIVE_SMALL_CHUNK, whole - LIVE_PAGE};
	const uint32_t other = LIVE_VERSION + 1;
	struct live_key key = {.rank = 1};
	live_ref ref = LIVE_NONE;
	uint64_t size;
	int fd, pipes[2];

	put(&ref, &key, 1, 10);
	fd = copy(whole, F_SEAL_SHRINK);
	cr_assert_eq(read_fd(fd), 0);
	expect(1);
	cr_assert_eq(pwrite(fd, &other, sizeof(other), offsetof(struct live_head, version)),
		sizeof(other));
	cr_assert_eq(read_fd(fd), -EBADMSG, "another version");
	close(fd);
	fd = copy(whole, F_SEAL_SHRINK);
	size = (uint64_t)whole - LIVE_PAGE;
	cr_assert_eq(pwrite(fd, &size, 8, offsetof(struct live_head, size)), 8);
	cr_assert_eq(read_fd(fd), -EBADMSG, "longer than it says");
	close(fd);
	fd = copy(whole, 0);
	cr_assert_eq(read_fd(fd), -EBADMSG, "it may become shorter");
	close(fd);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fd = copy(sizes[i], F_SEAL_SHRINK);
		cr_assert_eq(read_fd(fd), -EBADMSG, "%jd bytes", (intmax_t)sizes[i]);
		close(fd);
	}
	/* The head says so too: the chunk does not fit. */
	size = 2 * LIVE_PAGE;
	fd = copy((off_t)size, 0);
	cr_assert_eq(pwrite(fd, &size, 8, offsetof(struct live_head, size)), 8);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	cr_assert_eq(read_fd(fd), -EBADMSG, "cut off");
	close(fd);
	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(read_fd(pipes[0]), -EBADMSG);
	cr_assert_eq(read_fd(file), -EBADMSG);
	cr_assert_eq(read_fd(-1), -EBADF);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- memory that the kernel writes into ---- */

static uint8_t *raws(size_t size, unsigned int cnt)
{
	static const struct live_key key = {.rank = 2, .count_field = COUNT};
	uint8_t *p = live_raw_pieces(l, &key, 9, BYTES, size, cnt);

	return p ? p + LIVE_PAGE - LIVE_RAW_LEAD : NULL;
}

/* The next record: len bytes with that number. */
static void expect_raw(size_t len, uint64_t count)
{
	const void *p = NULL;
	size_t n, all = 0;

	cr_assert(tables_next(&in, &r));
	cr_assert_eq(r.type, 9);
	cr_assert_eq(tables_get(&r, COUNT), count);
	while ((p = tables_get_next(&r, BYTES, p, &n)) != NULL)
		all += n;
	cr_assert_eq(all, len);
}

static void write_raw(uint8_t *raw, uint32_t len)
{
	memset(raw, 7, len);
	memcpy(raw, &len, sizeof(len));
}

Test(live, bytes_that_the_kernel_wrote_are_a_record)
{
	static const struct live_key other = {.rank = 1};
	uint32_t len = 100000;
	live_ref ref = LIVE_NONE, raw_ref;
	uint8_t *raw;

	put(&ref, &other, 1, 10);
	raw = raws(LIVE_PAGE + (1u << 20), 1);
	cr_assert_not_null(raw);
	raw_ref = live_raw_ref(l, raw);
	cr_assert(live_raw_reserve(l, raw_ref));
	live_raw_place(l, raw_ref, LIVE_RAW_LAST);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(1);
	expect_end(); /* nothing was written */
	write_raw(raw, len);
	live_count(l, raw_ref, 8);
	cr_assert_eq(live_counted(l, raw_ref), 8);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(1);
	expect_raw(len, 8);
	live_raw_place(l, raw_ref, LIVE_RAW_NONE);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(1);
	expect_end(); /* it is none any more */
	live_raw_place(l, raw_ref, LIVE_RAW_LAST);
	len = (1u << 20) + LIVE_RAW_LEAD + 1;
	memcpy(raw, &len, sizeof(len));
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(1);
	expect_end(); /* longer than the memory */
	live_spoil(l);
	cr_assert_eq(read_fd(live_fd(l)), -ENODATA);
}

Test(live, raw_records_have_their_place_among_the_others)
{
	static const struct live_key key = {
		.rank = 2, .group = 5, .count_field = COUNT, .count = 6};
	live_ref ref = LIVE_NONE, refs[3];
	size_t stride = 5 * LIVE_PAGE;
	uint8_t *first = raws(stride - 1, 3);

	for (uint32_t i = 0; i < 3; i++) {
		refs[i] = live_raw_ref(l, first + i * stride);
		write_raw(first + i * stride, 10 + i);
		cr_assert_eq(live_raw_placed(l, refs[i]), LIVE_RAW_NONE);
	}
	put(&ref, &key, 1, 10);
	live_raw_place(l, refs[0], LIVE_RAW_LAST);
	live_raw_place(l, refs[1], 6);
	live_raw_place(l, refs[2], 4);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_raw(12, 0);
	expect(1);
	cr_assert_eq(tables_get(&r, COUNT), 6);
	live_raw_place(l, refs[1], 5); /* it was there before the other one */
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_raw(12, 0);
	expect_raw(11, 0);
	expect(1);
	live_raw_place(l, refs[1], 6);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_raw(12, 0);
	expect(1);
	expect_raw(11, 0);
	expect_raw(10, 0);
	expect_end();
	/* Memory that is cut later lies behind them. */
	cr_assert_not_null(raws(stride, 1));
	live_drop(l, &ref);
	put(&ref, &key, 2, LIVE_CRC_MAX * 3);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_raw(12, 0);
	expect(2);
}

Test(live, small_pieces_are_records_too)
{
	static const struct live_key key = {.rank = 2, .count_field = COUNT};
	const size_t size = 192, cnt = 70;
	live_ref ref = LIVE_NONE, first;
	uint8_t *p = live_raw_small(l, &key, 9, BYTES, size, cnt);

	cr_assert_not_null(p);
	first = live_raw_ref(l, p);
	for (uint32_t i = 0; i < cnt; i++) {
		cr_assert_eq(live_raw_ref(l, p + i * size), first + i);
		cr_assert_eq(live_raw_placed(l, first + i), LIVE_RAW_NONE);
		memset(p + i * size, 7, size); /* its pages are there */
	}
	/* The last one as long as may be, the first one longer, one in between empty. */
	write_raw(p + (cnt - 1) * size, (uint32_t)size);
	live_count(l, first + cnt - 1, 3);
	live_raw_place(l, first + cnt - 1, 1);
	write_raw(p, 1);
	*(uint32_t *)p = (uint32_t)size + 1;
	live_raw_place(l, first, 2);
	memset(p + size, 0, size);
	live_raw_place(l, first + 1, 3);
	write_raw(p + 2 * size, 80);
	live_raw_place(l, first + 2, 4);
	put(&ref, &(struct live_key){.rank = 3}, 1, 10); /* behind them */
	cr_assert_not_null(raws(2 * LIVE_PAGE, 1));
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_raw(size, 3);
	expect_raw(80, 0);
	expect(1);
	expect_end();
	live_tables_trim(live_fd(l));
	live_raw_place(l, first + 2, LIVE_RAW_NONE);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_raw(size, 3);
	expect(1);
	expect_end();
	cr_assert_null(live_raw_small(l, &key, 9, BYTES, LIVE_PAGE - LIVE_UNIT, UINT32_MAX));
}

Test(live, raw_records_of_a_broken_writer_are_refused)
{
	uint8_t *raw = raws(3 * LIVE_PAGE, 2);
	uint8_t *map = mmap(NULL, 1u << 20, PROT_READ | PROT_WRITE, MAP_SHARED, live_fd(l), 0);
	struct live_slot *slot = (void *)(map + (size_t)live_raw_ref(l, raw) * LIVE_UNIT);
	struct live_chunk *c = (struct live_chunk *)slot - 1, good = *c;
	static const struct {
		uint64_t len, size, cnt;
		const char *why;
	} bad[] = {
		{0, LIVE_PAGE, 0, "pieces without room"},
		{0, 3 * LIVE_PAGE + 64, 0, "pieces that are not of pages"},
		{0, LIVE_UNIT / 2, 0, "small pieces that are no units"},
		{0, UINT64_MAX / LIVE_PAGE * LIVE_PAGE, 0, "pieces larger than their chunk"},
		{0, 0, 0x5555555555555556, "pieces whose bytes are not many, in 64 bits"},
		{0, 0, UINT64_MAX, "more pieces than fit"},
		{LIVE_SIZE_MAX, 0, 0, "a chunk that ends behind the memory"},
		{UINT64_MAX - LIVE_PAGE + 1, 0, 0, "a chunk that ends before it begins"},
		{6 * LIVE_PAGE, 0, 0, "a chunk without room for the heads"},
		{7 * LIVE_PAGE, LIVE_PAGE * 2, 3, "a page, where more heads are"},
		{7 * LIVE_PAGE - 64, 0, 0, "a chunk that is not of pages"},
	};

	cr_assert_neq(map, MAP_FAILED);
	write_raw(raw, 100);
	live_raw_place(l, live_raw_ref(l, raw), 1);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	slot->about.len++;
	refuses(slot, "longer than its piece");
	slot->about.len--;
	slot->about.minor = 0;
	refuses(slot, "not raw");
	slot->about.minor = LIVE_RAW;
	slot->crc = live_crc(slot->seq, &slot->about, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c->raw_len = bad[i].len ? bad[i].len : good.raw_len;
		c->raw_size = bad[i].size ? bad[i].size : good.raw_size;
		c->raw_cnt = bad[i].cnt ? bad[i].cnt : good.raw_cnt;
		cr_assert_eq(read_fd(live_fd(l)), -EBADMSG, "%s", bad[i].why);
	}
	*c = good;
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_raw(100, 0);
	c->what = live_chunk_word(0);
	cr_assert_eq(read_fd(live_fd(l)), -EBADMSG, "a length, where the class has one");
	munmap(map, 1u << 20);
}

Test(live, there_is_no_more_raw_memory_than_there_is)
{
	uint8_t byte;

	cr_assert_null(raws(LIVE_PAGE, 1));
	cr_assert_null(raws(1u << 30, 64));
	cr_assert_null(raws(1u << 30, UINT32_MAX));
	cr_assert_null(raws(SIZE_MAX / 2, 1));
	cr_assert_eq(live_raw_ref(l, &byte), LIVE_NONE);
	cr_assert_eq(live_raw_ref(NULL, &byte), LIVE_NONE);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect_end();
}

static bool system_has(const char *word)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
	char line[100] = "";
	bool has;

	if (!f)
		return false;
	has = fgets(line, sizeof(line), f) && strstr(line, word) != NULL;
	fclose(f);
	return has;
}

Test(live, what_is_in_huge_pages_is_told)
{
	uint8_t *raw = raws(8u << 20, 1);
	uint64_t huge;

	cr_assert_not_null(raw);
	cr_assert_eq(live_raw_huge_bytes(l), 0);
	cr_assert(live_raw_reserve(l, live_raw_ref(l, raw)));
	huge = live_raw_huge_bytes(l);
	cr_assert_leq(huge, 8u << 20);
	cr_assert_eq(huge % (2u << 20), 0);
	if (!system_has("[always]") && !system_has("[advise]"))
		cr_assert_eq(huge, 0);
}

static blkcnt_t blocks(void)
{
	struct stat st;

	cr_assert_eq(fstat(live_fd(l), &st), 0);
	return st.st_blocks;
}

Test(live, memory_without_a_record_goes_back)
{
	static const struct live_key key = {.rank = 1};
	uint8_t *raw = raws(1u << 20, 2);
	live_ref ref = LIVE_NONE;
	blkcnt_t before;

	put(&ref, &key, 1, 10);
	for (int i = 0; i < 2; i++) {
		cr_assert(live_raw_reserve(l, live_raw_ref(l, raw + (i << 20))));
		write_raw(raw + (i << 20), 1000);
	}
	live_raw_place(l, live_raw_ref(l, raw), 1);
	before = blocks();
	live_tables_trim(live_fd(l));
	/* A huge page goes as a whole, or when the system likes to. */
	if (!system_has("[always]") && !system_has("[advise]"))
		cr_assert_lt(blocks(), before - (1 << 20) / 512 + 64); /* reading costs a page */
	cr_assert_gt(blocks(), (1 << 20) / 512);
	cr_assert_eq(read_fd(live_fd(l)), 0);
	expect(1);
	expect_raw(1000, 0);
	expect_end();
	live_tables_trim(-1);
}
