/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "log.h"
#include "rig.h"

static struct call c[12];
static struct rpcrdma_buf *buf, *buf2;

static void start(void)
{
	rig_init();
	cr_assert(rig_connect());
	buf = rpcrdma_buf_get(rig.x);
	buf2 = rpcrdma_buf_get(rig.x);
}

static void finish(void)
{
	rpcrdma_buf_put(rig.x, buf);
	rpcrdma_buf_put(rig.x, buf2);
	rig_fini();
}

TestSuite(rpcrdma_reply, .init = start, .fini = finish);

static void start_read(struct call *call, uint32_t len)
{
	call_init(call, 20);
	call->keep = true;
	call->req.results[0].sink = (struct rpcrdma_span){buf, buf->data, len};
	call->req.result_cnt = 1;
	cr_assert_eq(call_send(call), 0);
	rig_run(1000);
}

static void put(struct call *call)
{
	rpcrdma_req_put(rig.x, &call->req);
}

Test(rpcrdma_reply, data_lands_in_the_write_chunk)
{
	rig.data_len = 30001;
	memset(rig.data, 0x5a, sizeof(rig.data));
	start_read(&c[0], 65536);
	cr_assert_eq(c[0].done, 1);
	cr_assert(c[0].req.results[0].used);
	cr_assert_eq(c[0].req.results[0].got, 30001);
	cr_assert_eq(buf->data[30000], 0x5a);
	cr_assert_eq(buf->data[30001], 0);
	cr_assert_eq(rig.stats.write_chunks, 1);
	cr_assert_eq(rig.stats.remote_invals, 1);
	put(&c[0]);
}

Test(rpcrdma_reply, the_fabric_hears_which_send_was_answered)
{
	start_read(&c[0], 65536);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(fake.answers, 1);
	cr_assert_eq(fake.answered, c[0].req.idx);
	put(&c[0]);
}

Test(rpcrdma_reply, an_unused_write_chunk_is_told)
{
	start_read(&c[0], 65536);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_not(c[0].req.results[0].used);
	cr_assert_eq(rig.stats.write_chunks_unused, 1);
	put(&c[0]);
}

Test(rpcrdma_reply, a_reply_without_the_offered_write_list_means_unused)
{
	struct rpcrdma_hdr h = {.vers = 1, .credits = 9};
	uint8_t body[24] = {0};

	rig.silent = true;
	start_read(&c[0], 65536);
	h.xid = c[0].req.xid;
	put_be32(body, h.xid);
	put_be32(body + 4, 1);
	rig_send_hdr(&h, body, sizeof(body), 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(c[0].req.results[0].got, 0);
	cr_assert_eq(rig.stats.local_invals, 1);
	put(&c[0]);
}

Test(rpcrdma_reply, a_request_sent_again_tells_nothing_of_its_last_reply)
{
	struct rpcrdma_hdr h = {.vers = 1, .credits = 9};
	uint8_t body[24] = {0};

	rig.data_len = 30001;
	start_read(&c[0], 65536);
	cr_assert(c[0].req.results[0].used);
	rig.silent = true;
	h.xid = rpcrdma_next_xid(rig.x);
	put_be32(c[0].req.head, h.xid);
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	put_be32(body, h.xid);
	put_be32(body + 4, RPC_MSG_REPLY);
	rig_send_hdr(&h, body, sizeof(body), 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 2);
	cr_assert_not(c[0].req.results[0].used);
	cr_assert_eq(c[0].req.results[0].got, 0);
	put(&c[0]);
}

Test(rpcrdma_reply, two_results_are_matched_in_order)
{
	rig.data_len = 20000;
	rig.data_len2 = 9001;
	memset(rig.data, 1, 20000);
	memset(rig.data + 20000, 2, 20000);
	call_init(&c[0], 20);
	c[0].keep = true;
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.results[1].sink = (struct rpcrdma_span){buf2, buf2->data, 20000};
	c[0].req.result_cnt = 2;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(buf->data[0], 1);
	cr_assert_eq(buf2->data[0], 2);
	cr_assert_eq(c[0].req.results[0].got, 20000);
	cr_assert_eq(c[0].req.results[1].got, 9001);
	cr_assert_eq(rig.stats.local_invals, 2); /* two keys */
	put(&c[0]);
}

Test(rpcrdma_reply, two_results_in_one_buffer_share_a_window)
{
	rig.data_len = 20000;
	call_init(&c[0], 20);
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 20000};
	c[0].req.results[1].sink = (struct rpcrdma_span){buf, buf->data + 20000, 20000};
	c[0].req.result_cnt = 2;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.stats.remote_invals, 1);
}

