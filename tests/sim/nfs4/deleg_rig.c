/* SPDX-License-Identifier: BSD-3-Clause */
#include "deleg_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>

struct sim_nfs w;
struct sim_held h, files[DELEG_FILES];

static uint32_t access_of(uint32_t type)
{
	return type == NFSD_SIM_DELEG_WRITE ? BOTH : READ;
}

/* Opened with a delegation, and closed again. */
static void get_idle(struct sim_held *f, unsigned int lane, uint32_t type)
{
	cr_assert_eq(sim_hopen(f, lane, access_of(type), true), 0);
	cr_assert_eq(f->taken, 1);
	cr_assert_eq(f->how, NFS4_DELEG_KEPT);
	cr_assert_eq(sim_hclose(f, 0), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
}

void deleg_begin(unsigned int lanes, uint32_t delegs)
{
	sim_nfs_open(&w, NULL);
	sim_held_mounted(&w, lanes, delegs);
	sim_held_file(&w, &h, "/f");
}

void deleg_begin_idle(unsigned int lanes, uint32_t type)
{
	deleg_begin(lanes, type);
	get_idle(&h, 0, type);
}

void deleg_begin_served(unsigned int lanes, uint32_t type)
{
	deleg_begin_idle(lanes, type);
	cr_assert(sim_hserve(&h, access_of(type)));
}

void deleg_end(unsigned int left)
{
	cr_assert_eq(nfs4_deleg_count(w.cl), 0);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	SIM_NFS_CLOSE(&w, left);
	cr_assert_eq(sim_said.lost, 0);
}

void deleg_files_begin(unsigned int lanes, unsigned int cnt, uint32_t type, unsigned int served)
{
	cr_assert_leq(cnt, DELEG_FILES);
	sim_nfs_open(&w, NULL);
	sim_held_mounted(&w, lanes, type);
	for (unsigned int i = 0; i < cnt; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/f%u", i);
		sim_held_file(&w, &files[i], path);
		get_idle(&files[i], i % lanes, type);
		if (served & 1u << i)
			cr_assert(sim_hserve(&files[i], access_of(type)));
	}
}

void deleg_use(struct sim_held *f, const char *what, uint64_t where)
{
	int err = sim_hread(f, 0);

	cr_assert_eq(err, 0, "%s %lu: %d", what, (unsigned long)where, err);
	err = sim_hread(f, w.lanes - 1);
	cr_assert_eq(err, 0, "%s %lu: %d", what, (unsigned long)where, err);
}

void deleg_files_end(unsigned int cnt, unsigned int left)
{
	for (unsigned int i = 0; i < cnt; i++) {
		struct sim_held *f = &files[i];

		if (f->f.state.cl)
			cr_assert_eq(sim_hclaim(f, i % w.lanes), 0);
		if (f->deleg.cl)
			cr_assert_eq(sim_hreturn(f, i % w.lanes), 0);
		if (f->f.state.cl) {
			deleg_use(f, "at the end", i);
			cr_assert_eq(sim_hclose(f, 0), 0);
		}
	}
	cr_assert_eq(nfs4_deleg_count(w.cl), 0);
	cr_assert_eq(nfsd_sim_live_delegs(w.srv), 0);
	cr_assert_eq(nfsd_sim_live_opens(w.srv), 0);
	cr_assert_eq(nfsd_sim_revoked(w.srv), 0);
	SIM_NFS_CLOSE(&w, left);
}
