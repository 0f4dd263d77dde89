/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables: what one process writes down for the next one, which may be of another version. A table
 * is a file of records in their order; a record has a type and fields; a field has a number and
 * bytes. A reader passes over types and fields that it does not know, and has a default for those
 * that are not there. So a field's number never gets another meaning; numbers and types of one
 * reader and writer stand in a header beside them.
 *
 *   file    8 bytes of magic; then records, the last one of type TABLES_END
 *   record  type (2 bytes), 0 (2), length of its fields (4), fields
 *   field   number (2), length (2), bytes
 *   END     its field 1: CRC-32 of all that stands before this record
 *
 * All numbers are little-endian. A field that is a number has as many bytes as it needs, and is
 * left out if it is 0.
 *
 * The writer may have been a broken process: tables_open() checks the whole file before anything of
 * it is believed.
 *
 * Context: one thread for each object.
 */
#ifndef RPCRDMAFS_TABLES_H
#define RPCRDMAFS_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLES_END       0u
#define TABLES_FIELD_MAX 65535u /* bytes */
#define TABLES_PIECE     61440u /* bytes of a file, in one field */
#define TABLES_FEW       480u   /* bytes that most records do not exceed */

/* ---- writing ---- */

struct tables_out {
	int fd;       /* the caller's */
	int err;      /* 0, or the first -errno: what follows is not written */
	uint32_t crc; /* of what was written to fd */
	uint8_t *buf; /* of what was not: `few`, or on the heap */
	size_t used, size;
	size_t record; /* in buf: where the fields of the record begin; 0: there is none */
	uint8_t few[TABLES_FEW];
};

/* fd: an empty file, written from its start; the caller's. No failure is told before tables_end().
 * *t is not copied until its end. */
void tables_begin(struct tables_out *t, int fd);
/* The next fields are of a new record. type: not TABLES_END. */
void tables_record(struct tables_out *t, uint16_t type);
void tables_put(struct tables_out *t, uint16_t field, uint64_t value);
/* len: at most TABLES_FIELD_MAX; 0: the field is left out. */
void tables_put_bytes(struct tables_out *t, uint16_t field, const void *bytes, size_t len);
/* Bytes of any length: several fields of this number, each of TABLES_PIECE bytes at most. */
void tables_put_pieces(struct tables_out *t, uint16_t field, const void *p, size_t len);
/* A new record with the bytes of a whole one (tables_is_record()), but END; more fields may follow.
 */
void tables_put_record(struct tables_out *t, const void *bytes, size_t len);
/* All is written. Returns: 0; -errno: the file is of no use. */
int tables_end(struct tables_out *t);

/*
 * tables_pieces_record - a record with nothing but such fields, written to `to`, which has room for
 * tables_pieces_len(len) bytes
 */
void tables_pieces_record(uint8_t *to, uint16_t type, uint16_t field, const void *p, size_t len);
size_t tables_pieces_len(size_t len);
/* Where in such a record the first field's bytes are. */
uint8_t *tables_pieces_first(uint8_t *record);

/* ---- one record, in memory alone ---- */

/*
 * There is no file, and one record at a time: tables_record(), its fields, tables_record_bytes(),
 * tables_reset(), and so on with the next one. tables_end_in() is the end, not tables_end().
 */
void tables_begin_in(struct tables_out *t);
/*
 * The record is complete: its bytes, which are t's and valid until the next call. NULL, with
 * *ret_len 0: there was a failure (t->err), or no record.
 */
const void *tables_record_bytes(struct tables_out *t, size_t *ret_len);
/* Neither record nor failure is there any more; memory is kept for the next record. */
void tables_reset(struct tables_out *t);
/* Its memory is freed; t is as after tables_begin_in(). */
void tables_end_in(struct tables_out *t);
/* The bytes are one whole record, not END: its fields fit in it, and nothing stands behind them. */
bool tables_is_record(const void *bytes, size_t len);

/* ---- reading ---- */

struct tables_in {
	const uint8_t *map;
	size_t len;
	const uint8_t *next, *end; /* of the records */
};

struct tables_record {
	uint16_t type;
	const uint8_t *fields;
	size_t len; /* bytes */
};

/*
 * tables_open - check a file and read from its start
 *
 * fd: the caller's; nobody may change the file before tables_close().
 * Returns: 0; -EBADMSG: it is no table, cut off, or damaged; -errno.
 */
int tables_open(struct tables_in *t, int fd);
void tables_close(struct tables_in *t);
/* From the first record again. */
void tables_rewind(struct tables_in *t);
/* False: that was the last one. *ret is valid until tables_close(). */
bool tables_next(struct tables_in *t, struct tables_record *ret);
/* 0: it is not there, or no number. */
uint64_t tables_get(const struct tables_record *r, uint16_t field);
/* *ret_len is 0 if it is not there. The memory is the table's. */
const void *tables_get_bytes(const struct tables_record *r, uint16_t field, size_t *ret_len);
/* The same for a field that may be there several times: the one after `after`, NULL: the first. */
const void *tables_get_next(
	const struct tables_record *r, uint16_t field, const void *after, size_t *ret_len);
/* Exactly len bytes. False: it is not there, or of another length; `to` is as it was. */
bool tables_copy(const struct tables_record *r, uint16_t field, void *to, size_t len);

#endif
