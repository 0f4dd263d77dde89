# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Where everything waits, for a test that has waited long enough: in the guest
# (guest.sh, run-tests) or daemons of this machine (fuse_sim_lib.sh). Builtins
# only: a guest in which programs do not start any more can still tell.

# stacks [PID...]: one line for each thread of these processes, or of each
# program, and for each kernel thread that waits uninterruptibly:
# process/thread, name, state, innermost functions first.
stacks() {
	local task ids name state command stack tasks=()
	for task in "$@"; do tasks+=(/proc/"$task"/task/[0-9]*); done
	[ $# -gt 0 ] || tasks=(/proc/[0-9]*/task/[0-9]*)
	for task in ${tasks[@]+"${tasks[@]}"}; do
		ids=${task#/proc/}
		ids=${ids/\/task/}
		[ "${ids%/*}" != $$ ] || continue
		{ read -r name <"$task/comm"; } 2>/dev/null || continue
		state=$(state_of "$task") command=
		{ IFS= read -r -d '' command <"$task/cmdline"; } 2>/dev/null || true
		[ -n "$command" ] || [ "$state" = D ] || continue
		stack=$(stack_of "$task")
		echo "# $ids $name $state: ${stack:-(in user space)}"
	done
}
state_of() {
	local key value
	while read -r key value _; do
		[ "$key" != State: ] || { echo "$value"; return; }
	done 2>/dev/null <"$1/status" || true
}
stack_of() {
	local frame n=0 all=
	while read -r _ frame && [ $n -lt 8 ]; do
		all+="${all:+ < }${frame%%+*}"
		n=$((n + 1))
	done 2>/dev/null <"$1/stack" || true
	echo "$all"
}
