/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "op_test.h"

#define ARGS_ROOM 8192u /* more than any vector */

const struct nfs4_fh op_test_fh = {4, {0x0a, 0x0b, 0x0c, 0x0d}};
const struct nfs4_fh op_test_fh2 = {5, {1, 2, 3, 4, 5}};

const char op_test_res_stat[] = "00000009 00000000 00000002 0010011a 0030a23a 00000078"
				"00000001 0000000000000064 0000000000001001"
				"0000000000000001 0000000000000002 000000000000002a"
				"000081a4 00000003 00000004 31303030 00000003 31303000"
				"00000008 00000011 0000000000002000"
				"000000005f5e1001 00000001" /* atime */
				"000000005f5e1003 3b9ac9ff" /* ctime */
				"ffffffffffffffff 00000002" /* mtime: 1 s before 1970 */;
const char op_test_res_dir[] = "00000009 00000000 00000002 00000018 00300008 0000002c"
			       "0000000000000065 0000000000001000 00000004"
			       "000000005f5e1003 00000003 000000005f5e1002 00000002";
const char op_test_res_written[] = "00000009 00000000 00000002 00000018 00300000 00000028"
				   "0000000000000066 0000000000003000"
				   "000000005f5e1003 00000003 000000005f5e1002 00000002";

void op_test_is_stat(const struct nfs4_attr *a)
{
	cr_assert_eq(a->valid, NFS4_ATTR_STAT);
	cr_assert_eq(a->type, NF4REG);
	cr_assert_eq(a->change, 0x64);
	cr_assert_eq(a->size, 0x1001);
	cr_assert_eq(a->fsid_major, 1);
	cr_assert_eq(a->fsid_minor, 2);
	cr_assert_eq(a->fileid, 42);
	cr_assert_eq(a->mode, 0644, "the type's bits are no permissions");
	cr_assert_eq(a->nlink, 3);
	cr_assert_eq(a->uid, 1000);
	cr_assert_eq(a->gid, 100);
	cr_assert_eq(a->rdev_major, 8);
	cr_assert_eq(a->rdev_minor, 17);
	cr_assert_eq(a->space_used, 0x2000);
	cr_assert_eq(a->atime.tv_sec, 0x5f5e1001);
	cr_assert_eq(a->atime.tv_nsec, 1);
	cr_assert_eq(a->ctime.tv_sec, 0x5f5e1003);
	cr_assert_eq(a->ctime.tv_nsec, 999999999);
	cr_assert_eq(a->mtime.tv_sec, -1);
	cr_assert_eq(a->mtime.tv_nsec, 2);
}

void op_test_is_dir(const struct nfs4_attr *a)
{
	cr_assert_eq(a->valid, NFS4_ATTR_DIR);
	cr_assert_eq(a->change, 0x65);
	cr_assert_eq(a->size, 0x1000);
	cr_assert_eq(a->nlink, 4);
	cr_assert_eq(a->ctime.tv_sec, 0x5f5e1003);
	cr_assert_eq(a->mtime.tv_sec, 0x5f5e1002);
}

void op_test_is_written(const struct nfs4_attr *a)
{
	cr_assert_eq(a->valid, NFS4_ATTR_WRITTEN);
	cr_assert_eq(a->change, 0x66);
	cr_assert_eq(a->size, 0x3000);
	cr_assert_eq(a->ctime.tv_sec, 0x5f5e1003);
	cr_assert_eq(a->mtime.tv_sec, 0x5f5e1002);
}

void op_test_is_fh2(const struct nfs4_fh *fh)
{
	cr_assert_eq(fh->len, op_test_fh2.len);
	cr_assert_arr_eq(fh->data, op_test_fh2.data, op_test_fh2.len);
}

void op_test_is_cinfo(const struct nfs4_cinfo *ci)
{
	cr_assert(ci->atomic);
	cr_assert_eq(ci->before, 100);
	cr_assert_eq(ci->after, 101);
}

static int nibble(char ch)
{
	cr_assert(isxdigit((unsigned char)ch), "vector has '%c'", ch);
	return ch <= '9' ? ch - '0' : (ch | 0x20) - 'a' + 10;
}

