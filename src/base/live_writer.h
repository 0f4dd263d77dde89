/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer's side of live.h: live.c has the records, live_raw.c the memory for others to write.
 */
#ifndef RPCRDMAFS_LIVE_WRITER_H
#define RPCRDMAFS_LIVE_WRITER_H

#include <stdatomic.h>

#include "live.h"
#include "live_int.h"
#include "mutex.h"

#define LIVE_HUGE_PAGE (2ul << 20)

struct live_slots {
	live_ref *refs;
	size_t cnt, total;      /* free ones; all, for which refs has room */
	_Atomic live_ref first; /* the one that is taken next, as a hint without the lock */
};

/* Memory of live_raw_pieces(). */
struct live_raw {
	struct live_raw *next;
	uint8_t *first; /* piece */
	size_t size, cnt;
	live_ref ref;    /* of the first one's slot */
	bool reserved[]; /* each piece's: of whoever it is lent to */
};

struct live {
	int fd;
	uint8_t *map;
	size_t size;
	_Atomic uint64_t seq; /* the next one */
	_Atomic uint64_t bytes;
	struct mutex lock; /* of chunks and free slots */
	size_t used;
	struct live_slots free[LIVE_CLASSES];
	struct live_raw *_Atomic raws; /* none of them goes before l */
};

/* The pages are there: where memory is short, a store to one that is not would be a SIGBUS. */
bool live_reserve(struct live *l, size_t at, size_t len);
/* All of live_raw_pieces() is forgotten. */
void live_raw_forget(struct live *l);

#endif
