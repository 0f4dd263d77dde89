/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A directory with very many entries: files named 0 to N - 1.
 *
 *   bigdir make DIR N      makes them
 *   bigdir list DIR N      each is listed once, and nothing else
 *   bigdir change DIR N    the same for those that stay, while others come and
 *                          go: each hundredth of the old ones is removed, new
 *                          ones are made, renamed and removed
 *   bigdir seek DIR N      each 997th telldir() leads back to its entry, in any
 *                          order, also when entries came and went meanwhile
 *
 * Says what it saw; ends with 1 if it is not as it must be.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned long n;

static void fail(const char *what)
{
	fprintf(stderr, "bigdir: %s: %s\n", what, strerror(errno));
	exit(1);
}

static DIR *open_here(void)
{
	DIR *d = opendir(".");

	if (d == NULL)
		fail("opendir");
	return d;
}

/* Of a file's name, or n if it is another name. */
static unsigned long number_of(const char *name)
{
	char *end;
	unsigned long i = strtoul(name, &end, 10);

	return *name >= '0' && *name <= '9' && *end == '\0' && i < n ? i : n;
}

static void make_file(const char *name)
{
	if (mknod(name, S_IFREG | 0644, 0) == -1)
		fail(name);
}

static int make(void)
{
	char name[32];

	for (unsigned long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%lu", i);
		make_file(name);
	}
	return 0;
}

static bool goes(unsigned long i)
{
	return i % 100 == 0;
}

/* Called for each entry listed, when others are to come and go. */
static void disturb(unsigned long step)
{
	char name[32];

	if (step % 1000 != 0)
		return;
	for (unsigned long i = step / 1000 * 1000; i < step / 1000 * 1000 + 1000 && i < n;
		i += 100) {
		snprintf(name, sizeof(name), "%lu", i);
		if (unlink(name) == -1 && errno != ENOENT)
			fail(name);
	}
	snprintf(name, sizeof(name), "new.%lu", step);
	make_file(name);
	if (step % 2000 == 0)
		return;
	if (rename(name, "renamed") == -1 || unlink("renamed") == -1)
		fail(name);
}

static int list(bool change)
{
	unsigned char *seen = calloc(n, 1);
	unsigned long step = 0, missed = 0, twice = 0, others = 0;
	struct dirent *e;
	DIR *d = open_here();

	for (; (errno = 0, e = readdir(d)) != NULL; step++) {
		unsigned long i = number_of(e->d_name);

		if (change)
			disturb(step);
		if (i < n && !(change && goes(i)))
			twice += seen[i]++ != 0;
		else if (i == n && e->d_name[0] != '.' && !change)
			others++;
	}
	if (errno != 0)
		fail("readdir");
	for (unsigned long i = 0; i < n; i++)
		missed += !seen[i] && !(change && goes(i));
	closedir(d);
	free(seen);
	printf("%lu entries, %lu missed, %lu twice, %lu others\n", step, missed, twice, others);
	return missed != 0 || twice != 0 || others != 0;
}

static int seek(void)
{
	struct {
		long where;
		unsigned long number;
	} *marks = calloc(n / 997 + 1, sizeof(*marks));
	unsigned long step = 0, count = 0, wrong = 0;
	struct dirent *e;
	DIR *d = open_here();

	for (;; step++) {
		long where = telldir(d);

		e = readdir(d);
		if (e == NULL)
			break;
		if (step % 997 == 0 && number_of(e->d_name) < n && count <= n / 997) {
			marks[count].where = where;
			marks[count++].number = number_of(e->d_name);
		}
	}
	make_file("came");
	for (unsigned long k = 0; k < count; k++) {
		unsigned long at = k * 389 % count;

		seekdir(d, marks[at].where);
		e = readdir(d);
		wrong += e == NULL || number_of(e->d_name) != marks[at].number;
	}
	if (unlink("came") == -1)
		fail("came");
	closedir(d);
	free(marks);
	printf("%lu entries, %lu positions, %lu wrong\n", step, count, wrong);
	return count == 0 || wrong != 0;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: bigdir make|list|change|seek DIR N\n");
		return 2;
	}
	n = strtoul(argv[3], NULL, 10);
	if (n == 0 || chdir(argv[2]) == -1)
		fail(argv[2]);
	if (strcmp(argv[1], "make") == 0)
		return make();
	if (strcmp(argv[1], "seek") == 0)
		return seek();
	return list(strcmp(argv[1], "change") == 0);
}