uint8_t *op_test_hex(const char *text, size_t *ret_len)
{
	uint8_t *p = malloc(strlen(text) / 2 + 1);
	size_t len = 0;

	cr_assert_not_null(p);
	while (*text) {
		if (*text == ' ') {
			text++;
			continue;
		}
		p[len++] = (uint8_t)(nibble(text[0]) << 4 | nibble(text[1]));
		text += 2;
	}
	*ret_len = len;
	return p;
}

void op_test_init(struct op_test *t, const struct op_golden *g)
{
	memset(t, 0, sizeof(*t));
	g->setup(&t->call);
	t->desc = fake_start(g->op, &t->call);
	cr_assert_not_null(t->desc);
}

int op_test_encode(struct op_test *t, const struct op_golden *g, size_t room, const char *args)
{
	uint8_t *buf = malloc(room + 1); /* ASan sees a byte too many at the next one but one */
	size_t want_len, i;
	uint8_t *want;
	int ret;

	cr_assert_not_null(buf);
	buf[room] = 0xa5;
	memset(&t->c, 0, sizeof(t->c));
	t->c.call = &t->call;
	t->c.minor = g->minor;
	t->c.supported = g->supported;
	t->c.inline_max = g->inline_max;
	xdr_enc_init(&t->c.enc, buf, room);
	ret = t->desc->encode(&t->call, &t->c);
	cr_assert_eq(buf[room], 0xa5);
	if (args && !ret) {
		want = op_test_hex(args, &want_len);
		for (i = 0; i < want_len && i < xdr_enc_len(&t->c.enc); i++)
			cr_assert_eq(buf[i], want[i], "%s: argument byte %zu is %02x, not %02x",
				t->desc->name, i, buf[i], want[i]);
		cr_assert_eq(xdr_enc_len(&t->c.enc), want_len, "%s: %zu bytes, not %zu",
			t->desc->name, xdr_enc_len(&t->c.enc), want_len);
		free(want);
	}
	free(buf);
	return ret;
}

int op_test_decode_bytes(
	struct op_test *t, const uint8_t *p, size_t len, unsigned int cnt, enum nfs4_status status)
{
	/* Its own block, so that ASan sees the first byte after it. */
	uint8_t *copy = malloc(len ? len : 1);
	int ret;

	cr_assert_not_null(copy);
	memcpy(copy, p, len);
	memset(&t->c, 0, sizeof(t->c));
	t->c.call = &t->call;
	t->c.op_cnt = cnt;
	t->c.status = status;
	xdr_dec_init(&t->c.dec, copy, len);
	ret = t->desc->decode(&t->call, &t->c);
	t->status = t->c.status;
	free(copy);
	return ret;
}

static uint8_t *join(const char *const *results, unsigned int cnt, size_t *ret_len)
{
	static char text[65536];
	unsigned int i;

	text[0] = '\0';
	for (i = 0; i < cnt; i++) {
		cr_assert_lt(strlen(text) + strlen(results[i]), sizeof(text));
		strcat(text, results[i]);
	}
	return op_test_hex(text, ret_len);
}

int op_test_decode(
	struct op_test *t, const char *const *results, unsigned int cnt, enum nfs4_status status)
{
	size_t len;
	uint8_t *p = join(results, cnt, &len);
	int ret = op_test_decode_bytes(t, p, len, cnt, status);

	free(p);
	return ret;
}

static unsigned int result_cnt(const struct op_golden *g)
{
	unsigned int cnt = 0;

	while (cnt < OP_TEST_RESULTS && g->results[cnt])
		cnt++;
	return cnt;
}

