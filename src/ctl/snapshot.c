/* SPDX-License-Identifier: BSD-3-Clause */
#include "snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_proto.h"

/* Numbers by name, at offsets of struct snapshot. */
static const struct {
	const char *name;
	size_t off;
} numbers[] = {{"pid", offsetof(struct snapshot, pid)}, {"at_ns", offsetof(struct snapshot, at_ns)},
	{"mounted_ns", offsetof(struct snapshot, mounted_ns)},
#define X(name, meaning) {#name, offsetof(struct snapshot, name)},
	SNAPSHOT_GAUGES(X)
#undef X
#define X(name, meaning) {#name, offsetof(struct snapshot, stats.name)},
		STATS_FOREACH(X) STATS_GAUGES(X)
#undef X
};

struct snapshot *snapshot_new(void)
{
	return calloc(1, sizeof(struct snapshot));
}

void snapshot_free(struct snapshot *s)
{
	if (s == NULL)
		return;
	free(s->source);
	free(s->mountpoint);
	free(s);
}

/* ---- as text ---- */

static void print_text(FILE *out, const char *name, const char *value)
{
	char *text = value != NULL ? ctl_proto_escape(value) : NULL;

	if (text != NULL)
		fprintf(out, "%s %s\n", name, text);
	free(text);
}

static void print_hist(
	FILE *out, const char *what, unsigned int op, unsigned int phase, const struct hist *h)
{
	if (hist_count(h) == 0)
		return;
	fprintf(out, "%s %u %u %" PRIu64, what, op, phase, h->sum_ns);
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		if (h->buckets[i] != 0)
			fprintf(out, " %u:%" PRIu64, i, h->buckets[i]);
	fputc('\n', out);
}

void snapshot_print(FILE *out, const struct snapshot *s)
{
	print_text(out, "source", s->source);
	print_text(out, "mountpoint", s->mountpoint);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t v;

		memcpy(&v, (const char *)s + numbers[i].off, sizeof(v));
		if (v != 0)
			fprintf(out, "%s %" PRIu64 "\n", numbers[i].name, v);
	}
	for (unsigned int op = 0; op < STATS_OPS; op++)
		if (s->stats.ops[op] != 0)
			fprintf(out, "op %u %" PRIu64 "\n", op, s->stats.ops[op]);
	for (unsigned int op = 0; op < LATENCY_FUSE_OPS; op++)
		for (unsigned int p = 0; p < LATENCY_PHASES; p++)
			print_hist(out, "fuse", op, p, &s->latency.fuse[op][p]);
	for (unsigned int op = 0; op < STATS_OPS; op++)
		print_hist(out, "nfs", op, LATENCY_RPC, &s->latency.nfs[op]);
}

/* ---- and back ---- */

/* The next word of *rest, a number, which moves past it. */
static bool take_number(char **rest, uint64_t *ret)
{
	char *word = strsep(rest, " "), *end;

	if (word == NULL || *word < '0' || *word > '9')
		return false;
	errno = 0;
	*ret = strtoull(word, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool parse_text(char **to, char *rest)
{
	if (*to != NULL || rest == NULL || !ctl_proto_unescape(rest))
		return false;
	*to = strdup(rest);
	return *to != NULL;
}

static bool parse_op(struct stats *st, char *rest)
{
	uint64_t op, cnt;

	if (!take_number(&rest, &op) || !take_number(&rest, &cnt) || op >= STATS_OPS)
		return false;
	st->ops[op] = cnt;
	return true;
}

static bool parse_buckets(struct hist *h, char *rest)
{
	char *word;

	while ((word = strsep(&rest, " ")) != NULL) {
		char *cnt = word;
		const char *bucket = strsep(&cnt, ":");
		uint64_t i = strtoull(bucket, NULL, 10);

		if (cnt == NULL || i >= HIST_BUCKETS || !take_number(&cnt, &h->buckets[i]))
			return false;
	}
	return true;
}

static bool parse_hist(struct latency *lat, bool fuse, char *rest)
{
	uint64_t op, phase, sum;
	struct hist *h;

	if (!take_number(&rest, &op) || !take_number(&rest, &phase) || !take_number(&rest, &sum))
		return false;
	if (op >= (fuse ? LATENCY_FUSE_OPS : STATS_OPS) || phase >= LATENCY_PHASES)
		return false;
	h = fuse ? &lat->fuse[op][phase] : &lat->nfs[op];
	h->sum_ns = sum;
	return parse_buckets(h, rest);
}

static bool parse_line(struct snapshot *s, char *line)
{
	char *rest = line;
	const char *name = strsep(&rest, " ");
	uint64_t v;

	if (strcmp(name, "source") == 0)
		return parse_text(&s->source, rest);
	if (strcmp(name, "mountpoint") == 0)
		return parse_text(&s->mountpoint, rest);
	if (strcmp(name, "op") == 0)
		return parse_op(&s->stats, rest);
	if (strcmp(name, "fuse") == 0 || strcmp(name, "nfs") == 0)
		return parse_hist(&s->latency, *name == 'f', rest);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(name, numbers[i].name) != 0)
			continue;
		if (!take_number(&rest, &v))
			return false;
		memcpy((char *)s + numbers[i].off, &v, sizeof(v));
	}
	return true;
}

struct snapshot *snapshot_parse(char *text)
{
	struct snapshot *s = snapshot_new();
	char *line;

	if (s == NULL)
		return NULL;
	while ((line = strsep(&text, "\n")) != NULL) {
		if (*line != '\0' && !parse_line(s, line)) {
			snapshot_free(s);
			return NULL;
		}
	}
	if (s->source != NULL && s->mountpoint != NULL && s->at_ns >= s->mounted_ns)
		return s;
	snapshot_free(s);
	return NULL;
}

void snapshot_subtract(struct snapshot *s, const struct snapshot *before)
{
#define X(name, meaning) s->stats.name -= before->stats.name;
	STATS_FOREACH(X)
#undef X
	for (unsigned int op = 0; op < STATS_OPS; op++)
		s->stats.ops[op] -= before->stats.ops[op];
	latency_subtract(&s->latency, &before->latency);
	s->mounted_ns = before->at_ns;
}
