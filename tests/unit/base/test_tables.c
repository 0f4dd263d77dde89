/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tables.h"

static int fd = -1;
static struct tables_in in;
static struct tables_record r;

static void set_up(void)
{
	fd = memfd_create("tables", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
}

static void tear_down(void)
{
	tables_close(&in);
	close(fd);
}

TestSuite(tables, .init = set_up, .fini = tear_down);

/* Two records: numbers of each length, and bytes. */
static void write_some(void)
{
	struct tables_out t;

	tables_begin(&t, fd);
	tables_record(&t, 7);
	for (uint16_t i = 0; i <= 8; i++)
		tables_put(&t, i, i ? UINT64_MAX >> (64 - 8 * i) : 0);
	tables_record(&t, 8);
	tables_put_bytes(&t, 1, "one", 3);
	tables_put_bytes(&t, 2, "", 0);
	tables_put_bytes(&t, 1, "two", 3);
	tables_put(&t, 3, 0x1234);
	cr_assert_eq(tables_end(&t), 0);
}

Test(tables, what_was_written_is_read)
{
	const char *p;
	size_t len;

	write_some();
	cr_assert_eq(tables_open(&in, fd), 0);
	cr_assert(tables_next(&in, &r));
	cr_assert_eq(r.type, 7);
	cr_assert_eq(tables_get(&r, 0), 0);
	for (uint16_t i = 1; i <= 8; i++)
		cr_assert_eq(tables_get(&r, i), UINT64_MAX >> (64 - 8 * i), "%u", i);
	cr_assert(tables_next(&in, &r));
	cr_assert_eq(r.type, 8);
	p = tables_get_bytes(&r, 1, &len);
	cr_assert_eq(len, 3);
	cr_assert_arr_eq(p, "one", 3);
	p = tables_get_next(&r, 1, p, &len);
	cr_assert_arr_eq(p, "two", 3);
	cr_assert_null(tables_get_next(&r, 1, p, &len));
	cr_assert_null(tables_get_bytes(&r, 2, &len), "an empty field is none");
	cr_assert_eq(len, 0);
	cr_assert_eq(tables_get(&r, 3), 0x1234);
	cr_assert_not(tables_next(&in, &r));
	tables_rewind(&in);
	cr_assert(tables_next(&in, &r));
	cr_assert_eq(r.type, 7);
}

Test(tables, a_field_that_is_not_there_is_nothing)
{
	uint8_t to[4] = {9, 9, 9, 9};

	write_some();
	cr_assert_eq(tables_open(&in, fd), 0);
	cr_assert(tables_next(&in, &r));
	cr_assert(tables_next(&in, &r));
	cr_assert_eq(tables_get(&r, 99), 0);
	cr_assert_not(tables_copy(&r, 99, to, 3));
	cr_assert_not(tables_copy(&r, 1, to, 4), "of another length");
	cr_assert_eq(to[0], 9);
	cr_assert(tables_copy(&r, 1, to, 3));
	cr_assert_arr_eq(to, "one", 3);
}

/* More than is kept before it is written, and records longer than that. */
Test(tables, a_million_records_and_a_long_one)
{
	enum {
		MANY = 1000000,
		LONG = 20
	};
	static uint8_t bytes[TABLES_FIELD_MAX];
	struct tables_out t;
	unsigned int n = 0;
	size_t len;

	tables_begin(&t, fd);
	for (unsigned int i = 0; i < MANY; i++) {
		tables_record(&t, 1);
		tables_put(&t, 1, i);
	}
	tables_record(&t, 2);
	for (int i = 0; i < LONG; i++)
		tables_put_bytes(&t, 1, bytes, sizeof(bytes));
	cr_assert_eq(tables_end(&t), 0);
	cr_assert_eq(tables_open(&in, fd), 0);
	while (tables_next(&in, &r) && r.type == 1)
		cr_assert_eq(tables_get(&r, 1), n++);
	cr_assert_eq(n, MANY);
	cr_assert_eq(r.type, 2);
	n = 0;
	for (const void *p = NULL; (p = tables_get_next(&r, 1, p, &len)) != NULL; n++)
		cr_assert_eq(len, TABLES_FIELD_MAX);
	cr_assert_eq(n, LONG);
}

/* Any byte that is another one is noticed, and any length. */
Test(tables, what_is_damaged_is_refused)
{
	uint8_t good[512];
	ssize_t len;

	write_some();
	len = pread(fd, good, sizeof(good), 0);
	cr_assert(len > 100 && len < (ssize_t)sizeof(good));
	for (off_t at = 0; at < len; at++)
		for (int bit = 0; bit < 8; bit++) {
			uint8_t bad = good[at] ^ (uint8_t)(1 << bit);

			cr_assert_eq(pwrite(fd, &bad, 1, at), 1);
			cr_assert_eq(tables_open(&in, fd), -EBADMSG, "byte %d", (int)at);
			cr_assert_eq(pwrite(fd, &good[at], 1, at), 1);
		}
	cr_assert_eq(pwrite(fd, "x", 1, len), 1);
	cr_assert_eq(tables_open(&in, fd), -EBADMSG, "longer");
	for (off_t at = len - 1; at >= 0; at--) {
		cr_assert_eq(ftruncate(fd, at), 0);
		cr_assert_eq(tables_open(&in, fd), -EBADMSG, "%d bytes", (int)at);
	}
}

/* A checksum that is right does not make lengths right. */
Test(tables, lengths_are_checked_whatever_the_checksum_says)
{
	static const uint16_t lengths[] = {4, 5, 200, UINT16_MAX};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		/* A record of 4 bytes, whose field has more than that; then the END of it. */
		uint8_t file[] = {'r', 'd', 'm', 'a', 'f', 's', 'T', '1', 1, 0, 0, 0, 4, 0, 0, 0, 1,
			0, (uint8_t)lengths[i], (uint8_t)(lengths[i] >> 8)};
		struct tables_out t = {.fd = fd};

		cr_assert_eq(ftruncate(fd, 0), 0);
		cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
		t.buf = malloc(sizeof(file));
		t.used = t.size = sizeof(file);
		memcpy(t.buf, file, sizeof(file));
		cr_assert_eq(tables_end(&t), 0);
		cr_assert_eq(tables_open(&in, fd), -EBADMSG, "%u", lengths[i]);
	}
}

