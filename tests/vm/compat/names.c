/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of every length and byte, paths to PATH_MAX, symbolic links. */
#include "compat.h"

/* Two of them are good at a time. */
static const char *name_of(size_t len)
{
	static char names[2][NAME_MAX + 2];
	static unsigned int turn;
	char *name = names[turn++ % 2];

	memset(name, 'n', len);
	name[len] = '\0';
	return name;
}

static void longest(void)
{
	tell(open(name_of(255), O_CREAT | O_WRONLY, 0644));
	tell(open(name_of(256), O_CREAT | O_WRONLY, 0644));
	tell(open(name_of(256), O_RDONLY));
	tell(mkdir(name_of(254), 0777));
	tell(mkdir(name_of(256), 0777));
	tell(rename(name_of(255), name_of(256)));
	tell(symlink("x", name_of(256)));
	tell(unlink(name_of(255)));
	tell(access(name_of(256), F_OK));
}

static void bytes(void)
{
	char name[4] = "a.b";
	int made = 0, seen = 0, removed = 0;

	for (int c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		name[1] = (char)c;
		made += mknod(name, S_IFREG | 0644, 0) == 0;
		seen += access(on_server(name), F_OK) == 0;
		removed += unlink(name) == 0;
	}
	say("%d %d %d", made, seen, removed);
}

static void not_utf8(void)
{
	static const char *const names[] = {
		"\xff\xfe", "\xc3(", "\xed\xa0\x80", "\xf8\x88\x80\x80"};

	for (size_t i = 0; i < 4; i++)
		tell(open(names[i], O_CREAT | O_WRONLY, 0644));
	tell(access(on_server("\xff\xfe"), F_OK));
}

static void dots(void)
{
	tell(mkdir(".", 0777));
	tell(mkdir("..", 0777));
	tell(open("...", O_CREAT | O_WRONLY, 0644));
	tell(mkdir("...a", 0777));
	tell(open(".", O_CREAT | O_WRONLY, 0644));
}

static void slashes(void)
{
	struct stat st;

	put("f", "");
	tell(stat("f/", &st));
	tell(stat("f/.", &st));
	tell(mkdir("d/", 0777));
	tell(stat("d/", &st));
	tell(stat("d//.//", &st));
	tell(unlink("f/"));
	tell(rename("f", "g/"));
	tell(rename("d/", "e/"));
	tell(rmdir("e/"));
}

static void paths(void)
{
	char *path = malloc(PATH_MAX + 10);
	size_t len = 0;

	while (len < PATH_MAX + 2)
		len += (size_t)sprintf(path + len, "./");
	put("f", "");
	path[PATH_MAX - 2] = 'f';
	path[PATH_MAX - 1] = '\0';
	tell(open(path, O_RDONLY));
	memcpy(path + PATH_MAX - 2, "/f", 3);
	tell(open(path, O_RDONLY));
}

/* 30 folders of 255 bytes each, made step by step. */
static void deep(void)
{
	char path[PATH_MAX];
	int made = 0;

	for (; made < 30 && mkdir(name_of(255), 0777) == 0 && chdir(name_of(255)) == 0; made++)
		;
	say("%d", made);
	put("f", "text");
	say_text("f");
	errno = 0;
	say("%s", getcwd(path, sizeof(path)) == NULL ? error_name(errno) : "a path");
}

static void not_a_directory(void)
{
	struct stat st;

	put("f", "");
	tell(mkdir("f/d", 0777));
	tell(stat("f/x", &st));
	tell(unlink("f/x"));
	tell(rmdir("f/x"));
	tell(mkdir("none/d", 0777));
	tell(rename("f", "none/f"));
	tell(symlink("x", "none/l"));
}

static void case_kept(void)
{
	put("Name", "upper");
	tell(access("name", F_OK));
	put("name", "lower");
	say_text("Name");
}

/* ---- symbolic links ---- */

