/* SPDX-License-Identifier: BSD-3-Clause */
/* The words for what keeps a client from its server: what happened, and what to check. */
#include "nfs4.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *connect_hint(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "nothing listens there for NFS over RDMA: check that nfsd runs and "
		       "/proc/fs/nfsd/portlist has `rdma 20049`";
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "the server does not answer: check the address and the network";
	case EADDRINUSE:
		return "UDP port 4791, which RoCE uses, is taken here: by the kernel's rdma_rxe, "
		       "for instance, which fabric=verbs can use";
	case ENODEV:
	case EADDRNOTAVAIL:
		return "no RDMA device reaches that address: check `rdma link`";
	case ENOMEM:
		return "no memory to register: check the memlock limit (ulimit -l)";
	default:
		return "check the address, the port and `rdma link`";
	}
}

void nfs4_failure_start(struct nfs4_failure *ret, int err, const char *detail)
{
	ret->err = -err;
	ret->step = "connect";
	if (*detail != '\0')
		snprintf(ret->text, sizeof(ret->text), "%s", detail);
	else if (err == -ENODEV || err == -ENOENT)
		snprintf(ret->text, sizeof(ret->text),
			"no RDMA device: check `rdma link`, and that ib_uverbs and rdma_ucm are "
			"loaded");
	else
		snprintf(
			ret->text, sizeof(ret->text), "%s: %s", strerror(-err), connect_hint(-err));
}

void nfs4_failure_connect(struct nfs4_failure *ret, int err, const char *step, const char *detail)
{
	ret->err = -err;
	ret->step = step;
	if (*detail != '\0')
		snprintf(ret->text, sizeof(ret->text), "%s", detail);
	else
		snprintf(
			ret->text, sizeof(ret->text), "%s: %s", strerror(-err), connect_hint(-err));
}

void nfs4_failure_put(
	struct nfs4_failure *ret, int err, const char *step, const char *fmt, va_list ap)
{
	ret->err = err;
	ret->step = step;
	vsnprintf(ret->text, sizeof(ret->text), fmt, ap);
}

static const char *rpc_hint(enum rpc_result result)
{
	if (result == RPC_PROG_UNAVAIL || result == RPC_PROG_MISMATCH)
		return ": no NFSv4 there, check the port and the versions the server has enabled";
	if (result == RPC_AUTH_ERROR)
		return ": check sec= and that the server takes AUTH_SYS";
	return "";
}

void nfs4_failure_rpc(char *text, size_t len, const char *call, enum rpc_result result)
{
	snprintf(text, len, "%s failed: %s%s", call, rpc_result_name(result), rpc_hint(result));
}
