/* SPDX-License-Identifier: BSD-3-Clause */
/* Several users on one mount: what each may do, groups, sticky directories. */
#include "compat.h"

#include <dirent.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static void try_access(void)
{
	char word[4] = "---";

	if (access("f", F_OK) != 0) {
		tell(-1);
		return;
	}
	for (int i = 0; i < 3; i++)
		if (access("f", 4 >> i) == 0)
			word[i] = "rwx"[i];
	say("%s", word);
}

static void each(uid_t uid, gid_t gid)
{
	for (unsigned int mode = 0; mode < 01000; mode += 0111) {
		NEED(chmod("f", mode));
		as(uid, gid, try_access);
	}
}

static void as_owner(void)
{
	put_as("f", ALICE, TEAM, 0);
	each(ALICE, CREW);
}

static void as_group(void)
{
	put_as("f", ALICE, TEAM, 0);
	each(BOB, TEAM);
}

static void as_others(void)
{
	put_as("f", ALICE, TEAM, 0);
	each(BOB, CREW);
}

static void as_root(void)
{
	put_as("f", ALICE, TEAM, 0);
	each(ROOT, ROOT);
}

static void only_the_first_class(void)
{
	put_as("f", ALICE, TEAM, 0077);
	as(ALICE, TEAM, try_access);
	NEED(chmod("f", 0707));
	as(BOB, TEAM, try_access);
}

static void real_and_effective(void)
{
	NEED(setresuid(ALICE, BOB, ROOT));
	tell(access("f", R_OK));
	tell(faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS));
	tell(open("f", O_RDONLY));
}

static void access_ids(void)
{
	put_as("f", ALICE, TEAM, 0400);
	apart(real_and_effective);
}

static void access_wrong(void)
{
	NEED(symlink("none", "l"));
	tell(access("none", F_OK));
	tell(access("l", F_OK));
	tell(faccessat(AT_FDCWD, "l", F_OK, AT_SYMLINK_NOFOLLOW));
	tell(access(".", 8));
}

/*
 * A name that was known before a chmod may be walked until the kernel has heard of it, which may be
 * just after chmod returned.
 */
static void stat_soon(const char *path)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	struct stat st;
	int rc = 0;

	for (int i = 0; i < 100 && (rc = stat(path, &st)) == 0; i++)
		nanosleep(&pause, NULL);
	tell(rc);
}

static void use_directory(void)
{
	tell(access("d", X_OK));
	stat_soon("d/f");
	tell(open("d", O_RDONLY));
	tell(open("d/new", O_CREAT | O_WRONLY, 0644));
	tell(unlink("d/new"));
	tell(chdir("d"));
}

static void directory_mode(mode_t mode)
{
	NEED(mkdir("d", 0777));
	put("d/f", "");
	NEED(chmod("d", mode));
	as(ALICE, TEAM, use_directory);
}

static void directory_0(void)
{
	directory_mode(0700);
}

static void directory_x(void)
{
	directory_mode(0711);
}

static void directory_r(void)
{
	directory_mode(0744);
}

static void directory_wx(void)
{
	directory_mode(0733);
}

/* Root has looked at it before, so that the name is cached. */
static void directory_cached(void)
{
	struct stat st;

	NEED(mkdir("d", 0777));
	put("d/f", "");
	NEED(stat("d/f", &st));
	NEED(chmod("d", 0700));
	NEED(stat("d/f", &st));
	as(ALICE, TEAM, use_directory);
}

static void list_names_only(void)
{
	DIR *d = opendir("d");
	int n = 0;

	if (d == NULL) {
		tell(-1);
		return;
	}
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	say("%d names", n);
	stat_soon("d/f");
}

static void readable_only(void)
{
	NEED(mkdir("d", 0777));
	put("d/f", "");
	NEED(chmod("d", 0744));
	as(ALICE, TEAM, list_names_only);
}

static unsigned int ngroups;

static void with_groups(void)
{
	gid_t groups[64];

	/* The one that counts is the last. */
	for (unsigned int i = 0; i < ngroups; i++)
		groups[i] = i + 1 == ngroups ? TEAM + 5000 : 5000 + i;
	NEED(setgroups(ngroups, groups));
	NEED(setresgid(CREW, CREW, CREW));
	NEED(setresuid(BOB, BOB, BOB));
	tell(open("f", O_RDWR));
}

static void groups(unsigned int n)
{
	put_as("f", ALICE, TEAM + 5000, 0660);
	ngroups = n;
	apart(with_groups);
}

static void groups_1(void)
{
	groups(1);
}

static void groups_16(void)
{
	groups(16);
}

static void groups_17(void)
{
	groups(17);
}

static void in_sticky(void)
{
	tell(unlink("d/f"));
	tell(rename("d/f", "d/g"));
	tell(rmdir("d/d"));
	put("d/own", "");
	tell(rename("d/own", "d/f"));
	tell(unlink("d/own"));
}

static void sticky(void)
{
	NEED(mkdir("d", 0777));
	NEED(chmod("d", 01777));
	put_as("d/f", ALICE, TEAM, 0666);
	NEED(mkdir("d/d", 0777));
	as(BOB, CREW, in_sticky);
}

static void sticky_owner(void)
{
	NEED(mkdir("d", 0777));
	NEED(chown("d", BOB, CREW));
	NEED(chmod("d", 01777));
	put_as("d/f", ALICE, TEAM, 0666);
	NEED(mkdir("d/d", 0777));
	as(BOB, CREW, in_sticky);
}

static void use_own(void)
{
	NEED(close((int)NEED(open("mine", O_CREAT | O_RDWR, 0600))));
	tell(access("mine", R_OK));
}

static void use_foreign(void)
{
	tell(open("mine", O_RDONLY));
}

