#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A server that grants one credit: one request at a time, and never a deadlock,
# whatever waits for whatever. Also with hardly any buffers.

. "$(dirname "$0")/fuse_sim_lib.sh"

# More programs than requests and buffers.
crowd() {
	local i jobs=() rc=0
	for i in 1 2 3 4 5 6 7 8; do
		timeout 500 "$fsx" -n 150 -m mixed "$work/m/fsx$i" &
		jobs+=($!)
	done
	for i in "${jobs[@]}"; do wait "$i" || rc=1; done
	return $rc
}

tree_in_and_out() {
	make_tree "$work/tree" 30
	cp -a "$work/tree" "$work/m/tree" && diff -r "$work/tree" "$work/m/tree" &&
		rm -r "$work/m/tree" "$work/tree"
}

check "the work-load on a local file system" reference
for opts in "" "buffers=4,credits=4"; do
	must "mounted ${opts:+with $opts}" sim_start m "credits 1" "$opts"
	check "every operation does what it does locally" work_load m
	check "a tree goes in and out" tree_in_and_out
	check "eight programs at once" crowd
	check "cuts" ctl m cuts 15
	check "eight programs at once, with cuts" crowd
	check "unmounted, nothing is left" sim_stop m
done
tap_end
