/* SPDX-License-Identifier: BSD-3-Clause */
/* Listing directories: small, large, changing, forwards, backwards. */
#include "mnt.h"

#include <dirent.h>
#include <ftw.h>

SUITE(dirs);

static void make_files(const char *dir, int from, int to)
{
	char path[PATH_MAX];

	for (int i = from; i < to; i++) {
		snprintf(path, sizeof(path), "%s/file-%06d", dir, i);
		WORKS(close(WORKS(open(path, O_CREAT | O_WRONLY, 0644))));
	}
}

/* Reads on; each file-NNNNNN must come once. Returns how many came. */
static int read_on(DIR *d, uint8_t *seen, int max)
{
	struct dirent *e;
	int n = 0;

	while ((errno = 0, e = readdir(d)) != NULL) {
		int i;

		if (e->d_name[0] == '.')
			continue;
		cr_assert(sscanf(e->d_name, "file-%d", &i) == 1 && i >= 0 && i < max, "%s",
			e->d_name);
		cr_assert(seen[i] == 0, "%s came twice", e->d_name);
		seen[i] = 1;
		n++;
	}
	cr_assert(errno == 0, "readdir: %s", strerror(errno));
	return n;
}

static DIR *open_dir(const char *path)
{
	DIR *d = opendir(path);

	cr_assert(d, "%s: %s", path, strerror(errno));
	return d;
}

static void want_all(const char *path, int cnt)
{
	uint8_t *seen = calloc((size_t)cnt, 1);
	DIR *d = open_dir(path);

	cr_assert(read_on(d, seen, cnt) == cnt);
	WORKS(closedir(d));
	free(seen);
}

Test(dirs, that_are_empty)
{
	struct dirent *e;
	DIR *d;
	int n = 0;

	WORKS(mkdir(c("d"), 0755));
	cr_assert(count_entries(c("d")) == 0);
	d = open_dir(c("d"));
	while ((e = readdir(d)) != NULL) {
		n++;
		cr_assert(e->d_type == DT_DIR && e->d_name[0] == '.');
	}
	cr_assert(n == 2, "%d of . and ..", n);
	WORKS(closedir(d));
}

Test(dirs, of_5000_files_are_listed_whole_with_their_attributes)
{
	char path[PATH_MAX];
	struct stat st;

	WORKS(mkdir(s("d"), 0755));
	make_files(s("d"), 0, 5000);
	want_all(c("d"), 5000);
	for (int i = 0; i < 5000; i += 7) {
		snprintf(path, sizeof(path), "%s/file-%06d", c("d"), i);
		WORKS(stat(path, &st));
		cr_assert(S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 1);
	}
	want_all(c("d"), 5000);
}

Test(dirs, of_10000_files_are_listed_whole)
{
	WORKS(mkdir(s("d"), 0755));
	make_files(s("d"), 0, 10000);
	want_all(c("d"), 10000);
}

Test(dirs, tell_and_seek_to_the_same_place)
{
	enum {
		CNT = 1500
	};
	static long where[CNT];
	static char names[CNT][32];
	struct dirent *e;
	DIR *d;
	int n = 0;

	WORKS(mkdir(s("d"), 0755));
	make_files(s("d"), 0, CNT);
	d = open_dir(c("d"));
	for (long pos = telldir(d); (e = readdir(d)) != NULL; pos = telldir(d)) {
		if (e->d_name[0] == '.')
			continue;
		where[n] = pos;
		snprintf(names[n++], sizeof(names[0]), "%.31s", e->d_name);
	}
	cr_assert(n == CNT);
	for (int i = CNT - 1; i >= 0; i -= 37) {
		seekdir(d, where[i]);
		e = readdir(d);
		cr_assert(e != NULL && strcmp(e->d_name, names[i]) == 0, "%s, not %s",
			e ? e->d_name : "nothing", names[i]);
	}
	WORKS(closedir(d));
}

Test(dirs, rewound_show_what_is_new)
{
	uint8_t seen[20] = {0};
	DIR *d;

	WORKS(mkdir(c("d"), 0755));
	make_files(c("d"), 0, 10);
	d = open_dir(c("d"));
	cr_assert(read_on(d, seen, 20) == 10);
	make_files(c("d"), 10, 15);
	make_files(s("d"), 15, 20);
	memset(seen, 0, sizeof(seen));
	rewinddir(d);
	cr_assert(read_on(d, seen, 20) == 20);
	WORKS(closedir(d));
}

