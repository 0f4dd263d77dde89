/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe_print.h"

#include <netdb.h>
#include <netinet/in.h>

#include "info.h"

static const char *inval_name(enum probe_inval inval)
{
	switch (inval) {
	case PROBE_INVAL_UNKNOWN:
		return "not known";
	case PROBE_INVAL_YES:
		return "yes";
	case PROBE_INVAL_NO:
		return "no";
	case PROBE_INVAL_STATIC:
		return "no: without memory windows";
	}
	return "?";
}

static void print_local(struct info *i, const struct sockaddr_storage *local)
{
	char host[NI_MAXHOST];
	socklen_t len = local->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						     : sizeof(struct sockaddr_in);

	if (getnameinfo((const struct sockaddr *)local, len, host, sizeof(host), NULL, 0,
		    NI_NUMERICHOST) == 0)
		info_text(i, "local_address", "local address", host);
}

static void print_connection(struct info *i, const struct probe_found *f)
{
	bool soft = f->facts.fabric == RPCRDMA_FABRIC_SOFT;

	info_text(i, "address", "address", f->peer);
	print_local(i, &f->facts.local);
	info_text(i, "fabric", "fabric", soft ? "soft" : "verbs");
	if (!soft)
		info_text(i, "device", "device", f->device);
	if (f->facts.mtu > 0)
		info_number(i, "path_mtu", "path MTU", f->facts.mtu, "bytes");
	if (f->facts.max_inbound > 0)
		info_number(i, "max_inbound", "server writes", f->facts.max_inbound,
			"bytes at a time (net.core.rmem_max)");
	info_text(i, "memory_registration", "memory registration",
		f->memreg == RPCRDMA_MEMREG_MW ? "mw" : "static");
	info_text(i, "private_data", "private data", f->facts.has_priv ? "yes" : "none");
	if (f->facts.has_priv) {
		info_number(i, "server_inline_send", "  server sends", f->facts.peer_send,
			"bytes inline");
		info_number(i, "server_inline_receive", "  server receives", f->facts.peer_recv,
			"bytes inline");
	}
	info_number(i, "inline_send", "inline sent", f->send_max, "bytes");
	info_number(i, "inline_receive", "inline received", f->recv_max, "bytes");
}

static void print_answers(struct info *i, const struct probe_found *f)
{
	char of[40];

	snprintf(of, sizeof(of), "of %u that were asked for", f->facts.asked);
	info_number(i, "rpcrdma_version", "RPC-over-RDMA version", f->facts.version, "");
	info_number(i, "credits", "credits granted", f->facts.granted, of);
	info_text(i, "remote_invalidation", "remote invalidation", inval_name(f->inval));
	info_number(i, "null_calls", "NULL calls answered", f->calls, "");
	info_number(i, "round_trip_us", "  the quickest", (f->rtt_ns + 500) / 1000, "us");
}

void probe_print(FILE *out, const char *server, const struct probe_found *f, bool json)
{
	struct info i = {.out = out, .json = json, .comma = ""};

	if (!f->up)
		return;
	if (json)
		fputc('{', out);
	info_text(&i, "server", "server", server);
	print_connection(&i, f);
	if (f->calls > 0)
		print_answers(&i, f);
	if (json)
		fputs("}\n", out);
}
