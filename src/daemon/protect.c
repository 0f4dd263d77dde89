/* SPDX-License-Identifier: BSD-3-Clause */
#include "protect.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "log.h"

#ifndef PR_SET_IO_FLUSHER /* Linux 5.6 */
#define PR_SET_IO_FLUSHER 57
#endif

static void spare_from_oom_killer(void)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "r+e");
	char score[16];

	if (f == NULL)
		return;
	if (fgets(score, sizeof(score), f) != NULL && strcmp(score, "0\n") == 0) {
		rewind(f);
		fprintf(f, "%d", PROTECT_OOM_SCORE);
	}
	if (fclose(f) != 0)
		log_debug("the OOM killer may take this process first: %s", strerror(errno));
}

void protect_process(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) != 0)
		log_debug("memory reclaim may wait for this process: %s", strerror(errno));
	spare_from_oom_killer();
}

/* Pages that were written to are no file's any more: they are swapped out, not thrown away. */
static int lock_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t begin = (info->dlpi_addr + ph->p_vaddr) & -page;
		uintptr_t end = info->dlpi_addr + ph->p_vaddr + ph->p_memsz;

		if (ph->p_type != PT_LOAD || (ph->p_flags & PF_W) != 0)
			continue;
		if (mlock2((const void *)begin, end - begin, 0) != 0)
			return -errno;
	}
	return 0;
}

int protect_code(void)
{
	return dl_iterate_phdr(lock_object, NULL);
}
