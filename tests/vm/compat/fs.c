/* SPDX-License-Identifier: BSD-3-Clause */
/* The file system as a whole: its numbers, handles, what may be done with the mount. */
#include "compat.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/swap.h>
#include <sys/syscall.h>

static void same_space(const char *mine, const char *server)
{
	struct statvfs a, b;
	unsigned long long total_a, total_b, free_a, free_b;

	NEED(statvfs(mine, &a));
	NEED(statvfs(server, &b));
	total_a = (unsigned long long)a.f_blocks * a.f_frsize;
	total_b = (unsigned long long)b.f_blocks * b.f_frsize;
	free_a = (unsigned long long)a.f_bavail * a.f_frsize;
	free_b = (unsigned long long)b.f_bavail * b.f_frsize;
	/* To the client's block, either way: NFS counts bytes. */
	say("size %s", total_a < total_b + a.f_frsize && total_b < total_a + a.f_frsize ? "same"
											: "other");
	say("free %s",
		free_a < free_b + a.f_frsize && free_b < free_a + a.f_frsize ? "same" : "other");
	say("files %s", a.f_files == b.f_files && a.f_ffree == b.f_ffree ? "same" : "other");
	say("names %lu", a.f_namemax);
}

static void space(void)
{
	same_space(from_root(""), server_root(""));
}

static void space_below(void)
{
	same_space(from_root("sub"), server_root("sub"));
}

static void kind(void)
{
	struct statfs st;

	NEED(statfs(".", &st));
	say("type %lx", (unsigned long)st.f_type);
	say("fsid %s", st.f_fsid.__val[0] != 0 || st.f_fsid.__val[1] != 0 ? "set" : "0");
}

static void block_size(void)
{
	struct statvfs st;

	NEED(statvfs(".", &st));
	say("%lu %lu", st.f_bsize, st.f_frsize);
}

static void numbers(void)
{
	struct stat a, b;

	put("f", "");
	NEED(stat("f", &a));
	NEED(stat(on_server("f"), &b));
	say("%s", a.st_ino == b.st_ino ? "same" : "other");
	NEED(stat(".", &b));
	say("%s device", a.st_dev == b.st_dev ? "same" : "other");
	NEED(stat(from_root(""), &a));
	NEED(stat(server_root(""), &b));
	say("root %s", a.st_ino == b.st_ino ? "same" : "other");
}

static void devices_below(void)
{
	struct stat root, sub;

	NEED(stat(from_root(""), &root));
	NEED(stat(from_root("sub"), &sub));
	say("%s device", root.st_dev == sub.st_dev ? "same" : "other");
	say("%s", root.st_dev == sub.st_dev && root.st_ino == sub.st_ino ? "same file"
									 : "another file");
}

static void numbers_below(void)
{
	struct stat a, b;

	unlink(server_root("sub/compat"));
	put(from_root("sub/compat"), "text");
	NEED(stat(from_root("sub/compat"), &a));
	NEED(stat(server_root("sub/compat"), &b));
	say("%s", a.st_ino == b.st_ino ? "same" : "other");
	say("%ld", (long)a.st_size);
	tell(unlink(from_root("sub/compat")));
}

static void links(void)
{
	struct stat a, b;

	NEED(mkdir("d", 0777));
	NEED(mkdir("d/a", 0777));
	NEED(mkdir("d/b", 0777));
	NEED(stat("d", &a));
	NEED(stat(on_server("d"), &b));
	say("%ld %s", (long)a.st_nlink, a.st_nlink == b.st_nlink ? "same" : "other");
	say("size %s", a.st_size == b.st_size ? "same" : "other");
}

static void handles(void)
{
	struct {
		struct file_handle h;
		unsigned char bytes[MAX_HANDLE_SZ];
	} f = {.h.handle_bytes = MAX_HANDLE_SZ};
	int id = 0;

	put("f", "text");
	tell(name_to_handle_at(AT_FDCWD, "f", &f.h, &id, 0));
	tell(open_by_handle_at((int)NEED(open(".", O_RDONLY)), &f.h, O_RDONLY));
	f.h.handle_bytes = 0;
	tell(name_to_handle_at(AT_FDCWD, "f", &f.h, &id, 0));
}

