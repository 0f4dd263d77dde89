#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# As many calls in flight as 64 credits allow, at the same time in the server:
# its file system is frozen, so that none of the writes ends before it is
# thawed. Then as many threads write and read as fast as they can.
#
# Of 64 requests the session keeps 3 for itself (lease, recovery, reopening), of
# 64 credits one is kept for the health check: programs get 61, and with a lease
# being renewed and a health check there are at most 63.
# vm-timeout: 240

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
threads=96 most=61
mkdir -p "$bin_dir"
cp "$BUILD_DIR/tests/vm/flight" "$bin_dir/"
# One nfsd thread for each call, and some to renew leases.
old_threads=$(nfsd_threads)
echo 80 >/proc/fs/nfsd/threads
frozen=no
thaw() { [ $frozen = no ] || fsfreeze -u $export_dir; frozen=no; }
# A file system that stays frozen would stop whatever comes after this.
trap thaw EXIT

client() { client_stats $mnt | stat_of "$1"; }
in_flight() { [ "$(client in_flight)" -ge $most ]; }
# nfsd threads that wait for the frozen file system.
in_server() {
	local n
	n=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c '^[0-9]* (nfsd) D') || true
	echo "$n"
}
all_in_server() { [ "$(in_server)" -ge $most ]; }
said_ready() { grep -q ready /run/flight.out; }

flight() {
	local mode=$1 job go
	check "$mode: mounted" fmount $mnt "credits=64,memreg=$mode"
	mkdir $export_dir/flight
	exec {go}<>/run/flight.go
	"$bin_dir/flight" $mnt/flight $export_dir/flight $threads 6 </run/flight.go >/run/flight.out 2>&1 &
	job=$!
	check "$mode: $threads threads" wait_for 60 said_ready
	fsfreeze -f $export_dir
	frozen=yes
	echo >&"$go"
	check "$mode: $most calls are in flight" wait_for 30 in_flight
	check "$mode: and in the server" wait_for 30 all_in_server
	diag "$mode: in the server: $(in_server)"
	thaw
	check "$mode: no call failed, all data is right" wait $job
	cat /run/flight.out
	exec {go}>&-
	stats=$(client_stats $mnt)
	diag "$mode: $(grep -E '^(in_flight_max|credits|slots|rpcs|credit_waits|slot_waits|buf_waits|mw_binds|op_WRITE|op_READ)=' <<<"$stats" | tr '\n' ' ')"
	check "$mode: most at once" between $most "$(stat_of in_flight_max <<<"$stats")" 63
	check_equal "$mode: nothing is in flight" "$(stat_of in_flight <<<"$stats")" 0
	check_equal "$mode: nothing was sent again" "$(stat_of retransmits <<<"$stats")" 0
	check "$mode: unmounted" funmount $mnt
	rm -r $export_dir/flight
}

mkfifo /run/flight.go
flight mw
flight static
rm /run/flight.go
echo "$old_threads" >/proc/fs/nfsd/threads
tap_end
