#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Does the rig itself work? rxe, nfsd and the kernel's own client, no rpcrdmafs.
#   tests/vm/vm -- tests/vm/tests/smoke.sh

. "$(dirname "$0")/../guest/guest.sh"

stamp() { echo "# $(cut -d' ' -f1 /proc/uptime) s: $*"; }

stamp booted
check "rxe comes up" rxe_up
stamp rxe
nfsd_up
check "nfsd listens on RDMA" grep -q 'rdma 20049' /proc/fs/nfsd/portlist
stamp nfsd
check "nfsd offers 1 MiB" grep -qx 1048576 /proc/fs/nfsd/max_block_size
check "the kernel's client mounts" kmount /mnt
stamp mounted

reads() { server_stats | stat_of read; }
writes() { server_stats | stat_of write; }
write_64m() { dd if=/dev/urandom of=/mnt/file bs=1M count=64 oflag=direct conv=fsync; }
read_64m() { dd if=/mnt/file of=/dev/null bs=1M iflag=direct; }
more() { [ "$1" -gt "$2" ] || { echo "$1 is not more than $2"; false; }; }

before=$(reads)
check "64 MiB written" write_64m
check "the server counted RDMA Reads" more "$(reads)" "$before"
before=$(writes)
check "64 MiB read" read_64m
check "the server counted RDMA Writes" more "$(writes)" "$before"
check "the server has the same bytes" cmp /mnt/file /export/file
stamp "64 MiB out and in"
check_fails "a read-only sub-export refuses writes" touch /mnt/ro/new
check "a file system below is crossed" touch /mnt/sub/new
check "fuse is there" test -c /dev/fuse
check "nfsd restarts" nfsd_restart
check "the mount works again" touch /mnt/after
stamp restarted
check "unmount" kumount /mnt
nfsd_up
check "the same server again is a server already up" test -e /export/after
check "another server takes its place" nfsd_up rw,root_squash
check "with an empty file system" test ! -e /export/after
check "that can be mounted" kmount /mnt vers=4.1
check "unmount" kumount /mnt
stamp end
tap_end
