/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entries of one READDIR reply, packed into ordinary memory: what an open
 * directory keeps between two requests of the kernel, which takes a page at a
 * time. (The data buffer the reply came in is needed elsewhere.)
 *
 * Context: pure; the owner serialises.
 */
#ifndef RPCRDMAFS_FS_DIRPACK_H
#define RPCRDMAFS_FS_DIRPACK_H

#include "nfs4_ops.h"

/* No more than this is kept of one reply, whatever the server sends; the rest is asked for again.
 */
#define FS_DIRPACK_MAX (768u * 1024)

struct fs_dirpack {
	uint64_t start;   /* cookie it was asked for with */
	uint64_t last;    /* cookie of its last entry; start if it is empty */
	bool eof;         /* the directory ends after its last entry */
	uint64_t seq;     /* fs_attr_seq() when the READDIR was sent */
	uint64_t sent_ns; /* when the READDIR was sent: its attributes are not older */
	uint64_t got_ns;
	size_t len, room;
	uint8_t *mem;
};

/* One entry: type, fileid and name always; attributes and filehandle if fh_len > 0. */
struct fs_dirrec {
	uint64_t cookie;
	uint64_t fileid;
	uint32_t rec_len; /* of the whole record, a multiple of 8 */
	uint8_t type;     /* enum nfs4_ftype; 0: not known */
	uint8_t fh_len;
	uint16_t name_len;
};

struct fs_dirpack *fs_dirpack_new(uint64_t start);
/* NULL is accepted. */
void fs_dirpack_free(struct fs_dirpack *p);
/* False: full, or out of memory: the entry is not in. */
bool fs_dirpack_add(struct fs_dirpack *p, const struct nfs4_dirent *de);

enum fs_dirpack_pos {
	FS_DIRPACK_FOUND, /* *ret is the entry after the one with this cookie */
	FS_DIRPACK_END,   /* the cookie is the last one here; more is to be asked for */
	FS_DIRPACK_EOF,   /* the directory ends with this cookie */
	FS_DIRPACK_MISS,  /* no entry here has this cookie */
};

/* hint: where to look first, updated; 0 to begin with. */
enum fs_dirpack_pos fs_dirpack_after(
	const struct fs_dirpack *p, uint64_t cookie, size_t *hint, const struct fs_dirrec **ret);
/* The entry after rec; NULL: rec is the last. */
const struct fs_dirrec *fs_dirpack_next(const struct fs_dirpack *p, const struct fs_dirrec *rec);

/* NUL-terminated. */
const char *fs_dirpack_rec_name(const struct fs_dirrec *rec);
/* False: the entry has none. */
bool fs_dirpack_rec_attr(const struct fs_dirrec *rec, struct nfs4_attr *attr, struct nfs4_fh *fh);

#endif
