/* SPDX-License-Identifier: BSD-3-Clause */
#include "retry.h"

#include <errno.h>

#define S             1000000000ull
#define LONGEST_FG_NS (10 * S)
#define LONGEST_BG_NS (30 * S)

void retry_init(struct retry *r, uint64_t now_ns, uint32_t minutes, bool bg)
{
	r->end_ns = now_ns + minutes * 60 * S;
	r->tries = 0;
	r->bg = bg;
}

/*
 * May what failed with this errno value (positive) work later, with nobody doing anything on this
 * side: a server or a network that is not there yet?
 */
static bool may_pass(int err)
{
	switch (err) {
	case ECONNREFUSED: /* the machine is up, the server not yet */
	case ECONNRESET:
	case ECONNABORTED:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENETUNREACH:
	case ENETDOWN:
	case EADDRNOTAVAIL: /* srcaddr= is not configured yet */
	case EADDRINUSE:    /* RoCE's port, by what may end */
	case ENODEV:        /* no RDMA device yet, or none on the way there */
	case EAGAIN:        /* the DNS cannot tell */
		return true;
	default:
		return false;
	}
}

bool retry_after(struct retry *r, uint64_t now_ns, int err, uint64_t *ret_wait_ns)
{
	uint64_t wait = S << (r->tries < 5 ? r->tries : 5);
	uint64_t longest = r->bg ? LONGEST_BG_NS : LONGEST_FG_NS;

	if (!may_pass(err) || now_ns >= r->end_ns)
		return false;
	r->tries++;
	if (wait > longest)
		wait = longest;
	if (wait > r->end_ns - now_ns)
		wait = r->end_ns - now_ns;
	*ret_wait_ns = wait;
	return true;
}

bool retry_is_hopeless(int err)
{
	/* Other processes have that, and give it back. */
	return err != ENOMEM && err != EMFILE && err != ENFILE && err != EAGAIN;
}

bool retry_is_over(uint64_t *since_ns, uint64_t now_ns, bool hopeless)
{
	if (!hopeless)
		*since_ns = 0;
	else if (*since_ns == 0)
		*since_ns = now_ns;
	return hopeless && now_ns - *since_ns >= RETRY_TAKE_OVER_NS;
}
