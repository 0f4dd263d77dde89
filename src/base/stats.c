/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include <inttypes.h>

static uint64_t peek(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void stats_add(struct stats *to, const struct stats *from)
{
	uint64_t to_max = to->in_flight_max;
	uint64_t from_max = peek(&from->in_flight_max);

#define X(name, meaning) to->name += peek(&from->name);
	STATS_FOREACH(X)
	STATS_GAUGES(X)
#undef X
	to->in_flight_max = to_max > from_max ? to_max : from_max;
	for (unsigned int op = 0; op < STATS_OPS; op++)
		to->ops[op] += peek(&from->ops[op]);
}

static void print_nonzero(FILE *out, const char *name, uint64_t value)
{
	if (value)
		fprintf(out, "%s=%" PRIu64 "\n", name, value);
}

void stats_print(FILE *out, const struct stats *s, const char *(*op_name)(unsigned int op))
{
#define X(name, meaning) print_nonzero(out, #name, peek(&s->name));
	STATS_FOREACH(X)
#undef X
#define X(name, meaning) fprintf(out, "%s=%" PRIu64 "\n", #name, peek(&s->name));
	STATS_GAUGES(X)
#undef X
	for (unsigned int op = 0; op < STATS_OPS; op++) {
		uint64_t cnt = peek(&s->ops[op]);
		const char *name = op_name ? op_name(op) : NULL;

		if (!cnt)
			continue;
		if (name)
			fprintf(out, "op_%s=%" PRIu64 "\n", name, cnt);
		else
			fprintf(out, "op_%u=%" PRIu64 "\n", op, cnt);
	}
}
