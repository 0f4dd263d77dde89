/* SPDX-License-Identifier: BSD-3-Clause */
#include "idmap_lib.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <nfsidmap.h> /* needs the types */

#include "log.h"

#define NO_ID        ((uint32_t)-1) /* "do not change" to chown() */
#define LIB_NO_ID    ((uint32_t)-2) /* what the library says without any nobody */
#define LIB_VERBOSE  4
#define UNKNOWN_NAME "@" /* maps to whatever is nobody */

/* One for the process, as the library itself. Owner: the idmap's thread. */
static struct {
	bool tried, works;
	uint32_t nobody[2]; /* by enum idmap_kind */
	char domain[NFS4_MAX_DOMAIN_LEN];
} lib;

/* The library has no levels: what goes wrong there shows as a name that is not mapped. */
__attribute__((format(printf, 1, 2))) static void lib_log(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (log_get_level() < LOG_LVL_DEBUG)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_debug("idmap: %s", line);
}

static uint32_t or_nobody(uint32_t id)
{
	return id == NO_ID || id == LIB_NO_ID ? IDMAP_NOBODY : id;
}

/* False: it does not work, which was logged. */
static bool lib_ready(void)
{
	char unknown[] = UNKNOWN_NAME;
	uid_t uid = LIB_NO_ID;
	gid_t gid = LIB_NO_ID;
	int err;

	if (lib.tried)
		return lib.works;
	lib.tried = true;
	lib.nobody[IDMAP_USER] = lib.nobody[IDMAP_GROUP] = IDMAP_NOBODY;
	nfs4_set_debug(log_get_level() >= LOG_LVL_DEBUG ? LIB_VERBOSE : 0, lib_log);
	err = nfs4_init_name_mapping(NULL);
	if (!err)
		err = nfs4_get_default_domain(NULL, lib.domain, sizeof(lib.domain));
	if (err) {
		log_warn("libnfsidmap does not work (%s): names of owners show as nobody; check "
			 "/etc/idmapd.conf",
			strerror(err < 0 ? -err : err));
		return false;
	}
	lib.works = true;
	if (nfs4_owner_to_uid(unknown, &uid) == 0)
		lib.nobody[IDMAP_USER] = or_nobody(uid);
	if (nfs4_group_owner_to_gid(unknown, &gid) == 0)
		lib.nobody[IDMAP_GROUP] = or_nobody(gid);
	log_info("names of owners are mapped in the domain %s", lib.domain);
	return true;
}

static int lib_to_id(void *ctx, enum idmap_kind kind, const char *name, uint32_t *ret_id)
{
	char mem[IDMAP_IN_MAX + 1]; /* the library's arguments are not const */
	uint32_t id = NO_ID;
	uid_t uid;
	gid_t gid;
	int err;

	*ret_id = IDMAP_NOBODY;
	if (!lib_ready())
		return -EIO;
	snprintf(mem, sizeof(mem), "%s", name);
	if (kind == IDMAP_USER) {
		err = nfs4_name_to_uid(mem, &uid);
		if (!err)
			id = uid;
	} else {
		err = nfs4_name_to_gid(mem, &gid);
		if (!err)
			id = gid;
	}
	if (id == NO_ID) {
		*ret_id = lib.nobody[kind];
		log_debug("idmap: %s is no %s here", name, kind == IDMAP_USER ? "user" : "group");
		return -ENOENT;
	}
	*ret_id = id;
	return 0;
}

static int lib_to_name(void *ctx, enum idmap_kind kind, uint32_t id, char name[IDMAP_OUT_MAX + 1])
{
	int err;

	if (!lib_ready())
		return -EIO;
	if (kind == IDMAP_USER)
		err = nfs4_uid_to_name(id, lib.domain, name, IDMAP_OUT_MAX + 1);
	else
		err = nfs4_gid_to_name(id, lib.domain, name, IDMAP_OUT_MAX + 1);
	/* WIRE: who takes no numbers takes no name without a domain. */
	return err || !memchr(name, '@', strnlen(name, IDMAP_OUT_MAX)) ? -ENOENT : 0;
}

static void lib_fini(void *ctx)
{
	if (lib.works)
		nfs4_term_name_mapping();
	memset(&lib, 0, sizeof(lib));
}

struct idmap *idmap_lib_new(void)
{
	static const struct idmap_resolver res = {
		.to_id = lib_to_id,
		.to_name = lib_to_name,
		.fini = lib_fini,
	};

	return idmap_new(&res, NULL, true);
}
