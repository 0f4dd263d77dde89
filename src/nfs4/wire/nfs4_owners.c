/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owners and groups as names (RFC 8881 section 5.9).
 *
 * Received: numbers are numbers; names are asked of the idmap. What it does not
 * know in time is nobody, and marked (owner_late).
 *
 * Sent: numbers, until the server says BADOWNER to them; from then on names,
 * where there is one, for the rest of the mount.
 *
 * Calls that wait for answers are in nfs4_idmap.c.
 */
#include "idmap.h"
#include "nfs4_int.h"

_Static_assert(sizeof(((struct nfs4_owner_names *)NULL)->user) == IDMAP_OUT_MAX + 1 &&
		       sizeof(((struct nfs4_owner_names *)NULL)->group) == IDMAP_OUT_MAX + 1,
	"as long as the idmap's");

/* ---- received ---- */

static uint32_t map(struct nfs4_compound *c, enum idmap_kind kind, const struct nfs4_str *name,
	struct nfs4_attr *attr)
{
	bool was_alien = attr->owner_alien;
	uint32_t id = IDMAP_NOBODY;
	uint64_t ticket = 0;

	attr->owner_alien = true;
	if (!c->idmap)
		return id;
	switch (idmap_to_id(c->idmap, kind, name->p, name->len, c->now_ns, &id, &ticket)) {
	case IDMAP_KNOWN:
		attr->owner_alien = was_alien;
		break;
	case IDMAP_NONE:
		break;
	case IDMAP_ASKED:
		if (!c->idmap_late && ticket > c->idmap_ticket)
			c->idmap_ticket = ticket;
		attr->owner_late = true;
		break;
	case IDMAP_REFUSED:
		attr->owner_late = true;
		break;
	}
	return id;
}

void nfs4_owners_map(
	struct nfs4_compound *c, struct nfs4_attr *attr, const struct nfs4_owners *names)
{
	if (names->user.p)
		attr->uid = map(c, IDMAP_USER, &names->user, attr);
	if (names->group.p)
		attr->gid = map(c, IDMAP_GROUP, &names->group, attr);
	if (attr->owner_late && c->at_once) {
		/* As after a WRITE: without the mode it is no whole, and asked for if it changed.
		 */
		attr->valid &= ~(NFS4_ATTR_OWNER | NFS4_ATTR_GROUP | NFS4_ATTR_MODE);
		attr->owner_late = attr->owner_alien = false;
		c->idmap_ticket = 0;
	}
}

/* ---- sent ---- */

/* The name to send for `id`; NULL: the number will do. ret_ticket: it is asked for. */
static const char *name_of(struct idmap *m, uint64_t now_ns, enum idmap_kind kind, uint32_t id,
	char mem[IDMAP_OUT_MAX + 1], uint64_t *ret_ticket)
{
	uint64_t ticket = 0;

	if (idmap_to_name(m, kind, id, now_ns, mem, &ticket) == IDMAP_ASKED && ticket > *ret_ticket)
		*ret_ticket = ticket;
	return *mem != '\0' ? mem : NULL;
}

uint64_t nfs4_owners_names(
	struct idmap *m, uint64_t now_ns, struct nfs4_sattr *sattr, struct nfs4_owner_names *mem)
{
	uint64_t ticket = 0;

	if (sattr->set & NFS4_ATTR_OWNER)
		sattr->owner_name = name_of(m, now_ns, IDMAP_USER, sattr->uid, mem->user, &ticket);
	if (sattr->set & NFS4_ATTR_GROUP)
		sattr->group_name =
			name_of(m, now_ns, IDMAP_GROUP, sattr->gid, mem->group, &ticket);
	return ticket;
}

void nfs4_owners_put(
	struct nfs4_compound *c, struct nfs4_sattr *sattr, struct nfs4_owner_names *mem)
{
	c->call->idmap_asked = false;
	if (c->call->by_name)
		nfs4_owners_names(c->idmap, c->now_ns, sattr, mem);
}
