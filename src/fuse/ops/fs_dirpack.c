/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record = fs_dirrec, [nfs4_attr, filehandle,] name, NUL, zeros to a multiple of 8
 */
#include <stdlib.h>
#include <string.h>

#include "fs_dirpack.h"

#define FIRST_ROOM (16u * 1024)

struct fs_dirpack *fs_dirpack_new(uint64_t start)
{
	struct fs_dirpack *p = calloc(1, sizeof(*p));

	if (p != NULL)
		p->start = p->last = start;
	return p;
}

void fs_dirpack_free(struct fs_dirpack *p)
{
	if (p == NULL)
		return;
	free(p->mem);
	free(p);
}

static bool make_room(struct fs_dirpack *p, size_t len)
{
	size_t room = p->room != 0 ? p->room : FIRST_ROOM;
	uint8_t *mem;

	if (p->len + len > FS_DIRPACK_MAX)
		return false;
	if (p->len + len <= p->room)
		return true;
	while (room < p->len + len)
		room *= 2;
	mem = realloc(p->mem, room);
	if (mem == NULL)
		return false;
	p->mem = mem;
	p->room = room;
	return true;
}

/* The fileid a directory entry shows; the one below a mount point on the server is the file's own.
 */
static uint64_t entry_fileid(const struct nfs4_attr *a)
{
	return a->valid & (NFS4_ATTR_FILEID | NFS4_ATTR_MOUNTED_ON) ? a->fileid : 0;
}

/* Enough to make an inode of: not for entries that the server could not read. */
static bool has_attr(const struct nfs4_dirent *de)
{
	const uint32_t need = NFS4_ATTR_TYPE | NFS4_ATTR_CHANGE | NFS4_ATTR_SIZE | NFS4_ATTR_MODE |
			      NFS4_ATTR_FILEID;

	return de->fh.len != 0 && (de->attr.valid & NFS4_ATTR_RDERROR) == 0 &&
	       (de->attr.valid & need) == need;
}

bool fs_dirpack_add(struct fs_dirpack *p, const struct nfs4_dirent *de)
{
	struct fs_dirrec rec = {
		.cookie = de->cookie,
		.fileid = entry_fileid(&de->attr),
		.type = de->attr.valid & NFS4_ATTR_TYPE ? (uint8_t)de->attr.type : 0,
		.fh_len = has_attr(de) ? de->fh.len : 0,
		.name_len = (uint16_t)de->name.len,
	};
	size_t len = sizeof(rec) + rec.name_len + 1;
	uint8_t *at;

	if (rec.fh_len != 0)
		len += sizeof(de->attr) + rec.fh_len;
	len = (len + 7) & ~(size_t)7;
	if (!make_room(p, len))
		return false;
	rec.rec_len = (uint32_t)len;
	at = p->mem + p->len;
	memset(at + len - 8, 0, 8);
	memcpy(at, &rec, sizeof(rec));
	at += sizeof(rec);
	if (rec.fh_len != 0) {
		memcpy(at, &de->attr, sizeof(de->attr));
		at += sizeof(de->attr);
		memcpy(at, de->fh.data, rec.fh_len);
		at += rec.fh_len;
	}
	memcpy(at, de->name.p, rec.name_len);
	at[rec.name_len] = '\0';
	p->len += len;
	p->last = rec.cookie;
	return true;
}

static const struct fs_dirrec *rec_at(const struct fs_dirpack *p, size_t off)
{
	return (const struct fs_dirrec *)(const void *)(p->mem + off);
}

static size_t off_of(const struct fs_dirpack *p, const struct fs_dirrec *rec)
{
	return (size_t)((const uint8_t *)rec - p->mem);
}

const struct fs_dirrec *fs_dirpack_next(const struct fs_dirpack *p, const struct fs_dirrec *rec)
{
	size_t off = off_of(p, rec) + rec->rec_len;

	return off < p->len ? rec_at(p, off) : NULL;
}

/* The offset of the record with this cookie from `from` on; p->len: none. */
static size_t find(const struct fs_dirpack *p, uint64_t cookie, size_t from)
{
	size_t off = from;

	while (off < p->len && rec_at(p, off)->cookie != cookie)
		off += rec_at(p, off)->rec_len;
	return off;
}

enum fs_dirpack_pos fs_dirpack_after(
	const struct fs_dirpack *p, uint64_t cookie, size_t *hint, const struct fs_dirrec **ret)
{
	size_t off;

	if (cookie == p->start) {
		off = 0;
	} else {
		off = find(p, cookie, *hint < p->len ? *hint : 0);
		if (off == p->len)
			off = find(p, cookie, 0);
		if (off == p->len)
			return FS_DIRPACK_MISS;
		*hint = off;
		off += rec_at(p, off)->rec_len;
	}
	if (off < p->len) {
		*ret = rec_at(p, off);
		return FS_DIRPACK_FOUND;
	}
	return p->eof ? FS_DIRPACK_EOF : FS_DIRPACK_END;
}

const char *fs_dirpack_rec_name(const struct fs_dirrec *rec)
{
	const uint8_t *at = (const uint8_t *)(rec + 1);

	if (rec->fh_len != 0)
		at += sizeof(struct nfs4_attr) + rec->fh_len;
	return (const char *)at;
}

bool fs_dirpack_rec_attr(const struct fs_dirrec *rec, struct nfs4_attr *attr, struct nfs4_fh *fh)
{
	const uint8_t *at = (const uint8_t *)(rec + 1);

	if (rec->fh_len == 0)
		return false;
	memcpy(attr, at, sizeof(*attr));
	fh->len = rec->fh_len;
	memcpy(fh->data, at + sizeof(*attr), rec->fh_len);
	return true;
}
