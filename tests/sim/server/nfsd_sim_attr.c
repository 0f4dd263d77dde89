/* SPDX-License-Identifier: BSD-3-Clause */
/* fattr4, both ways; GETATTR, SETATTR, ACCESS. */
#include "nfsd_sim_int.h"

#include <stdio.h>
#include <stdlib.h>

#define BIT(n) (1u << ((n)&31))

static const uint32_t supported[3] = {
	BIT(0) | BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8) | BIT(9) |
		BIT(10) | BIT(11) | BIT(12) | BIT(13) | BIT(15) | BIT(16) | BIT(17) | BIT(18) |
		BIT(19) | BIT(20) | BIT(21) | BIT(22) | BIT(23) | BIT(26) | BIT(27) | BIT(28) |
		BIT(29) | BIT(30) | BIT(31),
	BIT(33) | BIT(34) | BIT(35) | BIT(36) | BIT(37) | BIT(41) | BIT(42) | BIT(43) | BIT(44) |
		BIT(45) | BIT(47) | BIT(48) | BIT(51) | BIT(52) | BIT(53) | BIT(54) | BIT(55),
	BIT(75) | BIT(77) | BIT(81) | BIT(82),
};

void rd_bitmap(struct rd *r, uint32_t mask[3])
{
	uint32_t cnt = rd_u32(r);

	mask[0] = mask[1] = mask[2] = 0;
	for (uint32_t i = 0; i < cnt && !r->bad; i++) {
		uint32_t word = rd_u32(r);

		if (i < 3)
			mask[i] = word;
	}
}

void wr_bitmap(struct wr *w, const uint32_t mask[3])
{
	uint32_t cnt = mask[2] ? 3 : mask[1] ? 2 : mask[0] ? 1 : 0;

	wr_u32(w, cnt);
	for (uint32_t i = 0; i < cnt; i++)
		wr_u32(w, mask[i]);
}

void wr_fh(struct cmp *c, struct node *n)
{
	uint8_t fh[128] = "simf";

	put_u32(fh + 4, 7);
	put_u32(fh + 8, (uint32_t)(n->id >> 32));
	put_u32(fh + 12, (uint32_t)n->id);
	wr_opaque(c->out, fh, c->sim->conf.longest ? sizeof(fh) : 16);
}

static void wr_time(struct wr *w, const struct timespec *ts)
{
	wr_u64(w, (uint64_t)ts->tv_sec);
	wr_u32(w, (uint32_t)ts->tv_nsec);
}

/* kind: u or g */
static void wr_owner(struct cmp *c, struct wr *w, char kind, uint32_t id)
{
	static _Atomic unsigned int fresh;
	char text[32];

	if (c->sim->conf.longest) {
		char name[128];

		memset(name, 'o', sizeof(name));
		wr_opaque(w, name, sizeof(name));
		return;
	}
	if (c->sim->conf.fresh_names)
		snprintf(text, sizeof(text), "x%u@sim", ++fresh);
	else if (c->sim->conf.names)
		snprintf(text, sizeof(text), "%c%u@sim", kind, id);
	else
		snprintf(text, sizeof(text), "%u", id);
	wr_opaque(w, text, strlen(text));
}

struct nfsd_sim_fs fs_of(const struct cmp *c, const struct node *n)
{
	const struct nfsd_sim_conf *conf = &c->sim->conf;
	struct nfsd_sim_fs fs = {
		.maxread = conf->maxread,
		.maxwrite = conf->maxwrite,
		.maxname = 255,
		.maxfilesize = INT64_MAX,
		.clone_block = conf->clone_block,
	};

	if (n->below)
		return c->sim->below;
	memcpy(fs.supported_mask, conf->supported_mask, sizeof(fs.supported_mask));
	return fs;
}

static void mask_of(const struct cmp *c, const struct node *n, bool exclcreat, uint32_t mask[3])
{
	struct nfsd_sim_fs fs = fs_of(c, n);

	for (int i = 0; i < 3; i++) {
		mask[i] = supported[i] & ~fs.supported_mask[i];
		if (exclcreat)
			mask[i] &= ~c->sim->conf.excl_mask[i];
	}
	if (exclcreat)
		mask[1] &= ~(BIT(48) | BIT(54));
}

