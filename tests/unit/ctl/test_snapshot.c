/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "prom.h"
#include "snapshot.h"
#include "stat_print.h"
#include "text.h"

/* What a test made: given back when it is over. */
static char *texts[64];
static struct snapshot *snapshots[8];

static char *text_kept(char *text)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i] != NULL)
			continue;
		texts[i] = text;
		return text;
	}
	cr_assert(false, "too many texts");
	return NULL;
}

static struct snapshot *snapshot_kept(struct snapshot *s)
{
	for (size_t i = 0; i < sizeof(snapshots) / sizeof(snapshots[0]); i++) {
		if (snapshots[i] != NULL)
			continue;
		snapshots[i] = s;
		return s;
	}
	cr_assert(false, "too many snapshots");
	return NULL;
}

static void give_back(void)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	for (size_t i = 0; i < sizeof(snapshots) / sizeof(snapshots[0]); i++)
		snapshot_free(snapshots[i]);
}

TestSuite(snapshot, .fini = give_back);
TestSuite(prom, .fini = give_back);
TestSuite(stat_print, .fini = give_back);
TestSuite(text, .fini = give_back);

static struct snapshot *sample(void)
{
	struct snapshot *s = snapshot_kept(snapshot_new());

	s->source = strdup("host:/a b");
	s->mountpoint = strdup("/mnt/\"x\\\n");
	s->pid = 42;
	s->at_ns = 12000000000;
	s->mounted_ns = 10000000000;
	s->lanes = 2;
	s->dirty_bytes = 1500;
	s->stats.fuse_replies = 4;
	s->stats.bytes_read = UINT64_MAX;
	s->stats.credits = 64;
	s->stats.ops[25] = 3;
	for (int i = 0; i < 3; i++) {
		hist_add(&s->latency.fuse[15][LATENCY_QUEUE], 1000);
		hist_add(&s->latency.fuse[15][LATENCY_RPC], 100000);
		hist_add(&s->latency.fuse[15][LATENCY_FUSE], 0);
		hist_add(&s->latency.nfs[25], 99000000000);
	}
	return s;
}

static char *text_of(void (*print)(FILE *out, const struct snapshot *s), const struct snapshot *s)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	print(out, s);
	fclose(out);
	return text_kept(text);
}

Test(snapshot, survives_as_text)
{
	struct snapshot *s = sample(), *back;
	char *text = text_of(snapshot_print, s), *again;

	back = snapshot_parse(text_kept(strdup(text)));
	cr_assert_not_null(snapshot_kept(back));
	cr_assert_str_eq(back->mountpoint, s->mountpoint);
	cr_assert_eq(back->stats.bytes_read, UINT64_MAX);
	cr_assert_eq(memcmp(&back->latency, &s->latency, sizeof(s->latency)), 0);
	again = text_of(snapshot_print, back);
	cr_assert_str_eq(again, text);
}

Test(snapshot, passes_over_what_another_version_says)
{
	char text[] = "source a\nmountpoint b\nnews 17 and more\nfuture\npid 3\n";
	struct snapshot *s = snapshot_parse(text);

	cr_assert_not_null(snapshot_kept(s));
	cr_assert_eq(s->pid, 3);
}

/* WIRE: each line alone, in a snapshot that is right otherwise. */
Test(snapshot, refuses_what_makes_no_sense)
{
	static const char *const bad[] = {"pid", "pid x", "pid -1", "pid 99999999999999999999",
		"op 80 1", "op 1", "fuse 56 0 1", "fuse 1 3 1", "fuse 1 1", "fuse 1 1 1 224:1",
		"fuse 1 1 1 5", "fuse 1 1 1 5:", "fuse 1 1 1 5:x", "fuse 1 1 1 -1:1", "nfs 80 1 1",
		"mountpoint twice", "at_ns 1\nmounted_ns 2", "source \\x0"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text), "source a\nmountpoint b\n%s\n", bad[i]);
		cr_assert_null(snapshot_parse(text), "%s", bad[i]);
	}
}

Test(snapshot, needs_to_say_which_mount_it_is)
{
	char none[] = "", one[] = "source a\n";

	cr_assert_null(snapshot_parse(none));
	cr_assert_null(snapshot_parse(one));
}

Test(snapshot, an_interval_has_what_is_new_and_what_is_there)
{
	struct snapshot *before = sample(), *now = sample();

	now->at_ns += 3000000000;
	now->stats.fuse_replies = 10;
	hist_add(&now->latency.fuse[15][LATENCY_RPC], 7000);
	snapshot_subtract(now, before);
	cr_assert_eq(now->stats.fuse_replies, 6);
	cr_assert_eq(now->stats.credits, 64);
	cr_assert_eq(now->lanes, 2);
	cr_assert_eq(now->at_ns - now->mounted_ns, 3000000000);
	cr_assert_eq(hist_count(&now->latency.fuse[15][LATENCY_RPC]), 1);
	cr_assert_eq(hist_count(&now->latency.nfs[25]), 0);
}

static void print_prom(FILE *out, const struct snapshot *s)
{
	struct snapshot *one = (struct snapshot *)s;

	prom_print(out, &one, 1);
}

