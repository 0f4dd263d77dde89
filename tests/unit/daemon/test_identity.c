/* SPDX-License-Identifier: BSD-3-Clause */
/* co_ownerid: the same for the same mount, never for two that run. */
#include "identity.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

static char base[] = "/tmp/rpcrdmafs-identity-XXXXXX", folder[PATH_MAX];
static char host[] = "server", path[] = "/export", mountpoint[] = "/mnt",
	    source[] = "server:/export";
static struct options o;
static struct identity id, second;

static void setup(void)
{
	log_set_level(LOG_LVL_ERR);
	cr_assert_not_null(mkdtemp(base));
	snprintf(folder, sizeof(folder), "%s/state/rpcrdmafs", base);
	o = (struct options){.host = host,
		.path = path,
		.mountpoint = mountpoint,
		.source = source,
		.port = OPTIONS_PORT};
}

static void teardown(void)
{
	if (id.kind == IDENTITY_KEPT)
		unlink(id.path);
	if (second.kind == IDENTITY_KEPT)
		unlink(second.path);
	rmdir(folder);
	snprintf(folder, sizeof(folder), "%s/state", base);
	rmdir(folder);
	cr_assert_eq(rmdir(base), 0, "something is left in %s", base);
}

TestSuite(identity, .init = setup, .fini = teardown);

static void get(struct identity *i)
{
	cr_assert_eq(identity_get(i, &o, folder), 0);
	cr_assert_eq(strncmp(i->owner, "rpcrdmafs ", 10), 0, "%s", i->owner);
	cr_assert_lt(strlen(i->owner), sizeof(i->owner));
}

