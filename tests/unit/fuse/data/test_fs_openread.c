/* SPDX-License-Identifier: BSD-3-Clause */
/* Which OPENs bring their file along, what is answered from it, and what is not. */
#include "deleg_rig.h"
#include "fs_ahead.h"
#include "fs_attr.h"
#include "fs_inode.h"
#include "fs_openread.h"

#define KIB  1024u
#define SIZE 5000u

/* Its attributes are known as they are. */
static fuse_ino_t looked_up(struct fake_file *f)
{
	fuse_ino_t nodeid = rig_ino(f);
	struct fs_inode *in = fs_inode_get(rig.fs, nodeid);

	fs_attr_update(rig.fs, in, &f->attr, fs_attr_seq(in), reactor_now(rig.fake.r));
	fs_inode_put(rig.fs, in);
	return nodeid;
}

static void set_up(void)
{
	rig_up(NULL);
	rig.lane->ahead->max = 4;
	file = fake_add("f", SIZE);
	ino = looked_up(file);
}

static void tear_down(void)
{
	rig_settle();
	rig_down();
}

TestSuite(fs_openread, .init = set_up, .fini = tear_down);

/* A read(2) of the kernel, of whole pages; what the file has of them is right. */
static void reads(uint64_t fh, uint64_t off, uint32_t len)
{
	uint64_t left = off < file->attr.size ? file->attr.size - off : 0;
	uint32_t want = len < left ? len : (uint32_t)left;

	cr_assert_eq(rig_read(&re, ino, fh, off, len), (int)want);
	cr_assert_arr_eq(re.body, file->data + off, want);
	rig_settle();
}

static void other_data(void)
{
	memset(file->data, 'n', sizeof(file->data));
	fake_touch(file);
}

static void has_brought(uint64_t cnt)
{
	cr_assert_eq(rig.stats.reads_at_open, cnt);
}

Test(fs_openread, a_small_file_comes_with_its_open)
{
	open_ok(O_RDONLY, &a);
	has_brought(1);
	cr_assert_eq(rig.lane->ahead->cnt, 1);
	reads(a.fh, 0, 8 * KIB);
	cr_assert_eq(count(FAKE_READ), 0);
	cr_assert_eq(rig.stats.reads_from_ahead, 1);
	cr_assert_eq(rig.stats.copied_bytes, 0);
	cr_assert_eq(rig.stats.bytes_read, SIZE);
	cr_assert_eq(rig.lane->ahead->cnt, 0, "who read its end gave the buffer back");
	closed(a.fh);
	cr_assert(fake_all_free());
}

Test(fs_openread, what_came_inline_is_copied)
{
	rig.fake.inline_read = true;
	open_ok(O_RDONLY, &a);
	memset(rig.fake.inline_mem, 0, SIZE);
	reads(a.fh, 0, 8 * KIB);
	cr_assert_eq(count(FAKE_READ), 0);
	cr_assert_eq(rig.stats.copied_bytes, SIZE);
	closed(a.fh);
}

Test(fs_openread, it_may_be_read_in_parts_and_not_from_the_begin)
{
	open_ok(O_RDONLY, &a);
	reads(a.fh, 0, 4 * KIB);
	cr_assert_eq(rig.lane->ahead->cnt, 1);
	reads(a.fh, 4 * KIB, 4 * KIB);
	closed(a.fh);
	fake_touch(file);
	ino = looked_up(file);
	open_ok(O_RDONLY, &a);
	reads(a.fh, 4 * KIB, 4 * KIB);
	cr_assert_eq(count(FAKE_READ), 0);
	closed(a.fh);
}

