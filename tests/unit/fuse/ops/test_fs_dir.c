/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs_rig.h"

/* The directory: entries 1..CNT with cookies of 10 each. */
#define CNT 300

static struct {
	unsigned int readdirs;
	uint64_t last_cookie;
	uint8_t last_verf;
	unsigned int per_reply; /* entries the server puts in a reply */
	uint64_t first_cookie;
	enum nfs4_status fail;  /* the next READDIR */
	uint32_t rdattr_error;  /* entry of this number */
	uint32_t fifo;          /* the same */
	struct fake_file *file; /* has the attributes of entry 1 */
	bool plus;
} srv;

static struct nfs4_dirent entry_of(unsigned int i, char name[16])
{
	struct nfs4_dirent de = {.cookie = srv.first_cookie + 10ull * i};

	snprintf(name, 16, "entry-%04u", i);
	de.name = (struct nfs4_str){name, 10};
	de.attr = srv.file->attr;
	de.attr.fileid = i == 1 ? de.attr.fileid : 1000 + i;
	de.fh.len = i == 1 ? 1 : 2;
	de.fh.data[0] = i == 1 ? (uint8_t)(srv.file - rig.fake.files) : (uint8_t)(i & 0xff);
	de.fh.data[1] = (uint8_t)(i >> 8);
	if (i == srv.rdattr_error)
		de.attr.valid = NFS4_ATTR_RDERROR;
	if (i == srv.fifo)
		de.attr.type = NF4FIFO;
	if (!srv.plus) {
		de.attr.valid &= NFS4_ATTR_TYPE | NFS4_ATTR_FILEID;
		de.fh.len = 0;
	}
	return de;
}

static int serve_readdir(struct nfs4_call *call)
{
	struct nfs4_op_readdir *o = &call->u.readdir;
	unsigned int i = o->cookie ? (unsigned int)((o->cookie - srv.first_cookie) / 10) + 1 : 1;
	unsigned int end = i + srv.per_reply;

	srv.readdirs++;
	srv.last_cookie = o->cookie;
	srv.last_verf = o->verf.data[0];
	srv.plus = o->plus;
	cr_assert(o->sink.len >= o->maxcount + 512);
	cr_assert(o->sink.len <= RIG_WSIZE);
	call->status = NFS4_OK;
	if (srv.fail) {
		call->status = srv.fail;
		srv.fail = NFS4_OK;
		return -EINVAL;
	}
	o->verf_out.data[0] = 7;
	for (; i <= CNT && i < end; i++) {
		char name[16];
		struct nfs4_dirent de = entry_of(i, name);

		if (!o->entry(call, &de))
			return 0;
	}
	o->eof = i > CNT;
	return 0;
}

static uint64_t dir_fh;

static void set_up(void)
{
	struct rig_reply re;

	rig_up(NULL);
	memset(&srv, 0, sizeof(srv));
	srv.per_reply = 1000;
	srv.file = fake_add("f", 5);
	rig.fake.other = serve_readdir;
	cr_assert_eq(rig_call(&re, FUSE_OPENDIR, FUSE_ROOT_ID, &(struct fuse_open_in){0},
			     sizeof(struct fuse_open_in), NULL, 0),
		0);
	dir_fh = ((struct fuse_open_out *)re.body)->fh;
	cr_assert_neq(dir_fh, 0);
}

static void tear_down(void)
{
	struct rig_reply re;

	rig_call(&re, FUSE_RELEASEDIR, FUSE_ROOT_ID, &(struct fuse_release_in){.fh = dir_fh},
		sizeof(struct fuse_release_in), NULL, 0);
	rig_down();
}

TestSuite(fs_dir, .init = set_up, .fini = tear_down);

static struct rig_reply re;

static int read_at(uint64_t off, uint32_t size, bool plus)
{
	const struct fuse_read_in in = {.fh = dir_fh, .offset = off, .size = size};

	return rig_call(&re, plus ? FUSE_READDIRPLUS : FUSE_READDIR, FUSE_ROOT_ID, &in, sizeof(in),
		NULL, 0);
}

