#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several lanes: connections, threads and sessions of one client, sharing the
# inodes. The tests of files and names again, and work in parallel.
# vm-timeout: 420

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
# What others left behind: a courteous server keeps it.
[ -z "$(ls /proc/fs/nfsd/clients)" ] || nfsd_restart
mnt=/mnt
# The device has queue pairs of theirs; without one the client has to be believed.
connections() {
	if [ "${FABRIC:-}" = soft ]; then
		stat_of connects <<<"$(client_stats $mnt)"
	else
		rdma resource show qp | grep -c ' pid [1-9]'
	fi
}

check "mounted with three lanes" fmount $mnt nconnect=3,allow_other
check_equal "one client on the server" "$(ls /proc/fs/nfsd/clients | wc -l)" 1
check_equal "with three connections" "$(connections)" 3
work() {
	local i
	mkdir "$mnt/w$1"
	for i in $(seq 40); do
		head -c $((i * 1777)) /dev/urandom >"$mnt/w$1/f$i"
		cp "$mnt/w$1/f$i" "$mnt/w$1/g$i"
		cmp "$mnt/w$1/f$i" "$export_dir/w$1/g$i" || return 1
		mv "$mnt/w$1/g$i" "$mnt/w$1/h$i"
		[ $((i % 2)) = 0 ] || rm "$mnt/w$1/f$i"
	done
	[ "$(ls "$mnt/w$1" | wc -l)" = 60 ]
}
parallel() {
	local pids=() i rc=0
	for i in 1 2 3 4; do work $i & pids+=($!); done
	for i in "${pids[@]}"; do wait "$i" || rc=1; done
	return $rc
}
check "four at work at once" parallel
check "all they made is on the server" same "$(cd $mnt && find w? | sort)" "$(cd $export_dir && find w? | sort)"
stats=$(client_stats $mnt)
check "three sessions" test "$(stat_of sessions <<<"$stats")" = 3
check "removed" rm -r $mnt/w1 $mnt/w2 $mnt/w3 $mnt/w4
check "unmounted" funmount $mnt
check "no client is left" wait_for 5 bash -c '[ -z "$(ls /proc/fs/nfsd/clients)" ]'

again() { criterion MNT_OPTS=nconnect=2 timeout 200 "$BUILD_DIR/tests/vm/test_$1" -j1 "${@:2}"; }
check "files, with two lanes" again files

check "mounted with two lanes and one for metadata" fmount $mnt nconnect=2,metalane,allow_other
check_equal "three connections" "$(connections)" 3
check "four at work at once" parallel
check "all they made is on the server" same "$(cd $mnt && find w? | sort)" "$(cd $export_dir && find w? | sort)"
stats=$(client_stats $mnt)
check "three sessions" test "$(stat_of sessions <<<"$stats")" = 3
check "requests were handed over" test "$(stat_of handed_over <<<"$stats")" -gt 500
check "removed" rm -r $mnt/w1 $mnt/w2 $mnt/w3 $mnt/w4
check "unmounted" funmount $mnt
check "no client is left" wait_for 5 bash -c '[ -z "$(ls /proc/fs/nfsd/clients)" ]'

# ask_while OPTIONS: the median of 60 questions for a name that is not there, while eight programs
# read 1 MiB at a time, in microseconds.
ask_while() {
	local jobs=() i from stop=/tmp/stop.$1
	fmount $mnt "$1,actimeo=0" >&2 || return
	for i in 1 2 3 4 5 6 7 8; do
		(until [ -e "$stop" ]; do
			dd if=$mnt/big of=/dev/null bs=1M iflag=direct status=none
		done) >&2 &
		jobs+=($!)
	done
	sleep 3
	for ((i = 0; i < 60; i++)); do
		from=${EPOCHREALTIME/[.,]/}
		[ ! -e "$mnt/missing$i" ] || return
		echo $((${EPOCHREALTIME/[.,]/} - from))
	done | sort -n | sed -n 30p
	touch "$stop"
	wait "${jobs[@]}" || return
	funmount $mnt >&2
}
head -c 64M /dev/zero >$export_dir/big
chmod 644 $export_dir/big
without=$(ask_while nconnect=1)
with=$(ask_while nconnect=1,metalane)
diag "the median of a LOOKUP while eight programs read: $without us, with metalane $with us"
check "both were measured" test -n "$without" -a -n "$with"
rm $export_dir/big
tap_end
