/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The decoder of any operation: byte 0 chooses it, byte 1 is the number of
 * results, bytes 2 and 3 the status of the COMPOUND (0: NFS4_OK, else added to
 * 10000), byte 4 what RDMA Write brought for READ; the rest is the results.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_start.h"
#include "fuzz.h"
#include "nfs4_int.h"

#define ROOM 4096u

static const struct nfs4_fh fh = {4, {1, 2, 3, 4}}, fh2 = {4, {5, 6, 7, 8}};
static uint8_t room[ROOM];
static struct rpcrdma_buf buf = {.data = room};
static const struct rpcrdma_span sink = {&buf, room, ROOM};

static void fh_ok(const struct nfs4_fh *h)
{
	FUZZ_CHECK(h->len <= NFS4_FHSIZE);
}

static void lookup(struct nfs4_call *call)
{
	call->u.lookup = (struct nfs4_op_lookup){.dir = &fh, .name = {"a", 1}};
}

static void lookup_ok(const struct nfs4_call *call)
{
	fh_ok(&call->u.lookup.fh);
}

static void getattr(struct nfs4_call *call)
{
	call->u.getattr = (struct nfs4_op_getattr){.fh = &fh};
}

static void setattr(struct nfs4_call *call)
{
	call->u.setattr = (struct nfs4_op_setattr){.fh = &fh};
}

static void access_(struct nfs4_call *call)
{
	call->u.access = (struct nfs4_op_access){.fh = &fh, .want = 0x3f};
}

static void open_fh(struct nfs4_call *call)
{
	call->u.open = (struct nfs4_op_open){.file = &fh, .share_access = 1};
}

static void open_name(struct nfs4_call *call)
{
	call->u.open = (struct nfs4_op_open){.dir = &fh, .name = {"a", 1}, .share_access = 1};
}

static void open_ok(const struct nfs4_call *call)
{
	fh_ok(&call->u.open.fh);
	FUZZ_CHECK(call->u.open.deleg_type <= OPEN_DELEGATE_NONE_EXT);
}

static void close_(struct nfs4_call *call)
{
	call->u.close = (struct nfs4_op_close){.fh = &fh};
}

static void read_(struct nfs4_call *call)
{
	call->u.read = (struct nfs4_op_read){.fh = &fh, .count = 200, .sink = sink};
}

static void data_ok(const struct nfs4_op_read *o, const struct nfs4_call *call)
{
	FUZZ_CHECK(o->len <= o->count);
	FUZZ_CHECK(o->data || !o->len);
	/* A server may write the round-up too. */
	FUZZ_CHECK(o->data != room || (o->len <= call->rpc.req.results[0].got &&
					      call->rpc.req.results[0].got <= XDR_ROUND(o->len)));
	fuzz_touch(o->data, o->len);
}

static void read_ok(const struct nfs4_call *call)
{
	data_ok(&call->u.read, call);
}

static struct nfs4_op_read with_open;

static void open_read(struct nfs4_call *call)
{
	open_fh(call);
	with_open = (struct nfs4_op_read){.count = 200, .sink = sink};
	call->u.open.read = &with_open;
}

static void open_read_ok(const struct nfs4_call *call)
{
	open_ok(call);
	data_ok(&with_open, call);
}

static void write_(struct nfs4_call *call)
{
	call->u.write = (struct nfs4_op_write){
		.fh = &fh, .data = {{&buf, room, 1000}}, .data_cnt = 1, .stable = DATA_SYNC4};
}

static void write_ok(const struct nfs4_call *call)
{
	FUZZ_CHECK(call->u.write.count <= 1000);
	FUZZ_CHECK(call->u.write.committed <= FILE_SYNC4);
}

static void commit(struct nfs4_call *call)
{
	call->u.commit = (struct nfs4_op_commit){.fh = &fh};
}

static void readlink_(struct nfs4_call *call)
{
	call->u.readlink = (struct nfs4_op_readlink){.fh = &fh, .sink = sink};
}

static void readlink_ok(const struct nfs4_call *call)
{
	const struct nfs4_str *t = &call->u.readlink.target;

	FUZZ_CHECK(t->len <= NFS4_MAXPATHLEN);
	FUZZ_CHECK(!t->p || !memchr(t->p, '\0', t->len));
}

static void create(struct nfs4_call *call)
{
	call->u.create = (struct nfs4_op_create){.dir = &fh, .name = {"a", 1}, .type = NF4DIR};
}

static void create_ok(const struct nfs4_call *call)
{
	fh_ok(&call->u.create.fh);
}

static void remove_(struct nfs4_call *call)
{
	call->u.remove = (struct nfs4_op_remove){.dir = &fh, .name = {"a", 1}};
}

