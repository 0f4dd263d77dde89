/* SPDX-License-Identifier: BSD-3-Clause */
/* When delegations are asked for and taken, and what they save. */
#include "deleg_rig.h"
#include "fs_attr.h"

TestSuite(fs_deleg, .init = deleg_set_up, .fini = rig_down);

Test(fs_deleg, a_second_open_and_its_close_cost_no_call)
{
	struct fuse_open_out c;

	delegated();
	cr_assert_eq(count(FAKE_OPEN), 1);
	cr_assert_eq(count(FAKE_CLOSE), 1);
	open_ok(O_RDONLY, &b);
	cr_assert(KEEPS(b));
	open_ok(O_RDONLY, &c);
	cr_assert_eq(rig.fake.opens, 0);
	cr_assert_eq(rig_read(&re, ino, b.fh, 0, 10), 10);
	closed(b.fh);
	closed(c.fh);
	cr_assert_eq(count(FAKE_OPEN), 1);
	cr_assert_eq(count(FAKE_CLOSE), 1);
	cr_assert(fake_all_free());
}

Test(fs_deleg, without_any_a_lane_has_no_timer)
{
	delegated();
	rig.fs->delegs->idle_ns = NSEC_PER_SEC;
	rig_run_for(100 * NSEC_PER_SEC);
	cr_assert_null(file->deleg, "it was not used for so long");
	cr_assert_not(reactor_timer_armed(&rig.lane->deleg->timer));
}

Test(fs_deleg, an_open_beside_the_one_that_brought_it_shares_that)
{
	open_ok(O_RDONLY, &a);
	open_ok(O_RDONLY, &b);
	cr_assert_eq(count(FAKE_OPEN), 1);
	closed(a.fh);
	cr_assert_eq(count(FAKE_CLOSE), 0);
	closed(b.fh);
	cr_assert_eq(count(FAKE_CLOSE), 1);
}

Test(fs_deleg, another_user_asks_and_is_known_then)
{
	delegated();
	rig.uid = 2000;
	open_ok(O_RDONLY, &b);
	cr_assert_eq(count(FAKE_OPEN), 2);
	cr_assert_not(rig.fake.last_open.want_deleg);
	closed(b.fh);
	open_ok(O_RDONLY, &b);
	cr_assert_eq(count(FAKE_OPEN), 2);
	closed(b.fh);
}

Test(fs_deleg, a_user_who_may_not_read_asks_each_time)
{
	delegated();
	rig.uid = 2000;
	rig.fake.access = ACCESS4_EXECUTE;
	cr_assert_eq(answer_after_notices(open_send(O_RDONLY)), EACCES);
	cr_assert_eq(answer_after_notices(open_send(O_RDONLY)), EACCES);
	cr_assert_eq(count(FAKE_OPEN), 3);
	open_ok(O_RDONLY | 0x20, &b);
	cr_assert_eq(count(FAKE_OPEN), 3, "but may execute it");
	closed(b.fh);
}

Test(fs_deleg, no_more_users_are_remembered_than_there_is_room_for)
{
	delegated();
	for (uint32_t i = 0; i < FS_DELEG_USERS; i++) {
		rig.uid = 2000 + i;
		delegated();
	}
	cr_assert_eq(count(FAKE_OPEN), 1 + FS_DELEG_USERS);
	rig.uid = 2000;
	delegated();
	cr_assert_eq(count(FAKE_OPEN), 1 + FS_DELEG_USERS);
	rig.uid = 1000; /* had to make room */
	delegated();
	cr_assert_eq(count(FAKE_OPEN), 2 + FS_DELEG_USERS);
}

Test(fs_deleg, attributes_stay_good_while_it_is_held)
{
	struct fuse_attr_out attr;

	delegated();
	rig.fs->conf.acregmin_s = 0;
	rig.fs->conf.acregmax_s = 7;
	open_ok(O_RDONLY, &a);
	rig_inode(ino)->attr_to_s = 0;
	cr_assert_eq(rig_getattr(ino, &attr), 0);
	cr_assert_eq(attr.attr_valid, 7);
	cr_assert_eq(count(FAKE_GETATTR), 0);
	closed(a.fh);
}

