#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# nconnect=4: lanes serve the same files, and each other's, at once. With a metadata
# lane they hand requests over.

. "$(dirname "$0")/fuse_sim_lib.sh"

# beside command...: with programs on files of their own, all in one mount.
beside() {
	local i jobs=() rc=0
	for i in 1 2 3 4 5; do
		timeout 500 "$fsx" -n 800 -m mixed "$work/m/fsx$i" &
		jobs+=($!)
	done
	"$@" || rc=1
	for i in "${jobs[@]}"; do wait "$i" || rc=1; done
	return $rc
}
crowd() { beside work_load m load; }

# Appends and renames by several programs on the same names: nothing gets lost.
appenders() {
	local i j jobs=()
	: >"$work/m/log"
	for i in 1 2 3 4; do
		(for ((j = 0; j < 60; j++)); do
			echo "$i $j" >>"$work/m/log"
			echo "$i" >"$work/m/tmp$i" && mv "$work/m/tmp$i" "$work/m/current"
			cat "$work/m/current" "$work/m/log" >/dev/null
		done) &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	same "$(wc -l <"$work/m/log")" 240 &&
		same "$(sort -u "$work/m/log" | wc -l)" 240 && rm "$work/m/log" "$work/m/current"
}

# The server forgets, three times, while they work. (What was asked for again after
# that, as unlink, may answer otherwise: no work-load.)
restarts() {
	for _ in 1 2 3; do sleep 0.7; ctl m restart 1 || return; done
}

all_served() {
	kill -USR1 "${pid[m]}"
	same "$(value m sessions)" "$1"
}

check "the work-load on a local file system" reference
must "mounted" sim_start m "" "nconnect=4,stats"
check "four sessions" all_served 4
check "every operation does what it does locally" work_load m
check "programs side by side" crowd
check "programs on the same files" appenders
check "cuts" ctl m cuts 40
check "programs side by side, with cuts" crowd
check "programs on the same files, with cuts" appenders
check "unmounted, nothing is left" sim_stop m
must "four buffers and four credits each" sim_start m "" "nconnect=4,buffers=4,credits=4"
check "programs side by side" crowd
check "unmounted, nothing is left" sim_stop m
must "two lanes, and one for metadata" sim_start m "" "nconnect=2,metalane,stats"
check "three sessions" all_served 3
check "every operation does what it does locally" work_load m
check "programs side by side" crowd
check "programs on the same files" appenders
check "cuts" ctl m cuts 40
check "programs side by side, with cuts" crowd
check "programs on the same files, with cuts" appenders
check "no more cuts" ctl m cuts 0
check "programs side by side, and restarts of the server" beside restarts
check "unmounted, nothing is left" sim_stop m
must "four buffers and four credits" sim_start m "" "metalane,buffers=4,credits=4"
check "programs side by side" crowd
check "programs side by side, and restarts of the server" beside restarts
check "unmounted, nothing is left" sim_stop m
tap_end
