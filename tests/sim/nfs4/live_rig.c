/* SPDX-License-Identifier: BSD-3-Clause */
#include "live_rig.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct live *live_rig_now;
bool live_rig_again;
static struct live *before;

static void next_memory(void)
{
	live_rig_now = live_new();
	cr_assert_not_null(live_rig_now);
}

void live_rig_begin(void)
{
	next_memory();
	sim_nfs_live = live_rig_now;
}

void live_rig_end(void)
{
	sim_nfs_live = NULL;
	live_free(live_rig_now);
	live_rig_now = NULL;
}

void live_rig_die(struct sim_nfs *w, bool restart)
{
	if (live_rig_again)
		live_free(live_rig_now);
	else
		before = live_rig_now;
	next_memory();
	/* The memory is as it was when it died. */
	nfs4_keep_live(w->cl, NULL, &(const struct slab_memory){.get = NULL});
	if (restart) {
		nfsd_sim_restart(w->srv, 60 * SIM_SEC, false);
	} else {
		/* Its sessions would stay until the lease ends, and nobody knows of them. */
		if (!live_rig_again)
			sim_rule(w, NFSD_SIM_CUT_BEFORE, OP_DESTROY_SESSION, 0, 0, 0);
		sim_rule(w, NFSD_SIM_CUT_BEFORE, OP_DELEGRETURN, 0, 0, 0);
		sim_rule(w, NFSD_SIM_CUT_BEFORE, OP_DESTROY_CLIENTID, 0, 0, 0);
	}
	sim_nfs_stop(w);
	for (unsigned int i = 0; i < w->lanes; i++)
		nfs4_session_free(w->lane[i].sess);
	nfs4_client_free(w->cl);
	memset(w->lane, 0, sizeof(w->lane));
	nfsd_sim_rules_clear(w->srv);
}

static int take_record(const struct tables_record *r, struct nfs4_client *cl,
	int (*get)(const struct tables_record *r))
{
	switch (r->type) {
	case NFS4_KEEP_CLIENT:
		return nfs4_keep_get_client(r, cl, false);
	case NFS4_KEEP_SESSION:
		nfs4_keep_get_session(r, cl);
		return 0;
	case NFS4_KEEP_ONCE:
		return nfs4_redo_get(r, cl);
	default:
		return get(r);
	}
}

void live_rig_take_up(
	struct sim_nfs *w, unsigned int lanes, int (*get)(const struct tables_record *r))
{
	int fd = memfd_create("tables", MFD_CLOEXEC), err = 0;
	struct tables_record r;
	struct tables_out t;
	struct tables_in in;

	tables_begin(&t, fd);
	cr_assert_eq(live_tables(live_fd(before), &t), 0);
	cr_assert_eq(tables_end(&t), 0);
	sim_nfs_live = live_rig_now;
	sim_nfs_client(w, lanes);
	cr_assert_eq(nfs4_keep_before(w->cl, live_fd(before)), 0);
	if (!live_rig_again) {
		live_free(before);
		before = NULL;
	}
	cr_assert_eq(tables_open(&in, fd), 0);
	while (err == 0 && tables_next(&in, &r))
		err = take_record(&r, w->cl, get);
	cr_assert_eq(err, 0);
	tables_close(&in);
	close(fd);
}

void live_rig_up(struct sim_nfs *w)
{
	cr_assert(sim_nfs_up(w), "%s", w->lane[0].failure.text);
	cr_assert(sim_nfs_mount(w, "/"), "%s", w->mount_failure.text);
}
