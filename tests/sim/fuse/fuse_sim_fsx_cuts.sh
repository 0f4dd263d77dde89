#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Random operations against a model (tests/fsx) while the connection breaks, and
# the server restarts and loses what was not committed. OPS, SEED: as for
# fuse_sim_fsx.sh.

. "$(dirname "$0")/fuse_sim_lib.sh"

ops=${OPS:-1500}
seed=${SEED-1}

random() { "$fsx" -n "$ops" ${seed:+-s "$seed"} -m mixed "$work/$1/f"; }

# restarts NAME: one after the other, until the file `done` is there.
restarts() {
	local lose=0
	until [ -e "$work/done" ]; do
		sleep 1
		ctl "$1" restart $((lose = 1 - lose)) || return
	done
}

must "mounted" sim_start cut "" ""
must "mounted, static, two lanes" sim_start lanes static "nconnect=2"
must "mounted, where the server restarts" sim_start again "" ""
check "cuts" ctl cut cuts 25
check "cuts" ctl lanes cuts 40
restarts again >"$work/restarts" 2>&1 &
restarter=$!
check "$ops operations each" on_each "cut lanes again" random
touch "$work/done"
check "the server restarted, without an error" wait $restarter
diag "$(grep -c ok "$work/restarts") restarts, $(value cut conns_made) connections"
check "there were many cuts" between 20 "$(value cut conns_made)" 1000000
for m in cut lanes again; do check "unmounted, nothing is left" sim_stop $m; done
tap_end
