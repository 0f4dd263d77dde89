/* SPDX-License-Identifier: BSD-3-Clause */
/* ioctl, poll, leases, notification: what is not I/O on a descriptor. */
#include "compat.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <termios.h>

static void flags(void)
{
	int fd = data_file("f", 10);
	long attr = 0;

	tell(ioctl(fd, FS_IOC_GETFLAGS, &attr));
	attr = FS_NODUMP_FL;
	tell(ioctl(fd, FS_IOC_SETFLAGS, &attr));
}

static void xattr_flags(void)
{
	int fd = data_file("f", 10);
	struct fsxattr x = {0};

	tell(ioctl(fd, FS_IOC_FSGETXATTR, &x));
	tell(ioctl(fd, FS_IOC_FSSETXATTR, &x));
}

static void flags_directory(void)
{
	long attr = 0;
	int fd;

	NEED(mkdir("d", 0777));
	fd = (int)NEED(open("d", O_RDONLY));
	tell(ioctl(fd, FS_IOC_GETFLAGS, &attr));
	tell(ioctl(fd, FS_IOC_SETFLAGS, &attr));
}

static void fiemap(void)
{
	struct fiemap m = {.fm_length = 4096};

	tell(ioctl(data_file("f", 10000), FS_IOC_FIEMAP, &m));
}

static void fibmap(void)
{
	int block = 0;

	tell(ioctl(data_file("f", 10000), FIBMAP, &block));
}

static void fionread(void)
{
	int n = -1, fd = data_file("f", 10000);

	NEED(lseek(fd, 1000, SEEK_SET));
	tell(ioctl(fd, FIONREAD, &n));
	say("%d", n);
}

static void file_ioctls(void)
{
	int fd = data_file("f", 10), on = 1, size = 0;

	tell(ioctl(fd, FIONBIO, &on));
	tell(ioctl(fd, FIOASYNC, &on));
	tell(ioctl(fd, FIOCLEX));
	tell(ioctl(fd, FIGETBSZ, &size));
}

static void unknown(void)
{
	struct termios t;
	char buf[64] = "";
	int fd = data_file("f", 10);

	tell(ioctl(fd, _IOWR('R', 99, char[64]), buf));
	tell(ioctl(fd, TCGETS, &t));
	tell(ioctl(fd, BLKGETSIZE64, buf));
	tell(ioctl(fd, FS_IOC_GETVERSION, buf));
}

static void labels(void)
{
	char buf[256] = "";
	int fd = data_file("f", 10);

	tell(ioctl(fd, FS_IOC_GETFSLABEL, buf));
	tell(ioctl(fd, FS_IOC_GET_ENCRYPTION_POLICY, buf));
	tell(ioctl(fd, FS_IOC_ENABLE_VERITY, buf));
}

static void trim(void)
{
	struct fstrim_range r = {.len = 4096};

	NEED(mkdir("d", 0777));
	tell(ioctl((int)NEED(open("d", O_RDONLY)), FITRIM, &r));
}

static void with_poll(void)
{
	struct pollfd p = {.fd = data_file("f", 10), .events = POLLIN | POLLOUT | POLLPRI};

	count(poll(&p, 1, 0));
	say("%x", (unsigned int)p.revents);
	NEED(mkdir("d", 0777));
	p.fd = (int)NEED(open("d", O_RDONLY));
	count(poll(&p, 1, 0));
	say("%x", (unsigned int)p.revents);
}

static void with_select(void)
{
	int fd = data_file("f", 10);
	fd_set in, out;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	out = in;
	count(select(fd + 1, &in, &out, NULL, &(struct timeval){0}));
}

static void with_epoll(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = (int)NEED(epoll_create1(0));

	tell(epoll_ctl(ep, EPOLL_CTL_ADD, data_file("f", 10), &ev));
	NEED(mkdir("d", 0777));
	tell(epoll_ctl(ep, EPOLL_CTL_ADD, (int)NEED(open("d", O_RDONLY)), &ev));
}

