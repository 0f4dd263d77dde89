/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, and a copy of it: what is not open to be written is still the same. */
#include "roce_rig.h"

#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONED 1
#endif
#endif
#ifdef POISONED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define GUARD 64u /* bytes between two areas, at least */

/* Where it is if nothing else is: packets have its addresses, and are to be the same each time. */
#define PLACE ((void *)0x200000000000)

uint8_t *roce_rig_mem;
static uint8_t first[RIG_MEM], was[RIG_MEM];

static uint8_t *shadow(const uint8_t *p)
{
	return was + (p - roce_rig_mem);
}

/* Nobody may even read what is between areas. */
static void guard(bool on)
{
	const uint8_t *at = roce_rig_mem;

	for (unsigned int i = 0; i <= RIG_AREAS; i++) {
		const uint8_t *end = i < RIG_AREAS ? rig.areas[i].addr : roce_rig_mem + RIG_MEM;

		if (on)
			ASAN_POISON_MEMORY_REGION(at, (size_t)(end - at));
		else
			ASAN_UNPOISON_MEMORY_REGION(at, (size_t)(end - at));
		at = i < RIG_AREAS ? end + rig.areas[i].len : end;
	}
}

/* Once: other tests of a process begin with a copy. */
static void make_first(void)
{
	roce_rig_mem =
		mmap(PLACE, RIG_MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	RIG_CHECK(roce_rig_mem != MAP_FAILED);
	for (uint32_t i = 0; i < RIG_MEM; i++)
		first[i] = (uint8_t)(i * 7 + i / 251);
}

void roce_rig_mem_new(void)
{
	static const uint32_t lens[RIG_AREAS] = {1, 64, 300, 1024, 4096, 5000, 9000, 12288, 33, 256,
		4096, 10000, 20000, 1, 500, 700, 16384};
	uint8_t *at;

	if (!roce_rig_mem)
		make_first();
	at = roce_rig_mem + GUARD;
	for (unsigned int i = 0; i < RIG_AREAS; i++) {
		rig.areas[i] = (struct rig_area){.addr = at, .len = lens[i]};
		at += (lens[i] + 15u) / 16u * 16u + GUARD;
	}
	RIG_CHECK(at <= roce_rig_mem + RIG_MEM);
	guard(false);
	memcpy(roce_rig_mem, first, RIG_MEM);
	memcpy(was, first, RIG_MEM);
	rig.areas[RIG_AREA_READ].open = FAB_REMOTE_READ;
	rig.areas[RIG_AREA_WRITE].open = FAB_REMOTE_WRITE;
	guard(true);
}

static bool is_unchanged(const uint8_t *p, size_t len)
{
	return memcmp(p, shadow(p), len) == 0;
}

void roce_rig_mem_check(void)
{
	const uint8_t *at = roce_rig_mem;

	guard(false);
	for (unsigned int i = 0; i < RIG_AREAS; i++) {
		const struct rig_area *a = &rig.areas[i];

		RIG_CHECK(is_unchanged(at, (size_t)(a->addr - at)));
		RIG_CHECK((a->open & FAB_REMOTE_WRITE) || is_unchanged(a->addr, a->len));
		at = a->addr + a->len;
	}
	RIG_CHECK(is_unchanged(at, (size_t)(roce_rig_mem + RIG_MEM - at)));
	guard(true);
}

void roce_rig_mem_open(struct rig_area *a, unsigned int access)
{
	RIG_CHECK(!a->open && is_unchanged(a->addr, a->len));
	a->open = access;
}

void roce_rig_mem_close(struct rig_area *a)
{
	memcpy(shadow(a->addr), a->addr, a->len);
	a->open = 0;
}
