/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings of files, and programs that are run from there. */
#include "compat.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char *map_of(int fd, int prot, int flags)
{
	char *map = mmap(NULL, 8192, prot, flags, fd, 0);

	NEED(map == MAP_FAILED ? -1 : 0);
	return map;
}

static long try_map(int fd, int prot, int flags)
{
	return mmap(NULL, 4096, prot, flags, fd, 0) == MAP_FAILED ? -1 : 0;
}

static char byte_of(const char *name, off_t off)
{
	char c = '-';
	int fd = (int)NEED(open(name, O_RDONLY));

	NEED(pread(fd, &c, 1, off));
	close(fd);
	return c;
}

static void shared_msync(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	map[100] = 'm';
	say("%c", byte_of("f", 100));
	tell(msync(map, 8192, MS_SYNC));
	say("%c", byte_of(on_server("f"), 100));
}

static void shared_munmap(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	map[100] = 'm';
	tell(munmap(map, 8192));
	tell(fsync(fd));
	say("%c", byte_of(on_server("f"), 100));
}

static void shared_after_close(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	NEED(close(fd));
	map[100] = 'm';
	tell(munmap(map, 8192));
	NEED(close(open_rw("f")));
	say("%c", byte_of("f", 100));
	sync();
	say("%c", byte_of(on_server("f"), 100));
}

static void shared_by_two(void)
{
	int fd = data_file("f", 8192);
	char *a = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	char *b = map_of(open_rw("f"), PROT_READ | PROT_WRITE, MAP_SHARED);

	a[7] = 'm';
	say("%c", b[7]);
}

static void write_seen(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ, MAP_SHARED);

	say("%c", map[9]);
	NEED(pwrite(fd, "w", 1, 9));
	say("%c", map[9]);
}

static void private(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	map[100] = 'm';
	NEED(close(fd));
	say("%c", byte_of("f", 100));
}

static void protections(void)
{
	int reading, writing;

	NEED(close(data_file("f", 4096)));
	NEED(mkdir("d", 0777));
	reading = (int)NEED(open("f", O_RDONLY));
	writing = (int)NEED(open("f", O_WRONLY));
	tell(try_map(reading, PROT_READ | PROT_WRITE, MAP_SHARED));
	tell(try_map(reading, PROT_READ | PROT_WRITE, MAP_PRIVATE));
	tell(try_map(writing, PROT_WRITE, MAP_SHARED));
	tell(try_map(reading, PROT_READ | PROT_EXEC, MAP_PRIVATE));
	tell(try_map(reading, PROT_READ | PROT_EXEC, MAP_SHARED));
	tell(try_map((int)NEED(open("d", O_RDONLY)), PROT_READ, MAP_SHARED));
}

static void validate(void)
{
	int fd = data_file("f", 4096);

	tell(try_map(fd, PROT_READ, MAP_SHARED_VALIDATE));
	tell(try_map(fd, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC));
	tell(try_map(fd, PROT_READ, MAP_SHARED | MAP_LOCKED | MAP_POPULATE));
}

static void touch_second_page(void)
{
	char *map = map_of(open_rw("f"), PROT_READ, MAP_SHARED);

	say("%d", map[4095]);
	say("%d", map[4096]);
}

static void past_end(void)
{
	NEED(close(data_file("f", 100)));
	apart(touch_second_page);
}

static void truncated(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ, MAP_SHARED);

	say("%c", map[5000]);
	NEED(ftruncate(fd, 100));
	say("%c", map[5000]);
}

static void after_truncate(void)
{
	apart(truncated);
}

static void extended(void)
{
	int fd = data_file("f", 100);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	map[0] = 'm';
	NEED(ftruncate(fd, 8192));
	map[5000] = 'm';
	tell(msync(map, 8192, MS_SYNC));
	say("%c %c", byte_of(on_server("f"), 0), byte_of(on_server("f"), 5000));
	say_size(on_server("f"));
}

/* What was written behind the end in the last page is not in the file. */
static void tail(void)
{
	int fd = data_file("f", 100);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED), c = 'x';

	map[200] = 'm';
	tell(msync(map, 4096, MS_SYNC));
	say_size(on_server("f"));
	NEED(ftruncate(fd, 300));
	NEED(pread(fd, &c, 1, 200));
	say("%d", c);
}

static void direct(void)
{
	int fd;

	NEED(close(data_file("f", 8192)));
	fd = (int)NEED(open("f", O_RDWR | O_DIRECT));
	tell(try_map(fd, PROT_READ | PROT_WRITE, MAP_SHARED));
	tell(try_map(fd, PROT_READ, MAP_PRIVATE));
}

static void unlinked(void)
{
	int fd = data_file("f", 8192);
	char *map;

	NEED(unlink("f"));
	map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	map[100] = 'm';
	tell(msync(map, 8192, MS_SYNC));
	NEED(close(fd));
	say("%c", map[100]);
	tell(munmap(map, 8192));
}

static void advise(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	tell(madvise(map, 8192, MADV_WILLNEED));
	tell(madvise(map, 8192, MADV_DONTNEED));
	tell(madvise(map, 8192, MADV_POPULATE_WRITE));
	tell(mlock(map, 8192));
}

