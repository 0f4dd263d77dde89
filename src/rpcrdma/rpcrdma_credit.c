/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpcrdma_credit.h"

#include <assert.h>

void rpcrdma_credit_reset(struct rpcrdma_credit *c, uint32_t asked)
{
	c->asked = asked;
	c->granted = 1;
	c->calls = 0;
	c->probe = false;
	c->inbound = 0;
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

bool rpcrdma_credit_has_room(const struct rpcrdma_credit *c, uint64_t inbound)
{
	return inbound == 0 || c->inbound == 0 || c->inbound_max == 0 ||
	       (c->inbound <= c->inbound_max && inbound <= c->inbound_max - c->inbound);
}

void rpcrdma_credit_take(struct rpcrdma_credit *c, bool probe, uint64_t inbound)
{
	assert(rpcrdma_credit_is_free(c, probe) && rpcrdma_credit_has_room(c, inbound));
	c->inbound += inbound;
	if (probe)
		c->probe = true;
	else
		c->calls++;
}

void rpcrdma_credit_give(struct rpcrdma_credit *c, bool probe, uint64_t inbound)
{
	assert(inbound <= c->inbound);
	c->inbound -= inbound;
	if (probe) {
		assert(c->probe);
		c->probe = false;
	} else {
		assert(c->calls > 0);
		c->calls--;
	}
}
