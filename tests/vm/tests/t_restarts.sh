#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ten restarts of the server under a mixed load (t_restart does three), and whether the load notices
# each kind of loss.
# vm-boot: own
# vm-timeout: 900

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/open_lib.sh"

rxe_up
nfsd_up
mnt=/mnt
mkdir -p "$bin_dir"
cp "$BUILD_DIR/tests/vm/keepopen" "$bin_dir/"

# noticed SABOTAGE TEXT: it fails, and says so
noticed() {
	local rc=0 in=without-$1
	mkdir $export_dir/"$in"
	timeout 200 "$bin_dir/keepopen" $mnt/"$in" $export_dir/"$in" "$1" >/tmp/noticed 2>&1 || rc=$?
	cat /tmp/noticed
	[ $rc != 0 ] && [ "$(tail -n 1 /tmp/noticed)" = "keepopen: $2" ]
}
no_locks() { ! grep -h "type: lock" /proc/fs/nfsd/clients/*/states; }

check "mounted" fmount $mnt rw,nconnect=2
# Two laps more than before: one of them began since.
check "a mixed load goes on over ten restarts" keep_open restart_nr 2
check "none was lost" not grep "does not give back" "$(fmount_log $mnt)"
check "nothing stays locked" wait_for 60 no_locks
stats=$(client_stats $mnt)
check "the client counted them" test "$(stat_of reconnects <<<"$stats")" -ge 10
check "some without grace" test "$(grep -c "takes no reclaims" "$(fmount_log $mnt)")" -ge 3
check "data that is lost is noticed" noticed data "data was lost"
check "also at the end" noticed late "data was lost"
check "so is a name" noticed name "a rename was lost"
check "a lock that is lost is noticed" noticed lock "a lock was lost"
check "also one of flock" noticed flock "a lock was lost"
check "also by the server's file system" noticed server "the server's file system lacks a lock"
check "and by nfsd" noticed state "nfsd lacks the state of a lock"
check "an error is noticed" noticed error "a program saw an error"
check "nothing stays locked" wait_for 60 no_locks
check "unmounted" funmount $mnt
tap_end
