/* SPDX-License-Identifier: BSD-3-Clause */
/* A second process, which opens and reads what the first one works on. */
#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PART 3000u

struct order {
	char path[FSX_PATH];
	int flags;
	off_t off;
};

struct answer {
	const char *failed; /* the call; NULL: none. Both processes have the same strings. */
	int err;
	off_t size;
	ssize_t len;
	uint8_t data[PART];
};

static int channel = -1;
static pid_t child;

static void look(const struct order *o, struct answer *a)
{
	struct stat st;
	int fd;

	*a = (struct answer){.failed = "stat"};
	if (stat(o->path, &st) == 0) {
		a->size = st.st_size;
		a->failed = "open";
		fd = open(o->path, o->flags | O_CLOEXEC);
		if (fd >= 0) {
			a->len = pread(fd, a->data, PART, o->off);
			a->failed = a->len < 0 ? "read" : NULL;
			close(fd);
		}
	}
	a->err = errno;
}

static void __attribute__((noreturn)) child_main(int fd)
{
	static struct order o;
	static struct answer a;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(fd, &o, sizeof(o), MSG_WAITALL) == (ssize_t)sizeof(o)) {
		look(&o, &a);
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
			break;
	}
	_exit(0);
}

void fsx_peer_start(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		fsx_wrong("socketpair: %s", strerror(errno));
	child = fork();
	if (child < 0)
		fsx_wrong("fork: %s", strerror(errno));
	if (child == 0) {
		close(fds[0]);
		child_main(fds[1]);
	}
	close(fds[1]);
	channel = fds[0];
}

void fsx_peer_look(struct fsx_file *f)
{
	static struct order o;
	static struct answer a;
	struct fsx_slot s = {.flags = O_RDONLY};
	size_t off = fsx_some_offset(f), want;

	if (fsx.mode == FSX_DIRECT || (fsx.mode == FSX_MIXED && fsx_rnd(2)))
		s.flags |= O_DIRECT;
	if (f->unlinked)
		return;
	fsx_settle(f, &s);
	memcpy(o.path, f->path, sizeof(o.path));
	o.flags = s.flags;
	o.off = (off_t)off;
	if (send(channel, &o, sizeof(o), MSG_NOSIGNAL) != (ssize_t)sizeof(o) ||
		recv(channel, &a, sizeof(a), MSG_WAITALL) != (ssize_t)sizeof(a))
		fsx_wrong("the second process is gone");
	if (a.failed)
		fsx_wrong("the second process's %s: %s", a.failed, strerror(a.err));
	if ((size_t)a.size != f->size)
		fsx_wrong("the second process: expected size %zu, found %lld", f->size,
			(long long)a.size);
	want = off >= f->size ? 0 : PART < f->size - off ? PART : f->size - off;
	if ((size_t)a.len != want)
		fsx_wrong("the second process's read at %zu: expected %zu bytes, found %zd", off,
			want, a.len);
	fsx_compare(f, a.data, off, want, "the second process's read");
}

void fsx_peer_stop(void)
{
	close(channel);
	waitpid(child, NULL, 0);
}