static void link_lengths(void)
{
	char *target = malloc(PATH_MAX + 2), *back = malloc(PATH_MAX + 2);
	struct stat st;

	memset(target, 't', PATH_MAX + 1);
	target[4095] = '\0';
	tell(symlink(target, "l"));
	count(readlink("l", back, PATH_MAX + 1));
	say("%s", memcmp(target, back, 4095) == 0 ? "same" : "other");
	NEED(lstat("l", &st));
	say("size %ld mode %o", (long)st.st_size, st.st_mode & 07777);
	target[4095] = 't';
	target[4096] = '\0';
	tell(symlink(target, "m"));
}

static void link_short_buffer(void)
{
	char back[8] = "";

	NEED(symlink("target", "l"));
	count(readlink("l", back, 3));
	say("%s", back);
	count(readlink("l", back, 0));
}

static void link_wrong(void)
{
	char back[8];

	put("f", "");
	tell(symlink("", "l"));
	tell(symlink("x", "f"));
	tell(symlink("x", "f/l"));
	tell(symlink("x", "new/"));
	count(readlink("f", back, 8));
	count(readlink(".", back, 8));
	count(readlink("none", back, 8));
}

static void link_loop(void)
{
	NEED(symlink("b", "a"));
	NEED(symlink("a", "b"));
	NEED(symlink(".", "here"));
	tell(open("a", O_RDONLY));
	tell(access("here/here/here/here", F_OK));
	NEED(symlink("self", "self"));
	tell(chdir("self"));
}

static void link_chain(void)
{
	char from[16], to[16];

	put("l0", "text");
	for (int i = 0; i < 41; i++) {
		snprintf(to, sizeof(to), "l%d", i);
		snprintf(from, sizeof(from), "l%d", i + 1);
		NEED(symlink(to, from));
	}
	tell(open("l40", O_RDONLY));
	tell(open("l41", O_RDONLY));
}

static void link_bytes(void)
{
	char back[16] = "";

	NEED(symlink("\x01 \xff\n\\", "l"));
	count(readlink("l", back, sizeof(back)));
	say("%s", strcmp(back, "\x01 \xff\n\\") == 0 ? "same" : "other");
}

static void link_in_the_way(void)
{
	NEED(mkdir("d", 0777));
	put("d/f", "text");
	NEED(symlink("d", "l"));
	say_text("l/f");
	tell(rmdir("l"));
	tell(open("l", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
	tell(unlink("l/"));
	tell(unlink("l"));
	say_text("d/f");
}

const struct topic topic_names = {.name = "names and symlinks",
	.probes = (const struct probe[]){
		{"255 bytes, 256: create; open; mkdir of 254, 256; rename, symlink to 256; unlink "
		 "of 255; access of 256",
			longest},
		{"each byte but / and NUL: made, on the server, removed", bytes},
		{"no UTF-8: four names; on the server", not_utf8},
		{"mkdir of . and ..; a file '...', a directory '...a'; create of .", dots},
		{"trailing slashes: stat of a file, of file/., mkdir, stat twice, unlink, rename "
		 "of a file, of a directory, rmdir",
			slashes},
		{"a path of PATH_MAX - 1 bytes, of PATH_MAX", paths},
		{"30 directories of 255 bytes in each other: made, a file inside, getcwd", deep},
		{"below a file: mkdir, stat, unlink, rmdir; below no such name: mkdir, rename, "
		 "symlink",
			not_a_directory},
		{"upper and lower case", case_kept},
		{"symlink of 4095 bytes: read, same, size and mode; of 4096", link_lengths},
		{"readlink with a short buffer, with none", link_short_buffer},
		{"symlink to \"\"; over a file; below a file; with a slash; readlink of a file, a "
		 "directory, no such name",
			link_wrong},
		{"symlinks in a circle; through . four times; chdir to itself", link_loop},
		{"a chain of 40 symlinks, of 41", link_chain},
		{"a symlink of odd bytes", link_bytes},
		{"a symlink to a directory: read below, rmdir, O_DIRECTORY with O_NOFOLLOW, unlink "
		 "with a slash, without",
			link_in_the_way},
		{0}}};
