/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live records: copies of what a process has, in memory that outlives it, and up to date at each
 * instant. A process that is killed closes nothing; another one that has the memory's descriptor
 * finds there, with live_tables(), each record as it was put last.
 *
 * A record is one of tables.h. It is written beside the one that it replaces, and counts from one
 * store on: there is neither an instant without either, nor a record that is half the old one.
 * This holds for the death of the process, not of the machine.
 *
 * The memory has a fixed size that is mapped as a whole (64 GiB where the system and RLIMIT_FSIZE
 * allow it, 8 MiB at least). Of it only those pages exist that records were written to. They stay
 * for records of about the same size, and go back to the system with the memory itself.
 *
 * Context: any thread, and a leaf lock (MUTEX_LIVE). Records are independent of each other, but the
 * caller sees to it that no two threads use one *ref at a time. After a fork() either parent or
 * child uses the memory, not both.
 */
#ifndef RPCRDMAFS_LIVE_H
#define RPCRDMAFS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

#define LIVE_NONE     0u
#define LIVE_CRC_NONE UINT16_MAX /* of a record the checksum covers nothing but the key */
/* Bytes of a record, at most: 2 MiB of data in fields, and some more. */
#define LIVE_RECORD_MAX ((2u << 20) + 3968)

typedef uint32_t live_ref; /* a record in the memory; LIVE_NONE: none */

/*
 * Where a reader finds a record: they come in the order of rank, then group, then minor, then age
 * (that of the first put). The one of the last put counts.
 */
struct live_key {
	uint64_t group;
	uint64_t count;       /* of a new record: see live_count() */
	uint16_t crc_max;     /* bytes that the checksum covers; 0: 4 KiB; LIVE_CRC_NONE */
	uint16_t count_field; /* 0: there is no number */
	uint8_t rank, minor;
};

struct live;

/* Returns: memory without records; NULL with errno. */
struct live *live_new(void);
/* Its descriptor, which stays l's; it is closed when a program is executed. */
int live_fd(const struct live *l);
/* NULL is accepted. Unmapped and closed: it is there as long as others have a descriptor of it. */
void live_free(struct live *l);

/*
 * live_put - a record is there from now on
 *
 * t: the one record in it, of tables_begin_in(). It is reset (tables_reset()) for the next one.
 * ref: the record that it replaces; LIVE_NONE: it is a new one. It is the record's from now on.
 *
 * At no instant is there neither the old nor the new one; of a process that dies in here the last
 * one that was whole is found.
 * Without memory, with a failure in t, or of more than LIVE_RECORD_MAX bytes: *ref stays as it was,
 * and the memory is not complete from now on, for good: live_tables() of it fails.
 * l NULL: only t is reset.
 */
void live_put(struct live *l, live_ref *ref, const struct live_key *key, struct tables_out *t);
/* The same with a record of tables_pieces_record(), which is copied once. l is not NULL. */
void live_put_pieces(struct live *l, live_ref *ref, const struct live_key *key, uint16_t type,
	uint16_t field, const void *p, size_t len);
/*
 * live_expect - a record of `len` bytes is put soon
 *
 * The processor fetches the memory that it will be in meanwhile, which takes longer than all else
 * of a small record. A hint, which costs little. l is not NULL.
 */
void live_expect(const struct live *l, size_t len);
/* Of a record of live_put_pieces(): its first TABLES_PIECE bytes. They may be changed. */
uint8_t *live_pieces(const struct live *l, live_ref ref);
/* The record is gone, and *ref is LIVE_NONE. l NULL and LIVE_NONE are accepted. */
void live_drop(struct live *l, live_ref *ref);
/* The record is gone, but its memory is the caller's until live_give_back(). */
void live_retire(struct live *l, live_ref ref);
bool live_is_retired(const struct live *l, live_ref ref);
void live_give_back(struct live *l, live_ref ref);
/*
 * A number beside the record that changes often: one store, without a lock. A reader finds it as
 * field key.count_field behind the others. No checksum covers it. It is key.count at first, and
 * stays when the record is replaced. l NULL and LIVE_NONE are accepted.
 */
