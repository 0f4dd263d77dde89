/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A socket that has a name.
 *
 *   fuse_sim_sock serve PATH        binds it, prints `ready`, says hello to whoever connects
 *   fuse_sim_sock ask PATH [TIMES]  connects; prints, once for answers in a row that are the same,
 *                                   what it was told, or the name of the errno
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un addr = {.sun_family = AF_UNIX};

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		perror("socket");
		exit(1);
	}
	return fd;
}

static int serve(void)
{
	int fd = new_socket(), peer;

	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 100) < 0) {
		perror("bind");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while ((peer = accept(fd, NULL, NULL)) >= 0) {
		if (write(peer, "hello", 5) != 5)
			perror("write");
		close(peer);
	}
	return 1;
}

static void ask(char *answer, size_t len)
{
	int fd = new_socket();
	ssize_t n;

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		snprintf(answer, len, "%s", strerrorname_np(errno));
	} else {
		n = read(fd, answer, len - 1);
		answer[n > 0 ? n : 0] = '\0';
	}
	close(fd);
}

int main(int argc, char **argv)
{
	char answer[100], last[100] = "";
	int times = argc > 3 ? atoi(argv[3]) : 1;

	if (argc < 3 || strlen(argv[2]) >= sizeof(addr.sun_path)) {
		fprintf(stderr, "usage: fuse_sim_sock serve|ask PATH [TIMES]\n");
		return 2;
	}
	strcpy(addr.sun_path, argv[2]);
	if (strcmp(argv[1], "serve") == 0)
		return serve();
	for (int i = 0; i < times; i++) {
		ask(answer, sizeof(answer));
		if (strcmp(answer, last) != 0)
			puts(answer);
		strcpy(last, answer);
	}
	return 0;
}
