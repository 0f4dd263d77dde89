/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes docs/errors.md from the table of nfs4_status.c. As a test it compares:
 *
 *   errors_md > docs/errors.md     after a change of the table
 *   errors_md docs/errors.md       0: the file is what would be written
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4_status.h"

static const char head[] =
	"# Errors\n"
	"\n"
	"Made from the table in `src/nfs4/wire/nfs4_status.c` by `tests/lint/errors_md.c`: do not "
	"edit.\n"
	"\n"
	"## What ends a call without an NFS status\n"
	"\n"
	"| what happened | errno | and |\n"
	"|---|---|---|\n"
	"| no reply in time, `soft` or `softerr` | EIO or ETIMEDOUT | hard mounts wait |\n"
	"| ERR_CHUNK: the reply did not fit what we offered for it | EREMOTEIO | a bound of ours "
	"is "
	"wrong, or the server refuses the message; logged |\n"
	"| the same for a value of an extended attribute, their names or an ACL | E2BIG | after at "
	"most "
	"4 attempts with larger Reply chunks, up to the caller's buffer or ca_maxresponsesize |\n"
	"| what came back is no RPC reply, no COMPOUND, or answers for another session, slot or "
	"number "
	"| EIO | after the connection was replaced and the same call, on the same slot and number, "
	"was "
	"sent 3 more times: the reply cache makes it happen once |\n"
	"| results after a good SEQUENCE cannot be decoded | EIO | at once: the call was executed, "
	"and "
	"the cache would bring the same |\n"
	"| ERR_VERS: another version of RPC-over-RDMA | EPROTONOSUPPORT | |\n"
	"| the RPC program, version or procedure is not there | EPROTONOSUPPORT | |\n"
	"| the RPC credential is refused | EACCES | |\n"
	"| RPC GARBAGE_ARGS | EIO | |\n"
	"| RPC SYSTEM_ERR | EREMOTEIO | |\n"
	"| too long for the server | EMSGSIZE | |\n"
	"| the mount ends | ESHUTDOWN | |\n"
	"\n"
	"## NFS statuses\n"
	"\n"
	"`delay`, `session` and `client`: the call is repeated when that is dealt with; the errno "
	"is\n"
	"seen only if it never is. A status that is not here becomes EIO, with a line in the log.\n"
	"\n"
	"| status | number | errno | what we do | note |\n"
	"|---|---|---|---|---|\n";

static const char *action_text(enum nfs4_action action)
{
	switch (action) {
	case NFS4_ACT_NONE:
		return "";
	case NFS4_ACT_FAIL:
		return "fail";
	case NFS4_ACT_DELAY:
		return "delay";
	case NFS4_ACT_BUSY:
		return "delay of 1 s at most";
	case NFS4_ACT_SLOT:
		return "slot";
	case NFS4_ACT_SESSION:
		return "session";
	case NFS4_ACT_CLIENT:
		return "client";
	case NFS4_ACT_STATE:
		return "state";
	case NFS4_ACT_REVALIDATE:
		return "look up again";
	}
	return "?";
}

static void print_all(FILE *out)
{
	const struct nfs4_status_row *row;

	fputs(head, out);
	for (unsigned int i = 0; (row = nfs4_status_at(i)); i++)
		fprintf(out, "| %s | %u | %s | %s | %s |\n", row->name, (unsigned int)row->status,
			row->errname, action_text(row->action), row->note);
}

static int compare(const char *path)
{
	char *want = NULL, *have;
	size_t len, got;
	FILE *mem = open_memstream(&want, &len), *f;
	int rc = 1;

	print_all(mem);
	fclose(mem);
	have = malloc(len + 2);
	f = fopen(path, "r");
	if (!f) {
		perror(path);
	} else {
		got = fread(have, 1, len + 1, f);
		fclose(f);
		rc = got != len || memcmp(have, want, len) != 0;
		if (rc)
			fprintf(stderr, "%s is not up to date: errors_md > docs/errors.md\n", path);
	}
	free(have);
	free(want);
	return rc;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return compare(argv[1]);
	print_all(stdout);
	return 0;
}
