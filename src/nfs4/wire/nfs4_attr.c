/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_int.h"

#include <stdio.h>
#include <string.h>

#include "idmap.h"

#define OWNER_MAX      128u /* what reply bounds allow for; the decoder takes NFS4_OPAQUE_LIMIT */
#define ARRAY_CNT(arr) (sizeof(arr) / sizeof((arr)[0]))

/* Every attribute that struct nfs4_attr holds, in the order of the wire. */
static const struct {
	uint32_t mask; /* NFS4_ATTR_* */
	uint16_t max;  /* longest value, bytes */
	enum nfs4_fattr num;
} attrs[] = {
	{NFS4_ATTR_TYPE, 4, FATTR4_TYPE},
	{NFS4_ATTR_CHANGE, 8, FATTR4_CHANGE},
	{NFS4_ATTR_SIZE, 8, FATTR4_SIZE},
	{NFS4_ATTR_FSID, 16, FATTR4_FSID},
	{NFS4_ATTR_RDERROR, 4, FATTR4_RDATTR_ERROR},
	{NFS4_ATTR_FH, NFS4_FH_MAX_XDR, FATTR4_FILEHANDLE},
	{NFS4_ATTR_FILEID, 8, FATTR4_FILEID},
	{NFS4_ATTR_MODE, 4, FATTR4_MODE},
	{NFS4_ATTR_NLINK, 4, FATTR4_NUMLINKS},
	{NFS4_ATTR_OWNER, 4 + OWNER_MAX, FATTR4_OWNER},
	{NFS4_ATTR_GROUP, 4 + OWNER_MAX, FATTR4_OWNER_GROUP},
	{NFS4_ATTR_RDEV, 8, FATTR4_RAWDEV},
	{NFS4_ATTR_SPACE_USED, 8, FATTR4_SPACE_USED},
	{NFS4_ATTR_ATIME, 12, FATTR4_TIME_ACCESS},
	{NFS4_ATTR_CTIME, 12, FATTR4_TIME_METADATA},
	{NFS4_ATTR_MTIME, 12, FATTR4_TIME_MODIFY},
	{NFS4_ATTR_MOUNTED_ON, 8, FATTR4_MOUNTED_ON_FILEID},
};

/* The bitmap's count and words (a server may send all three) and the length word of the values. */
#define FATTR_HEAD (4u + 4u * NFS4_BITMAP_WORDS + 4u)

uint32_t nfs4_attr_reply_max(uint32_t mask)
{
	uint32_t sum = FATTR_HEAD;
	size_t i;

	for (i = 0; i < ARRAY_CNT(attrs); i++) {
		if (mask & attrs[i].mask)
			sum += attrs[i].max;
	}
	return sum;
}

void nfs4_attr_put_bitmap(struct xdr_enc *x, const uint32_t *words, unsigned int cnt)
{
	unsigned int i;

	while (cnt && !words[cnt - 1])
		cnt--;
	xdr_put_u32(x, cnt);
	for (i = 0; i < cnt; i++)
		xdr_put_u32(x, words[i]);
}

uint32_t nfs4_attr_get_bitmap(struct xdr_dec *x, uint32_t words[NFS4_BITMAP_WORDS])
{
	uint32_t cnt = xdr_get_count(x, UINT32_MAX, 4);
	uint32_t beyond = 0;
	uint32_t i;

	memset(words, 0, NFS4_BITMAP_WORDS * sizeof(words[0]));
	for (i = 0; i < cnt; i++) {
		uint32_t word = xdr_get_u32(x);

		if (i < NFS4_BITMAP_WORDS)
			words[i] = word;
		else
			beyond |= word;
	}
	return beyond;
}

void nfs4_attr_put_request(struct xdr_enc *x, uint32_t mask, const uint32_t supported[3])
{
	uint32_t words[NFS4_BITMAP_WORDS] = {0};
	size_t i;

	for (i = 0; i < ARRAY_CNT(attrs); i++) {
		unsigned int w = FATTR4_WORD(attrs[i].num);

		if (mask & attrs[i].mask && (!supported || supported[w] & FATTR4_BIT(attrs[i].num)))
			words[w] |= FATTR4_BIT(attrs[i].num);
	}
	nfs4_attr_put_bitmap(x, words, NFS4_BITMAP_WORDS);
}

