/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture file: frames that lanes hand over, written as pcapng (IETF
 * draft-ietf-opsawg-pcapng) by a thread of its own. A lane never waits for the
 * file: its frames are copied into a buffer, or, when that is full, dropped and
 * counted. What was dropped is told in the file's last block.
 *
 * Context: start, stop, state, open, new, free: one thread (main). The rest: any
 * lane, at any time between new and free.
 */
#ifndef RPCRDMAFS_CAPTURE_H
#define RPCRDMAFS_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mutex.h"

#define CAPTURE_FRAME_MAX   4608u /* bytes of one frame at most */
#define CAPTURE_BATCH_MEM   (256u * 1024u)
#define CAPTURE_MIN_BYTES   (64u * 1024u) /* of limits.max_bytes */
#define CAPTURE_MIB_DEFAULT 64u

struct capture_limits {
	uint64_t max_bytes; /* the file never gets longer; CAPTURE_MIN_BYTES at least */
	bool data;          /* also the contents of files */
};

/* Why a capture is not, or no longer, running. */
enum capture_end {
	CAPTURE_RUNNING,
	CAPTURE_NEVER,   /* never started */
	CAPTURE_STOPPED, /* capture_stop() */
	CAPTURE_FULL,    /* max_bytes are reached */
	CAPTURE_FAILED,  /* err: writing failed */
};

struct capture_state {
	enum capture_end end;
	int err; /* FAILED: -errno */
	bool data;
	uint64_t max_bytes;
	uint64_t bytes;   /* of the file, those still in memory included */
	uint64_t frames;  /* in the file */
	uint64_t dropped; /* frames for which there was no room in memory */
};

struct capture {
	/* read by lanes without the lock */
	_Atomic bool on;
	_Atomic bool data;
	_Atomic uint32_t run; /* number of the capture: a new one tells its connections anew */
	_Atomic uint32_t ids;

	struct mutex lock;
	pthread_cond_t work; /* for the thread: much to write, or the end */
	/* under the lock */
	uint8_t *ring;
	size_t size, head, used; /* bytes; head: where the next goes */
	bool ending;             /* no more frames: write the rest and end */
	struct capture_state st;
	uint64_t first_ns; /* CLOCK_REALTIME */
	/* main's and, between start and join, the thread's */
	int fd;
	pthread_t thread;
	bool has_thread;
};

/* NULL with errno. */
struct capture *capture_new(void);
/* Stops it first. Nobody adds any more. NULL is accepted. */
void capture_free(struct capture *c);

/*
 * capture_open - a file to capture into
 *
 * A new file that only its owner may read: never one that is there, nor through a symbolic link.
 * Returns: its descriptor; -errno (-EEXIST: take another name or remove it).
 */
int capture_open(const char *path);
/*
 * capture_start - capture into `fd`: a file, pipe or terminal to write to
 *
 * Ownership: on 0 fd belongs to the capture, which closes it; else it stays the caller's.
 * Returns: 0; -EBUSY: one is running; -EINVAL: limits; -errno.
 */
int capture_start(struct capture *c, int fd, const struct capture_limits *limits);
/*
 * capture_stop - write what is in memory, end the file, close it
 *
 * Waits for the disk. Harmless when none runs.
 * Returns: 0; -errno: what is in the file is not all.
 */
int capture_stop(struct capture *c);
void capture_state(struct capture *c, struct capture_state *ret);

/* ---- lanes ---- */

/* The branch that capturing costs while it is off. NULL: never on. */
static inline bool capture_is_on(const struct capture *c)
{
	return __builtin_expect(c != NULL && atomic_load_explicit(&c->on, memory_order_relaxed), 0);
}

static inline bool capture_wants_data(const struct capture *c)
{
	return atomic_load_explicit(&c->data, memory_order_relaxed);
}

static inline uint32_t capture_run(const struct capture *c)
{
	return atomic_load_explicit(&c->run, memory_order_relaxed);
}

/* A number that no other connection in the file has. */
static inline uint32_t capture_id(struct capture *c)
{
	return atomic_fetch_add_explicit(&c->ids, 1, memory_order_relaxed) + 1;
}

/*
 * Frames of one message, gathered by a lane: all of them get into the file or none, as far as they
 * fit a batch; of longer messages the beginning may be there alone.
 */
struct capture_batch {
	uint8_t mem[CAPTURE_BATCH_MEM];
	size_t len;
	unsigned int frames;
	uint64_t ns; /* CLOCK_REALTIME of the message */
	bool cut;    /* a part was dropped: so is the rest */
};

void capture_batch_begin(struct capture_batch *b);
/* Where to build the next frame, CAPTURE_FRAME_MAX bytes of room. */
uint8_t *capture_batch_frame(struct capture *c, struct capture_batch *b);
/* ... which has `len` bytes now; `whole`: with those that are left out at its end. */
void capture_batch_add(struct capture_batch *b, size_t len, size_t whole);
void capture_batch_end(struct capture *c, struct capture_batch *b);

#endif
