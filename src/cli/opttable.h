/* SPDX-License-Identifier: BSD-3-Clause */
/* The mount options by name: what kind of value each takes, and what it is about. Pure. */
#ifndef RPCRDMAFS_OPTTABLE_H
#define RPCRDMAFS_OPTTABLE_H

#include <stddef.h>
#include <stdint.h>

enum opt_kind {
	OPT_FLAG,   /* no value: sets `num` */
	OPT_UINT,   /* decimal, min..max */
	OPT_WORD,   /* one of a set */
	OPT_VERS,   /* 4, 4.1, 4.2 */
	OPT_STRING, /* srcaddr, clientid, capture */
	OPT_VFS,    /* for the kernel: passed on as it is */
	OPT_IGNORE, /* means nothing here: accepted with a warning */
	OPT_QUIET,  /* means nothing here and nobody need know (x-systemd.*, _netdev, intr) */
	OPT_KERNEL, /* of the kernel's table: mount(8) repeats it at a remount, and only then */
	OPT_REFUSE, /* cannot be done: an error that says why */
};

/*
 * Options of one group contradict each other unless they say the same; group 0 is free. The order
 * inside a group does not matter, as with nfs(5)'s "the last one wins" a typing error goes unseen.
 */
enum opt_id {
	ID_NONE,
	ID_RW,
	ID_HARD,
	ID_CTO,
	ID_DELEGATION,
	ID_AC,
	ID_SYNC,
	ID_PROTO,
	ID_VERS,
	ID_MINOR,
	ID_PORT,
	ID_SEC,
	ID_LOOKUPCACHE,
	ID_RDIRPLUS,
	ID_LOCAL_LOCK,
	ID_LOCK,
	ID_TIMEO,
	ID_RETRANS,
	ID_RSIZE,
	ID_WSIZE,
	ID_ACREGMIN,
	ID_ACREGMAX,
	ID_ACDIRMIN,
	ID_ACDIRMAX,
	ID_ACTIMEO,
	ID_NCONNECT,
	ID_METALANE,
	ID_MEMREG,
	ID_FABRIC,
	ID_CREDITS,
	ID_INLINE,
	ID_ACKTIMEOUT,
	ID_TOS,
	ID_STATS,
	ID_ALLOW_OTHER,
	ID_DEFAULT_PERMISSIONS,
	ID_READAHEAD,
	ID_BUFFERS,
	ID_SRC,
	ID_MAX_BACKGROUND,
	ID_MAX_SEG,
	ID_PROBE,
	ID_WRITE,
	ID_DIRTY,
	ID_STREAM,
	ID_BG,
	ID_RETRY,
	ID_SLOPPY,
	ID_REMOUNT,
	ID_CLIENTID,
	ID_CAPTURE,
	ID_CAPTURE_SIZE,
	ID_CAPTURE_DATA,
	ID_KEEP,
	ID_COUNT,
};

struct opt {
	const char *name;
	enum opt_kind kind;
	enum opt_id id;
	uint64_t num, max; /* FLAG: the value; UINT: min, max */
	const char *const *words;
	const char *why; /* REFUSE */
};

/* NULL: there is none of that name. */
const struct opt *opttable_find(const char *name);
/* One after the other, from 0; NULL past the last. */
const struct opt *opttable_at(size_t i);

#endif
