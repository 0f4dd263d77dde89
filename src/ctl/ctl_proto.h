/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is said on a control socket. A client sends one line, "COMMAND ARGS\n", and at most one
 * file descriptor with it; it hears "ok\n" and the answer, or "error: why\n", until the end. A
 * request that is HTTP's gets an answer of HTTP.
 *
 * Context: pure.
 */
#ifndef RPCRDMAFS_CTL_PROTO_H
#define RPCRDMAFS_CTL_PROTO_H

#include <stdbool.h>
#include <stddef.h>

#define CTL_LINE_MAX 1024u /* with its newline */
#define CTL_HTTP_MAX 8192u /* request line and headers */
#define CTL_ARGS_MAX 16

enum ctl_kind {
	CTL_MORE,    /* it is not complete yet */
	CTL_COMMAND, /* argc, argv */
	CTL_HTTP,    /* http_status: 200: GET /metrics; or why not */
	CTL_BAD,     /* fault */
};

struct ctl_request {
	int argc;
	char *argv[CTL_ARGS_MAX + 1]; /* in the buffer; NULL behind the last */
	int http_status;
	const char *fault; /* static */
};

/*
 * ctl_proto_parse - what was received so far
 *
 * WIRE: any bytes. buf has len bytes of room for CTL_HTTP_MAX; it is changed unless the answer is
 * CTL_MORE, which never comes with CTL_HTTP_MAX bytes there.
 */
enum ctl_kind ctl_proto_parse(char *buf, size_t len, struct ctl_request *ret);

/* Text on one line: what is not printable ASCII, and the backslash, becomes \xNN. malloced. */
char *ctl_proto_escape(const char *text);
/* Undoes it in place. False: it is not such a text. */
bool ctl_proto_unescape(char *text);

#endif
