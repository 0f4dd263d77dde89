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
		bufs[i] = slab_get(&s);
		cr_assert_not_null(bufs[i]);
		cr_assert_eq((uintptr_t)bufs[i] % page, 0);
		cr_assert_eq(slab_at(&s, slab_index(&s, bufs[i])), bufs[i]);
		memset(bufs[i], (int)i, s.size);
	}
	cr_assert_null(slab_get(&s));
	cr_assert_eq(s.free_cnt, 0);
	for (unsigned int i = 0; i < 5; i++) {
		cr_assert_eq(bufs[i][0], i);
		cr_assert_eq(bufs[i][s.size - 1], i);
		slab_put(&s, bufs[i]);
	}
	cr_assert_eq(s.free_cnt, 5);
	slab_fini(&s);
}

Test(slab, the_last_one_put_is_taken_first)
{
	struct slab s;
	void *a, *b, *c;

	cr_assert_eq(slab_init(&s, 100, 3), 0);
	a = slab_get(&s);
	b = slab_get(&s);
	c = slab_get(&s);
	slab_put(&s, c);
	slab_put(&s, a);
	slab_put(&s, b);
	cr_assert_eq(slab_get(&s), b);
	cr_assert_eq(slab_get(&s), a);
	cr_assert_eq(slab_get(&s), c);
	slab_fini(&s);
}

Test(slab, contains_its_bytes_and_no_other)
{
	struct slab s;

	cr_assert_eq(slab_init(&s, 4096, 2), 0);
	cr_assert(slab_contains(&s, s.base));
	cr_assert(slab_contains(&s, s.base + s.map_len - 1));
	cr_assert_not(slab_contains(&s, s.base + s.map_len));
	cr_assert_not(slab_contains(&s, (const void *)((uintptr_t)s.base - 1)));
	cr_assert_not(slab_contains(&s, &s));
	cr_assert_not(slab_contains(&s, NULL));
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
	cr_assert_not(slab_contains(&s, &s));
}

Test(slab, double_put_trips, .signal = SIGABRT)
{
	struct slab s;
	void *buf;

	cr_assert_eq(slab_init(&s, 1, 2), 0);
	buf = slab_get(&s);
	slab_put(&s, buf);
	slab_put(&s, buf);
}

Test(slab, put_of_an_inner_pointer_trips, .signal = SIGABRT)
{
	struct slab s;

	cr_assert_eq(slab_init(&s, 1, 2), 0);
	slab_put(&s, (uint8_t *)slab_get(&s) + 1);
}
