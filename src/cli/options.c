/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "opttable.h"
#include "optval.h"

#define DIRTY_MIB     8u   /* of a lane */
#define READ_AHEAD_KB 2048 /* two requests of 1 MiB; Linux' own is 128 */
#define RETRY_FG_MIN  2    /* nfs(5) */
#define RETRY_BG_MIN  10000

_Static_assert(ID_COUNT <= 64, "options.given has 64 bits");

struct options_seen {
	struct {
		const char *name; /* of the table */
		uint64_t value;
	} id[ID_COUNT];
};

struct options_seen *options_seen_new(void)
{
	return calloc(1, sizeof(struct options_seen));
}

void options_seen_free(struct options_seen *seen)
{
	free(seen);
}

void options_default(struct options *o)
{
	memset(o, 0, sizeof(*o));
	rpcrdma_conf_default(&o->nfs.rdma);
	o->by_root = geteuid() == 0;
	o->port = OPTIONS_PORT;
	o->family = AF_UNSPEC;
	o->nconnect = 1;
	o->keep = OPTIONS_KEEP_NO;
	o->capture_limits.max_bytes = (uint64_t)CAPTURE_MIB_DEFAULT << 20;
	o->nfs.minor_max = 2;
	o->nfs.minor_min = 1;
	o->nfs.hard = true;
	o->nfs.timeout_errno = EIO;
	o->nfs.flavor = RPC_AUTH_SYS;
	o->fs.acregmin_s = 3;
	o->fs.acregmax_s = 60;
	o->fs.acdirmin_s = 30;
	o->fs.acdirmax_s = 60;
	o->fs.cto = true;
	o->fs.delegation = true;
	o->fs.rdirplus = true;
	o->fs.lookupcache = FS_LOOKUPCACHE_ALL;
	o->fs.write = FS_WRITE_LAZY;
	o->fs.dirty = DIRTY_MIB << 20;
	o->fs.read_ahead_kb = READ_AHEAD_KB;
	o->fs.max_background = 256;
}

void options_fini(struct options *o)
{
	free(o->source);
	free(o->host);
	free(o->path);
	free(o->mountpoint);
	free(o->asked);
	free(o->vfs_opts);
	free(o->clientaddr);
	free(o->clientid);
	free(o->capture);
	free(o->set);
}

