/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random operations on two files, each compared with a model in memory: read,
 * write, append, truncate, mmap, allocate, punch, seek, copy, sync, open and
 * close with other flags, rename, link, unlink while open; the size after each.
 *
 *   fsx [-n OPERATIONS] [-s SEED] [-m cached|direct|mixed] [-l LIMIT] [-p]
 *       [-t SECONDS] [-k DIR] [-x byte|size|lost] FILE
 *
 *   -n  how many operations (10000)
 *   -s  the same seed makes the same operations, whatever the file system; it is printed
 *   -m  all descriptors cached, or O_DIRECT, or some of each (cached)
 *   -l  the largest size, in bytes (3 MiB)
 *   -p  a second process looks at the files after each operation
 *   -t  ends after so many seconds, if that is earlier; at SIGTERM it does so as well
 *   -k  the files stay in the end, and what they must hold is written to DIR/0 and DIR/1
 *   -x  proves that faults are found: before the last operation a byte is
 *       changed, or the file made longer, by another writer; or the last
 *       write is not done
 *
 * FILE and FILE.b are made, with FILE.over and FILE.second beside them. Status
 * 0: all was as it must be; the last line has a digest of what was read, the
 * same on each file system. 1: it was not; what happened is printed, with how
 * to have it again, and the files stay. 2: usage.
 */
#include "fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECK_ALL 500 /* operations from one look at both files to the next */

struct fsx fsx;

static const struct {
	void (*fn)(void);
	unsigned int weight;
	bool maps;
} table[] = {
	{fsx_do_read, 200, false},
	{fsx_do_write, 220, false},
	{fsx_do_append, 50, false},
	{fsx_do_truncate, 80, false},
	{fsx_do_map_read, 70, true},
	{fsx_do_map_write, 70, true},
	{fsx_do_map_again, 15, true},
	{fsx_do_allocate, 15, false},
	{fsx_do_punch, 40, false},
	{fsx_do_seek, 40, false},
	{fsx_do_copy, 40, false},
	{fsx_do_sync, 40, false},
	{fsx_do_reopen, 80, false},
	{fsx_do_rename, 8, false},
	{fsx_do_link, 12, false},
	{fsx_do_unlink, 8, false},
};

static struct {
	unsigned long ops;
	double seconds;
	const char *path, *keep;
} args = {.ops = 10000, .seconds = 1e9};
static volatile sig_atomic_t told_to_end;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A page of a mapping that cannot be read. */
static void on_bus(int sig)
{
	(void)sig;
	fsx_wrong("SIGBUS");
}

static void one_operation(void)
{
	unsigned int weights = 0;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		weights += table[i].weight;
	for (;;) {
		uint32_t what = fsx_rnd(weights);

		for (i = 0; what >= table[i].weight; i++)
			what -= table[i].weight;
		if (!table[i].maps || fsx.mode != FSX_DIRECT)
			break;
	}
	table[i].fn();
}

/* Of the file that the operation was on. */
static void check_size(void)
{
	struct fsx_file *f = fsx.last;
	struct fsx_slot *s = fsx_some_slot(f, O_RDONLY);
	struct stat st;

	if (fsx_rnd(2) && !f->unlinked ? stat(f->path, &st) : fstat(s->fd, &st))
		fsx_wrong("stat of %s: %s", f->path, strerror(errno));
	if ((size_t)st.st_size != f->size)
		fsx_wrong("stat of %s: expected size %zu, found %lld", f->path, f->size,
			(long long)st.st_size);
	if (fsx.peer)
		fsx_peer_look(fsx_some_file());
}

/* Somebody else, who does not tell the model. */
static void do_sabotage(void)
{
	struct fsx_file *f = &fsx.files[fsx.files[0].size == 0];
	size_t at = f->size && fsx.sabotage == FSX_BYTE ? fsx_rnd((uint32_t)f->size) : f->size;
	uint8_t byte = f->model[at] ^ 0x55;

	if (f->size == 0)
		fsx_wrong("sabotage: no file has data");
	fsx.last = f;
	fsx_note(f, "sabotage");
	if (pwrite(f->slots[0].fd, &byte, 1, (off_t)at) != 1)
		fsx_wrong("sabotage: %s", strerror(errno));
	printf("sabotage: offset %zu\n", at);
}

