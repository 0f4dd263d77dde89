/* SPDX-License-Identifier: BSD-3-Clause */
/* Requirements of docs/protocol/rpcrdma.md that no other test is about. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

static struct call c[4];
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

TestSuite(rpcrdma_rfc, .init = start, .fini = finish);

/* A call whose data may come by Write chunk. */
static void start_read(struct call *call)
{
	call_init(call, 20);
	call->req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 65536};
	call->req.result_cnt = 1;
	cr_assert_eq(call_send(call), 0);
	rig_run(1000);
}

/* A message of `len` bytes: the fixed header, then zeros. */
static void raw(uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc, size_t len)
{
	uint8_t msg[64] = {0};

	put_be32(msg, xid);
	put_be32(msg + 4, vers);
	put_be32(msg + 8, credits);
	put_be32(msg + 12, proc);
	fake_message(msg, len, 0);
	rig_run(1000);
}

/* RFC 8166 sections 4.2.1 to 4.2.3, 4.3.1 */
Test(rpcrdma_rfc, every_form_has_version_xid_and_the_credits_asked)
{
	for (int form = 0; form < 4; form++) {
		call_init(&c[0], 20);
		if (form == 1) {
			c[0].req.args[0] = (struct rpcrdma_span){buf, buf->data, 8192};
			c[0].req.arg_cnt = 1;
		} else if (form == 2) {
			c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data, 8192};
			c[0].req.result_cnt = 1;
		} else if (form == 3) {
			memcpy(buf->data, c[0].req.head, 8);
			c[0].req.head_len = 0;
			c[0].req.long_call = (struct rpcrdma_span){buf, buf->data, 20000};
			c[0].req.args[0] = (struct rpcrdma_span){buf2, buf2->data, 8192};
			c[0].req.arg_cnt = 1;
			c[0].req.tail_len = 8;
		}
		cr_assert_eq(call_send(&c[0]), 0);
		rig_run(1000);
		cr_assert_eq(c[0].end, RPCRDMA_REPLY);
		cr_assert_eq(rig.hdr.vers, 1);
		cr_assert_eq(rig.hdr.xid, get_be32(rig.msg));
		cr_assert_eq(rig.hdr.credits, 8);
		cr_assert_eq(rig.hdr.proc, form == 3 ? RDMA_NOMSG : RDMA_MSG);
	}
	/* the last one: in order of Position, each a multiple of 4 */
	cr_assert_eq(rig.hdr.read_cnt, 2);
	cr_assert_eq(rig.hdr.reads[0].pos, 0);
	cr_assert_eq(rig.hdr.reads[1].pos, 19992);
}

/* RFC 8166 section 4.5: 28 bytes are a header; only RDMA_ERROR is shorter. */
Test(rpcrdma_rfc, a_message_shorter_than_a_header_is_dropped_whatever_its_xid)
{
	static const uint32_t procs[] = {RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_ERROR};
	unsigned int sent = 0;

	rig.silent = true;
	call_start(&c[0], false);
	rig_run(1000);
	for (size_t i = 0; i < 4; i++) {
		size_t whole = procs[i] == RDMA_ERROR ? 20 : RPCRDMA_HDR_MIN;

		for (size_t len = 0; len < whole; len++, sent++)
			raw(rig.xids[0], 1, 9, procs[i], len);
	}
	cr_assert_eq(rig.stats.bad_messages, sent);
	cr_assert_eq(c[0].done, 0);
	cr_assert_eq(rig.down, 0);
	rig_reply(rig.xids[0]);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
}

/* RFC 8166 section 3.3.3, RFC 8167 section 4: only a reply of ours carries a grant. */
Test(rpcrdma_rfc, credits_of_what_is_no_reply_are_ignored)
{
	rig.silent = true;
	call_start(&c[0], false);
	call_start(&c[1], false);
	rig_run(1000);
	raw(0x12345678, 1, 1000, RDMA_MSG, 60); /* nobody's */
	raw(rig.xids[0], 2, 1000, RDMA_MSG, 60);
	raw(rig.xids[0], 1, 1000, 9, 60);
	raw(rig.xids[0], 1, 1000, RDMA_DONE, 16);
	raw(rig.xids[0], 1, 1000, RDMA_MSG, 24);
	rig_reverse_call(rig.xids[0]);
	rig_run(1000);
	cr_assert_eq(rig.rcalls, 1);
	cr_assert_eq(rig.x->credit.granted, 1);
	cr_assert_eq(rig.calls, 1, "the second call waits for a grant");
	rig_reply(rig.xids[0]);
	rig_run(1000);
	cr_assert_eq(rig.calls, 2);
	rig_reply(rig.xids[1]);
	rig_run(1000);
	cr_assert_eq(c[1].done, 1);
}

/* RFC 8166 section 4.5: what belongs to no call, and whose direction cannot be known. */
Test(rpcrdma_rfc, a_call_of_the_server_in_another_version_is_dropped)
{
	unsigned int sends = fake.sends;

	raw(0x77, 2, 2, RDMA_MSG, 60);
	raw(0x77, 1, 2, 9, 60);
	cr_assert_eq(rig.rcalls, 0);
	cr_assert_eq(fake.sends, sends);
	cr_assert_eq(rig.down, 0);
}

/*
 * RFC 8166 section 4.6.2 says to drop RDMA_DONE. With Invalidate it took a window away all the
 * same: invalidating that one again would crash rxe.
 */
