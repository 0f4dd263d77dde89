/* SPDX-License-Identifier: BSD-3-Clause */
/* A path that takes no large packets, which nobody says. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include "roce_rig.h"

#define LARGE 2000u

TestSuite(roce_mtu, .init = rig_set_up, .fini = rig_tear_down);

static void next_has(uint32_t mtu)
{
	struct fab_path path;

	peer_expects_mtu(mtu);
	rig_connect_again();
	cr_assert(roce_impl.ep_path(ep, &path));
	cr_assert_eq(path.mtu, mtu);
}

/* The owner gives this connection up; the next one has that path MTU. */
static void given_up(uint32_t next_mtu)
{
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	next_has(next_mtu);
}

Test(roce_mtu, is_smaller_if_nothing_large_came_that_a_window_waits_for)
{
	rig_window(0, 10000, FAB_REMOTE_WRITE);
	given_up(4096);
	rig_window(0, 1025, FAB_REMOTE_WRITE);
	given_up(1024);
	rig_window(0, 10000, FAB_REMOTE_WRITE);
	given_up(1024);
	given_up(1024);
}

Test(roce_mtu, is_the_same_if_nothing_large_was_due)
{
	for (int i = 0; i < 4; i++) {
		if (i < 2)
			rig_window(0, 1024, FAB_REMOTE_WRITE);
		else
			rig_window(0, 10000, FAB_REMOTE_READ);
		given_up(4096);
	}
}

Test(roce_mtu, is_the_same_if_something_large_came)
{
	uint32_t rkey;

	rig_window(0, 10000, FAB_REMOTE_WRITE);
	given_up(4096);
	rkey = rig_window(0, 10000, FAB_REMOTE_WRITE);
	peer_reth(reth, rig_at(0), rkey, 1025);
	rig_asks(0x0a, peer.psn, reth, 16, text, 1025);
	rig_answers(0x1f, peer.psn);
	given_up(4096);
	/* Those before it do not count any more. */
	rig_window(0, 10000, FAB_REMOTE_WRITE);
	given_up(4096);
	/* One on which nothing was due is no reason for anything. */
	given_up(4096);
	rig_window(0, 10000, FAB_REMOTE_WRITE);
	given_up(1024);
}

/* Reads of LARGE bytes, the n-th of the connection. */
static uint32_t key;

static void asks_large(uint32_t n)
{
	rig_asks_read(peer.psn + n, key, 0, LARGE);
	rig_reads(0x10, peer.psn + n, 0, LARGE);
}

Test(roce_mtu, is_smaller_if_the_answer_of_a_read_never_arrives)
{
	for (int i = 0; i < 2; i++) {
		key = rig_window(0, LARGE, FAB_REMOTE_READ);
		for (int n = 0; n < 4; n++) {
			asks_large(0);
			asks_large(1);
		}
		given_up(i ? 1024 : 4096);
	}
}

Test(roce_mtu, is_the_same_if_the_answer_arrives_after_all)
{
	for (int i = 0; i < 3; i++) {
		key = rig_window(0, LARGE, FAB_REMOTE_READ);
		for (int n = 0; n < 3; n++)
			asks_large(0);
		given_up(4096);
	}
}

Test(roce_mtu, is_the_same_if_more_reads_came_than_may_wait)
{
	for (int i = 0; i < 3; i++) {
		key = rig_window(0, LARGE, FAB_REMOTE_READ);
		for (uint32_t n = 0; n < 17; n++)
			asks_large(n);
		for (int n = 0; n < 4; n++)
			asks_large(16);
		given_up(4096);
	}
}

Test(roce_mtu, is_smaller_if_answers_are_large_however_many_came)
{
	for (int i = 0; i < 2; i++) {
		key = rig_window(0, LARGE, FAB_REMOTE_READ);
		for (uint32_t n = 0; n < 20; n++) {
			rig_asks_read(peer.psn + n, key, 0, 1024);
			rig_reads(0x10, peer.psn + n, 0, 1024);
		}
		for (int n = 0; n < 4; n++)
			asks_large(20);
		given_up(i ? 1024 : 4096);
	}
}

/* The peer misses this Send until the connection is lost. */
static void never_arrives(uint32_t psn, uint32_t n)
{
	rig_post(0, n, 1);
	rig_sends(0x04, psn, 0, n);
	for (unsigned int i = 0; i < rig_conf.retry_count; i++) {
		peer_ack(&peer, 0x60, psn);
		rig_sends(0x04, psn, 0, n);
	}
	peer_ack(&peer, 0x60, psn);
	rig_sees("Dx.");
}

Test(roce_mtu, is_smaller_if_a_large_send_never_arrives)
{
	never_arrives(OURS, 1025);
	next_has(4096);
	never_arrives(OURS, MTU);
	next_has(1024);
}

Test(roce_mtu, is_the_same_if_a_small_send_never_arrives)
{
	for (int i = 0; i < 3; i++) {
		never_arrives(OURS, 1024);
		next_has(4096);
	}
}

/* A wire that is cut: a window waits for something large, and nothing at all passes. */
Test(roce_mtu, is_the_same_if_a_window_waits_and_a_small_send_never_arrives)
{
	for (int i = 0; i < 3; i++) {
		rig_window(0, 10000, FAB_REMOTE_WRITE);
		never_arrives(OURS + 1, 1024);
		memset(seen, 0, sizeof(seen));
		next_has(4096);
	}
}

Test(roce_mtu, is_the_same_if_a_large_send_has_arrived)
{
	for (int i = 0; i < 3; i++) {
		rig_post(0, 1025, 1);
		rig_sends(0x04, OURS, 0, 1025);
		peer_ack(&peer, 0x1f, OURS);
		rig_sees("s");
		memset(seen, 0, sizeof(seen));
		never_arrives(OURS + 1, 1025);
		next_has(4096);
	}
}

/* Large packets do not pass, and that is known; the next connection is from `src` to `dst`. */
static void learned_and_elsewhere(const char *src, const char *dst, uint32_t mtu)
{
	struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};

	rig_window(0, 10000, FAB_REMOTE_WRITE);
	given_up(4096);
	rig_window(0, 10000, FAB_REMOTE_WRITE);
	given_up(1024);
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	to.sin_port = htons(20049);
	inet_pton(AF_INET, src, &from.sin_addr);
	inet_pton(AF_INET, dst, &to.sin_addr);
	cr_assert_eq(roce_impl.ep_resolve(
			     ep, (const struct sockaddr *)&from, (const struct sockaddr *)&to),
		0);
	cr_assert_eq(roce_of(ep)->mtu, mtu);
}

Test(roce_mtu, of_another_peer_is_another_one)
{
	learned_and_elsewhere("127.0.0.1", "127.0.0.99", 4096);
}

Test(roce_mtu, from_another_address_is_another_one)
{
	learned_and_elsewhere("127.0.0.98", "127.0.0.2", 4096);
}

Test(roce_mtu, of_the_same_way_is_the_same)
{
	learned_and_elsewhere("127.0.0.1", "127.0.0.2", 1024);
}