Test(fs_deleg, attributes_that_were_on_their_way_before_it_are_not_believed)
{
	struct fs_inode *in = rig_inode(ino);
	struct nfs4_attr old;
	uint64_t seq;

	old = file->attr;
	old.size = 77;
	seq = fs_attr_seq(in);
	fake_touch(file);
	delegated();
	fs_attr_update(rig.fs, in, &old, seq, 1);
	cr_assert_eq(in->attr.size, 100);
	/* What the OPEN brought is newer, and good as long as the delegation is held. */
	open_ok(O_RDONLY, &b);
	cr_assert_eq(count(FAKE_OPEN), 1);
	closed(b.fh);
}

Test(fs_deleg, a_lock_is_the_servers)
{
	delegated();
	open_ok(O_RDONLY, &b);
	cr_assert_eq(answer_after_notices(lk_send(FUSE_SETLK, ino, b.fh, 1, F_RDLCK, 0, 9)), 0);
	cr_assert_eq(count(FAKE_CLAIM), 1);
	cr_assert_eq(rig.fake.opens, 1);
	cr_assert_eq(fake_locks.cnt, 1);
	cr_assert_eq(answer_after_notices(lk_send(FUSE_SETLK, ino, b.fh, 1, F_RDLCK, 20, 29)), 0);
	cr_assert_eq(count(FAKE_CLAIM), 1);
	closed(b.fh);
	cr_assert_eq(count(FAKE_CLOSE), 2);
	cr_assert_eq(fake_locks.cnt, 0);
	cr_assert_eq(rig.fake.opens, 0);
}

Test(fs_deleg, a_lock_whose_open_cannot_be_claimed_fails)
{
	delegated();
	open_ok(O_RDONLY, &b);
	rig.fake.fail[FAKE_CLAIM] = ETIMEDOUT;
	cr_assert_eq(setlk(ino, b.fh, 1, F_RDLCK, 0, 9), ETIMEDOUT);
	cr_assert_eq(count(FAKE_LOCK), 0);
	closed(b.fh);
	cr_assert(fake_all_free());
}

/* ---- asked for and taken ---- */

static bool asks(int flags)
{
	open_ok(flags, &a);
	closed(a.fh);
	return rig.fake.last_open.want_deleg;
}

Test(fs_deleg, is_asked_for_where_it_is_of_use)
{
	rig.fake.grant = OPEN_DELEGATE_NONE;
	cr_assert(asks(O_RDONLY));
	cr_assert_not(asks(O_RDONLY | O_DIRECT));
	cr_assert_not(asks(O_RDONLY | O_TRUNC));
	cr_assert(asks(O_RDWR));
	open_ok(O_RDWR, &b);
	cr_assert_not(asks(O_RDONLY));
	cr_assert_not(asks(O_WRONLY));
	closed(b.fh);
	rig.fs->conf.noac = true;
	cr_assert_not(asks(O_RDONLY));
	rig.fs->conf.noac = false;
	rig.fs->conf.acregmax_s = 0;
	cr_assert_not(asks(O_RDONLY));
	rig.fs->conf.acregmax_s = 60;
	rig.fs->conf.delegation = false;
	cr_assert_not(asks(O_RDONLY));
}

Test(fs_deleg, that_comes_when_somebody_began_to_write_is_refused)
{
	uint64_t unique[2];

	rig.fake.hold_ops = 1u << FAKE_OPEN;
	unique[0] = open_send(O_RDONLY);
	rig_settle();
	cr_assert(rig.fake.count[FAKE_OPEN] == 1);
	unique[1] = open_send(O_WRONLY);
	rig_settle();
	fake_release();
	cr_assert_eq(answer_to(unique[0], 3000), 0);
	cr_assert_eq(answer_after_notices(unique[1]), 0);
	cr_assert_eq(rig.fake.refused_delegs, 2, "nor one to read for who writes");
	cr_assert_null(file->deleg);
}

