/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks by fcntl, of processes and of open files, and flock. */
#include "compat.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

static long lock(int fd, int cmd, int type, off_t start, off_t len)
{
	struct flock l = {.l_type = (short)type, .l_start = start, .l_len = len};

	return fcntl(fd, cmd, &l);
}

/* What another process hears that asks for the same file. */
static int other_cmd = F_SETLK, other_type = F_WRLCK;
static off_t other_start, other_len;

static void try_lock(void)
{
	tell(lock(open_rw("f"), other_cmd, other_type, other_start, other_len));
}

static void other(int type, off_t start, off_t len)
{
	other_type = type;
	other_start = start;
	other_len = len;
	apart(try_lock);
}

static void exclusive(void)
{
	int fd = data_file("f", 100);

	tell(lock(fd, F_SETLK, F_WRLCK, 0, 10));
	other(F_WRLCK, 5, 1);
	other(F_RDLCK, 5, 1);
	other(F_WRLCK, 10, 1);
	tell(lock(fd, F_SETLK, F_UNLCK, 0, 10));
	other(F_WRLCK, 5, 1);
}

static void shared(void)
{
	int fd = data_file("f", 100);

	tell(lock(fd, F_SETLK, F_RDLCK, 0, 0));
	other(F_RDLCK, 5, 1);
	other(F_WRLCK, 1000, 1);
}

static void wrong_open(void)
{
	NEED(close(data_file("f", 100)));
	tell(lock((int)NEED(open("f", O_RDONLY)), F_SETLK, F_WRLCK, 0, 0));
	tell(lock((int)NEED(open("f", O_WRONLY)), F_SETLK, F_RDLCK, 0, 0));
	tell(lock((int)NEED(open("f", O_RDONLY)), F_OFD_SETLK, F_WRLCK, 0, 0));
	tell(lock((int)NEED(open("f", O_PATH)), F_SETLK, F_RDLCK, 0, 0));
}

static void ask(void)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = 0, .l_len = 0};

	if (tell(fcntl(open_rw("f"), F_GETLK, &l)) == -1)
		return;
	say("type %d from %ld len %ld pid %s", l.l_type, (long)l.l_start, (long)l.l_len,
		l.l_pid == 0 ? "0" : (l.l_pid == getppid() ? "of the holder" : "other"));
}

static void getlk(void)
{
	int fd = data_file("f", 100);

	NEED(lock(fd, F_SETLK, F_RDLCK, 10, 20));
	apart(ask);
	NEED(lock(fd, F_SETLK, F_UNLCK, 0, 0));
	apart(ask);
}

static void getlk_own(void)
{
	struct flock l = {.l_type = F_WRLCK};
	int fd = data_file("f", 100);

	NEED(lock(fd, F_SETLK, F_WRLCK, 10, 20));
	tell(fcntl(fd, F_GETLK, &l));
	say("type %d", l.l_type);
	l.l_type = F_UNLCK;
	tell(fcntl(fd, F_GETLK, &l));
}

static void upgrade(void)
{
	int fd = data_file("f", 100);

	tell(lock(fd, F_SETLK, F_RDLCK, 0, 100));
	tell(lock(fd, F_SETLK, F_WRLCK, 0, 50));
	other(F_RDLCK, 0, 1);
	other(F_RDLCK, 60, 1);
	tell(lock(fd, F_SETLK, F_RDLCK, 0, 50));
	other(F_RDLCK, 0, 1);
}

static void split(void)
{
	int fd = data_file("f", 100);

	tell(lock(fd, F_SETLK, F_WRLCK, 0, 100));
	tell(lock(fd, F_SETLK, F_UNLCK, 40, 20));
	other(F_WRLCK, 45, 1);
	other(F_WRLCK, 39, 1);
	other(F_WRLCK, 60, 1);
}

static void close_drops(void)
{
	int fd = data_file("f", 100);

	NEED(lock(fd, F_SETLK, F_WRLCK, 0, 100));
	NEED(close(open_rw("f")));
	other(F_WRLCK, 0, 1);
}

