/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended attributes. Two kinds of names exist on an NFS server:
 *
 *   user.*           RFC 8276, without "user." on the wire: NFSv4.2 and a server that has them
 *   system.nfs4_acl  the ACL attribute as it is on the wire, which is what the kernel's client
 *                    shows and nfs4_getfacl(1), nfs4_setfacl(1) expect
 *
 * Everything else is refused as the kernel's client refuses it. Nothing is cached: each request
 * is asked of the server, as the caller. How long a value is nobody says beforehand, so each
 * operation takes a data buffer; the NFS layer begins with a small part of it (nfs4_room.c).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "fs_deleg.h"
#include "fs_meta.h"

#define USER     "user."
#define USER_LEN (sizeof(USER) - 1)
#define ACL_NAME "system.nfs4_acl"

/* The longest value and list of names Linux has; a server may have longer ones. */
#define MAX_VALUE 65536u
#define MAX_LIST  65536u
/* On the wire a list is up to a seventh longer. */
#define LIST_ROOM (MAX_LIST / 4 * 5)
/* What comes with them in a reply; a data buffer has a page more than data_size. */
#define AROUND 1024u
/* A call with more than this may not fit inline: it is built in a data buffer. */
#define SHORT_VALUE 512u

static bool attr_supported(const struct nfs4_fsinfo *info, unsigned int attr)
{
	return info->supported[attr / 32] & 1u << attr % 32;
}

static bool have_user(const struct fs_op *op)
{
	const struct nfs4_fsinfo *info = nfs4_client_fsinfo(op->lane->fs->client);

	return info->minor >= 2 && attr_supported(info, FATTR4_XATTR_SUPPORT);
}

static bool have_acl(const struct fs_op *op)
{
	return attr_supported(nfs4_client_fsinfo(op->lane->fs->client), FATTR4_ACL);
}

/* What the request is about: op->name is the name on the wire, or "" for the ACL. 0 or errno. */
static int parse_name(struct fs_op *op, const char *name)
{
	if (strlen(name) > XATTR_NAME_MAX)
		return ERANGE;
	if (strcmp(name, ACL_NAME) == 0)
		return have_acl(op) ? 0 : EOPNOTSUPP;
	if (strncmp(name, USER, USER_LEN) != 0 || !have_user(op))
		return EOPNOTSUPP;
	if (name[USER_LEN] == '\0')
		return EINVAL;
	fs_op_name(op->name, name + USER_LEN);
	return 0;
}

static bool is_acl(const struct fs_op *op)
{
	return op->name[0] == '\0';
}

/* An op for a request about `name`; NULL: answered already. */
static struct fs_op *xattr_begin(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct fs_op *op = fs_op_begin(req, ino);
	int err = parse_name(op, name);

	if (err == 0)
		return op;
	fs_reply_err(op, err);
	return NULL;
}

static struct rpcrdma_span sink_of(const struct fs_op *op, size_t most)
{
	size_t room = op->lane->fs->data_size;

	if (room > most)
		room = most;
	return (struct rpcrdma_span){op->buf, op->buf->data, (uint32_t)room + AROUND};
}

/* The answer to a request for op->size bytes: 0 asks how many there are. */
static void reply_value(struct fs_op *op, const void *value, size_t len, size_t max)
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
		fs_meta_error(op);
	else
		reply_value(op, call->u.getxattr.value, call->u.getxattr.len, MAX_VALUE);
}

static void getxattr_start(struct fs_op *op)
{
	op->call.u.getxattr = (struct nfs4_op_getxattr){
		.fh = &op->fh,
		.name = fs_meta_str(op->name),
		.sink = sink_of(op, MAX_VALUE),
	};
	op->call.done = getxattr_done;
	nfs4_getxattr(&op->call);
}

static void getacl_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0)
		fs_meta_error(op);
	else if (call->u.getacl.acl == NULL)
		fs_reply_err(op, EOPNOTSUPP); /* not on the file system that holds this file */
	else
		reply_value(op, call->u.getacl.acl, call->u.getacl.len, MAX_VALUE);
}

static void getacl_start(struct fs_op *op)
{
	op->call.u.getacl = (struct nfs4_op_getacl){.fh = &op->fh, .sink = sink_of(op, MAX_VALUE)};
	op->call.done = getacl_done;
	nfs4_getacl(&op->call);
}

void fs_do_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct fs_op *op = xattr_begin(req, ino, name);

	if (op == NULL)
		return;
	op->size = size;
	fs_op_call_buf(op, is_acl(op) ? getacl_start : getxattr_start);
}

/* ---- list ---- */

static void add_name(struct fs_op *op, const char *prefix, const char *name, size_t len)
{
	size_t prefix_len = strlen(prefix), all = prefix_len + len + 1;
	char *to = (char *)op->mem + op->u.xattr.len;

	if (op->u.xattr.over || all > MAX_LIST - op->u.xattr.len) {
		op->u.xattr.over = true;
		return;
	}
	memcpy(to, prefix, prefix_len);
	memcpy(to + prefix_len, name, len);
	to[all - 1] = '\0';
	op->u.xattr.len += (uint32_t)all;
}

static bool list_name(struct nfs4_call *call, const struct nfs4_str *name)
{
	/* What could not be asked for is not shown either. */
	if (name->len <= XATTR_NAME_MAX - USER_LEN)
		add_name(fs_op_of(call), USER, name->p, name->len);
	return true;
}