Test(fs_deleg, to_read_for_who_writes_is_not_asked_for_again)
{
	cr_assert(asks(O_RDWR));
	cr_assert_eq(rig.fake.refused_delegs, 1);
	cr_assert_not(asks(O_RDWR));
	cr_assert(asks(O_RDONLY));
}

Test(fs_deleg, that_comes_while_a_change_is_on_its_way_is_refused)
{
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0600};
	uint64_t unique;

	file->attr.size = 0; /* else the next OPEN brings it along (fs_openread.h) */
	rig.fake.hold_ops = 1u << FAKE_SETATTR;
	rig_send(FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	rig.fake.grant_any = true;
	unique = open_send(O_RDONLY);
	cr_assert_eq(answer_after_notices(unique), 0);
	cr_assert_eq(rig.fake.refused_delegs, 1);
	cr_assert_not(rig.fake.last_open.want_deleg);
	fake_release();
	cr_assert(rig_reply(&re, 1000));
	memcpy(&a, re.body, sizeof(a));
	rig_settle();
	cr_assert(asks(O_RDONLY), "the bar is gone with the operation");
}

Test(fs_deleg, of_a_create_is_refused)
{
	fuse_ino_t made;

	rig.fake.grant_any = true;
	cr_assert_eq(rig_create("new", O_RDWR | O_CREAT, 0600, &a, &made), 0);
	cr_assert_not(rig.fake.last_open.want_deleg);
	cr_assert_eq(rig.fake.refused_delegs, 1);
}

Test(fs_deleg, that_is_gone_before_it_is_taken_is_none)
{
	rig.fake.taken = NFS4_DELEG_GONE;
	open_ok(O_RDONLY, &a);
	rig_settle();
	cr_assert_eq(rig.fs->delegs->cnt, 0);
	open_ok(O_RDONLY, &b);
	cr_assert_eq(count(FAKE_OPEN), 2);
}

Test(fs_deleg, that_comes_with_its_recall_is_returned_at_once)
{
	rig.fake.taken = NFS4_DELEG_RECALLED;
	open_ok(O_RDONLY, &a);
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 1);
	cr_assert_eq(rig.fs->delegs->cnt, 0);
}

/* ---- to write ---- */

Test(fs_deleg, to_write_serves_readers_and_writers)
{
	rig.fake.grant = OPEN_DELEGATE_WRITE;
	open_ok(O_RDWR, &a);
	cr_assert_not_null(file->deleg);
	closed(a.fh);
	open_ok(O_WRONLY, &a);
	open_ok(O_RDONLY, &b);
	cr_assert_eq(count(FAKE_OPEN), 1);
	cr_assert_eq(rig_write(ino, a.fh, 0, "abc", 3, O_WRONLY), 3);
	closed(a.fh);
	closed(b.fh);
	cr_assert_eq(count(FAKE_DOWNGRADE), 0);
	cr_assert_eq(count(FAKE_CLOSE), 1);
}

Test(fs_deleg, to_write_does_not_let_a_user_write_who_may_not)
{
	rig.fake.grant = OPEN_DELEGATE_WRITE;
	open_ok(O_RDWR, &a);
	rig.uid = 2000;
	rig.fake.access = ACCESS4_READ;
	open_ok(O_RDONLY, &b);
	closed(b.fh);
	cr_assert_eq(count(FAKE_OPEN), 2);
	open_ok(O_RDONLY, &b);
	cr_assert_eq(count(FAKE_OPEN), 2);
	closed(b.fh);
	open_ok(O_RDWR, &b);
	cr_assert_eq(count(FAKE_OPEN), 3, "the server says no");
}

static void change_rights(uint32_t valid)
{
	struct fuse_setattr_in in = {.valid = valid, .mode = 0477, .uid = 1000, .gid = 1002};

	cr_assert_eq(
		answer_after_notices(rig_send(FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0)), 0);
	rig_settle();
}

