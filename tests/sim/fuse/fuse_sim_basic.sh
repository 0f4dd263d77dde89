#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A mount on the simulated server: every operation, every way to unmount.

. "$(dirname "$0")/fuse_sim_lib.sh"

# Operations of NFSv4.2 that file system calls must have led to.
ops="3 4 5 6 9 10 15 18 22 24 25 26 27 28 29 34 38 42 43 53 58 11"

tree_in_and_out() {
	make_tree "$work/tree" 60
	cp -a "$work/tree" "$work/m/tree" && diff -r "$work/tree" "$work/m/tree" &&
		tar -C "$work/m" -cf "$work/tar" tree && tar -C "$work/m" -df "$work/tar" &&
		rm -r "$work/m/tree" && [ -z "$(ls -A "$work/m")" ]
}

# copy_file_range: files share blocks.
clones() {
	head -c 3000001 /dev/urandom >"$work/m/from"
	cp "$work/m/from" "$work/m/to" && cmp "$work/m/from" "$work/m/to" &&
		[ "$(ctl m ops 71)" != "71=0" ] && rm "$work/m/from" "$work/m/to"
}

# Or the server copies.
copies() {
	head -c 3000001 /dev/urandom >"$work/m/from"
	python3 - "$work/m/from" "$work/m/to" <<-'END' || return
		import os, sys
		src, dst = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
		assert os.copy_file_range(src, dst, 1 << 30, 1, 100) == 3000000
		assert os.pread(dst, 1000, 100) == os.pread(src, 1000, 1)
		assert os.fstat(dst).st_size == 3000100
	END
	cmp -i 1:100 "$work/m/from" "$work/m/to" && [ "$(ctl m ops 60)" != "60=0" ] &&
		rm "$work/m/from" "$work/m/to"
}

all_seen() {
	# shellcheck disable=SC2086  # words
	! ctl m ops $ops | tr ' ' '\n' | grep '=0$'
}

# A small use of the mount, then NAME's way to end it.
ends_by() {
	local way=$1
	sim_start m "" || return
	echo something >"$work/m/file" && [ "$(cat "$work/m/file")" = something ] || return
	case $way in
	umount) umount "$work/m" ;;
	fusermount) fusermount3 -u "$work/m" ;;
	lazy) fusermount3 -uz "$work/m" ;;
	force) umount -f "$work/m" ;;
	*) kill "-$way" "${pid[m]}" ;;
	esac
	sim_ends m 60
}

# It is told to end while a program writes: what was written is committed, the file closed.
ends_while_used() {
	local fd
	sim_start m "" || return
	exec {fd}>"$work/m/file"
	echo one >&"$fd"
	kill -TERM "${pid[m]}"
	wait_for 60 not is_mounted "$work/m" || return
	echo two >&"$fd" || return
	exec {fd}>&-
	sim_ends m 60
}

# Without -f: the command returns when the mount is there, the daemon lives on.
in_background() {
	local dir daemon=
	mkdir -p "$work/back"
	"$bin/fuse_sim" 127.0.0.1:/ "$work/back" || return
	for dir in /proc/[0-9]*; do
		! tr '\0' ' ' <"$dir/cmdline" | grep -q "fuse_sim 127.0.0.1:/ $work/back " ||
			daemon=${dir#/proc/}
	done 2>/dev/null
	echo "$daemon" >>"$work/pids"
	is_mounted "$work/back" && echo text >"$work/back/f" && [ "$(cat "$work/back/f")" = text ] &&
		fusermount3 -u "$work/back" && wait_for 60 ended "$daemon"
}

fails_on_a_file() {
	local rc=0
	: >"$work/file"
	"$bin/fuse_sim" -f 127.0.0.1:/ "$work/file" || rc=$?
	[ $rc = 1 ] && ! is_mounted "$work/file"
}

# The rig's own: a number that it noted may be another test's daemon by now.
spares_others() {
	local other dir rc=0
	dir=$(mktemp -d) && cp /bin/sleep "$dir/fuse_sim" || return
	"$dir/fuse_sim" 60 &
	other=$!
	echo "$other" >>"$work/pids"
	kill_daemons
	kill -TERM "$other"
	wait "$other" || rc=$?
	rm -r "$dir"
	[ $rc = $((128 + 15)) ]
}

check "the work-load on a local file system" reference
must "mounted" sim_start m "" stats
check "every operation does what it does locally" work_load m
check "a tree goes in and out" tree_in_and_out
check "files share blocks" clones
check "the server copies" copies
check "the server saw all of them" all_seen
check "unmounted by fusermount3 -u, nothing is left" sim_stop m
for way in umount lazy force TERM INT HUP; do
	check "ends by $way" ends_by $way
done
check "ends by TERM while a file is written" ends_while_used
check "in the background" in_background
check "a mountpoint that is a file" fails_on_a_file
check "the daemon of another test is not killed" spares_others
tap_end
