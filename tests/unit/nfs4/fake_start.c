/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_start.h"

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