static bool is_digits(const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] < '0' || p[i] > '9')
			return false;
	return true;
}

/* user@domain, and nothing in it that is in no name; "Domain Users@corp" is one. */
static bool is_name(const uint8_t *p, uint32_t len)
{
	const uint8_t *at = memchr(p, '@', len);

	if (!at || at == p || at == p + len - 1)
		return false;
	for (uint32_t i = 0; i < len; i++)
		if (p[i] < ' ' || p[i] == 0x7f)
			return false;
	return true;
}

enum nfs4_owner_form nfs4_attr_parse_owner(const uint8_t *p, uint32_t len, uint32_t *ret_id)
{
	uint64_t id = 0;

	if (len == 0)
		return NFS4_OWNER_NONE;
	if (!is_digits(p, len))
		return is_name(p, len) ? NFS4_OWNER_NAME : NFS4_OWNER_NONE;
	if (len > 10 || (p[0] == '0' && len > 1))
		return NFS4_OWNER_NONE;
	for (uint32_t i = 0; i < len; i++)
		id = id * 10 + (p[i] - '0');
	/* The largest means "do not change" to chown(). */
	if (id >= UINT32_MAX)
		return NFS4_OWNER_NONE;
	*ret_id = (uint32_t)id;
	return NFS4_OWNER_NUMBER;
}

/* A number, or nobody; a name is put into *name, and mapped by nfs4_owners_map(). */
static uint32_t get_owner(struct xdr_dec *x, struct nfs4_str *name, struct nfs4_attr *attr)
{
	uint32_t len = 0, id = IDMAP_NOBODY;
	const uint8_t *p = xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);

	if (!p)
		return id;
	switch (nfs4_attr_parse_owner(p, len, &id)) {
	case NFS4_OWNER_NONE:
		attr->owner_alien = true;
		break;
	case NFS4_OWNER_NUMBER:
		break;
	case NFS4_OWNER_NAME:
		*name = (struct nfs4_str){(const char *)p, len};
		break;
	}
	return id;
}

static void get_time(struct xdr_dec *x, struct timespec *ts)
{
	int64_t sec = (int64_t)xdr_get_u64(x);
	uint32_t nsec = xdr_get_u32(x);

	/*
	 * WIRE: an inode may be corrupt, or keep a verifier there. One odd time makes neither a
	 * file nor the directory that it is in unreadable.
	 */
	if (nsec >= NSEC_PER_SEC)
		nsec = NSEC_PER_SEC - 1;
	ts->tv_sec = sec;
	ts->tv_nsec = nsec;
}

static enum nfs4_ftype get_ftype(struct xdr_dec *x)
{
	uint32_t type = xdr_get_u32(x);

	if (type < NF4REG || type > NF4NAMEDATTR) { /* WIRE */
		xdr_fail(x);
		return NF4REG;
	}
	return (enum nfs4_ftype)type;
}

/* The value of one attribute of the table; fh is set if FILEHANDLE is possible. */
static void get_value(struct xdr_dec *x, uint32_t mask, struct nfs4_attr *a, struct nfs4_fh *fh,
	struct nfs4_owners *names)
{
	uint64_t mounted_on;

	switch (mask) {
	case NFS4_ATTR_TYPE:
		a->type = get_ftype(x);
		break;
	case NFS4_ATTR_CHANGE:
		a->change = xdr_get_u64(x);
		break;
	case NFS4_ATTR_SIZE:
		a->size = xdr_get_u64(x);
		break;
	case NFS4_ATTR_FSID:
		a->fsid_major = xdr_get_u64(x);
		a->fsid_minor = xdr_get_u64(x);
		break;
	case NFS4_ATTR_RDERROR:
		a->rderror = xdr_get_u32(x);
		break;
	case NFS4_ATTR_FH:
		nfs4_xdr_get_fh(x, fh);
		break;
	case NFS4_ATTR_FILEID:
		a->fileid = xdr_get_u64(x);
		break;
	case NFS4_ATTR_MODE:
		a->mode = xdr_get_u32(x) & 07777;
		break;
	case NFS4_ATTR_NLINK:
		a->nlink = xdr_get_u32(x);
		break;
	case NFS4_ATTR_OWNER:
		a->uid = get_owner(x, &names->user, a);
		break;
	case NFS4_ATTR_GROUP:
		a->gid = get_owner(x, &names->group, a);
		break;
	case NFS4_ATTR_RDEV:
		a->rdev_major = xdr_get_u32(x);
		a->rdev_minor = xdr_get_u32(x);
		break;
	case NFS4_ATTR_SPACE_USED:
		a->space_used = xdr_get_u64(x);
		break;
	case NFS4_ATTR_ATIME:
		get_time(x, &a->atime);
		break;
	case NFS4_ATTR_CTIME:
		get_time(x, &a->ctime);
		break;
	case NFS4_ATTR_MTIME:
		get_time(x, &a->mtime);
		break;
	case NFS4_ATTR_MOUNTED_ON:
		mounted_on = xdr_get_u64(x);
		if (!(a->valid & NFS4_ATTR_FILEID))
			a->fileid = mounted_on;
		break;
	}
}

