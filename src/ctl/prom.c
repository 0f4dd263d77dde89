/* SPDX-License-Identifier: BSD-3-Clause */
#include "prom.h"

#include <inttypes.h>

#include "nfs4.h"
#include "text.h"

/* Bounds of the buckets that are told: every other power of two, 4 us to 69 s. */
#define LE_FIRST 12u
#define LE_LAST  36u
#define LE_STEP  2u

struct prom {
	FILE *out;
	struct snapshot *const *s;
	size_t cnt;
};

static void head(const struct prom *p, const char *name, const char *suffix, const char *type,
	const char *help)
{
	fprintf(p->out, "# HELP rpcrdmafs_%s%s %s\n# TYPE rpcrdmafs_%s%s %s\n", name, suffix, help,
		name, suffix, type);
}

/* {mountpoint="...",source="..." : the caller ends it. */
static void labels(FILE *out, const struct snapshot *s)
{
	fputs("{mountpoint=", out);
	text_label(out, s->mountpoint);
	fputs(",source=", out);
	text_label(out, s->source);
}

static void number(const struct prom *p, const char *name, const char *suffix, const char *type,
	const char *help, size_t off)
{
	head(p, name, suffix, type, help);
	for (size_t i = 0; i < p->cnt; i++) {
		const uint64_t *v = (const void *)((const char *)p->s[i] + off);

		fprintf(p->out, "rpcrdmafs_%s%s", name, suffix);
		labels(p->out, p->s[i]);
		fprintf(p->out, "} %" PRIu64 "\n", *v);
	}
}

static void operations(const struct prom *p)
{
	head(p, "nfs_operations", "_total", "counter", "operations sent in COMPOUNDs");
	for (size_t i = 0; i < p->cnt; i++) {
		for (unsigned int op = 0; op < STATS_OPS; op++) {
			const char *name = nfs4_op_name(op);

			if (p->s[i]->stats.ops[op] == 0 || name == NULL)
				continue;
			fputs("rpcrdmafs_nfs_operations_total", p->out);
			labels(p->out, p->s[i]);
			fprintf(p->out, ",operation=\"%s\"} %" PRIu64 "\n", name,
				p->s[i]->stats.ops[op]);
		}
	}
}

/* One histogram: its buckets add up, and the last one is all. */
static void histogram(FILE *out, const struct snapshot *s, const char *name, const char *operation,
	const char *phase, const struct hist *h)
{
	uint64_t below = 0, cnt = hist_count(h);
	unsigned int i = 0;

	for (unsigned int shift = LE_FIRST; shift <= LE_LAST; shift += LE_STEP) {
		for (; i < HIST_BUCKETS && hist_bucket_end(i) <= 1ull << shift; i++)
			below += h->buckets[i];
		fprintf(out, "rpcrdmafs_%s_bucket", name);
		labels(out, s);
		fprintf(out, ",operation=\"%s\"%s,le=\"%.9g\"} %" PRIu64 "\n", operation, phase,
			(double)(1ull << shift) / 1e9, below);
	}
	fprintf(out, "rpcrdmafs_%s_bucket", name);
	labels(out, s);
	fprintf(out, ",operation=\"%s\"%s,le=\"+Inf\"} %" PRIu64 "\n", operation, phase, cnt);
	fprintf(out, "rpcrdmafs_%s_sum", name);
	labels(out, s);
	fprintf(out, ",operation=\"%s\"%s} %.9f\n", operation, phase, (double)h->sum_ns / 1e9);
	fprintf(out, "rpcrdmafs_%s_count", name);
	labels(out, s);
	fprintf(out, ",operation=\"%s\"%s} %" PRIu64 "\n", operation, phase, cnt);
}

static void fuse_times(const struct prom *p)
{
	head(p, "fuse_request_seconds", "", "histogram",
		"time of requests of the kernel: before their calls, in calls, the rest");
	for (size_t i = 0; i < p->cnt; i++) {
		for (unsigned int op = 0; op < LATENCY_FUSE_OPS; op++) {
			const char *name = latency_fuse_name(op);

			for (unsigned int ph = 0; name != NULL && ph < LATENCY_PHASES; ph++) {
				const struct hist *h = &p->s[i]->latency.fuse[op][ph];
				char phase[32];

				snprintf(phase, sizeof(phase), ",phase=\"%s\"",
					latency_phase_name((enum latency_phase)ph));
				if (hist_count(h) != 0)
					histogram(p->out, p->s[i], "fuse_request_seconds", name,
						phase, h);
			}
		}
	}
}

static void nfs_times(const struct prom *p)
{
	head(p, "nfs_call_seconds", "", "histogram",
		"time of COMPOUNDs from sent to answered, by what they are about");
	for (size_t i = 0; i < p->cnt; i++) {
		for (unsigned int op = 0; op < STATS_OPS; op++) {
			const struct hist *h = &p->s[i]->latency.nfs[op];
			const char *name = nfs4_op_name(op);

			if (name != NULL && hist_count(h) != 0)
				histogram(p->out, p->s[i], "nfs_call_seconds", name, "", h);
		}
	}
}

void prom_print(FILE *out, struct snapshot *const *s, size_t cnt)
{
	const struct prom p = {.out = out, .s = s, .cnt = cnt};

#define X(name, meaning)                                                                           \
	number(&p, #name, "_total", "counter", meaning, offsetof(struct snapshot, stats.name));
	STATS_FOREACH(X)
#undef X
#define X(name, meaning)                                                                           \
	number(&p, #name, "", "gauge", meaning, offsetof(struct snapshot, stats.name));
	STATS_GAUGES(X)
#undef X
#define X(name, meaning) number(&p, #name, "", "gauge", meaning, offsetof(struct snapshot, name));
	SNAPSHOT_GAUGES(X)
#undef X
	operations(&p);
	fuse_times(&p);
	nfs_times(&p);
}
