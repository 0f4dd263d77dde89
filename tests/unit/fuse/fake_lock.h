/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks of the server of fake_nfs4.c. */
#ifndef RPCRDMAFS_FAKE_LOCK_H
#define RPCRDMAFS_FAKE_LOCK_H

#include "fs_rig.h"

#define FAKE_LOCKS 1024

struct fake_lock {
	uint8_t file;
	uint64_t owner; /* 0: another client's */
	uint64_t off, end;
	bool write;
};

struct fake_locks {
	struct fake_lock v[FAKE_LOCKS];
	unsigned int cnt;
	unsigned int freed, denials;
	int refuse;          /* errno that the server answers everything with */
	unsigned int silent; /* so many LOCKs or LOCKUs are executed but not answered */
	bool lost_ok;        /* owners may be freed with locks */
	void (*on_free)(void *ctx, uint64_t number);
	void *on_free_ctx;
};

extern struct fake_locks fake_locks;

void fake_locks_init(void);
/* Locks on a file, whoever's. */
unsigned int fake_lock_held(struct fake_file *f);
/* Another client's. */
void fake_lock_foreign(struct fake_file *f, uint64_t off, uint64_t len, bool write);
void fake_unlock_foreign(struct fake_file *f);
/* CB_NOTIFY_LOCK */
void fake_lock_notify(uint64_t number);

/* For fake_nfs4.c. */
int fake_lock_execute(struct nfs4_call *call, enum fake_op op);
void fake_lock_check(const struct nfs4_call *call, const struct list *pending);
const struct nfs4_lockowner *fake_lock_owner_of(const struct nfs4_call *call);

#endif
