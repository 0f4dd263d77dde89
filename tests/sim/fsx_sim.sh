#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Random operations against a model (fsx_sim.c), without and with cuts of the
# connection. OPS, SEED: to look for more, or for the same again.

. "$(dirname "$0")/fuse_sim_lib.sh"

ops=${OPS:-10000}

fsx() { "$bin/fsx_sim" -n "$ops" ${SEED:+-s "$SEED"} "$work/$1/fsx"; cat "$work/$1.log"; }

must "mounted" sim_start plain "" ""
must "mounted, with cuts" sim_start cut "" ""
must "mounted, static, two lanes, with cuts" sim_start lanes static "nconnect=2"
check "cuts" ctl cut cuts 25
check "cuts" ctl lanes cuts 40
check "$ops operations each" on_each "plain cut lanes" fsx
for m in plain cut lanes; do check "unmounted, nothing is left" sim_stop $m; done
tap_end