static void wr_mask_of(struct cmp *c, struct wr *w, const struct node *n, bool exclcreat)
{
	uint32_t mask[3];

	mask_of(c, n, exclcreat, mask);
	wr_bitmap(w, mask);
}

bool attr_is_exclcreat(const struct cmp *c, const uint32_t asked[3])
{
	uint32_t mask[3];

	mask_of(c, c->cur, true, mask);
	return !((asked[0] & ~mask[0]) | (asked[1] & ~mask[1]) | (asked[2] & ~mask[2]));
}

/* Attributes that are the same for all nodes of a file system. */
static bool wr_fs_attr(struct cmp *c, struct wr *w, const struct node *n, int bit)
{
	struct nfsd_sim_fs fs = fs_of(c, n);

	switch (bit) {
	case 0:
	case 75:
		wr_mask_of(c, w, n, bit == 75);
		return true;
	case 2:
	case 7:
		wr_u32(w, 0);
		return true;
	case 16:
		wr_u32(w, fs.case_insensitive);
		return true;
	case 5:
	case 6:
	case 9:
	case 15:
	case 17:
	case 18:
	case 26:
	case 34:
	case 82:
		wr_u32(w, 1);
		return true;
	case 8:
		wr_u64(w, 0x51);
		wr_u64(w, 0x52 + n->below);
		return true;
	case 10:
		wr_u32(w, c->sim->conf.lease_s);
		return true;
	case 13:
		wr_u32(w, 3);
		return true;
	case 21:
	case 22:
		wr_u64(w, 900000);
		return true;
	case 23:
		wr_u64(w, 1000000);
		return true;
	case 27:
		wr_u64(w, fs.maxfilesize);
		return true;
	case 28:
		wr_u32(w, 255);
		return true;
	case 29:
		wr_u32(w, fs.maxname);
		return true;
	case 30:
		wr_u64(w, fs.maxread);
		return true;
	case 31:
		wr_u64(w, fs.maxwrite);
		return true;
	case 42:
	case 43:
		wr_u64(w, 6ull << 30);
		return true;
	case 44:
		wr_u64(w, 8ull << 30);
		return true;
	case 51:
		wr_u64(w, 0);
		wr_u32(w, 1);
		return true;
	case 77:
		wr_u32(w, fs.clone_block);
		return true;
	default:
		return false;
	}
}

/* One ACE for the owner, unless one was set. */
static void wr_acl(struct wr *w, const struct node *n)
{
	if (n->acl) {
		wr_raw(w, n->acl, n->acl_len);
		return;
	}
	wr_u32(w, 1);
	wr_u32(w, 0);
	wr_u32(w, 0);
	wr_u32(w, n->mode);
	wr_opaque(w, "OWNER@", 6);
}

static uint32_t set_acl(struct node *n, struct rd *r)
{
	const uint8_t *start = r->p;
	uint32_t cnt = rd_u32(r), len;

	for (uint32_t i = 0; i < cnt && !r->bad; i++) {
		rd_bytes(r, 12);
		rd_opaque(r, &len);
	}
	if (r->bad)
		return ST_BADXDR;
	free(n->acl);
	n->acl_len = (uint32_t)(r->p - start);
	n->acl = malloc(n->acl_len);
	memcpy(n->acl, start, n->acl_len);
	return ST_OK;
}

static bool wr_node_attr(struct cmp *c, struct wr *w, const struct node *n, int bit)
{
	switch (bit) {
	case 1:
		wr_u32(w, n->type);
		return true;
	case 3:
		wr_u64(w, n->change);
		return true;
	case 4:
		wr_u64(w, n->size);
		return true;
	case 12:
		wr_acl(w, n);
		return true;
	case 20:
	case 55:
		wr_u64(w, n->id);
		return true;
	case 33:
		wr_u32(w, n->mode & 07777);
		return true;
	case 35:
		wr_u32(w, n->nlink);
		return true;
	case 36:
		wr_owner(c, w, 'u', n->uid);
		return true;
	case 37:
		wr_owner(c, w, 'g', n->gid);
		return true;
	case 41:
		wr_u32(w, n->rdev[0]);
		wr_u32(w, n->rdev[1]);
		return true;
	case 45:
		wr_u64(w, (n->size + 4095) & ~4095ull);
		return true;
	case 47:
		wr_time(w, &n->atime);
		return true;
	case 52:
		wr_time(w, &n->ctime);
		return true;
	case 53:
		wr_time(w, &n->mtime);
		return true;
	default:
		return false;
	}
}

