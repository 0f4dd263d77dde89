/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "opttable.h"
#include "stats.h"

#define ID(name)   (1ull << ID_##name)
#define MAX_IO     (1u << 20) /* asked for without rsize= and wsize= */
#define DEFAULT    "default"
#define GIVEN      "command line"
#define BY_SERVER  "server's limit"
#define BY_KERNEL  "kernel's limit"
#define BY_DEVICE  "device"
#define BY_ROOM    "room for packets"
#define BY_ANOTHER "follows from noac"
#define BY_HELPER  "default of mount.rpcrdmafs"

/* What `ids` say, any of them, or the default. */
static const char *from(const struct mount *m, uint64_t ids)
{
	return m->opt->given & ids ? GIVEN : DEFAULT;
}

static void put(
	struct info *i, const struct mount *m, const char *name, const char *value, uint64_t ids)
{
	info_option(i, name, value, from(m, ids));
}

static void put_bool(
	struct info *i, const struct mount *m, const char *name, bool value, uint64_t ids)
{
	put(i, m, name, value ? "yes" : "no", ids);
}

static void put_number_from(struct info *i, const char *name, uint64_t value, const char *whence)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	info_option(i, name, text, whence);
}

static void put_number(
	struct info *i, const struct mount *m, const char *name, uint64_t value, uint64_t ids)
{
	put_number_from(i, name, value, from(m, ids));
}

/*
 * rsize and wsize: what the server takes, then what the kernel sends. room: of a READ's data where
 * packets have little of it (rpcrdma_result_size()).
 */
static void put_io(struct info *i, const struct mount *m, const char *name, uint32_t asked,
	uint32_t server, uint32_t kernel, uint32_t room, uint64_t id)
{
	uint32_t value = server < kernel ? server : kernel;
	const char *whence = from(m, id);

	if (value < (asked != 0 ? asked : MAX_IO))
		whence = asked == 0 && value == room ? BY_ROOM
			 : server <= kernel          ? BY_SERVER
						     : BY_KERNEL;
	put_number_from(i, name, value, whence);
}

static void put_protocol(struct info *i, const struct mount *m)
{
	static const char *const failing[] = {"hard", "soft", "softerr"};
	const struct nfs4_fsinfo *fi = nfs4_client_fsinfo(m->client);
	const struct options *o = m->opt;
	struct nfs4_session_view v;
	uint32_t max_read, max_write;
	char vers[8];

	lane_view(m->lanes[0], &v);
	fs_limits(m->fs, &max_read, &max_write);
	put(i, m, "access", o->fs.read_only ? "ro" : "rw", ID(RW));
	put(i, m, "proto", m->dst.ss_family == AF_INET6 ? "rdma6" : "rdma", ID(PROTO));
	snprintf(vers, sizeof(vers), "4.%u", (unsigned int)fi->minor);
	info_option(i, "vers", vers,
		fi->minor < o->nfs.minor_max ? BY_SERVER : from(m, ID(VERS) | ID(MINOR)));
	put_number(i, m, "port", o->port, ID(PORT));
	put(i, m, "sec", o->nfs.flavor == RPC_AUTH_NONE ? "none" : "sys", ID(SEC));
	put_io(i, m, "rsize", o->nfs.rsize, fi->fs.rsize, max_read, v.result_max, ID(RSIZE));
	put_io(i, m, "wsize", o->nfs.wsize, fi->fs.wsize, max_write, 0, ID(WSIZE));
	put(i, m, "hard/soft",
		failing[o->nfs.hard                         ? 0
			: o->nfs.timeout_errno == ETIMEDOUT ? 2
							    : 1],
		ID(HARD));
	put_number(i, m, "timeo", o->nfs.rdma.timeo_ns / (100 * NSEC_PER_MSEC), ID(TIMEO));
	put_number(i, m, "retrans", o->nfs.rdma.retrans, ID(RETRANS));
	put_number(i, m, "nconnect", o->nconnect, ID(NCONNECT));
	put_bool(i, m, "metalane", o->fs.metalane, ID(METALANE));
	put_bool(i, m, "bg", o->bg, ID(BG));
	put_number(i, m, "retry", o->retry_min, ID(RETRY));
	if (o->clientaddr != NULL)
		put(i, m, "srcaddr", o->clientaddr, ID(SRC));
	if (o->clientid != NULL)
		put(i, m, "clientid", o->clientid, ID(CLIENTID));
}