Test(rpcrdma_reply, a_long_reply_comes_by_reply_chunk)
{
	rig.body_len = 6000;
	memset(rig.body, 0x77, rig.body_len);
	call_init(&c[0], 20);
	c[0].req.reply_max = 8000;
	c[0].req.reply_sink = (struct rpcrdma_span){buf, buf->data, 8000};
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(c[0].reply_len, 6024);
	cr_assert_eq(c[0].reply[6023], 0x77);
	cr_assert_eq(rig.stats.reply_chunks, 1);
	cr_assert_eq(fake_open_windows(), 0);
}

Test(rpcrdma_reply, without_remote_invalidation_data_waits_for_the_local_one)
{
	rig.no_inval = true;
	rig.data_len = 20000;
	fake.hold_invals = true;
	start_read(&c[0], 65536);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(fake_open_windows(), 1);
	fake_flush_invals();
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.stats.local_invals, 1);
	fake.hold_invals = false;
	put(&c[0]);
}

/* I6: more arrives than there are receives, and none of it over the reply. */
Test(rpcrdma_reply, what_waits_for_its_fence_is_not_written_over)
{
	struct rpcrdma_hdr h = {.vers = 1, .credits = 8, .proc = RDMA_MSG};
	uint8_t noise[128];

	memset(rig.body, 0x5a, rig.body_len = 64);
	memset(noise, 0xa5, sizeof(noise));
	rig.no_inval = true;
	fake.hold_invals = true;
	start_read(&c[0], 65536);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(fake.recvs, rig.x->rep_cnt - 1);
	h.xid = c[0].req.xid + 1;
	for (unsigned int i = 0; i < 2 * rig.x->rep_cnt; i++)
		rig_send_hdr(&h, noise, sizeof(noise), 0);
	rig_run(1000);
	cr_assert_eq(rig.stats.stray_replies, 2 * rig.x->rep_cnt);
	fake.hold_invals = false;
	fake_flush_invals();
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].reply_len, 24 + 64);
	cr_assert_arr_eq(c[0].reply + 24, rig.body, 64);
	cr_assert_eq(fake.recvs, rig.x->rep_cnt);
	put(&c[0]);
}

Test(rpcrdma_reply, a_key_that_is_another_calls_replaces_the_connection)
{
	struct rpcrdma_hdr h;
	uint8_t body[24] = {0};
	uint32_t key;

	call_start(&c[2], false);
	rig_run(1000);
	rig.silent = true;
	start_read(&c[0], 65536);
	key = rig_key();
	start_read(&c[1], 65536);
	h = rig.hdr;
	put_be32(body, h.xid);
	put_be32(body + 4, 1);
	h.writes[0].segs[0].len = 0;
	rig.silent = false;
	rig_send_hdr(&h, body, sizeof(body), key);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[1].end, RPCRDMA_BADREPLY);
	cr_assert_eq(c[1].reply_len, 0);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY); /* sent again */
	cr_assert_eq(rig.stats.bad_messages, 1);
	cr_assert_eq(rig.stats.reconnects, 1);
	cr_assert_eq(rig.stats.retransmits, 1);
	put(&c[0]);
	put(&c[1]);
}

Test(rpcrdma_reply, err_chunk_ends_the_call_and_fences_its_memory)
{
	rig.silent = true;
	start_read(&c[0], 65536);
	rig_error(c[0].req.xid, RDMA_ERR_CHUNK);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_TOOSMALL);
	cr_assert_eq(fake_open_windows(), 0);
	cr_assert_eq(rig.stats.rdma_errors, 1);
	cr_assert_eq(rig.stats.reconnects, 0);
	put(&c[0]);
}

static unsigned int lines;

static void count_line(void *ctx, enum log_level level, const char *line)
{
	lines++;
}

Test(rpcrdma_reply, a_server_cannot_flood_the_log)
{
	log_set_level(LOG_LVL_WARN);
	log_set_sink(count_line, NULL);
	rig.silent = true;
	for (int i = 0; i < 200; i++) {
		call_start(&c[0], false);
		rig_run(1000);
		rig_error(c[0].req.xid, RDMA_ERR_VERS);
		rig_run(1000);
		cr_assert_eq(c[0].end, RPCRDMA_REFUSED);
	}
	rig_quiet();
	cr_assert_geq(lines, 1);
	cr_assert_leq(lines, 20);
}

Test(rpcrdma_reply, err_vers_refuses_the_call)
{
	rig.silent = true;
	start_read(&c[0], 100);
	rig_error(c[0].req.xid, RDMA_ERR_VERS);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REFUSED);
	put(&c[0]);
}

