/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe_print.h"

static struct probe_found found(void)
{
	struct probe_found f = {
		.peer = "10.77.0.1:20049",
		.up = true,
		.facts = {.fabric = RPCRDMA_FABRIC_VERBS,
			.mtu = 1024,
			.version = 1,
			.asked = 64,
			.granted = 32,
			.has_priv = true,
			.peer_send = 4096,
			.peer_recv = 8192},
		.device = "rxe0",
		.memreg = RPCRDMA_MEMREG_MW,
		.send_max = 4096,
		.recv_max = 2048,
		.calls = 5,
		.rtt_ns = 84600,
		.inval = PROBE_INVAL_YES,
	};
	struct sockaddr_in local = {.sin_family = AF_INET};

	local.sin_addr.s_addr = htonl(0x0a4d0002);
	memcpy(&f.facts.local, &local, sizeof(local));
	return f;
}

static void expect(const struct probe_found *f, bool json, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	probe_print(out, "server", f, json);
	fclose(out);
	cr_assert_str_eq(text, want, "%s", text);
	free(text);
}

Test(probe_print, an_answer_in_the_form_of_info)
{
	struct probe_found f = found();

	expect(&f, false,
		"server                 server\n"
		"address                10.77.0.1:20049\n"
		"local address          10.77.0.2\n"
		"fabric                 verbs\n"
		"device                 rxe0\n"
		"path MTU               1024 bytes\n"
		"memory registration    mw\n"
		"private data           yes\n"
		"  server sends         4096 bytes inline\n"
		"  server receives      8192 bytes inline\n"
		"inline sent            4096 bytes\n"
		"inline received        2048 bytes\n"
		"RPC-over-RDMA version  1\n"
		"credits granted        32 of 64 that were asked for\n"
		"remote invalidation    yes\n"
		"NULL calls answered    5\n"
		"  the quickest         85 us\n");
}

Test(probe_print, an_answer_as_json)
{
	struct probe_found f = found();

	expect(&f, true,
		"{\"server\":\"server\",\"address\":\"10.77.0.1:20049\","
		"\"local_address\":\"10.77.0.2\",\"fabric\":\"verbs\",\"device\":\"rxe0\","
		"\"path_mtu\":1024,\"memory_registration\":\"mw\",\"private_data\":\"yes\","
		"\"server_inline_send\":4096,\"server_inline_receive\":8192,"
		"\"inline_send\":4096,\"inline_receive\":2048,\"rpcrdma_version\":1,"
		"\"credits\":32,\"remote_invalidation\":\"yes\",\"null_calls\":5,"
		"\"round_trip_us\":85}\n");
}

/* A device is none, what is not known is not shown. */
Test(probe_print, without_a_device_and_without_private_data)
{
	struct probe_found f = found();

	f.facts.fabric = RPCRDMA_FABRIC_SOFT;
	f.facts.max_inbound = 170393;
	f.facts.has_priv = false;
	f.facts.mtu = 0;
	f.facts.local.ss_family = AF_UNSPEC;
	f.memreg = RPCRDMA_MEMREG_STATIC;
	f.inval = PROBE_INVAL_STATIC;
	f.calls = 1;
	expect(&f, false,
		"server                 server\n"
		"address                10.77.0.1:20049\n"
		"fabric                 soft\n"
		"server writes          170393 bytes at a time (net.core.rmem_max)\n"
		"memory registration    static\n"
		"private data           none\n"
		"inline sent            4096 bytes\n"
		"inline received        2048 bytes\n"
		"RPC-over-RDMA version  1\n"
		"credits granted        32 of 64 that were asked for\n"
		"remote invalidation    no: without memory windows\n"
		"NULL calls answered    1\n"
		"  the quickest         85 us\n");
}

Test(probe_print, a_connection_without_an_answer_is_shown_as_far_as_it_is_known)
{
	struct probe_found f = found();
	char want[] = "{\"server\":\"server\",\"address\":\"10.77.0.1:20049\","
		      "\"local_address\":\"10.77.0.2\",\"fabric\":\"verbs\",\"device\":\"rxe0\","
		      "\"path_mtu\":1024,\"memory_registration\":\"mw\",\"private_data\":\"yes\","
		      "\"server_inline_send\":4096,\"server_inline_receive\":8192,"
		      "\"inline_send\":4096,\"inline_receive\":2048}\n";

	f.calls = 0;
	expect(&f, true, want);
}

Test(probe_print, without_a_connection_there_is_nothing_to_say)
{
	struct probe_found f = found();

	f.up = false;
	expect(&f, false, "");
	expect(&f, true, "");
}

Test(probe_print, an_ipv6_address_is_shown)
{
	struct probe_found f = found();
	struct sockaddr_in6 local = {.sin6_family = AF_INET6};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_eq(inet_pton(AF_INET6, "fd77::2", &local.sin6_addr), 1);
	memcpy(&f.facts.local, &local, sizeof(local));
	probe_print(out, "server", &f, false);
	fclose(out);
	cr_assert(strstr(text, "local address          fd77::2\n"), "%s", text);
	free(text);
}
