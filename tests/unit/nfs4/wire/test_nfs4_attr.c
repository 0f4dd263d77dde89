/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op_test.h"

/* Names of owners in what get() decoded; p: there was one. */
static struct nfs4_owners owners;

/* Decodes a fattr4; false: refused. */
static bool get(const char *text, struct nfs4_attr *attr, struct nfs4_fh *fh)
{
	size_t len;
	uint8_t *p = op_test_hex(text, &len);
	struct xdr_dec dec;

	memset(attr, 0, sizeof(*attr));
	/* As of a reply before: nothing of it may stay. */
	attr->valid = UINT32_MAX;
	attr->owner_late = attr->owner_alien = true;
	xdr_dec_init(&dec, p, len);
	nfs4_attr_get(&dec, attr, fh, &owners);
	cr_assert(dec.failed || xdr_dec_left(&dec) == 0);
	free(p);
	return !dec.failed;
}

/* What goes out for it, as text. */
static const char *put(const struct nfs4_sattr *s, const uint32_t *supported)
{
	static char text[1024];
	uint8_t mem[256];
	struct xdr_enc enc;

	xdr_enc_init(&enc, mem, sizeof(mem));
	nfs4_attr_put_set(&enc, s, supported);
	cr_assert(!enc.failed);
	for (size_t i = 0; i < xdr_enc_len(&enc); i++)
		sprintf(text + 2 * i, "%02x", mem[i]);
	return text;
}

Test(nfs4_attr, everything_at_once)
{
	struct nfs4_attr attr;
	struct nfs4_fh fh;

	cr_assert(get("00000003 0018091a 00b0a23a 00000000 0000008c"
		      "00000002 0000000000000003 0000000000000004"
		      "0000000000000005 0000000000000006 00000000 00000001 0a000000"
		      "0000000000000007 000043ff 00000002 00000001 30000000 00000001 37000000"
		      "00000000 00000000 0000000000001000"
		      "0000000000000001 00000000 0000000000000002 00000000"
		      "0000000000000003 00000000 0000000000000009",
		&attr, &fh));
	cr_assert_eq(attr.valid, NFS4_ATTR_STAT | NFS4_ATTR_MOUNTED_ON | NFS4_ATTR_FH);
	cr_assert_eq(attr.type, NF4DIR);
	cr_assert_eq(attr.mode, 01777);
	cr_assert_eq(attr.uid, 0);
	cr_assert_eq(attr.gid, 7);
	cr_assert_eq(attr.atime.tv_sec, 1);
	cr_assert_eq(attr.ctime.tv_sec, 2);
	cr_assert_eq(attr.mtime.tv_sec, 3);
	cr_assert_eq(attr.fileid, 7, "not the one of the mount point");
	cr_assert_eq(fh.len, 1);
	cr_assert_eq(fh.data[0], 0x0a);
}

Test(nfs4_attr, the_number_of_a_mount_point_does_for_an_entry_without_its_own)
{
	struct nfs4_attr attr;
	struct nfs4_fh fh;

	cr_assert(get("00000002 00000000 00800000 00000008 0000000000000009", &attr, &fh));
	cr_assert_eq(attr.valid, NFS4_ATTR_MOUNTED_ON);
	cr_assert_eq(attr.fileid, 9);
}

Test(nfs4_attr, nothing_is_fine)
{
	struct nfs4_attr attr;

	cr_assert(get("00000000 00000000", &attr, NULL));
	cr_assert_eq(attr.valid, 0);
}

Test(nfs4_attr, what_was_not_asked_for_is_refused)
{
	struct nfs4_attr attr;
	struct nfs4_fh fh;

	/* ACL, which nobody can skip */
	cr_assert(!get("00000001 00001000 00000004 00000000", &attr, NULL));
	/* a bit that has no name yet, in a fourth word */
	cr_assert(!get(
		"00000004 00000000 00000000 00000000 00000001 00000004 00000000", &attr, NULL));
	/* a fourth word of zeros is only long */
	cr_assert(
		get("00000004 00000002 00000000 00000000 00000000 00000004 00000001", &attr, NULL));
	/* a filehandle where there can be none */
	cr_assert(get("00000001 00080000 00000008 00000001 0a000000", &attr, &fh));
	cr_assert(!get("00000001 00080000 00000008 00000001 0a000000", &attr, NULL));
	cr_assert_eq(attr.valid, 0);
}

Test(nfs4_attr, length_and_values_must_agree)
{
	struct nfs4_attr attr;

	cr_assert(get("00000001 00000002 00000004 00000001", &attr, NULL));
	cr_assert(!get("00000001 00000002 00000008 00000001 00000000", &attr, NULL));
	cr_assert(!get("00000001 00000002 00000000", &attr, NULL));
	cr_assert(!get("00000001 00000008 00000004 00000001", &attr, NULL));
	cr_assert(!get("00000001 00000002 fffffffc 00000001", &attr, NULL));
	cr_assert(!get("ffffffff 00000002 00000004 00000001", &attr, NULL));
}

