/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slab.h"

Test(slab, refuses_nothing_and_too_much)
{
	struct slab s;

	cr_assert_eq(slab_init(&s, 0, 1), -EINVAL);
	cr_assert_eq(slab_init(&s, 1, 0), -EINVAL);
	cr_assert_eq(slab_init(&s, SIZE_MAX, 1), -EINVAL);
	cr_assert_eq(slab_init(&s, SIZE_MAX / 2, 4), -EINVAL);
	cr_assert_eq(slab_init(&s, SIZE_MAX / 4, 2), -ENOMEM);
}

Test(slab, buffers_are_distinct_whole_pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct slab s;
	uint8_t *bufs[5];

	cr_assert_eq(slab_init(&s, page + 1, 5), 0);
	cr_assert_eq(s.stride, 2 * page);
	cr_assert_eq(s.size, page + 1);
	for (unsigned int i = 0; i < 5; i++) {
		bufs[i] = slab_at(&s, i);
		cr_assert_eq((uintptr_t)bufs[i] % page, 0);
		cr_assert_eq(bufs[i], s.base + i * s.stride);
		memset(bufs[i], (int)i, s.size);
	}
	for (unsigned int i = 0; i < 5; i++) {
		cr_assert_eq(bufs[i][0], i);
		cr_assert_eq(bufs[i][s.size - 1], i);
	}
	slab_fini(&s);
}

Test(slab, memory_is_not_resident_before_use)
{
	unsigned char vec[64];
	size_t resident = 0;
	struct slab s;

	cr_assert_eq(slab_init(&s, (size_t)sysconf(_SC_PAGESIZE), 64), 0);
	cr_assert_eq(mincore(s.base, s.map_len, vec), 0);
	for (int i = 0; i < 64; i++)
		resident += vec[i] & 1;
	cr_assert_eq(resident, 0);
	slab_fini(&s);
}

/* Of the mapping that begins at `p`: "dc", not copied by fork(); "dd", not dumped. */
static bool has_flags(const void *p, const char *a, const char *b)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	bool here = false, found = false;
	char line[512], begin[32];

	snprintf(begin, sizeof(begin), "%lx-", (unsigned long)(uintptr_t)p);
	while (f && fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && strspn(line, "0123456789abcdef") > 6)
			here = strncmp(line, begin, strlen(begin)) == 0;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, a) && strstr(line, b);
	}
	if (f)
		fclose(f);
	return found;
}

static bool is_mapped(const struct slab *s)
{
	unsigned char *vec = malloc(s->map_len);
	bool mapped = mincore(s->base, s->map_len, vec) == 0;

	free(vec);
	return mapped;
}

static void is_ours_alone(size_t size, unsigned int cnt)
{
	struct slab s;
	int status;
	pid_t pid;

	cr_assert_eq(slab_init(&s, size, cnt), 0);
	memset(s.base, 1, s.map_len);
	cr_assert(is_mapped(&s));
	cr_assert(has_flags(s.base, " dc", " dd"));
	pid = fork();
	if (pid == 0)
		_exit(is_mapped(&s));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "a child has the memory that an adapter may write");
	slab_fini(&s);
}

Test(slab, neither_a_child_nor_a_core_dump_has_it)
{
	is_ours_alone(4096, 3);
	is_ours_alone(1 << 20, 5); /* of huge pages */
}

Test(slab, fini_twice_is_harmless)
{
	struct slab s;

	cr_assert_eq(slab_init(&s, 1, 1), 0);
	slab_fini(&s);
	slab_fini(&s);
	cr_assert_null(s.base);
}

Test(slab, one_past_the_last_trips, .signal = SIGABRT)
{
	struct slab s;

	cr_assert_eq(slab_init(&s, 1, 2), 0);
	slab_at(&s, 2);
}
