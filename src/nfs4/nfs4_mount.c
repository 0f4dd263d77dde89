/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a path to the root of the mount, and what the server can do:
 *
 *   WALK    PUTROOTFH (or PUTFH), a LOOKUP for each component, GETFH; as many
 *           components in one COMPOUND as fit, then the next lot
 *   FACTS   PUTFH GETATTR(supported_attrs, lease_time, maxread ...): nfs4_fs_facts.c
 *   ROOT    PUTFH GETATTR(all that stat needs and the server has)
 *
 * Context: the lane of the session it is given.
 */
#include "nfs4_session_int.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALK_MAX_OPS   40u   /* LOOKUPs in one COMPOUND, if the session takes as many */
#define WALK_MAX_BYTES 2048u /* of names: keeps the call inline */

struct mount {
	struct nfs4_call call; /* first */
	void (*done)(void *ctx, const struct nfs4_failure *f);
	void *ctx;
	struct rpc_cred cred;
	struct nfs4_fh fh;   /* reached; len 0: the server's root */
	const char *rest;    /* of path: what is still to be walked */
	const char *next;    /* behind what the COMPOUND in flight walks */
	unsigned int looked; /* LOOKUPs in it that succeeded */
	/* refused before it began: ->done must not come from inside nfs4_mount_path() */
	struct reactor_timer refused_timer;
	struct nfs4_failure refused;
	char path[]; /* copy */
};

static struct mount *to_mount(struct nfs4_call *call)
{
	return container_of(call, struct mount, call);
}

bool nfs4_mount_path_next(const char **path, struct nfs4_str *ret_name)
{
	const char *p = *path;

	for (;;) {
		size_t len;

		while (*p == '/')
			p++;
		len = strcspn(p, "/");
		if (len == 0) {
			*path = p;
			return false;
		}
		*path = p + len;
		if (len == 1 && p[0] == '.') {
			p = *path;
			continue;
		}
		ret_name->p = p;
		ret_name->len = (uint32_t)len;
		return true;
	}
}

/* ---- ends ---- */

static void mount_end(struct mount *m, const struct nfs4_failure *f)
{
	nfs4_call_put(&m->call);
	m->done(m->ctx, f);
	free(m);
}

static void mount_fail(struct mount *m, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void mount_fail(struct mount *m, int err, const char *fmt, ...)
{
	struct nfs4_failure f = {.err = err, .step = "export path"};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	mount_end(m, &f);
}

/* How much of the path the walk had reached when it failed, with the component it failed at. */
static int failed_len(const struct mount *m)
{
	const char *p = m->rest;
	struct nfs4_str name;

	for (unsigned int i = 0; i <= m->looked; i++)
		if (!nfs4_mount_path_next(&p, &name))
			break;
	return (int)(p - m->path);
}

static void walk_fail(struct mount *m)
{
	const char *path = m->path;
	int len = failed_len(m);

	if (m->call.status == NFS4ERR_NOENT)
		mount_fail(m, ENOENT,
			"%.*s does not exist on the server or is not exported: check `exportfs -v`",
			len, path);
	else if (m->call.status == NFS4ERR_ACCESS || m->call.status == NFS4ERR_PERM)
		mount_fail(m, EACCES,
			"%.*s: permission denied: check that the export admits this host "
			"(`exportfs -v`) and its directories this user",
			len, path);
	else if (m->call.status == NFS4ERR_NOTDIR || m->call.status == NFS4ERR_SYMLINK)
		mount_fail(m, ENOTDIR, "%.*s is not in a directory: check the path", len, path);
	else if (m->call.status == NFS4ERR_WRONGSEC)
		mount_fail(m, EPERM,
			"%.*s wants another security flavour than sec=sys: check sec= of the "
			"export",
			len, path);
	else if (m->call.status == NFS4ERR_MOVED)
		mount_fail(m, EREMOTE, "%.*s is on another server (a referral): mount it there",
			len, path);
	else if (m->call.status != NFS4_OK)
		mount_fail(m, -m->call.err, "%.*s: the server answers %s", len, path,
			nfs4_status_name(m->call.status));
	else
		mount_fail(m, -m->call.err, "%.*s cannot be looked up: %s", len, path,
			strerror(-m->call.err));
}

/* ---- ROOT ---- */

static int root_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	nfs4_xdr_put_putfh(c, &to_mount(call)->fh);
	nfs4_xdr_put_getattr(c, NFS4_ATTR_STAT | NFS4_ATTR_MOUNTED_ON);
	return 0;
}

static int root_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	if (nfs4_compound_void(c, OP_PUTFH))
		nfs4_xdr_get_getattr(c, &call->sess->cl->fsinfo.root_attr);
	return 0;
}

static const struct nfs4_opdesc root_desc = {
	.name = "mount GETATTR",
	.encode = root_encode,
	.decode = root_decode,
};

static void root_done(struct nfs4_call *call)
{
	struct mount *m = to_mount(call);
	struct nfs4_session *s = call->sess;
	struct nfs4_fsinfo *fi = &s->cl->fsinfo;

	if (call->err) {
		walk_fail(m);
		return;
	}
	if (fi->root_attr.type != NF4DIR) {
		mount_fail(m, ENOTDIR, "%s is not a directory: only directories can be mounted",
			m->path);
		return;
	}
	fi->root = m->fh;
	fi->minor = s->cl->minor;
	log_debug("%s: NFSv4.%u, rsize %u, wsize %u, lease %u s", s->peer, (unsigned int)fi->minor,
		(unsigned int)fi->fs.rsize, (unsigned int)fi->fs.wsize, (unsigned int)fi->lease_s);
	mount_end(m, NULL);
}