Test(tables, nothing_is_no_table)
{
	cr_assert_eq(tables_open(&in, fd), -EBADMSG);
	cr_assert_eq(tables_open(&in, -1), -EBADF);
	cr_assert_not(tables_next(&in, &r));
}

Test(tables, what_cannot_be_written_is_told_at_the_end)
{
	struct tables_out t;

	tables_begin(&t, -1);
	tables_record(&t, 1);
	tables_put(&t, 1, 5);
	cr_assert_eq(tables_end(&t), -EBADF);
}

/* ---- one record, in memory alone ---- */

Test(tables, a_record_in_memory_is_one_of_a_file)
{
	struct tables_out one, t;
	const void *bytes;
	size_t len;

	tables_begin_in(&one);
	cr_assert_null(tables_record_bytes(&one, &len));
	cr_assert_eq(len, 0);
	tables_begin(&t, fd);
	for (uint16_t i = 1; i <= 3; i++) {
		tables_record(&one, i);
		tables_put(&one, 1, i);
		bytes = tables_record_bytes(&one, &len);
		cr_assert(tables_is_record(bytes, len));
		tables_put_record(&t, bytes, len);
		tables_put(&t, 2, i + 100u);
		tables_reset(&one);
	}
	tables_end_in(&one);
	tables_record(&t, 4);
	cr_assert_eq(tables_end(&t), 0);
	cr_assert_eq(tables_open(&in, fd), 0);
	for (uint16_t i = 1; i <= 3; i++) {
		cr_assert(tables_next(&in, &r));
		cr_assert_eq(r.type, i);
		cr_assert_eq(tables_get(&r, 1), i);
		cr_assert_eq(tables_get(&r, 2), i + 100u);
	}
	cr_assert(tables_next(&in, &r));
	cr_assert_eq(r.type, 4);
	cr_assert_not(tables_next(&in, &r));
}

