#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The server goes away under a mount and comes back: hard mounts wait and go
# on, soft ones report; what was not committed is not lost.
# vm-boot: own
# tier: quick
# vm-timeout: 900

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/open_lib.sh"

rxe_up
nfsd_up
mnt=/mnt
echo before >$export_dir/file

check "mounted" fmount $mnt rw
check "read" cat $mnt/file
check "the server restarts" nfsd_restart
check "the same mount goes on" timeout 60 cat $mnt/file
check "and writes" timeout 60 bash -c "echo after >$mnt/new"
check_equal "to the server" "$(cat $export_dir/new)" after
check "stat of something new" timeout 60 ls -l $mnt

# Calls that are started while there is no server wait for it.
nfsd_stop
timeout 100 cat $mnt/new >/tmp/waited &
reader=$!
timeout 100 bash -c "echo late >$mnt/late" &
writer=$!
sleep 3
check "a hard mount waits" kill -0 $reader
nfsd_start
check "the reader goes on" wait $reader
check_equal "with the right data" "$(cat /tmp/waited)" after
check "the writer goes on" wait $writer
check_equal "with the right data" "$(cat $export_dir/late)" late
stats=$(client_stats $mnt)
check "the client counted it" test "$(stat_of reconnects <<<"$stats")" -ge 2

# A copy runs on over a restart.
head -c 8000000 /dev/urandom >/tmp/data
timeout 100 dd if=/tmp/data of=$mnt/copy bs=100k conv=fsync status=none &
copier=$!
sleep 0.3
nfsd_restart
copied() { wait $copier; }
check "a copy over a restart ends well" copied
check "the data is whole" cmp /tmp/data $export_dir/copy
check "unmounted" funmount $mnt

# A mixed load over restarts: no program sees an error, what was acknowledged is there, what is locked
# stays locked. The checks of keepopen are said in keepopen.c; t_restarts does ten of them.
cp "$BUILD_DIR/tests/vm/keepopen" "$bin_dir/"
no_locks() { ! grep -h "type: lock" /proc/fs/nfsd/clients/*/states; }
check "mounted" fmount $mnt rw,nconnect=2
check "a mixed load goes on over three restarts" keep_open restart_nr 1 3
check "none was lost" not grep "does not give back" "$(fmount_log $mnt)"
check "nothing stays locked" wait_for 60 no_locks
check "one was without grace" grep "takes no reclaims" "$(fmount_log $mnt)"
check "unmounted" funmount $mnt

# soft: an error instead of for ever.
check "mounted soft" fmount $mnt soft,timeo=20,retrans=1
check "read" cat $mnt/file
nfsd_stop
soft_error() {
	local rc=0
	timeout 60 stat $mnt/nothing >/tmp/err 2>&1 || rc=$?
	cat /tmp/err
	[ $rc = 1 ] && grep -q -i 'input/output error' /tmp/err
}
check "a soft mount says EIO" soft_error
nfsd_start
check "and works again afterwards" wait_for 60 cat $mnt/file
check "unmounted" funmount $mnt

# Unmounting without a server must end too.
check "mounted" fmount $mnt rw
nfsd_stop
check "unmounted without a server" funmount $mnt
nfsd_start
tap_end
