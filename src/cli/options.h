/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the user asked for: the command line, the -o strings of nfs(5), and
 * their defaults. Pure but for one line on standard error for each fault or
 * warning, which the caller prints.
 *
 * Context: the main thread, before anything runs.
 */
#ifndef RPCRDMAFS_OPTIONS_H
#define RPCRDMAFS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture.h"
#include "fs.h"

#define OPTIONS_PORT         20049 /* RFC 8267 section 6.1: NFS over RDMA */
#define OPTIONS_NCONNECT_MAX 16
#define OPTIONS_CLIENTID_MAX 200 /* bytes */

/* Does the mount outlive a daemon that is killed? The order of opttable.c's words. */
enum options_keep {
	OPTIONS_KEEP_NO,
	OPTIONS_KEEP_PROCESS, /* a process holds it meanwhile (keeper.h) */
	OPTIONS_KEEP_SYSTEMD, /* the service manager does (store.h) */
	OPTIONS_KEEP_AUTO,    /* it does if it offers that, else a process */
	OPTIONS_KEEP_TABLES,  /* as AUTO, and written data is not kept */
};

struct options {
	bool foreground, debug, stats, help, version;
	bool helper;         /* called as mount.rpcrdmafs: mount(8)'s defaults and exit statuses */
	bool verbose;        /* what a mount that works says, too (mount -v) */
	bool fake;           /* everything is checked, nothing is mounted (mount -f) */
	bool remount;        /* what is mounted there is to be changed (remount.h) */
	bool sloppy;         /* unknown options are warned of (mount -s) */
	bool bg;             /* after a first failure that may pass: go on in the background */
	bool retry_set;      /* retry= was given */
	uint32_t retry_min;  /* minutes for which such failures are tried again */
	char *source;        /* as the user wrote it */
	char *host, *path;   /* path starts with '/' */
	char *mountpoint;    /* as the user wrote it */
	char *asked;         /* all -o strings, for remount; or NULL */
	const char *kernels; /* an OPT_KERNEL that was given; or NULL */
	char *vfs_opts;      /* nosuid,nodev,...: for the kernel; or NULL */
	bool dev, suid;      /* of these: devices are devices, set-user-ID programs are that */
	bool by_root;        /* root starts it; from options_default() on */
	char *clientaddr;    /* local address to connect from; or NULL */
	char *clientid;      /* identity.h; or NULL: one that is kept, or random */
	char *set;           /* what was changed since it is mounted (optset.h); or NULL */
	uint64_t set_ids;    /* bits by enum opt_id: given words that do not count, for that */
	uint64_t given; /* bits by enum opt_id (opttable.h): what the user said, not a default */
	uint16_t port;
	int family; /* AF_UNSPEC, AF_INET (proto=rdma), AF_INET6 (proto=rdma6) */
	unsigned int nconnect;
	char *capture; /* file to capture into from the start; or NULL */
	struct capture_limits capture_limits;
	enum options_keep keep;
	struct nfs4_conf nfs;
	struct fs_conf fs;
};

/* A warning or fault is one line without newline. */
typedef void (*options_say_fn)(void *ctx, const char *line);

void options_default(struct options *o);
void options_fini(struct options *o);
/*
 * options_apply - one -o string: "rw,hard,vers=4.2,..."
 *
 * May be called several times; contradictions are found over all of them.
 * Returns: 0; -EINVAL: *fault names the option (static or in o's memory).
 */
struct options_seen;
struct options_seen *options_seen_new(void);
void options_seen_free(struct options_seen *seen);
int options_apply(struct options *o, struct options_seen *seen, const char *string,
	options_say_fn warn, void *ctx, char *fault, size_t fault_len);
/* Checks what depends on several options, and fills what follows from them. 0 or -EINVAL. */
int options_finish(struct options *o, char *fault, size_t fault_len);

/* "server:/path", "[v6]:/path" or "nfs://server[:port]/path" (parsed by libnfs). 0 or -EINVAL. */
int source_parse(struct options *o, const char *source, char *fault, size_t fault_len);
/*
 * "server", "server:port", "[v6]:port" or an address without brackets; or a source, whose path is
 * not looked at. 0 or -EINVAL.
 */
int source_parse_server(struct options *o, const char *server, char *fault, size_t fault_len);

/* cmdline.c: the whole command line. 0 or -EINVAL. */
int cmdline_parse(struct options *o, int argc, char **argv, options_say_fn warn, void *ctx,
	char *fault, size_t fault_len);
void cmdline_help(void);

/* mounthelper.c: "mount.rpcrdmafs", whatever the folder. */
bool mounthelper_called(const char *argv0);
/* The command line of mount(8) (its "External helpers"). 0 or -EINVAL. */
int mounthelper_parse(struct options *o, int argc, char **argv, options_say_fn warn, void *ctx,
	char *fault, size_t fault_len);

#endif