/* ---- FACTS ---- */

static void facts_done(struct nfs4_call *call)
{
	struct mount *m = to_mount(call);
	struct nfs4_fsinfo *fi = &call->sess->cl->fsinfo;

	if (call->err) {
		walk_fail(m);
		return;
	}
	fi->fs = call->u.facts.fs;
	fi->lease_s = call->u.facts.lease_s;
	call->done = root_done;
	nfs4_call_start(call, &root_desc);
}

/* ---- WALK ---- */

static int walk_encode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct mount *m = to_mount(call);
	/* SEQUENCE, PUTFH, GETFH beside the LOOKUPs */
	unsigned int room = call->sess->params.fore.maxops - 3, cnt = 0;
	const char *p = m->rest;
	size_t bytes = 0;
	struct nfs4_str name;

	if (m->fh.len)
		nfs4_xdr_put_putfh(c, &m->fh);
	else
		nfs4_compound_op(c, OP_PUTROOTFH, 0);
	m->next = p;
	while (cnt < room && cnt < WALK_MAX_OPS && nfs4_mount_path_next(&p, &name)) {
		bytes += XDR_ROUND(name.len) + 8;
		if (cnt > 0 && bytes > WALK_MAX_BYTES)
			break;
		nfs4_compound_op(c, OP_LOOKUP, 0);
		nfs4_xdr_put_str(&c->enc, &name);
		m->next = p;
		cnt++;
	}
	nfs4_xdr_put_getfh(c);
	return 0;
}

static int walk_decode(struct nfs4_call *call, struct nfs4_compound *c)
{
	struct mount *m = to_mount(call);
	enum nfs4_opnum first = m->fh.len ? OP_PUTFH : OP_PUTROOTFH;
	const char *p = m->rest;
	struct nfs4_str name;
	struct nfs4_fh fh = {0};

	m->looked = 0;
	if (!nfs4_compound_void(c, first))
		return 0;
	while (p < m->next && nfs4_mount_path_next(&p, &name)) {
		if (!nfs4_compound_void(c, OP_LOOKUP))
			return 0;
		m->looked++;
	}
	if (nfs4_xdr_get_getfh(c, &fh))
		m->fh = fh;
	return 0;
}

static const struct nfs4_opdesc walk_desc = {
	.name = "mount LOOKUP",
	.encode = walk_encode,
	.decode = walk_decode,
};

static void walk_done(struct nfs4_call *call)
{
	struct mount *m = to_mount(call);
	const char *p;
	struct nfs4_str name;

	if (call->err) {
		walk_fail(m);
		return;
	}
	m->rest = m->next;
	p = m->rest;
	if (nfs4_mount_path_next(&p, &name)) {
		nfs4_call_start(call, &walk_desc);
		return;
	}
	m->looked = 0;
	call->done = facts_done;
	call->u.facts.fh = &m->fh;
	nfs4_fs_facts(call);
}

/* ---- the beginning ---- */

static bool has_dotdot(const char *path)
{
	struct nfs4_str name;

	while (nfs4_mount_path_next(&path, &name))
		if (name.len == 2 && memcmp(name.p, "..", 2) == 0)
			return true;
	return false;
}

static void refused_fire(struct reactor_timer *t)
{
	struct mount *m = container_of(t, struct mount, refused_timer);

	m->done(m->ctx, &m->refused);
	free(m);
}

static void refuse(struct nfs4_session *s, struct mount *m, int err, const char *why)
{
	m->refused.err = err;
	m->refused.step = "export path";
	snprintf(m->refused.text, sizeof(m->refused.text), "%.100s: %s", m->path, why);
	reactor_timer_init(&m->refused_timer, refused_fire);
	reactor_timer_in(s->r, &m->refused_timer, 0);
}

void nfs4_mount_path(struct nfs4_session *s, const char *path, const struct rpc_cred *cred,
	void (*done)(void *ctx, const struct nfs4_failure *f), void *ctx)
{
	size_t len = strnlen(path, NFS4_MAXPATHLEN + 1);
	struct mount *m = calloc(1, sizeof(*m) + len + 1);
	int err;

	if (!m) {
		/* The one case that cannot wait for the reactor. */
		done(ctx, &(struct nfs4_failure){
				  .err = ENOMEM, .step = "export path", .text = "no memory"});
		return;
	}
	m->done = done;
	m->ctx = ctx;
	m->cred = *cred;
	memcpy(m->path, path, len);
	m->rest = m->path;
	if (len > NFS4_MAXPATHLEN || has_dotdot(m->path)) {
		refuse(s, m, EINVAL, "a path must not have \"..\" nor more than 4095 bytes");
		return;
	}
	err = nfs4_call_get(s, &m->call);
	if (err) {
		refuse(s, m, -err, "there is no session to look it up with");
		return;
	}
	m->call.cred = &m->cred;
	m->call.done = walk_done;
	nfs4_call_start(&m->call, &walk_desc);
}
