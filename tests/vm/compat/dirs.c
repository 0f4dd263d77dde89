/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories and how they are listed; special files. */
#include "compat.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

static DIR *open_dir(const char *name)
{
	DIR *d = opendir(name);

	NEED(d == NULL ? -1 : 0);
	return d;
}

static void make_files(const char *dir, unsigned int n)
{
	char name[64];

	NEED(mkdir(dir, 0777));
	for (unsigned int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%u", dir, i);
		NEED(mknod(on_server(name), S_IFREG | 0644, 0));
	}
}

static void mkdir_kinds(void)
{
	struct stat st;

	put("f", "");
	tell(mkdir("d", 0777));
	tell(mkdir("d", 0777));
	tell(mkdir("f", 0777));
	tell(mkdir("", 0777));
	NEED(symlink("none", "l"));
	tell(mkdir("l", 0777));
	NEED(stat("d", &st));
	say("links %ld", (long)st.st_nlink);
	tell(mkdir("d/e", 01777));
	NEED(stat("d", &st));
	say("links %ld", (long)st.st_nlink);
	say_mode("d/e");
}

static void types(void)
{
	struct dirent *e;
	int wrong = 0, n = 0;
	DIR *d;

	put("f", "");
	NEED(mkdir("d", 0777));
	NEED(symlink("f", "l"));
	NEED(mkfifo("p", 0666));
	NEED(mknod("c", S_IFCHR | 0600, makedev(1, 3)));
	NEED(mknod("b", S_IFBLK | 0600, makedev(7, 0)));
	NEED(mknod("s", S_IFSOCK | 0600, 0));
	d = open_dir(".");
	while ((e = readdir(d)) != NULL) {
		struct stat st;

		NEED(lstat(e->d_name, &st));
		n++;
		wrong += DTTOIF(e->d_type) != (st.st_mode & S_IFMT);
	}
	say("%d entries, %d of another type", n, wrong);
}

static void numbers(void)
{
	struct dirent *e;
	struct stat st;
	DIR *d;

	NEED(mkdir("d", 0777));
	put("d/f", "");
	d = open_dir("d");
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, "..") == 0)
			NEED(lstat(".", &st));
		else if (strcmp(e->d_name, ".") == 0)
			NEED(lstat("d", &st));
		else
			NEED(lstat("d/f", &st));
		say("%s %s", e->d_name, e->d_ino == st.st_ino ? "same" : "other");
	}
}

static void first_two(void)
{
	struct dirent *e;
	DIR *d;

	NEED(mkdir("d", 0777));
	put("d/f", "");
	d = open_dir("d");
	for (int i = 0; i < 4; i++) {
		e = readdir(d);
		say("%s", e != NULL ? e->d_name : "end");
	}
}

/* Each position leads back to the same name. */
static void seeks(void)
{
	enum {
		N = 300
	};
	static char names[N + 2][NAME_MAX + 1];
	static long where[N + 2];
	struct dirent *e;
	int n = 0, wrong = 0;
	DIR *d;

	make_files("d", N);
	d = open_dir("d");
	for (where[0] = telldir(d); n < N + 2 && (e = readdir(d)) != NULL; n++) {
		strcpy(names[n], e->d_name);
		if (n + 1 < N + 2)
			where[n + 1] = telldir(d);
	}
	for (int i = 0; i < n; i++) {
		int at = i * 7 % n;

		seekdir(d, where[at]);
		e = readdir(d);
		wrong += e == NULL || strcmp(e->d_name, names[at]) != 0;
	}
	say("%d names, %d wrong", n, wrong);
}

static void rewinds(void)
{
	DIR *d;
	int n = 0;

	make_files("d", 10);
	d = open_dir("d");
	while (readdir(d) != NULL)
		;
	put("d/new", "");
	rewinddir(d);
	while (readdir(d) != NULL)
		n++;
	say("%d", n);
}

static void removed_while_listed(void)
{
	char name[NAME_MAX + 3];
	struct dirent *e;
	int removed = 0;
	DIR *d;

	make_files("d", 200);
	d = open_dir("d");
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "d/%s", e->d_name);
		removed += unlink(name) == 0;
	}
	closedir(d);
	say("%d removed", removed);
	tell(rmdir("d"));
}

/* Of 600 entries that stay none is missed and none comes twice. */
static void changed_while_listed(void)
{
	enum {
		N = 600
	};
	static unsigned char seen[N];
	char name[64];
	struct dirent *e;
	int n = 0, missed = 0, twice = 0;
	DIR *d;

	make_files("d", N);
	d = open_dir("d");
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9') {
			unsigned int i = (unsigned int)strtoul(e->d_name, NULL, 10) % N;

			twice += seen[i];
			seen[i] = 1;
		}
		if (++n % 50 == 0) {
			snprintf(name, sizeof(name), "d/new%d", n);
			put(name, "");
			NEED(rename(name, "d/x"));
			NEED(unlink("d/x"));
		}
	}
	for (int i = 0; i < N; i++)
		missed += !seen[i];
	say("%d missed, %d twice", missed, twice);
}

