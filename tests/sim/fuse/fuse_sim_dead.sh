#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A server that is dead for good, `hard`, and programs that wait for it: every
# way to unmount works, the programs end, and so does the daemon. It gives up
# when the server was silent for `probe` + 5 s (here 6), its sessions end within
# 5 s more, and SIGTERM gives programs 10 s before. A busy machine gets 60 s.

. "$(dirname "$0")/fuse_sim_lib.sh"

# A daemon that is told to end at once does not wait for its threads.
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}report_thread_leaks=0

options="hard,timeo=10,retrans=1,probe=1,actimeo=0,lookupcache=none,dirty=1"
kinds="open read write close fsync opendir readdir mkdir map direct_read"
all_waiting() {
	local kind
	for kind in $kinds; do waiting "$1.$kind" "$kind" "$work/$1/$kind"; done
}

kill_programs() {
	local name
	for name in "${!job[@]}"; do
		[[ $name != "$1".* ]] || kill -KILL "${job[$name]}" 2>/dev/null
	done
}

# With an error or killed, not well, but for what needed no server.
programs_end() {
	local name rc=0
	for name in "${!job[@]}"; do
		[[ $name == "$1".* ]] || continue
		wait_for 60 ended "${job[$name]}" && continue
		echo "$name waits on: $(cat "/proc/${job[$name]}/stack")"
		rc=1
	done
	return $rc
}

urged() { kill -TERM "${pid[$1]}"; sleep 1; ended "${pid[$1]}"; }

# The end of each, on its own: they all wait at the same time.
end_of() {
	local m=$1 most=71
	case ${m%.*} in
	idle) # umount(8) would look at the mountpoint first: -f and -l do not
		fusermount3 -u "$work/$m" ;;
	force) # busy until the programs it aborts have gone
		wait_for 60 umount -f "$work/$m" ;;
	lazy)
		umount -l "$work/$m" && kill_programs "$m" ;;
	fuselazy)
		fusermount3 -uz "$work/$m" && kill_programs "$m" ;;
	killed)
		kill_programs "$m"
		programs_end "$m" && fusermount3 -u "$work/$m" ;;
	term)
		kill -TERM "${pid[$m]}"
		most=81 ;;
	urgent) # at least three, since signals that come too close together are one
		wait_for 60 urged "$m" ;;
	esac || return
	wait_for $most ended "${pid[$m]}" || { echo "the daemon of $m lives on"; return 1; }
	wait_for 60 not is_mounted "$work/$m" || return
	programs_end "$m"
}

mounts="idle.silent idle.gone force.silent force.gone lazy.silent fuselazy.gone killed.silent
	term.silent term.gone urgent.silent"
for m in $mounts; do must "mounted: $m" sim_start "$m" leave "$options"; done
exec {hold}<>"$work/go"
for m in $mounts; do
	[[ $m == idle* ]] || all_waiting "$m"
done
must "programs are ready" all_ready
for m in $mounts; do check "the server is ${m#*.}" ctl "$m" "${m#*.}" 1; done
go
must "all programs wait" all_began
sleep 2
ends=()
for m in $mounts; do
	end_of "$m" >"$work/end.$m" 2>&1 &
	ends+=($!)
done
for m in $mounts; do
	check "$m: unmounted, programs and daemon ended" wait "${ends[0]}"
	ends=("${ends[@]:1}")
	sed 's/^/# /' "$work/end.$m"
done
for m in $mounts; do
	case $m in
	urgent*) check "$m: status 1" test "$(sim_ends "$m" 1 >/dev/null 2>&1; echo $?)" = 1 ;;
	*) check "$m: status 0, all memory is back" sim_ends "$m" 1 ;;
	esac
done
exec {hold}<&-
tap_end
