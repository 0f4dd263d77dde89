# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Daemons on /dev/fuse of this machine, for native and compare: each has a
# folder of $work as its mount point. To be sourced, after lib.sh.

. "$bench_dir/../vm/guest/guest.sh"

can_mount() { [ -c /dev/fuse ] && [ "$(id -u)" = 0 ]; }

mounted() { grep -q " $1 fuse\." /proc/self/mounts; }

# begin_work NAME: makes $work, which is gone with all mounts when the script ends.
begin_work() {
	work=$(mktemp -d "${TMPDIR:-/tmp}/bench-$1.XXXXXX")
	RESULTS=$work # where guest.sh looks for the daemon's log
	trap clean_up EXIT
	trap 'exit 130' INT TERM HUP
}

# start CLIENT COMMAND...: as fmount does, of guest.sh, whose client_stats can be used.
start() {
	local mnt=$work/$1 log
	log=$(fmount_log "$mnt")
	shift
	mkdir -p "$mnt"
	"$@" "$mnt" >"$log" 2>&1 </dev/null &
	fmount_pid[$mnt]=$!
	wait_for 30 mounted "$mnt" || { cat "$log" >&2; die "$mnt does not mount"; }
}

stop_all() {
	local c
	for c in "${!fmount_pid[@]}"; do
		fusermount3 -u "$c" 2>/dev/null || umount -l "$c" 2>/dev/null || true
		wait_for 10 ended "${fmount_pid[$c]}" || kill -KILL "${fmount_pid[$c]}" 2>/dev/null || true
		unset "fmount_pid[$c]"
	done
}

clean_up() {
	stop_all
	rm -rf --one-file-system "$work"
}

# server_ns CLIENT: what the null server took until now on the daemon's own thread.
server_ns() { od -An -tu8 -N8 "$work/spent.$1" | tr -d ' '; }
