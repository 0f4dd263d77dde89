/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_log.h"

#include <string.h>

#include "log.h"

struct sim_said sim_said;

static void count(void *ctx, enum log_level level, const char *line)
{
	if (strstr(line, "does not give back"))
		sim_said.lost++;
	if (strstr(line, "is lost again"))
		sim_said.again++;
	if (strstr(line, "the server says: "))
		sim_said.flags++;
	if (strstr(line, "less at once than before"))
		sim_said.smaller++;
}

static void drop(void *ctx, enum log_level level, const char *line)
{
}

void sim_log_count(void)
{
	sim_said = (struct sim_said){0};
	log_set_sink(count, NULL);
}

void sim_log_quiet(void)
{
	log_set_sink(drop, NULL);
}