static void check_args(const struct op_golden *g)
{
	struct op_test t;
	size_t full, room, reply_len;

	op_test_init(&t, g);
	cr_assert_eq(op_test_encode(&t, g, ARGS_ROOM, g->args), 0);
	cr_assert_eq(t.c.op_cnt, result_cnt(g), "%s: %u operations", t.desc->name, t.c.op_cnt);
	cr_assert_eq(
		t.c.reply_max, g->reply_max, "%s: reply_max is %u", t.desc->name, t.c.reply_max);
	cr_assert_eq(t.desc->cachethis, g->cachethis);
	free(join(g->results, result_cnt(g), &reply_len));
	cr_assert_geq(t.c.reply_max + g->ddp_len, reply_len);
	/* Once more, as after a new session: the same. */
	cr_assert_eq(op_test_encode(&t, g, ARGS_ROOM, g->args), 0);
	full = xdr_enc_len(&t.c.enc);
	cr_assert_eq(op_test_encode(&t, g, full, g->args), 0);
	for (room = 0; room < full; room++) {
		op_test_init(&t, g);
		cr_assert_eq(op_test_encode(&t, g, room, NULL), -EMSGSIZE);
	}
}

static void check_cut(const struct op_golden *g, const uint8_t *p, size_t len)
{
	struct op_test t;
	size_t cut;

	for (cut = 0; cut < len; cut++) {
		op_test_init(&t, g);
		cr_assert_eq(op_test_decode_bytes(&t, p, cut, result_cnt(g), NFS4_OK), -EBADMSG,
			"%s: cut at %zu of %zu", t.desc->name, cut, len);
	}
	/* Whole results, too few of them. */
	op_test_init(&t, g);
	cr_assert_eq(op_test_decode_bytes(&t, p, len, result_cnt(g) - 1, NFS4_OK), -EBADMSG);
	op_test_init(&t, g);
	cr_assert_eq(op_test_decode_bytes(&t, p, len, 0, NFS4_OK), -EBADMSG);
	op_test_init(&t, g);
	cr_assert_eq(op_test_decode_bytes(&t, p, len, result_cnt(g) + 1, NFS4_OK), -EBADMSG);
}

static void check_wrong_op(const struct op_golden *g)
{
	const char *results[OP_TEST_RESULTS];
	unsigned int cnt = result_cnt(g), i;
	struct op_test t;
	char *wrong;

	for (i = 0; i < cnt; i++) {
		memcpy(results, g->results, sizeof(results));
		wrong = strdup(results[i]);
		memcpy(wrong, "00000063", 8);
		results[i] = wrong;
		op_test_init(&t, g);
		cr_assert_eq(op_test_decode(&t, results, cnt, NFS4_OK), -EBADMSG,
			"%s: wrong operation in place %u", t.desc->name, i);
		free(wrong);
	}
}

static void check_errors(const struct op_golden *g)
{
	const char *results[OP_TEST_RESULTS];
	unsigned int cnt = result_cnt(g), i;
	struct op_test t;
	char failed[20];

	for (i = 0; i < cnt; i++) {
		bool forgiven = g->forgiven && i >= g->forgiven;

		memcpy(results, g->results, sizeof(results));
		snprintf(failed, sizeof(failed), "%.8s00000046", results[i]);
		results[i] = failed;
		op_test_init(&t, g);
		cr_assert_eq(op_test_decode(&t, results, i + 1, NFS4ERR_STALE), 0);
		cr_assert_eq(t.status, forgiven ? NFS4_OK : NFS4ERR_STALE,
			"%s: operation %u failed, status is %d", t.desc->name, i, t.status);
		/* The whole says one thing, the operation another. */
		op_test_init(&t, g);
		cr_assert_eq(op_test_decode(&t, results, i + 1, NFS4_OK), -EBADMSG);
	}
	/* Nothing was reached. */
	op_test_init(&t, g);
	cr_assert_eq(op_test_decode(&t, results, 0, NFS4ERR_DELAY), 0);
	cr_assert_eq(t.status, NFS4ERR_DELAY);
}

void op_golden_check(const struct op_golden *g)
{
	struct op_test t;
	size_t len;
	uint8_t *p;

	check_args(g);
	p = join(g->results, result_cnt(g), &len);
	op_test_init(&t, g);
	cr_assert_eq(op_test_decode_bytes(&t, p, len, result_cnt(g), NFS4_OK), 0);
	cr_assert_eq(t.status, NFS4_OK);
	g->check(&t.call);
	check_cut(g, p, len);
	free(p);
	check_wrong_op(g);
	check_errors(g);
}
