/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended attributes. Two kinds of names exist on an NFS server:
 *
 *   user.*           RFC 8276, without "user." on the wire: NFSv4.2 and a server that has them
 *   system.nfs4_acl  the ACL attribute as it is on the wire, which is what the kernel's client
 *                    shows and nfs4_getfacl(1), nfs4_setfacl(1) expect
 *
 * Everything else is refused as the kernel's client refuses it, which asks for the right to read or
 * write the file first (xattr_permission() of fs/xattr.c; for FUSE it is on us): where there is
 * nothing to be had the server is asked for the right alone. Nothing is cached: each request is
 * asked of the server, as the caller. How long a value is nobody says beforehand, so each
 * operation takes a data buffer; the NFS layer begins with a small part of it (nfs4_reply_chunk.c).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs_asked_buf.h"
#include "fs_attr.h"
#include "fs_deleg.h"
#include "fs_facts.h"
#include "fs_nameop.h"
#include "fs_dentry.h"
#include "fs_notify.h"
#include "fs_op.h"
#include "fs_reply.h"
#include "fs_xattr.h"

#define SECURITY "security."
/* An ACE without a name: type, flag, mask, its length. */
#define ACE_MIN 16u

/* The longest value that Linux has; a server may have longer ones. */
#define MAX_VALUE 65536u
/* What comes with them in a reply; a data buffer has a page more than data_size. */
#define AROUND 1024u
/* A call with more than this may not fit inline: it is built in a data buffer. */
#define SHORT_VALUE 512u

struct xattr {
	uint32_t len; /* of the value, in op->mem */
	enum nfs4_setxattr_option option;
	bool user;   /* a name of user.* */
	int refusal; /* errno for who has the right to ask for it */
};

static struct xattr *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct xattr);
	return op->work;
}

static bool attr_supported(const struct fs_op *op, unsigned int attr)
{
	return fs_facts(op->lane->fs, op->inode)->supported[attr / 32] & 1u << attr % 32;
}

bool fs_xattr_has_user(const struct fs_op *op)
{
	return nfs4_client_fsinfo(op->lane->fs->client)->minor >= 2 &&
	       attr_supported(op, FATTR4_XATTR_SUPPORT);
}

bool fs_xattr_has_acl(const struct fs_op *op)
{
	return attr_supported(op, FATTR4_ACL);
}

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* What the request is about: op->name is the name on the wire, or "" for the ACL. 0 or errno. */
static int parse_name(struct fs_op *op, const char *name)
{
	if (strlen(name) > XATTR_NAME_MAX)
		return ERANGE;
	if (strcmp(name, FS_XATTR_ACL) == 0)
		return fs_xattr_has_acl(op) ? 0 : EOPNOTSUPP;
	if (strcmp(name, FS_XATTR_USER) == 0 || strcmp(name, SECURITY) == 0)
		return EINVAL; /* the kernel's client has names that begin so */
	if (!begins_with(name, FS_XATTR_USER) || !fs_xattr_has_user(op))
		return EOPNOTSUPP;
	fs_op_name(op->name, name + FS_XATTR_USER_LEN);
	return 0;
}

/* The kernel has its own rules, or leaves it to the file system. */
static bool is_without_permission(const char *name)
{
	return begins_with(name, SECURITY) || begins_with(name, "system.") ||
	       begins_with(name, "trusted.");
}

static bool is_acl(const struct fs_op *op)
{
	return op->name[0] == '\0';
}

/* In a sticky directory only its owner changes them, whatever the mode is. */
static bool is_anothers_sticky(const struct fs_op *op)
{
	const struct nfs4_attr *a = &op->call->u.access.attr;

	return (a->valid & NFS4_ATTR_STAT) == NFS4_ATTR_STAT && a->type == NF4DIR &&
	       (a->mode & S_ISVTX) && op->cred.uid != a->uid && op->cred.uid != 0;
}

