/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

#include <inttypes.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "held.h"
#include "stats.h"
#include "text.h"

/* ---- one value ---- */

static void member(struct info *i, const char *key)
{
	fprintf(i->out, "%s\"%s\":", i->comma, key);
	i->comma = ",";
}

void info_text(struct info *i, const char *key, const char *label, const char *value)
{
	if (i->json) {
		member(i, key);
		text_json(i->out, value);
		return;
	}
	fprintf(i->out, "%-22s ", label);
	text_plain(i->out, value);
	fputc('\n', i->out);
}

void info_number(
	struct info *i, const char *key, const char *label, uint64_t value, const char *unit)
{
	if (i->json) {
		member(i, key);
		fprintf(i->out, "%" PRIu64, value);
		return;
	}
	fprintf(i->out, "%-22s %" PRIu64 "%s%s\n", label, value, *unit != '\0' ? " " : "", unit);
}

/* A group of members; its end is for JSON alone. */
static void group_begin(struct info *i, const char *key, const char *label)
{
	if (i->json) {
		member(i, key);
		fputc('{', i->out);
		i->comma = "";
		return;
	}
	fprintf(i->out, "%s\n", label);
}

static void group_end(struct info *i)
{
	if (i->json)
		fputc('}', i->out);
	i->comma = ",";
}

void info_option(struct info *i, const char *name, const char *value, const char *from)
{
	if (!i->json) {
		fprintf(i->out, "  %-20s ", name);
		text_plain(i->out, value);
		fprintf(i->out, " (%s)\n", from);
		return;
	}
	member(i, name);
	fputs("{\"value\":", i->out);
	text_json(i->out, value);
	fprintf(i->out, ",\"from\":\"%s\"}", from);
}

/* ---- the mount ---- */

static void print_keeper(struct info *i, const struct mount *m)
{
	bool is_there = keeper_is_there(&m->keeper);
	const char *fault = mount_keep_fault(m);

	info_number(i, "keeper", "keeper", is_there ? (uint64_t)m->keeper.pid : 0,
		is_there        ? "is its pid"
		: fault == NULL ? "another keeps it"
				: "there is none: the mount ends with this process");
	info_text(i, "kept_by", "  kept by",
		fault != NULL ? "nobody"
		: is_there    ? "a process"
		: held_is()   ? "a holder"
			      : "systemd");
	if (fault != NULL)
		info_text(i, "kept_fault", "  because", fault);
	info_number(i, "kept_bytes", "  kept", live_bytes(m->live), "bytes");
	info_number(i, "kept_huge", "  in huge pages", live_raw_huge_bytes(m->live), "bytes");
	info_number(i, "crashes", "  daemons that died", m->crashes, "");
}

static void print_server(struct info *i, const struct mount *m, const struct nfs4_session_view *v)
{
	const struct nfs4_fsinfo *fi = nfs4_client_fsinfo(m->client);
	char impl[200], version[16];

	info_text(i, "source", "source", m->opt->source);
	info_text(i, "mountpoint", "mountpoint", m->opt->mountpoint);
	info_number(i, "pid", "pid", (uint64_t)getpid(), "");
	info_text(i, "server", "server", m->opt->host);
	info_text(i, "address", "address", v->peer);
	nfs4_client_server_impl(m->client, impl, sizeof(impl));
	if (impl[0] != '\0')
		info_text(i, "implementation", "implementation", impl);
	info_text(i, "identity", "identity", m->identity.owner);
	info_text(i, "identity_from", "  which is",
		m->identity.kind == IDENTITY_KEPT    ? m->identity.path
		: m->identity.kind == IDENTITY_GIVEN ? "given by clientid="
						     : m->identity.why);
	info_text(i, "code", "code",
		m->code_lock == 0 ? "stays in memory"
				  : "may be thrown away when memory is short (LimitMEMLOCK=)");
	info_number(i, "upgrades", "upgrades", m->upgrades, "");
	if (m->pause.since_ns != 0)
		info_number(i, "waiting_ms", "requests wait",
			(reactor_clock(m->reactor) - m->pause.since_ns) / NSEC_PER_MSEC, "ms");
	if (m->upgrades > 0 || m->crashes > 0) {
		info_number(i, "upgrade_waited_ms", "  requests waited",
			m->pause_ns / NSEC_PER_MSEC, "ms");
		info_number(i, "upgrade_longest_ms", "  longest",
			m->longest_pause_ns / NSEC_PER_MSEC, "ms");
	}
	if (m->live != NULL)
		print_keeper(i, m);
	info_text(i, "device", "device", v->device);
	info_text(i, "memory_registration", "memory registration",
		v->memreg == RPCRDMA_MEMREG_MW ? "mw" : "static");
	snprintf(version, sizeof(version), "4.%u", (unsigned int)fi->minor);
	info_text(i, "nfs_version", "NFS version", version);
	info_number(i, "lease_seconds", "lease", fi->lease_s, "s");
	info_number(i, "max_name", "longest name", fi->fs.maxname, "bytes");
	info_number(i, "max_file_size", "largest file", fi->fs.maxfilesize, "bytes");
}

static void print_lane(struct info *i, const struct mount *m, unsigned int n)
{
	const struct stats *st = lane_stats(m->lanes[n]);
	char key[16], label[32];
	struct nfs4_session_view v;

	lane_view(m->lanes[n], &v);
	snprintf(key, sizeof(key), "%u", n);
	snprintf(label, sizeof(label), "lane %u%s", n, n == m->opt->nconnect ? " (metadata)" : "");
	group_begin(i, key, label);
	info_text(i, "session", "  session", v.state);
	info_text(i, "connection", "  connection", v.connected ? "up" : "down");
	info_number(i, "credits", "  credits granted",
		__atomic_load_n(&st->credits, __ATOMIC_RELAXED), "");
	info_number(i, "slots", "  slots", __atomic_load_n(&st->slots, __ATOMIC_RELAXED), "");
	info_number(i, "inline_send", "  inline sent", v.send_max, "bytes");
	info_number(i, "inline_receive", "  inline received", v.recv_max, "bytes");
	info_number(i, "ca_maxrequestsize", "  ca_maxrequestsize", v.maxreq, "");
	info_number(i, "ca_maxresponsesize", "  ca_maxresponsesize", v.maxresp, "");
	info_number(i, "ca_maxresponsesize_cached", "  ...size_cached", v.maxcached, "");
	info_number(i, "ca_maxoperations", "  ca_maxoperations", v.maxops, "");
	info_number(i, "ca_maxrequests", "  ca_maxrequests", v.maxreqs, "");
	info_text(i, "backchannel", "  backchannel", v.back ? "yes" : "no");
	group_end(i);
}

void info_print(FILE *out, const struct mount *m, bool json)
{
	struct info i = {.out = out, .json = json, .comma = ""};
	struct nfs4_session_view v;

	lane_view(m->lanes[0], &v);
	if (json)
		fputc('{', out);
	print_server(&i, m, &v);
	group_begin(&i, "lanes", "");
	for (unsigned int n = 0; n < m->lane_cnt; n++)
		print_lane(&i, m, n);
	group_end(&i);
	group_begin(&i, "options", "options (where the value is from)");
	info_opts_put(&i, m);
	group_end(&i);
	if (json)
		fputs("}\n", out);
}