static void removed_directory(void)
{
	DIR *d;

	NEED(mkdir("d", 0777));
	d = open_dir("d");
	NEED(rmdir("d"));
	errno = 0;
	say("%s", readdir(d) == NULL ? (errno != 0 ? error_name(errno) : "end") : "an entry");
}

static void list_wrong(void)
{
	char buf[8];

	put("f", "");
	errno = 0;
	say("%s", opendir("f") == NULL ? error_name(errno) : "ok");
	say("%s", opendir("none") == NULL ? error_name(errno) : "ok");
	NEED(mkdir("d", 0777));
	count(getdents64((int)NEED(open("d", O_RDONLY)), buf, sizeof(buf)));
	count(getdents64((int)NEED(open("f", O_RDONLY)), buf, sizeof(buf)));
}

const struct topic topic_dirs = {.name = "directories",
	.probes = (const struct probe[]){
		{"mkdir: a new name, an existing one, over a file, \"\", over a dangling symlink; "
		 "links; one inside",
			mkdir_kinds},
		{"d_type of each kind of file", types},
		{"d_ino of ., .. and a file, and stat", numbers},
		{"order: . and .. first", first_two}, {"telldir and seekdir, 300 files", seeks},
		{"rewinddir after a file was made", rewinds},
		{"200 files removed while listed; rmdir", removed_while_listed},
		{"600 files, others made, renamed and removed while listed", changed_while_listed},
		{"readdir of a removed directory", removed_directory},
		{"opendir of a file, of no such name; getdents with 8 bytes, of a file",
			list_wrong},
		{0}}};

/* ---- special files ---- */

static void make_nodes(void)
{
	struct stat st;

	tell(mknod("c", S_IFCHR | 0600, makedev(1, 3)));
	tell(mknod("b", S_IFBLK | 0600, makedev(7, 1)));
	tell(mknod("p", S_IFIFO | 0600, 0));
	tell(mknod("s", S_IFSOCK | 0600, 0));
	tell(mknod("f", S_IFREG | 0600, 0));
	if (lstat("c", &st) == 0)
		say("%u:%u", major(st.st_rdev), minor(st.st_rdev));
}

static void nodes_root(void)
{
	make_nodes();
}

static void nodes_user(void)
{
	as(ALICE, TEAM, make_nodes);
}

static void nodes_wrong(void)
{
	put("f", "");
	tell(mknod("f", S_IFIFO | 0600, 0));
	tell(mknod("d", S_IFDIR | 0700, 0));
	tell(mknod("l", S_IFLNK | 0700, 0));
	tell(mknod("none/p", S_IFIFO | 0600, 0));
	tell(mknod("large", S_IFCHR | 0600, makedev(4095, 1048575)));
}

static void device_io(void)
{
	char c = 'x';
	int fd;

	NEED(mknod("zero", S_IFCHR | 0666, makedev(1, 5)));
	fd = (int)tell(open("zero", O_RDWR));
	count(read(fd, &c, 1));
	say("%d", c);
}

static void fifo(void)
{
	char buf[16] = "";
	pid_t pid;
	int fd;

	NEED(mkfifo("p", 0666));
	tell(open("p", O_WRONLY | O_NONBLOCK));
	pid = (pid_t)NEED(fork());
	if (pid == 0) {
		NEED(write((int)NEED(open("p", O_WRONLY)), "through", 7));
		_exit(0);
	}
	fd = (int)NEED(open("p", O_RDONLY));
	count(read(fd, buf, sizeof(buf)));
	say("%s", buf);
	NEED(waitpid(pid, NULL, 0));
	count(read(fd, buf, sizeof(buf)));
}

static void socket_file(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "s"};
	int s = (int)NEED(socket(AF_UNIX, SOCK_STREAM, 0));
	int c = (int)NEED(socket(AF_UNIX, SOCK_STREAM, 0));
	struct stat st;

	tell(bind(s, (struct sockaddr *)&addr, sizeof(addr)));
	NEED(lstat("s", &st));
	say("%s", type_name(st.st_mode));
	tell(bind(c, (struct sockaddr *)&addr, sizeof(addr)));
	tell(listen(s, 5));
	tell(connect(c, (struct sockaddr *)&addr, sizeof(addr)));
	tell(open("s", O_RDONLY));
}

const struct topic topic_special = {.name = "special files",
	.probes = (const struct probe[]){
		{"mknod by root: character, block, fifo, socket, regular; its numbers", nodes_root},
		{"mknod by a user: character, block, fifo, socket, regular", nodes_user},
		{"mknod: over a file, a directory, a symlink, below no such name, large numbers",
			nodes_wrong},
		{"a character device: open, read", device_io},
		{"a fifo: O_NONBLOCK without a reader, between two processes, end", fifo},
		{"a socket: bind, type, bind again, listen, connect, open", socket_file}, {0}}};
