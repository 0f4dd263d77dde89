/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input is what follows opnum and status in READDIR's result; its first
 * byte says how many entries the user takes (0: all), the second is the low
 * byte of the cookie asked from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_start.h"
#include "fuzz.h"

static unsigned int seen, stop_after;

static bool entry(struct nfs4_call *call, const struct nfs4_dirent *de)
{
	FUZZ_CHECK(call && de->cookie);
	FUZZ_CHECK(de->name.len >= 1 && de->name.len <= NFS4_MAXNAMLEN);
	fuzz_touch(de->name.p, de->name.len);
	FUZZ_CHECK(!memchr(de->name.p, '/', de->name.len));
	FUZZ_CHECK(!memchr(de->name.p, '\0', de->name.len));
	FUZZ_CHECK(de->name.len != 1 || de->name.p[0] != '.');
	FUZZ_CHECK(de->name.len != 2 || memcmp(de->name.p, "..", 2));
	FUZZ_CHECK(!(de->attr.valid & NFS4_ATTR_FH) == !de->fh.len);
	FUZZ_CHECK(!stop_after || seen < stop_after);
	seen++;
	return !stop_after || seen != stop_after;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t head[] = {
		0, 0, 0, OP_PUTFH, 0, 0, 0, 0, 0, 0, 0, OP_READDIR, 0, 0, 0, 0};
	static const struct nfs4_fh fh = {1, {1}};
	static struct nfs4_call call;
	struct nfs4_compound c = {.call = &call, .op_cnt = 2};
	const struct nfs4_opdesc *desc;
	uint8_t *reply;
	int ret;

	if (size < 2)
		return 0;
	seen = 0;
	stop_after = data[0];
	call.u.readdir = (struct nfs4_op_readdir){.fh = &fh, .cookie = data[1], .entry = entry};
	desc = fake_start(nfs4_readdir, &call);
	size -= 2;
	reply = malloc(sizeof(head) + size);
	FUZZ_CHECK(reply);
	memcpy(reply, head, sizeof(head));
	memcpy(reply + sizeof(head), data + 2, size);
	xdr_dec_init(&c.dec, reply, sizeof(head) + size);
	ret = desc->decode(&call, &c);
	FUZZ_CHECK(ret == 0 || ret == -EBADMSG);
	FUZZ_CHECK(ret == 0 || !call.u.readdir.eof);
	/* It can be gone on with: something new came, or it is the end, or the user stopped. */
	FUZZ_CHECK(ret || call.u.readdir.eof || seen || call.u.readdir.skipped);
	free(reply);
	return 0;
}
