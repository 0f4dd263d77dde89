/* SPDX-License-Identifier: BSD-3-Clause */
#include "nfs4_tables.h"

#include <endian.h>
#include <string.h>

void nfs4_tables_put_cred(struct tables_out *t, uint16_t field, const struct rpc_cred *cred)
{
	uint32_t words[3 + RPC_MAX_GROUPS] = {
		htole32((uint32_t)cred->flavor), htole32(cred->uid), htole32(cred->gid)};

	for (uint32_t i = 0; i < cred->gids_cnt; i++)
		words[3 + i] = htole32(cred->gids[i]);
	tables_put_bytes(t, field, words, (3 + cred->gids_cnt) * sizeof(words[0]));
}

bool nfs4_tables_get_cred(const struct tables_record *r, uint16_t field, struct rpc_cred *ret)
{
	uint32_t words[3 + RPC_MAX_GROUPS];
	size_t len;
	const void *p = tables_get_bytes(r, field, &len);

	if (!p || len < 3 * sizeof(words[0]) || len > sizeof(words) || len % sizeof(words[0]))
		return false;
	memcpy(words, p, len);
	*ret = (struct rpc_cred){
		.flavor = (enum rpc_flavor)le32toh(words[0]),
		.uid = le32toh(words[1]),
		.gid = le32toh(words[2]),
		.gids_cnt = (uint32_t)(len / sizeof(words[0]) - 3),
	};
	for (uint32_t i = 0; i < ret->gids_cnt; i++)
		ret->gids[i] = le32toh(words[3 + i]);
	return ret->flavor == RPC_AUTH_NONE || ret->flavor == RPC_AUTH_SYS;
}

void nfs4_tables_put_fh(struct tables_out *t, uint16_t field, const struct nfs4_fh *fh)
{
	tables_put_bytes(t, field, fh->data, fh->len);
}

bool nfs4_tables_get_fh(const struct tables_record *r, uint16_t field, struct nfs4_fh *ret)
{
	size_t len;
	const void *p = tables_get_bytes(r, field, &len);

	if (!p || len == 0 || len > sizeof(ret->data))
		return false;
	ret->len = (uint8_t)len;
	memcpy(ret->data, p, len);
	return true;
}
