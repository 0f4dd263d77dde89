/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs_dirpack.h"

static struct nfs4_dirent entry(const char *name, uint64_t cookie)
{
	struct nfs4_dirent de = {
		.cookie = cookie,
		.name = {name, (uint32_t)strlen(name)},
		.attr = {.valid = NFS4_ATTR_TYPE | NFS4_ATTR_FILEID,
			.type = NF4REG,
			.fileid = cookie + 1000},
	};

	return de;
}

static struct nfs4_dirent plus_entry(const char *name, uint64_t cookie)
{
	struct nfs4_dirent de = entry(name, cookie);

	de.attr.valid = NFS4_ATTR_STAT;
	de.attr.size = cookie * 3;
	de.fh.len = 128;
	memset(de.fh.data, (int)cookie, 128);
	return de;
}

static struct fs_dirpack *pack_of(uint64_t start, unsigned int cnt)
{
	struct fs_dirpack *p = fs_dirpack_new(start);

	for (unsigned int i = 1; i <= cnt; i++) {
		struct nfs4_dirent de =
			i % 2 ? entry("odd", start + i) : plus_entry("even", start + i);

		cr_assert(fs_dirpack_add(p, &de));
	}
	return p;
}

Test(fs_dirpack, gives_back_what_was_added)
{
	struct fs_dirpack *p = fs_dirpack_new(0);
	const struct fs_dirrec *rec;
	struct nfs4_dirent a = entry("a", 10), b = plus_entry("bb", 20);
	char name[256];
	struct nfs4_attr attr;
	struct nfs4_fh fh;
	size_t hint = 0;

	memset(name, 'x', 255);
	name[255] = '\0';
	cr_assert(fs_dirpack_add(p, &a));
	cr_assert(fs_dirpack_add(p, &b));
	b = plus_entry(name, 30);
	cr_assert(fs_dirpack_add(p, &b));
	cr_assert_eq(p->last, 30);

	cr_assert_eq(fs_dirpack_after(p, 0, &hint, &rec), FS_DIRPACK_FOUND);
	cr_assert_eq(strcmp(fs_dirpack_rec_name(rec), "a"), 0);
	cr_assert_eq(rec->cookie, 10);
	cr_assert_eq(rec->fileid, 1010);
	cr_assert_eq(rec->type, NF4REG);
	cr_assert_not(fs_dirpack_rec_attr(rec, &attr, &fh));
	rec = fs_dirpack_next(p, rec);
	cr_assert_eq(strcmp(fs_dirpack_rec_name(rec), "bb"), 0);
	cr_assert(fs_dirpack_rec_attr(rec, &attr, &fh));
	cr_assert_eq(attr.size, 60);
	cr_assert_eq(fh.len, 128);
	cr_assert_eq(fh.data[127], 20);
	rec = fs_dirpack_next(p, rec);
	cr_assert_eq(strcmp(fs_dirpack_rec_name(rec), name), 0);
	cr_assert(fs_dirpack_rec_attr(rec, &attr, &fh));
	cr_assert_null(fs_dirpack_next(p, rec));
	fs_dirpack_free(p);
}

Test(fs_dirpack, finds_each_cookie_with_any_hint)
{
	struct fs_dirpack *p = pack_of(100, 500);
	const struct fs_dirrec *rec;
	size_t hint = 0;

	for (uint64_t ck = 100; ck < 600; ck++) {
		cr_assert_eq(fs_dirpack_after(p, ck, &hint, &rec), FS_DIRPACK_FOUND);
		cr_assert_eq(rec->cookie, ck + 1);
	}
	for (uint64_t ck = 599; ck >= 100; ck -= 7) {
		cr_assert_eq(fs_dirpack_after(p, ck, &hint, &rec), FS_DIRPACK_FOUND);
		cr_assert_eq(rec->cookie, ck + 1);
		if (ck < 107)
			break;
	}
	fs_dirpack_free(p);
}

Test(fs_dirpack, tells_the_end_from_the_directorys_end)
{
	struct fs_dirpack *p = pack_of(0, 3);
	const struct fs_dirrec *rec;
	size_t hint = 0;

	cr_assert_eq(fs_dirpack_after(p, 3, &hint, &rec), FS_DIRPACK_END);
	cr_assert_eq(fs_dirpack_after(p, 4, &hint, &rec), FS_DIRPACK_MISS);
	p->eof = true;
	cr_assert_eq(fs_dirpack_after(p, 3, &hint, &rec), FS_DIRPACK_EOF);
	cr_assert_eq(fs_dirpack_after(p, 77, &hint, &rec), FS_DIRPACK_MISS);
	fs_dirpack_free(p);

	p = fs_dirpack_new(9);
	hint = 0;
	cr_assert_eq(fs_dirpack_after(p, 9, &hint, &rec), FS_DIRPACK_END);
	p->eof = true;
	cr_assert_eq(fs_dirpack_after(p, 9, &hint, &rec), FS_DIRPACK_EOF);
	cr_assert_eq(fs_dirpack_after(p, 0, &hint, &rec), FS_DIRPACK_MISS);
	fs_dirpack_free(p);
}

Test(fs_dirpack, keeps_no_more_than_its_bound)
{
	struct fs_dirpack *p = fs_dirpack_new(0);
	struct nfs4_dirent de;
	unsigned int n = 0;

	do {
		n++;
		de = plus_entry("name", n);
	} while (fs_dirpack_add(p, &de));
	cr_assert(p->len <= FS_DIRPACK_MAX);
	cr_assert(p->len > FS_DIRPACK_MAX / 2);
	cr_assert_eq(p->last, n - 1);
	fs_dirpack_free(p);
}

Test(fs_dirpack, keeps_no_attributes_of_entries_that_lack_some)
{
	struct fs_dirpack *p = fs_dirpack_new(0);
	struct nfs4_dirent de = plus_entry("e", 1);
	const struct fs_dirrec *rec;
	size_t hint = 0;

	de.attr.valid |= NFS4_ATTR_RDERROR;
	cr_assert(fs_dirpack_add(p, &de));
	cr_assert_eq(fs_dirpack_after(p, 0, &hint, &rec), FS_DIRPACK_FOUND);
	cr_assert_eq(rec->fh_len, 0);
	de = plus_entry("f", 2);
	de.attr.valid = NFS4_ATTR_RDERROR | NFS4_ATTR_MOUNTED_ON;
	de.attr.fileid = 5;
	cr_assert(fs_dirpack_add(p, &de));
	rec = fs_dirpack_next(p, (hint = 0, fs_dirpack_after(p, 0, &hint, &rec), rec));
	cr_assert_eq(rec->fh_len, 0);
	cr_assert_eq(rec->type, 0);
	cr_assert_eq(rec->fileid, 5);
	fs_dirpack_free(p);
}