Test(dirs, emptied_while_they_are_listed)
{
	char path[PATH_MAX];
	struct dirent *e;
	int n = 0;
	DIR *d;

	WORKS(mkdir(s("d"), 0755));
	make_files(s("d"), 0, 1200);
	d = open_dir(c("d"));
	while ((errno = 0, e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", c("d"), e->d_name);
		WORKS(unlink(path));
		n++;
	}
	cr_assert(errno == 0, "%s", strerror(errno));
	WORKS(closedir(d));
	cr_assert(n == 1200, "%d of 1200", n);
	WORKS(rmdir(c("d")));
	FAILS(access(s("d"), F_OK), ENOENT);
}

Test(dirs, filled_while_they_are_listed)
{
	uint8_t *seen = calloc(3000, 1);
	struct dirent *e;
	DIR *d;
	int n = 0;

	WORKS(mkdir(s("d"), 0755));
	make_files(s("d"), 0, 1000);
	d = open_dir(c("d"));
	for (int i = 0; i < 100 && (e = readdir(d)) != NULL; i++) {
		int num;

		if (sscanf(e->d_name, "file-%d", &num) == 1)
			seen[num] = 1, n++;
	}
	make_files(s("d"), 1000, 2000);
	make_files(c("d"), 2000, 2100);
	read_on(d, seen, 3000);
	for (int i = 0; i < 1000; i++)
		cr_assert(seen[i], "file-%06d did not come", i);
	WORKS(closedir(d));
	free(seen);
	want_all(c("d"), 2100);
}

Test(dirs, entries_have_the_type_and_number_that_stat_shows)
{
	struct dirent *e;
	DIR *d;
	int n = 0;

	WORKS(mkdir(c("dir"), 0755));
	put_text(c("file"), "");
	WORKS(symlink("file", c("link")));
	WORKS(mkfifo(c("fifo"), 0600));
	d = open_dir(c(""));
	while ((e = readdir(d)) != NULL) {
		struct stat st;

		if (strcmp(e->d_name, "..") == 0)
			continue;
		st = stat_of(c(e->d_name));
		cr_assert(e->d_type == IFTODT(st.st_mode), "%s", e->d_name);
		cr_assert(e->d_ino == st.st_ino, "%s", e->d_name);
		n++;
	}
	cr_assert(n == 5);
	WORKS(closedir(d));
}

Test(dirs, listed_by_two_at_once)
{
	uint8_t a[900] = {0}, b[900] = {0};
	DIR *one, *two;

	WORKS(mkdir(s("d"), 0755));
	make_files(s("d"), 0, 900);
	one = open_dir(c("d"));
	two = open_dir(c("d"));
	for (int i = 0; i < 300; i++) {
		struct dirent *e = readdir(one);
		int num;

		if (sscanf(e->d_name, "file-%d", &num) == 1)
			a[num] = 1;
		e = readdir(two);
		if (sscanf(e->d_name, "file-%d", &num) == 1)
			b[num] = 1;
	}
	read_on(one, a, 900);
	read_on(two, b, 900);
	for (int i = 0; i < 900; i++)
		cr_assert(a[i] && b[i]);
	WORKS(closedir(one));
	WORKS(closedir(two));
}

Test(dirs, with_names_of_255_bytes)
{
	char name[256];
	struct dirent *e;
	DIR *d;
	int n = 0;

	WORKS(mkdir(s("d"), 0755));
	for (int i = 0; i < 300; i++) {
		char path[PATH_MAX];

		memset(name, 'n', 255);
		name[255] = '\0';
		snprintf(name, 8, "%07d", i);
		name[7] = '-';
		snprintf(path, sizeof(path), "%s/%s", s("d"), name);
		WORKS(mkdir(path, 0755));
	}
	d = open_dir(c("d"));
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.') {
			cr_assert(strlen(e->d_name) == 255);
			n++;
		}
	cr_assert(n == 300, "%d", n);
	WORKS(closedir(d));
}

Test(dirs, gone_on_the_server_say_so)
{
	DIR *d;

	WORKS(mkdir(s("d"), 0755));
	make_files(s("d"), 0, 3);
	d = open_dir(c("d"));
	cr_assert(readdir(d));
	for (int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "d/file-%06d", i);
		WORKS(unlink(s(name)));
	}
	WORKS(rmdir(s("d")));
	rewinddir(d);
	errno = 0;
	while (readdir(d) != NULL)
		;
	/* ext4 reads a removed directory as an empty one if nfsd still has it. */
	cr_assert(errno == 0 || errno == ESTALE || errno == ENOENT, "%s", strerror(errno));
	WORKS(closedir(d));
}

static bool user_lists(void)
{
	return opendir(c("closed")) == NULL && errno == EACCES && opendir(c("open")) != NULL &&
	       access(c("closed/f"), F_OK) == -1 && errno == EACCES;
}

Test(dirs, are_closed_to_who_may_not_read_them)
{
	WORKS(mkdir(c("closed"), 0700));
	WORKS(mkdir(c("open"), 0755));
	put_text(c("closed/f"), "secret");
	cr_assert(count_entries(c("closed")) == 1);
	as_user(1500, 1500, user_lists);
}

static int removed;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	removed++;
	return remove(path);
}

Test(dirs, trees_are_walked_and_removed)
{
	char path[64];

	for (int i = 0; i < 12; i++) {
		snprintf(path, sizeof(path), "d%d", i);
		WORKS(mkdir(c(path), 0755));
		strcat(path, "/e");
		WORKS(mkdir(c(path), 0755));
		make_files(c(path), 0, 20);
	}
	cr_assert(nftw(c(""), remove_entry, 20, FTW_DEPTH | FTW_PHYS) == 0, "%s", strerror(errno));
	cr_assert(removed == 12 * 22 + 1, "%d", removed);
	FAILS(access(s(""), F_OK), ENOENT);
}
