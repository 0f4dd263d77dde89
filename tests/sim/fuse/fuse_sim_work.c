/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A work-load over every operation a program can ask of a file system. It
 * prints what it did and what came of it, and nothing that may differ between
 * two file systems: run it in two folders and compare.
 *
 *   fuse_sim_work DIR     runs in DIR, which must be empty, and empties it again
 *   fuse_sim_work -u DIR  the same without what only root may do
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define BIG_LEN   (3u << 20)
#define DIR_FILES 700

static bool is_root = true;

/* ---- what came of it ---- */

#define DO(call)                                                                                   \
	do {                                                                                       \
		errno = 0;                                                                         \
		say(#call, (long)(call));                                                          \
	} while (0)

static void say(const char *what, long rc)
{
	int err = errno;

	printf("%s: %ld%s%s\n", what, rc, rc < 0 ? " " : "", rc < 0 ? strerrorname_np(err) : "");
}

static void say_stat(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0) {
		printf("%s: %s\n", path, strerrorname_np(errno));
		return;
	}
	printf("%s: %o uid %u gid %u", path, st.st_mode, st.st_uid, st.st_gid);
	if (!S_ISDIR(st.st_mode))
		printf(" links %u size %lld", (unsigned int)st.st_nlink, (long long)st.st_size);
	if (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))
		printf(" rdev %u:%u", major(st.st_rdev), minor(st.st_rdev));
	putchar('\n');
}

static uint32_t sum_of(const uint8_t *p, size_t len)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * 16777619u;
	return sum;
}

static void say_content(const char *path, int flags)
{
	static uint8_t mem[BIG_LEN + 65536] __attribute__((aligned(4096)));
	int fd = open(path, O_RDONLY | flags);
	size_t len = 0;
	ssize_t n = -1;

	while (fd >= 0 && len < sizeof(mem) && (n = read(fd, mem + len, sizeof(mem) - len)) > 0)
		len += (size_t)n;
	printf("%s holds %zu bytes, sum %08x%s%s\n", path, len, sum_of(mem, len), n < 0 ? " " : "",
		n < 0 ? strerrorname_np(errno) : "");
	if (fd >= 0)
		close(fd);
}

static int make(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0640), err;

	if (fd < 0)
		return -1;
	err = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	return close(fd) == 0 ? err : -1;
}