/* Reads from off to the end; returns the number of entries, which must follow each other. */
static unsigned int read_on(uint64_t off, unsigned int next, uint32_t size)
{
	unsigned int n = 0;

	for (;;) {
		size_t at = 0;

		cr_assert_eq(read_at(off, size, false), 0, "at %llu", (unsigned long long)off);
		if (re.len == 0)
			return n;
		while (at < re.len) {
			const struct fuse_dirent *d = (struct fuse_dirent *)(re.body + at);
			char want[16];

			snprintf(want, sizeof(want), "entry-%04u", next);
			if (next == 0 && d->off == 1) {
				cr_assert(d->namelen == 1 && d->name[0] == '.');
			} else if (next == 0 && d->off == 2) {
				cr_assert(d->namelen == 2 && memcmp(d->name, "..", 2) == 0);
				next = 1;
			} else {
				cr_assert(d->namelen == 10 && memcmp(d->name, want, 10) == 0, "%s",
					want);
				next++;
			}
			off = d->off;
			at += FUSE_DIRENT_SIZE(d);
			n++;
		}
	}
}

Test(fs_dir, lists_everything_once_however_small_the_pieces)
{
	cr_assert_eq(read_on(0, 0, 4096), CNT + 2);
	cr_assert_eq(srv.readdirs, 1);
	cr_assert_eq(read_on(0, 0, 100), CNT + 2);
	cr_assert_eq(srv.readdirs, 2); /* rewound: read anew */
	cr_assert_eq(read_on(0, 0, 100000), CNT + 2);
}

Test(fs_dir, asks_again_where_the_reply_ended)
{
	srv.per_reply = 70;
	cr_assert_eq(read_on(0, 0, 4096), CNT + 2);
	cr_assert_eq(srv.readdirs, 5);
	cr_assert_eq(srv.last_cookie, 2800);
	cr_assert_eq(srv.last_verf, 7);
}

Test(fs_dir, goes_on_from_any_place)
{
	srv.per_reply = 50;
	cr_assert_eq(read_on(2000, 201, 4096), 100);
	cr_assert_eq(srv.last_cookie, 2500);
	cr_assert_eq(read_on(10, 2, 500), CNT - 1);
	cr_assert_eq(read_on(1, 0, 500), CNT + 1);
	cr_assert_eq(read_on(2, 1, 500), CNT);
	cr_assert_eq(read_on(10 * CNT, 0, 500), 0);
}

Test(fs_dir, takes_cookies_with_the_top_bit)
{
	srv.first_cookie = 0xffffffffffff0000ull;
	srv.per_reply = 33;
	cr_assert_eq(read_on(0, 0, 4096), CNT + 2);
}

Test(fs_dir, reads_from_the_start_when_the_cookie_is_lost)
{
	srv.per_reply = 50;
	srv.fail = NFS4ERR_BAD_COOKIE;
	cr_assert_eq(read_on(2000, 201, 4096), 100);
	srv.fail = NFS4ERR_NOT_SAME;
	/* the last entry of a reply */
	cr_assert_eq(read_on(500, 51, 4096), 250);
	srv.fail = NFS4ERR_BAD_COOKIE;
	cr_assert_eq(read_on(3000, 0, 4096), 0);
	srv.fail = NFS4ERR_BAD_COOKIE;
	cr_assert_eq(read_at(2005, 4096, false), ESTALE);
	cr_assert(fake_all_free());
}

Test(fs_dir, refuses_reserved_cookies)
{
	srv.first_cookie = (uint64_t)-9;
	cr_assert_eq(read_at(0, 4096, false), EIO);
	srv.first_cookie = 0;
	cr_assert_eq(read_on(0, 0, 4096), CNT + 2);
}

Test(fs_dir, says_what_the_server_said)
{
	rig.fake.fail[FAKE_OTHER] = EACCES;
	cr_assert_eq(read_at(0, 4096, false), EACCES);
	rig.fake.fail[FAKE_OTHER] = ESTALE;
	cr_assert_eq(read_at(0, 4096, true), ESTALE);
	cr_assert(fake_all_free());
}

/* The n-th entry of a READDIRPLUS reply. */
static const struct fuse_direntplus *plus_nth(unsigned int n)
{
	const struct fuse_direntplus *d = (struct fuse_direntplus *)re.body;

	while (n-- > 0)
		d = (const void *)((const uint8_t *)d + FUSE_DIRENTPLUS_SIZE(d));
	cr_assert((const uint8_t *)d < re.body + re.len);
	return d;
}

