#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A server that stops answering, and `hard`: programs wait, however long; one
# that is killed ends at once, server or not; a signal that it handles changes
# nothing. When the server is back everything that waited is done, once.

. "$(dirname "$0")/fuse_sim_lib.sh"

# Calls time out after 1 s: a `soft` mount would have given up by then.
options="hard,timeo=10,retrans=1,actimeo=600,dirty=1"
# One of each kind to be killed, one to live on.
all_waiting() {
	local kind
	for kind in $kinds; do
		waiting "$1.$kind.k" "$kind" "$work/$1/$kind.k"
		waiting "$1.$kind.l" "$kind" "$work/$1/$kind.l"
	done
	waiting "$1.msync.l" msync "$work/$1/msync.l"
}

# None has ended: neither well nor with an error.
all_wait() {
	local name rc=0
	sleep 3
	for name in "${!job[@]}"; do
		runs "${job[$name]}" && grep -q begins "$work/$name.out" && continue
		echo "$name: $(cat "$work/$name.out")"
		rc=1
	done
	return $rc
}

# Those to be killed: half by SIGKILL, half by signals that have no handler.
kill_them() {
	local name n=0 rc=0
	for name in "${!job[@]}"; do
		[[ $name == *.k ]] || continue
		case $((n++ % 4)) in
		0 | 1) kill -KILL "${job[$name]}" ;;
		2) kill -TERM "${job[$name]}" ;;
		3) kill -USR1 "${job[$name]}" ;;
		esac
	done
	for name in "${!job[@]}"; do
		[[ $name == *.k ]] || continue
		if ! wait_for 60 ended "${job[$name]}"; then
			echo "$name lives: $(grep State "/proc/${job[$name]}/status")"
			cat "/proc/${job[$name]}/stack" 2>/dev/null
			rc=1
			continue
		fi
		wait "${job[$name]}" && rc=1
		unset "job[$name]"
	done
	return $rc
}

all_done() {
	local name rc=0
	for name in "${!job[@]}"; do
		if ! wait_for 60 ended "${job[$name]}"; then
			echo "$name waits on"
			rc=1
			continue
		fi
		wait "${job[$name]}" || { echo "$name: $(cat "$work/$name.out")"; rc=1; }
		unset "job[$name]"
	done
	return $rc
}

kinds=$("$bin/fuse_sim_wait" -l | grep -vx msync)
mounts="silent gone lanes"
check "the work-load on a local file system" reference
must "mounted" sim_start silent "" "$options"
must "mounted" sim_start gone "" "$options"
must "mounted with four lanes" sim_start lanes "" "$options,nconnect=4"
exec {hold}<>"$work/go" # nobody sees its end
for m in $mounts; do all_waiting $m; done
must "programs are ready" all_ready
check "a server is silent" ctl silent silent 1
check "a server is gone" ctl gone gone 1
check "a server of four lanes is silent" ctl lanes silent 1
go
must "all programs began" all_began
check "all programs wait" all_wait
check "killed programs end" kill_them
check "the others wait" all_wait
for m in $mounts; do
	check "the server of $m is back" ctl $m silent 0
	check "the server of $m is back" ctl $m gone 0
done
check "programs did what they should" all_done
check "every operation does what it does locally" on_each "$mounts" work_load
exec {hold}<&-
for m in $mounts; do check "$m unmounted, nothing is left" sim_stop $m; done
tap_end
