/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RENAME_NOREPLACE against a server of names and files where others change the
 * names between any two calls, and which may forget that it did one.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs_rig.h"

#define NOREPLACE 1u
#define NODES     8u
#define NAMES     16u

/* A file or a directory; those have things in them, or not. */
struct node {
	bool used, is_dir;
	uint32_t nlink, uid, in_it;
};

static struct node nodes[NODES]; /* 0 is none */
static unsigned int made;
static struct {
	char name[64];
	unsigned int node;
} names[NAMES];
static struct rig_reply re;

/* What happens at the call of this number. */
static unsigned int calls, meddle_at, lose_at, fail_at;
static void (*meddle)(void);
static int fail_err;
static bool lose_sure; /* the call did not end with an answer */

static unsigned int *at(const char *name)
{
	for (unsigned int i = 0; i < NAMES; i++)
		if (names[i].node && strcmp(names[i].name, name) == 0)
			return &names[i].node;
	return NULL;
}

static unsigned int node_at(const char *name)
{
	return at(name) ? *at(name) : 0;
}

static void put(const char *name, unsigned int node)
{
	for (unsigned int i = 0; i < NAMES; i++) {
		if (names[i].node)
			continue;
		snprintf(names[i].name, sizeof(names[i].name), "%s", name);
		names[i].node = node;
		nodes[node].nlink++;
		return;
	}
	cr_assert_fail("too many names");
}

static void take(const char *name)
{
	unsigned int node = node_at(name);

	*at(name) = 0;
	if (--nodes[node].nlink == 0)
		nodes[node].used = false;
}

static unsigned int make(const char *name, bool is_dir, uint32_t uid)
{
	cr_assert_lt(++made, NODES);
	nodes[made] = (struct node){.used = true, .is_dir = is_dir, .uid = uid};
	put(name, made);
	return made;
}

static int move(const char *from, const char *to)
{
	unsigned int src = node_at(from), dst = node_at(to);

	if (!src)
		return ENOENT;
	if (src == dst)
		return 0;
	if (dst && (nodes[src].is_dir != nodes[dst].is_dir))
		return EEXIST;
	if (dst && nodes[dst].in_it)
		return ENOTEMPTY;
	if (dst)
		take(to);
	put(to, src);
	take(from);
	return 0;
}

static int unname(const char *name)
{
	if (!at(name))
		return ENOENT;
	if (nodes[node_at(name)].in_it)
		return ENOTEMPTY;
	take(name);
	return 0;
}

/* ---- the server ---- */

static const char *text(const struct nfs4_str *s)
{
	static char buf[4][64];
	static unsigned int next;
	char *p = buf[next++ % 4];

	snprintf(p, sizeof(buf[0]), "%.*s", (int)s->len, s->p);
	return p;
}

static void describe(unsigned int node, struct nfs4_fh *fh, struct nfs4_attr *attr)
{
	*fh = (struct nfs4_fh){2, {0xee, (uint8_t)node}};
	*attr = (struct nfs4_attr){
		.valid = NFS4_ATTR_STAT,
		.type = nodes[node].is_dir ? NF4DIR : NF4REG,
		.nlink = nodes[node].nlink,
		.uid = nodes[node].uid,
		.fileid = 1000 + node,
	};
}

static int once(struct nfs4_call *call, enum fake_op op)
{
	unsigned int node;

	switch ((int)op) {
	case FAKE_LOOKUP:
		node = node_at(text(&call->u.lookup.name));
		if (!node)
			return ENOENT;
		describe(node, &call->u.lookup.fh, &call->u.lookup.attr);
		return 0;
	case FAKE_LINK:
		node = call->u.link.file->data[1];
		if (!nodes[node].used)
			return ESTALE;
		if (nodes[node].is_dir)
			return EISDIR;
		if (at(text(&call->u.link.name)))
			return EEXIST;
		put(text(&call->u.link.name), node);
		return 0;
	case FAKE_OTHER: /* CREATE */
		if (at(text(&call->u.create.name)))
			return EEXIST;
		node = make(text(&call->u.create.name), true, 1000);
		describe(node, &call->u.create.fh, &call->u.create.attr);
		return 0;
	case FAKE_RENAME:
		return move(text(&call->u.rename.from), text(&call->u.rename.to));
	case FAKE_REMOVE:
		return unname(text(&call->u.remove.name));
	default:
		return EOPNOTSUPP;
	}
}