static void put_transport(struct info *i, const struct mount *m)
{
	const struct rpcrdma_conf *c = &m->opt->nfs.rdma;
	const struct stats *st = lane_stats(m->lanes[0]);
	uint64_t credits = __atomic_load_n(&st->credits, __ATOMIC_RELAXED);
	struct nfs4_session_view v;

	lane_view(m->lanes[0], &v);
	info_option(i, "fabric", strcmp(v.device, "soft") == 0 ? "soft" : "verbs",
		c->fabric == RPCRDMA_FABRIC_AUTO ? BY_DEVICE : GIVEN);
	info_option(i, "memreg", v.memreg == RPCRDMA_MEMREG_MW ? "mw" : "static",
		c->memreg == RPCRDMA_MEMREG_AUTO ? BY_DEVICE : GIVEN);
	/* A new connection has one until the first answer. */
	if (v.connected && credits > 1 && credits < c->credits)
		put_number_from(i, "credits", credits, BY_SERVER);
	else
		put_number(i, m, "credits", c->credits, ID(CREDITS));
	put_number(i, m, "inline", c->inline_size, ID(INLINE));
	put_number(i, m, "ack_timeout", c->ack_timeout, ID(ACKTIMEOUT));
	put_number(i, m, "tos", c->tos, ID(TOS));
	put_number(i, m, "buffers", c->data_cnt, ID(BUFFERS));
	put_number(i, m, "max_seg", c->max_seg, ID(MAX_SEG));
	put_number(i, m, "probe", c->idle_probe_ns / NSEC_PER_SEC, ID(PROBE));
}

static void put_caching(struct info *i, const struct mount *m)
{
	static const char *const lookupcache[] = {"all", "positive", "none"};
	static const char *const local_lock[] = {"none", "flock", "posix", "all"};
	static const char *const keep[] = {"no", "process", "systemd", "auto", "tables"};
	static const char *const writes[] = {"wait", "eager", "lazy"};
	const struct fs_conf *f = &m->opt->fs;
	uint64_t times = ID(ACTIMEO);

	put_bool(i, m, "ac", !f->noac, ID(AC));
	put_number(i, m, "acregmin", f->acregmin_s, times | ID(ACREGMIN));
	put_number(i, m, "acregmax", f->acregmax_s, times | ID(ACREGMAX));
	put_number(i, m, "acdirmin", f->acdirmin_s, times | ID(ACDIRMIN));
	put_number(i, m, "acdirmax", f->acdirmax_s, times | ID(ACDIRMAX));
	put_bool(i, m, "cto", f->cto, ID(CTO));
	put_bool(i, m, "delegation", f->delegation, ID(DELEGATION));
	put(i, m, "lookupcache", lookupcache[f->lookupcache], ID(LOOKUPCACHE));
	put_bool(i, m, "rdirplus", f->rdirplus, ID(RDIRPLUS));
	put(i, m, "local_lock", local_lock[f->local_lock], ID(LOCAL_LOCK) | ID(LOCK));
	info_option(i, "sync", f->sync ? "yes" : "no",
		f->sync && f->noac && !(m->opt->given & ID(SYNC)) ? BY_ANOTHER : from(m, ID(SYNC)));
	put(i, m, "write", writes[f->write], ID(WRITE));
	put_number(i, m, "dirty", f->dirty >> 20, ID(DIRTY));
	put_number(i, m, "readahead", f->readahead >> 20, ID(STREAM));
	put_number(i, m, "read_ahead_kb", f->read_ahead_kb, ID(READAHEAD));
	put_number(i, m, "max_background", f->max_background, ID(MAX_BACKGROUND));
	put_bool(i, m, "default_permissions", f->default_permissions, ID(DEFAULT_PERMISSIONS));
	info_option(i, "allow_other", f->allow_other ? "yes" : "no",
		m->opt->helper && !(m->opt->given & ID(ALLOW_OTHER)) ? BY_HELPER
								     : from(m, ID(ALLOW_OTHER)));
	put(i, m, "keep", keep[m->opt->keep], ID(KEEP));
	put_bool(i, m, "stats", m->opt->stats, ID(STATS));
	if (m->opt->set != NULL)
		info_option(i, "set while mounted", m->opt->set, GIVEN);
	if (m->opt->capture != NULL)
		put(i, m, "capture", m->opt->capture, ID(CAPTURE));
	if (f->mount_opts != NULL)
		info_option(i, "for the kernel", f->mount_opts, GIVEN);
}

void info_opts_put(struct info *i, const struct mount *m)
{
	put_protocol(i, m);
	put_transport(i, m);
	put_caching(i, m);
}
