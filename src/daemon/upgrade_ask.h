/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program is asked, before it is executed in place of ours, whether it could take over.
 *
 * Context: the main thread.
 */
#ifndef RPCRDMAFS_UPGRADE_ASK_H
#define RPCRDMAFS_UPGRADE_ASK_H

#include "upgrade.h"

/*
 * Why nobody should execute that file: only root or we may have written it, and it does not lie on
 * the mount itself, whose device is dev: it would be read when nothing serves that. NULL: no
 * reason.
 */
const char *upgrade_ask_fault(int program, dev_t dev);
/* u->program is asked. Returns: 0; -errno: it does not run. upgrade_ask_end() is due in any case.
 */
int upgrade_ask(struct upgrade *u);
/* Returns: 1: it could; 0: it has not said yet; -1: it could not. */
int upgrade_ask_answer(struct upgrade *u);
/* The program is of no interest any more. */
void upgrade_ask_end(struct upgrade *u);

#endif
