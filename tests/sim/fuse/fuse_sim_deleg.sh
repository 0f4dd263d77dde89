#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Delegations are called back while programs work, on all lanes, with cuts and
# restarts of the server.

. "$(dirname "$0")/fuse_sim_lib.sh"

# Or something else, which takes as long as PAUSE, until the programs have ended.
recalls() {
	while [ ! -e "$work/enough" ]; do
		ctl m "${*:-recall}" >/dev/null
		sleep "${PAUSE:-0.0$((RANDOM % 9 + 1))}"
	done
}

# Readers and writers on the same names, and work-loads of their own.
crowd() {
	local i j jobs=() rc=0
	rm -f "$work/enough"
	recalls "$@" &
	local recaller=$!
	for i in 1 2 3; do
		timeout 500 "$fsx" -n 500 -m mixed "$work/m/fsx$i" &
		jobs+=($!)
	done
	for i in 1 2 3 4; do
		(for ((j = 0; j < 60; j++)); do
			cat "$work/m/shared" "$work/m/shared" >/dev/null || exit 1
			[ $((j % 10)) != "$i" ] || echo "$i $j" >>"$work/m/shared" || exit 1
			[ $((j % 20)) != "$i" ] || chmod 64$i "$work/m/shared" || exit 1
		done) &
		jobs+=($!)
	done
	for i in "${jobs[@]}"; do wait "$i" || rc=1; done
	: >"$work/enough"
	wait "$recaller"
	same "$(wc -l <"$work/m/shared")" 24 || rc=1
	: >"$work/m/shared"
	return $rc
}
restarts() { PAUSE=1 crowd restart 0; }
none_held() { same "$(value m delegs)" 0; }
held() { [ "$(value m delegs)" -ge "$1" ]; }
read_delegated() { cat "$work/m/shared" >/dev/null && held 1; }

must "mounted" sim_start m "" "nconnect=4,stats"
: >"$work/m/shared"
check "a file is read" cat "$work/m/shared"
# Not while the CLOSE of who made it, which nobody waits for, is on its way on another lane.
check "and delegated" wait_for 60 read_delegated
check "recalled, it is returned" ctl m recall
check "all of them" wait_for 60 none_held
check "programs, and recalls" crowd
check "cuts" ctl m cuts 60
check "programs, and recalls, with cuts" crowd
check "no more cuts" ctl m cuts 0
check "programs, and restarts of the server" restarts
cat "$work/m/shared" >/dev/null
check "unmounted, nothing is left" sim_stop m
tap_end