static void run(void)
{
	double start = now();

	for (fsx.op = 0; fsx.op < args.ops && now() - start < args.seconds && !told_to_end;
		fsx.op++) {
		if (fsx.sabotage != FSX_HONEST && fsx.op == fsx.sabotage_op)
			fsx.sabotage == FSX_LOST ? fsx_do_write() : do_sabotage();
		else
			one_operation();
		check_size();
		if (fsx.op % CHECK_ALL == CHECK_ALL - 1) {
			for (int i = 0; i < FSX_FILES; i++)
				fsx_check_file(&fsx.files[i], "check");
		}
	}
	for (int i = 0; i < FSX_FILES; i++)
		fsx_check_file(&fsx.files[i], "last check");
}

static void keep(struct fsx_file *f, int number)
{
	char path[FSX_PATH];
	FILE *out;

	if (snprintf(path, sizeof(path), "%s/%d", args.keep, number) >= (int)sizeof(path) ||
		!(out = fopen(path, "w")) || fwrite(f->model, 1, f->size, out) != f->size ||
		fclose(out))
		fsx_wrong("%s: %s", path, strerror(errno));
}

static void finish(void)
{
	for (int i = 0; i < FSX_FILES; i++) {
		struct fsx_file *f = &fsx.files[i];

		fsx_unmap(f);
		fsx_close_all(f);
		if (f->unlinked)
			fsx_create(f, NULL);
		else
			f->slots[0].fd = open(f->path, O_RDWR);
		f->slots[0].flags = O_RDWR;
		fsx_check_file(f, "check after the last close");
		fsx_close_all(f);
		if (args.keep)
			keep(f, i);
		else
			fsx_remove(f);
		free(f->model);
	}
	free(fsx.io);
}

/* The place of a word among words; ends the program if it is none of them. */
static int one_of(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	fprintf(stderr, "fsx: what is `%s`?\n", word);
	exit(2);
}

static const char *const modes[] = {"cached", "direct", "mixed", NULL};
static const char *const faults[] = {"", "byte", "size", "lost", NULL};

static void options(int argc, char **argv)
{
	uint64_t seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
	int c;

	fsx.limit = 3u << 20;
	while ((c = getopt(argc, argv, "n:s:m:l:pt:k:x:")) != -1) {
		if (c == 'n')
			args.ops = strtoul(optarg, NULL, 10);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (c == 'm')
			fsx.mode = (enum fsx_mode)one_of(optarg, modes);
		else if (c == 'l')
			fsx.limit = strtoul(optarg, NULL, 10);
		else if (c == 'p')
			fsx.peer = true;
		else if (c == 't')
			args.seconds = strtod(optarg, NULL);
		else if (c == 'k')
			args.keep = optarg;
		else if (c == 'x')
			fsx.sabotage = (enum fsx_sabotage)one_of(optarg, faults);
		else
			exit(2);
	}
	if (optind + 1 != argc || fsx.limit < 2 * FSX_PAGE || fsx.limit > FSX_SIZE_MAX)
		exit(2);
	args.path = argv[optind];
	fsx.sabotage_op = args.ops - 1;
	fsx_seed(seed);
	fsx_again("-m %s -l %zu%s%s%s %s", modes[fsx.mode], fsx.limit, fsx.peer ? " -p" : "",
		fsx.sabotage ? " -x " : "", faults[fsx.sabotage], args.path);
}

static void on_term(int sig)
{
	told_to_end = 1;
}

int main(int argc, char **argv)
{
	double start = now();
	char other[FSX_PATH];

	options(argc, argv);
	if (snprintf(other, sizeof(other), "%s.b", args.path) >= (int)sizeof(other) - 10)
		return 2;
	printf("seed %llu: %s, %s\n", (unsigned long long)fsx_the_seed(), args.path,
		modes[fsx.mode]);
	fflush(stdout);
	signal(SIGBUS, on_bus);
	signal(SIGTERM, on_term);
	fsx.io = aligned_alloc(FSX_PAGE, FSX_IO_MAX + 2 * FSX_PAGE);
	for (int i = 0; i < FSX_FILES; i++) {
		fsx.files[i].model = calloc(1, fsx.limit + 1);
		if (!fsx.io || !fsx.files[i].model)
			return 2;
		fsx_create(&fsx.files[i], i == 0 ? args.path : other);
	}
	if (fsx.peer)
		fsx_peer_start();
	run();
	finish();
	if (fsx.peer)
		fsx_peer_stop();
	printf("%lu operations in %.1f s, %lu done by hand\n", fsx.op, now() - start, fsx.refused);
	printf("digest %016llx\n", (unsigned long long)fsx.digest);
	return 0;
}
