/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file system that is full, and a user whose quota is used up. Asked for by
 * name: it fills what is exported, which has to be small.
 */
#include "compat.h"

#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

enum {
	PIECE = 65536,
	MANY = 3000
};

static char piece[PIECE];

/* What may be lost is what nobody was told of: pieces up to the last good fsync are there. */
static void check_pieces(const char *name, int pieces)
{
	char *back = malloc(PIECE);
	int fd = (int)NEED(open(on_server(name), O_RDONLY));
	int good = 0;

	while (good < pieces && pread(fd, back, PIECE, (off_t)good * PIECE) == PIECE &&
		back[0] == (char)good && back[PIECE - 1] == (char)good)
		good++;
	close(fd);
	free(back);
	if (good == pieces)
		say("nothing lost");
	else
		say("lost from %d of %d", good, pieces);
}

/* One piece, if need be in parts. */
static int write_piece(int fd, int n)
{
	size_t done = 0;

	memset(piece, n, PIECE);
	while (done < PIECE) {
		ssize_t len = write(fd, piece + done, PIECE - done);

		if (len <= 0)
			return len == 0 ? 0 : errno;
		done += (size_t)len;
	}
	return 0;
}

/* Until it fails. The pieces that were acknowledged; errno is set. */
static int fill(const char *name, int flags, bool sync_each)
{
	int fd = (int)NEED(open(name, O_CREAT | O_WRONLY | flags, 0666)), n = 0, error = 0;

	for (; n < MANY; n++) {
		error = write_piece(fd, n);
		if (error == 0 && sync_each && fsync(fd) == -1)
			error = errno;
		if (error != 0)
			break;
	}
	if (fsync(fd) == -1 && error == 0)
		error = errno;
	if (close(fd) == -1 && error == 0)
		error = errno;
	errno = error;
	return n;
}

static void filled(const char *name, int flags, bool sync_each)
{
	int n = fill(name, flags, sync_each);

	say("%s", error_name(errno));
	if (sync_each || (flags & O_DIRECT) != 0)
		check_pieces(name, n);
}

static bool there_is_room(void)
{
	int fd = open("g", O_CREAT | O_WRONLY | O_TRUNC, 0666);
	bool good = fd != -1 && write(fd, piece, PIECE) == PIECE && fsync(fd) == 0;

	return close(fd) == 0 && good;
}

/* What was removed is free again: a moment later, with files that are removed behind close(2). */
static void again(void)
{
	time_t end = time(NULL) + 5;
	bool room;

	NEED(unlink("f"));
	while (!(room = there_is_room()) && time(NULL) < end)
		usleep(100000);
	say("%s", room ? "room again" : "no room");
	say_size(on_server("g"));
	NEED(unlink("g"));
}

/*
 * The kernel's client keeps the file, and so the space, for as long as it has cached data of it
 * that cannot be written: sometimes.
 */
static void by_write(void)
{
	struct statfs st;

	filled("f", 0, false);
	NEED(statfs(".", &st));
	if (st.f_type == NFS_SUPER_MAGIC) {
		NEED(unlink("f"));
		say("not asked");
	} else {
		again();
	}
}

static void by_fsync(void)
{
	filled("f", 0, true);
	again();
}

static void by_direct(void)
{
	filled("f", O_DIRECT, false);
	again();
}

static void by_sync(void)
{
	filled("f", O_SYNC, true);
	again();
}

static void by_fallocate(void)
{
	int fd = data_file("f", 10);

	tell(fallocate(fd, 0, 0, 1ll << 30));
	tell(fallocate(fd, 0, 0, 1 << 20));
	NEED(close(fd));
	again();
}

static void overwrite(void)
{
	int fd = data_file("there", PIECE);

	NEED(fsync(fd));
	fill("f", 0, true);
	count(pwrite(fd, "y", 1, 0));
	tell(fsync(fd));
	tell(close(fd));
	tell(unlink("there"));
	again();
}

/* The page is there already; its block is not. */
static void in_mapping(void)
{
	int fd = (int)NEED(open("hole", O_CREAT | O_RDWR, 0644));
	char *map;

	NEED(ftruncate(fd, 1 << 20));
	map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fill("f", 0, true);
	map[500000] = 'm';
	tell(msync(map, 1 << 20, MS_SYNC));
	tell(close(fd));
}

static void mapping(void)
{
	apart(in_mapping);
	NEED(unlink("hole"));
	again();
}

static void reading(void)
{
	NEED(fsync(data_file("there", 1000)));
	fill("f", 0, true);
	say_size("there");
	tell(access("there", R_OK));
	tell(rename("there", "moved"));
	tell(truncate("moved", 10));
	tell(unlink("moved"));
	again();
}