Test(prom, buckets_add_up_to_the_count)
{
	char *text = text_of(print_prom, sample());
	static const char labels[] = "{mountpoint=\"/mnt/\\\"x\\\\\\n\",source=\"host:/a b\"";
	char line[300];

	snprintf(line, sizeof(line), "\nrpcrdmafs_fuse_replies_total%s} 4\n", labels);
	cr_assert_not_null(strstr(text, line), "%s", text);
	snprintf(line, sizeof(line),
		"_bucket%s,operation=\"READ\",phase=\"rpc\",le=\"6.5536e-05\"} 0\n", labels);
	cr_assert_not_null(strstr(text, line));
	snprintf(line, sizeof(line),
		"_bucket%s,operation=\"READ\",phase=\"rpc\",le=\"0.000262144\"} 3\n", labels);
	cr_assert_not_null(strstr(text, line));
	snprintf(line, sizeof(line), "_sum%s,operation=\"READ\",phase=\"rpc\"} 0.000300000\n",
		labels);
	cr_assert_not_null(strstr(text, line));
	/* Longer than the last bound. */
	snprintf(line, sizeof(line), "_bucket%s,operation=\"READ\",le=\"68.7194767\"} 0\n", labels);
	cr_assert_not_null(strstr(text, line));
	snprintf(line, sizeof(line), "_bucket%s,operation=\"READ\",le=\"+Inf\"} 3\n", labels);
	cr_assert_not_null(strstr(text, line));
}

Test(prom, each_metric_is_announced_once_for_all_mounts)
{
	struct snapshot *two[] = {sample(), sample()};
	char *text = NULL, *p;
	int cnt = 0;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	prom_print(out, two, 2);
	fclose(out);
	text_kept(text);
	for (p = text; (p = strstr(p, "# TYPE rpcrdmafs_credits gauge\n")) != NULL; p++)
		cnt++;
	cr_assert_eq(cnt, 1);
	for (cnt = 0, p = text; (p = strstr(p, "\nrpcrdmafs_credits{")) != NULL; p++)
		cnt++;
	cr_assert_eq(cnt, 2);
}

#define FORMATS(function, value, expected)                                                         \
	do {                                                                                       \
		char text_[16];                                                                    \
		function(text_, value);                                                            \
		cr_assert_str_eq(text_, expected);                                                 \
	} while (0)

Test(stat_print, times_have_three_digits)
{
	FORMATS(stat_print_ns, 0, "0n");
	FORMATS(stat_print_ns, 999, "999n");
	FORMATS(stat_print_ns, 1000, "1.0u");
	FORMATS(stat_print_ns, 9940, "9.9u");
	FORMATS(stat_print_ns, 9960, "10u");
	FORMATS(stat_print_ns, 999499, "999u");
	FORMATS(stat_print_ns, 999600, "1.0m");
	FORMATS(stat_print_ns, 140000000000, "140s");
	FORMATS(stat_print_ns, UINT64_MAX, "99999s");
}

Test(stat_print, bytes_have_units)
{
	FORMATS(stat_print_bytes, 0, "0 B");
	FORMATS(stat_print_bytes, 999, "999 B");
	FORMATS(stat_print_bytes, 1500, "1.5 kB");
	FORMATS(stat_print_bytes, 123456789, "123 MB");
}

Test(stat_print, shows_a_mount_to_people)
{
	char *text = text_of(stat_print, sample());

	cr_assert_not_null(strstr(text, "host:/a b on /mnt/\"x\\\\x0a (pid 42)\n"), "%s", text);
	cr_assert_not_null(strstr(text, "  2.0 s: 2 requests/s, "));
	cr_assert_not_null(strstr(text, "dirty 1.5 kB, "));
	cr_assert_not_null(strstr(text, "\nREAD                1.5   1.0u  960n  960n   100u"));
}

static char *written(void (*put)(FILE *out, const char *text), const char *in)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	put(out, in);
	fclose(out);
	return text_kept(text);
}

Test(text, json_strings_are_utf8_without_control_characters)
{
	cr_assert_str_eq(written(text_json, "a\"b\\c\n\x7f"), "\"a\\\"b\\\\c\\u000a\\u007f\"");
	cr_assert_str_eq(written(text_json, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
		"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	/* Cut short, too long, a surrogate, beyond the end. */
	cr_assert_str_eq(written(text_json, "\xc3"), "\"\\\\xc3\"");
	cr_assert_str_eq(written(text_json, "\xc0\x80"), "\"\\\\xc0\\\\x80\"");
	cr_assert_str_eq(written(text_json, "\xed\xa0\x80"), "\"\\\\xed\\\\xa0\\\\x80\"");
	cr_assert_str_eq(
		written(text_json, "\xf4\x90\x80\x80"), "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"");
}

Test(text, a_terminal_gets_no_control_characters)
{
	cr_assert_str_eq(written(text_plain, "a\x1b[2J\xff\xc3\xa4"), "a\\x1b[2J\\xff\xc3\xa4");
	/* U+009B is CSI, too; the first that is no control character is U+00A0. */
	cr_assert_str_eq(written(text_plain, "\xc2\x9b\xc2\xa0"), "\\x9b\xc2\xa0");
	cr_assert_str_eq(written(text_json, "\xc2\x9b"), "\"\\u009b\"");
	cr_assert_str_eq(written(text_label, "a\n\x1b\xc2\x9b"), "\"a\\n\\\\x1b\\\\x9b\"");
}
