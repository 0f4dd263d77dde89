/* SPDX-License-Identifier: BSD-3-Clause */
#include "arguments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX (256u * 1024)

static int read_text(struct arguments *a, int fd)
{
	ssize_t n = 1;

	while (n != 0 && a->len < ARGS_MAX) {
		n = read(fd, a->text + a->len, ARGS_MAX - a->len);
		if (n < 0 && errno != EINTR)
			return -errno;
		a->len += n > 0 ? (size_t)n : 0;
	}
	a->text[a->len] = '\0';
	return a->len == 0 ? -ENODATA : a->len == ARGS_MAX ? -E2BIG : 0;
}

int arguments_read(struct arguments *ret, int fd)
{
	struct arguments a = {.text = malloc(ARGS_MAX + 1)};
	int err = a.text == NULL ? -ENOMEM : read_text(&a, fd);
	size_t cnt = 0;

	if (err == 0) {
		a.argv = calloc(a.len + 2, sizeof(char *));
		err = a.argv == NULL ? -ENOMEM : 0;
	}
	if (err != 0) {
		arguments_free(&a);
		return err;
	}
	for (char *p = a.text; p < a.text + a.len; p += strlen(p) + 1)
		a.argv[cnt++] = p;
	*ret = a;
	return 0;
}

int arguments_of_self(struct arguments *ret)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = arguments_read(ret, fd);
	close(fd);
	return err;
}

void arguments_free(struct arguments *a)
{
	free(a->argv);
	free(a->text);
	*a = (struct arguments){0};
}