/* Around the end of the room that each writer has. */
Test(tables, a_record_that_outgrows_its_place_is_whole)
{
	static uint8_t bytes[TABLES_FEW + 32];
	struct tables_out one;
	const void *record;
	size_t len;

	memset(bytes, 0x5a, sizeof(bytes));
	for (uint16_t n = TABLES_FEW - 40; n < TABLES_FEW + 32; n++) {
		tables_begin_in(&one);
		tables_record(&one, 3);
		tables_put_bytes(&one, 1, bytes, n);
		tables_put(&one, 2, 0x1122334455667788);
		tables_put(&one, 3, n);
		record = tables_record_bytes(&one, &len);
		cr_assert(tables_is_record(record, len));
		cr_assert_eq(len, 8 + 4 + n + 4 + 8 + 4 + 2);
		r = (struct tables_record){
			.type = 3, .fields = (const uint8_t *)record + 8, .len = len - 8};
		cr_assert(tables_copy(&r, 1, bytes, n));
		cr_assert_eq(bytes[n - 1], 0x5a);
		cr_assert_eq(tables_get(&r, 2), 0x1122334455667788);
		cr_assert_eq(tables_get(&r, 3), n);
		tables_end_in(&one);
	}
}

/* More than a file's writer keeps before it writes. */
Test(tables, a_long_record_stays_in_memory)
{
	static uint8_t bytes[TABLES_FIELD_MAX];
	struct tables_out one;
	const void *record;
	size_t len;

	tables_begin_in(&one);
	tables_record(&one, 1);
	for (int i = 0; i < 20; i++)
		tables_put_bytes(&one, 1, bytes, sizeof(bytes));
	record = tables_record_bytes(&one, &len);
	cr_assert(tables_is_record(record, len));
	cr_assert_eq(len, 8 + 20 * (4 + sizeof(bytes)));
	cr_assert_eq(one.err, 0);
	tables_end_in(&one);
}

Test(tables, a_failure_in_memory_ends_with_its_record)
{
	struct tables_out one;
	const void *bytes;
	size_t len;

	tables_begin_in(&one);
	tables_record(&one, 1);
	one.err = -ENOMEM;
	tables_put(&one, 1, 1);
	cr_assert_null(tables_record_bytes(&one, &len));
	tables_reset(&one);
	tables_record(&one, 2);
	bytes = tables_record_bytes(&one, &len);
	cr_assert(tables_is_record(bytes, len));
	cr_assert_eq(len, 8);
	tables_end_in(&one);
}

Test(tables, nothing_but_one_whole_record_is_a_record)
{
	/* Type 1; fields 1 and 2, of 2 and 0 bytes. */
	const uint8_t good[] = {1, 0, 0, 0, 10, 0, 0, 0, 1, 0, 2, 0, 'a', 'b', 2, 0, 0, 0, 99};
	const size_t len = sizeof(good) - 1;
	uint8_t bad[sizeof(good)];

	cr_assert(tables_is_record(good, len));
	cr_assert_not(tables_is_record(good, len + 1), "something follows");
	for (size_t shorter = 0; shorter < len; shorter++)
		cr_assert_not(tables_is_record(good, shorter), "%zu bytes", shorter);
	/* Of type, numbers and bytes others will do; but not END. */
	for (size_t at = 0; at < len; at++) {
		bool any = at == 1 || at == 8 || at == 9 || (at >= 12 && at <= 15);

		memcpy(bad, good, sizeof(good));
		bad[at] ^= 1;
		cr_assert_eq(tables_is_record(bad, len), any, "byte %zu", at);
	}
}