static void swap(void)
{
	char *page = calloc(1, 4096);
	int fd = (int)NEED(open("swap", O_CREAT | O_RDWR, 0600));
	uint32_t *info = (uint32_t *)(void *)(page + 1024);

	info[0] = 1;
	info[1] = 255; /* its last page */
	memcpy(page + 4086, "SWAPSPACE2", 10);
	for (int i = 0; i < 256; i++) {
		NEED(pwrite(fd, page, 4096, i * 4096l));
		memset(page, 0, 4096);
	}
	NEED(fsync(fd));
	if (tell(swapon("swap", 0)) == 0)
		tell(swapoff("swap"));
}

static void root_of_process(void)
{
	put("f", "text");
	tell(chroot("."));
	tell(chdir("/"));
	say_text("/f");
}

static void root_of_user(void)
{
	tell(chroot("."));
}

static void chroot_user(void)
{
	as(ALICE, TEAM, root_of_user);
}

static void bind(void)
{
	NEED(unshare(CLONE_NEWNS));
	NEED(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	NEED(mkdir("d", 0777));
	NEED(mkdir("e", 0777));
	put("d/f", "text");
	tell(mount("d", "e", NULL, MS_BIND, NULL));
	say_text("e/f");
	tell(rmdir("e"));
	tell(rename("d/f", "e/g"));
	tell(umount("e"));
}

static void overlay(const char *args)
{
	NEED(unshare(CLONE_NEWNS));
	NEED(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	NEED(mkdir("low", 0777));
	NEED(mkdir("up", 0777));
	NEED(mkdir("work", 0777));
	NEED(mkdir("over", 0777));
	put("low/f", "text");
	if (tell(mount("overlay", "over", "overlay", 0, args)) == -1)
		return;
	say_text("over/f");
	tell(open("over/f", O_RDWR));
	tell(umount("over"));
}

static void overlay_lower(void)
{
	overlay("lowerdir=low:up");
}

static void overlay_upper(void)
{
	overlay("lowerdir=low,upperdir=up,workdir=work");
}

static void quota_call(void)
{
	char buf[256];

	tell(syscall(SYS_quotactl_fd, NEED(open(".", O_RDONLY)), 0x80000700, ALICE, buf));
}

static void frozen_name(void)
{
	struct stat st;

	NEED(stat(from_root("sub/."), &st));
	tell(fchdir((int)NEED(open(from_root("sub"), O_RDONLY))));
	tell(chdir(".."));
	NEED(stat(".", &st));
	tell(access("sub", F_OK));
}

const struct topic topic_fs = {.name = "file system",
	.probes = (const struct probe[]){
		{"statvfs beside the server's: size, free, files, name length", space},
		{"statvfs of another file system of the server below", space_below},
		{"statfs: f_type, f_fsid", kind}, {"statvfs: f_bsize, f_frsize", block_size},
		{"st_ino beside the server's; st_dev; the root's st_ino", numbers},
		{"another file system of the server: st_dev; its root and ours", devices_below},
		{"another file system of the server: st_ino, size, unlink", numbers_below},
		{"another file system of the server: fchdir, chdir .., back", frozen_name},
		{"directories: links, the server's, size", links},
		{"name_to_handle_at, open_by_handle_at, a short buffer", handles}, {"swapon", swap},
		{"chroot by root, chdir, a file", root_of_process},
		{"chroot by a user", chroot_user},
		{"bind mount: mount, read, rmdir under it, rename into it, umount", bind},
		{"overlayfs, as lower layers: mount, read, open for writing, umount",
			overlay_lower},
		{"overlayfs, as upper layer: mount, read, open for writing, umount", overlay_upper},
		{"quotactl_fd Q_GETQUOTA", quota_call}, {0}}};