static void refusal_checked(struct fs_op *op)
{
	bool sticky = work(op)->user && (op->may.mask & W_OK);

	if ((op->call->err == 0 || op->call->err == -EACCES) && sticky && is_anothers_sticky(op))
		fs_reply_err(op, EPERM);
	else if (op->call->err != 0)
		fs_nameop_error(op);
	else
		fs_reply_err(op, work(op)->refusal);
}

/* It is refused; who has no right to do it (mask: R_OK, W_OK) hears that first. */
static void refuse(struct fs_op *op, int err, unsigned int mask)
{
	work(op)->refusal = err;
	fs_access_check(op, op->inode, mask, refusal_checked);
}

/* An op for a request about `name`, to read or to write it; NULL: answered already. */
static struct fs_op *xattr_begin(
	fuse_req_t req, fuse_ino_t ino, const char *name, unsigned int mask)
{
	struct fs_op *op = fs_op_begin(req, ino);
	int err;

	if (op == NULL)
		return NULL;
	err = parse_name(op, name);
	work(op)->user = begins_with(name, FS_XATTR_USER);
	if (err == 0)
		return op;
	if (err == ERANGE || is_without_permission(name))
		fs_reply_err(op, err);
	else
		refuse(op, err, mask);
	return NULL;
}

struct rpcrdma_span fs_xattr_sink(const struct fs_op *op, size_t most)
{
	size_t room = op->lane->fs->data_size;

	if (room > most)
		room = most;
	return (struct rpcrdma_span){op->buf, op->buf->data, (uint32_t)room + AROUND};
}

void fs_xattr_reply(struct fs_op *op, const void *value, size_t len, size_t max)
{
	if (len > max)
		fs_reply_err(op, E2BIG);
	else if (op->size == 0)
		fs_reply_length(op, len);
	else if (len > op->size)
		fs_reply_err(op, ERANGE);
	else
		fs_reply_data(op, value, len);
}

/* ---- get ---- */

static void getxattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0)
		fs_nameop_error(op);
	else
		fs_xattr_reply(op, call->u.getxattr.value, call->u.getxattr.len, MAX_VALUE);
}

static void getxattr_start(struct fs_op *op)
{
	op->call->u.getxattr = (struct nfs4_op_getxattr){
		.fh = &op->fh,
		.name = fs_nameop_str(op->name),
		.sink = fs_xattr_sink(op, MAX_VALUE),
	};
	op->call->done = getxattr_done;
	nfs4_getxattr(op->call);
}

static void getacl_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0)
		fs_nameop_error(op);
	else if (call->u.getacl.acl == NULL)
		fs_reply_err(op, EOPNOTSUPP); /* not on the file system that holds this file */
	else
		fs_xattr_reply(op, call->u.getacl.acl, call->u.getacl.len, MAX_VALUE);
}

static void getacl_start(struct fs_op *op)
{
	op->call->u.getacl =
		(struct nfs4_op_getacl){.fh = &op->fh, .sink = fs_xattr_sink(op, MAX_VALUE)};
	op->call->done = getacl_done;
	nfs4_getacl(op->call);
}

void fs_do_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct fs_op *op = xattr_begin(req, ino, name, R_OK);

	if (op == NULL)
		return;
	op->size = size;
	fs_op_call_buf(op, is_acl(op) ? getacl_start : getxattr_start);
}

/* ---- set and remove ---- */

static void change_failed(struct fs_op *op)
{
	/* It may have been done all the same: a soft mount's call that timed out. */
	fs_attr_changed(op->inode);
	if (is_acl(op))
		fs_dentry_inval(op->lane->fs, op->inode);
	if (op->call->err == -EMSGSIZE)
		op->call->err = -E2BIG;
	if (op->call->err == -EROFS && work(op)->user)
		refuse(op, EROFS, W_OK);
	else
		fs_nameop_error(op);
}

static void setxattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0) {
		change_failed(op);
		return;
	}
	fs_nameop_changed(op, &call->u.setxattr.attr);
	fs_reply_err(op, 0);
}

static void setxattr_start(struct fs_op *op)
{
	op->call->u.setxattr = (struct nfs4_op_setxattr){
		.fh = &op->fh,
		.name = fs_nameop_str(op->name),
		.value = op->mem,
		.len = work(op)->len,
		.option = work(op)->option,
		.long_buf = op->buf,
	};
	op->call->done = setxattr_done;
	fs_op_once(op);
	nfs4_setxattr(op->call);
}

