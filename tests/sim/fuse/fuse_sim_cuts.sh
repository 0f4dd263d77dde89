#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The connection breaks every few requests, at any step: programs notice
# nothing, every request is executed once, and in the end nothing is left on
# the server. ROUNDS (default 6): mounts that are unmounted under cuts.

. "$(dirname "$0")/fuse_sim_lib.sh"

rounds=${ROUNDS:-6}

# A mount whose set-up is spared; then cuts until after the unmount.
mounted_for_cuts() {
	sim_start m "" "$2" && ctl m cuts "$1"
}

many_cuts() {
	local n
	n=$(value m conns_made)
	diag "$n connections"
	[ "$n" -ge "$1" ]
}

tree_in_and_out() {
	make_tree "$work/tree" 40
	cp -a "$work/tree" "$work/m/tree" && diff -r "$work/tree" "$work/m/tree" &&
		rm -r "$work/m/tree" "$work/tree"
}

# Ends of sessions and client IDs are where a cut matters most.
rounds_end_clean() {
	local i
	for ((i = 0; i < rounds; i++)); do
		mounted_for_cuts 3 "nconnect=$((i % 2 + 1))" || return
		echo $i >"$work/m/f" && [ "$(cat "$work/m/f")" = $i ] || return
		if [ $((i % 3)) = 0 ]; then
			kill -TERM "${pid[m]}"
		else
			umount "$work/m" || return
		fi
		sim_ends m 60 || return
	done
}

# Clean, also while writers are at it: unmounted when they are done.
writers() {
	local i jobs=()
	for i in 1 2 3; do
		(for j in 1 2 3 4 5 6; do head -c 300000 /dev/urandom | tee "$work/m/$i.$j" | cksum >"$work/sum.$i.$j"; done) &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	for i in "$work"/sum.*; do
		[ "$(cat "$i")" = "$(cksum <"$work/m/${i##*sum.}")" ] || return
	done
}

check "the work-load on a local file system" reference
must "mounted" mounted_for_cuts 12 ""
check "every operation does what it does locally" work_load m
check "a tree goes in and out" tree_in_and_out
check "writers side by side" writers
check "there were many cuts" many_cuts 50
check "unmounted, nothing is left" sim_stop m
must "mounted with registrations that stay" sim_start m static
check "cuts" ctl m cuts 9
check "every operation does what it does locally" work_load m
check "unmounted, nothing is left" sim_stop m
check "$rounds unmounts under cuts leave nothing" rounds_end_clean
tap_end
