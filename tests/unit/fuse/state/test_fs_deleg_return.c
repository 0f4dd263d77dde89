/* SPDX-License-Identifier: BSD-3-Clause */
/* How delegations end. */
#include "fs_inode.h"
#include "deleg_rig.h"

TestSuite(fs_deleg_return, .init = deleg_set_up, .fini = rig_down);

static void returned(void)
{
	cr_assert_eq(count(FAKE_DELEGRETURN), 1);
	cr_assert_eq(rig.fs->delegs->cnt, 0);
	cr_assert_null(file->deleg);
}

Test(fs_deleg_return, an_open_for_writing_comes_after_it)
{
	delegated();
	rig.fake.hold_ops = 1u << FAKE_DELEGRETURN;
	uint64_t unique = open_send(O_RDWR);

	rig_settle();
	cr_assert_eq(count(FAKE_OPEN), 1);
	cr_assert_eq(rig.fake.calls, 1, "who waits holds no call");
	fake_release();
	cr_assert_eq(answer_after_notices(unique), 0);
	returned();
	cr_assert_not(rig.fake.last_open.want_deleg && file->deleg);
}

Test(fs_deleg_return, an_open_for_reading_waits_for_one_on_its_way)
{
	uint64_t unique;

	delegated();
	rig.fake.hold_ops = 1u << FAKE_DELEGRETURN;
	fake_recall(file);
	rig_settle();
	unique = open_send(O_RDONLY);
	rig_settle();
	cr_assert_eq(count(FAKE_OPEN), 1);
	fake_release();
	cr_assert_eq(answer_after_notices(unique), 0);
	cr_assert_eq(count(FAKE_OPEN), 2);
	cr_assert_eq(count(FAKE_DELEGRETURN), 1);
}

Test(fs_deleg_return, a_recall_claims_what_each_user_has_open)
{
	struct fuse_open_out c;

	delegated();
	rig.uid = 2000;
	delegated();
	rig.fake.count[FAKE_OPEN] = 0;
	open_ok(O_RDONLY, &b);
	rig.uid = 1000;
	open_ok(O_RDONLY, &a);
	open_ok(O_RDONLY, &c);
	cr_assert_eq(count(FAKE_OPEN), 0);
	cr_assert_eq(rig.fake.opens, 0);
	fake_recall(file);
	rig_settle();
	cr_assert_eq(count(FAKE_CLAIM), 2);
	cr_assert_eq(rig.fake.opens, 2);
	returned();
	closed(a.fh);
	closed(c.fh);
	closed(b.fh);
	cr_assert_eq(rig.fake.opens, 0);
}

/* Both were served: the server must hear of the one for more. */
Test(fs_deleg_return, a_recall_claims_all_that_a_user_has_it_open_for)
{
	uint32_t access = 0;

	rig.fake.grant = OPEN_DELEGATE_WRITE;
	open_ok(O_RDWR, &a);
	closed(a.fh);
	open_ok(O_RDONLY, &a);
	open_ok(O_RDWR, &b);
	cr_assert_eq(rig.fake.opens, 0);
	fake_recall(file);
	rig_settle();
	for (int i = 0; i < FAKE_OPENS; i++)
		access |= rig.fake.held[i].owner ? rig.fake.held[i].access : 0;
	cr_assert_eq(access, OPEN4_SHARE_ACCESS_BOTH);
	returned();
	closed(a.fh);
	closed(b.fh);
	cr_assert_eq(rig.fake.opens, 0);
}

/* On another lane, which has not said yet what it opened. */
Test(fs_deleg_return, waits_for_who_is_opening_by_it)
{
	struct fs_inode *in = fs_inode_get(rig.fs, ino);
	struct fs_deleg *d;

	delegated();
	d = in->deleg;
	d->opening++;
	fake_recall(file);
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 0);
	fs_deleg_return_unuse(d);
	rig_settle();
	returned();
	fs_inode_put(rig.fs, in);
}

