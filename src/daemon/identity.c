/* SPDX-License-Identifier: BSD-3-Clause */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define ROOTS_FOLDER "/var/lib/rpcrdmafs"
#define PREFIX       "rpcrdmafs "

void identity_folder(char *ret)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int len = 0;

	if (geteuid() == 0)
		len = snprintf(ret, PATH_MAX, ROOTS_FOLDER);
	else if (state != NULL && *state == '/')
		len = snprintf(ret, PATH_MAX, "%s/rpcrdmafs", state);
	else if (home != NULL && *home == '/')
		len = snprintf(ret, PATH_MAX, "%s/.local/state/rpcrdmafs", home);
	if (len <= 0 || len >= PATH_MAX)
		*ret = '\0';
}

/* FNV-1a. Two mounts with the same value have the file in turn, and the second a random one. */
static uint64_t hash(uint64_t h, const char *s)
{
	do
		h = (h ^ (uint8_t)*s) * 0x100000001b3ull;
	while (*s++ != '\0');
	return h;
}

static bool file_name(struct identity *id, const struct options *o, const char *folder)
{
	uint64_t h = hash(0xcbf29ce484222325ull, o->host);
	char number[24];
	int len;

	/* A server takes a name from one user only (NFS4ERR_CLID_INUSE). */
	snprintf(number, sizeof(number), "%u %u %d", (unsigned int)o->port, (unsigned int)geteuid(),
		(int)o->nfs.flavor);
	h = hash(hash(hash(h, number), o->path), o->mountpoint);
	len = snprintf(id->path, sizeof(id->path), "%s/%016" PRIx64, folder, h);
	return len < (int)sizeof(id->path);
}

/* The folder and those above it, for their owner alone; errno tells at open(2) what is wrong. */
static void make_folder(const char *folder)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", folder);
	for (char *p = path + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	mkdir(path, 0700);
}

static int make_owner(char *owner)
{
	char host[HOST_NAME_MAX + 1] = "localhost";
	uint64_t bits[2];

	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return -errno;
	gethostname(host, sizeof(host) - 1);
	snprintf(
		owner, IDENTITY_MAX, PREFIX "%s %016" PRIx64 "%016" PRIx64, host, bits[0], bits[1]);
	return 0;
}

/* The first line; false: the file is new, or nothing that we wrote. */
static bool read_owner(int fd, char *owner)
{
	ssize_t len = pread(fd, owner, IDENTITY_MAX - 1, 0);
	char *end;

	if (len <= 0)
		return false;
	owner[len] = '\0';
	end = strchr(owner, '\n');
	if (end == NULL || strncmp(owner, PREFIX, strlen(PREFIX)) != 0)
		return false;
	*end = '\0';
	for (const char *p = owner; p < end; p++)
		if (*p < ' ' || *p > '~')
			return false;
	/* Bits at least: without them it would be everybody's. */
	return (size_t)(end - owner) >= strlen(PREFIX) + 32;
}

static int write_owner(int fd, const char *owner, const struct options *o)
{
	char text[IDENTITY_MAX + 1];
	int len = snprintf(text, sizeof(text), "%s\n", owner);

	if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len)
		return errno != 0 ? -errno : -EIO;
	/* For who looks at the file. */
	if (lseek(fd, 0, SEEK_END) > 0)
		dprintf(fd, "%s on %s\n", o->source, o->mountpoint);
	return fsync(fd) == 0 ? 0 : -errno;
}

/* Its lock is had, or nobody uses the file. 0; -EBUSY: another process does; -errno. */
static int open_locked(struct identity *id)
{
	struct stat st;
	int err;

	id->fd = open(id->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (id->fd < 0)
		return -errno;
	if (fstat(id->fd, &st) != 0)
		err = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		err = -EPERM;
	else if (flock(id->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	else
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	identity_put(id);
	return err;
}

static int keep(struct identity *id, const struct options *o, const char *folder)
{
	int err;

	if (*folder == '\0')
		return -ENOENT;
	if (!file_name(id, o, folder))
		return -ENAMETOOLONG;
	make_folder(folder);
	err = open_locked(id);
	if (err != 0)
		return err;
	if (read_owner(id->fd, id->owner))
		return 0;
	err = make_owner(id->owner);
	errno = 0;
	if (err == 0)
		err = write_owner(id->fd, id->owner, o);
	if (err != 0)
		identity_put(id);
	return err;
}

int identity_get(struct identity *id, const struct options *o, const char *folder)
{
	int err;

	id->fd = -1;
	id->path[0] = id->why[0] = '\0';
	if (o->clientid != NULL) {
		id->kind = IDENTITY_GIVEN;
		snprintf(id->owner, sizeof(id->owner), PREFIX "%s", o->clientid);
		return 0;
	}
	id->kind = IDENTITY_KEPT;
	err = keep(id, o, folder);
	if (err == 0)
		return 0;
	id->kind = IDENTITY_RANDOM;
	if (err == -EBUSY)
		snprintf(id->why, sizeof(id->why), "another mount uses the one that is kept");
	else
		snprintf(id->why, sizeof(id->why), "none can be kept: %s", strerror(-err));
	log_info("the mount's identity is random (%s): if the daemon is killed, what it has open "
		 "and "
		 "locked stays so on the server until its lease ends",
		id->why);
	return make_owner(id->owner);
}

void identity_get_again(
	struct identity *id, const struct options *o, const char *folder, const char *owner)
{
	/* Its file is ours again, if nobody else has taken it in the moment without a lock. */
	if (identity_get(id, o, folder) == 0 && strcmp(id->owner, owner) == 0)
		return;
	identity_put(id);
	id->kind = IDENTITY_RANDOM;
	snprintf(id->why, sizeof(id->why), "that of the program before");
	snprintf(id->owner, sizeof(id->owner), "%s", owner);
}

void identity_put(struct identity *id)
{
	if (id->fd >= 0)
		close(id->fd);
	id->fd = -1;
}
