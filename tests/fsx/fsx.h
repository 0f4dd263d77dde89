/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside fsx, the random operation tester: two files, each with a model of what
 * it holds, several descriptors and a mapping. One thread.
 */
#ifndef FSX_H
#define FSX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FSX_FILES    2
#define FSX_SLOTS    4
#define FSX_PAGE     4096u
#define FSX_PATH     1024
#define FSX_SIZE_MAX (16u << 20)
#define FSX_IO_MAX   (1u << 20)

enum fsx_mode {
	FSX_CACHED, /* through the page cache, and mappings */
	FSX_DIRECT, /* O_DIRECT only, of any size and alignment */
	FSX_MIXED,  /* both: a direct one after fsync of what was cached */
};

enum fsx_sabotage {
	FSX_HONEST,
	FSX_BYTE, /* another writer changes one byte */
	FSX_LONG, /* another writer makes it a byte longer */
	FSX_LOST, /* a write is told to the model only */
};

struct fsx_slot {
	int fd; /* -1: not open */
	int flags;
};

struct fsx_file {
	char path[FSX_PATH];
	char second[FSX_PATH]; /* another name of it, "": none */
	bool unlinked;         /* it has no name, but is open */
	/* Slot 0 is always open for reading and writing, and never O_APPEND. */
	struct fsx_slot slots[FSX_SLOTS];
	uint8_t *map;   /* of fsx.limit bytes; NULL: none */
	uint8_t *model; /* zeros from size on */
	size_t size;
	bool cached; /* changed through the page cache since the last fsync */
};

struct fsx {
	struct fsx_file files[FSX_FILES], *last; /* the operation is on it */
	enum fsx_mode mode;
	size_t limit;              /* most bytes of a file */
	uint8_t *io;               /* page aligned, FSX_IO_MAX and two pages */
	unsigned long op, refused; /* of allocations, holes and copies: done by hand */
	uint64_t digest;           /* of what was read, and of sizes */
	enum fsx_sabotage sabotage;
	unsigned long sabotage_op;
	bool peer; /* a second process looks too */
};

extern struct fsx fsx;

/* ---- fsx_model.c ---- */

void fsx_seed(uint64_t seed);
uint32_t fsx_rnd(uint32_t below);
struct fsx_file *fsx_some_file(void);
/* At, and beside, the boundaries that matter: 0, the end, pages, I/O sizes. At most fsx.limit. */
size_t fsx_some_offset(const struct fsx_file *f);
/* 1 ... max, which is at least 1. */
size_t fsx_some_length(size_t max);
/* Bytes of this operation, none of them 0: a hole is told from them. */
void fsx_fill(uint8_t *mem, size_t len);
/* The model is written to; it grows as a file does. */
void fsx_model_write(struct fsx_file *f, size_t off, const uint8_t *mem, size_t len);
void fsx_model_zero(struct fsx_file *f, size_t off, size_t len);
void fsx_model_resize(struct fsx_file *f, size_t size);
/* What was read of off is what the model has; enters the digest. */
void fsx_compare(struct fsx_file *f, const uint8_t *got, size_t off, size_t len, const char *how);

/* What this operation is, for the history. */
void fsx_note(const struct fsx_file *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* To the end of the note. */
void fsx_note_more(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The end: what is wrong, the history, and how to have it again. */
void fsx_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* How fsx was called, without operations and seed, for fsx_wrong(). */
void fsx_again(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t fsx_the_seed(void);

/* ---- fsx_io.c ---- */

/* Before a direct operation: what is in the page cache only is written. */
void fsx_settle(struct fsx_file *f, const struct fsx_slot *s);
/* All of it, through slot s; calls that are short go on. */
void fsx_pread(struct fsx_slot *s, uint8_t *mem, size_t len, size_t off, size_t want);
void fsx_pwrite(struct fsx_slot *s, const uint8_t *mem, size_t len, size_t off);
void fsx_check_file(struct fsx_file *f, const char *how);
void fsx_do_read(void);
void fsx_do_write(void);
void fsx_do_append(void);
void fsx_do_truncate(void);
void fsx_do_sync(void);

/* ---- fsx_map.c ---- */

void fsx_unmap(struct fsx_file *f);
void fsx_do_map_read(void);
void fsx_do_map_write(void);
void fsx_do_map_again(void);

/* ---- fsx_space.c ---- */

void fsx_do_allocate(void);
void fsx_do_punch(void);
void fsx_do_seek(void);
void fsx_do_copy(void);

/* ---- fsx_name.c: opens and names ---- */

void fsx_create(struct fsx_file *f, const char *path);
void fsx_close_all(struct fsx_file *f);
void fsx_remove(struct fsx_file *f);
/* An open slot for this, O_RDONLY or O_WRONLY; never O_APPEND. */
struct fsx_slot *fsx_some_slot(struct fsx_file *f, int access);
void fsx_do_reopen(void);
void fsx_do_rename(void);
void fsx_do_link(void);
void fsx_do_unlink(void);

/* ---- fsx_peer.c: a second process ---- */

void fsx_peer_start(void);
/* It sees the size, and some bytes, that the model has. */
void fsx_peer_look(struct fsx_file *f);
void fsx_peer_stop(void);

#endif
