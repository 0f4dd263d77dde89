/* SPDX-License-Identifier: BSD-3-Clause */
#include "stat_print.h"

#include <inttypes.h>
#include <stddef.h>

#include "nfs4.h"
#include "text.h"

void stat_print_ns(char text[8], uint64_t ns)
{
	static const char units[] = "num";
	double v = (double)ns;
	size_t unit = 0;

	for (; unit < 3 && v >= 999.5; unit++)
		v /= 1000;
	if (unit == 3 && v > 99999)
		v = 99999;
	snprintf(text, 8, unit > 0 && v < 9.95 ? "%.1f%c" : "%.0f%c", v,
		unit < 3 ? units[unit] : 's');
}

void stat_print_bytes(char text[16], double bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	size_t unit = 0;

	for (; unit < 4 && bytes >= 999.5; unit++)
		bytes /= 1000;
	snprintf(text, 16, unit > 0 && bytes < 99.5 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static double seconds_of(const struct snapshot *s)
{
	double seconds = (double)(s->at_ns - s->mounted_ns) / 1e9;

	return seconds > 0.001 ? seconds : 0.001;
}

/* ---- for people ---- */

static void print_three(FILE *out, const struct hist *h)
{
	char avg[8], median[8], p99[8];

	stat_print_ns(avg, hist_mean_ns(h));
	stat_print_ns(median, hist_percentile_ns(h, 500));
	stat_print_ns(p99, hist_percentile_ns(h, 990));
	fprintf(out, "  %5s %5s %5s", avg, median, p99);
}

static void print_summary(FILE *out, const struct snapshot *s)
{
	const struct stats *st = &s->stats;
	double seconds = seconds_of(s);
	char rd[16], wr[16], dirty[16], unsafe[16];

	stat_print_bytes(rd, (double)st->bytes_read / seconds);
	stat_print_bytes(wr, (double)st->bytes_written / seconds);
	stat_print_bytes(dirty, (double)s->dirty_bytes);
	stat_print_bytes(unsafe, (double)s->uncommitted_bytes);
	fprintf(out, "  %.1f s: %.0f requests/s, %.0f calls/s, read %s/s, written %s/s\n", seconds,
		(double)st->fuse_replies / seconds, (double)st->rpcs / seconds, rd, wr);
	fprintf(out,
		"  lanes %" PRIu64 ", credits %" PRIu64 ", slots %" PRIu64 ", in flight %" PRIu64
		" (most %" PRIu64 ")\n",
		s->lanes, st->credits, st->slots, st->in_flight, st->in_flight_max);
	fprintf(out,
		"  waits for credits %" PRIu64 ", slots %" PRIu64 ", buffers %" PRIu64
		"; delays by the server %" PRIu64 "\n",
		st->credit_waits, st->slot_waits, st->buf_waits, st->delays);
	fprintf(out,
		"  reconnects %" PRIu64 ", retransmissions %" PRIu64 ", timeouts %" PRIu64
		"; commits by age %" PRIu64 "\n",
		st->reconnects, st->retransmits, st->timeouts, st->commits_by_age);
	fprintf(out,
		"  dirty %s, uncommitted %s; files %" PRIu64 " open, %" PRIu64
		" known; delegations %" PRIu64 "; shadows %" PRIu64 "\n",
		dirty, unsafe, s->files, s->inodes, st->delegations, st->shadows);
	fprintf(out,
		"  cache: %" PRIu64 " reads from read-ahead, %" PRIu64
		" writes answered at once, %" PRIu64 " joined\n",
		st->reads_from_ahead, st->writes_behind, st->writes_joined);
	fprintf(out, "  files kept open: %" PRIu64 " validations\n", st->validations);
	if (st->packets_resent + st->packets_early + st->packets_twice + st->naks + st->naks_sent +
			st->rnr_naks + st->rnr_naks_sent + st->cnps + st->cnps_sent + st->bad_icrc >
		0)
		fprintf(out,
			"  packets: sent again %" PRIu64 ", received early %" PRIu64
			", twice %" PRIu64 ", bad ICRC %" PRIu64 "; NAKs %" PRIu64 ", sent %" PRIu64
			", RNR NAKs %" PRIu64 ", sent %" PRIu64 ", CNPs %" PRIu64 ", sent %" PRIu64
			"\n",
			st->packets_resent, st->packets_early, st->packets_twice, st->bad_icrc,
			st->naks, st->naks_sent, st->rnr_naks, st->rnr_naks_sent, st->cnps,
			st->cnps_sent);
}

static void print_operations(FILE *out, const struct snapshot *s)
{
	double seconds = seconds_of(s);
	bool any = false;

	for (unsigned int op = 0; op < LATENCY_FUSE_OPS; op++) {
		const struct hist *h = s->latency.fuse[op];
		const char *name = latency_fuse_name(op);
		uint64_t cnt = hist_count(&h[LATENCY_FUSE]);

		if (cnt == 0)
			continue;
		if (!any)
			fprintf(out,
				"%-15s %7s  %17s  %17s  %17s\n%23s  %5s %5s %5s  %5s %5s %5s  "
				"%5s %5s %5s\n",
				"request", "/s", "queue", "rpc", "fuse", "", "avg", "med", "99%",
				"avg", "med", "99%", "avg", "med", "99%");
		any = true;
		fprintf(out, "%-15s %7.*f", name != NULL ? name : "?",
			(double)cnt / seconds < 9.95 ? 1 : 0, (double)cnt / seconds);
		for (unsigned int p = 0; p < LATENCY_PHASES; p++)
			print_three(out, &h[p]);
		fputc('\n', out);
	}
}

static void print_calls(FILE *out, const struct snapshot *s)
{
	double seconds = seconds_of(s);
	bool any = false;

	for (unsigned int op = 0; op < STATS_OPS; op++) {
		const struct hist *h = &s->latency.nfs[op];
		const char *name = nfs4_op_name(op);
		uint64_t cnt = hist_count(h);

		if (cnt == 0 || name == NULL)
			continue;
		if (!any)
			fprintf(out, "%-20s %7s  %12s  %5s %5s %5s\n", "call", "/s", "", "avg",
				"med", "99%");
		any = true;
		fprintf(out, "%-20s %7.*f  %12s", name, (double)cnt / seconds < 9.95 ? 1 : 0,
			(double)cnt / seconds, "");
		print_three(out, h);
		fputc('\n', out);
	}
}

void stat_print(FILE *out, const struct snapshot *s)
{
	text_plain(out, s->source);
	fputs(" on ", out);
	text_plain(out, s->mountpoint);
	fprintf(out, " (pid %" PRIu64 ")\n", s->pid);
	print_summary(out, s);
	print_operations(out, s);
	print_calls(out, s);
}

/* ---- JSON ---- */

static void json_hist(FILE *out, const char *name, const struct hist *h)
{
	fprintf(out, "\"%s\":{\"average\":%.9f,\"median\":%.9f,\"p99\":%.9f}", name,
		(double)hist_mean_ns(h) / 1e9, (double)hist_percentile_ns(h, 500) / 1e9,
		(double)hist_percentile_ns(h, 990) / 1e9);
}

static void json_requests(FILE *out, const struct snapshot *s)
{
	const char *comma = "";

	fputs(",\"requests\":{", out);
	for (unsigned int op = 0; op < LATENCY_FUSE_OPS; op++) {
		const struct hist *h = s->latency.fuse[op];
		const char *name = latency_fuse_name(op);
		uint64_t cnt = hist_count(&h[LATENCY_FUSE]);

		if (cnt == 0 || name == NULL)
			continue;
		fprintf(out, "%s\"%s\":{\"count\":%" PRIu64, comma, name, cnt);
		for (unsigned int p = 0; p < LATENCY_PHASES; p++) {
			char key[32];

			snprintf(key, sizeof(key), "%s_seconds",
				latency_phase_name((enum latency_phase)p));
			fputc(',', out);
			json_hist(out, key, &h[p]);
		}
		fputc('}', out);
		comma = ",";
	}
	fputc('}', out);
}

static void json_calls(FILE *out, const struct snapshot *s)
{
	const char *comma = "";

	fputs(",\"calls\":{", out);
	for (unsigned int op = 0; op < STATS_OPS; op++) {
		const struct hist *h = &s->latency.nfs[op];
		const char *name = nfs4_op_name(op);

		if (hist_count(h) == 0 || name == NULL)
			continue;
		fprintf(out, "%s\"%s\":{\"count\":%" PRIu64 ",", comma, name, hist_count(h));
		json_hist(out, "rpc_seconds", h);
		fputc('}', out);
		comma = ",";
	}
	fputc('}', out);
}

static void json_operations(FILE *out, const struct snapshot *s)
{
	const char *comma = "";

	fputs(",\"nfs_operations\":{", out);
	for (unsigned int op = 0; op < STATS_OPS; op++) {
		const char *name = nfs4_op_name(op);

		if (s->stats.ops[op] == 0 || name == NULL)
			continue;
		fprintf(out, "%s\"%s\":%" PRIu64, comma, name, s->stats.ops[op]);
		comma = ",";
	}
	fputc('}', out);
}

static void json_mount(FILE *out, const struct snapshot *s)
{
	const char *comma = "";

	fputs("{\"source\":", out);
	text_json(out, s->source);
	fputs(",\"mountpoint\":", out);
	text_json(out, s->mountpoint);
	fprintf(out, ",\"pid\":%" PRIu64 ",\"interval_seconds\":%.3f,\"counters\":{", s->pid,
		seconds_of(s));
#define X(name, meaning)                                                                           \
	fprintf(out, "%s\"" #name "\":%" PRIu64, comma, s->stats.name);                            \
	comma = ",";
	STATS_FOREACH(X)
	fputs("},\"gauges\":{", out);
	comma = "";
	STATS_GAUGES(X)
#undef X
#define X(name, meaning) fprintf(out, ",\"" #name "\":%" PRIu64, s->name);
	SNAPSHOT_GAUGES(X)
#undef X
	fputc('}', out);
	json_operations(out, s);
	json_requests(out, s);
	json_calls(out, s);
	fputc('}', out);
}

void stat_print_json(FILE *out, struct snapshot *const *s, size_t cnt)
{
	fputs("{\"mounts\":[", out);
	for (size_t i = 0; i < cnt; i++) {
		if (i > 0)
			fputc(',', out);
		json_mount(out, s[i]);
	}
	fputs("]}\n", out);
}
