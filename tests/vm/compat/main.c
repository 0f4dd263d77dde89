/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat MOUNT EXPORT FOLDER [TOPIC...]: each probe in EXPORT/FOLDER as MOUNT
 * shows it; a line "topic TAB probe TAB what it told" on stdout. EXPORT is the
 * server's own file system, for what is to be made or seen there. Without a
 * TOPIC all but those that have to be asked for. Not for a file system that others
 * need: it is full at times. "compat wait" ends with its input.
 */
#include "compat.h"

#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const struct topic *const topics[] = {&topic_open, &topic_append, &topic_data,
	&topic_truncate, &topic_mmap, &topic_space, &topic_copy, &topic_clone, &topic_ioctl,
	&topic_fcntl, &topic_locks, &topic_flock, &topic_times, &topic_mode, &topic_owner,
	&topic_access, &topic_names, &topic_link, &topic_rename, &topic_unlink, &topic_dirs,
	&topic_special, &topic_xattr, &topic_acl, &topic_exec, &topic_fs, &topic_exports,
	&topic_readonly, &topic_quota, &topic_full, &topic_option};

/* In memory that a probe's processes share. */
static struct {
	size_t len;
	char text[4000];
} * told;

static const char *mount_dir, *export_dir;
static char folder[NAME_MAX * 2 + 2];

/* ---- what a probe tells ---- */

void say(const char *fmt, ...)
{
	size_t room = sizeof(told->text) - told->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = snprintf(told->text + told->len, room, told->len != 0 ? " " : "");
	n += vsnprintf(told->text + told->len + n, room - (size_t)n, fmt, args);
	va_end(args);
	told->len += (size_t)n < room ? (size_t)n : room - 1;
}

const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	/* One number, two names. */
	if (error == EOPNOTSUPP)
		return "EOPNOTSUPP";
	return name != NULL ? name : "no errno";
}

long tell(long rc)
{
	say("%s", rc == -1 ? error_name(errno) : "ok");
	return rc;
}

long count(long rc)
{
	if (rc == -1)
		say("%s", error_name(errno));
	else
		say("%ld", rc);
	return rc;
}

long need(long rc, const char *call, int line)
{
	if (rc == -1) {
		say("line %d: %s: %s", line, call, error_name(errno));
		_exit(1);
	}
	return rc;
}

/* ---- users and processes ---- */

void become(uid_t uid, gid_t gid)
{
	NEED(setgroups(0, NULL));
	NEED(setresgid(gid, gid, gid));
	NEED(setresuid(uid, uid, uid));
}

static void in_child(bool user, uid_t uid, gid_t gid, void (*fn)(void))
{
	pid_t pid = (pid_t)NEED(fork());
	int status;

	if (pid == 0) {
		alarm(20);
		if (user)
			become(uid, gid);
		fn();
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0));
	if (WIFSIGNALED(status))
		say("%s", sigabbrev_np(WTERMSIG(status)));
	else if (status != 0)
		_exit(1);
}

void as(uid_t uid, gid_t gid, void (*fn)(void))
{
	in_child(true, uid, gid, fn);
}

void apart(void (*fn)(void))
{
	in_child(false, 0, 0, fn);
}

/* ---- paths ---- */

static const char *path_of(const char *dir, const char *sub, const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned int next;
	char *p = paths[next++ % 8];

	snprintf(
		p, PATH_MAX, "%s/%s%s%s", dir, sub, *sub != '\0' && *name != '\0' ? "/" : "", name);
	return p;
}

const char *on_server(const char *name)
{
	return path_of(export_dir, folder, name);
}

const char *from_root(const char *name)
{
	return path_of(mount_dir, "", name);
}

const char *server_root(const char *name)
{
	return path_of(export_dir, "", name);
}

/* ---- files ---- */

void put(const char *name, const char *text)
{
	int fd = (int)NEED(open(name, O_CREAT | O_TRUNC | O_WRONLY, 0666));

	NEED(write(fd, text, strlen(text)));
	NEED(fchmod(fd, 0666));
	NEED(close(fd));
}