static int serve(struct nfs4_call *call, enum fake_op op)
{
	unsigned int nr = ++calls;
	int err;

	call->resent = false;
	if (meddle && nr == meddle_at)
		meddle();
	if (nr == fail_at) {
		err = fail_err;
	} else {
		err = once(call, op);
		if (nr == lose_at) {
			if (meddle && meddle_at == 0)
				meddle();
			call->resent = true;
			err = once(call, op);
		}
	}
	call->status = err && !lose_sure ? NFS4ERR_SERVERFAULT : NFS4_OK;
	return -err;
}

static void start_over(bool is_dir)
{
	memset(nodes, 0, sizeof(nodes));
	memset(names, 0, sizeof(names));
	made = calls = meddle_at = lose_at = fail_at = 0;
	meddle = NULL;
	lose_sure = false;
	make("old", is_dir, 1000); /* node 1 */
	nodes[1].in_it = is_dir;
	rig.fake.names = serve;
}

static void set_up(void)
{
	rig_up(NULL);
	rig.uid = 1000;
	start_over(false);
}

TestSuite(fs_noreplace, .init = set_up, .fini = rig_down);

static int rename_it(void)
{
	static const char both[] = "old\0new";
	const struct fuse_rename2_in in = {.newdir = FUSE_ROOT_ID, .flags = NOREPLACE};
	int err = rig_call(&re, FUSE_RENAME2, FUSE_ROOT_ID, &in, sizeof(in), both, sizeof(both));

	rig_settle();
	cr_assert(fake_all_free());
	return err;
}

static unsigned int hidden(void)
{
	unsigned int cnt = 0;

	for (unsigned int i = 0; i < NAMES; i++)
		cnt += names[i].node && strncmp(names[i].name, ".nfs", 4) == 0;
	return cnt;
}

/* ---- nobody else is there ---- */

Test(fs_noreplace, a_file_gets_the_name)
{
	cr_assert_eq(rename_it(), 0);
	cr_expect_eq(node_at("new"), 1);
	cr_expect_eq(nodes[1].nlink, 1);
	cr_expect_eq(hidden(), 0);
}

Test(fs_noreplace, a_directory_gets_the_name)
{
	start_over(true);
	cr_assert_eq(rename_it(), 0);
	cr_expect_eq(node_at("new"), 1);
	cr_expect_eq(node_at("old"), 0);
	cr_expect_eq(hidden(), 0);
	cr_expect_not(nodes[2].used, "what was made in its place");
}

Test(fs_noreplace, what_is_there_stays)
{
	for (int is_dir = 0; is_dir < 2; is_dir++) {
		start_over(is_dir);
		make("new", false, 1000);
		cr_assert_eq(rename_it(), EEXIST);
		cr_expect_eq(node_at("new"), 2);
		cr_expect_eq(node_at("old"), 1);
		start_over(is_dir);
		make("new", true, 1000);
		cr_assert_eq(rename_it(), EEXIST);
		cr_expect(nodes[2].used, "an empty directory too");
	}
	start_over(false);
	put("new", 1);
	cr_assert_eq(rename_it(), EEXIST, "the same file");
	cr_expect_eq(nodes[1].nlink, 2);
}

Test(fs_noreplace, what_is_not_there_is_told)
{
	take("old");
	cr_assert_eq(rename_it(), ENOENT);
	cr_expect_eq(node_at("new"), 0);
}

/* ---- what cannot be done or undone ---- */

Test(fs_noreplace, where_files_have_one_name_programs_do_it_otherwise)
{
	static const int errs[] = {EOPNOTSUPP, EPERM, EMLINK, ENOSPC, EDQUOT};

	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		start_over(false);
		fail_at = 3;
		fail_err = errs[i];
		cr_assert_eq(rename_it(), EINVAL);
		cr_expect_eq(calls, 3);
		start_over(true);
		fail_at = 3;
		fail_err = errs[i];
		cr_assert_eq(rename_it(), i < 2 ? errs[i] : EINVAL);
	}
	start_over(false);
	fail_at = 3;
	fail_err = EXDEV;
	cr_assert_eq(rename_it(), EXDEV);
}