static void two_users(void)
{
	as(ALICE, TEAM, use_own);
	as(BOB, TEAM, use_foreign);
	as(ALICE, CREW, use_foreign);
}

static void read_it(void)
{
	char c = 0;
	int fd = (int)tell(open("f", O_RDONLY));

	count(read(fd, &c, 1));
}

/* What root has read lies in the page cache. */
static void cached_for_root(void)
{
	put_as("f", ALICE, TEAM, 0600);
	say_text("f");
	as(BOB, CREW, read_it);
	as(ALICE, CREW, read_it);
}

static void right_taken(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(BOB, CREW, read_it);
	NEED(chmod("f", 0600));
	as(BOB, CREW, read_it);
	NEED(chmod("f", 0644));
	as(BOB, CREW, read_it);
}

/* ---- special files ---- */

static void use(const char *name)
{
	char text[10] = "";
	int fd = (int)tell(open(name, O_RDWR | O_NONBLOCK));

	if (fd < 0)
		return;
	count(write(fd, "foreign", 7));
	say("'%.*s'", (int)read(fd, text, sizeof(text)), text);
}

static void use_fifo(void)
{
	use("p");
}

/* Is it the owner's pipe that another user gets? The owner reads afterwards, and sees. */
static void fifo_of(mode_t mode)
{
	char text[10] = "";
	ssize_t n;
	int fd;

	NEED(mknod("p", S_IFIFO | 0600, 0));
	NEED(chown("p", ALICE, TEAM));
	NEED(chmod("p", mode));
	fd = (int)NEED(open("p", O_RDWR | O_NONBLOCK));
	NEED(write(fd, "own", 3));
	as(BOB, CREW, use_fifo);
	n = read(fd, text, sizeof(text));
	say("'%.*s'", n > 0 ? (int)n : 0, text);
}

static void fifo_0600(void)
{
	fifo_of(0600);
}

static void fifo_0606(void)
{
	fifo_of(0606);
}

static void dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "s"};
	int fd = (int)NEED(socket(AF_UNIX, SOCK_STREAM, 0));

	tell(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
}

/* Root listens; the name is ALICE's. */
static void socket_of_another(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "s"};
	int fd = (int)NEED(socket(AF_UNIX, SOCK_STREAM, 0));

	NEED(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	NEED(listen(fd, 9));
	NEED(chown("s", ALICE, TEAM));
	NEED(chmod("s", 0700));
	as(ALICE, TEAM, dial);
	as(BOB, CREW, dial);
	as(ROOT, ROOT, dial);
	NEED(chmod("s", 0702));
	as(BOB, CREW, dial);
}

static void see(const char *name)
{
	struct stat st;

	if (tell(stat(name, &st)) == 0)
		say("%s %o %d", type_name(st.st_mode), (unsigned int)st.st_mode & 07777,
			(int)st.st_uid);
}

static void see_all(void)
{
	see("p");
	see("s");
}

static void special_seen(void)
{
	NEED(mknod("p", S_IFIFO | 0600, 0));
	NEED(mknod("s", S_IFSOCK | 0600, 0));
	NEED(chown("p", ALICE, TEAM));
	as(BOB, CREW, see_all);
	as(ALICE, TEAM, see_all);
}

static void rename_and_remove(void)
{
	tell(rename("p", "q"));
	tell(link("q", "r"));
	see("r");
	tell(chmod("q", 0666));
	tell(unlink("q"));
	use("r");
}

/* By names that he may not use: what one does to a name does not ask for the file's mode. */
static void special_changed(void)
{
	NEED(chmod(".", 0777));
	NEED(mknod("p", S_IFIFO | 0600, 0));
	as(BOB, CREW, rename_and_remove);
	see("r");
}

const struct topic topic_access = {.name = "users",
	.probes = (const struct probe[]){
		{"access by the owner, modes 0000, 0111 to 0777", as_owner},
		{"access by the group, modes 0000, 0111 to 0777", as_group},
		{"access by others, modes 0000, 0111 to 0777", as_others},
		{"access by root, modes 0000, 0111 to 0777", as_root},
		{"access: the owner of 0077, the group of 0707", only_the_first_class},
		{"access by the real user, AT_EACCESS by the effective one, open", access_ids},
		{"access: no such name, a dangling symlink, with NOFOLLOW, mode 8", access_wrong},
		{"a directory of 0700 for others: access, stat inside, list, create, unlink, chdir",
			directory_0},
		{"a directory of 0711 for others", directory_x},
		{"a directory of 0744 for others", directory_r},
		{"a directory of 0733 for others", directory_wx},
		{"a directory of 0700 for others, its names known here already", directory_cached},
		{"a directory of 0744: names, stat", readable_only},
		{"a right that comes from the only group", groups_1},
		{"a right that comes from the 16th group", groups_16},
		{"a right that comes from the 17th group", groups_17},
		{"sticky directory of another: unlink, rename, rmdir, rename over, unlink own",
			sticky},
		{"sticky directory of one's own: unlink, rename, rmdir, rename over, unlink own",
			sticky_owner},
		{"a file of 0600: its owner; another user; the owner in another group", two_users},
		{"a file of 0600 that root has read: open and read by others, by the owner",
			cached_for_root},
		{"a right that is taken, and given again", right_taken},
		{"a fifo of 0600: another user opens, writes, reads; then its owner reads",
			fifo_0600},
		{"a fifo of 0606: the same", fifo_0606},
		{"connect to a socket of 0700: its owner, another, root; another to 0702",
			socket_of_another},
		{"stat of a fifo and a socket of 0600, by another, by the fifo's owner",
			special_seen},
		{"a fifo of 0600: another user renames, links, stats, chmods, unlinks, opens",
			special_changed},
		{0}}};
