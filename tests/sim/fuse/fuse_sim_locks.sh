#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Locks of programs on one mount with several lanes: what must hold is said in
# tests/vm/tools/locker.c.

. "$(dirname "$0")/fuse_sim_lib.sh"

n=0
try() {
	n=$((n + 1))
	timeout 500 "$bin/fuse_sim_locker" "$1" "$2" "$work/m/lock$n" "$work/m/lock$n"
}
everything() {
	local what
	for what in conflict block interrupt killwait closed killhold crowd; do
		echo "$what"
		try $what "$1" || return
	done
	[ "$1" = flock ] || try ranges "$1"
}

must "mounted" sim_start m "" "nconnect=4"
for kind in posix ofd flock; do check "$kind" everything $kind; done
check "more wait than there are operations" try many posix
check "cuts" ctl m cuts 40
for kind in posix ofd flock; do check "$kind, with cuts" try crowd $kind; done
check "unmounted, nothing is left" sim_stop m
must "four buffers and four credits, one lane" sim_start m "" "buffers=4,credits=4"
check "more wait than there are operations" try many flock
check "posix" everything posix
check "unmounted, nothing is left" sim_stop m
tap_end