Test(fs_noreplace, nothing_is_begun_in_a_sticky_directory_of_others)
{
	static const struct {
		uint32_t caller, dir, file;
		int err;
	} rows[] = {
		{1000, 0, 5, EINVAL}, {1000, 1000, 5, 0}, {1000, 0, 1000, 0}, {0, 0, 0, EINVAL}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		start_over(false);
		rig.uid = rows[i].caller;
		nodes[1].uid = rows[i].file;
		rig.fs->root->attr.mode = 01777;
		rig.fs->root->attr.uid = rows[i].dir;
		cr_expect_eq(rename_it(), rows[i].err, "row %zu", i);
		if (rows[i].err)
			cr_expect_eq(calls, 1);
	}
}

Test(fs_noreplace, if_the_old_name_stays_the_new_one_goes)
{
	static const int errs[] = {EACCES, EPERM, ENOSPC, EDQUOT, ENAMETOOLONG};

	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		start_over(false);
		fail_at = 4;
		fail_err = errs[i];
		/* Where LINK has no room either, programs do it otherwise. */
		cr_assert_eq(
			rename_it(), errs[i] == ENOSPC || errs[i] == EDQUOT ? EINVAL : errs[i]);
		cr_expect_eq(node_at("old"), 1);
		cr_expect_eq(nodes[1].nlink, 1);
		start_over(true);
		fail_at = 4;
		fail_err = errs[i];
		cr_assert_eq(rename_it(), errs[i]);
		cr_expect_eq(node_at("old"), 1);
		cr_expect_eq(node_at("new"), 0);
		cr_expect_eq(hidden(), 0);
	}
}

/* Soft mounts, dead sessions: it may be done. */
Test(fs_noreplace, what_nobody_knows_is_not_undone)
{
	for (unsigned int nr = 3; nr <= 6; nr++) {
		for (int is_dir = 0; is_dir < 2; is_dir++) {
			start_over(is_dir);
			fail_at = nr;
			fail_err = EIO;
			lose_sure = true;
			rename_it();
			cr_expect(nodes[1].used && nodes[1].nlink > 0);
			cr_expect_leq(calls, nr + 1, "call %u: %u", nr, calls);
		}
	}
}

/* ---- others are there ---- */

static unsigned int others; /* their file or directory: must never be lost */
static bool new_gone;

static void replace_old(void)
{
	others = make("x", nodes[1].is_dir, 5);
	if (move("x", "old")) {
		unname("x");
		others = 0;
	}
}

/* By something that has another name as well. */
static void replace_old_by_link(void)
{
	replace_old();
	if (others && !nodes[1].is_dir)
		put("y", others);
}

static void recreate_old(void)
{
	if (!nodes[1].is_dir && !unname("old"))
		others = make("old", false, 5);
}

static void remove_old(void)
{
	if (!nodes[1].is_dir)
		unname("old");
}

static void move_old(void)
{
	move("old", "elsewhere");
}

static void make_new(void)
{
	if (!at("new"))
		others = make("new", false, 5);
}

static void replace_new(void)
{
	others = make("x", nodes[1].is_dir, 5);
	nodes[others].in_it = nodes[1].is_dir;
	if (move("x", "new"))
		put("new", others);
	else
		new_gone = true;
}

static void remove_new(void)
{
	if (!nodes[1].is_dir)
		new_gone = !unname("new");
}

static void into_new(void)
{
	if (node_at("new") > 1 && nodes[node_at("new")].is_dir) {
		others = node_at("new");
		nodes[others].in_it = 1;
	}
}

static void link_old(void)
{
	if (!nodes[1].is_dir && at("old"))
		put("another", 1);
}

static void (*const meddlers[])(void) = {replace_old, replace_old_by_link, recreate_old, remove_old,
	move_old, make_new, replace_new, remove_new, into_new, link_old};

/* What must be true whatever they did. */
static void judge(int err, bool is_dir, unsigned int i, unsigned int nr)
{
	const char *what = is_dir ? "directory" : "file";
	void (*did)(void) = meddlers[i];
	bool at_new = node_at("new") == 1;
	bool took_old = did == replace_old || did == replace_old_by_link || did == recreate_old ||
			did == remove_old;

	if (others)
		cr_expect(nodes[others].used && nodes[others].nlink > 0,
			"%s %u at call %u: theirs is lost", what, i, nr);
	if (others && took_old && at_new)
		cr_expect(node_at("old") == others, "%s %u at call %u: moved", what, i, nr);
	/* Ours, only if they took its only name; REMOVE cannot look how many there are. */
	if (!nodes[1].used)
		cr_expect((took_old && (nr <= 3 || nr == 7)) ||
				  ((did == replace_new || did == remove_new) && nr >= 6),
			"%s %u at call %u: ours is lost", what, i, nr);
	if (err == 0)
		cr_expect(at_new || new_gone || (others && node_at("new") == others),
			"%s %u at call %u: not renamed", what, i, nr);
	if (err == 0 && at_new)
		cr_expect_neq(node_at("old"), 1, "%s %u at call %u: both", what, i, nr);
	if (err == EEXIST)
		cr_expect(!at_new, "%s %u at call %u: it is there", what, i, nr);
	if (did == link_old && !is_dir && !fail_at)
		cr_expect_eq(err, 0, "%s %u at call %u: %s", what, i, nr, strerror(err));
	cr_expect_eq(hidden(), 0, "%s %u at call %u: something is left", what, i, nr);
}