static void list_reply(struct fs_op *op)
{
	if (op->u.xattr.over)
		fs_reply_err(op, E2BIG);
	else
		reply_value(op, op->mem, op->u.xattr.len, MAX_LIST);
}

static void list_start(struct fs_op *op);

static void list_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);
	const struct nfs4_op_listxattrs *o = &call->u.listxattrs;

	/*
	 * The mount has them, but not the file system that holds this file, or a file of its kind;
	 * or the server wants a right to read the file for the names of its own, which listing
	 * needs nowhere else: the kernel's client leaves them out likewise.
	 */
	if (call->err == -EOPNOTSUPP || call->err == -EACCES) {
		list_reply(op);
	} else if (call->err != 0) {
		fs_meta_error(op);
	} else if (o->eof || op->u.xattr.over) {
		list_reply(op);
	} else {
		op->u.xattr.cookie = o->cookie_out;
		fs_op_call_buf(op, list_start);
	}
}

static void list_start(struct fs_op *op)
{
	op->call.u.listxattrs = (struct nfs4_op_listxattrs){
		.fh = &op->fh,
		.cookie = op->u.xattr.cookie,
		.sink = sink_of(op, LIST_ROOM),
		.name = list_name,
	};
	op->call.done = list_done;
	nfs4_listxattrs(&op->call);
}

void fs_do_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct fs_op *op = fs_op_begin(req, ino);

	op->size = size;
	op->mem = malloc(MAX_LIST);
	if (op->mem == NULL) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	if (have_acl(op))
		add_name(op, "", ACL_NAME, strlen(ACL_NAME));
	if (have_user(op))
		fs_op_call_buf(op, list_start);
	else
		list_reply(op);
}

/* ---- set and remove ---- */

static void change_failed(struct fs_op *op)
{
	/* It may have been done all the same: a soft mount's call that timed out. */
	fs_attr_changed(op->inode);
	if (op->call.err == -EMSGSIZE)
		op->call.err = -E2BIG;
	fs_meta_error(op);
}

static void setxattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0) {
		change_failed(op);
		return;
	}
	fs_meta_changed(op, &call->u.setxattr.attr);
	fs_reply_err(op, 0);
}

static void setxattr_start(struct fs_op *op)
{
	op->call.u.setxattr = (struct nfs4_op_setxattr){
		.fh = &op->fh,
		.name = fs_meta_str(op->name),
		.value = op->mem,
		.len = op->u.xattr.len,
		.option = op->u.xattr.option,
		.long_buf = op->buf,
	};
	op->call.done = setxattr_done;
	nfs4_setxattr(&op->call);
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
	fs_meta_changed(op, &call->u.setacl.attr);
	/* An ACL is the mode too, and the kernel forgets no more than the ctime by itself. */
	if (op->buf != NULL)
		rpcrdma_buf_put(op->lane->xprt, op->buf);
	op->buf = NULL;
	fs_notify_then(op, op->inode, false, setacl_told);
}

static void setacl_start(struct fs_op *op)
{
	op->call.u.setacl = (struct nfs4_op_setacl){
		.fh = &op->fh,
		.acl = op->mem,
		.len = op->u.xattr.len,
		.long_buf = op->buf,
	};
	op->call.done = setacl_done;
	nfs4_setacl(&op->call);
}

static enum nfs4_setxattr_option option_of(int flags)
{
	if (flags & XATTR_CREATE)
		return SETXATTR4_CREATE;
	return flags & XATTR_REPLACE ? SETXATTR4_REPLACE : SETXATTR4_EITHER;
}

static int check_value(const struct fs_op *op, size_t size, int flags)
{
	if (size > MAX_VALUE)
		return E2BIG;
	if ((flags & XATTR_CREATE) && (flags & XATTR_REPLACE))
		return EINVAL;
	/* An ACL is made of words, its count first. */
	return is_acl(op) && (size < 4 || size % 4 != 0) ? EINVAL : 0;
}

static void set_clear(struct fs_op *op)
{
	void (*start)(struct fs_op * op) = is_acl(op) ? setacl_start : setxattr_start;

	if (op->u.xattr.len > SHORT_VALUE)
		fs_op_call_buf(op, start);
	else
		fs_op_call(op, start);
}

void fs_do_setxattr(
	fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	struct fs_op *op = xattr_begin(req, ino, name);
	int err;

	if (op == NULL)
		return;
	err = check_value(op, size, flags);
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
	op->u.xattr.len = (uint32_t)size;
	op->u.xattr.option = option_of(flags);
	fs_deleg_clear(op, op->inode, true, set_clear);
}

static void removexattr_done(struct nfs4_call *call)
{
	struct fs_op *op = fs_op_of(call);

	if (call->err != 0) {
		change_failed(op);
		return;
	}
	fs_meta_changed(op, &call->u.removexattr.attr);
	fs_reply_err(op, 0);
}

static void removexattr_start(struct fs_op *op)
{
	op->call.u.removexattr = (struct nfs4_op_removexattr){
		.fh = &op->fh,
		.name = fs_meta_str(op->name),
	};
	op->call.done = removexattr_done;
	nfs4_removexattr(&op->call);
}

static void remove_clear(struct fs_op *op)
{
	fs_op_call(op, removexattr_start);
}

void fs_do_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct fs_op *op = xattr_begin(req, ino, name);

	if (op == NULL)
		return;
	if (is_acl(op))
		fs_reply_err(op, EINVAL); /* each file has one, as for the kernel's client */
	else
		fs_deleg_clear(op, op->inode, true, remove_clear);
}