void put_as(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	put(name, "text");
	NEED(chown(name, uid, gid));
	NEED(chmod(name, mode));
}

int data_file(const char *name, size_t len)
{
	int fd = (int)NEED(open(name, O_CREAT | O_TRUNC | O_RDWR, 0666));
	char *data = malloc(len);

	memset(data, 'x', len);
	NEED(write(fd, data, len) == (ssize_t)len ? 0 : -1);
	free(data);
	NEED(fchmod(fd, 0666));
	NEED(lseek(fd, 0, SEEK_SET));
	return fd;
}

int open_rw(const char *name)
{
	return (int)NEED(open(name, O_RDWR));
}

void say_text(const char *name)
{
	char text[61];
	int fd = open(name, O_RDONLY);
	ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n == -1) {
		tell(-1);
		return;
	}
	text[n] = '\0';
	say("'%s'", text);
	close(fd);
}

void say_mode(const char *name)
{
	struct stat st;

	if (lstat(name, &st) == -1)
		tell(-1);
	else
		say("%04o", st.st_mode & 07777);
}

void say_size(const char *name)
{
	struct stat st;

	count(lstat(name, &st) == -1 ? -1 : (long)st.st_size);
}

const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFBLK:
		return "block device";
	case S_IFCHR:
		return "character device";
	default:
		return "no type";
	}
}

/* ---- all of them ---- */

/*
 * On the server: the mount may be read-only. What a probe before removed may take up room for a
 * while: a client closes behind close(2), and nfsd keeps files open.
 */
static void make_folder(void)
{
	for (int tries = 0; tries < 200; tries++) {
		if (mkdir(path_of(export_dir, folder, ""), 0777) == 0)
			return;
		if (errno != ENOSPC && errno != EDQUOT)
			break;
		usleep(100000);
	}
	NEED(mkdir(path_of(export_dir, folder, ""), 0777));
}

static void begin(const struct probe *p)
{
	setpgid(0, 0);
	alarm(40);
	umask(022);
	make_folder();
	NEED(chmod(path_of(export_dir, folder, ""), 0777));
	NEED(chdir(path_of(mount_dir, folder, "")));
	p->run();
	_exit(0);
}

static void run(const struct topic *t, unsigned int number)
{
	const struct probe *p = &t->probes[number];
	size_t base = strlen(folder);
	int status;
	pid_t pid;

	snprintf(folder + base, sizeof(folder) - base, "/%s.%u", t->name, number);
	for (char *c = folder + base + 1; *c != '\0'; c++)
		*c = *c == ' ' || *c == '/' ? '_' : *c;
	memset(told, 0, sizeof(*told));
	pid = fork();
	if (pid == 0)
		begin(p);
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status)) {
		kill(-pid, SIGKILL);
		say("killed by %s", sigabbrev_np(WTERMSIG(status)));
	}
	printf("%s\t%s\t%s\n", t->name, p->name, told->text);
	fflush(stdout);
	folder[base] = '\0';
}

static bool wanted(const struct topic *t, int argc, char **argv)
{
	if (argc == 0)
		return !t->asked;
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], t->name) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "wait") == 0) /* to be seen running: topic exec */
		return read(0, &(char){0}, 1) == 0 ? 0 : 1;
	if (argc == 1 && geteuid() != getuid())
		return 3;
	if (argc < 4) {
		fprintf(stderr, "usage: compat MOUNT EXPORT FOLDER [TOPIC...]\n");
		return 2;
	}
	mount_dir = argv[1];
	export_dir = argv[2];
	snprintf(folder, sizeof(folder), "%s", argv[3]);
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED) {
		perror("compat");
		return 1;
	}
	if (mkdir(path_of(export_dir, folder, ""), 0777) == -1) {
		perror(folder);
		return 1;
	}
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
		if (wanted(topics[i], argc - 4, argv + 4))
			for (unsigned int n = 0; topics[i]->probes[n].name != NULL; n++)
				run(topics[i], n);
	return 0;
}
