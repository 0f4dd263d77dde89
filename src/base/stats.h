/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of one lane. The lane is the only writer; other threads read them
 * relaxed for a report, so no lock is needed. One list names them all: it
 * makes the struct, the sum over lanes and the printed names.
 */
#ifndef RPCRDMAFS_STATS_H
#define RPCRDMAFS_STATS_H

#include <stdint.h>
#include <stdio.h>

/* X(name, meaning) */
#define STATS_FOREACH(X)                                                                           \
	X(fuse_requests, "requests read from /dev/fuse")                                           \
	X(handed_over, "of these, left to the metadata lane")                                      \
	X(fuse_replies, "replies written to /dev/fuse")                                            \
	X(interrupts, "requests answered EINTR because their program was dying")                   \
	X(rpcs, "RPC calls sent, resends not counted")                                             \
	X(replies, "RPC replies matched to a call")                                                \
	X(retransmits, "calls sent again after a reconnect")                                       \
	X(timeouts, "calls that ran into timeo")                                                   \
	X(stray_replies, "replies that matched no call, dropped")                                  \
	X(bad_messages, "messages dropped because they break RFC 8166")                            \
	X(rdma_errors, "RDMA_ERROR messages received")                                             \
	X(inline_calls, "calls sent without any chunk in the call direction")                      \
	X(long_calls, "calls sent by Position-Zero Read chunk")                                    \
	X(inline_replies, "replies received wholly inline")                                        \
	X(read_chunks, "Read chunks offered with calls (server does RDMA Read)")                   \
	X(write_chunks, "Write chunks the server used (RDMA Write)")                               \
	X(write_chunks_unused, "Write chunks offered and returned empty")                          \
	X(reply_chunks, "Reply chunks the server used")                                            \
	X(reply_chunk_retries, "calls repeated with a larger Reply chunk")                         \
	X(bytes_written, "payload bytes of WRITE acknowledged by the server")                      \
	X(reads_ahead, "READs sent ahead of requests")                                             \
	X(reads_at_open, "READs in the COMPOUND of an OPEN")                                       \
	X(reads_from_ahead, "READ requests answered from either")                                  \
	X(writes_behind, "WRITE requests answered before they were sent")                          \
	X(writes_joined, "WRITE requests answered whose data joined another one's")                \
	X(writes_coupled, "WRITE requests that went to the server behind another, in one WRITE")   \
	X(commits_by_age, "COMMITs in the background of data that is old, or that others change")  \
	X(shadows, "special files told as another inode, for a user who may not use them")         \
	X(validations, "files kept open whose attributes were asked for again (GETATTR)")          \
	X(bytes_read, "payload bytes of READ received from the server")                            \
	X(copied_bytes, "payload bytes copied by the CPU, any size")                               \
	X(copied_bytes_large, "of these, in transfers of 16 KiB and more")                         \
	X(mw_binds, "memory windows bound")                                                        \
	X(remote_invals, "windows invalidated by the server")                                      \
	X(local_invals, "windows invalidated locally")                                             \
	X(quarantined, "buffers kept back because their call was abandoned")                       \
	X(credit_waits, "calls that waited for a credit")                                          \
	X(slot_waits, "calls that waited for a session slot")                                      \
	X(buf_waits, "times reading /dev/fuse stopped for want of a buffer or request")            \
	X(connects, "connections established")                                                     \
	X(reconnects, "of these, after one was lost")                                              \
	X(probes, "health-check NULL calls sent (RFC 8267 section 6.7.2)")                         \
	X(probe_replies, "of these, answered")                                                     \
	X(reverse_calls, "backchannel calls received")                                             \
	X(reverse_dropped, "backchannel calls dropped")                                            \
	X(sessions, "sessions created")                                                            \
	X(delays, "NFS4ERR_DELAY and NFS4ERR_GRACE waited out")                                    \
	X(verifier_changes, "write verifiers that changed before COMMIT")                          \
	X(invals, "kernel cache invalidations sent")                                               \
	X(packets_resent, "packets sent again after a loss (this and the next: fabric=soft)")      \
	X(packets_early, "packets received after one that is missing: they come again")            \
	X(packets_twice, "packets received a second time")                                         \
	X(bad_icrc, "packets dropped because their ICRC is wrong")                                 \
	X(naks, "NAKs received, but those of RNR")                                                 \
	X(naks_sent, "NAKs sent, but those of RNR")                                                \
	X(rnr_naks, "RNR NAKs received: the server had no receive")                                \
	X(rnr_naks_sent, "RNR NAKs sent")                                                          \
	X(cnps, "congestion notifications (CNP) received")                                         \
	X(cnps_sent, "congestion notifications sent, for packets marked on their way")

/* Gauges: last value, not a count. */
#define STATS_GAUGES(X)                                                                            \
	X(credits, "credits granted now")                                                          \
	X(in_flight, "calls in flight now")                                                        \
	X(in_flight_max, "most calls in flight at once")                                           \
	X(slots, "session slots now")                                                              \
	X(delegations, "delegations held now")

struct latency;

#define STATS_OPS 80 /* NFS operation numbers 0..79 counted one by one (RFC 8276 ends at 75) */

struct stats {
#define X(name, meaning) uint64_t name;
	STATS_FOREACH(X)
	STATS_GAUGES(X)
#undef X
	uint64_t ops[STATS_OPS]; /* COMPOUND operations sent, by NFS operation number */
	struct latency *latency; /* of the same lane (latency.h); NULL: nobody wants to know */
};

/*
 * stats_count - add to a counter of the caller's own lane
 *
 * As cheap as `counter += n` (no locked instruction), but a defined race with the thread
 * that reads it for a report. Gauges likewise: stats_set().
 */
static inline void stats_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline void stats_set(uint64_t *gauge, uint64_t value)
{
	__atomic_store_n(gauge, value, __ATOMIC_RELAXED);
}

/* Adds `from` to `to` (gauges are added too: totals over lanes; in_flight_max takes the larger). */
void stats_add(struct stats *to, const struct stats *from);

/*
 * stats_print - one "name=value" line for each counter that is not zero and
 * for each gauge, then "op_NAME=count" lines.
 *
 * op_name: name of an NFS operation number, NULL for one without a name.
 */
void stats_print(FILE *out, const struct stats *s, const char *(*op_name)(unsigned int op));

#endif