static void rename_(struct nfs4_call *call)
{
	call->u.rename = (struct nfs4_op_rename){
		.from_dir = &fh, .to_dir = &fh2, .from = {"a", 1}, .to = {"b", 1}};
}

static void link_(struct nfs4_call *call)
{
	call->u.link = (struct nfs4_op_link){.file = &fh, .dir = &fh2, .name = {"a", 1}};
}

static void statfs_(struct nfs4_call *call)
{
	call->u.statfs = (struct nfs4_op_statfs){.fh = &fh};
}

static void getxattr(struct nfs4_call *call)
{
	call->u.getxattr = (struct nfs4_op_getxattr){.fh = &fh, .name = {"a", 1}, .sink = sink};
}

static void getxattr_ok(const struct nfs4_call *call)
{
	const struct nfs4_op_getxattr *o = &call->u.getxattr;

	FUZZ_CHECK(o->value || !o->len);
	fuzz_touch(o->value, o->len);
}

static void setxattr(struct nfs4_call *call)
{
	call->u.setxattr = (struct nfs4_op_setxattr){.fh = &fh, .name = {"a", 1}};
}

static bool name(struct nfs4_call *call, const struct nfs4_str *n)
{
	FUZZ_CHECK(call && n->len >= 1 && n->len <= NFS4_XATTR_NAME_MAX);
	FUZZ_CHECK(!memchr(n->p, '\0', n->len));
	return true;
}

static void listxattrs(struct nfs4_call *call)
{
	call->u.listxattrs = (struct nfs4_op_listxattrs){.fh = &fh, .sink = sink, .name = name};
}

static void removexattr(struct nfs4_call *call)
{
	call->u.removexattr = (struct nfs4_op_removexattr){.fh = &fh, .name = {"a", 1}};
}

static void getacl(struct nfs4_call *call)
{
	call->u.getacl = (struct nfs4_op_getacl){.fh = &fh, .sink = sink};
}

static void getacl_ok(const struct nfs4_call *call)
{
	const struct nfs4_op_getacl *o = &call->u.getacl;

	FUZZ_CHECK(o->acl ? o->len >= 4 : !o->len);
	fuzz_touch(o->acl, o->len);
}

static void setacl(struct nfs4_call *call)
{
	call->u.setacl = (struct nfs4_op_setacl){.fh = &fh, .acl = room, .len = 4};
}

static void seek(struct nfs4_call *call)
{
	call->u.seek = (struct nfs4_op_seek){.fh = &fh};
}

static void allocate(struct nfs4_call *call)
{
	call->u.allocate = (struct nfs4_op_allocate){.fh = &fh};
}

static void test_stateid(struct nfs4_call *call)
{
	static const struct nfs4_stateid ids[NFS4_TEST_MAX];

	call->u.test_stateid = (struct nfs4_op_test_stateid){.ids = ids, .cnt = NFS4_TEST_MAX};
}

static void start_test_stateid(struct nfs4_call *call)
{
	nfs4_call_start(call, &nfs4_test_stateid_desc);
}

static struct nfs4_lockowner lockowner = {.number = 7};

static void lock(struct nfs4_call *call)
{
	call->u.lock = (struct nfs4_op_lock){.fh = &fh, .lock = &lockowner, .length = 1};
}

static void denied_ok(const struct nfs4_denied *d)
{
	FUZZ_CHECK(
		!d->length || d->length == NFS4_LOCK_TO_END || d->length <= UINT64_MAX - d->offset);
}

static void lock_ok(const struct nfs4_call *call)
{
	denied_ok(&call->u.lock.denied);
}

static void lockt(struct nfs4_call *call)
{
	call->u.lockt = (struct nfs4_op_lockt){.fh = &fh, .owner = 7, .length = 1};
}

static void lockt_ok(const struct nfs4_call *call)
{
	denied_ok(&call->u.lockt.denied);
	FUZZ_CHECK(call->u.lockt.conflict == (call->u.lockt.denied.length > 0));
}

static void locku(struct nfs4_call *call)
{
	call->u.locku = (struct nfs4_op_locku){.fh = &fh, .lock = &lockowner, .length = 1};
}

static void start_locku_first(struct nfs4_call *call)
{
	nfs4_locku(call);
	call->u.locku.work.first = true;
}

static void start_close_unlock(struct nfs4_call *call)
{
	nfs4_close(call);
	call->u.close.unlocks = true;
}

static void start_free_stateid(struct nfs4_call *call)
{
	nfs4_call_start(call, &nfs4_free_stateid_desc);
}

static void free_stateid(struct nfs4_call *call)
{
	call->u.free_stateid.stateid.seqid = 1;
}

