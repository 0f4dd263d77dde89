/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <stdio.h>

#include "log.h"
#include "service.h"

#define QUIET_NS 1000000000ull
#define EVERY_NS 5000000000ull

void progress_start(struct progress *p, uint64_t now_ns, const char *mountpoint, bool tty)
{
	*p = (struct progress){.start_ns = now_ns, .mountpoint = mountpoint, .tty = tty};
}

void progress_tell(struct progress *p, uint64_t now_ns, uint64_t left)
{
	char text[96];

	if (now_ns - p->start_ns < QUIET_NS)
		return;
	if (left != 0)
		snprintf(text, sizeof(text), "%llu KiB are left to write",
			(unsigned long long)((left + 1023) / 1024));
	else
		snprintf(text, sizeof(text), "waiting for the server to commit and close");
	service_status("ending %s: %s", p->mountpoint, text);
	if (p->tty) {
		fprintf(stderr, "\r\033[Krpcrdmafs: %s: %s", p->mountpoint, text);
		fflush(stderr);
		p->shown = true;
	} else if (p->logged_ns == 0 || now_ns - p->logged_ns >= EVERY_NS) {
		p->logged_ns = now_ns;
		log_info("%s: %s", p->mountpoint, text);
	}
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
