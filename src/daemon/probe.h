/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpcrdmafs probe: does a server answer? It is connected to as a mount would, and nothing is
 * mounted.
 *
 * Context: the main thread of a program that does nothing else; names are resolved on another one.
 */
#ifndef RPCRDMAFS_PROBE_H
#define RPCRDMAFS_PROBE_H

#include <stdbool.h>

#include "options.h"

#define PROBE_SECONDS     30
#define PROBE_SECONDS_MAX 3600

struct probe_args {
	struct options opt; /* of a mount of that server */
	unsigned int seconds;
	bool json, help;
};

/*
 * probe_parse - its command line, argv[0] is its name; pure
 *
 * ret: options_fini(&ret->opt), in any case. Returns: 0; -EINVAL: used wrongly; fault says how in
 * one line, "" if the help does.
 */
int probe_parse(struct probe_args *ret, int argc, char **argv, options_say_fn warn, void *ctx,
	char *fault, size_t len);
/* Is argv[1] its name? Then it is done, and *ret_status is its exit status, as others' of cmd.h. */
bool probe_is_asked(int argc, char **argv, int *ret_status);

#endif