static void downgrade(struct nfs4_call *call)
{
	call->u.downgrade = (struct nfs4_op_downgrade){.fh = &fh, .share_access = 1};
}

static void delegreturn(struct nfs4_call *call)
{
	static struct nfs4_deleg deleg;

	call->u.delegreturn = (struct nfs4_op_delegreturn){.fh = &fh, .deleg = &deleg};
}

static void claim(struct nfs4_call *call)
{
	static struct nfs4_state served = {.fh = {4, {1, 2, 3, 4}}};

	call->u.open = (struct nfs4_op_open){.claim = &served};
}

static void copy(struct nfs4_call *call)
{
	call->u.copy = (struct nfs4_op_copy){.src = &fh, .fh = &fh, .count = 1000};
}

static void copy_ok(const struct nfs4_call *call)
{
	const struct nfs4_op_copy *o = &call->u.copy;

	FUZZ_CHECK(o->copied <= o->count && (!o->async || o->copied == 0));
	FUZZ_CHECK((unsigned int)o->committed <= FILE_SYNC4);
}

static void offload(struct nfs4_call *call)
{
	call->u.offload = (struct nfs4_op_offload){.fh = &fh};
}

/* Append only: the corpus counts on the order. */
static const struct {
	void (*op)(struct nfs4_call *call);
	void (*setup)(struct nfs4_call *call);
	void (*ok)(const struct nfs4_call *call);
} ops[] = {
	{nfs4_lookup, lookup, lookup_ok},
	{nfs4_getattr, getattr, NULL},
	{nfs4_setattr, setattr, NULL},
	{nfs4_access, access_, NULL},
	{nfs4_open, open_fh, open_ok},
	{nfs4_open, open_name, open_ok},
	{nfs4_close, close_, NULL},
	{nfs4_read, read_, read_ok},
	{nfs4_write, write_, write_ok},
	{nfs4_commit, commit, NULL},
	{nfs4_readlink, readlink_, readlink_ok},
	{nfs4_create, create, create_ok},
	{nfs4_remove, remove_, NULL},
	{nfs4_rename, rename_, NULL},
	{nfs4_link, link_, NULL},
	{nfs4_statfs, statfs_, NULL},
	{nfs4_getxattr, getxattr, getxattr_ok},
	{nfs4_setxattr, setxattr, NULL},
	{nfs4_listxattrs, listxattrs, NULL},
	{nfs4_removexattr, removexattr, NULL},
	{nfs4_getacl, getacl, getacl_ok},
	{nfs4_setacl, setacl, NULL},
	{nfs4_seek, seek, NULL},
	{nfs4_allocate, allocate, NULL},
	{start_test_stateid, test_stateid, NULL},
	{nfs4_lock, lock, lock_ok},
	{nfs4_lockt, lockt, lockt_ok},
	{nfs4_locku, locku, NULL},
	{start_locku_first, locku, NULL},
	{start_close_unlock, close_, NULL},
	{start_free_stateid, free_stateid, NULL},
	{nfs4_downgrade, downgrade, NULL},
	{nfs4_delegreturn, delegreturn, NULL},
	{nfs4_claim, claim, open_ok},
	{nfs4_copy, copy, copy_ok},
	{nfs4_copy_status, offload, NULL},
	{nfs4_copy_cancel, offload, NULL},
	{nfs4_clone, copy, copy_ok},
	{nfs4_open, open_read, open_read_ok},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t head[8192];
	static struct nfs4_call call;
	const struct nfs4_opdesc *desc;
	struct nfs4_compound c = {.call = &call, .minor = 2};
	unsigned int status, which;
	int ret;

	if (size < 5)
		return 0;
	which = data[0];
	if (which >= sizeof(ops) / sizeof(ops[0]))
		return 0;
	memset(&call, 0, sizeof(call));
	ops[which].setup(&call);
	desc = fake_start(ops[which].op, &call);
	xdr_enc_init(&c.enc, head, sizeof(head));
	FUZZ_CHECK(desc->encode(&call, &c) == 0);

	status = (unsigned int)data[2] << 8 | data[3];
	call.rpc.req.results[0].got = data[4];
	call.rpc.req.results[0].used = data[4] != 0;
	c.op_cnt = data[1];
	c.status = status ? (enum nfs4_status)(10000 + status) : NFS4_OK;
	xdr_dec_init(&c.dec, data + 5, size - 5);
	ret = desc->decode(&call, &c);
	FUZZ_CHECK(ret == 0 || ret == -EBADMSG);
	FUZZ_CHECK(ret == 0 || c.dec.failed);
	FUZZ_CHECK(c.status != NFS4_OK || ret || !c.op_cnt);
	/* What is there must be sound even when the rest was not. */
	if (ops[which].ok)
		ops[which].ok(&call);
	return 0;
}