static void ofd(void)
{
	int a = data_file("f", 100), b = open_rw("f");

	tell(lock(a, F_OFD_SETLK, F_WRLCK, 0, 10));
	tell(lock(b, F_OFD_SETLK, F_WRLCK, 5, 1));
	tell(lock(b, F_SETLK, F_WRLCK, 5, 1));
	NEED(close(open_rw("f")));
	other(F_WRLCK, 5, 1);
	NEED(close(a));
	tell(lock(b, F_OFD_SETLK, F_WRLCK, 5, 1));
}

static void ofd_getlk(void)
{
	int a = data_file("f", 100), b = open_rw("f");
	struct flock l = {.l_type = F_WRLCK};

	NEED(lock(a, F_OFD_SETLK, F_WRLCK, 7, 3));
	tell(fcntl(b, F_OFD_GETLK, &l));
	say("type %d from %ld len %ld pid %s", l.l_type, (long)l.l_start, (long)l.l_len,
		l.l_pid == -1 ? "-1" : "of somebody");
	l.l_pid = 5;
	tell(fcntl(b, F_OFD_GETLK, &l));
}

static void arguments(void)
{
	int fd = data_file("f", 100);
	struct flock before = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 50, .l_len = -10};

	tell(lock(fd, F_SETLK, F_WRLCK, -1, 1));
	tell(lock(fd, F_SETLK, 77, 0, 1));
	tell(lock(fd, F_SETLK, F_WRLCK, LLONG_MAX, 2));
	tell(lock(fd, F_SETLK, F_WRLCK, LLONG_MAX, 1));
	tell(fcntl(fd, F_SETLK, &before));
	other(F_WRLCK, 45, 1);
	other(F_WRLCK, 50, 1);
	tell(lock(fd, F_SETLK, F_UNLCK, 0, 0));
}

static void from_end(void)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -10, .l_len = 5};
	int fd = data_file("f", 100);

	tell(fcntl(fd, F_SETLK, &l));
	other(F_WRLCK, 90, 5);
	other(F_WRLCK, 95, 5);
}

static void wait_for_lock(void)
{
	tell(lock(open_rw("f"), F_SETLKW, F_WRLCK, 0, 10));
}

static void waits(void)
{
	int fd = data_file("f", 100);
	pid_t pid;

	NEED(lock(fd, F_SETLK, F_WRLCK, 0, 10));
	pid = (pid_t)NEED(fork());
	if (pid == 0) {
		wait_for_lock();
		_exit(0);
	}
	usleep(50000);
	say("%s", waitpid(pid, NULL, WNOHANG) == 0 ? "waits" : "does not wait");
	NEED(lock(fd, F_SETLK, F_UNLCK, 0, 10));
	NEED(waitpid(pid, NULL, 0));
}

static void ignore(int sig)
{
}

static void interrupted_wait(void)
{
	struct sigaction act = {.sa_handler = ignore};

	NEED(sigaction(SIGALRM, &act, NULL));
	ualarm(100000, 0);
	wait_for_lock();
}

static void interrupted(void)
{
	NEED(lock(data_file("f", 100), F_SETLK, F_WRLCK, 0, 10));
	apart(interrupted_wait);
}

static void directories(void)
{
	int fd;

	NEED(mkdir("d", 0777));
	fd = (int)NEED(open("d", O_RDONLY));
	tell(lock(fd, F_SETLK, F_RDLCK, 0, 0));
	tell(lock(fd, F_SETLK, F_WRLCK, 0, 0));
	tell(flock(fd, LOCK_EX | LOCK_NB));
	tell(flock((int)NEED(open("d", O_RDONLY)), LOCK_EX | LOCK_NB));
}

