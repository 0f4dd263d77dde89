/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#if VERBS_LINKED

#define X(name, version) .name = ibv_##name,
struct verbs_lib_ibv ibv = {VERBS_LIB_IBV(X)};
#undef X
#define X(name, version) .name = rdma_##name,
struct verbs_lib_rdma rdma = {VERBS_LIB_RDMA(X)};
#undef X

int verbs_lib_load(char *why, size_t why_len)
{
	return 0;
}

#else

struct verbs_lib_ibv ibv;
struct verbs_lib_rdma rdma;

#define X(name, version) {"ibv_" #name, version, (void **)&ibv.name},
static const struct verbs_lib_sym ibv_syms[] = {VERBS_LIB_IBV(X)};
#undef X
#define X(name, version) {"rdma_" #name, version, (void **)&rdma.name},
static const struct verbs_lib_sym rdma_syms[] = {VERBS_LIB_RDMA(X)};
#undef X

int verbs_lib_open(
	const char *soname, const struct verbs_lib_sym *syms, size_t cnt, char *why, size_t why_len)
{
	/* Local: nothing else of the process may find its functions there by chance. */
	void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	const char *missing = lib ? NULL : dlerror();

	for (size_t i = 0; !missing && i < cnt; i++) {
		*syms[i].fn = dlvsym(lib, syms[i].name, syms[i].version);
		if (!*syms[i].fn)
			missing = dlerror();
	}
	if (!missing)
		return 0;
	snprintf(why, why_len, "%s", missing);
	if (lib)
		dlclose(lib);
	return -ELIBACC;
}

static int load_err;
static char load_why[160];

static void load(void)
{
	/* libibverbs first: librdmacm needs it, and would have its absence told as its own. */
	load_err = verbs_lib_open("libibverbs.so.1", ibv_syms, sizeof(ibv_syms) / sizeof(*ibv_syms),
		load_why, sizeof(load_why));
	if (!load_err)
		load_err = verbs_lib_open("librdmacm.so.1", rdma_syms,
			sizeof(rdma_syms) / sizeof(*rdma_syms), load_why, sizeof(load_why));
}

int verbs_lib_load(char *why, size_t why_len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	if (load_err)
		snprintf(why, why_len, "rdma-core cannot be loaded: %s", load_why);
	return load_err;
}

#endif