/*
 * fattr4 = bitmap4, attrlist4 as a counted opaque: the values in the order of
 * their numbers, without tags. One value that we cannot read hides all after it,
 * so an attribute that is not in the table is the end.
 */
void nfs4_attr_get(
	struct xdr_dec *x, struct nfs4_attr *attr, struct nfs4_fh *fh, struct nfs4_owners *names)
{
	uint32_t words[NFS4_BITMAP_WORDS];
	uint32_t beyond = nfs4_attr_get_bitmap(x, words);
	uint32_t len = 0;
	const uint8_t *p = xdr_get_opaque(x, UINT32_MAX, &len);
	struct xdr_dec vals;
	size_t i;

	attr->valid = 0;
	attr->owner_late = attr->owner_alien = false;
	memset(names, 0, sizeof(*names));
	if (fh)
		fh->len = 0;
	if (!p)
		return;
	xdr_dec_init(&vals, p, len);
	for (i = 0; i < ARRAY_CNT(attrs); i++) {
		unsigned int w = FATTR4_WORD(attrs[i].num);
		uint32_t bit = FATTR4_BIT(attrs[i].num);

		if (!(words[w] & bit) || (attrs[i].mask == NFS4_ATTR_FH && !fh))
			continue;
		words[w] &= ~bit;
		get_value(&vals, attrs[i].mask, attr, fh, names);
		attr->valid |= attrs[i].mask;
	}
	/* RDATTR_ERROR that was asked for comes as NFS4_OK with every good entry. */
	if (attr->valid & NFS4_ATTR_RDERROR && attr->rderror == NFS4_OK)
		attr->valid &= ~NFS4_ATTR_RDERROR;
	/* WIRE: nothing unasked, nothing after the last value. */
	if (vals.failed || xdr_dec_left(&vals) || beyond || words[0] | words[1] | words[2]) {
		attr->valid = 0;
		memset(names, 0, sizeof(*names));
		if (fh)
			fh->len = 0;
		xdr_fail(x);
	}
}

static void put_owner(struct xdr_enc *x, uint32_t id, const char *name)
{
	char text[11];

	snprintf(text, sizeof(text), "%u", id);
	if (!name)
		name = text;
	xdr_put_opaque(x, name, strlen(name));
}

static void put_time(struct xdr_enc *x, const struct timespec *ts)
{
	xdr_put_u64(x, (uint64_t)ts->tv_sec);
	xdr_put_u32(x, (uint32_t)ts->tv_nsec);
}

static void put_settime(struct xdr_enc *x, bool now, const struct timespec *ts)
{
	xdr_put_u32(x, now ? SET_TO_SERVER_TIME4 : SET_TO_CLIENT_TIME4);
	if (!now)
		put_time(x, ts);
}

void nfs4_attr_put_atime(struct xdr_enc *x, const struct timespec *atime)
{
	uint32_t words[NFS4_BITMAP_WORDS] = {0};

	words[FATTR4_WORD(FATTR4_TIME_ACCESS)] = FATTR4_BIT(FATTR4_TIME_ACCESS);
	nfs4_attr_put_bitmap(x, words, NFS4_BITMAP_WORDS);
	xdr_put_u32(x, 12); /* nfstime4 */
	put_time(x, atime);
}

