/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call that has to wait for the server.
 *
 *   fuse_sim_wait KIND DIR     KIND: see the table below
 *
 * Makes what the call needs in the empty folder DIR, prints `ready`, waits for
 * a byte on standard input (which others may share), prints `begins`, makes the
 * call, prints `done` or what went wrong.
 * Exit status 0: it did what it should.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>

#define LEN  300000u
#define MANY 20
#define FILL 28 /* writes of LEN: more than the mounts of these tests take behind (dirty=1) */

static uint8_t mem[LEN] __attribute__((aligned(4096)));
static uint8_t *map;
static DIR *dir;
static int fd = -1;
static volatile sig_atomic_t alarms;

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 13 + (i >> 9) + 1);
}

static bool is_right(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte_at(i))
			return false;
	return true;
}

/* The file `f`, whose pages are dropped: reading it needs the server. */
static bool make_file(void)
{
	for (size_t i = 0; i < LEN; i++)
		mem[i] = byte_at(i);
	fd = open("f", O_CREAT | O_RDWR, 0644);
	if (fd < 0 || write(fd, mem, LEN) != LEN || fsync(fd) < 0)
		return false;
	memset(mem, 0, LEN);
	return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
}

static bool make_map(void)
{
	if (!make_file())
		return false;
	map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map != MAP_FAILED;
}

static bool make_dirty_map(void)
{
	if (!make_map())
		return false;
	map[5000] = 77;
	return true;
}

static bool make_direct(void)
{
	if (!make_file() || close(fd) < 0)
		return false;
	fd = open("f", O_RDWR | O_DIRECT);
	return fd >= 0;
}

/* So is each of many files, one after the other. */
static bool make_many(void)
{
	char name[16] = "";

	for (int i = 0; i < MANY; i++) {
		int other;

		snprintf(name, sizeof(name), "m%d", i);
		other = open(name, O_CREAT | O_RDWR, 0644);
		if (other < 0 || write(other, name, sizeof(name)) != sizeof(name))
			return false;
	}
	return make_file();
}

static bool make_dir(void)
{
	if (mkdir("d", 0755) < 0)
		return false;
	dir = opendir("d");
	return dir != NULL;
}

static void on_alarm(int sig)
{
	alarms++;
}

static bool make_alarms(void)
{
	const struct itimerval often = {.it_interval = {0, 50000}, .it_value = {0, 50000}};
	const struct sigaction sa = {.sa_handler = on_alarm};

	return make_file() && sigaction(SIGALRM, &sa, NULL) == 0 &&
	       setitimer(ITIMER_REAL, &often, NULL) == 0;
}

static bool do_open(void)
{
	return open("f", O_RDONLY) >= 0;
}

static bool do_create(void)
{
	return open("new", O_CREAT | O_EXCL | O_WRONLY, 0644) >= 0;
}

static bool do_mkdir(void)
{
	return mkdir("new", 0755) == 0;
}

static bool do_unlink(void)
{
	return unlink("f") == 0;
}

static bool do_rename(void)
{
	return rename("f", "g") == 0;
}

static bool do_link(void)
{
	return link("f", "g") == 0;
}

static bool do_symlink(void)
{
	return symlink("f", "g") == 0;
}

static bool do_chmod(void)
{
	return chmod("f", 0600) == 0;
}

static bool do_truncate(void)
{
	return ftruncate(fd, 10) == 0;
}

static bool do_lookup(void)
{
	struct stat st;

	return stat("missing", &st) < 0 && errno == ENOENT;
}

static bool do_statfs(void)
{
	struct statvfs sv;

	return statvfs(".", &sv) == 0;
}

static bool do_opendir(void)
{
	dir = opendir(".");
	return dir != NULL;
}

static bool do_readdir(void)
{
	return readdir(dir) != NULL && readdir(dir) != NULL && readdir(dir) == NULL;
}

static bool do_read(void)
{
	return pread(fd, mem, LEN, 0) == LEN && is_right(mem, LEN);
}

static void *thread_main(void *arg)
{
	return do_read() ? arg : NULL;
}

/* Not the thread that gives the program its number. */
static bool do_thread(void)
{
	void *arg = NULL;
	pthread_t thread;

	return pthread_create(&thread, NULL, thread_main, mem) == 0 &&
	       pthread_join(thread, &arg) == 0 && arg != NULL;
}

static bool do_map(void)
{
	return is_right(map, LEN);
}

static bool do_write(void)
{
	memset(mem, 'w', LEN);
	for (unsigned int i = 0; i < FILL; i++)
		if (pwrite(fd, mem, LEN, (off_t)i * LEN) != LEN)
			return false;
	return true;
}

/* Written, not durable. Not before: after some seconds it is committed for its age. */
static bool make_dirty(void)
{
	memset(mem, 'x', 5000);
	return pwrite(fd, mem, 5000, 0) == 5000;
}

static bool do_fsync(void)
{
	return make_dirty() && fsync(fd) == 0;
}

static bool do_close(void)
{
	return make_dirty() && close(fd) == 0;
}

static bool do_msync(void)
{
	return fsync(fd) == 0;
}

static bool do_alarms(void)
{
	struct stat st;
	int other = open("f", O_RDONLY);

	return other >= 0 && do_read() && fstat(other, &st) == 0 && st.st_size == LEN && alarms > 0;
}

static const struct {
	const char *name;
	bool (*make)(void);
	bool (*wait)(void);
} kinds[] = {
	{"open", make_file, do_open},
	{"create", make_file, do_create},
	{"mkdir", make_file, do_mkdir},
	{"unlink", make_file, do_unlink},
	{"rename", make_file, do_rename},
	{"link", make_file, do_link},
	{"symlink", make_file, do_symlink},
	{"chmod", make_file, do_chmod},
	{"truncate", make_file, do_truncate},
	{"lookup", make_file, do_lookup},
	{"statfs", make_file, do_statfs},
	{"opendir", make_file, do_opendir},
	{"readdir", make_dir, do_readdir},
	{"read", make_file, do_read},
	{"thread", make_file, do_thread},
	{"many", make_many, do_read},
	{"direct_read", make_direct, do_read},
	{"map", make_map, do_map},
	{"write", make_file, do_write},
	{"direct_write", make_direct, do_write},
	{"fsync", make_file, do_fsync},
	{"close", make_file, do_close},
	{"alarms", make_alarms, do_alarms},
	/* the kernel writes pages back in nobody's name: not to be killed without a server */
	{"msync", make_dirty_map, do_msync},
};

/* A page of a mapping that cannot be read: an error, and no business of the sanitizers. */
static void on_bus(int sig)
{
	static const char text[] = "SIGBUS\n";

	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

static int run(unsigned int i)
{
	char byte;

	signal(SIGBUS, on_bus);
	errno = 0;
	if (!kinds[i].make()) {
		printf("%s: cannot begin: %s\n", kinds[i].name, strerror(errno));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	puts("begins");
	fflush(stdout);
	errno = 0;
	if (!kinds[i].wait()) {
		printf("%s: %s\n", kinds[i].name, strerror(errno));
		return 1;
	}
	puts("done");
	return 0;
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc == 2 && strcmp(argv[1], "-l") == 0)
			puts(kinds[i].name);
		else if (argc == 3 && strcmp(argv[1], kinds[i].name) == 0)
			return chdir(argv[2]) == 0 ? run(i) : 1;
	}
	return argc == 2 ? 0 : 2;
}
