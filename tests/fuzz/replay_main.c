/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay FILE-OR-FOLDER...
 *
 * Runs a fuzz target over the inputs given, each whole and cut at every byte,
 * and says so in TAP.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUT_MAX (1u << 20)
#define CUT_MAX   4096u /* longer ones are only replayed whole */

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

static int replay_file(const char *path)
{
	static uint8_t data[INPUT_MAX];
	FILE *f = fopen(path, "rb");
	size_t len, cut;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	len = fread(data, 1, sizeof(data), f);
	fclose(f);
	/* Before, so that the last line names the input that crashed. */
	printf("# %s: %zu bytes\n", path, len);
	fflush(stdout);
	for (cut = 0; cut < len && len <= CUT_MAX; cut++)
		run(data, cut);
	run(data, len);
	printf("ok %u - %s\n", ++run_cnt, path);
	return 0;
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

int main(int argc, char **argv)
{
	int ret = 0;
	DIR *d;
	int i;

	for (i = 1; i < argc; i++) {
		d = opendir(argv[i]);
		ret |= d ? replay_dir(argv[i], d) : replay_file(argv[i]);
	}
	if (!run_cnt) {
		fprintf(stderr, "no input to replay\n");
		return 1;
	}
	printf("1..%u\n", run_cnt);
	return ret ? 1 : 0;
}
