#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A server that answers garbage: programs get errors, the daemon lives, works
# again with a server that came to its senses, and unmounts.

. "$(dirname "$0")/fuse_sim_lib.sh"

options="soft,timeo=10,retrans=1,acregmax=3,acdirmin=1,acdirmax=3"

# Whatever they do and however it ends, as long as it ends: none waits for ever.
programs() {
	local m=$work/$2 out=$work/$2.errors seconds=$1 i jobs=()
	run() { timeout -s KILL "$seconds" "$@" >>"$out" 2>&1 & jobs+=($!); }
	run mkdir -p "$m/h"
	sleep 0.5
	for i in 1 2 3; do run "$fsx" -t "$seconds" "$m/h/fsx$i"; done
	run "$bin/fuse_sim_work" "$m/h"
	run cp -r "$work/tree" "$m/"
	for i in 1 2 3; do
		run ls -lR "$m"
		run stat -f "$m"
		run rm -rf "$m/h"
	done
	for i in "${jobs[@]}"; do wait "$i"; done
	runs "${pid[$2]}"
}

# The kernel may remember what it was told, for the times in `options`; the
# session is made again at intervals of up to 15 s.
well_again() {
	local tries=8
	until wait_for 60 mkdir "$work/$1/again$tries" &&
		work_load "$1" "again$tries/load" >"$work/$1.diff" 2>&1; do
		if [ $((tries -= 1)) = 0 ]; then
			cat "$work/$1.diff"
			return 1
		fi
		sleep 1
	done
}

mounts="wire.mw wire.static body.mw body.static"
make_tree "$work/tree" 40
check "the work-load on a local file system" reference
for m in $mounts; do must "mounted" sim_start "$m" "leave;unjudged" "$options,memreg=${m#*.}"; done
for m in $mounts; do check "every 4th reply is garbage" ctl "$m" hostile "${m%.*}" 4; done
check "programs end, the daemons do not" on_each "$mounts" programs 4 2>/dev/null
for m in $mounts; do check "every reply is garbage" ctl "$m" hostile "${m%.*}" 1; done
check "programs end, the daemons do not" on_each "$mounts" programs 2 2>/dev/null
for m in $mounts; do check "the server is well" ctl "$m" hostile off; done
for m in $mounts; do check "a new connection" ctl "$m" cut; done
# What was a lie inside a good message may be believed for longer.
check "well again" on_each "wire.mw wire.static" well_again
# A program that timeout(1) killed, and itself with it, may live a moment longer.
stop() { wait_for 60 fusermount3 -qu "$work/$1" && sim_ends "$1" 60; }
for m in $mounts; do check "unmounted" stop "$m"; done
tap_end
