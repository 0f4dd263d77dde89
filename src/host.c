/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int resolve(int family, const char *host, const char *port, struct sockaddr_storage *to,
	char *text, size_t len)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
	struct addrinfo *res;
	int err = getaddrinfo(host, port, &hints, &res);

	if (err != 0) {
		snprintf(text, len, "resolve: %s: %s: check the name and the DNS", host,
			err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
		/* At boot: neither the network nor the DNS need be there yet. */
		return err == EAI_FAIL || err == EAI_MEMORY || err == EAI_ADDRFAMILY ? -EINVAL
										     : -EAGAIN;
	}
	memcpy(to, res->ai_addr, res->ai_addrlen);
	freeaddrinfo(res);
	return 0;
}

int host_addresses(const struct options *o, struct sockaddr_storage *dst,
	struct sockaddr_storage *src, char *text, size_t len)
{
	char port[8];
	int err;

	src->ss_family = AF_UNSPEC;
	snprintf(port, sizeof(port), "%u", o->port);
	err = resolve(o->family, o->host, port, dst, text, len);
	if (err == 0 && o->clientaddr != NULL)
		err = resolve(dst->ss_family, o->clientaddr, NULL, src, text, len);
	return err;
}

void host_cred(const struct options *o, struct rpc_cred *ret)
{
	gid_t groups[NGROUPS_MAX];
	int cnt = getgroups(NGROUPS_MAX, groups);

	ret->flavor = o->nfs.flavor;
	ret->uid = geteuid();
	ret->gid = getegid();
	for (int i = 0; i < cnt && ret->gids_cnt < RPC_MAX_GROUPS; i++)
		ret->gids[ret->gids_cnt++] = groups[i];
}

/* A slash at the end makes realpath() ask what is mounted there. */
static void cut_slashes(char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
}

int host_mountpoint(struct options *o, char *text, size_t len)
{
	char *abs;

	cut_slashes(o->mountpoint);
	abs = fs_mount_fd(o->mountpoint) >= 0 ? strdup(o->mountpoint)
					      : realpath(o->mountpoint, NULL);
	if (abs == NULL) {
		int err = errno;

		snprintf(text, len, "mountpoint: %s",
			err == ENOENT     ? "does not exist: make the directory first"
			: err == ENOTCONN ? "a dead FUSE file system lies on the way there: "
					    "fusermount3 -u it"
					  : strerror(err));
		return -err;
	}
	free(o->mountpoint);
	o->mountpoint = abs;
	o->fs.mountpoint = o->mountpoint;
	o->fs.source = o->source;
	o->fs.debug = o->debug;
	/* Before there is a connection to give back; fs_mount() looks again. */
	return fs_mountpoint_check(abs, o->source, text, len);
}
