/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk DIR: lists a directory and looks at each entry as it comes, as programs
 * do that walk trees. Prints how many regular files there are, the sum of their
 * inode numbers and of their sizes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	uint64_t files = 0, inodes = 0, sizes = 0;
	struct dirent *de;
	struct stat st;

	if (!dir) {
		perror("walk");
		return 1;
	}
	while ((errno = 0, de = readdir(dir)) != NULL) {
		if (fstatat(dirfd(dir), de->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
			perror(de->d_name);
			return 1;
		}
		if (!S_ISREG(st.st_mode))
			continue;
		files++;
		inodes += st.st_ino;
		sizes += (uint64_t)st.st_size;
	}
	if (errno != 0) {
		perror("readdir");
		return 1;
	}
	closedir(dir);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", files, inodes, sizes);
	return 0;
}
