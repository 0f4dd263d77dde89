/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_addr.h"

#include <netinet/in.h>
#include <string.h>

void roce_addr_put(uint8_t to[16], const struct sockaddr *sa)
{
	memset(to, 0, 16);
	if (sa->sa_family == AF_INET6)
		memcpy(to, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	else
		memcpy(to, &((const struct sockaddr_in *)sa)->sin_addr, 4);
}

uint32_t roce_addr_link(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_scope_id : 0;
}

bool roce_addr_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	uint8_t bytes_a[16], bytes_b[16];

	if (a->sa_family != b->sa_family || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
		return false;
	roce_addr_put(bytes_a, a);
	roce_addr_put(bytes_b, b);
	return memcmp(bytes_a, bytes_b, sizeof(bytes_a)) == 0 &&
	       roce_addr_link(a) == roce_addr_link(b);
}
