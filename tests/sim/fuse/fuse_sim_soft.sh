#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A server that never answers. `soft` and `softerr` end each call timeo times
# (retrans + 1) after it began, here 3 s: not earlier, and not much later (27 s
# are left to a busy machine). When the server is back all is well.
#
# What takes twice as long: a buffered read, because after a read-ahead that
# failed the kernel asks for the page alone; and calls that waited in the kernel
# because the lane had as many in work as it can have (credits + 16).

. "$(dirname "$0")/fuse_sim_lib.sh"

# Names and attributes stay cached, so that each program waits for its own call.
options="timeo=10,retrans=2,actimeo=600"
least=2900 most=30000

# fails_with TEXT LEAST MOST command...
fails_with() {
	local text=$1 low=$2 high=$3 start took rc=0 out
	shift 3
	start=$(now_ms)
	out=$(LC_ALL=C "$@" 2>&1) || rc=$?
	took=$(($(now_ms) - start))
	[ $rc != 0 ] && [[ $out == *"$text"* ]] && between "$low" $took "$high" && return
	echo "$*: $took ms, status $rc: $out"
	return 1
}

# The write itself is answered before the server is asked.
write_to() {
	perl -MIO::Handle -e 'open(my $f, ">&=", $ARGV[0]) or die "$!\n"; $f->autoflush(1);
		print $f $ARGV[1] or die "$!\n"; $f->sync or die "$!\n"' "$1" "$2"
}
read_from() { head -c 10 <&"$1"; }

# All at once: they wait side by side. A folder for each, since the kernel lets
# one change of a folder wait for the other.
all_fail() {
	local dir=$work/$1 text=${text_of[$1]} jobs=() job rc=0 to from
	exec {to}>&"${to_fd[$1]}" {from}<&"${from_fd[$1]}"
	fails_with "$text" $least $most stat "$dir/d1/missing" & jobs+=($!)
	fails_with "$text" $least $most cat "$dir/d2/there" & jobs+=($!)
	fails_with "$text" $least $most mkdir "$dir/d3/new" & jobs+=($!)
	fails_with "$text" $least $most rm -f "$dir/d4/there" & jobs+=($!)
	fails_with "$text" $least $most chmod 600 "$dir/d5" & jobs+=($!)
	fails_with "$text" $least $most stat -f "$dir" & jobs+=($!)
	fails_with "$text" $least $most ls "$dir/d6" & jobs+=($!)
	fails_with "$text" $least $most ln "$dir/d7/there" "$dir/d7/link" & jobs+=($!)
	fails_with "$text" $least $most write_to "$to" "late words" & jobs+=($!)
	fails_with "$text" $least $((most + 3000)) read_from "$from" & jobs+=($!)
	for job in "${jobs[@]}"; do wait "$job" || rc=1; done
	return $rc
}

# More than slots, requests and credits: some wait for those before them, no longer.
crowd_fails() {
	local dir=$work/$1 text=${text_of[$1]} i jobs=() job rc=0
	for ((i = 0; i < 100; i++)); do
		fails_with "$text" $least $((most + 3000)) stat "$dir/missing$i" & jobs+=($!)
	done
	for job in "${jobs[@]}"; do wait "$job" || rc=1; done
	return $rc
}

declare -A text_of=() to_fd=() from_fd=()

prepare() {
	local i
	# A call that was given up may have opened a file: `leave`.
	sim_start "$1" leave "$2,$options" || return
	for i in 1 2 3 4 5 6 7 8; do
		mkdir "$work/$1/d$i" && echo "something to read" >"$work/$1/d$i/there" || return
	done
	ls -lR "$work/$1"
	text_of[$1]=$3
}

# Not before all daemons are started: they would inherit them.
open_files() {
	local fd
	exec {fd}>"$work/$1/d8/other"
	to_fd[$1]=$fd
	# Not for reading only: what is read at once would be here already (fs_openread.h).
	exec {fd}<>"$work/$1/d8/there"
	from_fd[$1]=$fd
}

well_again() { wait_for 60 test ! -e "$work/$1/missing" && work_load "$1" again; }

end() {
	local fd=${to_fd[$1]}
	exec {fd}>&-
	fd=${from_fd[$1]}
	exec {fd}<&-
	sim_stop "$1"
}

mounts="silent.soft silent.softerr gone.soft gone.softerr"
check "the work-load on a local file system" reference
for m in $mounts; do
	text="Input/output error"
	[ "${m#*.}" = soft ] || text="Connection timed out"
	must "mounted with ${m#*.}" prepare "$m" "${m#*.}" "$text"
done
for m in $mounts; do open_files "$m"; done
for m in $mounts; do check "the server is ${m%.*}" ctl "$m" "${m%.*}" 1; done
check "programs get the right error in time" on_each "$mounts" all_fail
check "so do a hundred" on_each "$mounts" crowd_fails
for m in $mounts; do check "the server is back" ctl "$m" "${m%.*}" 0; done
check "well again" on_each "$mounts" well_again
for m in $mounts; do check "unmounted" end "$m"; done
tap_end