Test(fs_openread, who_reads_ahead_goes_on_behind_it)
{
	rig.fs->conf.readahead = 1u << 20;
	file->attr.size = 20 * KIB;
	fake_touch(file);
	ino = looked_up(file);
	open_ok(O_RDONLY, &a);
	for (uint32_t off = 0; off < 20 * KIB; off += 4 * KIB)
		reads(a.fh, off, 4 * KIB);
	cr_assert_eq(count(FAKE_READ), 0);
	cr_assert_eq(rig.stats.reads_ahead, 0);
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	closed(a.fh);
}

Test(fs_openread, each_close_gives_the_buffer_back)
{
	open_ok(O_RDONLY, &a);
	cr_assert_eq(rig.lane->ahead->cnt, 1);
	closed(a.fh);
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	cr_assert(fake_all_free());
}

Test(fs_openread, what_nobody_reads_goes_after_a_moment)
{
	rig.fs->conf.acregmin_s = 1;
	open_ok(O_RDONLY, &a);
	for (int i = 0; i < 1700; i++)
		rig_turn();
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	reads(a.fh, 0, 8 * KIB);
	cr_assert_eq(count(FAKE_READ), 1);
	closed(a.fh);
}

/* ---- which ---- */

static void brings_nothing(int flags)
{
	uint64_t before = rig.stats.reads_at_open;
	struct fuse_open_out out;

	open_ok(flags, &out);
	has_brought(before);
	cr_assert_null(rig.fake.last_open.read);
	closed(out.fh);
}

Test(fs_openread, who_writes_or_wants_the_servers_own_answer_gets_none)
{
	brings_nothing(O_RDWR);
	brings_nothing(O_WRONLY);
	brings_nothing(O_RDONLY | O_DIRECT);
	brings_nothing(O_RDONLY | O_TRUNC);
	file->attr.size = SIZE;
	fake_touch(file);
	ino = looked_up(file);
	rig.fs->conf.noac = true;
	brings_nothing(O_RDONLY);
	rig.fs->conf.noac = false;
	rig.fs->conf.acregmin_s = 0;
	brings_nothing(O_RDONLY);
	rig.fs->conf.acregmin_s = 3;
	fake_touch(file);
	ino = looked_up(file);
	open_ok(O_RDONLY, &a);
	has_brought(1);
	closed(a.fh);
}

/* Opened once; its size is what LOOKUP said. */
static uint64_t brought_of(const char *name, size_t size)
{
	uint64_t before = rig.stats.reads_at_open;

	file = fake_add(name, size);
	ino = looked_up(file);
	open_ok(O_RDONLY, &a);
	reads(a.fh, 0, 64 * KIB);
	closed(a.fh);
	return rig.stats.reads_at_open - before;
}

Test(fs_openread, files_of_1_byte_to_64_KiB)
{
	cr_assert_eq(brought_of("empty", 0), 0);
	cr_assert_eq(brought_of("one", 1), 1);
	cr_assert_eq(brought_of("most", 64 * KIB), 1);
	cr_assert_eq(brought_of("more", 64 * KIB + 1), 0);
	rig.fake.info.fs.rsize = 16 * KIB;
	cr_assert_eq(brought_of("rsize", 16 * KIB), 1);
	cr_assert_eq(brought_of("larger", 16 * KIB + 1), 0, "more than the server gives at once");
}

Test(fs_openread, not_what_the_kernel_has_and_keeps)
{
	open_ok(O_RDONLY, &a);
	reads(a.fh, 0, 8 * KIB);
	open_ok(O_RDONLY, &b);
	cr_assert(KEEPS(b));
	has_brought(1);
	closed(b.fh);
	closed(a.fh);
	rig_settle();
	open_ok(O_RDWR, &a);
	cr_assert_eq(rig_write(ino, a.fh, 0, "x", 1, O_RDWR), 1);
	closed(a.fh);
	open_ok(O_RDONLY, &a);
	cr_assert_not(KEEPS(a), "what we wrote it may not have as it is");
	has_brought(2);
	reads(a.fh, 0, 8 * KIB);
	closed(a.fh);
}