/* A page of a mapping that cannot be read: an error, and no business of the sanitizers. */
static void on_bus(int sig)
{
	static const char text[] = "SIGBUS\n";

	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

/* ---- names ---- */

static void long_names(void)
{
	char name[257], target[4096];

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	DO(mkdir(name, 0700));
	DO(rmdir(name));
	name[255] = 'n';
	name[256] = '\0';
	DO(mkdir(name, 0700));
	DO(open(name, O_RDONLY));
	for (size_t len = 1; len <= 4001; len += 800) {
		char back[4096] = "";

		memset(target, 't', len);
		target[len] = '\0';
		DO(symlink(target, "long"));
		DO(readlink("long", back, sizeof(back) - 1));
		DO(strcmp(back, target) == 0);
		DO(unlink("long"));
	}
}

static int rename_free(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

static void names(void)
{
	char buf[64] = "";

	DO(mkdir("d", 0755));
	DO(mkdir("d", 0755));
	DO(mkdir("missing/d", 0755));
	DO(make("d/f", "one"));
	DO(rmdir("d"));
	DO(rmdir("d/f"));
	DO(unlink("d"));
	DO(unlink("missing"));
	DO(link("d/f", "d/l"));
	say_stat("d/f");
	DO(link("d/f", "d/l"));
	DO(symlink("d/f", "s"));
	DO(readlink("s", buf, sizeof(buf) - 1));
	DO(strcmp(buf, "d/f"));
	DO(readlink("d/f", buf, sizeof(buf) - 1));
	say_content("s", 0);
	DO(open("s", O_RDONLY | O_NOFOLLOW));
	DO(open("d/f/x", O_RDONLY));
	DO(open("d", O_WRONLY));
	DO(open("d/f", O_RDONLY | O_DIRECTORY));
	DO(rename("d/l", "d/r"));
	DO(make("d/t", "another"));
	DO(rename("d/r", "d/t"));
	say_content("d/t", 0);
	DO(rename("missing", "d/x"));
	DO(rename_free("missing", "d/x"));
	DO(rename_free("d/t", "d/f"));
	DO(rename_free("d/t", "d/free"));
	DO(rename_free("d/free", "d/t"));
	say_content("d/t", 0);
	say_stat("d/t");
	DO(rename_free("d", "s"));
	DO(rename_free("d", "free"));
	DO(rename_free("free", "d"));
	DO(mkdir("e", 0755));
	DO(rename_free("d", "e"));
	DO(rename("d", "e"));
	DO(rename("e", "e/inside"));
	say_content("e/t", 0);
	DO(rename("s", "e/s"));
	say_stat("e/s");
	DO(unlink("e/s"));
	DO(unlink("e/t"));
	DO(unlink("e/f"));
	DO(rmdir("e"));
	long_names();
}

static void nodes(void)
{
	DO(mknod("reg", S_IFREG | 0600, 0));
	say_stat("reg");
	DO(mknod("reg", S_IFREG | 0600, 0));
	DO(mkfifo("fifo", 0640));
	say_stat("fifo");
	DO(mknod("sock", S_IFSOCK | 0600, 0));
	say_stat("sock");
	if (is_root) {
		DO(mknod("chr", S_IFCHR | 0600, makedev(1, 3)));
		say_stat("chr");
		DO(mknod("blk", S_IFBLK | 0600, makedev(7, 200)));
		say_stat("blk");
		DO(unlink("chr"));
		DO(unlink("blk"));
	}
	DO(unlink("reg"));
	DO(unlink("fifo"));
	DO(unlink("sock"));
}

/* ---- attributes ---- */

static void say_times(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		printf("%s: atime %lld.%09ld mtime %lld.%09ld\n", path,
			(long long)st.st_atim.tv_sec, st.st_atim.tv_nsec,
			(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static void attributes(void)
{
	struct timespec t[2] = {{1000000001, 5000}, {1000000002, 123456000}};

	umask(027);
	DO(make("f", "text"));
	DO(mkdir("g", 0777));
	say_stat("f");
	say_stat("g");
	umask(022);
	DO(chmod("f", 0751));
	say_stat("f");
	DO(chmod("f", 0));
	say_stat("f");
	DO(chmod("f", 0644));
	DO(chmod("missing", 0644));
	if (is_root) {
		DO(chown("f", 1234, 5678));
		say_stat("f");
		DO(chown("f", (uid_t)-1, 99));
		say_stat("f");
		DO(symlink("f", "s"));
		DO(lchown("s", 12, 34));
		say_stat("s");
		say_stat("f");
		DO(unlink("s"));
	}
	DO(utimensat(AT_FDCWD, "f", t, 0));
	say_times("f");
	t[0].tv_nsec = UTIME_OMIT;
	t[1].tv_sec = 5;
	DO(utimensat(AT_FDCWD, "f", t, 0));
	say_times("f");
	DO(access("f", R_OK | W_OK));
	DO(access("g", R_OK | W_OK | X_OK));
	DO(access("missing", F_OK));
	DO(unlink("f"));
	DO(rmdir("g"));
}

/* ---- data ---- */

static void opening(void)
{
	char buf[16] = "";
	int fd;

	DO(open("f", O_RDWR));
	fd = open("f", O_CREAT | O_EXCL | O_RDWR, 0600);
	say("O_EXCL", fd < 0 ? -1 : 0);
	DO(write(fd, "0123456789", 10));
	DO(open("f", O_CREAT | O_EXCL | O_RDWR, 0600));
	DO(lseek(fd, 4, SEEK_SET));
	DO(read(fd, buf, 3));
	DO(strcmp(buf, "456"));
	DO(pread(fd, buf, 8, 10));
	DO(pread(fd, buf, 8, 1000));
	DO(close(fd));
	fd = open("f", O_WRONLY | O_APPEND);
	DO(write(fd, "abc", 3));
	DO(read(fd, buf, 3));
	DO(write(fd, "def", 3));
	DO(close(fd));
	say_content("f", 0);
	fd = open("f", O_RDONLY);
	DO(write(fd, "x", 1));
	DO(ftruncate(fd, 0));
	DO(close(fd));
	fd = open("f", O_WRONLY | O_TRUNC);
	say_stat("f");
	DO(write(fd, "new", 3));
	DO(fsync(fd));
	DO(fdatasync(fd));
	DO(close(fd));
	say_content("f", 0);
	fd = open("f", O_RDWR | O_SYNC);
	DO(pwrite(fd, "N", 1, 0));
	DO(close(fd));
	say_content("f", O_DIRECT);
	DO(unlink("f"));
}

static void sizes(void)
{
	static const off_t size[] = {1, 4095, 4096, 4097, 70000, 65536, 5, 0, 300000};
	int fd = open("f", O_CREAT | O_RDWR, 0644);

	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		DO(ftruncate(fd, size[i]));
		DO(pwrite(fd, "mark", 4, size[i] / 2));
		say_stat("f");
		say_content("f", i & 1 ? O_DIRECT : 0);
	}
	DO(pwrite(fd, "end", 3, 1000000));
	say_content("f", 0);
	DO(close(fd));
	DO(truncate("f", 1234));
	say_content("f", 0);
	DO(truncate("missing", 1));
	DO(unlink("f"));
}

static void unlinked(void)
{
	char buf[16] = "";
	int fd, other;

	DO(mkdir("u", 0755));
	fd = open("u/f", O_CREAT | O_RDWR, 0644);
	DO(write(fd, "still here", 10));
	DO(unlink("u/f"));
	DO(open("u/f", O_RDWR));
	DO(pwrite(fd, "STILL", 5, 0));
	DO(pread(fd, buf, 10, 0));
	DO(strcmp(buf, "STILL here"));
	other = open("u/f", O_CREAT | O_RDWR, 0644);
	DO(write(other, "the next", 8));
	DO(make("u/g", "over it"));
	DO(rename("u/g", "u/f"));
	DO(pread(other, buf, 8, 0));
	DO(close(fd));
	DO(close(other));
	say_content("u/f", 0);
	DO(unlink("u/f"));
	/* Files that were open when removed are closed behind close(2). */
	DO(rmdir("u"));
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/*
 * A removed file is closed by whoever has it open while its directory is being removed. Returns the
 * error of that, or 0; *ret_soon: the file was closed soon, so the directory can be waited for.
 */
static int close_late(bool *ret_soon)
{
	int fd, go[2], done[2], err;
	double start, end = 0;
	char c = 0;
	pid_t pid;

	if (mkdir("l", 0755) || pipe(go) || pipe(done))
		return errno;
	fd = open("l/f", O_CREAT | O_RDWR, 0644);
	if (write(fd, "late", 4) != 4)
		return errno;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(go[1]); /* else it waits for ever when its parent is killed, or gives up */
		if (read(go[0], &c, 1) == 1)
			usleep(30000);
		end = seconds();
		_exit(write(done[1], &end, sizeof(end)) != sizeof(end));
	}
	if (unlink("l/f") || close(fd))
		return errno;
	start = seconds();
	if (write(go[1], &c, 1) != 1)
		return errno;
	err = rmdir("l") ? errno : 0;
	if (waitpid(pid, NULL, 0) != pid || read(done[0], &end, sizeof(end)) != sizeof(end))
		return errno ? errno : EIO;
	*ret_soon = end - start < 0.3;
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
	return err;
}

static void closed_late(void)
{
	bool soon = false;
	int err = 0;

	/* The child of a busy machine may close it too late. */
	for (int i = 0; i < 50 && !soon; i++) {
		err = close_late(&soon);
		if (err == ENOTEMPTY && !soon)
			rmdir("l");
	}
	DO(err);
}

static void mappings(void)
{
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	char buf[16] = "";
	char *p;

	DO(ftruncate(fd, 20000));
	p = mmap(NULL, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		say("mmap", -1);
		return;
	}
	memcpy(p + 4090, "across a page", 13);
	DO(msync(p, 20000, MS_SYNC));
	DO(pread(fd, buf, 13, 4090));
	DO(strcmp(buf, "across a page"));
	DO(pwrite(fd, "from below", 10, 9000));
	DO(memcmp(p + 9000, "from below", 10));
	memcpy(p + 19990, "last bytes", 10);
	DO(munmap(p, 20000));
	DO(close(fd));
	say_content("f", 0);
	say_content("f", O_DIRECT);
	DO(unlink("f"));
}

/* Bytes of every length and alignment that matters; then out by every way there is. */
static void big(void)
{
	static const size_t part[] = {1, 511, 4096, 100000, 131072, 16384, 1048576, 7, 262144};
	static uint8_t mem[BIG_LEN];
	struct iovec iov[2] = {{mem, 5000}, {mem + 5000, 3000}};
	int fd = open("f", O_CREAT | O_RDWR, 0644), to;
	loff_t from = 0;
	off_t off = 0;

	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i * 31 + (i >> 12));
	for (size_t i = 0, done = 0; done < sizeof(mem); i++) {
		size_t n = part[i % (sizeof(part) / sizeof(part[0]))];

		n = n < sizeof(mem) - done ? n : sizeof(mem) - done;
		if (pwrite(fd, mem + done, n, (off_t)done) != (ssize_t)n)
			say("pwrite", -1);
		done += n;
	}
	DO(writev(fd, iov, 2));
	say_content("f", 0);
	say_content("f", O_DIRECT);
	to = open("g", O_CREAT | O_RDWR, 0644);
	while (off < (off_t)sizeof(mem) && sendfile(to, fd, &off, 400000) > 0)
		;
	DO(close(to));
	say_content("g", 0);
	to = open("g", O_RDWR | O_TRUNC);
	while (from < (loff_t)sizeof(mem) && copy_file_range(fd, &from, to, NULL, 500000, 0) > 0)
		;
	DO(close(to));
	say_content("g", O_DIRECT);
	to = open("g", O_RDWR | O_TRUNC | O_DIRECT);
	DO(pwrite(to, (uint8_t *)(((uintptr_t)mem + 4095) & ~(uintptr_t)4095), 1 << 20, 4096));
	DO(close(to));
	say_content("g", 0);
	DO(close(fd));
	DO(unlink("f"));
	DO(unlink("g"));
}

/* ---- directories ---- */

static void say_names(DIR *d)
{
	unsigned int cnt = 0, sum = 0;
	struct dirent *de;

	while ((de = readdir(d)) != NULL) {
		cnt++;
		sum += sum_of((uint8_t *)de->d_name, strlen(de->d_name)) * (de->d_type + 1u);
	}
	printf("%u entries, sum %08x\n", cnt, sum);
}

static void directories(void)
{
	char name[64], seen[256] = "";
	long pos = 0;
	struct dirent *de;
	DIR *d;

	DO(mkdir("d", 0755));
	for (int i = 0; i < DIR_FILES; i++) {
		snprintf(name, sizeof(name), "d/an entry with number %d", i);
		if (mknod(name, S_IFREG | 0644, 0) < 0)
			say(name, -1);
	}
	DO(mkdir("d/sub", 0755));
	DO(symlink("x", "d/link"));
	d = opendir("d");
	if (d == NULL) {
		say("opendir", -1);
		return;
	}
	say_names(d);
	rewinddir(d);
	DO(unlink("d/link"));
	say_names(d);
	rewinddir(d);
	for (int i = 0; i < 400 && (de = readdir(d)) != NULL; i++) {
		if (i == 299)
			pos = telldir(d);
		if (i == 300)
			snprintf(seen, sizeof(seen), "%s", de->d_name);
	}
	seekdir(d, pos);
	de = readdir(d);
	DO(de != NULL && strcmp(de->d_name, seen) == 0);
	DO(fsync(dirfd(d)));
	DO(closedir(d));
	for (int i = 0; i < DIR_FILES; i++) {
		snprintf(name, sizeof(name), "d/an entry with number %d", i);
		if (unlink(name) < 0)
			say(name, -1);
	}
	DO(rmdir("d/sub"));
	DO(rmdir("d"));
}

/* ---- what is answered in some way, whatever that is ---- */

static void others(void)
{
	struct flock fl = {.l_type = F_WRLCK, .l_len = 10};
	struct statvfs sv;
	char buf[256];
	int fd = open("f", O_CREAT | O_RDWR, 0644), none = 0;

	DO(statvfs(".", &sv));
	DO(sv.f_namemax);
	DO(sv.f_blocks > 0);
	none |= fcntl(fd, F_SETLK, &fl);
	none |= fcntl(fd, F_GETLK, &fl);
	none |= flock(fd, LOCK_EX | LOCK_NB);
	none |= flock(fd, LOCK_UN);
	none |= setxattr("f", "user.x", "y", 1, 0);
	none |= getxattr("f", "user.x", buf, sizeof(buf)) < 0;
	none |= listxattr("f", buf, sizeof(buf)) < 0;
	none |= removexattr("f", "user.x");
	none |= fallocate(fd, 0, 0, 1000);
	none |= fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 100);
	none |= lseek(fd, 0, SEEK_DATA) < 0;
	none |= lseek(fd, 0, SEEK_HOLE) < 0;
	(void)none;
	DO(close(fd));
	unlink("f");
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "-u") == 0)
		is_root = false;
	else if (argc != 2)
		return 2;
	if (chdir(argv[argc - 1]) < 0) {
		perror(argv[argc - 1]);
		return 1;
	}
	signal(SIGBUS, on_bus);
	setvbuf(stdout, NULL, _IOLBF, 0);
	umask(022);
	names();
	nodes();
	attributes();
	opening();
	sizes();
	unlinked();
	closed_late();
	mappings();
	big();
	directories();
	others();
	return 0;
}