Test(fs_deleg_return, after_a_recall_the_server_is_asked_for_attributes)
{
	delegated();
	fake_recall(file);
	rig_settle();
	returned();
	file->attr.mode = 0600; /* it was recalled for that */
	rig.fake.count[FAKE_GETATTR] = 0;
	cr_assert_eq(answer_after_notices(getattr_send()), 0);
	cr_assert_eq(count(FAKE_GETATTR), 1);
	cr_assert_eq(((struct fuse_attr_out *)(void *)re.body)->attr.mode & 07777, 0600);
}

Test(fs_deleg_return, the_kernel_forgets_its_attributes_before_it)
{
	struct fuse_notify_inval_inode_out *inval = (void *)re.body;
	struct fuse_attr_out attr;

	delegated();
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	cr_assert_gt(attr.attr_valid, 0);
	rig.fake.hold_ops = 1u << FAKE_DELEGRETURN;
	fake_recall(file);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	cr_assert_eq(inval->ino, ino);
	cr_assert_lt(inval->off, 0);
	fake_release();
	rig_settle();
	returned();
}

Test(fs_deleg_return, goes_while_all_operations_and_calls_wait_for_it)
{
	uint64_t first = 0, answered = 0;

	delegated();
	rig.fake.calls_max = 1;
	for (unsigned int i = 0; i < 16; i++) {
		uint64_t unique = open_send(O_RDWR);

		first = i == 0 ? unique : first;
	}
	/* In any order: a thread has told the kernel something before some of them. */
	while (answered != (1u << 16) - 1) {
		cr_assert(rig_reply(&re, 3000));
		if (re.h.unique == 0)
			continue;
		cr_assert_eq(re.h.error, 0);
		cr_assert_eq(answered & 1u << (re.h.unique - first) / 2, 0);
		answered |= 1u << (re.h.unique - first) / 2;
	}
	returned();
	rig.fake.calls_max = 8;
}

Test(fs_deleg_return, of_more_than_are_returned_at_a_time)
{
	for (unsigned int i = 1; i < 7; i++) {
		char name[2] = {(char)('g' + i), '\0'};

		file = i == 1 ? file : fake_add(name, 1);
		ino = rig_ino(file);
		delegated();
	}
	cr_assert_eq(rig.fs->delegs->cnt, 6);
	rig.fake.calls_max = 2;
	fake_recall_any(0);
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 6);
	cr_assert_eq(rig.fs->delegs->cnt, 0);
	rig.fake.calls_max = 8;
}

/* ---- who comes after it ---- */

/* The request waits for the return; fake_check_clear() sees to the order. */
static void comes_after(uint32_t opcode, uint64_t node, const void *arg, size_t arg_len,
	const void *more, size_t more_len)
{
	uint64_t unique;
	unsigned int before;

	delegated();
	rig.fake.hold_ops = 1u << FAKE_DELEGRETURN;
	unique = rig_send(opcode, node, arg, arg_len, more, more_len);
	rig_settle();
	before = count(FAKE_DELEGRETURN);
	cr_assert_eq(before, 1);
	cr_assert_eq(rig.fake.calls, 1);
	fake_release();
	cr_assert_eq(answer_after_notices(unique), 0);
	returned();
	rig_settle();
	cr_assert(fake_all_free());
}

Test(fs_deleg_return, setattr_comes_after_it)
{
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0600};

	comes_after(FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0);
}

Test(fs_deleg_return, unlink_comes_after_it)
{
	comes_after(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2);
}

Test(fs_deleg_return, rename_of_it_comes_after_it)
{
	struct fuse_rename2_in in = {.newdir = FUSE_ROOT_ID};

	comes_after(FUSE_RENAME2, FUSE_ROOT_ID, &in, sizeof(in), "f\0g", 4);
}

Test(fs_deleg_return, rename_over_it_comes_after_it)
{
	struct fuse_rename2_in in = {.newdir = FUSE_ROOT_ID};

	fake_add("g", 1);
	comes_after(FUSE_RENAME2, FUSE_ROOT_ID, &in, sizeof(in), "g\0f", 4);
}

static int other_ok(struct nfs4_call *call)
{
	return 0;
}