void attr_encode(struct cmp *c, struct node *n, const uint32_t mask[3], uint32_t rderror)
{
	struct wr *out = c->out, vals = {malloc(512), 0, 512, false, true};
	uint32_t got[3] = {0}, have[3];

	mask_of(c, n, false, have);
	for (int bit = 0; bit < 96; bit++) {
		int i = bit / 32;
		bool there = true;

		if (!(mask[i] & have[i] & BIT(bit)))
			continue;
		if (bit == 12)
			c->job->unbounded = true;
		if (bit == 11) {
			wr_u32(&vals, rderror);
		} else if (bit == 19) {
			c->out = &vals;
			wr_fh(c, n);
			c->out = out;
		} else {
			there = wr_fs_attr(c, &vals, n, bit) || wr_node_attr(c, &vals, n, bit);
		}
		if (there)
			got[i] |= BIT(bit);
	}
	wr_bitmap(out, got);
	wr_opaque(out, vals.base, vals.len);
	free(vals.base);
}

/* ---- setting ---- */

static uint32_t rd_owner(struct cmp *c, struct rd *r, char kind, uint32_t *ret)
{
	bool names = c->sim->conf.names;
	uint32_t len, id = 0, tail = names ? 4 : 0;
	const uint8_t *p = rd_opaque(r, &len);

	if (!r->bad && names && (len < 6 || p[0] != kind || memcmp(p + len - tail, "@sim", tail)))
		return ST_BADOWNER;
	if (r->bad || !len || len > (names ? 15 : 10))
		return ST_INVAL;
	for (uint32_t i = names; i < len - tail; i++) {
		if (p[i] < '0' || p[i] > '9')
			return names ? ST_BADOWNER : ST_INVAL;
		id = id * 10 + (p[i] - '0');
	}
	*ret = id;
	return ST_OK;
}

static void rd_settime(struct cmp *c, struct rd *r, struct timespec *ts)
{
	uint32_t how = rd_u32(r);

	if (how > 1)
		r->bad = true;
	if (how == 1) {
		ts->tv_sec = (time_t)rd_u64(r);
		ts->tv_nsec = (long)rd_u32(r);
		if (ts->tv_nsec >= 1000000000)
			r->bad = true;
	} else {
		struct node tmp = {.change = 0};

		tree_touch(&c->sim->tree, &tmp, true);
		*ts = tmp.mtime;
	}
}

/* One settable attribute; *st: NFS status. False: not settable. */
static bool set_one(struct cmp *c, struct node *n, struct rd *r, int bit, uint32_t *st)
{
	uint64_t size;
	uint32_t mode;

	switch (bit) {
	case 4:
		size = rd_u64(r);
		if (n->type != NFSD_SIM_REG)
			*st = n->type == NFSD_SIM_DIR ? ST_ISDIR : ST_INVAL;
		else if (size > 1ull << 32)
			*st = ST_FBIG;
		else if (!r->bad)
			tree_truncate(&c->sim->tree, n, size);
		return true;
	case 12:
		*st = set_acl(n, r);
		return true;
	case 33:
		n->mode = rd_u32(r) & 07777;
		return true;
	case 36:
		*st = rd_owner(c, r, 'u', &n->uid);
		return true;
	case 37:
		*st = rd_owner(c, r, 'g', &n->gid);
		return true;
	case 48:
		rd_settime(c, r, &n->atime);
		return true;
	case 54:
		rd_settime(c, r, &n->mtime);
		return true;
	case 81:
		mode = rd_u32(r);
		n->mode = mode & ~rd_u32(r) & 07777;
		return true;
	default:
		return false;
	}
}

uint32_t attr_apply(struct cmp *c, struct node *n, uint32_t set[3])
{
	uint32_t mask[3], len, st = ST_OK;
	const uint8_t *p;
	struct rd r;

	set[0] = set[1] = set[2] = 0;
	rd_bitmap(&c->in, mask);
	p = rd_opaque(&c->in, &len);
	if (c->in.bad)
		return ST_BADXDR;
	r = (struct rd){p, p + len, false};
	for (int bit = 0; bit < 96 && !st; bit++) {
		if (!(mask[bit / 32] & BIT(bit)))
			continue;
		if (!set_one(c, n, &r, bit, &st)) {
			fab_sim_fail("attribute %d cannot be set", bit);
			return ST_ATTRNOTSUPP;
		}
		if (fs_of(c, n).supported_mask[bit / 32] & BIT(bit))
			fab_sim_fail("attribute %d is not supported", bit);
		set[bit / 32] |= BIT(bit);
	}
	if (!st && (r.bad || r.p != r.end)) {
		fab_sim_fail("attributes cannot be decoded");
		return ST_BADXDR;
	}
	tree_touch(&c->sim->tree, n, false);
	return st;
}

