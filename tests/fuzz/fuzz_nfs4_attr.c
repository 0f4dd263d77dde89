/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a fattr4: with a filehandle possible (READDIR) and without (GETATTR). */
#include "fuzz.h"
#include "nfs4_int.h"

static void get(const uint8_t *data, size_t size, struct nfs4_fh *fh)
{
	struct nfs4_attr a = {0};
	struct nfs4_owners names;
	struct xdr_dec x;

	xdr_dec_init(&x, data, size);
	nfs4_attr_get(&x, &a, fh, &names);
	FUZZ_CHECK(!x.failed || a.valid == 0);
	FUZZ_CHECK(x.failed || xdr_dec_pos(&x) <= size);
	FUZZ_CHECK(!(a.valid &
		     ~(NFS4_ATTR_STAT | NFS4_ATTR_MOUNTED_ON | NFS4_ATTR_FH | NFS4_ATTR_RDERROR)));
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_TYPE) || (a.type >= NF4REG && a.type <= NF4NAMEDATTR));
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_MODE) || a.mode <= 07777);
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_OWNER) || a.uid != UINT32_MAX);
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_GROUP) || a.gid != UINT32_MAX);
	/* A name lies in the input, and is nobody as long as nobody maps it. */
	FUZZ_CHECK(!names.user.p ||
		   (names.user.len >= 3 && a.uid == 65534 &&
			   (const uint8_t *)names.user.p >= data && names.user.len <= size));
	FUZZ_CHECK(!names.user.p || a.valid & NFS4_ATTR_OWNER);
	FUZZ_CHECK(!names.group.p || a.valid & NFS4_ATTR_GROUP);
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_ATIME) || (unsigned long)a.atime.tv_nsec < 1000000000u);
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_MTIME) || (unsigned long)a.mtime.tv_nsec < 1000000000u);
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_CTIME) || (unsigned long)a.ctime.tv_nsec < 1000000000u);
	FUZZ_CHECK(!(a.valid & NFS4_ATTR_RDERROR) || a.rderror != NFS4_OK);
	if (fh) {
		FUZZ_CHECK(fh->len <= NFS4_FHSIZE);
		FUZZ_CHECK(!(a.valid & NFS4_ATTR_FH) == !fh->len);
	} else {
		FUZZ_CHECK(!(a.valid & NFS4_ATTR_FH));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nfs4_fh fh;

	get(data, size, NULL);
	get(data, size, &fh);
	return 0;
}