static void advise_remove(void)
{
	int fd = data_file("f", 8192);
	char *map = map_of(fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	tell(madvise(map, 4096, MADV_REMOVE));
	say("%d %c", map[0], map[4096]);
}

/* ---- exec ---- */

static void copy_program(const char *name)
{
	char buf[65536];
	int in = (int)NEED(open("/proc/self/exe", O_RDONLY));
	int out = (int)NEED(open(name, O_CREAT | O_WRONLY, 0755));
	ssize_t n;

	while ((n = NEED(read(in, buf, sizeof(buf)))) > 0)
		NEED(write(out, buf, (size_t)n));
	NEED(close(out));
}

/* This program without arguments ends with 2; with 3 if it has another user's rights. */
static void run(const char *name)
{
	pid_t pid = (pid_t)NEED(fork());
	int status;

	if (pid == 0) {
		NEED(dup2((int)NEED(open("/dev/null", O_WRONLY)), 2));
		execl(name, name, NULL);
		tell(-1);
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		say("ran");
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		say("ran as its owner");
	else if (WIFSIGNALED(status))
		say("%s", sigabbrev_np(WTERMSIG(status)));
}

static void program(void)
{
	copy_program("p");
	run("./p");
}

static void program_0644(void)
{
	copy_program("p");
	NEED(chmod("p", 0644));
	run("./p");
}

static void run_p(void)
{
	run("./p");
}

static void program_0111(void)
{
	copy_program("p");
	NEED(chmod("p", 0111));
	as(ALICE, TEAM, run_p);
}

static void script(void)
{
	put("s", "#!/bin/sh\nexit 2\n");
	NEED(chmod("s", 0755));
	run("./s");
	put("bad", "#!/none\n");
	NEED(chmod("bad", 0755));
	run("./bad");
}

static void being_written(void)
{
	int fd;

	copy_program("p");
	fd = (int)NEED(open("p", O_WRONLY));
	run("./p");
	NEED(close(fd));
	run("./p");
}

static bool runs(pid_t pid, const char *name)
{
	char link[64], exe[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, exe, sizeof(exe) - 1);
	if (n == -1)
		return false;
	exe[n] = '\0';
	return (size_t)n > strlen(name) && strcmp(exe + n - strlen(name), name) == 0;
}

/* A program that waits at its end: opened for writing meanwhile. */
static void written_while_run(void)
{
	int in[2];
	pid_t pid;

	copy_program("p");
	NEED(pipe(in));
	pid = (pid_t)NEED(fork());
	if (pid == 0) {
		NEED(dup2(in[0], 0));
		NEED(close(in[1]));
		execl("./p", "./p", "wait", NULL);
		_exit(1);
	}
	NEED(close(in[0]));
	/* execve has closed nothing, so its end is seen in /proc. */
	for (int i = 0; i < 2000 && !runs(pid, "/p"); i++)
		usleep(1000);
	tell(open("p", O_WRONLY));
	NEED(close(in[1]));
	NEED(waitpid(pid, NULL, 0));
	tell(open("p", O_WRONLY));
}

static void directory(void)
{
	NEED(mkdir("d", 0777));
	run("./d");
	run("./none");
}

static void set_uid(void)
{
	copy_program("p");
	NEED(chmod("p", 04755));
	as(ALICE, TEAM, run_p);
}

const struct topic topic_mmap = {.name = "mmap",
	.probes = (const struct probe[]){
		{"shared, written: read(2) sees it, msync, so does the server", shared_msync},
		{"shared, written: munmap, fsync, the server sees it", shared_munmap},
		{"shared, written after close: munmap; seen here, by the server after sync",
			shared_after_close},
		{"shared twice: one sees what the other wrote", shared_by_two},
		{"shared: write(2) is seen", write_seen},
		{"private: what is written is not in the file", private},
		{"O_RDONLY: shared for writing, private for writing; O_WRONLY; PROT_EXEC private, "
		 "shared; a directory",
			protections},
		{"MAP_SHARED_VALIDATE, with MAP_SYNC; MAP_LOCKED with MAP_POPULATE", validate},
		{"the page of the end, the page after it", past_end},
		{"a page that truncate took away", after_truncate},
		{"a file that is made longer: both parts, size", extended},
		{"bytes written after the end of the file: size, after making it longer", tail},
		{"O_DIRECT: shared, private", direct},
		{"a removed file: msync, read, munmap", unlinked},
		{"MADV_WILLNEED, DONTNEED, POPULATE_WRITE; mlock", advise},
		{"MADV_REMOVE of the first page", advise_remove}, {0}}};

const struct topic topic_exec = {.name = "exec",
	.probes = (const struct probe[]){{"a program", program},
		{"a program of mode 0644", program_0644},
		{"a program of mode 0111, by another user", program_0111},
		{"a script; one whose interpreter is missing", script},
		{"a program that is open for writing; after close", being_written},
		{"open for writing of a program that runs; after its end", written_while_run},
		{"a directory; no such name", directory},
		{"a program of root with the suid bit, by a user", set_uid}, {0}}};
