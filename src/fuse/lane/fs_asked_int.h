/* SPDX-License-Identifier: BSD-3-Clause */
/* Between fs_asked.c, which has the requests, and fs_asked_buf.c, which has their buffers. */
#ifndef RPCRDMAFS_FS_ASKED_INT_H
#define RPCRDMAFS_FS_ASKED_INT_H

#include "fs_asked.h"

struct fuse_in_header;

/* Places for requests that are not long: to take one costs less than a record. */
#define FS_ASKED_PLACES     1024u
#define FS_ASKED_PLACE_SIZE 256u
/* So many requests were interrupted last without being there: one for each lane, and more. */
#define FS_ASKED_MISSED 16u

/* entry.in: its bytes are in */
enum {
	FS_ASKED_IN_RECORD,
	FS_ASKED_IN_BUF,   /* a data buffer */
	FS_ASKED_IN_PLACE, /* one of fs_asked.places */
};

/* entry.counted: of which kind, as a bit, are there any that are not answered? */
enum fs_asked_counted {
	FS_ASKED_AWAITED,
	FS_ASKED_REWRITES,
	FS_ASKED_PRECEDES,
	FS_ASKED_COUNTED,
};

struct fs_asked_entry {
	uint64_t unique; /* 0: none */
	uint64_t order;
	live_ref ref;
	uint8_t in;          /* FS_ASKED_IN_* */
	bool kept, answered; /* it goes when it is answered and not kept */
	bool lent;           /* the memory of its record is somebody else's by then */
	uint8_t counted;     /* a bit of each enum fs_asked_counted */
};

/* A table of entries, by number; of its places one half is free. */
struct fs_asked {
	struct mutex lock; /* all of it */
	struct fs_asked_entry *v;
	uint32_t size, cnt;
	uint8_t *places; /* NULL: there was no memory for them */
	live_ref first;  /* of places */
	uint16_t free[FS_ASKED_PLACES];
	uint32_t free_cnt;
	uint64_t missed[FS_ASKED_MISSED];
	unsigned int missed_cnt;
	_Atomic uint64_t order;                    /* counts what came; without the lock */
	_Atomic uint32_t counts[FS_ASKED_COUNTED]; /* of the entries that are counted as it */
};

/* Where it is, or would be. Lock held. */
struct fs_asked_entry *fs_asked_find(const struct fs_asked *a, uint64_t unique);
/* Of one that is in a place: where that is. */
static inline void *fs_asked_place(const struct fs_asked *a, live_ref ref)
{
	return a->places + (size_t)(ref - a->first) * FS_ASKED_PLACE_SIZE;
}
/* A record of its bytes, in a place if there is one: e->ref and e->in. Lock held. */
void fs_asked_put_in_place(struct fs *fs, struct fs_asked_entry *e, const struct fuse_in_header *h,
	size_t len, uint64_t state);

/* The order of the next one that came. */
uint64_t fs_asked_next_order(struct fs *fs);
/* A FUSE_INTERRUPT is noted. Is this one to be noted, which its answer ends? */
bool fs_asked_note_first(struct fs *fs, const struct fuse_in_header *h, size_t len);
/* Its buffer was its record until now. */
void fs_asked_note_late(struct fs *fs, const struct fuse_in_header *h, uint64_t order);
/* The answer is to what only its buffer is the record of (fs_asked_buf_list()): it is none now. */
bool fs_asked_buf_answered(struct fs *fs, uint64_t unique);

#endif
