/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of a connection of src/roce, for measurements: one queue pair on a UDP socket, in a
 * process of its own. It has wire formats of its own, shares no code with src/roce, and looks at
 * each packet that comes; one that breaks a rule ends the process, which names the rule. IBA is
 * InfiniBand's specification, volume 1, its sections are those of docs/protocol/rocev2.md; A11 and
 * A17 are annexes of it; rxe_comp.c and rxe_resp.c are Linux' (drivers/infiniband/sw/rxe).
 *
 * As a requester it keeps what is not acknowledged, and sends it again after a NAK, a gap in the
 * answer of a Read, or a silence, and waits after an RNR NAK. As a responder it takes Sends in
 * order, asks once for a missing one, and acknowledges what asks for it and what comes twice; its
 * user may say that there is no receive.
 *
 * On a lossy wire it loses packets itself, those that come and its own, marks some of its own as
 * having met congestion, and tells of congestion that there was none.
 */
#ifndef RPCRDMAFS_WIRE_QP_H
#define RPCRDMAFS_WIRE_QP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define MTU       4096u
#define QP_WINDOW 128u /* requests without an acknowledgement, as rxe has it */
#define QP_READS  2u   /* that an endpoint must allow at a time */
#define QP_PRIV   56u  /* private data of a REQ (A11.3) */

#define DIE(...)                                                                                   \
	do {                                                                                       \
		fprintf(stderr, "%s: ", program_invocation_short_name);                            \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fputc('\n', stderr);                                                               \
		exit(1);                                                                           \
	} while (0)

struct wire {
	bool v6;
	const char *ep_addr, *peer_addr;
	unsigned int
		lossy; /* of 1000 packets so many are lost each way, and as many marked (ECN) */
};

/* Address and port of the family. Returns its length. */
socklen_t wire_addr(
	const struct wire *w, struct sockaddr_storage *to, const char *text, uint16_t port);

/* Whose queue pair it is. */
struct qp_user {
	/* A Send has come, all of it. */
	void (*received)(const uint8_t *msg, size_t len);
	/*
	 * A Send begins, for which there may be no receive: an RNR NAK says so, and when it comes
	 * again there is one. NULL: there always is
	 */
	bool (*has_no_receive)(void);
	/* The endpoint may have none for a Send of ours. NULL: it always has, or it is a fault */
	bool (*may_lack_receives)(void);
	/* After each batch of packets: what there is to do is posted, as far as there is room. */
	void (*go_on)(void);
	/* Private data of the REQ, and of the REP, which is zeros before; NULL: it stays so. */
	void (*accept)(const uint8_t theirs[QP_PRIV], uint8_t ours[QP_PRIV]);
	/* The endpoint parts: the last call. NULL: nothing */
	void (*parted)(void);
};

/*
 * Requests, which are packets or Reads, without an acknowledgement. A long job goes on while they
 * are less than QP_WINDOW, which its user sees to; more than 512 are the end.
 */
uint32_t qp_unacked(void);
/* Reads without all of their answer; and as many as the endpoint allows. */
uint32_t qp_reads(void);
uint32_t qp_reads_most(void);

/* A Send of any length, which asks for an acknowledgement; the message is copied. */
void qp_send(const void *msg, size_t len, bool invalidate, uint32_t rkey);
/*
 * The packet of an RDMA Write of len bytes that begins at off; payload is the Write's, and stays.
 * Nothing else is posted before its last one.
 */
void qp_write(uint64_t addr, uint32_t rkey, const uint8_t *payload, uint32_t len, uint32_t off);
/*
 * An RDMA Read, whose answer is to be these bytes, which stay. done (NULL: nobody's): all of it is
 * there.
 */
void qp_read(uint64_t addr, uint32_t rkey, const uint8_t *expect, uint32_t len,
	void (*done)(void *ctx), void *ctx);

/* Tells of what was lost, if anything was. */
void qp_tell(void);

/* Does not return: the process ends when the endpoint parts. */
_Noreturn void qp_run(const struct wire *w, const struct qp_user *user);

#endif
