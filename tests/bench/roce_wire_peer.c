/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer of roce_wire: what it is asked for, over the queue pair of wire_qp.h. */
#include "roce_wire_peer.h"

#include <string.h>

#define READS    QP_READS /* of CHUNK under way */
#define RNR_EACH 16u      /* of so many Sends one finds no receive: MIXED */

static struct {
	struct ask job; /* what is being done */
	uint64_t done;  /* packets or Reads of it that were posted */
	uint32_t taken; /* Sends */
	bool mixed;     /* since the first one of MIXED */
	uint8_t chunk[CHUNKS * CHUNK];
} S;

static void say(const char *text, bool invalidate, uint32_t rkey)
{
	char reply[CALL] = "";

	snprintf(reply, sizeof(reply), "%s", text);
	qp_send(reply, sizeof(reply), invalidate, rkey);
}

static void next_write(void)
{
	uint32_t in = (uint32_t)(S.done % (CHUNK / MTU));
	uint64_t off = S.done / (CHUNK / MTU) % CHUNKS * CHUNK;

	qp_write(S.job.addr + off, S.job.rkey, S.chunk + off, CHUNK, in * MTU);
	S.done++;
}

static void next_read(void)
{
	uint64_t off = S.done % CHUNKS * CHUNK;

	qp_read(S.job.addr + off, S.job.rkey, S.chunk + off, CHUNK, NULL, NULL);
	S.done++;
}

/* As much as there may be under way. */
static void go_on(void)
{
	uint64_t all = S.job.bytes / (S.job.what == WRITE_TO_ME ? MTU : CHUNK);

	if (S.job.what == WRITE_TO_ME)
		while (S.done < all && qp_unacked() < QP_WINDOW)
			next_write();
	else if (S.job.what == READ_FROM_ME)
		while (S.done < all && qp_unacked() < READS)
			next_read();
	else
		return;
	if (S.done < all || qp_unacked() > 0)
		return;
	say("done", false, 0);
	S.job.what = 0;
	qp_tell();
}

static void operate(const struct ask *a)
{
	qp_write(a->addr, a->rkey, S.chunk, OP_LEN, 0);
	say("reply", true, a->rkey);
}

/* A Write, a Read if there may be another one, and a Send with Invalidate. */
static void mix(const struct ask *a)
{
	uint64_t n = a->bytes;
	uint32_t len = mixed_len(n, WRITTEN);

	for (uint32_t off = 0; off < len; off += MTU)
		qp_write(a->addr, a->rkey, S.chunk + a->off, len, off);
	if (qp_reads() < qp_reads_most())
		qp_read(a->chunks + mixed_off(n), a->mr, S.chunk + mixed_off(n), mixed_len(n, READ),
			NULL, NULL);
	qp_send(S.chunk, mixed_len(n, REPLIED), true, a->rkey);
}

static void received(const uint8_t *msg, size_t len)
{
	struct ask a;

	S.taken++;
	if (len < sizeof(a))
		DIE("IBA 9.4.1: a Send of %zu bytes", len);
	memcpy(&a, msg, sizeof(a));
	if (len != (a.what == MIXED ? sizeof(a) + mixed_len(a.bytes, CALLED) : CALL))
		DIE("IBA 9.4.1: a Send of %zu bytes", len);
	if (a.what == OPERATION) {
		operate(&a);
		return;
	}
	if (a.what == MIXED) {
		if (memcmp(msg + sizeof(a), S.chunk, len - sizeof(a)) != 0)
			DIE("IBA 9.4.1: a Send of other bytes");
		S.mixed = true;
		mix(&a);
		return;
	}
	if (S.job.what != 0)
		DIE("a second question");
	S.job = a;
	S.done = 0;
}

/* Now and then. */
static bool has_no_receive(void)
{
	return S.mixed && S.taken % RNR_EACH == 0;
}

static bool may_lack_receives(void)
{
	return S.mixed;
}

_Noreturn void peer_run(const struct wire *w)
{
	static const struct qp_user user = {.received = received,
		.has_no_receive = has_no_receive,
		.may_lack_receives = may_lack_receives,
		.go_on = go_on};

	for (size_t i = 0; i < sizeof(S.chunk); i++)
		S.chunk[i] = byte_at(i);
	qp_run(w, &user);
}
