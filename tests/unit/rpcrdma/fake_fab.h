/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric for the transport's own tests: one endpoint, no latency, every call
 * counted and able to fail, keys that really open and close. tests/sim has the
 * big one; this one is small enough to see through.
 */
#ifndef RPCRDMAFS_FAKE_FAB_H
#define RPCRDMAFS_FAKE_FAB_H

#include "fab.h"

#define FAKE_MAX_KEYS  512
#define FAKE_MAX_SENDS 4096

enum fake_call {
	FAKE_RESOLVE,
	FAKE_SETUP,
	FAKE_CONNECT,
	FAKE_MR_REG,
	FAKE_MW_ALLOC,
	FAKE_BIND,
	FAKE_POST_SEND,
	FAKE_POST_RECV,
	FAKE_INVALIDATE,
	FAKE_CALLS,
};

struct fake {
	struct fab_caps caps;
	struct fab_qp_conf qp;
	uint32_t src;     /* IPv4 address that it was to connect from; 0: any */
	uint8_t priv[32]; /* what the client sent */
	size_t priv_len;
	uint8_t peer_priv[64]; /* what the server answers */
	size_t peer_priv_len;
	bool new_device;                /* with the next RESOLVED */
	uint8_t ack_timeout, ack_tries; /* of the next connections */
	void (*connecting)(void);       /* runs while a connection is being made; NULL: nothing */
	uint32_t dst;                   /* IPv4 address that was connected to last */
	uint32_t refuse_dst;            /* only connecting to that one fails */
	bool refuse;                    /* connecting fails with -ECONNREFUSED */
	bool same_batch;                /* what was sent to us before its end has arrived */
	bool hold_sent;                 /* Sends do not complete until fake_flush_sent() */
	bool hold_invals;               /* nor do invalidations */
	int dev_err;                    /* -errno: the device cannot be opened */
	int no_way[2];                  /* -errno, by enum fab_kind: it does not get there */
	int bind_err;                   /* -errno: the device refuses each bind that is posted */
	bool bind_breaks;     /* each bind completes in error, and the connection is gone */
	bool bind_kills;      /* the connection is gone before it completes */
	bool inval_breaks;    /* each invalidation as bind_breaks */
	int fail[FAKE_CALLS]; /* -errno for the next call of this kind, once */
	const char *why;      /* in words, until fake_reset() */
	unsigned int fail_at; /* the n-th call of all fails, once; 0: none */
	int fail_err;
	unsigned int cut_at; /* the connection is lost right after the n-th call */
	/* seen */
	enum fab_kind kind; /* of the last endpoint */
	const struct capture *capture;
	unsigned int calls, count[FAKE_CALLS];
	unsigned int recvs; /* posted now */
	unsigned int busy;
	unsigned int sends;
	unsigned int answers; /* fab_answered(); of this one */
	uint64_t answered;
	bool up;
	/* called for each Send with the gathered message */
	void (*server)(const uint8_t *msg, size_t len);
};

extern struct fake fake;

void fake_reset(void);
/* A message to the client; inv_rkey is invalidated and reported as it is. */
void fake_message(const void *msg, size_t len, uint32_t inv_rkey);
void fake_down(int err);
void fake_flush_sent(void);
void fake_flush_invals(void);
/* Memory behind a key if the peer may do this now, else NULL. */
uint8_t *fake_mem(uint32_t rkey, uint64_t addr, uint64_t len, unsigned int access);
/* Windows that are bound now. */
unsigned int fake_open_windows(void);
/* Registrations that the peer may use, with or without a connection. */
unsigned int fake_open_regs(void);

#endif