void live_count(struct live *l, live_ref ref, uint64_t value);
/* As it was set last. */
uint64_t live_counted(const struct live *l, live_ref ref);
/* Something could not be put: the memory is not complete from now on. l NULL is accepted. */
void live_spoil(struct live *l);
/* Nothing is missing, as yet. */
bool live_is_complete(const struct live *l);

/* ---- memory into which the kernel or a device writes ---- */

/* A record in it begins so many bytes before a page boundary: a FUSE WRITE has its data there. */
#define LIVE_RAW_LEAD 80u

/* Of live_raw_place(). Others are the group of the record. */
#define LIVE_RAW_LAST 0u         /* behind all others of its rank */
#define LIVE_RAW_NONE UINT64_MAX /* it is no record, whatever is in it */

/*
 * live_raw_pieces - `cnt` pieces of `size` bytes each
 *
 * They follow each other, and start at page boundaries. Of a piece's first page only the last
 * LIVE_RAW_LEAD bytes are the caller's, and a record may begin there: if its first four bytes, a
 * number in the machine's order, are not 0, a reader finds a record of this type with so many
 * bytes, in several fields `field`, and with its number (live_count()). No checksum covers it.
 * At first it is no record (LIVE_RAW_NONE). The memory is there as long as l; its pages are not
 * before they are used, or live_raw_reserve() says so.
 * Returns: NULL: there is no memory.
 */
void *live_raw_pieces(struct live *l, const struct live_key *key, uint16_t type, uint16_t field,
	size_t size, unsigned int cnt);
/*
 * live_raw_small - the same for small records
 *
 * size: of a piece, below 4096 and a multiple of 64. All of it is the caller's, and a record begins
 * where it does. Its pages are there. live_raw_ref() of the next piece is 1 more.
 */
void *live_raw_small(struct live *l, const struct live_key *key, uint16_t type, uint16_t field,
	size_t size, unsigned int cnt);
/* record: where one may begin. LIVE_NONE: not in such memory. l NULL is accepted. */
live_ref live_raw_ref(const struct live *l, const void *record);
/* The piece, of live_raw_pieces(), has all of its pages. False: there is no memory. */
bool live_raw_reserve(struct live *l, live_ref ref);
void live_raw_place(struct live *l, live_ref ref, uint64_t place);
uint64_t live_raw_placed(const struct live *l, live_ref ref);
/* Bytes of all of l's memory that are in huge pages now, as the system says. It takes milliseconds.
 */
uint64_t live_raw_huge_bytes(const struct live *l);

/* Bytes of memory that records have now, with what is beside them. l NULL: 0. */
uint64_t live_bytes(const struct live *l);

/*
 * live_tables - all records of another process's memory
 *
 * fd: the memory of a process that is dead; the caller's. It is read only.
 * t: records are added to it in their order, if all is well; tables_begin() and tables_end() are
 * the caller's.
 *
 * The writer may have been broken: nothing of the memory is believed that was not checked. Of a
 * record the checksum covers the first 4 KiB, or as many as its key says: for those with data of
 * files, and those that are of one call, more would cost too much. The encoding of all of it is
 * checked (tables_is_record()).
 * Returns: 0; -EBADMSG: it is no such memory, or one of another version, or damaged; -ENODATA: it
 * is not complete; -errno. After a failure there is nothing in t.
 */
int live_tables(int fd, struct tables_out *t);
/*
 * Memory of another process, which is dead, that has no record goes back to the system: buffers,
 * above all. Nothing of it that live_tables() finds is another one then.
 */
void live_tables_trim(int fd);
/*
 * live_tables_mark - the number beside some records of another process's memory becomes 1
 *
 * As live_count() of that process, which is dead: whoever reads the memory next finds it so. is:
 * for each record of this type, as it was put: this one? Returns: as live_tables(). After a failure
 * nothing has changed.
 */
int live_tables_mark(
	int fd, uint16_t type, bool (*is)(void *ctx, const struct tables_record *r), void *ctx);

#endif