static void put_text(const char *text)
{
	int fd = open(id.path, O_WRONLY | O_TRUNC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

Test(identity, the_same_mount_has_it_again)
{
	struct stat st;

	get(&id);
	cr_assert_eq(id.kind, IDENTITY_KEPT);
	cr_assert_eq(stat(id.path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(stat(folder, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0700);
	identity_put(&id);
	get(&second);
	cr_assert_str_eq(second.owner, id.owner);
	identity_put(&second);
}

Test(identity, one_whose_process_was_killed_is_free)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		identity_get(&second, &o, folder);
		raise(SIGKILL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
	get(&id);
	cr_assert_eq(id.kind, IDENTITY_KEPT);
	identity_put(&id);
}

Test(identity, two_that_run_never_share_one)
{
	char owner[IDENTITY_MAX];

	get(&id);
	get(&second);
	cr_assert_eq(second.kind, IDENTITY_RANDOM);
	cr_assert_str_neq(second.owner, id.owner);
	cr_assert_not_null(strstr(second.why, "another mount"));
	snprintf(owner, sizeof(owner), "%s", second.owner);
	identity_put(&second);
	/* The first one has its lock still. */
	get(&second);
	cr_assert_eq(second.kind, IDENTITY_RANDOM);
	cr_assert_str_neq(second.owner, owner, "a random one is made once");
	identity_put(&second);
	identity_put(&id);
}

Test(identity, another_mount_has_another_one)
{
	static char other[] = "/mnt2";

	get(&id);
	o.mountpoint = other;
	get(&second);
	cr_assert_eq(second.kind, IDENTITY_KEPT);
	cr_assert_str_neq(second.owner, id.owner);
	cr_assert_str_neq(second.path, id.path);
	identity_put(&id);
	identity_put(&second);
}

Test(identity, every_part_of_a_mount_counts)
{
	static char others[] = "other";
	char first[PATH_MAX];

	get(&id);
	snprintf(first, sizeof(first), "%s", id.path);
	identity_put(&id);
	unlink(id.path);
	for (int part = 0; part < 4; part++) {
		struct options was = o;

		if (part == 0)
			o.host = others;
		else if (part == 1)
			o.path = others;
		else if (part == 2)
			o.port++;
		else
			o.nfs.flavor++;
		get(&id);
		cr_assert_str_neq(id.path, first, "part %d", part);
		identity_put(&id);
		unlink(id.path);
		o = was;
	}
}

/* A text that is short, cut, foreign or binary is no name: it might be everybody's. */
Test(identity, a_file_that_is_not_ours_is_written_anew)
{
	static const char *const odd[] = {"", "rpcrdmafs \n", "rpcrdmafs host 0123456789abcdef",
		"0123456789abcdef0123456789abcdef0123456789abcdef\n",
		"rpcrdmafs host\t 0123456789abcdef0123456789abcdef\n"};
	char made[IDENTITY_MAX];

	get(&id);
	identity_put(&id);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		put_text(odd[i]);
		get(&id);
		cr_assert_eq(id.kind, IDENTITY_KEPT, "%zu", i);
		cr_assert_geq(strlen(id.owner), strlen("rpcrdmafs ") + 32, "%zu: %s", i, id.owner);
		snprintf(made, sizeof(made), "%s", id.owner);
		identity_put(&id);
		get(&id);
		cr_assert_str_eq(id.owner, made, "%zu", i);
		identity_put(&id);
	}
}

Test(identity, a_name_that_is_too_long_is_none)
{
	char text[2 * IDENTITY_MAX];

	get(&id);
	identity_put(&id);
	memset(text, 'a', sizeof(text));
	memcpy(text, "rpcrdmafs ", 10);
	strcpy(text + sizeof(text) - 2, "\n");
	put_text(text);
	get(&id);
	cr_assert_null(strstr(id.owner, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	identity_put(&id);
}

Test(identity, where_nothing_can_be_kept_it_is_random)
{
	snprintf(folder, sizeof(folder), "%s/file/below", base);
	snprintf(second.path, sizeof(second.path), "%s/file", base);
	close(open(second.path, O_WRONLY | O_CREAT, 0600));
	get(&id);
	cr_assert_eq(id.kind, IDENTITY_RANDOM);
	cr_assert_not_null(strstr(id.why, "Not a directory"), "%s", id.why);
	identity_put(&id);
	unlink(second.path);
	folder[0] = '\0';
	get(&id);
	cr_assert_eq(id.kind, IDENTITY_RANDOM);
	identity_put(&id);
}

Test(identity, a_link_in_its_place_is_not_followed)
{
	char target[PATH_MAX];

	get(&id);
	identity_put(&id);
	snprintf(target, sizeof(target), "%s/target", base);
	unlink(id.path);
	cr_assert_eq(symlink(target, id.path), 0);
	get(&second);
	cr_assert_eq(second.kind, IDENTITY_RANDOM);
	cr_assert_neq(access(target, F_OK), 0);
	identity_put(&second);
}

Test(identity, one_that_is_given_needs_no_file)
{
	static char given[] = "pod 7";

	o.clientid = given;
	get(&id);
	cr_assert_eq(id.kind, IDENTITY_GIVEN);
	cr_assert_str_eq(id.owner, "rpcrdmafs pod 7");
	identity_put(&id);
	cr_assert_neq(access(folder, F_OK), 0);
}

Test(identity, users_keep_theirs_in_their_homes)
{
	char where[PATH_MAX];

	if (geteuid() == 0) {
		identity_folder(where);
		cr_assert_str_eq(where, "/var/lib/rpcrdmafs");
		cr_assert_eq(seteuid(65534), 0);
	}
	setenv("HOME", "/home/u", 1);
	unsetenv("XDG_STATE_HOME");
	identity_folder(where);
	cr_assert_str_eq(where, "/home/u/.local/state/rpcrdmafs");
	setenv("XDG_STATE_HOME", "/state", 1);
	identity_folder(where);
	cr_assert_str_eq(where, "/state/rpcrdmafs");
	setenv("XDG_STATE_HOME", "relative", 1);
	unsetenv("HOME");
	identity_folder(where);
	cr_assert_str_eq(where, "");
	if (getuid() == 0)
		cr_assert_eq(seteuid(0), 0);
}