Test(rpcrdma_reply, an_unknown_error_code_is_a_bad_reply)
{
	rig.silent = true;
	start_read(&c[0], 100);
	rig_error(c[0].req.xid, 3);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(c[0].end, RPCRDMA_BADREPLY);
	put(&c[0]);
}

Test(rpcrdma_reply, duplicate_and_stray_replies_are_counted_and_dropped)
{
	call_start(&c[0], false);
	rig_run(1000);
	rig_reply(rig.xids[0]);
	rig_reply(0x99999999);
	rig_error(rig.xids[0], RDMA_ERR_CHUNK);
	rig_run(1000);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(rig.stats.stray_replies, 3);
	cr_assert(rpcrdma_is_up(rig.x));
}

Test(rpcrdma_reply, a_stray_reply_with_a_key_of_no_window_is_dropped)
{
	struct rpcrdma_hdr h;
	uint8_t body[24] = {0};

	rig.silent = true;
	start_read(&c[0], 65536);
	h = rig.hdr;
	h.xid++;
	h.write_cnt = 0;
	put_be32(body, h.xid);
	put_be32(body + 4, RPC_MSG_REPLY);
	rig_send_hdr(&h, body, sizeof(body), rig_key() + 0x100);
	rig_run(1000);
	cr_assert_eq(rig.stats.stray_replies, 1);
	cr_assert(rpcrdma_is_up(rig.x));
	cr_assert_eq(c[0].done, 0);
	rig_reply(c[0].req.xid);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	put(&c[0]);
}

Test(rpcrdma_reply, garbage_of_every_length_is_survived)
{
	uint8_t msg[512];

	rig.silent = true;
	call_start(&c[0], false);
	rig_run(1000);
	for (size_t len = 0; len < sizeof(msg); len += 3) {
		memset(msg, (int)len, sizeof(msg));
		fake_message(msg, len, 0);
		rig_run(1000);
	}
	cr_assert(rpcrdma_is_up(rig.x));
	cr_assert_gt(rig.stats.bad_messages, 100);
	rig_reply(rig.xids[0]);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
}

/* Each makes one broken reply to a call with a Write chunk. */
static void break_it(struct rpcrdma_hdr *h, int how)
{
	switch (how) {
	case 0:
		h->writes[0].segs[0].len = 65537; /* more than the room */
		break;
	case 1:
		h->writes[0].cnt = 2; /* more segments than offered */
		break;
	case 2:
		h->write_cnt = 2; /* more chunks than offered */
		h->writes[1] = h->writes[0];
		break;
	case 3:
		h->read_cnt = 1; /* a Read list in a reply */
		h->reads[0] = (struct rpcrdma_read_seg){4, {1, 1, 1}};
		break;
	case 4:
		h->proc = RDMA_NOMSG; /* without a Reply chunk */
		break;
	case 5:
		h->has_reply = true; /* a Reply chunk that was not offered */
		h->reply = h->writes[0];
		break;
	case 8:
		h->write_cnt = 2; /* more chunks than offered, without segments */
		h->writes[1].cnt = 0;
		break;
	default:
		break;
	}
}

Test(rpcrdma_reply, replies_that_lie_end_the_call_and_the_connection)
{
	for (int how = 0; how < 10; how++) {
		struct rpcrdma_hdr h;
		uint8_t body[24] = {0};

		rig.silent = true;
		start_read(&c[how], 65536);
		h = rig.hdr;
		h.writes[0].segs[1] = h.writes[0].segs[0];
		break_it(&h, how);
		put_be32(body, how == 6 ? h.xid + 1 : h.xid);
		put_be32(body + 4, how == 9 ? 2 : RPC_MSG_REPLY); /* neither call nor reply */
		rig_send_hdr(&h, body, how == 7 ? 4 : sizeof(body), 0);
		rig_run(2 * NSEC_PER_SEC);
		cr_assert_eq(c[how].end, RPCRDMA_BADREPLY, "case %d", how);
		put(&c[how]);
		rig_run(31 * NSEC_PER_SEC); /* each time a longer back-off */
		cr_assert_eq(rig.stats.reconnects, (unsigned int)how + 1);
	}
}