Test(fs_openread, not_beside_our_own_writers)
{
	open_ok(O_WRONLY, &b);
	brings_nothing(O_RDONLY);
	closed(b.fh);
}

Test(fs_openread, no_more_than_the_budget)
{
	struct fake_file *second = fake_add("g", SIZE);
	struct fuse_open_out g;

	rig.lane->ahead->max = 1;
	open_ok(O_RDONLY, &a);
	has_brought(1);
	ino = looked_up(second);
	open_ok(O_RDONLY, &g);
	has_brought(1);
	cr_assert_eq(rig.lane->ahead->cnt, 1);
	closed(g.fh);
	rig.lane->ahead->max = 4;
	rig.fake.bufs_max = rig.fake.bufs + 1;
	brings_nothing(O_RDONLY);
	rig.fake.bufs_max = 8;
	ino = looked_up(file);
	closed(a.fh);
	cr_assert(fake_all_free());
}

/* Each time without pages that could be kept. */
static bool opens(bool and_reads)
{
	uint64_t before = rig.stats.reads_at_open;

	fake_touch(file);
	ino = looked_up(file);
	open_ok(O_RDONLY, &a);
	if (and_reads)
		reads(a.fh, 0, 8 * KIB);
	closed(a.fh);
	return rig.stats.reads_at_open > before;
}

Test(fs_openread, who_never_reads_is_tried_now_and_then)
{
	unsigned int brought = 0;

	for (unsigned int i = 0; i < FS_OPENREAD_VAIN; i++)
		cr_assert(opens(false));
	for (unsigned int i = 0; i < 2 * FS_OPENREAD_TRY; i++)
		brought += opens(false);
	cr_assert_eq(brought, 2);
	while (!opens(true))
		;
	for (unsigned int i = 0; i < 5; i++)
		cr_assert(opens(true), "until it is read");
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	cr_assert(fake_all_free());
}

/* ---- what is not believed ---- */

Test(fs_openread, what_another_client_made_of_it_before_the_open_is_seen)
{
	other_data();
	open_ok(O_RDONLY, &a);
	reads(a.fh, 0, 8 * KIB);
	cr_assert_eq(re.body[0], 'n');
	cr_assert_eq(count(FAKE_READ), 0);
	closed(a.fh);
}

Test(fs_openread, what_it_was_truncated_to_is_its_end)
{
	file->attr.size = 10;
	fake_touch(file);
	open_ok(O_RDONLY, &a);
	reads(a.fh, 0, 4 * KIB);
	cr_assert_eq(count(FAKE_READ), 0);
	closed(a.fh);
	file = fake_add("g", SIZE);
	ino = looked_up(file);
	file->attr.size = 0;
	fake_touch(file);
	open_ok(O_RDONLY, &a);
	has_brought(2);
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	reads(a.fh, 0, 4 * KIB);
	cr_assert_eq(count(FAKE_READ), 1);
	closed(a.fh);
}

Test(fs_openread, what_has_grown_does_not_end_there)
{
	file->attr.size = 2 * SIZE;
	fake_touch(file);
	open_ok(O_RDONLY, &a);
	reads(a.fh, 0, 4 * KIB);
	cr_assert_eq(count(FAKE_READ), 0);
	reads(a.fh, 4 * KIB, 8 * KIB);
	cr_assert_eq(count(FAKE_READ), 1);
	closed(a.fh);
}

Test(fs_openread, a_short_read_is_no_end)
{
	rig.fake.short_count = 4 * KIB;
	open_ok(O_RDONLY, &a);
	rig.fake.short_count = 0;
	reads(a.fh, 0, 8 * KIB);
	cr_assert_eq(count(FAKE_READ), 1);
	closed(a.fh);
}

Test(fs_openread, without_its_read_the_open_is_as_good)
{
	rig.fake.no_open_read = true;
	open_ok(O_RDONLY, &a);
	has_brought(1);
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	reads(a.fh, 0, 8 * KIB);
	cr_assert_eq(count(FAKE_READ), 1);
	closed(a.fh);
}