const struct topic topic_ioctl = {.name = "ioctl and poll",
	.probes = (const struct probe[]){{"FS_IOC_GETFLAGS, SETFLAGS (lsattr, chattr)", flags},
		{"FS_IOC_GETFLAGS, SETFLAGS on a directory", flags_directory},
		{"FS_IOC_FSGETXATTR, FSSETXATTR", xattr_flags},
		{"FS_IOC_FIEMAP (filefrag)", fiemap}, {"FIBMAP", fibmap}, {"FIONREAD", fionread},
		{"FIONBIO, FIOASYNC, FIOCLEX, FIGETBSZ", file_ioctls},
		{"an unknown one, TCGETS, BLKGETSIZE64, FS_IOC_GETVERSION", unknown},
		{"FS_IOC_GETFSLABEL, GET_ENCRYPTION_POLICY, ENABLE_VERITY", labels},
		{"FITRIM", trim}, {"poll: a file, a directory", with_poll}, {"select", with_select},
		{"epoll_ctl: a file, a directory", with_epoll}, {0}}};

/* ---- fcntl without locks, notification ---- */

static void leases(void)
{
	int fd;

	NEED(close(data_file("f", 10)));
	fd = (int)NEED(open("f", O_RDONLY));
	/* EAGAIN where it takes a delegation, and the server has given none. */
	if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0 || errno == EAGAIN)
		say("ok or EAGAIN");
	else
		tell(-1);
}

static void lease_write(void)
{
	int fd = data_file("f", 10);

	tell(fcntl(fd, F_SETLEASE, F_WRLCK));
	tell(fcntl(fd, F_SETLEASE, F_UNLCK));
}

static volatile sig_atomic_t notified;

static void on_notify(int sig)
{
	notified = sig;
}

static void dnotify(void)
{
	int fd = (int)NEED(open(".", O_RDONLY));

	signal(SIGIO, on_notify);
	tell(fcntl(fd, F_NOTIFY, DN_CREATE));
	put("f", "");
	say("%s", notified != 0 ? "signal" : "no signal");
}

static void inotify(void)
{
	char buf[4096];
	int in = (int)NEED(inotify_init1(IN_NONBLOCK));
	uint32_t mask = 0;
	ssize_t n;

	tell(inotify_add_watch(in, ".", IN_CREATE | IN_MODIFY | IN_DELETE | IN_CLOSE_WRITE));
	put("f", "text");
	NEED(unlink("f"));
	n = NEED(read(in, buf, sizeof(buf)));
	for (char *p = buf; p < buf + n;) {
		struct inotify_event *ev = (struct inotify_event *)p;

		mask |= ev->mask;
		p += sizeof(*ev) + ev->len;
	}
	say("%x", mask);
}

static void fanotify(void)
{
	int fan = (int)NEED(fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY));
	struct fanotify_event_metadata ev = {0};

	tell(fanotify_mark(fan, FAN_MARK_ADD, FAN_CLOSE_WRITE | FAN_EVENT_ON_CHILD, AT_FDCWD, "."));
	put("f", "text");
	say("%s", read(fan, &ev, sizeof(ev)) > 0 ? "event" : "no event");
}

static void fanotify_fid(void)
{
	int fan = (int)NEED(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY));

	tell(fanotify_mark(fan, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD, "."));
}

static void getfl(void)
{
	int fd;

	put("f", "");
	fd = (int)NEED(open("f", O_RDWR | O_APPEND | O_SYNC | O_NOATIME | O_NONBLOCK));
	say("%x", (unsigned int)NEED(fcntl(fd, F_GETFL)) & ~(unsigned int)O_LARGEFILE);
	tell(fcntl(fd, F_SETFL, O_NOATIME | O_NONBLOCK));
	say("%x", (unsigned int)NEED(fcntl(fd, F_GETFL)) & ~(unsigned int)O_LARGEFILE);
}

static void hints(void)
{
	uint64_t hint = RWH_WRITE_LIFE_SHORT;
	int fd = data_file("f", 10);

	tell(fcntl(fd, F_SET_RW_HINT, &hint));
	tell(fcntl(fd, F_GET_RW_HINT, &hint));
	tell(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	tell(fcntl(fd, F_SETPIPE_SZ, 4096));
}

const struct topic topic_fcntl = {.name = "fcntl and notification",
	.probes = (const struct probe[]){{"F_SETLEASE F_RDLCK", leases},
		{"F_SETLEASE F_WRLCK, F_UNLCK", lease_write}, {"F_NOTIFY (dnotify)", dnotify},
		{"inotify: events of what this machine does", inotify},
		{"fanotify: events of what this machine does", fanotify},
		{"fanotify with FAN_REPORT_FID", fanotify_fid}, {"F_GETFL, F_SETFL", getfl},
		{"F_SET_RW_HINT, F_GET_RW_HINT, F_ADD_SEALS, F_SETPIPE_SZ", hints}, {0}}};
