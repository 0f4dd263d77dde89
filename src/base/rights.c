/* SPDX-License-Identifier: BSD-3-Clause */
#include "rights.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	char room[CMSG_SPACE(RIGHTS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

int rights_send(int sock, const void *p, size_t len, const int *fds, unsigned int cnt, int flags)
{
	struct iovec iov = {.iov_base = (void *)p, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control = {0};

	if (cnt > 0) {
		struct cmsghdr *c = &control.align;

		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
		memcpy(CMSG_DATA(c), fds, cnt * sizeof(int));
	}
	return sendmsg(sock, &mh, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Without credentials there is room for more than RIGHTS_MAX. */
static void take_fds(const unsigned char *p, size_t cnt, struct rights *ret)
{
	for (size_t i = 0; i < cnt; i++) {
		int fd;

		memcpy(&fd, p + i * sizeof(fd), sizeof(fd));
		if (ret->cnt < RIGHTS_MAX) {
			ret->fds[ret->cnt++] = fd;
			continue;
		}
		ret->cut = true;
		close(fd);
	}
}

static void take(const struct cmsghdr *c, struct rights *ret)
{
	struct ucred from;

	if (c->cmsg_level != SOL_SOCKET)
		return;
	if (c->cmsg_type == SCM_RIGHTS) {
		take_fds(CMSG_DATA(c), (c->cmsg_len - CMSG_LEN(0)) / sizeof(int), ret);
	} else if (c->cmsg_type == SCM_CREDENTIALS) {
		memcpy(&from, CMSG_DATA(c), sizeof(from));
		ret->uid = from.uid;
	}
}

ssize_t rights_receive(int sock, void *to, size_t size, struct rights *ret, int flags)
{
	struct iovec iov = {.iov_base = to, .iov_len = size};
	union control control;
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);

	ret->cnt = 0;
	ret->cut = false;
	ret->uid = (uid_t)-1;
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c != NULL; c = CMSG_NXTHDR(&mh, c))
		take(c, ret);
	ret->cut |= (mh.msg_flags & MSG_CTRUNC) != 0;
	return n;
}

void rights_close(struct rights *r)
{
	while (r->cnt > 0)
		close(r->fds[--r->cnt]);
}
