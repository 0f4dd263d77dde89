#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A metadata lane: who asks for names and attributes does not wait for READs and
# WRITEs that the server holds, however many more they are than the data lane
# has operations (credits + 16), credits and buffers. Without it everybody waits.

. "$(dirname "$0")/fuse_sim_lib.sh"

options="credits=8,buffers=64,actimeo=0"
many=60 # of each, where a lane has 24 operations
op_read=25 op_write=38

make_files() {
	local i
	mkdir "$work/$1/d" && echo word >"$work/$1/d/other" || return
	for ((i = 0; i < many; i++)); do
		head -c 8192 /dev/zero >"$work/$1/f$i" || return
	done
	sync "$work/$1/f0"
}

# Each with one request of its own, none through the kernel's pages.
programs=()
start_programs() {
	local i
	programs=()
	for ((i = 0; i < many; i++)); do
		dd if="$work/$1/f$i" of=/dev/null bs=4096 count=1 iflag=direct status=none &
		programs+=($!)
	done
	[ -n "${READS_ONLY:-}" ] || for ((i = 0; i < many / 2; i++)); do
		dd if=/dev/zero of="$work/$1/f$i" bs=4096 count=1 conv=notrunc oflag=direct \
			status=none &
		programs+=($!)
	done
	# Some have to be waiting at the server, the others had time to come.
	wait_for 60 some_held "$1" && sleep 2
}
some_held() { [ "$(value "$1" held)" -ge 4 ]; }

still_there() {
	local p
	for p in "${programs[@]}"; do kill -0 "$p" || return; done
}

all_end() {
	local p rc=0
	for p in "${programs[@]}"; do wait "$p" || rc=1; done
	return $rc
}

# stat, ls, and what changes names: each asks the server.
metadata() {
	local dir=$work/$1/d
	stat "$dir/other" "$work/$1" && ls -l "$dir" && chmod 600 "$dir/other" &&
		mkdir "$dir/new" && mv "$dir/new" "$dir/newer" && rmdir "$dir/newer" &&
		ln -s other "$dir/link" && readlink "$dir/link" && rm "$dir/link" && stat -f "$dir"
}
export -f metadata
export work
quickly() { timeout -s KILL 120 bash -c "metadata $1"; }
stat_waits() {
	timeout 4 stat "$work/$1/d/other" &
	wait $!
	[ $? = 124 ]
}

# While nothing can be done the daemon does nothing: less than half a second in two.
ticks() { awk '{print $14 + $15}' "/proc/${pid[$1]}/stat"; }
rests() {
	local before
	before=$(ticks "$1")
	sleep 2
	between 0 $(($(ticks "$1") - before)) 50
}

hold() { ctl "$1" hold $op_read && ctl "$1" hold $op_write; }

kill_all() {
	kill -KILL "${programs[@]}"
	wait_for 60 none_left
}
none_left() {
	local p
	for p in "${programs[@]}"; do ! runs "$p" || return 1; done
}

handed_over() {
	kill -USR1 "${pid[$1]}"
	wait_for 60 grep -q "lanes=2" "$work/$1.log" && grep "handed_over=[1-9]" "$work/$1.log"
}

must "mounted" sim_start without "" "$options"
check "files" make_files without
check "the server holds READs and WRITEs" hold without
check "many programs wait for it" start_programs without
check "so does who wants attributes" stat_waits without
check "the server goes on" ctl without release
check "all end well" all_end
check "unmounted, nothing is left" sim_stop without

must "mounted with a metadata lane" sim_start with "" "$options,metalane"
check_equal "two sessions" "$(value with sessions)" 2
check "files" make_files with
check "the server holds READs and WRITEs" hold with
check "many programs wait for it" start_programs with
check "the daemon rests" rests with
check "metadata does not wait" quickly with
check "the programs still do" still_there
check "requests were handed over" handed_over with
check "the server goes on" ctl with release
check "all end well" all_end
check "held again" hold with
check "many programs wait for it" start_programs with
check "who is killed ends" kill_all
check "metadata does not wait" quickly with
check "the server goes on" ctl with release
check "metadata after that" quickly with
check "unmounted, nothing is left" sim_stop with

# READs alone, until the operations that are added would have to be many.
many=300
must "mounted" sim_start crowd "" "credits=8,buffers=8,actimeo=0,metalane"
check "files" make_files crowd
check "the server holds READs" hold crowd
READS_ONLY=1
check "very many programs wait for it" start_programs crowd
check "the daemon rests" rests crowd
check "metadata does not wait" quickly crowd
check "the connection breaks" ctl crowd cut
check "metadata does not wait" quickly crowd
check "the server goes on" ctl crowd release
check "all end well" all_end
check "unmounted, nothing is left" sim_stop crowd
tap_end
