#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A walk over a directory of ENTRIES files (default 1,000,000), which the server
# makes up: what the daemon takes for each of them as long as the kernel holds
# it, and that it gives everything back when the kernel forgets them; a tenth of
# them with filehandles of 128 bytes.

. "$(dirname "$0")/fuse_sim_lib.sh"

entries=${ENTRIES:-1000000}
per_inode=512
per_asked=512 # with its name; without what malloc adds
# One lock of each inode bears a mark if the order of locks is checked (src/base/mutex.h).
per_mark=8
# malloc has steps of this, and keeps some of what is free ready for the next.
per_step=16
per_ready=4
# What the process may keep of that in the end.
per_forgotten=32
times=acregmin=3600,acregmax=3600,acdirmin=3600,acdirmax=3600

allocated() { ctl "$1" memory | sed -n 's/^allocated=//p'; }
resident() { awk '/^VmRSS:/ { print $2 * 1024 }' "/proc/${pid[$1]}/status"; }
# With a sanitizer the process has more than what it asked for.
sanitized() { grep -q __asan_init "$bin/fuse_sim"; }

marked() { grep -q mutex_lock_at "$bin/fuse_sim"; }
! marked || per_asked=$((per_asked + per_mark))
# A sanitizer tells what was asked for, mallinfo what malloc gave.
per_left=1
sanitized || per_asked=$((per_asked + per_step)) per_left=$per_ready

# The daemon's own number.
inodes() {
	local before
	before=$(wc -c <"$work/$1.log")
	kill -USR1 "${pid[$1]}"
	wait_for 60 told "$1" "$before" && tail -c "+$((before + 1))" "$work/$1.log" | value_of inodes
}
told() { tail -c "+$(($2 + 1))" "$work/$1.log" | grep -q 'lanes=[0-9]*$'; }
value_of() { sed -n "s/^.*: $1=//p"; }

# All are there, once: file IDs begin at 2^40.
walk() { same "$("$bin/fuse_sim_walk" "$work/$1/crowd")" "$2 $((2 ** 40 * $2 + $2 * ($2 - 1) / 2)) 0"; }

# A remount drops the names of this mount, and with them all that they stand for.
forget() { mount -i -o remount "$work/$1" && wait_for 60 forgotten "$1"; }
forgotten() { [ "$(inodes "$1")" -lt 10 ]; }

# at_most BYTES WHAT BEFORE COUNT: what there is more now, for each of them.
at_most() {
	local now
	now=$($2 "$m")
	echo "$(((now - $3) / $4)) bytes each"
	[ $((now - $3)) -le $(($1 * $4)) ]
}

# walks NAME COUNT SETTING
walks() {
	local m=$1 count=$2 used before start=$SECONDS
	must "mounted" sim_start "$m" "crowd $count;$3" "$times"
	stat "$work/$m/crowd" >"$work/stat"
	used=$(allocated "$m") before=$(resident "$m")
	check "a walk over $count entries" walk "$m" "$count"
	check "the kernel holds them" between "$count" "$(inodes "$m")" $((count + 9))
	takes "$m" "$count"
	check "at most $per_asked bytes each" at_most $per_asked allocated
	rss "the process too" at_most $per_inode resident
	check "forgotten" forget "$m"
	takes "$m" "$count"
	check "nothing is left of them" at_most $per_left allocated
	rss "nor in the process" at_most $per_forgotten resident
	sanitized || check "once more" walk "$m" "$count"
	rss "it takes no more" at_most $per_inode resident
	check "unmounted, nothing is left" sim_stop "$m"
	diag "$((SECONDS - start)) s"
}

takes() {
	diag "$((($(allocated "$1") - used) / $2)) bytes asked for an inode, the process takes" \
		"$((($(resident "$1") - before) / $2)) more"
}

# at_most BYTES allocated|resident: what there is more now, for each of them.
at_most() {
	local was=$used now
	[ "$2" = allocated ] || was=$before
	now=$($2 "$m")
	echo "$(((now - was) / count)) bytes each"
	[ $((now - was)) -le $(($1 * count)) ]
}

# Of few the process's own pages are the most, and with a sanitizer its own memory.
rss() { sanitized || [ "$count" -lt 100000 ] || check "$@"; }

walks usual "$entries" ""
walks longest $((entries / 20)) longest
tap_end