/* ---- operations ---- */

bool may(const struct cmp *c, const struct node *n, uint32_t rwx)
{
	uint32_t bits = n->mode & 7;

	if (!c->uid)
		return true;
	if (c->uid == n->uid)
		bits = n->mode >> 6 & 7;
	else if (c->gid == n->gid)
		bits = n->mode >> 3 & 7;
	return (bits & rwx) == rwx;
}

uint32_t op_access(struct cmp *c)
{
	uint32_t want = rd_u32(&c->in), can = 0;

	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (may(c, c->cur, 4))
		can |= 0x01;
	if (may(c, c->cur, 2))
		can |= 0x04 | 0x08 | (c->cur->type == NFSD_SIM_DIR ? 0x10 : 0);
	if (may(c, c->cur, 1))
		can |= c->cur->type == NFSD_SIM_DIR ? 0x02 : 0x20;
	wr_u32(c->out, want & 0x3f);
	wr_u32(c->out, want & can);
	return ST_OK;
}

uint32_t op_getattr(struct cmp *c)
{
	uint32_t mask[3];

	rd_bitmap(&c->in, mask);
	if (!c->cur)
		return ST_NOFILEHANDLE;
	if (mask[1] & (BIT(48) | BIT(54)))
		return ST_INVAL;
	if (c->cur->attrs_denied)
		return ST_ACCESS;
	attr_encode(c, c->cur, mask, 0);
	return ST_OK;
}

uint32_t op_setattr(struct cmp *c)
{
	struct stateid sid;
	uint32_t set[3] = {0}, st = ST_OK;
	struct rd look;
	uint32_t mask[3];

	rd_stateid(&c->in, &sid);
	look = c->in;
	rd_bitmap(&look, mask);
	c->keep_body = true;
	if (!c->cur)
		st = ST_NOFILEHANDLE;
	if (!st && mask[0] & BIT(4))
		st = state_check(c, &sid, 2, NULL);
	if (!st && mask[0] & BIT(4))
		st = lock_io_check(c, &sid, 0, UINT64_MAX, true);
	if (!st && mask[0] & BIT(4) && !may(c, c->cur, 2) && c->uid != c->cur->uid)
		st = ST_ACCESS;
	if (!st && (mask[1] & (BIT(33) | BIT(36) | BIT(37))) && c->uid && c->uid != c->cur->uid)
		st = ST_PERM;
	if (!st)
		st = attr_apply(c, c->cur, set);
	/* Where the verifier of an exclusive create was kept. */
	if (set[1] & (BIT(48) | BIT(54)))
		c->cur->is_excl = false;
	if (st)
		set[0] = set[1] = set[2] = 0;
	wr_bitmap(c->out, set);
	return st;
}

uint32_t op_verify(struct cmp *c)
{
	struct wr *out = c->out, ours = {malloc(512), 0, 512, false, true};
	struct rd args = c->in;
	uint32_t mask[3], len, got[3];
	const uint8_t *vals, *have;
	uint32_t have_len;
	struct rd look;
	bool same;

	rd_bitmap(&args, mask);
	vals = rd_opaque(&args, &len);
	if (!c->cur || args.bad) {
		free(ours.base);
		return c->cur ? ST_BADXDR : ST_NOFILEHANDLE;
	}
	c->out = &ours;
	attr_encode(c, c->cur, mask, 0);
	c->out = out;
	look = (struct rd){.p = ours.base, .end = ours.base + ours.len};
	rd_bitmap(&look, got);
	have = rd_opaque(&look, &have_len);
	same = !memcmp(got, mask, sizeof(got)) && have_len == len && !memcmp(have, vals, len);
	free(ours.base);
	c->in = args;
	return same ? ST_OK : ST_NOT_SAME;
}
