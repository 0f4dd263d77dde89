/* SPDX-License-Identifier: BSD-3-Clause */
/* open(2): its flags, and what it refuses. */
#include "compat.h"

#include <linux/openat2.h>
#include <sys/syscall.h>

static void excl_new(void)
{
	tell(open("f", O_CREAT | O_EXCL | O_WRONLY, 0640));
	say_mode("f");
}

static void excl_existing(void)
{
	put("f", "");
	tell(open("f", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

static void excl_symlink(void)
{
	NEED(symlink("none", "l"));
	tell(open("l", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

static void creat_dangling(void)
{
	NEED(symlink("target", "l"));
	tell(open("l", O_CREAT | O_WRONLY, 0644));
	say_size("target");
}

static void creat_directory(void)
{
	NEED(mkdir("d", 0777));
	tell(open("d", O_CREAT | O_RDONLY, 0644));
}

static void creat_slash(void)
{
	tell(open("new/", O_CREAT | O_WRONLY, 0644));
}

static void creat_not_writable(void)
{
	tell(open("d/f", O_CREAT | O_WRONLY, 0644));
	tell(open("d/there", O_CREAT | O_WRONLY, 0644));
}

static void creat_in_readonly(void)
{
	NEED(mkdir("d", 0755));
	put("d/there", "");
	as(ALICE, TEAM, creat_not_writable);
}

static void creat_mode_0(void)
{
	int fd = (int)tell(open("f", O_CREAT | O_RDWR, 0));

	count(write(fd, "text", 4));
	count(pread(fd, &(char[4]){0}, 4, 0));
	tell(open("f", O_RDONLY));
}

static void creat_mode_0_alice(void)
{
	as(ALICE, TEAM, creat_mode_0);
}

static void directory_for_writing(void)
{
	NEED(mkdir("d", 0777));
	tell(open("d", O_WRONLY));
	tell(open("d", O_RDWR));
}

static void directory_read(void)
{
	char c;
	int fd;

	NEED(mkdir("d", 0777));
	fd = (int)tell(open("d", O_RDONLY));
	count(read(fd, &c, 1));
	count(write(fd, "c", 1));
}

static void directory_flag(void)
{
	put("f", "");
	NEED(mkdir("d", 0777));
	tell(open("f", O_RDONLY | O_DIRECTORY));
	tell(open("d", O_RDONLY | O_DIRECTORY));
	tell(open("none", O_RDONLY | O_DIRECTORY));
}

static void directory_creat(void)
{
	tell(open("new", O_RDONLY | O_DIRECTORY | O_CREAT, 0644));
	tell(access("new", F_OK));
}

static void nofollow(void)
{
	put("f", "");
	NEED(symlink("f", "l"));
	tell(open("l", O_RDONLY | O_NOFOLLOW));
	tell(open("f", O_RDONLY | O_NOFOLLOW));
	tell(open("l", O_WRONLY | O_CREAT | O_NOFOLLOW, 0644));
}

static void path_flag(void)
{
	struct stat st;
	char c;
	int fd;

	put("f", "text");
	fd = (int)tell(open("f", O_PATH));
	count(read(fd, &c, 1));
	tell(fstat(fd, &st));
	tell(fchmod(fd, 0600));
	tell(ftruncate(fd, 0));
	tell(fcntl(fd, F_SETFL, O_APPEND));
}

static void path_symlink(void)
{
	char target[8] = "";
	int fd;

	NEED(symlink("f", "l"));
	fd = (int)tell(open("l", O_PATH | O_NOFOLLOW));
	count(readlinkat(fd, "", target, sizeof(target)));
	say("%s", target);
}

static void tmpfile_flag(void)
{
	tell(open(".", O_TMPFILE | O_RDWR, 0600));
}

static void noatime_open(void)
{
	tell(open("f", O_RDONLY | O_NOATIME));
}

static void noatime_owner(void)
{
	put_as("f", ALICE, TEAM, 0666);
	as(ALICE, TEAM, noatime_open);
}

static void noatime_other(void)
{
	put_as("f", ALICE, TEAM, 0666);
	as(BOB, CREW, noatime_open);
}

static void trunc_flag(void)
{
	put("f", "text");
	tell(open("f", O_WRONLY | O_TRUNC));
	say_size("f");
}

static void trunc_reading(void)
{
	put("f", "text");
	tell(open("f", O_RDONLY | O_TRUNC));
	say_size("f");
}

static void trunc_open(void)
{
	tell(open("f", O_RDONLY | O_TRUNC));
	tell(open("f", O_WRONLY | O_TRUNC));
	say_size("f");
}

static void trunc_not_writable(void)
{
	put_as("f", ALICE, TEAM, 0644);
	as(BOB, CREW, trunc_open);
}

static void open_for_each(void)
{
	tell(open("f", O_RDONLY));
	tell(open("f", O_WRONLY));
	tell(open("f", O_RDWR));
}

static void mode_000_owner(void)
{
	put_as("f", ALICE, TEAM, 0);
	as(ALICE, TEAM, open_for_each);
}

static void mode_000_root(void)
{
	put_as("f", ALICE, TEAM, 0);
	open_for_each();
}

static void mode_0111(void)
{
	put_as("f", ALICE, TEAM, 0111);
	as(BOB, CREW, open_for_each);
}

static void mode_0444(void)
{
	put_as("f", ALICE, TEAM, 0444);
	as(ALICE, TEAM, open_for_each);
}

static void accmode_3(void)
{
	char c;
	int fd;

	put("f", "text");
	fd = (int)tell(open("f", 3));
	count(read(fd, &c, 1));
	count(write(fd, "c", 1));
}

static void wrong_way(void)
{
	char c;

	put("f", "text");
	count(read((int)NEED(open("f", O_WRONLY)), &c, 1));
	count(write((int)NEED(open("f", O_RDONLY)), "c", 1));
}

static void no_such(void)
{
	put("f", "");
	tell(open("", O_RDONLY));
	tell(open("none", O_RDONLY));
	tell(open("none/f", O_RDONLY));
	tell(open("f/f", O_RDONLY));
	tell(open("f/", O_RDONLY));
}

static void sync_flags(void)
{
	put("f", "");
	count(write((int)tell(open("f", O_WRONLY | O_SYNC)), "text", 4));
	count(write((int)tell(open("f", O_WRONLY | O_DSYNC)), "text", 4));
	say_text(on_server("f"));
}

static void reopened(void)
{
	char path[64];
	int fd;

	put("f", "text");
	fd = (int)NEED(open("f", O_RDONLY));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	tell(open(path, O_RDWR));
	NEED(unlink("f"));
	tell(open(path, O_RDWR));
}

static void with_openat2(uint64_t resolve, const char *path)
{
	struct open_how how = {.flags = O_RDONLY, .resolve = resolve};

	tell(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
}

static void openat2_resolve(void)
{
	put("f", "");
	NEED(symlink("f", "l"));
	with_openat2(RESOLVE_BENEATH, "f");
	with_openat2(RESOLVE_BENEATH, "../none");
	with_openat2(RESOLVE_NO_SYMLINKS, "l");
	with_openat2(RESOLVE_NO_XDEV, "f");
}

static void openat2_cached(void)
{
	put("f", "");
	with_openat2(RESOLVE_CACHED, "f");
}

static void write_after_chmod(void)
{
	int fd = (int)NEED(open("f", O_RDWR | O_CREAT, 0644));

	NEED(chmod("f", 0));
	count(write(fd, "text", 4));
	count(pread(fd, &(char[4]){0}, 4, 0));
	tell(fsync(fd));
	tell(close(fd));
}

static void write_after_chmod_owner(void)
{
	as(ALICE, TEAM, write_after_chmod);
	say_text(on_server("f"));
}

static int shared_fd;

static void write_shared(void)
{
	count(write(shared_fd, "more", 4));
	tell(fsync(shared_fd));
}

static void descriptor_of_other(void)
{
	put_as("f", ALICE, TEAM, 0600);
	shared_fd = open_rw("f");
	as(BOB, CREW, write_shared);
	say_text(on_server("f"));
}

const struct topic topic_open = {.name = "open",
	.probes = (const struct probe[]){{"O_CREAT, O_EXCL: a new name", excl_new},
		{"O_CREAT, O_EXCL: an existing file", excl_existing},
		{"O_CREAT, O_EXCL: a dangling symlink", excl_symlink},
		{"O_CREAT: through a dangling symlink", creat_dangling},
		{"O_CREAT: a directory", creat_directory},
		{"O_CREAT: a new name with a trailing slash", creat_slash},
		{"O_CREAT: in a directory that is not writable: a new name, an existing one",
			creat_in_readonly},
		{"O_CREAT with mode 0 for O_RDWR, by root: write, read, open again", creat_mode_0},
		{"O_CREAT with mode 0 for O_RDWR, by a user: write, read, open again",
			creat_mode_0_alice},
		{"a directory for O_WRONLY, O_RDWR", directory_for_writing},
		{"a directory for O_RDONLY: read, write", directory_read},
		{"O_DIRECTORY: a file, a directory, no such name", directory_flag},
		{"O_DIRECTORY with O_CREAT: a new name, is there a file", directory_creat},
		{"O_NOFOLLOW: a symlink, a file, a symlink with O_CREAT", nofollow},
		{"O_PATH: open, read, fstat, fchmod, ftruncate, F_SETFL", path_flag},
		{"O_PATH with O_NOFOLLOW: readlinkat of a symlink", path_symlink},
		{"O_TMPFILE", tmpfile_flag}, {"O_NOATIME by the owner", noatime_owner},
		{"O_NOATIME by another user", noatime_other}, {"O_TRUNC", trunc_flag},
		{"O_TRUNC with O_RDONLY", trunc_reading},
		{"O_TRUNC of a file that is not writable: O_RDONLY, O_WRONLY", trunc_not_writable},
		{"mode 0000 by the owner: O_RDONLY, O_WRONLY, O_RDWR", mode_000_owner},
		{"mode 0000 by root: O_RDONLY, O_WRONLY, O_RDWR", mode_000_root},
		{"mode 0111 by others: O_RDONLY, O_WRONLY, O_RDWR", mode_0111},
		{"mode 0444 by the owner: O_RDONLY, O_WRONLY, O_RDWR", mode_0444},
		{"access mode 3: open, read, write", accmode_3},
		{"read of O_WRONLY, write of O_RDONLY", wrong_way},
		{"\"\", no such name, below no such name, below a file, a file with a slash",
			no_such},
		{"O_SYNC, O_DSYNC: open and write", sync_flags},
		{"/proc/self/fd for O_RDWR: of a file, of a removed one", reopened},
		{"openat2: BENEATH, BENEATH and out, NO_SYMLINKS, NO_XDEV", openat2_resolve},
		{"openat2 RESOLVE_CACHED: a name just made", openat2_cached},
		{"write, read, fsync, close after chmod 0000, by the owner",
			write_after_chmod_owner},
		{"write and fsync through a descriptor that another user opened",
			descriptor_of_other},
		{0}}};
