#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A walk over ENTRIES files (default 100,000): it finds what the kernel's client
# finds, the daemon takes at most 512 bytes for each as long as the kernel holds
# it, and gives them back when the kernel forgets them.
# vm-boot: own
# vm-timeout: 1200

EXPORT_MIB=2048 # ext4 makes an inode for each 16 KiB
. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt
entries=${ENTRIES:-100000}
cp "$BUILD_DIR/tests/vm/walk" /run/walk

inodes() { client_stats $mnt | stat_of inodes; }
resident() { awk '/^VmRSS:/ { print $2 * 1024 }' "/proc/$(daemon_pid $mnt)/status"; }
# at_most BYTES: what the process has more now, for each of them.
at_most() {
	local more=$(($(resident) - before))
	echo "$((more / entries)) bytes each"
	[ $more -le $(($1 * entries)) ]
}
# Memory given back stays away: else khugepaged makes a huge page of any 2 MiB that still
# has a page in use (docs/tuning.md), and all is resident again before it is read.
no_refill() { echo 0 >/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none; }
takes() { diag "$(($(resident) - before)) bytes more: $((($(resident) - before) / entries)) each"; }
forget() {
	echo 2 >/proc/sys/vm/drop_caches
	wait_for 60 forgotten
}
forgotten() { [ "$(inodes)" -lt 100 ]; }

make_files() {
	mkdir $export_dir/walk
	python3 -c 'import os, sys
os.chdir(sys.argv[2])
for i in range(int(sys.argv[1])):
    name = "a file with the name %d" % i
    os.mknod(name)
    if i % 100 == 0:
        os.truncate(name, i)' "$entries" $export_dir/walk
}
check "$entries files" make_files
check "memory that went stays away" no_refill
check "mounted" fmount $mnt acregmin=3600,acregmax=3600,acdirmin=3600,acdirmax=3600
check "mounted by the kernel's client" kmount $knt
check "the kernel's client walks" eval "/run/walk $knt/walk >/tmp/theirs"
# A few first: buffers and the kernel's own tables are not what is counted.
stat $mnt/walk $mnt/sub >/tmp/stat
before=$(resident)
check "a walk" eval "/run/walk $mnt/walk >/tmp/ours"
check_equal "finds the same" "$(cat /tmp/ours)" "$(cat /tmp/theirs)"
check "the kernel holds them" between "$entries" "$(inodes)" $((entries + 20))
takes
check "at most 512 bytes each" at_most 512
check "forgotten" forget
takes
check "they are given back" at_most 64
check "once more" eval "/run/walk $mnt/walk >/tmp/ours"
takes
check "at most 512 bytes each" at_most 512
check "forgotten" forget
takes
check "they are given back" at_most 64
check "the kernel's client unmounts" kumount $knt
check "unmounted" funmount $mnt
tap_end