Test(fs_openread, a_failed_open_leaves_nothing)
{
	rig.fake.fail[FAKE_OPEN] = EIO;
	cr_assert_eq(answer_after_notices(open_send(O_RDONLY)), EIO);
	rig_settle();
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	cr_assert(fake_all_free());
	rig.fake.access = ACCESS4_EXECUTE;
	cr_assert_eq(answer_after_notices(open_send(O_RDONLY)), EACCES);
	rig_settle();
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	cr_assert_eq(rig.fake.opens, 0);
	cr_assert(fake_all_free());
}

Test(fs_openread, our_write_is_seen)
{
	open_ok(O_RDONLY, &a);
	open_ok(O_WRONLY, &b);
	cr_assert_eq(rig_write(ino, b.fh, 0, "mine", 4, O_WRONLY), 4);
	reads(a.fh, 0, 8 * KIB);
	cr_assert_arr_eq(re.body, "mine", 4);
	cr_assert_eq(rig.stats.reads_from_ahead, 0);
	closed(b.fh);
	closed(a.fh);
}

/* The OPEN is on its way when somebody else here changes the file. */
Test(fs_openread, our_change_while_it_is_on_its_way_is_seen)
{
	struct fuse_setattr_in in = {.valid = FATTR_SIZE, .size = 10};
	uint64_t unique;
	struct list *node;

	rig.fake.hold_ops = 1u << FAKE_OPEN;
	unique = open_send(O_RDONLY);
	rig_settle();
	node = rig.fake.pending.next;
	list_del(node);
	cr_assert_eq(rig_call(&re, FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0), 0);
	list_push_back(&rig.fake.pending, node);
	fake_release();
	cr_assert_eq(answer_after_notices(unique), 0);
	memcpy(&a, re.body, sizeof(a));
	reads(a.fh, 0, 4 * KIB);
	cr_assert_eq(count(FAKE_READ), 1);
	cr_assert_eq(rig.lane->ahead->cnt, 0);
	closed(a.fh);
}

Test(fs_openread, a_change_that_another_open_finds_is_seen)
{
	open_ok(O_RDONLY, &a);
	other_data();
	open_ok(O_RDONLY, &b);
	reads(a.fh, 0, 8 * KIB);
	cr_assert_eq(re.body[0], 'n');
	closed(b.fh);
	closed(a.fh);
}

Test(fs_openread, a_direct_read_is_the_servers)
{
	struct fuse_read_in in = {.size = 8 * KIB, .flags = O_DIRECT};

	open_ok(O_RDONLY, &a);
	in.fh = a.fh;
	cr_assert_eq(answer_to(rig_send(FUSE_READ, ino, &in, sizeof(in), NULL, 0), 1000), 0);
	cr_assert_eq(count(FAKE_READ), 1);
	closed(a.fh);
}

/* ---- delegations, the end ---- */

Test(fs_openread, a_delegation_comes_with_the_second_open, .init = deleg_set_up)
{
	rig.lane->ahead->max = 4;
	looked_up(file);
	open_ok(O_RDONLY, &a);
	has_brought(1);
	cr_assert_eq(rig.stats.delegations, 0);
	reads(a.fh, 0, 4 * KIB);
	closed(a.fh);
	open_ok(O_RDONLY, &a);
	has_brought(1);
	cr_assert_eq(rig.stats.delegations, 1);
	closed(a.fh);
	open_ok(O_RDONLY, &a);
	cr_assert_eq(count(FAKE_OPEN), 2);
	cr_assert_eq(count(FAKE_READ), 0);
	closed(a.fh);
}

Test(fs_openread, a_lane_that_ends_gives_everything_back)
{
	open_ok(O_RDONLY, &a);
	cr_assert_eq(rig.lane->ahead->cnt, 1);
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 100 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
}
