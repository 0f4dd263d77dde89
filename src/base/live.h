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
 * The memory has a fixed size that is mapped as a whole (16 GiB where the system and RLIMIT_FSIZE
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

#define LIVE_NONE 0u
/* Bytes of a record, at most: 2 MiB of data in fields, and some more. */
#define LIVE_RECORD_MAX ((2u << 20) + 3968)

typedef uint32_t live_ref; /* a record in the memory; LIVE_NONE: none */

/*
 * Where a reader finds a record: they come in the order of rank, then group, then minor, then age
 * (that of the first put). The one of the last put counts.
 */
struct live_key {
	uint64_t group;
	uint16_t count_field; /* see live_count(); 0: there is no number */
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
/* The record is gone, and *ref is LIVE_NONE. l NULL and LIVE_NONE are accepted. */
void live_drop(struct live *l, live_ref *ref);
/*
 * A number beside the record that changes often: one store, without a lock. A reader finds it as
 * field key.count_field behind the others. No checksum covers it. It is 0 at first, and stays when
 * the record is replaced. l NULL and LIVE_NONE are accepted.
 */
void live_count(struct live *l, live_ref ref, uint64_t value);
/* Something could not be put: the memory is not complete from now on. l NULL is accepted. */
void live_spoil(struct live *l);
/* Nothing is missing, as yet. */
bool live_is_complete(const struct live *l);
/*
 * live_raw - memory into which the kernel writes
 *
 * size: bytes, at most LIVE_RECORD_MAX. If the first four of them, a number in the machine's order,
 * are not 0, a reader finds a record of this type with so many bytes, in several fields of number
 * key->count_field; it comes behind all others of its rank. They are 0 now. No checksum covers it.
 * It is there as long as l. Returns: NULL: there is no memory.
 */
void *live_raw(struct live *l, const struct live_key *key, uint16_t type, size_t size);
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
 * record the checksum covers the first 4 KiB: larger ones have data of files, of which each copy
 * would cost too much. The encoding of all of it is checked (tables_is_record()).
 * Returns: 0; -EBADMSG: it is no such memory, or one of another version, or damaged; -ENODATA: it
 * is not complete; -errno. After a failure there is nothing in t.
 */
int live_tables(int fd, struct tables_out *t);
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
