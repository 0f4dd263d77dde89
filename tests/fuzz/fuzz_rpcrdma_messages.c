/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input is a series of messages to a whole transport with three calls in
 * flight (a Write chunk, a Reply chunk, inline). Each message is
 *
 *   1 byte   bits 0-1: 1..3: its XID becomes that of call 1..3; bit 2: so does
 *            the XID of the RPC message at +28; bit 3: the call's key is
 *            invalidated; bit 4: the call's own lists are put in front
 *   1 byte   length in words
 *   ...      the bytes
 *
 * Afterwards the server behaves: every call must end once, every request,
 * buffer, window must come back (rig_fini).
 */
#include "fuzz.h"

#include <string.h>

#include "../unit/rpcrdma/rig.h"

static struct call c[3];
static struct rpcrdma_hdr hdrs[3];
static uint32_t keys[3];

static void start(struct rpcrdma_buf *bufs[2])
{
	for (int i = 0; i < 3; i++) {
		call_init(&c[i], 20);
		if (i == 0) {
			c[i].req.results[0].sink =
				(struct rpcrdma_span){bufs[0], bufs[0]->data, 20000};
			c[i].req.result_cnt = 1;
		} else if (i == 1) {
			c[i].req.reply_max = 8000;
			c[i].req.reply_sink = (struct rpcrdma_span){bufs[1], bufs[1]->data, 8000};
		}
		FUZZ_CHECK(call_send(&c[i]) == 0);
		rig_run(100);
		hdrs[i] = rig.hdr;
		keys[i] = rig_key();
	}
}

/* Returns the bytes that were taken. */
static size_t message(const uint8_t *data, size_t size)
{
	uint8_t msg[4096], flags = data[0];
	size_t len = 4 * (size_t)data[1], at = 0;
	int i = (flags & 3) - 1;
	struct xdr_enc enc;

	if (len > size - 2)
		len = size - 2;
	if (i >= 0 && (flags & 16)) {
		struct rpcrdma_hdr h = hdrs[i];

		h.read_cnt = 0;
		xdr_enc_init(&enc, msg, sizeof(msg));
		rpcrdma_hdr_encode(&enc, &h);
		at = xdr_enc_len(&enc);
	}
	memcpy(msg + at, data + 2, len);
	if (i >= 0 && at + len >= 4)
		put_be32(msg, hdrs[i].xid);
	if (i >= 0 && (flags & 4) && at + len >= 32)
		put_be32(msg + 28, hdrs[i].xid);
	fake_message(msg, at + len, i >= 0 && (flags & 8) ? keys[i] : 0);
	rig_run(100);
	return len + 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpcrdma_buf *bufs[2];

	rig_init();
	rig_quiet();
	rig.conf.credits = 4;
	rig.conf.data_cnt = 2;
	rig.conf.data_size = 20480;
	rig.conf.max_seg = 8192;
	rig.answer_rcalls = true;
	FUZZ_CHECK(rig_connect());
	bufs[0] = rpcrdma_buf_get(rig.x);
	bufs[1] = rpcrdma_buf_get(rig.x);
	call_start(&c[0], false);
	rig_run(100);
	rig.silent = true;
	start(bufs);
	while (size >= 2) {
		size_t taken = message(data, size);

		data += taken;
		size -= taken;
	}
	rig.silent = false;
	rig_run(200 * NSEC_PER_SEC);
	for (int i = 0; i < 3; i++)
		FUZZ_CHECK(c[i].done == 1);
	rpcrdma_buf_put(rig.x, bufs[0]);
	rpcrdma_buf_put(rig.x, bufs[1]);
	rig_fini();
	return 0;
}