void nfs4_attr_put_size(struct xdr_enc *x, uint64_t size)
{
	uint32_t words[NFS4_BITMAP_WORDS] = {0};

	words[FATTR4_WORD(FATTR4_SIZE)] = FATTR4_BIT(FATTR4_SIZE);
	nfs4_attr_put_bitmap(x, words, NFS4_BITMAP_WORDS);
	xdr_put_u32(x, 8);
	xdr_put_u64(x, size);
}

uint32_t nfs4_attr_set_beyond(const struct nfs4_sattr *s, const uint32_t words[3])
{
	static const struct {
		uint32_t mask;
		enum nfs4_fattr num;
	} settable[] = {
		{NFS4_ATTR_SIZE, FATTR4_SIZE},
		{NFS4_ATTR_OWNER, FATTR4_OWNER},
		{NFS4_ATTR_GROUP, FATTR4_OWNER_GROUP},
		{NFS4_ATTR_ATIME, FATTR4_TIME_ACCESS_SET},
		{NFS4_ATTR_MTIME, FATTR4_TIME_MODIFY_SET},
		{NFS4_ATTR_MODE, FATTR4_MODE},
	};
	uint32_t beyond = 0;

	for (size_t i = 0; i < ARRAY_CNT(settable); i++)
		if (!(words[FATTR4_WORD(settable[i].num)] & FATTR4_BIT(settable[i].num)))
			beyond |= settable[i].mask;
	if (s->use_umask && words[FATTR4_WORD(FATTR4_MODE_UMASK)] & FATTR4_BIT(FATTR4_MODE_UMASK))
		beyond &= ~NFS4_ATTR_MODE;
	return beyond & s->set;
}

/*
 * What the user wants set is sent even if the server does not have it: the user is to see the
 * server's NFS4ERR_ATTRNOTSUPP and not a success that changed nothing. Only the form of the mode
 * depends on `supported`.
 */
void nfs4_attr_put_set(struct xdr_enc *x, const struct nfs4_sattr *s, const uint32_t supported[3])
{
	bool mode = s->set & NFS4_ATTR_MODE;
	bool mode_umask = mode && s->use_umask && supported &&
			  supported[FATTR4_WORD(FATTR4_MODE_UMASK)] & FATTR4_BIT(FATTR4_MODE_UMASK);
	uint32_t words[NFS4_BITMAP_WORDS] = {0};
	size_t len_off, start;

	if (s->set & NFS4_ATTR_SIZE)
		words[0] |= FATTR4_BIT(FATTR4_SIZE);
	if (mode && !mode_umask)
		words[1] |= FATTR4_BIT(FATTR4_MODE);
	if (s->set & NFS4_ATTR_OWNER)
		words[1] |= FATTR4_BIT(FATTR4_OWNER);
	if (s->set & NFS4_ATTR_GROUP)
		words[1] |= FATTR4_BIT(FATTR4_OWNER_GROUP);
	if (s->set & NFS4_ATTR_ATIME)
		words[1] |= FATTR4_BIT(FATTR4_TIME_ACCESS_SET);
	if (s->set & NFS4_ATTR_MTIME)
		words[1] |= FATTR4_BIT(FATTR4_TIME_MODIFY_SET);
	if (mode_umask)
		words[2] |= FATTR4_BIT(FATTR4_MODE_UMASK);
	nfs4_attr_put_bitmap(x, words, NFS4_BITMAP_WORDS);

	len_off = xdr_enc_len(x);
	xdr_put_u32(x, 0);
	start = xdr_enc_len(x);
	if (s->set & NFS4_ATTR_SIZE)
		xdr_put_u64(x, s->size);
	if (mode && !mode_umask) /* without RFC 8275 the umask is ours to apply */
		xdr_put_u32(x, s->mode & 07777 & ~(s->use_umask ? s->umask : 0));
	if (s->set & NFS4_ATTR_OWNER)
		put_owner(x, s->uid, s->owner_name);
	if (s->set & NFS4_ATTR_GROUP)
		put_owner(x, s->gid, s->group_name);
	if (s->set & NFS4_ATTR_ATIME)
		put_settime(x, s->atime_now, &s->atime);
	if (s->set & NFS4_ATTR_MTIME)
		put_settime(x, s->mtime_now, &s->mtime);
	if (mode_umask) {
		xdr_put_u32(x, s->mode & 07777);
		xdr_put_u32(x, s->umask & 0777);
	}
	xdr_patch_u32(x, len_off, (uint32_t)(xdr_enc_len(x) - start));
}