Test(nfs4_attr, types_are_known_ones)
{
	struct nfs4_attr attr;

	cr_assert(!get("00000001 00000002 00000004 00000000", &attr, NULL));
	cr_assert(get("00000001 00000002 00000004 00000009", &attr, NULL));
	cr_assert_eq(attr.type, NF4NAMEDATTR);
	cr_assert(!get("00000001 00000002 00000004 0000000a", &attr, NULL));
	cr_assert(!get("00000001 00000002 00000004 ffffffff", &attr, NULL));
}

Test(nfs4_attr, nanoseconds_are_less_than_a_second)
{
	struct nfs4_attr attr;

	cr_assert(
		get("00000002 00000000 00008000 0000000c 8000000000000000 3b9ac9ff", &attr, NULL));
	cr_assert_eq(attr.atime.tv_sec, INT64_MIN);
	/* More: as many as there can be. */
	cr_assert(
		get("00000002 00000000 00008000 0000000c 0000000000000007 3b9aca00", &attr, NULL));
	cr_assert(attr.atime.tv_sec == 7 && attr.atime.tv_nsec == 999999999);
	cr_assert(
		get("00000002 00000000 00008000 0000000c 0000000000000007 ffffffff", &attr, NULL));
	cr_assert(attr.atime.tv_sec == 7 && attr.atime.tv_nsec == 999999999);
}

static uint32_t owner(const char *name)
{
	char text[512];
	size_t len = strlen(name), used, i;
	struct nfs4_attr attr;

	used = (size_t)snprintf(text, sizeof(text), "00000002 00000000 00000010 %08zx %08zx",
		4 + XDR_ROUND(len), len);
	for (i = 0; i < XDR_ROUND(len) && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%02x",
			i < len ? (unsigned char)name[i] : 0u);
	cr_assert_lt(used, sizeof(text));
	cr_assert(get(text, &attr, NULL));
	cr_assert_eq(attr.valid, NFS4_ATTR_OWNER);
	return attr.uid;
}

Test(nfs4_attr, owners_are_decimal_numbers_or_nobody)
{
	cr_assert_eq(owner("0"), 0);
	cr_assert_eq(owner("1000"), 1000);
	cr_assert_eq(owner("4294967294"), 4294967294u);
	cr_assert_eq(owner("4294967295"), 65534, "that is (uid_t)-1");
	cr_assert_eq(owner("4294967296"), 65534);
	cr_assert_eq(owner("9999999999"), 65534);
	cr_assert_eq(owner("10000000000"), 65534);
	cr_assert_eq(owner(""), 65534);
	cr_assert_eq(owner("00"), 65534);
	cr_assert_eq(owner("01"), 65534);
	cr_assert_eq(owner("-1"), 65534);
	cr_assert_eq(owner("+1"), 65534);
	cr_assert_eq(owner(" 1"), 65534);
	cr_assert_eq(owner("1 "), 65534);
	cr_assert_eq(owner("0x10"), 65534);
	cr_assert_eq(owner("1000@example.org"), 65534);
	cr_assert_eq(owner("root@example.org"), 65534, "as long as nobody maps it");
}

/* A name that is worth asking about. */
static bool is_name(const char *p, uint32_t len)
{
	uint32_t id = 4711;
	enum nfs4_owner_form form = nfs4_attr_parse_owner((const uint8_t *)p, len, &id);

	cr_assert(form == NFS4_OWNER_NUMBER || id == 4711, "%s", p);
	return form == NFS4_OWNER_NAME;
}

Test(nfs4_attr, names_are_told_from_numbers_and_from_neither)
{
	char name[1024];

	memset(name, 'a', sizeof(name));
	name[500] = '@';
	cr_assert(is_name("root@dom", 8));
	cr_assert(is_name("1000@dom", 8));
	cr_assert(is_name("a@b@c", 5));
	cr_assert(is_name("DOM\\j\xc3\xbcrg@dom", 13));
	cr_assert(is_name(name, sizeof(name)));
	cr_assert_not(is_name("1000", 4));
	cr_assert_not(is_name("01000", 5), "nobody's name");
	cr_assert_not(is_name("root", 4));
	cr_assert_not(is_name("root@", 5));
	cr_assert_not(is_name("@dom", 4));
	cr_assert_not(is_name("@", 1));
	cr_assert_not(is_name("", 0));
	cr_assert_not(is_name("ro\0t@dom", 8));
	cr_assert_not(is_name("root@dom\0", 9));
	cr_assert_not(is_name("root@dom\n", 9));
	cr_assert_not(is_name("root@dom\x7f", 9));
	cr_assert_not(is_name("ro\tot@dom", 9));
	cr_assert(is_name("Domain Users@corp", 17), "the commonest group of Active Directory");
	owner("root@example.org");
	cr_assert_eq(owners.user.len, 16);
	cr_assert_null(owners.group.p);
	owner("1000");
	cr_assert_null(owners.user.p);
}

