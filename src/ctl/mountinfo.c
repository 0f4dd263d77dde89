/* SPDX-License-Identifier: BSD-3-Clause */
#include "mountinfo.h"
#include "mount_field.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define LINKS_MAX 8

bool mountinfo_path(const char *cwd, const char *path, char out[PATH_MAX])
{
	char both[2 * PATH_MAX], *rest = both, *part;
	size_t len = 0;

	if (*path == '\0' || snprintf(both, sizeof(both), "%s/%s", *path == '/' ? "" : cwd, path) >=
				     (int)sizeof(both))
		return false;
	while ((part = strsep(&rest, "/")) != NULL) {
		if (*part == '\0' || strcmp(part, ".") == 0)
			continue;
		if (strcmp(part, "..") == 0) {
			while (len > 0 && out[--len] != '/')
				;
			continue;
		}
		if (len + 1 + strlen(part) >= PATH_MAX)
			return false;
		out[len++] = '/';
		memcpy(out + len, part, strlen(part));
		len += strlen(part);
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return true;
}

/* The words of a list without spaces that are flags of mount(2). */
static unsigned long flags_of(const char *words, size_t len)
{
	static const struct {
		const char *word;
		unsigned long flag;
	} known[] = {{"ro", MS_RDONLY}, {"nosuid", MS_NOSUID}, {"nodev", MS_NODEV},
		{"noexec", MS_NOEXEC}, {"noatime", MS_NOATIME}, {"nodiratime", MS_NODIRATIME},
		{"relatime", MS_RELATIME}, {"sync", MS_SYNCHRONOUS}, {"dirsync", MS_DIRSYNC},
		{"lazytime", MS_LAZYTIME}};
	const char *end = words + len;
	unsigned long flags = 0;

	while (words < end) {
		size_t n = strcspn(words, ", \n");

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (strlen(known[i].word) == n && memcmp(words, known[i].word, n) == 0)
				flags |= known[i].flag;
		words += n + 1;
	}
	return flags;
}

/* "- TYPE SOURCE OPTIONS": those of the file system. */
static void read_fs_options(const char *sep, struct mountinfo *ret)
{
	const char *uid = strstr(sep, "user_id="), *words = strrchr(sep, ' ');

	ret->uid = uid != NULL ? (uid_t)strtoul(uid + 8, NULL, 10) : 0;
	ret->fs_flags = flags_of(words + 1, strlen(words + 1));
	ret->allow_other = strstr(words, ",allow_other") != NULL;
}

bool mountinfo_find(FILE *table, const char *path, struct mountinfo *ret)
{
	char *line = NULL, *at = NULL;
	size_t cap = 0;
	bool found = false;

	while (getline(&line, &cap, table) > 0) {
		char dev[32], *sep = strstr(line, " - ");
		int words = 0, end = 0;

		free(at);
		at = NULL;
		if (sep == NULL ||
			sscanf(line, "%*s %*s %31s %*s %ms %n%*s%n", dev, &at, &words, &end) != 2)
			continue;
		mount_field_str(at);
		if (strcmp(at, path) != 0)
			continue;
		/* What is mounted over it later comes later. */
		found = strncmp(sep + 3, "fuse.rpcrdmafs ", 15) == 0;
		memcpy(ret->dev, dev, sizeof(dev));
		ret->flags = flags_of(line + words, (size_t)(end - words));
		read_fs_options(sep + 1, ret);
	}
	free(at);
	free(line);
	return found;
}

bool mountinfo_mounted(char path[PATH_MAX], struct mountinfo *ret)
{
	char parent[PATH_MAX], target[PATH_MAX], joined[2 * PATH_MAX], real[PATH_MAX], *name;

	for (int links = 0; links < LINKS_MAX; links++) {
		FILE *table = fopen("/proc/self/mountinfo", "re");
		bool found = table != NULL && mountinfo_find(table, path, ret);
		ssize_t n;

		if (table != NULL)
			fclose(table);
		if (found)
			return true;
		/* It is no mountpoint of ours, but its folder may be reached over a link. */
		strcpy(parent, path);
		name = strrchr(parent, '/');
		*name++ = '\0';
		if (realpath(*parent != '\0' ? parent : "/", real) == NULL)
			return false;
		snprintf(joined, sizeof(joined), "%s/%s", real, name);
		if (!mountinfo_path("", joined, target))
			return false;
		if (strcmp(target, path) != 0) {
			strcpy(path, target);
			continue;
		}
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			return false;
		target[n] = '\0';
		if (!mountinfo_path(real, target, path))
			return false;
	}
	return false;
}