static int fault_say(char *fault, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fault_say(char *fault, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault, len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int replace_str(char **to, const char *s)
{
	char *copy = strdup(s);

	if (copy == NULL)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

static int set_string(struct options *o, enum opt_id id, const char *value, char *fault, size_t len)
{
	if (id == ID_CAPTURE)
		return replace_str(&o->capture, value);
	if (id == ID_SRC)
		return replace_str(&o->clientaddr, value);
	if (strlen(value) > OPTIONS_CLIENTID_MAX)
		return fault_say(
			fault, len, "option clientid: %u bytes at most", OPTIONS_CLIENTID_MAX);
	for (const char *p = value; *p != '\0'; p++)
		if (*p < ' ' || *p > '~')
			return fault_say(fault, len, "option clientid: printable ASCII only");
	return replace_str(&o->clientid, value);
}

/* Words, with commas between them. */
static int append(char **words, const char *more)
{
	char *joined;

	if (*words == NULL)
		return replace_str(words, more);
	if (asprintf(&joined, "%s,%s", *words, more) < 0)
		return -ENOMEM;
	free(*words);
	*words = joined;
	return 0;
}

static void set_attr_times(struct options *o, enum opt_id id, uint64_t v)
{
	uint32_t s = (uint32_t)v;

	if (id == ID_ACREGMIN || id == ID_ACTIMEO)
		o->fs.acregmin_s = s;
	if (id == ID_ACREGMAX || id == ID_ACTIMEO)
		o->fs.acregmax_s = s;
	if (id == ID_ACDIRMIN || id == ID_ACTIMEO)
		o->fs.acdirmin_s = s;
	if (id == ID_ACDIRMAX || id == ID_ACTIMEO)
		o->fs.acdirmax_s = s;
}

static void set_version(struct options *o, uint64_t v)
{
	o->nfs.minor_max = v == 41 ? 1 : 2;
	o->nfs.minor_min = v == 42 ? 2 : 1;
}

static void set_transport(struct options *o, enum opt_id id, uint64_t v)
{
	struct rpcrdma_conf *c = &o->nfs.rdma;

	if (id == ID_TIMEO)
		c->timeo_ns = v * 100 * NSEC_PER_MSEC; /* deciseconds, nfs(5) */
	else if (id == ID_RETRANS)
		c->retrans = (unsigned int)v;
	else if (id == ID_FABRIC)
		c->fabric = (enum rpcrdma_fabric)v;
	else if (id == ID_MEMREG)
		c->memreg = (enum rpcrdma_memreg)v;
	else if (id == ID_CREDITS)
		c->credits = (unsigned int)v;
	else if (id == ID_INLINE)
		c->inline_size = (uint32_t)v;
	else if (id == ID_ACKTIMEOUT)
		c->ack_timeout = (uint8_t)v;
	else if (id == ID_TOS)
		c->tos = (uint8_t)v & 0xfc; /* below are ECN's bits */
	else if (id == ID_BUFFERS)
		c->data_cnt = (unsigned int)v;
	else if (id == ID_MAX_SEG)
		c->max_seg = (uint32_t)v;
	else if (id == ID_PROBE)
		c->idle_probe_ns = v * NSEC_PER_SEC;
}

static void set_cache(struct options *o, enum opt_id id, uint64_t v)
{
	static const enum fs_lookupcache lookupcache[] = {FS_LOOKUPCACHE_ALL,
		FS_LOOKUPCACHE_POSITIVE, FS_LOOKUPCACHE_POSITIVE, FS_LOOKUPCACHE_NONE};
	static const unsigned int local_lock[] = {
		0, FS_LOCAL_FLOCK, FS_LOCAL_POSIX, FS_LOCAL_FLOCK | FS_LOCAL_POSIX};

	if (id == ID_CTO)
		o->fs.cto = v != 0;
	else if (id == ID_DELEGATION)
		o->fs.delegation = v != 0;
	else if (id == ID_AC)
		o->fs.noac = v == 0;
	else if (id == ID_SYNC)
		o->fs.sync = v != 0;
	else if (id == ID_LOOKUPCACHE)
		o->fs.lookupcache = lookupcache[v];
	else if (id == ID_WRITE)
		o->fs.write = (enum fs_write)v;
	else if (id == ID_STREAM)
		o->fs.readahead = v << 20;
	else if (id == ID_DIRTY)
		o->fs.dirty = v << 20;
	else if (id == ID_RDIRPLUS)
		o->fs.rdirplus = v != 0;
	else if (id == ID_LOCAL_LOCK)
		o->fs.local_lock = local_lock[v];
	else if (id == ID_LOCK && v == 0)
		o->fs.local_lock = FS_LOCAL_FLOCK | FS_LOCAL_POSIX;
	else if (id == ID_READAHEAD)
		o->fs.read_ahead_kb = (uint32_t)v;
	else if (id == ID_MAX_BACKGROUND)
		o->fs.max_background = (unsigned int)v;
}

static void set_mount(struct options *o, enum opt_id id, uint64_t v)
{
	if (id == ID_RW)
		o->fs.read_only = v != 0;
	else if (id == ID_HARD) {
		o->nfs.hard = v == 0;
		o->nfs.timeout_errno = v == 2 ? ETIMEDOUT : EIO;
	} else if (id == ID_PROTO)
		o->family = v == 1 ? AF_INET6 : AF_UNSPEC;
	else if (id == ID_VERS)
		set_version(o, v);
	else if (id == ID_MINOR)
		set_version(o, 40 + v);
	else if (id == ID_PORT)
		o->port = (uint16_t)v;
	else if (id == ID_SEC)
		o->nfs.flavor = v == 0 ? RPC_AUTH_NONE : RPC_AUTH_SYS;
	else if (id == ID_RSIZE)
		o->nfs.rsize = (uint32_t)v;
	else if (id == ID_WSIZE)
		o->nfs.wsize = (uint32_t)v;
	else if (id == ID_NCONNECT)
		o->nconnect = (unsigned int)v;
	else if (id == ID_METALANE)
		o->fs.metalane = v != 0;
	else if (id == ID_KEEP)
		o->keep = (enum options_keep)v;
	else if (id == ID_STATS)
		o->stats = true;
	else if (id == ID_CAPTURE_SIZE)
		o->capture_limits.max_bytes = v << 20;
	else if (id == ID_CAPTURE_DATA)
		o->capture_limits.data = v != 0;
	else if (id == ID_ALLOW_OTHER)
		o->fs.allow_other = v != 0;
	else if (id == ID_DEFAULT_PERMISSIONS)
		o->fs.default_permissions = v != 0;
	else if (id == ID_BG)
		o->bg = v != 0;
	else if (id == ID_RETRY) {
		o->retry_min = (uint32_t)v;
		o->retry_set = true;
	} else if (id == ID_SLOPPY)
		o->sloppy = true;
	else if (id == ID_REMOUNT)
		o->remount = true;
}

/* Each setter knows its own ids and passes over the others. */
static void opt_set(struct options *o, enum opt_id id, uint64_t v)
{
	set_attr_times(o, id, v);
	set_transport(o, id, v);
	set_cache(o, id, v);
	set_mount(o, id, v);
}

static int opt_value(const struct opt *opt, const char *value, uint64_t *v, char *fault, size_t len)
{
	static const char *const words_vers[] = {"4", "4.1", "4.2", NULL};
	static const uint64_t vers[] = {4, 41, 42};
	int word;

	if (opt->kind == OPT_FLAG) {
		if (value != NULL)
			return fault_say(fault, len, "option %s takes no value", opt->name);
		*v = opt->num;
		return 0;
	}
	if (value == NULL || *value == '\0')
		return fault_say(fault, len, "option %s needs a value", opt->name);
	if (opt->kind == OPT_UINT) {
		if (!optval_uint(value, opt->num, opt->max, v))
			return fault_say(fault, len,
				"option %s=%s: a number from %llu to %llu is wanted", opt->name,
				value, (unsigned long long)opt->num, (unsigned long long)opt->max);
		return 0;
	}
	word = optval_word(value, opt->kind == OPT_VERS ? words_vers : opt->words);
	if (word >= 0) {
		*v = opt->kind == OPT_VERS ? vers[word] : (uint64_t)word;
		return 0;
	}
	if (opt->kind == OPT_VERS)
		return fault_say(fault, len, "option %s=%s: only NFS 4.1 and 4.2 are spoken here",
			opt->name, value);
	if (opt->id == ID_PROTO)
		return fault_say(
			fault, len, "option proto=%s: only proto=rdma is spoken here", value);
	if (opt->id == ID_SEC)
		return fault_say(
			fault, len, "option sec=%s: only sec=sys and sec=none are there", value);
	return fault_say(fault, len, "option %s=%s is unknown", opt->name, value);
}

static int opt_apply(struct options *o, struct options_seen *seen, const char *name,
	const char *value, options_say_fn warn, void *ctx, char *fault, size_t len)
{
	const struct opt *opt = opttable_find(name);
	char line[300];
	uint64_t v = 0;
	int err;

	if (opt == NULL && (strncmp(name, "x-", 2) == 0 || strncmp(name, "X-", 2) == 0))
		return 0;
	if (opt == NULL && o->sloppy) {
		snprintf(line, sizeof(line), "option %s is unknown and ignored", name);
		warn(ctx, line);
		return 0;
	}
	if (opt == NULL)
		return fault_say(fault, len, "unknown option %s%s%s", name, value ? "=" : "",
			value ? value : "");
	if (opt->id != ID_NONE && (o->set_ids & 1ull << opt->id) != 0)
		return 0;
	switch (opt->kind) {
	case OPT_QUIET:
		return 0;
	case OPT_IGNORE:
		snprintf(line, sizeof(line), "option %s has no meaning here and is ignored", name);
		warn(ctx, line);
		return 0;
	case OPT_KERNEL:
		o->kernels = opt->name;
		return 0;
	case OPT_REFUSE:
		return fault_say(fault, len, "option %s: %s", name, opt->why);
	case OPT_VFS:
		if (value != NULL)
			return fault_say(fault, len, "option %s takes no value", name);
		/* The last one counts, as in the kernel's flags. */
		if (strcmp(name, "dev") == 0 || strcmp(name, "nodev") == 0)
			o->dev = *name == 'd';
		if (strcmp(name, "suid") == 0 || strcmp(name, "nosuid") == 0)
			o->suid = *name == 's';
		return append(&o->vfs_opts, name);
	case OPT_STRING:
		if (value == NULL || *value == '\0')
			return fault_say(fault, len, "option %s needs a value", name);
		o->given |= 1ull << opt->id;
		return set_string(o, opt->id, value, fault, len);
	case OPT_FLAG:
	case OPT_UINT:
	case OPT_WORD:
	case OPT_VERS:
		break;
	}
	err = opt_value(opt, value, &v, fault, len);
	if (err != 0)
		return err;
	if (seen->id[opt->id].name != NULL && seen->id[opt->id].value != v)
		return fault_say(fault, len, "option %s contradicts an earlier %s", name,
			seen->id[opt->id].name);
	seen->id[opt->id].name = opt->name;
	seen->id[opt->id].value = v;
	o->given |= 1ull << opt->id;
	opt_set(o, opt->id, v);
	return 0;
}

static int check_pair(const struct options_seen *seen, enum opt_id a, enum opt_id b, bool clash,
	char *fault, size_t len)
{
	if (!clash || seen->id[a].name == NULL || seen->id[b].name == NULL)
		return 0;
	return fault_say(
		fault, len, "option %s contradicts %s", seen->id[a].name, seen->id[b].name);
}

/* What two different options of one meaning may not say together. */
static int check_pairs(
	const struct options *o, const struct options_seen *seen, char *fault, size_t len)
{
	static const enum opt_id ac[] = {
		ID_ACREGMIN, ID_ACREGMAX, ID_ACDIRMIN, ID_ACDIRMAX, ID_ACTIMEO};
	uint64_t vers = seen->id[ID_VERS].value, minor = seen->id[ID_MINOR].value;
	int err = check_pair(seen, ID_VERS, ID_MINOR, vers != 4 && vers != 40 + minor, fault, len);

	if (err == 0)
		err = check_pair(seen, ID_AC, ID_SYNC, o->fs.noac && !o->fs.sync, fault, len);
	if (err == 0)
		err = check_pair(seen, ID_LOCK, ID_LOCAL_LOCK,
			seen->id[ID_LOCK].value == 0 &&
				o->fs.local_lock != (FS_LOCAL_FLOCK | FS_LOCAL_POSIX),
			fault, len);
	for (size_t i = 0; err == 0 && i < sizeof(ac) / sizeof(ac[0]); i++)
		err = check_pair(
			seen, ID_AC, ac[i], o->fs.noac && seen->id[ac[i]].value != 0, fault, len);
	for (size_t i = 0; err == 0 && i + 1 < sizeof(ac) / sizeof(ac[0]); i++)
		err = check_pair(seen, ID_ACTIMEO, ac[i],
			seen->id[ID_ACTIMEO].value != seen->id[ac[i]].value, fault, len);
	return err;
}

int options_apply(struct options *o, struct options_seen *seen, const char *string,
	options_say_fn warn, void *ctx, char *fault, size_t fault_len)
{
	char *copy = strdup(string), *rest = copy, *name;
	int err = copy == NULL ? -ENOMEM : append(&o->asked, string);

	while (err == 0 && (name = strsep(&rest, ",")) != NULL) {
		char *value = strchr(name, '=');

		if (*name == '\0')
			continue;
		if (value != NULL)
			*value++ = '\0';
		err = opt_apply(o, seen, name, value, warn, ctx, fault, fault_len);
	}
	free(copy);
	if (err == -ENOMEM)
		fault_say(fault, fault_len, "out of memory");
	return err != 0 ? err : check_pairs(o, seen, fault, fault_len);
}

/* nfs(5): small values are raised, larger ones rounded down to pages. */
static uint32_t io_size(uint32_t v)
{
	if (v == 0)
		return 0;
	if (v < 4096)
		return 4096;
	if (v > (1u << 20))
		return 1u << 20;
	return v & ~4095u;
}

#define HANDED_OVER "of a mount that is handed over as /dev/fd/N it is the mount command's"

static bool is_handed_over(const struct options *o)
{
	return o->mountpoint != NULL && fs_mountfd_of(o->mountpoint) >= 0;
}

/*
 * With these a file of the server is as good as root of this machine: they are for root's mounts.
 * There special files are guarded (fs_special.h), or the kernel judges, or nobody else comes.
 */
static int check_trust(const struct options *o, char *fault, size_t len)
{
	const char *name = o->dev ? "dev" : "suid";

	if (!o->dev && !o->suid)
		return 0;
	if (is_handed_over(o))
		return fault_say(fault, len, "option %s: %s", name, HANDED_OVER);
	if (!o->by_root)
		return fault_say(fault, len,
			"option %s: only root may mount with it: the server's files would be as "
			"good as root's here",
			name);
	return 0;
}

int options_finish(struct options *o, char *fault, size_t fault_len)
{
	int err = check_trust(o, fault, fault_len);

	if (err != 0)
		return err;
	if (o->kernels != NULL && !o->remount)
		return fault_say(fault, fault_len, "option %s is the kernel's, for remount alone",
			o->kernels);
	if (o->fs.acregmin_s > o->fs.acregmax_s)
		return fault_say(fault, fault_len, "acregmin=%u is larger than acregmax=%u",
			o->fs.acregmin_s, o->fs.acregmax_s);
	if (o->fs.acdirmin_s > o->fs.acdirmax_s)
		return fault_say(fault, fault_len, "acdirmin=%u is larger than acdirmax=%u",
			o->fs.acdirmin_s, o->fs.acdirmax_s);
	o->nfs.rsize = io_size(o->nfs.rsize);
	o->nfs.wsize = io_size(o->nfs.wsize);
	if (!o->retry_set)
		o->retry_min = o->bg ? RETRY_BG_MIN : o->helper ? RETRY_FG_MIN : 0;
	/* Names would be walked by whoever knows them if the mount had it not. */
	if (o->fs.default_permissions && is_handed_over(o))
		return fault_say(fault, fault_len, "option default_permissions: %s", HANDED_OVER);
	if (o->capture == NULL && o->capture_limits.data)
		return fault_say(fault, fault_len, "option capture_data needs capture=FILE");
	if (o->fs.noac)
		o->fs.sync = true; /* nfs(5): noac makes writes synchronous */
	o->fs.mount_opts = o->vfs_opts;
	return 0;
}
