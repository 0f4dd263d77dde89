/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Golden wire vectors of one operation and what must hold for every
 * operation's codec, whatever it is about.
 *
 * Vectors are text: hex digits, blanks between them as one likes.
 */
#ifndef RPCRDMAFS_OP_TEST_H
#define RPCRDMAFS_OP_TEST_H

#include "fake_start.h"

#define OP_TEST_RESULTS 11

struct op_golden {
	void (*op)(struct nfs4_call *call);
	/* Fills call->u. */
	void (*setup)(struct nfs4_call *call);
	unsigned int minor;
	const uint32_t *supported; /* NULL: not known */
	const char *args; /* every operation after SEQUENCE, without an argument that moves */
	const char *results[OP_TEST_RESULTS]; /* one an operation, opnum and status included */
	/* Results from this one on may fail without failing the call; 0: none. */
	unsigned int forgiven;
	/* The operations' bounds, 8 bytes of opnum and status for each included. */
	uint32_t reply_max;
	uint32_t ddp_len; /* bytes of the results that may go by Write chunk: not in reply_max */
	bool cachethis;
	size_t inline_max; /* what it is encoded for; 0: not known */
	/* The call after a good decode. */
	void (*check)(const struct nfs4_call *call);
};

struct op_test {
	struct nfs4_call call;
	const struct nfs4_opdesc *desc;
	struct nfs4_compound c;
	enum nfs4_status status; /* what the call layer would see after decode */
};

/* A call set up by g, its descriptor known. */
void op_test_init(struct op_test *t, const struct op_golden *g);
/* Encodes into exactly `room` bytes; the text is compared unless args is NULL. */
int op_test_encode(struct op_test *t, const struct op_golden *g, size_t room, const char *args);
/* Decodes a reply of `cnt` results with this status; memory ends where the text does. */
int op_test_decode(
	struct op_test *t, const char *const *results, unsigned int cnt, enum nfs4_status status);
/* The same from bytes. */
int op_test_decode_bytes(
	struct op_test *t, const uint8_t *p, size_t len, unsigned int cnt, enum nfs4_status status);
/*
 * All of it: the arguments as they should be, no byte beyond any smaller buffer; the reply's
 * bound; a good reply; replies cut at every byte, with a wrong operation at each place, with a
 * result too many; an error at each operation.
 */
void op_golden_check(const struct op_golden *g);

/* Bytes of a vector; the caller frees them. */
uint8_t *op_test_hex(const char *text, size_t *ret_len);

/* What many vectors are made of. */
extern const struct nfs4_fh op_test_fh, op_test_fh2; /* 0a0b0c0d; 01..05 */
#define HEX_FH      "00000004 0a0b0c0d"
#define HEX_FH2     "00000005 0102030405 000000"
#define HEX_PUTFH   "00000016 " HEX_FH " "
#define HEX_PUTFH2  "00000016 " HEX_FH2 " "
#define HEX_SAVEFH  "00000020 "
#define HEX_RESTORE "0000001f "
#define HEX_GETFH   "0000000a "
/* GETATTR of NFS4_ATTR_STAT, NFS4_ATTR_DIR, NFS4_ATTR_WRITTEN with everything supported */
#define HEX_GETATTR_STAT    "00000009 00000002 0010011a 0030a23a "
#define HEX_GETATTR_DIR     "00000009 00000002 00000018 00300008 "
#define HEX_GETATTR_WRITTEN "00000009 00000002 00000018 00300000 "

#define RES_PUTFH   "00000016 00000000"
#define RES_SAVEFH  "00000020 00000000"
#define RES_RESTORE "0000001f 00000000"
#define RES_GETFH2  "0000000a 00000000 " HEX_FH2
#define RES_CINFO   "00000001 0000000000000064 0000000000000065"
extern const char op_test_res_stat[];    /* a GETATTR result: checked by op_test_is_stat() */
extern const char op_test_res_dir[];     /* by op_test_is_dir() */
extern const char op_test_res_written[]; /* by op_test_is_written() */
void op_test_is_stat(const struct nfs4_attr *attr);
void op_test_is_dir(const struct nfs4_attr *attr);
void op_test_is_written(const struct nfs4_attr *attr);
void op_test_is_fh2(const struct nfs4_fh *fh);
void op_test_is_cinfo(const struct nfs4_cinfo *ci);

/* Bounds of the GETATTRs above, with opnum and status. */
#define MAX_STAT    (8u + 20u + 368u)
#define MAX_DIR     (8u + 20u + 44u)
#define MAX_WRITTEN (8u + 20u + 40u)
#define MAX_GETFH   (8u + 4u + 128u)

#endif