Test(rpcrdma_rfc, rdma_done_that_invalidates_a_window_replaces_the_connection)
{
	uint8_t msg[16] = {0};

	rig_quiet();
	rig.silent = true;
	start_read(&c[0]);
	put_be32(msg, 0x99);
	put_be32(msg + 4, 1);
	put_be32(msg + 12, RDMA_DONE);
	fake_message(msg, sizeof(msg), rig_key());
	rig.silent = false;
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.stats.reconnects, 1);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(rig.stats.retransmits, 1);
}

/* RFC 8166 section 8.1.3: the bytes of the call, in its direction, while it runs. */
Test(rpcrdma_rfc, a_window_opens_what_the_call_needs_and_no_more)
{
	const struct rpcrdma_seg *seg = &rig.hdr.writes[0].segs[0];
	uint32_t key;

	rig.silent = true;
	call_init(&c[0], 20);
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data + 4096, 20000};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	key = rig_key();
	cr_assert_eq(seg->off, (uintptr_t)buf->data + 4096);
	cr_assert_not_null(fake_mem(key, seg->off, 20000, FAB_REMOTE_WRITE));
	cr_assert_null(fake_mem(key, seg->off, 20001, FAB_REMOTE_WRITE));
	cr_assert_null(fake_mem(key, seg->off - 1, 1, FAB_REMOTE_WRITE));
	cr_assert_null(fake_mem(key, seg->off, 1, FAB_REMOTE_READ));
	rig_reply(c[0].req.xid);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_null(fake_mem(key, (uintptr_t)buf->data + 4096, 1, FAB_REMOTE_WRITE));
}

static bool is_open(const uint8_t *p, size_t len)
{
	for (uint32_t i = 0; i < rig.hdr.write_cnt; i++)
		if (fake_mem(rig.hdr.writes[i].segs[0].handle, (uintptr_t)p, len, FAB_REMOTE_WRITE))
			return true;
	return false;
}

/* RFC 8166 section 8.1.3: not what lies between the parts of a buffer that it uses. */
Test(rpcrdma_rfc, a_window_does_not_open_what_lies_between)
{
	struct rpcrdma_result *r = c[0].req.results;

	rig.silent = true;
	rig.data_len = 1000;
	call_init(&c[0], 20);
	r[0].sink = (struct rpcrdma_span){buf, buf->data, 4096};
	r[1].sink = (struct rpcrdma_span){buf, buf->data + 12288, 4096};
	r[2].sink = (struct rpcrdma_span){buf, buf->data + 4096, 4096};
	r[3].sink = (struct rpcrdma_span){buf, buf->data + 8196, 4092};
	c[0].req.result_cnt = 4;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(fake_open_windows(), 2);
	cr_assert(is_open(buf->data, 8192));
	cr_assert(is_open(buf->data + 8196, 8188));
	cr_assert_not(is_open(buf->data + 8192, 1));
	cr_assert_not(is_open(buf->data + 8195, 1));
	rig_reply(c[0].req.xid); /* each chunk has the key of its memory */
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(fake_open_windows(), 0);
}

/* The peer may read the one and write the other, and neither both. */
Test(rpcrdma_rfc, the_directions_of_a_buffer_have_windows_of_their_own)
{
	rig.silent = true;
	call_init(&c[0], 20);
	c[0].req.args[0] = (struct rpcrdma_span){buf, buf->data, 8192};
	c[0].req.arg_cnt = 1;
	c[0].req.results[0].sink = (struct rpcrdma_span){buf, buf->data + 8192, 4096};
	c[0].req.result_cnt = 1;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(fake_open_windows(), 2);
	rig_reply(c[0].req.xid);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(fake_open_windows(), 0);
}

/* Parts that are joined only by the last one: each is found where it lies. */
Test(rpcrdma_rfc, the_key_of_a_part_is_that_of_its_window)
{
	struct rpcrdma_result *r = c[0].req.results;

	rig.data_len = 1000;
	call_init(&c[0], 20);
	r[0].sink = (struct rpcrdma_span){buf, buf->data, 4096};
	r[1].sink = (struct rpcrdma_span){buf, buf->data + 8192, 4096};
	r[2].sink = (struct rpcrdma_span){buf, buf->data + 4096, 4096};
	c[0].req.result_cnt = 3;
	cr_assert_eq(call_send(&c[0]), 0);
	rig_run(1000);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(fake_open_windows(), 0);
}

/* RFC 8166 section 4.5.4: the connection is closed before the call ends. */
Test(rpcrdma_rfc, memory_that_cannot_be_invalidated_is_closed_with_the_connection)
{
	rig_quiet();
	rig.no_inval = true;
	fake.fail[FAKE_INVALIDATE] = -EIO;
	start_read(&c[0]);
	rig_run(2 * NSEC_PER_SEC);
	cr_assert_eq(rig.down, 1);
	cr_assert_eq(c[0].done, 1);
	cr_assert_eq(c[0].end, RPCRDMA_REPLY);
	cr_assert_eq(fake_open_windows(), 0);
}

/* RFC 8166 section 4.5: same XID and version as the call that it answers. */
Test(rpcrdma_rfc, an_error_to_the_server_names_the_call)
{
	struct rpcrdma_hdr h = {.xid = 0x4242, .vers = 1, .credits = 2, .proc = RDMA_NOMSG};

	h.read_cnt = 1;
	h.reads[0] = (struct rpcrdma_read_seg){0, {0x1234, 4096, 0}};
	rig_send_hdr(&h, NULL, 0, 0);
	rig_run(1000);
	cr_assert_eq(rig.hdr.proc, RDMA_ERROR);
	cr_assert_eq(rig.hdr.err, RDMA_ERR_CHUNK);
	cr_assert_eq(rig.hdr.xid, 0x4242);
	cr_assert_eq(rig.hdr.vers, 1);
	cr_assert_neq(rig.hdr.credits, 0);
}