Test(fs_dir, plus_counts_a_lookup_for_each_entry_it_sends)
{
	size_t before = fs_inode_count(rig.fs), cnt = 0, at = 0;

	cr_assert_eq(read_at(0, 4096, true), 0);
	while (at < re.len) {
		const struct fuse_direntplus *d = (struct fuse_direntplus *)(re.body + at);

		if (d->dirent.off > 2) {
			const struct fs_inode *in = rig_inode(d->entry_out.nodeid);

			cr_assert_neq(d->entry_out.nodeid, 0);
			cr_assert_eq(in->nlookup, 1);
			cr_assert_eq(in->refs, 0);
			cnt++;
		} else {
			cr_assert_eq(d->entry_out.nodeid, 0);
		}
		at += FUSE_DIRENTPLUS_SIZE(d);
	}
	cr_assert(cnt > 10 && cnt < CNT);
	cr_assert_eq(fs_inode_count(rig.fs) - before, cnt);
	cr_assert_eq(plus_nth(2)->entry_out.attr.size, 5);
	cr_assert_eq(plus_nth(2)->dirent.ino, srv.file->attr.fileid);
}

Test(fs_dir, plus_shows_entries_without_attributes_by_name_only)
{
	srv.rdattr_error = 3;
	cr_assert_eq(read_at(0, 4096, true), 0);
	cr_assert_eq(plus_nth(4)->entry_out.nodeid, 0);
	cr_assert_neq(plus_nth(4)->dirent.ino, 0);
	cr_assert_neq(plus_nth(5)->entry_out.nodeid, 0);
}

Test(fs_dir, plus_shows_special_files_by_name_where_users_share_the_mount)
{
	size_t before;

	rig.fs->conf.allow_other = true;
	srv.fifo = 3;
	before = fs_inode_count(rig.fs);
	cr_assert_eq(read_at(0, 1000, true), 0);
	cr_assert_eq(plus_nth(4)->entry_out.nodeid, 0);
	cr_assert_eq(plus_nth(4)->dirent.type, S_IFIFO >> 12);
	cr_assert_eq(plus_nth(4)->dirent.ino, 1003);
	cr_assert_neq(plus_nth(5)->entry_out.nodeid, 0);
	cr_assert_eq(fs_inode_count(rig.fs), before + 3, "of 1, 2 and 4");
}

/* Entry 1 waited in the pack while its file grew: the kernel must not learn the old size. */
Test(fs_dir, plus_does_not_tell_attributes_older_than_our_write)
{
	fuse_ino_t ino = rig_ino(srv.file);
	struct fuse_open_out fo;
	const struct fuse_direntplus *d;

	cr_assert_eq(read_at(0, 64, false), 0); /* asks the server, plain */
	cr_assert_eq(read_at(0, 200, true), 0); /* "." only: the rest waits */
	cr_assert_eq(rig_open(ino, O_WRONLY, &fo), 0);
	cr_assert_eq(rig_write(ino, fo.fh, 5, "more", 4, 0), 4);
	cr_assert_eq(read_at(2, 200, true), 0);
	d = plus_nth(0);
	cr_assert(d->entry_out.nodeid == 0 || d->entry_out.attr.size == 9, "size %llu",
		(unsigned long long)d->entry_out.attr.size);
	cr_assert_eq(rig_release(ino, fo.fh), 0);
}

/* Entry 1 is read while what was written to it is on its way: the size is not the old one. */
Test(fs_dir, plus_does_not_tell_what_is_behind_our_write)
{
	fuse_ino_t ino = rig_ino(srv.file);
	struct fuse_open_out fo;
	const struct fuse_direntplus *d;

	rig.fs->conf.write = FS_WRITE_EAGER;
	cr_assert_eq(rig_open(ino, O_WRONLY, &fo), 0);
	rig.fake.hold_ops = 1u << FAKE_WRITE;
	cr_assert_eq(rig_write(ino, fo.fh, 5, "more", 4, 0), 4);
	cr_assert_eq(read_at(2, 200, true), 0);
	d = plus_nth(0);
	cr_assert(d->entry_out.nodeid == 0 || d->entry_out.attr.size == 9, "size %llu",
		(unsigned long long)d->entry_out.attr.size);
	fake_release();
	rig_settle();
	cr_assert_eq(rig_release(ino, fo.fh), 0);
}

Test(fs_dir, a_directory_that_may_not_be_read_is_not_opened)
{
	rig.fake.fail[FAKE_ACCESS] = EACCES;
	cr_assert_eq(rig_call(&re, FUSE_OPENDIR, FUSE_ROOT_ID, &(struct fuse_open_in){0},
			     sizeof(struct fuse_open_in), NULL, 0),
		EACCES);
}
