/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay FILE-OR-FOLDER-OR-ARCHIVE...
 *
 * Runs a fuzz target over the inputs given, each whole and cut at every byte,
 * and says so in TAP. An archive is a FILE whose name ends with ".tar": inputs
 * in the ustar format, as ./fuzz makes it. One that is damaged is a failure.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUT_MAX   (1u << 20)
#define ARCHIVE_MAX (8u << 20)
#define CUT_MAX     4096u /* longer ones are only replayed whole */
#define TAR_BLOCK   512u

/* POSIX.1-1988; numbers are octal. */
struct ustar {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12], sum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is a block");

static unsigned int run_cnt;

static void run(const uint8_t *data, size_t len)
{
	/* A block of its own, so that ASan sees the first byte after it. */
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, data, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void replay(const char *name, const uint8_t *data, size_t len)
{
	size_t cut;

	/* Before, so that the last line names the input that crashed. */
	printf("# %s: %zu bytes\n", name, len);
	fflush(stdout);
	for (cut = 0; cut < len && len <= CUT_MAX; cut++)
		run(data, cut);
	run(data, len);
	printf("ok %u - %s\n", ++run_cnt, name);
}

static int trouble(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, what);
	return -1;
}

/* The file's size, at most `max`; -1: it cannot be read, or is larger. */
static long read_all(const char *path, uint8_t *data, size_t max)
{
	FILE *f = fopen(path, "rb");
	size_t len;
	int err;

	if (!f)
		return trouble(path, strerror(errno));
	len = fread(data, 1, max, f);
	err = ferror(f) ? EIO : len == max && fgetc(f) != EOF ? EFBIG : 0;
	fclose(f);
	return err ? trouble(path, strerror(err)) : (long)len;
}

static int replay_file(const char *path)
{
	static uint8_t data[INPUT_MAX];
	long len = read_all(path, data, sizeof(data));

	if (len < 0)
		return -1;
	replay(path, data, (size_t)len);
	return 0;
}

/* -1: no octal number that ends within its field. */
static long octal(const char *p, size_t width)
{
	unsigned long v = 0;
	size_t i;

	for (i = 0; i < width && p[i] >= '0' && p[i] <= '7'; i++)
		v = v * 8 + (unsigned long)(p[i] - '0');
	return i == 0 || i == width || (p[i] != '\0' && p[i] != ' ') ? -1 : (long)v;
}

/* Of all bytes of a header, those of the sum itself taken for spaces. */
static bool is_whole(const struct ustar *h)
{
	const uint8_t *p = (const uint8_t *)h;
	long sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++) {
		bool own = i >= offsetof(struct ustar, sum) &&
			   i < offsetof(struct ustar, sum) + sizeof(h->sum);

		sum += own ? ' ' : p[i];
	}
	return !memcmp(h->magic, "ustar", 6) && octal(h->sum, sizeof(h->sum)) == sum;
}

static bool is_end(const uint8_t *block)
{
	static const uint8_t zeros[TAR_BLOCK];

	return !memcmp(block, zeros, TAR_BLOCK);
}

static int replay_archive(const char *path)
{
	static uint8_t data[ARCHIVE_MAX];
	long got = read_all(path, data, sizeof(data));
	size_t len = got < 0 ? 0 : (size_t)got, at = 0;
	char name[PATH_MAX];

	if (got < 0)
		return -1;
	for (; len - at >= TAR_BLOCK && !is_end(data + at);) {
		struct ustar h;
		size_t room;
		long size;

		memcpy(&h, data + at, sizeof(h));
		at += sizeof(h);
		size = octal(h.size, sizeof(h.size));
		room = len - at;
		if (!is_whole(&h) || h.type != '0' || size < 0)
			return trouble(path, "not an archive of plain files");
		if ((size_t)size > room || (size_t)size > INPUT_MAX)
			return trouble(path, "an input is longer than what is there");
		snprintf(name, sizeof(name), "%s: %.*s", path, (int)sizeof(h.name), h.name);
		replay(name, data + at, (size_t)size);
		size = (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
		if ((size_t)size > room)
			break;
		at += (size_t)size;
	}
	return len - at >= TAR_BLOCK && is_end(data + at) ? 0 : trouble(path, "has no end");
}

static int replay_dir(const char *path, DIR *d)
{
	char file[PATH_MAX];
	struct dirent *de;
	int ret = 0;

	while ((de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, de->d_name);
		ret |= replay_file(file);
	}
	closedir(d);
	return ret;
}

static int replay_path(const char *path)
{
	size_t len = strlen(path);
	DIR *d = opendir(path);

	if (d)
		return replay_dir(path, d);
	if (len > 4 && !strcmp(path + len - 4, ".tar"))
		return replay_archive(path);
	return replay_file(path);
}

int main(int argc, char **argv)
{
	int ret = 0;
	int i;

	for (i = 1; i < argc; i++)
		ret |= replay_path(argv[i]);
	if (!run_cnt) {
		fprintf(stderr, "no input to replay\n");
		return 1;
	}
	printf("1..%u\n", run_cnt);
	return ret ? 1 : 0;
}