static void setacl_told(struct fs_op *op)
{
	fs_reply_err(op, 0);
}

static void setacl_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0) {
		change_failed(op);
		return;
	}
	fs_nameop_changed(op, &call->u.setacl.attr);
	fs_dentry_inval(op->lane->fs, op->inode); /* the mode does not say who may search now */
	/* An ACL is the mode too, and the kernel forgets no more than the ctime by itself. */
	if (op->buf != NULL)
		fs_asked_buf_put(op->lane, op->buf);
	op->buf = NULL;
	fs_op_notify(op, op->inode, false, setacl_told);
}

static void setacl_start(struct fs_op *op)
{
	op->call->u.setacl = (struct nfs4_op_setacl){
		.fh = &op->fh,
		.acl = op->mem,
		.len = work(op)->len,
		.long_buf = op->buf,
	};
	op->call->done = setacl_done;
	nfs4_setacl(op->call);
}

static enum nfs4_setxattr_option option_of(int flags)
{
	if (flags & XATTR_CREATE)
		return SETXATTR4_CREATE;
	return flags & XATTR_REPLACE ? SETXATTR4_REPLACE : SETXATTR4_EITHER;
}

/* An ACL is made of words: how many ACEs there are, and those. What ends early goes on with 0. */
static int check_acl(const char *acl, size_t size)
{
	uint8_t head[4] = {0};
	uint32_t count;

	if (size == 0)
		return EINVAL;
	memcpy(head, acl, size < sizeof(head) ? size : sizeof(head));
	count = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 |
		head[3];
	if (count > size / ACE_MIN)
		return EFBIG; /* as a server says that finds fewer than it is told */
	return size % 4 != 0 ? EINVAL : 0;
}

static int check_value(const struct fs_op *op, const char *value, size_t size, int flags)
{
	if (size > MAX_VALUE)
		return E2BIG;
	if (is_acl(op)) /* each file has one: the flags say nothing */
		return check_acl(value, size);
	return (flags & XATTR_CREATE) && (flags & XATTR_REPLACE) ? EINVAL : 0;
}

static void set_clear(struct fs_op *op)
{
	void (*start)(struct fs_op * op) = is_acl(op) ? setacl_start : setxattr_start;

	if (work(op)->len > SHORT_VALUE)
		fs_op_call_buf(op, start);
	else
		fs_op_call(op, start);
}

void fs_do_setxattr(
	fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	struct fs_op *op = xattr_begin(req, ino, name, W_OK);
	int err;

	if (op == NULL)
		return;
	err = check_value(op, value, size, flags);
	if (err != 0) {
		fs_reply_err(op, err);
		return;
	}
	op->mem = malloc(size != 0 ? size : 1);
	if (op->mem == NULL) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	if (size != 0)
		memcpy(op->mem, value, size);
	work(op)->len = (uint32_t)size;
	work(op)->option = option_of(flags);
	fs_deleg_clear(op, op->inode, true, set_clear);
}

static void removexattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0) {
		change_failed(op);
		return;
	}
	fs_nameop_changed(op, &call->u.removexattr.attr);
	fs_reply_err(op, 0);
}

static void removexattr_start(struct fs_op *op)
{
	op->call->u.removexattr = (struct nfs4_op_removexattr){
		.fh = &op->fh,
		.name = fs_nameop_str(op->name),
	};
	op->call->done = removexattr_done;
	fs_op_once(op);
	nfs4_removexattr(op->call);
}

static void remove_clear(struct fs_op *op)
{
	fs_op_call(op, removexattr_start);
}

void fs_do_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct fs_op *op = xattr_begin(req, ino, name, W_OK);

	if (op == NULL)
		return;
	if (is_acl(op))
		fs_reply_err(op, EINVAL); /* each file has one, as for the kernel's client */
	else
		fs_deleg_clear(op, op->inode, true, remove_clear);
}