const struct topic topic_locks = {.name = "locks",
	.probes = (const struct probe[]){
		{"F_SETLK for writing; others: inside for writing, reading, behind; after the end",
			exclusive},
		{"F_SETLK for reading; others: for reading, for writing", shared},
		{"for writing with O_RDONLY, for reading with O_WRONLY; OFD; with O_PATH",
			wrong_open},
		{"F_GETLK of another process; after unlock", getlk},
		{"F_GETLK over an own lock; with F_UNLCK", getlk_own},
		{"upgrade and downgrade of a part; others", upgrade},
		{"unlock in the middle; others: there, before, behind", split},
		{"close of another descriptor of the file gives the lock back", close_drops},
		{"OFD lock; another open file; a process lock; after close of others; after its "
		 "end",
			ofd},
		{"F_OFD_GETLK; with a pid", ofd_getlk},
		{"from -1; no such type; over LLONG_MAX; to it; a length of -10; others; unlock "
		 "all",
			arguments},
		{"SEEK_END; others", from_end}, {"F_SETLKW waits, and has it after unlock", waits},
		{"F_SETLKW: a signal", interrupted},
		{"a directory: for reading, for writing, flock, flock by another descriptor",
			directories},
		{0}}};

/* ---- flock ---- */

static void flock_other(void)
{
	int fd = open_rw("f");

	tell(flock(fd, LOCK_SH | LOCK_NB));
	tell(flock(fd, LOCK_EX | LOCK_NB));
}

static void flock_exclusive(void)
{
	int fd = data_file("f", 10);

	tell(flock(fd, LOCK_EX));
	flock_other();
	tell(flock(fd, LOCK_UN));
	apart(flock_other);
}

static void flock_shared(void)
{
	int fd = data_file("f", 10);

	tell(flock(fd, LOCK_SH | LOCK_NB));
	apart(flock_other);
	tell(flock(fd, LOCK_EX | LOCK_NB));
	apart(flock_other);
}

static void flock_open(void)
{
	NEED(close(data_file("f", 10)));
	tell(flock((int)NEED(open("f", O_RDONLY)), LOCK_EX | LOCK_NB));
	tell(flock((int)NEED(open("f", O_WRONLY)), LOCK_SH | LOCK_NB));
}

static void flock_dup(void)
{
	int fd = data_file("f", 10), second = (int)NEED(dup(fd));

	tell(flock(fd, LOCK_EX));
	tell(flock(second, LOCK_EX | LOCK_NB));
	NEED(close(fd));
	apart(flock_other);
	NEED(close(second));
	apart(flock_other);
}

static void flock_and_fcntl(void)
{
	int fd = data_file("f", 10);

	tell(flock(fd, LOCK_EX));
	tell(lock(fd, F_SETLK, F_WRLCK, 0, 1));
	other(F_WRLCK, 0, 1);
}

static void flock_arguments(void)
{
	int fd = data_file("f", 10);

	tell(flock(fd, 0));
	tell(flock(fd, LOCK_SH | LOCK_EX));
	tell(flock(fd, LOCK_UN));
	tell(flock(fd, LOCK_MAND | LOCK_READ));
}

static void with_lockf(void)
{
	int fd = data_file("f", 10);

	tell(lockf(fd, F_LOCK, 5));
	tell(lockf(fd, F_TEST, 5));
	other(F_WRLCK, 0, 1);
	tell(lockf(fd, F_ULOCK, 5));
}

const struct topic topic_flock = {.name = "flock",
	.probes = (const struct probe[]){
		{"LOCK_EX; another open file: LOCK_SH, LOCK_EX; another process after LOCK_UN",
			flock_exclusive},
		{"LOCK_SH; others: LOCK_SH, LOCK_EX; upgrade; others", flock_shared},
		{"LOCK_EX with O_RDONLY, LOCK_SH with O_WRONLY", flock_open},
		{"dup shares the lock; after close of one; of both", flock_dup},
		{"with a lock by fcntl of the same process, of another", flock_and_fcntl},
		{"no operation, two of them, LOCK_UN of nothing, LOCK_MAND", flock_arguments},
		{"lockf: F_LOCK, F_TEST, others, F_ULOCK", with_lockf}, {0}}};