static void inodes(void)
{
	char name[32];
	int n = 0;

	NEED(mkdir("d", 0777));
	put("there", "");
	for (; n < MANY; n++) {
		snprintf(name, sizeof(name), "d/%d", n);
		if (mknod(on_server(name), S_IFREG | 0644, 0) == -1)
			break;
	}
	tell(open("new", O_CREAT | O_WRONLY, 0644));
	tell(mkdir("newd", 0777));
	tell(symlink("x", "newl"));
	tell(mknod("newp", S_IFIFO | 0600, 0));
	tell(link("there", "newlink"));
	while (n-- > 0) {
		snprintf(name, sizeof(name), "d/%d", n);
		unlink(on_server(name));
	}
	tell(open("new", O_CREAT | O_WRONLY, 0644));
}

const struct topic topic_full = {.name = "no space",
	.asked = true,
	.probes = (const struct probe[]){
		{"write with fsync until it fails; what was acknowledged; after unlink", by_fsync},
		{"O_DIRECT until it fails; what was acknowledged; after unlink", by_direct},
		{"O_SYNC until it fails; what was acknowledged; after unlink", by_sync},
		{"fallocate of more, of what there is; after unlink", by_fallocate},
		{"data that has its blocks: pwrite, fsync, close, unlink", overwrite},
		{"a shared mapping of a hole: msync, close", mapping},
		{"full: size, access, rename, truncate, unlink", reading},
		{"no inodes: create, mkdir, symlink, mkfifo, link; after unlink", inodes},
		/* The last: the kernel's client may keep the removed file, and the space. */
		{"write until it fails, fsync, close; after unlink", by_write}, {0}}};

/* ---- quota: 1 MiB and 20 files for ALICE, set on the server ---- */

static void limit(uint64_t kib, uint64_t files)
{
	struct dqblk q = {.dqb_bhardlimit = kib,
		.dqb_bsoftlimit = kib,
		.dqb_ihardlimit = files,
		.dqb_isoftlimit = files,
		.dqb_valid = QIF_LIMITS};

	NEED(syscall(SYS_quotactl_fd, NEED(open(on_server(""), O_RDONLY)),
		QCMD(Q_SETQUOTA, USRQUOTA), ALICE, &q));
}

static void quota_by(void (*fn)(void))
{
	limit(1024, 20);
	as(ALICE, TEAM, fn);
	limit(0, 0);
}

static void quota_write(void)
{
	quota_by(by_write);
}

static void quota_fsync(void)
{
	quota_by(by_fsync);
}

static void quota_direct(void)
{
	quota_by(by_direct);
}

static void do_quota_fallocate(void)
{
	int fd = data_file("f", 10);

	tell(fallocate(fd, 0, 0, 4 << 20));
	NEED(close(fd));
	NEED(unlink("f"));
}

static void quota_fallocate(void)
{
	quota_by(do_quota_fallocate);
}

static void do_quota_inodes(void)
{
	char name[32];
	int n = 0;

	for (; n < 100; n++) {
		snprintf(name, sizeof(name), "f%d", n);
		if (open(name, O_CREAT | O_WRONLY, 0644) == -1)
			break;
	}
	say("%d", n);
	tell(-1);
	tell(mkdir("d", 0777));
	tell(symlink("x", "l"));
	tell(link("f0", "hard"));
	tell(unlink("f1"));
	tell(mkdir("d", 0777));
}

static void quota_inodes(void)
{
	char name[32];

	quota_by(do_quota_inodes);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		unlink(on_server(name));
	}
	unlink(on_server("hard"));
}

static void quota_chown(void)
{
	NEED(fsync(data_file("f", 2 << 20)));
	limit(1024, 20);
	tell(chown("f", ALICE, TEAM));
	limit(0, 0);
	tell(chown("f", ALICE, TEAM));
	NEED(unlink("f"));
}

static void do_quota_truncate(void)
{
	int fd = data_file("f", 100);

	tell(ftruncate(fd, 1 << 30));
	say_size("f");
}

static void quota_truncate(void)
{
	quota_by(do_quota_truncate);
}

const struct topic topic_quota = {.name = "quota",
	.asked = true,
	.probes = (const struct probe[]){
		{"write with fsync until it fails; what was acknowledged; after unlink",
			quota_fsync},
		{"O_DIRECT until it fails; what was acknowledged; after unlink", quota_direct},
		{"fallocate of more", quota_fallocate},
		{"files: so many, then; mkdir, symlink, link; unlink, mkdir", quota_inodes},
		{"chown to a user who has not so much left; when he has", quota_chown},
		{"truncate to 1 GiB; size", quota_truncate},
		{"write until it fails, fsync, close; after unlink", quota_write}, {0}}};
