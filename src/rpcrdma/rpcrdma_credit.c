/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpcrdma_credit.h"

#include <assert.h>

void rpcrdma_credit_reset(struct rpcrdma_credit *c, uint32_t asked)
{
	c->asked = asked;
	c->granted = 1;
	c->calls = 0;
	c->probe = false;
}

void rpcrdma_credit_grant(struct rpcrdma_credit *c, uint32_t granted)
{
	/* RFC 8166 section 3.3.1: zero would be a deadlock */
	if (granted == 0)
		granted = 1;
	c->granted = granted < c->asked ? granted : c->asked;
}

bool rpcrdma_credit_is_free(const struct rpcrdma_credit *c, bool probe)
{
	if (probe)
		return !c->probe && c->calls < c->granted;
	if (c->granted == 1)
		return c->calls == 0 && !c->probe;
	return c->calls < c->granted - 1;
}

void rpcrdma_credit_take(struct rpcrdma_credit *c, bool probe)
{
	assert(rpcrdma_credit_is_free(c, probe));
	if (probe)
		c->probe = true;
	else
		c->calls++;
}

void rpcrdma_credit_give(struct rpcrdma_credit *c, bool probe)
{
	if (probe) {
		assert(c->probe);
		c->probe = false;
	} else {
		assert(c->calls > 0);
		c->calls--;
	}
}