Test(fs_deleg_return, setxattr_comes_after_it)
{
	static const char more[] = "user.x\0abc";
	struct {
		uint32_t size, flags;
	} in = {.size = 3};

	rig.fake.other = other_ok;
	rig.fake.info.minor = 2;
	rig.fake.info.fs.supported[FATTR4_XATTR_SUPPORT / 32] |= 1u << FATTR4_XATTR_SUPPORT % 32;
	comes_after(FUSE_SETXATTR, ino, &in, sizeof(in), more, 10);
}

Test(fs_deleg_return, unlink_of_an_open_file_renames_it_after_it)
{
	delegated();
	open_ok(O_RDONLY, &b);
	cr_assert_eq(answer_after_notices(rig_send(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", 2)), 0);
	cr_assert_eq(count(FAKE_RENAME), 1);
	cr_assert_eq(count(FAKE_CLAIM), 1);
	returned();
	closed(b.fh);
	cr_assert_not(file->used);
}

Test(fs_deleg_return, truncation_comes_after_it)
{
	delegated();
	open_ok(O_RDONLY | O_TRUNC, &b);
	returned();
	cr_assert_eq(file->attr.size, 0);
}

Test(fs_deleg_return, a_create_that_opens_it_for_writing_sends_it_back)
{
	fuse_ino_t made;

	delegated();
	file->granted = false; /* it was called back for that OPEN, and the reply comes first */
	cr_assert_eq(rig_create("f", O_RDWR | O_CREAT, 0600, &b, &made), 0);
	rig_settle();
	returned();
}

/* ---- by itself ---- */

Test(fs_deleg_return, idle_ones_go)
{
	rig.fs->delegs->idle_ns = 200 * NSEC_PER_MSEC;
	delegated();
	open_ok(O_RDONLY, &b);
	for (int i = 0; i < 400; i++)
		rig_turn();
	cr_assert_eq(count(FAKE_DELEGRETURN), 0, "it is open");
	closed(b.fh);
	cr_assert_eq(count(FAKE_DELEGRETURN), 0, "it was until now");
	for (int i = 0; i < 600; i++)
		rig_turn();
	returned();
}

Test(fs_deleg_return, the_oldest_idle_one_makes_room)
{
	struct fake_file *first = file, *second = fake_add("g", 1), *third = fake_add("h", 1);
	fuse_ino_t inos[3] = {ino, rig_ino(second), rig_ino(third)};

	rig.fs->delegs->max = 2;
	open_ok(O_RDONLY, &b); /* stays open */
	file = second;
	ino = inos[1];
	delegated();
	file = third;
	ino = inos[2];
	delegated();
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 1);
	cr_assert_not_null(first->deleg);
	cr_assert_null(second->deleg);
	cr_assert_not_null(third->deleg);
	ino = inos[0];
	closed(b.fh);
}

Test(fs_deleg_return, recall_any_takes_the_least_recently_used)
{
	struct fake_file *first = file, *second = fake_add("g", 1);
	fuse_ino_t inos[2] = {ino, rig_ino(second)};

	delegated();
	file = second;
	ino = inos[1];
	delegated();
	file = first;
	ino = inos[0];
	delegated(); /* used again */
	fake_recall_any(1);
	rig_settle();
	cr_assert_not_null(first->deleg);
	cr_assert_null(second->deleg);
}

Test(fs_deleg_return, recall_any_takes_those_of_the_kind_that_is_asked_for)
{
	struct fake_file *for_writing = file, *for_reading = fake_add("g", 1);

	rig.fake.grant = OPEN_DELEGATE_WRITE;
	open_ok(O_RDWR, &a);
	cr_assert_not_null(file->deleg);
	closed(a.fh);
	rig.fake.grant = OPEN_DELEGATE_READ;
	file = for_reading;
	ino = rig_ino(for_reading);
	delegated();
	fake_recall_any(0); /* of those for reading */
	rig_settle();
	cr_assert_null(for_reading->deleg);
	cr_assert_not_null(for_writing->deleg, "though it was used before the other");
}

Test(fs_deleg_return, what_the_kernel_forgets_goes)
{
	struct fuse_forget_in in = {.nlookup = 1};

	delegated();
	rig_send(FUSE_FORGET, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	returned();
	cr_assert_eq(fs_inode_count(rig.fs), 1);
}

Test(fs_deleg_return, the_end_of_the_mount_claims_what_is_open)
{
	delegated();
	open_ok(O_RDONLY, &b);
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 200 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	returned();
	cr_assert_eq(count(FAKE_CLAIM), 1);
	cr_assert_eq(count(FAKE_CLOSE), 2);
}

Test(fs_deleg_return, the_end_of_the_mount_is_not_held_up)
{
	delegated();
	open_ok(O_RDONLY, &b);
	rig.fake.dead = -ESHUTDOWN;
	fs_lane_stop(rig.lane);
	for (int i = 0; i < 200 && !rig.idle; i++)
		rig_turn();
	cr_assert(rig.idle);
	cr_assert_eq(rig.fs->delegs->cnt, 0);
	cr_assert_null(file->deleg);
	file->granted = false;
}

/* ---- when it cannot be ---- */

Test(fs_deleg_return, without_an_answer_who_waits_goes_on_and_it_is_tried_again)
{
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0600};
	uint64_t unique;

	delegated();
	rig.fake.fail[FAKE_DELEGRETURN] = ETIMEDOUT;
	rig.fake.fail[FAKE_SETATTR] = ETIMEDOUT;
	unique = rig_send(FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0);
	cr_assert_eq(answer_after_notices(unique), ETIMEDOUT);
	cr_assert_eq(count(FAKE_SETATTR), 1);
	cr_assert_eq(rig.fs->delegs->cnt, 1);
	for (int i = 0; i < 1500; i++)
		rig_turn();
	cr_assert_eq(count(FAKE_DELEGRETURN), 2);
	cr_assert_eq(rig.fs->delegs->cnt, 0);
}

Test(fs_deleg_return, a_claim_without_an_answer_is_tried_again)
{
	uint64_t start_ns;

	delegated();
	open_ok(O_RDONLY, &b);
	rig.fake.fail[FAKE_CLAIM] = ETIMEDOUT;
	fake_recall(file);
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 0);
	cr_assert_eq(rig_read(&re, ino, b.fh, 0, 10), 10);
	/* Whoever needs it to go does not wait for the next turn, a second later. */
	start_ns = reactor_now(rig.fake.r);
	open_ok(O_RDWR, &a);
	cr_assert_lt(reactor_now(rig.fake.r) - start_ns, NSEC_PER_SEC / 2);
	cr_assert_eq(count(FAKE_CLAIM), 2);
	returned();
}

/* ---- lost ---- */

Test(fs_deleg_return, a_lost_one_is_not_returned)
{
	struct fuse_attr_out attr;

	delegated();
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	open_ok(O_RDONLY, &b);
	fake_lose(file);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, FUSE_NOTIFY_INVAL_INODE);
	rig_settle();
	cr_assert_eq(rig.fs->delegs->cnt, 0);
	cr_assert_eq(count(FAKE_DELEGRETURN), 0);
	rig.fake.count[FAKE_OPEN] = 0;
	cr_assert_eq(answer_after_notices(getattr_send()), 0);
	cr_assert_eq(count(FAKE_GETATTR), 1);
	rig.fake.grant = OPEN_DELEGATE_NONE;
	open_ok(O_RDONLY, &a);
	cr_assert_eq(count(FAKE_OPEN), 1);
	closed(a.fh);
	closed(b.fh);
}

Test(fs_deleg_return, lost_while_it_is_returned_it_is_gone)
{
	uint64_t unique;

	delegated();
	open_ok(O_RDONLY, &b);
	rig.fake.hold_ops = 1u << FAKE_CLAIM;
	unique = open_send(O_RDWR);
	rig_settle();
	cr_assert_eq(count(FAKE_CLAIM), 1);
	fake_lose(file);
	rig_settle();
	cr_assert_eq(rig.fs->delegs->cnt, 1);
	fake_release();
	cr_assert_eq(answer_after_notices(unique), 0);
	rig_settle();
	cr_assert_leq(rig.fs->delegs->cnt, 1);
}