/* NFS-Ganesha: RDMA_MSG without a body, and the reply in the Write chunk. len: of it. */
static void misplace(struct call *call, uint32_t len, uint32_t more)
{
	struct rpcrdma_hdr h;
	uint8_t *p;

	rig.silent = true;
	start_read(call, 65536);
	h = rig.hdr;
	p = fake_mem(h.writes[0].segs[0].handle, h.writes[0].segs[0].off, 65536, FAB_REMOTE_WRITE);
	for (uint32_t i = 0; i < len / 4; i++)
		put_be32(p + 4 * (size_t)i, i);
	put_be32(p, h.xid);
	put_be32(p + 4, RPC_MSG_REPLY);
	h.writes[0].segs[0].len = len;
	h.proc = RDMA_MSG;
	if (more) {
		h.write_cnt = 2;
		h.writes[1] = h.writes[0];
	}
	rig_send_hdr(&h, NULL, 0, rig_key());
	rig_run(1000);
}

Test(rpcrdma_reply, one_in_the_place_of_data_is_taken)
{
	misplace(&c[0], 100, 0);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(c[0].reply_len, 100);
	cr_assert_eq(get_be32(c[0].reply + 96), 24);
	cr_assert_eq(c[0].req.results[0].got, 0, "it is no data");
	cr_assert_not(c[0].req.results[0].used);
	cr_assert_eq(c[0].open_windows, 0);
	cr_assert_eq(rig.down, 0);
	put(&c[0]);
	rig.silent = false;
	rig.data_len = 1000;
	start_read(&c[1], 65536);
	rig_run(1000);
	cr_assert_eq(c[1].req.results[0].got, 1000);
	put(&c[1]);
}

Test(rpcrdma_reply, what_is_no_reply_in_the_place_of_data_is_not)
{
	static const struct {
		uint32_t len, more;
	} bad[] = {{0, 0}, {20, 0}, {4100, 0}, {101, 0}, {100, 1}};

	for (int i = 0; i < 5; i++) {
		misplace(&c[i], bad[i].len, bad[i].more);
		rig_run(2 * NSEC_PER_SEC);
		cr_assert_eq(c[i].end, RPCRDMA_BADREPLY, "%d", i);
		put(&c[i]);
		rig_run(31 * NSEC_PER_SEC);
	}
}

Test(rpcrdma_reply, unknown_versions_and_procedures_are_dropped_even_with_our_xid)
{
	struct rpcrdma_hdr h = {.vers = 2, .credits = 9};

	rig.silent = true;
	call_start(&c[0], false);
	rig_run(1000);
	h.xid = rig.xids[0];
	rig_send_hdr(&h, NULL, 0, 0);
	h.vers = 1;
	h.proc = 9;
	rig_send_hdr(&h, NULL, 0, 0);
	h.proc = RDMA_DONE;
	rig_send_hdr(&h, NULL, 0, 0);
	rig_run(1000);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(rig.stats.bad_messages, 2);
	cr_assert(rpcrdma_is_up(rig.x));
	rig_reply(rig.xids[0]);
	rig_run(1000);
}

Test(rpcrdma_reply, msgp_is_taken_as_msg)
{
	uint8_t msg[60] = {0};

	rig.silent = true;
	call_start(&c[0], false);
	rig_run(1000);
	put_be32(msg, rig.xids[0]);
	put_be32(msg + 4, 1);
	put_be32(msg + 8, 5);
	put_be32(msg + 12, RDMA_MSGP);
	put_be32(msg + 36, rig.xids[0]);
	put_be32(msg + 40, 1);
	fake_message(msg, sizeof(msg), 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(c[0].reply_len, 24);
}

Test(rpcrdma_reply, a_reply_longer_than_was_advertised_is_still_received)
{
	rig.body_len = 8000;
	call_start(&c[0], false);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(c[0].reply_len, 8024);
}

/* Taken for a long call of the server it would leave our call without an end. */
Test(rpcrdma_reply, a_read_list_without_a_body_ends_the_call_that_it_names)
{
	struct rpcrdma_hdr h = {.vers = 1, .credits = 32, .proc = RDMA_NOMSG, .read_cnt = 1};
	unsigned int sends;

	rig_quiet();
	h.reads[0].seg = (struct rpcrdma_seg){.handle = 1, .len = 5000, .off = 4096};
	rig.silent = true;
	call_start(&c[0], false);
	rig_run(1000);
	sends = fake.sends;
	h.xid = c[0].req.xid;
	rig_send_hdr(&h, NULL, 0, 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_BADREPLY);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(fake.sends, sends, "it was answered");
	cr_assert_eq(rig.stats.reverse_calls, 0);
	rig_run(NSEC_PER_SEC);
	cr_assert_eq(rig.stats.reconnects, 1);
	h.xid = 0x77777777; /* of no call of ours: the server's */
	rig_send_hdr(&h, NULL, 0, 0);
	rig_run(1000);
	cr_assert_eq(fake.sends, sends + 1);
	cr_assert_eq(rig.stats.reverse_calls, 1);
}
