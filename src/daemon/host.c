/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

/* ---- addresses ---- */

/* The server's name, to be resolved again. */
struct server_name {
	int family;
	char port[8];
	char host[];
};

static void add_all(struct addrs_list *list, const struct addrinfo *res, int family)
{
	for (; res != NULL; res = res->ai_next)
		if (family == AF_UNSPEC || res->ai_family == family)
			addrs_list_add(list, res->ai_addr);
}

static int resolve(int family, const char *host, const char *port, struct addrs_list *list,
	char *text, size_t len)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
	struct addrinfo *res;
	int err = getaddrinfo(host, port, &hints, &res);

	if (err != 0) {
		snprintf(text, len, "resolve: %s: %s: check the name and the DNS", host,
			err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
		/* At boot: neither the network nor the DNS need be there yet. */
		if (err == EAI_MEMORY)
			return -ENOMEM;
		return err == EAI_FAIL || err == EAI_ADDRFAMILY ? -EINVAL : -EAGAIN;
	}
	add_all(list, res, family);
	freeaddrinfo(res);
	if (list->cnt > 0)
		return 0;
	snprintf(text, len, "resolve: %s: no IPv4 or IPv6 address", host);
	return -EINVAL;
}

bool host_use_from(
	struct addrs_list *dst, const struct addrs_list *ours, struct sockaddr_storage *src)
{
	struct addrs_list kept = {0};

	for (unsigned int k = 0; k < ours->cnt && kept.cnt == 0; k++) {
		*src = ours->addr[k];
		for (unsigned int i = 0; i < dst->cnt; i++)
			if (dst->addr[i].ss_family == src->ss_family)
				addrs_list_add(&kept, (const struct sockaddr *)&dst->addr[i]);
	}
	*dst = kept;
	return kept.cnt > 0;
}

static int keep_family_of(const struct options *o, struct addrs_list *dst,
	struct sockaddr_storage *src, char *text, size_t len)
{
	struct addrs_list ours = {0};
	int err = resolve(o->family, o->clientaddr, NULL, &ours, text, len);

	if (err != 0 || host_use_from(dst, &ours, src))
		return err;
	snprintf(text, len, "resolve: %s is of another family than the server's addresses",
		o->clientaddr);
	return -EINVAL;
}

int host_addresses(const struct options *o, struct addrs_list *dst, struct sockaddr_storage *src,
	char *text, size_t len)
{
	char port[8];
	int err;

	src->ss_family = AF_UNSPEC;
	dst->cnt = 0;
	snprintf(port, sizeof(port), "%u", o->port);
	err = resolve(o->family, o->host, port, dst, text, len);
	if (err == 0 && o->clientaddr != NULL)
		err = keep_family_of(o, dst, src, text, len);
	return err;
}

static bool resolve_again(void *ctx, struct addrs_list *ret)
{
	const struct server_name *name = ctx;
	char text[256];

	if (resolve(name->family, name->host, name->port, ret, text, sizeof(text)) == 0)
		return true;
	log_debug("%s", text);
	return false;
}

struct addrs *host_addrs_new(const struct options *o, const struct addrs_list *dst,
	unsigned int first, const struct sockaddr_storage *src)
{
	size_t len = strlen(o->host) + 1;
	struct server_name *name = malloc(sizeof(*name) + len);

	if (name == NULL)
		return NULL;
	name->family = src->ss_family != AF_UNSPEC ? src->ss_family : o->family;
	snprintf(name->port, sizeof(name->port), "%u", o->port);
	memcpy(name->host, o->host, len);
	return addrs_new(dst, first, resolve_again, name, true);
}

/* One address may be unreachable, or nothing listen there, and another serve. */
bool host_may_be_elsewhere(const char *step)
{
	return strcmp(step, "resolve") == 0 || strcmp(step, "route") == 0 ||
	       strcmp(step, "connect") == 0;
}

/* ---- the rest ---- */

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

void host_mountpoint_is(struct options *o)
{
	o->fs.mountpoint = o->mountpoint;
	o->fs.source = o->source;
	o->fs.debug = o->debug;
}

int host_mountpoint(struct options *o, char *text, size_t len)
{
	char *abs;

	cut_slashes(o->mountpoint);
	abs = fs_mountfd_of(o->mountpoint) >= 0 ? strdup(o->mountpoint)
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
	host_mountpoint_is(o);
	/* Before there is a connection to give back; fs_mount() looks again. */
	return fs_mountpoint_check(abs, o->source, text, len);
}