Test(nfs4_attr, what_words_do_not_have_of_what_is_set)
{
	struct nfs4_sattr s = {.set = NFS4_ATTR_MODE | NFS4_ATTR_SIZE | NFS4_ATTR_ATIME};
	uint32_t words[3] = {0};

	cr_assert_eq(nfs4_attr_set_beyond(&s, words), s.set);
	words[0] = 1u << FATTR4_SIZE;
	words[1] = 1u << (FATTR4_TIME_ACCESS_SET - 32);
	words[2] = 1u << (FATTR4_MODE_UMASK - 64);
	cr_assert_eq(nfs4_attr_set_beyond(&s, words), NFS4_ATTR_MODE);
	s.use_umask = true;
	cr_assert_eq(nfs4_attr_set_beyond(&s, words), 0);
	words[2] = 0;
	words[1] |= 1u << (FATTR4_MODE - 32);
	cr_assert_eq(nfs4_attr_set_beyond(&s, words), 0);
}

Test(nfs4_attr, owner_of_more_than_the_protocol_allows_is_refused)
{
	char text[4096];
	struct nfs4_attr attr;
	unsigned int len, i;

	for (len = 1024; len <= 1028; len += 4) {
		size_t used = (size_t)snprintf(
			text, sizeof(text), "00000002 00000000 00000010 %08x %08x", 4 + len, len);

		for (i = 0; i < len; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "61");
		cr_assert_eq(get(text, &attr, NULL), len == 1024);
	}
}

Test(nfs4_attr, error_of_an_entry)
{
	struct nfs4_attr attr;

	cr_assert(get("00000001 00000800 00000004 00000000", &attr, NULL));
	cr_assert_eq(attr.valid, 0, "NFS4_OK is no error");
	cr_assert(get("00000001 00000800 00000004 00002718", &attr, NULL));
	cr_assert_eq(attr.valid, NFS4_ATTR_RDERROR);
	cr_assert_eq(attr.rderror, NFS4ERR_DELAY);
}

Test(nfs4_attr, bound_is_what_the_values_can_need)
{
	cr_assert_eq(nfs4_attr_reply_max(0), 20);
	cr_assert_eq(nfs4_attr_reply_max(NFS4_ATTR_DIR), 20 + 44);
	cr_assert_eq(nfs4_attr_reply_max(NFS4_ATTR_STAT), 20 + 368);
	cr_assert_leq(nfs4_attr_reply_max(NFS4_ATTR_STAT | NFS4_ATTR_MOUNTED_ON), NFS4_FATTR_MAX);
}

Test(nfs4_attr, bitmap_has_no_zero_words_at_its_end)
{
	static const uint32_t words[3] = {0, 1, 0};
	uint32_t back[3];
	uint8_t mem[16];
	struct xdr_enc enc;
	struct xdr_dec dec;

	xdr_enc_init(&enc, mem, sizeof(mem));
	nfs4_attr_put_bitmap(&enc, words, 3);
	cr_assert_eq(xdr_enc_len(&enc), 12);
	xdr_dec_init(&dec, mem, 12);
	cr_assert_eq(nfs4_attr_get_bitmap(&dec, back), 0);
	cr_assert_arr_eq(back, words, sizeof(words));
	xdr_dec_init(&dec, mem, 11);
	nfs4_attr_get_bitmap(&dec, back);
	cr_assert(dec.failed);
}

Test(nfs4_attr, sets_nothing)
{
	cr_assert_str_eq(put(&(struct nfs4_sattr){0}, NULL), "0000000000000000");
}

Test(nfs4_attr, sets_everything_in_the_order_of_the_numbers)
{
	const struct nfs4_sattr s = {
		.set = NFS4_ATTR_MODE | NFS4_ATTR_OWNER | NFS4_ATTR_GROUP | NFS4_ATTR_SIZE |
		       NFS4_ATTR_ATIME | NFS4_ATTR_MTIME,
		.mode = 0104755,
		.uid = 4294967294u,
		.gid = 0,
		.size = 0x100000001,
		.atime_now = true,
		.mtime = {-1, 999999999},
	};

	cr_assert_str_eq(put(&s, NULL), "00000002"
					"00000010"
					"00410032"
					"00000038"
					"0000000100000001"
					"000009ed"
					"0000000a"
					"343239343936373239340000"
					"00000001"
					"30000000"
					"00000000"
					"00000001"
					"ffffffffffffffff"
					"3b9ac9ff");
}

Test(nfs4_attr, umask_goes_along_or_is_applied)
{
	static const uint32_t without[3] = {UINT32_MAX, UINT32_MAX, 1u << 16};
	static const uint32_t with[3] = {0, 0, 1u << 17};
	struct nfs4_sattr s = {
		.set = NFS4_ATTR_MODE, .mode = 02777, .umask = 027, .use_umask = true};

	cr_assert_str_eq(put(&s, with), "00000003"
					"00000000"
					"00000000"
					"00020000"
					"00000008"
					"000005ff"
					"00000017");
	cr_assert_str_eq(put(&s, without), "00000002"
					   "00000000"
					   "00000002"
					   "00000004"
					   "000005e8");
	cr_assert_str_eq(put(&s, NULL), "00000002"
					"00000000"
					"00000002"
					"00000004"
					"000005e8");
	s.use_umask = false;
	cr_assert_str_eq(put(&s, with), "00000002"
					"00000000"
					"00000002"
					"00000004"
					"000005ff");
}
