/* SPDX-License-Identifier: BSD-3-Clause */
/* A source: "server:/path", "[v6]:/path", "nfs://server[:port]/path"; or a server alone. */
#include <errno.h>
#include <nfsc/libnfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "optval.h"

static int bad_source(const char *source, const char *why, char *fault, size_t len)
{
	snprintf(fault, len, "%s: %s: expected server:/path or nfs://server/path", source, why);
	return -EINVAL;
}

/* "host:port" as libnfs leaves it in ->server; IPv6 addresses come in brackets. */
static int split_port(struct options *o, char *server)
{
	char *end = server[0] == '[' ? strchr(server, ']') : server;
	char *colon = end != NULL ? strchr(end, ':') : NULL;
	uint64_t port;

	if (colon != NULL) {
		if (!optval_uint(colon + 1, 1, 65535, &port))
			return -EINVAL;
		*colon = '\0';
		o->port = (uint16_t)port;
	}
	if (server[0] == '[') {
		if (end == NULL || end[1] != '\0')
			return -EINVAL;
		*end = '\0';
		server++;
	}
	o->host = strdup(server);
	return o->host == NULL ? -ENOMEM : *server == '\0' ? -EINVAL : 0;
}

static int parse_url(struct options *o, const char *source, char *fault, size_t len)
{
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *url;
	int err;

	if (nfs == NULL)
		return bad_source(source, "out of memory", fault, len);
	url = nfs_parse_url_dir(nfs, source);
	if (url == NULL || url->server == NULL || url->path == NULL) {
		err = bad_source(source, "not an NFS URL", fault, len);
	} else {
		err = split_port(o, url->server);
		o->path = strdup(url->path);
		if (err != 0 || o->path == NULL)
			err = bad_source(source, "the server's name is wrong", fault, len);
	}
	nfs_destroy_url(url);
	nfs_destroy_context(nfs);
	return err;
}

/* The server's name ends at the first ":/" outside brackets: names have no slash. */
static int parse_plain(struct options *o, const char *source, char *fault, size_t len)
{
	const char *colon = strstr(source, ":/");
	const char *start = source;
	size_t host_len;

	if (colon == NULL)
		return bad_source(source, "there is no server:/path in it", fault, len);
	host_len = (size_t)(colon - source);
	if (source[0] == '[') {
		if (host_len < 3 || source[host_len - 1] != ']')
			return bad_source(source, "the brackets are wrong", fault, len);
		start++;
		host_len -= 2;
	}
	if (host_len == 0)
		return bad_source(source, "the server's name is missing", fault, len);
	o->host = strndup(start, host_len);
	o->path = strdup(colon + 1);
	if (o->host == NULL || o->path == NULL)
		return bad_source(source, "out of memory", fault, len);
	return 0;
}

int source_parse(struct options *o, const char *source, char *fault, size_t fault_len)
{
	o->source = strdup(source);
	if (o->source == NULL)
		return bad_source(source, "out of memory", fault, fault_len);
	if (strncmp(source, "nfs://", 6) == 0)
		return parse_url(o, source, fault, fault_len);
	return parse_plain(o, source, fault, fault_len);
}

static int bad_server(const char *server, const char *why, char *fault, size_t len)
{
	snprintf(fault, len, "%s: %s: expected SERVER, SERVER:PORT or [IPv6]:PORT", server, why);
	return -EINVAL;
}

int source_parse_server(struct options *o, const char *server, char *fault, size_t fault_len)
{
	const char *colon = strchr(server, ':');
	char *copy;
	int err;

	if (strchr(server, '/') != NULL)
		return source_parse(o, server, fault, fault_len);
	o->source = strdup(server);
	copy = strdup(server);
	if (o->source == NULL || copy == NULL) {
		err = -ENOMEM;
	} else if (server[0] != '[' && colon != NULL && strchr(colon + 1, ':') != NULL) {
		o->host = strdup(server); /* an IPv6 address without brackets has no port */
		err = o->host == NULL ? -ENOMEM : 0;
	} else {
		err = split_port(o, copy);
	}
	free(copy);
	if (err != 0)
		return bad_server(server,
			err == -ENOMEM ? "out of memory" : "the server's name is wrong", fault,
			fault_len);
	return 0;
}