static void with(unsigned int i, bool is_dir)
{
	start_over(is_dir);
	others = 0;
	new_gone = false;
	meddle = meddlers[i];
}

Test(fs_noreplace, whatever_others_do_meanwhile_nothing_is_lost)
{
	for (unsigned int i = 0; i < sizeof(meddlers) / sizeof(meddlers[0]); i++) {
		for (unsigned int nr = 1; nr <= 8; nr++) {
			with(i, false);
			meddle_at = nr;
			judge(rename_it(), false, i, nr);
			with(i, true);
			meddle_at = nr;
			judge(rename_it(), true, i, nr);
		}
	}
}

/* The old name stays, and the new one has to go again. */
Test(fs_noreplace, whatever_others_do_while_it_is_undone_nothing_is_lost)
{
	for (unsigned int i = 0; i < sizeof(meddlers) / sizeof(meddlers[0]); i++) {
		for (unsigned int nr = 5; nr <= 8; nr++) {
			for (int is_dir = 0; is_dir < 2; is_dir++) {
				with(i, is_dir);
				fail_at = 4;
				fail_err = EACCES;
				meddle_at = nr;
				judge(rename_it(), is_dir, i, nr);
				cr_expect(is_dir || node_at("old") || node_at("new") ||
						  node_at("elsewhere") || nr == 7,
					"%u at call %u: no name", i, nr);
			}
		}
	}
}

/* The server does each call twice, others are there between. */
Test(fs_noreplace, whatever_the_server_forgets_nothing_is_lost)
{
	for (unsigned int nr = 1; nr <= 6; nr++) {
		start_over(false);
		lose_at = nr;
		cr_expect_eq(rename_it(), 0, "file, call %u", nr);
		cr_expect_eq(node_at("new"), 1);
		cr_expect_eq(nodes[1].nlink, 1, "call %u", nr);
		start_over(true);
		lose_at = nr;
		/* An empty directory may be ours or anybody's. */
		cr_expect_eq(rename_it(), nr == 3 ? EEXIST : 0, "directory, call %u", nr);
		cr_expect_eq(node_at(nr == 3 ? "old" : "new"), 1);
		for (unsigned int i = 0; i < sizeof(meddlers) / sizeof(meddlers[0]); i++) {
			with(i, false);
			lose_at = nr;
			judge(rename_it(), false, i, nr);
			with(i, true);
			lose_at = nr;
			judge(rename_it(), true, i, nr);
		}
	}
}

/* ---- two of us ---- */

static void the_same_done(void)
{
	if (at("new"))
		return;
	put("new", 1);
	unname("old");
}

static void to_another_done(void)
{
	put("another", 1);
	unname("old");
}

Test(fs_noreplace, who_comes_second_takes_nothing_away)
{
	for (unsigned int nr = 1; nr <= 12; nr++) {
		start_over(false);
		if (nr % 2)
			put("one more", 1);
		meddle = the_same_done;
		meddle_at = (nr + 1) / 2;
		rename_it();
		cr_expect_eq(node_at("new"), 1, "call %u", meddle_at);
		start_over(false);
		if (nr % 2)
			put("one more", 1);
		meddle = the_same_done;
		meddle_at = lose_at = (nr + 1) / 2;
		rename_it();
		cr_expect_eq(node_at("new"), 1, "lost, call %u", lose_at);
	}
	/* The same file to two names: one of them. */
	for (unsigned int nr = 2; nr <= 4; nr++) {
		start_over(false);
		meddle = to_another_done;
		meddle_at = nr;
		cr_expect_eq(rename_it(), ENOENT, "call %u", nr);
		cr_expect_eq(node_at("another"), 1);
		cr_expect_eq(node_at("new"), 0, "call %u", nr);
		cr_expect_eq(hidden(), 0);
	}
}