/* Held, with what user 1000 may do, and nothing open. */
static void delegated_to_write(void)
{
	rig.fake.grant = OPEN_DELEGATE_WRITE;
	open_ok(O_RDWR, &a);
	cr_assert_not_null(file->deleg);
	closed(a.fh);
	open_ok(O_WRONLY, &a);
	closed(a.fh);
	cr_assert_eq(count(FAKE_OPEN), 1);
}

Test(fs_deleg, to_write_asks_again_what_users_may_after_a_change_of_it)
{
	static const uint32_t changes[] = {FATTR_MODE, FATTR_UID, FATTR_GID};

	delegated_to_write();
	for (unsigned int i = 0; i < 3; i++) {
		change_rights(changes[i]);
		cr_assert_not_null(file->deleg, "no reason to give it back");
		rig.fake.fail[FAKE_OPEN] = EACCES;
		cr_assert_eq(answer_after_notices(open_send(O_WRONLY)), EACCES);
		cr_assert_eq(count(FAKE_OPEN), 2 + 2 * i);
		open_ok(O_RDONLY, &a);
		closed(a.fh);
		open_ok(O_RDONLY, &a); /* what that OPEN said is good again */
		closed(a.fh);
		cr_assert_eq(count(FAKE_OPEN), 3 + 2 * i);
	}
}

Test(fs_deleg, to_write_asks_again_after_a_change_that_failed)
{
	delegated_to_write();
	rig.fake.fail[FAKE_SETATTR] = EIO;
	cr_assert_eq(answer_after_notices(rig_send(FUSE_SETATTR, ino,
			     &(struct fuse_setattr_in){.valid = FATTR_MODE},
			     sizeof(struct fuse_setattr_in), NULL, 0)),
		EIO);
	cr_assert_eq(answer_after_notices(getattr_send()), 0);
	rig.fake.fail[FAKE_OPEN] = EACCES;
	cr_assert_eq(answer_after_notices(open_send(O_WRONLY)), EACCES);
}

Test(fs_deleg, to_write_keeps_what_users_may_when_times_change)
{
	delegated_to_write();
	change_rights(FATTR_MTIME);
	open_ok(O_WRONLY, &a);
	closed(a.fh);
	cr_assert_eq(count(FAKE_OPEN), 1);
}

static bool is_of_user_2000(const struct nfs4_call *call)
{
	return call->state == FAKE_OPEN && call->cred->uid == 2000;
}

Test(fs_deleg, to_write_forgets_what_an_open_from_before_a_change_says)
{
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0600};
	uint64_t opens, changes;

	delegated_to_write();
	rig.uid = 2000;
	rig.fake.hold = true;
	opens = open_send(O_RDONLY);
	rig_settle();
	rig.uid = 1000;
	changes = rig_send(FUSE_SETATTR, ino, &in, sizeof(in), NULL, 0);
	rig_settle();
	/* Both are executed, in this order; the SETATTR is answered first. */
	rig.fake.holds = is_of_user_2000;
	fake_release();
	cr_assert_eq(answer_after_notices(changes), 0);
	rig.fake.holds = NULL;
	fake_release();
	cr_assert_eq(answer_after_notices(opens), 0);
	memcpy(&b, re.body, sizeof(b));
	cr_assert_eq(count(FAKE_OPEN), 2);
	rig.uid = 2000;
	rig.fake.fail[FAKE_OPEN] = EACCES;
	cr_assert_eq(answer_after_notices(open_send(O_RDONLY)), EACCES);
	closed(b.fh);
}

Test(fs_deleg, to_write_is_returned_after_a_commit)
{
	rig.fake.grant = OPEN_DELEGATE_WRITE;
	open_ok(O_RDWR, &a);
	cr_assert_eq(rig_write(ino, a.fh, 0, "abc", 3, O_RDWR), 3);
	rig.fake.hold_ops = 1u << FAKE_COMMIT;
	fake_recall(file);
	rig_settle();
	cr_assert_eq(count(FAKE_COMMIT), 1);
	cr_assert_eq(count(FAKE_DELEGRETURN), 0);
	fake_release();
	rig_settle();
	cr_assert_eq(count(FAKE_DELEGRETURN), 1);
}
