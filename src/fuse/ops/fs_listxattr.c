/* SPDX-License-Identifier: BSD-3-Clause */
/* LISTXATTR: the names of user.*, as many calls as they take, and that of the ACL. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fs_nameop.h"
#include "fs_op.h"
#include "fs_reply.h"
#include "fs_xattr.h"

/* On the wire a list is up to a seventh longer. */
#define LIST_ROOM (FS_XATTR_LIST_MAX / 4 * 5)

struct listxattr {
	uint32_t len;    /* of the names so far, in op->mem */
	uint64_t cookie; /* to ask with */
	bool over;       /* more names than Linux can list */
};

static struct listxattr *work(const struct fs_op *op)
{
	FS_OP_WORK_HOLDS(struct listxattr);
	return op->work;
}

static void add_name(struct fs_op *op, const char *prefix, const char *name, size_t len)
{
	size_t prefix_len = strlen(prefix), all = prefix_len + len + 1;
	char *to = (char *)op->mem + work(op)->len;

	if (work(op)->over || all > FS_XATTR_LIST_MAX - work(op)->len) {
		work(op)->over = true;
		return;
	}
	memcpy(to, prefix, prefix_len);
	memcpy(to + prefix_len, name, len);
	to[all - 1] = '\0';
	work(op)->len += (uint32_t)all;
}

static bool list_name(struct nfs4_call *call, const struct nfs4_str *name)
{
	/* What could not be asked for is not shown either. */
	if (name->len <= XATTR_NAME_MAX - FS_XATTR_USER_LEN)
		add_name(fs_op_of(call), FS_XATTR_USER, name->p, name->len);
	return true;
}

static void list_reply(struct fs_op *op)
{
	if (work(op)->over)
		fs_reply_err(op, E2BIG);
	else
		fs_xattr_reply(op, op->mem, work(op)->len, FS_XATTR_LIST_MAX);
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
		fs_nameop_error(op);
	} else if (o->eof || work(op)->over) {
		list_reply(op);
	} else {
		work(op)->cookie = o->cookie_out;
		fs_op_call_buf(op, list_start);
	}
}

static void list_start(struct fs_op *op)
{
	op->call->u.listxattrs = (struct nfs4_op_listxattrs){
		.fh = &op->fh,
		.cookie = work(op)->cookie,
		.sink = fs_xattr_sink(op, LIST_ROOM),
		.name = list_name,
	};
	op->call->done = list_done;
	nfs4_listxattrs(op->call);
}

void fs_do_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct fs_op *op = fs_op_begin(req, ino);

	if (op == NULL)
		return;
	op->size = size;
	op->mem = malloc(FS_XATTR_LIST_MAX);
	if (op->mem == NULL) {
		fs_reply_err(op, ENOMEM);
		return;
	}
	if (fs_xattr_has_acl(op))
		add_name(op, "", FS_XATTR_ACL, strlen(FS_XATTR_ACL));
	if (fs_xattr_has_user(op))
		fs_op_call_buf(op, list_start);
	else
		list_reply(op);
}
