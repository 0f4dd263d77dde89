/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_start.h"

#include "nfs4_hooks.h"

static const struct nfs4_opdesc *started;

/* In place of nfs4_call.c's, which the linker then leaves out. */
void nfs4_call_start(struct nfs4_call *call, const struct nfs4_opdesc *desc)
{
	(void)call;
	started = desc;
}

const struct nfs4_opdesc *fake_start(void (*op)(struct nfs4_call *call), struct nfs4_call *call)
{
	started = NULL;
	op(call);
	return started;
}

/* In place of the hooks, which would bring the whole engine along. */
#define TAKE(name)                                                                                 \
	enum nfs4_state_verdict name(struct nfs4_call *call)                                       \
	{                                                                                          \
		(void)call;                                                                        \
		return NFS4_STATE_GO;                                                              \
	}
#define IS(name, result)                                                                           \
	bool name(struct nfs4_call *call)                                                          \
	{                                                                                          \
		(void)call;                                                                        \
		return result;                                                                     \
	}
#define NOTE(name)                                                                                 \
	void name(struct nfs4_call *call)                                                          \
	{                                                                                          \
		(void)call;                                                                        \
	}

TAKE(nfs4_lock_io_take)
TAKE(nfs4_lock_io_refused)
TAKE(nfs4_idmap_take)
IS(nfs4_idmap_again, false)
NOTE(nfs4_recall_await)
IS(nfs4_return_unasked, true)
NOTE(nfs4_recall_ended)
TAKE(nfs4_share_claim_take)
IS(nfs4_share_claim_granted, true)
TAKE(nfs4_share_claim_refused)
NOTE(nfs4_share_claim_ended)
TAKE(nfs4_share_downgrade_take)
TAKE(nfs4_share_downgrade_refused)
NOTE(nfs4_share_downgrade_ended)
TAKE(nfs4_state_close_take)
IS(nfs4_state_close_granted, true)
TAKE(nfs4_state_close_refused)
NOTE(nfs4_state_close_ended)
IS(nfs4_lockowner_close, false)
NOTE(nfs4_return_begin)
TAKE(nfs4_return_take)
TAKE(nfs4_return_refused)
NOTE(nfs4_return_ended)
TAKE(nfs4_lockowner_take)
IS(nfs4_lockowner_granted, true)
TAKE(nfs4_lockowner_refused)
NOTE(nfs4_lockowner_ended)
TAKE(nfs4_lockowner_take_test)
NOTE(nfs4_offload_await)
TAKE(nfs4_offload_take)
TAKE(nfs4_offload_refused)
NOTE(nfs4_offload_ended)
